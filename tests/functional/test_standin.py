"""The stand-in leaves on a real OpenStack what a real run of the installer (4.21) left there."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.verify import verify
from tests import standin
from tests.devcloud.access import LogPosition
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.standin.answers import comparable, read, real_answers
from tests.standin.maker import Maker
from tests.standin.recipe import from_install_config

REAL_RUN = json.loads((Path(standin.__file__).with_name("real_run.json")).read_text())
RAW = real_answers()
INFRA_ID = "demo-fc79k"


def looked_at(connection: Any, project: str) -> dict[str, list[Any]]:
    """Return the resources of a project, in the form of real_run.json: without ids, times and random addresses."""
    neutron, nova = connection.network, connection.compute

    def listed(kind: str) -> Iterable[dict[str, Any]]:
        found: dict[str, Any] = neutron.get(f"/{kind}", params={"project_id": project}).json()
        return next(iter(found.values()))

    groups = {each["id"]: each["name"] for each in listed("security-groups")}
    servers = {each.id: each for each in nova.servers()}
    nova_groups = nova.get("/os-server-groups", microversion="2.64").json()["server_groups"]
    described = [nova.get(f"/servers/{each}", microversion="2.64").json()["server"] for each in servers]
    found = {
        "networks": ([each["name"], each["description"], each["tags"]] for each in listed("networks")),
        "subnets": (
            [
                *(each["name"], each["description"], each["tags"]),
                *(each["cidr"], each["allocation_pools"], each["dns_nameservers"]),
            ]
            for each in listed("subnets")
        ),
        "routers": ([each["name"], each["description"], each["tags"]] for each in listed("routers")),
        "ports": (
            [
                *(each["name"], each["description"], each["tags"], each["status"], each["device_owner"]),
                sorted(groups[group] for group in each["security_groups"]),
                sorted(pair["ip_address"] for pair in each["allowed_address_pairs"]),
            ]
            for each in listed("ports")
        ),
        "floatingips": (
            [each["description"], each["tags"], each["status"], (each["port_details"] or {}).get("name")]
            for each in listed("floatingips")
        ),
        "groups": (
            [each["name"], each["description"], each["tags"], len(each["security_group_rules"])]
            for each in listed("security-groups")
        ),
        "rules": (
            [
                *(groups[each["security_group_id"]], each["direction"], each["ethertype"], each["protocol"] or ""),
                *(each["port_range_min"] or 0, each["port_range_max"] or 0),
                *(each["remote_ip_prefix"] or "", each["description"] or ""),
            ]
            for each in listed("security-group-rules")
            if groups[each["security_group_id"]] != "default"
        ),
        "server_groups": (
            [each["name"], each["policy"], sorted(servers[member].name for member in each["members"])]
            for each in nova_groups
        ),
        "servers": (
            [
                *(each["name"], each["status"], each["metadata"], each["tags"]),
                [group["name"] for group in each["security_groups"]],
            ]
            for each in described
        ),
        "images": (
            [each.name, each.disk_format, each.container_format, each.visibility, each.tags]
            for each in connection.image.images(owner=project)
            if each.name != "rhcos"
        ),
    }
    return {kind: sorted(each) for kind, each in found.items()}


def differences(live: dict[str, list[Any]], real: dict[str, list[Any]]) -> list[str]:
    """Return the fields in which the resources differ from the raw answers about a real run."""
    found = []
    for kind, rows in real.items():
        if len(live[kind]) != len(rows):
            found.append(f"{kind}: {len(live[kind])}, not {len(rows)}")
        for here, there in zip(live[kind], rows, strict=False):
            fields = here.keys() | there.keys()
            wrong = (each for each in sorted(fields) if here.get(each, "none") != there.get(each, "none"))
            found += [f"{kind}: {each}: {here.get(each, 'none')!r}, not {there.get(each, 'none')!r}" for each in wrong]
    return found


MACHINES = ("ports", "servers") * 4
CREATED = (
    *("security-groups", "security-group-rules", "os-server-groups", "networks", "subnets", "routers"),
    *("ports", "images", *MACHINES, "floatingips"),
)
REMOVED = ("images", "floatingips", "servers", "ports")
"""The order in which things appeared in the timelines of the real runs, and in which the bootstrap's went."""


