"""Read an install-config that is there already, and say what a release makes of its fields.

Source: the OpenShift installer decodes Go JSON, which matches keys in any case, and upconverts old
names; what it does with unknown ones is in ``FATE``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.releases import FIELDS, INNER, Field, Spelling

STOPS, DEPRECATED = "the installer stops", "is deprecated"
FATE = ((11, "the installer ignores it and warns of one such"), (10, STOPS), (0, "it is ignored"))
NEVER_BOTH = ("image_mirrors", "root_volume.types")
"""Fields whose names the installer does not take together, even when both say the same."""


def is_fatal(finding: Mistake) -> bool:
    """Whether the installer stops because of a finding."""
    return finding.what.endswith(STOPS)


def is_deprecated(finding: Mistake) -> bool:
    """Whether a finding is about an old name that still does what it says."""
    return finding.what.startswith(DEPRECATED)


def findings(document: Raw, release: str) -> list[Mistake]:
    """Return the fields that a release does not know, or knows by a newer name; keys in any case.

    Raises ValueError for a release that we do not know.
    """
    number = releases.minor(release)
    return [*_walk(document, "", "", number), *_contradictions(document, number)]


@cache
def _known() -> dict[str, tuple[str, Field | None, Spelling | None]]:
    """Return by small-letter path how it is written, its field and its spelling; a mere folder has neither."""
    known: dict[str, tuple[str, Field | None, Spelling | None]] = {}
    for field in (*FIELDS, *INNER):
        for spelling in field.spellings:
            steps = spelling.path.split(".")
            for end in range(1, len(steps)):
                folder = ".".join(steps[:end])
                known.setdefault(_key(folder), (folder, None, None))
            known[_key(spelling.path)] = (spelling.path, field, spelling)
    return known


def _key(path: str) -> str:
    return path.replace("[]", "").lower()


def _walk(node: object, path: str, shown: str, release: int) -> Iterator[Mistake]:
    """Yield findings below a path; ``shown`` is the same as it stands in the document."""
    if isinstance(node, list):
        for index, each in enumerate(node):
            yield from _walk(each, path, f"{shown}[{index}]", release)
    if not isinstance(node, Mapping) or not _below(path):
        return
    for name, value in node.items():
        where, here = f"{path}.{name}".lstrip(".").lower(), f"{shown}.{name}".lstrip(".")
        if where not in _known():
            yield Mistake(here, f"is unknown to 4.{release}: {_fate(release)}", _nearest(path, str(name), release))
            continue
        _, field, spelling = _known()[where]
        if field is not None and spelling is not None and release < spelling.since:
            older = field.spelling(release)
            remedy = f"write {older.path}" if older else "leave it out"
            yield Mistake(here, f"is unknown to 4.{release}, came with 4.{spelling.since}: {_fate(release)}", remedy)
            continue
        if field is not None and spelling is not None and release >= spelling.until:
            yield _deprecated(here, field, spelling, release)
        yield from _walk(value, where, here, release)


def _below(path: str) -> list[str]:
    """Return the names known below a path, as they are written."""
    prefix = f"{path}." if path else ""
    paths = (each for each in _known() if each.startswith(prefix) and "." not in each[len(prefix) :])
    return [_known()[each][0].rpartition(".")[2].removesuffix("[]") for each in paths]


def _nearest(path: str, name: str, release: int) -> str:
    names = {each.lower(): each for each in _below(path)}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return f"did you mean {names[close[0]]}?" if close else "take it out"


def _fate(release: int) -> str:
    return next(text for since, text in FATE if release >= since)


def _deprecated(here: str, field: Field, spelling: Spelling, release: int) -> Mistake:
    newer = field.spelling(release)
    since = f"since 4.{spelling.until}" if spelling.until > releases.OLDEST else "from before 4.2"
    if newer is None:
        return Mistake(here, f"is ignored {since}", "take it out")
    return Mistake(here, f"{DEPRECATED} {since}", f"write {newer.path}")


def _contradictions(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield fields that stand there under their name and an old one, and what the installer makes of both."""
    for field in FIELDS:
        current = field.spelling(release)
        for old in (each for each in field.spellings if current and each.until <= release):
            assert current is not None
            new, former = (_meant(document, each) for each in (current, old))
            if new is None or former is None:
                continue
            both = f"{current.path} and {old.path}"
            if field.of.endswith(NEVER_BOTH):
                yield Mistake(both, f"are one field, and may not both be there: {STOPS}", "keep the first")
            elif former != new and not (field.of.endswith("_vips") and former[0] in new):
                fate = "the first counts" if current.path.startswith("networking.") else STOPS
                yield Mistake(both, f"are one field, and differ: {fate}", "keep the first")


def _meant(document: Raw, spelling: Spelling) -> Any:
    """Return what stands there under a name, as all names of its field say it; None without it."""
    value = _value(document, spelling.path)
    if value in (None, "", [], {}):
        return None
    try:
        return spelling.given(value)
    except (AttributeError, KeyError, TypeError, ValueError):  # of another shape: reading it says so
        return None


def _value(node: object, path: str) -> object:
    found = find(node, path)
    return found[1] if found else None


def find(node: object, path: str) -> tuple[tuple[str | int, ...], object] | None:
    """Return where a field stands in a document, as its keys are written there, and its value; None without it.

    Keys match in any case, as in Go; of a list it is the first element.
    """
    steps: list[str | int] = []
    for step in path.split("."):
        if isinstance(node, list) and node:
            node = node[0]
            steps.append(0)
        if not isinstance(node, Mapping):
            return None
        name = step.removesuffix("[]").lower()
        key = next((each for each in node if str(each).lower() == name), None)
        if key is None:
            return None
        node = node[key]
        steps.append(key)
    return tuple(steps), node
