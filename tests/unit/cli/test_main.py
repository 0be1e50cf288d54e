from __future__ import annotations

import argparse
import gc
import json
import logging
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests_mock
import yaml
from keystoneauth1.session import Session

from openstack_prep import extensions
from openstack_prep.cli.main import build_parser, main
from openstack_prep.spec import load_spec, schema
from openstack_prep.version import __version__
from tests.unit.conftest import CLOUDS, ENDPOINTS, IDENTITY, failure, token
from tests.unit.texts import Wording, contains

FLAVORS = f"{ENDPOINTS['compute']}/flavors"
SPEC = """\
name: lab
clouds: {admin: lab}
flavors:
  - {name: master, vcpus: 4, ram: 16GiB, disk: 25}
  - {name: worker, vcpus: 8, ram: 32GiB, disk: 100}
"""

Flavors = list[dict[str, Any]]

pytestmark = pytest.mark.usefixtures("clouds_yaml")


class Said(NamedTuple):
    code: int
    out: str
    err: str


Prep = Callable[..., Said]


@pytest.fixture
def prep(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Prep:
    """The command, in a folder that holds a clouds.yaml and a spec.yaml."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    def run(*words: str) -> Said:
        code = main(words)
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return tmp_path / "spec.yaml"


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sit somebody at a terminal who types this."""

    def sit(line: str) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr("sys.stdin.readline", lambda: line, raising=False)

    return sit


# --- the main job -------------------------------------------------------------------------


def test_plan_apply_and_apply_again(prep: Prep, flavors: Flavors, wording: Wording) -> None:
    planned = prep("plan", "spec.yaml")
    assert planned.code == 0
    assert planned.out.splitlines()[-1] == "apply lab: 2 to create"
    applied = prep("apply", "--yes", "spec.yaml")
    assert applied.code == 0
    assert "2 done, 0 failed, 0 skipped, 0 unchanged" in applied.out
    assert applied.out.splitlines()[-1].split() == ["exists:", "2", "flavors"]
    again = prep("apply", "spec.yaml")
    assert again.code == 0
    wording(again.out)


def test_destroy_takes_it_back(prep: Prep, flavors: Flavors) -> None:
    prep("apply", "--yes", "spec.yaml")
    assert prep("destroy", "--yes", "spec.yaml").code == 0
    assert flavors == []


def test_show(prep: Prep, flavors: Flavors) -> None:
    assert prep("show", "spec.yaml").out == "flavor/master  -\nflavor/worker  -\n"
    prep("apply", "--yes", "--jobs", "1", "spec.yaml")
    assert prep("show", "spec.yaml").out == "flavor/master  f1\nflavor/worker  f2\n"


def test_data_for_programs(prep: Prep, flavors: Flavors) -> None:
    plan = json.loads(prep("plan", "--format", "json", "spec.yaml").out)
    assert plan["changes_pending"] is True
    assert [step["action"] for step in plan["steps"]] == ["create", "create"]
    report = yaml.safe_load(prep("apply", "--yes", "--jobs", "1", "--format", "yaml", "spec.yaml").out)
    assert [(step["status"], step["id"]) for step in report["steps"]] == [("done", "f1"), ("done", "f2")]
    assert json.loads(prep("show", "--format", "json", "spec.yaml").out)["flavor/worker"]["id"] == "f2"


# --- the parser ---------------------------------------------------------------------------


def helps_of(parser: argparse.ArgumentParser, name: str) -> list[str]:
    """Return the help of each parser on the way to a command."""
    helps = [parser.format_help()]
    for word in name.split():
        actions = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = next(actions).choices[word]
        helps.append(parser.format_help())
    return helps


@pytest.mark.parametrize("name", extensions.commands())
def test_the_parser_of_one_command_is_that_of_all(name: str) -> None:
    one, complete = build_parser(["--format", "json", *name.split(), "spec.yaml"]), build_parser()
    assert helps_of(one, name) == helps_of(complete, name)


def test_commands_that_are_not_named_are_not_loaded() -> None:
    script = "import sys; from openstack_prep.cli.main import build_parser; build_parser(sys.argv[1:])"
    command = [sys.executable, "-c", f"{script}; print(*sys.modules)", "--ids", "rke", "render", "spec.yaml"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    names = {name.partition(":")[0] for extension in extensions.installed() for name in extension.commands}
    assert names & set(loaded) == {"openstack_prep.kubernetes.commands.options"}
    work = {name for name in loaded if name.startswith("openstack_prep.kubernetes.commands.")}
    assert work == {"openstack_prep.kubernetes.commands.options"}


# --- colour and global options ------------------------------------------------------------

GREEN = "\x1b[32m"


@pytest.mark.parametrize(
    ("words", "variables", "terminal", "coloured"),
    [
        ([], {}, False, False),
        ([], {}, True, True),
        ([], {"NO_COLOR": "1"}, True, False),
        ([], {"NO_COLOR": ""}, True, True),
        ([], {"TERM": "dumb"}, True, False),
        ([], {"CLICOLOR_FORCE": "1"}, False, True),
        ([], {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False, False),
        (["--color", "always"], {"NO_COLOR": "1"}, False, True),
        (["--color", "never"], {}, True, False),
    ],
)
def test_colour_is_for_terminals(
    prep: Prep,
    flavors: Flavors,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    variables: dict[str, str],
    terminal: bool,
    coloured: bool,
) -> None:
    for name in ("NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm"} | variables).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert (GREEN in prep("plan", *words, "spec.yaml").out) is coloured


def test_global_options_stand_before_or_after_the_command(prep: Prep, flavors: Flavors) -> None:
    said = prep("plan", "--format", "json", "--color", "never", "spec.yaml")
    assert prep("--format", "json", "plan", "--color", "never", "spec.yaml") == said
    assert prep("--os-cloud", "elsewhere", "plan", "spec.yaml").code == 2
    assert prep("--format", "yaml", "plan", "--format", "json", "spec.yaml") == said


def test_a_global_option_that_a_command_has_no_use_for_is_refused(
    prep: Prep, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        prep("--format", "json", "example")
    assert caught.value.code == 2
    assert "--format" in capsys.readouterr().err


def test_plan_shows_what_stays_unchanged_when_asked(prep: Prep, flavors: Flavors) -> None:
    prep("apply", "--yes", "spec.yaml")
    assert prep("plan", "spec.yaml").out == "apply lab: 2 unchanged\n"
    assert prep("plan", "--all", "spec.yaml").out.splitlines()[:2] == ["  = flavor/master", "  = flavor/worker"]


def test_ids_of_what_was_created_are_shown_when_asked(prep: Prep, flavors: Flavors) -> None:
    assert " f1 " in prep("apply", "--yes", "--jobs", "1", "--ids", "spec.yaml").out
    assert prep("plan", "--all", "--ids", "spec.yaml").out.splitlines()[0].split() == ["=", "flavor/master", "f1"]
    prep("destroy", "--yes", "spec.yaml")
    assert re.search(r"^  \+ flavor/master  \(\d", prep("apply", "--yes", "spec.yaml").out, re.MULTILINE)


# --- exit codes ---------------------------------------------------------------------------


@pytest.mark.parametrize(("made", "code"), [(False, 2), (True, 0)])
def test_detailed_exit_codes(prep: Prep, flavors: Flavors, made: bool, code: int) -> None:
    if made:
        prep("apply", "--yes", "spec.yaml")
    assert prep("plan", "--detailed-exitcode", "spec.yaml").code == code


def test_with_detailed_exit_codes_an_error_is_one(prep: Prep, flavors: Flavors, spec: Path) -> None:
    spec.write_text("nam: x\n")
    assert prep("plan", "--detailed-exitcode", "spec.yaml").code == 1


def test_wrong_input_is_two(prep: Prep, spec: Path, wording: Wording) -> None:
    spec.write_text("nam: x\n")
    said = prep("plan", "spec.yaml")
    assert (said.code, said.out) == (2, "")
    wording(said.err)


def test_an_unknown_cloud_is_two(prep: Prep) -> None:
    said = prep("plan", "--os-cloud", "elsewhere", "spec.yaml")
    assert said.code == 2
    assert contains(said.err, "lab, other", "[config.invalid]")


def test_a_refused_plan_is_two(prep: Prep, flavors: Flavors, spec: Path) -> None:
    prep("apply", "--yes", "spec.yaml")
    spec.write_text(SPEC.replace("16GiB", "8GiB"))
    for words in (("plan",), ("apply", "--yes")):
        said = prep(*words, "spec.yaml")
        assert said.code == 2
        assert contains(said.out + said.err, "spec.yaml:4", "flavor/master", "[plan.replaces]")


def test_a_cloud_that_fails_is_one(prep: Prep, services: requests_mock.Mocker) -> None:
    services.get(f"{FLAVORS}/detail", **failure(500, "a bug"))
    said = prep("plan", "spec.yaml")
    assert said.code == 1
    assert said.err == "openstack-prep: GET compute/flavors/detail: 500 a bug [cloud.error]\n"


def test_a_step_that_fails_is_one(prep: Prep, services: requests_mock.Mocker, flavors: Flavors) -> None:
    services.post(FLAVORS, **failure(403, "no"))
    said = prep("apply", "--yes", "spec.yaml")
    assert said.code == 1
    assert "! flavor/master  failed: POST compute/flavors: 403 no" in said.out
    assert "0 done, 2 failed, 0 skipped, 0 unchanged" in said.out


def test_an_interrupt_is_a_hundred_and_thirty(prep: Prep, services: requests_mock.Mocker, wording: Wording) -> None:
    services.get(f"{FLAVORS}/detail", exc=KeyboardInterrupt)
    said = prep("plan", "spec.yaml")
    assert said.code == 130
    wording(said.err)


def test_a_bug_is_one_and_no_traceback(prep: Prep, flavors: Flavors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openstack_prep.core.planner.plan_apply", lambda: None)
    said = prep("plan", "spec.yaml")
    assert said.code == 1
    assert "Traceback" not in said.err
    assert "--debug shows where" in said.err


def test_an_answer_that_lacks_something_is_no_bug(prep: Prep, services: requests_mock.Mocker) -> None:
    services.get(f"{FLAVORS}/detail", json={"flavors": [{}]})
    said = prep("plan", "spec.yaml")
    assert said.code == 1
    assert contains(said.err, "GET compute/flavors/detail", "200", "[cloud.error]")


@pytest.mark.parametrize(
    "words",
    [
        ["destroy"],
        ["plan", "--jobs", "0", "x"],
        ["plan", "--jobs", "many", "x"],
        ["fly"],
        ["plan", "--format", "xml", "x"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_two(prep: Prep, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        prep(*words)
    assert caught.value.code == 2


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "openstack_prep.cli.main", "example"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1


# --- consent ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["apply", "destroy"])
def test_without_a_terminal_consent_must_be_given(prep: Prep, flavors: Flavors, verb: str, wording: Wording) -> None:
    if verb == "destroy":
        prep("apply", "--yes", "spec.yaml")
    before = list(flavors)
    said = prep(verb, "spec.yaml")
    assert said.code == 2
    *plan, refused = said.err.splitlines()
    wording(refused)
    assert plan[-1] == f"{verb} lab: 2 to {'delete' if verb == 'destroy' else 'create'}"
    assert flavors == before


def test_apply_asks_and_shows_what_for(prep: Prep, flavors: Flavors, answer: Callable[[str], None]) -> None:
    answer("yes\n")
    said = prep("apply", "spec.yaml")
    assert said.code == 0
    assert contains(said.err, "apply lab: 2", "yes")
    assert len(flavors) == 2


@pytest.mark.parametrize("line", ["no\n", "y\n", "\n", ""])
def test_anything_but_yes_is_no(prep: Prep, flavors: Flavors, answer: Callable[[str], None], line: str) -> None:
    answer(line)
    said = prep("apply", "spec.yaml")
    assert said.code == 2
    assert contains(said.err, line.strip(), "yes", "[config.invalid]")
    assert flavors == []


@pytest.mark.parametrize(("line", "left"), [("lab\n", 0), ("yes\n", 2)])
def test_destroy_asks_for_the_name(
    prep: Prep, flavors: Flavors, answer: Callable[[str], None], line: str, left: int
) -> None:
    prep("apply", "--yes", "spec.yaml")
    answer(line)
    prep("destroy", "spec.yaml")
    assert len(flavors) == left


def test_a_destruction_that_is_refused_is_not_asked_about(
    prep: Prep,
    services: requests_mock.Mocker,
    flavors: Flavors,
    spec: Path,
    answer: Callable[[str], None],
    wording: Wording,
) -> None:
    spec.write_text("name: lab\nclouds: {admin: lab}\nproject: {name: p}\n")
    services.get(re.compile("."), json=lambda request, _: {request.path.rpartition("/")[2].replace("-", "_"): []})
    project = {"id": "p1", "name": "p", "domain_id": "default", "enabled": True, "tags": ["openstack-prep:lab"]}
    services.get(f"{IDENTITY}/projects", json={"projects": [project]})
    services.get(f"{ENDPOINTS['compute']}/servers", json={"servers": [{"id": "s1", "name": "theirs"}]})
    services.get(f"{ENDPOINTS['compute']}/os-server-groups", json={"server_groups": []})
    services.get(f"{ENDPOINTS['compute']}/os-keypairs", json={"keypairs": []})
    services.get(f"{ENDPOINTS['compute']}/flavors/detail", json={"flavors": []})
    answer("p\n")
    said = prep("destroy", "spec.yaml")
    assert said.code == 2
    assert contains(said.err, "server/s1 (theirs", "[plan.still-used]")
    wording(said.err)


def test_with_nothing_to_do_nobody_is_asked(prep: Prep, flavors: Flavors) -> None:
    assert prep("destroy", "spec.yaml").code == 0


def test_apply_names_how_much_is_no_longer_in_the_spec(
    prep: Prep, flavors: Flavors, spec: Path, wording: Wording
) -> None:
    prep("apply", "--yes", "spec.yaml")
    spec.write_text(SPEC.rpartition("  - ")[0])
    wording(prep("apply", "--yes", "spec.yaml").out)
    said = json.loads(prep("apply", "--yes", "--format", "json", "spec.yaml").out)
    assert [each["resource"] for each in said["undeclared"]] == ["flavor/worker"]
    assert "--prune" not in prep("apply", "--yes", "--prune", "spec.yaml").out


def test_plan_shows_what_destroy_would_do(prep: Prep, flavors: Flavors) -> None:
    prep("apply", "--yes", "spec.yaml")
    said = prep("plan", "--destroy", "--detailed-exitcode", "spec.yaml")
    assert (said.code, said.out.splitlines()[-1]) == (2, "destroy lab: 2 to delete")
    data = json.loads(prep("plan", "--destroy", "--format", "json", "spec.yaml").out)
    assert (data["purpose"], {each["action"] for each in data["steps"]}) == ("destroy", {"delete"})
    assert len(flavors) == 2
    prep("destroy", "--yes", "spec.yaml")
    assert prep("plan", "--destroy", "--detailed-exitcode", "spec.yaml").code == 0


@pytest.mark.parametrize("option", ["--adopt", "--prune", "--allow-replace"])
def test_plan_to_destroy_takes_no_option_of_apply(prep: Prep, flavors: Flavors, option: str) -> None:
    said = prep("plan", "--destroy", option, "spec.yaml")
    assert said.code == 2
    assert contains(said.err, option.partition("=")[0], "--destroy", "[config.invalid]")


# --- targets ------------------------------------------------------------------------------


def test_only_targets_are_applied_and_the_rest_is_counted(
    prep: Prep, flavors: Flavors, spec: Path, wording: Wording
) -> None:
    planned = prep("plan", "--target", "flavor/worker", "spec.yaml")
    wording(planned.out.splitlines()[-1])
    applied = prep("apply", "--yes", "--target", "flavor/worker", "spec.yaml")
    assert [each["name"] for each in flavors] == ["worker"]
    assert contains(applied.out, "1 left", "--target")
    spec.write_text(SPEC.replace("worker", "other"))
    assert prep("apply", "--yes", "--target", "flavor/master", "spec.yaml").code == 0
    assert [each["name"] for each in flavors] == ["worker", "master"]
    data = json.loads(prep("plan", "--format", "json", "--target", "flavor/master", "spec.yaml").out)
    assert (data["left_out"], data["undeclared"]) == (1, [])


def test_all_as_targets_leave_nothing_out(prep: Prep, flavors: Flavors) -> None:
    said = prep("plan", "--target", "flavor/worker", "--target", "flavor/master", "spec.yaml")
    assert said.out.splitlines()[-1] == "apply lab: 2 to create"


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--prune", "spec.yaml"],
        ["plan", "--out", "kept.plan", "spec.yaml"],
        ["plan", "--destroy", "--out", "kept.plan", "spec.yaml"],
        ["apply", "--prune", "--yes", "spec.yaml"],
        ["apply", "--plan", "kept.plan"],
        ["apply", "--yes", "spec.yaml", "--target", "flavor/workers"],
    ],
)
def test_a_target_that_makes_no_sense_is_two(prep: Prep, flavors: Flavors, words: list[str]) -> None:
    said = prep(*words, "--target", "flavor/worker")
    assert said.code == 2
    assert "--target" in said.err
    assert flavors == []


# --- kept plans ---------------------------------------------------------------------------


@pytest.fixture
def kept(prep: Prep, flavors: Flavors, tmp_path: Path) -> Path:
    said = prep("plan", "-o", "kept.plan", "spec.yaml")
    plan_id = json.loads((tmp_path / "kept.plan").read_text())["digest"][:8]
    assert (said.code, said.err.splitlines()[-1]) == (
        0,
        f"openstack-prep: saved the plan as kept.plan; its id is {plan_id}",
    )
    return tmp_path / "kept.plan"


def test_a_kept_plan_is_applied_without_asking(prep: Prep, flavors: Flavors, kept: Path) -> None:
    assert prep("apply", "--plan", "kept.plan").code == 0
    assert len(flavors) == 2


def test_a_kept_plan_is_stale_when_the_spec_has_changed(prep: Prep, flavors: Flavors, kept: Path, spec: Path) -> None:
    spec.write_text(SPEC + "# a note\n")
    said = prep("apply", "--plan", "kept.plan")
    assert said.code == 2
    assert contains(said.err, "spec.yaml", "[plan.refused]")
    assert flavors == []


def test_a_kept_plan_is_stale_when_the_cloud_has_changed(prep: Prep, flavors: Flavors, kept: Path) -> None:
    prep("apply", "--yes", "spec.yaml")
    del flavors[:1]
    said = prep("apply", "--plan", "kept.plan")
    assert said.code == 2
    assert "has changed since" in said.err
    assert len(flavors) == 1


def test_a_kept_plan_that_was_applied_has_nothing_to_do(prep: Prep, flavors: Flavors, kept: Path, spec: Path) -> None:
    """A job that is retried after its success succeeds; whatever else would have changed is refused as before."""
    assert prep("apply", "--plan", "kept.plan").code == 0
    made = list(flavors)
    assert prep("apply", "--plan", "kept.plan").code == 0
    assert flavors == made
    spec.write_text(SPEC + "# a note\n")
    assert prep("apply", "--plan", "kept.plan").code == 2


def test_a_kept_plan_is_for_its_project(
    prep: Prep, services: requests_mock.Mocker, flavors: Flavors, kept: Path
) -> None:
    login = {"json": token(project_id="other-project"), "headers": {"X-Subject-Token": "4f2a9c"}, "status_code": 201}
    services.post(f"{IDENTITY}/auth/tokens", **login)
    said = prep("apply", "--plan", "kept.plan")
    assert said.code == 2
    assert contains(said.err, "created", "lab", "admin-project", "other-project", "[plan.refused]")
    assert flavors == []


def test_a_kept_plan_is_applied_by_another_entry_of_the_same_project(
    prep: Prep, flavors: Flavors, kept: Path, clouds_yaml: Path
) -> None:
    clouds_yaml.write_text(CLOUDS.replace("other:", "others:").replace("lab:", "other:"))
    assert prep("apply", "--plan", "kept.plan", "--os-cloud", "other").code == 0
    assert len(flavors) == 2


def test_another_specs_plan_is_refused(prep: Prep, flavors: Flavors, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(SPEC.replace("name: lab", "name: other"))
    said = prep("apply", "--plan", "kept.plan", "other.yaml")
    assert said.code == 2
    assert contains(said.err, "kept.plan", "created", "spec.yaml", "other.yaml", "[plan.refused]")
    assert flavors == []
    assert prep("apply", "--plan", "kept.plan", "spec.yaml").code == 0


def test_a_plan_and_its_spec_apply_in_another_folder(
    prep: Prep, flavors: Flavors, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "elsewhere" / "ci"
    here.mkdir(parents=True)
    for name in ("kept.plan", "spec.yaml"):
        (tmp_path / name).rename(here / name)
    assert str(tmp_path) not in (here / "kept.plan").read_text()
    said = prep("apply", "--plan", "elsewhere/ci/kept.plan")
    assert (said.code, len(flavors)) == (0, 2)


def test_a_plan_kept_far_from_its_spec_finds_it_in_the_working_directory(
    prep: Prep, flavors: Flavors, spec: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept = tmp_path_factory.mktemp("far") / "kept.plan"
    assert prep("plan", "-o", str(kept), "spec.yaml").code == 0
    assert str(kept.parents[1]) not in kept.read_text()
    spec.rename(spec.with_name("renamed.yaml"))
    said = prep("apply", "--plan", str(kept))
    assert said.code == 2
    assert contains(said.err, f"openstack-prep apply --plan {kept} SPEC", "[plan.refused]")
    assert prep("apply", "--plan", str(kept), "renamed.yaml").code == 0
    assert len(flavors) == 2


def test_consent_is_not_added_to_a_kept_plan(prep: Prep, flavors: Flavors, kept: Path) -> None:
    said = prep("apply", "--allow-replace", "--plan", "kept.plan")
    assert said.code == 2
    assert contains(said.err, "--allow-replace", "--plan", "[config.invalid]")
    assert flavors == []


def test_a_kept_plan_holds_the_consent_to_a_replacement(prep: Prep, flavors: Flavors, spec: Path) -> None:
    prep("apply", "--yes", "spec.yaml")
    spec.write_text(SPEC.replace("16GiB", "8GiB"))
    assert prep("plan", "--allow-replace", "-o", "kept.plan", "spec.yaml").code == 0
    assert prep("apply", "--plan", "kept.plan").code == 0
    assert sorted(flavor["ram"] for flavor in flavors) == [8192, 32768]


def test_a_refused_plan_is_not_kept(prep: Prep, flavors: Flavors, spec: Path, tmp_path: Path, wording: Wording) -> None:
    spec.write_text(SPEC + "  - {name: huge}\n")
    said = prep("plan", "-o", "kept.plan", "spec.yaml")
    assert said.code == 2
    wording(said.err)
    assert not (tmp_path / "kept.plan").exists()


def test_a_plan_replaces_only_plans(prep: Prep, flavors: Flavors, spec: Path, kept: Path, wording: Wording) -> None:
    before = spec.read_text()
    said = prep("plan", "-o", "spec.yaml", "spec.yaml")
    assert said.code == 2
    wording(said.err)
    assert spec.read_text() == before
    assert prep("plan", "-o", "kept.plan", "spec.yaml").code == 0


def test_a_plan_to_destroy_is_kept_and_carried_out(prep: Prep, flavors: Flavors, kept: Path) -> None:
    prep("apply", "--plan", "kept.plan")
    assert prep("plan", "--destroy", "-o", "gone.plan", "spec.yaml").code == 0
    assert len(flavors) == 2
    del flavors[0]
    said = prep("apply", "--plan", "gone.plan", "--format", "json")
    assert (said.code, len(flavors)) == (2, 1)  # it deletes exactly what the plan shows
    prep("apply", "--yes", "spec.yaml")
    assert prep("plan", "--destroy", "-o", "gone.plan", "spec.yaml").code == 0
    said = prep("apply", "--plan", "gone.plan", "--format", "json")
    assert (said.code, flavors) == (0, [])
    assert {each["action"] for each in json.loads(said.out)["steps"]} == {"delete"}
    assert prep("apply", "--plan", "gone.plan").code == 0  # it was done before


def test_only_targets_are_destroyed(prep: Prep, flavors: Flavors) -> None:
    prep("apply", "--yes", "spec.yaml")
    planned = json.loads(prep("plan", "--destroy", "--target", "flavor/worker", "-f", "json", "spec.yaml").out)
    assert ([each["resource"] for each in planned["steps"]], planned["left_out"]) == (["flavor/worker"], 1)
    done = json.loads(prep("destroy", "--yes", "--target", "flavor/worker", "-f", "json", "spec.yaml").out)
    assert ([each["resource"] for each in done["steps"]], done["left_out"]) == (["flavor/worker"], 1)
    assert [each["name"] for each in flavors] == ["master"]


def test_a_plan_that_cannot_be_kept(prep: Prep, flavors: Flavors) -> None:
    said = prep("plan", "-o", "gone/kept.plan", "spec.yaml")
    assert said.code == 1
    assert contains(said.err, "gone/kept.plan", "[error.other]")


# --- the choice of a cloud ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "section", "variable"), [("lab", "gone", "gone"), (None, "lab", "gone"), (None, None, "lab")]
)
def test_the_option_is_stronger_than_the_spec_and_the_spec_than_the_variable(
    prep: Prep,
    flavors: Flavors,
    spec: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    section: str | None,
    variable: str,
) -> None:
    monkeypatch.setenv("OS_CLOUD", variable)
    spec.write_text(SPEC.replace("clouds: {admin: lab}\n", f"clouds: {{admin: {section}}}\n" if section else ""))
    assert prep("plan", *(["--os-cloud", option] if option else []), "spec.yaml").code == 0


# --- the rest -----------------------------------------------------------------------------


def test_a_warning_of_the_spec_is_told(prep: Prep, flavors: Flavors, spec: Path) -> None:
    spec.write_text(SPEC + "users: [{name: u, password: correct-horse}]\n")
    said = prep("show", "spec.yaml")
    assert contains(said.err, "warning", "spec.yaml", "secret", "plain text")
    assert "correct-horse" not in said.err + said.out


def test_debug_shows_requests_and_tracebacks_but_no_secret(
    prep: Prep, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    services.get(f"{FLAVORS}/detail", **failure(500, "a bug"))
    said = prep("plan", "--debug", "spec.yaml")
    assert f'GET "{FLAVORS}/detail' in said.err
    assert "Traceback" in said.err
    assert {"keystoneauth.session", "stevedore.extension"} & {*said.err.split()} == {"keystoneauth.session"}
    assert "admin-password" not in said.err
    assert "token-0" not in said.err


def test_a_line_per_request_without_a_secret(prep: Prep, flavors: Flavors) -> None:
    said = prep("plan", "-v", "spec.yaml")
    assert re.search(r"^GET +compute /flavors/detail +200 +\d", said.err, re.MULTILINE)
    assert "token-0" not in said.err
    assert "compute" not in prep("plan", "spec.yaml").err


def test_quiet_leaves_notes_and_progress_out(prep: Prep, flavors: Flavors, tmp_path: Path) -> None:
    assert "spec.yaml" in prep("plan").err
    said = prep("apply", "-q", "--yes")
    assert (said.code, said.err) == (0, "")
    assert "flavor/worker" not in said.out
    assert "2 done" in said.out


def test_a_command_works_in_the_folder_of_its_option(
    prep: Prep, flavors: Flavors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert prep("-C", "..", "plan", "spec.yaml", "--out", "my.plan").code == 0
    assert (tmp_path / "my.plan").exists()
    assert Path.cwd() == tmp_path / "below"
    assert prep("-C", "..", "plan", "-C", "below", "../spec.yaml", "--out", "my.plan").code == 0
    assert (tmp_path / "below" / "my.plan").exists()
    (tmp_path / "fleet.yaml").write_text("name: f\ntargets: []\n")
    said = prep("-C", "..", "plan", "fleet.yaml")  # with the folder for the command that it prints
    assert (said.code, str(tmp_path) in said.err) == (2, True)
    said = prep("-C", "gone", "plan", "spec.yaml", "--format", "json")
    assert (said.code, json.loads(said.out)["errors"][0]["code"]) == (2, "config.invalid")


@pytest.mark.parametrize(
    ("words", "folders", "verbose"),
    [
        ("-C a -v validate -C b -v", ["a", "b"], 2),
        ("-C a rke -C b check -v f", ["a", "b"], 1),
        ("rke -C a -v check -C b f", ["a", "b"], 1),
        ("-C a -C b validate", ["a", "b"], 0),
        ("validate -vv", [], 2),
    ],
)
def test_what_is_collected_before_and_after_the_command(words: str, folders: list[str], verbose: int) -> None:
    options = build_parser().parse_args(words.split())
    assert [str(each) for each in getattr(options, "directory", [])] == folders
    assert getattr(options, "verbose", 0) == verbose


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--yes", "--prune"),
        ("apply", "--yes", "--allow-replace"),
        ("apply", "--yes", "--allow-loss", "port/a"),
        ("plan", "--destroy", "--out", "my.plan"),
        ("plan", "--prune", "--out", "my.plan"),
        ("pre-ipi", "--yes", "--allow-replace"),
        ("rke", "render", "--allow-replace"),
        ("unlock", "--yes"),
    ],
)
def test_what_may_delete_has_no_default_spec(
    prep: Prep, services: requests_mock.Mocker, words: tuple[str, ...]
) -> None:
    said = prep(*words, "--format", "json")
    assert (said.code, json.loads(said.out)["errors"][0]["code"]) == (2, "config.invalid")
    assert not services.request_history


def test_a_plan_that_is_only_shown_has_a_default_spec(prep: Prep, flavors: Flavors) -> None:
    assert [prep("plan", option).code for option in ("--destroy", "--prune", "--allow-replace")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["prep.yaml", "a.yaml", "spec.yaml"], "prep.yaml"),
        (["a.yml"], "a.yml"),
        ([], ""),
        (["a.yaml", "b.yaml"], ""),
    ],
)
def test_the_spec_of_the_folder(prep: Prep, flavors: Flavors, spec: Path, names: list[str], chosen: str) -> None:
    spec.unlink()
    (spec.parent / "part.yaml").write_text("flavors: []\n")
    (spec.parent / "install-config.yaml").write_text("baseDomain: a.b\n")
    (spec.parent / "broken.yaml").write_text("a: [\n")
    for name in names:
        (spec.parent / name).write_text(SPEC)
    for words in ("plan", "apply --yes", "validate", "show", "topology --offline"):
        said = prep(*words.split(), "--format", "json")
        if chosen:
            assert said.code == 0
            assert f" {chosen}\n" in said.err
        else:
            (error,) = json.loads(said.out)["errors"]
            assert (said.code, error["code"]) == (2, "config.invalid")
            assert contains(error["what"], *names)


@pytest.mark.parametrize(
    "words", [("apply", "--plan", "my.plan"), ("unlock", "--name", "a"), ("topology", "--project")]
)
def test_an_option_instead_of_a_spec(prep: Prep, services: requests_mock.Mocker, words: tuple[str, ...]) -> None:
    assert "using the spec" not in prep(*words).err


def test_standard_input_is_a_spec(prep: Prep, flavors: Flavors, spec: Path) -> None:
    """In a process of its own, whose standard input is a pipe."""
    program = [sys.executable, "-m", "openstack_prep.cli.main", "--format", "json"]
    done = subprocess.run([*program, "validate", "-"], input=SPEC, capture_output=True, text=True)
    assert (done.returncode, json.loads(done.stdout)["resources"]) == (0, ["flavor/master", "flavor/worker"])
    done = subprocess.run([*program, "validate", "-"], input=f"{SPEC}nam: x\n", capture_output=True, text=True)
    assert json.loads(done.stdout)["errors"][0]["where"].startswith("standard input:")
    done = subprocess.run([*program, "plan", "-", "-o", "my.plan"], input=SPEC, capture_output=True, text=True)
    assert (done.returncode, (spec.parent / "my.plan").exists()) == (2, False)


@pytest.mark.parametrize("words", [("validate", "a\0b"), ("-C", "a\0b", "plan"), ("check", "--offline", "a\0b")])
def test_an_argument_with_a_null_character(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert contains(capsys.readouterr().err, "config.invalid", "U+0000")


def test_a_crash_leaves_no_core_dump(prep: Prep, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would contain the secrets of the run."""
    set_limits: list[Any] = []
    monkeypatch.setattr("resource.setrlimit", lambda *limits: set_limits.append(limits))
    prep("validate", "spec.yaml")
    assert set_limits == [(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))]


def test_without_debug_the_libraries_say_nothing(prep: Prep, services: requests_mock.Mocker, wording: Wording) -> None:
    services.post(f"{IDENTITY}/auth/tokens", **failure(401, "no"))
    said = prep("plan", "spec.yaml")
    wording(said.err)


def test_examples_are_listed(prep: Prep) -> None:
    said = prep("example")
    assert said.code == 0
    assert {"minimal", "openshift-lab"} <= set(said.out.split())


def test_an_example_is_a_right_spec(prep: Prep, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(prep("example", "minimal").out)
    assert load_spec(tmp_path / "mine.yaml").name == "small"


def test_an_example_that_is_not_there(prep: Prep) -> None:
    said = prep("example", "maximal")
    assert said.code == 2
    assert contains(said.err, "example 'maximal", "exposures-external-ip", "[config.invalid]")


def test_the_schema_is_printed(prep: Prep) -> None:
    assert json.loads(prep("schema").out) == schema()


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"openstack-prep {__version__}\n"


def test_an_error_is_one_document_of_data_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: lab\nproject: {nmae: lab}\nusers: [{}]\n")
    assert main(["plan", "--format", "json", str(spec)]) == 2
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert (data["version"], data["exit_code"]) == (1, 2)
    assert {each["code"] for each in data["errors"]} == {"spec.missing-key", "spec.unknown-key"}
    assert [each["where"] for each in data["errors"]] == [
        f"{spec}:2: project.name",
        f"{spec}:2: project.nmae",
        f"{spec}:3: users[0].name",
    ]
    assert len(err.splitlines()) == 3


@pytest.mark.usefixtures("clouds_yaml", "flavors")
def test_a_program_may_run_commands_again_and_again(tmp_path: Path) -> None:
    """Former connections are garbage, also those that a command has spared from the collector."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    gc.collect()
    before, sessions = gc.get_freeze_count(), [each for each in gc.get_objects() if type(each) is Session]
    others = set(map(id, sessions))  # of tests in the same process; the list keeps their ids from being used again
    for _ in range(3):
        main(["plan", str(tmp_path / "spec.yaml")])
        assert gc.get_freeze_count() <= before
        gc.collect()
        left = [each for each in gc.get_objects() if type(each) is Session and id(each) not in others]
        assert len(left) <= 1  # of the command just now
        del left


def test_options_have_to_be_written_in_full(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    with pytest.raises(SystemExit) as ended:
        main(["validate", "--juni", str(tmp_path / "j.xml"), str(tmp_path / "spec.yaml")])
    assert ended.value.code == 2
    assert "--juni" in capsys.readouterr().err
    assert not (tmp_path / "j.xml").exists()


COMMAND = Path(sys.executable).with_name("openstack-prep")
CLOSED = (">&-", "<&-", "2>&-", ">&- <&- 2>&-")


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    ("words", "code"), [("validate spec.yaml", 0), ("apply spec.yaml", 2), ("explain plan.refused", 0), ("nonsense", 2)]
)
def test_a_closed_stream_changes_no_exit_code(words: str, code: int, closed: str, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("name: lab\nproject: {name: lab}\n")
    script = f"{COMMAND} {words} {closed}"
    environment = {"PATH": "/bin:/usr/bin", "HOME": str(tmp_path)}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "internal" not in ran.stderr
    assert bool(ran.stdout) == (code == 0 and not closed.startswith(">"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_no_name_ends_a_command_that_prints_it(encoding: str, tmp_path: Path) -> None:
    """A pipeline's environment may have any encoding: an apply would end in its middle, at the first such name."""
    (tmp_path / "spec.yaml").write_text("name: lab\nproject: {name: Ωé}\nnetworks: [{name: né}]\n", encoding="utf-8")
    environment = {"PATH": "/bin:/usr/bin", "HOME": str(tmp_path), "PYTHONIOENCODING": encoding}
    words = [COMMAND, "graph", "--format", "mermaid", "spec.yaml"]
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert "project/Ωé" in ran.stdout.decode()
    assert "network/né" in ran.stdout.decode()


@pytest.mark.parametrize(
    "line",
    [
        *("plan", "plan spec.yaml --vars-file", "apply spec.yaml --plan", "import --release 4.20", "fleet plan"),
        *("check --offline --release 4.20", "verify --metadata", "rke check", "address-pairs sync --tag t --services"),
    ],
)
def test_a_text_in_the_place_of_a_path_is_not_repeated(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text("name: x\n")
    assert main([*line.split(), "name: x\nusers: [{name: u, password: c0rrect-horse}]\n"]) == 2
    assert "c0rrect" not in "".join(capsys.readouterr())
