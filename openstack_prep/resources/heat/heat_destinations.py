"""Whether the value of a parameter goes to nothing but files of servers, judged by the structure of a template.

A placeholder may stand in such a file, where the server replaces it. Anywhere else it would be used as it is: a
password that anybody can compute. What a function makes of it, or a resource that is not known here, is not such a
file. Source: Heat 27.0.1, engine/hot/template.py (functions), engine/resources/openstack/heat and nova/server.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.raw import Raw
from openstack_prep.resources.heat.heat_flow import ATTRIBUTES, PARAMETERS, RESOURCES, Conditions

COPYING = frozenset(
    (
        *("list_join", "str_replace", "str_replace_strict", "str_replace_vstrict", "repeat"),
        *("map_merge", "list_concat", "list_concat_unique", "Fn::Join", "Fn::Replace"),
    )
)
"""Functions whose result contains their arguments as they are."""
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

    def find_elsewhere(self, parameter: str, inside: tuple[str, ...] = ()) -> Iterator[Elsewhere]:
        """Yield the places other than files that a parameter reaches; ``inside``: the keys to the secret in its value.

        A value of the outside has no such keys: any part of a placeholder is something else.
        """
        yield from self._follow(PARAMETERS, parameter, inside, frozenset())

    def _follow(
        self, by: tuple[str, ...], name: str, inside: tuple[str, ...], seen: frozenset[tuple[str, ...]]
    ) -> Iterator[Elsewhere]:
        conditions = Conditions(self.template, self.given)
        for section in ("resources", "outputs"):
            for owner, definition in (self.template.get(section) or {}).items():
                if not isinstance(definition, Mapping) or conditions.excludes(definition.get("condition")):
                    continue
                for spot in _spots(definition, by, name, conditions, f"{self.prefix}{section}.{owner}"):
                    left = _rest(spot.path, inside)
                    if spot.altered_by:
                        yield Elsewhere(spot.place, f"the function {spot.altered_by} makes something else of it")
                    elif left is None:
                        yield Elsewhere(spot.place, "it is only a part of the value")
                    elif section == "outputs":
                        yield Elsewhere(spot.place, "an output is no file of a server")
                    elif left is not OTHER:
                        yield from self._judge(owner, definition, (*spot.keys, *left), spot.place, seen)

    def _judge(
        self, owner: str, definition: Raw, keys: tuple[str, ...], place: str, seen: frozenset[tuple[str, ...]]
    ) -> Iterator[Elsewhere]:
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
        elif nested := self._nested(kind):
            if self.covered is not None and owner not in self.covered:
                yield Elsewhere(place, "these servers have no image of secrets with it")
            elif (kind, first) not in self.outer:
                outer = self.outer | {(kind, first)}
                inner = Destinations(nested, self.files, self.registry, prefix=f"{kind}: ", outer=outer)
                yield from inner.find_elsewhere(first, rest)
        else:
            yield Elsewhere(place, "it is no file of a server")

    def _nested(self, kind: str) -> Raw | None:
        """Return the template of a type of the stack's own."""
        name = self.registry.get(kind, kind)
        text = self.files.get(str(name))
        if text is None:
            return None
        try:
            parsed = parse_yaml(text.decode() if isinstance(text, bytes) else text)
        except (yaml.YAMLError, ValueError):
            return None
        return parsed if isinstance(parsed, Mapping) else None


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
            elif function in COPYING:
                yield from _spots(each, by, name, conditions, f"{place}.{key}", keys, altered_by)
            elif function in ALTERING:
                yield from _spots(each, by, name, conditions, f"{place}.{key}", keys, altered_by or function)
            else:
                yield from _spots(each, by, name, conditions, f"{place}.{key}", (*keys, str(key)), altered_by)
