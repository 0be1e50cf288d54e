"""What Heat says that it would make, and what an update would do.

Heat compares properties, so it may say update where nothing will come of it, and does not tell that
another image rebuilds a server in place.

Source: Orchestration API v1, "Preview stack", "Preview stack update" (show_nested).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openstack_prep.errors import CloudError
from openstack_prep.resources.heat import HeatStack
from openstack_prep.secret import Secret
from openstack_prep.service import Service

VERBS = {"replaced": "replace", "deleted": "delete", "added": "add", "updated": "update"}
STATELESS = ("OS::Heat::CloudConfig", "OS::Heat::MultipartMime", "OS::Heat::SoftwareConfig", "OS::Heat::Value")
"""Types of which a new one in the old one's place is no loss."""


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


def preview(heat: Service, name: str, body: Mapping[str, Any], secrets: Sequence[Secret]) -> list[dict[str, Any]]:
    """Return the resources, nested ones too, that a new stack would consist of; raises Refused."""
    try:
        answer = heat.post("/stacks/preview", {"stack_name": name, **body}, secrets=secrets, log=False)
    except CloudError as error:
        if error.status not in (400, 403):
            raise
        raise Refused(str(error)) from None
    return list(_flat(answer["stack"]["resources"]))


def _flat(resources: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the resources of a preview: those of a nested stack are a list within the list."""
    for each in resources:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each


def foresee(
    stack: HeatStack,
    body: Mapping[str, Any],
    secrets: Sequence[Secret],
    before: Mapping[str, Any],
    names: Sequence[str],
    missing: Collection[str] = (),
) -> list[Foreseen]:
    """Return what an update would do; raises Refused.

    A preview takes every reference to a resource for a change, even when the resource stays, and so
    would replace what holds one.  Hence references are given as the ids that they stand for, unless
    their resource is ``missing`` or turns out to be made anew, too.
    """
    pinned = {name: each for name, each in stack.ids.items() if name not in missing}
    while True:
        template = {**body["template"], "resources": _pinned(body["template"].get("resources"), pinned)}
        found = _foresee(stack, {**body, "template": template}, secrets, before, names)
        moved = pinned.keys() & {each.place for each in found if each.verb in ("replace", "delete")}
        if not moved:
            return found
        pinned = {name: each for name, each in pinned.items() if name not in moved}


def _pinned(value: Any, ids: Mapping[str, str]) -> Any:
    """Return a part of a template with ids in the place of references."""
    if isinstance(value, Mapping):
        if value.keys() == {"get_resource"}:
            return ids.get(str(value["get_resource"]), value)
        return {name: _pinned(each, ids) for name, each in value.items()}
    return [_pinned(each, ids) for each in value] if isinstance(value, list | tuple) else value


def _foresee(
    stack: HeatStack,
    body: Mapping[str, Any],
    secrets: Sequence[Secret],
    before: Mapping[str, Any],
    names: Sequence[str],
) -> list[Foreseen]:
    """Ask for all that happens.

    Heat does not tell what happens in nested stacks when a group of them is to grow (it answers
    400).  Then each parameter of ``names`` that is not as ``before`` is asked about by itself.
    """
    try:
        return _preview(stack, body, secrets, nested=True)
    except Refused:
        found = set(_preview(stack, body, secrets, nested=False))
    after = body["environment"]["parameters"]
    hidden = {name: value for name, value in after.items() if name not in names}
    for name in names:
        if before.get(name) != after[name]:
            alone = body["environment"] | {"parameters": {**before, **hidden, name: after[name]}}
            try:
                found.update(_preview(stack, {**body, "environment": alone}, secrets, nested=True))
            except Refused:  # this is the one by which a group grows
                continue
    return sorted(found)


def _preview(stack: HeatStack, body: Mapping[str, Any], secrets: Sequence[Secret], *, nested: bool) -> list[Foreseen]:
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
            if not container:
                found.setdefault(place, Foreseen(verb, place, each["resource_type"]))
    return sorted(found.values())


def _place(stack: HeatStack, name: str) -> str:
    """Return where a stack hangs; a preview names one that is yet to be without Heat's random suffixes."""
    plain = {f"{stack.name}-{place}".replace(".", "-").rstrip("-"): place for place in stack.places.values()}
    return stack.places.get(name, plain.get(name, name.removeprefix(f"{stack.name}-") + "."))
