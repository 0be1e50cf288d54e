"""Real connections to a cluster from this machine, compared with what OpenStack shows of the same paths.

Requests go straight to the addresses of the names, without a proxy and without credentials; nothing is changed.

Source: RFC 6125, section 6.4 (a wildcard stands for one whole label, the first one); Go ignores the common name.

Source: RFC 1122, sections 3.2.2.1 and 4.2.3.4 (what a host or router answers when nothing listens, or nobody has the
address); Kubernetes 046d201c45, staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go (/readyz answers 200 or
500); OpenShift router 7a9f1a0d50, images/router/haproxy/conf/error-page-503.http (a route without a pod).

Source: Neutron 29.0.0, ovn_client.py (_get_snat_cidrs_for_external_router: SNAT for 0.0.0.0/0 by default); OVN
v24.03.0, v23.09.1 and v23.06.3, northd/northd.c (lr_out_snat: no SNAT of replies; earlier, the answer from a floating
IP to a machine behind the same router is translated back too early, and leaves the router on the outside).
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Literal

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.fields import is_address
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.openshift.ssh_tunnel import LOGIN_SECONDS, SSHTunnel
from openstack_prep.openshift.verify.access_path import some
from openstack_prep.openshift.verify.chain import Chain, Verification, ok, unknown
from openstack_prep.openshift.verify.inside import GROUPS, MACHINES, PAIRS
from openstack_prep.openshift.verify.outside import FLOATING_IP, NAME
from openstack_prep.openshift.verify.target import VerificationRequest, VerifiedService
from openstack_prep.reports.codes import documented

# --- certificate ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What decides whether a client accepts a certificate, besides the authority that signed it."""

    names: tuple[str, ...]
    """Its alternative names: host names, which may begin with a wildcard, and addresses."""
    since: datetime
    until: datetime

    def is_for(self, host: str) -> bool:
        """Whether one of the names stands for a host."""
        if is_address(host):
            wanted = ipaddress.ip_address(host)
            return any(is_address(name) and ipaddress.ip_address(name) == wanted for name in self.names)
        _, _, parent = host.lower().partition(".")
        return any(name.lower() in (host.lower(), f"*.{parent}") for name in self.names)


def read_certificate(der: bytes) -> Certificate:
    """Return what a certificate says; raises ValueError."""
    from cryptography import x509  # only --probe needs it

    found = x509.load_der_x509_certificate(der)
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    hosts = names.get_values_for_type(x509.DNSName)
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return Certificate(names=(*hosts, *addresses), since=found.not_valid_before_utc, until=found.not_valid_after_utc)


# --- connection -------------------------------------------------------------------------------


THIS_MACHINE = "this machine"
SECONDS = 5.0
"""Seconds for one connection, from the first packet to the status of the answer."""
LONGEST_LINE = 4096
"""Bytes of an answer that may precede the end of its first line."""
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})\b")


class Failure(StrEnum):
    """Why a connection did not succeed."""

    NONE = ""
    TIMEOUT = "timeout"
    REFUSED = "refused"
    HOST_UNREACHABLE = "host-unreachable"
    NO_ROUTE = "no-route"
    CLOSED = "closed"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class ProbeRequest:
    """Where to connect, and what to request there."""

    host: str
    """Host name that TLS and HTTP ask for; the address itself if there is no name."""
    address: str
    port: int
    path: str | None = None
    """Path to request by HTTPS; None: the connection is closed as soon as it is open."""

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}{self.path}" if self.path else f"TCP {self.port}"


@dataclass(frozen=True, kw_only=True)
class ProbeOutcome:
    """How far a request came."""

    request: ProbeRequest
    stage: Literal["TCP", "TLS", "HTTP"]
    """The last stage that was tried."""
    failure: Failure = Failure.NONE
    detail: str = ""
    """The system's or the TLS library's own words."""
    certificate: Certificate | None = None
    status: int | None = None
    """Status of the HTTP answer."""
    seconds: float | None = 0.0
    """How long it took; None: left out, so that the same outcome has the same words."""
    origin: str = THIS_MACHINE
    """Where it was sent from."""

    @property
    def lasted(self) -> str:
        return "" if self.seconds is None else f" after {self.seconds:.1f} s"

    @property
    def connected(self) -> bool:
        """Whether TCP connected: something has the address and listens."""
        return self.stage != "TCP" or self.failure is Failure.NONE


