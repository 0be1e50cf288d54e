from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.openshift.verify.view import (
    ID,
    TAG,
    Answers,
    changed,
    group,
    links,
    node,
    port,
    right,
    rule,
    server,
    subnet,
    wrong,
)
from tests.unit.texts import Wording, contains


def pairs(*addresses: str, mac: str = "fa:16:3e:00:00:01") -> dict[str, Any]:
    return {"allowed_address_pairs": [{"ip_address": each, "mac_address": mac} for each in addresses]}


OVNS_PORT = port("", "10.0.0.2", name="", device_owner="network:distributed", device_id="ovnmeta-net")
AN_AGENTS_PORT = port("", "10.0.0.2", name="", device_owner="network:dhcp", device_id="dhcp-agent-net")


@pytest.mark.parametrize(("more", "status"), [([OVNS_PORT], "error"), ([AN_AGENTS_PORT], "ok"), ([], "warning")])
def test_with_ovn_a_floating_ip_needs_a_pair_with_the_address_itself(more: list[Any], status: str) -> None:
    view = right()
    around = pairs("10.0.0.0/28")
    ports = [{**each, **around} if each["device_owner"] == "compute:nova" else each for each in view.ports]
    view = replace(view, ports=[*ports, *more])
    said = [link for link in links(view)["api"] if link.where == "address pairs"]
    assert [(str(link.status), link.code) for link in said] == [(status, "" if status == "ok" else "pairs.missing")]
    alone = replace(view, floating_ips=[])
    assert {str(link.status) for link in links(alone)["api"] if link.where == "address pairs"} == {"ok"}


@pytest.mark.parametrize(("more", "seen"), [([OVNS_PORT], ["pairs.missing"]), ([AN_AGENTS_PORT], []), ([], [])])
def test_with_ovn_a_pair_with_another_mac_address_diverts_the_address(more: list[Any], seen: list[str]) -> None:
    view = right()
    nodes = {each["id"]: each for each in view.ports if each["device_owner"] == "compute:nova"}
    own = next(iter(nodes.values()))["allowed_address_pairs"]
    other = pairs(*(each["ip_address"] for each in own), mac="00:00:5e:00:01:1e")["allowed_address_pairs"]
    ports = [{**each, "allowed_address_pairs": [*own, *other]} if each["id"] in nodes else each for each in view.ports]
    said = [link for link in links(replace(view, ports=[*ports, *more]))["api"] if link.where == "address pairs"]
    assert [link.code for link in said if str(link.status) != "ok"] == seen


def test_a_missing_pair(wording: Wording) -> None:
    found = wrong(changed("master-1-0", **pairs("10.0.0.7")))
    wording(found)
    assert wrong(changed("worker-0-abcde-0", **pairs("10.0.0.7"))) == []  # no worker answers for the API


def test_port_security_off() -> None:
    (found,) = wrong(changed("worker-0-abcde-0", port_security_enabled=False, **pairs()))
    assert contains(found, "warning port-security.off", f"{ID}-worker-0-abcde-0")
    words = f"port set --enable-port-security --security-group {ID}-worker --allowed-address ip-address=10.0.0.7"
    assert found.endswith(f"openstack {words} id-of-worker-0-abcde-0")


@pytest.mark.parametrize(
    ("more", "seen"), [([OVNS_PORT], ["port-security.off", "pairs.missing"]), ([AN_AGENTS_PORT], ["port-security.off"])]
)
def test_with_ovn_a_floating_ip_needs_a_pair_also_where_port_security_is_off(more: list[Any], seen: list[str]) -> None:
    view = right()
    off = {"port_security_enabled": False, "security_groups": [], **pairs()}
    ports = [{**each, **off} if each["device_owner"] == "compute:nova" else each for each in view.ports]
    said = [link for link in links(replace(view, ports=[*ports, *more]))["api"] if link.where == "address pairs"]
    assert [link.code for link in said] == seen
    assert len({link.fix for link in said}) == 1


