from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from requests_mock import Mocker

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.given_file import MOST
from openstack_prep.resources.heat.package import (
    Package,
    digest,
    hidden_in,
    is_hidden,
    read_package,
    template_source,
)
from tests.unit.texts import Wording, expect_error

TEMPLATE = """
heat_template_version: wallaby
parameters: {secret: {type: string, hidden: true}, plain: {type: string}}
resources:
  node: {type: node.yaml}
"""
NODE = """
heat_template_version: wallaby
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {config: {get_file: scripts/run.sh}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "here"
    (made / "scripts").mkdir(parents=True)
    (made / "cluster.yaml").write_text(TEMPLATE)
    (made / "node.yaml").write_text(NODE)
    (made / "scripts/run.sh").write_text("#!/bin/sh\n")
    (made / "env.yaml").write_text("parameters: {plain: a}\nresource_registry: {Node: node.yaml}\n")
    (made / "stronger.yaml").write_text("parameters: {plain: b}\n")
    return made


def test_files_are_called_as_seen_from_the_template(folder: Path) -> None:
    package = read_package(str(folder / "cluster.yaml"), [str(folder / "env.yaml"), str(folder / "stronger.yaml")])
    assert set(package.files) == {"node.yaml", "scripts/run.sh"}
    assert package.template["resources"]["node"]["type"] == "node.yaml"
    assert package.environment == {"parameters": {"plain": "b"}, "resource_registry": {"Node": "node.yaml"}}
    assert package.hidden == {"secret"}
    assert str(folder) not in repr(package)


def test_a_template_or_a_file_of_it_may_have_a_wait_condition(folder: Path) -> None:
    assert not read_package(str(folder / "cluster.yaml"), ()).may_wait
    (folder / "node.yaml").write_text(NODE + "  ready: {type: OS::Heat::WaitCondition}\n")
    assert read_package(str(folder / "cluster.yaml"), ()).may_wait
    assert read_package("shipped:rke2-cluster.yaml", ()).may_wait


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cluster.yaml", "plain", "other"),
        ("node.yaml", "SoftwareConfig", "CloudConfig"),
        ("scripts/run.sh", "sh", "bash"),
        ("env.yaml", "plain: a", "plain: c"),
    ],
)
def test_only_what_has_changed_is_parsed_again(folder: Path, name: str, old: str, new: str) -> None:
    """A plan reads the package of each copy of a stack; it may also be the second plan of a program."""
    given = str(folder / "cluster.yaml"), [str(folder / "env.yaml")]
    before = read_package(*given)
    assert read_package(*given) is before
    (folder / name).write_text((folder / name).read_text().replace(old, new))
    assert read_package(*given) != before
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=Path(name).name):
        read_package(*given)


def test_another_place_is_no_change_and_another_content_is(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "there")
    here, there = (read_package(str(tmp_path / each / "cluster.yaml"), ()) for each in ("here", "there"))
    assert digest(here.template, here.files) == digest(there.template, there.files)
    (tmp_path / "there/scripts/run.sh").write_text("#!/bin/sh\ntrue\n")
    changed = read_package(str(tmp_path / "there/cluster.yaml"), ())
    assert digest(changed.template, changed.files) != digest(here.template, here.files)


@pytest.mark.parametrize(
    "text", ["a: [", "resources: {}", "- a", "", "heat_template_version: wallaby\nresources: {n: {type: no.yaml}}"]
)
def test_what_is_no_template_is_told_with_its_place(folder: Path, text: str, wording: Wording) -> None:
    (folder / "cluster.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_package(str(folder / "cluster.yaml"), ())
    wording(caught.value)


DEEP = "heat_template_version: wallaby\nresources: " + "[" * 100_000


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (DEEP, "levels deep"),
        ("{heat_template_version: wallaby, resources: " + "[" * 100_000, "levels deep"),
        ('{"heat_template_version": ' + "[" * 100_000, "levels deep"),
        ("heat_template_version: wallaby\nparameters: {a: {default: x}}", "parameters.a has no type"),
        ("heat_template_version: wallaby\nparameters: {a: string}", "parameters.a is not a mapping"),
        ("heat_template_version: wallaby\nparameters: [a]", "parameters is not a mapping"),
        (
            "heat_template_version: wallaby\nparameters: {a: {type: string, constraints: [x]}}",
            "parameters.a.constraints",
        ),
    ],
)
def test_a_template_that_no_program_could_read_is_an_error_with_its_place(folder: Path, text: str, names: str) -> None:
    (folder / "cluster.yaml").write_text(text)
    with expect_error(ConfigError, "/here/cluster.yaml", names):
        read_package(str(folder / "cluster.yaml"), ())


@pytest.mark.parametrize("name", ["node.yaml", "scripts/run.sh", "env.yaml"])
@pytest.mark.parametrize("what", ["deep", "device", "circle", "large"])
def test_no_file_of_a_template_ends_or_fills_the_process(folder: Path, name: str, what: str) -> None:
    path = folder / name
    path.unlink()
    if what == "deep":
        path.write_text(DEEP)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "circle":
        path.symlink_to(path)
    else:
        path.write_bytes(b"x" * (MOST + 1))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_package(str(folder / "cluster.yaml"), [str(folder / "env.yaml")])


BROKEN = (
    "password: se-cret: x",
    'password: "se-cret',
    "password: *se-cret",
    "password: !se-cret",
    "password: !!int se-cret",
    "password: !!float se-cret",
    "password: {a: se-cret, [b]: c}",
)


@pytest.mark.parametrize("name", ["cluster.yaml", "env.yaml"])
@pytest.mark.parametrize("line", BROKEN)
def test_what_is_no_yaml_is_named_by_its_line_and_not_quoted(folder: Path, name: str, line: str) -> None:
    head = "" if name == "env.yaml" else "heat_template_version: wallaby\n"
    (folder / name).write_text(f"{head}parameters:\n  {line}\n")
    with pytest.raises(ConfigError, match=name.partition(".")[0]) as caught:
        read_package(str(folder / "cluster.yaml"), [str(folder / "env.yaml")])
    assert "se-cret" not in str(caught.value)


@pytest.mark.parametrize("section", ["parameters", "parameter_defaults", "resource_registry"])
def test_sections_of_an_environment_are_mappings(folder: Path, section: str, wording: Wording) -> None:
    (folder / "env.yaml").write_text(f"{section}: [a]")
    with pytest.raises(ConfigError) as caught:
        read_package(str(folder / "cluster.yaml"), [str(folder / "env.yaml")])
    wording(caught.value)


def test_a_binary_file_is_sent_in_base64_as_heatclient_does(folder: Path) -> None:
    (folder / "scripts/run.sh").write_bytes(b"\xff\x00")
    assert read_package(str(folder / "cluster.yaml"), ()).files["scripts/run.sh"] == "/wA=\n"


def test_what_is_not_there_is_told_with_its_place(folder: Path, wording: Wording) -> None:
    with pytest.raises(ConfigError) as caught:
        read_package(str(folder / "cluster.yaml"), [str(folder / "no.yaml")])
    wording(caught.value)


def test_what_is_shipped() -> None:
    assert template_source("shipped:rke-cluster.yaml", Path("/x")) == "shipped:rke-cluster.yaml"
    assert template_source("own.yaml", Path("/x")) == "/x/own.yaml"
    with expect_error(ValueError, "shipped:rke-cluster.yaml", "shipped:rke2-cluster.yaml"):
        template_source("shipped:k3s.yaml", Path("/x"))


@pytest.mark.parametrize("name", ["rke-cluster.yaml", "rke2-cluster.yaml"])
def test_shipped_templates_describe_every_parameter_and_output(name: str) -> None:
    template = read_package(f"shipped:{name}", ()).template
    groups = [each for group in template["parameter_groups"] for each in group["parameters"]]
    assert sorted(groups) == sorted(template["parameters"])
    for each in (*template["parameters"].values(), *template["outputs"].values()):
        assert each["description"].strip().endswith(".")


def test_the_manifest_of_kube_vip_is_yaml() -> None:
    text = read_package("shipped:rke2-cluster.yaml", ()).files["kube-vip.yaml"]
    kinds = [each["kind"] for each in yaml.safe_load_all(text)]
    assert kinds == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"]


REMOTE = "http://templates.example.com"


@pytest.mark.parametrize(
    ("documents", "template", "environments"),
    [
        ({"t.yaml": "heat_template_version: wallaby\nresources: {n: {x: {get_file: 'KEY'}}}"}, f"{REMOTE}/t.yaml", ()),
        (
            {
                "t.yaml": "heat_template_version: wallaby\nresources: {n: {type: inner/n.yaml}}",
                "inner/n.yaml": "heat_template_version: wallaby\nresources: {n: {x: [{get_file: 'KEY'}]}}",
            },
            f"{REMOTE}/t.yaml",
            (),
        ),
        (
            {"n.yaml": "heat_template_version: wallaby\nresources: {n: {x: {get_file: 'KEY'}}}"},
            f"heat_template_version: wallaby\nresources: {{n: {{type: '{REMOTE}/n.yaml'}}}}",
            (),
        ),
        ({"e.yaml": "resource_registry: {Node: 'KEY'}"}, "cluster.yaml", (f"{REMOTE}/e.yaml",)),
    ],
)
def test_documents_of_other_machines_name_no_file_of_this_one(
    folder: Path, requests_mock: Mocker, documents: dict[str, str], template: str, environments: Sequence[str]
) -> None:
    key = folder / "id_ed25519"
    key.write_text("a private key\n")
    for name, text in documents.items():
        requests_mock.get(f"{REMOTE}/{name}", text=text.replace("KEY", key.as_uri()))
    if not template.startswith("http"):
        (folder / "t.yaml").write_text(TEMPLATE if template == "cluster.yaml" else template)
        template = str(folder / "t.yaml")
    with pytest.raises(ConfigError, match=key.as_uri()):
        read_package(template, environments)
    for name, text in documents.items():
        requests_mock.get(f"{REMOTE}/{name}", text=text.replace("KEY", "scripts/run.sh"))
    requests_mock.get(re.compile(f"{REMOTE}/.*run.sh"), text="#!/bin/sh\n")
    assert {name for name in read_package(template, environments).files if name.endswith("run.sh")}


@pytest.mark.parametrize("login", ["me:correct-horse@", ""])
def test_heat_gets_no_name_of_a_file_with_a_login(folder: Path, requests_mock: Mocker, login: str) -> None:
    """Heat shows the names of files to readers; those below the template's folder are relative to it."""
    root = f"http://{login}templates.example.com"
    inner = "heat_template_version: wallaby\nresources: {n: {x: [{get_file: FILE}]}}"
    requests_mock.get(re.compile("/run.sh"), text="#!/bin/sh\n")
    requests_mock.get(re.compile("/dir/t.yaml"), text=inner.replace("FILE", "run.sh"))
    assert "horse" not in str(read_package(f"{root}/dir/t.yaml?sig=correct-horse", ()))
    requests_mock.get(re.compile("/dir/t.yaml"), text=inner.replace("FILE", "../run.sh"))
    if not login:
        assert [*read_package(f"{root}/dir/t.yaml", ()).files] == [f"{root}/run.sh"]
        return
    with pytest.raises(ConfigError) as caught:
        read_package(f"{root}/dir/t.yaml", ())
    assert "horse" not in f"{caught.value} {caught.value.__cause__}"
    requests_mock.get(re.compile("/dir/t.yaml"), status_code=404)
    with pytest.raises(ConfigError) as caught:
        read_package(f"{root}/dir/t.yaml?sig=correct-horse", ())
    assert "horse" not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("parameter", "hidden"),
    [
        ({"hidden": True}, True),
        ({"hidden": "True"}, True),
        ({"hidden": "yes"}, True),
        ({"hidden": "false"}, True),
        ({"hidden": 1}, True),
        ({"hidden": False}, False),
        ({}, False),
        ({"NoEcho": "TRUE"}, True),
        ({"NoEcho": "yes"}, False),
    ],
)
def test_a_parameter_is_hidden_where_heat_hides_it(parameter: dict[str, Any], hidden: bool) -> None:
    assert is_hidden({"type": "string", **parameter}) is hidden
    assert hidden_in({"parameters": {"p": parameter}}) == ({"p"} if hidden else set())


