"""What a request passes on its way to an exposure, when everything is right, and when one thing is not."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.exposures.cluster_fields import ClusterFields, NodeSelection
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.paths.examination import ExposurePath, PathReport
from openstack_prep.exposures.paths.hops import View, hops
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify.chain import Chain
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, GroupRecord, PortRecord, RouterRecord
from tests.unit.conftest import port_row
from tests.unit.texts import contains

MAC = "fa:16:3e:00:00:01"
ADDRESS, PUBLIC = "10.1.0.209", "192.0.2.10"
SHOP = Exposed(
    name="shop",
    cluster="one",
    target=ExposureTarget(service="shop/frontend"),
    ports=(ExposedPort(port=443),),
    how="metallb",
    address=ADDRESS,
    floating_ip="shop",
    names=("shop.example.com",),
)
OTHER = {"protocol": "tcp", "external_port": 22, "internal_port": 2222, "internal_ip_address": "10.1.0.9"}
PLACED = PlacedExposure(exposure=SHOP, address=ADDRESS, public_address=PUBLIC)


def node(name: str, *pairs: str, **more: Any) -> PortRecord:
    fields: dict[str, Any] = {
        "id": f"id-{name}",
        "name": name,
        "mac_address": MAC,
        "fixed_ips": [{"subnet_id": "s", "ip_address": "10.1.0.11"}],
        "allowed_address_pairs": [{"ip_address": each, "mac_address": MAC} for each in pairs],
        "security_groups": ["g"],
        "port_security_enabled": True,
    }
    return PortRecord.read(port_row(**fields | more))


def groups(number: int, remote: str | None = None, protocol: str = "tcp") -> dict[str, GroupRecord]:
    """Return the group of the nodes, with one rule."""
    rule = {
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": protocol,
        "port_range_min": number,
        "port_range_max": number,
        "remote_ip_prefix": remote,
        "remote_group_id": None,
        "remote_address_group_id": None,
    }
    return {"g": GroupRecord.read({"id": "g", "security_group_rules": [rule]})}


def floating(**more: Any) -> FloatingIPRecord:
    own = {"floating_ip_address": PUBLIC, "port_id": "p", "fixed_ip_address": ADDRESS}
    return FloatingIPRecord.read({"id": "f", "floating_network_id": "x", **own} | more)


def router(**more: Any) -> dict[str, RouterRecord]:
    return {"r": RouterRecord.read({"id": "r", "name": "nodes", "external_gateway_info": None, "routes": []} | more)}


RIGHT = View(
    spec="spec.yaml",
    cloud="mine",
    cluster=ClusterFields(name="one", directory="one"),
    nodes=[node("n1", ADDRESS), node("n2", "10.1.0.208/29")],
    groups=groups(443),
    floating_ips=[floating(router_id="r")],
    routers=router(admin_state_up=True),
    answers={"shop.example.com": ResolvedName((PUBLIC,), "the resolver")},
)


def found(placed: PlacedExposure, view: View) -> list[Diagnostic]:
    return [each for each in hops(placed, view) if each.status is not DiagnosticStatus.OK]


def test_all_is_right() -> None:
    wheres = [each.where for each in hops(PLACED, RIGHT)]
    assert found(PLACED, RIGHT) == []
    assert wheres == ["name", "floating IP", "address", "address pairs", "security groups", "files"]


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        ({"nodes": [node("n1"), node("n2", ADDRESS)]}, "pairs.missing", "address pairs"),
        ({"nodes": []}, "machine.missing", "nodes"),
        ({"nodes": [node("n1", ADDRESS), node("n2", ADDRESS, admin_state_up=False)]}, "port.down", "nodes"),
        ({"routers": router(admin_state_up=False)}, "router.disabled", "router"),
        ({"groups": groups(80)}, "security-group.blocks", "security groups"),
        ({"groups": groups(443, "10.9.0.0/24")}, "security-group.blocks", None),
        ({"groups": {}}, "security-group.unreadable", "security groups"),
        ({"floating_ips": []}, "floating-ip.missing", "floating IP"),
        ({"floating_ips": [floating(port_id=None)]}, "floating-ip.detached", "floating IP"),
        ({"floating_ips": [floating(fixed_ip_address="10.1.0.9")]}, "floating-ip.in-use", "floating IP"),
        ({"answers": {"shop.example.com": ResolvedName((), "the resolver")}}, "dns.missing", "name"),
        ({"answers": {"shop.example.com": ResolvedName(("198.51.100.1",), "hosts")}}, "dns.wrong-address", "name"),
        ({"answers": {"shop.example.com": ResolvedName(late=True)}}, "dns.timeout", "name"),
        ({"file_drift": None}, "exposure.files-differ", "files"),
        ({"file_drift": ("services.yaml is missing",)}, "exposure.files-differ", "files"),
    ],
)
def test_one_thing_is_wrong(change: dict[str, Any], code: str, where: str | None) -> None:
    (only,) = found(PLACED, replace(RIGHT, **change))
    assert only.code == code
    assert where in (None, only.where)


@pytest.mark.parametrize(
    ("pairs", "blocked"),
    [
        (((ADDRESS,), ()), False),
        (((), (ADDRESS,)), True),
        (((ADDRESS,), (ADDRESS,)), False),  # the ingress of OpenShift, whose masters have the pair, too
        (((), ()), False),  # a load balancer, behind which any of them may be
    ],
)
def test_a_floating_ip_asks_the_nodes_behind_it_for_rules(pairs: tuple[tuple[str, ...], ...], blocked: bool) -> None:
    placed = PlacedExposure(exposure=replace(SHOP, how="floating-ip", address=None), public_address=PUBLIC)
    nodes = [node("n1", *pairs[0]), node("n2", *pairs[1], security_groups=["closed"])]
    closed = {"closed": replace(groups(80)["g"], id="closed")}
    codes = [each.code for each in found(placed, replace(RIGHT, nodes=nodes, groups=groups(443) | closed))]
    assert codes == (["security-group.blocks"] if blocked else [])
    codes = [each.code for each in found(placed, replace(RIGHT, nodes=nodes, groups=groups(80) | closed))]
    assert codes == ["security-group.blocks"]


RULE = "openstack --os-cloud mine security group rule create --ingress --ethertype IPv4 --protocol tcp --dst-port 443"


@pytest.mark.parametrize(
    ("open_in", "declared", "node_groups", "fix"),
    [
        (None, ["n1"], ["default", "g"], "set open_in: nodes of cluster one in exposed_clusters, then {apply}"),
        (None, [], ["default"], "set open_in: default of cluster one in exposed_clusters, then {apply}"),
        (None, [], [], "set open_in: a security group of the nodes of cluster one in exposed_clusters, then {apply}"),
        ("nodes", [], ["g"], "{apply}"),
        ("nodes", ["n1"], [], "{apply}"),
        ("other", [], ["default", "g"], RULE + " --remote-ip 10.9.0.0/24 g && " + RULE + " --remote-ip 10.8.0.0/24 g"),
        ("other", [], [], "openstack --os-cloud mine port set --security-group other id-n1 && {apply}"),
    ],
)
def test_how_a_port_is_opened(open_in: str | None, declared: list[str], node_groups: list[str], fix: str) -> None:
    """By the spec, where it opens the group or declares the node's port; else in the group that the port has."""
    named = {"g": "nodes", "default": "default"}
    known = {each: replace(groups(80)["g"], id=each, name=name, project_id="p") for each, name in named.items()}
    view = replace(
        RIGHT,
        cluster=replace(RIGHT.cluster, open_in=open_in),
        nodes=[node("n1", ADDRESS, security_groups=node_groups, project_id="p")],
        declared_ports=declared,
        groups=known,
    )
    placed = replace(PLACED, exposure=replace(SHOP, allowed_cidrs=("10.9.0.0/24", "10.8.0.0/24")))
    (only,) = found(placed, view)
    assert (only.code, only.fix) == ("security-group.blocks", fix.replace("{apply}", view.apply))


