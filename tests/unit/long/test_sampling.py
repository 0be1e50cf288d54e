"""What a process holds, and whether that grows."""

from __future__ import annotations

import os
import socket

from tests.long.sampling import MIB, Held, growth, held

FLAT = Held(memory=100 * MIB, threads=3, descriptors=9, sockets=4)


def test_a_flat_process_grows_by_nothing() -> None:
    warming = [Held(memory=each * MIB, threads=9, descriptors=20, sockets=9) for each in range(25)]
    assert growth([*warming, *[FLAT] * 75]) == []


def test_each_leak_is_named() -> None:
    leaking = [
        Held(memory=(100 + each) * MIB, threads=3 + each, descriptors=9 + each, sockets=4 + each) for each in range(100)
    ]
    assert [each.partition(":")[0] for each in growth(leaking)] == ["memory", "threads", "descriptors", "sockets"]


def test_an_open_socket_is_seen() -> None:
    before = held(os.getpid())
    with socket.socket():
        after = held(os.getpid())
    assert (after.sockets, after.descriptors) == (before.sockets + 1, before.descriptors + 1)
    assert after.memory > MIB
    assert after.threads >= 1
