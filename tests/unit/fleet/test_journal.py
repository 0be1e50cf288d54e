from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import LeaseHeld
from openstack_prep.fleet import load_fleet, runs
from openstack_prep.fleet.file.fields import Fleet
from openstack_prep.fleet.order import TargetOutcome, TargetStatus
from openstack_prep.fleet.runs import choose
from tests.unit.fleet import fleets
from tests.unit.texts import contains


@pytest.fixture(name="fleet")
def _fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return fleets.of(tmp_path, "a", "b", "c")


def wanted(fleet: Fleet) -> tuple[Any, Any]:
    """Return the orders of a fleet, and the files of its specs."""
    chosen = choose(fleet)
    return chosen.orders, chosen.checked.files


def interrupted(fleet: Fleet, *done: str, verb: str = "apply") -> None:
    """Write the journal of a run that has done some targets."""
    with runs.opened(fleet, verb, *wanted(fleet), restart=False) as made:
        for name in done:
            made.note(TargetOutcome(target=name, status=TargetStatus.DONE))
        made.note(TargetOutcome(target="c", status=TargetStatus.FAILED))


def left(fleet: Fleet, verb: str = "apply", restart: bool = False) -> set[str]:
    """Return what a run would leave out."""
    with runs.opened(fleet, verb, *wanted(fleet), restart=restart) as made:
        return set(made.done)


def test_an_interrupted_run_is_continued_again_and_again(fleet: Fleet) -> None:
    interrupted(fleet, "a")
    assert left(fleet) == {"a"}
    interrupted(fleet, "b")
    assert left(fleet) == {"a", "b"}
    assert runs.path_of(fleet).stat().st_mode & 0o777 == 0o600


def test_not_when_it_was_complete_or_of_another_verb_or_to_restart(fleet: Fleet) -> None:
    interrupted(fleet, "a")
    assert left(fleet, restart=True) == set()
    assert left(fleet) == set()
    interrupted(fleet, "a")
    assert left(fleet, verb="destroy") == set()
    interrupted(fleet, "a")
    with runs.opened(fleet, "apply", *wanted(fleet), restart=False) as made:
        made.complete()
    assert left(fleet) == set()
    interrupted(fleet, "a")
    runs.path_of(fleet).unlink()
    assert left(fleet) == set()


def test_what_has_changed_is_done_again(fleet: Fleet, tmp_path: Path) -> None:
    interrupted(fleet, "a", "b")
    rows = (tmp_path / "teams.csv").read_text().replace("b,,,", "b,,,4")
    (tmp_path / "teams.csv").write_text(rows)
    assert left(load_fleet(fleet.path)) == {"a"}
    interrupted(fleet, "a", "b")
    os.utime(tmp_path / "tenant.yaml", ns=(1, 1))
    assert left(fleet) == set()


def test_what_the_environment_or_a_file_changes_is_done_again(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(fleet, "a")
    monkeypatch.setenv("OS_CLOUD", "other")
    assert left(fleet) == set()
    clouds = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    for number in (1, 2):
        clouds.write_text(f"clouds: {{other: {{auth: {{auth_url: http://{number}.test}}}}}}\n")
        assert left(fleet) == set()
        interrupted(fleet, "a")
    assert left(fleet) == {"a"}
    interrupted(fleet, "a")
    monkeypatch.setenv("OPENSTACK_PREP_VAR_CORES", "3")
    assert left(fleet) == set()


def test_a_secret_from_another_file_is_done_again(fleet: Fleet, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("one\n")
    spec = (tmp_path / "tenant.yaml").read_text().replace("{env: HOME}", "{file: secret}")
    (tmp_path / "tenant.yaml").write_text(spec)
    interrupted(fleet, "a")
    assert left(fleet) == {"a"}
    interrupted(fleet, "a")
    os.utime(secret, ns=(1, 1))
    assert left(fleet) == set()


def test_nor_after_a_day_or_with_a_damaged_line(fleet: Fleet) -> None:
    interrupted(fleet, "a")
    path = runs.path_of(fleet)
    path.write_text(path.read_text() + '{"target": "b", "sta')
    assert left(fleet) == {"a"}
    interrupted(fleet)
    lines = [json.loads(each) for each in path.read_text().splitlines() if each.endswith("}")]
    lines[0]["began"] = "2020-01-01T00:00:00+00:00"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert left(fleet) == set()
    path.write_text('[]\n{"began": 3, "format": 1, "verb": "apply"}\n\xff')
    assert left(fleet) == set()


def test_two_runs_at_once(fleet: Fleet) -> None:
    with (
        runs.opened(fleet, "apply", *wanted(fleet), restart=False),
        pytest.raises(LeaseHeld) as caught,
        runs.opened(fleet, "destroy", *wanted(fleet), restart=True),
    ):
        pass
    assert caught.value.code == "lease.held"
    assert contains(str(caught.value), os.getpid(), "apply")


def test_without_a_place_for_it_the_run_works(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with runs.opened(fleet, "apply", *wanted(fleet), restart=False) as made:
        made.note(TargetOutcome(target="a", status=TargetStatus.DONE))
        assert made.path is None
