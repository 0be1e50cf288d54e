from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.core import observation, planner
from openstack_prep.core.model import DIFFERS, Action, Change, Key, Observed, Resource
from openstack_prep.core.permission import beyond_plan
from openstack_prep.core.plan import Plan, unresolved_keys
from openstack_prep.core.planner import plan_apply, plan_destroy, plan_removals
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from tests.unit.box import Box, Shelf
from tests.unit.texts import Wording, contains

A = Box(name="a", size=2, colour="red", material="oak")


def seen(ours: bool = True, **values: Any) -> dict[Key, Observed]:
    """Return the box a as observed."""
    return {A.key: Observed(id="id-a", values=values, ours=ours)}


def names(plan: Plan) -> str:
    return " ".join(step.resource.name for step in plan)


def planned(*boxes: Box) -> Plan:
    return plan_apply("lab", boxes, {})


# --- what is done to one resource ---------------------------------------------------------


def test_what_is_not_there_is_created() -> None:
    (step,) = planned(A)
    assert (step.action, step.observed, step.changes) == (Action.CREATE, None, ())


def test_what_is_as_it_should_be_is_kept() -> None:
    plan = plan_apply("lab", [A], seen(size=2, colour="red", material="oak"))
    assert plan.steps[0].action is Action.KEEP
    assert not plan


def test_what_differs_is_updated_field_by_field_in_declared_order() -> None:
    (step,) = plan_apply("lab", [A], seen(material="oak", colour="blue", size=1))
    assert step.action is Action.UPDATE
    assert step.changes == (Change("size", 1, 2), Change("colour", "blue", "red"))


def test_what_the_cloud_does_not_tell_counts_as_different() -> None:
    (step,) = plan_apply("lab", [Box(name="a", size=2)], seen())
    assert step.changes == (Change("size", None, 2),)


def test_an_unset_field_is_left_alone() -> None:
    (step,) = plan_apply("lab", [Box(name="a", size=2)], seen(size=2, colour="blue", material="tin"))
    assert step.action is Action.KEEP


@pytest.mark.parametrize("falsy", [0, "", ()])
def test_zero_and_empty_are_not_unset(falsy: Any) -> None:
    (step,) = plan_apply("lab", [Box(name="a", size=falsy)], seen(size=2))
    assert step.changes == (Change("size", 2, falsy),)


def test_an_unchangeable_field_makes_a_replacement_which_is_refused() -> None:
    plan = plan_apply("lab", [A], seen(size=1, colour="red", material="tin"))
    assert plan.steps[0].action is Action.REPLACE
    (refusal,) = plan.refusals
    assert (refusal.code, refusal.where) == ("plan.replaces", "box/a")
    assert "material 'tin' -> 'oak'" in refusal.what
    assert "size" not in refusal.what, "only what cannot be changed is the reason"
    assert "--allow-replace" in refusal.fix


@dataclass(frozen=True, kw_only=True)
class Growing(Box):
    """A box that only a smaller one replaces."""

    def is_replaced_by(self, change: Change) -> bool:
        return change.field == "size" and change.after < change.before


@pytest.mark.parametrize(("size", "action"), [(1, Action.REPLACE), (2, Action.KEEP), (3, Action.UPDATE)])
def test_a_kind_decides_which_change_is_a_replacement(size: int, action: Action) -> None:
    plan = plan_apply("lab", [Growing(name="a", size=size)], seen(size=2))
    assert [step.action for step in plan] == [action]
    assert [each.code for each in plan.refusals] == ["plan.replaces"] * (action is Action.REPLACE)


def test_consent_allows_the_replacement() -> None:
    plan = plan_apply("lab", [A], seen(material="tin"), allow_replace=True)
    assert plan.steps[0].action is Action.REPLACE
    assert plan.refusals == ()


def test_mistakes_found_while_reading_are_refusals() -> None:
    mistake = Mistake("box/a", "is too big")
    assert plan_apply("lab", [A], {}, mistakes=[mistake], allow_replace=True).refusals == (mistake,)


# --- order --------------------------------------------------------------------------------


def test_declared_order_stays_where_it_already_fits() -> None:
    assert names(planned(Box(name="z"), Box(name="y", on=("z",)), Box(name="a"))) == "z y a"


def test_needs_come_first_in_their_declared_order() -> None:
    boxes = (Box(name="top", on=("c", "b")), Box(name="a"), Box(name="b"), Box(name="c"))
    assert names(planned(*boxes)) == "b c top a"


def test_a_reference_outside_of_the_spec_is_no_edge() -> None:
    (step,) = planned(Box(name="a", on=("elsewhere",)))
    assert step.needs == frozenset()


