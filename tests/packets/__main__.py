"""Writes the table of docs/reliability.md: ``python -m tests.packets``; ``tox -e packets`` tries what it says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.table import insert
from tests.packets.played_cluster import HOSTS
from tests.packets.situations import SITUATIONS

PAGE = Path(__file__).parents[2] / "docs/reliability.md"
MARKS = ("<!-- packets: begin -->", "<!-- packets: end -->")


def rows() -> Iterator[str]:
    yield "| situation | `verify` of the API | of the console | answers outside |"
    yield "|---|---|---|---|"
    for each in SITUATIONS:
        said = (" ".join(f"`{code}`" for code in each.codes[service].split()) or "ok" for service in HOSTS)
        answers = ", ".join(service for service in HOSTS if service not in each.silent) or "nobody"
        yield f"| {each.name} | {' | '.join(said)} | {answers.replace('ingress', 'console')} |"


def main() -> int:
    PAGE.write_text(insert(PAGE.read_text(), "\n".join(rows()), MARKS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
