"""What several kinds read: one function per list, each with fields of its own, read once a run.

Source: Networking API v2.0 (``fields`` limits what is told); Compute API, "List Flavors With Details".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openstack_prep.cloud import Cloud
from openstack_prep.site import Site, query

Raw = Mapping[str, Any]
"""A row as the API gives it."""


@query
def flavors(site: Site) -> Sequence[Raw]:
    """Return all flavors that these credentials see, public or not."""
    # is_public=None asks an administrator's list for both; others see what they may use
    return site.admin.compute.list("/flavors/detail", "flavors", is_public="None")


@query
def in_project(site: Site, collection: str, member: str, project_id: str) -> Sequence[Raw]:
    """Return everything that Neutron keeps of a kind in a project, such as ("security-groups", "security_group")."""
    return site.admin.network.list(f"/{collection}", f"{member}s", project_id=project_id)


@query
def external_networks(site: Site) -> Sequence[Raw]:
    return site.admin.network.list("/networks", "networks", **{"router:external": True})


@query
def subnets_of(site: Site, network_id: str) -> Sequence[Raw]:
    """Return the subnets of a network, whoever they belong to, with id, name and cidr."""
    fields = ["id", "name", "cidr"]
    return site.admin.network.list("/subnets", "subnets", network_id=network_id, fields=fields)


@query
def router_interfaces(site: Site, project_id: str, owners: tuple[str, ...]) -> Sequence[Raw]:
    """Return the ports that routers of a project have in subnets."""
    return site.admin.network.list("/ports", "ports", project_id=project_id, device_owner=list(owners))


@query
def ports_on(site: Site, network_id: str) -> Sequence[Raw]:
    """Return the ports on a network, as far as these credentials see them."""
    return site.admin.network.list("/ports", "ports", network_id=network_id)


@query
def named(site: Site, collection: str, member: str, thing_id: str) -> str:
    """Return the name of one thing of Neutron's by its id; the id where these credentials may not see it."""
    listed = site.admin.network.list(f"/{collection}", f"{member}s", id=thing_id, fields="name")
    return str(listed[0]["name"]) if listed else thing_id


def network_name(site: Site, network_id: str, project_id: str) -> str:
    """Return the name of a network: one of the project, or one that others share with it."""
    mine = (each["name"] for each in in_project(site, "networks", "network", project_id) if each["id"] == network_id)
    return next(mine, None) or named(site, "networks", "network", network_id)


def external_network_name(site: Site, network_id: str) -> str:
    return next((str(each["name"]) for each in external_networks(site) if each["id"] == network_id), network_id)


@query
def role_assignments(site: Site, scope: str, scope_id: str) -> Sequence[Raw]:
    """Return who may do what in a project or domain ("project", "domain"), with names beside the ids."""
    which: dict[str, Any] = {f"scope.{scope}.id": scope_id, "include_names": True}
    return site.admin.identity.list("/role_assignments", "role_assignments", **which)


@query
def subnets_named(site: Site, cloud: Cloud, name: str) -> Sequence[Raw]:
    """Return the subnets of a name that an identity sees, those on networks that others share with it, too."""
    return cloud.network.list("/subnets", "subnets", name=name)


@query
def ports_in_subnet(site: Site, subnet_id: str) -> Sequence[Raw]:
    """Return who has an address of a subnet, as far as these credentials see."""
    fields = ["id", "name", "description", "device_owner", "fixed_ips"]
    return site.admin.network.list("/ports", "ports", fixed_ips=f"subnet_id={subnet_id}", fields=fields)


@query
def distributed_ports(site: Site, networks: tuple[str, ...]) -> Sequence[Raw]:
    """Return Neutron's own ports for distributed services on networks, with their addresses."""
    which: dict[str, Any] = {"device_owner": "network:distributed", "network_id": list(networks)}
    return site.admin.network.list("/ports", "ports", fields=["id", "fixed_ips"], **which)
