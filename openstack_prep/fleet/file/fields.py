"""What a fleet file says: specs with variables times targets, and in which order they are applied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le, Len
from pydantic import TypeAdapter

from openstack_prep.base.fields import Count, Name, Reads
from openstack_prep.base.given_file import folder_of
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Resource
from openstack_prep.spec.variables import VariableName

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NAME_PATTERN = rf"^{_NAME.pattern}$"


def target_name(value: object) -> object:
    """Check the name of a target, of which files are named and which is printed everywhere."""
    if isinstance(value, str) and not _NAME.fullmatch(value):
        fix = "use at most 100 of A-Z, a-z, 0-9, '.', '_' and '-', and begin with a letter or digit"
        raise InvalidValue("is not the name of a target", fix)
    return value


def without_empty(value: object) -> object:
    """Leave out empty texts: of a cell of a CSV file that has no value."""
    return tuple(each for each in value if each not in ("", None)) if isinstance(value, list) else value


def or_none(value: object) -> object:
    """Read an empty text as no value."""
    return None if value == "" else value


TargetName = Annotated[str, Reads(target_name, {"type": "string", "pattern": NAME_PATTERN})]


@dataclass(frozen=True, kw_only=True)
class WaveFields:
    """Targets that are done before others; exactly one of the three."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__

    groups: tuple[Name, ...] = ()
    """All targets of these groups."""
    targets: tuple[Name, ...] = ()
    """These targets."""
    percent: Annotated[int, Ge(1), Le(100)] | None = None
    """So many of all targets, rounded up: the first ones that no wave before has."""


@dataclass(frozen=True, kw_only=True)
class TargetFields:
    """A spec and its values: one project, or one cluster, in one cloud."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__

    name: TargetName
    """Its name in tables, options and files; each target has another one."""
    spec: Annotated[str, Len(1)]
    """The spec, relative to the fleet file."""
    variables: Mapping[VariableName, Any] = field(default_factory=dict)
    """Values of the spec's variables; a text is read as with `--var`, and an empty one is left out."""
    vars_files: tuple[Annotated[str, Len(1)], ...] = ()
    """Files with values of variables, such as secrets, relative to the fleet file; the last one counts."""
    cloud: Annotated[Name | None, Reads(or_none)] = None
    """Entry of clouds.yaml; it overrides `--os-cloud`, `clouds.admin` of the spec and OS_CLOUD."""
    region: Annotated[Name | None, Reads(or_none)] = None
    """Region; default: that of the entry."""
    groups: Annotated[tuple[Name, ...], Reads(without_empty)] = ()
    """Names for several targets, for `--only` and `waves`."""


@dataclass(frozen=True, kw_only=True)
class FleetFields:
    """The sections of a fleet file."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__ | {"title": "openstack_prep fleet"}

    name: TargetName
    """Name of the fleet."""
    targets: Annotated[tuple[TargetFields, ...], Len(1)]
    """What is planned and applied; an item with `for_each` is repeated for each row of a list, a CSV file, a glob or
    the output of a command."""
    limits: Mapping[Name, Count] = field(default_factory=dict)
    """How many targets are worked on at once in a cloud, by its entry in clouds.yaml; default: as many as `--jobs`."""
    waves: tuple[WaveFields, ...] = ()
    """Which targets come first; the rest is the last wave. Default: one wave."""
    stop_after: Count | None = None
    """After so many failed or refused targets no further one begins. Default: a wave with one is the last."""


@cache
def adapter() -> Any:
    """Return pydantic's adapter of a fleet file."""
    return TypeAdapter(FleetFields)


@dataclass(frozen=True, kw_only=True)
class FleetTarget:
    """A spec and its values in one cloud; see the fields of ``targets`` in a fleet file."""

    name: str
    """Its name, unique in the fleet."""
    spec: Path
    """The file of the spec."""
    place: str
    """File and line that declare it, and the row that it was made from."""
    variables: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Values of the spec's variables, none of them a secret in plain text."""
    from_row: frozenset[str] = frozenset()
    """Variables whose value a row has, at least in part."""
    vars_files: tuple[Path, ...] = ()
    """Files with further values, for secrets."""
    cloud: str | None = None
    """Entry of clouds.yaml; None: that of the spec, or OS_CLOUD."""
    region: str | None = None
    """Region; None: that of the entry."""
    groups: tuple[str, ...] = ()
    """Groups that it belongs to."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Specs with variables times targets, read by ``load_fleet``."""

    name: str
    """Its name."""
    path: Path
    """The fleet file."""
    targets: tuple[FleetTarget, ...]
    """What is planned and applied, in the order of the file."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """How many targets are worked on at once, by the entry of clouds.yaml."""
    waves: Sequence[WaveFields] = ()
    """Which targets come first."""
    stop_after: int | None = None
    """After so many failed targets no further one begins; None: a wave with a failed target is the last."""

    @property
    def folder(self) -> Path:
        """The folder that its paths are relative to."""
        return folder_of(self.path)
