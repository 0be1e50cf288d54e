"""Blocks of lines in a file that others use as well, such as a hosts file.  Only ``put_block`` writes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.file_lock import one_writer
from openstack_prep.base.given_file import read_bytes, unreadable
from openstack_prep.base.private_file import target_of, write_shared

Edit: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
"""Judges the lines of a file, of which those of the block are empty; returns them, changed or not."""


def put_block(path: Path, label: str, lines: Sequence[str], edit: Edit = list) -> bool:
    """Write lines into a file, between two comments with a label; return whether that changed the file.

    Everything outside of this block is left to ``edit``, which changes nothing by default; the file's mode and owner
    are left untouched.  Without lines, the block is removed.  Raises SpecError with the line of a comment that lacks
    its counterpart.
    """
    return change_file(path, lambda old: with_block(old, label, lines, str(path), edit))


def change_file(path: Path, change: Callable[[str], str]) -> bool:
    """Write what a function makes of the text of a file, while no other run does; return whether that changed it.

    The function may raise, and then nothing is written.  A file that would not change is not even locked, because it
    may be in a folder where this user must not write.
    """
    old = content(path)
    if change(old) == old:
        return False
    with contextlib.suppress(OSError):  # which the lock reports; others read the file, so the umask decides here
        target_of(path).parent.mkdir(parents=True, exist_ok=True)
    with one_writer(path) as target:
        write_shared(target, change(content(target)))
    return True


def content(path: Path) -> str:
    """Return the exact text of a file, "" if it does not exist; raises SpecError."""
    if not path.exists():
        return ""
    if not path.is_file():  # a pipe must never be written to
        raise SpecError([Mistake(str(path), "is not a regular file", "give another file")])
    try:
        return read_bytes(path).decode("utf-8", "surrogateescape")  # keeps line ends and invalid bytes
    except OSError as error:
        raise SpecError([Mistake(str(path), unreadable(error), "give another file")]) from error


def with_block(text: str, label: str, lines: Sequence[str], where: str = "hosts", edit: Edit = list) -> str:
    """Return a text with the block of a label, in its former place or at the end."""
    begin, end = f"# BEGIN openstack-prep {label}", f"# END openstack-prep {label}"
    block = "".join(f"{line}\n" for line in [begin, *lines, end]) if lines else ""
    old = text.splitlines(keepends=True)
    place = _place(old, begin, end, where)
    if place is None:
        rest = "".join(edit(old))
        glue = "\n" if rest and block and not rest.endswith("\n") else ""
        return rest + glue + block
    first, last = place
    others = edit([*old[:first], *[""] * (last + 1 - first), *old[last + 1 :]])
    return "".join([*others[:first], block, *others[last + 1 :]])


def _place(lines: Sequence[str], begin: str, end: str, where: str) -> tuple[int, int] | None:
    """Return the first and last line of a block."""
    comments = [(number, line.strip()) for number, line in enumerate(lines) if line.strip() in (begin, end)]
    if not comments:
        return None
    if [comment for _, comment in comments] == [begin, end]:
        return comments[0][0], comments[1][0]
    wanted = (begin, end)
    wrong = next((number for at, (number, text) in enumerate(comments) if at > 1 or text != wanted[at]), comments[0][0])
    what = f"{lines[wrong].strip()!r} lacks its counterpart, or is in the wrong place"
    raise SpecError([Mistake(f"{where}:{wrong + 1}", what, "leave one pair of these comments, or none")])
