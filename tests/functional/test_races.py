"""A few rounds of tests/races: runs of one spec at once, one of them killed, and apply against destroy."""

from __future__ import annotations

import random
import secrets
from pathlib import Path

import pytest

from openstack_prep.cloud.connection import Cloud
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import connect
from tests.races import checkout
from tests.races.contest import Rules, race
from tests.races.estate import orphans

ADMIN = "devcloud-admin"
REQUESTS = 45  # about as many as one apply sends


@pytest.mark.parametrize(
    ("rules", "projects", "lock_timeout"),
    [
        pytest.param(Rules(racers=2, requests=REQUESTS), 1, "300", id="killed"),
        pytest.param(
            Rules(racers=2, requests=REQUESTS), 2, "300", id="killed beside another project", marks=pytest.mark.more
        ),
        pytest.param(Rules(racers=3, stagger=(0.2, 2.0)), 1, "0", id="leaving at once", marks=pytest.mark.more),
        pytest.param(Rules(racers=2, stagger=(0.0, 1.0), against_destroy=True), 1, "300", id="against destroy"),
    ],
)
def test_a_round(rules: Rules, lock_timeout: str, projects: int, devcloud: Devcloud, tmp_path: Path) -> None:
    cloud = Cloud(connect(devcloud.clouds_file, ADMIN))
    environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": ADMIN}
    there = checkout.make(tmp_path, f"race{secrets.token_hex(3)}", cloud, environment, projects=projects)
    for each in there:
        each.words = ("--lock-timeout", lock_timeout)
    seed, before = secrets.randbelow(1000), orphans(devcloud.admin)
    outcome = race(there, devcloud.admin, rules, random.Random(seed))
    said = "\n".join(f"{run.log.name} {run.code} {run.stop}\n{run.said}" for run in outcome.runs)
    assert orphans(devcloud.admin).keys() <= before.keys()
    assert not outcome.faults, f"seed {seed}\n{said}"
