"""The shipped Heat templates on a real Heat: launched, changed, scaled and deleted, as they come."""

from __future__ import annotations

import base64
import json
import re
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from openstack.connection import Connection

from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.cloud_init import check_cloud_config
from tests.functional.conftest import OPENSTACK
from tests.functional.lab import Lab

TEMPLATES = Path(__file__).parents[2] / "heat_templates"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
SECONDS = 120


@pytest.fixture
def project(tenant: Tenant) -> Iterator[Connection]:
    """A project with a network, two images and a key."""
    with tenant.connect() as made:
        network = made.network.create_network(name="nodes")
        made.network.create_subnet(name="nodes", network_id=network.id, cidr="10.0.0.0/24", ip_version=4)
        for name in ("ubuntu", "ubuntu-new"):
            made.image.create_image(name, data=qcow2(1), disk_format="qcow2", container_format="bare")
        made.compute.create_keypair(name="key", public_key=KEY)
        yield made


def stack(tenant: Tenant, *words: str, parameters: dict[str, Any] | None = None) -> str:
    """Run ``openstack stack`` as the tenant."""
    given = [f"--parameter={name}={value}" for name, value in (parameters or {}).items()]
    environment = {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud, "PATH": "/bin:/usr/bin"}
    done = subprocess.run([OPENSTACK, "stack", *words, *given], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ended(project: Connection, name: str) -> str:
    deadline = time.monotonic() + SECONDS
    while (found := project.orchestration.find_stack(name)) and found.status.endswith("IN_PROGRESS"):
        assert time.monotonic() < deadline, found.status
        time.sleep(0.5)
    return str(found.status) if found else "gone"


def outputs(project: Connection, name: str) -> dict[str, Any]:
    found = project.orchestration.find_stack(name)
    shown = project.orchestration.get(f"/stacks/{name}/{found.id}").json()["stack"]["outputs"]
    assert not any(each.get("output_error") for each in shown), shown
    return {each["output_key"]: each["output_value"] for each in shown}


def nodes(project: Connection) -> dict[str, Any]:
    return {server.name: server for server in project.compute.servers()}


def user_data(devcloud: Devcloud, server_id: str) -> dict[str, Any]:
    """Return what cloud-init would be told."""
    raw = base64.b64decode(devcloud.admin.compute.get_server(server_id).user_data).decode()
    assert raw.startswith("#cloud-config\n")
    config = dict(yaml.safe_load(raw))
    check_cloud_config(config)
    return config


def signal_ready(command: str, server: str) -> None:
    """Say that a server is ready, as its cloud-init would by that command."""
    url, token = re.search(r"(http://\S+/signal)", command), re.search(r"X-Auth-Token: ([^'\"]+)", command)
    assert url
    assert token
    body = {"status": "SUCCESS", "reason": "ready", "id": server}
    requests.post(url[1].strip("'\""), json=body, headers={"X-Auth-Token": token[1]}, timeout=30).raise_for_status()


def test_rke(tenant: Tenant, project: Connection, devcloud: Devcloud) -> None:
    """Servers that say when they are ready; another image replaces them; scaled in by choice."""
    template = str(TEMPLATES / "rke-cluster.yaml")
    given = {"node_count": 2, "image": "ubuntu", "flavor": "m1.small", "key_name": "key", "network": "nodes"}
    stack(tenant, "create", "-t", template, "rke", parameters=given)
    deadline = time.monotonic() + SECONDS
    while [each.status for each in nodes(project).values()] != ["ACTIVE"] * 2:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    before = nodes(project)
    told = user_data(devcloud, before["rke-0"].id)
    script = next(each["content"] for each in told["write_files"] if each["path"].endswith("setup"))
    assert "https://releases.rancher.com/install-docker/27.2.sh" in script
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert project.orchestration.find_stack("rke").status == "CREATE_IN_PROGRESS"
    for name in before:
        signal_ready(told["runcmd"][0], name)
    assert ended(project, "rke") == "CREATE_COMPLETE"

    stack(tenant, "update", "-t", template, "rke", parameters=given | {"image": "ubuntu-new", "wait_timeout": 0})
    assert ended(project, "rke") == "UPDATE_COMPLETE"
    after = nodes(project)
    assert after.keys() == before.keys()
    assert not {each.id for each in after.values()} & {each.id for each in before.values()}

    fewer = given | {"node_count": 1, "nodes_to_remove": "0", "image": "ubuntu-new", "wait_timeout": 0}
    stack(tenant, "update", "-t", template, "rke", parameters=fewer)
    assert ended(project, "rke") == "UPDATE_COMPLETE"
    shown = outputs(project, "rke")
    assert (shown["node_names"], shown["node_ids"]) == (["rke-1"], [after["rke-1"].id])
    stack(tenant, "delete", "-y", "--wait", "rke")
    assert nodes(project) == {}


NODES = (
    Network(name="nodes"),
    Subnet(name="nodes", network="nodes", cidr="10.0.0.0/24", allocation_pools=("10.0.0.10-10.0.0.199",)),
    Router(name="nodes", external_network="external", interfaces=("nodes",)),
)


def rke2(image: str, **parameters: Any) -> Stack:
    """One server and two agents, with everything that can be chosen."""
    given: dict[str, Any] = {
        **dict.fromkeys(("server_image", "agent_image"), image),
        **dict.fromkeys(("server_flavor", "agent_flavor"), "m1.small"),
        **dict.fromkeys(("network", "subnet"), "nodes"),
        **{"server_count": 1, "agent_count": 2, "key_name": "key", "zones": "nova", "wait_timeout": 0},
        **{"api_address": "10.0.0.5", "extra_addresses": "10.0.0.240/29", "tls_san": "api.example.com"},
        **{"cni": "multus,calico", "ssh_allowed_cidrs": "192.0.2.0/24", "rke2_version": "v1.35.7+rke2r1"},
        **{"floating_network": "external", "node_floating_ips": True, "agent_volume_size": 3},
    }
    protect = str(TEMPLATES / "rke2-protect.yaml")
    template = "shipped:rke2-cluster.yaml"
    return Stack(name="rke2", template=template, parameters=given | parameters, environments=(protect,))


def test_rke2(lab: Lab, devcloud: Devcloud) -> None:
    """Servers and agents behind the API's address; agents are rolled and removed by choice, etcd members never."""
    old, new = (f"ubuntu-{secrets.token_hex(3)}" for _ in range(2))
    for name in (old, new):
        devcloud.admin.image.create_image(
            name, data=qcow2(1), disk_format="qcow2", container_format="bare", visibility="public"
        )
    lab.apply(*NODES, Keypair(name="key", public_key=KEY))
    project = lab.as_user().connection
    lab.apply(*NODES, rke2(old))
    before, shown = nodes(project), outputs(project, "rke2")
    assert sorted(before) == ["rke2-agent-0", "rke2-agent-1", "rke2-server-0"]
    assert shown["api_endpoint"] == f"https://{shown['api_floating_address']}:6443"
    assert pairs(project, shown["server_ports"]) == [["10.0.0.240/29", "10.0.0.5"]]
    assert pairs(project, shown["agent_ports"]) == [["10.0.0.240/29"]] * 2
    floating = {each.floating_ip_address: each.port_id for each in project.network.ips()}
    assert [floating[each] for each in shown["node_floating_addresses"]] == shown["server_ports"] + shown["agent_ports"]
    assert sorted(each.size for each in project.block_storage.volumes()) == [3, 3]
    assert {179, 4789, 5473, 10250} < {rule.port_range_min for rule in project.network.security_group_rules()}
    token = check_user_data(devcloud, before)
    assert token not in json.dumps(shown)

    # what must not touch etcd members, and what it rolls; agent 0 is the one to go
    rolled = {"agent_image": new, "agent_count": 1, "agents_to_remove": "0", "cluster_cidr": "10.44.0.0/16"}
    replaced, deleted = lab.plan(*NODES, rke2(old, **rolled)).refusals
    assert "would replace agents.1.server" in replaced.what
    assert "agents.0.server (OS::Nova::Server rke2-agent-0)" in deleted.what
    for refusal in (replaced, deleted):
        assert "servers.0" not in refusal.what
    assert "agents.1" not in deleted.what
    lab.apply(*NODES, rke2(old, **rolled), allow_replace=True)
    after = nodes(project)
    assert sorted(after) == ["rke2-agent-1", "rke2-server-0"]
    assert after["rke2-server-0"].id == before["rke2-server-0"].id
    assert after["rke2-agent-1"].id != before["rke2-agent-1"].id
    assert outputs(project, "rke2")["agent_addresses"] == shown["agent_addresses"][1:]

    report = lab.run(*NODES, rke2(old, **rolled, server_image=new), allow_replace=True)
    (said,) = (str(each.error) for each in report.results if each.error)
    assert "is UPDATE_FAILED: servers.0.server: " in said
    assert "replace is restricted" in said
    assert nodes(project)["rke2-server-0"].id == before["rke2-server-0"].id

    assert "stack/rke2" in lab.destroy()
    for name in (old, new):
        devcloud.admin.image.delete_image(devcloud.admin.image.find_image(name))


def pairs(project: Connection, ports: list[str]) -> list[list[str]]:
    found = (project.network.get_port(port).allowed_address_pairs for port in ports)
    return [sorted(pair["ip_address"] for pair in each) for each in found]


def check_user_data(devcloud: Devcloud, found: dict[str, Any]) -> str:
    """Look at what servers and agents are told; return the token."""
    files = {
        name: {each["path"]: each["content"] for each in user_data(devcloud, server.id)["write_files"]}
        for name, server in found.items()
    }
    server, agent = (
        yaml.safe_load(files[each]["/etc/rancher/rke2/config.yaml"]) for each in ("rke2-server-0", "rke2-agent-0")
    )
    assert (server["tls-san"][0], server["tls-san"][2]) == ("10.0.0.5", "api.example.com")
    assert (server["cni"], server["node-taint"]) == (["multus", "calico"], ["CriticalAddonsOnly=true:NoExecute"])
    assert len(server["token"]) == 48
    assert agent == {"token": server["token"]}
    (vip,) = (each for each in files["rke2-server-0"] if each.endswith("kube-vip.yaml"))
    assert "10.0.0.5" in json.dumps(list(yaml.safe_load_all(files["rke2-server-0"][vip])))
    for name, each in files.items():
        script = each["/var/lib/rke2-node/setup"]
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)
        assert f"role='{name.split('-')[1]}'" in script
        assert "INSTALL_RKE2_VERSION='v1.35.7+rke2r1'" in script
    return str(server["token"])