@pytest.mark.parametrize(
    ("port", "pool", "infra_id", "fix"),
    [
        (443, "lb", None, "openstack-prep apply spec.yaml"),
        (
            443,
            None,
            "ocp-x7k2p",
            "openstack-prep post-ipi --os-cloud mine --infra-id ocp-x7k2p --ingress-ip 192.0.2.10",
        ),
        (6443, None, "ocp-x7k2p", "openstack-prep post-ipi --os-cloud mine --infra-id ocp-x7k2p --api-ip 192.0.2.10"),
    ],
)
def test_how_a_floating_ip_is_attached(port: int, pool: str | None, infra_id: str | None, fix: str) -> None:
    exposure = replace(SHOP, pool=pool, ports=(ExposedPort(port=port),))
    nodes = NodeSelection(infra_id=infra_id) if infra_id else None
    view = replace(RIGHT, cluster=replace(RIGHT.cluster, nodes=nodes), groups=groups(port))
    (only,) = found(replace(PLACED, exposure=exposure), replace(view, floating_ips=[floating(port_id=None)]))
    assert (only.code, only.fix) == ("floating-ip.detached", fix)


@pytest.mark.parametrize(("number", "blocked"), [(6443, True), (443, False)])
def test_the_api_of_openshift_is_on_the_masters(number: int, blocked: bool) -> None:
    """The address pairs of both machines do not say so: each has those of both virtual addresses."""
    exposure = replace(SHOP, how="floating-ip", address=None, ports=(ExposedPort(port=number),))
    cluster = replace(RIGHT.cluster, nodes=NodeSelection(infra_id="ocp-x7k2p"))
    master = node("ocp-x7k2p-master-0", ADDRESS, security_groups=["closed"])
    nodes = [master, node("ocp-x7k2p-worker-0", ADDRESS)]
    known = groups(number) | {"closed": replace(groups(80)["g"], id="closed")}
    placed = PlacedExposure(exposure=exposure, public_address=PUBLIC)
    codes = [each.code for each in found(placed, replace(RIGHT, cluster=cluster, nodes=nodes, groups=known))]
    assert codes == (["security-group.blocks"] if blocked else [])


