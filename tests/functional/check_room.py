"""A project that a cluster could be installed in, and what check finds there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.check import CheckContext, Diagnostic, names
from openstack_prep.openshift.check.context import READER
from openstack_prep.openshift.check.network import external_network, floating_ips, networks, ovn, own_subnet, vips
from openstack_prep.openshift.install_config import FileContents, InstallConfigFields
from openstack_prep.openshift.names.hosts import ClusterNames, hosts_lines
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.client import carry_out

MINE = (
    external_network.external_network,
    floating_ips.floating_ips,
    networks.networks,
    own_subnet.own_subnet,
    vips.vips,
    names.names,
    ovn.ovn,
)
PLATFORM = "platform.openstack"


@dataclass
class Room:
    """A project that a cluster could be installed in, with two floating IPs and their names."""

    tenant: Tenant
    folder: Path
    connection: Any = field(init=False)
    cluster: InstallConfigFields = field(init=False)

    def __post_init__(self) -> None:
        self.connection = self.tenant.connect()
        self.external = self.connection.network.find_network("external", ignore_missing=False)
        api, ingress = self.float_ip(), self.float_ip()
        self.cluster = InstallConfigFields(
            release="4.18",
            cluster_name="dev",
            base_domain="example.com",
            cloud=self.tenant.cloud,
            external_network="external",
            api_floating_ip=api,
            ingress_floating_ip=ingress,
            external_dns=("192.0.2.53",),
        )
        self.name()

    def name(self) -> None:
        """Let the names lead where they should."""
        lines = hosts_lines(self.names(self.cluster.api_floating_ip or "", self.cluster.ingress_floating_ip or ""))
        self.hosts.write_text("\n".join(lines))

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts"

    @staticmethod
    def names(api: str, ingress: str) -> ClusterNames:
        return ClusterNames(cluster_name="dev", base_domain="example.com", api=api, ingress=ingress)

    def float_ip(self, network_id: str | None = None) -> str:
        return str(self.connection.network.create_ip(floating_network_id=network_id or self.external.id)["name"])

    def context(self, *, connection: Any = None, **changes: Any) -> CheckContext:
        """Return what a run of its own sees."""
        return CheckContext(
            run=CloudRun(Cloud(connection or self.tenant.connect()), READER),
            cluster=replace(self.cluster, **changes),
            contents=FileContents(),
            path=self.folder / "install-config.yaml",
            hosts=self.hosts,
        )

    def findings(self, **changes: Any) -> list[Diagnostic]:
        context = self.context(**changes)
        return [each for check in MINE for each in check(context)]

    def found(self, **changes: Any) -> list[str]:
        return [f"{each.status} {each.where}: {each.what}" for each in self.findings(**changes)]

    def mend(self, finding: Diagnostic, **words: str) -> None:
        """Do what a finding says, as a shell would read it."""
        carry_out(finding.fix, {"OS_CLIENT_CONFIG_FILE": str(self.tenant.clouds_file)}, **words)

    def own(self, **of_network: Any) -> tuple[Any, Any]:
        """Make a network with a subnet as somebody would who knows nothing of the installer."""
        neutron = self.connection.network
        network = neutron.create_network(name="machines", **of_network)
        return network, neutron.create_subnet(name="v4", network_id=network.id, cidr="10.0.0.0/16", ip_version=4)


@pytest.fixture
def room(tenant: Tenant, tmp_path: Path) -> Room:
    return Room(tenant, tmp_path)


@pytest.fixture(scope="module")
def _shared(module_tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(module_tenant, tmp_path_factory.mktemp("room"))


@pytest.fixture
def shared(_shared: Room) -> Room:
    """One for tests that have no network by its name, and whose floating IPs stay as they are."""
    _shared.name()
    return _shared


@pytest.fixture
def second_external(devcloud: Devcloud) -> Iterator[Any]:
    """Another external network, with one address; it goes before the tenant does."""
    neutron: Any = devcloud.admin.network
    network = neutron.create_network(name=f"second-{secrets.token_hex(3)}", is_router_external=True)
    pool = [{"start": "198.51.100.10", "end": "198.51.100.10"}]
    cidr = {"cidr": "198.51.100.0/24", "ip_version": 4, "is_dhcp_enabled": False, "allocation_pools": pool}
    neutron.create_subnet(network_id=network.id, **cidr)
    yield network
    for each in neutron.ips(floating_network_id=network.id):
        neutron.delete_ip(each)
    neutron.delete_network(network)
