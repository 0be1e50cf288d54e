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
