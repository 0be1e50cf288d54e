"""Networks of pods and Services: allocated in order, kept apart, and what is wrong with given ones."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from itertools import combinations

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken, allocate, default_dns, mistakes
from tests.unit.texts import Wording, contains

DEFAULT = ClusterNetworks()
NEW = KubernetesCluster()


def told(*args: object, **more: object) -> list[str]:
    return [str(each) for each in mistakes(*args, **more)]  # type: ignore[arg-type]


def test_one_cluster_gets_what_rke_uses_itself() -> None:
    assert allocate(DEFAULT, {"one": NEW}) == {"one": ("10.42.0.0/16", "10.43.0.0/16")}


def test_a_cluster_more_moves_none_before_it() -> None:
    clusters = {f"c{number}": NEW for number in range(20)}
    taken = [Taken("subnet/a", "10.44.128.0/24"), Taken("address_pool/b", "10.50.0.200-10.50.0.219")]
    before: dict[str, tuple[str, str]] = {}
    for count in range(1, 21):
        allocated = allocate(DEFAULT, dict(list(clusters.items())[:count]), taken)
        assert before.items() <= allocated.items()
        before = allocated
    networks = [ip_network(each) for pair in before.values() for each in pair]
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))
    assert not {ip_network("10.44.0.0/16"), ip_network("10.50.0.0/16")} & set(networks)
    assert told(DEFAULT, clusters, taken) == []


def test_given_networks_stay_and_are_passed_over(wording: Wording) -> None:
    clusters = {
        "a": KubernetesCluster(service_cidr="10.42.0.0/20"),
        "b": KubernetesCluster(cluster_cidr="10.43.0.0/16"),
        "c": NEW,
    }
    assert allocate(DEFAULT, clusters, [Taken("subnet/n", "10.46.1.0/24"), Taken("subnet/six", "2001:db8::/64")]) == {
        "a": ("10.43.0.0/16", "10.42.0.0/20"),
        "b": ("10.43.0.0/16", "10.44.0.0/16"),
        "c": ("10.45.0.0/16", "10.47.0.0/16"),
    }
    wording(told(DEFAULT, clusters))


def test_sizes_and_ranges_are_the_users() -> None:
    small = ClusterNetworks(range="10.64.0.0/20", cluster_prefix=22, service_prefix=24)
    assert allocate(small, {"a": NEW, "b": NEW}) == {
        "a": ("10.64.0.0/22", "10.64.4.0/24"),
        "b": ("10.64.8.0/22", "10.64.5.0/24"),
    }


def test_networks_of_ipv6_are_of_their_usual_sizes() -> None:
    six = ClusterNetworks(range="fd00:42::/40")
    allocated = allocate(six, {"a": NEW, "b": NEW})
    assert allocated == {
        "a": ("fd00:42::/56", "fd00:42:0:100::/112"),
        "b": ("fd00:42:0:200::/56", "fd00:42:0:100::1:0/112"),
    }
    assert told(six, {"a": NEW, "b": NEW}) == []


def test_a_full_range_is_told_with_its_numbers(wording: Wording) -> None:
    full = ClusterNetworks(range="10.64.0.0/14")
    clusters, taken = (
        {"a": NEW, "b": NEW, "c": KubernetesCluster(service_cidr="10.9.0.0/16")},
        [Taken("subnet/n", "10.64.0.0/24")],
    )
    with pytest.raises(SpecError) as error:
        allocate(full, clusters, taken)
    wording([str(each) for each in error.value.mistakes])
    assert told(full, clusters, taken) == [str(each) for each in error.value.mistakes]
    assert contains(
        told(ClusterNetworks(range="10.64.0.0/14", cluster_prefix=8), {"a": NEW})[0], "10.64.0.0/14", "/8 (0", "total"
    )


def test_each_overlap_is_one_mistake_that_names_both(wording: Wording) -> None:
    clusters = {
        "a": KubernetesCluster(cluster_cidr="10.0.0.0/16", service_cidr="10.0.128.0/20"),
        "b": KubernetesCluster(cluster_cidr="10.8.0.0/16", service_cidr="10.9.0.0/16"),
        "c": KubernetesCluster(cluster_cidr="10.9.0.0/16", service_cidr="10.10.0.0/16"),
    }
    taken = [Taken("subnet/nodes", "10.8.4.0/24"), Taken("address_pool/lb", "10.10.255.250-10.11.0.20")]
    wording(told(DEFAULT, clusters, taken))


def test_what_is_taken_twice_is_told_elsewhere() -> None:
    assert told(DEFAULT, {"a": NEW}, [Taken("subnet/n", "10.1.0.0/24"), Taken("address_pool/p", "10.1.0.200")]) == []


@pytest.mark.parametrize(
    ("pods", "services", "nodes", "said"),
    [
        ("10.0.0.0/25", "10.1.0.0/16", 1, "cluster_cidr 10.0.0.0/25 is smaller than the /24 of one node"),
        (
            "10.0.0.0/23",
            "10.1.0.0/16",
            3,
            "cluster_cidr 10.0.0.0/23 has room for 2 nodes (a /24 per node), and the cluster has 3",
        ),
        ("fd00::/47", "fd01:1::/112", 3, "cluster_cidr fd00::/47 is too large; choose a /48 or smaller"),
        ("10.0.0.0/16", "10.32.0.0/11", 3, "service_cidr 10.32.0.0/11 is too large; choose a /12 or smaller"),
        (
            "10.0.0.0/16",
            "10.1.0.0/29",
            3,
            "service_cidr 10.1.0.0/29 has no tenth address for the cluster's DNS; choose a /28 or larger",
        ),
        (
            "10.0.0.0/16",
            "fd00::/112",
            3,
            "cluster_cidr 10.0.0.0/16 and service_cidr fd00::/112 have different IP versions",
        ),
        ("fd00::/56", "fd01::/64", 3, "service_cidr fd01::/64 is too large; choose a /108 or smaller"),
        ("fd00::/65", "fd01::/112", 3, "cluster_cidr fd00::/65 is smaller than the /64 of one node"),
        ("224.0.0.0/16", "10.1.0.0/16", 3, "cluster_cidr 224.0.0.0/16 overlaps 224.0.0.0/4, which is multicast"),
        ("10.0.0.0/16", "127.0.0.0/16", 3, "service_cidr 127.0.0.0/16 overlaps 127.0.0.0/8, which is loopback"),
        (
            "169.254.0.0/16",
            "10.1.0.0/16",
            3,
            "cluster_cidr 169.254.0.0/16 overlaps 169.254.0.0/16, which is link-local",
        ),
        ("fe80::/56", "fd01::/112", 3, "cluster_cidr fe80::/56 overlaps fe80::/10, which is link-local"),
        ("10.0.0.0/16,fd00::/65", "10.1.0.0/16,fd01::/112", 3, "fd00::/65 is smaller than the /64 of one node"),
        ("10.0.0.0/16,fd00::/56", "10.1.0.0/16,fd01::/64", 3, "service_cidr fd01::/64 is too large"),
        ("10.0.0.0/16,fd00::/56", "10.1.0.0/16", 3, "and service_cidr 10.1.0.0/16 have different IP versions"),
        ("10.0.0.0/16,fd00::/56", "fd01::/112,10.1.0.0/16", 3, "different IP versions"),
        (
            "10.0.0.0/16,fd00::/56",
            "10.1.0.0/16,fd00::/112",
            3,
            "service_cidr fd00::/112 overlaps cluster_cidr fd00::/56",
        ),
    ],
)
def test_what_kubernetes_refuses_is_told(pods: str, services: str, nodes: int, said: str) -> None:
    (found,) = told(DEFAULT, {"a": KubernetesCluster(cluster_cidr=pods, service_cidr=services)}, nodes={"a": nodes})
    assert said in found


LARGE = {"service_cidr": "10.32.0.0/11"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"distribution": "rke2", "kubernetes_version": "v1.33.9+rke2r1", "service_cidr": "10.32.0.0/11"},
            "before 1.34",
        ),
        ({"distribution": "rke2", "kubernetes_version": "v1.34.5+rke2r1", "service_cidr": "10.32.0.0/11"}, ""),
        ({"distribution": "rke2", "service_cidr": "10.32.0.0/11"}, ""),
        ({"kubernetes_version": "v1.32.13-rancher1-1", "service_cidr": "10.32.0.0/11"}, "before 1.34"),
        ({"service_cidr": "10.1.0.0/29", "cluster_dns": "10.1.0.5"}, ""),
        ({"service_cidr": "10.1.0.0/30", "cluster_dns": "10.1.0.2"}, "has fewer than 8 addresses; choose a /29"),
    ],
)
def test_sizes_of_services(fields: dict[str, str], said: str) -> None:
    found = told(DEFAULT, {"a": KubernetesCluster(cluster_cidr="10.0.0.0/16", **fields)})  # type: ignore[arg-type]
    assert said in " ".join(found)
    assert len(found) == bool(said)


@pytest.mark.parametrize(
    ("dns", "said"),
    [
        ("10.43.0.53", []),
        (
            "10.44.0.10",
            ["cluster_dns 10.44.0.10 is not in service_cidr 10.43.0.0/16; remove it to use the tenth address"],
        ),
        ("fd00::10", ["cluster_dns fd00::10 is not in service_cidr 10.43.0.0/16; remove it to use the tenth address"]),
        (
            "10.43.0.1",
            [
                "cluster_dns 10.43.0.1 is a reserved address of service_cidr 10.43.0.0/16; "
                "remove it to use the tenth address"
            ],
        ),
    ],
)
def test_the_dns_is_a_service(dns: str, said: list[str]) -> None:
    assert told(DEFAULT, {"a": KubernetesCluster(cluster_dns=dns)}) == [f"rke_cluster/a: {each}" for each in said]


def test_networks_of_both_versions_stay_together() -> None:
    """Two networks of a field count as two, and the other cluster gets free ones."""
    both = KubernetesCluster(cluster_cidr="10.42.0.0/16,fd00:42::/56", service_cidr="10.43.0.0/16,fd00:43::/112")
    found = allocate(DEFAULT, {"a": both, "b": KubernetesCluster()})
    assert found["a"] == (both.cluster_cidr, both.service_cidr)
    assert found["b"] == ("10.44.0.0/16", "10.45.0.0/16")
    assert told(DEFAULT, {"a": both}) == []
    assert told(DEFAULT, {"a": replace(both, cluster_dns="fd00:43::5")}) == []


def test_the_dns_is_the_tenth_service() -> None:
    assert default_dns("10.43.0.0/16,fd00:42::/112") == "10.43.0.10,fd00:42::a"
    assert (default_dns("10.43.0.0/16"), default_dns("fd00:42::/112")) == ("10.43.0.10", "fd00:42::a")
