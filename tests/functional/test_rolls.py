"""Rolling updates of the shipped templates on a real Heat: the next server starts only when the last one is ready.

The devcloud's servers run no operating system; the tests signal in their place, with what their user data tells them.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from openstack_prep.resources.orchestration.stack import Stack
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.functional.rke2_cluster import BASE, KEY, SECONDS, Cluster


@pytest.fixture(scope="module")
def cluster(project: Lab, images: tuple[str, str]) -> Rolled:
    """Three servers that are ready; each test leaves them so, with what it has changed."""
    made = Rolled(project, images)
    with made.applied(made.stack()):
        made.until(lambda: len(made.active()) == 3)
        for each in made.active().values():
            made.signal(each)
    return made


class Rolled(Cluster):
    """A cluster that remembers its parameters from test to test, and how many servers were away at once."""

    def __init__(self, lab: Lab, images: tuple[str, str]) -> None:
        super().__init__(lab, images[0])
        self.images = images
        self.given: dict[str, Any] = {}
        self.away = 0
        """How many servers were not in service at once, at most, since the last ``stack``."""

    @property
    def other_image(self) -> str:
        """The image that the servers do not have."""
        return self.images[self.given["server_image"] == self.images[0]]

    def stack(self, **parameters: Any) -> Stack:  # type: ignore[override]
        """Return the cluster as it shall be from now on."""
        self.given |= parameters
        self.away, self.report = 0, None
        made = super().stack(**self.given)
        self.given = dict(made.parameters or {})
        return made

    def active(self) -> dict[str, Any]:
        found = super().active()
        self.away = max(self.away, 3 - len(found))
        return found

    def flavors(self) -> dict[str, str]:
        return {number: each.flavor.name for number, each in sorted(self.active().items())}

    def actions(self, server: str) -> list[str]:
        """Return what Nova has done to a server."""
        listed = self.lab.admin.compute.get(f"/servers/{server}/os-instance-actions").json()["instanceActions"]
        return [each["action"] for each in listed]

    def roll(self, before: dict[str, str], numbers: str = "210") -> None:
        """Signal for each server as soon as it has been replaced, in this order."""
        for number in numbers:
            self.until(partial(self.is_replaced, number, before))
            assert self.ids().items() >= {each: before[each] for each in "012" if each < number}.items()
            self.signal(self.active()[number])

    def spec(self, stack: Stack) -> dict[str, Any]:
        """Return the lab's spec as a file has it, with this stack."""
        name = self.lab.name
        return {
            "name": name,
            "project": {"name": name},
            "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
            "role_assignments": [{"user": name, "role": "member"}],
            "networks": [{"name": "nodes"}],
            "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.0.0.0/24"}],
            "keypairs": [{"name": "key", "public_key": KEY}],
            "stacks": [
                {"name": stack.name, "template": stack.template, "parameters": self.given, "timeout": stack.timeout}
            ],
        }


def test_a_roll_waits_for_each_server(cluster: Rolled) -> None:
    """Never are two away at once; the last index goes first."""
    before = cluster.ids()
    assert not cluster.lab.plan(*BASE, cluster.stack())
    new = cluster.stack(server_image=cluster.other_image)
    with cluster.applied(new, allow_replace=True) as apply:
        for number in "210":
            old = cluster.ids() | {number: ""}
            cluster.until(partial(cluster.is_replaced, number, before))
            time.sleep(4)
            assert apply.is_alive()
            assert cluster.ids() | {number: ""} == old
            cluster.signal(cluster.active()[number])
    cluster.report.raise_for_failures()
    assert cluster.away <= 1
    assert not set(cluster.ids().values()) & set(before.values())
    assert not cluster.lab.plan(*BASE, new)


