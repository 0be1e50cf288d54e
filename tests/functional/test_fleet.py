"""A fleet of six projects: planned, applied, changed behind its back, interrupted, killed and destroyed."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.faults.inventory import Cloud
from tests.functional.conftest import Prep

TEAMS = ("red", "blue", "green", "white", "black", "gold")
SPEC = """\
name: ${name}-${team}
variables:
  name: {description: a name that nobody else has}
  team: {description: the team}
  cores: {default: 8}
  password: {secret: true}
project: {name: "${name}-${team}"}
users: [{name: "${name}-${team}", password: "${password}"}]
role_assignments: [{user: "${name}-${team}", role: member}]
quota: {cores: "${cores}", networks: 3}
networks: [{name: nodes}]
"""
SLOW = Fault("neutron", method="POST", path_regex="/networks", delay=1)


@pytest.fixture
def fleet(prep: Prep, devcloud: Devcloud) -> Iterator[str]:
    """A fleet whose teams are in a CSV file, red first; destroyed at the end, and the inventory is as before."""
    before = set(Cloud(devcloud.layout).inventory())
    name = f"fleet-{secrets.token_hex(3)}"
    prep.environment |= {"XDG_STATE_HOME": str(prep.folder / "state"), "OPENSTACK_PREP_VAR_NAME": name}
    (prep.folder / "tenant.yaml").write_text(SPEC)
    (prep.folder / "secrets.yaml").write_text("password: {env: PREP_PASSWORD}\n")
    rows = [f"{team},{8 + 8 * (team == 'blue')},{'canary' if team == 'red' else ''}" for team in TEAMS]
    (prep.folder / "teams.csv").write_text("\n".join(["team,cores,tier", *rows]) + "\n")
    write(prep)
    yield name
    write(prep)
    prep.run("fleet", "destroy", "--yes", "--restart", "fleet.yaml")
    assert set(Cloud(devcloud.layout).inventory()) == before


def write(prep: Prep, **fields: Any) -> None:
    """Write the fleet; ``fields`` are sections of it, and of its targets."""
    target = {
        "for_each": {"row": {"csv": "teams.csv"}},
        "name": "${row.team}",
        "spec": "tenant.yaml",
        "groups": ["${row.tier}"],
        "variables": {"team": "${row.team}", "cores": "${row.cores}"},
        "vars_files": ["secrets.yaml"],
    }
    target |= {key: fields.pop(key) for key in ("cloud",) if key in fields}
    whole = {"name": "teams", "targets": [target], "waves": [{"groups": ["canary"]}]} | fields
    (prep.folder / "fleet.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))


def lines(process: subprocess.CompletedProcess[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the status of each target, and the last line."""
    *targets, last = map(json.loads, process.stdout.splitlines())
    return {each["target"]: each["status"] for each in targets}, last


def fleet_run(prep: Prep, verb: str, *words: str, code: int = 0) -> tuple[dict[str, str], dict[str, Any]]:
    return lines(prep.run("fleet", verb, "--format", "json", *words, "fleet.yaml", code=code))


def everywhere(status: str) -> dict[str, str]:
    return dict.fromkeys(TEAMS, status)


