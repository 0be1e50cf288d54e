"""The kind pool_file: created, shared by two specs, and removed by the last one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Context, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.pool import ClaimRefused
from openstack_prep.spec import load_spec
from tests.unit.conftest import failure
from tests.unit.exposures.register.claiming import claim_one
from tests.unit.texts import Wording, contains


@pytest.fixture
def run(run: CloudRun) -> CloudRun:
    """A run of a spec that works in the project of the connection."""
    return CloudRun(run.admin, run.ownership, homes=[None])


@pytest.fixture
def pool(tmp_path: Path) -> PoolFile:
    return PoolFile(
        name="libvirt",
        path=str(tmp_path / "pools" / "libvirt.yaml"),
        cidr="192.168.122.0/24",
        gateway="192.168.122.1",
        addresses=("192.168.122.100-192.168.122.149",),
    )


def other(run: CloudRun) -> CloudRun:
    return CloudRun(run.admin, OwnershipTag("prod"), homes=[None])


def plan(run: CloudRun, pool: PoolFile) -> Plan:
    observed, mistakes = observation.examine(run.fresh(), [pool])
    return planner.plan_apply(run.ownership.spec, [pool], observed, mistakes=mistakes)


def apply(run: CloudRun, pool: PoolFile) -> list[str]:
    made = plan(run, pool)
    made.raise_for_refusals()
    report = executor.execute(made, run.fresh())
    report.raise_for_failures()
    assert not plan(run, pool)
    return [each.step.action.value for each in report.changed]


def destroy(run: CloudRun, pool: PoolFile) -> list[str]:
    run = run.fresh()
    run.known.clear()
    notes: list[str] = []
    made = planner.plan_destroy(run.ownership.spec, [pool], observation.observe(run, [pool]))
    report = executor.execute(made, run, tell=lambda event: notes.append(event.note))
    report.raise_for_failures()
    return [*(each.step.action.value for each in report.changed), *filter(None, notes)]


def test_the_last_of_two_specs_removes_the_file(run: CloudRun, pool: PoolFile, wording: Wording) -> None:
    assert apply(run, pool) == ["create"]
    assert apply(other(run), pool) == ["update"]
    claim_one(pool.register(run), "web")
    claim_one(pool.register(other(run)), "web")
    path = Path(pool.path)
    assert "  lab: {project: admin-project}\n  prod: {project: admin-project}\n" in path.read_text()
    wording(destroy(run, pool))
    assert "lab/web" not in path.read_text()
    assert destroy(run, pool) == []
    assert destroy(other(run), pool) == ["delete"]
    assert not path.exists()


def test_a_change_of_settings_is_an_update_unless_somebody_relies_on_them(
    run: CloudRun, pool: PoolFile, wording: Wording
) -> None:
    apply(run, pool)
    larger = replace(pool, addresses=("192.168.122.100-192.168.122.199",), macs=False)
    assert apply(run, larger) == ["update"]
    claim_one(larger.register(run), "web", "192.168.122.160")
    (refused,) = plan(run, pool).refusals
    assert contains(refused.what, "lab/web", "192.168.122.160")
    assert apply(other(run), larger) == ["update"]
    (refused,) = plan(run, replace(larger, exclude=("192.168.122.110",))).refusals
    wording(refused.what)


def test_what_cannot_be_written_is_refused_by_the_plan(
    run: CloudRun, pool: PoolFile, tmp_path: Path, wording: Wording
) -> None:
    (tmp_path / "pools").touch()
    (refused,) = plan(run, pool).refusals
    wording(refused.what)


def test_a_damaged_file_is_named_and_stays(run: CloudRun, pool: PoolFile, wording: Wording) -> None:
    apply(run, pool)
    text = Path(pool.path).read_text() + ">>>>>>> other\n"
    Path(pool.path).write_text(text)
    for act in (plan, destroy):
        with pytest.raises(SpecError) as caught:
            act(run, pool)
        wording(caught.value)
    assert Path(pool.path).read_text() == text


def test_two_pools_with_one_file_contradict_each_other(run: CloudRun, pool: PoolFile, tmp_path: Path) -> None:
    (tmp_path / "pools").mkdir()
    (tmp_path / "link.yaml").symlink_to(pool.path)
    same = replace(pool, name="other", path=str(tmp_path / "link.yaml"))
    context = Context(resources=[pool, same], cloud=run.admin)
    assert list(pool.list_mistakes(context)) == []
    (found,) = same.list_mistakes(context)
    assert (found.keys, found.code) == ((same.key,), "spec.contradiction")
    assert "pool_file/libvirt" in found.what


def test_a_project_that_does_not_exist_here_may_exist_in_another_cloud(
    run: CloudRun, pool: PoolFile, services: requests_mock.Mocker, wording: Wording
) -> None:
    """Two specs with one name in two clouds share a file: neither gets what the other has."""
    apply(run, pool)
    claim_one(pool.register(run), "web", mac=True)
    path = Path(pool.path)
    path.write_text(path.read_text().replace("admin-project", "elsewhere"))
    services.get("http://keystone/v3/projects/elsewhere", **failure(404))
    text = path.read_text()
    services.get("http://keystone/v3/domains?name=Default", json={"domains": [{"id": "default", "name": "Default"}]})
    row: dict[str, Any] = {"id": "p", "name": "x", "tags": [], "description": "", "domain_id": "default"}
    services.get("http://keystone/v3/projects?name=x", json={"projects": [row | {"enabled": True}]})
    for home in (None, replace(pool, project="x").owner):  # of the connection, and declared
        again = CloudRun(run.admin, OwnershipTag("lab"), homes=[home])
        (refused,) = plan(again, pool).refusals
        assert contains(refused.what, "lab", "elsewhere")
        wording(refused.fix)
        with pytest.raises(ClaimRefused, match="project elsewhere"):
            claim_one(pool.register(again), "web", mac=True)
        assert destroy(again, pool) == []
        assert path.read_text() == text


def test_a_spec_with_wrong_settings_is_refused_with_its_lines(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: lab\n"
        "pool_files:\n"
        "- {name: a, path: a.yaml, cidr: 10.0.0.0/24, addresses: [10.0.1.5]}\n"
        "- {name: b, path: b.yaml, cidr: 10.0.0.0/24, addresses: [10.0.0.5], "
        "macs: '02:00:00:00:00:00-02:00:00:00:00:ff'}\n"
        "- {name: c, path: c.yaml, cidr: 10.0.0.1/24, addresses: [], macs: true}\n"
    )
    with pytest.raises(SpecError) as caught:
        load_spec(spec)
    found = [(each.where, each.what) for each in caught.value.mistakes]
    assert (f"{spec}:3: pool_files[0]", "addresses: 10.0.1.5 is outside 10.0.0.0/24") in found
    assert any(
        where == f"{spec}:4: pool_files[1]" and "overlap the range of kubemacpool" in what for where, what in found
    )
    assert {where for where, _ in found if where.startswith(f"{spec}:5")} == {
        f"{spec}:5: pool_files[2].{field}" for field in ("cidr", "addresses", "macs")
    }
