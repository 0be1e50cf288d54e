"""``exposures show`` as a user calls it, with a running cluster whose answers were recorded."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.cli.main import main
from tests.unit.kubernetes.recorded_api import Recorded, serve
from tests.unit.texts import Wording, contains

CLUSTER = {"name": "one", "directory": "one"}
EXPOSURE = {"name": "web", "cluster": "one", "how": "metallb", "target": {"service": "default/web"}}
EXPOSURE |= {"ports": [{"port": 80}], "address": "10.1.0.200"}


@pytest.fixture
def api() -> Iterator[Recorded]:
    with serve(Recorded()) as made:
        yield made


@pytest.fixture
def folder(
    tmp_path: Path, clouds_yaml: Path, empty_cloud: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, api: Recorded
) -> Path:
    monkeypatch.setenv("OS_CLOUD", "lab")
    project = {"id": "admin-project", "name": "admin", "domain_id": "default", "enabled": True, "tags": []}
    empty_cloud.get("http://keystone/v3/projects/admin-project", json={"project": project})
    empty_cloud.register_uri(requests_mock.ANY, api.url, real_http=True)
    api.kubeconfig(tmp_path / "my kubeconfig")
    return tmp_path


def show(folder: Path, capsys: pytest.CaptureFixture[str], *words: str, **spec: Any) -> tuple[int, str, str]:
    declared = {"name": "lab", "exposed_clusters": [CLUSTER], "exposures": [EXPOSURE]} | spec
    (folder / "spec.yaml").write_text(json.dumps(declared))
    code = main(["exposures", "show", "spec.yaml", *words])
    return (code, *capsys.readouterr())


RUNNING = ("--kubeconfig", "my kubeconfig")


def hops(out: str) -> list[dict[str, str]]:
    found = json.loads(out)["exposures"][0]["hops"]
    return [{name: each[name] for name in ("status", "where", "what", "fix")} for each in found]


def test_the_service_is_a_hop(folder: Path, capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    target = {"target": {"service": "shop/front"}, "address": "10.1.0.201"}
    code, out, _ = show(folder, capsys, *RUNNING, "--format", "json", exposures=[EXPOSURE | target])
    assert code == 1  # the files are not written yet
    wording(hops(out)[-1])
    code, out, _ = show(folder, capsys, *RUNNING, "--context", "test", "--format", "json")
    kubectl = "kubectl --kubeconfig 'my kubeconfig' --context test -n default patch service web"
    wording(hops(out)[-1]["what"])
    assert hops(out)[-1]["fix"].startswith(f"create it, then {kubectl} --type merge -p ")


def test_without_a_cluster_there_is_no_such_hop(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [each["where"] for each in hops(show(folder, capsys, "--format", "json")[1])] == ["address", "files"]


def test_the_cluster_is_named_if_the_spec_has_several(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [CLUSTER, {"name": "two", "directory": "two"}]
    code, _, err = show(folder, capsys, *RUNNING, exposed_clusters=both)
    assert code == 2
    assert contains(err, "exposed_clusters", "one, two", "--kubeconfig", "--cluster", "[spec.invalid]")
    code, _, err = show(folder, capsys, *RUNNING, "--cluster", "three", exposed_clusters=both)
    assert code == 2
    assert contains(err, "three", "[spec.invalid]")
    _, out, _ = show(folder, capsys, *RUNNING, "--cluster", "two", "--format", "json", exposed_clusters=both)
    assert "Service" not in [each["where"] for each in hops(out)]


@pytest.mark.parametrize("words", ["--context test", "--cluster one"])
def test_options_of_a_cluster_need_one(folder: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    code, _, err = show(folder, capsys, *shlex.split(words))
    assert code == 2
    assert f"{words.split()[0]} requires --kubeconfig" in err


def test_a_cluster_that_does_not_answer_ends_it(
    folder: Path, capsys: pytest.CaptureFixture[str], api: Recorded
) -> None:
    api.lists = [(403, "403.json")]
    code, out, err = show(folder, capsys, *RUNNING)
    assert (code, out) == (1, "")
    assert "cannot list services" in err
