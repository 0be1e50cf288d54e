from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.openshift.verify.view import (
    API,
    APPS,
    ID,
    INGRESS,
    NAMES,
    TAG,
    changed,
    floating,
    links,
    port,
    right,
    subnet,
    wrong,
)
from tests.unit.texts import Wording, contains

WRITE = (
    "openstack-prep names --cluster-name dev --base-domain example.com "
    f"--api {API} --ingress {INGRESS} --write /etc/hosts --replace  # or correct the DNS"
)
REPAIR = f"openstack-prep post-ipi --infra-id {ID}"


def test_nothing_is_wrong() -> None:
    assert wrong(right()) == []


@pytest.mark.parametrize("given", [{}, {"ingress_floating_ip": INGRESS}, {"ingress_floating_ip": f"fip-{INGRESS}"}])
def test_a_floating_ip_that_serves_nothing(given: dict[str, Any], wording: Wording) -> None:
    free = floating(INGRESS, "ingress-port", port_id=None, router_id=None, status="DOWN")
    view = replace(right(), floating_ips=[floating(API, "api-port"), free])
    wording(wrong(view, **given))


def forwarded(*ports: int, to: str = "10.0.0.7") -> dict[str, Any]:
    """Return a floating IP with port forwardings instead of a port, the first one as a range."""
    first, *rest = ({"protocol": "tcp", "internal_ip_address": to, "internal_port": each} for each in ports)
    ranges = {f"{side}_port_range": f"{ports[0]}:{ports[0]}" for side in ("internal", "external")}
    listed = [
        first | {"internal_port": None} | ranges,
        *(each | {"external_port": each["internal_port"]} for each in rest),
    ]
    return floating(INGRESS, "ingress-port", port_id=None, fixed_ip_address=None, port_forwardings=listed)


@pytest.mark.parametrize(
    ("ports", "to", "missing"),
    [
        ((80, 443), "10.0.0.7", ()),
        ((80,), "10.0.0.7", (443,)),
        ((80, 443), "10.0.0.8", (80, 443)),
    ],
)
@pytest.mark.parametrize("named", [{}, {"base_domain": None}, {"ingress_floating_ip": INGRESS}])
def test_port_forwardings(ports: tuple[int, ...], to: str, missing: tuple[int, ...], named: dict[str, Any]) -> None:
    view = replace(right(), floating_ips=[floating(API, "api-port"), forwarded(*ports, to=to)])
    found = [each for each in links(view, **named)["ingress"] if each.where == "floating IP"]
    if to != "10.0.0.7" and named == {"base_domain": None}:
        assert [each.code for each in found] == ["floating-ip.detached"]  # nothing says that this one is meant
        return
    assert [each.code for each in found] == (["floating-ip.not-forwarded"] if missing else [""])
    assert [word for word in found[0].fix.split() if word.isdigit()] == [str(each) for each in missing for _ in (0, 1)]


def test_no_floating_ip_and_no_name(wording: Wording) -> None:
    view = replace(right(), floating_ips=[floating(API, "api-port")])
    wording(wrong(view, base_domain=None)[1:])


def test_a_floating_ip_elsewhere() -> None:
    view = replace(right(), floating_ips=[floating(API, "api-port"), floating(INGRESS, "master-0-0")])
    said = f"{INGRESS} serves another port: {ID}-master-0-0 id-of-master-0-0; {REPAIR} --ingress-ip {INGRESS} --move"
    assert wrong(view) == [f"ingress, floating IP, error floating-ip.in-use: {said}"]


def test_not_the_floating_ip_that_is_expected() -> None:
    said = f"api, floating IP, error floating-ip.other-address: {API} serves the port, not 198.51.100.1; "
    said += f"openstack floating ip unset --port {API} && {REPAIR} --api-ip 198.51.100.1"
    assert wrong(right(), api_floating_ip="198.51.100.1")[1].startswith(said)
    none = replace(right(), floating_ips=[floating(INGRESS, "ingress-port")])
    found = wrong(none, api_floating_ip="198.51.100.1")
    assert found[1].startswith("api, floating IP, error floating-ip.missing: 198.51.100.1 is not ")


@pytest.mark.parametrize(
    ("status", "state"), [("ERROR", "error floating-ip.error"), ("DOWN", "unknown floating-ip.not-active")]
)
def test_a_floating_ip_that_is_not_active(status: str, state: str) -> None:
    view = replace(right(), floating_ips=[floating(API, "api-port", status=status), floating(INGRESS, "ingress-port")])
    (found,) = wrong(view)
    assert found.startswith(f"api, floating IP, {state}: {API} is ")


def test_names(wording: Wording) -> None:
    found = wrong(right(), names={**NAMES, "api.dev.example.com": "192.0.2.99", APPS[1]: "192.0.2.10"})
    assert found == [
        f"api, name, error dns.wrong-address: api.dev.example.com is 192.0.2.99 (hosts), not {API}; {WRITE}",
        f"ingress, name, error dns.wrong-address: {APPS[1]} is 192.0.2.10 (hosts), not {INGRESS}; {WRITE}",
    ]
    there = {name: address for name, address in NAMES.items() if name != APPS[0]}
    wording(wrong(right(), names=there))


