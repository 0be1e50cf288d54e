"""Volumes of Cinder for openstack-prep: a section of a spec, a check and a command."""
