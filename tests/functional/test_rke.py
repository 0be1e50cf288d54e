"""Two RKE clusters as shipped, and one of RKE2: from nothing to files that keep in step with the nodes, and back."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.test_scenario import inventory

DATA = Path(__file__).parent / "data" / "rke-mesh"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
CLUSTERS = ("cluster1", "cluster2")
FILES = ["cilium-values.yaml", "cluster.yml", "mesh-commands.txt", "metallb.yaml"]
MESH = ("rke", "mesh", "spec.yaml")


def shipped(prep: Prep, name: str) -> dict[str, Any]:
    """Return a shipped spec as somebody with an SSH key has it, whose servers say nothing when they are ready."""
    prep.environment["HOME"] = str(prep.folder)
    (prep.folder / ".ssh").mkdir()
    (prep.folder / ".ssh" / "id_ed25519.pub").write_text(f"{KEY}\n")
    spec: dict[str, Any] = yaml.safe_load(
        (resources.files("openstack_prep.install_configs") / f"{name}.yaml").read_text()
    )
    for image in spec.get("images", ()):
        image["source"] = "disk.qcow2"
    for stack in spec["stacks"]:
        stack["parameters"]["wait_timeout"] = 0
    return spec


@pytest.fixture
def mesh(prep: Prep) -> dict[str, Any]:
    """The shipped spec with few nodes."""
    return scaled(shipped(prep, "rke-mesh"), 1, 2)


def scaled(spec: dict[str, Any], *counts: int) -> dict[str, Any]:
    for stack, count in zip(spec["stacks"], counts, strict=True):
        stack["parameters"]["node_count"] = count
    return spec


def written(prep: Prep, cluster: str, name: str = "cluster.yml") -> Any:
    return yaml.safe_load((prep.folder / cluster / name).read_text())


def check_nodes(prep: Prep, devcloud: Devcloud, spec: dict[str, Any]) -> None:
    """Hold files and ports against the servers that there are."""
    project = devcloud.admin.identity.find_project("mesh", ignore_missing=False)
    servers = {each.id: each for each in devcloud.admin.compute.servers(all_projects=True, project_id=project.id)}
    ports = [port for port in devcloud.admin.network.ports(project_id=project.id) if port.device_id in servers]
    assert len(ports) == len(servers)
    for stack, pool in zip(spec["stacks"], ("10.1.0.208/29", "10.2.0.208/29"), strict=True):
        name, count = stack["name"], stack["parameters"]["node_count"]
        mine = {servers[port.device_id].name: port for port in ports if servers[port.device_id].name.startswith(name)}
        assert len(mine) == count
        addresses = {server: port.fixed_ips[0]["ip_address"] for server, port in mine.items()}
        nodes = {node["hostname_override"]: node["address"] for node in written(prep, name)["nodes"]}
        assert nodes == addresses
        for port in mine.values():
            assert [pair["ip_address"] for pair in port.allowed_address_pairs] == [pool]
    assert not list(devcloud.admin.network.ports(project_id=project.id, device_owner="openstack-prep:reserved"))


def compare_with_stored(prep: Prep) -> None:
    """Hold the files against tests/functional/data; OPENSTACK_PREP_STORE=1 writes those anew."""
    for cluster in CLUSTERS:
        for path in (prep.folder / cluster).iterdir():
            text = path.read_text().replace(str(prep.folder), "HOME")
            text = re.sub(r"(?<=\[openstack-prep:mesh/)(\w+)@[^\]]+", r"\1", text)  # home project and cloud
            nodes = written(prep, cluster)["nodes"]
            for node in nodes:
                text = text.replace(f"address: {node['address']}\n", f"address: of-{node['hostname_override']}\n")
            stored = DATA / cluster / path.name
            if os.environ.get("OPENSTACK_PREP_STORE"):
                stored.parent.mkdir(parents=True, exist_ok=True)
                stored.write_text(text)
            assert text == stored.read_text()
        assert sorted(path.name for path in (DATA / cluster).iterdir()) == FILES


def test_two_clusters_from_nothing_scaled_and_back_to_nothing(
    prep: Prep, mesh: dict[str, Any], devcloud: Devcloud
) -> None:
    before = inventory(devcloud)
    prep.write(mesh)
    report = prep.apply()
    assert {step["status"] for step in report.values()} == {"done"}
    assert report["rke_cluster/cluster1"]["outputs"]["next"].startswith("rke up --config cluster1/cluster.yml")
    check_nodes(prep, devcloud, mesh)
    compare_with_stored(prep)
    for cluster in CLUSTERS:
        assert sorted(path.name for path in (prep.folder / cluster).iterdir()) == FILES
        assert {path.stat().st_mode & 0o777 for path in (prep.folder / cluster).iterdir()} == {0o600}
        prep.run("rke", "check", f"{cluster}/cluster.yml")
    assert prep.changes() == set()
    mesh_is_mended_by_the_spec(prep, devcloud)

    mend_by_hand_and_as_the_user(prep, devcloud)
    check_roles_of_those_that_stay(prep, mesh)

    prep.write(scaled(mesh, 2, 1))
    said = prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    assert "stack/cluster2: the update would delete nodes.1 (OS::Nova::Server cluster2-1)" in said
    changed = {key for key, step in prep.apply("--allow-replace").items() if step["action"] != "keep"}
    assert changed == {f"{kind}/{name}" for kind in ("stack", "rke_cluster", "address_pairs") for name in CLUSTERS} - {
        "address_pairs/cluster2"  # a port that goes takes its pairs along
    }
    check_nodes(prep, devcloud, mesh)
    assert prep.changes() == set()

    (prep.folder / "cluster1" / "cluster.rkestate").write_text("{}")
    assert "cluster1 is kept because it contains cluster.rkestate" in prep.destroy().stdout
    assert inventory(devcloud) == before
    assert [path.name for path in (prep.folder / "cluster1").iterdir()] == ["cluster.rkestate"]
    assert not (prep.folder / "cluster2").exists()


def check_roles_of_those_that_stay(prep: Prep, mesh: dict[str, Any]) -> None:
    """With three nodes the second is promoted, which is shown; what the first may not lose unasked is refused."""
    prep.write(scaled(mesh, 1, 3))
    promoted = "drift -[roles cluster2-1: worker -> controlplane, etcd, worker]"
    assert promoted in prep.run("plan", prep.spec.name).stdout
    groups = [{"nodes": 0, "roles": ["worker"]}, {"nodes": "1-", "roles": ["controlplane", "etcd"]}]
    first, second = scaled(mesh, 1, 2)["rke_clusters"]
    prep.write(mesh | {"rke_clusters": [first, second | {"roles": groups}]})
    said = prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    demoted = "rke_cluster/cluster2: roles cluster2-0: controlplane, etcd, worker -> worker: would lose role"
    assert f"{demoted} controlplane and role etcd while remaining in the cluster" in said


def mesh_is_mended_by_the_spec(prep: Prep, devcloud: Devcloud) -> None:
    """A declared rule and a declared pair that somebody took away come back by the spec, with our record."""
    project = devcloud.admin.identity.find_project("mesh", ignore_missing=False)
    port = next(each for each in devcloud.admin.network.ports(project_id=project.id) if each.allowed_address_pairs)
    devcloud.admin.network.update_port(port, allowed_address_pairs=[])
    health = {"project_id": project.id, "port_range_min": 4240, "remote_ip_prefix": "10.2.0.0/24"}
    for rule in list(devcloud.admin.network.security_group_rules(**health)):
        devcloud.admin.network.delete_security_group_rule(rule)
    user = Prep(prep.folder, prep.environment | {"OS_CLIENT_CONFIG_FILE": "mesh/clouds.yaml", "OS_CLOUD": "mesh"})
    by_administrator, by_user = (
        {each["fix"] for each in json.loads(who.run(*MESH, "--format", "json", code=1).stdout)["findings"]}
        for who in (prep, user)
    )
    sync, apply = "openstack-prep address-pairs sync spec.yaml", "openstack-prep apply spec.yaml"
    assert (by_administrator, by_user) == ({apply}, {sync, apply})
    user.run(*sync.split()[1:])
    prep.apply()
    assert "no problems found" in prep.run(*MESH).stdout


def mend_by_hand_and_as_the_user(prep: Prep, devcloud: Devcloud) -> None:
    """What was changed in files is told and put right, alone, by the project's own user as well."""
    first, second = (prep.folder / cluster for cluster in CLUSTERS)
    good = (first / "cluster.yml").read_text()
    (first / "cluster.yml").write_text(good.replace("plugin: none", "plugin: canal"))
    (second / "metallb.yaml").unlink()
    said = prep.run("plan", prep.spec.name).stdout
    assert "drift -[cluster.yml: network.plugin canal -> none]" in said
    assert "drift -[metallb.yaml is missing]" in said
    mark = devcloud.mark()
    prep.run("rke", "render", prep.spec.name, "--cluster", "cluster1")
    assert (first / "cluster.yml").read_text() == good
    assert not (second / "metallb.yaml").exists()
    changing = {each.path.split("/")[-2] for each in devcloud.requests_since(mark) if each.method == "PUT"}
    assert changing == {"security-groups"}  # the lease; nothing else
    assert {each.method for each in devcloud.requests_since(mark)} <= {"GET", "POST", "PUT"}

    user = Prep(prep.folder, prep.environment | {"OS_CLIENT_CONFIG_FILE": "mesh/clouds.yaml", "OS_CLOUD": "mesh"})
    user.run("rke", "render", prep.spec.name)
    assert (second / "metallb.yaml").exists()
    out = user.run("rke", "render", "--stack", "cluster2", "--set", "network_plugin=calico").stdout
    assert [node["address"] for node in yaml.safe_load(out)["nodes"]] == [
        node["address"] for node in written(prep, "cluster2")["nodes"]
    ]
    assert "stack/cluster3 does not exist" in user.run("rke", "render", "--stack", "cluster3", code=2).stderr


