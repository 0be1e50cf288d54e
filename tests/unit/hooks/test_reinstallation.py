from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.cli.main import main
from openstack_prep.hooks import InstallOptions, ipi, start_over
from openstack_prep.openshift import installer
from openstack_prep.openshift.folder import Folder
from tests.unit.conftest import sent
from tests.unit.hooks.test_cleanup import ID, Lists, there
from tests.unit.texts import Wording, contains

__all__ = ["there"]

OTHER = "dev-q9m4t"
CONFIG = """\
apiVersion: v1
baseDomain: example.com
metadata: {name: dev}
platform: {openstack: {cloud: lab, externalNetwork: external, defaultMachinePlatform: {type: m1}}}
pullSecret: '{"auths": {}}'
"""


def metadata(infra_id: str, cloud: str = "lab") -> str:
    identifier = {"cloud": cloud, "identifier": {"openshiftClusterID": infra_id}}
    return json.dumps({"clusterName": "dev", "infraID": infra_id, "openstack": identifier})


def state(infra_id: str, **config: Any) -> str:
    document = {"apiVersion": "v1", "baseDomain": "example.com", "metadata": {"name": "dev"}}
    document |= {"platform": {"openstack": {"cloud": "lab"}}}
    identity = {"UUID": "u", "InfraID": infra_id}
    return json.dumps(
        {"*installconfig.InstallConfig": {"config": document | config}, "*installconfig.ClusterID": identity}
    )


@pytest.fixture
def folder(clouds_yaml: Path, there: Lists) -> Path:
    """A folder in which a cluster was installed, as the real 4.21 leaves it, and of which nothing is left."""
    there |= {name: [] for name in there}
    made = clouds_yaml.parent / "ocp"
    for name in (
        ".clusterapi_output/envtest.kubeconfig",
        f".clusterapi_output/Cluster-openshift-cluster-api-guests-{ID}.yaml",
        ".clusterapi_output/etcd/member/wal/0.wal",
        ".openshift_install.log",
        "auth/kubeadmin-password",
        "auth/kubeconfig",
        "tls/journal-gateway.crt",
        "tls/journal-gateway.key",
        "terraform.platform.auto.tfvars.json",
        "terraform.tfvars.json",
        "install-config.yaml.kept",
    ):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(f'{{"cluster_id": "{ID}"}}' if name == "terraform.tfvars.json" else CONFIG)
    (made / "metadata.json").write_text(metadata(ID))
    (made / ".openshift_install_state.json").write_text(state(ID))
    return made


LOGINS = {f"auth/kubeadmin-password.{ID}.kept", f"auth/kubeconfig.{ID}.kept"}
"""They stay: the cluster may live, if its entry of clouds.yaml leads to another project by now."""


def names(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir()}


def test_it_is_as_before_the_installation(folder: Path, services: requests_mock.Mocker) -> None:
    start_over(folder)
    assert names(folder) == {"install-config.yaml", "metadata.json.kept", ".openshift_install.log", *LOGINS}
    assert sorted(os.listdir(folder)) == [".openshift_install.log", "auth", "install-config.yaml", "metadata.json.kept"]
    assert (folder / "install-config.yaml").read_text() == CONFIG
    assert (folder / "metadata.json.kept").read_text() == metadata(ID)
    asked = len(sent(services))
    assert start_over(folder) == ()
    assert len(sent(services)) == asked


def test_while_anything_of_the_cluster_exists_nothing_is_deleted(folder: Path, there: Lists) -> None:
    before = names(folder)
    there["networks"] = [{"id": "net", "name": "n", "tags": [f"openshiftClusterID={ID}"], "subnets": []}]
    there["security_groups"] = [{"id": "g", "name": f"{ID}-master", "tags": []}]
    with pytest.raises(ConfigError) as caught:
        start_over(folder)
    said = str(caught.value)
    assert contains(said, ID, "1 network", "1 security group", "admin-project", "lab")
    assert f"openshift-install destroy cluster --dir {folder} (or openstack-prep cleanup --infra-id {ID})" in said
    assert names(folder) == before
    there["networks"] = []
    there["security_groups"] = [{"id": "g", "name": f"{ID}-master", "tags": [f"openshiftClusterID={OTHER}"]}]
    start_over(folder)  # the group of another cluster, in spite of its name
    assert not (folder / "metadata.json").exists()


