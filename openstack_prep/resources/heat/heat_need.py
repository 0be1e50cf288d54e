"""How much of each quota the resources of a stack need; pure functions.

Ports that Nova creates for a server, and volumes that it boots from, are counted with the server. Not counted are
resources that Heat's preview does not show and that none of these quotas limits: load balancers, ports of DHCP and
routers, resources in a stack of another region, and AWS-compatible resources.

Source: Heat's "OpenStack Resource Types"; Networking API v2.0, "Security groups" (rules that a new one has).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from openstack_prep.base.raw import Raw
from openstack_prep.resources.compute.quota_stores import EACH
from openstack_prep.resources.heat.heat import HeatStack
from openstack_prep.resources.heat.heat_groups import Effect
from openstack_prep.resources.lists.nova_records import FlavorRecord

Need = Mapping[str, int]
"""Amounts by the spec's name of a quota."""

ONE_OF = {
    "OS::Cinder::Volume": "volumes",
    "OS::Neutron::FloatingIP": "floating_ips",
    "OS::Neutron::Net": "networks",
    "OS::Neutron::Port": "ports",
    "OS::Neutron::RBACPolicy": "rbac_policies",
    "OS::Neutron::Router": "routers",
    "OS::Neutron::SecurityGroup": "security_groups",
    "OS::Neutron::SecurityGroupRule": "security_group_rules",
    "OS::Neutron::Subnet": "subnets",
    "OS::Neutron::SubnetPool": "subnet_pools",
    "OS::Neutron::Trunk": "trunks",
    "OS::Nova::FloatingIP": "floating_ips",
    "OS::Nova::Server": "instances",
    "OS::Nova::ServerGroup": "server_groups",
}
EGRESS_RULES = 2  # of a new security group, one per IP version; Heat removes them if the template has rules
_LABELS = {
    "gigabytes": "GiB of volumes",
    "per_volume_gigabytes": "GiB in one volume",
    "ram": "MiB of memory",
    "server_group_members": "servers in one server group",
}
_MEMBER = re.compile(r"(?<![^-])(?:\d+|[a-z0-9]{12})(?![^-])")
"""Heat's names for the members of a group: by number, or random."""


class Want(NamedTuple):
    """A resource to be created: its place without the number of the member, what it needs, and its server group."""

    shape: str
    cost: Need
    group: str = ""


def label(name: str) -> str:
    """Return the unit of a quota's number."""
    what, _, kind = name.partition("_")
    if what in ("volumes", "gigabytes") and kind:
        return f"{_LABELS.get(what, what)} of type {kind}"
    return _LABELS.get(name, name.replace("_", " "))


def shape(place: str) -> str:
    """Return the common place of a group's members: ``servers.0.port`` and ``servers-1-port`` are equal."""
    return _MEMBER.sub("*", place.replace(".", "-"))


def wants(resources: Iterable[Raw], root: str, flavors: Sequence[FlavorRecord]) -> list[Want]:
    """Return what the resources of a preview need; ``root`` is the stack's name in it."""
    sizes = {name: flavor for flavor in flavors for name in (flavor.name, flavor.id)}
    found = []
    for each in resources:
        place = f"{each['stack_name']}-{each['resource_name']}".removeprefix(f"{root}-")
        cost: Counter[str] = Counter()
        for name, number in _cost(each["resource_type"], each["properties"], sizes):
            cost[name] = max(cost[name], number) if name in EACH else cost[name] + number
        group = str((each["properties"].get("scheduler_hints") or {}).get("group") or "")
        found.append(Want(shape(place), cost | Counter({"server_group_members": 1} if group else {}), group))
    return found


def difference(wanted: Sequence[Want], existing: Mapping[str, Sequence[Need]]) -> Need:
    """Return what is needed besides what exists; resources of the same shape that exist can grow in place."""
    left = {each: list(costs) for each, costs in existing.items()}
    members = Counter(each.group for each in wanted if each.group)
    found: Counter[str] = Counter()
    for each in wanted:
        stands = left[each.shape].pop() if left.get(each.shape) else None
        for name, number in each.cost.items():
            before = 0 if stands is None else stands.get(name, number)
            if name == "server_group_members":
                found[name] = max(found[name], members[each.group] if number > before else 0)
            elif name in EACH:
                found[name] = max(found[name], number if number > before else 0)
            else:
                found[name] += max(0, number - before)
    return {name: number for name, number in found.items() if number}