def test_all_that_is_wrong_is_told_by_line_before_anything_is_made(prep: Prep, mesh: dict[str, Any]) -> None:
    first, second = mesh["rke_clusters"]
    second |= {"stack": "cluster1", "directory": "cluster1", "network_plugin": "calcio"}
    second["cilium"] |= {"cluster_id": 1, "mesh_address": "10.2.0.9"}
    second["metallb"]["pools"][0]["pool"] = "cluster3"
    first |= {"service_cidr": "10.1.0.0/16", "config": {"services": {"kubeapi": {}}}}
    prep.write(mesh)
    said = prep.run("plan", prep.spec.name, code=2).stderr.splitlines()
    lines = prep.spec.read_text().splitlines()
    for each in (
        "rke_cluster/cluster1: config.services.kubeapi: unknown key; did you mean kube-api?",
        "rke_cluster/cluster1: service_cidr 10.1.0.0/16 overlaps 10.1.0.0/24 of subnet/nodes1",
        "rke_cluster/cluster2: stack cluster1 is also used by rke_cluster/cluster1",
        "rke_cluster/cluster2: network_plugin: ",
        "rke_cluster/cluster2: metallb.pools[0].pool: ",
        "rke_cluster/cluster2: cilium.cluster_id: 1 is also used by cluster1",
        "rke_cluster/cluster2: cilium.mesh_address: 10.2.0.9 is not in a pool of MetalLB",
    ):
        (found,) = [line for line in said if each in line]
        place = re.search(r"spec\.yaml:(\d+): ", found)
        assert place
        field = each.partition(": ")[2].partition(" ")[0].rstrip(":").rpartition(".")[2]
        assert lines[int(place[1]) - 1].strip().removeprefix("- ").startswith(f"{field}:")
    assert "is also used by rke_cluster/cluster1" in "".join(line for line in said if "directory" in line)
    prep.spec.unlink()  # nothing was made


