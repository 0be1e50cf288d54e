from __future__ import annotations

import pytest

from openstack_prep.base.invalid import InvalidValue
from openstack_prep.resources.dns.record_data import canonical, contradictions, problem, recordset_name, zone_name


@pytest.mark.parametrize(
    ("kind", "given", "sent"),
    [
        ("A", " 192.0.2.1 ", "192.0.2.1"),
        ("AAAA", "2001:DB8:0::0010", "2001:db8::10"),
        ("CNAME", "WWW.example.com", "www.example.com."),
        ("MX", "10  Mail.example.com.", "10 mail.example.com."),
        ("MX", "0 .", "0 ."),
        ("SRV", "0 5 443 www.example.com", "0 5 443 www.example.com."),
        ("TXT", "v=spf1 -all", '"v=spf1 -all"'),
        ("TXT", 'say "x" \\', '"say \\"x\\" \\\\"'),
        ("TXT", "x" * 253, f'"{"x" * 253}"'),
        ("TXT", "x" * 254, f'"{"x" * 253}" "x"'),
        ("TXT", "x" * 252 + '"', f'"{"x" * 252}" "\\""'),
        ("CAA", "0 issue Example.com", "0 issue Example.com"),
    ],
)
def test_one_form_of_each(kind: str, given: str, sent: str) -> None:
    assert canonical(kind, given) == sent
    assert canonical(kind, sent) == sent
    assert problem(kind, given) is None


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("A", "2001:db8::1"),
        ("A", "192.0.2.256"),
        ("AAAA", "192.0.2.1"),
        ("A", ""),
        ("TXT", "a\nb"),
        ("TXT", "a\x1b[31m"),
        ("TXT", "grüße"),
        ("TXT", '"open'),
        ("TXT", '"a"b"'),
        ("TXT", '"one" "two"'),
        ("TXT", f'"{"x" * 254}"'),
        ("CNAME", "a b"),
        ("CNAME", "-a.example.com"),
        ("CNAME", f"{'a' * 64}.example.com"),
        ("NS", ".."),
        ("NS", "."),
        ("MX", "mail.example.com"),
        ("MX", "65536 mail.example.com"),
        ("MX", "010 mail.example.com"),
        ("SRV", "0 5 www.example.com"),
        ("SRV", "0 5 -1 www.example.com"),
        ("CAA", "  "),
    ],
)
def test_what_designate_refuses(kind: str, data: str) -> None:
    assert problem(kind, data)


@pytest.mark.parametrize(
    "name",
    ["", ".", "a..b", "*", "a.*.b", "**.b", "-a.b", "a b", "a/b", f"{'a' * 64}.b", ".".join(["abcdefg"] * 33), "ä.b"],
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InvalidValue):
        recordset_name(name)


def test_names() -> None:
    assert recordset_name("*.Apps.Example.COM.") == "*.apps.example.com"
    assert recordset_name("_dmarc.example.com") == "_dmarc.example.com"
    assert zone_name("Example.com.") == "example.com"
    assert recordset_name(7) == 7  # the type of the field refuses it
    for each in ("com", "*.example.com"):
        with pytest.raises(InvalidValue):
            zone_name(each)


@pytest.mark.parametrize(
    ("name", "kind", "records"),
    [
        ("www.example.org", "A", ("192.0.2.1",)),
        ("wwwexample.com", "A", ("192.0.2.1",)),
        ("www.example.com", "CNAME", ("a.b", "c.d")),
        ("example.com", "CNAME", ("a.b",)),
        ("example.com", "NS", ("a.b",)),
        ("www.example.com", "SRV", ("0 5 443 a.b",)),
        ("www.example.com", "TLSA", ("3 1 1 ab",)),
        ("www.example.com", "A", ("192.0.2.1", "x")),
    ],
)
def test_contradictions(name: str, kind: str, records: tuple[str, ...]) -> None:
    assert len(list(contradictions(name, "example.com", kind, records))) == 1


def test_no_contradictions() -> None:
    assert not list(contradictions("example.com", "example.com", "MX", ("10 mail.example.com",)))
    assert not list(contradictions("_https._tcp.www.example.com", "example.com", "SRV", ("0 5 443 a.b",)))
    assert not list(contradictions("_443._tcp.example.com", "example.com", "TLSA", ("3 1 1 ab",)))