def together(needs: Iterable[Need]) -> Need:
    """Return the total need of several resources."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for need in needs:
        for name, number in need.items():
            numbers[name].append(number)
    return {name: max(each) if name in EACH else sum(each) for name, each in numbers.items()}


def _cost(kind: str, properties: Raw, flavors: Mapping[str, FlavorRecord]) -> Iterator[tuple[str, int]]:
    if kind in ONE_OF:
        yield ONE_OF[kind], 1
    if kind == "OS::Nova::Server":
        yield from _server(properties, flavors)
    elif kind == "OS::Neutron::SecurityGroup":
        rules = properties.get("rules") or ()
        replaced = any(each.get("direction") == "egress" for each in rules)
        yield "security_group_rules", len(rules) + (0 if replaced else EGRESS_RULES)
    elif kind == "OS::Cinder::Volume":
        yield from _volume(properties.get("size"), properties.get("volume_type"))


def _server(properties: Raw, flavors: Mapping[str, FlavorRecord]) -> Iterator[tuple[str, int]]:
    flavor = flavors.get(str(properties.get("flavor")))
    if flavor:  # else it refers to a resource that does not exist yet
        yield "cores", flavor.vcpus
        yield "ram", flavor.ram
    networks = properties.get("networks")
    alone = [each for each in networks or () if not each.get("port") and each.get("allocate_network") != "none"]
    yield "ports", len(alone) if networks else 1  # without networks Nova uses the only network
    for each in properties.get("block_device_mapping_v2") or ():
        source = any(each.get(name) for name in ("image", "image_id", "snapshot_id"))
        if source and not each.get("volume_id"):
            yield "volumes", 1
            yield from _volume(each.get("volume_size"), each.get("volume_type"))


def _volume(size: Any, kind: str | None) -> Iterator[tuple[str, int]]:
    if kind:
        yield f"volumes_{kind}", 1
    if size:  # else the size of a snapshot or of another volume applies
        yield "gigabytes", int(size)
        yield "per_volume_gigabytes", int(size)
        if kind:
            yield f"gigabytes_{kind}", int(size)


# --- The existing resources of a stack that an update keeps, and how far they can grow in place ----------
# Source: Compute API, "Servers" (flavor's size within a server since microversion 2.47); Networking API,
# "Security groups"; Block Storage API, "Volumes".


def standing(stack: HeatStack, missing: Collection[str], preview: Iterable[Effect]) -> dict[str, list[Need]]:
    """Return, by shape, one entry per resource that is kept: its present amounts of quotas that it could need more of.

    A resource that an update replaces exists together with its successor for a while. Heat may replace the members of a
    group one after the other, so at most one of them is counted twice.
    """
    making = {each.place for each in preview if each.verb in ("replace", "delete")}
    sizes = {kind: measure(stack) for kind, measure in _MEASURES.items() if kind in stack.types}
    found: dict[str, list[Need]] = defaultdict(list)
    replaced: set[str] = set()
    for place, each in stack.made.items():
        like = shape(place)
        if place in missing:
            continue
        if place in making and ("*" not in like or like not in replaced):
            replaced.add(like)
            continue
        found[like].append(sizes.get(each.type, {}).get(each.id, {}))
    return found


def _servers(stack: HeatStack) -> dict[str, Need]:
    return {each["id"]: {"cores": each["flavor"]["vcpus"], "ram": each["flavor"]["ram"]} for each in stack.servers}


def _volumes(stack: HeatStack) -> dict[str, Need]:
    listed = stack.cloud.volume.list("/volumes/detail", "volumes")
    names = ("gigabytes", "per_volume_gigabytes", "gigabytes_{}")
    return {each["id"]: {name.format(each["volume_type"]): each["size"] for name in names} for each in listed}


def _security_groups(stack: HeatStack) -> dict[str, Need]:
    project = stack.cloud.project_id
    listed = stack.cloud.network.list("/security-groups", "security_groups", project_id=project)
    return {each["id"]: {"security_group_rules": len(each["security_group_rules"])} for each in listed}


_MEASURES: Mapping[str, Callable[[HeatStack], Mapping[str, Need]]] = {
    "OS::Cinder::Volume": _volumes,
    "OS::Neutron::SecurityGroup": _security_groups,
    "OS::Nova::Server": _servers,
}
