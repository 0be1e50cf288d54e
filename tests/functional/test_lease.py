"""One run at a time per spec: racers from two homes, killed, stopped and unlocked holders."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.network.network import Network
from openstack_prep.spec import Spec
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep

SLOW = Fault("neutron", method="POST", path_regex="/networks", delay=300, held=True)
"""Keeps the first holder at work."""


@pytest.fixture
def name() -> str:
    return f"l{secrets.token_hex(3)}"


@pytest.fixture
def spec(prep: Prep, name: str) -> Prep:
    prep.write(
        {
            "name": name,
            "project": {"name": f"{name}-project"},
            "networks": [{"name": f"{name}-net"}],
            "subnets": [{"name": f"{name}-sub", "network": f"{name}-net", "cidr": "10.77.0.0/24"}],
            "security_groups": [{"name": f"{name}-group"}],
        }
    )
    return prep


def group_of(devcloud: Devcloud, name: str) -> Any:
    project = devcloud.admin.identity.find_project(f"{name}-project", ignore_missing=False)
    (group,) = devcloud.admin.network.security_groups(project_id=project.id, name="default")
    return group


def made(devcloud: Devcloud, name: str) -> Counter[str]:
    """Count what there is of the spec, by name."""
    network = devcloud.admin.network
    listed = (*network.networks(), *network.subnets(), *network.security_groups())
    return Counter(each.name for each in listed if each.name.startswith(f"{name}-"))


def from_home(prep: Prep, home: Path, *words: str) -> subprocess.Popen[str]:
    home.mkdir(exist_ok=True)
    return Prep(prep.folder, prep.environment | {"HOME": str(home)}).start(*words)


def until_held(devcloud: Devcloud, name: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        project = devcloud.admin.identity.find_project(f"{name}-project")
        if project and "." in group_of(devcloud, name).description:
            return
        time.sleep(0.2)
    raise AssertionError("nobody took the lease")


@pytest.mark.parametrize(
    ("racers", "apart"),
    [
        (2, 0.7),
        (4, 0.0),
        pytest.param(2, 0.0, marks=pytest.mark.more),
        pytest.param(8, 0.0, marks=pytest.mark.more),
        pytest.param(4, 1.0, marks=pytest.mark.more),
    ],
)
def test_racers_make_one_of_each(
    spec: Prep, name: str, devcloud: Devcloud, tmp_path: Path, racers: int, apart: float
) -> None:
    runs = []
    for number in range(racers):
        runs.append(
            from_home(spec, tmp_path / f"home{number % 2}", "apply", "--yes", "--lock-timeout", "300", "spec.yaml")
        )
        time.sleep(apart)
    for run in runs:
        said = run.communicate(timeout=400)
        assert run.returncode == 0, said
    assert set(made(devcloud, name).values()) == {1}
    assert spec.changes() == set()
    assert re.fullmatch(r"Default security group \[openstack-prep \d+\]", group_of(devcloud, name).description)


def test_who_is_at_work_is_named_and_not_waited_for(spec: Prep, name: str, devcloud: Devcloud) -> None:
    with devcloud.faults(SLOW):
        first = spec.start("apply", "--yes", "spec.yaml")
        until_held(devcloud, name)
        said = spec.run("apply", "--yes", "--lock-timeout", "0", "spec.yaml", code=1).stderr
        assert f"(pid {first.pid})" in said
        assert "openstack-prep unlock SPEC" in said
        assert f"(pid {first.pid})" in spec.run("plan", "spec.yaml").stderr
    first.communicate(timeout=200)
    assert first.returncode == 0


def test_a_killed_holder_on_this_host_is_followed_at_once(spec: Prep, name: str, devcloud: Devcloud) -> None:
    mark = devcloud.mark()
    with devcloud.faults(SLOW):
        first = spec.start("apply", "--yes", "spec.yaml")
        until_held(devcloud, name)
        first.kill()
        first.communicate()
    devcloud.wait_until_idle(mark)
    for plan in (["plan"], ["plan", "--destroy"]):
        assert "applied by" not in spec.run(*plan, "spec.yaml").stderr
    spec.run("apply", "--yes", "--lock-timeout", "0", "spec.yaml")
    assert set(made(devcloud, name).values()) == {1}


@pytest.fixture
def stopped(spec: Prep, name: str, devcloud: Devcloud) -> Iterator[subprocess.Popen[str]]:
    """A holder that does not run any more, and is as good as on another host: it is not dead."""
    mark = devcloud.mark()
    with devcloud.faults(Fault("neutron", method="POST", path_regex="/networks", delay=3)):
        run = spec.start("apply", "--yes", "--jobs", "1", "spec.yaml")
        try:
            devcloud.wait_for_request(mark, "POST", "/networks")  # after it has taken the lease
            os.kill(run.pid, signal.SIGSTOP)
            devcloud.wait_until_idle(mark)
            yield run
        finally:
            run.kill()
            run.communicate()


def test_a_stopped_holder_loses_its_lease(spec: Prep, name: str, devcloud: Devcloud, stopped: Any) -> None:
    assert "waiting" in spec.run("apply", "--yes", "--lock-timeout", "120", "spec.yaml").stderr
    before = made(devcloud, name)
    os.kill(stopped.pid, signal.SIGCONT)
    out, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 1
    assert "the lost lease" in out
    assert made(devcloud, name) == before
    assert set(before.values()) == {1}


def test_unlock(spec: Prep, name: str, devcloud: Devcloud, stopped: Any) -> None:
    assert "unlocked" in spec.run("unlock", "--yes", "spec.yaml").stdout
    assert json.loads(spec.run("unlock", "--format", "json", "spec.yaml").stdout)["holder"] is None
    spec.run("apply", "--yes", "--lock-timeout", "0", "spec.yaml")


def test_unlock_finds_the_lease_in_the_project_of_the_resources(prep: Prep, name: str, devcloud: Devcloud) -> None:
    """A spec without the section project; the connection's own project may have the lease of another one."""
    project = devcloud.admin.identity.create_project(name=f"{name}-project")
    prep.write({"name": name, "networks": [{"name": f"{name}-net", "project": project.name}]})
    with devcloud.faults(SLOW):
        mark = devcloud.mark()
        run = prep.start("apply", "--yes", "spec.yaml")
        devcloud.wait_for_request(mark, "POST", "/networks")
        os.kill(run.pid, signal.SIGSTOP)
    try:
        assert "unlocked" in prep.run("unlock", "--yes", "spec.yaml").stdout
    finally:
        run.kill()
        run.communicate()
    devcloud.wait_until_idle(mark)
    prep.destroy()
    devcloud.admin.identity.delete_project(project)


