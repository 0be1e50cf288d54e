"""What a run may do beyond what its plan has shown: by codes and what they are about, without a cloud."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from openstack_prep.base.errors import Loss, Mistake
from openstack_prep.base.secret import Secret
from openstack_prep.core import permission
from openstack_prep.core.deletion_loss import DeletionLoss, LossEffect
from openstack_prep.core.model import Action, Adoptable, Change, Observed, Resource, Step
from openstack_prep.core.plan import Plan
from openstack_prep.resources.heat.stacks import HeatStack
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.resources.orchestration.stack import Stack
from tests.unit.box import Box
from tests.unit.texts import Wording, contains


@dataclass(frozen=True, kw_only=True)
class Chest(Box, Adoptable):
    """A box that somebody else may have made."""

    kind: ClassVar[str] = "chest"


@dataclass(frozen=True, kw_only=True)
class Carried(Box):
    kind: ClassVar[str] = "carried"
    implied: ClassVar[frozenset[str]] = frozenset({"status"})


BOX, CHEST = Box(name="a"), Chest(name="a")
OURS, THEIRS = Observed(id="1", ours=True), Observed(id="1")
GROWS = Change("size", 1, 2)


def codes(mistakes: Iterable[Mistake]) -> list[str]:
    """Return the codes; each mistake says where it is, what is wrong, and what to do."""
    mistakes = list(mistakes)
    for each in mistakes:
        assert each.where == ", ".join(map(str, each.keys)), each
        assert each.keys, each
        assert each.what, each
        assert each.fix, each
    return [each.code for each in mistakes]


def beyond(shown: Step, now: Step, allow_replace: bool = False) -> list[Mistake]:
    return permission.beyond(shown, now, allow_replace=allow_replace)


def update(resource: Resource, observed: Observed, *changes: Change, **more: Any) -> Step:
    return Step(resource=resource, action=Action.UPDATE, observed=observed, changes=changes, **more)


def adoption(observed: Observed = THEIRS) -> Step:
    return Step(resource=CHEST, action=Action.ADOPT, observed=observed, changes=(GROWS,))


def replacement(observed: Observed = OURS) -> Step:
    return Step(resource=BOX, action=Action.REPLACE, observed=observed, changes=(Change("material", "tin", "oak"),))


CREATION = Step(resource=BOX, action=Action.CREATE)


# --- adoption and replacement -------------------------------------------------------------


def test_an_adoption_that_the_plan_has_not_shown_names_its_option() -> None:
    (found,) = beyond(Step(resource=CHEST, action=Action.CREATE), adoption())
    assert codes([found]) == ["plan.adopts"]
    assert "--adopt)" in found.fix
    assert beyond(adoption(), adoption()) == []
    assert codes(beyond(adoption(replace(THEIRS, id="2")), adoption())) == ["plan.adopts"]


def test_an_adoption_is_refused_with_its_owner_and_its_changes(wording: Wording) -> None:
    two = replace(adoption(), changes=(GROWS, Change("colour", "red", "blue")))
    (found,) = permission.refuse_adoptions([two])
    assert codes([found]) == ["plan.adopts"]
    assert found.code == "plan.adopts"
    wording(found.what)
    assert "size 1 -> 2, colour red -> blue" in found.what
    (found,) = permission.refuse_adoptions([adoption(replace(THEIRS, managed_by="web"))])
    assert found.code == "plan.adopts"
    assert contains(found.what, "web")
    assert codes(permission.refuse_adoptions([adoption(), adoption()])) == ["plan.adopts"] * 2


def test_a_replacement_that_the_plan_has_not_shown_is_a_change_by_somebody_else() -> None:
    assert codes(beyond(CREATION, replacement())) == ["plan.changed"]
    assert codes(beyond(CREATION, replacement(), allow_replace=True)) == ["plan.changed"]
    assert beyond(replacement(), replacement()) == []
    assert codes(beyond(replacement(replace(OURS, id="2")), replacement())) == ["plan.changed"]


def test_a_replacement_of_what_others_manage_is_refused_once_and_whatever_was_shown() -> None:
    foreign = replacement(THEIRS)
    assert codes(beyond(CREATION, foreign)) == ["plan.foreign"]
    assert codes(beyond(foreign, foreign, allow_replace=True)) == ["plan.foreign"]
    of_web = replacement(replace(THEIRS, managed_by="web"))
    assert codes(permission.refuse_always([of_web, foreign])) == ["plan.other-spec", "plan.foreign"]


def test_what_another_spec_manages_is_not_taken_over() -> None:
    taken = replace(adoption(replace(THEIRS, managed_by="web")), resource=replace(CHEST, adopt="permanently"))
    (found,) = permission.refuse_always([taken])
    assert codes([found]) == ["plan.other-spec"]
    assert "spec web," in found.what
    assert permission.refuse_always([replace(taken, observed=THEIRS)]) == []
    assert codes(beyond(taken, taken)) == ["plan.other-spec"]


def test_only_what_cannot_be_changed_in_place_is_the_reason_of_a_replacement() -> None:
    step = replace(replacement(), changes=(Change("material", "tin", "oak"), GROWS, Change("material", 1, 2)))
    (found,) = permission.refuse_replacements([step, update(BOX, OURS, GROWS)])
    assert codes([found]) == ["plan.replaces"]
    assert found.what.endswith("material 'tin' -> 'oak', material 1 -> 2")


# --- elements that came in since the plan -------------------------------------------------


def listed(*values: str, action: Action = Action.UPDATE) -> Step:
    """Return an update of a list that has these values to the single value a."""
    step = update(CHEST, replace(OURS, values={"colour": values}), Change("colour", values, ("a",)))
    return replace(step, action=action)


@pytest.mark.parametrize("action", [Action.UPDATE, Action.ADOPT])
def test_an_element_that_came_in_is_not_removed(action: Action, wording: Wording) -> None:
    """Only what the plan has seen goes, and what is to stay is no loss."""
    (found,) = beyond(listed("a", "b", action=action), listed("a", "d", "b", "c"))
    assert codes([found]) == ["plan.changed"]
    assert "colour" in found.what
    assert found.code == "plan.changed"
    wording(found.what)
    assert beyond(listed("a", "b", action=action), listed("a", "b")) == []
    assert beyond(listed("a", "b", action=action), listed("b")) == []


def test_what_came_in_counts_also_where_the_run_decides_again() -> None:
    """Of a resource to be taken over, and of a stack, whose own list is what Heat would do."""
    taken = replace(adoption(), resource=replace(CHEST, adopt="permanently"))
    assert taken.decided_later
    assert codes(beyond(taken, replace(taken, changes=(Change("size", 7, 2),)))) == ["plan.changed"]
    stack, change = Stack(name="a", template="t.yaml"), Change("parameters", {"nodes": 1}, {"nodes": 2})
    record = StackRecord(stack=cast(HeatStack, None), status="UPDATE_COMPLETE")
    shown = update(stack, replace(OURS, record=record), change)
    assert shown.decided_later
    pending = Change("pending", frozenset({"update a"}), frozenset())
    assert beyond(shown, replace(shown, changes=(change, pending))) == []
    moved = replace(change, before={"nodes": 1, "by": "hand"})
    assert codes(beyond(shown, replace(shown, changes=(moved, pending)))) == ["plan.changed"]
    follower = replace(shown, follows=frozenset({BOX.key}))
    assert beyond(follower, replace(follower, changes=(moved, pending))) == []
    rolling_back = replace(shown, observed=replace(OURS, record=replace(record, status="UPDATE_IN_PROGRESS")))
    assert beyond(rolling_back, replace(shown, changes=(moved,))) == []


def test_elements_of_each_field_count_and_add_to_other_reasons() -> None:
    both = replace(listed("b"), changes=(Change("colour", ("b",), ()), Change("size", frozenset({3}), frozenset())))
    seen = replace(listed(), observed=replace(OURS, values={"colour": ("a",)}))
    assert codes(beyond(seen, both)) == ["plan.changed"] * 2
    loss = Loss.about(CHEST.key, "b goes", "keep b")
    assert codes(beyond(seen, replace(both, losses=(loss,)))) == ["plan.changed"] * 2 + ["plan.loses"]
    replaced = replace(both, action=Action.REPLACE)
    assert codes(beyond(seen, replaced)) == ["plan.changed"] * 3


@pytest.mark.parametrize(
    "shown",
    [
        replace(listed("a"), follows=frozenset({BOX.key})),
        replace(listed("a"), observed=replace(OURS, id="2")),
        replace(listed("a"), action=Action.CREATE, observed=None),
        listed("a", action=Action.KEEP),
        listed("a", action=Action.REPLACE),
    ],
)
def test_elements_are_compared_with_an_update_that_was_shown_of_the_same_one(shown: Step) -> None:
    assert beyond(shown, listed("a", "b")) == []


def test_a_value_that_is_no_list_has_no_elements() -> None:
    text = update(BOX, replace(OURS, values={"colour": "red"}), Change("colour", "blue", "green"))
    assert beyond(replace(text, observed=replace(OURS, values={"colour": "red"})), text) == []


@pytest.mark.parametrize("before", ["red", "", None, "green"])
@pytest.mark.parametrize("changes", [(Change("colour", "blue", "green"),), (GROWS,)])
def test_a_value_that_somebody_has_set_since_is_not_overwritten(before: object, changes: tuple[Change, ...]) -> None:
    """Whether the plan was to change the field or found it as declared."""
    seen = "blue" if changes[0].field == "colour" else "green"
    shown = update(BOX, replace(OURS, values={"colour": seen, "size": 1}), *changes)
    now = [] if before == "green" else [Change("colour", before, "green")]
    found = beyond(shown, update(BOX, replace(OURS, values={"colour": before, "size": 1}), *now))
    assert codes(found) == (["plan.changed"] if before == "red" else [])


def test_a_status_that_has_moved_on_is_nobodys_choice() -> None:
    chest = Carried(name="a")
    shown = update(chest, replace(OURS, values={"status": "error"}), Change("status", "error", "active"))
    assert beyond(shown, update(chest, OURS, Change("status", "pending", "active"))) == []


# --- losses of an update ------------------------------------------------------------------


def losing(*lost: str, previewed_later: bool = False) -> Step:
    losses = tuple(Loss(str(BOX.key), f"{each} goes", "keep it", (BOX.key,), lost=(each,)) for each in lost)
    return update(BOX, OURS, GROWS, losses=losses, previewed_later=previewed_later)


def test_an_update_loses_what_the_plan_has_shown_and_no_more() -> None:
    assert codes(beyond(losing("a", "b"), losing("a"))) == ["plan.loses"], "permission is not given"
    assert beyond(losing("a", "b"), losing("a"), allow_replace=True) == []
    (found,) = beyond(losing("a"), losing("a", "b"), allow_replace=True)
    assert codes([found]) == ["plan.loses"]
    assert "b goes" in found.what
    assert "--allow-replace)" in found.fix
    assert beyond(losing("a", previewed_later=True), losing("b"), allow_replace=True) == []
    assert codes(permission.refuse_replacements([losing("a", "b")])) == ["plan.loses"] * 2


def test_a_plan_covers_the_same_plan_with_the_permission_that_it_has() -> None:
    def plan(*steps: Step, allowed: bool = True) -> Plan:
        return Plan(spec="lab", purpose="apply", steps=steps, allow_replace=allowed)

    assert permission.beyond_plan(plan(losing("a")), plan(losing("a"))) == []
    assert codes(permission.beyond_plan(plan(losing("a"), allowed=False), plan(losing("a")))) == ["plan.loses"]
    assert codes(permission.beyond_plan(plan(losing("a")), plan(losing("b"), allowed=False))) == ["plan.loses"]
    other = replace(losing("b"), resource=Box(name="b"))
    assert permission.beyond_plan(plan(losing("a")), plan(other)) == [], "the plans have no step in common"


# --- secrets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "observed", "is_lost"), [(BOX, THEIRS, True), (CHEST, OURS, True), (CHEST, THEIRS, False)]
)
def test_a_secret_whose_file_is_not_here_is_lost(
    tmp_path: Path, resource: Box, observed: Observed, is_lost: bool
) -> None:
    secret = Secret(fetch=lambda: "x", path=str(tmp_path / "gone"))
    step = update(resource, observed, Change("material", "old", secret), Change("colour", None, secret))
    found = list(permission.lost_secrets(step))
    assert codes(found) == ["plan.loses"] * is_lost
    assert [each.lost for each in found] == [("material",)] * is_lost
    assert all("its material" in each.what and str(tmp_path) in each.what for each in found)
    (tmp_path / "gone").write_text("x")
    assert list(permission.lost_secrets(step)) == []


def test_nothing_is_lost_of_what_is_not_there() -> None:
    assert list(permission.lost_secrets(Step(resource=CHEST, action=Action.CREATE))) == []


# --- losses of deletions ------------------------------------------------------------------


def loss(kind: str, *ids: str, effect: LossEffect = LossEffect.DELETED, **more: Any) -> Sequence[DeletionLoss]:
    return [DeletionLoss(effect=effect, kind=kind, id=each, **more) for each in ids]


def deletion(*losses: DeletionLoss, name: str = "a") -> Step:
    return Step(resource=Box(name=name), action=Action.DELETE, observed=OURS, deletion_losses=losses)


def refusals(*steps: Step, allowed: Iterable[str] = ()) -> list[Loss]:
    found = permission.refuse_losses(steps, frozenset(allowed))
    assert all(isinstance(each, Loss) for each in found)
    return [each for each in found if isinstance(each, Loss)]


def test_losses_are_refused_by_deletion_effect_and_kind() -> None:
    first = deletion(*loss("port", "1", "2"), *loss("port", "3", effect=LossEffect.CUT_OFF), *loss("volume", "4"))
    found = refusals(first, deletion(*loss("port", "5"), name="b"))
    assert codes(found) == ["plan.loses"] * 4
    assert [(each.where, each.lost) for each in found] == [
        ("box/a", ("port/1", "port/2")),
        ("box/a", ("port/3",)),
        ("box/a", ("volume/4",)),
        ("box/b", ("port/5",)),
    ]
    assert found[0].fix.endswith("--allow-loss port/1 --allow-loss port/2")
    assert [each.lost for each in refusals(first, allowed=["port/1", "port/3", "volume/4"])] == [("port/2",)]


def test_a_loss_has_the_code_and_the_fix_of_its_kind() -> None:
    own = loss("user", "1", code="access.denied", fix="ask them")
    (found,) = refusals(deletion(*own))
    assert (codes([found]), found.fix.partition(",")[0]) == (["access.denied"], "ask them")
    (unread,) = refusals(deletion(*loss("unread", "zone", effect=LossEffect.UNREAD, detail="zones: 503")))
    assert codes([unread]) == ["plan.loses"]
    assert "zones: 503" in unread.what


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("port/web", "port/1"),  # by its name
        ("web", "port/1"),
        ("1", "port/1"),  # by its id
        ("x/3", ""),  # a part of an id is none
        ("role/x/2/3", ""),
        ("role/2/4", "role/2/3"),  # spelt alike
        ("nothing", ""),
    ],
)
def test_an_allowed_loss_that_there_is_not_has_the_one_that_is_meant(given: str, meant: str) -> None:
    step = deletion(*loss("port", "1", name="web"), *loss("role", "2/3"))
    assert permission.unknown_losses([step], {"port/1", "role/2/3"}) == []
    (warning,) = permission.unknown_losses([step], {given})
    assert warning.startswith(f"--allow-loss {given}: ")
    assert (f"did you mean {meant}?" in warning) is bool(meant)


@pytest.mark.parametrize(("owner", "is_offered"), [("", True), ("web", False)])
def test_what_the_spec_declares_may_be_taken_over_but_not_from_another_spec(owner: str, is_offered: bool) -> None:
    kept = Step(resource=CHEST, action=Action.KEEP, observed=replace(THEIRS, id="c1", managed_by=owner))
    (found,) = refusals(deletion(*loss("chest", "c1")), kept)
    assert (f"adopt: permanently on {CHEST.key}" in found.fix) is is_offered