TYPED = """
heat_template_version: wallaby
parameters:
  version: {type: string, default: DEFAULT}
  size: {type: number, default: 1.50}
"""


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        ("cluster.yaml", TYPED.replace("DEFAULT", "1.20"), "cluster.yaml:4: parameters.version.default"),
        ("node.yaml", TYPED.replace("DEFAULT", "1_0"), "node.yaml:4: parameters.version.default"),
        ("env.yaml", "parameters:\n  plain: 0644", "env.yaml:2: parameters.plain"),
        ("env.yaml", "parameter_defaults: {plain: 1.20}", "env.yaml:1: parameter_defaults.plain"),
    ],
)
def test_a_number_that_yaml_misreads_is_no_text(folder: Path, file: str, text: str, place: str) -> None:
    """Heat would get 1.2 for 1.20."""
    environments = [str(folder / "env.yaml")]
    read_package(str(folder / "cluster.yaml"), environments)
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"{folder}/{place}: this number")):
        read_package(str(folder / "cluster.yaml"), environments)


def test_types_of_nested_templates_and_of_members_of_groups_are_known(folder: Path) -> None:
    group = "  group: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: OS::Nova::Server}}}\n"
    off = "  off: {type: My::Plugin::Thing, condition: with_plugin}\n"  # Heat looks at it only if it is on
    (folder / "node.yaml").write_text(NODE + group + off)
    found = read_package(str(folder / "cluster.yaml"), ()).types()
    inner = {"OS::Heat::SoftwareConfig", "OS::Heat::ResourceGroup", "OS::Nova::Server"}
    assert found == {("", "node.yaml"), *(("node.yaml", each) for each in inner)}


def test_parts_that_a_template_makes_of_a_secret() -> None:
    nested = json.dumps({"resources": {"a": {"properties": {"b": {"str_split": ["/", {"get_param": "x"}, 1]}}}}})
    splits = {"outputs": {"o": {"value": {"str_split": ["+", {"get_param": "x"}]}}}}
    package = Package(splits, {"n.yaml": nested, "script.sh": "{{"}, {})
    assert set(package.parts("corr+horse/batt+no")) == {"corr", "horse/batt", "corr+horse", "batt+no"}
    yaql = {"resources": {"a": {"properties": {"b": {"yaql": {"expression": "$.data[3:]", "data": 1}}}}}}
    assert set(Package(yaql, {}, {}).parts("corr+horse/x")) == {"corr", "horse"}
    assert list(Package({"resources": {}}, {}, {}).parts("corr+horse")) == []
