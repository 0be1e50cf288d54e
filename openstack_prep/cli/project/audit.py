"""``audit``: resources in a spec's projects that no spec declares."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from openstack_prep.cli.output import judge_reports, print_result, reading, report, warn, write_html
from openstack_prep.cli.running import open_spec
from openstack_prep.pictures.topology import sources
from openstack_prep.reports.findings import of_drift
from openstack_prep.reports.html_content import page_of_drift
from openstack_prep.verbs.audit import audit

if TYPE_CHECKING:
    from openstack_prep.reports.html import Page


def run(options: argparse.Namespace) -> int:
    judge_reports(options)
    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        found = audit(cloud, spec, jobs=options.jobs)
    lines = [str(drift) for drift in found]
    summary = f"audit {spec.name}: {len(found)} found" if found else f"audit {spec.name}: no drift"
    data = [drift.data() for drift in found]

    def page() -> Page:
        networks = partial(sources.of_spec, cloud, spec, jobs=options.jobs)
        return page_of_drift(spec.name, options.spec, cloud, data, networks)

    left_out = list(found.left_out)
    for each in left_out:
        warn(f"not read: {each}")
    print_result(options, "\n".join([*lines, summary]), {"spec": spec.name, "drift": data, "left_out": left_out})
    code = report(options, (of_drift(drift, spec.places) for drift in found), 1 if found else 0)
    return write_html(options, page, code)
