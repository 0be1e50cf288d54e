"""Runs the real command in this process, and judges what it printed, sent, used and left behind."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import resource
import socket
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from openstack_prep.cli.main import main
from tests.fuzz.mutating import FORGED, OWNED

MOST_SECONDS = 5.0
"""Of the processor, per command."""
MOST_MEMORY = 200 * 2**10
"""KiB by which one command may enlarge the process."""
BREAKS = "\n\t"


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    command: Sequence[str]
    code: int
    out: str
    err: str
    connections: tuple[object, ...]
    """Addresses that it wanted to connect to; nothing ever does."""
    seconds: float
    memory: int


@contextlib.contextmanager
def no_network() -> Iterator[list[object]]:
    """Refuse all connections, and yield a list of their addresses."""
    tried: list[object] = []

    def refuse(itself: socket.socket, address: object) -> NoReturn:
        tried.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    def unknown(host: object, *rest: Any, **more: Any) -> list[Any]:
        tried.append(host)
        if host not in ("127.0.0.1", "localhost"):
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    with patch.object(socket.socket, "connect", refuse), patch.object(socket, "getaddrinfo", unknown):
        yield tried


def run(command: Sequence[str], stdin: str = "") -> Outcome:
    """Run a command without network, and catch all that it prints, as UTF-8 like a terminal's."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with (
        no_network() as tried,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch("sys.stdin", io.StringIO(stdin)),
    ):
        try:
            code = main(command)
        except SystemExit as error:  # as argparse exits
            code = int(str(error.code))
    seconds = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    gc.unfreeze()  # a command freezes what it imports; here thousands of commands would freeze all their garbage
    texts = []
    for each in (out, err):
        each.flush()
        buffer = each.buffer
        assert isinstance(buffer, io.BytesIO)
        texts.append(buffer.getvalue().decode())
    return Outcome(command, code, *texts, tuple(tried), seconds, memory)


def unprintable(text: str) -> set[str]:
    """Return the characters of a text that a terminal may obey: control characters, and those that turn the text."""
    return {each for each in set(text) - set(BREAKS) if _is_control(each)}


def _is_control(character: str) -> bool:
    turns = unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return turns or unicodedata.category(character) in ("Cc", "Cs")


def judge(found: Outcome, codes: Sequence[int]) -> None:
    """Assert what holds for every command, whatever it was given."""
    assert "Traceback" not in found.err, found.err
    assert "internal error" not in found.err, found.err
    assert found.code in codes, (found.code, found.err)
    for text in (found.out, found.err):
        assert not unprintable(text), (unprintable(text), text)
        assert not re.search(f"^{FORGED}", text, re.MULTILINE), text
    assert found.seconds < MOST_SECONDS, found.seconds
    assert found.memory < MOST_MEMORY, found.memory
    assert not Path(OWNED).exists()


def judge_refusal(found: Outcome, named: str) -> None:
    """Assert that bad input was refused without a request, and that the error names the file, or what else matches."""
    assert not found.connections, found.connections
    lines = [line for line in found.err.splitlines() if not line.startswith("openstack-prep: warning: ")]
    assert lines, "no error"
    first = lines[0].removeprefix("openstack-prep: ")
    assert re.search(named, first), found.err
    assert re.search(r" \[[a-z.-]+\]$", lines[-1]), found.err


def only(folder: Path, names: Sequence[str]) -> None:
    """Assert that a folder holds nothing else."""
    assert {*os.listdir(folder)} <= {*names}, os.listdir(folder)
