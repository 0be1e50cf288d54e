from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.openshift.folder import Folder, clouds_file, for_installer
from tests.unit.texts import Wording, expect_error

CONFIG = "platform: {openstack: {cloud: lab}}\n"


def metadata(infra_id: str, cloud: str = "other") -> str:
    identifier = {"cloud": cloud, "identifier": {"openshiftClusterID": infra_id}}
    return json.dumps({"clusterName": "dev", "infraID": infra_id, "openstack": identifier})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_copy_for_our_eyes_only(folder: Folder, wording: Wording) -> None:
    folder.keep_config()  # nothing there, nothing done
    folder.config.write_text(CONFIG)
    folder.keep_config()
    kept = folder.path / "install-config.yaml.kept"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (CONFIG, 0o600)
    folder.config.write_text("platform: {}\n")
    with pytest.raises(ConfigError) as caught:
        folder.keep_config()
    wording(caught.value)
    assert kept.read_text() == CONFIG


def test_the_copy_of_an_earlier_cluster_goes_on_under_its_name(folder: Folder) -> None:
    folder.metadata.write_text(metadata("dev-x7k2p"))
    folder.keep_metadata()
    folder.keep_metadata()
    assert sorted(os.listdir(folder.path)) == ["metadata.json", "metadata.json.kept"]
    folder.metadata.write_text(metadata("dev-q9m4t"))
    folder.keep_metadata()
    kept = {each.name: json.loads(each.read_text())["infraID"] for each in folder.path.glob("*.kept")}
    assert kept == {"metadata.json.kept": "dev-q9m4t", "metadata.json.dev-x7k2p.kept": "dev-x7k2p"}


def test_half_a_file_is_none(folder: Folder) -> None:
    assert folder.metadata_text() is None
    folder.metadata.write_text('{"infraID": ')
    assert folder.metadata_text() is None
    folder.metadata.write_text(metadata("dev-x7k2p"))
    assert folder.metadata_of("dev").infra_id == "dev-x7k2p"
    with expect_error(ConfigError, "dev", "dev2"):
        folder.metadata_of("dev2")


def test_which_cloud_the_installer_takes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OS_CLOUD", raising=False)
    assert folder.cloud() == "openstack"
    monkeypatch.setenv("OS_CLOUD", "shell")
    assert folder.cloud() == "shell"
    folder.metadata.write_text(metadata("dev-x7k2p"))
    assert (folder.used, folder.cloud()) == (True, "other")
    folder.config.write_text(CONFIG)
    assert (folder.used, folder.cloud()) == (False, "lab")
    folder.config.write_text("platform: {aws: {}}\n")
    with expect_error(SpecError, "platform", "aws"):
        folder.cloud()


def test_which_clouds_yaml_the_installer_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "none.yaml")
    with expect_error(ConfigError, "clouds.yaml", "none.yaml"):
        clouds_file()
    (tmp_path / "clouds.yaml").touch()
    assert clouds_file() == tmp_path / "clouds.yaml"
    monkeypatch.delenv("OS_CLOUD", raising=False)
    with for_installer("lab", tmp_path / "other.yaml"):
        assert (os.environ["OS_CLOUD"], os.environ["OS_CLIENT_CONFIG_FILE"]) == ("lab", f"{tmp_path}/other.yaml")
    assert ("OS_CLOUD" in os.environ, os.environ["OS_CLIENT_CONFIG_FILE"]) == (False, "none.yaml")
