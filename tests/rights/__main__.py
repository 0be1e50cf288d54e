"""Writes the tables of docs/security.md: ``python -m tests.rights``."""

from __future__ import annotations

from tests.bench.table import insert
from tests.devcloud.layout import REPOSITORY
from tests.rights.table import BEGIN, END, render

if __name__ == "__main__":
    page = REPOSITORY / "docs" / "security.md"
    page.write_text(insert(page.read_text(), render(), (BEGIN, END)))