def test_from_nothing_to_nothing(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    assert "valid, 6 targets" in prep.run("fleet", "validate", "fleet.yaml").stdout
    shown = prep.run("fleet", "plan", "--show", "blue", "fleet.yaml").stdout
    assert shown.count("quota/") == 1
    assert "cores 16" in shown
    statuses, last = fleet_run(prep, "plan", "--detailed-exitcode", code=2)
    assert (statuses, last["targets"]) == (everywhere("changes"), {"changes": 6})

    statuses, last = fleet_run(prep, "apply", "--yes")
    assert statuses == everywhere("done")
    assert next(iter(statuses)) == "red"
    assert fleet_run(prep, "apply", "--yes")[0] == everywhere("unchanged")
    assert fleet_run(prep, "audit")[0] == everywhere("unchanged")

    admin: Any = devcloud.admin
    project = admin.identity.find_project(f"{fleet}-green")
    admin.compute.update_quota_set(project, cores=5)
    admin.network.create_security_group(name="foreign", project_id=project.id)
    statuses, _ = fleet_run(prep, "audit", code=1)
    assert statuses == everywhere("unchanged") | {"green": "drift"}
    shown = prep.run("fleet", "audit", "--show", "green", "fleet.yaml", code=1).stdout
    assert f"    quota/{fleet}-green: " in shown
    assert "    security_group/foreign: " in shown
    statuses, _ = fleet_run(prep, "apply", "--yes")
    assert statuses == everywhere("unchanged") | {"green": "done"}
    admin.network.delete_security_group(admin.network.find_security_group("foreign", project_id=project.id))

    prep.run("fleet", "export", "--only", "blue", "--output", "out", "fleet.yaml")
    assert yaml.safe_load((prep.folder / "out/blue.yaml").read_text())["quota"]["cores"] == 16
    assert fleet_run(prep, "destroy", "--yes")[0] == everywhere("done")
    assert fleet_run(prep, "destroy", "--yes")[0] == everywhere("unchanged")


def test_saved_plans_are_applied_exactly(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    prep.run("fleet", "plan", "-o", "kept.plan", "fleet.yaml")
    assert (prep.folder / "kept.plan").stat().st_mode & 0o777 == 0o600
    assert "a-password" not in (prep.folder / "kept.plan").read_text()
    fleet_run(prep, "apply", "--yes", "--only", "gold")
    admin: Any = devcloud.admin
    admin.compute.update_quota_set(admin.identity.find_project(f"{fleet}-gold"), cores=5)
    refused = prep.run("fleet", "apply", "--plan", "kept.plan", "--format", "json", "fleet.yaml", code=2)
    assert lines(refused)[0] == everywhere("done") | {"gold": "refused"}
    assert "gold: refused: kept.plan: gold: " in refused.stderr
    fleet_run(prep, "apply", "--yes", "--only", "gold")
    assert fleet_run(prep, "apply", "--plan", "kept.plan", "--restart")[0] == everywhere("unchanged")
    content = json.loads((prep.folder / "kept.plan").read_text())
    del content["targets"]["red"]["steps"][0]
    (prep.folder / "kept.plan").write_text(json.dumps(content))
    assert "was edited" in prep.run("fleet", "apply", "--plan", "kept.plan", "fleet.yaml", code=2).stderr


def test_a_killed_run_goes_on_with_what_is_left(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    with devcloud.faults(SLOW):
        process = prep.start("fleet", "apply", "--yes", "--jobs", "1", "--format", "json", "fleet.yaml")
        assert process.stdout is not None
        done = [json.loads(process.stdout.readline())["target"] for _ in range(2)]
        process.send_signal(signal.SIGSTOP)  # else it may end while the second run starts
        second = prep.run("fleet", "apply", "--yes", "fleet.yaml", code=1)
        assert f"(process {process.pid}) is at work on the fleet teams" in second.stderr
        process.kill()
        out, _ = process.communicate()
    done += [json.loads(each)["target"] for each in out.splitlines() if each.endswith("}")]
    again = prep.run("fleet", "apply", "--yes", "--format", "json", "fleet.yaml")
    statuses, last = lines(again)
    assert last["done_before"] == done
    assert statuses.keys() == set(TEAMS) - set(done)
    assert f"which has done {len(done)} targets; --restart does all again" in again.stderr
    assert fleet_run(prep, "apply", "--yes")[0] == everywhere("unchanged")


def projects_since(devcloud: Devcloud, mark: Any) -> int:
    asked = devcloud.requests_since(mark)
    return sum((each.service, each.method, each.path) == ("keystone", "POST", "/v3/projects") for each in asked)


def test_a_signal_lets_the_running_target_end_what_it_began(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    mark = devcloud.mark()
    with devcloud.faults(SLOW):
        process = prep.start("fleet", "apply", "--yes", "--jobs", "1", "--format", "json", "fleet.yaml")
        assert process.stdout is not None
        first = process.stdout.readline()
        deadline = time.monotonic() + 120
        while projects_since(devcloud, mark) < 2:  # the second target is at work
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    statuses, last = lines(subprocess.CompletedProcess([], 143, first + out, said))
    assert statuses["red"] == "done"
    assert statuses["blue"] in ("interrupted", "done")
    assert {statuses[each] for each in TEAMS[2:]} == {"not begun"}
    assert last["exit_code"] == 143
    assert "not begun: 4 targets: " in said
    statuses, last = fleet_run(prep, "apply", "--yes")
    assert "red" in last["done_before"]
    assert set(statuses.values()) == {"done"}


def test_after_enough_failures_nothing_further_begins(prep: Prep, fleet: str) -> None:
    rows = (prep.folder / "teams.csv").read_text().splitlines()
    clouds = ["cloud", *("nowhere" if row.startswith(("blue", "green")) else "devcloud-admin" for row in rows[1:])]
    text = "\n".join(f"{row},{cloud}" for row, cloud in zip(rows, clouds, strict=True))
    (prep.folder / "teams.csv").write_text(text)
    write(prep, cloud="${row.cloud}", stop_after=2)
    statuses, last = fleet_run(prep, "apply", "--yes", "--jobs", "1", code=1)
    failed = {"red": "done", "blue": "failed", "green": "failed"}
    assert statuses == everywhere("not begun") | failed
    assert last["targets"] == {"done": 1, "failed": 2, "not begun": 3}
    write(prep)
    (prep.folder / "teams.csv").write_text("\n".join(rows) + "\n")
