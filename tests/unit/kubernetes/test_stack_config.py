"""Configuration of RKE2 that a template itself holds; tests/rules has that of parameters."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.spec import load_spec
from openstack_prep.spec.resolution import list_warnings, refuse_mistakes

PLACE = "          - {get_param: %s}\n"
SPEC = """\
name: lab
stacks:
  - name: s
    template: rke2-cluster.yaml
    parameters: {server_image: i, agent_image: i, server_flavor: f, agent_flavor: f, key_name: k, network: n, subnet: n}
"""


@pytest.mark.parametrize(
    ("parameter", "added", "codes"),
    [
        ("server_config", "{profile: cis-1.23}", ["spec.invalid-value"]),
        ("server_config", "{profile: cis, tls-sans: [a]}", ["spec.unknown-key"]),
        ("agent_config", "{tls-san: [a]}", ["spec.invalid-value"]),
        ("agent_config", "{node-label: [a=b], kubelet-arg: {get_param: x}}", []),
    ],
)
def test_what_a_changed_copy_of_the_template_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameter: str, added: str, codes: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(str(files("openstack_prep.heat_templates")), tmp_path, dirs_exist_ok=True)
    copy, place = Path("rke2-cluster.yaml"), PLACE % parameter
    text = copy.read_text()
    assert text.count(place) == 1
    copy.write_text(text.replace(place, f"          - {added}\n{place}"))
    Path("spec.yaml").write_text(SPEC)
    spec = load_spec("spec.yaml")
    found = []
    try:
        refuse_mistakes(spec)
    except SpecError as error:
        found = [(each.code, each.field) for each in error.mistakes]
    assert found == [(code, "template") for code in codes]
    assert len(list_warnings(spec)) == 2  # no tokens, as for the shipped template


@pytest.mark.parametrize(
    ("secrets", "names"),
    [
        ("", ["token", "agent_token"]),
        ("token: {generate: t}", ["agent_token"]),
        ("token: {generate: t}, agent_token: {generate: a}", []),
    ],
)
def test_warnings_of_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secrets: str, names: list[str]) -> None:
    """Of those that the spec does not set."""
    monkeypatch.chdir(tmp_path)
    spec = SPEC.replace("rke2-", "shipped:rke2-")
    Path("spec.yaml").write_text(f"{spec}    secret_parameters: {{{secrets}}}\n")
    texts = [each.partition("stack/s: ")[2].split()[0] for each in list_warnings(load_spec("spec.yaml"))]
    assert [each for each in texts if each.startswith("secret_")] == [f"secret_parameters.{name}" for name in names]


@pytest.mark.parametrize(
    ("parameters", "places"),
    [
        ("server_config: {etcd-s3-session-token: WORD}", ["server_config.etcd-s3-session-token"]),
        ("server_config: {datastore-endpoint: 'mysql://u:WORD@tcp(db:3306)/k'}", ["server_config.datastore-endpoint"]),
        ("server_node_configs: {'0': {agent-token-file: /x, etcd-s3-secret-key: WORD}}", ["server_node_configs.0."]),
        ("agent_config: {kube-proxy-extra-env: [DB_PASSWORD=WORD]}", ["agent_config.kube-proxy-extra-env"]),
        ("server_config: {etcd-s3-proxy: 'http://proxy:3128', kube-apiserver-extra-env: [TZ=UTC]}", []),
    ],
)
def test_no_secret_goes_where_heat_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: str, places: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(
        SPEC.replace("rke2-", "shipped:rke2-").replace("subnet: n}", f"subnet: n, {parameters}}}")
    )
    spec = load_spec("spec.yaml")
    said: list[str] = []
    try:
        refuse_mistakes(spec)
    except SpecError as error:
        said = [str(each) for each in error.mistakes if "every reader" in str(each)]
    assert "WORD" not in "".join(said)
    for text in said:
        assert "into agent_secret_config" in text if "agent_config" in text else "into server_secret_config" in text
    assert [place for place in places if any(place in each for each in said)] == places
    assert len(said) == len(places)


TAINTED = {"node-taint": ["CriticalAddonsOnly=true:NoExecute"]}
NO_EFFECT, EVERY_NODE = "server_taint", "every node"


@pytest.mark.parametrize(
    ("parameters", "warning"),
    [
        ({"agent_count": 0}, None),
        ({"agent_count": 2, "server_taint": True}, None),
        ({"agent_count": 0, "server_taint": True}, NO_EFFECT),
        ({"agent_count": 0, "server_config": TAINTED}, EVERY_NODE),
        ({"agent_count": 0, "server_config": {"node-taint": "a=b:PreferNoSchedule"}}, None),
        ({"agent_count": 0, "server_config": {"kubelet-arg": ["register-with-taints=a=b:NoSchedule"]}}, EVERY_NODE),
        ({"agent_count": 0, "server_config": TAINTED, "server_node_configs": {"2": {"node-taint": []}}}, None),
        ({"agent_count": 1, "server_config": TAINTED, "agent_config": {"node-taint": ["a:NoSchedule"]}}, EVERY_NODE),
        ({"agent_count": 1, "server_config": TAINTED}, None),
        ({"agent_count": 0, "server_config": TAINTED, "pool1_count": 1}, None),
        ({"agent_count": 0, "pool1_count": 1, "pool1_config": {"node-taint": ["a:NoSchedule"]}}, EVERY_NODE),
        ({"server_config": {"kube-proxy-arg": ["proxy-mode=ipvs"]}}, "server_config: kube-proxy"),
    ],
    ids=str,
)
def test_taints_of_a_stack_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, object], warning: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (stack,) = yaml.safe_load(SPEC)["stacks"]
    stack |= {"template": "shipped:rke2-cluster.yaml", "parameters": stack["parameters"] | parameters}
    assert [each.startswith(str(warning)) for each in warned([stack])] == [True] * bool(warning)


def test_a_list_is_no_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (stack,) = yaml.safe_load(SPEC)["stacks"]
    stack |= {"template": "shipped:rke2-cluster.yaml", "parameters": stack["parameters"] | {"pool1_config": ["a"]}}
    Path("spec.yaml").write_text(yaml.safe_dump({"name": "lab", "stacks": [stack]}))
    with pytest.raises(SpecError) as refused:
        refuse_mistakes(load_spec("spec.yaml"))
    assert [each.code for each in refused.value.mistakes] == ["cluster.stack"]


def warned(stacks: list[dict[str, object]]) -> list[str]:
    """Return the warnings about stacks, without those about missing tokens."""
    Path("spec.yaml").write_text(yaml.safe_dump({"name": "lab", "stacks": stacks}))
    texts = [each.partition("stack/s: ")[2] for each in list_warnings(load_spec("spec.yaml"))]
    return [each for each in texts if "secret_parameters" not in each]


def test_taints_of_a_nested_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(str(files("openstack_prep.heat_templates")), tmp_path, dirs_exist_ok=True)
    properties = yaml.safe_load(SPEC)["stacks"][0]["parameters"] | {"agent_count": 0, "server_config": TAINTED}
    resources = {"r": {"type": "rke2-cluster.yaml", "properties": properties}}
    Path("around.yaml").write_text(yaml.safe_dump({"heat_template_version": "wallaby", "resources": resources}))
    (found,) = warned([{"name": "s", "template": "around.yaml"}])
    assert found.startswith(f"resources.r.properties.{EVERY_NODE}")


def test_a_template_that_taints_servers_without_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped template did so once, and people have copies of it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(str(files("openstack_prep.heat_templates")), tmp_path, dirs_exist_ok=True)
    text = Path("rke2-cluster.yaml").read_text()
    condition = "{and: [{get_param: server_taint}, {or: [has_agents, has_pool1, has_pool2, has_pool3, has_pool4]}]}"
    assert text.count(condition) == 1
    Path("rke2-cluster.yaml").write_text(text.replace(condition, "{get_param: server_taint}"))
    found = []
    for given in ("agent_count: 0, ", "agent_count: 1, ", "agent_count: 0, server_taint: false, "):
        Path("spec.yaml").write_text(SPEC.replace("parameters: {", f"parameters: {{{given}"))
        found.append(any(EVERY_NODE in each for each in list_warnings(load_spec("spec.yaml"))))
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("services", "codes"),
    [
        ("10.43.0.0/16", ["cluster.networks"]),
        ({"get_param": "services"}, ["cluster.networks"]),
        ({"get_param": ["net", "services"]}, []),
        ({"get_param": "not_given"}, []),
    ],
    ids=str,
)
def test_values_of_a_nested_template_that_only_heat_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: object, codes: list[str]
) -> None:
    """The default of such a property, 10.43.0.0/16, is not its value."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(str(files("openstack_prep.heat_templates")), tmp_path, dirs_exist_ok=True)
    (stack,) = yaml.safe_load(SPEC)["stacks"]
    properties = stack["parameters"] | {"cluster_cidr": "10.43.0.0/16", "service_cidr": services}
    around = {
        "heat_template_version": "2018-08-31",
        "parameters": {
            "net": {"type": "json", "default": {"services": "10.99.0.0/16"}},
            "services": {"type": "string", "default": "10.43.0.0/16"},
            "not_given": {"type": "string"},
        },
        "resources": {"nodes": {"type": "rke2-cluster.yaml", "properties": properties}},
    }
    Path("around.yaml").write_text(yaml.safe_dump(around))
    Path("spec.yaml").write_text("name: lab\nstacks: [{name: s, template: around.yaml}]\n")
    found = []
    try:
        refuse_mistakes(load_spec("spec.yaml"))
    except SpecError as error:
        found = [each.code for each in error.mistakes if "10.43.0.0" in each.what]
    assert found == codes


