"""What a cloud holds at the start: the same as a devcloud, and more external addresses."""

from __future__ import annotations

from tests.devcloud.fill import FLAVORS, ROLES
from tests.devcloud.layout import PASSWORD
from tests.light.neutron.networks import add_network, add_subnet
from tests.light.neutron.security_groups import ensure_default
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


def _project(cloud: Cloud, name: str, description: str) -> str:
    fixed = {"domain_id": DOMAIN, "enabled": True, "parent_id": DOMAIN, "is_domain": False, "tags": [], "options": {}}
    row = {"id": plain_id(), "name": name, "description": description, **fixed}
    return str(cloud.projects.add(row)["id"])


def _user(cloud: Cloud, name: str, password: str | None) -> str:
    fixed = {"domain_id": DOMAIN, "enabled": True, "password_expires_at": None, "options": {}}
    return str(cloud.users.add({"id": plain_id(), "name": name, "_password": password, **fixed})["id"])


def crowd(cloud: Cloud, projects: int) -> None:
    """Add projects of other people, each with a user, a network, its default group and a quota of its own."""
    for number in range(projects):
        name = f"other-{number:05}"
        project_id = _project(cloud, name, "of other people")
        assign(cloud, project_id, _user(cloud, name, None), cloud.role_ids["member"])
        ensure_default(cloud, project_id)
        network = add_network(cloud, project_id, {"name": name})
        add_subnet(cloud, network, {"name": name, "cidr": "10.0.0.0/24", "network_id": network["id"]})
        cloud.quotas["network", project_id] = {"network": 7}


def fill(cloud: Cloud) -> Cloud:
    """Add the administrator with its project, roles, flavors and an external network."""
    for name in (*IMMUTABLE, *ROLES):
        options = {"immutable": True} if name in IMMUTABLE else {}
        role = {"id": plain_id(), "name": name, "domain_id": None, "description": None, "options": options}
        cloud.roles.add(role)
    project_id = _project(cloud, "admin", "Bootstrap project for initializing the cloud.")
    assign(cloud, project_id, _user(cloud, "admin", PASSWORD), cloud.role_ids["admin"])
    for name, (cpus, ram, disk) in FLAVORS.items():
        cloud.flavors.add(new_flavor({"id": new_id(), "name": name, "vcpus": cpus, "ram": ram, "disk": disk}))
    network = add_network(cloud, project_id, EXTERNAL)
    for subnet in SUBNETS:
        add_subnet(cloud, network, subnet | {"network_id": network["id"]})
    return cloud
