"""A rolling update of the shipped template on a real Heat; `tox -e rolls` has more of them.

The devcloud's servers run no operating system; the test signals in their place, with what their user data tells them.
"""

from __future__ import annotations

import time
from functools import partial

from tests.functional.rke2_cluster import BASE
from tests.functional.rolled_cluster import Rolled, cluster

__all__ = ["cluster"]  # a fixture


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
