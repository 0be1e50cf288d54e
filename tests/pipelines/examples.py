"""The examples of docs/pipelines.md, and their scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "pipelines"
PROGRAMS = Path(sys.executable).parent


def github_steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the steps of all jobs in their order, each with the name of its job."""
    workflow = yaml.safe_load((EXAMPLES / "github.yaml").read_text())
    for job, content in workflow["jobs"].items():
        for step in content["steps"]:
            yield job, step


def gitlab_jobs() -> Iterator[tuple[str, list[str]]]:
    """Yield the scripts of all jobs in their order; the first belongs to each job."""
    pipeline = yaml.safe_load((EXAMPLES / "gitlab.yaml").read_text())
    yield "default", pipeline["default"]["before_script"]
    for job, content in pipeline.items():
        if isinstance(content, dict) and "script" in content:
            yield job, content["script"]


def scripts() -> Iterator[tuple[str, str]]:
    """Yield each script with a name."""
    for job, step in github_steps():
        if "run" in step:
            yield f"github-{job}-{step['name']}", step["run"]
    for job, lines in gitlab_jobs():
        yield f"gitlab-{job}", "\n".join(lines)
