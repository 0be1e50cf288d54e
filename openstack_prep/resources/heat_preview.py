"""What Heat says that it would make, and what an update would do.

Heat compares properties, so it may say update where nothing will come of it.  What an update does to
disks in place is asked about by a second preview (``heat_in_place``).  What it cannot foretell is
called "maybe replace".

Source: Orchestration API v1, "Preview stack", "Preview stack update" (show_nested).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from openstack_prep.errors import CloudError
from openstack_prep.raw import Raw, Values
from openstack_prep.resources import heat_in_place
from openstack_prep.resources.heat import HeatStack
from openstack_prep.secret import Secret
from openstack_prep.service import Service

VERBS = {"replaced": "replace", "deleted": "delete", "added": "add", "updated": "update"}
STATELESS = (
    *("OS::Heat::CloudConfig", "OS::Heat::MultipartMime", "OS::Heat::SoftwareConfig", "OS::Heat::Value"),
    *("OS::Heat::WaitCondition", "OS::Heat::WaitConditionHandle"),
)
"""Types of which a new one in the old one's place is no loss."""
GROUP, SCALING = "OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"
ROLLED = (SCALING, "OS::Heat::InstanceGroup", "AWS::AutoScaling::AutoScalingGroup")
"""Groups that give each member the new definition, one after the other, where a preview invents other members.

Source: Heat 27.0.1, heat/engine/resources/openstack/heat/autoscaling_group.py, _try_rolling_update;
instance_group.py, _create_template, which reads the members of a group that a preview does not know.
"""
MAYBE = "maybe replace"


class Refused(Exception):
    """Heat will not have it; the text is Heat's."""


@dataclass(frozen=True, order=True)
class Foreseen:
    """One resource that an update would touch: what happens to it, where it is, what it is."""

    verb: str
    place: str
    type: str

    def __str__(self) -> str:
        return f"{self.verb} {self.place}"


def preview(heat: Service, name: str, body: Raw, secrets: Sequence[Secret]) -> list[Values]:
    """Return the resources, nested ones too, that a new stack would consist of; raises Refused."""
    try:
        answer = heat.post("/stacks/preview", {"stack_name": name, **body}, secrets=secrets, log=False)
    except CloudError as error:
        if error.status not in (400, 403):
            raise
        raise Refused(str(error)) from None
    return list(_flat(answer["stack"]["resources"]))


def _flat(resources: Iterable[Any]) -> Iterator[Values]:
    """Yield the resources of a preview: those of a nested stack are a list within the list."""
    for each in resources:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each


def foresee(
    stack: HeatStack,
    body: Raw,
    secrets: Sequence[Secret],
    before: Raw,
    names: Sequence[str],
    missing: Collection[str] = (),
    *,
    same_template: bool = False,
) -> list[Foreseen]:
    """Return what an update would do; raises Refused.

    A preview takes every reference to a resource for a change, even when the resource stays, and so
    would replace what holds one.  Hence references are given as the ids that they stand for, unless
    their resource is ``missing`` or turns out to be made anew, too.
    """
    pinned = {name: each for name, each in stack.ids.items() if name not in missing}
    while True:
        template = {**body["template"], "resources": _pinned(body["template"].get("resources"), pinned)}
        asked = {**body, "template": template}
        found = _foresee(stack, asked, secrets, before, names)
        moved = pinned.keys() & {each.place for each in found if each.verb in ("replace", "delete")}
        if not moved:
            found = _with_wiped(found, stack, asked, secrets, before, names)
            changed = {name for name in names if before.get(name) != body["environment"]["parameters"][name]}
            return [_perhaps_rolled(each, template, changed if same_template else None) for each in found]
        pinned = {name: each for name, each in pinned.items() if name not in moved}


def _with_wiped(
    found: list[Foreseen],
    stack: HeatStack,
    body: Raw,
    secrets: Sequence[Secret],
    before: Raw,
    names: Sequence[str],
) -> list[Foreseen]:
    """Return what is foreseen, with updates that wipe a disk in place called "rebuild" or "restore"."""
    revealing = heat_in_place.revealing(body)
    if revealing == body or not any(each.verb == "update" for each in found):
        return found
    wiped = {each.place for each in _foresee(stack, revealing, secrets, before, names) if each.verb == "replace"}
    return [
        replace(each, verb=heat_in_place.VERBS.get(each.type, "rebuild"))
        if each.verb == "update" and each.place in wiped
        else each
        for each in found
    ]


