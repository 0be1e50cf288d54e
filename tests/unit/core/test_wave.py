from __future__ import annotations

import threading

import pytest

from openstack_prep.core.wave import Wave


def test_steps_that_write_at_once_share_one_look() -> None:
    wave, barrier, looks = Wave(), threading.Barrier(4), list[set[int]]()
    written: set[int] = set()

    def write(number: int) -> None:
        barrier.wait()  # all are within their write
        written.add(number)

    def look() -> set[int]:
        looks.append(set(written))
        return looks[-1]

    seen: list[set[int]] = []

    def step(number: int) -> None:
        seen.append(wave.write("boxes", lambda: write(number), look)[1])

    threads = [threading.Thread(target=step, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert looks == [{0, 1, 2, 3}]
    assert len(seen) == 4


def test_one_after_the_other_looks_each_time() -> None:
    wave, looks = Wave(), []
    for number in range(2):
        assert wave.write("boxes", lambda n=number: n, lambda: looks.append(1)) == (number, None)  # type: ignore[misc]
    assert len(looks) == 2


def test_a_failed_write_looks_for_the_others_only() -> None:
    wave, begun, ended = Wave(), threading.Event(), threading.Event()
    looks: list[int] = []

    def fail() -> None:
        begun.set()
        ended.wait(30)
        raise ValueError("no room")

    def failing() -> None:
        with pytest.raises(ValueError, match="no room"):
            wave.write("boxes", fail, lambda: looks.append(1))

    thread = threading.Thread(target=failing)
    thread.start()
    begun.wait(30)
    good = threading.Thread(target=wave.write, args=("boxes", lambda: None, lambda: looks.append(2)))
    good.start()
    ended.set()
    thread.join()
    good.join()
    assert len(looks) == 1
    failing()
    assert len(looks) == 1


def test_an_error_of_the_look_is_raised() -> None:
    def look() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        Wave().write("boxes", lambda: None, look)
