"""Exposures and pool files alone, which need no OpenStack, as a user calls the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.cli.main import main

SERVICE = {"target": {"service": "shop/web"}, "cluster": "c"}
SPEC: dict[str, Any] = {
    "name": "lab",
    "pool_files": [
        {"name": "out", "path": "out.yaml", "cidr": "10.9.0.0/24", "gateway": "10.9.0.254", "addresses": ["10.9.0.7"]}
    ],
    "exposures": [
        {"name": "pooled", "how": "metallb", "pool": "out", "address": "10.9.0.7", "ports": [{"port": 80}], **SERVICE},
        {"name": "ports", "how": "node-port", "ports": [{"port": 80, "node_port": 30080}], **SERVICE},
        {"name": "given", "how": "metallb", "address": "192.0.2.9", "ports": [{"port": 81}], **SERVICE},
    ],
    "exposed_clusters": [{"name": "c", "directory": "files"}],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(SPEC)
    return tmp_path


def write(spec: dict[str, Any]) -> None:
    Path("spec.yaml").write_text(yaml.safe_dump(spec))


def data(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    main([*words, "--format", "json"])
    return json.loads(capsys.readouterr().out)


def reserved(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the codes of the hop to the address, by exposure."""
    found = data(capsys, "exposures", "show", "spec.yaml")["exposures"]
    return {each["name"]: [hop["code"] for hop in each["hops"] if hop["where"] == "address"] for each in found}


def test_an_address_is_reserved_once_the_pool_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    before = reserved(capsys)
    assert before["pooled"] == ["exposure.not-reserved"]
    assert main(["apply", "--yes", "spec.yaml"]) == 0
    after = reserved(capsys)
    assert {name: codes for name, codes in before.items() if codes != after[name]}.keys() == {"pooled"}
    assert after["pooled"] == after["given"]


def test_apply_names_the_folder_and_destroy_says_why_it_keeps_something(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--yes", "spec.yaml"]) == 0
    (line,) = (each for each in capsys.readouterr().out.splitlines() if each.startswith("written:"))
    assert line.split()[1:] == ["out.yaml,", "files"]
    assert main(["plan", "--destroy", "spec.yaml"]) == 0
    kept = [each for each in capsys.readouterr().out.splitlines() if each.startswith("  = ")]
    assert len(kept) == 2
    assert not [each for each in kept if "not managed by this spec" in each]


def test_the_files_of_a_former_directory_are_named_and_pruned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--yes", "spec.yaml"]) == 0
    write({**SPEC, "exposed_clusters": [{"name": "c", "directory": "other"}]})
    plan = data(capsys, "plan", "spec.yaml")
    assert [each["resource"] for each in plan["undeclared"]] == [f"exposed_cluster/c ({Path('files').resolve()})"]
    assert main(["apply", "--yes", "spec.yaml"]) == 0
    assert Path("files").exists()
    assert main(["apply", "--prune", "--yes", "spec.yaml"]) == 0
    assert (Path("files").exists(), Path("other").exists()) == (False, True)
    write({**SPEC, "name": "another"})  # whose files are not these
    Path("out.yaml").unlink()
    assert "undeclared" not in data(capsys, "plan", "spec.yaml") or not data(capsys, "plan", "spec.yaml")["undeclared"]


def test_an_edit_of_the_spec_is_no_drift(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--yes", "spec.yaml"]) == 0
    first, *others = SPEC["exposures"]
    write({**SPEC, "exposures": [{**first, "names": ["web.example.com"]}, *others]})
    steps = data(capsys, "plan", "spec.yaml")["steps"]
    (changes,) = (each["changes"] for each in steps if each["resource"] == "exposed_cluster/c")
    assert [each["field"] for each in changes] == ["drift"]


@pytest.mark.parametrize(
    ("exposure", "cluster", "warned"),
    [
        ({}, {}, True),
        ({}, {"open_in": "nodes"}, False),
        ({"allowed_cidrs": []}, {}, False),
    ],
)
def test_allowed_cidrs_that_nothing_enforces(
    capsys: pytest.CaptureFixture[str], exposure: dict[str, Any], cluster: dict[str, Any], warned: bool
) -> None:
    given = {**SPEC["exposures"][2], "allowed_cidrs": ["192.0.2.0/24"], **exposure}
    write({"name": "lab", "exposures": [given], "exposed_clusters": [{"name": "c", "directory": "files", **cluster}]})
    capsys.readouterr()
    assert main(["validate", "spec.yaml"]) == 0, capsys.readouterr().err
    assert ("allowed_cidrs of exposure given" in capsys.readouterr().err) == warned


@pytest.mark.parametrize(
    ("nodes", "address", "valid"),
    [
        ({"ports": ["n0"]}, "10.1.0.254", True),  # the gateway of another network, which may have the same addresses
        ({"ports": ["n0"]}, "10.0.0.254", False),
        ({"infra_id": "ocp-abcde"}, "10.1.0.254", False),  # nothing says where the nodes are
    ],
    ids=str,
)
def test_an_address_without_a_pool_beside_the_nodes(
    capsys: pytest.CaptureFixture[str], nodes: dict[str, Any], address: str, valid: bool
) -> None:
    networks = {"a": "10.0.0.0/24", "b": "10.1.0.0/24"}
    gateways = {"a": "10.0.0.254", "b": "10.1.0.254"}
    given = {"name": "given", "how": "metallb", "address": address, "ports": [{"port": 81}], **SERVICE}
    write(
        {
            "name": "lab",
            "networks": [{"name": name} for name in networks],
            "subnets": [
                {"name": name, "network": name, "cidr": cidr, "gateway_ip": gateways[name]}
                for name, cidr in networks.items()
            ],
            "ports": [{"name": "n0", "network": "a", "fixed_ips": [{"subnet": "a", "address": "10.0.0.5"}]}],
            "exposures": [given],
            "exposed_clusters": [{"name": "c", "directory": "files", "nodes": nodes}],
        }
    )
    assert (main(["validate", "spec.yaml"]) == 0) == valid
    assert (f"{address} is the gateway" in capsys.readouterr().err) != valid
