"""Twelve of the situations of tests/foretell: a plan names what the services refuse, and accepts the neighbour."""

from __future__ import annotations

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.foretell.trial import Ground, Situation, situations

CHOSEN = {
    "interface whose gateway address a port has",
    "interface that overlaps the external network",
    "gateway address that a floating IP has",
    "route of an existing router to nowhere",
    "IPv6 on an existing network with a small MTU",
    "gateway in the existing allocation pools",
    "MAC address that a port has",
    "groups where port security is off",
    "VLAN that another network has",
    "qcow2 with a backing file",
    "too many metadata",
    "credential by an application credential",
}


@pytest.fixture(scope="module")
def ground(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    made = Ground(devcloud.layout, tmp_path_factory.mktemp("foretell"))
    made.prepare()
    return made


@pytest.mark.parametrize(
    "situation", [each for each in situations() if each.name in CHOSEN], ids=lambda situation: situation.name
)
def test_a_plan_names_what_the_services_refuse(ground: Ground, situation: Situation) -> None:
    outcome = ground.try_out(situation)
    assert (outcome.named, outcome.refused, outcome.false, outcome.writes) == (True, True, (), 0), outcome.said