def test_a_cluster_behind_a_phantom_is_found(folder: Path, there: Lists, wording: Wording) -> None:
    """A run without us overwrote metadata.json, and failed: the cluster before it may live."""
    (folder / "metadata.json").write_text(metadata(OTHER))
    (folder / ".openshift_install_state.json").write_text(state(OTHER))
    there["servers"] = [{"id": "s", "name": f"{ID}-master-0", "metadata": {"openshiftClusterID": ID}}]
    with pytest.raises(ConfigError) as caught:
        start_over(folder)
    wording(caught.value)
    there["servers"] = []
    start_over(folder)
    assert json.loads((folder / "metadata.json.kept").read_text())["infraID"] == OTHER


def test_files_of_others_stay(folder: Path) -> None:
    (folder / "auth" / "htpasswd").touch()
    for name in ("manifests", "openshift"):
        (folder / name).mkdir()
    (folder / "manifests" / "cluster-config.yaml").touch()
    (folder / "manifests" / "of-the-user.yaml").touch()
    (folder / "openshift" / "a-playbook.yaml").touch()
    (folder / "install-config.yaml").write_text(CONFIG + "fips: true\n")
    start_over(folder)
    assert names(folder) == {
        *("install-config.yaml", f"install-config.yaml.{ID}.kept", "metadata.json.kept", ".openshift_install.log"),
        *(*LOGINS, "auth/htpasswd", "manifests.kept/cluster-config.yaml", "manifests.kept/of-the-user.yaml"),
        "openshift/a-playbook.yaml",
    }
    assert (folder / "install-config.yaml").read_text().endswith("fips: true\n")
    assert (folder / f"install-config.yaml.{ID}.kept").read_text() == CONFIG


@pytest.mark.parametrize("name", installer.OF_TERRAFORM)
@pytest.mark.parametrize("installed", [True, False])
def test_what_somebody_uses_with_terraform_stays(folder: Path, name: str, installed: bool) -> None:
    if not installed:
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "install-config.yaml").write_text(CONFIG)
    (folder / name).write_text('{"resources": [{"type": "openstack_dns_zone_v2"}]}')
    before = names(folder)
    with pytest.raises(ConfigError, match=f"{name} names no cluster"):
        start_over(folder)
    assert names(folder) == before


def test_what_would_be_overwritten_is_said_before_anything_is_deleted(folder: Path, wording: Wording) -> None:
    for name in ("manifests", "manifests.kept"):
        (folder / name).mkdir()
        (folder / name / "cluster-config.yaml").touch()
    before = names(folder)
    with pytest.raises(ConfigError) as caught:
        start_over(folder)
    wording(caught.value)
    assert names(folder) == before


def test_a_run_that_was_killed_in_the_middle_is_continued(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(folder: Path) -> list[Path]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installer, "written", killed)
        with pytest.raises(KeyboardInterrupt):
            Folder(folder).clear()
    assert (folder / "metadata.json").exists()
    assert (folder / "install-config.yaml").read_text() == CONFIG
    start_over(folder)
    assert names(folder) == {"install-config.yaml", "metadata.json.kept", ".openshift_install.log", *LOGINS}


def test_without_a_copy_the_state_has_the_install_config(folder: Path) -> None:
    (folder / "install-config.yaml.kept").unlink()
    (folder / "metadata.json").write_text("{")  # killed while it wrote: the state names the cluster
    start_over(folder)
    text = (folder / "install-config.yaml").read_text()
    assert "baseDomain: example.com" in text
    assert (folder / "install-config.yaml").stat().st_mode & 0o777 == 0o600


