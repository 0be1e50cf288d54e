"""Fixes that verify prints, carried out as they stand: the finding is gone, and nothing else has changed.

Those of check are in test_check*.py; tests/unit/fixes.yaml lists where each code has its test.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from openstack_prep.clusters import installer_names as naming
from tests import standin
from tests.devcloud.tenant import Tenant
from tests.functional import warm
from tests.functional.client import carry_out
from tests.functional.conftest import Prep

DEV = "dev-x7k2p"
KINDS = ("networks", "subnets", "ports", "routers", "floatingips", "security-groups", "security-group-rules")
VOLATILE = (
    "revision_number",
    "updated_at",
    "created_at",
    "status",
    "device_id",
    "security_group_rules",
    "port_details",
)
"""What changes by itself, or is listed as a kind of its own."""
CONFIG = """\
baseDomain: example.com
metadata: {name: dev}
platform:
  openstack: {cloud: C, externalNetwork: external, apiVIPs: [10.0.0.5], ingressVIPs: [10.0.0.7]}
"""


@dataclass
class Site:
    """A cluster that nothing is wrong with, and the command as the user of its project."""

    tenant: Tenant
    prep: Prep
    connection: Any = field(init=False)
    api: str = field(init=False)
    ingress: str = field(init=False)

    def __post_init__(self) -> None:
        self.connection = self.tenant.connect()
        self.network = self.connection.network
        external = self.network.find_network("external", ignore_missing=False)
        self.api, self.ingress = (self.network.create_ip(floating_network_id=external.id).name for _ in range(2))
        standin.make(self.connection, DEV, api_floating_ip=self.api, masters=1, workers=2)
        self.network.update_ip(self.network.find_ip(self.ingress), port_id=self.port("ingress-port").id)
        self.prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(self.tenant.clouds_file), "OS_CLOUD": self.tenant.cloud}
        (self.prep.folder / "install-config.yaml").write_text(CONFIG)
        for server in self.connection.compute.servers():
            self.connection.compute.wait_for_server(server, interval=0.2, wait=120)
        self.name()

    def name(self) -> None:
        apps = [f"{route}.apps.dev.example.com" for route in ("console-openshift-console", "oauth-openshift")]
        lines = ["127.0.0.1 localhost", f"{self.api} api.dev.example.com", f"{self.ingress} {' '.join(apps)}"]
        (self.prep.folder / "hosts").write_text("\n".join(lines) + "\n")

    def port(self, name: str) -> Any:
        return self.network.find_port(f"{DEV}-{name}", ignore_missing=False)

    @property
    def workers(self) -> list[Any]:
        return [port for port in self.network.ports() if "-worker-" in port.name]

    @property
    def router(self) -> Any:
        (found,) = self.network.routers(project_id=self.tenant.project_id)
        return found

    def findings(self, *words: str) -> dict[str, str]:
        """Return the fixes of what is wrong, by code, of the report that the command prints."""
        given = (
            "--infra-id",
            DEV,
            "--install-config",
            "install-config.yaml",
            "--hosts",
            "hosts",
            "--format",
            "json",
            *words,
        )
        code, out, err = warm.run(("verify", *given), os.environ | self.prep.environment, self.prep.folder, 120)
        assert code in (0, 1), err
        links = [link for chain in json.loads(out)["chains"] for link in chain["links"]]
        return {link["code"]: link["fix"] for link in links if link["status"] in ("error", "warning")}

    def snapshot(self) -> dict[tuple[str, str], str]:
        """Return what the project has of each kind, and the lines of the hosts file."""
        found = {
            (kind, each["id"]): json.dumps({k: v for k, v in each.items() if k not in VOLATILE}, sort_keys=True)
            for kind in KINDS
            for each in self.network.get(f"/{kind}", params={"project_id": self.tenant.project_id}).json()[
                kind.replace("-", "_")
            ]
        }
        servers = self.connection.compute.servers(details=True)
        found |= {("servers", each.id): each.status for each in servers}
        return found | {("hosts", (self.prep.folder / "hosts").read_text()): ""}

    def await_servers(self) -> None:
        """Wait until Nova has done what commands began: `openstack server start` ends before the server runs."""
        deadline = time.monotonic() + 60
        while any(each.task_state for each in self.connection.compute.servers(details=True)):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def carry_out(self, fix: str) -> Counter[str]:
        """Do what a fix says, and return how many of each kind have changed; hosts counts once per version."""
        before = self.snapshot()
        for command in fix.partition("  # ")[0].split(" && "):
            if command.startswith("openstack-prep "):
                words = shlex.split(command)[1:]
                ask = ["--yes"] if words[0] == "post-ipi" else []  # it asks on a terminal, which a test is not
                self.prep.run(*words, *ask)
            else:
                carry_out(command, self.prep.environment, self.prep.folder)
        self.await_servers()
        after = self.snapshot()
        keys = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        return Counter(kind for kind, _ in keys)


@pytest.fixture(scope="module")
def site(module_tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(module_tenant, Prep(tmp_path_factory.mktemp("fixes")))


def _detach(site: Site) -> None:
    site.network.update_ip(site.network.find_ip(site.api), port_id=None)


def _elsewhere(site: Site) -> None:
    site.network.update_ip(site.network.find_ip(site.api), port_id=site.port("master-0-0").id)


def _disable_port(site: Site) -> None:
    site.network.update_port(site.port("api-port"), is_admin_state_up=False)


def _disable_workers_ports(site: Site) -> None:
    for port in site.workers:
        site.network.update_port(port.id, admin_state_up=False)


def _untag(site: Site) -> None:
    site.network.set_tags(site.port("api-port"), [])


def _second_port(site: Site) -> None:
    port = site.port("api-port")
    second = site.network.create_port(network_id=port.network_id, name=port.name)
    site.network.set_tags(second, [naming.tag(DEV)])


def _disable_router(site: Site) -> None:
    site.network.update_router(site.router, is_admin_state_up=False)


def _security_off(site: Site) -> None:
    for port in site.workers:
        site.network.update_port(port, allowed_address_pairs=[], security_groups=[], is_port_security_enabled=False)


def _no_pairs(site: Site) -> None:
    for port in site.workers:
        site.network.update_port(port, allowed_address_pairs=[])


def _no_groups(site: Site) -> None:
    for port in site.workers:
        site.network.update_port(port, security_groups=[])


def _no_rule(site: Site) -> None:
    for rule in site.network.security_group_rules(security_group_id=site.workers[0].security_group_ids[0]):
        if rule.port_range_min == 443:
            site.network.delete_security_group_rule(rule)


def _stop(site: Site) -> None:
    for port in site.workers:
        site.connection.compute.stop_server(port.device_id)
    for port in site.workers:
        server = site.connection.compute.get_server(port.device_id)
        site.connection.compute.wait_for_server(server, status="SHUTOFF", interval=0.2, wait=60)


def _stale_line(site: Site) -> None:
    hosts = site.prep.folder / "hosts"
    hosts.write_text(f"192.0.2.99 api.dev.example.com jump\n{hosts.read_text()}")


def _no_line(site: Site) -> None:
    (site.prep.folder / "hosts").write_text("127.0.0.1 localhost\n")


def _no_vrrp(site: Site) -> None:
    for rule in site.network.security_group_rules(security_group_id=site.workers[0].security_group_ids[0]):
        if rule.protocol in ("112", "vrrp"):
            site.network.delete_security_group_rule(rule)


def _without_answers(site: Site) -> None:
    """Let the workers' group keep no connections, and let nothing out but VRRP."""
    network: Any = site.network
    group = site.workers[0].security_group_ids[0]
    for rule in network.security_group_rules(security_group_id=group, direction="egress"):
        network.delete_security_group_rule(rule)
    network.create_security_group_rule(security_group_id=group, direction="egress", protocol="112")
    network.update_security_group(group, stateful=False)