MANIFESTS = "/var/lib/rancher/rke2/server/manifests"


@pytest.mark.parametrize(
    ("files_of_nodes", "valid"),
    [
        ({"/etc/rancher/rke2/audit-policy.yaml": "rules: []\n"}, True),
        ({"etc/audit-policy.yaml": "rules: []\n"}, False),
        ({"/etc/rancher/rke2/": ""}, False),
        ({"/etc/rancher/rke2/config.yaml": "debug: true\n"}, False),
        ({"/etc/rancher/rke2/config.yaml.d/20-secrets.yaml": ""}, False),
        ({"/etc/rancher/rke2/../rke2/config.yaml": "debug: true\n"}, False),
        ({"//etc/rancher/./rke2/config.yaml.d//20-secrets.yaml": ""}, False),
        ({"/var/lib/rke2-node": ""}, False),
        ({"/var/lib/rke2-node/setup": ""}, False),
        *(({f"{MANIFESTS}/{each}.yaml": ""}, False) for each in ("kube-vip", "cloud-config", "openstack")),
        ({f"{MANIFESTS}/mine.yaml": ""}, True),
        ({"/etc/ssl/bundle.pem": "x" * 49000}, True),
        ({"/etc/ssl/bundle.pem": "\n" * 25000}, False),
        ({"/etc/a.pem": "x" * 25000, "/etc/b.pem": "x" * 25000}, False),
        ({"/etc/a.yaml": {"rules": []}}, False),
        ({"/etc/a.yaml": "node: %index%"}, False),  # which Heat replaces in a ResourceGroup
    ],
    ids=lambda each: str(each)[:60],
)
def test_further_files_of_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_of_nodes: dict[str, object], valid: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (stack,) = yaml.safe_load(SPEC)["stacks"]
    stack |= {"template": "shipped:rke2-cluster.yaml"}
    stack["parameters"] |= {"extra_files": files_of_nodes}
    Path("spec.yaml").write_text(yaml.safe_dump({"name": "lab", "stacks": [stack]}))
    try:
        refuse_mistakes(load_spec("spec.yaml"))
        found = []
    except SpecError as error:
        found = [(each.code, each.parameter) for each in error.mistakes]
    assert found == [("stack.invalid-parameter", "extra_files")] * (not valid)


@pytest.mark.parametrize(("size", "warned"), [(30000, False), (40000, True)])
def test_further_files_that_may_leave_too_little_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, warned: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (stack,) = yaml.safe_load(SPEC)["stacks"]
    stack |= {"template": "shipped:rke2-cluster.yaml"}
    stack["parameters"] |= {"extra_files": {"/etc/ssl/bundle.pem": "x" * size}}
    Path("spec.yaml").write_text(yaml.safe_dump({"name": "lab", "stacks": [stack]}))
    assert any("extra_files: they take" in each for each in list_warnings(load_spec("spec.yaml"))) == warned
