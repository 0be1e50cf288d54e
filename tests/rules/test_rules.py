"""Each rule at each entrance: a bad and a good input per rule, and the same finding wherever the input may come from.

A rule that needs no cloud is one function; these tables name what calls it. A new rule without a row fails, and so
does a new kind that lists mistakes.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

import pytest
import yaml

import openstack_prep as prep
from openstack_prep import extensions
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.cli.main import main
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.resource import Coherent, ListsMistakes, kind_supports
from openstack_prep.exposures.external_ips import rules as external_ip_rules
from openstack_prep.exposures.service_host import rules as service_host_rules
from openstack_prep.exposures.virtualization import rules as virtualization_rules
from openstack_prep.kubernetes import reading, rke2, rke2_rules, rules, stack_config, versions
from openstack_prep.kubernetes.cilium import rules as cilium_rules
from openstack_prep.kubernetes.cluster import rke_parameters
from openstack_prep.openshift import install_config
from openstack_prep.openshift.check.preflight import check_file
from openstack_prep.openshift.install_config import other_fields as file_rules
from openstack_prep.openshift.install_config import rules as installer_rules
from openstack_prep.openshift.install_config_file import InstallConfig
from openstack_prep.spec import load_spec
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from tests.unit.conftest import connection

HERE = Path(__file__).parent
PULL_SECRET = '{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}'
TABLES: dict[str, dict[str, Any]] = {path.stem: yaml.safe_load(path.read_text()) for path in HERE.glob("*.yaml")}
SETS = {
    "rke2": rke2_rules,
    "cluster_yml": rules,
    "install_config": installer_rules,
    "install_config_file": file_rules,
    "cilium": cilium_rules,
}
"""The modules with the rules of each table, all in the constant RULES."""
STACK = {
    "name": "s",
    "template": stack_config.TEMPLATE,
    "parameters": {
        **dict.fromkeys(("server_image", "agent_image", "server_flavor", "agent_flavor"), "x"),
        **dict.fromkeys(("key_name", "network", "subnet"), "x"),
    },
}
Case = tuple[dict[str, Any], Mapping[str, Any]]


def cases(table: str) -> list[Any]:
    base, rows = TABLES[table].get("base", {}), TABLES[table]["rows"]
    names = (row.get("rule") or row.get("section") or str(next(iter(row["bad"]), "")) for row in rows)
    return [
        pytest.param((row, base), id=f"{index}-{name}")
        for index, (row, name) in enumerate(zip(rows, names, strict=True))
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pull-secret.json").write_text(PULL_SECRET)
    return tmp_path


def written(name: str, data: object) -> Path:
    Path(name).write_text(yaml.safe_dump(data))
    return Path(name)


def mistakes_of_spec(sections: Mapping[str, Any]) -> tuple[Mistake, ...]:
    """Return what the spec's own rules and those of its resources say, as ``validate`` and each plan do."""
    try:
        spec = load_spec(written("spec.yaml", {"name": "lab", **sections}))
        refuse_mistakes(spec)
        resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
    except SpecError as error:
        return tuple(error.mistakes)
    return ()


def texts(found: tuple[Mistake, ...] | list[Mistake]) -> str:
    return "\n".join(each.what for each in found)


# --- the tables are complete ----------------------------------------------------------------


@pytest.mark.parametrize("table", SETS)
def test_each_rule_has_a_row(table: str) -> None:
    rows = {row["rule"] for row in TABLES[table]["rows"] if "rule" in row}
    by_release = getattr(SETS[table], "RELEASE_RULES", ())
    assert rows == {rule.__name__ for rule in (*SETS[table].RULES, *by_release)}


def has_rules(kind: type) -> bool:
    """Whether a kind judges its own fields, or those of a spec together."""
    judges_itself = getattr(kind, "contradictions", Coherent.contradictions) is not Coherent.contradictions
    return judges_itself or kind_supports(kind, ListsMistakes)


