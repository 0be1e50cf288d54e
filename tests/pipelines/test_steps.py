"""The scripts of the examples, in their order, on the devcloud; GitHub's own actions are left out.

Each job begins in a checkout of its own, and each script has the variables that the file and the settings of
docs/pipelines.md give to it, and no others: GitHub gives secrets to the steps that name them, in jobs of an environment
that has them; GitLab gives protected variables to pipelines of protected branches.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import pytest

from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.pytest_devcloud import Devcloud
from tests.pipelines.examples import PROGRAMS, gitlab_jobs, pipeline, workflow
from tests.unit.tracing.receiver import Receiver

SPEC = """\
name: piped
project: {name: piped}
users: [{name: piped, password: {env: OCP_USER_PASSWORD}}]
role_assignments: [{user: piped, role: member}]
networks: [{name: nodes}]
"""
SECRET = "pipe-p4ssword"
WHEEL = "https://packages.example.com/openstack_prep-1.0.0-py3-none-any.whl"
RECORD = """\
#!/bin/sh
printf '%s\\n' "$@" > "$HOME/{program}.words"
"""
STAND_INS = ("gh", "pip")
"""Programs that only record their arguments: GitHub's command, and what would download the package."""


@dataclass
class Runner:
    """A machine that runs jobs, each in a checkout of its own.

    ``files`` are what the artifacts of the jobs hold, by name, and ``printed`` is all that was printed.
    """

    folder: Path
    devcloud: Devcloud
    files: dict[str, Path] = field(default_factory=dict)
    printed: str = ""

    def __post_init__(self) -> None:
        for program in STAND_INS:
            path = self.folder / "programs" / program
            path.parent.mkdir(exist_ok=True)
            path.write_text(RECORD.format(program=program))
            path.chmod(0o755)
        (self.folder / "home").mkdir()

    def checkout(self, job: str) -> Path:
        """Return the folder of a job, which holds what the repository holds."""
        folder = self.folder / job
        folder.mkdir()
        (folder / "spec.yaml").write_text(SPEC)
        return folder

    def run(self, script: str, folder: Path, given: Mapping[str, str]) -> None:
        """Run a script as both programs do: it ends at the first command that fails."""
        machine = {
            "PATH": f"{self.folder / 'programs'}:{PROGRAMS}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=folder,
            env=machine | dict(given),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.printed += done.stdout + done.stderr
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"

    def by_hand(self, words: str, **given: str) -> None:
        """Run a command as an engineer in a checkout would, who has the password and the entry."""
        own = {"OS_CLOUD": ADMIN, "OS_CLIENT_CONFIG_FILE": str(self.devcloud.clouds_file), "OCP_USER_PASSWORD": SECRET}
        self.run(words, self.checkout(f"by-hand-{len([*self.folder.iterdir()])}"), own | given)

    def words(self, program: str) -> list[str]:
        """Return the arguments of the last call of a program."""
        return (self.folder / "home" / f"{program}.words").read_text().splitlines()

    def results(self, path: Path) -> list[dict[str, Any]]:
        (run,) = json.loads(path.read_text())["runs"]
        assert run["invocations"][0]["executionSuccessful"] is True
        return list(run["results"])


@pytest.fixture
def runner(tmp_path: Path, devcloud: Devcloud) -> Runner:
    return Runner(tmp_path, devcloud)


class Workflow:
    """A run of the workflow of GitHub after a push."""

    files = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")

    def __init__(self, runner: Runner) -> None:
        self.runner, self.content = runner, workflow()
        self.variables = {"OPENSTACK_PREP": WHEEL, "OS_CLOUD": ADMIN}
        secrets = {"CLOUDS_YAML": runner.devcloud.clouds_file.read_text(), "OCP_USER_PASSWORD": SECRET}
        self.secrets = {"openstack-plan": secrets, "openstack-apply": secrets}

    def run(self, name: str) -> Path:
        """Run the steps of a job, and return its folder."""
        job, folder = self.content["jobs"][name], self.runner.checkout(name)
        temporary = self.runner.folder / f"{name}-temporary"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        written = {each: temporary / each for each in self.files}
        for step in job["steps"]:
            for path in written.values():
                path.touch()
            if action := step.get("uses"):
                self._act(action.partition("@")[0], step.get("with", {}), folder)
                continue
            machine = {each: str(path) for each, path in written.items()} | {"RUNNER_TEMP": str(temporary)}
            kept = dict(line.split("=", 1) for line in written["GITHUB_ENV"].read_text().splitlines())
            declared = {**self.content["env"], **job.get("env", {}), **step.get("env", {})}
            given = {key: self._value(str(value), job.get("environment")) for key, value in declared.items()}
            self.runner.run(step["run"], folder, machine | kept | given)
        return folder

    def _value(self, text: str, environment: str | None) -> str:
        """Return a value of ``env``; a secret that a job does not have is an empty text."""
        known = {f"vars.{name}": value for name, value in self.variables.items()}
        known |= {f"secrets.{name}": value for name, value in self.secrets.get(environment or "", {}).items()}
        known |= {"github.token": "none", "github.event.pull_request.number": "7"}
        absent = {"secrets.CLOUDS_YAML": "", "secrets.OCP_USER_PASSWORD": ""}
        return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda match: (absent | known)[match[1]], text)

    def _act(self, action: str, options: Mapping[str, Any], folder: Path) -> None:
        """Do what GitHub's own actions do with files."""
        if action == "actions/upload-artifact":
            self.runner.files[options["name"]] = folder / options["path"]
        elif action == "actions/download-artifact":
            shutil.copy(self.runner.files[options["name"]], folder)