def with_rules(*rules: dict[str, Any], role: str = "master") -> Answers:
    view = right()
    return replace(view, groups={**(view.groups or {}), role: group(role, *rules)})


def test_a_rule_is_missing(wording: Wording) -> None:
    wording(wrong(with_rules(rule(80), role="worker")))


def test_some_sources_only() -> None:
    view = with_rules(rule(6443, remote_ip_prefix="203.0.113.0/24"))
    (found,) = wrong(view)
    assert contains(found, "unknown security-group.limited", "6443", "203.0.113.0/24")
    assert wrong(view, source="203.0.113.7") == []
    (found,) = wrong(view, source="198.51.100.0/28")
    assert contains(found, "error security-group.blocks", "6443", "198.51.100.0/28")
    assert found.endswith("--remote-ip 198.51.100.0/28 master")


def test_nobody_comes_from_the_clusters_own_subnet_by_a_floating_ip() -> None:
    own = {"sub": subnet(cidr="10.0.0.0/16")}
    view = with_rules(rule(6443, remote_ip_prefix="10.0.0.0/24"), rule(6443, remote_ip_prefix="10.0.128.0/17"))
    (found,) = wrong(replace(view, subnets=own))
    assert contains(found, "error security-group.blocks")
    beyond = with_rules(rule(6443, remote_ip_prefix="10.0.0.0/24"), rule(6443, remote_ip_prefix="10.1.0.0/24"))
    (found,) = wrong(replace(beyond, subnets=own))
    assert contains(found, "unknown security-group.limited", "10.0.0.0/24, 10.1.0.0/24")
    (found,) = [each for each in wrong(replace(view, subnets=None)) if "security-group" in each]
    assert contains(found, "unknown security-group.limited")


@pytest.mark.parametrize(
    ("answers", "blocked"),
    [
        ([], True),
        ([rule(None, direction="egress", protocol=None)], False),
        ([rule(None, direction="egress")], False),
        ([rule(443, direction="egress")], True),
        ([rule(1024, 65535, direction="egress")], False),
        ([rule(None, direction="egress", protocol="udp")], True),
        ([rule(None, direction="egress", ethertype="IPv6")], True),
    ],
)
def test_a_stateless_group_lets_answers_out_by_a_rule(answers: list[dict[str, Any]], blocked: bool) -> None:
    view = right()
    rules = [rule(6443), *answers]
    own = replace(view, groups={**(view.groups or {}), "master": group("master", *rules, stateful=False)})
    codes = [each for each in wrong(own) if contains(each, "security-group.blocks")]
    assert len(codes) == blocked
    if blocked:
        assert codes[0].endswith("rule create --egress --ethertype IPv4 --protocol tcp master")
    stateful = replace(view, groups={**(view.groups or {}), "master": group("master", *rules, stateful=True)})
    assert wrong(stateful) == []


def test_a_stateless_group_answers_whom_it_may() -> None:
    view = right()
    rules = [rule(6443), rule(None, direction="egress", remote_ip_prefix="203.0.113.0/24")]
    own = replace(view, groups={**(view.groups or {}), "master": group("master", *rules, stateful=False)})
    assert wrong(own, source="203.0.113.7") == []
    (found,) = wrong(own, source="198.51.100.7")
    assert found.endswith("rule create --egress --ethertype IPv4 --protocol tcp --remote-ip 198.51.100.7/32 master")
    some = [rule(6443, remote_ip_prefix="198.51.100.0/24")]
    own = replace(view, groups={**(view.groups or {}), "master": group("master", *some, stateful=False)})
    (found,) = wrong(own, source="198.51.100.7")
    assert contains(found, "--egress", "--remote-ip 198.51.100.7/32 master")


