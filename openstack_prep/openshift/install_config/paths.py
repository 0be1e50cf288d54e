"""The paths of an install-config: how to find a field, and those that each release knows.

The table also has those that no spec sets: none of them is called unknown.

Source: paths.yaml, from the definition of InstallConfig at each release (docs/make_install_config_paths.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from openstack_prep.base.formats.foreign_text import shipped_yaml
from openstack_prep.openshift.install_config.releases import NEVER, Span

OPENSTACK, NONE, EXTERNAL = "openstack", "none", "external"
WITHOUT_CLOUD = (NONE, EXTERNAL)
"""Platforms for which the installer asks no cloud, on whichever the machines run."""


@cache
def known_paths() -> Mapping[str, tuple[str, Span]]:
    """Return by lowercase path its spelling, and the releases that know it."""
    return {path.lower(): (path, _span(text)) for path, text in _table()["paths"].items()}


@cache
def oldest() -> int:
    """Return the first release of which all paths are known."""
    return int(_table()["releases"][0])


def _span(text: str) -> Span:
    first, _, last = text.partition("-")
    return Span(int(first), int(last) + 1 if last else NEVER)


@cache
def _table() -> Any:
    return shipped_yaml(__package__, "paths.yaml")


def find(node: object, path: str) -> tuple[tuple[str | int, ...], object] | None:
    """Return the steps to a field, as the document spells its keys, and its value; None if it is missing.

    Keys match in any case, as in Go; of a list, the first element is searched.
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


def value_of(node: object, path: str) -> object:
    """Return the value of a field; None if it is missing."""
    found = find(node, path)
    return found[1] if found else None


def platform_of(document: object) -> str:
    """Return the platform of an install-config: none or external if it is the only one, else openstack."""
    platforms = value_of(document, "platform")
    given = platforms.items() if isinstance(platforms, Mapping) else ()
    names = [str(name).lower() for name, value in given if value is not None]
    return names[0] if len(names) == 1 and names[0] in WITHOUT_CLOUD else OPENSTACK
