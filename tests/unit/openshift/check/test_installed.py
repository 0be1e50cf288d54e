from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.openshift.check.preflight import installed
from tests.unit.texts import Wording, contains


def test_a_folder_of_no_cluster(tmp_path: Path) -> None:
    assert list(installed(tmp_path / "install-config.yaml")) == []


def test_the_folder_of_a_cluster(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "metadata.json").write_text('{"infraID": "dev-x7k2p"}')
    (found,) = installed(tmp_path / "install-config.yaml.kept")
    assert found.status == "error"
    assert found.code == "cluster.installed"
    assert contains(found.what, "dev-x7k2p")
    assert found.fix.startswith(f"openstack-prep verify --metadata {tmp_path}/metadata.json  # ")
    again = f"openstack-prep ipi --again -- openshift-install create cluster --dir {tmp_path}"
    assert found.fix.endswith(f"openshift-install destroy cluster --dir {tmp_path}, then {again}")
    assert found.code == "cluster.installed"
    wording(found.why)


@pytest.mark.parametrize("name", [".clusterapi_output/envtest.kubeconfig", "terraform.tfstate"])
def test_what_makes_the_installer_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    (found,) = installed(tmp_path / "install-config.yaml")
    assert (found.code, found.where) == ("cluster.installed", str(tmp_path / name))
    assert contains(found.why, "deleted install-config.yaml")
    monkeypatch.setenv("OPENSHIFT_INSTALL_REENTRANT", "true")
    assert list(installed(tmp_path / "install-config.yaml")) == []


@pytest.mark.parametrize("text", ["", "{}", "[]", "\udc80", "7"])
def test_whatever_it_contains_it_would_be_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata.json").write_bytes(text.encode(errors="surrogateescape"))
    assert [each.status for each in installed(tmp_path / "install-config.yaml")] == ["error"]
