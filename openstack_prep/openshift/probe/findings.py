"""From outcomes of connections to diagnostics, each at the hop where reality and OpenStack's word disagree: pure.

Source: RFC 1122, sections 3.2.2.1 and 4.2.3.4 (what a host or router answers when nothing listens, or nobody has the
address); Kubernetes 046d201c45, staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go (/readyz answers 200 or
500); OpenShift router 7a9f1a0d50, images/router/haproxy/conf/error-page-503.http (a route without a pod).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.fields import is_address
from openstack_prep.openshift.probe.connection import Failure, Outcome
from openstack_prep.openshift.verify.access_path import some
from openstack_prep.openshift.verify.chain import Chain, ok, unknown
from openstack_prep.openshift.verify.inside import GROUPS, MACHINES, PAIRS
from openstack_prep.openshift.verify.outside import FLOATING_IP, NAME

PROBE = "probe"
SOON = timedelta(days=14)
"""A certificate that ends within this time is reported."""
SHOWN_RIGHT = "OpenStack shows every link of this path as right"


def compare(chain: Chain, outcomes: Sequence[Outcome]) -> Iterator[Diagnostic]:
    """Yield a link per outcome, and one for a link that OpenStack shows as broken although requests pass."""
    if not outcomes:
        fix = "give --base-domain DOMAIN, --hosts FILE, or the floating IP"
        yield unknown("probe.no-address", PROBE, "no address to connect to is known", fix)
        return
    broken = next((link for link in chain.links if link.status is Status.ERROR), None)
    for each in outcomes:
        yield from _of(each, broken, outcomes)
    if broken is not None and all(map(_passes, outcomes)):
        yield Diagnostic(
            code="probe.disagrees",
            where=broken.where,
            what=f"requests pass, although OpenStack shows: {broken.what}",
            why="they take another path than the one through this project, or what OpenStack shows is not realised yet",
            fix="compare the addresses of the names with those of the cluster",
            status=Status.WARNING,
        )


def _passes(outcome: Outcome) -> bool:
    return outcome.failure is Failure.NONE and (outcome.status or 200) < 500


def _of(outcome: Outcome, broken: Diagnostic | None, all_of_them: Sequence[Outcome]) -> Iterator[Diagnostic]:
    if outcome.failure is Failure.NO_ROUTE:
        what = f"{_place(outcome)}: this machine has no route there ({outcome.detail})"
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
        yield ok(PROBE, f"{_place(outcome)} {answer} after {outcome.seconds:.1f} s")


def _place(outcome: Outcome) -> str:
    return f"{outcome.request.url} at {outcome.request.address}"


def _unconnected(outcome: Outcome, broken: Diagnostic | None, all_of_them: Sequence[Outcome]) -> Diagnostic:
    """Return why TCP did not connect; a link that OpenStack shows as broken explains it."""
    hop, reason, fix = _hop(outcome, all_of_them)
    code = "probe.refused" if outcome.failure is Failure.REFUSED else "probe.no-answer"
    how = "refused" if outcome.failure is Failure.REFUSED else f"no connection ({outcome.detail})"
    what = f"{_place(outcome)}: {how} after {outcome.seconds:.1f} s"
    if broken is not None:
        shown = f"OpenStack shows the reason: {broken.where}: {broken.what}"
        return Diagnostic(code=code, where=broken.where, what=what, why=shown, fix=broken.fix)
    return Diagnostic(code=code, where=hop, what=what, why=f"{SHOWN_RIGHT}, but {reason}", fix=fix)


def _hop(outcome: Outcome, all_of_them: Sequence[Outcome]) -> tuple[str, str, str]:
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
        return GROUPS, reason, f"check firewalls between this machine and {address}, then the security groups"
    reason = "nothing answers: a firewall drops it, Neutron has not realised the address, or no machine has it"
    return FLOATING_IP, reason, f"traceroute -T -p {port} {address}  # shows the last hop that answers"


def _certificate(outcome: Outcome) -> Iterator[Diagnostic]:
    certificate, host = outcome.certificate, outcome.request.host
    if certificate is None:
        return
    now = datetime.now(UTC)
    if not is_address(host) and not certificate.is_for(host):
        yield Diagnostic(
            code="certificate.other-name",
            where=NAME,
            what=f"{_place(outcome)}: the certificate is for {some(certificate.names) or 'no name'}, not for {host}",
            why="another cluster, a proxy or a load balancer answers there, or the cluster has a certificate of yours",
            fix="correct the address of the name, or the certificate",
        )
    if not certificate.since <= now <= certificate.until:
        when = f"from {certificate.since:%Y-%m-%d} until {certificate.until:%Y-%m-%d}"
        yield Diagnostic(
            code="certificate.invalid-now",
            where=MACHINES,
            what=f"{_place(outcome)}: the certificate is valid {when}; this machine's date is {now:%Y-%m-%d}",
            why="clients refuse it",
            fix="correct the clock of this machine, or renew the certificate (oc adm certificate approve)",
        )
    elif certificate.until - now < SOON:
        yield Diagnostic(
            code="certificate.ends-soon",
            where=MACHINES,
            what=f"{_place(outcome)}: the certificate ends on {certificate.until:%Y-%m-%d %H:%M} UTC",
            why="clients refuse it from then on; a running cluster renews its own certificates before",
            fix="make sure that all machines of the control plane run",
            status=Status.WARNING,
        )


def _unanswered(outcome: Outcome) -> Diagnostic:
    """Return a connection that broke in TLS or HTTP: somebody has the address, but not this service."""
    return Diagnostic(
        code="probe.other-service",
        where=MACHINES,
        what=f"{_place(outcome)}: {outcome.stage} failed: {outcome.detail or outcome.failure}",
        why="something has the address and listens, but does not answer as this service does",
        fix="check haproxy on the machines, and proxies and load balancers between",
    )


def _not_ready(outcome: Outcome) -> Diagnostic:
    return Diagnostic(
        code="probe.not-ready",
        where=MACHINES,
        what=f"{_place(outcome)} answers {outcome.status}",
        why="the path is right, but the service is not ready",
        fix="wait for the installation; then oc get clusteroperators",
    )
