"""The examples of docs/pipelines.md, and their scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "pipelines"
PROGRAMS = Path(sys.executable).parent


def workflow() -> dict[str, Any]:
    """Return the workflow of GitHub."""
    return dict(yaml.safe_load((EXAMPLES / "github.yaml").read_text()))


def pipeline() -> dict[str, Any]:
    """Return the pipeline of GitLab."""
    return dict(yaml.safe_load((EXAMPLES / "gitlab.yaml").read_text()))


def gitlab_jobs(found: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the jobs of a pipeline in their order, each with what it extends."""
    for name, job in found.items():
        if isinstance(job, dict) and "script" in job:
            yield name, found.get(job.get("extends"), {}) | job


def scripts() -> Iterator[tuple[str, str]]:
    """Yield each script with a name."""
    for name, job in workflow()["jobs"].items():
        for step in job["steps"]:
            if "run" in step:
                yield f"github-{name}-{step['name']}", step["run"]
    found = pipeline()
    yield "gitlab-default", "\n".join(found["default"]["before_script"])
    for name, job in gitlab_jobs(found):
        yield f"gitlab-{name}", "\n".join(job["script"])
