from __future__ import annotations

import pytest

from openstack_prep.base.certificate import explain

VERIFY = "SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {} (_ssl.c:1006)')"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (VERIFY.format("unable to get local issuer certificate"), "unable to get local issuer certificate; trust it"),
        (VERIFY.format("self-signed certificate in certificate chain"), "in certificate chain; trust it"),
        (VERIFY.format("certificate has expired"), "has expired; renew it there"),
        (VERIFY.format("certificate is not yet valid"), "is not yet valid; correct the clock"),
        (VERIFY.format("Hostname mismatch, certificate is not valid for 'a.b'."), "not valid for 'a.b'; use a name"),
        ("[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found (_ssl.c:4149)", "no certificate in PEM"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "does not answer in TLS"),
        ("SSLError(1, '[SSL] record layer failure (_ssl.c:1000)')", "does not answer in TLS"),
    ],
)
def test_what_cannot_work_is_explained(text: str, meaning: str) -> None:
    assert meaning in (explain(f"HTTPSConnectionPool(host='a'): (Caused by {text})", "trust it") or "")


@pytest.mark.parametrize(
    "text", ["SSLEOFError(8, '[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred in violation of protocol')", "reset"]
)
def test_what_may_work_later_is_not(text: str) -> None:
    assert explain(text, "trust it") is None
