from __future__ import annotations

from collections.abc import Iterator

import pytest
from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE
from dogpile.cache.region import CacheRegion

from tests.devcloud.server.keystone_tuning import Writes, store_unless_written


@pytest.fixture
def writes() -> Writes:
    return Writes()


@pytest.fixture
def region(writes: Writes) -> Iterator[CacheRegion]:
    made = make_region().configure("dogpile.cache.memory_pickle")
    store_unless_written(made, writes)
    return made


def test_a_value_is_kept_while_nobody_writes(region: CacheRegion, writes: Writes) -> None:
    with writes:
        pass
    assert region.get_or_create("role", lambda: "old") == "old"
    assert region.get_or_create("role", lambda: "new") == "old"


def test_a_value_that_is_read_beside_a_write_is_not_kept(region: CacheRegion, writes: Writes) -> None:
    with writes:
        assert region.get_or_create("role", lambda: "old") == "old"
    assert region.get("role") is NO_VALUE


def test_a_value_is_not_kept_if_a_write_begins_while_it_is_read(region: CacheRegion, writes: Writes) -> None:
    def read() -> str:
        with writes:
            return "old"

    assert region.get_or_create("role", read) == "old"
    assert region.get("role") is NO_VALUE


def test_of_values_within_one_another_each_has_its_own_beginning(region: CacheRegion, writes: Writes) -> None:
    def read() -> str:
        with writes:
            pass
        return region.get_or_create("inner", lambda: "new")

    assert region.get_or_create("outer", read) == "new"
    assert (region.get("outer"), region.get("inner")) == (NO_VALUE, "new")
