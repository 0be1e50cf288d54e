"""``kubernetes checklist`` for the examples: the order of the steps, and their commands."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from openstack_prep.cli.main import main

CREATE, RKE, FETCH = "Create the stacks", "Install RKE", "Fetch the kubeconfigs"
CILIUM, BALANCER, JOIN, VALIDATE = "Install Cilium", "Install the load balancer", "Join the clusters", "Validate"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def steps(example: str, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    text = (resources.files("openstack_prep.install_configs") / f"{example}.yaml").read_text()
    Path("spec.yaml").write_text(text)
    assert main(["kubernetes", "checklist", "spec.yaml", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["steps"]
    assert all(each["normal"] for each in found)
    return {each["title"]: each["commands"] for each in found}


@pytest.mark.parametrize(
    ("example", "titles"),
    [
        ("rke2", [CREATE, FETCH, CILIUM, BALANCER, VALIDATE]),
        ("rke2-mesh", [CREATE, FETCH, CILIUM, BALANCER, JOIN, VALIDATE]),
        ("rke-mesh", [CREATE, RKE, FETCH, CILIUM, BALANCER, JOIN, VALIDATE]),
    ],
)
def test_the_order(example: str, titles: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert list(steps(example, capsys)) == titles


def test_one_cluster_of_rke2(capsys: pytest.CaptureFixture[str]) -> None:
    found = steps("rke2", capsys)
    assert found[CREATE] == ["openstack-prep apply spec.yaml"]
    assert found[FETCH][1].startswith("(umask 077; ssh ubuntu@SERVER sudo cat /etc/rancher/rke2/rke2.yaml | sed ")
    assert found[FETCH][1].endswith(" > cluster/kubeconfig)")
    assert found[FETCH][2:] == ["export KUBECONFIG=cluster/kubeconfig", "kubectl get nodes"]
    assert found[CILIUM][0] == "kubectl apply -f cluster/rke2-cilium-config.yaml"
    assert found[BALANCER][1:] == [
        "kubectl apply -f cluster/metallb.yaml",
        "OS_CLIENT_CONFIG_FILE=rke2/clouds.yaml openstack-prep --os-cloud rke2 address-pairs sync spec.yaml",
    ]
    assert found[VALIDATE][-1] == "openstack-prep plan spec.yaml"


@pytest.mark.parametrize(
    ("old", "new", "labelled"),
    [
        ("    metallb:\n", "    config: {profile: cis}\n    metallb:\n", True),
        ("      agent_count: 2\n", "      agent_count: 2\n      profile: cis\n", True),
        ("    metallb:\n", "    config: {profile: etcd}\n    metallb:\n", False),
    ],
)
def test_profile_cis_lets_the_speakers_of_metallb_run(
    old: str, new: str, labelled: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (resources.files("openstack_prep.install_configs") / "rke2.yaml").read_text()
    assert text.count(old) == 1
    Path("spec.yaml").write_text(text.replace(old, new))
    assert main(["kubernetes", "checklist", "spec.yaml", "--format", "json"]) == 0
    found = {each["title"]: each["commands"] for each in json.loads(capsys.readouterr().out)["steps"]}
    names = [command.split()[:3] for command in found[BALANCER]]
    label = ["kubectl", "label", "--overwrite"]
    assert (label in names) == labelled
    assert not labelled or names.index(label) < next(n for n, each in enumerate(names) if each[0] == "helm")


def test_a_mesh_of_rke2(capsys: pytest.CaptureFixture[str]) -> None:
    found = steps("rke2-mesh", capsys)
    first, copy, second = (
        next(index for index, command in enumerate(found[CILIUM]) if part in command)
        for part in ("cluster1/rke2-cilium-config", "get secret cilium-ca", "cluster2/rke2-cilium-config")
    )
    assert first < copy < second  # Cilium of the second cluster starts with the first one's CA
    assert found[JOIN] == [
        "openstack-prep rke mesh spec.yaml",
        "cilium clustermesh status --context cluster1 --wait",
        "cilium clustermesh status --context cluster2 --wait",
    ]
    nodes = "kubectl --context cluster2 -n kube-system exec daemonset/cilium -- cilium-dbg node list"
    assert nodes in found[VALIDATE]
    assert len({*found[CILIUM]}) == len(found[CILIUM])


def test_a_mesh_of_rke(capsys: pytest.CaptureFixture[str]) -> None:
    found = steps("rke-mesh", capsys)
    assert found[RKE] == [f"rke up --config cluster{n}/cluster.yml" for n in (1, 2)]
    assert found[FETCH][0].count("kube_config_cluster.yml") == 2
    assert [each for each in found[CILIUM] if each.startswith("helm --kube-context")]


def test_a_spec_without_clusters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "spec.yaml").write_text("name: a\nproject: {name: a}\n")
    assert main(["kubernetes", "checklist", "spec.yaml"]) == 2
    assert "spec.yaml: declares no rke_clusters" in capsys.readouterr().err


def test_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    steps("rke2", capsys)
    assert main(["kubernetes", "checklist", "spec.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [each[:6] for each in lines if each.startswith("[ ]")] == [f"[ ] {n}." for n in range(1, 6)]


def test_no_command_contains_more_than_names(capsys: pytest.CaptureFixture[str]) -> None:
    Path("spec.yaml").write_text(
        "name: x\nrke_clusters:\n"
        '- {name: "a$(id)", stack: a, directory: a}\n'
        "- {name: b, stack: b, directory: b, cilium: {cluster_id: 2, namespace: b; id},\n"
        "   metallb: {namespace: B, pools: []}}\n"
    )
    assert main(["kubernetes", "checklist", "spec.yaml", "--format", "json"]) == 2
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert {each["code"] for each in errors} == {"spec.invalid-value"}
    assert [each["where"] for each in errors if "$(" in each["what"]] == ["spec.yaml:3: rke_clusters[0].name"]
    places = {each["where"] for each in errors}
    assert {"spec.yaml:4: rke_clusters[1].cilium.namespace", "spec.yaml:5: rke_clusters[1].metallb.namespace"} <= places
