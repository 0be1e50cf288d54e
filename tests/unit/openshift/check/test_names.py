from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.check.names import names
from openstack_prep.openshift.names import resolver
from tests.unit.openshift.check.neutron import FLOATING, Neutron
from tests.unit.texts import Wording

API, INGRESS = "192.0.2.10", "192.0.2.11"
BOTH = {"api_floating_ip": API, "ingress_floating_ip": INGRESS}
BALANCED: dict[str, Any] = {"external_network": "external", "load_balancer": "UserManaged"}
BALANCED |= {"api_vips": ("10.0.0.5",), "ingress_vips": ("10.0.0.7",)}
APPS = ("console-openshift-console.apps.dev.example.com", "oauth-openshift.apps.dev.example.com")


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    return Neutron(services, tmp_path)


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the only name server knows."""
    known: dict[str, str] = {}

    def ask(name: str, *_: Any, **__: Any) -> list[Any]:
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[name], 0))]

    monkeypatch.setattr(resolver.socket, "getaddrinfo", ask)
    return known


def write(neutron: Neutron, *lines: str) -> None:
    (neutron.folder / "hosts").write_text("\n".join(lines))


def test_a_name_server_knows_them(neutron: Neutron, zone: dict[str, str]) -> None:
    zone |= {"api.dev.example.com": API} | dict.fromkeys(APPS, INGRESS)
    assert neutron.found(names, **BOTH) == []


def test_the_hosts_file_is_stronger(neutron: Neutron, zone: dict[str, str]) -> None:
    zone |= {"api.dev.example.com": "203.0.113.1"} | dict.fromkeys(APPS, INGRESS)
    write(neutron, f"{API} API.dev.example.com # ours")
    assert neutron.found(names, **BOTH) == []


def test_nobody_knows_them(neutron: Neutron, wording: Wording) -> None:
    wording(neutron.found(names, **BOTH))


def test_one_name_leads_elsewhere(neutron: Neutron, zone: dict[str, str]) -> None:
    zone |= {"api.dev.example.com": API, APPS[0]: INGRESS, APPS[1]: "203.0.113.1"}
    what = f"leads to 203.0.113.1 (the resolver), not to {INGRESS}"
    assert neutron.found(names, **BOTH) == [f"error names: {APPS[1]}: {what}"]


@pytest.mark.parametrize(
    ("fields", "api", "ingress", "found"),
    [
        ({}, "10.0.0.5", "10.0.0.7", []),  # reached without NAT
        ({}, "10.0.0.7", "10.0.0.7", ["error"]),
        ({"api_vips": ("10.0.0.9",)}, "10.0.0.9", "10.0.0.7", []),
        (BOTH, "10.0.0.5", "10.0.0.7", ["warning", "warning"]),
        (BOTH | {"api_vips": ("198.51.100.1",), "load_balancer": "UserManaged"}, "198.51.100.1", INGRESS, []),
        (BALANCED, "10.0.0.5", "10.0.0.7", []),
        (BALANCED, "203.0.113.5", "203.0.113.7", ["warning", "warning"]),  # where it is reached, only the user knows
        ({"external_network": "external", "api_floating_ip": API}, API, INGRESS, []),  # one to be attached later
        ({"external_network": "external", "api_floating_ip": API}, API, API, ["error"]),
    ],
)
def test_which_address_is_right(
    neutron: Neutron, fields: dict[str, Any], api: str, ingress: str, found: list[str]
) -> None:
    for address in (API, INGRESS):
        neutron.add("floatingips", FLOATING, id=address, floating_ip_address=address)
    write(neutron, f"{api} api.dev.example.com", f"{ingress} {' '.join(APPS)}")
    fields = {"external_network": None} | fields
    assert [each.partition(" ")[0] for each in neutron.found(names, **fields)] == found


def test_the_remedy_says_the_addresses_that_the_file_does_not(neutron: Neutron) -> None:
    def told(**fields: str) -> str:
        api, ingress = (each.fix for each in names(neutron.context(**fields)))
        assert api == ingress
        return api.partition(f"{neutron.folder}/hosts ")[2].partition("--as hosts")[0].strip()

    assert told(**BOTH) == ""
    assert told(api_floating_ip=API) == "--ingress ADDR"
    for address in (API, INGRESS):
        neutron.add("floatingips", FLOATING, id=address, floating_ip_address=address)
    assert told(api_floating_ip=API) == f"--ingress {INGRESS}"
    assert told() == "--api 10.0.0.5 --ingress ADDR"


def test_a_hosts_file_that_is_not_there(neutron: Neutron) -> None:
    context = neutron.context(**BOTH)
    context.hosts.unlink()
    with pytest.raises(SpecError, match="cannot be read"):
        list(names(context))


def test_a_stale_line_is_named_and_replaced(neutron: Neutron) -> None:
    """The printed command ends it; without --replace, it would say "up to date" for ever."""
    hosts = neutron.folder / "hosts"
    write(neutron, "127.0.0.1 localhost", "203.0.113.99 api.dev.example.com", f"{INGRESS} {' '.join(APPS)}")
    (finding,) = names(neutron.context(**BOTH))
    assert finding.what == f"leads to 203.0.113.99 ({hosts}:2), not to {API}"
    assert "--replace" in finding.fix.split()
