from __future__ import annotations

from ipaddress import ip_address

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.ranges import AddressRange, Range, blocks, merged, overlaps, read, without

SAID = [
    ("10.0.0.200-10.0.0.219", "10.0.0.200-10.0.0.219", 20),
    (" 10.0.0.200 - 10.0.0.219 ", "10.0.0.200-10.0.0.219", 20),
    ("10.0.0.7", "10.0.0.7", 1),
    ("10.0.0.7-10.0.0.7", "10.0.0.7", 1),
    ("10.0.0.7/32", "10.0.0.7", 1),
    ("10.0.0.192/28", "10.0.0.192/28", 16),
    ("FD00::10-fd00::0:1f", "fd00::10-fd00::1f", 16),
    ("fd00:0::/64", "fd00::/64", 2**64),
]


@pytest.mark.parametrize(("said", "kept", "count"), SAID)
def test_a_spec_writes_ranges_in_three_forms(said: str, kept: str, count: int) -> None:
    assert TypeAdapter(AddressRange).validate_python(said) == kept
    assert Range.read(said).count == count


REFUSED = [
    ("", "is not a range of addresses; use one such as 10.0.0.200-10.0.0.219"),
    ("-", "is not a range"),
    ("10.0.0.1-10.0.0.2-10.0.0.3", "is not a range"),
    ("10.0.0.1-5", "is not a range"),
    ("10.0.0.1/24", "has host bits set"),
    ("10.0.0.0/33", "is not a range"),
    ("fe80::1%eth0", "is not a range"),
    ("node", "is not a range"),
    ("10.0.0.9-10.0.0.1", "ends before it begins; write the lower address first"),
    ("10.0.0.9-fd00::1", "mixes IPv4 and IPv6"),
]


@pytest.mark.parametrize(("said", "why"), REFUSED)
def test_what_is_no_range_is_refused_with_the_remedy(said: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        TypeAdapter(AddressRange).validate_python(said)


def test_the_fewest_blocks_hold_all_addresses_and_no_other() -> None:
    given = read(["10.0.0.208-10.0.0.219", "10.0.0.200-10.0.0.207", "10.0.0.218-10.0.0.220", "fd00::4-fd00::7"])
    assert blocks(given) == ["10.0.0.200/29", "10.0.0.208/29", "10.0.0.216/30", "10.0.0.220", "fd00::4/126"]
    assert blocks([]) == []


def test_ranges_that_touch_become_one() -> None:
    given = read(["fd00::1", "10.0.0.21-10.0.0.30", "10.0.0.10-10.0.0.20", "10.0.0.12", "10.0.0.32"])
    assert list(map(str, merged(given))) == ["10.0.0.10-10.0.0.30", "10.0.0.32", "fd00::1"]


def test_ranges_know_what_they_hold_and_share() -> None:
    one, other, far, v6 = read(["10.0.0.10-10.0.0.20", "10.0.0.18/31", "10.0.0.21", "::a00:12"])
    assert [ip_address(each) in one for each in ("10.0.0.9", "10.0.0.10", "10.0.0.20", "::a00:12")] == [
        False,
        True,
        True,
        False,
    ]
    assert [tuple(map(str, each)) for each in overlaps([one, other, far, v6])] == [
        ("10.0.0.10-10.0.0.20", "10.0.0.18-10.0.0.19", "10.0.0.18-10.0.0.19")
    ]
    assert list(map(str, far)) == ["10.0.0.21"]
    assert list(map(str, other)) == ["10.0.0.18", "10.0.0.19"]


def test_holes_are_cut_out_of_ranges() -> None:
    given = read(["10.0.0.10-10.0.0.20", "10.0.0.30", "fd00::/64"])
    holes = read(["10.0.0.0-10.0.0.10", "10.0.0.12-10.0.0.13", "10.0.0.13-10.0.0.14", "10.0.0.20-10.0.0.30", "fd00::"])
    assert list(map(str, without(given, holes))) == [
        "10.0.0.11",
        "10.0.0.15-10.0.0.19",
        "fd00::1-fd00::ffff:ffff:ffff:ffff",
    ]
    assert list(without(given, given)) == []
    assert list(without(given, [])) == merged(given)
