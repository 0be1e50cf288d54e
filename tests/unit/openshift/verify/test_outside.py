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
    Answers,
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


def leading(address: str, *forwardings: tuple[int, str, int], ids: bool = True, **more: Any) -> dict[str, Any]:
    """Return a floating IP whose ports lead to ports of addresses."""
    listed = [
        {"protocol": "tcp", "external_port": external, "internal_ip_address": to, "internal_port": internal}
        | ({"id": f"f{external}", "internal_port_id": f"id-of-{to}"} if ids else {})
        for external, to, internal in forwardings
    ]
    return floating(address, "ingress-port", port_id=None, fixed_ip_address=None, port_forwardings=listed, **more)


CREATE = (
    "openstack floating ip port forwarding create --internal-ip-address 10.0.0.7 --port id-of-10.0.0.7 --protocol tcp "
    f"--internal-protocol-port 443 --external-protocol-port 443 {INGRESS}"
)
DELETE = "openstack floating ip port forwarding delete"


@pytest.mark.parametrize(
    ("own", "other", "fix"),
    [
        ((443, "10.0.0.7", 8443), (), f"{DELETE} {INGRESS} f443 && {CREATE}"),
        ((443, "10.0.0.9", 443), (), f"{DELETE} {INGRESS} f443 && {CREATE}"),
        ((8443, "10.0.0.7", 443), (), f"{DELETE} {INGRESS} f8443 && {CREATE}"),
        ((22, "10.0.0.9", 22), (9443, "10.0.0.7", 443), f"{DELETE} 192.0.2.50 f9443 && {CREATE}"),
        ((22, "10.0.0.9", 22), (443, "10.0.0.9", 443), CREATE),
    ],
)
@pytest.mark.parametrize("ids", [True, False])
def test_port_forwardings_in_the_way(
    own: tuple[int, str, int], other: tuple[int, str, int] | tuple[()], fix: str, ids: bool
) -> None:
    """A port of a floating IP leads to one place, and to a port of an address leads one floating IP."""
    ips = [leading(INGRESS, (80, "10.0.0.7", 80), own, ids=ids), floating(API, "api-port")]
    ips += [leading("192.0.2.50", other, ids=ids)] if other else []
    (found,) = [
        each for each in links(with_port(id="id-of-10.0.0.7", ips=ips))["ingress"] if each.where == "floating IP"
    ]
    assert found.code == "floating-ip.not-forwarded"
    if ids or fix == CREATE:
        assert found.fix == fix
    else:  # Neutron before 2022.2
        assert found.fix.startswith("openstack floating ip port forwarding list ")
        assert DELETE not in found.fix
    assert contains(found.what, *map(str, (own if INGRESS in fix.split(" && ")[0] else other)[:1])) or fix == CREATE


def with_port(*, ips: list[dict[str, Any]], **port: Any) -> Answers:
    """Return a cluster whose virtual port of the routers has other fields, with these floating IPs."""
    return replace(changed("ingress-port", **port), floating_ips=ips)


def test_port_forwardings_to_the_address_in_another_network() -> None:
    """Two clusters of one project may have the same addresses."""
    theirs = leading(INGRESS, (80, "10.0.0.7", 80), (443, "10.0.0.7", 443))
    found = links(replace(right(), floating_ips=[floating(API, "api-port"), theirs]))["ingress"]
    assert "floating-ip.not-forwarded" in {each.code for each in found}


def test_no_port_forwarding_leads_to_ipv6() -> None:
    ips = [leading(INGRESS, (443, "10.0.0.7", 443)), floating(API, "api-port")]
    view = with_port(fixed_ips=[{"subnet_id": "sub", "ip_address": "fd00::7"}], ips=ips)
    (found,) = [each for each in links(view, ingress_floating_ip=INGRESS)["ingress"] if each.where == "floating IP"]
    assert (found.code, found.fix) == ("floating-ip.not-forwarded", "openstack port show id-of-ingress-port")


@pytest.mark.parametrize("forwards", [False, True])
def test_another_floating_ip_forwards_to_the_port(forwards: bool) -> None:
    """Neutron attaches no floating IP that has port forwardings, and only these can be detached from a port."""
    expected = leading(INGRESS, *([(22, "10.0.0.9", 22)] if forwards else []))
    other = leading("192.0.2.50", (443, "10.0.0.7", 443), (22, "10.0.0.9", 22))
    view = with_port(id="id-of-10.0.0.7", ips=[floating(API, "api-port"), expected, other])
    (found,) = [each for each in links(view, ingress_floating_ip=INGRESS)["ingress"] if each.where == "floating IP"]
    assert found.code == "floating-ip.other-address"
    attach = "" if forwards else f" && {REPAIR} --ingress-ip {INGRESS}"
    assert found.fix == f"{DELETE} 192.0.2.50 f443{attach}  # or expect 192.0.2.50"


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
        ({"fixed_ips": []}, f"error port.missing: no port of this project is named {ID}-api-port and has an address"),
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


def test_a_router_of_others_keeps_its_gateway() -> None:
    """Another floating IP fits, and cuts nobody off."""
    view = right()
    elsewhere = {**(view.routers or {})["router"], "external_gateway_info": {"network_id": "other"}}
    behind = port("", "10.9.0.1", network_id="theirs", device_id="router", device_owner="network:router_interface")
    free = [floating(API, "", port_id=None, router_id=None), *list(view.floating_ips or ())[1:]]
    view = replace(view, ports=[*view.ports, behind], routers={"router": elsewhere}, floating_ips=free)
    fixes = {link.code: link.fix for link in links(view)["api"] if link.status != "ok"}
    assert list(fixes) == ["floating-ip.detached", "router.other-gateway"]
    assert all(fix.startswith("openstack floating ip create other  # ") for fix in fixes.values())


@pytest.mark.parametrize(
    ("tags", "commands"),
    [
        ([], ["openstack router add subnet other sub", "openstack-prep post-ipi"]),
        (["openshiftClusterID=theirs-x7k2p"], ["openstack router create", "openstack router add subnet"]),
    ],
)
def test_a_router_comes_before_the_floating_ip(tags: list[str], commands: list[str]) -> None:
    """Neutron refuses a floating IP without it; a router of another cluster goes with that cluster."""
    free = [floating(each, "", port_id=None, router_id=None) for each in (API, INGRESS)]
    other = {"id": "other", "external_gateway_info": {"network_id": "ext"}, "routes": [], "tags": tags}
    view = replace(right(), interfaces=[], routers={"other": other}, floating_ips=free)
    found = {link.code: link.fix for link in links(view)["api"] if link.status != "ok"}
    assert list(found) == ["floating-ip.detached", "router.missing"]
    given = found["floating-ip.detached"].split(" && ")
    assert all(one.startswith(command) for one, command in zip(given, commands, strict=False))
    assert found["router.missing"].split(" && ") == given[:-1]
    assert given[-1].startswith("openstack-prep post-ipi")


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
