"""The files of reports: a report replaces only reports of its own form, and never what somebody else has written."""

from __future__ import annotations

import os
import re
from pathlib import Path

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.private_file import write_private_here, write_readable_here

MARK = "<!doctype html><!-- openstack-prep report -->"
"""The beginning of each page."""
BEGINNINGS = {
    "html": re.escape(MARK),
    "junit": r'<\?xml [^>]*\?>\s*<testsuites name="openstack-prep"',
    "sarif": (
        r'\{\s*"\$schema": "[^"]*",\s*"version": "[^"]*",\s*"runs": \[\s*'
        r'\{\s*"tool": \{\s*"driver": \{\s*"name": "openstack-prep"'
    ),
}
"""The beginning of a report of each form, as this package writes it."""
LONGEST = 1000
"""Bytes that hold any of the beginnings."""


def judge(form: str, path: Path) -> None:
    """Raise ConfigError if a report may not be written to a file; also for the time before the work is done."""
    try:
        problem = _problem(form, path)
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}; name another file"
    if problem:
        raise ConfigError(f"--{form} {path}: {problem}")


def _problem(form: str, path: Path) -> str:
    folder = path.parent
    if path.is_dir():
        return f"it is a folder; name a file in it, such as {path / f'report.{form}'}"
    if (path.exists() and not path.is_file()) or os.path.realpath(folder) == "/dev":  # a link there names a stream
        return "it is not a regular file; name another file"
    if not folder.is_dir():
        return f"the folder {folder} does not exist; create it, or name another file"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {folder} is not writable; name another file"
    if path.exists() and not _is_report(form, path):
        return f"it exists and is not a report that --{form} has written; name another file, or delete it"
    return ""


def _is_report(form: str, path: Path) -> bool:
    """Whether a file is such a report, or empty."""
    with path.open("rb") as file:
        begin = file.read(LONGEST).decode(errors="replace")
    return not begin or re.match(BEGINNINGS[form], begin) is not None


def write(form: str, path: Path, text: str) -> None:
    """Write a report completely or not at all, at exactly this path: a link is replaced; raises PrepError.

    Only its owner can read a page; the others are for another user: the runner of a pipeline.
    """
    judge(form, path)
    (write_private_here if form == "html" else write_readable_here)(path, text)
