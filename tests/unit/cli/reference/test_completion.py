from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from openstack_prep.cli.main import main


def test_bash_completes_commands_options_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "spec.yaml").touch()

    def completed(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        call = f"_shtab_openstack_prep openstack-prep '{words[-1]}' '{words[-2]}'"
        code = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; {call}; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    assert {"--allow-replace", "--all"} <= completed("openstack-prep", "plan", "--al")
    assert completed("openstack-prep", "rke", "") >= {"check", "render", "mesh"}
    assert completed("openstack-prep", "plan", "sp") == {"spec.yaml"}
    assert completed("openstack-prep", "plan", "--out", "sp") == {"spec.yaml"}


def test_zsh_has_its_own_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef openstack-prep")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands_options_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    script = tmp_path / "completion.fish"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "spec.yaml").touch()

    def completed(line: str) -> set[str]:
        code = f"source {script}; complete --do-complete {line!r}"
        done = subprocess.run(["fish", "-N", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return {each.partition("\t")[0] for each in done.stdout.splitlines()}

    assert {"--allow-replace", "--all"} <= completed("openstack-prep plan --al")
    assert {"check", "render", "mesh"} <= completed("openstack-prep rke ")
    assert "spec.yaml" in completed("openstack-prep plan sp")
    assert "spec.yaml" in completed("openstack-prep plan --out sp")


def test_without_shtab_the_package_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'shtab>=" in capsys.readouterr().err
