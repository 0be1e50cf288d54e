"""The stand-in of tests/light by itself: its clouds, its latency, and what it counts."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openstack.connection import Connection

from tests.devcloud import ports
from tests.devcloud.tenant import connect
from tests.light.__main__ import main
from tests.light.running import Light, running

FIRST_BASE = 8000
REGIONS = ("RegionOne", "RegionTwo")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Light]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    folder, first = tmp_path_factory.mktemp("two"), FIRST_BASE - 2 * worker * ports.STEP
    with (
        ports.choose(None, first, "light server") as layout,
        running(folder, base=layout.base, regions=REGIONS, projects=30) as light,
    ):
        yield light


@pytest.fixture
def admins(two: Light) -> list[Connection]:
    return [connect(two.clouds_file, entry) for entry in two.entries]


def test_two_clouds_have_nothing_in_common(two: Light, admins: list[Connection]) -> None:
    first, second = admins
    first.identity.create_project(name="only-here", domain_id="default")
    assert first.identity.find_project("only-here")
    assert second.identity.find_project("only-here") is None
    before = two.counts(0)["requests"]
    second.network.get("/networks")
    assert two.counts(0)["requests"] == before
    with pytest.raises(Exception, match="401"):
        second.session.get(f"{two.layouts[0].url('neutron')}/v2.0/networks")


def test_what_is_asked_is_counted_by_kind(two: Light, admins: list[Connection]) -> None:
    first = admins[0]
    project_id = first.current_project_id
    two.reset()
    for _ in range(3):
        first.identity.get(f"/projects/{project_id}")
    first.network.get("/metering/nothing")
    counted = two.counts()
    assert counted["services"]["identity"]["GET /v3/projects/{}"] == 3
    assert counted["unknown"] == {"network GET /v2.0/metering/nothing": 1}
    assert counted["statuses"]["404"] == 1
    assert two.reset()["requests"] == counted["requests"]
    assert two.counts()["requests"] == 0


def test_requests_take_as_long_as_is_set_and_wait_together(two: Light, admins: list[Connection]) -> None:
    first = admins[0]
    first.network.get("/networks")
    two.set_latency(200)
    try:
        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: first.network.get("/networks"), range(8)))
        assert 0.2 <= time.monotonic() - began < 1.2
        assert two.counts()["at_once"] == 8
    finally:
        two.set_latency(0)


def test_projects_of_other_people_are_there(admins: list[Connection]) -> None:
    for admin in admins:
        names = [each.name for each in admin.identity.projects()]
        assert sum(name.startswith("other-") for name in names) == 30
        assert len(list(admin.network.security_groups())) >= 30


def test_the_file_of_entries_is_private(two: Light) -> None:
    assert stat.S_IMODE(two.clouds_file.stat().st_mode) == 0o600


def test_a_port_in_use_ends_it(two: Light, tmp_path: Path) -> None:
    assert main(["--port-base", str(two.layouts[0].base), "--directory", str(tmp_path)]) == 1
    with pytest.raises(RuntimeError, match="in use"), running(tmp_path, base=two.layouts[0].base):
        pass
