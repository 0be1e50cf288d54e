"""``fleet validate``: the mistakes in a fleet and all of its specs that can be found without a cloud."""

from __future__ import annotations

import argparse

from openstack_prep.cli.project.validate import check
from openstack_prep.cli.running import print_result
from openstack_prep.core.text import counted
from openstack_prep.fleet import running
from openstack_prep.fleet.commands.opening import open_fleet, print_warnings


def run(options: argparse.Namespace) -> int:
    chosen = running.choose(open_fleet(options), options.only, examine=check)
    print_warnings(chosen)
    checked, targets = chosen.checked, {each.name: each for wave in chosen.waves for each in wave.targets}
    width = max(map(len, targets))
    lines = []
    for wave in chosen.waves:
        lines += [f"{wave.title}:"] if len(chosen.waves) > 1 else []
        for each in wave.targets:
            place = ", ".join(filter(None, (checked.clouds[each.name], each.region)))
            where = f" in {place}" if place else ""
            spec, number = checked.specs[each.name], checked.resources[each.name]
            lines.append(f"  {each.name:<{width}}  spec {spec}, {number} resources{where}")
    lines.append(f"{options.fleet}: valid, {counted(len(targets), 'target')}")
    data = {
        "fleet": chosen.fleet.name,
        "waves": [{"title": wave.title, "targets": [each.name for each in wave.targets]} for wave in chosen.waves],
        "specs": checked.specs,
        "warnings": list(checked.warnings),
    }
    print_result(options, "\n".join(lines), data)
    return 0
