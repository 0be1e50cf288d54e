"""Where the values of a template's parameters go: into resources, and into outputs.

Heat shows the properties of each resource, as they were given to its service, to every reader of the project: in the
events of the resource, whatever its type, and user data of servers as well. Source: Heat 27.0.0,
engine/resource.py (_update_stored_properties, _add_event), engine/api.py (format_event), policies/events.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import yaml

from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.raw import Raw, rewrite, walk

PARAMETERS = ("get_param", "Ref")
ATTRIBUTES = ("get_attr", "Fn::GetAtt")
RESOURCES = ("get_resource",)


class ValueUse(NamedTuple):
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
TRUTH = {
    **dict.fromkeys(("t", "true", "on", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "off", "n", "no", "0"), False),
}
"""What Heat reads as a boolean (oslo.utils 10, strutils.bool_from_string)."""
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def typed(value: object, schema: Raw) -> object:
    """Return the value of a parameter as Heat compares it, by its declared type."""
    kind = schema.get("type")
    if kind == "string" and value is not None and value is not NOT_EMPTY:
        return str(value)
    if isinstance(value, str) and kind == "boolean":
        return TRUTH.get(value.lower(), value)
    if isinstance(value, str) and kind == "number":
        return float(value) if NUMBER.fullmatch(value) else value
    return value


class Conditions:
    """The conditions of a template, as far as given values of parameters decide them."""

    def __init__(self, template: Raw, given: Raw | None = None) -> None:
        self._named: Raw = template.get("conditions") or {}
        declared: Raw = template.get("parameters") or {}
        defaults = {name: each["default"] for name, each in declared.items() if "default" in each}
        values = {} if given is None else {**defaults, **given}
        self._values = {name: typed(value, declared.get(name) or {}) for name, value in values.items()}

    def branches(self, choice: list[Any]) -> list[Any]:
        """Return the values that an ``if`` may have: those of both branches if its condition is not decided."""
        decided = self.decide(choice[0])
        return choice[1:] if decided is None else choice[1:2] if decided else choice[2:]

    def excludes(self, condition: object) -> bool:
        """Whether a part of a template with this condition is left out."""
        return condition is not None and self.decide(condition) is False

    def decide(self, condition: object, seen: frozenset[str] = frozenset()) -> bool | None:
        """Return whether a condition is true; None if the values do not decide it.

        ``seen`` are named conditions that depend on it: Heat refuses a template in which one depends on itself.
        """
        if isinstance(condition, str):
            known = condition in self._named and condition not in seen
            return self.decide(self._named[condition], seen | {condition}) if known else None
        if not isinstance(condition, Mapping) or len(condition) != 1:
            return None
        ((by, operand),) = condition.items()
        if by == "get_param":
            value = self._value(condition)
            return value if isinstance(value, bool) else None
        if by == "not":
            inner = self.decide(operand, seen)
            return None if inner is None else not inner
        if by in ("and", "or") and isinstance(operand, list):
            parts = {self.decide(each, seen) for each in operand}
            decisive = by == "or"
            return decisive if decisive in parts else None if None in parts else not decisive
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


def uses(value: object, place: str, conditions: Conditions) -> Iterator[ValueUse]:
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


def _use(place: str, by: str, taken: object) -> ValueUse:
    """Return one use: a name, a list that begins with a name, or RESOURCE.ATTRIBUTE of CloudFormation."""
    names = [str(each) for each in taken] if isinstance(taken, list) else [str(taken)]
    if by == "Fn::GetAtt" and len(names) == 1:
        names = names[0].split(".", 1)
    return ValueUse(place, names[0], by, names[1] if by in ATTRIBUTES and len(names) > 1 else "")


class Flow:
    """The parameters of a template, and the resources and outputs that their values reach.

    With ``given`` values of parameters, branches are left out whose conditions these values decide. ``narrow`` returns
    the part of a resource that an attribute of it is made of; without it, that is the whole resource.
    """

    def __init__(
        self, template: Raw, given: Raw | None = None, narrow: Callable[[ValueUse, Raw], object] | None = None
    ) -> None:
        self._narrow = narrow or (lambda use, definition: definition)
        self._conditions = Conditions(template, given)
        self.parameters = frozenset(template.get("parameters") or {})
        self.resources: Raw = template.get("resources") or {}
        self.outputs: Raw = template.get("outputs") or {}

    def into(self, resource: str) -> frozenset[str]:
        """Return the parameters whose values reach a resource, also by attributes of other resources."""
        return self._reaching(self.resources.get(resource), frozenset({resource}))

    def alters(self, parameters: frozenset[str], resource: str, prop: str = "") -> bool:
        """Whether a resource, or one of its properties, gets what a function makes of parameters, as a part of a text.

        A function of another resource's attribute counts as well: the attribute may be such a parameter.
        """
        part = self.resources.get(resource)
        if prop and part:
            part = part["properties"][prop]
        parts = (part, *self._parts_behind(part, frozenset({resource})))
        taken = (*((PARAMETERS, name) for name in parameters), *((ATTRIBUTES, name) for name in self.resources))
        spots = (spot for each in parts for by, name in taken for spot in _spots(each, by, name, self._conditions, ""))
        return any(spot.altered_by for spot in spots)

    def into_output(self, output: str) -> frozenset[str]:
        """Return the parameters whose values reach an output."""
        return self._reaching(self.outputs.get(output), frozenset())

    def uses_of_output(self, output: str) -> list[ValueUse]:
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


# --- Whether the value of a parameter goes to nothing but files of servers, judged by the structure of a template ---
# A placeholder may stand in such a file, where the server replaces it. Anywhere else it would be used as it is: a
# password that anybody can compute. What a function makes of it, or a resource that is not known here, is not such a
# file. Source: Heat 27.0.1, engine/hot/template.py (functions), engine/resources/openstack/heat and nova/server.py.

COPYING = frozenset(
    (
        *("list_join", "str_replace", "str_replace_strict", "str_replace_vstrict", "repeat"),
        *("map_merge", "list_concat", "list_concat_unique", "Fn::Join", "Fn::Replace"),
    )
)
"""Functions whose result contains their arguments as they are, apart from the text in which they replace something."""
REPLACING = ("str_replace", "str_replace_strict", "str_replace_vstrict", "Fn::Replace")
ALTERING = frozenset(
    (
        *("digest", "yaql", "str_split", "map_replace", "filter", "make_url", "resource_facade", "get_file"),
        *("equals", "not", "and", "or", "contains"),
        *("Fn::Split", "Fn::Select", "Fn::Base64", "Fn::MemberListToMap", "Fn::ResourceFacade", "Fn::GetAZs"),
        *("Fn::Equals", "Fn::If", "Fn::Not", "Fn::And", "Fn::Or"),
    )
)
"""Functions that make something else of their arguments."""
VALUE, SERVER = "OS::Heat::Value", "OS::Nova::Server"
FILES = ("user_data", "personality")
"""Properties of a server that hold its files."""
CONFIGS = {
    "OS::Heat::SoftwareConfig": "config",
    "OS::Heat::CloudConfig": "cloud_config",
    "OS::Heat::MultipartMime": "parts",
}
"""Resources that servers take as their user data, and the property that holds it."""
GROUPS = {"OS::Heat::ResourceGroup": "resource_def", "OS::Heat::AutoScalingGroup": "resource"}
"""Groups of equal resources, and the property that describes one."""


class Spot(NamedTuple):
    """A use of a value in a template."""

    place: str
    keys: tuple[str, ...]
    """The keys of the mappings around it, without functions."""
    altered_by: str
    """The function that makes something else of it; empty if there is none."""
    path: tuple[str, ...]
    """The part of the value that is used; empty for all of it."""


class Elsewhere(NamedTuple):
    """A place other than a file of a server that has the image of secrets."""

    place: str
    reason: str
    of_server: bool = False
    """Whether it is a property of a server, which Heat updates."""


class KeptFile(NamedTuple):
    """A file of a server that keeps it when it changes in the template."""

    place: str


@dataclass(frozen=True)
class Destinations:
    """Where the values of a template's parameters go.

    ``files`` and ``registry`` are those of the stack; ``given`` values decide conditions, as in Conditions.
    ``covered`` are the resources of this template whose servers have the image; None for all of them.
    """

    template: Raw
    files: Mapping[str, str | bytes]
    registry: Raw
    given: Raw | None = None
    covered: frozenset[str] | None = None
    prefix: str = ""
    outer: frozenset[tuple[str, str]] = field(default=frozenset())
    """The nested templates around this one, and their parameters that have been followed."""
    through_functions: bool = False
    """Whether what a function makes of a value is followed as well."""

    def find_elsewhere(self, parameter: str, inside: tuple[str, ...] = ()) -> Iterator[Elsewhere]:
        """Yield the places other than files that a parameter reaches; ``inside``: the keys to the secret in its value.

        A value of the outside has no such keys: any part of a placeholder is something else.
        """
        for found in self._follow(PARAMETERS, parameter, inside, frozenset()):
            if isinstance(found, Elsewhere):
                yield found

    def reaches_kept_files(self, parameter: str) -> bool:
        """Whether a parameter reaches files of servers that keep theirs, so that only new servers get a new value."""
        found = list(self._follow(PARAMETERS, parameter, (), frozenset()))
        updated = any(isinstance(elsewhere, Elsewhere) and elsewhere.of_server for elsewhere in found)
        return not updated and any(isinstance(each, KeptFile) for each in found)

    def _follow(
        self, by: tuple[str, ...], name: str, inside: tuple[str, ...], seen: frozenset[tuple[str, ...]]
    ) -> Iterator[Elsewhere | KeptFile]:
        conditions = Conditions(self.template, self.given)
        for section in ("resources", "outputs"):
            for owner, definition in (self.template.get(section) or {}).items():
                if not isinstance(definition, Mapping) or conditions.excludes(definition.get("condition")):
                    continue
                for spot in _spots(definition, by, name, conditions, f"{self.prefix}{section}.{owner}"):
                    left = _rest(spot.path, inside)
                    if spot.altered_by and not self.through_functions:
                        yield Elsewhere(spot.place, f"the function {spot.altered_by} makes something else of it")
                    elif left is None:
                        yield Elsewhere(spot.place, "it is only a part of the value")
                    elif section == "outputs":
                        yield Elsewhere(spot.place, "an output is no file of a server")
                    elif left is not OTHER:
                        yield from self._judge(owner, definition, (*spot.keys, *left), spot.place, seen)

    def _judge(
        self, owner: str, definition: Raw, keys: tuple[str, ...], place: str, seen: frozenset[tuple[str, ...]]
    ) -> Iterator[Elsewhere | KeptFile]:
        """Yield the place if a value at these keys of a resource goes to no file, or where it goes from there."""
        kind, first, rest = str(definition.get("type")), "".join(keys[1:2]), keys[2:]
        known = (owner, *keys)
        if keys[:1] != ("properties",) or not first:
            yield Elsewhere(place, "it is no property")
        elif known in seen:
            return
        elif GROUPS.get(kind) == first and rest[:1] == ("properties",):
            member = (definition.get("properties") or {}).get(first) or {}
            yield from self._judge(owner, member, ("properties", *rest[1:]), place, seen | {known})
        elif kind == VALUE and first == "value":
            yield from self._follow(ATTRIBUTES, owner, ("value", *rest), seen | {known})
        elif CONFIGS.get(kind) == first:
            yield from self._follow(RESOURCES, owner, (), seen | {known})
            yield from self._follow(ATTRIBUTES, owner, ("config",), seen | {known})
        elif kind == SERVER and first in FILES and kind not in self.registry:
            if self.covered is not None and owner not in self.covered:
                yield Elsewhere(place, "this server has no image of secrets with it")
            elif (definition.get("properties") or {}).get("user_data_update_policy") == "IGNORE":
                yield KeptFile(place)
        elif nested := self._nested(kind):
            if self.covered is not None and owner not in self.covered:
                yield Elsewhere(place, "these servers have no image of secrets with it")
            elif (kind, first) not in self.outer:
                outer = self.outer | {(kind, first)}
                inner = replace(self, template=nested, given=None, covered=None, prefix=f"{kind}: ", outer=outer)
                yield from inner._follow(PARAMETERS, first, rest, frozenset())
        else:
            yield Elsewhere(place, "it is no file of a server", kind == SERVER)

    def _nested(self, kind: str) -> Raw | None:
        """Return the template of a type of the stack's own."""
        return nested_template(self.files, str(self.registry.get(kind, kind)))


