"""A cluster whose machines run, on a devcloud that carries traffic."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from tests import standin
from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.devcloud.pytest_devcloud import Devcloud, devcloud, module_tenant, pytest_runtest_teardown, tenant
from tests.devcloud.tenant import Tenant
from tests.functional import warm
from tests.functional.conftest import COMMAND, Prep, prep
from tests.packets.machines import serve_outside
from tests.packets.played_cluster import CHECKED, HOSTS, OAUTH, PlayedCluster

__all__ = ["devcloud", "module_tenant", "prep", "pytest_runtest_teardown", "tenant"]

INFRA_ID = "dev-x7k2p"
SERVER = ("192.168.122.1", 8443)
"""Address and TCP port of a server on the external network."""


@dataclass(frozen=True)
class World:
    """A played cluster, its project, and the command in the hands of its user."""

    played: PlayedCluster
    tenant: Tenant
    prep: Prep
    administrator: Any
    """Connection of the administrator."""

    @cached_property
    def network(self) -> Any:
        return self.played.cluster.connection.network

    @cached_property
    def compute(self) -> Any:
        return self.played.cluster.connection.compute

    def ports(self, role: str) -> list[Any]:
        """Return the ports of the machines of a role as they are now."""
        return [each for each in self.played.cluster.nodes() if f"-{role}-" in each.name]

    def group(self, role: str) -> Any:
        return self.network.find_security_group(f"{INFRA_ID}-{role}", ignore_missing=False)

    def answers(self, service: str, port: int = 0) -> bool:
        """Whether a client outside that knows the names of the hosts file is answered by a machine of the service."""
        lines = (line.split() for line in (self.prep.folder / "hosts").read_text().splitlines())
        addresses = {name: address for address, *names in lines for name in names}
        name = self.played.request(OUTSIDE, HOSTS[service], addresses[HOSTS[service]], port or CHECKED[service])
        return name in [each.name for each in self.played.of(service)]

    def goes_out(self) -> bool:
        """Whether a worker is answered by a server outside."""
        machine, *_ = self.played.of("ingress")
        return self.played.request(machine.id, OUTSIDE, *SERVER) == OUTSIDE

    def probe(self) -> dict[str, list[dict[str, Any]]]:
        """Return the links of ``verify --probe`` as somebody outside gets them, who reaches the cloud's services."""
        plane, folder = self.played.plane, self.prep.folder
        variables = [f"{name}={value}" for name, value in self.prep.environment.items()]
        words = ["--format", "json", "--infra-id", INFRA_ID, "--base-domain", "example.com", "--hosts", "hosts"]
        ended = plane.run(
            OUTSIDE, "env", "-C", str(folder), *variables, COMMAND, "verify", "--probe", *words, seconds=120
        )
        seen = json.loads(ended.stdout)
        assert ended.returncode == (0 if seen["ok"] else 1), ended.stderr
        return {chain["name"]: chain["links"] for chain in seen["chains"]}

    def verify(self, *words: str) -> dict[str, list[dict[str, Any]]]:
        """Return the links of ``verify`` by service; its exit code fits its errors."""
        every = ["--infra-id", INFRA_ID, "--base-domain", "example.com", "--hosts", "hosts", *words]
        environment = os.environ | self.prep.environment
        ended, out, err = warm.run(("verify", "--format", "json", *every), environment, self.prep.folder, 120)
        assert ended in (0, 1), err
        seen = json.loads(out)
        assert ended == (0 if seen["ok"] else 1)
        return {chain["name"]: chain["links"] for chain in seen["chains"]}


@pytest.fixture(scope="module")
def world(devcloud: Devcloud, module_tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> World:
    connection = module_tenant.connect()
    external = connection.network.find_network("external", ignore_missing=False)
    floating = {
        service: str(connection.network.create_ip(floating_network_id=external.id).floating_ip_address)
        for service in HOSTS
    }
    made = standin.make(connection, INFRA_ID, api_floating_ip=floating["api"], masters=2, workers=2)
    for server in connection.compute.servers():
        connection.compute.wait_for_server(server, interval=0.2, wait=120)
    played = PlayedCluster(made, DataPlane(devcloud.layout), tmp_path_factory.mktemp("machines"), floating)
    played.start()
    serve_outside(played.plane, played.folder, SERVER[1])
    folder = tmp_path_factory.mktemp("user")
    lines = [f"{floating['api']} {HOSTS['api']}", f"{floating['ingress']} {HOSTS['ingress']} {OAUTH}"]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    environment = {"OS_CLIENT_CONFIG_FILE": str(module_tenant.clouds_file), "OS_CLOUD": module_tenant.cloud}
    return World(played, module_tenant, Prep(folder, environment), devcloud.admin)
