"""``--junit`` and ``--sarif`` as a pipeline uses them."""

from __future__ import annotations

import argparse
import errno
import json
import os
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.cli.main import main
from openstack_prep.cli.output import write_html
from openstack_prep.reports import files
from openstack_prep.reports.html import Page
from tests.unit.conftest import IDENTITY
from tests.unit.reports.schemas import read_junit, read_sarif
from tests.unit.texts import contains

WRONG = "name: lab\nflavors:\n  - {name: a, vcpu: 1}\n"
RIGHT = "name: lab\nclouds: {admin: lab}\n"
REPORTS = ("--junit", "o.xml", "--sarif", "o.sarif")


@pytest.fixture
def folder(clouds_yaml: Path) -> Path:
    (clouds_yaml.parent / "wrong.yaml").write_text(WRONG)
    (clouds_yaml.parent / "right.yaml").write_text(RIGHT)
    return clouds_yaml.parent


def written(folder: Path) -> tuple[list[str], list[list[str]]]:
    """Return the codes in the SARIF file, and the tags below each test of the JUnit file."""
    run = read_sarif((folder / "o.sarif").read_text())
    suite = read_junit((folder / "o.xml").read_text())
    return [each["ruleId"] for each in run["results"]], [[child.tag for child in case] for case in suite]


def test_the_text_is_the_same_and_the_files_stand_beside_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "wrong.yaml", "right.yaml"]) == 2
    plain = capsys.readouterr()
    assert main(["validate", "wrong.yaml", "right.yaml", *REPORTS]) == 2
    assert capsys.readouterr() == plain
    assert written(folder) == (["spec.unknown-key"], [["failure"], []])
    assert (folder / "o.sarif").stat().st_mode & 0o777 == 0o644


def test_a_run_that_fails_writes_them_too(folder: Path, services: requests_mock.Mocker) -> None:
    services.post(f"{IDENTITY}/auth/tokens", status_code=401, json={"error": {"message": "no"}})
    assert main(["audit", "right.yaml", *REPORTS]) == 1
    assert written(folder) == (["access.denied"], [["error"]])
    assert main(["audit", "wrong.yaml", *REPORTS]) == 2
    assert written(folder) == (["spec.unknown-key"], [["failure"]])
    assert main(["verify", "--metadata", "gone", *REPORTS]) == 2
    assert written(folder) == (["spec.invalid"], [["failure"]])