def order(devcloud: Devcloud, since: LogPosition, method: str) -> tuple[str, ...]:
    """Return the kinds of what was created or deleted, one after the other."""
    services = ("neutron", "nova", "glance")
    made = [each for each in devcloud.requests_since(since) if each.method == method and each.service in services]
    kinds = (each.path.split("/")[-1 if method == "POST" else -2] for each in made)
    return tuple(kind for kind, _ in itertools.groupby(kinds))


def test_it_leaves_what_a_real_run_left(tenant: Tenant, devcloud: Devcloud) -> None:
    connection = tenant.connect()
    external = connection.network.find_network("external", ignore_missing=False)
    api, ingress = (
        connection.network.create_ip(floating_network_id=external.id, description=f"{name} demo.example.com")
        for name in ("API", "Ingress")
    )
    connection.image.create_image("rhcos", data=qcow2(1), disk_format="qcow2", container_format="bare")
    mark = devcloud.mark()
    standin.make(
        connection,
        INFRA_ID,
        bootstrap=True,
        image="rhcos",
        external_dns=("192.168.122.1",),
        api_floating_ip=api.floating_ip_address,
        ingress_floating_ip=ingress.floating_ip_address,
        workers=0,
    )
    assert order(devcloud, mark, "POST") == CREATED
    assert looked_at(connection, tenant.project_id) == REAL_RUN
    found = comparable(read(devcloud.admin, tenant.project_id), INFRA_ID)
    assert differences(found, RAW["A"]) == []
    assert differences(found, RAW["N"]) == []
    recipe = standin.Recipe(infra_id=INFRA_ID)
    mark = devcloud.mark()
    Maker(connection, recipe, pause=lambda share: None).remove_bootstrap()
    assert order(devcloud, mark, "DELETE") == REMOVED
    found = comparable(read(devcloud.admin, tenant.project_id), INFRA_ID)
    assert differences(found, RAW["C"]) == []
    standin.remove(connection, INFRA_ID)
    left = looked_at(connection, tenant.project_id)
    assert {kind for kind, each in left.items() if each} == {"floatingips", "groups"}
    assert left["floatingips"] == [[f"{name} demo.example.com", [], "DOWN", None] for name in ("API", "Ingress")]
    assert [each[0] for each in left["groups"]] == ["default"]


