"""A list of Python means what the same declarations mean in YAML: project, order, and what exposures need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import openstack_prep as prep
from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core import planner
from openstack_prep.core.model import Key, Resource
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import actors_of
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolution import resolve_spec
from openstack_prep.spec.sections import section_of
from tests.doc_examples import DOCS
from tests.kinds import KINDS

ROOT = DOCS.parent
EXAMPLES = {
    name: yaml.safe_load(text)
    for name, text in re.findall(r"^## (\w+)\n```yaml\n(.*?)```", (DOCS / "spec.md").read_text(), re.M | re.S)
}
"""The example of each section in docs/spec.md."""
HOME = {"name": "lab", "domain": "corp"}
SHIPPED = sorted((ROOT / "install_configs").glob("*.yaml"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB\n"
    for path in (".ssh/id_ed25519.pub", "id_ed25519.pub"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(key)
    return tmp_path


def in_python(data: dict[str, Any]) -> Iterator[Resource]:
    """Yield the resources of sections as a script would make them, by the names of their fields."""
    for section in extensions.sections():
        kind = extensions.load(section.kind)
        if section.name in data and issubclass(kind, Resource):
            given = data[section.name]
            for item in given if isinstance(given, list) else [given]:
                yield kind(**item)


def outcome(spec: Spec) -> Any:
    """Return what becomes of a spec in an empty cloud: its resources, its plan and who acts; or its mistakes."""
    try:
        resolved = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
        plan = planner.plan_apply(spec.name, resolved.resources, {})
    except SpecError as error:
        return [(each.what, each.keys) for each in error.mistakes]
    return resolved.resources, plan.steps, actors_of(resolved.resources)


def same(data: dict[str, Any], folder: Path) -> Spec:
    """Check that sections mean the same in YAML and in Python, in whatever order; return the spec."""
    (folder / "spec.yaml").write_text(yaml.safe_dump(data))
    loaded = load_spec(folder / "spec.yaml")
    listed = list(in_python(data))
    # among resources of a section, their own order counts, in YAML too
    backwards = [each for kind in reversed(KINDS.values()) for each in listed if type(each) is kind]
    for resources in (listed, backwards):
        made = spec_from(resources, data["name"])
        assert made.resources == loaded.resources
        assert outcome(made) == outcome(loaded)
    return loaded


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_means_the_same_in_yaml_and_python(kind: str, folder: Path) -> None:
    section = section_of(KINDS[kind])
    example = {name: value for name, value in EXAMPLES[section.name].items() if name != "project"}
    if section.name == "project":
        example = {}
    loaded = same({"name": "my-cluster", "project": HOME, **example}, folder)
    assert any(type(each) is KINDS[kind] for each in loaded.resources)
    in_projects = [each for each in loaded.resources if isinstance(each, InProject)]
    assert {each.place for each in in_projects} <= {("corp", "lab")}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_specs_mean_the_same_in_python(path: Path, folder: Path) -> None:
    data = yaml.safe_load(path.read_text())
    if "cluster_networks" in data:  # no resource: a cluster has them itself in Python
        networks = data.pop("cluster_networks")
        data["rke_clusters"] = [{"networks": networks, **each} for each in data["rke_clusters"]]
    same({key: value for key, value in data.items() if not key.startswith("x-")}, folder)


def test_the_order_of_a_list_does_not_matter() -> None:
    resources = [Subnet(name="s", network="n", cidr="10.0.0.0/24"), Network(name="n"), Project(name="lab")]
    assert spec_from(resources).resources == spec_from(resources[::-1]).resources
    assert [each.kind for each in spec_from(resources).resources] == ["project", "network", "subnet"]


def test_the_only_project_is_that_of_the_others() -> None:
    other = prep.Network(name="shared", project="other")
    role = prep.RoleAssignment(role="reader", user="u", domain="corp")
    spec = spec_from([prep.Project(name="pr-43"), prep.Quota(cores=3), prep.Network(name="net"), other, role])
    assert {str(each.key): each.project for each in spec.resources if isinstance(each, InProject)} == {
        "role_assignment/user:u@domain:corp/reader": None,
        "quota/pr-43": "pr-43",
        "network/net": "pr-43",
        "network/shared": "other",
    }


def test_without_a_project_it_is_that_of_the_connection() -> None:
    (quota,) = spec_from([prep.Quota(cores=3)], "mine").resources
    assert quota == prep.Quota(cores=3)


def test_with_two_projects_one_error_lists_all_that_lack_theirs() -> None:
    wanted = [
        prep.Project(name="a"),
        prep.Project(name="b", domain="corp"),
        prep.Quota(cores=3),
        prep.Network(name="net"),
        prep.Network(name="good", project="a"),
        prep.RoleAssignment(role="reader", user="u", domain="corp"),
    ]
    with pytest.raises(SpecError) as caught:
        spec_from(wanted, "both")
    (mistake,) = caught.value.mistakes
    assert mistake.keys == (Key("quota", "(current project)"), Key("network", "net"))
    assert (mistake.code, mistake.field) == (Code.SPEC_MISSING_KEY, "project")
    assert "project=" in mistake.fix
    assert "project_domain=" in mistake.fix
    assert len(spec_from([*wanted[:2], *wanted[4:]], "both").resources) == 4


def test_a_list_without_name_and_project_has_both_errors() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from([prep.Project(name="a"), prep.Project(name="b"), prep.Network(name="net")])
    assert [each.where for each in caught.value.mistakes] == ["network/net", "name"]


def test_twice_the_same_is_refused_with_both_places() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from([prep.Network(name="n"), prep.Project(name="a"), prep.Network(name="n", project="a")])
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.code) == ("resources[2]", Code.SPEC_DUPLICATE_NAME)
    assert "resources[0]" in mistake.what


def test_a_selection_of_a_spec_made_in_python_stays_selected() -> None:
    given = Spec("lab", (Project(name="lab"), Network(name="n"), Stack(name="s", template="t.yaml")))
    chosen = spec_from(given.limited_to("stack", "s"))
    assert [each.key for each in chosen.chosen] == [Key("stack", "s", ("Default", "lab"))]


class _Special(Network):
    """A kind of a caller."""


def test_a_kind_of_the_caller_is_in_the_project_too() -> None:
    special = _Special(name="special")
    assert spec_from([special, Project(name="lab")]).resources[1] == _Special(
        name="special", project="lab", project_domain="Default"
    )
