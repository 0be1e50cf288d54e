"""Writes the tables of docs/reliability.md: ``python -m tests.packets``; ``tox -e packets`` tries what they say."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.table import insert
from tests.packets.exposed import EXPOSURES
from tests.packets.meshed import ALL, MESHES
from tests.packets.played_cluster import HOSTS
from tests.packets.situations import SITUATIONS

PAGE = Path(__file__).parents[2] / "docs/reliability.md"
MARKS = ("<!-- packets: begin -->", "<!-- packets: end -->")


def said(codes: str) -> str:
    return " ".join(f"`{code}`" for code in codes.split()) or "ok"


def rows() -> Iterator[str]:
    yield "| situation | `verify` of the API | of the console | answers outside |"
    yield "|---|---|---|---|"
    for each in SITUATIONS:
        codes = (said(each.codes[service]) for service in HOSTS)
        answers = ", ".join(service for service in HOSTS if service not in each.silent) or "nobody"
        if each.goes_out is not None:
            answers += f"; a machine's own request is {'answered' if each.goes_out else 'not answered'}"
        yield f"| {each.name} | {' | '.join(codes)} | {answers.replace('ingress', 'console')} |"
    yield ""
    yield "| situation | `exposures show` | answered outside |"
    yield "|---|---|---|"
    for exposure in EXPOSURES:
        yield f"| {exposure.name} | {said(exposure.codes)} | {'yes' if exposure.answered else 'no'} |"
    yield ""
    yield "| situation | `rke mesh` | not answered between the nodes |"
    yield "|---|---|---|"
    for mesh in MESHES:
        everything = len(mesh.lost) == 2 * len(ALL.split(", "))
        lost = "everything" if everything else ", ".join(sorted(mesh.lost)) or "nothing"
        yield f"| {mesh.name} | {said(mesh.codes)} | {lost} |"


def main() -> int:
    PAGE.write_text(insert(PAGE.read_text(), "\n".join(rows()), MARKS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
