from __future__ import annotations

from datetime import UTC, datetime

import pytest

from openstack_prep.openshift.probe import Certificate, read_certificate

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "host", "right"),
    [
        ("api.dev.example.com", "API.dev.example.com", True),
        ("*.apps.dev.example.com", "console-openshift-console.apps.dev.example.com", True),
        ("*.apps.dev.example.com", "apps.dev.example.com", False),
        ("*.apps.dev.example.com", "a.b.apps.dev.example.com", False),
        ("*.example.com", "api.dev.example.com", False),
        ("2001:db8::1", "2001:DB8:0::1", True),
        ("192.0.2.1", "192.0.2.10", False),
    ],
)
def test_whom_a_certificate_is_for(name: str, host: str, right: bool) -> None:
    assert Certificate(names=(name,), since=NOW, until=NOW).is_for(host) is right


def test_no_certificate() -> None:
    with pytest.raises(ValueError, match=r"ASN.1 structure|parsing"):
        read_certificate(b"")
