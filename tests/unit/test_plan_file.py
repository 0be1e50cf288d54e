from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.errors import PlanRefused, PrepError, SpecError
from openstack_prep.model import Key, Observed
from openstack_prep.plan import Plan
from openstack_prep.plan_file import SavedPlan, save
from openstack_prep.planner import plan_apply
from openstack_prep.resources import User
from openstack_prep.resources.user import DIFFERS
from openstack_prep.secret import Secret
from tests.unit.box import Box

BOXES = (Box(name="a", material="oak"), Box(name="b", size=1))


def plan(consent: bool = False, **there: dict[str, Any]) -> Plan:
    observed = {Key("box", name): Observed(id=f"id-{name}", values=values) for name, values in there.items()}
    return plan_apply("lab", BOXES, observed, allow_replace=consent)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text("name: lab\n")
    return path


@pytest.fixture
def kept(tmp_path: Path, spec: Path) -> Path:
    """A kept plan that creates both boxes."""
    path = tmp_path / "kept.plan"
    save(path, plan(), spec, "lab")
    return path


def test_a_fresh_one_is_accepted(kept: Path, spec: Path) -> None:
    saved = SavedPlan(kept)
    assert saved.spec == spec
    saved.check_spec()
    saved.check(plan(), "lab")


def test_a_changed_spec_makes_it_stale(kept: Path, spec: Path) -> None:
    spec.write_text("name: lab\nquota: {cores: 1}\n")
    with pytest.raises(PlanRefused, match=r"kept\.plan: .*spec\.yaml has changed since; make it again"):
        SavedPlan(kept).check_spec()


def test_a_spec_that_has_gone_makes_it_stale(kept: Path, spec: Path) -> None:
    spec.unlink()
    with pytest.raises(PlanRefused, match="has changed since"):
        SavedPlan(kept).check_spec()


def test_a_cloud_that_has_moved_makes_it_stale(kept: Path) -> None:
    with pytest.raises(PlanRefused) as caught:
        SavedPlan(kept).check(plan(b={"size": 1}), "lab")
    (mistake,) = caught.value.mistakes
    assert mistake.where.endswith("kept.plan: box/b")


def test_another_thing_of_the_same_name_makes_it_stale(tmp_path: Path, spec: Path) -> None:
    save(tmp_path / "kept.plan", plan(b={"size": 2}), spec, "lab")
    moved = plan_apply("lab", BOXES, {Key("box", "b"): Observed(id="another", values={"size": 2})})
    with pytest.raises(PlanRefused, match="box/b: has changed since"):
        SavedPlan(tmp_path / "kept.plan").check(moved, "lab")


def test_it_is_for_one_cloud(kept: Path) -> None:
    with pytest.raises(PlanRefused, match="was made for the cloud lab, not for live; give --os-cloud lab"):
        SavedPlan(kept).check(plan(), "live")


@pytest.mark.parametrize("consent", [True, False])
def test_consent_to_a_replacement_is_kept_with_it(consent: bool, tmp_path: Path, spec: Path) -> None:
    save(tmp_path / "kept.plan", plan(consent, a={"material": "tin"}), spec, "lab")
    assert SavedPlan(tmp_path / "kept.plan").allow_replace is consent


@pytest.mark.parametrize("consent", [True, False])
def test_consent_to_a_loss_is_kept_with_it(consent: bool, tmp_path: Path, spec: Path) -> None:
    user = User(name="u", password=Secret(fetch=lambda: "new", path=str(tmp_path / "no.password")))
    observed = {user.key: Observed(id="u1", ours=True, values={"password": DIFFERS})}
    save(tmp_path / "kept.plan", plan_apply("lab", [user], observed, allow_replace=consent), spec, "lab")
    assert SavedPlan(tmp_path / "kept.plan").allow_replace is consent


def test_it_holds_no_secret(tmp_path: Path, spec: Path) -> None:
    user = User(name="u", password=Secret("correct-horse"))
    observed = {user.key: Observed(id="u1", values={"password": Secret("old-horse")})}
    save(tmp_path / "kept.plan", plan_apply("lab", [user], observed), spec, "lab")
    assert "horse" not in (tmp_path / "kept.plan").read_text()


CONTENT = {"format": 1, "spec": "x", "sha256": "x", "cloud": "lab", "allow_replace": False, "steps": []}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "name: ocp4\n",
        "[]",
        "null",
        "{}",
        '{"format": 1}',
        json.dumps(CONTENT | {"format": 2}),
        json.dumps(CONTENT | {"spec": 5}),
        json.dumps(CONTENT | {"steps": {}, "format": 0}),
        json.dumps(CONTENT | {"steps": [{}]}),
        json.dumps(CONTENT | {"steps": None}),
        "\xff",
    ],
)
def test_what_is_no_plan(kept: Path, content: str) -> None:
    kept.write_bytes(content.encode("latin-1"))
    with pytest.raises(SpecError, match=r"kept\.plan: is not a saved plan of this version; make it again"):
        SavedPlan(kept)


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"gone\.plan: cannot be read"):
        SavedPlan(tmp_path / "gone.plan")


def test_one_that_cannot_be_written(tmp_path: Path, spec: Path) -> None:
    with pytest.raises(PrepError, match=r"kept\.plan cannot be written"):
        save(tmp_path / "no" / "kept.plan", plan(), spec, "lab")
