"""The stand-in of tests/light beside the devcloud: the same spec gives the same plans, reports and inventory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.fleet.light_sides import Side, light, sides

__all__ = ["light", "sides"]


def test_the_life_of_a_tenant_is_the_same(sides: tuple[Side, Side]) -> None:
    real, light = sides
    before = [side.inventory() for side in sides]
    assert light.text("plan") == real.text("plan")
    assert light.text("plan", "--detailed-exitcode", code=2) == real.text("plan", "--detailed-exitcode", code=2)
    assert light.report() == real.report()
    assert light.text("plan", "--detailed-exitcode") == real.text("plan", "--detailed-exitcode")
    assert light.text("apply", "--yes") == real.text("apply", "--yes")
    now = [side.inventory() - old for side, old in zip(sides, before, strict=True)]
    assert now[1] == now[0]
    assert light.text("plan", "--destroy") == real.text("plan", "--destroy")
    assert light.text("audit") == real.text("audit")
    assert light.text("destroy", "--yes") == real.text("destroy", "--yes")
    assert [side.inventory() for side in sides] == before
    assert light.text("destroy", "--yes") == real.text("destroy", "--yes")


FAILING = {
    "a quota that is too small": ("floating_ips: 4", "floating_ips: 1"),
    "an unknown role": ("role: member", "role: nobody"),
    "an unknown network": ("external_network: external,", "external_network: nowhere,"),
    "an address elsewhere": ("default: 192.168.122.170", "default: 10.99.0.1"),
    "a key that is none": ("ssh-ed25519 AAAAC3", "ssh-ed25519 AAAA"),
    "a quota that does not exist": ("volumes: 30", "volume_types: {fast: {volumes: 3}}"),
}


@pytest.mark.parametrize("what", FAILING)
def test_what_is_refused_or_fails_is_the_same(sides: tuple[Side, Side], what: str) -> None:
    """Errors have other words in the stand-in; which steps fail, and the exit codes, are the same."""
    outcomes = []
    for side in sides:
        text = side.prep.spec.read_text()
        assert FAILING[what][0] in text
        side.prep.spec.write_text(text.replace(*FAILING[what]))
        process = side.prep.start("apply", "--yes", "--format", "json", side.prep.spec.name)
        out, _ = process.communicate(timeout=300)
        told = json.loads(out) if out else {}
        outcomes.append((process.returncode, told.get("refusals"), _statuses(told)))
    real, light = outcomes
    assert light == real
    assert real[0] != 0


def _statuses(told: Mapping[str, Any]) -> dict[str, str]:
    return {step["resource"]: step["status"] for step in told.get("steps", ()) if "status" in step}