def connect(request: ProbeRequest, seconds: float = SECONDS) -> ProbeOutcome:
    """Carry out a request; never raises for what the network or the peer does."""
    attempt = _Attempt(request, seconds)
    try:
        with socket.create_connection((request.address, request.port), seconds) as opened:
            if request.path is not None:
                attempt.over_tls(opened)
    except (OSError, ValueError) as error:
        return attempt.outcome(error)
    return attempt.outcome()


def connect_from(target: str, request: ProbeRequest, seconds: float = SECONDS) -> ProbeOutcome:
    """Carry out a request from a machine that ssh reaches; raises ConfigError if the login fails."""
    attempt = _Attempt(request, seconds + LOGIN_SECONDS, origin=target)
    with SSHTunnel(target, request.address, request.port) as tunnel:
        try:
            if request.path is not None:
                attempt.over_tls(tunnel.socket)
            else:  # only an answer shows that the connection is open
                attempt.answered(tunnel.socket)
        except (OSError, ValueError) as error:
            refusal = tunnel.refusal()
            if refusal or isinstance(error, TimeoutError):
                attempt.stage = "TCP"
            return attempt.outcome(refusal or error)
    return attempt.outcome()


class _Attempt:
    """A request under way: how far it has come."""

    def __init__(self, request: ProbeRequest, seconds: float, origin: str | None = None) -> None:
        self.request, self.origin = request, origin
        self.started = time.monotonic()
        self.until = self.started + seconds
        self.stage: Literal["TCP", "TLS", "HTTP"] = "TCP"
        self.certificate: Certificate | None = None
        self.status: int | None = None

    def over_tls(self, opened: socket.socket) -> None:
        self.stage = "TLS"
        opened.settimeout(_left(self.until))
        with _unverified().wrap_socket(opened, server_hostname=self.request.host) as secured:
            self.certificate = read_certificate(secured.getpeercert(binary_form=True) or b"")
            self.stage = "HTTP"
            self.status = _status(secured, self.request, self.until)

    def answered(self, opened: socket.socket) -> None:
        opened.settimeout(_left(self.until))
        opened.sendall(b"GET / HTTP/1.0\r\n\r\n")
        if not opened.recv(1):
            raise ConnectionResetError(errno.ECONNRESET, "closed without an answer")

    def outcome(self, error: OSError | ValueError | None = None) -> ProbeOutcome:
        given = (
            {"origin": self.origin, "seconds": None} if self.origin else {"seconds": time.monotonic() - self.started}
        )
        return ProbeOutcome(
            request=self.request,
            stage=self.stage,
            failure=Failure.NONE if error is None else _failure(error),
            detail="" if error is None else _detail(error),
            certificate=self.certificate,
            status=self.status,
            **given,
        )


def _unverified() -> ssl.SSLContext:
    """Return a context that accepts any certificate: a cluster's own authority signs it, and it is examined later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _status(secured: ssl.SSLSocket, request: ProbeRequest, until: float) -> int:
    """Return the status of the answer; raises ValueError if it is no HTTP."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    lines = [f"GET {request.path} HTTP/1.1", f"Host: {host}:{request.port}", "Connection: close", "", ""]
    secured.settimeout(_left(until))
    secured.sendall("\r\n".join(lines).encode())
    answer = b""
    while b"\n" not in answer and len(answer) < LONGEST_LINE:
        secured.settimeout(_left(until))
        more = secured.recv(LONGEST_LINE)
        if not more:
            raise ConnectionResetError(errno.ECONNRESET, "closed without an answer")
        answer += more
    found = _STATUS.match(answer)
    if found is None:
        raise ValueError("the answer is not HTTP")
    return int(found[1])


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(errno.ETIMEDOUT, "no answer in time")
    return left


def _failure(error: Exception) -> Failure:
    if isinstance(error, TimeoutError) and not isinstance(error, ssl.SSLError):
        return Failure.TIMEOUT
    if isinstance(error, ConnectionRefusedError):
        return Failure.REFUSED
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return Failure.CLOSED
    if isinstance(error, ssl.SSLError):  # its errno is not the system's
        return Failure.INVALID
    number = getattr(error, "errno", None)
    if number == errno.EHOSTUNREACH:
        return Failure.HOST_UNREACHABLE
    if number in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EACCES, errno.EPERM):
        return Failure.NO_ROUTE
    return Failure.INVALID


def _detail(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "").replace("_", " ").lower() or str(error)
    return str(getattr(error, "strerror", None) or error)


# --- finding ----------------------------------------------------------------------------------


PROBE = "probe"
SOON = timedelta(days=14)
"""A certificate that ends within this time is reported."""
SHOWN_RIGHT = "OpenStack shows every link of this path as right"