def test_a_failed_server_stops_the_roll_and_the_next_apply_goes_on(cluster: Rolled) -> None:
    """The others are untouched; the next apply waits for the failed server first."""
    before = cluster.ids()
    new = cluster.stack(server_image=cluster.other_image)
    with cluster.applied(new, allow_replace=True):
        cluster.until(partial(cluster.is_replaced, "2", before))
        cluster.signal(cluster.active()["2"], "FAILURE", "failure")
    (said,) = (str(each.error) for each in cluster.report.results if each.error)
    assert "servers.2.ready" in said
    assert f"{cluster.name}-server-2 says so" in said
    after = cluster.ids()
    assert after | {"2": ""} == before | {"2": ""}

    cluster.signal(cluster.active()["2"], "SUCCESS", "failure")
    with cluster.applied(new, allow_replace=True) as apply:
        time.sleep(15)
        assert apply.is_alive()
        assert cluster.ids() == after
        cluster.roll(before)
    cluster.report.raise_for_failures()
    assert cluster.away <= 1
    assert not set(cluster.ids().values()) & set(before.values())


def test_a_server_that_never_signals_stops_the_roll_and_the_next_apply_goes_on(cluster: Rolled) -> None:
    """By a resize, after which a server starts again: its disk and its id stay."""
    before = cluster.ids()
    with cluster.applied(cluster.stack(server_flavor="m1.medium", wait_timeout=10)):
        cluster.until(lambda: cluster.flavors().get("2") == "m1.medium")
    (said,) = (str(each.error) for each in cluster.report.results if each.error)
    assert "servers.2.ready: WaitConditionTimeout" in said
    assert cluster.flavors() == {"0": "m1.small", "1": "m1.small", "2": "m1.medium"}

    with cluster.applied(cluster.stack(wait_timeout=300)) as apply:
        time.sleep(10)
        assert apply.is_alive()
        for number in "210":
            cluster.until(partial(lambda each: cluster.flavors().get(each) == "m1.medium", number))
            assert {cluster.flavors()[each] for each in "012" if each < number} <= {"m1.small"}
            cluster.signal(cluster.active()[number])
    cluster.report.raise_for_failures()
    assert cluster.away <= 1
    assert cluster.ids() == before
    assert not cluster.lab.plan(*BASE, cluster.stack())


def test_of_two_applies_at_once_one_is_killed_and_the_other_goes_on(cluster: Rolled, prep: Prep) -> None:
    """Heat goes on with the roll meanwhile; each server is replaced once."""
    before = cluster.ids()
    new = cluster.stack(server_image=cluster.other_image)
    prep.environment["PREP_PASSWORD"] = "of-the-lab"
    prep.write(cluster.spec(new))
    killed = prep.start("apply", "--yes", "--allow-replace", prep.spec.name)
    cluster.until(lambda: cluster.ids().get("2") != before["2"])
    prep.spec.unlink()  # the fixture would destroy the cluster
    with cluster.applied(new, allow_replace=True, lock_timeout=SECONDS) as apply:
        time.sleep(2)
        assert killed.poll() is None
        killed.kill()
        killed.communicate()
        cluster.until(partial(cluster.is_replaced, "2", before))
        time.sleep(4)
        assert apply.is_alive()
        cluster.roll(before)
        after = cluster.ids()
    cluster.report.raise_for_failures()
    assert cluster.away <= 1
    assert cluster.ids() == after
    assert not set(after.values()) & set(before.values())
    assert not cluster.lab.plan(*BASE, new)


def test_parameters_that_touch_no_server(cluster: Rolled) -> None:
    """No server is replaced, rebuilt or started again; and no signal is waited for, also after a time without."""
    before = {each.id: each.launched_at for each in cluster.servers().values()}
    actions = {each: cluster.actions(each) for each in before}
    of_rke2 = {"tls_san": ["k8s.example"], "rke2_version": "v1.35.7+rke2r1", "server_taint": False}
    for parameters in ({"wait_timeout": 0}, {"wait_timeout": 600, "signal_insecure": True, **of_rke2}):
        cluster.lab.run(*BASE, cluster.stack(**parameters)).raise_for_failures()
    assert {each.id: each.launched_at for each in cluster.servers().values()} == before
    assert {each: cluster.actions(each) for each in before} == actions
    assert not cluster.lab.plan(*BASE, cluster.stack())
