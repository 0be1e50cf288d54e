"""What is refused before anything is rendered, by place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.external_ips import (
    ExternalIPBGP,
    ExternalIPNode,
    ExternalIPPeer,
    ExternalIPs,
    files,
    mistakes,
    warnings,
)
from tests.unit.exposures.external_ips.declared import ALL, BGP, NODES, PLAIN, TOR, TOR6, placed

SIX = ExternalIPNode(name="six", addresses=("2001:db8::6",))
FOUR = ExternalIPNode(name="four", addresses=("192.168.200.4",))
RAW = {"name": "four", "addresses": ["192.168.200.4"]}


def places(settings: ExternalIPs, found: list[PlacedExposure] = ALL, version: str | None = None) -> list[str]:
    return [each.where for each in mistakes(settings, found, version)]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"nodes": (NODES[0], replace(NODES[1], name="k8s5"))}, "nodes[1]"),
        ({"nodes": (NODES[0], replace(NODES[1], addresses=NODES[0].addresses))}, "nodes[1].addresses"),
        ({"nodes": (replace(NODES[0], addresses=("192.0.2.1", "192.0.2.2")),)}, "nodes[0].addresses"),
        ({"nodes": (replace(NODES[0], router_id="2001:db8::1"),)}, "nodes[0].router_id"),
        ({"nodes": (SIX,), "bgp": BGP}, "nodes[0].router_id"),
        ({"nodes": (FOUR,), "static_routes": True}, "nodes"),
        ({"interface": "lo", "create_interface": True}, "create_interface"),
        ({"configuration": "nmstate"}, "configuration"),
        ({"carriers": "all"}, "carriers"),
        ({"bgp": BGP, "mask": 24}, "mask"),
        ({"pools": ("200.1.1.0/24", "200.1.1.8", "2001:db8:1::/64")}, "pools"),
        ({"pools": ("200.1.1.1", "2001:db8:1::/64")}, "exposure dns: address"),
        ({"bgp": replace(BGP, peers=(TOR,))}, "bgp.peers"),
        ({"bgp": replace(BGP, peers=(TOR, replace(TOR6, name="tor1")))}, "bgp.peers[1]"),
        ({"bgp": replace(BGP, peers=(TOR, TOR6, replace(TOR, name="x")))}, "bgp.peers[2].peer_address"),
        ({"bgp": replace(BGP, my_asn=64513)}, "bgp.peers[1].ebgp_multi_hop"),
        ({"bgp": replace(BGP, peers=(replace(TOR, password=Secret("a\nb")), TOR6))}, "bgp.peers[0].password"),
        ({"bgp": replace(BGP, peers=(replace(TOR, password=Secret("x" * 81)), TOR6))}, "bgp.peers[0].password"),
    ],
)
def test_settings(changes: dict[str, Any], place: str) -> None:
    assert places(PLAIN) == []
    settings = replace(PLAIN, **changes)
    assert place in places(settings)
    assert "a\nb" not in str(list(mistakes(settings, ALL)))


@pytest.mark.parametrize("source", ["generate", "content"])
def test_reading_does_not_need_a_password_that_is_not_ready(source: str, tmp_path: Path) -> None:
    path = tmp_path / "bgp.pw"
    peers = (replace(TOR, password=from_spec({source: "bgp.pw"}, base=tmp_path)), TOR6)
    settings = replace(PLAIN, carriers="all", bgp=replace(BGP, peers=peers))
    assert places(settings) == []
    read = files(settings, ALL, only_ready=True)
    assert read == files(settings, ALL, openly=False)
    assert not path.exists()
    if source == "generate":
        written = files(settings, ALL)
        assert any(path.read_text().strip() in each for each in written.values())
        assert files(settings, ALL, only_ready=True) == written
    else:
        path.write_text("a b")  # after the checks
        with pytest.raises(ConfigError, match=TOR.name) as raised:
            files(settings, ALL)
        assert "a b" not in str(raised.value)
        assert places(settings) == ["bgp.peers[0].password"]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ([placed("x", "192.168.200.25", "on/x")], "exposure x: address"),
        ([placed("x", "200.1.1.2", "on/x", ports=(ExposedPort(port=53, protocol="udp"),))], "exposure x: ports"),
        ([placed("x", "200.1.1.8", selector={"app": "z"})], "exposure x: target.selector"),
        ([placed("x", "200.1.1.8", selector={"app": "y"}, ports=(ExposedPort(port=1),))], "exposure x: ports"),
    ],
)
def test_exposures(more: list[PlacedExposure], place: str) -> None:
    assert places(PLAIN, [*ALL, *more]) == [place]


def test_a_target_that_is_no_service() -> None:
    target = ExposureTarget(virtual_machine="vms/a")
    exposure = Exposed(name="x", cluster="c", target=target, ports=(ExposedPort(port=22),), how="external-ip")
    assert places(PLAIN, [PlacedExposure(exposure=exposure, address="200.1.1.1")]) == ["exposure x: target"]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1.35.7+rke2r1", []),
        ("1.36", ["deprecated in Kubernetes 1.36"]),
        ("v1.39.0", ["deprecated in Kubernetes v1.39.0"]),
        ("1.40.1", ["AllowServiceExternalIPs"]),
        (None, ["1.36 and later"]),
    ],
)
def test_the_deprecation_depends_on_the_version(version: str | None, words: list[str]) -> None:
    settings = replace(PLAIN, carriers="all", bgp=BGP)
    found = list(warnings(settings, ALL, version))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))
    assert places(settings, ALL, version) == []


def test_a_version_without_external_ips_is_refused() -> None:
    assert places(PLAIN, ALL, "1.43") == [""]  # of the section external_ips, which has no such field
    assert places(PLAIN, [], "1.43") == []


def test_what_does_not_fail_over_causes_a_warning() -> None:
    assert any("one node carries" in each for each in warnings(PLAIN, ALL, "1.30"))
    static = replace(PLAIN, carriers="all", static_routes=True)
    assert any("failed" in each for each in warnings(static, ALL, "1.30"))


@pytest.mark.parametrize(
    ("kind", "values", "place"),
    [
        (ExternalIPNode, {"name": "a;reboot", "addresses": ("192.0.2.1",)}, "name"),
        (ExternalIPNode, {"name": "a" * 64, "addresses": ("192.0.2.1",)}, "name"),
        (ExternalIPNode, {"name": "a", "addresses": ("192.0.2.300",)}, "addresses"),
        (ExternalIPPeer, {"name": "a b", "peer_asn": 1, "peer_address": "192.0.2.1"}, "name"),
        (ExternalIPBGP, {"my_asn": 0, "peers": ()}, "my_asn"),
        (ExternalIPs, {"nodes": [RAW], "interface": "eth0 && reboot"}, "interface"),
        (ExternalIPs, {"nodes": [RAW], "interface": "eth0", "pools": ("x",)}, "pools"),
        (ExternalIPs, {"nodes": (), "interface": "eth0", "mask": 33}, "mask"),
    ],
)
def test_values_of_a_spec(kind: type, values: dict[str, Any], place: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_json(json.dumps(values))
    assert place in {str(each["loc"][0]) for each in caught.value.errors()}
