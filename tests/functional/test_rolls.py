"""Rolling updates of the shipped templates on a real Heat: the next server starts only when the last one is ready.

The devcloud's servers run no operating system; the tests signal in their place, with what their user data tells them.
"""

from __future__ import annotations

import time
from functools import partial

from tests.functional.rke2_cluster import BASE, Cluster, cluster

__all__ = ["cluster"]  # a fixture


def test_a_roll_waits_for_each_server(cluster: Cluster, images: tuple[str, str]) -> None:
    """Never are two away at once; the last index goes first."""
    before = cluster.ids()
    assert not cluster.lab.plan(*BASE, cluster.stack())
    seen: list[int] = []
    with cluster.applied(cluster.stack(server_image=images[1]), allow_replace=True) as apply:
        for number in "210":
            old = cluster.ids() | {number: ""}

            def replaced(number: str = number) -> bool:
                seen.append(len(cluster.active()))
                return cluster.ids().get(number) not in (None, before[number])

            cluster.until(replaced)
            time.sleep(4)
            assert apply.is_alive()
            assert cluster.ids() | {number: ""} == old
            cluster.signal(cluster.active()[number])
    cluster.report.raise_for_failures()
    assert min(seen) >= 2
    assert not set(cluster.ids().values()) & set(before.values())
    assert not cluster.lab.plan(*BASE, cluster.stack(server_image=images[1]))


def test_a_failed_server_stops_the_roll_and_the_next_apply_goes_on(cluster: Cluster, images: tuple[str, str]) -> None:
    """The others are untouched; the next apply waits for the failed server first."""
    before = cluster.ids()
    new = cluster.stack(server_image=images[1])
    with cluster.applied(new, allow_replace=True):
        cluster.until(lambda: cluster.ids().get("2") not in (None, before["2"]))
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
        for number in "210":
            cluster.until(partial(cluster.is_replaced, number, before))
            assert cluster.ids().items() >= {each: before[each] for each in "012" if each < number}.items()
            cluster.signal(cluster.active()[number])
    cluster.report.raise_for_failures()
    assert not set(cluster.ids().values()) & set(before.values())
