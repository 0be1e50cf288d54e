"""Find the fields of an existing install-config that a release does not know, or knows by a newer name.

Source: the OpenShift installer decodes Go JSON, which matches keys in any case, and converts old
names; ``FATE`` says what it does with unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import yaml

from openstack_prep.base.errors import Mistake
from openstack_prep.base.formats.yaml_text import one_line
from openstack_prep.base.raw import Raw
from openstack_prep.base.suggestion import suggest
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.fields import FIELDS, INNER, Field, Spelling
from openstack_prep.openshift.install_config.given import as_installer_reads
from openstack_prep.openshift.install_config.other_fields import mistakes_of_others
from openstack_prep.openshift.install_config.paths import (
    OPENSTACK,
    WITHOUT_CLOUD,
    known_paths,
    oldest,
    platform_of,
    value_of,
)

STOPS = "the installer stops"
_OF_SPECS = {each.path for field in FIELDS for each in field.spellings}
_GATES = {path.lower(): each for path, each in releases.GATES.items() if path not in _OF_SPECS}
"""The gates of fields that no spec sets; the rules of a cluster judge the others."""
FATE = (  # since each release; pkg/asset/installconfig/installconfigbase.go
    (releases.NEWEST + 1, "the installer stops if it does not know it either"),
    (22, STOPS),  # #10287, unless OPENSHIFT_INSTALL_INVOKER is set
    (11, "the installer ignores it with a warning"),  # #6039
    (10, STOPS),  # #5307
    (0, "the installer ignores it"),
)
NEVER_BOTH = ("image_mirrors", "root_volume.types")
"""Fields of which the installer accepts only one spelling, even if the values are equal."""


class Fatal(Mistake):
    """A field because of which the installer fails."""


class Deprecated(Mistake):
    """An old name that still works."""


def is_fatal(finding: Mistake) -> bool:
    return isinstance(finding, Fatal)


def is_deprecated(finding: Mistake) -> bool:
    return isinstance(finding, Deprecated)


def findings(document: Raw, release: str) -> list[Mistake]:
    """Return the fields that a release does not know, or knows by a newer name; keys in any case.

    Raises InvalidValue for an unsupported release.
    """
    number, document = releases.minor(release), as_installer_reads(document)
    subnets = next(field for field in FIELDS if field.of == "machines_subnets")
    new, *_, old = (_meant(document, spelling) for spelling in subnets.spellings)
    has_subnet = old is not None and old == new
    found = [
        *_Walk(number, platform_of(document), _gates(document, number), has_subnet).below(document, "", ""),
        *_contradictions(document, number),
    ]
    for mistake in mistakes_of_others(document, number):
        if mistake.where not in {other.where for other in found if is_fatal(other)}:  # further mistakes follow from it
            found.append(_finding(mistake.where, mistake.what, STOPS, mistake.fix))
    return found


def _gates(document: Raw, release: int) -> Callable[[releases.Gate | None], bool]:
    """Return whether a gate is open in a document; None asks for that of the release's previews."""
    chosen = value_of(document, "featureSet")
    given = value_of(document, "featureGates") if chosen == releases.CUSTOM else None
    gates = [str(each) for each in given] if isinstance(given, list) else []

    def is_open(gate: releases.Gate | None) -> bool:
        if gate is None:
            return releases.opens_previews(release, chosen, gates)
        return releases.is_enabled(gate, release, chosen, gates)

    return is_open


@cache
def _known() -> dict[str, tuple[str, Field | None, Spelling | None]]:
    """Return by lowercase path its spelling; a parent path has neither field nor spelling."""
    known: dict[str, tuple[str, Field | None, Spelling | None]] = {}
    for field in (*FIELDS, *INNER):
        for spelling in (each for each in field.spellings if not each.gated):
            steps = spelling.path.split(".")
            for end in range(1, len(steps)):
                folder = ".".join(steps[:end])
                known.setdefault(_key(folder), (folder, None, None))
            known[_key(spelling.path)] = (spelling.path, field, spelling)
    return known


def _key(path: str) -> str:
    return path.replace("[]", "").lower()