def nested_template(files: Mapping[str, str | bytes], name: str) -> Raw | None:
    """Return the template in a file that a stack has as a type; None if there is none, or it cannot be read."""
    text = files.get(name)
    if text is None:
        return None
    try:
        parsed = parse_yaml(text.decode() if isinstance(text, bytes) else text)
    except (yaml.YAMLError, ValueError):
        return None
    return parsed if isinstance(parsed, Mapping) else None


def list_kept(template: Raw, files: Mapping[str, str | bytes], registry: Raw, before: Raw, after: Raw) -> list[str]:
    """Return the parameters whose change, from given values to others, reaches only servers that are new.

    A parameter may also do so by a condition that it changes.
    """
    declared: Raw = template.get("parameters") or {}
    defaults = {name: each.get("default") for name, each in declared.items()}
    old, new = (
        {name: _comparable(each.get(name, defaults[name]), declared[name]) for name in declared}
        for each in (before, after)
    )
    judges = [Conditions(template, each) for each in (before, after)]
    switched = [name for name in template.get("conditions") or {} if len({judge.decide(name) for judge in judges}) > 1]
    marked = Destinations(_with_uses_of(switched, template), files, registry, after, through_functions=True)
    return [name for name in sorted(declared) if old[name] != new[name] and marked.reaches_kept_files(name)]


