from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from openstack_prep.base.style import PLAIN, Style
from openstack_prep.cli import progress
from openstack_prep.cli.live import Live
from openstack_prep.cli.progress import Lines, summary
from openstack_prep.cli.running import display
from openstack_prep.core.executor import Event
from openstack_prep.core.model import INTERRUPT, Key, Observed, Resource, Result, Status
from openstack_prep.core.plan import Plan, Report
from openstack_prep.core.planner import plan_apply, plan_destroy
from tests.unit.box import BROKEN, Box
from tests.unit.texts import contains

MIB = 2**20
IMAGE = Key("box", "image")


@pytest.fixture(autouse=True)
def _no_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def plan() -> Plan:
    return plan_apply("lab", [Box(name="a"), Box(name="image")], {Key("box", "a"): Observed(id="id-a")})


def ended(plan: Plan, name: str, status: Status = Status.DONE, error: Exception | None = None) -> Event:
    step = next(step for step in plan if step.resource.name == name)
    observed = None if error else Observed(id=f"id-{name}")
    return Event(step, "ended", Result(step=step, status=status, observed=observed, error=error, seconds=1.25))


def test_a_terminal_gets_a_live_display_and_anything_else_lines(plan: Plan) -> None:
    assert type(display(plan, Terminal())) is Live
    assert type(display(plan, io.StringIO())) is Lines


@pytest.fixture(params=[io.StringIO, Terminal])
def shown(request: pytest.FixtureRequest, plan: Plan) -> Callable[[Callable[[Lines], None]], str]:
    """Let something be told to a display of either sort, and return what stands there, without terminal codes."""

    def show(tell: Callable[[Lines], None]) -> str:
        out = request.param()
        with display(plan, out) as shown:
            tell(shown)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())

    return show


Shown = Callable[[Callable[[Lines], None]], str]


def test_a_line_for_each_step_that_ended(plan: Plan, shown: Shown) -> None:
    assert "  + box/image  (1.2 s)" in shown(lambda display: display.tell(ended(plan, "image")))


def test_what_is_kept_is_not_told(plan: Plan, shown: Shown) -> None:
    assert "box/a" not in shown(lambda display: display.tell(ended(plan, "a")))


def test_a_failure_is_told_even_of_what_was_to_be_kept(plan: Plan, shown: Shown) -> None:
    said = shown(lambda display: display.tell(ended(plan, "a", Status.FAILED, BROKEN)))
    assert contains(said, "box/a", "failed", "400")


def test_a_doubtful_answer_is_told(plan: Plan, shown: Shown) -> None:
    said = shown(lambda display: display.tell(Event(plan.steps[1], "again", note="conflict, retrying (2/5)")))
    assert ". box/image  conflict, retrying (2/5)" in said


def test_what_looks_like_markup_is_shown_as_it_is(plan: Plan, shown: Shown) -> None:
    said = shown(lambda display: display.tell(ended(plan, "image", Status.FAILED, ValueError("[bold]x[/nope]"))))
    assert "[bold]x[/nope]" in said


def test_an_interrupt_leaves_one_line_about_what_was_not_begun(shown: Shown) -> None:
    plan = plan_apply("lab", [Box(name=name) for name in "abcde"], {})

    def skipped(display: Lines) -> None:
        for step in plan:
            display.tell(Event(step, "ended", Result(step=step, status=Status.SKIPPED, cause=INTERRUPT)))

    lines = [line for line in shown(skipped).splitlines() if "box/" in line]
    assert [line.strip() for line in lines] == ["? 5 steps not begun  box/a, box/b, box/c and 2 more"]


def test_lines_have_the_time_in_the_log_of_a_pipeline(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    out, terminal = io.StringIO(), Terminal()
    for each in (out, terminal):
        with display(plan, each) as shown:
            shown.tell(ended(plan, "image"))
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ   \+ box/image", out.getvalue())
    assert "Z   + box/image" not in terminal.getvalue()


def test_a_terminal_shows_what_a_run_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_apply("lab", [Box(name=name) for name in "abcde"], {Key("box", "a"): Observed(id="id-a")})
    with display(plan, Terminal()) as live:
        assert isinstance(live, Live)
        (bar,) = live._steps.tasks
        for step in plan:
            live.tell(Event(step, "started"))
        assert (bar.completed, bar.total) == (0, 4)
        said = re.sub(r"\d+ s", "0 s", live._running_steps())
        assert said == "waiting for box/a (0 s), box/b (0 s), box/c (0 s) and 2 more"
        for name in "abcd":
            live.tell(ended(plan, name))
        assert (bar.completed, bar.total) == (3, 4)
        assert live._running_steps().startswith("waiting for box/e")
        live.tell(ended(plan, "e", Status.SKIPPED))
        assert live._running_steps() == ""
        assert (bar.completed, bar.total) == (3, 4)


def test_lines_tell_of_long_work_now_and_then(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 1, 6, 7, 12])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    out = io.StringIO()
    lines = display(plan, out)
    for done in range(4):
        lines.progress(IMAGE, done * 10 * MIB, 40 * MIB)
    lines.progress(IMAGE, 35 * MIB, None, 70 * MIB)
    assert out.getvalue().splitlines() == ["  . box/image  20 of 40 MiB", "  . box/image  35 MiB, unpacked 70 MiB"]