BROKEN: dict[str, tuple[Callable[[Site], None], dict[str, int]]] = {
    "floating-ip.detached": (_detach, {"floatingips": 1}),
    "floating-ip.in-use": (_elsewhere, {"floatingips": 1}),
    "port.disabled": (_disable_port, {"ports": 1}),
    "port.down": (_disable_workers_ports, {"ports": 2}),
    "port.no-tag": (_untag, {"ports": 1}),
    "port.ambiguous": (_second_port, {"ports": 1}),
    "router.disabled": (_disable_router, {"routers": 1}),
    "pairs.missing": (_no_pairs, {"ports": 2}),
    "security-group.blocks": (_no_rule, {"security-group-rules": 1}),
    "security-group.no-vrrp": (_no_vrrp, {"security-group-rules": 1}),
    "machine.not-active": (_stop, {"servers": 2}),
    "dns.wrong-address": (_stale_line, {"hosts": 2}),
    "dns.missing": (_no_line, {"hosts": 2}),
}
"""How the finding of a code comes about, and how many things of which kind its fix may change."""


ALWAYS = (
    "floating-ip.detached",
    "port.no-tag",
    "pairs.missing",
    "security-group.blocks",
    "machine.not-active",
    "dns.missing",
)
"""One for each command that fixes consist of; the others are ``more``."""


