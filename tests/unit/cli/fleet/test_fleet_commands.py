"""The commands of a fleet against a Nova that remembers flavors: what they print, ask and end with."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests_mock

from openstack_prep.cli.main import main
from openstack_prep.cli.reference.schema import output_schema
from tests.unit.conftest import ENDPOINTS, IDENTITY, failure
from tests.unit.texts import Wording, contains

SPEC = """\
name: ${name}
clouds: {admin: lab}
variables: {name: {}, vcpus: {default: 1}}
flavors: [{name: "${name}", vcpus: "${vcpus}", ram: 1GiB, disk: 1}]
"""
FLEET = """\
name: sizes
targets:
  - for_each: {row: {csv: rows.csv}}
    name: ${row.name}
    spec: spec.yaml
    cloud: ${row.cloud}
    groups: ["${row.group}"]
    variables: {name: "${row.name}", vcpus: "${row.vcpus}"}
"""
ROWS = "name,cloud,group,vcpus\na,,first,\nb,lab,,2\nc,,,\n"
VALIDATORS = {
    name: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": output_schema()["$defs"]})
    for name in ("fleet_target", "fleet", "fleet_targets", "error")
}
Lines = Callable[..., list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def folder(
    clouds_yaml: Path, empty_cloud: requests_mock.Mocker, flavors: object, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A fleet of three flavors in three specs."""
    for name, text in {"spec.yaml": SPEC, "fleet.yaml": FLEET, "rows.csv": ROWS}.items():
        (clouds_yaml.parent / name).write_text(text)
    project = {"id": "admin-project", "name": "admin", "domain_id": "default", "enabled": True, "tags": []}
    empty_cloud.get(f"{IDENTITY}/projects/admin-project", json={"project": project})
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return clouds_yaml.parent


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Run a command with --format json; each line must be one document that the schema describes."""

    def call(line: str, code: int = 0) -> list[dict[str, Any]]:
        assert main(f"fleet --format json {line}".split()) == code, capsys.readouterr().err
        found = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
        for each in found:
            kinds = [name for name, validator in VALIDATORS.items() if validator.is_valid(each)]
            assert len(kinds) == 1, (kinds, each)
        assert [each for each in found if "exit_code" in each] == found[-1:]
        assert found[-1]["exit_code"] == code
        return found

    return call


def statuses(found: list[dict[str, Any]]) -> dict[str, str]:
    return {each["target"]: each["status"] for each in found if "target" in each}


def test_lines_of_all_commands(lines: Lines, folder: Path) -> None:
    assert statuses(lines("plan --detailed-exitcode fleet.yaml", 2)) == dict.fromkeys("abc", "changes")
    assert statuses(lines("audit fleet.yaml", 1)) == dict.fromkeys("abc", "drift")
    assert statuses(lines("apply --yes --only first fleet.yaml")) == {"a": "done"}
    found = lines("apply --yes fleet.yaml")
    assert statuses(found) == {"a": "unchanged", "b": "done", "c": "done"}
    assert {each["target"]: each["counts"] for each in found[:-1]}["b"] == {"create": 1}
    assert found[-1]["targets"] == {"done": 2, "unchanged": 1}
    assert statuses(lines("plan --detailed-exitcode fleet.yaml")) == dict.fromkeys("abc", "unchanged")
    assert statuses(lines("export fleet.yaml")) == dict.fromkeys("abc", "done")
    assert statuses(lines("plan --destroy fleet.yaml")) == dict.fromkeys("abc", "changes")
    assert statuses(lines("destroy --yes fleet.yaml")) == dict.fromkeys("abc", "done")


def test_an_error_is_one_line(lines: Lines) -> None:
    (found,) = lines("plan none.yaml", 2)
    assert found["errors"][0]["code"] == "spec.unreadable"
    (found,) = lines("apply fleet.yaml", 2)
    assert found["errors"][0]["code"] == "config.invalid"
    (found,) = lines("apply --yes --only nobody fleet.yaml", 2)
    assert "--only nobody" in found["errors"][0]["what"]


def test_a_table_of_plans_and_the_own_plan_of_a_target(capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    assert main(["fleet", "apply", "--yes", "--only", "a", "fleet.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("  + a  lab  1 created (")
    assert main(["fleet", "plan", "--show", "b", "fleet.yaml"]) == 0
    wording(capsys.readouterr().out)
    assert main(["fleet", "plan", "--all", "fleet.yaml"]) == 0
    assert "  = a  lab  1 unchanged\n" in capsys.readouterr().out
    assert main(["fleet", "plan", "--show", "x", "fleet.yaml"]) == 2


def test_all_targets_are_on_one_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rows.csv").write_text(ROWS.replace("c,", "c,nowhere"))
    assert main(["fleet", "plan", "--html", "page.html", "fleet.yaml"]) == 1
    page = (folder / "page.html").read_text()
    assert contains(page, "fleet sizes")
    assert "+ flavor/b  vcpus 2, ram 1024, disk 1" in page
    assert "cloud &#x27;nowhere&#x27;" in page
    assert main(["fleet", "audit", "--html", "fleet.yaml", "fleet.yaml"]) == 2


def test_validate_needs_no_cloud(folder: Path, capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    (folder / "clouds.yaml").unlink()
    (folder / "fleet.yaml").write_text(FLEET + "waves: [{groups: [first]}]\n")
    assert main(["fleet", "validate", "fleet.yaml"]) == 0
    wording(capsys.readouterr().out)


def test_it_asks_once_and_applies_what_was_agreed_to(
    services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = io.StringIO("no\n")
    monkeypatch.setattr(refusal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", refusal)
    assert main(["fleet", "apply", "fleet.yaml"]) == 2
    assert "Apply 3 plans? Type yes: " in capsys.readouterr().err

    made = {"name": "b", "vcpus": 9, "ram": 1024, "disk": 1}
    listed = [{"id": "other", "os-flavor-access:is_public": True} | made]

    class Typed(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, size: int | None = -1, /) -> str:
            """Have somebody else create the flavor while the question stands."""
            services.get(f"{ENDPOINTS['compute']}/flavors/detail", json={"flavors": listed})
            return "yes\n"

    monkeypatch.setattr("sys.stdin", Typed())
    assert main(["fleet", "apply", "--only", "b", "fleet.yaml"]) == 2
    said = capsys.readouterr()
    assert "  ! b  lab  refused: " in said.out


def test_what_is_refused_or_failed_is_explained_at_the_end(
    services: requests_mock.Mocker, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rows.csv").write_text(ROWS.replace("a,,first", "a,nowhere,first"))
    assert main(["fleet", "apply", "--yes", "fleet.yaml"]) == 1
    said = capsys.readouterr()
    assert "apply sizes: 3 targets: 2 done, 1 failed (2 created) in " in said.out
    assert "openstack-prep: a: failed: cloud 'nowhere': " in said.err
    assert contains(said.err, "openstack-prep fleet plan fleet.yaml --only a --show a")
    services.post(f"{IDENTITY}/auth/tokens", **failure(401))
    assert main(["fleet", "plan", "fleet.yaml"]) == 1


@pytest.mark.parametrize("text", ["\x1b[2Jred", "a\nopenstack-prep: done", "\u202eder", "a b", "-rf", "a" * 101])
def test_hostile_names_reach_no_terminal(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rows.json").write_text(json.dumps([{"name": text, "cloud": text, "group": text, "vcpus": 1}]))
    source = FLEET.replace("{csv: rows.csv}", "{command: [cat, rows.json]}")
    (folder / "fleet.yaml").write_text(source)
    assert main(["fleet", "validate", "fleet.yaml"]) == 2
    assert main(["fleet", "validate", "--format", "json", "fleet.yaml"]) == 2
    (folder / "fleet.yaml").write_text(source.replace("name: ${row.name}\n", "name: fine\n"))
    main(["fleet", "validate", "fleet.yaml"])
    main(["fleet", "plan", "--all", "fleet.yaml"])
    said = capsys.readouterr()
    for each in (said.out, said.err):
        assert all(letter.isprintable() or letter == "\n" for letter in each)
        assert "\nopenstack-prep: done" not in each


def test_specs_are_exported_to_a_folder_and_files_of_others_are_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "apply", "--yes", "fleet.yaml"]) == 0
    assert main(["fleet", "export", "fleet.yaml"]) == 2
    for _ in range(2):
        assert main(["fleet", "export", "--output", "out", "fleet.yaml"]) == 0
    assert sorted(each.name for each in (folder / "out").iterdir()) == ["a.yaml", "b.yaml", "c.yaml"]
    (folder / "out/b.yaml").write_text("mine\n")
    assert main(["fleet", "export", "--output", "out", "fleet.yaml"]) == 2
    assert (folder / "out/b.yaml").read_text() == "mine\n"


def test_the_example_and_the_schema_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "fleet"]) == 0
    assert "for_each: {row: {csv: teams.csv}}" in capsys.readouterr().out
    assert main(["schema", "--fleet"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "openstack_prep fleet"


def test_plans_replace_only_plans(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "plan", "-o", "rows.csv", "fleet.yaml"]) == 2
    assert contains(capsys.readouterr().err, "rows.csv", "plan", "[config.invalid]")
    assert (folder / "rows.csv").read_text() == ROWS
    for _ in range(2):
        assert main(["fleet", "plan", "-o", "kept.plan", "fleet.yaml"]) == 0


def test_an_export_removes_no_other_export(lines: Lines, folder: Path) -> None:
    lines("apply --yes fleet.yaml")
    lines("export --output specs fleet.yaml")
    (folder / "specs" / "a.yaml").write_text((folder / "specs" / "a.yaml").read_text() + "# a note\n")
    lines("export --output specs --only b fleet.yaml")
    assert sorted(each.name for each in (folder / "specs").iterdir()) == ["a.yaml", "b.yaml", "c.yaml"]
    assert (folder / "specs" / "a.yaml").read_text().endswith("# a note\n")


def test_saved_plans_of_targets_that_are_gone_are_refused(lines: Lines, folder: Path) -> None:
    lines("plan -o plans.json fleet.yaml")
    (folder / "rows.csv").write_text(ROWS.replace("c,,,\n", ""))
    (found,) = lines("apply --plan plans.json fleet.yaml", 2)
    assert [(each["where"], each["code"]) for each in found["errors"]] == [("plans.json: c", "plan.changed")]


def test_a_run_that_finds_nothing_to_do_completes_an_interrupted_one(
    lines: Lines, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    (folder / "fleet.yaml").write_text(FLEET + "stop_after: 1\n")
    assert main(["fleet", "apply", "--yes", "fleet.yaml"]) == 0
    (folder / "rows.csv").write_text(ROWS.replace("\nb,", "\nx,none,,\nb,"))
    assert main(["fleet", "apply", "--yes", "--jobs", "1", "fleet.yaml"]) == 1  # a is unchanged, x fails
    (folder / "rows.csv").write_text(ROWS)
    for continued in (True, False):
        capsys.readouterr()
        assert main(["fleet", "apply", "--html", "page.html", "fleet.yaml"]) == 0
        said = capsys.readouterr()
        assert ("continuing the run" in said.err) == continued
        assert "unchanged" in said.out
        assert (folder / "page.html").exists()
