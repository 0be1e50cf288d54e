"""Whether the hosts of a cloud have room for servers, as Placement answers administrators.

Only what is impossible for sure is reported: demands that this code does not know are left out of the question, which
can only make Placement name more hosts.

Source: Placement API, "Allocation candidates" (1.29: trees of providers; capacity is that after the reserve and the
allocation ratio); placement 15.0.0, policies/allocation_candidate.py (administrators and services may ask); Nova
34.0.0, scheduler/utils.py, ResourceRequest (what is asked for a flavor) and scheduler/request_filter.py,
map_az_to_placement_aggregate (zones).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw
from openstack_prep.core.text import counted
from openstack_prep.resources.lists.nova_records import FlavorRecord

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

MICROVERSION = "1.29"
MOST = 1000
"""Candidates that are asked for; if there are so many, room is not judged."""


@dataclass(frozen=True)
class ServerDemand:
    """Servers that are to be created with the same flavor."""

    flavor: FlavorRecord
    count: int
    zone: str | None = None
    """Availability zone; None: any."""
    from_volume: bool = False
    """Whether the root disk is a volume."""
    apart: int = 1
    """How many of them must be on hosts of their own."""

    @property
    def resources(self) -> Mapping[str, int]:
        """Return the amount per resource class of one server."""
        flavor, specs = self.flavor, self.flavor.extra_specs
        root = 0 if self.from_volume else flavor.disk
        found = {
            "VCPU": flavor.vcpus,
            "MEMORY_MB": flavor.ram,
            "DISK_GB": root + flavor.ephemeral + math.ceil(flavor.swap / 1024),
        }
        if specs.get("hw:cpu_policy", "shared") != "shared":
            del found["VCPU"]  # processors of its own are of another class
        for name, value in specs.items():
            if name.startswith("resources:") and value.isdecimal():
                found[name.partition(":")[2]] = int(value)
        return {name: number for name, number in found.items() if number}

    @property
    def traits(self) -> Sequence[str]:
        """Return the required traits, and with ! the forbidden ones."""
        signs = {"required": "", "forbidden": "!"}
        specs = self.flavor.extra_specs.items()
        found = [f"{signs[value]}{name[6:]}" for name, value in specs if name.startswith("trait:") and value in signs]
        return sorted(found)


@dataclass(frozen=True)
class CapacityShortage:
    """Servers for which the hosts have no room."""

    demand: ServerDemand
    room: int
    """For how many there is."""
    hosts: int
    """How many hosts have room for at least one."""

    def __str__(self) -> str:
        demand = self.demand
        where = f" in zone {demand.zone}" if demand.zone else ""
        servers = f"{counted(demand.count, 'server')} of flavor {demand.flavor.name}{where}"
        if self.room < demand.count:
            return f"the hosts have room for {self.room} of {servers}"
        return f"{servers}: {demand.apart} must be on hosts of their own, and {counted(self.hosts, 'host')} have room"


def may_ask(cloud: Cloud) -> bool:
    """Whether Placement may answer these credentials, as far as their roles show."""
    roles = {role.lower() for role in cloud.roles}
    return cloud.has("placement") and (not roles or bool(roles & {"admin", "service"}))


def shortages(cloud: Cloud, demands: Iterable[ServerDemand]) -> Iterator[CapacityShortage]:
    """Yield the servers for which there is no room; raises CloudError, NotAllowed for most users.

    Each question is asked once: whoever cannot reach Placement shall not wait for it again and again.
    """
    wanted = merged(demands)
    aggregates = _aggregates(cloud) if any(each.zone for each in wanted) else {}
    for demand in wanted:
        room = _room(cloud, demand, aggregates)
        if room is None:
            continue
        found = CapacityShortage(demand, sum(room.values()), len(room))
        if (found.room < demand.count or found.hosts < demand.apart) and not _has_other_processors(cloud):
            yield found


def merged(demands: Iterable[ServerDemand]) -> list[ServerDemand]:
    """Return one demand for all servers with the same flavor, zone and kind of disk."""
    found: dict[tuple[str, str | None, bool], ServerDemand] = {}
    for demand in demands:
        key = (demand.flavor.id, demand.zone, demand.from_volume)
        before = found.get(key, replace(demand, count=0))
        found[key] = replace(demand, count=before.count + demand.count, apart=max(before.apart, demand.apart))
    return list(found.values())


def _room(
    cloud: Cloud, demand: ServerDemand, aggregates: Mapping[str | None, Sequence[str]]
) -> Mapping[frozenset[str], int] | None:
    """Return by host how many servers it can take at most: each way to place one, repeated until it is full.

    None if room is not judged. A host is known by the roots of all that a server takes there, also of shared disks.
    """
    if not demand.resources or not demand.count:
        return None
    query = {"resources": ",".join(f"{name}:{number}" for name, number in sorted(demand.resources.items()))}
    if demand.traits:
        query["required"] = ",".join(demand.traits)
    if demand.zone in aggregates:  # else the zone of the hosts that are in none, or no zone: all are asked for
        query["member_of"] = f"in:{','.join(aggregates[demand.zone])}"
    answer = _candidates(cloud, **query)
    if len(answer["allocation_requests"]) >= MOST:
        return None
    summaries = answer["provider_summaries"]
    room: Counter[frozenset[str]] = Counter()
    for request in answer["allocation_requests"]:
        times = min(
            (free["capacity"] - free["used"]) // amount
            for provider, allocation in request["allocations"].items()
            for name, amount in allocation["resources"].items()
            for free in (summaries[provider]["resources"][name],)
        )
        room[frozenset(summaries[allocation]["root_provider_uuid"] for allocation in request["allocations"])] += max(
            times, 1
        )
    return room


def _has_other_processors(cloud: Cloud) -> bool:
    """Whether there are processors for servers with their own: an image may ask for these, too (hw_cpu_policy)."""
    return bool(_candidates(cloud, resources="PCPU:1", limit="1")["allocation_requests"])


def _candidates(cloud: Cloud, **query: str) -> Raw:
    params = {"limit": MOST, **query}
    return cloud.placement.ask("GET", "/allocation_candidates", params=params, microversion=MICROVERSION, once=True)


def _aggregates(cloud: Cloud) -> Mapping[str | None, Sequence[str]]:
    """Return the ids of the aggregates of each availability zone."""
    found: dict[str | None, list[str]] = {}
    for each in cloud.compute.list("/os-aggregates", "aggregates"):
        if each["availability_zone"]:
            found.setdefault(each["availability_zone"], []).append(each["uuid"])
    return found