def test_a_need_waits_for_all_who_provide_it_together() -> None:
    access = Key("access", "p")
    boxes = (Box(name="worker", wants=(access,)), Box(name="r1", gives=(access,)), Box(name="r2", gives=(access,)))
    worker = planned(*boxes).steps[-1]
    assert worker.needs == {Key("box", "r1"), Key("box", "r2")}


def test_who_provides_what_it_needs_does_not_wait_for_itself() -> None:
    access = Key("access", "p")
    (step,) = planned(Box(name="a", wants=(access,), gives=(access,)))
    assert step.needs == frozenset()


def test_a_ring_is_an_error_that_shows_who_needs_whom() -> None:
    boxes = (Box(name="a", on=("b",)), Box(name="b", on=("c",)), Box(name="c", on=("a",)))
    with pytest.raises(SpecError) as caught:
        planned(*boxes)
    assert [each.code for each in caught.value.mistakes] == ["spec.cycle"]
    ring = caught.value.mistakes[0].where.split(" -> ")
    assert set(pairwise(ring)) == {("box/a", "box/b"), ("box/b", "box/c"), ("box/c", "box/a")}


def test_one_name_twice_is_an_error() -> None:
    with pytest.raises(SpecError) as caught:
        planned(Box(name="a"), Box(name="a", size=1))
    assert [(each.code, each.where) for each in caught.value.mistakes] == [("spec.duplicate-name", "box/a")]


def test_no_resources_make_an_empty_plan() -> None:
    assert not planned()


# --- destroy ------------------------------------------------------------------------------


def everywhere(*boxes: Box, ours: bool = True) -> dict[Key, Observed]:
    return {box.key: Observed(id=f"id-{box.name}", ours=ours) for box in boxes}


def test_destroy_goes_the_other_way_round() -> None:
    boxes = (Box(name="a"), Box(name="b", on=("a",)), Box(name="c", on=("b",)))
    plan = plan_destroy("lab", boxes, everywhere(*boxes))
    assert names(plan) == "c b a"
    assert [step.needs for step in plan] == [frozenset(), {Key("box", "c")}, {Key("box", "b")}]
    assert {step.action for step in plan} == {Action.DELETE}


def test_destroy_keeps_what_is_not_ours_and_says_so(wording: Wording) -> None:
    (step,) = plan_destroy("lab", [A], seen(ours=False))
    assert step.action is Action.KEEP
    wording(step.reason)


def test_destroy_passes_over_what_is_not_there() -> None:
    assert not plan_destroy("lab", [A], {}).steps


# --- what follows others ------------------------------------------------------------------


def test_what_follows_a_change_is_to_be_looked_at_again() -> None:
    b = Box(name="b", behind=(A.key,))
    c = Box(name="c", behind=(b.key,))
    there = {each.key: Observed(id=each.name, ours=True) for each in (b, c)}
    plan = plan_apply("lab", [c, b, A], there)
    assert [(step.key.name, step.action.value) for step in plan] == [("a", "create"), ("b", "update"), ("c", "update")]
    assert "~ box/b  as box/a will be" in str(plan)
    assert plan.data()[1]["follows"] == ["box/a"]
    assert not plan_apply("lab", [c, b, A], there | {A.key: Observed(id="a", values=A.desired())})


# --- what is not managed by the spec ------------------------------------------------------

KNOWN = Observed(id="n1", values={"mtu": 1500})


@pytest.mark.parametrize("consent", [{"adopt": True}, {}])
def test_what_is_not_managed_is_changed_by_consent_only(consent: dict[str, bool]) -> None:
    wanted = Network(name="net", mtu=1400)
    plan = plan_apply("lab", [wanted], {wanted.key: KNOWN}, **consent)
    assert plan.steps[0].action is Action.ADOPT
    assert [(each.code, each.keys) for each in plan.refusals] == ([] if consent else [("plan.adopts", (wanted.key,))])
    declared = replace(wanted, adopt=True)
    assert plan_apply("lab", [declared], {wanted.key: KNOWN}).refusals == ()


def test_what_is_not_managed_and_as_declared_is_kept() -> None:
    wanted = Network(name="net", mtu=1500)
    assert plan_apply("lab", [wanted], {wanted.key: KNOWN}).steps[0].action is Action.KEEP


def test_no_consent_covers_replacing_what_is_not_managed() -> None:
    wanted = Flavor(name="small", ram=512, vcpus=1)
    there = {wanted.key: Observed(id="f1", values={"ram": 1024, "vcpus": 1})}
    plan = plan_apply("lab", [wanted], there, allow_replace=True, adopt=True)
    assert [(each.code, each.keys) for each in plan.refusals] == [("plan.foreign", (wanted.key,))]
    there = {wanted.key: replace(there[wanted.key], managed_by="other")}
    plan = plan_apply("lab", [wanted], there, allow_replace=True, adopt=True)
    assert [(each.code, each.keys) for each in plan.refusals] == [("plan.other-spec", (wanted.key,))]


