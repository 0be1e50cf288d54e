"""What OpenSSL's words for a failed TLS connection mean, and what to do."""

from __future__ import annotations

import re

_REFUSED = re.compile(r"certificate verify failed: (.+?)\.? \(_ssl\.c")
_FIXES = {
    "has expired": "renew it there, or correct the clock of this machine",
    "not yet valid": "correct the clock of this machine, or wait",
    "mismatch": "use a name that the certificate has, or have it issued for this one",
}
"""By words of X509_verify_cert_error_string (OpenSSL 3.0, crypto/x509/x509_txt.c) and of Python's ssl."""
_NO_CA = "the file of CAs contains no certificate in PEM format; correct the file or its path"
_NO_KEY = "cert and key are not a certificate in PEM format and its own key; correct them"
_NO_TLS = "the server does not answer in TLS; use http:// if it has none"
_OTHERS = {
    "no certificate or crl found": _NO_CA,
    "[x509] pem lib": _NO_CA,
    "[ssl] pem lib": _NO_KEY,
    "key values mismatch": _NO_KEY,
    "wrong version number": _NO_TLS,
    "record layer failure": _NO_TLS,
}
"""By words of OpenSSL's errors; the last one is that of OpenSSL 3.2 and later for the one before it."""


def explain(text: str, trust: str) -> str | None:
    """Return why TLS cannot work, with a fix, by the text of an error; None if it may work later.

    ``trust`` tells how to have a CA trusted.
    """
    if found := _REFUSED.search(text):
        fix = next((fix for words, fix in _FIXES.items() if words in found[1]), trust)
        return f"the server's certificate is refused: {found[1]}; {fix}"
    return next((meaning for words, meaning in _OTHERS.items() if words in text.lower()), None)
