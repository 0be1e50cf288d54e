"""The fixtures of the functional tests, on a devcloud with OVN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests import standin
from tests.devcloud.ovn import Ovn, until_active
from tests.devcloud.pytest_devcloud import Devcloud, devcloud, pytest_runtest_teardown, tenant
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep, lab, own_lab, prep

__all__ = ["devcloud", "lab", "own_lab", "prep", "pytest_runtest_teardown", "tenant"]

INFRA_ID = "dev-x7k2p"


@dataclass(frozen=True)
class Cluster:
    """A cluster of the stand-in whose machines run, and OVN's view of it."""

    ovn: Ovn
    admin: Any
    connection: Any
    api: Any
    """The floating IP of the API."""
    masters: tuple[Any, ...]
    worker: Any

    def reached(self, tcp_port: int = 6443) -> set[str]:
        """Return the ids of the machines' ports that get a connection to the API's floating IP."""
        return self.ovn.from_outside(self.admin, self.api, tcp_port)

    def holds_virtual_address(self, master: Any) -> None:
        """Let a master send for the virtual address of the API, as its keepalived does when it takes over."""
        self.ovn.claim(self.api.port_id, parent=master.id)

    def port(self, port: Any) -> Any:
        return self.connection.network.get_port(port.id)


@pytest.fixture
def cluster(devcloud: Devcloud, tenant: Tenant, prep: Prep) -> Cluster:
    ovn, connection = Ovn(devcloud.layout), tenant.connect()
    network: Any = connection.network
    external = network.find_network("external", ignore_missing=False)
    address = network.create_ip(floating_network_id=external.id).floating_ip_address
    made = standin.make(connection, INFRA_ID, api_floating_ip=address, masters=2, workers=1)
    for server in connection.compute.servers():
        connection.compute.wait_for_server(server, interval=0.2, wait=120)
    machines = sorted(made.nodes(), key=lambda port: str(port.name))
    for port in machines:
        ovn.claim(port.id)
        until_active(connection, port.id)
    (api,) = network.ips()
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    masters = tuple(port for port in machines if "-master-" in port.name)
    (worker,) = (port for port in machines if "-worker-" in port.name)
    cluster = Cluster(ovn, devcloud.admin, connection, api, masters, worker)
    cluster.holds_virtual_address(masters[0])
    return cluster
