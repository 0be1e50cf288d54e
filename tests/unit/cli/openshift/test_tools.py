"""The command as a user calls it: the installed program, and a mirror on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openstack_prep.cli.main import main
from openstack_prep.openshift.commands import tools
from tests.unit.openshift.tools.archives import put, release
from tests.unit.texts import contains
from tests.unit.web import Web, serve

Run = Callable[..., tuple[int, str, str]]
MACHINE = ("--host", "x86_64", "--system", "linux")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "mirror", release())

    def call(*words: str) -> tuple[int, str, str]:
        return main(["tools", *words, *MACHINE]), *capsys.readouterr()

    return call


def test_a_mirror_by_the_installed_program(tmp_path: Path) -> None:
    files = {f"/pub/x86_64/clients/ocp/stable-4.18/{name}": content for name, content in release().items()}
    program = Path(sys.executable).with_name("openstack-prep")
    with serve(Web(b"", files=files)) as web:
        words = ["stable-4.18", "--mirror", web.url.replace("/disk", "/pub"), "--into", "bin", *MACHINE]
        for status in ("fetched", "kept"):
            done = subprocess.run([program, "tools", *words], cwd=tmp_path, capture_output=True, text=True, check=True)
            lines = [line.split() for line in done.stdout.splitlines()]
            assert [line[:4] for line in lines[:3]] == [
                [name, "4.18.7", status, f"bin/{name}"] for name in ("openshift-install", "oc", "kubectl")
            ]
            assert contains(done.stdout, "--key FILE")
    said = subprocess.run([tmp_path / "bin" / "openshift-install"], capture_output=True, text=True, check=True).stdout
    assert said == f"{tmp_path}/bin/openshift-install 4.18.7\n"


def test_data_for_programs(run: Run) -> None:
    code, out, _ = run("./mirror", "--only", "oc", "--format", "json")
    (oc,) = json.loads(out)["tools"]
    assert (code, oc["name"], oc["version"], oc["status"], oc["path"]) == (0, "oc", "4.18.7", "fetched", "oc")
    assert oc["signed_by"] is None


def test_all_mistakes_and_nothing_made(run: Run, tmp_path: Path) -> None:
    code, out, err = run("4.18", "--only", "oc,odo", "--arch", "arm", "--key", "gone", "--into", "bin")
    assert (code, out) == (2, "")
    starts = [line.removeprefix("openstack-prep: ").split(":")[0] for line in err.splitlines()]
    assert starts == ["release", "arch", "tools", "key"]
    assert [each.name for each in tmp_path.iterdir()] == ["mirror"]


def test_a_release_that_is_not_there_is_one(run: Run) -> None:
    code, _, err = run("./elsewhere")
    assert code == 1
    assert contains(err, "elsewhere/sha256sum.txt", "[download.failed]")


def test_long_downloads_are_told_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "INTERVAL", 0.0)
    code, out, err = run("./mirror", "--only", "openshift-install", "--format", "yaml")
    assert code == 0
    assert out.startswith("version: 1\ntools:\n- name: openshift-install\n")
    assert err.splitlines()[-1] == "  . openshift-install-linux-4.18.7.tar.gz  0 of 0 MiB"