def test_of_which_cluster_the_files_are_must_be_known(folder: Path) -> None:
    (folder / "metadata.json").write_text("{")
    (folder / ".openshift_install_state.json").write_text("[]")
    (folder / ".clusterapi_output" / f"Cluster-openshift-cluster-api-guests-{ID}.yaml").unlink()
    with pytest.raises(SpecError, match=r"metadata\.json: is not JSON"):
        start_over(folder)
    assert (folder / ".clusterapi_output").exists()


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    (folder / ".clusterapi_output").rename(elsewhere)
    (folder / ".clusterapi_output").symlink_to(elsewhere)
    start_over(folder)
    assert (elsewhere / "envtest.kubeconfig").exists()
    assert not (folder / ".clusterapi_output").is_symlink()


def test_by_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = folder.parent / "make-cluster"
    program.write_text(f"#!/bin/sh\nls -A {folder} > listed; exit 3\n")
    program.chmod(0o755)
    words = ["ipi", "--again", "--no-check", "--dir", "ocp", "--", "./make-cluster"]
    assert main([*words, "destroy", "cluster"]) == 2
    assert contains(capsys.readouterr().err, "--again", "create cluster", "[config.invalid]")
    assert (folder / "metadata.json").exists()
    assert main([*words, "create", "cluster"]) == 3
    said = capsys.readouterr().err
    assert "openstack-prep: deleted ocp/metadata.json\n" in said
    assert "kubeconfig\n" not in said.replace("envtest.kubeconfig\n", "")
    listed = (folder.parent / "listed").read_text().split()
    kept = ["install-config.yaml", "install-config.yaml.kept", "metadata.json.kept"]
    assert listed == [".openshift_install.log", "auth", *kept]


@pytest.mark.parametrize(
    ("config", "owner", "reentrant", "starts"),
    [
        ("", ID, "", False),
        (CONFIG, ID, "", False),  # restored from its copy: the installer keeps the infraID of its state
        (f"{CONFIG}publish: Internal\n", ID, "", True),  # changed: it takes a new infraID
        ("", OTHER, "", True),
        ("", ID, "true", True),
    ],
)
def test_a_run_that_died_early_is_not_repeated(
    folder: Path, there: Lists, monkeypatch: pytest.MonkeyPatch, config: str, owner: str, reentrant: str, starts: bool
) -> None:
    """Before its Cluster API starts, the installer leaves no file because of which its next run would refuse."""
    shutil.rmtree(folder / installer.CAPI)
    if config:
        (folder / "install-config.yaml").write_text(config)
    if config != CONFIG and config:
        (folder / "install-config.yaml.kept").unlink()
    there["security_groups"] = [{"id": "g", "name": f"{owner}-master", "tags": [f"openshiftClusterID={owner}"]}]
    monkeypatch.setenv("OPENSHIFT_INSTALL_REENTRANT", reentrant)
    before, program = names(folder), folder.parent / "make-cluster"
    program.write_text(f"#!/bin/sh\ntouch {folder}/started\n")
    program.chmod(0o755)
    command = [str(program), "create", "cluster", "--dir", str(folder)]
    if starts:
        ipi(command, options=InstallOptions(check=False))
        assert (folder / "started").exists()
        return
    with pytest.raises(ConfigError) as caught:
        ipi(command, options=InstallOptions(check=False))
    said = str(caught.value)
    assert contains(said, folder, ID, "1 security group", "admin-project", "lab")
    assert f"openshift-install destroy cluster --dir {folder} (or openstack-prep cleanup --infra-id {ID}), then" in said
    assert said.endswith(f"openstack-prep ipi --again -- openshift-install create cluster --dir {folder}")
    assert names(folder) == before
