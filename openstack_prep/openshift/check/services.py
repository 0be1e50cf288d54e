"""The services that the installer and the cluster call: in the catalogue, and recent enough.

Source: OpenShift installer docs/user/openstack/README.md; its preflight opens a block-storage client even
where no volume is wanted, and asks Neutron for standard-attr-tag.  API microversions: "Compute API".
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

# Certificates of the cloud's endpoints: Go's TLS refuses one without a subject alternative name.
#
# Source: OpenShift installer docs/user/openstack/README.md: since 4.10 its Go ignores the
# common name.

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
        mine = [endpoint for endpoint in cloud.endpoints if endpoint["interface"] == (cloud.interface or "public")]
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


TAGS = "standard-attr-tag"
CLUSTER_API_SINCE = 17
VOLUME_TYPE = "volumev3"
ANY_VOLUME_TYPE_SINCE = 21
"""The release whose gophercloud, 2.7.0 or later, also takes the type block-storage (its e3947338f of 2024-10-10).

go.mod of openshift/installer: 13a5f6b91e, release 4.20 in 2026-04, has 2.5.0; 833b2c96ef, release 4.21, brought 2.8.0.
"""
SERVER_GROUPS = (2, 64)  # the microversion in which the installer asks for server groups
NEEDED = {
    "compute": "there are no servers without it",
    "network": "there are no networks without it",
    "image": "the bootstrap machine's Ignition config lies there",
    "block-storage": "the installer opens a client for it before anything else, and stops, volumes or not",
}


def region(cloud: Cloud, named: str | None) -> Iterator[Diagnostic]:
    """Yield what is wrong with the region of the entry; checked first, because without it no service is found.

    Without one gophercloud takes the first endpoint of the catalogue, of whichever region that is (gophercloud 2.8.0,
    endpoint_location.go, V3EndpointURL).
    """
    regions = sorted({endpoint["region"] for endpoint in cloud.endpoints})
    if not regions:
        yield documented(
            code="catalog.empty",
            where=f"clouds.yaml: {cloud.name}",
            what="its login returns no catalogue of services, like a login without a project",
            fix="write the right project_name and project_domain_name into its auth",
        )
    elif (named and named not in regions) or (not named and len(regions) > 1):
        yield documented(
            code="region.invalid",
            where=f"clouds.yaml: {cloud.name}: region_name",
            what=f"{named!r} is not a region of the cloud" if named else "is missing, and the cloud has several",
            fix=f"write one of {', '.join(regions)}",
        )


def services(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield which services are missing or too old."""
    there = {name for name in NEEDED if context.cloud.has(name)}
    for name in (each for each in NEEDED if each not in there):
        yield Diagnostic(
            code="service.missing",
            where=f"service {name}",
            what=f"the catalogue lists no {name} for {context.cloud.interface or 'public'} use",
            why=NEEDED[name],
            fix=context.openstack("catalog", "list") + "  # shows what exists; the cloud's administrator can add to it",
        )
    if "block-storage" in there:
        yield from _volume_type(context)
    if "network" in there:
        yield from _tags(context)
    if "compute" in there:
        yield from _server_groups(context)


def _volume_type(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield whether the service of volumes has only types that the gophercloud of the release does not ask for."""
    interface = context.cloud.interface or "public"
    types = {endpoint["type"] for endpoint in context.cloud.endpoints if endpoint["interface"] == interface}
    if context.release >= ANY_VOLUME_TYPE_SINCE or VOLUME_TYPE in types:
        return
    yield Diagnostic(
        code="service.missing",
        where=f"service {VOLUME_TYPE}",
        what=f"the catalogue lists block-storage, and {context.cluster.release} asks for {VOLUME_TYPE}",
        why="the installer opens a client for it before anything else, and stops, volumes or not",
        fix=f"ask the administrator of the cloud for a service {VOLUME_TYPE} with the endpoint of block-storage",
    )


def _tags(context: CheckContext) -> Iterator[Diagnostic]:
    known = {each["alias"] for each in context.cloud.network.list("/extensions", "extensions")}
    if TAGS not in known:
        yield documented(
            code="service.no-tags",
            where="service network",
            what=f"Neutron has no extension {TAGS}",
            fix="choose another cloud: this Neutron is older than Rocky",
        )


def _server_groups(context: CheckContext) -> Iterator[Diagnostic]:
    newest = context.cloud.compute.newest_microversion
    if newest is not None and newest < SERVER_GROUPS:
        yield documented(
            code="service.too-old",
            where="service compute",
            what=f"Nova's newest microversion is {'.'.join(map(str, newest))}",
            fix="choose another cloud: this Nova is older than Rocky",
            status=DiagnosticStatus.ERROR if context.release >= CLUSTER_API_SINCE else DiagnosticStatus.WARNING,
        )