@pytest.mark.parametrize(
    ("rules", "heard"),
    [
        ([], False),
        ([rule(None, protocol="112", remote_ip_prefix="10.0.1.0/24")], True),
        ([rule(None, protocol="vrrp", remote_ip_prefix="10.0.1.0/24")], True),
        ([rule(None, protocol="112", remote_group_id="master")], True),
        ([rule(None, protocol="112", remote_group_id="worker")], False),
        ([rule(None, protocol="112", remote_ip_prefix="10.0.2.0/24")], False),
        ([rule(None, protocol="112", ethertype="IPv6")], False),
        ([rule(None, protocol=None)], True),
    ],
)
def test_machines_that_do_not_hear_each_other(rules: list[dict[str, Any]], heard: bool) -> None:
    view = right()
    groups = {**(view.groups or {}), "master": group("master", rule(6443), *rules, vrrp=False)}
    found = wrong(replace(view, groups=groups))
    assert [contains(each, "warning security-group.no-vrrp") for each in found] == ([] if heard else [True])
    if not heard:
        assert found[0].endswith("--ethertype IPv4 --protocol 112 --remote-group master master")


def test_an_address_group_is_not_looked_into() -> None:
    (found,) = wrong(with_rules(rule(6443, remote_address_group_id="g")))
    assert "security groups, unknown security-group.unreadable: TCP 6443 to" in found


def test_without_workers_the_masters_hold_ingress(wording: Wording) -> None:
    view = right()
    compact = replace(view, ports=[each for each in view.ports if "-worker-" not in each["name"]])
    found = wrong(compact)
    assert [each.split(":")[0] for each in found] == ["ingress, security groups, error security-group.blocks"] * 2
    schedulable = replace(compact, groups=with_rules(rule(6443), rule(80), rule(443)).groups)
    wording(links(schedulable)["ingress"][-1].what)


def test_machines(wording: Wording) -> None:
    view = right()
    servers = {**(view.servers or {}), "server-master-0-0": server(f"{ID}-master-0", "SHUTOFF", id="s0")}
    del servers["server-master-1-0"]
    wording(wrong(replace(view, servers=servers)))
    assert (
        f"error port.down: {ID}-worker-0-abcde-0 is not ACTIVE" in wrong(changed("worker-0-abcde-0", status="DOWN"))[0]
    )


def test_ports_of_machines_that_are_switched_off() -> None:
    view = right()
    names = [f"{ID}-worker-0-{end}-0" for end in ("abcde", "fghij")]
    ports = [{**each, "admin_state_up": each["name"] not in names} for each in view.ports]
    (found,) = wrong(replace(view, ports=ports))
    assert contains(found, "error port.down", *names)
    ids = ("id-of-worker-0-abcde-0", "id-of-worker-0-fghij-0")
    assert found.endswith(" && ".join(f"openstack port set --enable {each}" for each in ids))


def test_no_machines_yet(wording: Wording) -> None:
    view = right()
    found = wrong(replace(view, ports=list(view.ports[:2])))
    assert [each.split(",")[0] for each in found] == ["api", "ingress"]
    wording(found[0])


def test_the_bootstrap_machine_counts_while_it_is_there() -> None:
    view = right()
    bootstrap = {**node("bootstrap-0", "10.0.1.9", "master"), **pairs()}
    servers = {**(view.servers or {}), "server-bootstrap-0": server(f"{ID}-bootstrap")}
    found, left = wrong(replace(view, ports=[*view.ports, bootstrap], servers=servers))
    assert contains(found, "10.0.0.5", f"{ID}-bootstrap-0")
    commands = "wait-for bootstrap-complete", "destroy bootstrap", "wait-for install-complete"
    fix = " && ".join(f"openshift-install {each} --dir DIR" for each in commands)
    beside = f"{ID}-bootstrap exists beside the machines of the cluster"
    assert left == f"api, bootstrap, warning bootstrap.left: {beside}; {fix}"
    gone = {key: each for key, each in servers.items() if key != "server-bootstrap-0"}
    assert "bootstrap.left" not in str(wrong(replace(view, ports=[*view.ports, bootstrap], servers=gone)))


