"""Writes docs/codes.md from the registries of codes: ``python docs/make_codes_md.py``."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.cli.reference.explain import PARTS
from openstack_prep.reports.codes import read_codes

INTRODUCTION = """\
# Codes of diagnostics

`check`, `verify` and `rke mesh` print a code in brackets with each problem, such as `[quota.short]`; in JSON it is the
field `code`. Refusals of a plan and errors of a spec have their codes in JSON. Codes are stable: scripts can rely on
them. `openstack-prep explain CODE` prints the same as this page.

In JSON each diagnostic has the fields `code`, `status` (`ok`, `warning`, `error` or `unknown`), `where`, `what`, `why`
and `fix`.

Generated from the files `codes.yaml` of the package by `python docs/make_codes_md.py`.
"""


def page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for code, entry in read_codes().items():
        lines = [f"- **{part}**: {entry[part]}" for part in PARTS[1:]]
        parts.append("\n".join([f"## `{code}`", entry["means"], "", *lines, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("codes.md").write_text(page())
