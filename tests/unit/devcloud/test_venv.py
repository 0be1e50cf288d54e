from __future__ import annotations

from pathlib import Path

from tests.devcloud import venv


def test_environment_counts_only_when_whole_and_current(tmp_path: Path) -> None:
    assert not venv.is_current(tmp_path)
    (tmp_path / "devcloud-stamp").write_text(venv.stamp())
    assert not venv.is_current(tmp_path)  # without an interpreter
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch(mode=0o755)
    assert venv.is_current(tmp_path)
    (tmp_path / "devcloud-stamp").write_text("of old")
    assert not venv.is_current(tmp_path)


def test_requirements_are_pinned_to_the_constraints() -> None:
    pinned = {line.lower() for line in venv.CONSTRAINTS.read_text().splitlines()}
    required = {line.lower() for line in venv.REQUIREMENTS.read_text().splitlines()}
    assert required <= pinned
