"""The sections of a spec: one declaration for reading, for the schema and for docs/spec.md."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from functools import cache, lru_cache
from types import GenericAlias
from typing import Annotated, Any, ClassVar

from pydantic import TypeAdapter

from openstack_prep import extensions
from openstack_prep.base.fields import KeystoneName, Name, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Resource
from openstack_prep.extensions import Section
from openstack_prep.spec.variables import Variable, VariableName


def included(value: object) -> object:
    """Check the path of an included file, which has to be the same on each machine."""
    if isinstance(value, str) and not is_included(value):
        raise InvalidValue("is not a relative path", "write one relative to this file, without variables")
    return value


def is_included(path: str) -> bool:
    """Whether a path is relative and has no variables."""
    return bool(path) and path[0] not in "/~" and not any(each in path for each in ("\0", "://", "${"))


Included = Annotated[str, Reads(included)]


@dataclass(frozen=True, kw_only=True)
class Clouds:
    """Entries of clouds.yaml to use."""

    admin: Name | None = None
    """Entry for an administrator's work; --os-cloud overrides it, and it overrides OS_CLOUD."""
    tenant: Name | None = None
    """Entry scoped to the project, for the project's own work; default: the user that the spec declares."""
    custom_policies: bool = False
    """Whether the cloud's own policies give members more rights than OpenStack's defaults: a right that is missing by
    the defaults is then a warning, not a refusal."""


@dataclass(frozen=True, kw_only=True)
class Sections:
    """The sections of a spec: those that say how the others are read, and as attributes those of all extensions."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__ | {"title": "openstack_prep spec"}

    name: KeystoneName  # a tag of the project contains it
    """Name of the cluster, without ~. Ownership tags contain it, so keep it. To rename a spec, first destroy it by its
    old name."""
    include: tuple[Included, ...] = ()
    """Other files with sections, relative to this file; paths in a file are relative to its own folder."""
    variables: Mapping[VariableName, Variable] = field(default_factory=dict)
    """Values that differ from one use of the spec to another: `${name}` in a value stands for them."""
    clouds: Clouds = Clouds()
    """Entries of clouds.yaml to use."""

    def placed(self) -> Iterator[tuple[tuple[str | int, ...], Resource]]:
        """Yield every resource and its place."""
        for section in fields(self):
            value = getattr(self, section.name)
            if isinstance(value, Resource):
                yield (section.name,), value
            elif isinstance(value, tuple):
                for index, resource in enumerate(value):
                    if isinstance(resource, Resource):
                        yield (section.name, index), resource


@cache
def all_fields() -> tuple[tuple[str, Section | None], ...]:
    """Return the names of all sections, in the order of reports, with what extensions say of theirs."""
    return (
        *((each.name, None) for each in fields(Sections)),
        *((section.name, section) for section in extensions.sections()),
    )


@cache
def _ranks() -> dict[str, tuple[int, Section]]:
    return {each.kind: (rank, each) for rank, each in enumerate(extensions.sections())}


def section_of(kind: type[Resource]) -> Section:
    """Return the section for resources of a kind, or of one derived from it; raises KeyError if no spec has them."""
    return _ranked(kind)[1]


def rank_of(kind: type[Resource]) -> int:
    """Return the position of the section among all; raises KeyError like ``section_of``."""
    return _ranked(kind)[0]


def is_in_files(kind: type[Resource]) -> bool:
    """Whether resources of a kind are files of this machine."""
    try:
        return section_of(kind).in_files
    except KeyError:
        return False


def is_declared_kind(kind: type[Resource]) -> bool:
    """Whether a section declares exactly this class, rather than one that it is derived from."""
    return f"{kind.__module__}:{kind.__qualname__}" in _ranks()


def _ranked(kind: type[Resource]) -> tuple[int, Section]:
    names = [f"{each.__module__}:{each.__qualname__}" for each in kind.__mro__]
    return _ranks()[next((name for name in names if name in _ranks()), names[0])]


@cache
def _whole() -> type[Sections]:
    """Return the class of sections with those of the extensions, whose kinds it does not load."""
    added = [(section.name, Any, field(default=() if section.many else None)) for section in extensions.sections()]
    return make_dataclass(Sections.__name__, added, bases=(Sections,), frozen=True, kw_only=True)


def new_sections(name: str, **values: Any) -> Sections:
    """Return the sections of a file; those without a value are empty."""
    return _whole()(name=name, **values)


@cache
def adapter() -> Any:
    """Return pydantic's adapter of all sections, for the schema."""
    return _adapter_of(tuple(name for name, _ in all_fields()))


def read(text: str, given: Collection[str], context: Mapping[str, object], name: str | None = None) -> Sections:
    """Return the sections in a JSON text; ``given`` are their names, and ``name`` is the spec's if it is not there.

    Raises pydantic's ValidationError.
    """
    names = tuple(each for each, _ in all_fields() if each in given or (each, name) == ("name", None))
    known: dict[str, Any] = {} if name is None else {"name": name}
    return new_sections(**known, **vars(_adapter_of(names).validate_json(text, context=context)))


@lru_cache(maxsize=16)
def _adapter_of(names: Sequence[str]) -> Any:
    """Return pydantic's adapter of some sections; for all of them it takes three times as long."""
    own = {each.name: each for each in fields(Sections)}
    chosen: list[Any] = []
    for name, section in all_fields():
        if name not in names:
            continue
        if section is None:
            chosen.append((name, own[name].type, _copied(own[name])))
        else:
            kind: Any = extensions.load(section.kind)
            chosen.append((name, GenericAlias(tuple, (kind, ...)), ()) if section.many else (name, kind | None, None))
    # pydantic looks the types up in the module, and takes the settings from the class
    namespace = {"__module__": __name__, "__pydantic_config__": Sections.__pydantic_config__}
    return TypeAdapter(make_dataclass(Sections.__name__, chosen, namespace=namespace, kw_only=True))


def _copied(given: Field[Any]) -> Any:
    """Return a field with the same default, for another class."""
    return (
        field(default=given.default)
        if given.default_factory is MISSING
        else field(default_factory=given.default_factory)
    )
