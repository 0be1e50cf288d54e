from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.cli.main import main

WRONG = """\
name: lab
flavors:
  - {name: a, vcpu: 1}
networks: [{name: net, mtu: big}]
"""
TWINS = """\
name: lab
project: {name: lab}
networks: [{name: net}, {name: net, project: other}]
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


def test_it_counts_what_a_plan_lists(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The cluster adds rules to the group of its nodes, which are a resource of their own in a plan."""
    assert main(["example", "exposures-metallb"]) == 0
    spec.write_text(capsys.readouterr().out)
    assert main(["validate", "--format", "json", "spec.yaml"]) == 0
    listed = json.loads(capsys.readouterr().out)["resources"]
    assert (len(listed), "security_group_rules/nodes" in listed) == (17, True)


@pytest.mark.parametrize(
    "example", [TWINS, "openshift-lab", "exposures-metallb", "exposures-external-ip", "exposures-openshift"]
)
def test_plan_and_show_list_the_same(
    example: str,
    empty_cloud: requests_mock.Mocker,
    clouds_yaml: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: str) -> dict[str, Any]:
        main([*words, "--format", "json", "spec.yaml"])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    monkeypatch.setenv("OS_CLOUD", "lab")
    assert example == TWINS or main(["example", example]) == 0
    clouds_yaml.with_name("spec.yaml").write_text(TWINS if example == TWINS else capsys.readouterr().out)
    listed = sorted(run("validate")["resources"])
    assert sorted(step["resource"] for step in run("plan")["steps"]) == listed
    assert sorted(run("show").keys() - {"version"}) == listed


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


CLUSTERS = """\
name: lab
rke_clusters:
  - name: one
    stack: one
    directory: one
    cilium:
      cluster_id: 1
      values: {hubbel: {relay: {}}}
      chart: none.tgz
    metallb:
      pools:
        - name: Bad_Name
          addresses: [10.0.0.1-10.0.0.9]
        - pool: p
    kube_vip:
      pools:
        - {name: a, addresses: [10.1.0.1]}
  - name: two
    stack: one
    directory: two
    distribution: rke2
    config:
      profil: cis
    cluster_cidr: 169.254.0.0/16
"""
WRONG_CLUSTERS = [
    ("spec.yaml:12: rke_cluster/one", "metallb.pools[0].name", "cluster.metallb"),
    ("spec.yaml:14: rke_cluster/one", "metallb.pools[1].pool", "cluster.metallb"),
    ("spec.yaml:15: rke_cluster/one", "kube_vip", "cluster.load-balancers"),
    ("spec.yaml:9: rke_cluster/one", "cilium.chart", "cluster.cilium"),
    ("spec.yaml:8: rke_cluster/one", "cilium.values.hubbel", "spec.unknown-key"),
    ("spec.yaml:24: rke_cluster/two", "cluster_cidr 169.254.0.0/16 overlaps", "cluster.networks"),
    ("spec.yaml:19: rke_cluster/two", "stack one is also used", "cluster.shared"),
    ("spec.yaml:23: rke_cluster/two", "config.profil", "spec.unknown-key"),
]