def before_workers(*more: dict[str, Any], tags: tuple[str, ...] = (TAG,)) -> Answers:
    """Return a cluster whose masters exist, and whose workers do not."""
    view = right()
    ports = [each for each in view.ports if "-worker-" not in each["name"]]
    servers = {**(view.servers or {}), "server-bootstrap-0": server(f"{ID}-bootstrap")}
    groups = [group("worker") | {"tags": list(tags)}]
    return replace(view, ports=[*ports, *more], servers=servers, worker_groups=groups)


def test_before_workers_exist_nothing_is_broken_and_no_masters_are_opened(wording: Wording) -> None:
    wait = "wait for them: openshift-install wait-for install-complete --dir DIR"
    awaited = "ingress, machines, unknown machine.awaited: no worker exists yet; only workers answer on TCP 80, 443"
    assert wrong(before_workers()) == [f"{awaited}; {wait}"]
    bootstrap = node("bootstrap-0", "10.0.1.9", "master")
    present, machines = wrong(replace(before_workers(bootstrap), worker_groups=[]))
    assert present.startswith(f"api, bootstrap, unknown bootstrap.present: {ID}-bootstrap exists: the installation")
    assert contains(machines, awaited, "openshift-install wait-for bootstrap-complete --dir DIR &&")
    wording(f"{present} {machines}")


def test_masters_that_are_to_answer_for_the_routers_await_no_workers(tmp_path: Path, wording: Wording) -> None:
    view = before_workers()
    half = replace(view, groups=with_rules(rule(6443), rule(80)).groups)
    wording(wrong(half)[0])
    inside = replace(view, groups=with_rules(rule(6443), rule(1936, remote_ip_prefix="10.0.0.0/16")).groups)
    assert [each.split(":")[0] for each in wrong(inside)] == [
        "ingress, security groups, error security-group.blocks"
    ] * 2
    foreign = before_workers(tags=("openshiftClusterID=dev-zzzzz",))
    assert "security-group.blocks" in wrong(foreign)[0]  # the group of another cluster says nothing
    file = tmp_path / "install-config.yaml"
    compact = "metadata: {name: dev}\nplatform: {openstack: {cloud: lab}}\ncompute: [{name: worker, replicas: 0}]\n"
    file.write_text(f"baseDomain: example.com\n{compact}")
    assert "security-group.blocks" in wrong(view, install_config=file)[0]


def test_many_ports_are_counted() -> None:
    view = right()
    more = [{**node(f"master-{number}-0", f"10.0.3.{number}", "master"), **pairs()} for number in range(3, 9)]
    found = wrong(replace(view, ports=[*view.ports, *more]))
    assert "master-3-0, dev-x7k2p-master-4-0, dev-x7k2p-master-5-0, dev-x7k2p-master-6-0 and 2 more" in found[0]


def test_somebody_elses_load_balancer(tmp_path: Path, wording: Wording) -> None:
    file = tmp_path / "install-config.yaml"
    balancer = "loadBalancer: {type: UserManaged}"
    file.write_text(f"baseDomain: example.com\nmetadata: {{name: dev}}\nplatform: {{openstack: {{{balancer}}}}}\n")
    view = right()
    found = links(replace(view, ports=view.ports[2:], floating_ips=[]), install_config=file)
    assert [link.status for link in found["api"]] == ["ok"] * 4
    wording(found["api"][1].what)


def test_another_clusters_ports_are_named(wording: Wording) -> None:
    found = wrong(replace(right(), infra_id="dev-zzzzz"), infra_id="dev-zzzzz")
    asked = f"is the infraID right, and the cloud that of the cluster's project? it holds ports of {ID}"
    wording([each for each in found if each.startswith("api, machines")])
    assert contains(str(found), "error port.missing", asked)
    (empty, _) = (each for each in wrong(replace(right(), ports=[])) if ", machines, " in each)
    wording(empty)
    virtual = replace(right(), ports=right().ports[:2])
    assert contains(str(wrong(virtual)), "openshift-install wait-for install-complete")


def test_the_openstack_client_is_told_the_cloud(wording: Wording) -> None:
    stopped = changed("worker-0-abcde-0", admin_state_up=True, port_security_enabled=False)
    (found,) = wrong(stopped, cloud="lab")
    wording(found)
