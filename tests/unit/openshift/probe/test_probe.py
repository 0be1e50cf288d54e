"""The probe as a whole, against listeners on loopback, behind what OpenStack shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.probe import THIS_MACHINE, Failure, ProbeOutcome, ProbeRequest, compare, probe
from openstack_prep.openshift.verify.chain import Chain, Verification
from openstack_prep.openshift.verify.links import evaluate
from openstack_prep.openshift.verify.target import VerificationRequest, wanted
from tests.unit.openshift.probe.listener import OK, certificate, listening, unused
from tests.unit.openshift.verify.view import ID, NAMES, Answers, changed, right

APPS = "*.apps.dev.example.com"
NOT_READY = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"


def on_ports(api: int, ingress: Sequence[int]) -> VerificationRequest:
    """Return what to verify, with services at these ports."""
    given = wanted(infra_id=ID, base_domain="example.com")
    one, two = given.targets
    return replace(given, targets=(replace(one, tcp=(api,)), replace(two, tcp=tuple(ingress))))


def seen(what: VerificationRequest, view: Answers) -> Verification:
    answers = {name: ResolvedName((address,), "the resolver") for name, address in NAMES.items()}
    return evaluate(wanted(infra_id=ID, base_domain="example.com"), view.view, answers)


def hosts(folder: Path) -> Path:
    """Return a hosts file that leads all names to loopback."""
    path = folder / "hosts"
    path.write_text("".join(f"127.0.0.1 {name}\n" for name in NAMES))
    return path


def probed(found: Verification, name: str) -> list[tuple[str, str, str]]:
    """Return status, code and hop of each link that the probe added."""
    plain = {chain.name: len(chain.links) for chain in seen(on_ports(1, (1, 2)), right()).chains}
    (chain,) = [each for each in found.chains if each.name == name]
    return [(link.status.value, link.code, link.where) for link in chain.links[plain[name] :]]


def test_everything_answers(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    routers = certificate(tmp_path / "apps", APPS)
    with (
        listening(pem=certificate(tmp_path, "api.dev.example.com")) as api,
        listening(pem=routers) as secure,
        listening() as plain,
    ):
        what = on_ports(api, (plain, secure))
        found = probe(what, seen(what, right()), hosts=hosts(tmp_path))
    assert found.ok
    assert probed(found, "api") == [("ok", "", "probe")]
    assert probed(found, "ingress") == [("ok", "", "probe")] * 3
    assert f"https://api.dev.example.com:{api}/readyz at 127.0.0.1 answers 200" in str(found)


def test_reality_against_what_openstack_shows(tmp_path: Path) -> None:
    """Nobody listens for the API although all links are right; the routers answer, but with an old certificate."""
    routers = certificate(tmp_path, "*.apps.old.example.com", since=-9, until=-2)
    with listening(NOT_READY, pem=routers) as secure, listening() as plain:
        what = on_ports(unused(), (plain, secure))
        found = probe(what, seen(what, right()), hosts=hosts(tmp_path))
    assert not found.ok
    assert probed(found, "api") == [("error", "probe.refused", "machines")]
    assert "OpenStack shows every link of this path as right" in str(found)
    codes = [code for _, code, _ in probed(found, "ingress")]
    assert codes == ["certificate.other-name", "certificate.invalid-now", "probe.not-ready"] * 2 + [""]


def test_a_link_that_is_broken_explains_what_the_probe_finds(tmp_path: Path) -> None:
    what = on_ports(unused(), (unused(), unused()))
    view = changed("worker-0-fghij-0", allowed_address_pairs=[])
    chain = probe(what, seen(what, view), hosts=hosts(tmp_path)).chains[1]
    last = chain.links[-1]
    assert (last.code, last.where) == ("probe.refused", "address pairs")
    assert "OpenStack shows the reason: address pairs" in last.why


def test_requests_pass_although_a_link_is_broken(tmp_path: Path) -> None:
    routers = certificate(tmp_path, APPS)
    with listening(OK, pem=routers) as secure, listening() as plain:
        what = on_ports(unused(), (plain, secure))
        view = changed("worker-0-fghij-0", allowed_address_pairs=[])
        found = probe(what, seen(what, view), hosts=hosts(tmp_path))
    assert probed(found, "ingress")[-1] == ("warning", "probe.disagrees", "address pairs")


def test_no_address_to_connect_to() -> None:
    what = wanted(infra_id=ID)
    found = probe(what, evaluate(what, right().view, {}))
    assert [chain.links[-1].code for chain in found.chains] == ["probe.no-address"] * 2
    given = wanted(infra_id=ID, api_floating_ip="127.0.0.1")
    given = replace(given, targets=(replace(given.targets[0], tcp=(unused(),)), given.targets[1]))
    assert probe(given, evaluate(given, right().view, {})).chains[0].links[-1].code == "probe.refused"


CHAIN = Chain(name="api", target="", links=(Diagnostic(status=DiagnosticStatus.OK, where="router", what="right"),))


def outcome(failure: Failure, port: int = 6443) -> ProbeOutcome:
    request = ProbeRequest(host="192.0.2.10", address="192.0.2.10", port=port)
    return ProbeOutcome(request=request, stage="TCP", failure=failure, detail="system")


@pytest.mark.parametrize(
    ("failures", "hop"),
    [
        ((Failure.TIMEOUT,), "floating IP"),
        ((Failure.TIMEOUT, Failure.TIMEOUT), "floating IP"),
        ((Failure.TIMEOUT, Failure.NONE), "security groups"),
        ((Failure.TIMEOUT, Failure.REFUSED), "security groups"),
        ((Failure.HOST_UNREACHABLE,), "address pairs"),
        ((Failure.NO_ROUTE,), "probe"),
    ],
)
def test_the_hop_where_a_connection_ends(failures: Sequence[Failure], hop: str) -> None:
    outcomes = [outcome(each, 6443 + number) for number, each in enumerate(failures)]
    first = next(iter(compare(CHAIN, outcomes)))
    assert first.where == hop
    assert first.status is (DiagnosticStatus.UNKNOWN if failures[0] is Failure.NO_ROUTE else DiagnosticStatus.ERROR)


def test_a_path_is_traced_where_the_probe_came_from() -> None:
    found = [replace(outcome(Failure.TIMEOUT), origin=origin) for origin in (THIS_MACHINE, "core@node")]
    first, other = (next(iter(compare(CHAIN, [each]))) for each in found)
    traced = ["traceroute", "-T", "-p", "6443", "192.0.2.10"]
    assert shlex.split(first.fix, comments=True) == traced
    assert shlex.split(other.fix, comments=True) == ["ssh", "core@node", *traced]
    assert (first.where, other.where) == ("floating IP", "floating IP")
