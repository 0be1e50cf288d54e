"""Lines of others that give a name of ours another address: found, and changed on request."""

from __future__ import annotations

import pytest

from openstack_prep.dns.entries import Form, conflicts, read_entries, without_conflicts

WANTED = {
    "api.dev.example.com": {"192.0.2.4"},
    "*.api.dev.example.com": {"192.0.2.4"},
    "*.apps.dev.example.com": {"192.0.2.5", "2001:db8::5"},
}


@pytest.mark.parametrize(
    ("form", "line", "changed"),
    [
        ("hosts", "203.0.113.9 api.dev.example.com", "# 203.0.113.9 api.dev.example.com"),
        ("hosts", "203.0.113.9\tjump API.dev.example.com  # old", "203.0.113.9 jump # old"),
        ("hosts", "192.0.2.4 api.dev.example.com", None),  # the right address
        ("hosts", "203.0.113.9 api2.dev.example.com", None),
        ("hosts", "# 203.0.113.9 api.dev.example.com", None),
        ("hosts", "x api.dev.example.com", None),
        ("dnsmasq", "host-record=api.dev.example.com,203.0.113.9", "# host-record=api.dev.example.com,203.0.113.9"),
        ("dnsmasq", "host-record=a, api.dev.example.com,203.0.113.9,60", "host-record=a,203.0.113.9,60"),
        ("dnsmasq", "address=/apps.dev.example.com/203.0.113.9", "# address=/apps.dev.example.com/203.0.113.9"),
        ("dnsmasq", "address=/x.org/apps.dev.example.com/203.0.113.9", "address=/x.org/203.0.113.9"),
        ("dnsmasq", "address=/apps.dev.example.com/2001:DB8::0:5", None),  # the right one, of the other version
        ("dnsmasq", "address=/dev.example.com/203.0.113.9", None),  # a longer domain counts more
        ("dnsmasq", "cname=api.dev.example.com,lb.example.com", "# cname=api.dev.example.com,lb.example.com"),
        ("dnsmasq", "server=/apps.dev.example.com/203.0.113.9", None),
    ],
)
def test_one_line(form: Form, line: str, changed: str | None) -> None:
    lines = ["127.0.0.1 localhost\r\n", f"{line}\r\n", "end"]
    assert [entry.number for entry, _ in conflicts(lines, WANTED, form)] == ([] if changed is None else [2])
    after = without_conflicts(lines, WANTED, form)
    assert after == [lines[0], f"{line if changed is None else changed}\r\n", "end"]
    assert list(conflicts(after, WANTED, form)) == []


def test_lines_without_an_address_are_none() -> None:
    assert list(read_entries(["", "#", "address=", "host-record=a", "cname=a", "address=//"], "dnsmasq")) == []
