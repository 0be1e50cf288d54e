"""The completion script of fish in a real fish."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from openstack_prep.cli.main import main
from tests.external.conftest import Programs


def test_fish_completes_commands_options_and_files(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fish = programs.path("fish")
    assert main(["completion", "fish"]) == 0
    script = tmp_path / "completion.fish"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "spec.yaml").touch()

    def completed(line: str) -> set[str]:
        code = f"source {script}; complete --do-complete {line!r}"
        command = [fish, "--no-config", "--command", code]
        done = subprocess.run(
            command, cwd=tmp_path, env=programs.environment, capture_output=True, text=True, check=True
        )
        return {each.partition("\t")[0] for each in done.stdout.splitlines()}

    assert {"--allow-replace", "--all"} <= completed("openstack-prep plan --al")
    assert {"check", "render", "mesh"} <= completed("openstack-prep rke ")
    assert "spec.yaml" in completed("openstack-prep plan sp")
    assert "spec.yaml" in completed("openstack-prep plan --out sp")