@dataclass(frozen=True)
class _Walk:
    """A walk through the document of a release; ``is_open`` tells which gates are open.

    ``has_subnet``: machinesSubnet names the one subnet of controlPlanePort, which then is no preview (4.14,
    techpreview.go; conversion/installconfig.go).
    """

    release: int
    platform: str
    is_open: Callable[[releases.Gate | None], bool]
    has_subnet: bool

    def below(self, node: object, path: str, shown: str) -> Iterator[Mistake]:
        """Yield findings below a path; ``shown`` is this path as the document spells it."""
        if path not in _names_by_path():
            return
        if isinstance(node, list) and path not in _folders():
            for index, each in enumerate(node):
                yield from self._members(each, path, f"{shown}[{index}]")
        elif isinstance(node, Mapping) and path not in _lists():
            yield from self._members(node, path, shown)
        elif node is not None:
            yield _finding(shown, f"is not a {'list' if path in _lists() else 'mapping'}", STOPS, "correct it")

    def _members(self, node: object, path: str, shown: str) -> Iterator[Mistake]:
        if not isinstance(node, Mapping):
            return
        for name, value in node.items():
            where, here = f"{path}.{name}".lstrip(".").lower(), f"{shown}.{name}".lstrip(".")
            if where not in _known() and not self._is_in_the_table(where):
                yield self._foreign(here, where, _nearest(path, str(name)))
                continue
            if value not in (None, 0, ""):  # which Go reads as missing
                yield from self._not_on_openstack(here, where)
            yield from self._gated(here, where, value)
            _, field, spelling = _known().get(where, (name, None, None))
            if field is not None and spelling is not None:
                if self.release < spelling.since:
                    yield from self._too_early(here, field, spelling, value)
                    continue
                if self.release >= spelling.until:
                    yield _deprecated(here, field, spelling, self.release, value)
            yield from self.below(value, where, here)

    def _is_in_the_table(self, where: str) -> bool:
        return where in known_paths() and self.release in known_paths()[where][1]

    def _foreign(self, here: str, where: str, fix: str) -> Mistake:
        """Return a finding for a field that the release does not know; another may."""
        what = f"is unknown to {releases.name(self.release)}"
        _, span = known_paths().get(where, ("", None))
        if span is not None and self.release < span.since and span.since > oldest():
            what, fix = f"{what}, came with {releases.name(span.since)}", "leave it out"
        return _unknown(here, what, self.release, fix)

    def _not_on_openstack(self, here: str, where: str) -> Iterator[Mistake]:
        allowed = releases.WITHOUT_CLOUD_ALSO if self.platform in WITHOUT_CLOUD else ()
        spans = {name.lower(): span for name, span in releases.NOT_ON_OPENSTACK.items() if name not in allowed}
        if where in spans and self.release in spans[where]:
            platform = "OpenStack" if self.platform == OPENSTACK else f"platform {self.platform}"
            yield _finding(here, f"is not supported on {platform}", STOPS, "take it out")

    def _gated(self, here: str, where: str, value: object) -> Iterator[Mistake]:
        gate = _GATES.get(where)
        if gate is None or self.release not in gate.checked or value in (None, "", []):
            return
        if (not gate.values or value in gate.values) and not self.is_open(gate):
            what = f"is a preview in {releases.name(self.release)}, behind the feature gate {gate.name}"
            yield _finding(here, what, STOPS, f"leave it out, or set featureSet: {releases.PREVIEWS[0]}")

    def _too_early(self, here: str, field: Field, spelling: Spelling, value: object) -> Iterator[Mistake]:
        older = field.spelling(self.release)
        fix = f"write {older.path}" if older else "leave it out"
        if any(each.gated and each.since <= self.release for each in field.spellings):
            is_beside = self.has_subnet and spelling.path.startswith(f"platform.{OPENSTACK}.controlPlanePort.")
            if value not in (None, "", []) and not self.is_open(None) and not is_beside:
                what = f"is a preview in {releases.name(self.release)}"
                yield _finding(here, what, STOPS, f"{fix}, or set featureSet: {releases.PREVIEWS[0]}")
            return
        what = f"is unknown to {releases.name(self.release)}, came with {releases.name(spelling.since)}"
        yield _unknown(here, what, self.release, fix)


