from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from openstack_prep.base.style import PLAIN, Style
from openstack_prep.cli.summary import summary
from openstack_prep.core.model import Observed, Resource, Result, Status
from openstack_prep.core.plan import Report
from openstack_prep.core.planner import plan_apply, plan_destroy


@dataclass(frozen=True, kw_only=True)
class Address(Resource):
    kind: ClassVar[str] = "floating_ip"
    name: str


@dataclass(frozen=True, kw_only=True)
class Config(Resource):
    kind: ClassVar[str] = "install_config"
    name: str


@dataclass(frozen=True, kw_only=True)
class Cluster(Resource):
    kind: ClassVar[str] = "rke_cluster"
    name: str


FOUND = {
    Address(name="api"): Observed(id="f1", outputs={"address": "192.0.2.1"}),
    Address(name="ingress"): Observed(id="f2", outputs={"address": "192.0.2.2"}),
    Config(name="ocp"): Observed(id="x", outputs={"path": str(Path.cwd() / "ocp" / "install-config.yaml")}),
    Cluster(name="one"): Observed(id="y", outputs={"path": "/else/cluster.yml", "next": "rke up"}),
    Cluster(name="two"): Observed(id="z", outputs={"needs": "SSH to 10.1.0.5"}),
}
SPEC = Path("my spec.yaml")


def report(status: Status = Status.DONE) -> Report:
    steps = plan_apply("lab", list(FOUND), {}).steps
    return Report(tuple(Result(step=each, status=status, observed=FOUND[each.resource]) for each in steps))


def test_the_end_of_an_apply_says_what_exists_and_what_comes_next() -> None:
    assert summary(report(), SPEC, PLAIN).splitlines() == [
        "exists:    2 floating IPs, 1 install config, 2 RKE clusters",
        "addresses: api 192.0.2.1, ingress 192.0.2.2",
        "written:   ocp/install-config.yaml, /else/cluster.yml",
        "next:      openstack-prep ipi --spec 'my spec.yaml' -- openshift-install create cluster",
        "next:      rke up",
        "needs:     SSH to 10.1.0.5",
    ]


def test_it_is_wrapped_below_its_own_words() -> None:
    lines = summary(report(), SPEC, Style(width=60)).splitlines()
    assert all(line[:11].strip() == "" or line[:11].rstrip().endswith(":") for line in lines)


def test_a_command_to_paste_is_never_broken() -> None:
    lines = summary(report(), SPEC, Style(width=40)).splitlines()
    assert "next:      openstack-prep ipi --spec 'my spec.yaml' -- openshift-install create cluster" in lines


@pytest.mark.parametrize("status", [Status.FAILED, Status.SKIPPED])
def test_of_a_run_that_failed_there_is_none(status: Status) -> None:
    assert summary(report(status), SPEC, PLAIN) == ""


def test_of_a_run_that_changed_nothing_there_is_none() -> None:
    found = {each.key: observed for each, observed in FOUND.items()}
    steps = plan_apply("lab", list(FOUND), found).steps
    kept = Report(tuple(Result(step=each, status=Status.DONE, observed=each.observed) for each in steps))
    assert summary(kept, SPEC, PLAIN) == ""


def test_what_was_deleted_does_not_exist() -> None:
    pool, gone = Address(name="api"), Address(name="old")
    steps = (*plan_apply("lab", [pool], {}).steps, *plan_destroy("lab", (), {}, [(gone, Observed(id="o", ours=True))]))
    done = Report(tuple(Result(step=each, status=Status.DONE, observed=FOUND[pool]) for each in steps))
    assert summary(done, SPEC, PLAIN).splitlines()[0] == "exists:    1 floating IP"
