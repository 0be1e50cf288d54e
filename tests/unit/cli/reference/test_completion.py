from __future__ import annotations

import shlex
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


def test_fish_has_commands_options_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    """What the shell itself makes of the script is asked in tests/external/test_fish.py."""
    assert main(["completion", "fish"]) == 0
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if line.startswith("complete ")]
    assert all(line[:3] == ["complete", "-c", "openstack-prep"] for line in lines)
    found = [(line[4].removeprefix("_shtab_openstack_prep_using "), line) for line in lines if line[3] == "-n"]
    options = {line[line.index("-l") + 1]: line for where, line in found if where == "plan" and "-l" in line}
    assert {"allow-replace", "all", "out"} <= options.keys()
    words = {line[line.index("-a") + 1] for where, line in found if where.startswith("rke;") and "-a" in line}
    assert {"check", "render", "mesh"} <= words
    files = "(__fish_complete_path (commandline -ct))"
    assert files in options["out"]
    assert any(files in line for where, line in found if where.startswith("plan;"))


def test_without_shtab_the_package_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'shtab>=" in capsys.readouterr().err
