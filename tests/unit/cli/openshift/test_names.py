"""The command as a user calls it: the installed program, in a folder with an install-config."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openstack_prep.cli.main import main
from tests.unit.texts import Wording, contains

Run = Callable[..., tuple[int, str, str]]

CONFIG = """\
baseDomain: example.com
metadata: {name: dev}
platform:
  openstack: {externalNetwork: external, apiFloatingIP: 192.0.2.4, ingressFloatingIP: 192.0.2.5}
"""
HOSTS = "127.0.0.1\tlocalhost\r\n::1 caf\xe9\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        return main(["names", *words]), *capsys.readouterr()

    return call


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "install-config.yaml"
    path.write_text(CONFIG)
    return path


def test_into_a_hosts_file_and_out_of_it(tmp_path: Path, config: Path, wording: Wording) -> None:
    """Through the installed program, in a process of its own."""
    file = tmp_path / "hosts"
    file.write_bytes(HOSTS.encode("latin-1"))
    program = Path(sys.executable).with_name("openstack-prep")

    def prep(*words: str) -> str:
        return subprocess.run(
            [program, "names", *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert prep("--write", "hosts") == "hosts: names of dev.example.com written\n"
    written = file.read_bytes()
    assert written.startswith(HOSTS.encode("latin-1") + b"# BEGIN openstack-prep dev.example.com\n192.0.2.4 api.dev")
    before = file.stat().st_ino, file.stat().st_ctime_ns
    config.rename(tmp_path / "install-config.yaml.kept")  # the installer has eaten it
    wording(prep("--write", "hosts"))
    assert (file.stat().st_ino, file.stat().st_ctime_ns) == before
    assert prep("--remove", "hosts") == "hosts: names of dev.example.com removed\n"
    assert file.read_bytes() == HOSTS.encode("latin-1")


def test_printing(run: Run, config: Path) -> None:
    lines = run()[1].splitlines()
    assert lines[0] == "192.0.2.4 api.dev.example.com"
    assert "192.0.2.5 console-openshift-console.apps.dev.example.com" in lines
    assert run("--as", "dnsmasq")[1].splitlines()[-1] == "address=/apps.dev.example.com/192.0.2.5"
    assert "*.apps IN A 192.0.2.5\n" in run("--as", "bind", "--server", "ns.example.org")[1]


def test_no_folder_is_made_of_a_typo(run: Run, config: Path, tmp_path: Path) -> None:
    code, _, err = run("--write", "ect/hosts")
    assert (code, f"the folder {tmp_path}/ect does not exist" in err) == (2, True)
    assert not (tmp_path / "ect").exists()


def test_by_hand_no_file_is_read(run: Run, config: Path) -> None:
    config.write_text("{")
    words = ("--cluster-name", "a", "--base-domain", "b", "--api", "192.0.2.1", "--ingress", "192.0.2.2")
    code, out, _ = run(*words)
    assert (code, out.splitlines()[0]) == (0, "192.0.2.1 api.a.b")


def test_all_mistakes_and_nothing_written(run: Run, tmp_path: Path) -> None:
    code, out, err = run("--api", "x", "--write", "hosts")
    assert (code, out) == (2, "")
    assert [line.split(": ")[-2] for line in err.splitlines()] == ["cluster-name", "base-domain", "api", "ingress"]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_named_must_be_there(run: Run) -> None:
    code, _, err = run("--install-config", "gone.yaml")
    assert code == 2
    assert contains(err, "gone.yaml", "[spec.unreadable]")


def test_a_folder_stands_for_its_file_or_the_copy(run: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "ocp").mkdir()
    config = config.rename(tmp_path / "ocp" / "install-config.yaml")
    code, out, _ = run("--install-config", "ocp")
    assert (code, out.splitlines()[0]) == (0, "192.0.2.4 api.dev.example.com")
    kept = config.rename(f"{config}.kept")
    assert run("--install-config", "ocp")[:2] == (code, out)
    kept.unlink()
    code, _, err = run("--install-config", "ocp")
    assert code == 2
    assert contains(err, "ocp/install-config.yaml", "[spec.unreadable]")


@pytest.mark.parametrize("form", ["hosts", "dnsmasq", "bind"])
def test_only_a_file_is_written(run: Run, config: Path, tmp_path: Path, form: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in ("pipe", "/dev/null", "."):
        code, out, err = run("--as", form, "--server", "ns.example.net", "--write", place)
        assert (code, out) == (2, "")
        assert contains(err, Path(place), "[spec.invalid]")
    assert (tmp_path / "pipe").is_fifo()
    assert Path("/dev/null").is_char_device()


def test_a_zone_is_not_taken_out(run: Run, config: Path) -> None:
    code, _, err = run("--as", "bind", "--remove", "zone")
    assert code == 2
    assert contains(err, "zone", "[spec.invalid]")


def test_one_thing_at_a_time(run: Run) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--write", "a", "--remove", "b")
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("form", "stale", "left"),
    [
        ("hosts", "203.0.113.9 api.dev.example.com jump\n", "203.0.113.9 jump\n"),
        ("dnsmasq", "address=/apps.dev.example.com/203.0.113.9\n", "# address=/apps.dev.example.com/203.0.113.9\n"),
    ],
)
@pytest.mark.parametrize("below", [False, True])
def test_a_line_of_somebody_with_the_same_name(
    run: Run, config: Path, tmp_path: Path, form: str, stale: str, left: str, below: bool, wording: Wording
) -> None:
    """Both lines would count; the line is named, and changed on request alone."""
    file = tmp_path / "names"
    if below:
        run("--as", form, "--write", "names")
        file.write_text(file.read_text() + stale)
    else:
        file.write_text(stale)
    before = file.read_text()
    code, _, err = run("--as", form, "--write", "names")
    assert (code, file.read_text()) == (2, before)
    number = before.splitlines().index(stale.rstrip()) + 1
    assert f"names:{number}: gives " in err
    assert run("--as", form, "--write", "names", "--replace")[0] == 0
    assert left in file.read_text().splitlines(keepends=True)
    block = len(run("--as", form)[1].splitlines()) + 2
    assert len(file.read_text().splitlines()) == block + 1
    wording(run("--as", form, "--write", "names")[1])


@pytest.mark.parametrize("words", ["--replace", "--replace --as bind --write z", "--replace --remove x"])
def test_replace_belongs_to_write(run: Run, config: Path, words: str) -> None:
    assert run(*words.split())[0] == 2


def test_a_name_is_what_the_installer_reads(run: Run, config: Path) -> None:
    """Go's YAML has 1.1's booleans, and no base 60."""
    config.write_text(CONFIG.replace("name: dev", "name: no").replace("example.com", "010.example.com"))
    code, out, _ = run()
    assert code == 0
    assert "api.false.010.example.com" in out