def _comparable(value: object, schema: Raw) -> object:
    if schema.get("type") == "comma_delimited_list" and isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return typed(list(value) if isinstance(value, tuple) else value, schema)


def _with_uses_of(switched: Collection[str], template: Raw) -> Raw:
    """Return a template in which what a condition chooses also contains the parameters of the condition."""
    named: Raw = template.get("conditions") or {}

    def parameters(condition: object) -> list[Any]:
        if isinstance(condition, str):
            return parameters(named.get(condition))
        found = uses(condition, "", Conditions({}))
        inner = [each for name in strings_in(condition) if name in named for each in parameters(named[name])]
        return [{"get_param": use.name} for use in found if use.by in PARAMETERS] + inner

    def change(part: object) -> object:
        choice = part["if"] if isinstance(part, Mapping) and part.keys() == {"if"} else None
        if isinstance(choice, list) and choice and choice[0] in switched:
            return {"list_concat": [*parameters(choice[0]), *choice[1:]]}
        return part

    return {**template, "resources": rewrite(template.get("resources") or {}, change)}


def strings_in(value: object) -> Iterator[str]:
    """Yield all strings in a document."""
    return (part for part in walk(value) if isinstance(part, str))


SHOW = "show"
"""The attribute of every resource that holds all that its service shows of it."""
OTHER: tuple[str, ...] = ("",)
"""The part of a value that does not contain the secret."""


