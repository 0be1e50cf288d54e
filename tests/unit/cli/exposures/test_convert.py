"""``exposures convert`` as a user calls it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from openstack_prep.cli.main import main
from tests.unit.exposures.convert.generated import SECRET, item

FILES = {"pools.yaml", "services.yaml", "before.yaml", "commands.txt"}
RUN = ["exposures", "convert", "services.json", "--to", "metallb"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "192.0.2.10")
    return tmp_path


def put(folder: Path, *addresses: str) -> None:
    (folder / "services.json").write_text(
        json.dumps({"kind": "List", "items": [item("web", externalIPs=[*addresses])]})
    )


def test_files_are_printed_without_secrets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    out, err = capsys.readouterr()
    assert "# --- pools.yaml\n" in out
    assert SECRET not in out + err
    assert [each.name for each in folder.iterdir()] == ["services.json"]


def test_files_are_written_again_for_the_same_services_only(folder: Path) -> None:
    for _ in range(2):
        assert main([*RUN, "--output", "new"]) == 0
        written = {each.name: each.stat().st_mode & 0o777 for each in (folder / "new").iterdir()}
        assert written == dict.fromkeys(FILES, 0o600)
    before = (folder / "new" / "before.yaml").read_text()
    put(folder, "192.0.2.11")
    assert main([*RUN, "--output", "new"]) == 2  # the way back of the first run is not lost
    assert (folder / "new" / "before.yaml").read_text() == before


def test_standard_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, (folder / "services.json").read_bytes())
    os.close(writer)
    before = os.dup(0)
    os.dup2(reader, 0)
    try:
        assert main(["exposures", "convert", "-", "--to", "cilium"]) == 0
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reader)
    assert "shop/web" in capsys.readouterr().out


def test_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["services"] == [
        {"service": "shop/web", "old": ["192.0.2.10"], "new": ["192.0.2.10"], "by": ["shop/web"], "remaining": []}
    ]
    assert data["files"].keys() == FILES


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.json", "--to", "metallb"],
        ["services.json", "services.json", "--to", "metallb"],
        ["/dev/zero", "--to", "metallb"],
        [".", "--to", "metallb"],
        ["services.json", "--to", "metallb", "--release", "0.1"],
        ["services.json"],
        ["services.json", "--to", "f5"],
    ],
)
def test_mistakes_write_nothing(folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["exposures", "convert", *arguments, "--output", "new"]
    try:
        code = main(words)
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2
    assert capsys.readouterr().err.count("openstack-prep: ") == 1
    assert not (folder / "new").exists()


def test_a_service_without_addresses_leaves_the_folder_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder)
    assert main([*RUN, "--output", "new"]) == 0
    assert capsys.readouterr().out.startswith("nothing to convert")
    assert not (folder / "new").exists()


def test_a_release_that_is_newer_than_the_known_ones_is_warned_about(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for release, warned in (("0.16.9", False), ("0.17.0", True), ("99.1", True)):
        assert main([*RUN, "--release", release]) == 0
        assert ("openstack-prep: warning: --release" in capsys.readouterr().err) == warned


@pytest.mark.parametrize("output", ["others", "file", "file/below", "locked/new"])
def test_a_folder_that_cannot_be_used_is_refused(
    output: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "others").mkdir()
    (folder / "others" / "pools.yaml").write_text("somebody's")
    (folder / "file").write_text("")
    (folder / "locked").mkdir(mode=0o500)
    if output == "locked/new":

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", refuse)  # root may create it
    assert main([*RUN, "--output", output]) == 2
    assert "[files.refused]" in capsys.readouterr().err
    assert (folder / "others" / "pools.yaml").read_text() == "somebody's"