def test_rke2_is_told_what_was_drawn_for_it(prep: Prep, devcloud: Devcloud) -> None:
    """The nodes of RKE2 are configured by their stack: by the networks and the plugin that the files have as well."""
    spec = shipped(prep, "rke2")
    (stack,) = spec["stacks"]
    small = {"server_count": 1, "agent_count": 1, "server_flavor": "m1.small", "agent_flavor": "m1.small"}
    stack["parameters"] |= small
    spec["cluster_networks"] = {"range": "10.2.0.0/15", "service_prefix": 17}  # which has the nodes' own network in it
    prep.write(spec)
    steps = prep.apply()
    outputs = steps["stack/rke2"]["outputs"]
    server, agent = (written(prep, "cluster", f"rke2-{role}-0.yaml") for role in ("server", "agent"))
    assert (server["cluster-cidr"], server["service-cidr"]) == ("10.2.0.0/16", "10.3.128.0/17")
    api, outer = outputs["api_address"], outputs["api_floating_address"]
    assert server["tls-san"] == [api, outer, "api.rke2.example.com"]
    assert agent["server"] == f"https://{api}:9345"
    needs = steps["rke_cluster/rke2"]["outputs"]["needs"]  # no node has a floating IP
    assert outer in needs
    assert f"ssh -J USER@BASTION ubuntu@{json.loads(outputs['server_addresses'])[0]} " in needs
    assert "next" not in steps["rke_cluster/rke2"]["outputs"]
    assert outputs["kubeconfig_hint"].startswith(f"ssh USER@{json.loads(outputs['server_addresses'])[0]} ")
    assert written(prep, "cluster", "rke2-cilium-config.yaml")["kind"] == "HelmChartConfig"
    told = config_told(devcloud, "rke2-server-0")
    same = ("cni", "cluster-cidr", "service-cidr", "tls-san")
    assert {name: told[name] for name in same} == {name: server[name] for name in same}
    assert told["token"] not in json.dumps([server, agent])
    assert prep.changes() == set()


