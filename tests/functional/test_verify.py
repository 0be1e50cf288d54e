"""What verify sees on a real Neutron and Nova, of a cluster that the stand-in made."""

from __future__ import annotations

import json
from typing import Any

from tests import standin
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep

DEV = "dev-x7k2p"


def float_ip(connection: Any) -> str:
    external = connection.network.find_network("external", ignore_missing=False)
    return str(connection.network.create_ip(floating_network_id=external.id).floating_ip_address)


def links(prep: Prep, *words: str, code: int) -> dict[str, list[str]]:
    """Return by chain "place status" in order."""
    out = prep.run("verify", "--format", "json", *words, code=code).stdout
    seen = json.loads(out)
    assert seen["ok"] == (code == 0)
    return {chain["name"]: [f"{link['where']} {link['status']}" for link in chain["links"]] for chain in seen["chains"]}


def until_active(connection: Any) -> None:
    for server in connection.compute.servers():
        connection.compute.wait_for_server(server, interval=0.2, wait=120)


RIGHT = ["port ok", "router ok", "address pairs ok"]


def test_a_way_is_broken_mended_and_broken_again(devcloud: Devcloud, tenant: Tenant, prep: Prep) -> None:
    connection = tenant.connect()
    api, ingress = float_ip(connection), float_ip(connection)
    dev = standin.make(connection, DEV, api_floating_ip=api, masters=1, workers=1)
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    hosts = prep.folder / "hosts"
    apps = [f"{route}.apps.dev.example.com" for route in ("console-openshift-console", "oauth-openshift")]
    hosts.write_text(f"{api} api.dev.example.com\n{ingress} {' '.join(apps)}\n")
    words = ["--infra-id", DEV, "--base-domain", "example.com", "--hosts", "hosts"]
    until_active(connection)
    tail = ["security groups ok", "machines ok"]

    mark = devcloud.mark()
    found = links(prep, *words, code=1)
    assert len([each for each in devcloud.requests_since(mark) if each.service != "keystone"]) <= 9
    assert found["api"] == ["name ok", "floating IP ok", *RIGHT, *tail]
    assert found["ingress"] == ["name ok", "name ok", "floating IP error", *RIGHT, "security groups ok", *tail]
    said = prep.run("verify", *words, code=1).stdout
    (fix,) = [line.partition("fix: ")[2] for line in said.splitlines() if "fix: " in line]
    assert fix == f"openstack-prep post-ipi --infra-id {DEV} --ingress-ip {ingress}"
    prep.run(*fix.split()[1:], "--yes")
    assert f"{DEV}: no problems found" in prep.run("verify", *words, "--html", "report.html").stdout
    assert "<svg" in (prep.folder / "report.html").read_text()
    mark = devcloud.mark()
    drawn = json.loads(prep.run("topology", "--infra-id", DEV, "--format", "json").stdout)
    assert len([each for each in devcloud.requests_since(mark) if each.service != "keystone"]) <= 9
    assert {each["role"] for each in drawn["servers"]} == {"master", "worker"}
    assert {each["address"]: each["target"] for each in drawn["floating_ips"]} == {
        api: f"{DEV}-api-port",
        ingress: f"{DEV}-ingress-port",
    }
    wrong = prep.run("verify", "--infra-id", "dev-zzzzz", code=1).stdout
    assert f"it holds ports of {DEV}" in wrong

    del prep.environment["OS_CLOUD"]
    words += ["--os-cloud", tenant.cloud]
    network, nova = connection.network, connection.compute
    (worker,) = [port for port in dev.nodes() if "-worker-" in port.name]
    network.update_port(worker, allowed_address_pairs=[])
    for rule in network.security_group_rules(security_group_id=worker.security_group_ids[0], port_range_min=443):
        network.delete_security_group_rule(rule)
    nova.stop_server(worker.device_id)
    nova.wait_for_server(nova.get_server(worker.device_id), status="SHUTOFF", interval=0.2, wait=60)
    hosts.write_text(f"192.0.2.1 api.dev.example.com\n{ingress} {' '.join(apps)}\n")
    said = prep.run("verify", *words, code=1).stdout
    assert f"api.dev.example.com is 192.0.2.1 (hosts:1), not {api}" in said
    names, pairs, rule, server = [line.partition("fix: ")[2] for line in said.splitlines() if "fix: openst" in line]
    prep.run(*pairs.split()[1:], "--yes")
    assert prep.openstack(*rule.split()[1:])["port_range_min"] == 443
    assert server == f"openstack --os-cloud {tenant.cloud} server start {worker.device_id}"
    nova.start_server(worker.device_id)
    nova.wait_for_server(nova.get_server(worker.device_id), interval=0.2, wait=60)
    prep.run(*names.partition("  # ")[0].split()[1:])  # which names the line of the old address, too
    assert f"{DEV}: no problems found" in prep.run("verify", *words).stdout
