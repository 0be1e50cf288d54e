"""What verify and check say of a way into a cluster, and what OVN does with a packet on that way."""

from __future__ import annotations

import json
import shlex
from typing import Any

from tests.functional.conftest import Prep
from tests.ovn.conftest import INFRA_ID, Cluster

API, INGRESS = "10.0.0.5", "10.0.0.7"


def api_of(prep: Prep) -> dict[str, str]:
    """Return the statuses of verify's links to the API, names left out, by their places."""
    out = prep.run("verify", "--format", "json", "--infra-id", INFRA_ID, code=1).stdout  # the ingress has no address
    (chain,) = (chain for chain in json.loads(out)["chains"] if chain["name"] == "api")
    return {link["where"]: link["status"] for link in chain["links"] if link["where"] != "name"}


def mend(prep: Prep) -> None:
    """Run the command that verify gives for the address pairs."""
    out = prep.run("verify", "--format", "json", "--infra-id", INFRA_ID, code=1).stdout
    links = [link for chain in json.loads(out)["chains"] for link in chain["links"]]
    fix = next(link["fix"] for link in links if link["where"] == "address pairs" and link["status"] == "error")
    prep.run(*shlex.split(fix)[1:], "--yes")


def allow(cluster: Cluster, *addresses: str) -> None:
    """Give the ports of all machines these address pairs."""
    for port in (*cluster.masters, cluster.worker):
        pairs = [{"ip_address": each} for each in addresses]
        cluster.connection.network.update_port(port.id, allowed_address_pairs=pairs)


def test_a_floating_ip_follows_the_virtual_address(cluster: Cluster, prep: Prep) -> None:
    first, second = cluster.masters
    assert cluster.reached() == {first.id}
    assert set(api_of(prep).values()) == {"ok"}
    cluster.holds_virtual_address(second)
    assert cluster.reached() == {second.id}


def test_without_pairs_nothing_arrives_and_nothing_is_sent(cluster: Cluster, prep: Prep) -> None:
    first, second = cluster.masters
    assert cluster.ovn.sent(first, API, second, 6443) == {second.id}
    assert cluster.ovn.sent(first, "10.0.0.9", second, 6443) == set()  # no pair of the cluster
    allow(cluster)
    assert cluster.reached() == set()
    assert cluster.ovn.sent(first, API, second, 6443) == set()
    assert api_of(prep)["address pairs"] == "error"

    mend(prep)
    cluster.holds_virtual_address(second)
    assert cluster.reached() == {second.id}
    assert cluster.ovn.sent(first, API, second, 6443) == {second.id}
    assert api_of(prep)["address pairs"] == "ok"


def test_a_network_around_the_address_is_not_enough_for_a_floating_ip(cluster: Cluster, prep: Prep) -> None:
    """With Open vSwitch's own agents it would be enough; the network's own port shows that this cloud runs OVN."""
    allow(cluster, "10.0.0.0/28")
    assert cluster.reached() == set()
    assert api_of(prep)["address pairs"] == "error"

    mend(prep)
    cluster.holds_virtual_address(cluster.masters[0])
    assert cluster.reached() == {cluster.masters[0].id}
    assert api_of(prep)["address pairs"] == "ok"


def test_a_missing_rule_stops_the_packet(cluster: Cluster, prep: Prep) -> None:
    network = cluster.connection.network
    for group in {group for port in cluster.masters for group in port.security_group_ids}:
        for rule in network.security_group_rules(security_group_id=group, port_range_min=6443):
            network.delete_security_group_rule(rule)
    assert cluster.reached() == set()
    assert api_of(prep)["security groups"] == "error"


def test_with_two_addresses_on_one_port_ovn_follows_one_of_them(cluster: Cluster, prep: Prep) -> None:
    """Which verify warns of: the floating IP stays behind when only the other address moves (OCPBUGS-50599)."""
    network = cluster.connection.network
    (subnet,) = network.subnets(network_id=cluster.masters[0].network_id)
    six = network.create_subnet(network_id=subnet.network_id, cidr="fd2e:6f44:5dd8::/64", ip_version=6)
    both: Any = [{"subnet_id": subnet.id, "ip_address": API}, {"subnet_id": six.id, "ip_address": "fd2e:6f44:5dd8::5"}]
    for port in cluster.masters:
        fixed = [*cluster.port(port).fixed_ips, {"subnet_id": six.id}]
        network.update_port(port.id, fixed_ips=fixed)
    network.update_port(cluster.api.port_id, fixed_ips=both)
    allow(cluster, API, INGRESS, "fd2e:6f44:5dd8::5")
    assert cluster.ovn.followed(cluster.api.port_id) in {API, "fd2e:6f44:5dd8::5"}  # one, not both
    assert api_of(prep)["floating IP"] == "warning"
