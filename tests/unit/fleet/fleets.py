"""A fleet in a folder, for the tests of this room."""

from __future__ import annotations

import json
from pathlib import Path

from openstack_prep.fleet.file.fields import Fleet
from openstack_prep.fleet.file.targets import load_fleet

SPEC = """\
name: team-${team}
variables:
  team: {description: the team}
  cores: {default: 8}
  password: {secret: true, default: {env: HOME}}
flavors: [{name: "${team}", vcpus: "${cores}", ram: 1GiB, disk: 1}]
users: [{name: "${team}", password: "${password}"}]
"""
CSV = """\
name: teams
targets:
  - for_each: {row: {csv: teams.csv}}
    name: ${row.team}
    spec: tenant.yaml
    cloud: ${row.cloud}
    groups: ["${row.tier}"]
    variables: {team: "${row.team}", cores: "${row.cores}"}
"""


def write(folder: Path, fleet: str = CSV, **files: str) -> Path:
    """Write a fleet, its spec and further files, such as ``teams_csv``; return the path of the fleet."""
    (folder / "tenant.yaml").write_text(SPEC)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    path = folder / "fleet.yaml"
    path.write_text(fleet)
    return path


def of_rows(folder: Path, rows: object, **target: str) -> Path:
    """Write a fleet with a target for each row of a command; ``target`` are further fields of it, as in YAML."""
    more = "".join(f"    {key}: {value}\n" for key, value in target.items())
    each = "  - for_each: {row: {command: [cat, rows.json]}}\n    name: a\n    spec: tenant.yaml\n"
    return write(folder, f"name: f\ntargets:\n{each}{more}", rows_json=json.dumps(rows))


def of(folder: Path, *names: str, **fields: object) -> Fleet:
    """Return a fleet with a target of each name; ``a:x`` is target a of the group x."""
    rows = "".join(f"{name},,{group},\n" for name, _, group in (each.partition(":") for each in names))
    more = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return load_fleet(write(folder, CSV + more, teams_csv=f"team,cloud,tier,cores\n{rows}"))
