"""What a plan says that an update replaces, against what Heat then replaces: physical ids before and after.

Most resources are random strings: Heat replaces one whenever its salt changes, as it does with a server and its
user data, and makes them at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.resources.orchestration.stack import Stack
from tests.functional.conftest import Prep
from tests.functional.lab import Lab

TEMPLATES = Path(__file__).parent / "data" / "previews"


GROWN = {"names_all", "of_refs", "of_scaling"}
"""What Heat replaces when the groups grow."""
CHANGED = {
    *("nested.one", "nested.two", "nested.other", "of_nested", "of_free", "of_value", "behind"),
    *("of_condition", "of_token", "of_file", "plain_group.1", "nested_group.0.other", "nested_group.1.other"),
}
"""What Heat replaces or deletes when nothing but the sizes of groups stays as it was."""


@pytest.fixture
def lab(project: Lab) -> Iterator[Lab]:
    yield project
    project.destroy_stacks()


def test_what_a_plan_says_is_what_heat_does(lab: Lab, tmp_path: Path, images: tuple[str, str]) -> None:
    """Servers and whatever else takes attributes of what stays are kept, and count once against the quota."""

    main, plain = ((TEMPLATES / name).read_text() for name in ("main.yaml", "inner.yaml"))

    def stack(inner: str = plain, script: str = "X", token: str = "first-token", **given: Any) -> Stack:
        for name, text in {"main.yaml": main, "inner.yaml": inner, "script.sh": script}.items():
            (tmp_path / name).write_text(text)
        return Stack(
            name="many",
            template=str(tmp_path / "main.yaml"),
            parameters={"image": images[0], **given},
            secret_parameters={"token": Secret(token)},
        )

    def replaced(wanted: Stack) -> tuple[set[str], set[str]]:
        """Apply, and return what the plan said that the update takes away, and what it took away."""
        report = lab.run(quota, wanted, allow_replace=True)
        report.raise_for_failures()
        (observed,) = [each.step.observed for each in report.results if each.step.key.kind == "stack"]
        assert observed is not None
        record = observed.record_as(StackRecord)
        heat = record.stack
        before = {at: each.id for at, each in heat.made.items() if f"{at}." not in heat.places.values()}
        after = {at: each.id for at, each in replace(heat).made.items()}
        texts.append(record.effects.text if record.effects else "")
        said = {each.place for each in record.preview if each.verb not in ("add", "update")}
        return said & before.keys(), {at for at, id_ in before.items() if after.get(at) != id_}

    texts: list[str] = []
    quota = Quota(instances=2, cores=4, ram=16384)
    lab.run(quota, stack()).raise_for_failures()
    assert replaced(stack(nodes=2, scaled=2)) == (GROWN, GROWN)
    sizes, _, done = texts[0].partition(": ")
    assert sizes == "nested_group 1 to 2, servers 1 to 2"
    assert done.startswith("Heat adds nested_group.1, servers.1, updates scaling, replaces ")
    changed = {"text": "b", "unused": "b", "flavor": "m1.medium", "long": True, "remove": ["1"]}
    inner = plain.replace("[{get_param: free}, ", "[more, {get_param: free}, ")
    said, done = replaced(stack(inner, "Y X", "second-token", nodes=2, scaled=2, **changed))
    assert said == done == CHANGED


@pytest.mark.parametrize(
    ("main", "names"),
    [
        ("heat_template_version: wallaby\nresources: {alarm: {type: OS::Ceilometer::Alarm}}", "OS::Ceilometer::Alarm"),
        ("heat_template_version: wallaby\nresources: {a: {type: inner.yaml}}", "OS::No::Such of inner.yaml"),
        ("heat_template_version: 2099-01-01\nresources: {}", "2099-01-01"),
    ],
)
def test_a_template_is_judged_before_its_project_exists(prep: Prep, tmp_path: Path, main: str, names: str) -> None:
    (tmp_path / "main.yaml").write_text(main)
    inner = "{a: {type: OS::No::Such}, b: {type: OS::Sahara::Cluster}}"  # Heat keeps the second one for old stacks
    (tmp_path / "inner.yaml").write_text(f"heat_template_version: wallaby\nresources: {inner}")
    name = f"previews-{secrets.token_hex(3)}"
    spec = {"name": name, "project": {"name": name}, "stacks": [{"name": name, "template": "main.yaml"}]}
    prep.write(spec)
    refused = prep.run("plan", prep.spec.name, code=2).stderr
    assert "[stack.refused]" in refused
    assert names in refused
    prep.write({**spec, "stacks": []})
