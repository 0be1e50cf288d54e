from __future__ import annotations

from datetime import date

import pytest

from openstack_prep.dns.zone import (
    DnsRecord,
    next_serial,
    reverse_records,
    serial_of,
    with_next_serial,
    zone_text,
)

TODAY = date(2026, 11, 23)
RECORDS = [DnsRecord.address("api", "192.0.2.4"), DnsRecord.address("*.apps", "2001:db8::5")]
ZONE = zone_text("dev.example.com", "ns.example.com", RECORDS)


def test_a_first_zone_gets_the_serial_of_the_day() -> None:
    assert serial_of(with_next_serial("", ZONE, TODAY)) == 2026112300
    assert serial_of(with_next_serial("no zone", ZONE, TODAY)) == 2026112300


def test_the_same_zone_keeps_its_serial_whatever_day_it_is() -> None:
    old = f"; a comment in front\n{with_next_serial('', ZONE, TODAY)}"
    assert next_serial(old, ZONE, date(2030, 1, 1)) == 2026112300
    assert next_serial(f"# another program's comment\n{old}", ZONE, date(2030, 1, 1)) == 2026112300
    assert with_next_serial(old, ZONE, date(2030, 1, 1)) == with_next_serial("", ZONE, TODAY)


@pytest.mark.parametrize(("previous", "serial"), [(1, 2026112300), (2026112300, 2026112301), (2**32 - 1, 1)])
def test_a_changed_zone_gets_a_higher_serial(previous: int, serial: int) -> None:
    old = zone_text("dev.example.com", "ns.example.com", RECORDS[:1], serial=previous)
    assert next_serial(old, ZONE, TODAY) == serial


def test_a_digit_of_an_address_is_not_taken_for_the_serial() -> None:
    one, other = (zone_text("a.example", "ns.a.example", [DnsRecord.address("x", f"192.0.2.{n}")]) for n in (1, 2))
    assert next_serial(with_next_serial("", one, TODAY), other, TODAY) == 2026112301


def test_reverse_zones() -> None:
    pairs = [("2001:db8::10", "six.example.com"), ("10.0.1.10", "b.example.com"), ("10.0.0.9", "a.example.com.")]
    found = {zone: [str(record) for record in records] for zone, records in reverse_records(pairs)}
    assert found == {
        "0.0.10.in-addr.arpa": ["9 IN PTR a.example.com."],
        "1.0.10.in-addr.arpa": ["10 IN PTR b.example.com."],
        "0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa": [f"0.1{'.0' * 14} IN PTR six.example.com."],
    }