def test_a_floating_ip_with_other_port_forwardings_is_not_attached_before_they_go() -> None:
    (free,) = found(PLACED, replace(RIGHT, floating_ips=[floating(port_id=None)]))
    (only,) = found(PLACED, replace(RIGHT, floating_ips=[floating(port_id=None, port_forwardings=[OTHER])]))
    assert only.code == "floating-ip.detached"
    assert contains(only.what, "22", "2222", "10.1.0.9")
    assert contains(only.fix, f"openstack --os-cloud mine floating ip port forwarding list {PUBLIC}", free.fix)


def test_the_fix_deletes_the_port_forwardings_and_then_applies() -> None:
    ids = ["it's", "f2"]
    listed = [OTHER | {"id": each, "external_port": 22 + at} for at, each in enumerate(ids)]
    placed = replace(PLACED, exposure=replace(SHOP, pool="lb"))
    view = replace(RIGHT, floating_ips=[floating(port_id=None, port_forwardings=listed)])
    (only,) = found(placed, view)
    delete, _, apply = only.fix.partition(" && ")
    client = ["openstack", "--os-cloud", "mine", "floating", "ip", "port", "forwarding"]
    assert shlex.split(delete) == [*client, "delete", PUBLIC, *ids]
    assert apply == view.apply


OVNS_PORT = PortRecord.read(port_row(id="ovn", device_owner="network:distributed", device_id="ovnmeta-net"))


def reserving(*, enabled: bool) -> PortRecord:
    fixed_ips = [{"subnet_id": "s", "ip_address": ADDRESS}]
    return PortRecord.read(port_row(id="kept", device_id="", fixed_ips=fixed_ips, admin_state_up=enabled))


@pytest.mark.parametrize("own", [True, False])
def test_a_pair_with_another_mac_address_diverts_the_address(own: bool) -> None:
    """With OVN and an enabled port that reserves it, and whether or not the node may send from the address.

    Pairs for other addresses stay.
    """
    other = {"ip_address": ADDRESS, "mac_address": "00:00:5e:00:01:1e"}
    kept = {"ip_address": "10.1.0.9", "mac_address": MAC}
    mine = [{"ip_address": ADDRESS, "mac_address": MAC}] if own else []
    nodes = [node("n1", allowed_address_pairs=[other, kept, *mine])]
    view = replace(RIGHT, nodes=nodes, on_networks=[OVNS_PORT, reserving(enabled=True), *nodes])
    (only,) = found(PLACED, view)
    clean, _, apply = only.fix.partition(" && ")
    pairs = [f"--allowed-address ip-address={each},mac-address={MAC}" for each in ("10.1.0.9", *([ADDRESS] * own))]
    assert only.code == "pairs.missing"
    assert clean == f"openstack --os-cloud mine port set --no-allowed-address {' '.join(pairs)} id-n1"
    assert apply == ("" if own else view.apply)
    for harmless in ([reserving(enabled=True), *nodes], [OVNS_PORT, reserving(enabled=False), *nodes], nodes):
        assert own == (found(PLACED, replace(view, on_networks=harmless)) == [])


def test_ovn_answers_for_an_address_that_pairs_allow_as_part_of_a_network() -> None:
    nodes = [node("n1", "10.1.0.208/29")]
    view = replace(RIGHT, nodes=nodes, on_networks=[OVNS_PORT, reserving(enabled=False), *nodes])
    (only,) = found(PLACED, view)
    assert (only.code, only.fix) == ("pairs.missing", view.apply)
    assert found(PLACED, replace(view, on_networks=[OVNS_PORT, *nodes])) == []
    exact = [node("n1", ADDRESS)]
    assert found(PLACED, replace(view, nodes=exact, on_networks=[*view.on_networks, *exact])) == []


