from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, PlanRefused
from openstack_prep.verbs import approval
from openstack_prep.verbs.plan_file import SavedPlan


def plan(digest: str = "ab" * 32) -> SavedPlan:
    return cast(SavedPlan, SimpleNamespace(path=Path("my.plan"), digest=digest, id=digest[:8]))


@pytest.fixture(autouse=True, name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "openstack-prep" / "approvals"


def is_refused(saved: SavedPlan) -> bool:
    try:
        approval.take(saved)
    except PlanRefused as error:
        return [(each.where, each.code) for each in error.mistakes if each.fix] == [("my.plan", Code.PLAN_UNAPPROVED)]
    return False


def test_it_is_private_and_counts_once(folder: Path) -> None:
    assert is_refused(plan())
    expires = approval.grant(plan())
    assert timedelta(minutes=59) < expires - datetime.now(UTC) <= approval.VALID
    (path,) = folder.iterdir()
    assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert is_refused(plan("cd" * 32))
    assert not is_refused(plan())
    assert is_refused(plan())


def test_of_several_runs_one_gets_it() -> None:
    approval.grant(plan())
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(is_refused, [plan()] * 8)) == [False] + [True] * 7


def edited(**fields: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return edit


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def replaced_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    "edit",
    [
        edited(plan="cd" * 32),
        edited(uid=os.geteuid() + 1),
        edited(expires=(datetime.now(UTC) - timedelta(seconds=1)).isoformat()),
        edited(expires=(datetime.now(UTC) + timedelta(days=1)).isoformat()),
        edited(expires="2026-11-26T00:00:00"),
        edited(expires=1),
        lambda path: path.write_text("[]"),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text(json.dumps({"expires": datetime.now(UTC).isoformat()})),
        lambda path: path.chmod(0o640),
        linked,
        replaced_by_pipe,
    ],
)
def test_what_is_no_approval(folder: Path, edit: Callable[[Path], object]) -> None:
    approval.grant(plan())
    (path,) = folder.iterdir()
    edit(path)
    assert is_refused(plan())


def test_expired_ones_are_removed(folder: Path) -> None:
    approval.grant(plan())
    (path,) = folder.iterdir()
    os.utime(path, (0, 0))
    approval.grant(plan("cd" * 32))
    assert [each.name for each in folder.iterdir()] == [f"{'cd' * 32}.json"]


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(ConfigError):
        approval.grant(plan())
