"""``--html FILE``: what a command prints, also as a page for a browser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openstack_prep.base.errors import PrepError
    from openstack_prep.base.raw import Raw
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.core.plan import Report
    from openstack_prep.pictures.topology.elements import Topology
    from openstack_prep.reports.html import Page, Picture
    from openstack_prep.verbs.live_plan import LivePlan


def add_html(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the result as a page for a browser")


def page_of_plan(plan: LivePlan, data: Raw, spec: Path) -> Page:
    """Return the report of a plan."""
    from openstack_prep.core import text
    from openstack_prep.reports.html import Page
    from openstack_prep.reports.html_content import plan_sections

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
    from openstack_prep.core.plan import Plan
    from openstack_prep.pictures.topology import sources
    from openstack_prep.reports import html_content
    from openstack_prep.reports.html import Page
    from openstack_prep.reports.html_content import report_sections

    done = Plan(spec=plan.spec, purpose=plan.purpose, steps=tuple(each.step for each in report.results))
    networks = html_content.of_topology(lambda: sources.of_spec(cloud, plan.wanted, jobs=jobs))
    good = not (report.failed or report.skipped or report.interrupted)
    return Page(
        title=f"{plan.purpose.capitalize()} of {plan.spec}",
        verdict=report.summary + (", interrupted" if report.interrupted else ""),
        good=good,
        facts=[*([("Spec", str(spec))] if spec else []), *_cloud_facts(cloud)],
        sections=list(report_sections(data, done.data())),
        pictures=[*html_content.of_plan(done), networks],
    )


def _pictures(plan: LivePlan) -> Iterator[Picture]:
    from openstack_prep.pictures.topology import sources
    from openstack_prep.reports import html_content

    run, wanted = plan.run, plan.wanted
    yield from html_content.of_plan(plan)
    if run is not None and wanted is not None:
        yield html_content.of_topology(lambda: sources.of_run(run, wanted))


def page_of_findings(
    title: str,
    verdict: str,
    good: bool,
    facts: Sequence[tuple[str, str]],
    groups: Sequence[tuple[str, Sequence[Raw]]],
    look: Callable[[], Topology] | None,
) -> Page:
    """Return the report of an analysis: its diagnostics in groups, and the networks unless no cloud was asked."""
    from openstack_prep.reports import html_content
    from openstack_prep.reports.html import Page
    from openstack_prep.reports.html_content import findings

    sections = [findings(name, found) for name, found in groups]
    pictures = [html_content.of_topology(look)] if look else []
    return Page(title=title, verdict=verdict, good=good, facts=facts, sections=sections, pictures=pictures)


def page_of_drift(spec: str, path: Path, cloud: Cloud, data: Sequence[Raw], look: Callable[[], Topology]) -> Page:
    """Return the report of an audit."""
    from openstack_prep.reports import html_content
    from openstack_prep.reports.html import Page
    from openstack_prep.reports.html_content import drift_section

    return Page(
        title=f"Audit of {spec}",
        verdict=_count(len(data), "difference") if data else "no drift",
        good=not data,
        facts=[("Spec", str(path)), *_cloud_facts(cloud)],
        sections=[drift_section(data)],
        pictures=[html_content.of_topology(look)],
    )


def page_of_error(options: argparse.Namespace, error: PrepError, subjects: Sequence[str]) -> Page:
    """Return the report of a command that an error has ended before it had a result."""
    from openstack_prep.reports.html import Page
    from openstack_prep.reports.html_content import findings

    return Page(
        title=f"{options.called.capitalize()} failed",
        verdict=_count(len(error.diagnostics), "error"),
        good=False,
        facts=[("File", each) for each in subjects],
        sections=[findings("Errors", [each.data() for each in error.diagnostics])],
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _cloud_facts(cloud: Cloud | None) -> Iterator[tuple[str, str]]:
    if cloud is not None:
        yield "Cloud", cloud.name
        if cloud.region:
            yield "Region", cloud.region
