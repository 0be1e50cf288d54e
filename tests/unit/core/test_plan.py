"""Plans and reports as data: the shape that scripts rely on, without a word for people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from openstack_prep.base.errors import CloudError, Mistake, PlanRefused
from openstack_prep.core.deletion_loss import DeletionLoss, LossEffect, Unchecked
from openstack_prep.core.model import Action, Adoptable, Change, Key, Observed, Result, Status, Step
from openstack_prep.core.plan import ApplyFailed, Plan, Report, differences, order_of
from tests.unit.box import Box


def step(name: str = "a", action: Action = Action.KEEP, **more: Any) -> Step:
    return Step(resource=Box(name=name), action=action, **more)


def plan(*steps: Step, **more: Any) -> Plan:
    return Plan(spec="lab", purpose="apply", steps=steps, **more)


# --- plans --------------------------------------------------------------------------------

SEEN = Observed(id="id-a", ours=True, outputs={"address": "192.0.2.1"})
BARE = {"resource": "box/a", "action": "keep", "id": None, "changes": []}
LOSS = DeletionLoss(effect=LossEffect.CUT_OFF, kind="port", id="p1", name="web", detail="of them")


@pytest.mark.parametrize(
    ("made", "data"),
    [
        (step(), BARE),
        (step(observed=SEEN), BARE | {"id": "id-a"}),
        (
            step(action=Action.UPDATE, changes=(Change("size", None, 2), Change("colour", frozenset("ba"), ("c",)))),
            BARE
            | {
                "action": "update",
                "changes": [
                    {"field": "size", "before": None, "after": 2},
                    {"field": "colour", "before": ["a", "b"], "after": ["c"]},
                ],
            },
        ),
        (step(action=Action.DELETE, observed=SEEN), BARE | {"action": "delete", "id": "id-a", "address": "192.0.2.1"}),
        (
            step(follows=frozenset({Key("box", "c"), Key("box", "b")}), duplicate_of="x", previewed_later=True),
            BARE | {"follows": ["box/b", "box/c"], "duplicate_of": "x", "previewed_later": True},
        ),
        (
            step(deletion_losses=(LOSS,), unchecked=(Unchecked("trunks", "403"),)),
            BARE
            | {
                "losses": [
                    {
                        "effect": "cut off",
                        "address": "port/p1",
                        "kind": "port",
                        "id": "p1",
                        "name": "web",
                        "detail": "of them",
                        "allowed": True,
                    }
                ],
                "not_checked": [{"what": "trunks", "why": "403"}],
            },
        ),
    ],
)
def test_a_step_as_data(made: Step, data: dict[str, Any]) -> None:
    assert plan(made, allow_loss=frozenset({"port/p1"})).data() == [data]


def test_a_creation_shows_the_fields_of_the_new_resource() -> None:
    (data,) = plan(Step(resource=Box(name="a", size=2), action=Action.CREATE)).data()
    assert data["changes"] == [{"field": "size", "before": None, "after": 2}]


def test_a_plan_as_a_document() -> None:
    mistakes = (Mistake("box/a", "is too big", "make it smaller", code="quota.short"), Mistake("box/b", "is gone"))
    left = step("old", Action.DELETE, reason="no longer in the spec")
    made = plan(step(), refusals=mistakes, undeclared=(left,), warnings=("careful",))
    assert made.document() == {
        "spec": "lab",
        "purpose": "apply",
        "changes_pending": False,
        "steps": [BARE],
        "undeclared": [BARE | {"resource": "box/old", "action": "delete", "reason": "no longer in the spec"}],
        "refusals": made.refusals_data(),
        "warnings": ["careful"],
    }
    assert [(each["code"], each["where"], each["what"], each["fix"]) for each in made.refusals_data()] == [
        ("quota.short", "box/a", "is too big", "make it smaller"),
        (PlanRefused.code, "box/b", "is gone", ""),
    ]
    losing = replace(left, deletion_losses=(LOSS,))
    (data,) = plan(undeclared=(losing,), allow_loss=frozenset({LOSS.address})).undeclared_data()
    assert data["losses"][0]["allowed"]
    pending = plan(step(action=Action.CREATE), left_out=3).document()
    assert (pending["changes_pending"], pending["left_out"]) == (True, 3)
    with pytest.raises(PlanRefused) as caught:
        made.raise_for_refusals()
    assert caught.value.mistakes == mistakes
    plan().raise_for_refusals()


def test_pending_is_what_changes_something() -> None:
    steps = [step(each.value, each) for each in Action]
    assert [each.action for each in plan(*steps).pending] == [each for each in Action if each is not Action.KEEP]
    assert not plan(step())
    assert plan(step(), step("b", Action.DELETE))


def test_what_a_plan_leaves_is_counted() -> None:
    removals = [step(each, Action.DELETE) for each in "ab"]
    assert plan().left_over == ""
    left = plan(undeclared=(*removals, step("c")), left_out=4).left_over.split("; ")
    assert [each.partition(" ")[0] for each in left] == ["2", "4"]
    assert "--prune" in left[0]
    assert "--target" in left[1]


def test_the_table_has_a_line_for_each_change_and_reason_and_for_each_refusal() -> None:
    made = plan(step(), step("b", Action.CREATE), step("long-name", reason="because"), refusals=(Mistake("x", "y"),))
    lines = str(made).splitlines()
    assert [each.split()[:2] for each in lines] == [
        ["+", "box/b"],
        ["=", "box/long-name"],
        ["apply", "lab:"],
        ["!", "x:"],
    ]
    assert lines[1].index("because") == lines[0].index("box/b") + len("box/long-name  ")


def test_a_step_comes_after_its_groups_and_a_group_after_its_steps_in_the_plan() -> None:
    group = frozenset({Key("box", "a"), Key("box", "elsewhere")})
    order = order_of({each.key: each for each in (step("a"), step("b", after=frozenset({group})))})
    assert order.get_ready() == (Key("box", "a"),)
    order.done(Key("box", "a"))
    assert order.get_ready() == (group,)
    order.done(group)
    assert order.get_ready() == (Key("box", "b"),)


# --- differences between two plans --------------------------------------------------------


def planned(**actions: str) -> list[dict[str, Any]]:
    return [{"resource": name, "action": action} for name, action in actions.items()]


@pytest.mark.parametrize(
    ("before", "after", "files", "found"),
    [
        (planned(a="create"), planned(a="create"), (), []),
        (planned(a="create"), planned(a="update"), (), ["a"]),
        (planned(), planned(b="create", a="create"), (), ["a", "b"]),
        (planned(a="create", b="keep"), planned(b="keep"), (), []),  # the second one does nothing
        (planned(a="create", b="create"), planned(a="keep", b="keep"), (), []),  # it was carried out
        (planned(a="create", b="create"), planned(a="keep", b="create"), (), ["a"]),
        (planned(a="create", f="create"), planned(a="keep", f="create"), ("f",), []),  # a file, on another machine
        (planned(a="create", f="keep"), planned(a="keep", f="create"), ("f",), ["f"]),
        (planned(a="create", f="create"), planned(a="update", f="create"), ("f",), ["a"]),
    ],
)
def test_what_a_second_plan_does_that_the_first_one_did_not_show(
    before: list[Any], after: list[Any], files: tuple[str, ...], found: list[str]
) -> None:
    assert differences(before, after, files) == found


# --- reports ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Chest(Box, Adoptable):
    """A box that somebody else may have made."""

    kind: ClassVar[str] = "chest"


FOREIGN = Step(
    resource=Chest(name="c"),
    action=Action.ADOPT,
    observed=Observed(id="c1"),
    changes=(Change("size", frozenset({1}), 2),),
)
RESULTS = (
    Result(step=step("a", Action.CREATE), status=Status.DONE, observed=SEEN, seconds=1.23456),
    Result(step=step("b", Action.UPDATE), status=Status.FAILED, error=CloudError("no room")),
    Result(step=step("c", Action.CREATE), status=Status.SKIPPED, cause="box/b"),
    Result(step=step("d"), status=Status.DONE, observed=Observed(id="id-d")),
    Result(step=step("e", Action.DELETE), status=Status.DONE, observed=Observed(id="id-e")),
    Result(step=FOREIGN, status=Status.DONE, observed=Observed(id="c1")),
)
REPORT = Report(RESULTS, seconds=2.0004)


def test_results_by_what_became_of_them() -> None:
    def names(results: tuple[Result, ...]) -> str:
        return " ".join(each.step.resource.name for each in results)

    assert (names(REPORT.failed), names(REPORT.skipped), names(REPORT.changed)) == ("b", "c", "a e c")
    assert REPORT.outputs == {"box/a": "192.0.2.1", "box/d": "id-d", "chest/c": "c1"}
    assert [Report(()).interrupted, Report((), interrupt=2).interrupted] == [False, True]


def test_a_report_as_data() -> None:
    data = REPORT.data()
    assert data["seconds"] == 2.0
    done, failed, skipped, *_, adopted = data["steps"]
    assert done == {
        "resource": "box/a",
        "action": "create",
        "status": "done",
        "seconds": 1.235,
        "error": None,
        "because_of": None,
        "id": "id-a",
        "ours": True,
        "outputs": {"address": "192.0.2.1"},
    }
    assert (failed["status"], failed["error"], failed["because_of"], "id" in failed) == (
        "failed",
        "no room",
        None,
        False,
    )
    assert (skipped["status"], skipped["error"], skipped["because_of"]) == ("skipped", None, "box/b")
    assert adopted["before"] == {"size": [1]}
    assert [each["resource"] for each in data["steps"] if "before" in each] == ["chest/c"]
    assert adopted["ours"] is False


def test_failures_are_raised_with_the_report() -> None:
    with pytest.raises(ApplyFailed) as caught:
        REPORT.raise_for_failures()
    assert caught.value.report is REPORT
    assert caught.value.code == "apply.failed"
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == ["box/b", "box/c"]
    for each in RESULTS[1:3]:
        with pytest.raises(ApplyFailed):
            Report((RESULTS[0], each)).raise_for_failures()
    Report(RESULTS[:1]).raise_for_failures()


def test_numbers_of_a_summary() -> None:
    words = "".join(each if each.isdigit() or each in ". " else "" for each in REPORT.summary).split()
    assert words == ["3", "1", "1", "1", "2.0"]
    assert ["1" in Report(RESULTS[3:4]).summary, "0" in Report(()).summary] == [True, False]
    assert len(str(REPORT).splitlines()) == len(RESULTS) + 1


# --- taking over --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Described(Box, Adoptable):
    """A box whose description carries the ownership tag."""

    kind: ClassVar[str] = "described"
    description: str | None = None

    def update(self, run: Any, observed: Observed, changes: Any) -> Observed:
        run.append((self, observed, changes))
        return replace(observed, id="taken")


@pytest.mark.parametrize(("own", "text"), [(None, "theirs"), ("mine", "mine"), ("", "")])
def test_what_is_taken_over_keeps_the_text_of_its_description(own: str | None, text: str) -> None:
    run: list[Any] = []
    box = Described(name="a", description=own, adopt="permanently")
    taken = box.take_over(run, Observed(id="1", values={"description": "theirs"}))
    assert taken.id == "taken"
    ((resource, observed, changes),) = run
    assert (resource, observed.ours, observed.id) == (replace(box, description=text), True, "1")
    assert changes == (Change("description", "theirs", text),)
    assert [box.takes_over, replace(box, adopt=True).takes_over, box.can_be_managed] == [True, False, True]
