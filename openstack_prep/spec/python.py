"""Read resources made in Python with the declarations that read YAML: both accept the same values.

A constructor takes anything; here ``Quota(ram="64GiB")`` becomes a number, a list becomes a tuple, a mapping becomes
the declared dataclass, and every wrong value is reported. Fields that have their default count as not given.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import date
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.raw import dotted
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import FromContext, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.spec import completion
from openstack_prep.spec.completion import Declaration
from openstack_prep.spec.mistakes import mistakes
from openstack_prep.spec.sections import is_declared_kind, section_of
from openstack_prep.spec.spec import Spec
from openstack_prep.spec.substitution import Tokens

WRITTEN_AS_TEXT = (
    PurePath,
    date,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)
LOAD = "read a file with load_spec(path)"


def spec_from(wanted: object, name: str | None = None) -> Spec:
    """Return the spec for the argument of a verb: a Spec, or any iterable of resources; raises SpecError.

    ``name`` is for resources alone; default: the name of the only project among them. Resources without a project
    belong to that project, as in YAML.
    """
    if isinstance(wanted, Spec):
        if name is not None and name != wanted.name:
            what = f"name={name!r} differs from the name of the spec, {wanted.name!r}"
            raise SpecError([Mistake("name", what, "remove the argument name")])
        return wanted if wanted.checked else _normalised(wanted, wanted.resources, lambda declared: wanted.name)
    return _normalised(Spec("", ()), _listed(wanted), partial(_name, given=name))


def _listed(wanted: object) -> Sequence[Any]:
    """Return the items of an argument that is not a spec."""
    if isinstance(wanted, str | bytes | PurePath):
        text = repr(wanted)
        what = "a text" if r"\n" in text else text  # of a spec, perhaps with secrets
        raise SpecError([Mistake("spec", f"{what} is a {type(wanted).__name__}, not a spec", LOAD)])
    if isinstance(wanted, Resource):
        raise SpecError([Mistake("spec", f"{_label(wanted)} is one resource, not a list", "put it into a list")])
    if isinstance(wanted, Mapping) or not isinstance(wanted, Iterable):
        what = f"a {type(wanted).__name__} is neither a Spec nor a list of resources"
        raise SpecError([Mistake("spec", what, f"pass a list of resources such as Network(name='net'), or {LOAD}")])
    return tuple(wanted)


def _name(resources: Sequence[Resource], given: str | None) -> str:
    """Return the name of a spec that is only a list: it must stay the same if the list grows or is reordered."""
    if given is not None:
        if not isinstance(given, str) or not 1 <= len(given) <= 255:
            raise SpecError([Mistake("name", f"{given!r} is not a string of 1 to 255 characters", "correct the name")])
        return given
    projects = {resource.name for resource in resources if resource.kind == "project"}
    if len(projects) == 1:
        return projects.pop()
    if not resources:
        return "nothing"
    what = "the list has no name, which the ownership tags need, and does not contain exactly one Project"
    fix = f'pass name="my-cluster" (earlier versions used the name of the first resource: name="{resources[0].name}")'
    raise SpecError([Mistake("name", what, fix)])


def _normalised(spec: Spec, given: Sequence[Any], name_of: Callable[[Sequence[Resource]], str]) -> Spec:
    """Return a spec of the given resources with every value normalised, completed as one of YAML.

    ``name_of`` returns its name. Raises SpecError that lists all errors.
    """
    warnings: list[str] = []
    declared: list[Declaration[int]] = []
    mistakes: list[Mistake] = []
    for index, each in enumerate(given):
        label = _label(each) if isinstance(each, Resource) else f"resources[{index}]"
        try:
            declared.append(Declaration(_declared(each, label, warnings), f"resources[{index}]", index))
        except SpecError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SpecError(mistakes)
    complete, mistakes = completion.complete(declared)
    try:
        name = name_of([declaration.resource for declaration in declared])
    except SpecError as error:
        mistakes += error.mistakes
    if mistakes:
        raise SpecError(mistakes)
    named_by_key = spec.only is not None or spec.places  # before their resources were in a project
    keys = {given[declaration.source].key: declaration.resource.key for declaration in complete} if named_by_key else {}
    places = {keys.get(key, key): place for key, place in spec.places.items()}
    return replace(
        spec,
        name=name,
        resources=tuple(completion.derive([declaration.resource for declaration in complete], places)),
        only=None if spec.only is None else frozenset(keys.get(key, key) for key in spec.only),
        places=places,
        warnings=(*spec.warnings, *warnings),
        checked=True,
    )


def _declared(given: Any, label: str, warnings: list[str]) -> Resource:
    """Return one item of a list as its declaration reads it; raises SpecError."""
    if not isinstance(given, Resource):
        what = f"{type(given).__name__ if not isinstance(given, type) else given.__name__} is not a resource"
        fix = "create an instance such as Network(name='net')" if isinstance(given, type) else "remove it from the list"
        raise SpecError([Mistake(label, what, fix)])
    if isinstance(given, Undeclarable):
        what, fix = "is a kind that other resources only refer to", "remove it from the list, and refer to it by name"
        raise SpecError([Mistake(label, what, f"{fix} where needed")])
    if not is_declared_kind(type(given)):
        return given  # a kind of the caller, which no declaration describes
    return _read(given, label, warnings)


def _label(resource: Resource) -> str:
    try:
        return f"{resource.kind}/{resource.name}"
    except (TypeError, AttributeError):  # the name is computed from a field with a wrong type
        return resource.kind


# --- one resource ---------------------------------------------------------------------------


def _read(given: Resource, label: str, warnings: list[str]) -> Resource:
    """Return a resource as its declaration reads it; raises SpecError."""
    plain = _Plain(label)
    text = json.dumps(plain.of(given, ()))
    kind: object = type(given)
    context = {"base": Path.cwd(), "warn": lambda text: warnings.append(f"{label}: {text}"), "given": plain.tokens.take}
    found: list[Mistake] = []
    try:
        read: Resource = _adapter(kind).validate_json(text, context=context)
    except ValidationError as error:
        found = mistakes(_Made(label), error.errors(include_url=False), _section(type(given)))
    refused = {mistake.where for mistake in plain.mistakes}
    found = [*plain.mistakes, *(mistake for mistake in found or plain.left if mistake.where not in refused)]
    if found:
        raise SpecError(found)
    return replace(read, **_of_context(given))


@dataclass(frozen=True)
class _Made:
    """Represents a document: all parts of a resource have the place of the resource."""

    label: str

    def place(self, where: Sequence[str | int]) -> str:
        return self.label

    def part(self, where: Sequence[str | int]) -> Hashable:
        return tuple(where)


@cache
def _adapter(kind: Any) -> Any:
    return TypeAdapter(kind)


def _section(kind: type[Resource]) -> tuple[str | int, ...]:
    """Return where a spec declares such resources, for the keys that are allowed there."""
    section = section_of(kind)
    return (section.name, 0) if section.many else (section.name,)


@dataclass
class _Plain:
    """Converts Python values to their YAML equivalent.

    ``left`` are the secrets that no field for secrets has taken. Values that YAML cannot express are among the
    ``mistakes``.
    """

    label: str
    mistakes: list[Mistake] = field(default_factory=list)
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def left(self) -> list[Mistake]:
        return [Mistake(f"{self.label}: {place}", "is a Secret", "use the plain value") for place in self.tokens.left]

    def of(self, value: Any, where: tuple[str | int, ...]) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self._text(value, where)
        if isinstance(value, Secret):
            return self.tokens.add(value, dotted(where))
        if is_dataclass(value) and not isinstance(value, type):
            return {
                set_field.name: self.of(getattr(value, set_field.name), (*where, set_field.name))
                for set_field in _set_fields(value)
            }
        if isinstance(value, Mapping):
            return dict(self._pairs(value, where))
        if isinstance(value, WRITTEN_AS_TEXT):
            return value.isoformat() if isinstance(value, date) else str(value)
        if isinstance(value, Set):
            value = sorted(value, key=str)
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return [self.of(each, (*where, index)) for index, each in enumerate(value)]
        return self._refuse(where, f"a value of type {type(value).__name__} is not allowed")

    def _pairs(self, value: Mapping[object, object], where: tuple[str | int, ...]) -> Iterable[tuple[str, object]]:
        for key, each in value.items():
            if isinstance(key, str | int):  # like YAML's 1: x
                yield str(self._text(str(key), where)), self.of(each, (*where, str(key)))
            else:
                self._refuse(where, f"a key of type {type(key).__name__} is not allowed")

    def _text(self, value: str, where: tuple[str | int, ...]) -> Any:
        try:
            value.encode()
        except UnicodeEncodeError as error:  # half a surrogate pair; the rest of the value may be a secret
            return self._refuse(where, f"contains U+{ord(value[error.start]):X}, which is not a character")
        return str(value)

    def _refuse(self, where: tuple[str | int, ...], what: str) -> None:
        place, fix = f"{self.label}: {dotted(where)}", "use a value that YAML can express"
        self.mistakes.append(Mistake(place, what, fix, code=Code.SPEC_INVALID_VALUE))


def _of_context(given: Resource) -> dict[str, FromContext]:
    """Return the fields of a resource that no spec can set."""
    values = {each.name: getattr(given, each.name) for each in fields(given)}
    return {name: value for name, value in values.items() if isinstance(value, FromContext)}


def _set_fields(made: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass that differ from their default, and that a spec can set."""
    found = []
    for each in (each for each in fields(made) if not isinstance(getattr(made, each.name), FromContext)):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        value = getattr(made, each.name)
        if value is not default and not (type(value) is type(default) and value == default):
            found.append(each)
    return found
