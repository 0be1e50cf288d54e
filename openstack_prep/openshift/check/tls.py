"""Certificates of the cloud's endpoints: Go's TLS refuses one without a subject alternative name.

Source: OpenShift installer docs/user/openstack/README.md: since 4.10 its Go ignores the
common name.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.reports.codes import documented

SINCE = 10
CALLED = ("compute", "network", "image", "block-storage", "volumev3", "object-store", "load-balancer")
TIMEOUT = 10.0  # seconds to connect, and for the handshake


def identity(cloud: Cloud, release: int) -> Iterator[Diagnostic]:
    """Yield what is wrong with Keystone's certificate; checked before the login, which would fail."""
    if cloud.tls.verify:
        yield from certificates([cloud.auth_url], release, cacert=cloud.tls.cacert)


def endpoints(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the certificates of the other services that the installer or the cluster calls."""
    cloud = context.cloud
    if cloud.tls.verify:
        mine = [each for each in cloud.endpoints if each["interface"] == (cloud.interface or "public")]
        urls = {each["url"] for each in mine if each["type"] in CALLED}
        others = [url for url in urls if _host(url) != _host(cloud.auth_url)]
        yield from certificates(others, context.release, cacert=cloud.tls.cacert)


def certificates(urls: Iterable[str], release: int, *, cacert: str | None = None) -> Iterator[Diagnostic]:
    """Yield the https endpoints whose certificates the installer or the cluster refuses."""
    for host, port in sorted({_host(url) for url in urls if url.startswith("https://")}):
        yield from _one(host, port, release, cacert)


def _host(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 443


def _one(host: str, port: int, release: int, cacert: str | None) -> Iterator[Diagnostic]:
    where, quoted = f"https://{host}:{port}", shell.quote(f"{host}:{port}")
    try:
        names = _names(host, port, cacert)
    except ssl.SSLCertVerificationError as error:
        yield documented(
            code="certificate.unverified",
            where=where,
            what=f"its certificate cannot be verified: {error.verify_message}",
            fix=f"openssl s_client -connect {quoted} -showcerts  # then name its CA's file in cacert",
        )
    except OSError as error:
        yield documented(
            code="endpoint.unreachable",
            where=where,
            what=f"this machine cannot connect: {error}",
            fix=f"curl -v {shell.quote(where)}  # shows what fails: name, route or firewall",
            status=DiagnosticStatus.WARNING,  # a proxy may lead there
        )
    else:
        if not names:
            yield Diagnostic(
                code="certificate.no-alternative-name",
                where=where,
                what="its certificate has no subject alternative name",
                why=f"since 4.{SINCE} the common name is ignored" if release >= SINCE else "later releases require one",
                fix="its administrator must re-issue the certificate, for example with "
                f"openssl req -addext subjectAltName=DNS:{host}",
                status=DiagnosticStatus.ERROR if release >= SINCE else DiagnosticStatus.WARNING,
            )


def _names(host: str, port: int, cacert: str | None) -> list[str]:
    """Return the alternative names of a verified certificate."""
    context = ssl.create_default_context(cafile=cacert)
    context.check_hostname = False  # it would also accept a common name
    with (
        socket.create_connection((host, port), TIMEOUT) as connected,
        context.wrap_socket(connected, server_hostname=host) as secured,
    ):
        certificate = secured.getpeercert() or {}
    return [str(pair[1]) for pair in certificate.get("subjectAltName", ())]
