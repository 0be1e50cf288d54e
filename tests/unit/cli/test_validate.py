from __future__ import annotations

import json
from pathlib import Path

import pytest

from openstack_prep.cli.main import main

WRONG = """\
name: lab
flavors:
  - {name: a, vcpu: 1}
networks: [{name: net, mtu: big}]
"""
CONTRADICTION = """\
name: lab
floating_ips:
  - {name: one, external_network: external, address: 192.0.2.1}
  - {name: two, external_network: external, address: 192.0.2.1}
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec in a folder without a clouds.yaml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OS_CLOUD", raising=False)
    return tmp_path / "spec.yaml"


def test_a_valid_spec_needs_neither_a_cloud_nor_an_entry(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "openshift-lab"]) == 0
    spec.write_text(capsys.readouterr().out)
    assert main(["validate", "spec.yaml"]) == 0
    assert capsys.readouterr().out == "spec.yaml: valid, 14 resources\n"
    assert main(["validate", "--format", "json", "spec.yaml"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["valid"], said["errors"], len(said["resources"])) == (True, [], 14)
    assert [each.name for each in spec.parent.iterdir()] == ["spec.yaml"]


def test_all_mistakes_are_reported_at_once_with_their_places(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(WRONG)
    assert main(["validate", "spec.yaml"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("spec.yaml:") == 2
    assert main(["validate", "--format", "json", "spec.yaml"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is False
    assert [each["where"] for each in found["errors"]] == [
        "spec.yaml:3: flavors[0].vcpu",
        "spec.yaml:4: networks[0].mtu",
    ]


def test_resources_that_contradict_each_other_are_mistakes(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(CONTRADICTION)
    assert main(["validate", "--format", "json", "spec.yaml"]) == 2
    places = [each["where"] for each in json.loads(capsys.readouterr().out)["errors"]]
    assert places == ["spec.yaml:4: floating_ip/two"]