def compare(chain: Chain, outcomes: Sequence[ProbeOutcome]) -> Iterator[Diagnostic]:
    """Yield a link per outcome, and one for a link that OpenStack shows as broken although requests pass."""
    if not outcomes:
        fix = "give --base-domain DOMAIN, --hosts FILE, or the floating IP"
        yield unknown("probe.no-address", PROBE, "no address to connect to is known", fix)
        return
    broken = next((link for link in chain.links if link.status is DiagnosticStatus.ERROR), None)
    for outcome in outcomes:
        yield from _of(outcome, broken, outcomes)
    if broken is not None and all(map(_passes, outcomes)):
        yield documented(
            code="probe.disagrees",
            where=broken.where,
            what=f"requests pass, although OpenStack shows: {broken.what}",
            status=DiagnosticStatus.WARNING,
        )


def _passes(outcome: ProbeOutcome) -> bool:
    return outcome.failure is Failure.NONE and (outcome.status or 200) < 500


def _of(outcome: ProbeOutcome, broken: Diagnostic | None, all_of_them: Sequence[ProbeOutcome]) -> Iterator[Diagnostic]:
    if outcome.failure is Failure.NO_ROUTE:
        what = f"{_place(outcome)}: {outcome.origin} has no route there ({outcome.detail})"
        yield unknown("probe.no-route", PROBE, what, "probe from a machine that has an address of the same IP version")
        return
    if not outcome.connected:
        yield _unconnected(outcome, broken, all_of_them)
        return
    yield from _certificate(outcome)
    if outcome.failure is not Failure.NONE:
        yield _unanswered(outcome)
    elif outcome.status is not None and outcome.status >= 500:
        yield _not_ready(outcome)
    else:
        answer = f"answers {outcome.status}" if outcome.status else "connects"
        yield ok(PROBE, f"{_place(outcome)} {answer}{outcome.lasted}")


def _place(outcome: ProbeOutcome) -> str:
    return f"{outcome.request.url} at {outcome.request.address}"


def _unconnected(outcome: ProbeOutcome, broken: Diagnostic | None, all_of_them: Sequence[ProbeOutcome]) -> Diagnostic:
    """Return why TCP did not connect; a link that OpenStack shows as broken explains it."""
    hop, reason, fix = _hop(outcome, all_of_them)
    code = "probe.refused" if outcome.failure is Failure.REFUSED else "probe.no-answer"
    how = "refused" if outcome.failure is Failure.REFUSED else f"no connection ({outcome.detail})"
    what = f"{_place(outcome)}: {how}{outcome.lasted}"
    if broken is not None:
        shown = f"OpenStack shows the reason: {broken.where}: {broken.what}"
        return Diagnostic(code=code, where=broken.where, what=what, why=shown, fix=broken.fix)
    return Diagnostic(code=code, where=hop, what=what, why=f"{SHOWN_RIGHT}, but {reason}", fix=fix)


def _hop(outcome: ProbeOutcome, all_of_them: Sequence[ProbeOutcome]) -> tuple[str, str, str]:
    """Return at which hop a connection ended, the reason, and what to do."""
    address, port = outcome.request.address, outcome.request.port
    if outcome.failure is Failure.REFUSED:
        reason = f"the machine that has the address listens on no port {port}"
        return MACHINES, reason, "wait for the installation, then check haproxy and keepalived on the machines"
    if outcome.failure is Failure.HOST_UNREACHABLE:
        reason = "a router answers that no machine has the address"
        return PAIRS, reason, "check keepalived on the machines, and that Neutron has realised the address pairs"
    others = [each for each in all_of_them if each.request.address == address and each.request.port != port]
    if any(each.connected or each.failure is Failure.REFUSED for each in others):
        reason = f"something drops TCP {port} to an address that answers on another port"
        return GROUPS, reason, f"check firewalls between {outcome.origin} and {address}, then the security groups"
    reason = "nothing answers: a firewall drops it, Neutron has not realised the address, or no machine has it"
    trial = ["traceroute", "-T", "-p", str(port), address]
    if outcome.origin == THIS_MACHINE:
        return FLOATING_IP, reason, f"{shell.join(trial)}  # shows the last hop that answers"
    reason += f", or the router loses the answers to {outcome.origin}, as OVN before 24.03 does for machines behind it"
    fix = f"{shell.join(['ssh', outcome.origin, *trial])}  # and verify --probe from a machine outside of the cloud"
    return FLOATING_IP, reason, fix