@cache
def _lists() -> frozenset[str]:
    """Return the lowercase paths of lists that have fields below them."""
    return frozenset(_key(parent) for parent in _parents() if parent.endswith("[]"))


@cache
def _folders() -> frozenset[str]:
    """Return the lowercase paths of mappings, as far as the table of fields knows them."""
    return frozenset(_key(parent) for parent in _parents()) - _lists()


def _parents() -> Iterator[str]:
    for field in (*FIELDS, *INNER):
        for spelling in field.spellings:
            steps = spelling.path.split(".")
            yield from (".".join(steps[:end]) for end in range(1, len(steps)))


@cache
def _names_by_path() -> dict[str, list[str]]:
    """Return by lowercase path the known names below it, as the installer spells them."""
    spellings = {each: path for each, (path, _) in known_paths().items()}
    spellings |= {each: path for each, (path, _, _) in _known().items()}
    names: dict[str, list[str]] = {}
    for each, path in spellings.items():
        names.setdefault(each.rpartition(".")[0], []).append(path.rpartition(".")[2].removesuffix("[]"))
    return names


def _nearest(path: str, name: str) -> str:
    return suggest(name, _names_by_path().get(path, ()), "take it out")


def _unknown(where: str, what: str, release: int, fix: str) -> Mistake:
    return _finding(where, what, next(fate for since, fate in FATE if release >= since), fix)


def _finding(where: str, what: str, fate: str, fix: str) -> Mistake:
    """Return a finding with what the installer does about it."""
    return (Fatal if fate == STOPS else Mistake)(where, f"{what}: {fate}", fix)


def _deprecated(here: str, field: Field, spelling: Spelling, release: int, value: object) -> Mistake:
    newer = field.spelling(release)
    since = f"since {releases.name(spelling.until)}" if spelling.until > releases.OLDEST else "from before 4.2"
    if newer is None:
        return Mistake(here, f"is ignored {since}", "take it out")
    return Deprecated(here, f"is deprecated {since}", _replacement(spelling, newer, value))


def _replacement(old: Spelling, new: Spelling, value: Any) -> str:
    """Return what to write in place of a value under an old name: its key, or the key with the value's new form."""
    folders = old.path.split(".")[:-1]
    steps = [each.removesuffix("[]") for each in new.path.split(".")[len(folders) :]]
    same = (old.form, old.single) == (new.form, new.single)
    if same and len(steps) == 1:
        return f"rename it to {steps[0]}"
    try:
        given = value if same else old.given(value)
        written: Any = given if same else new.shaped(_as_objects(given) if new.form else given)
        for step in reversed(steps):
            written = {step: written}
        text = one_line(written)
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, yaml.YAMLError):
        return f"write {new.path}"  # the value is of another kind: reported when it is read
    return f"write {text.removeprefix('{').removesuffix('}')} in its place"


def _as_objects(given: Any) -> Any:
    """Return references as objects with attributes, as the model has them and ``Form.write`` reads them."""
    if isinstance(given, list):
        return [_as_objects(each) for each in given]
    return SimpleNamespace(**{"id": None, "name": None} | given) if isinstance(given, dict) else given


def _contradictions(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield fields that are given by their name and an old name, and what the installer does."""
    for field in FIELDS:
        current = field.spelling(release)
        for old in (spelling for spelling in field.spellings if current and spelling.until <= release):
            assert current is not None
            new, former = (_meant(document, spelling) for spelling in (current, old))
            if new is None or former is None:
                continue
            both = f"{current.path} and {old.path}"
            if field.of.endswith(NEVER_BOTH):
                yield _finding(both, "are one field, and exclude each other", STOPS, "keep the first")
            elif former != new and not (field.of.endswith("_vips") and former[0] in new):
                fate = "the installer uses the first" if current.path.startswith("networking.") else STOPS
                yield _finding(both, "are one field, and differ", fate, "keep the first")


def _meant(document: Raw, spelling: Spelling) -> Any:
    """Return the value under a spelling in the form of its field; None if it is missing."""
    value = value_of(document, spelling.path)
    if value in (None, "", [], {}):
        return None
    try:
        return spelling.given(value)
    except (AttributeError, KeyError, TypeError, ValueError):  # invalid: reported when it is read
        return None
