"""The examples of the pages ``docs/reference*.md``: sessions of Python whose output is compared."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.devcloud.qcow2 import qcow2

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("reference*.md"))
FILES = {
    "id_ed25519.pub": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINGgleqPvnM+sfAtUjoiV+DOgW7GAJekflI6yucIyHos me@here\n",
    "servers.yaml": "heat_template_version: 2018-08-31\nparameters: {count: {type: number}}\n",
    "one.yaml": "name: reference-one\nproject: {name: reference-one}\n",
    "wrong.yaml": "name: wrong\nproject: {name: shop, enabeld: true}\n",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Example:
    """One block of a page."""

    page: Path
    line: int
    text: str

    @property
    def needs_cloud(self) -> bool:
        return re.search(r"\bcloud\b", self.text) is not None


def examples(page: Path) -> Iterator[Example]:
    """Yield the blocks of a page in their order."""
    text = page.read_text()
    for block in re.finditer(r"^```pycon\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield Example(page, text.count("\n", 0, block.start(1)), block[1])


def run(blocks: list[Example], names: dict[str, Any]) -> list[str]:
    """Run the blocks of a page as one session; return what differs."""
    wrong: list[str] = []
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block.text, names, block.page.name, str(block.page), block.line)
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=wrong.append, clear_globs=False)
        names = test.globs
    return wrong


def write_files(folder: Path) -> None:
    """Write the files that the examples read."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    shipped = DOCS.parent / "install_configs" / "exposures-metallb.yaml"
    (folder / shipped.name).write_text(shipped.read_text())
    (folder / "disk.qcow2").write_bytes(qcow2())
