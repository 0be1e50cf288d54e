"""TLS with an API server: whom to trust, and the client certificate.

The context is made here rather than by the Kubernetes client, which writes the client key to a file and leaves the file
behind when the process is killed; and which reports a damaged certificate only as an error of the connection.
"""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime

from openstack_prep.base.errors import ConfigError
from openstack_prep.kubernetes.api.kubeconfig import Access

RENEW = "renew it, or copy the kubeconfig from the cluster again"


def context_of(access: Access) -> ssl.SSLContext:
    """Return the TLS context for an API server; raises ConfigError for what cannot work."""
    try:
        # comments between certificates may contain any characters
        authorities = access.ca.encode("ascii", "ignore").decode() if access.ca else None
        context = ssl.create_default_context(cadata=authorities)
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{access.name}: certificate-authority is not a certificate in PEM format; {RENEW}") from None
    # clusters sign their own certificates, often without the extensions that Python 3.13 wants; kubectl accepts these
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate and access.key:
        _refuse_expired(access.name, access.certificate)
        _load(context, access.name, f"{access.certificate}\n{access.key.reveal()}\n")
    return context


def _refuse_expired(name: str, certificate: str) -> None:
    """Refuse a certificate whose time is over: an API server only answers 401, like for any other wrong one."""
    from cryptography import x509

    try:
        until = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    except ValueError:
        raise ConfigError(f"{name}: client-certificate is not a certificate in PEM format; {RENEW}") from None
    if until < datetime.now(UTC):
        raise ConfigError(f"{name}: client-certificate expired on {until:%Y-%m-%d %H:%M} UTC; {RENEW}")


def _load(context: ssl.SSLContext, name: str, pem: str) -> None:
    """Load a certificate with its key, which ssl only reads from a file: one of mode 0600, deleted at once."""
    with tempfile.NamedTemporaryFile("w", prefix="openstack-prep-", encoding="utf-8") as file:
        file.write(pem)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: b"")  # without a password, OpenSSL would prompt
        except (ssl.SSLError, OSError) as error:
            if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
                what = f"client-key does not belong to client-certificate; {RENEW}"
            else:
                what = "client-key cannot be read; use a key in PEM format without a password"
            raise ConfigError(f"{name}: {what}") from None