def _rest(path: tuple[str, ...], inside: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the keys to a secret in a part of a value; OTHER if the part lacks it, None if it is cut off there."""
    for number, key in enumerate(path):
        if number >= len(inside) or (number == 0 and key == SHOW):
            return None
        if key != inside[number]:
            return OTHER
    return inside[len(path) :]


def _spots(
    value: object,
    by: tuple[str, ...],
    name: str,
    conditions: Conditions,
    place: str,
    keys: tuple[str, ...] = (),
    altered_by: str = "",
) -> Iterator[Spot]:
    """Yield the uses of a parameter, or of a resource, in a part of a template."""
    if isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _spots(each, by, name, conditions, f"{place}[{number}]", keys, altered_by)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            function = key if len(value) == 1 else ""
            if function in by and each:
                parts = each.split(".") if function == "Fn::GetAtt" and isinstance(each, str) else each
                first, *path = map(str, parts if isinstance(parts, list) else [parts])
                if first == name:
                    yield Spot(place, keys, altered_by, tuple(one for one in path if not one.isdigit()))
                inner = each[1:] if isinstance(each, list) else ()
                yield from _spots(inner, by, name, conditions, place, keys, function)
            elif function == "if" and isinstance(each, list) and each:
                yield from _spots(conditions.branches(each), by, name, conditions, place, keys, altered_by)
            elif function in REPLACING and (parts := _replaced(each)):
                text, values = parts
                yield from _spots(text, by, name, conditions, f"{place}.{key}.template", keys, altered_by or function)
                yield from _spots(values, by, name, conditions, f"{place}.{key}.params", keys, altered_by)
            elif function in COPYING:
                yield from _spots(each, by, name, conditions, f"{place}.{key}", keys, altered_by)
            elif function in ALTERING:
                yield from _spots(each, by, name, conditions, f"{place}.{key}", keys, altered_by or function)
            else:
                yield from _spots(each, by, name, conditions, f"{place}.{key}", (*keys, str(key)), altered_by)


def _replaced(arguments: object) -> tuple[object, object] | None:
    """Return the text in which a function replaces something, and what comes into it; None if nothing is replaced."""
    if isinstance(arguments, Mapping):
        text, values = arguments.get("template"), arguments.get("params")
    else:
        values, text = arguments if isinstance(arguments, list) and len(arguments) == 2 else (None, None)
    return (text, values) if values else None
