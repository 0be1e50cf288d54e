from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.cli.main import main
from openstack_prep.openshift.commands import verify
from openstack_prep.openshift.names import resolver
from tests.unit.conftest import ENDPOINTS
from tests.unit.openshift.verify.view import API, ID, INGRESS, right
from tests.unit.texts import contains

NEUTRON, NOVA = ENDPOINTS["network"] + "/v2.0", ENDPOINTS["compute"]
CONFIG = f"""
baseDomain: example.com
metadata: {{name: dev}}
platform: {{openstack: {{apiFloatingIP: {API}, ingressFloatingIP: {INGRESS}}}}}
"""


@pytest.fixture
def cluster(services: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installer's folder, after it: a cluster with nothing wrong whose names nobody resolves."""

    def no_resolver(*_: Any, **__: Any) -> None:
        raise OSError("no such name")

    monkeypatch.setattr(resolver.socket, "getaddrinfo", no_resolver)
    view = right()

    def ports(request: Any, _: Any) -> dict[str, Any]:
        return {"ports": view.interfaces if "device_owner" in request.qs else view.ports}

    lists = {"security-groups": view.groups, "subnets": view.subnets, "routers": view.routers}
    services.get(f"{NEUTRON}/ports", json=ports)
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": view.floating_ips})
    for plural, found in lists.items():
        listed = [{"id": key, **each} for key, each in (found or {}).items()]
        services.get(f"{NEUTRON}/{plural}", json={plural.replace("-", "_"): listed})
    servers = [{"id": key, **each} for key, each in (view.servers or {}).items()]
    services.get(f"{NOVA}/servers/detail", json={"servers": servers})
    platform = {"cloud": "lab", "identifier": {"openshiftClusterID": ID}}
    metadata = {"clusterName": "dev", "infraID": ID, "openstack": platform}
    (clouds_yaml.parent / "metadata.json").write_text(json.dumps(metadata))
    return clouds_yaml.parent


def test_the_installers_folder_is_enough(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cluster / "install-config.yaml.kept").write_text(CONFIG)
    assert main(["verify"]) == 1
    out = capsys.readouterr().out
    assert contains(out, "ERROR", "api.dev.example.com", "[dns.missing]")
    assert f"{ID}: 3 errors" in out
    hosts = cluster / "hosts"
    apps = "console-openshift-console.apps.dev.example.com oauth-openshift.apps.dev.example.com"
    hosts.write_text(f"{API} api.dev.example.com\n{INGRESS} {apps}\n")
    assert main(["verify", "--hosts", "hosts", "--from", "203.0.113.7"]) == 0
    assert "no problems found" in capsys.readouterr().out


def test_as_json(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--format", "json", "--infra-id", ID, "--os-cloud", "lab"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], [each["name"] for each in found["chains"]]) == (True, ["api", "ingress"])


def test_no_cluster_and_nonsense(clouds_yaml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"]) == 2
    assert contains(capsys.readouterr().err, "metadata.json", "[config.invalid]")
    assert main(["verify", "--infra-id", "dev", "--from", "home"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


SSH = """#!/bin/sh
echo >> logins
if [ $(wc -l < logins) -gt {failing} ]; then
    echo "channel 0: open failed: connect failed: Connection refused" >&2
    echo "stdio forwarding failed" >&2
else
    echo "ssh: connect to host node port 22: No route to host" >&2
    [ $(wc -l < logins) -ne 9 ] || kill -s TERM $PPID
fi
exit 255
"""
WATCH = ("verify", "--infra-id", ID, "--os-cloud", "lab", "--api-ip", API, "--probe-from", "node", "--format", "json")


def with_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, *, failing: int) -> None:
    """Put a program ssh on PATH that cannot connect, so many times."""
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH.format(failing=failing))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(verify, "WATCH_SECONDS", 0.1)


def test_a_watch_waits_for_the_machine_of_probe_from(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_ssh(cluster, monkeypatch, failing=3)
    assert main([*WATCH, "--watch", "--until", "error"]) == 1
    failed, *links = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["code"] for each in failed["errors"]] == ["config.invalid"]
    assert "No route to host" in failed["errors"][0]["what"]
    assert "probe.refused" in {each["code"] for each in links}


def test_a_single_look_from_a_machine_that_does_not_answer(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_ssh(cluster, monkeypatch, failing=9)
    assert main([*WATCH]) == 2
    assert "No route to host" in capsys.readouterr().out


def test_a_watch_that_has_seen_nothing_ends_with_the_error(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program ssh sends the signal at the ninth login."""
    with_ssh(cluster, monkeypatch, failing=99)
    assert main([*WATCH, "--watch"]) == 2
    assert "No route to host" in capsys.readouterr().out
