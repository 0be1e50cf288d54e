from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.cli.main import main
from tests.unit.conftest import ENDPOINTS, sent
from tests.unit.texts import Wording, contains

ID = "dev-x7k2p"
PORTS = f"{ENDPOINTS['network']}/v2.0/ports"


@pytest.fixture
def folder(clouds_yaml: Path, services: requests_mock.Mocker) -> Path:
    """The installer's folder ``ocp``, and a cloud with the cluster's ingress port."""
    made = clouds_yaml.parent / "ocp"
    made.mkdir()
    write(made / "metadata.json", "lab")
    fixed = [{"subnet_id": "sub", "ip_address": "10.0.0.7"}]
    port = {"id": "p", "name": f"{ID}-ingress-port", "tags": [f"openshiftClusterID={ID}"], "fixed_ips": fixed}
    port |= {"network_id": "net", "mac_address": "fa:16:3e:00:00:01", "device_owner": "", "device_id": ""}
    services.get(PORTS, json={"ports": [port]})
    return made


def write(path: Path, cloud: str) -> None:
    platform = {"cloud": cloud, "identifier": {"openshiftClusterID": ID}}
    path.write_text(json.dumps({"clusterName": "dev", "infraID": ID, "openstack": platform}))


@pytest.mark.parametrize("given", [["--metadata", "ocp"], ["--metadata", "ocp/metadata.json"], []])
def test_a_folder_a_file_or_here_and_the_copy_of_what_destroy_removed(
    given: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    wording: Wording,
) -> None:
    if not given:
        monkeypatch.chdir(folder)
    words = ["wait-for", "ingress-port", *given]
    assert main(words) == 0
    assert capsys.readouterr() == (f"{ID}-ingress-port  p  10.0.0.7\n", "")
    (folder / "metadata.json").rename(folder / "metadata.json.kept")
    assert main(words) == 0
    wording(capsys.readouterr().err)


def test_none_of_them(folder: Path, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "metadata.json").unlink()
    assert main(["wait-for", "ingress-port", "--metadata", "ocp"]) == 2
    assert contains(capsys.readouterr().err, "ocp/metadata.json", "[spec.invalid]")
    assert main(["wait-for", "ingress-port"]) == 2
    assert contains(capsys.readouterr().err, "metadata.json", "--metadata PATH", "--infra-id", "[config.invalid]")
    assert sent(services) == []


def test_metadata_names_the_cloud_unless_it_is_given(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLOUD", "lab")
    write(folder / "metadata.json", "ocp42")
    words = ["wait-for", "ingress-port", "--metadata", "ocp"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "cloud 'ocp42'" in said
    assert contains(said, "--os-cloud", "OS_CLIENT_CONFIG_FILE", "[config.invalid]")
    assert contains(said, "clouds_file", "[config.invalid]")
    assert contains(said, "metadata.json", "--os-cloud", "[config.invalid]")
    assert main([*words, "--os-cloud", "lab"]) == 0
