"""Which name is suggested for a wrong one, and for which there is none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import openstack_prep
from openstack_prep.base.suggestion import similar, suggest
from tests.unit.texts import Wording


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("nmae", ["name", "node"], ["name"]),
        ("hostnameOverride", ["hostname_override"], ["hostname_override"]),
        ("username", ["user", "use"], ["user"]),
        ("Subnets", ["subnet"], ["subnet"]),
        ("name", ["node", "cluster_name", "names"], ["names"]),
        ("cloud_config", ["harvesterCloudProvider", "openstackCloudProvider", "name"], []),
        ("node_selector_terms", ["node"], []),
        ("cloud", ["load"], []),
        ("rem", ["access", "ram", "vcpus"], ["ram"]),
        ("rma", ["access", "ram", "vcpus"], ["ram"]),
        ("vip", ["cidr", "vips", "via", "tag"], ["vips"]),
        ("rem", ["ram", "rum"], []),
        ("rem", ["rom", "rim", "node"], []),
        ("ab", ["abc", "ac"], ["abc"]),
        ("ib", ["id", "ip"], []),
    ],
)
def test_only_names_that_differ_by_a_few_letters(name: str, known: list[str], found: list[str]) -> None:
    assert similar(name, known) == found
    assert suggest(name, known, "remove it") == (f"did you mean {found[0]}?" if found else "remove it")


def test_several(wording: Wording) -> None:
    wording(suggest("net/lbb", ["net/lab", "net/lb", "subnet/x"], count=2))


def test_no_other_place_guesses() -> None:
    root = Path(openstack_prep.__file__).parent
    guessing = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute | ast.Name)
        and getattr(node, "attr", getattr(node, "id", "")) == "get_close_matches"
    ]
    assert guessing == ["base/suggestion.py"]
