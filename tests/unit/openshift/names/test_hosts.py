from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from openstack_prep.openshift.names.hosts import ClusterNames, dnsmasq_lines, hosts_lines, zone

NAMES = ClusterNames(
    cluster_name="dev", base_domain="example.com", api="192.0.2.4", ingress="192.0.2.5", api_int="2001:db8::5"
)
TODAY = date(2026, 11, 21)
Stored = Callable[[str, str], None]


def test_hosts_lines(stored: Stored) -> None:
    stored("hosts.txt", "\n".join(hosts_lines(NAMES)))


def test_dnsmasq_lines(stored: Stored) -> None:
    stored("dnsmasq.conf", "\n".join(dnsmasq_lines(NAMES)))


def test_zone(stored: Stored) -> None:
    stored("dev.example.com.zone", zone(NAMES, server="ns.example.com", today=TODAY).rstrip("\n"))


def test_api_int_is_there_only_with_an_address() -> None:
    assert not any("api-int" in line for line in hosts_lines(replace(NAMES, api_int=None)))


# --- serials ------------------------------------------------------------------------------


def serial_of(text: str) -> int:
    return int(text.split("( ")[1].split()[0])


def made(old: str = "", names: ClusterNames = NAMES, today: date = TODAY) -> str:
    return zone(names, server="ns.example.com.", today=today, old=old)


def test_an_unchanged_zone_keeps_its_serial() -> None:
    old = made()
    assert made(old, today=date(2027, 1, 1)) == old


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (2026112000, 2026112100),  # a new day
        (2026112100, 2026112101),  # the same day again
        (2026119999, 2026120000),  # one that is ahead of the calendar
        (2**32 - 1, 1),
    ],
)
def test_a_changed_zone_gets_a_higher_serial(before: int, after: int) -> None:
    old = made().replace("2026112100", str(before))
    new = made(old, replace(NAMES, api="192.0.2.9"))
    assert serial_of(new) == after
    assert "192.0.2.9" in new


def test_a_zone_of_somebody_elses_hand_is_read() -> None:
    old = "@  IN SOA ns.example.com. root.example.com. (\n   2030010100 ; serial\n 1 1 1 1 )\n"
    assert serial_of(made(old)) == 2030010101
