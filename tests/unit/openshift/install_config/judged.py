"""The verdicts of the installer's own code on the cases, and how they were stored.

``python -m tests.unit.openshift.install_config.judged write 4.14 > cases.jsonl`` prints the install-configs of a
release, one JSON object per line: ``id`` and ``text``.  A program that calls ValidateInstallConfig of that release on
each text, after conversion and defaults, answers with ``id`` and ``found``, a list of objects with ``field`` and
``type``; ``judged read 4.14 SOURCE < answers.jsonl`` stores what it refuses, and where the release's code came from.
No file of the installer is in this repository.

The stored file has per release its source and the number of judged cases, and per refused case the fields that the
installer names, each with the releases that name it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.openshift.install_config import (
    FileContents,
    InstallConfigFields,
    document,
    dump,
    mistakes,
    releases,
)
from openstack_prep.openshift.install_config.document import has_previews, values
from openstack_prep.openshift.install_config.rules import unwritable
from tests.unit.openshift.install_config.cases import cases
from tests.unit.openshift.install_config.given_cases import given_cases, refusals

VERDICTS = Path(__file__).parents[2] / "data" / "install_config_verdicts.json"


def of_release(release: str) -> Iterator[tuple[str, InstallConfigFields, FileContents]]:
    """Yield the cases that a release has the fields for."""
    number = releases.minor(release)
    for name, case, contents in cases():
        cluster = replace(case, release=release)
        if not list(unwritable(values(cluster, contents), number, previews=has_previews(cluster))):
            yield name, cluster, contents


@cache
def names(release: str) -> tuple[str, ...]:
    """Return the names of all cases of a release: those of specs, and install-configs that somebody wrote."""
    return (*(name for name, _, _ in of_release(release)), *(name for name, _ in given_cases(release)))


@cache
def ours(release: str) -> frozenset[str]:
    """Return the cases that we refuse."""
    of_specs = {name for name, cluster, contents in of_release(release) if mistakes(cluster, contents)}
    return frozenset(of_specs | {name for name, given in given_cases(release) if refusals(given, release)})


@cache
def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(VERDICTS.read_text())
    return found


def judged() -> Mapping[str, int]:
    """Return per release the number of its cases that the installer judged."""
    return {release: of["cases"] for release, of in _stored()["releases"].items()}


@cache
def refused() -> Mapping[str, Mapping[str, list[str]]]:
    """Return per release the cases that the installer refuses, and the fields that it names."""
    found: dict[str, dict[str, list[str]]] = {release: {} for release in judged()}
    for name, fields in _stored()["refused"].items():
        for field, those in fields.items():
            for release in those.split():
                found[release].setdefault(name, []).append(field)
    return found


def _read(release: str, source: str) -> None:
    answers = [json.loads(line) for line in sys.stdin]
    fields = {each["id"]: sorted({one["field"] or one["type"] for one in each["found"] or ()}) for each in answers}
    assert fields.keys() == set(names(release))
    every = dict(refused()) | {release: {name: named for name, named in fields.items() if named}}
    of = _stored()["releases"] | {release: {"source": source, "cases": len(fields)}}
    ordered = sorted(every, key=releases.minor)
    table: dict[str, dict[str, str]] = {}
    for one in ordered:
        for name, named in every[one].items():
            for field in named:
                row = table.setdefault(name, {})
                row[field] = f"{row[field]} {one}" if field in row else one
    blocks = {"releases": {one: of[one] for one in ordered}, "refused": table}
    VERDICTS.write_text("{\n" + ",\n".join(_block(name, rows) for name, rows in blocks.items()) + "\n}\n")


def _block(title: str, rows: Mapping[str, object]) -> str:
    """Return a part of the file, one row per line."""
    lines = (f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    return f" {json.dumps(title)}: {{\n" + ",\n".join(lines) + "\n }"


def _write(release: str) -> None:
    for name, cluster, contents in of_release(release):
        print(json.dumps({"id": name, "text": dump(document(cluster, contents))}))
    for name, given in given_cases(release):
        print(json.dumps({"id": name, "text": yaml.safe_dump(given, sort_keys=False)}))


if __name__ == "__main__":
    {"read": _read, "write": _write}[sys.argv[1]](*sys.argv[2:])
