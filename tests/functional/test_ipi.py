"""``pre-ipi``, ``ipi`` and ``wait-for`` on a real cloud, around a stand-in for the installer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks import pre_ipi
from openstack_prep.openshift.names.hosts import ClusterNames, hosts_lines
from tests import standin
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant, connect
from tests.functional.conftest import Prep
from tests.functional.test_post_ipi import float_ip, served

INGRESS, API = "192.168.122.180", "192.168.122.164"
CREATE = ("--", "openshift-install", "create", "cluster")


@pytest.fixture
def installer(prep: Prep) -> Prep:
    """The command in a folder of its own, with the stand-in on PATH as openshift-install."""
    program = standin.write_program(prep.folder / "bin")
    prep.environment |= {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "STANDIN_SECONDS": "2"}
    return prep


@pytest.fixture
def own(installer: Prep, tenant: Tenant) -> Iterator[Prep]:
    """The same as a tenant who has written install-config.yaml by hand, in the folder ``ocp``."""
    installer.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": "somebody-elses"}
    (installer.folder / "ocp").mkdir()
    platform = {"cloud": tenant.cloud, "externalNetwork": "external", "defaultMachinePlatform": {"type": "m1.small"}}
    document = {
        "apiVersion": "v1",
        "baseDomain": "example.com",
        "metadata": {"name": "demo"},
        "compute": [{"name": "worker", "replicas": 1}],
        "platform": {"openstack": platform},
        "pullSecret": '{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}',
    }
    (installer.folder / "ocp" / "install-config.yaml").write_text(yaml.safe_dump(document))
    yield installer
    if (installer.folder / "ocp" / "metadata.json").exists():
        installer.run("ipi", "--", "openshift-install", "destroy", "cluster", "--dir", "ocp")


def spec_of_4_2(folder: Path) -> dict[str, Any]:
    """Return the shipped spec of the 4.2 lab, with the files that it wants beside it."""
    (folder / "pull-secret.json").write_text('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}')
    (folder / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n"
    )
    shipped = resources.files("openstack_prep.install_configs") / "openshift-4.2-lab.yaml"
    spec: dict[str, Any] = yaml.safe_load(shipped.read_text())
    return spec


def test_from_a_spec_to_an_attached_cluster_and_back(installer: Prep, devcloud: Devcloud) -> None:
    installer.write(spec_of_4_2(installer.folder))
    installer.environment["STANDIN_RELEASE"] = "4.2"
    folder = installer.folder / "ocp42"
    refused = installer.run("pre-ipi", "--yes", "spec.yaml", code=1).stdout
    assert "error: names: api.ocp42.example.com: nothing in /etc/hosts" in refused
    names = ClusterNames(cluster_name="ocp42", base_domain="example.com", api=API, ingress=INGRESS)
    (installer.folder / "hosts").write_text("\n".join(hosts_lines(names)))
    hosts = ("--hosts", "hosts")
    data = json.loads(installer.run("pre-ipi", "--yes", "--format", "json", *hosts, "spec.yaml").stdout)
    assert {step["action"] for step in data["steps"]} == {"keep"}
    assert not [each for each in data["findings"] if each["status"] == "error"]
    assert f"--ingress-ip {INGRESS} --wait" in str(data["findings"])  # 4.2 attaches none itself
    next_one = installer.run("pre-ipi", "--yes", *hosts, "spec.yaml").stdout
    assert "next: openstack-prep ipi --hosts hosts --spec spec.yaml -- openshift-install create cluster" in next_one
    ready = pre_ipi(Cloud(devcloud.admin), installer.spec, hosts=installer.folder / "hosts")  # the same in Python
    ready.raise_for_problems()
    assert (ready.folder, ready.ingress_floating_ip) == (folder, INGRESS)

    done = installer.run("ipi", "--yes", "--spec", "spec.yaml", *hosts, *CREATE)
    said = done.stderr.splitlines()
    order = [said.index(next(line for line in said if text in line)) for text in ("attached to", "Install complete!")]
    assert order == sorted(order), done.stderr
    assert done.stdout == ""
    for name in ("install-config.yaml.kept", "metadata.json.kept"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert not (folder / "install-config.yaml").exists()
    infra_id = json.loads((folder / "metadata.json").read_text())["infraID"]
    connection: Any = connect(installer.folder / "ocp42-credentials" / "clouds.yaml", "ocp42")
    assert served(connection, API) == f"{infra_id}-api-port"
    assert served(connection, INGRESS) == f"{infra_id}-ingress-port"
    cluster = standin.Cluster(connection, standin.Recipe(infra_id=infra_id))
    assert len(cluster.nodes()) == 5
    assert all(pairs == {"10.0.0.5", "10.0.0.6", "10.0.0.7"} for pairs in cluster.pairs().values())
    there = installer.run("pre-ipi", "--yes", *hosts, "spec.yaml").stdout
    assert f"{infra_id} was installed from {folder}" in there
    assert "next: " not in there

    installer.run("ipi", "--spec", "spec.yaml", "--yes", "--", "openshift-install", "destroy", "cluster")
    kept = {"install-config.yaml.kept", "metadata.json.kept"}
    assert {each.name for each in folder.iterdir()} == kept | {".openshift_install.log"}
    assert json.loads((folder / "metadata.json.kept").read_text())["infraID"] == infra_id
    assert cluster.nodes() == []
    assert served(connection, INGRESS) is None


def test_a_failure_comes_through(own: Prep) -> None:
    folder = own.folder / "ocp"
    own.environment |= {"STANDIN_FAIL": "config", "STANDIN_SECONDS": "1"}
    words = ("ipi", "--no-check", "--dir", "ocp", "--ingress-ip", "192.0.2.9", *CREATE)
    checked = own.run("ipi", "--dir", "ocp", *CREATE, code=1).stderr.splitlines()
    assert {line.partition(": ")[0] for line in checked} == {"openstack-prep"}
    assert len([line for line in checked if line.startswith("openstack-prep: error: ")]) > 1
    assert "openstack-prep" not in own.run(*words, code=3).stderr
    assert (folder / "install-config.yaml").read_text() == (folder / "install-config.yaml.kept").read_text()
    own.environment["STANDIN_FAIL"] = "network:77"
    said = own.run(*words, code=77).stderr
    hint = "openstack-prep post-ipi --metadata ocp/metadata.json --ingress-ip 192.0.2.9 --vip 10.0.0.5 --vip 10.0.0.7"
    assert f"openstack-prep: the installer exited with code 77; once the cluster exists, run: {hint}" in said
    assert (folder / "metadata.json.kept").read_text() == (folder / "metadata.json").read_text()
    assert (folder / "metadata.json.kept").stat().st_mode & 0o777 == 0o600
    assert "openstack-prep: to start over: openshift-install destroy cluster --dir ocp (or openstack-prep" in said
    assert "to continue" not in said


def written(folder: Path) -> tuple[str, set[str]]:
    """Return the infraID in metadata.json, and those in its copies."""
    metadata, *copies = (json.loads(each.read_text())["infraID"] for each in sorted(folder.glob("metadata.json*")))
    return metadata, set(copies)


def test_a_used_folder_is_put_right(own: Prep, tenant: Tenant) -> None:
    folder = own.folder / "ocp"
    config = (folder / "install-config.yaml").read_text()
    own.environment |= {"STANDIN_FAIL": "network", "STANDIN_SECONDS": "1"}
    words = ("ipi", "--no-check", "--dir", "ocp", *CREATE)
    again = ("ipi", "--again", *words[1:])
    own.run(*words, code=4)
    first, _ = written(folder)
    guard = "ocp/.clusterapi_output/envtest.kubeconfig is of an earlier installation"
    assert guard in own.run(*words, code=2).stderr
    assert f"{first} still has " in own.run(*again, code=2).stderr
    assert first == written(folder)[0]
    assert "ipi --again -- openshift-install create" in own.run("cleanup", "--yes", "--metadata", "ocp").stdout

    (folder / "install-config.yaml").write_text(config + "publish: External\n")
    own.environment["OS_CLOUD"] = tenant.cloud
    command = [str(own.folder / "bin" / "openshift-install"), "create", "cluster", "--dir", "ocp"]
    alone = subprocess.run(command, cwd=own.folder, env=os.environ | own.environment, capture_output=True, text=True)
    assert (alone.returncode, "There may already be a running cluster" in alone.stderr) == (1, True)
    assert not (folder / "install-config.yaml").exists()

    own.environment["STANDIN_FAIL"] = "groups"
    said = own.run(*again, code=4).stderr
    last, copies = written(folder)
    assert f"nothing of {last} exists, so there is nothing to destroy" in said
    assert last not in (first, *(copies - {last}))
    assert first in copies
    assert not (folder / ".clusterapi_output").exists()
    own.run(*again, code=4)  # however often


def test_a_killed_run_is_not_repeated(own: Prep, tenant: Tenant) -> None:
    """Killed before the installer writes the file because of which it would refuse to create everything twice."""
    neutron, nova = tenant.connect().network, tenant.connect().compute

    def groups() -> list[str]:
        listed = (*neutron.security_groups(project_id=tenant.project_id), *nova.server_groups())
        return sorted(each.name.partition("-")[2].partition("-")[2] for each in listed if each.name != "default")

    own.environment["STANDIN_SECONDS"] = "240"
    words = ("ipi", "--no-check", "--dir", "ocp", *CREATE)
    again = ("ipi", "--again", *words[1:])
    process = own.start(*words, start_new_session=True)
    while len(groups()) < 4:
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGSTOP)  # it stays where it is, however slow this machine is
    process.kill()
    process.wait()
    for each in (words, again):  # the installer is there without us
        assert "is at work in this directory" in own.run(*each, code=2).stderr
    os.killpg(process.pid, signal.SIGKILL)
    assert not (own.folder / "ocp" / ".clusterapi_output").exists()

    infra_id, _ = written(own.folder / "ocp")
    own.environment |= {"STANDIN_FAIL": "groups", "STANDIN_SECONDS": "1"}
    there = f"{infra_id} still has 2 security groups, 2 server groups, 1 image in project {tenant.name} of cloud"
    for each in (words, again):
        assert there in own.run(*each, code=2).stderr
    assert groups() == ["master", "master", "worker", "worker"]
    own.run("cleanup", "--yes", "--metadata", "ocp")
    own.run(*again, code=4)
    assert written(own.folder / "ocp")[0] != infra_id
    assert groups() == []


@pytest.mark.more
def test_manifests_first(own: Prep, tenant: Tenant) -> None:
    folder = own.folder / "ocp"
    config = (folder / "install-config.yaml").read_text()
    own.run("ipi", "--dir", "ocp", "--", "openshift-install", "create", "manifests")
    assert not (folder / "install-config.yaml").exists()
    assert (folder / "install-config.yaml.kept").read_text() == config
    for _ in ("by the copy", "by the state alone"):
        said = own.run("ipi", "--dir", "ocp", *CREATE, code=1).stderr
        assert "openstack-prep: error: " in said  # it was checked, in the cloud that the state names
        assert tenant.cloud in said or "names" in said
        assert not (folder / "metadata.json").exists()
        (folder / "install-config.yaml.kept").unlink()
    own.environment |= {"STANDIN_FAIL": "groups", "STANDIN_SECONDS": "1"}
    own.run("ipi", "--no-check", "--dir", "ocp", *CREATE, code=4)
    assert json.loads((folder / "metadata.json").read_text())["openstack"]["cloud"] == tenant.cloud


@pytest.mark.more
def test_a_bootstrap_machine_that_is_left(own: Prep, tenant: Tenant) -> None:
    path = own.folder / "ocp" / "install-config.yaml"
    document = yaml.safe_load(path.read_text()) | {"controlPlane": {"name": "master", "replicas": 1}}
    path.write_text(yaml.safe_dump(document))
    own.environment |= {"STANDIN_FAIL": "bootstrap", "STANDIN_SECONDS": "1"}
    said = own.run("ipi", "--no-check", "--dir", "ocp", *CREATE, code=5).stderr
    stages = "wait-for bootstrap-complete", "destroy bootstrap", "wait-for install-complete"
    commands = [f"openshift-install {each} --dir ocp" for each in stages]
    assert f"openstack-prep: to continue: {' && '.join(commands)}\n" in said
    seen = {(link["code"], link["status"]) for link in verified(own)}
    assert {("machine.awaited", "unknown"), ("bootstrap.present", "unknown")} <= seen
    assert "rule create" not in str(verified(own))
    noted = own.run("post-ipi", "--yes", "--metadata", "ocp", "--vip", "10.9.9.9").stderr
    assert "-bootstrap exists: the installation is not complete; if the installer has ended: openshift-install" in noted
    for each in commands:
        own.run("ipi", "--", *each.split())
    assert "bootstrap" not in str({link["code"] for link in verified(own)})
    names = {each.name.partition("-")[2] for each in tenant.connect().compute.servers()}
    assert not [each for each in names if each.endswith("bootstrap")]


def verified(own: Prep) -> list[dict[str, Any]]:
    process = own.start("verify", "--metadata", "ocp", "--format", "json")
    chains = json.loads(process.communicate(timeout=120)[0])["chains"]
    return [link for chain in chains for link in chain["links"]]


@pytest.mark.parametrize(
    ("release", "code"), [("4.18", 8), pytest.param("4.11", 128 + signal.SIGINT, marks=pytest.mark.more)]
)
def test_an_interrupt_reaches_both_and_its_code_comes_through(own: Prep, release: str, code: int) -> None:
    own.environment |= {"STANDIN_RELEASE": release, "STANDIN_SECONDS": "60"}
    words = ("ipi", "--no-check", "--ingress-ip", "192.0.2.9", *CREATE, "--dir", "ocp")
    process = own.start(*words, start_new_session=True)
    assert process.stderr is not None
    said = _until(process.stderr, "Creating infrastructure")
    os.killpg(process.pid, signal.SIGINT)
    said += process.communicate(timeout=60)[1]
    assert process.returncode == code, said
    assert "Traceback" not in said
    infra_id = json.loads((own.folder / "ocp" / "metadata.json").read_text())["infraID"]
    assert f"openstack-prep: nothing of {infra_id} exists, so there is nothing to destroy" in said
    assert "to continue" not in said
    assert (own.folder / "ocp" / "metadata.json.kept").exists()


def _until(stream: Any, text: str) -> str:
    said = ""
    while text not in said:
        line = stream.readline()
        assert line, said
        said += line
    return said


def test_two_ports_with_the_name(
    own: Prep, tenant: Tenant, devcloud: Devcloud, standin_cluster: Callable[..., standin.Cluster]
) -> None:
    dev = standin_cluster("demo-x7k2p", servers=False, masters=1, workers=0)
    network = dev.port("api-port").network_id
    twin = dev.connection.network.create_port(name="demo-x7k2p-ingress-port", network_id=network)
    address = float_ip(dev.connection, "").floating_ip_address
    identifier = {"cloud": tenant.cloud, "identifier": {"openshiftClusterID": "demo-x7k2p"}}
    metadata = {"clusterName": "demo", "infraID": "demo-x7k2p", "openstack": identifier}
    (own.folder / "made.json").write_text(json.dumps(metadata))
    program = own.folder / "bin" / "takes-no-time"
    program.write_text("#!/bin/sh\nrm -f ocp/install-config.yaml; cp made.json ocp/metadata.json; sleep 2\n")
    program.chmod(0o755)
    cluster = ("--infra-id", "demo-x7k2p", "--os-cloud", tenant.cloud)

    wishes = ("--no-check", "--ingress-ip", address, "--vip", "10.9.9.9")
    words = ("ipi", *wishes, "--", "takes-no-time", "create", "cluster", "--dir=ocp")
    said = own.run(*words, code=1).stderr
    assert "not attached yet: port demo-x7k2p-ingress-port: 2 resources have this name" in said
    assert twin.id in said
    assert served(dev.connection, address) is None
    assert "2 resources have this name" in own.run("wait-for", "ingress-port", *cluster, code=1).stderr

    dev.connection.network.delete_port(twin)
    port = dev.port("ingress-port")
    assert own.run("wait-for", "ingress-port", *cluster).stdout == f"{port.name}  {port.id}  10.0.0.7\n"
    with devcloud.faults(Fault("neutron", method="PUT", path_regex="/floatingips/", drop_answer=True)):
        own.run(*words)  # goes on: the state of the first run is there
    assert served(dev.connection, address) == "demo-x7k2p-ingress-port"
    assert dev.pairs() == {"demo-x7k2p-master-0-0": {"10.0.0.5", "10.0.0.7", "10.9.9.9"}}
    dev.connection.network.delete_port(port)
    missing = own.run("wait-for", "ingress-port", "--timeout", "1", *cluster, code=1).stderr
    assert "no port demo-x7k2p-ingress-port in project" in missing


def test_a_cluster_of_somebody_with_the_same_name(
    own: Prep, tenant: Tenant, standin_cluster: Callable[..., standin.Cluster]
) -> None:
    """Both are named demo and in one project; only their infraIDs differ."""
    theirs = standin_cluster("demo-x7k2p", servers=False, masters=1, workers=1)
    network: Any = theirs.connection.network

    def of_them() -> set[tuple[str, str, str]]:
        ports = [*theirs.nodes(), theirs.port("api-port"), theirs.port("ingress-port")]
        return {(each.id, each.name, str(each.allowed_address_pairs)) for each in ports}

    before = of_them()
    address = float_ip(theirs.connection, "").floating_ip_address
    own.run("ipi", "--no-check", "--dir", "ocp", "--ingress-ip", address, "--vip", "10.9.9.9", *CREATE)
    infra_id, _ = written(own.folder / "ocp")
    assert infra_id.startswith("demo-")
    assert infra_id != "demo-x7k2p"
    assert served(theirs.connection, address) == f"{infra_id}-ingress-port"
    assert of_them() == before

    own.run("ipi", "--", "openshift-install", "destroy", "cluster", "--dir", "ocp")
    assert not [each.name for each in network.ports() if each.name.startswith(infra_id)]
    assert "nothing of" in own.run("cleanup", "--yes", "--os-cloud", tenant.cloud, "--infra-id", infra_id).stdout
    assert of_them() == before