@pytest.mark.parametrize(
    "code", [each if each in ALWAYS else pytest.param(each, marks=pytest.mark.more) for each in BROKEN]
)
def test_a_fix_of_verify_mends_its_finding_alone(site: Site, code: str) -> None:
    break_it, changes = BROKEN[code]
    assert site.findings() == {}
    break_it(site)
    fix = site.findings()[code]
    assert site.carry_out(fix) == changes
    for port in site.workers:
        site.connection.compute.wait_for_server(
            site.connection.compute.get_server(port.device_id), interval=0.2, wait=60
        )
    assert site.findings() == {}


def test_port_security_and_groups_of_ports(site: Site) -> None:
    """Port security alone would cut the machines off: groups and pairs come with it."""
    assert site.findings() == {}
    _security_off(site)
    assert site.findings().keys() == {"port-security.off"}
    assert site.carry_out(site.findings()["port-security.off"]) == {"ports": 2}
    assert site.findings() == {}
    _no_groups(site)
    assert site.carry_out(site.findings()["security-group.blocks"]) == {"ports": 2}
    assert site.findings() == {}


def test_another_floating_ip_than_the_expected_one(site: Site) -> None:
    external = site.network.find_network("external", ignore_missing=False)
    other = site.network.create_ip(floating_network_id=external.id).name
    fix = site.findings("--api-ip", other)["floating-ip.other-address"]
    assert site.carry_out(fix) == {"floatingips": 2}
    assert site.findings("--api-ip", other).keys() == {"dns.wrong-address"}
    assert site.carry_out(site.findings("--api-ip", other)["dns.wrong-address"]) == {"hosts": 2}
    assert site.findings("--api-ip", other) == {}
    site.network.update_ip(site.network.find_ip(other), port_id=None)
    site.network.update_ip(site.network.find_ip(site.api), port_id=site.port("api-port").id)
    site.name()


def test_a_router_that_is_missing_or_leads_nowhere(site: Site) -> None:
    assert site.findings() == {}
    for address in (site.api, site.ingress):  # Neutron keeps a router that serves floating IPs
        site.network.update_ip(site.network.find_ip(address), port_id=None)
    subnet = site.port("api-port").fixed_ips[0]["subnet_id"]
    site.network.update_router(site.router, external_gateway_info={})
    given = ("--api-ip", site.api, "--ingress-ip", site.ingress)
    assert site.carry_out(site.findings(*given)["router.no-gateway"])["routers"] == 1
    site.network.remove_interface_from_router(site.router, subnet_id=subnet)
    changed = site.carry_out(site.findings(*given)["router.missing"])
    assert changed.keys() <= {"routers", "ports"}
    assert "router.missing" not in site.findings(*given)
    assert site.carry_out(site.findings(*given)["floating-ip.detached"]) == {"floatingips": 1}