def _certificate(outcome: ProbeOutcome) -> Iterator[Diagnostic]:
    certificate, host = outcome.certificate, outcome.request.host
    if certificate is None:
        return
    now = datetime.now(UTC)
    if not is_address(host) and not certificate.is_for(host):
        yield documented(
            code="certificate.other-name",
            where=NAME,
            what=f"{_place(outcome)}: the certificate is for {some(certificate.names) or 'no name'}, not for {host}",
        )
    if not certificate.since <= now <= certificate.until:
        when = f"from {certificate.since:%Y-%m-%d} until {certificate.until:%Y-%m-%d}"
        yield documented(
            code="certificate.invalid-now",
            where=MACHINES,
            what=f"{_place(outcome)}: the certificate is valid {when}; this machine's date is {now:%Y-%m-%d}",
            fix="correct the clock of this machine, or renew the certificate (oc adm certificate approve)",
        )
    elif certificate.until - now < SOON:
        yield documented(
            code="certificate.ends-soon",
            where=MACHINES,
            what=f"{_place(outcome)}: the certificate ends on {certificate.until:%Y-%m-%d %H:%M} UTC",
            status=DiagnosticStatus.WARNING,
        )


def _unanswered(outcome: ProbeOutcome) -> Diagnostic:
    """Return a connection that broke in TLS or HTTP: somebody has the address, but not this service."""
    return documented(
        code="probe.other-service",
        where=MACHINES,
        what=f"{_place(outcome)}: {outcome.stage} failed: {outcome.detail or outcome.failure}",
        why="something has the address and listens, but does not answer as this service does",
    )


def _not_ready(outcome: ProbeOutcome) -> Diagnostic:
    return documented(
        code="probe.not-ready",
        where=MACHINES,
        what=f"{_place(outcome)} answers {outcome.status}",
        why="the path is right, but the service is not ready",
    )


# --- probe ------------------------------------------------------------------------------------


PATHS = {"api": "/readyz", "ingress": "/"}
"""What is requested: Kubernetes answers /readyz without credentials, the console its first page."""
JOBS, LOGINS = 32, 5
"""Maximum numbers of connections at the same time: from here, and by ssh."""


def carry_out(requests: Sequence[ProbeRequest], origin: str | None = None) -> Sequence[ProbeOutcome]:
    """Carry out requests at the same time, from here or from a machine that ssh reaches; raises ConfigError.

    Outcomes have the order of the requests.
    """
    # an sshd refuses some of more than ten logins at a time (sshd_config(5), MaxStartups)
    with ThreadPoolExecutor(min(LOGINS if origin else JOBS, len(requests)) or 1) as pool:
        return list(pool.map(partial(connect_from, origin) if origin else connect, requests))


def probe(
    what: VerificationRequest,
    shown: Verification,
    *,
    hosts: Path | None = None,
    origin: str | None = None,
    timed: bool = True,
) -> Verification:
    """Return a verification with the outcomes of real connections behind the links of each chain.

    ``origin`` is a machine that ssh reaches, from which the requests are sent; by default, they are sent from here.
    Without ``timed``, no link says how long one took. Raises SpecError if the hosts file cannot be read, ConfigError
    if ssh cannot log in.
    """
    requests: dict[str, list[ProbeRequest]] = {target.name: list(_requests(target, hosts)) for target in what.targets}
    everything = list(dict.fromkeys(each for listed in requests.values() for each in listed))
    outcomes = dict(zip(everything, carry_out(everything, origin), strict=True))
    chains = []
    for chain in shown.chains:
        found: list[ProbeOutcome] = [outcomes[request] for request in requests[chain.name]]
        links = compare(chain, found if timed else [replace(outcome, seconds=None) for outcome in found])
        chains.append(replace(chain, links=(*chain.links, *links)))
    return replace(shown, chains=tuple(chains))


def _requests(target: VerifiedService, hosts: Path | None) -> Iterator[ProbeRequest]:
    """Yield a request per name, address and TCP port of a target; the last port speaks HTTPS."""
    given = (target.given,) if target.given and is_address(target.given) else ()
    answers = resolve(target.hosts, hosts=hosts)
    named = [(host, address) for host in target.hosts for address in answers[host].addresses or given]
    *plain, secure = target.tcp
    for host, address in named or [(address, address) for address in given]:
        yield ProbeRequest(host=host, address=address, port=secure, path=PATHS[target.name])
    for address in dict.fromkeys(address for _, address in named):
        for port in plain:
            yield ProbeRequest(host=address, address=address, port=port)
