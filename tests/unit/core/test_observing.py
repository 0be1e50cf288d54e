from __future__ import annotations

import threading

import pytest

from openstack_prep.core.observing import beside, in_parallel


def here(number: int = 0) -> str:
    return threading.current_thread().name


@pytest.mark.parametrize(("jobs", "number", "apart"), [(1, 3, False), (8, 1, False), (8, 3, True)])
def test_threads_are_started_for_several_things_at_a_time(jobs: int, number: int, apart: bool) -> None:
    assert [each == here() for each in in_parallel(here, range(number), jobs=jobs)] == [not apart] * number


@pytest.mark.parametrize("jobs", [1, 8])
def test_the_first_error_ends_what_is_done_in_parallel(jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda number: 1 // number, [1, 0, 2], jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 8])
def test_work_beside_a_block_is_done_once_and_before_what_follows(jobs: int) -> None:
    done: list[str] = []

    def work() -> str:
        done.append("work")
        return here()

    with beside(work, jobs=jobs) as result:
        pass
    done.append("after")
    assert (result() == here()) is (jobs == 1)
    assert result() == result()
    assert done == ["work", "after"]


@pytest.mark.parametrize("jobs", [1, 8])
def test_an_error_beside_a_block_is_that_of_who_asks(jobs: int) -> None:
    with beside(lambda: 1 // 0, jobs=jobs) as result:
        pass
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            result()
    with pytest.raises(LookupError), beside(lambda: 1, jobs=jobs):
        raise LookupError


def test_there_may_be_no_work_beside_a_block() -> None:
    with beside(None, jobs=8) as result:
        assert result() is None
