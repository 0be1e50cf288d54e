"""The topology of a project, from a few lists, however much is in the project.

Sources: Networking API v2.0; Compute API, "List Servers Detailed".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.lists.by_id import list_by, list_by_id

Rows = Sequence[Raw]


@dataclass(frozen=True, kw_only=True)
class Lists:
    """What was read, as the API has it."""

    project_id: str
    networks: Rows
    """Those of the project, and those that its ports, routers and floating IPs are on."""
    subnets: Rows
    """Those of these networks that are not external."""
    routers: Rows
    ports: Rows
    floating_ips: Rows
    servers: Rows
    unread: tuple[str, ...] = ()


def read(cloud: Cloud, project_id: str, *, jobs: int = 8) -> Lists:
    """Read a project; raises CloudError.  What these credentials may not list is named in ``unread``."""
    neutron = cloud.network
    mine: Values = {"project_id": project_id}
    of_another: Values = {} if project_id == cloud.project_id else {"all_tenants": True, "project_id": project_id}
    unread: list[str] = []

    def unless_denied(what: str, listing: Callable[[], Rows]) -> Rows:
        try:
            return listing()
        except NotAllowed:
            unread.append(what)
            return ()

    with ThreadPoolExecutor(jobs) as pool:

        def start(path: str, plural: str) -> Callable[[], Rows]:
            return pool.submit(unless_denied, plural, lambda: neutron.list(f"/{path}", plural, **mine)).result

        networks, routers = start("networks", "networks"), start("routers", "routers")
        ports, floating = start("ports", "ports"), start("floatingips", "floatingips")
        servers = pool.submit(
            unless_denied, "servers", lambda: cloud.compute.list("/servers/detail", "servers", **of_another)
        ).result
        known = {each["id"]: each for each in networks()}
        used = {each["network_id"] for each in ports()} | {each["floating_network_id"] for each in floating()}
        used |= {gateway["network_id"] for each in routers() if (gateway := each.get("external_gateway_info"))}
        known |= list_by_id(neutron, "networks", used - known.keys())
        inner = [key for key, each in known.items() if not each.get("router:external")]
        subnets = list_by(neutron, "subnets", "network_id", inner)
        return Lists(
            project_id=project_id,
            networks=_by_name(known),
            subnets=_by_name(subnets),
            routers=_by_name(_by_id(routers())),
            ports=_by_name(_by_id(ports())),
            floating_ips=sorted(floating(), key=lambda each: str(each["floating_ip_address"])),
            servers=_by_name(_by_id(servers())),
            unread=tuple(sorted(unread)),
        )


def _by_id(rows: Iterable[Raw]) -> dict[str, Raw]:
    return {each["id"]: each for each in rows}


def _by_name(rows: Mapping[str, Raw]) -> list[Any]:
    return sorted(rows.values(), key=lambda each: (each["name"] or "", each["id"]))
