"""A file of another form: each command that reads one names what it is, and the command for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openstack_prep.cli.main import main

FILES = {
    "spec.yaml": ("name: lab\nflavors: [{name: a, vcpus: 1, ram: 1GiB, disk: 1}]\n", "validate spec.yaml"),
    "small.yaml": ("name: lab\nusers: []\nproject: {name: lab}\n", "validate small.yaml"),
    "fleet.yaml": ("name: all\ntargets: []\n", "fleet validate fleet.yaml"),
    "install-config.yaml": ("baseDomain: a.b\nplatform: {aws: {}}\nmetadata: {name: a}\n", "check install-config.yaml"),
    "metadata.json": ('{"infraID": "a-b", "clusterName": "a", "openstack": {}}', "verify --metadata metadata.json"),
    "cluster.yml": ("nodes: [{address: a, role: [etcd]}]\nnetwork: {}\nservices: {}\n", "rke check cluster.yml"),
    "server.yaml": ("token: a\ntls-san: [b]\ncni: canal\n", "rke check --rke2 server server.yaml"),
    "agent.yaml": ("token: a\nserver: https://b:9345\n", "rke check --rke2 agent agent.yaml"),
    "registries.yaml": ("mirrors: {}\n", "rke check --rke2 registries registries.yaml"),
    "my.plan": ('{"format": 3, "made_by": "openstack-prep 1.0", "salt": "00"}', "apply --plan my.plan"),
    "stack.yaml": ("heat_template_version: 2018-08-31\nresources: {}\nparameters: {}\n", ""),
    "clouds.yaml": ("clouds: {a: {auth: {}}}\n", ""),
    "services.json": ('{"kind": "List", "apiVersion": "v1", "items": []}', ""),
}
"""By name a content, and the command for such a file."""
READERS = {
    "validate": ("spec.yaml", "small.yaml"),
    "plan": ("spec.yaml", "small.yaml"),
    "fleet validate": ("fleet.yaml",),
    "check": ("install-config.yaml",),
    "check --offline --release 4.20": ("install-config.yaml",),
    "import": ("install-config.yaml",),
    "kubernetes convert": ("cluster.yml",),
    "rke check": ("cluster.yml",),
    "rke check --rke2 server": ("server.yaml", "agent.yaml"),
    "rke check --rke2 registries": ("registries.yaml",),
}
"""By command the files that it reads."""


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command in READERS for name in FILES if name not in READERS[command]]
)
def test_a_file_for_another_command(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text, fix = FILES[name]
    (tmp_path / name).write_text(text)
    assert main([*command.split(), "--format", "json", name]) == 2
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["code"] == "spec.unreadable"
    assert error["where"].startswith(f"{name}:")
    assert f"`openstack-prep {fix}`" in error["fix"] if fix else "`" not in error["fix"]