def test_the_workflow_of_github(runner: Runner) -> None:
    run = Workflow(runner)
    lint, plan, apply, verify = (run.run(name) for name in ("lint", "plan", "apply", "verify"))
    assert runner.words("pip") == ["install", "--quiet", WHEEL]
    temporary = runner.folder / "plan-temporary"
    assert (temporary / "clouds.yaml").stat().st_mode & 0o777 == 0o600
    assert (temporary / "GITHUB_OUTPUT").read_text() == "code=2\n"
    assert "      + network/nodes" in (temporary / "GITHUB_STEP_SUMMARY").read_text()
    assert runner.words("gh")[:3] == ["pr", "comment", "7"]
    assert runner.results(lint / "validate.sarif") == runner.results(verify / "audit.sarif") == []
    assert not (plan / "clouds.yaml").exists()
    assert SECRET not in runner.printed
    shutil.rmtree(apply)
    run.run("apply")  # "Re-run job", as after a runner was lost
    runner.by_hand("openstack-prep destroy --yes spec.yaml")


def test_the_pipeline_of_gitlab(runner: Runner) -> None:
    content = pipeline()
    clouds = runner.folder / "CLOUDS_YAML"  # GitLab writes a variable of the type File beside the checkout
    clouds.write_text(runner.devcloud.clouds_file.read_text())
    unprotected = {"OPENSTACK_PREP": WHEEL, "OS_CLOUD": ADMIN}
    protected = unprotected | {"CLOUDS_YAML": str(clouds), "OCP_USER_PASSWORD": SECRET}
    folders = {}
    for name, job in gitlab_jobs(content):
        folder = folders[name] = runner.checkout(name)
        for need in job.get("needs", ()):
            for path in content[need].get("artifacts", {}).get("paths", ()):
                shutil.copy(folders[need] / path, folder)
        settings = unprotected if job["stage"] == "lint" else protected  # of a merge request from any branch
        declared = {**content["variables"], **job.get("variables", {})}
        expanded = {key: Template(each).substitute(settings) for key, each in declared.items()}
        script = "\n".join([*content["default"]["before_script"], *job["script"]])
        runner.run(script, folder, settings | expanded)
    assert "+ network/nodes" in (folders["plan"] / "plan.txt").read_text()
    for report in (folders["validate"] / "validate.xml", folders["audit"] / "audit.xml"):
        assert 'tests="1" failures="0" errors="0"' in report.read_text()
    assert SECRET not in runner.printed
    runner.by_hand("openstack-prep destroy --yes spec.yaml")


def test_spans_of_a_run(runner: Runner, receiver: Receiver) -> None:
    """Each request belongs to a step or to the command, and nothing that is sent holds a secret."""
    runner.by_hand("openstack-prep apply --yes spec.yaml", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    runner.by_hand("openstack-prep destroy --yes spec.yaml")
    by_id = {span.span_id: span for span in receiver.spans}
    requests = [span for span in receiver.spans if any(each.key == "url.full" for each in span.attributes)]
    parents = {by_id[each.parent_span_id].name for each in requests}
    assert {"openstack-prep apply", "create network", "create user"} <= parents
    (network,) = [span for span in receiver.spans if span.name == "create network"]
    posted = [each for each in requests if each.parent_span_id == network.span_id and each.name == "POST"]
    services = [{pair.key: pair.value.string_value for pair in each.attributes} for each in posted]
    assert "network" in {each["openstack_prep.service"] for each in services}  # a login may have come before
    sent = "".join(map(str, [*receiver.spans, *receiver.durations]))
    assert SECRET not in sent
    assert runner.devcloud.admin_password not in sent
    (durations,) = receiver.durations
    assert sum(point.count for point in durations.histogram.data_points) == len(requests)
