"""What lies in a project, counted; and what lies in none any more."""

from __future__ import annotations

from collections import Counter
from typing import Any

WANTED = (
    "user",
    "network net",
    "subnet nodes",
    "router out",
    "security_group nodes",
    "security_group lb",
    "rule tcp 22",
    "rule tcp 443",
    "floating_ip",
    "server_group masters",
    "image disk",
    "interface",
    "port lb-10.0.0.240",
    "port lb-10.0.0.241",
)


def left(admin: Any, name: str) -> Counter[str]:
    """Return how many of each there are in a project; 0 of what is missing, nothing at all without the project."""
    found: Counter[str] = Counter()
    project = admin.identity.find_project(name)
    if project is None:
        return found
    here = {"project_id": project.id}
    network = admin.network
    found.update("user" for _ in admin.identity.users(name=name))
    found.update(f"network {each.name}" for each in network.networks(**here))
    found.update(f"subnet {each.name}" for each in network.subnets(**here))
    found.update(f"router {each.name}" for each in network.routers(**here))
    groups = {each.id: each.name for each in network.security_groups(**here) if each.name != "default"}
    found.update(f"security_group {group}" for group in groups.values())
    for rule in network.security_group_rules(**here):
        if rule.security_group_id in groups and rule.direction == "ingress":
            found.update([f"rule {rule.protocol} {rule.port_range_min}"])
    found.update("floating_ip" for _ in network.ips(**here))
    for port in network.ports(**here):
        found.update(["interface" if port.device_owner.startswith("network:router") else f"port {port.name}"])
    found.update(f"image {each.name}" for each in admin.image.images(owner=project.id))
    listed = admin.compute.server_groups(all_projects=True)
    found.update(f"server_group {each.name}" for each in listed if each.project_id == project.id)
    for what in WANTED:
        found.setdefault(what, 0)
    return found


def orphans(admin: Any) -> dict[str, str]:
    """Return by id what belongs to a project that does not exist."""
    projects = {each.id for each in admin.identity.projects()}
    network = admin.network
    found = {}
    for kind, listed in (
        ("network", network.networks()),
        ("subnet", network.subnets()),
        ("router", network.routers()),
        ("security_group", network.security_groups()),
        ("floating_ip", network.ips()),
        ("port", network.ports()),
        ("image", admin.image.images()),
        ("server_group", admin.compute.server_groups(all_projects=True)),
    ):
        for each in listed:
            owner = each.owner if kind == "image" else each.project_id
            if owner and owner not in projects:
                found[each.id] = f"{kind} {each.name or each.id}"
    return found
