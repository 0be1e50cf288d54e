"""The scripts of the examples, in their order, on the devcloud; GitHub's own actions are left out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.pipelines.examples import PROGRAMS, github_steps, gitlab_jobs
from tests.unit.tracing.receiver import Receiver

SPEC = """\
name: piped
project: {name: piped}
users: [{name: piped, password: {env: OCP_USER_PASSWORD}}]
role_assignments: [{user: piped, role: member}]
networks: [{name: nodes}]
"""
SECRET = "pipe-p4ssword"
GH = """\
#!/bin/sh
printf '%s\\n' "$@" > gh.words
"""


class Runner:
    """A folder with a spec, and the environment of a job."""

    def __init__(self, folder: Path, devcloud: Devcloud) -> None:
        self.folder, self.devcloud = folder, devcloud
        (folder / "spec.yaml").write_text(SPEC)
        programs = folder / "programs"
        programs.mkdir()
        (programs / "gh").write_text(GH)  # in the place of GitHub's command
        (programs / "gh").chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{PROGRAMS}:{os.environ['PATH']}",
            "HOME": str(folder),
            "SPEC": "spec.yaml",
            "OS_CLOUD": "devcloud-admin",
            "OCP_USER_PASSWORD": SECRET,
        }
        self.printed = ""

    def run(self, script: str, **environment: str) -> None:
        """Run a script as both programs do: it ends at the first command that fails."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.printed += done.stdout + done.stderr
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def results(self, name: str) -> list[dict[str, Any]]:
        (run,) = json.loads(self.text(name))["runs"]
        assert run["invocations"][0]["executionSuccessful"] is True
        return list(run["results"])


@pytest.fixture
def runner(tmp_path: Path, devcloud: Devcloud) -> Runner:
    return Runner(tmp_path, devcloud)


def test_the_workflow_of_github(runner: Runner) -> None:
    files = {name: str(runner.folder / name) for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    runner.environment |= {**files, "RUNNER_TEMP": str(runner.folder), "GH_TOKEN": "none", "NUMBER": "7"}
    clouds = runner.devcloud.clouds_file.read_text()
    for _, step in github_steps():
        if "run" not in step or step["name"] == "install":
            continue
        runner.run(step["run"], CLOUDS_YAML=clouds)
        if step["name"] == "clouds.yaml":
            runner.environment |= dict(line.split("=", 1) for line in runner.text("GITHUB_ENV").splitlines())
            assert (runner.folder / "clouds.yaml").stat().st_mode & 0o777 == 0o600
    assert runner.text("GITHUB_OUTPUT") == "code=2\n"
    assert "      + network/nodes" in runner.text("GITHUB_STEP_SUMMARY")
    assert runner.text("gh.words").split()[:3] == ["pr", "comment", "7"]
    assert runner.results("validate.sarif") == runner.results("audit.sarif") == []
    assert SECRET not in runner.printed
    runner.run("openstack-prep destroy --yes spec.yaml")


def test_the_pipeline_of_gitlab(runner: Runner) -> None:
    runner.environment["OS_CLIENT_CONFIG_FILE"] = str(runner.devcloud.clouds_file)
    for job, lines in gitlab_jobs():
        if job != "default":
            runner.run("\n".join(lines))
    assert "+ network/nodes" in runner.text("plan.txt")
    for name in ("validate.xml", "audit.xml"):
        assert 'tests="1" failures="0" errors="0"' in runner.text(name)
    assert SECRET not in runner.printed
    runner.run("openstack-prep destroy --yes spec.yaml")


def test_spans_of_a_run(runner: Runner, receiver: Receiver) -> None:
    """Each request belongs to a step or to the command, and nothing that is sent holds a secret."""
    runner.environment["OS_CLIENT_CONFIG_FILE"] = str(runner.devcloud.clouds_file)
    runner.run("openstack-prep apply --yes spec.yaml", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    runner.run("openstack-prep destroy --yes spec.yaml")
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