@pytest.mark.parametrize(
    ("wanted", "values", "refused"),
    [
        (Keypair(name="k", public_key="ssh-ed25519 AAAA"), {"public_key": "ssh-ed25519 BBBB"}, True),
        (ServerGroup(name="g", policy="affinity"), {"policy": "anti-affinity"}, False),
    ],
)
def test_that_holds_for_all_that_has_room_for_an_ownership_tag(wanted: Any, values: Any, refused: bool) -> None:
    plan = plan_apply("lab", [wanted], {wanted.key: Observed(id="x", values=values)}, allow_replace=True)
    assert [each.keys for each in plan.refusals] == ([(wanted.key,)] if refused else [])
    if not refused:
        without = plan_apply("lab", [wanted], {wanted.key: Observed(id="x", values=values)})
        assert [each.keys for each in without.refusals] == [(wanted.key,)]


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("wanted", [Flavor(name="small", ram=512, vcpus=1), Network(name="small", mtu=1400)])
def test_no_permission_is_asked_for_what_refers_to_something_missing(wanted: Any, ours: bool) -> None:
    """It seems to change in the field that has no value yet."""
    missing = Mistake.about(wanted.key, "project/x does not exist", code="spec.unresolved-reference")
    there = {wanted.key: Observed(id="f1", ours=ours, values={"ram": 1024, "vcpus": 1, "mtu": 1500})}
    plan = plan_apply("lab", [wanted], there, mistakes=[missing])
    assert plan.refusals == (missing,)
    assert unresolved_keys(plan.refusals) == {wanted.key}
    assert plan_apply("lab", [wanted], there).refusals or (ours and wanted.kind == "network")


# --- what is no longer in the spec --------------------------------------------------------


def left_over(prune: bool) -> Plan:
    kept, child = Box(name="kept"), Box(name="child", on=("parent",))
    made = plan_apply("lab", [kept], {kept.key: Observed(id="k", ours=True)})
    gone = [(each, Observed(id=each.name, ours=True)) for each in (Box(name="parent"), child)]
    return plan_removals(made, gone, prune=prune)


def test_what_is_no_longer_declared_is_named_and_stays() -> None:
    plan = left_over(prune=False)
    assert not plan
    assert [str(step) for step in plan.undeclared] == ["box/child", "box/parent"]


def test_pruning_deletes_it_last_and_dependents_first() -> None:
    plan = left_over(prune=True)
    assert [(str(step), step.action) for step in plan.pending] == [
        ("box/child", Action.DELETE),
        ("box/parent", Action.DELETE),
    ]
    child, parent = plan.pending
    assert Key("box", "kept") in child.needs
    assert {Key("box", "kept"), child.key} <= parent.needs
    assert {each.reason for each in plan.pending} == {planner.UNDECLARED}


@dataclass(frozen=True, kw_only=True)
class InRoom(Box):
    """A box whose name is unique in a room."""

    room: str = ""

    @property
    def scope(self) -> tuple[str, ...]:
        return tuple(self.room.split("/")) if self.room else ()


@pytest.mark.parametrize("prune", [True, False])
def test_boxes_of_one_name_are_told_apart_by_their_rooms(prune: bool) -> None:
    """Also one that is declared from one that no longer is; where there is one only, its name does."""
    declared = [InRoom(name="a", room="hall"), InRoom(name="b", room="hall")]
    gone = [(InRoom(name="a", room="attic"), Observed(id="x", ours=True)), (Box(name="c"), Observed(id="c", ours=True))]
    both = plan_apply("lab", [*declared, gone[0][0]], {})
    assert [str(each) for each in both] == ["box/a@hall", "box/b", "box/a@attic"]
    plan = plan_removals(plan_apply("lab", declared, {}), gone, prune=prune)
    assert {str(each) for each in (*plan.steps, *plan.undeclared)} == {"box/a", "box/b", "box/a@attic", "box/c"}
    destroyed = plan_destroy("lab", declared, {each.key: Observed(id="1", ours=True) for each in declared}, gone)
    assert {str(each) for each in destroyed} == {"box/a@hall", "box/b", "box/a@attic", "box/c"}


