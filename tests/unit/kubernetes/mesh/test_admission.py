from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.kubernetes.cilium import Passage
from openstack_prep.kubernetes.mesh.examination import admission
from tests.unit.kubernetes.mesh.cloud import cluster, group, port, rule, subnet, visible
from tests.unit.texts import contains

ONE, TWO = subnet("one", "10.1.0.0/24"), subnet("two", "10.2.0.0/24")
CREATE = "openstack --os-cloud mycloud security group rule create"


def passage(**fields: Any) -> Passage:
    return Passage(**{"protocol": "tcp", "port": 4240, "source": "one", "to": "two", "why": "health"} | fields)


def blocked(*rules: dict[str, Any], asked: Passage | None = None, **given: Any) -> list[Diagnostic]:
    """Return what is found when the nodes of the second cluster have a group with these rules."""
    senders = given.pop("senders", None) or [port(f"one-{n}", ONE, f"10.1.0.1{n}", "one") for n in range(2)]
    receivers = given.pop("receivers", None) or [port("two-0", TWO, "10.2.0.10", "two")]
    groups = given.pop("groups", [group("one"), group("two", *rules)])
    one, two = cluster("one", ONE, *senders), cluster("two", TWO, *receivers, **given.pop("two", {}))
    return list(admission(visible(groups=groups, **given), one, two, asked or passage()))


@pytest.mark.parametrize(
    "rules",
    [
        [rule()],
        [rule(remote_group_id="one")],
        [rule(protocol="tcp", port_range_min=4000, port_range_max=5000, remote_ip_prefix="10.0.0.0/8")],
        [rule(remote_ip_prefix="10.1.0.10/31")],
        [rule(remote_ip_prefix="10.1.0.10/32"), rule(remote_ip_prefix="10.1.0.11/32")],
        [rule(remote_address_group_id="nodes")],
    ],
)
def test_what_lets_the_nodes_in(rules: list[dict[str, Any]]) -> None:
    nodes = {"id": "nodes", "addresses": ["10.1.0.0/25", "2001:db8::/64"]}
    assert blocked(*rules, address_groups=[nodes]) == []


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [rule(remote_group_id="two")],
        [rule(remote_ip_prefix="10.3.0.0/16")],
        [rule(protocol="udp")],
        [rule(ethertype="IPv6")],
        [rule(remote_address_group_id="not-seen")],
    ],
)
def test_what_does_not(rules: list[dict[str, Any]]) -> None:
    (found,) = blocked(*rules)
    assert (found.where, found.why) == ("one to two", "health")
    assert found.code == "security-group.blocks"
    assert contains(found.what, "two-0", "two", "4240", "10.1.0.0/24")
    words = "--ingress --ethertype IPv4 --protocol tcp --dst-port 4240 --remote-ip 10.1.0.0/24"
    assert found.fix == f"{CREATE} {words} two"


def test_some_nodes_are_named() -> None:
    (found,) = blocked(rule(remote_ip_prefix="10.1.0.10/32"))
    assert found.what.endswith("in from 10.1.0.11 of 10.1.0.0/24")


def test_what_does_not_get_out() -> None:
    silent = group("one") | {"security_group_rules": [rule(direction="egress", remote_ip_prefix="192.0.2.0/24")]}
    (found,) = blocked(groups=[silent, group("two", rule())])
    assert found.code == "security-group.blocks"
    assert contains(found.what, "one-0", "one-1", "4240", "10.2.0.0/24")
    assert f"{CREATE} --egress --ethertype IPv4 --protocol tcp" in found.fix


def test_ports_without_port_security_and_without_groups() -> None:
    assert blocked(receivers=[port("two-0", TWO, "10.2.0.10", port_security_enabled=False)]) == []
    (found,) = blocked(receivers=[port("two-0", TWO, "10.2.0.10")])
    assert found.code == "security-group.blocks"
    assert contains(found.what, "two-0")
    client = "openstack --os-cloud mycloud"
    assert found.code == "security-group.blocks"
    assert found.fix == f"{client} security group create mesh-two && {client} port set --security-group mesh-two two-0"
    some = [port("two-0", TWO, "10.2.0.10"), port("two-1", TWO, "10.2.0.11", "two")]
    found, _ = blocked(receivers=some)
    assert found.fix == f"{client} port set --security-group two two-0"
    some += [port("two-2", TWO, "10.2.0.12", "nodes", "two"), port("two-3", TWO, "10.2.0.13", "two", "nodes")]
    found, *_ = blocked(receivers=[some[0], *some[2:]], groups=[group("one"), group("two"), group("nodes")])
    assert found.fix == f"{client} port set --security-group nodes --security-group two two-0"


def test_a_rule_goes_into_the_clusters_own_group() -> None:
    both = [port(f"two-{n}", TWO, f"10.2.0.1{n}", "default", "two", "shared") for n in range(2)]
    groups = [group("one"), group("default"), group("two"), group("shared", project_id="theirs")]
    (found,) = blocked(receivers=both, groups=groups)
    assert found.fix.endswith(" two")


def test_a_group_that_is_not_seen() -> None:
    (found,) = blocked(receivers=[port("two-0", TWO, "10.2.0.10", "theirs")])
    assert (found.status, found.code) == ("unknown", "security-group.unreadable")
    assert "theirs" in found.what
    assert "two-0" in found.what
    assert "tcp 4240" in found.what


def test_the_mesh_address_and_pods() -> None:
    at = passage(port=2379, target="mesh address", address="10.2.0.200")
    (found,) = blocked(asked=at)
    assert "tcp 2379 in from 10.1.0.0/24" in found.what
    (found,) = blocked(asked=passage(port=2379, target="mesh address", address=None))
    assert "tcp 2379 in from 10.1.0.0/24" in found.what
    assert blocked(asked=passage(target="mesh address", address="2001:db8::1")) == []

    one = port("one-0", ONE, "10.1.0.10", "one")
    pods = passage(protocol="any", port=None, target="pods", address="10.66.0.0/16")
    clusters = (cluster("one", ONE, one, pod_networks=("10.65.0.0/16",)),)
    two = cluster("two", TWO, port("two-0", TWO, "10.2.0.10", "two"), pod_networks=("10.66.0.0/16",))
    by_group = group("two", rule(remote_group_id="one"))
    (found,) = admission(visible(groups=[group("one"), by_group]), *clusters, two, pods)
    assert found.code == "security-group.blocks"
    assert contains(found.what, "any", "10.65.0.0/16")
    assert "--protocol any --remote-ip 10.65.0.0/16 two" in found.fix
    open_to = group("two", rule(remote_ip_prefix="10.64.0.0/12"))
    assert list(admission(visible(groups=[group("one"), open_to]), *clusters, two, pods)) == []


def test_ipv6() -> None:
    one, two = subnet("one", "2001:db8:1::/64"), subnet("two", "2001:db8:2::/64")
    nodes = cluster("one", one, port("one-0", one, "2001:db8:1::10", "one"))
    echo = passage(protocol="icmp", port=None)

    def found(*rules: dict[str, Any]) -> list[Diagnostic]:
        others = cluster("two", two, port("two-0", two, "2001:db8:2::10", "two"))
        return list(admission(visible(groups=[group("one"), group("two", *rules)]), nodes, others, echo))

    assert found(rule(ethertype="IPv6", protocol="ipv6-icmp")) == []
    (missing,) = found(rule())
    words = "--ingress --ethertype IPv6 --protocol ipv6-icmp --icmp-type 128 --remote-ip 2001:db8:1::/64"
    assert missing.fix == f"{CREATE} {words} two"