def test_rules_of_clusters_need_no_cloud(
    spec: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``plan`` applies the same rules before it sends a request: nothing listens on the port of this cloud."""
    auth = {"auth_url": "http://127.0.0.1:1/v3", "username": "a", "password": "b", "project_name": "p"}
    entries = spec.with_name("clouds.yaml")
    entries.write_text(json.dumps({"clouds": {"none": {"auth": auth}}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(entries))
    monkeypatch.setenv("OS_CLOUD", "none")
    spec.write_text(CLUSTERS)
    for command in ("validate", "plan", "apply"):
        assert main([command, "--format", "json", "spec.yaml"]) == 2
        found = json.loads(capsys.readouterr().out)["errors"]
        assert sorted((each["where"], each["code"]) for each in found) == sorted(
            (where, code) for where, _, code in WRONG_CLUSTERS
        )
        for where, what, code in WRONG_CLUSTERS:
            (one,) = [each for each in found if each["where"] == where and each["code"] == code]
            assert one["what"].startswith(what)


def test_rules_and_contradictions_are_reported_together(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(CONTRADICTION + CLUSTERS.removeprefix("name: lab\n"))
    assert main(["validate", "--format", "json", "spec.yaml"]) == 2
    found = [each["where"] for each in json.loads(capsys.readouterr().out)["errors"]]
    assert len(found) == len(WRONG_CLUSTERS) + 1
    assert "spec.yaml:4: floating_ip/two" in found


def test_unknown_releases_are_warnings(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = {"name": "a", "stack": "a", "directory": "a", "cilium": {"version": "1.99", "cluster_id": 1}}
    spec.write_text(json.dumps({"name": "lab", "rke_clusters": [cluster]}))
    assert main(["validate", "--format", "json", "spec.yaml"]) == 0
    said = capsys.readouterr()
    (warning,) = json.loads(said.out)["warnings"]
    assert warning.startswith("spec.yaml:1: rke_cluster/a: cilium.version: ")
    assert warning in said.err


WITHOUT_VALUES = """\
name: lab
variables:
  word: {secret: true}
  other: {secret: true, default: {env: NOBODY_HAS_SET_THIS}}
project: {name: lab}
users:
  - {name: a, password: {env: NOBODY_HAS_SET_THIS}}
  - {name: b, password: {file: missing}}
  - {name: c, password: {command: [touch, ran]}}
  - {name: d, password: {vault: secret/lab#password}}
  - {name: e, password: {keyring: openstack/lab}}
  - {name: f, password: {prompt: true}}
  - {name: g, password: {generate: missing}}
  - {name: h, password: "${word}"}
  - {name: i, password: "${other}"}
object_store: {temp_url_key: {env: NOBODY_HAS_SET_THIS}}
clouds_yaml: [{path: lab/clouds.yaml, cloud: lab, user: a}]
stacks:
  - name: nodes
    template: nodes.yaml
    secret_parameters: {token: {env: NOBODY_HAS_SET_THIS}, file: {content: missing}, pin: {command: [touch, ran]}}
rke_clusters:
  - {name: lab, stack: nodes, directory: lab, roles: [{nodes: 0, roles: [controlplane, etcd, worker]}]}
"""
TEMPLATE = """\
heat_template_version: 2018-08-31
parameters:
  token: {type: string, hidden: true, constraints: [{length: {min: 16}}]}
  file: {type: string, hidden: true}
  pin: {type: number, hidden: true}
outputs:
  node_names: {value: []}
  node_addresses: {value: []}
"""


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "spec.yaml"],
        ["validate", "spec.yaml", "spec.yaml", "--sarif", "found.sarif", "--junit", "found.xml"],
        ["graph", "spec.yaml"],
        ["topology", "--offline", "spec.yaml"],
        ["kubernetes", "checklist", "spec.yaml"],
        ["fleet", "validate", "fleet.yaml"],
    ],
    ids=" ".join,
)
def test_what_only_checks_a_spec_needs_no_value_of_a_secret(
    spec: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs no program and asks nobody either: CI has the secrets in later jobs, for those who may change a cloud."""
    monkeypatch.delenv("NOBODY_HAS_SET_THIS", raising=False)
    spec.write_text(WITHOUT_VALUES if words[0] != "fleet" else WITHOUT_VALUES.replace("{prompt: true}", "{env: X_Y}"))
    (spec.parent / "nodes.yaml").write_text(TEMPLATE)
    (spec.parent / "fleet.yaml").write_text("name: labs\ntargets: [{name: lab, spec: spec.yaml}]\n")
    assert main(words) == 0
    made = {each.name for each in spec.parent.iterdir()} - {"found.sarif", "found.xml"}
    assert made == {"spec.yaml", "nodes.yaml", "fleet.yaml"}


def test_a_file_of_a_secret_that_exists_is_checked(spec: Path) -> None:
    spec.write_text(WITHOUT_VALUES)
    (spec.parent / "nodes.yaml").write_text(TEMPLATE)
    (spec.parent / "missing").touch()
    assert main(["validate", "spec.yaml"]) == 2


def test_a_variable_that_is_no_secret_needs_a_value(spec: Path) -> None:
    spec.write_text(WITHOUT_VALUES.replace("word: {secret: true}", "word: {}"))
    (spec.parent / "nodes.yaml").write_text(TEMPLATE)
    assert main(["validate", "spec.yaml"]) == 2


def test_a_warning_repeats_no_private_key(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """cluster.yml of RKE takes the text of a key as ssh_key, so that some write it as ssh_key_path of a spec."""
    cluster = {"name": "c", "stack": "c", "directory": "c", "kubernetes_version": "v1.31.14-rancher1-1"}
    key = "-----BEGIN RSA PRIVATE KEY-----\nho+rse\n-----END RSA PRIVATE KEY-----\n"
    spec.write_text(json.dumps({"name": "x", "rke_clusters": [{**cluster, "ssh_key_path": key}]}))
    for options in ([], ["--format", "json"]):
        main(["validate", *options, "spec.yaml"])
    main(["support-bundle", "--offline", "--output", "bundle.yaml", "spec.yaml"])
    shown = "".join(capsys.readouterr()) + Path("bundle.yaml").read_text()
    assert "ssh_key_path" in shown
    assert "ho+rse" not in shown
