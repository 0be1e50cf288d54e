from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.openshift.check.installed import installed


def test_a_folder_of_no_cluster(tmp_path: Path) -> None:
    assert list(installed(tmp_path / "install-config.yaml")) == []


def test_the_folder_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text('{"infraID": "dev-x7k2p"}')
    (found,) = installed(tmp_path / "install-config.yaml.kept")
    assert found.status == "error"
    assert found.what == "cluster dev-x7k2p was installed from this folder, or its installation has begun"
    assert found.fix.startswith(f"openstack-prep verify --metadata {tmp_path}/metadata.json  # ")
    assert found.fix.endswith(f"openshift-install destroy cluster --dir {tmp_path}")


@pytest.mark.parametrize("text", ["", "{}", "[]", "\udc80", "7"])
def test_whatever_stands_in_it_the_installer_stops(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata.json").write_bytes(text.encode(errors="surrogateescape"))
    assert [each.status for each in installed(tmp_path / "install-config.yaml")] == ["error"]
