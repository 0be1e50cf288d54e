"""Where the values of a template's parameters go: into resources, and into outputs.

Heat shows the properties of each resource, as they were given to its service, to every reader of the project: in the
events of the resource, whatever its type, and user data of servers as well. Source: Heat 27.0.0,
engine/resource.py (_update_stored_properties, _add_event), engine/api.py (format_event), policies/events.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from openstack_prep.base.raw import Raw

PARAMETERS = ("get_param", "Ref")
ATTRIBUTES = ("get_attr", "Fn::GetAtt")
RESOURCES = ("get_resource",)


class Use(NamedTuple):
    """A value that a part of a template takes from elsewhere."""

    place: str
    """Where the part is in the template, such as resources.server.properties.user_data."""
    name: str
    """Of the parameter, or of the resource."""
    by: str
    """Function that takes it."""
    attribute: str = ""
    """Of the resource; empty for a parameter, and for a resource as a whole."""


NOT_EMPTY = object()
"""A value of which only this is known."""


class Conditions:
    """The conditions of a template, as far as given values of parameters decide them."""

    def __init__(self, template: Raw, given: Raw | None = None) -> None:
        self._named: Raw = template.get("conditions") or {}
        declared: Raw = template.get("parameters") or {}
        defaults = {name: each["default"] for name, each in declared.items() if "default" in each}
        self._values = {} if given is None else {**defaults, **given}

    def branches(self, choice: list[Any]) -> list[Any]:
        """Return the values that an ``if`` may have: those of both branches if its condition is not decided."""
        decided = self._decide(choice[0])
        return choice[1:] if decided is None else choice[1:2] if decided else choice[2:]

    def excludes(self, condition: object) -> bool:
        """Whether a part of a template with this condition is left out."""
        return condition is not None and self._decide(condition) is False

    def _decide(self, condition: object) -> bool | None:
        if isinstance(condition, str):
            return self._decide(self._named[condition]) if condition in self._named else None
        if not isinstance(condition, Mapping) or len(condition) != 1:
            return None
        ((by, operand),) = condition.items()
        if by == "not":
            inner = self._decide(operand)
            return None if inner is None else not inner
        if by == "equals" and isinstance(operand, list) and len(operand) == 2:
            values = [self._value(each) for each in operand]
            if NOT_EMPTY in values:
                return False if "" in values else None
            return None if None in values else values[0] == values[1]
        return None

    def _value(self, operand: object) -> object:
        if isinstance(operand, Mapping):
            return self._values.get(str(operand.get("get_param")))
        return operand


def uses(value: object, place: str, conditions: Conditions) -> Iterator[Use]:
    """Yield what a part of a template takes from parameters, and from resources."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key in (*PARAMETERS, *ATTRIBUTES, *RESOURCES) and len(value) == 1 and each:
                yield _use(place, key, each)
                yield from uses(each[1:] if isinstance(each, list) else (), place, conditions)
            elif key == "if" and isinstance(each, list) and each:
                yield from uses(conditions.branches(each), place, conditions)
            else:
                yield from uses(each, f"{place}.{key}", conditions)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from uses(each, f"{place}[{number}]", conditions)


def _use(place: str, by: str, taken: object) -> Use:
    """Return one use: a name, a list that begins with a name, or RESOURCE.ATTRIBUTE of CloudFormation."""
    names = [str(each) for each in taken] if isinstance(taken, list) else [str(taken)]
    if by == "Fn::GetAtt" and len(names) == 1:
        names = names[0].split(".", 1)
    return Use(place, names[0], by, names[1] if by in ATTRIBUTES and len(names) > 1 else "")


class Flow:
    """The parameters of a template, and the resources and outputs that their values reach.

    With ``given`` values of parameters, branches are left out whose conditions these values decide. ``narrow`` returns
    the part of a resource that an attribute of it is made of; without it, that is the whole resource.
    """

    def __init__(
        self, template: Raw, given: Raw | None = None, narrow: Callable[[Use, Raw], object] | None = None
    ) -> None:
        self._narrow = narrow or (lambda use, definition: definition)
        self._conditions = Conditions(template, given)
        self.parameters = frozenset(template.get("parameters") or {})
        self.resources: Raw = template.get("resources") or {}
        self.outputs: Raw = template.get("outputs") or {}

    def into(self, resource: str) -> frozenset[str]:
        """Return the parameters whose values reach a resource, also by attributes of other resources."""
        return self._reaching(self.resources.get(resource), frozenset({resource}))

    def into_output(self, output: str) -> frozenset[str]:
        """Return the parameters whose values reach an output."""
        return self._reaching(self.outputs.get(output), frozenset())

    def uses_of_output(self, output: str) -> list[Use]:
        """Return what an output takes from resources, also by attributes of other resources."""
        part = self.outputs.get(output)
        parts = (part, *self._parts_behind(part, frozenset()))
        found = (use for each in parts for use in uses(each, "", self._conditions))
        return [use for use in found if use.name in self.resources]

    def places(self, parameter: str) -> list[str]:
        """Return where a template uses a parameter, as paths; conditions compare it only."""
        sections = (("resources", self.resources), ("outputs", self.outputs))
        found = (use for section, parts in sections for use in uses(parts, section, self._conditions))
        return [use.place for use in found if use.by in PARAMETERS and use.name == parameter]

    def _reaching(self, part: object, seen: frozenset[str]) -> frozenset[str]:
        parts = (part, *self._parts_behind(part, seen))
        found = (use.name for each in parts for use in uses(each, "", self._conditions) if use.by in PARAMETERS)
        return frozenset(found) & self.parameters

    def _parts_behind(self, part: object, seen: frozenset[str]) -> list[object]:
        """Return the parts of resources that a part is made of, by attributes of these; without resources ``seen``."""
        known: set[tuple[str, str]] = set()
        behind: list[object] = []
        waiting = [part]
        while waiting:
            for use in uses(waiting.pop(), "", self._conditions):
                key = (use.name, use.attribute)
                if use.by in ATTRIBUTES and use.name in self.resources.keys() - seen and key not in known:
                    known.add(key)
                    waiting.append(self._narrow(use, self.resources[use.name] or {}))
                    behind.append(waiting[-1])
        return behind
