"""The existing resources of a stack that an update keeps, and how far they can grow in place.

Source: Compute API, "Servers" (flavor's size within a server since microversion 2.47); Networking API,
"Security groups"; Block Storage API, "Volumes".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from openstack_prep.resources.heat.heat import HeatStack
from openstack_prep.resources.heat.heat_groups import Effect
from openstack_prep.resources.heat.heat_need import Need, shape


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
