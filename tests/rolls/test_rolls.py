"""Rolling updates that fail, that are interrupted, and those that touch no server, on a real Heat.

The devcloud's servers run no operating system; the tests signal in their place, with what their user data tells them.
"""

from __future__ import annotations

import time
from functools import partial

from tests.functional.conftest import Prep
from tests.functional.rke2_cluster import BASE, SECONDS
from tests.functional.rolled_cluster import Rolled, cluster

__all__ = ["cluster"]  # a fixture


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