def test_foreign_text_stays(spec: Prep, name: str, devcloud: Devcloud) -> None:
    spec.apply()
    group = group_of(devcloud, name)
    devcloud.admin.network.update_security_group(group, description=f"ours: {group.description} do not touch")
    spec.spec.write_text(spec.spec.read_text() + f"routers: [{{name: {name}-router}}]\n")
    spec.apply()
    assert group_of(devcloud, name).description == "ours: Default security group [openstack-prep 2] do not touch"


def test_a_plain_member_holds_it(tenant: Tenant, name: str) -> None:
    from openstack_prep.verbs import api

    cloud, seen = Cloud(tenant.connect()), []
    network = Spec(name, (Network(name=f"{name}-net"),))
    api.apply(
        cloud, network, tell=lambda event: seen.append(api.look_for_lease(cloud, network).holder)
    ).raise_for_failures()
    assert seen[0] is not None
    (group,) = tenant.connect().network.security_groups(name="default", project_id=tenant.project_id)
    assert group.description == "Default security group"


def test_apply_against_destroy(spec: Prep, name: str, devcloud: Devcloud, tmp_path: Path) -> None:
    spec.apply()
    words = ("--yes", "--lock-timeout", "300", "spec.yaml")
    going = from_home(spec, tmp_path / "home0", "destroy", *words)
    time.sleep(0.5)
    coming = from_home(spec, tmp_path / "home1", "apply", *words)
    for run in (going, coming):
        said = run.communicate(timeout=400)
        assert run.returncode == 0, said
    assert set(made(devcloud, name).values()) <= {1}
    spec.apply()


def test_the_group_that_an_interrupted_destroy_leaves_goes_with_the_next_one(
    spec: Prep, name: str, devcloud: Devcloud
) -> None:
    """As a run does that is killed after it has deleted the project."""
    spec.apply()
    group = group_of(devcloud, name)
    broken = Fault("neutron", method="DELETE", path_regex=f"/security-groups/{group.id}", status=400, times=20)
    with devcloud.faults(broken):
        spec.run("destroy", "--yes", "spec.yaml", code=1)
    assert devcloud.admin.identity.find_project(f"{name}-project") is None
    assert devcloud.admin.network.get_security_group(group.id)
    assert f"default_group/{group.id}" in spec.destroy().stdout
    assert devcloud.admin.network.find_security_group(group.id) is None