def test_each_kind_with_rules_has_a_row() -> None:
    kinds = {each.name: extensions.load(each.kind) for one in extensions.installed() for each in one.sections}
    ruled = {name for name, kind in kinds.items() if has_rules(kind)}
    assert {row["section"] for row in TABLES["kinds"]["rows"]} == ruled


# --- kinds: validate, plan and Python -------------------------------------------------------


@pytest.mark.parametrize("case", cases("kinds"))
def test_a_spec(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    row, _ = case
    assert mistakes_of_spec(row["good"]) == ()
    if row.get("entrances") == ["plan"]:  # by what the cloud has: tests/functional/test_network.py
        assert mistakes_of_spec(row["bad"]) == ()
        return
    assert row["code"] in {each.code for each in mistakes_of_spec(row["bad"])}
    assert main(["validate", "spec.yaml", "--format", "json"]) == 2
    assert f'"{row["code"]}"' in capsys.readouterr().out
    if row.get("entrances") == ["validate"]:  # a plan asks the cloud first: tests/functional/test_network.py
        return
    with pytest.raises(SpecError) as caught:
        prep.plan(prep.connect(connection=connection()), load_spec("spec.yaml"))
    assert row["code"] in {each.code for each in caught.value.mistakes}


def test_a_gateway_that_the_spec_leaves_open_is_judged_by_the_cloud_in_a_plan() -> None:
    """Validate refuses what an apply would create; for a plan, the subnet may exist and have another gateway."""
    subnet = {"name": "s", "network": "n", "cidr": "10.0.0.0/24"}
    pools = [{"name": "a", "subnet": "s", "addresses": ["10.0.0.1-10.0.0.4"]}]
    sections = {"networks": [{"name": "n"}], "subnets": [subnet], "address_pools": pools}
    assert [each.code for each in mistakes_of_spec(sections)] == ["spec.contradiction"]
    refuse_mistakes(load_spec("spec.yaml"), for_plan=True)


@pytest.mark.parametrize("case", cases("node_addresses"))
def test_addresses_of_nodes(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    row, base = case
    assert texts(mistakes_of_spec({**base, **row["good"]})) == ""
    assert {each.code for each in mistakes_of_spec({**base, **row["bad"]})} == {row["code"]}
    assert main(["validate", "spec.yaml", "--format", "json"]) == 2
    assert f'"{row["code"]}"' in capsys.readouterr().out
    with pytest.raises(SpecError) as caught:
        prep.plan(prep.connect(connection=connection()), load_spec("spec.yaml"))
    assert {each.code for each in caught.value.mistakes} == {row["code"]}


# --- settings of exposed clusters: validate, plan and Python --------------------------------


SETTINGS = {
    "virtualization": virtualization_rules,
    "service_host": service_host_rules,
    "external_ips": external_ip_rules,
}
"""The modules with the rules of each table; a rule is any private function that yields mistakes or findings."""


def rules_of(module: ModuleType) -> set[str]:
    own = [each for each in vars(module).values() if inspect.isfunction(each) and each.__module__ == module.__name__]
    found = [each for each in own if each.__annotations__["return"] in ("Findings", "Iterator[Mistake]")]
    return {each.__name__ for each in found if each.__name__.startswith("_")}


def silence(module: ModuleType, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a rule find nothing, wherever the module calls it."""
    function = getattr(module, rule)
    for name, value in list(vars(module).items()):
        if isinstance(value, tuple) and function in value:
            monkeypatch.setattr(module, name, tuple(each for each in value if each is not function))
    monkeypatch.setattr(module, rule, lambda *given: ())


@pytest.mark.parametrize("table", SETTINGS)
def test_each_rule_of_settings_has_a_row(table: str) -> None:
    assert {row["rule"] for row in TABLES[table]["rows"]} == rules_of(SETTINGS[table])


def exposed(table: str, base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a spec with one exposed cluster."""
    sections = {**base, **{name: value for name, value in changes.items() if name != table}}
    settings = sections.pop(table) | changes.get(table, {})
    cluster = {"name": "c", "directory": "c", "kubernetes_version": "v1.35.7", table: settings}
    return sections | {"exposed_clusters": [cluster]}


ROWS_OF_SETTINGS = [pytest.param(name, *row.values, id=f"{name}-{row.id}") for name in SETTINGS for row in cases(name)]


@pytest.mark.parametrize(("table", "case"), ROWS_OF_SETTINGS)
def test_settings(table: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    row, base = case
    assert texts(mistakes_of_spec(exposed(table, base, row["good"]))) == ""
    bad = exposed(table, base, row["bad"])
    found = mistakes_of_spec(bad)
    assert {each.code for each in found} >= {"spec.contradiction"}
    silence(SETTINGS[table], row["rule"], monkeypatch)
    assert len(mistakes_of_spec(bad)) < len(found), texts(found)


# --- RKE2: a file, a cluster of a spec, its roles, and a stack -------------------------------


def of_file(config: Mapping[str, Any], version: str) -> tuple[Mistake, ...]:
    return tuple(reading.read(written("config.yaml", config), "server", versions.minor_of(version)).mistakes)


def of_cluster(config: Mapping[str, Any], version: str) -> tuple[Mistake, ...]:
    cluster = {"name": "c", "stack": "s", "distribution": "rke2", "directory": "c", "config": config}
    release = {"kubernetes_version": version} if version else {}
    return mistakes_of_spec({"stacks": [STACK], "rke_clusters": [cluster | release]})


def of_stack(config: Mapping[str, Any], version: str, template: str = stack_config.TEMPLATE) -> tuple[Mistake, ...]:
    parameters = STACK["parameters"] | {"server_config": config} | ({"rke2_version": version} if version else {})
    return mistakes_of_spec({"stacks": [STACK | {"template": template, "parameters": parameters}]})


@cache
def copied() -> Path:
    """Return a folder with a copy of the shipped template, and a template that has it as a resource."""
    folder = Path(mkdtemp())
    shutil.copytree(str(files("openstack_prep.heat_templates")), folder, dirs_exist_ok=True)
    given = {"server_config": {"get_param": "config"}, "rke2_version": {"get_param": "version"}}
    resources = {"nodes": {"type": "rke2-cluster.yaml", "properties": STACK["parameters"] | given}}
    parameters = {"config": {"type": "json"}, "version": {"type": "string", "default": ""}}
    around = {"heat_template_version": "2018-08-31", "parameters": parameters, "resources": resources}
    (folder / "around.yaml").write_text(yaml.safe_dump(around))
    return folder


def of_copy(config: Mapping[str, Any], version: str) -> tuple[Mistake, ...]:
    return of_stack(config, version, str(copied() / "rke2-cluster.yaml"))


def of_resource(config: Mapping[str, Any], version: str) -> tuple[Mistake, ...]:
    parameters = {"config": config, "version": version}
    stack = {"name": "s", "template": str(copied() / "around.yaml"), "parameters": parameters}
    return mistakes_of_spec({"stacks": [stack]})


ENTRANCES: dict[str, tuple[Callable[[Mapping[str, Any], str], tuple[Mistake, ...]], tuple[str, ...]]] = {
    "rke check": (of_file, ()),
    "config": (of_cluster, (*rke2.FIELDS, *rke_parameters.FILES)),
    "server_config": (of_stack, (*stack_config.OF_TEMPLATE, *stack_config.SAME)),
    "server_config of a copy": (of_copy, (*stack_config.OF_TEMPLATE, *stack_config.SAME)),
    "server_config of a resource": (of_resource, (*stack_config.OF_TEMPLATE, *stack_config.SAME)),
}
"""What reads a config.yaml, and the keys that it takes from elsewhere, and refuses whatever their value is."""


ALL_RKE2: tuple[Callable[..., Any], ...] = (*rke2_rules.RULES, *rke2_rules.RELEASE_RULES)


def rows_by_entrance() -> list[Any]:
    """Return the first row of each rule with each entrance, and the other rows with the first entrance."""
    found, known = [], set()
    for row in cases("rke2"):
        rule = row.values[0][0]["rule"]
        named = row.values[0][0].get("entrance", "rke check" if rule in known else None)
        entrances = [named] if named else list(ENTRANCES)
        found += [pytest.param(row.values[0], each, id=f"{row.id}-{each}") for each in entrances]
        known.add(rule)
    return found


@pytest.mark.parametrize(("case", "entrance"), rows_by_entrance())
def test_a_config_yaml(case: Case, entrance: str) -> None:
    row, _ = case
    read, elsewhere = ENTRANCES[entrance]
    rule = next(each for each in ALL_RKE2 if each.__name__ == row["rule"])
    version = row.get("version", "")
    release = [versions.minor_of(version)] if rule in rke2_rules.RELEASE_RULES else []
    expected = [fault.what for fault in rule(row["bad"], *release)]
    assert expected
    assert list(rule(row["good"], *release)) == []
    found = read(row["bad"], version)
    if row["bad"].keys() & set(elsewhere):
        assert found
    else:
        assert expected[0] in texts(found)
    if not row["good"].keys() & set(elsewhere):
        assert read(row["good"], version) == ()


# --- RKE ------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_rancher", [False, True])
@pytest.mark.parametrize("case", cases("cluster_yml"))
def test_a_cluster_yml(case: Case, of_rancher: bool) -> None:
    row, base = case
    (rule,) = (each for each in rules.RULES if each.__name__ == row["rule"])
    for data, expected in ((row["bad"], [fault.what for fault in rule(row["bad"])]), (row["good"], [])):
        whole = {reading.RANCHER: data} if of_rancher else base | data
        found = reading.read(written("cluster.yml", whole)).mistakes
        assert bool(found) == bool(expected)
        assert not expected or expected[0] in texts(found)


# --- install-config.yaml: a spec, and the file -----------------------------------------------


@pytest.mark.parametrize("case", cases("install_config"))
def test_an_install_config(case: Case) -> None:
    row, base = case
    for fields, refused in ((row["bad"], True), (row["good"], False)):
        spec = load_spec(written("spec.yaml", {"name": "lab", "install_config": base | fields}))
        (config,) = spec.resources
        assert isinstance(config, InstallConfig)
        (rule,) = (each for each in installer_rules.RULES if each.__name__ == row["rule"])
        number = installer_rules.releases.minor(config.release)
        assert bool(list(rule(config, number))) == refused
        found = mistakes_of_spec({"install_config": base | fields})
        assert {each.code for each in found} == ({"install-config.invalid"} if refused else set())
        contents = install_config.FileContents(pull_secret=config.contents().pull_secret)
        document = install_config.document(config, contents)
        path = Path("install-config.yaml")
        path.write_text(install_config.dump(document))
        codes = {each.code for each in check_file(path, config.release).findings if each.status == "error"}
        assert ("install-config.invalid" in codes) == refused, row


def lines_of(text: str) -> dict[str, str]:
    return {line.partition(":")[0]: line for line in text.splitlines()}


@pytest.mark.parametrize("case", cases("install_config_file"))
def test_an_install_config_file(case: Case) -> None:
    row, base = case
    release = row.get("release", "4.20")
    for name, refused in (("bad", True), ("good", False)):
        path = Path("install-config.yaml")
        path.write_text("\n".join((lines_of(str(base)) | lines_of(row[name])).values()))
        if "rule" in row:
            (rule,) = (each for each in file_rules.RULES if each.__name__ == row["rule"])
            data = yaml.safe_load(path.read_text())
            assert bool(list(rule(data, installer_rules.releases.minor(release)))) == refused
        try:
            findings = check_file(path, release).findings
        except SpecError:
            assert refused
        else:
            assert any(each.status == "error" for each in findings) == refused, findings


# --- Cilium ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("cilium"))
def test_cilium(case: Case) -> None:
    row, base = case
    for name in ("bad", "good"):
        cluster = {"name": "c", "stack": "s", "distribution": "rke2", "directory": "c", "cilium": base | row[name]}
        cluster |= row.get("cluster", {}).get(name, {})
        found = mistakes_of_spec({"stacks": [STACK], "rke_clusters": [cluster]})
        assert {each.code for each in found} == ({"cluster.cilium"} if name == "bad" else set()), texts(found)