def test_ovn_answers_for_an_address_that_no_port_may_have_a_pair_for() -> None:
    """Port security is off on all nodes: nothing is filtered, and nobody is reached."""
    nodes = [node("n1", port_security_enabled=False)]
    view = replace(RIGHT, nodes=nodes, groups={}, on_networks=[OVNS_PORT, reserving(enabled=False), *nodes])
    (only,) = found(PLACED, view)
    set_port = "openstack --os-cloud mine port set --enable-port-security id-n1"
    assert (only.code, only.fix) == ("pairs.missing", f"{set_port} && {view.apply}")
    assert found(PLACED, replace(view, on_networks=[reserving(enabled=False), *nodes])) == []


ADDRESS6 = "2001:db8:1::209"
PUBLIC6 = replace(SHOP, address=ADDRESS6, floating_ip=None, allowed_cidrs=("::/0",), names=())
PLACED6 = PlacedExposure(exposure=PUBLIC6, address=ADDRESS6, public_address=None)
GATED = {"external_gateway_info": {"network_id": "x"}, "admin_state_up": True}


@pytest.mark.parametrize(
    ("subnet", "given", "code", "fix"),
    [
        ("s6", GATED, "", ""),
        ("s6", GATED | {"admin_state_up": False}, "router.disabled", "router set --enable r"),
        ("s6", {}, "router.no-gateway", "router set --external-gateway x r"),
        ("s6", {"routes": [{"destination": "::/0", "nexthop": "2001:db8:2::1"}]}, "", ""),
        ("s4", GATED, "router.missing", "router add subnet r s6"),
        ("", GATED, "", ""),
    ],
)
def test_a_router_leads_to_an_address_of_ipv6(subnet: str, given: dict[str, Any], code: str, fix: str) -> None:
    """Without an interface of the project's, the provider's router may."""
    kept = [{"subnet_id": "s6", "ip_address": ADDRESS6}]
    ports = [PortRecord.read(port_row(id="kept", device_id="", fixed_ips=kept))]
    if subnet:
        row = {"device_owner": "network:router_interface", "device_id": "r", "fixed_ips": [{"subnet_id": subnet}]}
        row["fixed_ips"][0]["ip_address"] = "2001:db8:1::1"
        ports.append(PortRecord.read(port_row(id="i", **row)))
    view = replace(RIGHT, nodes=None, on_networks=ports, routers=router(**given))
    assert [(each.code, each.fix) for each in found(PLACED6, view)] == (
        [(code, f"openstack --os-cloud mine {fix}")] if code else []
    )
    inside = replace(PLACED6, exposure=replace(PUBLIC6, allowed_cidrs=("fd00::/8",)))
    assert found(inside, view) == []


def test_rules_for_the_allowed_networks_are_enough() -> None:
    placed = replace(PLACED, exposure=replace(SHOP, allowed_cidrs=("10.9.0.0/24",)))
    view = replace(RIGHT, groups=groups(443, "10.9.0.0/16"))
    assert found(placed, view) == []


def test_no_port_security_needs_neither_pairs_nor_rules() -> None:
    assert found(PLACED, replace(RIGHT, nodes=[node("n1", port_security_enabled=False)], groups={})) == []


def test_a_cluster_elsewhere_is_not_judged_by_this_cloud() -> None:
    assert {each.where for each in hops(PLACED, replace(RIGHT, nodes=None))}.isdisjoint({"address pairs", "nodes"})


def test_node_ports_are_what_groups_must_open() -> None:
    given = replace(SHOP, how="node-port", ports=(ExposedPort(port=443, node_port=30443),), address=None)
    placed = PlacedExposure(exposure=given, public_address=PUBLIC)
    view = replace(RIGHT, groups=groups(30443))
    assert found(placed, view) == []
    unset = replace(placed, exposure=replace(given, ports=(ExposedPort(port=443),)))
    assert [each.code for each in found(unset, view)] == ["exposure.node-port-unknown"]


def test_an_exposure_without_an_address_is_not_reserved() -> None:
    assert [each.code for each in found(replace(PLACED, address=None), RIGHT)] == ["exposure.not-reserved"]


def test_the_report_says_it_in_a_table_and_as_data() -> None:
    broken = replace(RIGHT, floating_ips=[], file_drift=None)
    paths = [
        ExposurePath(placed=PLACED, chain=Chain(name="shop", target="10.1.0.209", links=tuple(hops(PLACED, view))))
        for view in (RIGHT, broken)
    ]
    report = PathReport(spec="mesh", paths=tuple(paths))
    lines = str(report).splitlines()
    assert lines[0].split() == ["address", "names", "target", "how", "state"]
    assert [line.rpartition("metallb")[2].strip() for line in lines[1:3]] == ["ok", "2 errors"]
    assert not report.ok
    assert report.data()["exposures"][0]["address"] == ADDRESS
