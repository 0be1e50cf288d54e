from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.openshift.check.network.floating_ips import floating_ips
from tests.unit.openshift.check.neutron import FLOATING, Neutron
from tests.unit.texts import Wording

API, INGRESS = "192.0.2.10", "192.0.2.11"
FORWARDING = {"protocol": "tcp", "external_port": 22, "internal_port": 22, "internal_ip_address": "10.0.0.9"}
BOTH = {"api_floating_ip": API, "ingress_floating_ip": INGRESS}


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    made = Neutron(services, tmp_path)
    made.add("floatingips", FLOATING, id="f1", floating_ip_address=API)
    made.add("floatingips", FLOATING, id="f2", floating_ip_address=INGRESS)
    return made


def test_two_that_are_free(neutron: Neutron) -> None:
    assert neutron.found(floating_ips, **BOTH) == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"port_id": "p1", "status": "ACTIVE"}, "192.0.2.10 is in use: it serves port p1 (status ACTIVE)"),
        ({"port_id": "p1"}, "192.0.2.10 is in use: it serves port p1 (status DOWN)"),
        ({"status": "ACTIVE"}, "192.0.2.10 serves no port, yet its status is ACTIVE"),
        ({"status": "ACTIVE", "port_forwardings": [FORWARDING]}, "192.0.2.10 is in use: it has port forwardings"),
        ({"status": "ERROR"}, "192.0.2.10 serves no port, yet its status is ERROR"),
        ({"project_id": "theirs"}, "192.0.2.10 belongs to project theirs, not to admin-project"),
        ({"floating_network_id": "x2"}, "192.0.2.10 is of network x2, not of 'external' (x1)"),
        ({"floating_ip_address": "192.0.2.99"}, "192.0.2.10 is not a floating IP of project admin-project"),
    ],
)
def test_one_that_will_not_do(neutron: Neutron, fields: dict[str, Any], found: str) -> None:
    neutron.kept["floatingips"][0] |= fields
    (said,) = neutron.found(floating_ips, **BOTH)
    assert said.startswith(f"error platform.openstack.apiFloatingIP: {found}")


def test_those_that_are_not_named(neutron: Neutron) -> None:
    place = "warning platform.openstack."
    assert neutron.found(floating_ips) == [
        f"{place}apiFloatingIP: no floating IP is set",
        f"{place}ingressFloatingIP: no floating IP is set",
    ]
    assert neutron.found(floating_ips, load_balancer="UserManaged") == []
    assert neutron.found(floating_ips, external_network=None) == []


def test_one_for_both_is_looked_at_once(neutron: Neutron) -> None:
    neutron.kept["floatingips"].clear()
    assert len(neutron.found(floating_ips, api_floating_ip=API, ingress_floating_ip=API)) == 1


def test_what_is_no_address_is_not_looked_for(neutron: Neutron) -> None:
    assert neutron.found(floating_ips, api_floating_ip="api", ingress_floating_ip=INGRESS) == []


def test_a_free_one_of_the_project_is_named_before_a_new_one(neutron: Neutron) -> None:
    (said,) = floating_ips(neutron.context(api_floating_ip=API))
    assert said.fix.startswith(f"write {INGRESS},")
    assert f"--ingress-ip {INGRESS} " in said.fix
    both = [each.fix.partition(",")[0] for each in floating_ips(neutron.context())]
    assert both == [f"write {API}", f"write {INGRESS}"]
    (said,) = floating_ips(neutron.context(release="4.5", api_floating_ip=API))
    assert said.fix.startswith("attach it during the installation")


def test_before_4_6_the_installer_attaches_none_to_ingress(neutron: Neutron, wording: Wording) -> None:
    neutron.kept["floatingips"][1] |= {"port_id": "p1", "status": "ACTIVE"}
    said = list(floating_ips(neutron.context(release="4.5", api_floating_ip=API)))
    assert [(each.status, each.where, each.code) for each in said] == [
        ("warning", "ingress", "floating-ip.ingress-unset")
    ]
    command, _, later = said[0].fix.partition("  # ")
    wording(command)
    assert "openstack-prep post-ipi --metadata " in later
