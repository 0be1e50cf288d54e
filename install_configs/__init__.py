"""Shipped specs: ``openstack-prep example NAME`` prints one."""
