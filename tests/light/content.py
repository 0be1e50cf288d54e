"""What a cloud holds at the start: the same as a devcloud, and more external addresses."""

from __future__ import annotations

from tests.devcloud.fill import FLAVORS, ROLES
from tests.devcloud.layout import PASSWORD
from tests.light.neutron.networks import add_network, add_subnet
from tests.light.services.flavors import new_flavor
from tests.light.services.grants import assign
from tests.light.state import DOMAIN, Cloud, new_id, plain_id

IMMUTABLE = ("reader", "member", "manager", "admin", "service")
EXTERNAL = {
    "name": "external",
    "router:external": True,
    "mtu": 1500,
    "provider:network_type": "flat",
    "provider:physical_network": "external",
}
SUBNETS = (
    {
        "name": "external",
        "cidr": "192.168.122.0/24",
        "gateway_ip": "192.168.122.1",
        "enable_dhcp": False,
        "allocation_pools": [
            {"start": "192.168.122.100", "end": "192.168.122.159"},
            {"start": "192.168.122.200", "end": "192.168.122.250"},
        ],
    },
    {
        "name": "external-many",  # specs may ask for addresses below the pool
        "cidr": "172.16.0.0/12",
        "gateway_ip": "172.16.0.1",
        "enable_dhcp": False,
        "allocation_pools": [{"start": "172.24.0.0", "end": "172.31.255.250"}],
    },
)


def fill(cloud: Cloud) -> Cloud:
    """Add the administrator with its project, roles, flavors and an external network."""
    for name in (*IMMUTABLE, *ROLES):
        options = {"immutable": True} if name in IMMUTABLE else {}
        role = {"id": plain_id(), "name": name, "domain_id": None, "description": None, "options": options}
        cloud.roles.add(role)
    project = {
        "id": plain_id(),
        "name": "admin",
        "domain_id": DOMAIN,
        "description": "Bootstrap project for initializing the cloud.",
        "enabled": True,
        "parent_id": DOMAIN,
        "is_domain": False,
        "tags": [],
        "options": {},
    }
    user = {"id": plain_id(), "name": "admin", "domain_id": DOMAIN, "enabled": True, "password_expires_at": None}
    cloud.projects.add(project)
    cloud.users.add(user | {"options": {}, "_password": PASSWORD})
    assign(cloud, str(project["id"]), str(user["id"]), cloud.role_ids["admin"])
    for name, (cpus, ram, disk) in FLAVORS.items():
        cloud.flavors.add(new_flavor({"id": new_id(), "name": name, "vcpus": cpus, "ram": ram, "disk": disk}))
    network = add_network(cloud, str(project["id"]), EXTERNAL)
    for subnet in SUBNETS:
        add_subnet(cloud, network, subnet | {"network_id": network["id"]})
    return cloud
