"""A Neutron that requests-mock plays, for checks: lists, filtered as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.check import CheckContext, Diagnostic
from openstack_prep.openshift.check.context import READER
from openstack_prep.openshift.install_config import FileContents, InstallConfigFields
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, connection, failure

NEUTRON = ENDPOINTS["network"] + "/v2.0"
KINDS = ("networks", "subnets", "ports", "routers", "floatingips", "security-groups")
NETWORK = {"project_id": ADMIN_PROJECT, "router:external": False, "mtu": 1442, "port_security_enabled": True}
SUBNET = {
    "project_id": ADMIN_PROJECT,
    "network_id": "n1",
    "ip_version": 4,
    "cidr": "10.0.0.0/16",
    "gateway_ip": "10.0.0.1",
    "enable_dhcp": True,
    "dns_nameservers": ["192.0.2.53"],
    "host_routes": [],
    "allocation_pools": [{"start": "10.0.1.0", "end": "10.0.255.254"}],
}
PORT = {
    "name": "",
    "network_id": "n1",
    "mac_address": "fa:16:3e:00:00:01",
    "device_owner": "",
    "device_id": "",
    "allowed_address_pairs": [],
}
FLOATING = {"project_id": ADMIN_PROJECT, "port_id": None, "status": "DOWN", "floating_network_id": "x1"}


class Neutron:
    """A project with an external network; tests add to the lists."""

    def __init__(self, services: requests_mock.Mocker, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        for kind in KINDS:
            services.get(f"{NEUTRON}/{kind}", json=lambda request, _, kind=kind: self.answer(kind, request.qs))
        services.get(f"{NEUTRON}/network-ip-availabilities/x1", **failure(403))
        self.add("networks", NETWORK, id="x1", name="external", **{"router:external": True})
        self.add("subnets", SUBNET, id="x1-v4", name="x", network_id="x1", cidr="192.0.2.0/24")

    def add(self, kind: str, base: dict[str, Any], **fields: Any) -> dict[str, Any]:
        self.kept[kind].append(base | fields)
        return self.kept[kind][-1]

    def port(self, port_id: str, *addresses: str, **fields: Any) -> dict[str, Any]:
        fixed = [{"ip_address": each, "subnet_id": "s1"} for each in addresses]
        fields = {"project_id": ADMIN_PROJECT, "fixed_ips": fixed} | fields
        return self.add("ports", PORT, id=port_id, **fields)

    def own(self, **fields: Any) -> dict[str, Any]:
        """Add a subnet for machines that nothing is wrong with."""
        self.add("networks", NETWORK, id="n1", name="machines")
        gateway = {"network_id": "x1"}
        self.add("routers", {"project_id": ADMIN_PROJECT}, id="r1", name="r", external_gateway_info=gateway, routes=[])
        self.port("i1", "10.0.0.1", device_owner="network:router_interface", device_id="r1")
        return self.add("subnets", SUBNET, id="s1", name="machines", **fields)

    def chosen(self, kind: str, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        return [each for each in self.kept[kind] if all(str(each[key]).lower() in query[key] for key in query)]

    def answer(self, kind: str, query: dict[str, list[str]]) -> dict[str, Any]:
        return {kind.replace("-", "_"): self.chosen(kind, query)}

    def context(self, **fields: Any) -> CheckContext:
        hosts = self.folder / "hosts"
        hosts.touch()
        run = CloudRun(Cloud(connection()), READER)
        return CheckContext(run=run, cluster=cluster(**fields), contents=FileContents(), path=hosts, hosts=hosts)

    def found(self, check: Callable[[CheckContext], Iterator[Diagnostic]], **fields: Any) -> list[str]:
        """Return what one check finds."""
        return [f"{each.status} {each.where}: {each.what}" for each in check(self.context(**fields))]


def cluster(**fields: Any) -> InstallConfigFields:
    given: dict[str, Any] = {
        "release": "4.18",
        "cluster_name": "dev",
        "base_domain": "example.com",
        "cloud": "lab",
        "external_network": "external",
        "external_dns": ("203.0.113.53",),
    }
    return InstallConfigFields(**given | fields)
