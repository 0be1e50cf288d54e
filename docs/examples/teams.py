"""Prepare a project per team from a CSV file: python teams.py [--destroy] teams.csv

The file has a line per team, such as ``web,ana ben,8,32`` below the heading ``team,members,cores,ram``; ram is in GiB.
Members are users that exist. Each team gets the project team-NAME, with a quota, a network and the role member for its
members. A second run changes nothing. A team that fails does not stop the others; the exit code is then 1.
"""

from __future__ import annotations

import csv
import sys

import openstack_prep as prep


def resources(row: dict[str, str]) -> list[prep.Resource]:
    """Return what one team gets; the list belongs to the project in it."""
    name = f"team-{row['team']}"
    return [
        prep.Project(name=name, description=f"Team {row['team']}"),
        *(prep.RoleAssignment(user=member, role="member", project=name) for member in row["members"].split()),
        prep.Quota(cores=int(row["cores"]), ram=int(row["ram"]) * 1024, project=name),
        prep.Network(name="team", project=name),
        prep.Subnet(name="team", network="team", cidr="10.20.0.0/24", project=name),
    ]


def main(arguments: list[str]) -> int:
    """Prepare or destroy the projects of all teams; return the exit code."""
    destroy = "--destroy" in arguments
    (path,) = (each for each in arguments if each != "--destroy")
    cloud = prep.connect()  # the entry that OS_CLOUD names
    failed = 0
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            wanted = resources(row)
            try:
                report = prep.destroy(cloud, wanted) if destroy else prep.apply(cloud, wanted)
                report.raise_for_failures()
                print(f"team {row['team']}: {report.summary}")
            except prep.PrepError as error:
                print(f"team {row['team']}: {error}", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