@pytest.mark.parametrize("room", ["hall", "house/hall", ""])
def test_what_is_missing_is_named_with_its_room(room: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Needy(Box):
        kind: ClassVar[str] = "needy"

        def references(self) -> list[Resource]:
            return [InRoom(name="a", room=room)]

    _, (mistake,) = observation.examine(Shelf().run(), [Needy(name="n")])
    assert mistake.what.partition(" ")[0] == ("box/a@hall" if room == "hall" else "box/a")


@pytest.mark.parametrize("prune", [True, False])
def test_what_may_be_a_namesakes_is_named_and_never_deleted(prune: bool) -> None:
    made = plan_apply("lab", [], {})
    plan = plan_removals(made, [(Box(name="their"), Observed(id="t"))], prune=prune)
    assert [(str(step), step.action) for step in plan.undeclared] == [("box/their", Action.KEEP)]
    assert not plan
    assert contains(str(plan), "another spec", "lab")
    destroyed = plan_destroy("lab", [], {}, [(Box(name="their"), Observed(id="t"))])
    assert [step.action for step in destroyed] == [Action.KEEP]


# --- what only a preview can tell ---------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Crate(Box):
    """What an update of it does, only a preview can tell, for which all that it stands on must exist."""

    kind: ClassVar[str] = "crate"

    def is_foreseen(self, observed: Observed) -> bool:
        return True


@pytest.mark.parametrize("consent", [True, False])
def test_an_update_that_cannot_be_previewed_yet_says_so(consent: bool) -> None:
    crate = Crate(name="c", colour="blue", on=("new", "old"))
    observed = {crate.key: Observed(id="c1", values={"colour": "red"}), **seen_as("old")}
    plan = plan_apply("lab", [Box(name="new"), Box(name="old"), crate], observed, allow_replace=consent)
    (step,) = [each for each in plan if each.key == crate.key]
    assert "box/new" in step.reason
    assert "box/old" not in step.reason
    assert ("may replace anything in it" in step.reason) is consent
    assert step.reason in plan.table
    assert plan.allow_replace is consent


def seen_as(name: str) -> dict[Key, Observed]:
    return {Key("box", name): Observed(id=name)}


@pytest.mark.parametrize("generated", [True, False])
def test_a_plan_of_the_same_steps_may_take_more_than_the_one_shown(tmp_path: Path, generated: bool) -> None:
    """The password differs in both; that nobody can get the old one any more shows in the losses alone."""
    password = tmp_path / "u.password"
    password.write_text("x")
    user = User(name="u", password=Secret(fetch=lambda: "x", path=str(password)))
    observed = {user.key: Observed(id="u1", ours=True, values={"password": DIFFERS})}
    shown = plan_apply("lab", [user], observed, allow_replace=True)
    losses = beyond_plan(shown, shown)
    if generated:
        password.unlink()
        losses = beyond_plan(shown, plan_apply("lab", [user], observed, allow_replace=True))
    assert [(each.code, each.keys) for each in losses] == ([("plan.loses", (user.key,))] if generated else [])


@pytest.mark.parametrize("owner", ["", "other"])
def test_what_is_taken_over_permanently_is_shown_and_never_taken_from_another_spec(owner: str) -> None:
    wanted = Network(name="net", mtu=1500, adopt="permanently")
    plan = plan_apply("lab", [wanted], {wanted.key: replace(KNOWN, managed_by=owner)}, adopt=True)
    assert plan.steps[0].action is Action.ADOPT
    assert [change.field for change in plan.steps[0].changes] == ["managed"]
    assert [(each.code, each.keys) for each in plan.refusals] == ([("plan.other-spec", (wanted.key,))] if owner else [])
    assert plan_apply("lab", [wanted], {wanted.key: replace(KNOWN, ours=True)}).steps[0].action is Action.KEEP


# --- what another spec manages ------------------------------------------------------------


def of_lab(**values: Any) -> dict[Key, Observed]:
    """Return a network that carries the ownership tag of spec lab."""
    return {NET.key: Observed(id="n1", values=values, managed_by="lab")}


NET = Network(name="net", description="new")


def test_what_another_spec_manages_is_kept_and_says_so(wording: Wording) -> None:
    (step,) = plan_apply("lab2", [NET], of_lab(description="new"))
    assert step.action == Action.KEEP
    wording(step.reason)


def test_what_this_spec_manages_says_nothing() -> None:
    there = {NET.key: Observed(id="n1", values={"description": "new"}, ours=True, managed_by="lab")}
    (step,) = plan_apply("lab2", [NET], there)
    assert step.reason == ""


def test_to_change_what_another_spec_manages_names_that_spec(wording: Wording) -> None:
    plan = plan_apply("lab2", [NET], of_lab(description="old"))
    assert plan.steps[0].action == Action.ADOPT
    wording(plan.steps[0].reason)
    (refusal,) = plan.refusals
    assert refusal.code == "plan.adopts"
    wording(refusal.what)


def test_adopting_shows_the_other_spec_in_the_plan(wording: Wording) -> None:
    plan = plan_apply("lab2", [NET], of_lab(description="old"), adopt=True)
    assert plan.refusals == ()
    wording(str(plan).splitlines()[0])


def test_destroy_names_the_other_spec(wording: Wording) -> None:
    (step,) = plan_destroy("lab2", [NET], of_lab(description="new"))
    assert step.action == Action.KEEP
    wording(step.reason)