def test_an_older_page_does_not_outlive_a_run_that_fails(
    folder: Path, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = folder / "o.html"
    files.write("html", page, Page(title="all is well", verdict="done", good=True).html())
    services.post(f"{IDENTITY}/auth/tokens", status_code=401, json={"error": {"message": "no"}})
    assert main(["apply", "--yes", "right.yaml", "--html", "o.html"]) == 1
    assert "all is well" not in page.read_text()
    assert "access.denied" in page.read_text()
    assert main(["plan", "wrong.yaml", "--html", "o.html"]) == 2
    assert "spec.unknown-key" in page.read_text()
    assert main(["plan", "wrong.yaml", "--html", "right.yaml"]) == 2
    assert (folder / "right.yaml").read_text() == RIGHT


def test_a_folder_that_is_gone_gives_no_traceback(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    words = ["--sarif", str(folder / "o.sarif"), "--junit", str(folder / "o.xml")]
    assert main(["validate", str(folder / "wrong.yaml"), *words]) == 2
    assert "spec.unknown-key" in capsys.readouterr().err
    assert written(folder) == (["spec.unknown-key"], [["failure"]])
    assert main(["validate", "a.yaml", "--sarif", "o.sarif"]) == 2
    assert "--sarif o.sarif: " in capsys.readouterr().err


def test_warnings_and_mistakes_of_rke_files_are_reported(folder: Path) -> None:
    (folder / "cluster.yml").write_text("nodes:\n- {address: 192.0.2.1, user: me, role: [etcd], nonsense: 1}\n")
    assert main(["rke", "check", "cluster.yml", *REPORTS]) == 2
    run = read_sarif((folder / "o.sarif").read_text())
    lines = {each["ruleId"]: each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in run["results"]}
    assert lines["spec.unknown-key"] == 2
    assert "spec.warning" in lines


def test_a_report_never_replaces_an_input_or_another_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(os.listdir(folder))
    assert main(["validate", "right.yaml", "--junit", "right.yaml"]) == 2
    assert contains(capsys.readouterr().err, "--junit", "right.yaml", "[config.invalid]")
    assert main(["validate", "wrong.yaml", "--junit", "o", "--sarif", "./o"]) == 2
    assert contains(capsys.readouterr().err, "--sarif", "o", "--junit", "[config.invalid]")
    assert main(["audit", "wrong.yaml", "--html", "o", "--junit", "o"]) == 2
    assert contains(capsys.readouterr().err, "--html", "o", "--junit", "[config.invalid]")
    (folder / "right.yaml").chmod(0o444)
    assert main(["validate", "wrong.yaml", "--junit", "right.yaml", "--sarif", "none/o"]) == 2
    said = capsys.readouterr().err
    assert contains(said, "--junit right.yaml")
    assert contains(said, "--sarif none/o", "[config.invalid]")
    assert (folder / "right.yaml").read_text() == RIGHT
    assert sorted(os.listdir(folder)) in (before, sorted([*before, "o"]))


def test_a_report_of_another_form_is_kept(folder: Path) -> None:
    assert main(["validate", "right.yaml", *REPORTS]) == 0
    assert main(["validate", "right.yaml", *REPORTS]) == 0
    before = (folder / "o.xml").read_text()
    assert main(["validate", "right.yaml", "--sarif", "o.xml"]) == 2
    assert main(["plan", "right.yaml", "--html", "o.xml"]) == 2
    assert (folder / "o.xml").read_text() == before


def test_a_link_is_replaced_unless_it_leads_to_something_else(folder: Path) -> None:
    (folder / "o.xml").symlink_to("gone")
    assert main(["validate", "right.yaml", "--junit", "o.xml"]) == 0
    assert not (folder / "o.xml").is_symlink()
    assert not (folder / "gone").exists()
    (folder / "kept").write_text("kept")
    (folder / "link.xml").symlink_to("kept")
    assert main(["validate", "right.yaml", "--junit", "link.xml"]) == 2
    assert (folder / "kept").read_text() == "kept"
    assert (folder / "link.xml").is_symlink()


def test_no_test_passes_for_a_file_whose_mistake_is_elsewhere(folder: Path) -> None:
    (folder / "a.yaml").write_text("name: lab\ninclude: [common.yaml]\n")
    (folder / "common.yaml").write_text(WRONG.partition("\n")[2])
    for command in (["validate", "a.yaml"], ["validate", "gone.yaml"], ["rke", "check", "gone.yaml"]):
        right = "right.yaml" if command[0] == "validate" else "cluster.yml"
        (folder / "cluster.yml").write_text(
            "nodes:\n- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker]}\n"
        )
        assert main([*command, right, "--junit", "o.xml"]) == 2
        suite = read_junit((folder / "o.xml").read_text())
        assert [case.get("classname") for case in suite if len(case) == 0] == [right]
        assert [child.tag for case in suite for child in case] == ["failure"]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.usefixtures("full_disk")
def test_unwritten_reports_hide_neither_mistakes_nor_each_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "cluster.yml").write_text("nonsense: 1\n")
    (folder / "install-config.yaml").write_text("a: [")
    check = ["check", "--offline", "--release", "4.20", "install-config.yaml", "--html", "o.html"]
    commands = {"spec.unknown-key": ["validate", "wrong.yaml"], "spec.unreadable": check}
    for code, command in {**commands, "cluster": ["rke", "check", "cluster.yml"]}.items():
        assert main([*command, *REPORTS]) == 2
        said = capsys.readouterr().err
        assert code in said
        for name in ("o.xml", "o.sarif", *(("o.html",) if "--html" in command else ())):
            assert said.count(f"{name} cannot be written") == 1
    assert main(["validate", "right.yaml", *REPORTS]) == 1


@pytest.mark.usefixtures("full_disk")
def test_an_unwritten_page_keeps_the_code_of_what_was_done(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong() -> Page:
        raise KeyError("x")

    for page in (lambda: Page(title="a", verdict="b", good=True), wrong):
        for code, expected in {0: 1, 1: 1, 130: 130}.items():
            options = argparse.Namespace(html=folder / "o.html", debug=False)
            assert write_html(options, page, code) == expected
            assert "o.html" in capsys.readouterr().err


def test_several_specs_are_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--format", "json", "wrong.yaml", "right.yaml"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert (data["files"], data["valid"], len(data["errors"])) == (["wrong.yaml", "right.yaml"], False, 1)
