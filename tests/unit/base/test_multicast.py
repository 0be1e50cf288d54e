"""Multicast: what Neutron refuses in address pairs, and what no release can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openstack_prep.base import multicast
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import SpecError
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.resolution import list_warnings, refuse_mistakes

REFUSED = ["224.0.0.18", "239.255.255.255", "224.0.0.0/4", "128.0.0.0/1", "192.0.0.0/2", "ff02::12", "::/0", "8000::/1"]
ACCEPTED = ["0.0.0.0/0", "0.0.0.0/1", "223.255.255.255", "240.0.0.0/4", "240.0.0.1", "10.0.0.0/8", "fe80::/10", "::/1"]


@pytest.mark.parametrize(("address", "refused"), [*((a, True) for a in REFUSED), *((a, False) for a in ACCEPTED)])
def test_the_rule_of_neutron(address: str, refused: bool) -> None:
    """The values were seen with neutron-lib 5.0.1 and with Neutron 29.0.0 on the devcloud."""
    assert multicast.overlaps_multicast(address) is refused


def test_the_rest_of_a_network_is_accepted() -> None:
    assert multicast.unicast_parts("128.0.0.0/1") == "128.0.0.0/2, 192.0.0.0/3, 240.0.0.0/4"
    parts = multicast.unicast_parts("::/0").split(", ")
    assert len(parts) == 8
    assert not any(map(multicast.overlaps_multicast, parts))


@pytest.mark.parametrize(("address", "group"), [("01:00:5e:00:00:12", True), ("33:33:00:00:00:12", True)])
def test_macs(address: str, group: bool) -> None:
    assert multicast.is_multicast_mac(address) is group
    assert not multicast.is_multicast_mac("fa:16:3e:00:00:01")


ENTRANCES = {
    "address_pairs[0].addresses[0]": {"address_pairs": [{"name": "a", "ports": ["p"], "addresses": ["224.0.0.18"]}]},
    "address_pairs[0].mac_address": {
        "address_pairs": [{"name": "a", "ports": ["p"], "addresses": ["10.0.0.5"], "mac_address": "01:00:5e:00:00:12"}]
    },
    "ports[0].allowed_address_pairs[0].address": {
        "ports": [{"name": "p", "network": "n", "allowed_address_pairs": [{"address": "ff02::12"}]}]
    },
    "ports[0].allowed_address_pairs[0].mac_address": {
        "ports": [
            {
                "name": "p",
                "network": "n",
                "allowed_address_pairs": [{"address": "10.0.0.5", "mac_address": "33:33:00:00:00:12"}],
            }
        ]
    },
    "ports[0].fixed_ips[0].address": {
        "ports": [{"name": "p", "network": "n", "fixed_ips": [{"address": "224.0.0.18"}]}]
    },
    "floating_ips[0].address": {"floating_ips": [{"name": "f", "external_network": "e", "address": "224.0.0.18"}]},
    "address_pools[0].addresses[0]": {
        "address_pools": [{"name": "a", "subnet": "s", "addresses": ["223.255.255.0-224.0.0.10"]}]
    },
    "pool_files[0].addresses[0]": {
        "pool_files": [{"name": "a", "path": "a", "cidr": "10.0.0.0/24", "addresses": ["224.0.0.0/24"]}]
    },
    "rke_clusters[0].metallb.pools[0].addresses[0]": {
        "rke_clusters": [
            {
                "name": "r",
                "distribution": "rke2",
                "stack": "s",
                "directory": "d",
                "kubernetes_version": "v1.35.7+rke2r1",
                "metallb": {"pools": [{"name": "m", "addresses": ["192.0.0.0/2"]}]},
            }
        ]
    },
    "rke_clusters[0].kube_vip.pools[0].addresses[0]": {
        "rke_clusters": [
            {
                "name": "r",
                "distribution": "rke2",
                "stack": "s",
                "directory": "d",
                "kubernetes_version": "v1.35.7+rke2r1",
                "kube_vip": {"pools": [{"name": "m", "addresses": ["224.0.0.18"]}]},
            }
        ]
    },
    "exposures[0].address": {
        "exposures": [
            {
                "name": "e",
                "cluster": "c",
                "target": {"service": "a/b"},
                "ports": [{"port": 443}],
                "how": "external-ip",
                "address": "224.0.0.18",
            }
        ]
    },
}


@pytest.mark.parametrize("place", ENTRANCES)
def test_no_release_can_use_it_so_each_entrance_refuses_it(place: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps({"name": "lab", **ENTRANCES[place]}))
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    (mistake,) = [each for each in caught.value.mistakes if "multicast" in each.what]
    assert mistake.where == f"{path}:1: {place}"
    assert mistake.code == Code.SPEC_INVALID_VALUE


def test_a_network_around_multicast_is_valid_with_a_warning(tmp_path: Path) -> None:
    """Neutron before 2026.2 accepts it."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "name: lab\n"
        "address_pairs:\n"
        '  - {name: all, ports: [p], addresses: ["::/0", 0.0.0.0/0, 10.0.0.0/8]}\n'
        "ports:\n"
        "  - {name: p, network: n, allowed_address_pairs: [{address: 128.0.0.0/1}, {address: 0.0.0.0/0}]}\n"
    )
    spec: Spec = load_spec(path)
    refuse_mistakes(spec)
    assert [each.rpartition(": to allow")[0] or each for each in list_warnings(spec) if "multicast" in each]
    assert ["::/0" in each or "128.0.0.0/1" in each for each in list_warnings(spec)] == [True, True]
