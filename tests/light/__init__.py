"""A stand-in for a cloud, for measuring the client: enough of Keystone, Nova, Neutron, Glance and Cinder for a tenant.

It is no OpenStack. It keeps its state in memory, and answers what openstack-prep and the SDK ask for projects with
users, roles, application credentials, quotas, flavors, networks, routers, security groups, floating IPs, key pairs,
server groups and images. Correctness is tested on the devcloud, which is real and writes 2-3 ports a second; this one
shows what a thousand projects cost the client. ``tests/fleet/test_light.py`` compares both.

It does not know servers, volumes, stacks or objects (their lists are empty), other policies than "administrator or
member of the project", microversions, groups of users, further domains, inherited roles, RBAC policies, trunks, and
imports of images. ``GET /_count`` on any of its ports names the requests that it did not know.
"""