def test_a_network_of_the_users_own_stays_untagged(tenant: Tenant, devcloud: Devcloud) -> None:
    connection = tenant.connect()
    neutron: Any = connection.network
    external = neutron.find_network("external", ignore_missing=False)
    network = neutron.create_network(name="byo-machines")
    pools = [{"start": "10.0.1.0", "end": "10.0.255.254"}]
    body = {"cidr": "10.0.0.0/16", "ip_version": 4, "allocation_pools": pools}
    subnet = neutron.create_subnet(name="byo-machines", network_id=network.id, **body)
    router = neutron.create_router(name="byo-router", external_gateway_info={"network_id": external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    addresses = [neutron.create_ip(floating_network_id=external.id).floating_ip_address for _ in range(2)]
    document = {
        "metadata": {"name": "byo"},
        "platform": {"openstack": {"controlPlanePort": {"fixedIPs": [{"subnet": {"id": subnet.id}}]}}},
    }
    recipe = from_install_config(document, "byo-jwn2n", 21)
    given: dict[str, Any] = dict(zip(("api_floating_ip", "ingress_floating_ip"), addresses, strict=True))
    given |= {"own_subnet": recipe.own_subnet, "image": "rhcos"}
    connection.image.create_image("rhcos", data=qcow2(1), disk_format="qcow2", container_format="bare")
    standin.make(connection, "byo-jwn2n", bootstrap=True, masters=1, workers=0, release=21, **given)
    one = {"INFRA-master-1", "INFRA-master-2", "INFRA-master-1-0", "INFRA-master-2-0"}
    real = {kind: [row for row in rows if row.get("name") not in one] for kind, rows in RAW["Y"].items()}
    found = comparable(read(devcloud.admin, tenant.project_id), "byo-jwn2n")
    del real["os-server-groups"]  # their members
    assert differences(found, real) == []
    for kind in ("networks", "subnets", "routers"):
        (own,) = neutron.get(f"/{kind}", params={"project_id": tenant.project_id}).json()[kind]
        assert own["tags"] == []
    standin.remove(connection, "byo-jwn2n")
    assert [each.name for each in neutron.networks(project_id=tenant.project_id)] == ["byo-machines"]


def test_names_of_the_earlier_era(tenant: Tenant) -> None:
    dev = standin.make(tenant.connect(), "dev-x7k2p", release=2, servers=False, workers=1, names=("abcde",))
    assert {each.name for each in dev.nodes()} == {
        *(f"dev-x7k2p-master-port-{number}" for number in range(3)),
        "dev-x7k2p-worker-0-abcde",
    }
    assert all(pairs == {"10.0.0.5", "10.0.0.6", "10.0.0.7"} for pairs in dev.pairs().values())
    (network,) = dev.connection.network.networks(tags="openshiftClusterID=dev-x7k2p")
    assert (network.name, set(network.tags)) == (
        "dev-x7k2p-openshift",
        {"openshiftClusterID=dev-x7k2p", "dev-x7k2p-primaryClusterNetwork"},
    )


def test_masters_without_workers_answer_for_the_routers(tenant: Tenant) -> None:
    document = {
        "metadata": {"name": "dev"},
        "compute": [{"name": "worker", "replicas": 0}],
        "platform": {"openstack": {"externalNetwork": "external", "defaultMachinePlatform": {"type": "m1.small"}}},
    }
    recipe = from_install_config(document, "dev-x7k2p", 18)
    assert (recipe.masters, recipe.workers, recipe.schedulable) == (3, 0, True)
    connection = tenant.connect()
    standin.make(connection, "dev-x7k2p", servers=False, masters=1, workers=0, schedulable=recipe.schedulable)
    seen = verify(Cloud(connection), infra_id="dev-x7k2p")
    (ingress,) = (chain for chain in seen.chains if chain.name == "ingress")
    said = [f"{link.status} {link.what}" for link in ingress.links if link.where == "security groups"]
    assert said == [f"ok TCP {number} from anywhere reaches 1 port" for number in (80, 443)]


def called(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.standin", *words]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_what_it_is_told_by_the_environment(tmp_path: Path) -> None:
    assert "Stages of STANDIN_FAIL: config, groups, network" in " ".join(called("--help").stdout.split())
    wrong = called("create", "cluster", "--dir", str(tmp_path), STANDIN_FAIL="netwrok:7")
    assert wrong.returncode == 1
    assert "netwrok is no stage; there are config, groups, network, ports, machines, bootstrap, install" in wrong.stderr
    words = ("coreos", "print-stream-json")
    assert "name its file in STANDIN_STREAM" in called(*words).stderr
    (tmp_path / "stream.json").write_text("{}\n")
    assert called(*words, STANDIN_STREAM=str(tmp_path / "stream.json")).stdout == "{}\n"


CONFIG = """\
metadata: {name: dev}
platform: {openstack: {cloud: lab, externalNetwork: external, defaultMachinePlatform: {type: m1.small}}}
"""


def files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def test_manifests_eat_the_install_config_and_begin_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "install-config.yaml").write_text(CONFIG)
    assert called("create", "manifests", "--dir", str(tmp_path)).returncode == 0
    assert {each.partition("/")[0] for each in files(tmp_path)} == {
        *(".openshift_install_state.json", ".openshift_install.log", "manifests", "openshift", "cluster-api"),
    }


@pytest.mark.parametrize(
    ("release", "left", "refused"),
    [
        ("4.21", ".clusterapi_output/envtest.kubeconfig", True),
        ("4.11", "terraform.masters.tfstate", False),
        pytest.param("4.21", "terraform.masters.tfstate", False, marks=pytest.mark.more),
        pytest.param("4.6", "terraform.tfstate", True, marks=pytest.mark.more),
    ],
)
def test_what_is_refused_is_refused_last(tmp_path: Path, release: str, left: str, refused: bool) -> None:
    """As the real 4.21 does: install-config.yaml is gone by then, and metadata.json is another one."""
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / left).parent.mkdir(exist_ok=True)
    (tmp_path / left).touch()
    (tmp_path / "install-config.yaml").write_text(CONFIG)
    environment = {"STANDIN_RELEASE": release, "HOME": str(tmp_path), "OS_CLIENT_CONFIG_FILE": str(tmp_path / "none")}
    found = called("create", "cluster", "--dir", str(tmp_path), **environment)
    assert (found.returncode, "already exist" in found.stderr) == (1, refused)
    assert ("clouds.yaml" in found.stderr) is not refused  # it goes on to the cloud
    assert json.loads((tmp_path / "metadata.json").read_text())["infraID"].startswith("dev-")
    assert not (tmp_path / "install-config.yaml").exists()
    assert {"auth/kubeconfig", "tls/journal-gateway.key", "terraform.tfvars.json"} <= files(tmp_path)
