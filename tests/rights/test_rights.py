"""Each command and each kind of resource with exactly the rights of docs/security.md, and with the next lesser ones."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from tests.rights.conftest import Site, entry_of
from tests.rights.table import KINDS, LESSER, MEMBER, NOBODY, USES, Kind, Use

NO_LOGIN = "check that entry of clouds.yaml"
FORBIDDEN = re.compile(r"has no permission|\b403\b|needs the right|may not use")


def is_clear(said: str, lesser: tuple[str, ...]) -> bool:
    """Whether a refusal says what is missing."""
    return NO_LOGIN in said if lesser == NOBODY else FORBIDDEN.search(said) is not None


@pytest.mark.parametrize("use", USES, ids=lambda use: use.line)
def test_a_command(site: Site, use: Use) -> None:
    for line in use.before:
        site.run(line, MEMBER, (0,))
    if use.line.startswith("unlock"):
        site.hold()
    lesser = LESSER[use.roles]
    site.choose(lesser)
    before = site.state()
    said = site.run(use.line, lesser, (use.refused,))
    assert is_clear(said, lesser), said
    assert site.state() == before
    site.choose(use.roles)
    said = site.run(use.line, use.roles, (use.code,)).replace(use.lacks, "")
    assert NO_LOGIN not in said, said
    assert not FORBIDDEN.search(said), said


def named(value: Any, name: str) -> Any:
    """Return a part of a spec with a name in the place of ``{}``."""
    if isinstance(value, dict):
        return {key: named(each, name) for key, each in value.items()}
    if isinstance(value, list):
        return [named(each, name) for each in value]
    return value.replace("{}", name) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", [each for each in KINDS if not each.local], ids=lambda kind: kind.name)
def test_a_kind(site: Site, kind: Kind) -> None:
    """With the lesser right apply changes nothing; with the right it creates, and destroy deletes."""
    lesser = LESSER[kind.roles]
    user = f"{site.name}-{entry_of(kind.roles)}"
    site.write("kind.yaml", {"name": "kind"} | named(copy.deepcopy(kind.section), user))
    before = site.state()
    said = site.run("apply --yes kind.yaml", lesser, (kind.refused,))
    assert is_clear(said, lesser), said
    assert site.state() == before
    assert "nothing to do" not in site.run("apply --yes kind.yaml", kind.roles, (0,))
    assert "nothing to do" in site.run("apply --yes kind.yaml", kind.roles, (0,))
    site.run("destroy --yes kind.yaml", kind.roles, (0,))
