from __future__ import annotations

from openstack_prep.dns.entries import dnsmasq_lines, hosts_lines

PAIRS = [("192.0.2.4", "api.example.com"), ("2001:db8::5", "*.apps.example.com")]


def test_hosts_files_have_no_wildcards() -> None:
    assert hosts_lines(PAIRS) == ["192.0.2.4 api.example.com"]


def test_dnsmasq_has_wildcards() -> None:
    assert dnsmasq_lines(PAIRS) == ["host-record=api.example.com,192.0.2.4", "address=/apps.example.com/2001:db8::5"]
