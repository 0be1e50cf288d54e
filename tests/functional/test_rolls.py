"""Rolling updates of the shipped templates on a real Heat: the next server starts only when the last one is ready.

The devcloud's servers run no operating system; the tests signal in their place, with what their user data tells them.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.orchestration.stack import Stack
from tests.functional.conftest import Prep
from tests.functional.lab import NODES, Lab

TEMPLATES = Path(__file__).parents[2] / "heat_templates"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
BASE = (*NODES, Keypair(name="key", public_key=KEY))
SECONDS = 300


@pytest.fixture(scope="module")
def cluster(project: Lab, images: tuple[str, str]) -> Cluster:
    """Three servers that are ready; each test leaves them so, with what it has changed."""
    made = Cluster(project, images)
    with made.applied(made.stack()):
        made.until(lambda: len(made.active()) == 3)
        for each in made.active().values():
            made.signal(each)
    return made


class Cluster:
    """A cluster of three servers of rke2-cluster.yaml in a project of its own."""

    def __init__(self, lab: Lab, images: tuple[str, str]) -> None:
        self.lab, self.images, self.name = lab, images, f"c{secrets.token_hex(3)}"
        self.project_id = lab.project_id
        self.report: Any = None
        self.away = 0
        """How many servers were not in service at once, at most, since the last ``stack``."""
        self.given = {
            **dict.fromkeys(("server_image", "agent_image"), images[0]),
            **dict.fromkeys(("server_flavor", "agent_flavor"), "m1.small"),
            **dict.fromkeys(("network", "subnet"), "nodes"),
            **{"agent_count": 0, "key_name": "key", "wait_timeout": 300},
        }

    @property
    def other_image(self) -> str:
        """The image that the servers do not have."""
        return self.images[self.given["server_image"] == self.images[0]]

    def stack(self, **parameters: Any) -> Stack:
        """Return the cluster as it shall be from now on."""
        self.given |= parameters
        self.away, self.report = 0, None
        return Stack(
            name=self.name, template=str(TEMPLATES / "rke2-cluster.yaml"), parameters={**self.given}, timeout=10
        )

    def servers(self) -> dict[str, Any]:
        listed = self.lab.admin.compute.servers(all_projects=True, project_id=self.project_id)
        return {each.id: each for each in listed if each.name.startswith(f"{self.name}-server-")}

    def active(self) -> dict[str, Any]:
        """Return the servers in service, by index: Heat takes the port from one first, and deletes it at the end."""
        found = {each.name[-1]: each for each in self.servers().values() if each.status == "ACTIVE" and each.addresses}
        self.away = max(self.away, 3 - len(found))
        return found

    def flavors(self) -> dict[str, str]:
        return {number: each.flavor.name for number, each in sorted(self.active().items())}

    def actions(self, server: str) -> list[str]:
        """Return what Nova has done to a server."""
        listed = self.lab.admin.compute.get(f"/servers/{server}/os-instance-actions").json()["instanceActions"]
        return [each["action"] for each in listed]

    def ids(self) -> dict[str, str]:
        return {number: each.id for number, each in sorted(self.active().items())}

    def is_replaced(self, number: str, before: dict[str, str]) -> bool:
        return self.ids().get(number) not in (None, before[number])

    def until(self, reached: Callable[[], Any]) -> None:
        deadline = time.monotonic() + SECONDS
        while not reached():
            assert self.report is None, self.report
            assert time.monotonic() < deadline, self.servers()
            time.sleep(0.3)

    def roll(self, before: dict[str, str], numbers: str = "210") -> None:
        """Signal for each server as soon as it has been replaced, in this order."""
        for number in numbers:
            self.until(partial(self.is_replaced, number, before))
            assert self.ids().items() >= {each: before[each] for each in "012" if each < number}.items()
            self.signal(self.active()[number])

    @contextmanager
    def applied(self, stack: Stack, **options: Any) -> Iterator[threading.Thread]:
        """Apply beside the block; it must be complete soon after its end."""

        self.report = None

        def run() -> None:
            self.report = self.lab.run(*BASE, stack, **options)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield thread
        finally:
            thread.join(SECONDS)
            assert not thread.is_alive()

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

    def signal(self, server: Any, status: str = "SUCCESS", name: str = "") -> None:
        """Say what the server would say of itself."""
        raw = self.lab.admin.compute.get_server(server.id).user_data
        config = yaml.safe_load(base64.b64decode(raw))
        files = {each["path"]: each["content"] for each in config["write_files"]}
        handle = json.loads(files["/var/lib/rke2-node/handle"])
        who = {"id": handle["user_id"], "password": handle["password"]}
        identity = {"methods": ["password"], "password": {"user": who}}
        body = {"auth": {"identity": identity, "scope": {"project": {"id": handle["project_id"]}}}}
        keystone = handle["auth_url"].rstrip("/").removesuffix("/v3")
        token = requests.post(f"{keystone}/v3/auth/tokens", json=body, timeout=30)
        token.raise_for_status()
        flavor = self.lab.admin.compute.get_server(server.id).metadata["node_flavor"]
        said = {"id": name or f"{server.id}/{flavor}", "status": status, "reason": f"{server.name} says so"}
        headers = {"X-Auth-Token": token.headers["X-Subject-Token"]}
        requests.post(handle["alarm_url"], json=said, headers=headers, timeout=30).raise_for_status()


def test_a_roll_waits_for_each_server(cluster: Cluster) -> None:
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


def test_a_failed_server_stops_the_roll_and_the_next_apply_goes_on(cluster: Cluster) -> None:
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


def test_a_server_that_never_signals_stops_the_roll_and_the_next_apply_goes_on(cluster: Cluster) -> None:
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


def test_of_two_applies_at_once_one_is_killed_and_the_other_goes_on(cluster: Cluster, prep: Prep) -> None:
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


def test_parameters_that_touch_no_server(cluster: Cluster) -> None:
    """No server is replaced, rebuilt or started again; and no signal is waited for, also after a time without."""
    before = {each.id: each.launched_at for each in cluster.servers().values()}
    actions = {each: cluster.actions(each) for each in before}
    of_rke2 = {"tls_san": ["k8s.example"], "rke2_version": "v1.35.7+rke2r1", "server_taint": False}
    for parameters in ({"wait_timeout": 0}, {"wait_timeout": 600, "signal_insecure": True, **of_rke2}):
        cluster.lab.run(*BASE, cluster.stack(**parameters)).raise_for_failures()
    assert {each.id: each.launched_at for each in cluster.servers().values()} == before
    assert {each: cluster.actions(each) for each in before} == actions
    assert not cluster.lab.plan(*BASE, cluster.stack())
