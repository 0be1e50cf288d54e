"""What can be said of the examples without the servers that run them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.pipelines.examples import EXAMPLES, PROGRAMS, scripts


def run(*words: str | Path, text: str = "") -> None:
    """Run a program of the environment, and insist on its approval."""
    program, *arguments = words
    done = subprocess.run(
        [str(PROGRAMS / program), *map(str, arguments)], input=text, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_has_the_shape_of_github() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", EXAMPLES / "github.yaml")


def test_the_workflow_gives_away_nothing() -> None:
    config = Path(__file__).with_name("zizmor.yaml")
    run("zizmor", "--offline", "--no-progress", "--pedantic", "--config", config, EXAMPLES / "github.yaml")


def test_the_pipeline_has_the_shape_of_gitlab() -> None:
    options = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    run("check-jsonschema", *options, EXAMPLES / "gitlab.yaml")


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in scripts()])
def test_scripts_quote_what_they_use(script: str) -> None:
    run("shellcheck", "--shell", "bash", "-", text=script)


def test_the_image_follows_the_rules_of_hadolint() -> None:
    run("hadolint", EXAMPLES / "Containerfile")
