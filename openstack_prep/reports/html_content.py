"""What a report says of a plan, a run, findings and drift: from the same data that --format json prints.

So a report holds no secret that JSON does not hold: both have asterisks in its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from openstack_prep.base.errors import PrepError, text_of
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import PRUNABLE
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import text
from openstack_prep.core.model import Action
from openstack_prep.core.plan import Plan, Report
from openstack_prep.pictures import graph as graph_drawing
from openstack_prep.pictures.graph import Graph
from openstack_prep.pictures.topology import drawing, sources
from openstack_prep.pictures.topology.elements import Topology
from openstack_prep.reports.html import Item, Page, PageSection, Picture
from openstack_prep.verbs.opening import LivePlan

# --- content ----------------------------------------------------------------------------------


SHORT = 60
"""Letters of two values that the line of a step shows."""
SIGNS = {"ok": "ok", "warning": "!", "error": "x", "unknown": "?", "done": "ok", "failed": "x", "skipped": "-"}
"""Of the status of a diagnostic or a result; a colour alone would not do."""


def plan_sections(data: Raw) -> Iterator[PageSection]:
    """Yield what a plan would do, what it leaves, and why it may not be carried out."""
    refusals = [_diagnostic(refusal) for refusal in data["refusals"]]
    if refusals:
        yield PageSection(title="Refused", items=refusals)
    if data["warnings"]:
        yield PageSection(title="Warnings", items=[warning(each) for each in data["warnings"]])
    changing = [_step(step) for step in data["steps"] if step["action"] != Action.KEEP]
    if changing:
        yield PageSection(title="Changes", items=changing)
    yield from _undeclared(data["undeclared"])
    same = [_step(step) for step in data["steps"] if step["action"] == Action.KEEP]
    if same:
        yield PageSection(title="Unchanged", items=same, closed=True)


def _undeclared(steps: Sequence[Raw]) -> Iterator[PageSection]:
    """Yield what the spec no longer declares: what apply deletes with --prune, and what it keeps in any case."""
    removals = [_step(step) for step in steps if step["action"] != Action.KEEP]
    removals = [replace(removal, kind="unchanged", sign=PRUNABLE) for removal in removals]
    if removals:
        note = "Managed by the spec and no longer in it; apply deletes them only with --prune."
        yield PageSection(title="No longer declared", items=removals, note=note)
    kept = [_step(step) for step in steps if step["action"] == Action.KEEP]
    if kept:
        note = "No longer in the spec; apply keeps them also with --prune, for the reason that each states."
        yield PageSection(title="No longer declared, kept", items=kept, note=note)


def warning(text: str) -> Item:
    """Return a warning that has no code."""
    return Item(kind="warning", sign=SIGNS["warning"], name=without_logins(text))


def _step(data: Raw) -> Item:
    action = Action(data["action"])
    created = action is Action.CREATE
    shown = [change for change in data["changes"] if not (created and change["after"] in ([], {}))]
    changes = [(each["field"], *_sides(each["before"], each["after"])) for each in shown]
    rows: list[tuple[str, ...]] = [(change[0], change[2]) for change in changes] if created else [*changes]
    names = ("id", "address", "duplicate_of", "reason")
    rows += ((name.replace("_", " "), str(data[name])) for name in names if data.get(name))
    rows += [("after", ", ".join(data["follows"]))] if data.get("follows") else []
    rows += [("later", "decided by the run, right before it")] if data.get("previewed_later") else []
    return Item(
        kind="unchanged" if action is Action.KEEP else action.value,
        sign=action.symbol,
        name=data["resource"],
        summary="; ".join(
            f"{field} {after}" if created else _shortly(field, before, after) for field, before, after in changes
        ),
        rows=rows,
    )


def _shortly(field: str, before: str, after: str) -> str:
    """Return a change for the line of a step: without its values if they are long."""
    return f"{field} {before} \N{RIGHTWARDS ARROW} {after}" if len(before) + len(after) <= SHORT else field


def _sides(before: object, after: object) -> tuple[str, str]:
    """Return both values of a change; of two lists only what they do not share, one part per line."""
    if not (isinstance(before, list) and isinstance(after, list)):
        return value_text(before), value_text(after)
    lost, new = ([each for each in one if each not in other] for one, other in ((before, after), (after, before)))
    if not lost and not new:
        return value_text(before), value_text(after)
    return "\n".join(map(value_text, lost)) or "\N{EN DASH}", "\n".join(map(value_text, new)) or "\N{EN DASH}"


def value_text(value: object) -> str:
    """Return a value of a plan as a text: lists and mappings in one line."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, list):
        return ", ".join(map(value_text, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {value_text(each)}" for name, each in value.items()) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def report_sections(data: Raw, planned: Sequence[Raw]) -> Iterator[PageSection]:
    """Yield what a run has done, what failed first; ``planned`` are the steps of its plan, for what they change."""
    changes = {each["resource"]: _step(each).rows for each in planned}
    done = [step for step in data["steps"] if step["action"] != Action.KEEP or step["status"] != "done"]
    wrong = [_result(each, changes) for each in done if each["status"] != "done"]
    if wrong:
        yield PageSection(title="Failed or skipped", items=wrong)
    right = [_result(each, changes) for each in done if each["status"] == "done"]
    if right:
        yield PageSection(title="Done", items=right)
    yield from _undeclared(data.get("undeclared", ()))
    same = [_result(step, {}) for step in data["steps"] if step not in done]
    if same:
        yield PageSection(title="Unchanged", items=same, closed=True)


def _result(data: Raw, changes: Mapping[str, Sequence[tuple[str, ...]]]) -> Item:
    action, status = Action(data["action"]), data["status"]
    kept = action is Action.KEEP and status == "done"
    rows = [(name, str(data[name])) for name in ("error", "because_of", "id") if data.get(name)]
    rows += [(name, str(value)) for name, value in (data.get("outputs") or {}).items()]
    rows += [(f"before: {name}", value_text(value)) for name, value in (data.get("before") or {}).items()]
    seconds = f"{data['seconds']:.1f} s" if not kept and status != "skipped" else ""
    why = data.get("error") or (f"because of {data['because_of']}" if data.get("because_of") else "")
    return Item(
        kind="unchanged" if kept else action.value if status == "done" else status,
        sign=action.symbol,
        name=data["resource"],
        summary="; ".join(filter(None, (why.partition("\n")[0], seconds))),
        rows=[*((name.replace("_", " "), value) for name, value in rows), *changes.get(data["resource"], ())],
    )


def findings(title: str, data: Iterable[Raw]) -> PageSection:
    """Return diagnostics, as check and verify have them."""
    return PageSection(title=title, items=list(map(_diagnostic, data)))


def _diagnostic(data: Raw) -> Item:
    rows = [(label, str(data[label])) for label in ("why", "fix", "code") if data.get(label)]
    return Item(
        kind=data["status"], sign=SIGNS[data["status"]], name=data["where"] or "", summary=data["what"], rows=rows
    )


def drift_section(data: Sequence[Raw]) -> PageSection:
    """Return what audit found."""
    items = [
        Item(kind=each["code"], sign="x", name=each["resource"], summary=each["what"], rows=[("code", each["code"])])
        for each in data
    ]
    return PageSection(title="Drift", items=items, note="" if items else "None: everything is as the spec declares it.")


# --- picture ----------------------------------------------------------------------------------


def of_plan(plan: Plan) -> Iterator[Picture]:
    """Yield what the resources of a plan need, coloured by what the plan does."""
    if plan.steps:
        yield _drawn("Dependency graph", lambda: _graph(plan))


MOST_DRAWN = 60
"""Resources of a graph that a person can read; of a larger plan only what changes is drawn."""


def _graph(plan: Plan) -> Picture:
    title, changed = "Dependency graph", {step.key for step in plan.pending}
    is_large = len(plan.steps) > MOST_DRAWN
    note = f"The {len(plan.steps) - len(changed)} resources that stay unchanged are not drawn." if is_large else ""
    if is_large and not 0 < len(changed) <= MOST_DRAWN:
        part = "openstack-prep graph --plan --target KIND/NAME draws one and what it needs"
        return Picture(title=title, note=f"{len(plan.steps)} resources are too many for one picture; {part}.")
    shown = changed.__contains__ if is_large else None
    graph = Graph.of([step.resource for step in plan.steps], plan, shown)
    return Picture(title=title, note=note, svg=graph_drawing.draw(graph, title, embedded=True))


def of_topology(look: Callable[[], Topology]) -> Picture:
    """Return the networks; or why they are not drawn."""
    return _drawn("Networks", lambda: _networks(look()))


def _networks(found: Topology) -> Picture:
    title = "Networks"
    if not (found.networks or found.servers or found.clusters):
        return Picture(title=title, note=f"There are no networks in {found.subject}.")
    return Picture(title=title, svg=drawing.draw(found, embedded=True))


def _drawn(title: str, draw: Callable[[], Picture]) -> Picture:
    """Return a drawing; or why there is none."""
    try:
        return draw()
    except Exception as error:  # noqa: BLE001 - a fault of the drawing must not cost the report
        return Picture(title=title, note=f"Not drawn: {text_of(error)}")


# --- pages of commands ------------------------------------------------------------------


def page_of_plan(plan: LivePlan, data: Raw, spec: Path) -> Page:
    """Return the report of a plan."""
    pending = text.counts(plan.steps)
    return Page(
        title=f"Plan to {plan.purpose} {plan.spec}",
        verdict=f"refused: {_count(len(plan.refusals), 'reason')}" if plan.refusals else pending,
        good=not plan.refusals,
        facts=[("Spec", str(spec)), *_cloud_facts(plan.run.admin if plan.run else None)],
        sections=list(plan_sections(data)),
        pictures=list(_pictures(plan)),
    )


def page_of_run(cloud: Cloud, plan: LivePlan, report: Report, data: Raw, spec: Path | None, jobs: int) -> Page:
    """Return the report of a plan that was carried out.

    The steps are those of the report: the run may have created another plan. The networks are read again, because what
    was read for the first plan is outdated.
    """
    done = Plan(spec=plan.spec, purpose=plan.purpose, steps=tuple(result.step for result in report.results))
    networks = of_topology(lambda: sources.of_spec(cloud, plan.wanted, jobs=jobs))
    good = not (report.failed or report.skipped or report.interrupted)
    return Page(
        title=f"{plan.purpose.capitalize()} of {plan.spec}",
        verdict=report.summary + (", interrupted" if report.interrupted else ""),
        good=good,
        facts=[*([("Spec", str(spec))] if spec else []), *_cloud_facts(cloud)],
        sections=list(report_sections(data, done.data())),
        pictures=[*of_plan(done), networks],
    )


def _pictures(plan: LivePlan) -> Iterator[Picture]:

    run, wanted = plan.run, plan.wanted
    yield from of_plan(plan)
    if run is not None and wanted is not None:
        yield of_topology(lambda: sources.of_run(run, wanted))


def page_of_findings(
    title: str,
    verdict: str,
    good: bool,
    facts: Sequence[tuple[str, str]],
    groups: Sequence[tuple[str, Sequence[Raw]]],
    networks: Callable[[], Topology] | None,
) -> Page:
    """Return the report of an analysis: its diagnostics in groups, and the networks unless no cloud was asked."""
    sections = [findings(name, found) for name, found in groups]
    pictures = [of_topology(networks)] if networks else []
    return Page(title=title, verdict=verdict, good=good, facts=facts, sections=sections, pictures=pictures)


def page_of_drift(spec: str, path: Path, cloud: Cloud, data: Sequence[Raw], networks: Callable[[], Topology]) -> Page:
    """Return the report of an audit."""
    return Page(
        title=f"Audit of {spec}",
        verdict=_count(len(data), "difference") if data else "no drift",
        good=not data,
        facts=[("Spec", str(path)), *_cloud_facts(cloud)],
        sections=[drift_section(data)],
        pictures=[of_topology(networks)],
    )


def page_of_error(command: str, error: PrepError, subjects: Sequence[str]) -> Page:
    """Return the report of a command that an error has ended before it had a result."""
    return Page(
        title=f"{command.capitalize()} failed",
        verdict=_count(len(error.diagnostics), "error"),
        good=False,
        facts=[("File", subject) for subject in subjects],
        sections=[findings("Errors", [diagnostic.data() for diagnostic in error.diagnostics])],
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _cloud_facts(cloud: Cloud | None) -> Iterator[tuple[str, str]]:
    if cloud is not None:
        yield "Cloud", cloud.name
        if cloud.region:
            yield "Region", cloud.region