SMALL = """
heat_template_version: 2018-08-31
parameters:
  token: {type: string, hidden: true}
  agent_token: {type: string, hidden: true, default: ""}
  network: {type: string, default: nodes}
  tls_san: {type: comma_delimited_list, default: ""}
resources:
  group: {type: OS::Neutron::SecurityGroup, properties: {description: {get_param: token}}}
outputs:
  server_names: {value: [n1]}
  server_addresses: {value: [10.3.0.11]}
  agent_names: {value: []}
  agent_addresses: {value: []}
  api_address: {value: 10.3.0.5}
"""


def test_a_checkout_without_the_token_of_a_cluster_generates_none(prep: Prep, tenant: Tenant) -> None:
    """Its stack is as it was, but the files of the cluster are missing there, and have the token in them."""
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    (prep.folder / "small.yaml").write_text(SMALL)
    stack = {"name": "small", "template": "small.yaml", "secret_parameters": {"token": {"generate": "token"}}}
    cluster = {"name": "small", "distribution": "rke2", "stack": "small", "directory": "cluster"}
    prep.write(
        {
            "name": "small",
            "networks": [{"name": "nodes"}],
            "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.3.0.0/24"}],
            "stacks": [stack],
            "rke_clusters": [cluster | {"kubernetes_version": "v1.35.7+rke2r1"}],
        }
    )
    prep.apply()
    token = prep.folder / "token"
    assert token.read_text().strip() in (prep.folder / "cluster" / "n1.yaml").read_text()
    before = token.read_text()
    token.unlink()
    shutil.rmtree(prep.folder / "cluster")
    for words in (("plan",), ("apply", "--yes")):
        refused = prep.run(*words, prep.spec.name, code=2).stderr
        assert "stack/small: its secret_parameters.token would be replaced" in refused
    for words, code in ((("rke", "render"), 1), (("apply", "--yes", "--target", "rke_cluster/small"), 2)):
        said = prep.run(*words, prep.spec.name, code=code)
        assert "copy the file from where the spec was applied" in said.stdout + said.stderr
    assert not token.exists()
    token.write_text(before)
    assert prep.changes() == {"rke_cluster/small"}
    prep.destroy()
    prep.spec.unlink()