def _perhaps_rolled(foreseen: Foreseen, template: Raw, changed: Set[str] | None) -> Foreseen:
    """Return what happens to a group, as "maybe replace" when its members may get another definition.

    ``changed`` are the parameters that are, None when the template is another.
    """
    if foreseen.type not in ROLLED or foreseen.verb != "update":
        return foreseen
    group = (template.get("resources") or {}).get(foreseen.place) or {}
    member = (group.get("properties") or {}).get("resource")
    if changed is None or foreseen.type != SCALING or member is None or _depends(member, changed):
        return replace(foreseen, verb=MAYBE)
    return foreseen


def _depends(value: object, changed: Set[str]) -> bool:
    """Whether a part of a template is made of parameters that changed, or of other resources."""
    if isinstance(value, Mapping):
        named = value.get("get_param")
        named = named[0] if isinstance(named, list | tuple) and named else named
        if named in changed or value.keys() & {"get_attr", "get_resource"}:
            return True
        return any(_depends(each, changed) for each in value.values())
    return isinstance(value, list | tuple) and any(_depends(each, changed) for each in value)


def _pinned(value: object, ids: Mapping[str, str]) -> object:
    """Return a part of a template with ids in the place of references."""
    if isinstance(value, Mapping):
        if value.keys() == {"get_resource"}:
            return ids.get(str(value["get_resource"]), value)
        return {name: _pinned(each, ids) for name, each in value.items()}
    return [_pinned(each, ids) for each in value] if isinstance(value, list | tuple) else value


def _foresee(
    stack: HeatStack,
    body: Raw,
    secrets: Sequence[Secret],
    before: Raw,
    names: Sequence[str],
) -> list[Foreseen]:
    """Ask for all that happens.

    Heat does not tell what happens in nested stacks when a group of them is to grow (it answers
    400).  Then it is asked with the groups' present sizes; and when a group within a group is to grow,
    about the template alone, and about each parameter of ``names`` alone that is not as ``before``.
    """
    try:
        return _preview(stack, body, secrets, nested=True)
    except Refused:
        found = set(_preview(stack, body, secrets, nested=False))
    body = {**body, "template": _of_present_size(stack, body["template"])}
    after = body["environment"]["parameters"]
    unchanged = {**before, **{name: value for name, value in after.items() if name not in names}}
    alone = [unchanged | {name: after[name]} for name in names if before.get(name) != after[name]]
    try:
        return sorted(found.union(_preview(stack, body, secrets, nested=True)))
    except Refused:
        refused = []
    for parameters in (unchanged, *alone):
        asked = {**body, "environment": body["environment"] | {"parameters": parameters}}
        try:
            found.update(_preview(stack, asked, secrets, nested=True))
        except Refused:
            refused.append(parameters)
    if unchanged in refused or len(refused) > 1:  # more is hidden than the one parameter by which a group grows
        found = {replace(each, verb=MAYBE) if f"{each.place}." in stack.places.values() else each for each in found}
    return sorted(found)


def _of_present_size(stack: HeatStack, template: Raw) -> Values:
    """Return a template whose groups have as many members as they have now."""
    members = Counter(place.rpartition(".")[0] for place in stack.made)
    resources = dict(template.get("resources") or {})
    for name, each in resources.items():
        if each.get("type") == GROUP and members[name]:
            resources[name] = {**each, "properties": {**each["properties"], "count": members[name]}}
    return {**template, "resources": resources}


def _preview(stack: HeatStack, body: Raw, secrets: Sequence[Secret], *, nested: bool) -> list[Foreseen]:
    path = f"{stack.path}/preview" + ("?show_nested=true" if nested else "")
    heat = stack.cloud.orchestration
    try:  # not logged: the answer has user data in it
        answer = heat.request("PUT", path, json=body, secrets=secrets, log=False).json()["resource_changes"]
    except CloudError as error:
        if error.status != 400:
            raise
        raise Refused(str(error)) from None
    found: dict[str, Foreseen] = {}
    for past, verb in VERBS.items():
        for each in answer[past]:
            place = _place(stack, each["stack_name"]) + each["resource_name"]
            container = nested and verb == "update" and f"{place}." in stack.places.values()
            if not container or each["resource_type"] in ROLLED:
                found.setdefault(place, Foreseen(verb, place, each["resource_type"]))
    rolled = tuple(f"{each.place}." for each in found.values() if each.verb == "update" and each.type in ROLLED)
    return sorted(each for each in found.values() if not each.place.startswith(rolled))


def _place(stack: HeatStack, name: str) -> str:
    """Return where a stack hangs; a preview names one that is yet to be without Heat's random suffixes."""
    plain = {f"{stack.name}-{place}".replace(".", "-").rstrip("-"): place for place in stack.places.values()}
    return stack.places.get(name, plain.get(name, name.removeprefix(f"{stack.name}-") + "."))
