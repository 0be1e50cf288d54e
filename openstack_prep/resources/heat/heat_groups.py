"""The effect of an update on the members of groups, as far as Heat's preview does not show it; pure functions.

A preview works with the names that a ResourceGroup has skipped so far. Names in new removal_policies are only skipped
by the update itself, which deletes these members and creates others; this module computes that for groups of the main
template. For a scaling group, a preview shows members that do not exist.

Source: Heat 27.0.1, heat/engine/resources/openstack/heat/resource_group.py (_name_skiplist, _update_name_skiplist,
_resource_names, handle_update); autoscaling_group.py (_try_rolling_update); aws/autoscaling/autoscaling_group.py
(handle_update, resize: the oldest members go); instance_group.py (_create_template, which reads the members of a
group that a preview does not know).
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from openstack_prep.base.raw import Raw, Values
from openstack_prep.resources.heat.heat import HeatResource, HeatStack
from openstack_prep.resources.heat.heat_changes import WHOLE, TemplateChanges
from openstack_prep.resources.heat.heat_parameters import items

GROUP, SCALING = "OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"
ROLLED = (SCALING, "OS::Heat::InstanceGroup", "AWS::AutoScaling::AutoScalingGroup")
"""Groups that give each member the new definition one after the other, where a preview shows other members."""
SIZED_BY = {WHOLE, "removal_policies", "removal_policies_mode", "count"}
MAYBE = "maybe replace"


@dataclass(frozen=True, order=True)
class Effect:
    """One resource that an update would affect: the action, its place, and its type."""

    verb: str
    place: str
    type: str

    def __str__(self) -> str:
        return f"{self.verb} {self.place}"


class Unknown(Exception):
    """Only Heat can compute the value."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of an update: their values, and their declarations in the template."""

    given: Raw
    declared: Raw

    def of(self, value: object) -> Any:
        """Return a property's value; raises Unknown for functions other than get_param."""
        if isinstance(value, list | tuple):
            return [self.of(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        name = value.get("get_param")
        if value.keys() != {"get_param"} or not isinstance(name, str):
            raise Unknown(name)
        if name in self.given:
            return self.given[name]
        return (self.declared.get(name) or {}).get("default")

    def number(self, value: object, default: int) -> int:
        """Return a number; raises Unknown."""
        found = self.of(value)
        try:
            return default if found is None else int(found)
        except (TypeError, ValueError):
            raise Unknown(found) from None


def not_growing(stack: HeatStack, template: Raw, values: Parameters) -> Values:
    """Return a template whose groups do not grow, because Heat cannot preview growth; groups that shrink do shrink."""
    members = Counter(place.rpartition(".")[0] for place in stack.made)
    resources = dict(template.get("resources") or {})
    for name, each in resources.items():
        if each.get("type") == GROUP and members[name]:
            count = members[name]
            with contextlib.suppress(Unknown):  # ``_with_members`` handles this
                count = min(count, values.number((each.get("properties") or {}).get("count"), 1))
            resources[name] = {**each, "properties": {**each["properties"], "count": count}}
    return {**template, "resources": resources}


def with_group_effects(
    found: list[Effect], stack: HeatStack, template: Raw, values: Parameters, changes: TemplateChanges
) -> list[Effect]:
    """Return the preview, completed with the effect on the members of groups."""
    for name, each in (template.get("resources") or {}).items():
        if each.get("type") == GROUP and f"{name}." in stack.places.values():
            found = _with_members(found, stack, name, each.get("properties") or {}, values, changes)
    found = [_with_rolling_updates(each, stack, template, values, changes) for each in found]
    return sorted({one for each in found for one in _leaves(each, stack)})


def _with_members(
    found: list[Effect], stack: HeatStack, name: str, properties: Raw, values: Parameters, changes: TemplateChanges
) -> list[Effect]:
    """Return the preview with the members of a group that come, and those that its removal_policies remove."""
    made = {place: each for place, each in stack.made.items() if place.rpartition(".")[0] == name}
    not_sized = any(each.place == name for each in found)  # Heat could not preview the whole update
    members = {place.rpartition(".")[2]: each for place, each in made.items()}
    try:
        removed, overwrites = _removed_members(members, properties, values)
        if removed or overwrites or not_sized:
            count = values.number(properties.get("count"), 1)
    except Unknown:
        return [*found, Effect(MAYBE, name, GROUP)] if changes.changed(name) & SIZED_BY else found
    if not (removed or overwrites or not_sized):  # the preview shows all of it
        return found
    names = _members_after(members.keys(), removed, count, overwrites=overwrites)
    kind = str((properties.get("resource_def") or {}).get("type"))
    coming = [Effect("add", f"{name}.{one}", kind) for one in names if one not in members]
    found = [*found, *(each for each in coming if each not in found)]
    if not removed and not overwrites:
        return found
    going = {f"{name}.{one}" for one in members.keys() - set(names)}
    kept = [
        each
        for each in found
        if not (each.verb == "delete" and each.place in made)
        and ".".join(each.place.split(".")[: name.count(".") + 2]) not in going
    ]
    return [*kept, *(Effect("delete", place, made[place].type) for place in going)]


def _removed_members(members: Mapping[str, HeatResource], properties: Raw, values: Parameters) -> tuple[Set[str], bool]:
    """Return the members that removal_policies remove, and whether earlier ones may come back. Raises Unknown."""
    wanted = set(_listed(properties.get("removal_policies"), values))
    removed = {each for each, resource in members.items() if {each, resource.id} & wanted}
    known = removed | {members[each].id for each in removed}
    if any(not each.isdecimal() for each in wanted - known):
        raise Unknown("an id that a nested template gives its member")
    return removed, values.of(properties.get("removal_policies_mode")) == "update"


def _members_after(members: Set[str], removed: Set[str], count: int, *, overwrites: bool) -> list[str]:
    """Return the names of the members that a group will have: Heat does not use those again that were removed."""
    numbers = [int(each) for each in members if each.isdecimal()]
    skipped = removed if overwrites else removed | {str(n) for n in range(max(numbers, default=0))} - members
    names = (each for each in map(str, itertools.count()) if each not in skipped)
    return list(itertools.islice(names, count))


def _listed(policies: object, values: Parameters) -> Iterator[str]:
    """Yield the members that removal_policies name; raises Unknown."""
    policies = policies if isinstance(policies, list | tuple) else values.of(policies) or ()
    if not isinstance(policies, list | tuple):
        raise Unknown(policies)
    for each in policies:
        policy = each if isinstance(each, Mapping) and not each.keys() - {"resource_list"} else values.of(each)
        if policy is not None and not isinstance(policy, Mapping):
            raise Unknown(policy)
        yield from items(values.of((policy or {}).get("resource_list")) or ())


def _with_rolling_updates(
    foreseen: Effect, stack: HeatStack, template: Raw, values: Parameters, changes: TemplateChanges
) -> Effect:
    """Return the effect on a scaling group, as "maybe replace" if members may be removed or changed."""
    if foreseen.type not in ROLLED or foreseen.verb != "update":
        return foreseen
    group = (template.get("resources") or {}).get(foreseen.place) or {}
    properties = group.get("properties") or {}
    if foreseen.type != SCALING or changes.changed(foreseen.place) & {WHOLE, "resource"}:
        return replace(foreseen, verb=MAYBE)
    standing = sum(place.rpartition(".")[0] == foreseen.place for place in stack.made)
    try:
        size = values.number(properties.get("desired_capacity"), standing)
        size = max(values.number(properties.get("min_size"), 0), size)
        size = min(values.number(properties.get("max_size"), size), size)
    except Unknown:
        return replace(foreseen, verb=MAYBE)
    return replace(foreseen, verb=MAYBE) if size < standing else foreseen


def _leaves(foreseen: Effect, stack: HeatStack) -> list[Effect]:
    """Return the resources of a nested stack that is deleted, in place of the stack."""
    containers = set(stack.places.values())
    if foreseen.verb != "delete" or f"{foreseen.place}." not in containers:
        return [foreseen]
    return [
        Effect("delete", place, each.type)
        for place, each in stack.made.items()
        if place.startswith(f"{foreseen.place}.") and f"{place}." not in containers
    ]