def test_a_cluster_in_a_project_that_is_there(prep: Prep, tenant: Tenant) -> None:
    """A plain member has the shipped spec applied and destroyed, on a network that stood before and stays."""
    with tenant.connect() as own:
        network = own.network.create_network(name="nodes")
        block = {"cidr": "192.168.0.0/24", "allocation_pools": [{"start": "192.168.0.10", "end": "192.168.0.199"}]}
        subnet = own.network.create_subnet(name="nodes", network_id=network.id, ip_version=4, **block)
        disk = {"disk_format": "qcow2", "container_format": "bare", "data": (prep.folder / "disk.qcow2").read_bytes()}
        own.image.create_image(name="ubuntu-22.04", **disk)
        prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
        spec = scaled(shipped(prep, "rke-project"), 1)
        spec["stacks"][0]["parameters"]["flavor"] = "m1.small"
        check_pools_in_a_subnet_that_is_there(prep, spec)
        prep.write(spec)
        assert {step["status"] for step in prep.apply().values()} == {"done"}
        (port,) = [each for each in own.network.ports(network_id=network.id) if each.device_owner == "compute:nova"]
        addresses = [f"192.168.0.{number}" for number in (240, 242, 244, 246)]
        assert sorted(pair["ip_address"] for pair in port.allowed_address_pairs) == addresses
        reserving = own.network.ports(network_id=network.id, device_owner="openstack-prep:reserved")
        assert sorted(each.fixed_ips[0]["ip_address"] for each in reserving) == addresses
        assert [node["address"] for node in written(prep, "k8s")["nodes"]] == [port.fixed_ips[0]["ip_address"]]
        assert prep.changes() == set()
        prep.destroy()
        left = [each for each in own.network.ports(network_id=network.id) if each.device_owner != "network:dhcp"]
        assert not left
        assert own.network.get_subnet(subnet).name == "nodes"
        assert not (prep.folder / "k8s").exists()
        prep.spec.unlink()  # the user is gone before the fixture would destroy


def check_pools_in_a_subnet_that_is_there(prep: Prep, spec: dict[str, Any]) -> None:
    """Pools without pairs, and those that hold what the existing subnet has for itself, are refused by the plan."""
    pools = {"pools": [{"name": "lb", "addresses": ["192.168.0.1", "192.168.0.50", "192.168.0.240"]}]}
    (cluster,) = spec["rke_clusters"]
    without = {name: each for name, each in spec.items() if name != "address_pairs"}
    prep.write(without)
    assert "[pairs.missing]" in prep.run("plan", prep.spec.name, code=2).stderr
    prep.write(without | {"rke_clusters": [cluster | {"metallb": pools}]})
    told = prep.run("plan", prep.spec.name, code=2).stderr
    for address, code in (("0.1", "spec.contradiction"), ("0.50", "spec.contradiction"), ("0.240", "pairs.missing")):
        assert re.search(rf"192\.168\.{re.escape(address)}\b.*\[{re.escape(code)}\]", told), told


def config_told(devcloud: Devcloud, server: str) -> dict[str, Any]:
    """Return the config.yaml that a server's cloud-init writes."""
    (found,) = [each for each in devcloud.admin.compute.servers(all_projects=True) if each.name == server]
    user_data = base64.b64decode(devcloud.admin.compute.get_server(found.id).user_data)
    files = {each["path"]: each["content"] for each in yaml.safe_load(user_data)["write_files"]}
    return dict(yaml.safe_load(files["/etc/rancher/rke2/config.yaml"]))