def test_a_terminal_shows_a_bar_for_each_transfer_while_it_lasts(plan: Plan) -> None:
    out = Terminal()
    with display(plan, out) as live:
        assert isinstance(live, Live)
        live.progress(IMAGE, 10 * MIB, 40 * MIB)
        live.progress(IMAGE, 20 * MIB, 40 * MIB)
        (bar,) = live._bytes.tasks
        assert (bar.description, bar.completed, bar.total) == ("box/image", 20 * MIB, 40 * MIB)
        live.progress(IMAGE, 30 * MIB, 40 * MIB, 80 * MIB)
        assert bar.description == "box/image, unpacked 80 MiB"
        live.tell(ended(plan, "image"))
        assert live._bytes.tasks == []
        assert live._steps.tasks[0].completed == 1


def test_a_transfer_that_is_begun_again_has_one_bar(plan: Plan) -> None:
    with display(plan, Terminal()) as live:
        assert isinstance(live, Live)
        for done in (40, 0, 10):
            live.progress(IMAGE, done * MIB, 40 * MIB)
        (bar,) = live._bytes.tasks
        assert bar.completed == 10 * MIB


def test_a_destroy_names_what_it_keeps_and_why() -> None:
    found = {Key("box", "a"): Observed(id="id-a", ours=True), Key("box", "b"): Observed(id="id-b")}
    plan = plan_destroy("lab", [Box(name="a"), Box(name="b")], found)
    out = io.StringIO()
    with display(plan, out) as shown:
        shown.tell(ended(plan, "b"))
    (kept,) = [step for step in plan if step.reason]
    assert out.getvalue() == f"  = box/b  {kept.reason}\n"


@dataclass(frozen=True, kw_only=True)
class Address(Resource):
    kind: ClassVar[str] = "floating_ip"
    name: str


@dataclass(frozen=True, kw_only=True)
class Config(Resource):
    kind: ClassVar[str] = "install_config"
    name: str


@dataclass(frozen=True, kw_only=True)
class Cluster(Resource):
    kind: ClassVar[str] = "rke_cluster"
    name: str


FOUND = {
    Address(name="api"): Observed(id="f1", outputs={"address": "192.0.2.1"}),
    Address(name="ingress"): Observed(id="f2", outputs={"address": "192.0.2.2"}),
    Config(name="ocp"): Observed(id="x", outputs={"path": str(Path.cwd() / "ocp" / "install-config.yaml")}),
    Cluster(name="one"): Observed(id="y", outputs={"path": "/else/cluster.yml", "next": "rke up"}),
    Cluster(name="two"): Observed(id="z", outputs={"needs": "SSH to 10.1.0.5"}),
}
SPEC = Path("my spec.yaml")


def report(status: Status = Status.DONE) -> Report:
    steps = plan_apply("lab", list(FOUND), {}).steps
    return Report(tuple(Result(step=each, status=status, observed=FOUND[each.resource]) for each in steps))


def test_the_end_of_an_apply_says_what_exists_and_what_comes_next() -> None:
    assert summary(report(), SPEC, PLAIN).splitlines() == [
        "exists:    2 floating IPs, 1 install config, 2 RKE clusters",
        "addresses: api 192.0.2.1, ingress 192.0.2.2",
        "written:   ocp/install-config.yaml, /else/cluster.yml",
        "next:      openstack-prep ipi --spec 'my spec.yaml' -- openshift-install create cluster",
        "next:      rke up",
        "needs:     SSH to 10.1.0.5",
    ]


def test_it_is_wrapped_below_its_own_words() -> None:
    lines = summary(report(), SPEC, Style(width=60)).splitlines()
    assert all(line[:11].strip() == "" or line[:11].rstrip().endswith(":") for line in lines)


def test_a_command_to_paste_is_never_broken() -> None:
    lines = summary(report(), SPEC, Style(width=40)).splitlines()
    assert "next:      openstack-prep ipi --spec 'my spec.yaml' -- openshift-install create cluster" in lines


@pytest.mark.parametrize("status", [Status.FAILED, Status.SKIPPED])
def test_of_a_run_that_failed_there_is_none(status: Status) -> None:
    assert summary(report(status), SPEC, PLAIN) == ""


def test_of_a_run_that_changed_nothing_there_is_none() -> None:
    found = {each.key: observed for each, observed in FOUND.items()}
    steps = plan_apply("lab", list(FOUND), found).steps
    kept = Report(tuple(Result(step=each, status=Status.DONE, observed=each.observed) for each in steps))
    assert summary(kept, SPEC, PLAIN) == ""


def test_what_was_deleted_does_not_exist() -> None:
    pool, gone = Address(name="api"), Address(name="old")
    steps = (*plan_apply("lab", [pool], {}).steps, *plan_destroy("lab", (), {}, [(gone, Observed(id="o", ours=True))]))
    done = Report(tuple(Result(step=each, status=Status.DONE, observed=FOUND[pool]) for each in steps))
    assert summary(done, SPEC, PLAIN).splitlines()[0] == "exists:    1 floating IP"
