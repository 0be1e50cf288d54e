"""``fleet audit`` and ``fleet export``: what differs from the specs, and existing projects as specs."""

from __future__ import annotations

import argparse
import sys

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.output_folder import output_folder, write_marked
from openstack_prep.cli.running import exit_on_second_signal
from openstack_prep.cli.style import style_of
from openstack_prep.fleet import running
from openstack_prep.fleet.commands import html, tables
from openstack_prep.fleet.commands.opening import choose, executors, refuse_unknown
from openstack_prep.fleet.commands.output import end, print_texts, sizes
from openstack_prep.fleet.commands.progress import display
from openstack_prep.fleet.order import Options, TargetStatus
from openstack_prep.verbs.export import refuse_unknown_kinds


def run_audit(options: argparse.Namespace) -> int:
    page = html.judge(options)
    chosen = choose(options)
    refuse_unknown(options.show, chosen)
    style = style_of(options, sys.stdout)
    wanted = Options(style=style if options.show or options.all else page, data=options.format == "json")
    quiet = options.format != "json"
    with (
        executors(options, chosen) as made,
        exit_on_second_signal(options),
        display(options, style, *sizes(chosen), quiet=quiet) as shown,
    ):
        result = running.run(chosen, "audit", wanted, jobs=options.jobs, executor=made, tell=shown.tell)
    text = tables.table(chosen, result, style, options.show)
    print_texts(options, text, tables.total(result, f"audit {chosen.fleet.name}", "without drift"))
    return html.write(options, chosen, result, "audit", end(options, chosen, result, "audit"))


def run_export(options: argparse.Namespace) -> int:
    folder = output_folder(options.output)
    if folder is None and options.format == "text":
        raise ConfigError("fleet export: --output DIR is missing; name a folder for the specs, or use --format json")
    refuse_unknown_kinds(options.kind)
    chosen = choose(options)
    wanted = Options(kinds=tuple(options.kind), data=options.format == "json")
    style = style_of(options, sys.stdout)
    with (
        executors(options, chosen) as made,
        exit_on_second_signal(options),
        display(options, style, *sizes(chosen)) as shown,
    ):
        result = running.run(chosen, "export", wanted, jobs=options.jobs, executor=made, tell=shown.tell)
    name = chosen.fleet.name
    if folder is not None:
        texts = {f"{each.target}.yaml": each.table for each in result.of(TargetStatus.DONE)}
        # files of earlier exports and of other targets are kept
        write_marked(folder, f"# [openstack-prep:fleet/{name}]", texts, exactly=False)
    print_texts(options, tables.total(result, f"export {name}"))
    return end(options, chosen, result, "export")