def test_a_provider_network_needs_no_floating_ip() -> None:
    direct = {"api.dev.example.com": "10.0.0.5", APPS[0]: "10.0.0.7", APPS[1]: "10.0.0.7"}
    assert wrong(replace(right(), floating_ips=[], interfaces=[], routers={}), names=direct) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"gone": True}, f"error port.missing: no port of this project is named {ID}-api-port"),
        (
            {"tags": []},
            f"error port.no-tag: {ID}-api-port 10.0.0.5 does not carry the tag {TAG}; openstack "
            f"port set --tag {TAG} id-of",
        ),
        (
            {"tags": ["openshiftClusterID=dev2-q9m4t"]},
            f"error port.other-cluster: {ID}-api-port 10.0.0.5 carries openshiftClusterID=dev2-q9m4t",
        ),
        (
            {"admin_state_up": False},
            f"warning port.disabled: {ID}-api-port 10.0.0.5 is switched off; openstack port set --enable id-of",
        ),
    ],
)
def test_the_port(values: dict[str, Any], said: str) -> None:
    found = wrong(changed("api-port", **values))
    assert [each for each in found if each.startswith(f"api, port, {said}")]


def test_two_ports_of_the_name(wording: Wording) -> None:
    view = replace(right(), ports=[*right().ports, port("api-port", "10.0.0.9", id="second")])
    port_link, *unknown = wrong(view)  # the floating IP's is right: it serves one of the two
    assert contains(port_link, "error port.ambiguous", "2", "dev-x7k2p-api-port", "second")
    wording(port_link)
    assert {each.partition(":")[0] for each in unknown} == {
        "api, router, unknown port.missing",
        "api, address pairs, unknown port.missing",
    }
    nobody = replace(view, floating_ips=[floating(INGRESS, "ingress-port")])
    wording(wrong(nobody, names={})[1])


def test_ports_of_two_stacks_are_known_by_install_config(tmp_path: Path) -> None:
    """Users make them, with names of their own."""
    view = right()
    tags = [f"{ID}-dual-stack-vips-port"]
    ports = [{**each, "name": f"mine-{n}", "tags": tags} if n < 2 else each for n, each in enumerate(view.ports)]
    file = tmp_path / "install-config.yaml"
    vips = "apiVIPs: [10.0.0.5]\n    ingressVIPs: [10.0.0.7]"
    file.write_text(f"baseDomain: example.com\nmetadata: {{name: dev}}\nplatform:\n  openstack:\n    {vips}\n")
    assert wrong(replace(view, ports=ports), install_config=file) == []
    assert "give --install-config FILE" in wrong(replace(view, ports=ports))[0]


@pytest.mark.parametrize(
    ("router", "said"),
    [
        (
            {"external_gateway_info": None},
            "router.no-gateway: dev-x7k2p-router has no external gateway; openstack router set "
            "--external-gateway ext router",
        ),
        (
            {"external_gateway_info": {"network_id": "other"}},
            "router.other-gateway: dev-x7k2p-router has its gateway",
        ),
        (
            {"admin_state_up": False},
            "router.disabled: dev-x7k2p-router is switched off; openstack router set --enable router",
        ),
    ],
)
def test_the_router(router: dict[str, Any], said: str) -> None:
    view = right()
    routers = {"router": {**(view.routers or {})["router"], **router}}
    found = wrong(replace(view, routers=routers))
    assert [each.partition(",")[0] for each in found] == ["api", "ingress"]
    assert all(said in each for each in found)


def test_no_router_or_one_that_nobody_shows_us(wording: Wording) -> None:
    free = [floating(each, "", port_id=None, router_id=None) for each in (API, INGRESS)]
    none = replace(right(), interfaces=[], routers={}, floating_ips=free)
    assert contains(wrong(none)[1], "error router.missing", f"{ID}-nodes")
    theirs = replace(none, subnets={"sub": subnet(name="lent", project_id="another")})
    assert contains(wrong(theirs)[1], "unknown access.denied", "lent")
    serving = replace(right(), interfaces=[], routers={})
    wording(wrong(serving)[0])


def test_what_may_not_be_read_is_unknown() -> None:
    view = replace(right(), floating_ips=None, servers=None, groups=None, interfaces=None, routers=None, subnets=None)
    found = wrong(view)
    assert {each.split(", ")[1] for each in found} == {"floating IP", "router", "security groups", "machines"}
    assert {each.split(", ")[2].partition(":")[0] for each in found} == {
        "unknown access.denied",
        "unknown security-group.unreadable",
    }


def test_a_floating_ip_on_a_port_of_two_stacks() -> None:
    """It works until the virtual address moves, so it is no error."""
    six = [{"subnet_id": "s6", "ip_address": "fd00::5"}]
    view = right()
    (four,) = [port["fixed_ips"] for port in view.ports if port["name"] == f"{ID}-api-port"]
    found = links(changed("api-port", fixed_ips=[*four, *six]))["api"]
    (link,) = [each for each in found if each.code == "floating-ip.dual-stack"]
    assert (link.status, link.where) == ("warning", "floating IP")
