"""Whole plans and reports as people see them: data/*.txt; OPENSTACK_PREP_STORE=1 writes them anew."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from openstack_prep.base.errors import CloudError, Mistake
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.base.style import Style
from openstack_prep.core import text
from openstack_prep.core.deletion_loss import DeletionLoss, LossEffect
from openstack_prep.core.model import Action, Change, Key, Observed, Resource, Result, Status, Step, Texts
from openstack_prep.core.plan import Plan, Report
from openstack_prep.core.planner import plan_apply, plan_destroy
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.image.image import Image
from tests.unit.box import Box
from tests.unit.texts import Wording

Stored = Callable[[str, str], None]

PROJECT = Project(name="ocp-tenant", description="OpenShift 4 lab")
USER = User(name="ocp-user", password=Secret("correct-horse"))
QUOTA = Quota(project="ocp-tenant", cores=40, ram=102400)
API = FloatingIP(name="api", project="ocp-tenant", external_network="external", address="192.168.122.164")
CRATE = Box(name="crate", material="oak")
SPEC = [PROJECT, USER, QUOTA, API, CRATE]

THERE = {
    PROJECT.key: Observed(id="p1", ours=True, values={"description": "OpenShift 4 lab"}),
    QUOTA.key: Observed(id="p1", ours=True, values={"cores": 20, "ram": 51200}),
    CRATE.key: Observed(id="b1", values={"material": "tin"}),
}


def steps() -> dict[str, Step]:
    return {str(step.key): step for step in plan_apply("ocp4", SPEC, THERE, allow_replace=True)}


def report() -> Report:
    made = steps()
    api = Observed(id="f1", ours=True, outputs={"address": "192.168.122.164"})
    refused = CloudError("POST identity/users: 409 in use (request req-1)")
    return Report(
        (
            Result(step=made["project/ocp-tenant"], status=Status.DONE, observed=THERE[PROJECT.key]),
            Result(step=made["user/ocp-user"], status=Status.FAILED, error=refused, seconds=1.5),
            Result(step=made["quota/ocp-tenant"], status=Status.SKIPPED, cause="user/ocp-user"),
            Result(step=made["floating_ip/api"], status=Status.DONE, observed=api, seconds=0.25),
            Result(step=made["box/crate"], status=Status.FAILED, error=KeyError("name")),
        ),
        seconds=2.04,
    )


@pytest.mark.parametrize(
    ("new", "fields"),
    [
        (
            CloudsEntry(path="/x", cloud="c", user="u", project="p"),
            {"project", "project_domain", "user", "user_domain"},
        ),
        (ApplicationCredential(name="n", clouds_yaml="/x", cloud="c", lifetime=9), {"roles", "lifetime"}),
        (Image(name="i", min_disk=1), {"min_disk"}),
    ],
)
def test_what_everything_new_has_is_not_shown(new: Resource, fields: set[str]) -> None:
    """Such as that its file is private, or that it is managed."""
    made = plan_apply("lab", [new], {})
    ((step,), line) = made.data(), made.table.splitlines()[0]
    assert {each["field"] for each in step["changes"]} == fields
    assert not re.search(r"\b(mode|managed|status|secret)\b", line)


# --- whole texts --------------------------------------------------------------------------


def test_a_plan(stored: Stored) -> None:
    mistake = Mistake(
        "spec.yaml:9: quota/ocp-tenant", "cores: 40 is less than the 44 in use", "free some, or ask for more"
    )
    there = THERE | {CRATE.key: replace(THERE[CRATE.key], ours=True)}
    stored("plan.txt", str(plan_apply("ocp4", SPEC, there, mistakes=[mistake])))


def test_a_plan_as_data(stored: Stored) -> None:
    stored("plan.json", json.dumps(plan_apply("ocp4", SPEC, THERE).data(), indent=2))


def test_a_plan_with_nothing_to_do(stored: Stored) -> None:
    stored("plan_empty.txt", str(plan_apply("ocp4", [PROJECT], THERE)))


def test_a_plan_of_nothing() -> None:
    assert str(plan_apply("ocp4", [], {})) == "apply ocp4: nothing"


def test_a_destruction(stored: Stored) -> None:
    stored("plan_destroy.txt", str(plan_destroy("ocp4", SPEC, THERE)))


def test_a_report(stored: Stored) -> None:
    stored("report.txt", str(report()))


def test_a_report_as_data(stored: Stored) -> None:
    stored("report.json", json.dumps(report().data(), indent=2))


def test_what_there_is(stored: Stored) -> None:
    found: dict[Key, Observed | None] = {each.key: THERE.get(each.key) for each in SPEC}
    found[API.key] = Observed(id="f1", ours=True, outputs={"address": "192.168.122.164"})
    stored("show.txt", text.observed_table(found))


@pytest.mark.parametrize(
    "error",
    [
        UnicodeEncodeError("latin-1", "ключ", 0, 4, "not in range"),
        UnicodeDecodeError("utf-8", b"\xff-key", 0, 1, "invalid"),
        ValueError("https://me:key@host"),
    ],
)
def test_an_error_of_others_repeats_no_value(error: Exception) -> None:
    failed = Result(step=Step(resource=CRATE, action=Action.CREATE), status=Status.FAILED, error=error)
    for shown in (text.result_line(failed, 9), str(text.result_data(failed))):
        assert type(error).__name__ in shown
        assert not {"ключ", "key"} & set(re.findall(r"\w+", shown))


@pytest.mark.parametrize("shown", [str, Plan.data, repr])
def test_no_plan_shows_a_secret(shown: Callable[[Plan], Any]) -> None:
    before = {USER.key: Observed(id="u1", values={"password": Secret("old-horse")})}
    for observed in ({}, before):
        assert "horse" not in str(shown(plan_apply("ocp4", [USER], observed)))


# --- values -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    volumes: int | None = None
    gigabytes: int | None = None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "(unset)"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        ("", '""'),
        ("größe", "größe"),
        (["a", 1, None], "[a, 1, (unset)]"),
        (frozenset({"b", "a"}), "[a, b]"),
        ({"a": [1, 2], "b": "x"}, "{a: [1, 2], b: x}"),
        (Limits(volumes=3), "{volumes: 3}"),
        (Secret("correct-horse"), HIDDEN),
        ("two\nlines", r"'two\nlines'"),
        ("\x1b[31mred", r"'\x1b[31mred'"),
        ("x" * 61, "x" * 57 + "..."),
        ("192.0.2.100, " * 10, "192.0.2.100, 192.0.2.100, 192.0.2.100, 192.0.2.100..."),
    ],
)
def test_a_value_is_shown_as_a_person_would_write_it(value: Any, shown: str) -> None:
    assert text.show(value) == shown


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (("a", 1), ["a", 1]),
        (frozenset({2, "a"}), [2, "a"]),
        ({"a": ({"b": None},)}, {"a": [{"b": None}]}),
        (Limits(volumes=3), {"volumes": 3}),
        (Secret("correct-horse"), HIDDEN),
    ],
)
def test_a_value_as_plain_data(value: Any, plain: Any) -> None:
    assert text.plain(value) == plain


def test_a_change_from_nothing_is_said() -> None:
    step = Step(resource=CRATE, action=steps()["box/crate"].action, changes=(Change("size", None, 3),))
    assert text.step_line(step, 9) == "-/+ box/crate  size (unset) -> 3"


def test_what_is_to_be_typed_is_told_whole() -> None:
    observed = Observed(id="x", outputs={"next": "rke up " * 50, "names": "n" * 500})
    (line,) = text.observed_table({Key("box", "a"): observed}).splitlines()
    assert "rke up " * 50 in line
    assert "n" * 60 not in line


def test_of_a_mapping_only_what_differs_is_shown() -> None:
    before, after = {"count": 3, "flavor": "a", "old": 1}, {"count": 4, "flavor": "a", "new": {"x": 1}}
    said = text.change_text(Change("parameters", before, after))
    assert said == "parameters.count 3 -> 4, parameters.old 1 -> (unset), parameters.new (unset) -> {x: 1}"


def test_of_a_set_only_what_comes_and_goes_is_shown() -> None:
    change = Change("rules", frozenset({"a", "b"}), frozenset({"b", "c", "d"}))
    assert text.change_text(change) == "rules +[c, d] -[a]"


@pytest.mark.parametrize("ours", [True, False])
def test_a_changed_quota_of_a_foreign_project_is_reported_with_its_former_limits(ours: bool) -> None:
    there = Observed(id="p1", ours=ours, values={"cores": 20, "ram": 102400})
    (step,) = plan_apply("ocp4", [QUOTA], {QUOTA.key: there})
    done = Report((Result(step=step, status=Status.DONE, observed=there),))
    assert ("was cores 20" in str(done)) is not ours
    assert done.data()["steps"][0].get("before") == (None if ours else {"cores": 20})


# --- files --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Page(Box):
    """A box with a file, of which a plan shows the lines that change."""

    def texts(self, observed: Observed) -> Texts:
        return Texts("a\nb\nc\nd\ne\nf\ng\nold\n", "A\nb\nc\nd\ne\nf\ng\nnew\n", frozenset({"colour"}))


def page(*changes: Change) -> Step:
    return Step(resource=Page(name="a"), action=Action.UPDATE, observed=Observed(id="1"), changes=changes)


def test_of_a_file_the_changed_lines_are_shown_in_place_of_its_fields() -> None:
    lines = text.step_line(page(Change("colour", "x", "y"), Change("size", 1, 2)), 5).splitlines()
    assert lines[0] == "  ~ box/a  size 1 -> 2"
    assert [each.strip() for each in lines[1:]] == ["-a", "+A", "b", "c", "...", "f", "g", "-old", "+new"]
    assert {len(each) - len(each.lstrip()) for each in lines[1:] if each.strip()[0] in "+-."} == {6}
    assert text.step_line(page(), 5) == "  ~ box/a"


def test_changed_lines_have_the_colours_of_what_comes_and_goes() -> None:
    lines = text.step_line(page(Change("colour", "x", "y")), 5, Style(color=True)).splitlines()
    colours = [each.partition("\x1b[")[2].partition("m")[0] for each in lines[1:]]
    assert colours == ["31", "32", "0", "0", "0", "0", "0", "31", "32"]


def test_a_loss_stands_below_its_deletion() -> None:
    loss = DeletionLoss(effect=LossEffect.CUT_OFF, kind="port", id="1")
    made = Step(resource=Box(name="a"), action=Action.DELETE, observed=Observed(id="1"), deletion_losses=(loss,))
    assert text.step_line(made, 5, Style(ids=True)).splitlines() == ["  - box/a  1", "      cut off: port/1"]


# --- what exists --------------------------------------------------------------------------


def test_what_exists_is_coloured_by_whose_it_is_and_wrapped_below_its_words(wording: Wording) -> None:
    found = {
        Key("box", "mine"): Observed(id="1", ours=True, outputs={"names": "word " * 20}),
        Key("box", "a"): Observed(id="box/a box/a", kept_because="it is needed"),
        Key("box", "none"): None,
    }
    lines = text.observed_table(found, Style(color=True, width=60)).splitlines()
    assert lines[0].startswith("\x1b[32mbox/mine\x1b[0m  1  names word")
    assert lines[1].startswith(" " * 10 + "word")
    wording(lines[-2])
    assert lines[-1] == "\x1b[2mbox/none\x1b[0m  -"
    assert text.observed_table({}) == ""


# --- results ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Result(step=Step(resource=CRATE, action=Action.CREATE), status=Status.SKIPPED, cause="a"), "?"),
        (Result(step=Step(resource=CRATE, action=Action.CREATE), status=Status.FAILED, error=KeyError("a")), "!"),
        (Result(step=Step(resource=CRATE, action=Action.KEEP, reason="because"), status=Status.DONE), "= because"),
        (
            Result(step=Step(resource=CRATE, action=Action.KEEP), status=Status.DONE, observed=Observed(id="1")),
            "= note",
        ),
        (
            Result(
                step=Step(resource=CRATE, action=Action.DELETE, observed=Observed(id="1", outputs={"address": "::1"})),
                status=Status.DONE,
            ),
            "- address ::1  note",
        ),
        (
            Result(
                step=Step(resource=CRATE, action=Action.CREATE),
                status=Status.DONE,
                observed=Observed(id="5 ports", outputs={"number": "5", "mac": "fa:16"}),
            ),
            "+ 5 ports  mac fa:16  note",
        ),
    ],
)
def test_a_result_says_what_became_of_it(result: Result, line: str) -> None:
    symbol, _, words = line.partition(" ")
    said = text.result_line(result, 9, note="note")
    assert said.split()[:2] == [symbol, "box/crate"]
    if words:
        assert said.partition("box/crate  ")[2] == words


@pytest.mark.parametrize(("output", "is_whole"), [("next", True), ("names", False)])
def test_a_command_in_a_result_is_never_broken_into_lines(output: str, is_whole: bool) -> None:
    made = Step(resource=CRATE, action=Action.CREATE)
    result = Result(step=made, status=Status.DONE, observed=Observed(id="1", outputs={output: "rke up " * 9}))
    assert (len(text.result_line(result, 9, Style(width=60)).splitlines()) == 1) is is_whole


def test_a_finished_stack_says_what_a_person_reads() -> None:
    outputs = {
        "api_address": "10.0.0.5",
        "api_port": "6443",
        "floating_address": "null",
        "join_config": "token: x\nserver: y\n",
        "names": '["a", "b"]',
        "nodes": '{"a": "10.0.0.6"}',
        "one": '["10.0.0.7"]',
    }
    made = Step(resource=CRATE, action=Action.CREATE)
    line = text.result_line(Result(step=made, status=Status.DONE, observed=Observed(id="1", outputs=outputs)), 0)
    assert line.endswith("  api_address 10.0.0.5  api_port 6443  (5 more outputs: openstack-prep show)")


def test_numbers_and_their_words() -> None:
    assert [text.counted(each, "port") for each in (0, 1, 2)] == ["0 ports", "1 port", "2 ports"]
    steps = [Step(resource=CRATE, action=each) for each in (Action.KEEP, Action.CREATE, Action.KEEP, Action.DELETE)]
    assert text.counts(steps) == "1 to create, 1 to delete, 2 unchanged"
    assert (text.width_of(steps), text.width_of([])) == (9, 0)


def test_the_login_in_a_url_that_somebody_has_written_is_never_shown() -> None:
    """What exists is shown as it was before: no field of the spec knows that its password is a secret."""
    url = "http://admin:hunter2@proxy:3128"
    for value in (url, {"HTTPS_PROXY": url}, (url,), frozenset({url})):
        change = Change("variables", value, None)
        assert "hunter2" not in text.change_text(change, 500) + json.dumps(text.plain(value))
        assert "proxy:3128" in text.show(value)
