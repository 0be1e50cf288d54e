from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.exposures.endpoint import ExposedPort, PlacedExposure
from openstack_prep.exposures.service_host import MachineGroup, ServiceHost, mistakes, warnings
from tests.unit.exposures.service_host.declared import API, APPS, EXTERNAL, GAME, MACS, OKD, PLAIN


def places(settings: ServiceHost, *placed: PlacedExposure, macs: dict[str, str] = MACS) -> list[str]:
    return [mistake.where for mistake in mistakes(settings, placed, macs)]


def test_valid_settings() -> None:
    assert places(OKD, API, APPS) == []
    assert places(PLAIN, GAME, macs={}) == []
    assert places(OKD, replace(API, address=None, mac=None), macs={}) == []


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"masters": MachineGroup(count=3, first_address="10.0.1.1")}, "masters.first_address"),
        ({"masters": MachineGroup(count=9, first_address="10.0.0.250")}, "masters.first_address"),
        ({"masters": MachineGroup(count=3, first_address="10.0.0.0")}, "masters.first_address"),
        ({"masters": MachineGroup(count=3, first_address="10.0.0.5")}, "workers.first_address"),
        ({"masters": MachineGroup(count=2, first_address="10.0.0.1", macs=("52:54:00:00:00:01",))}, "masters.macs"),
        ({"workers": MachineGroup(count=1, first_address="10.0.0.6", macs=("01:54:00:00:00:77",))}, "workers.macs"),
        ({"mac": "52:54:00:10:64:16"}, "mac"),
        ({"mac": API.mac}, "mac"),
        ({"address": "10.0.1.100"}, "address"),
        ({"address": "10.0.0.255"}, "address"),
        ({"inside": ("172.16.0.0/24", "0.0.0.0/0")}, "inside[1]"),
        ({"external": replace(EXTERNAL, gateway="10.19.42.254")}, "external.gateway"),
        ({"external": replace(EXTERNAL, gateway="10.19.41.157")}, "external.gateway"),
        ({"external": replace(EXTERNAL, prefix_length=64)}, "external.prefix_length"),
        ({"external": replace(EXTERNAL, bridge="eno1")}, "external.bridge"),
    ],
)
def test_mistakes_in_settings(changes: dict[str, Any], where: str) -> None:
    assert set(places(replace(OKD, **changes), API)) == {where}


@pytest.mark.parametrize(
    ("port", "where"),
    [
        (ExposedPort(port=22623), "exposures.api.ports[0]"),
        (ExposedPort(port=9443, target=22623), "exposures.api.ports[0]"),
        (ExposedPort(port=443, target=8443), "exposures.api.ports[0]"),
        (ExposedPort(port=5000, protocol="udp"), "exposures.api.ports[0]"),
    ],
)
def test_ports_that_cannot_be_served(port: ExposedPort, where: str) -> None:
    assert places(OKD, replace(API, exposure=replace(API.exposure, ports=(port,)))) == [where]


@pytest.mark.parametrize("label", ["api-int", "ns", "okd-master-01"])
def test_names_for_clients_inside(label: str) -> None:
    wrong = replace(API, exposure=replace(API.exposure, names=(f"{label}.{OKD.domain}",)))
    assert places(OKD, wrong) == ["exposures.api.names[0]"]


def test_kubeinit_has_one_ipv4_address() -> None:
    assert places(OKD, API, replace(APPS, address="10.19.41.158")) == ["kubeinit"]
    assert "kubeinit" in places(replace(PLAIN, kubeinit=OKD.kubeinit), GAME, macs={})


def test_a_warning_names_the_releases_of_kubeinit() -> None:
    assert "1.0.2" in next(warnings(OKD))
    assert list(warnings(PLAIN)) == []


def test_an_address_of_the_inner_network_is_not_outside() -> None:
    assert "network" in places(OKD, replace(API, address="10.0.0.150"))


# --- reading ------------------------------------------------------------------------------


def read(**changes: Any) -> ServiceHost:
    given = {
        "domain": "okd.example.com",
        "network": "10.0.0.0/24",
        "address": "10.0.0.100",
        "external": {"nic": "eno1", "gateway": "10.19.41.254", "prefix_length": 24},
        "masters": {"count": 3, "first_address": "10.0.0.1"},
    }
    return TypeAdapter(ServiceHost).validate_json(json.dumps(given | changes))


def test_reading() -> None:
    assert read(kubeinit={}).kubeinit == OKD.kubeinit


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": "*.example.com"},
        {"domain": "a b"},
        {"distribution": "x;y"},
        {"external": {"nic": "eno1; reboot", "gateway": "10.19.41.254", "prefix_length": 24}},
        {"external": {"nic": "sixteen-letters-x", "gateway": "10.19.41.254", "prefix_length": 24}},
        {"zone_directory": 'var"; };'},
        {"kubeinit": {"user": "$(id)"}},
        {"masters": {"count": 0, "first_address": "10.0.0.1"}},
        {"bootstrap": {"count": 2, "first_address": "10.0.0.200"}},
        {"unknown": 1},
    ],
)
def test_values_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        read(**changes)
    assert len(raised.value.errors()) == 1
