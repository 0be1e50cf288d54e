"""What a person sees while steps run, and at the end: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TextIO

from openstack_prep import extensions
from openstack_prep.base import shell
from openstack_prep.base.style import PLAIN, Style, first_of, printable
from openstack_prep.core import text
from openstack_prep.core.executor import Event
from openstack_prep.core.model import INTERRUPT, Action, Key, Result, Status, Step
from openstack_prep.core.plan import Plan, Report

EVERY = 5.0  # seconds between two lines about the same long work
NAMED = 3
"""Steps that are named where one line is about many."""


class PlainOutput:
    """Whole lines on a stream; a context manager, as live displays are.

    In the log of a pipeline, which sets CI, each line begins with the time.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.timed = bool(os.environ.get("CI")) and not out.isatty()
        self._lock = threading.RLock()  # an interrupt may come in the middle of a line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def _print(self, line: str) -> None:
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}" if self.timed else line
        with self._lock:
            try:
                print(line, file=self.out, flush=True)
            except OSError as error:  # a closed terminal does not end the run; its SIGHUP is about to
                if error.errno != errno.EIO:
                    raise


class Lines(PlainOutput):
    """One line per step that ended, and now and then one about long work."""

    def __init__(self, plan: Plan, out: TextIO, style: Style = PLAIN) -> None:
        super().__init__(out)
        self.style = style
        self.width = text.width_of((step for step in plan if not text.is_unchanged(step)), style)
        self.shows_kept = plan.purpose == "destroy"  # nobody else says what a destroy leaves, and why
        self._printed_at: dict[Key, float] = {}
        self._not_begun: list[Step] = []

    def __exit__(self, *exception: object) -> None:
        if self._not_begun:
            names = first_of(map(str, self._not_begun), NAMED)
            self._print(self.style.line("?", f"{text.counted(len(self._not_begun), 'step')} not begun", names))
        super().__exit__(*exception)

    def tell(self, event: Event) -> None:
        if event.phase in ("again", "note"):
            self._print(self._note(event.step, event.note))
        elif event.phase == "awaited":
            self._print(self._note(event.step, "finishing; press Ctrl-C again to exit immediately"))
        elif event.result is not None and event.result.cause == INTERRUPT:
            self._not_begun.append(event.step)
        elif event.result is not None and not self._is_unchanged(event):
            seconds = f"({event.result.seconds:.1f} s)"
            self._print(text.result_line(event.result, self.width, self.style, seconds))

    def _is_unchanged(self, event: Event) -> bool:
        kept = event.step.action is Action.KEEP and event.result is not None and event.result.status is Status.DONE
        return kept and (not self.shows_kept or text.is_unchanged(event.step))

    def progress(self, key: Key, done: int, total: int | None, unpacked: int | None = None) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._printed_at.setdefault(key, now) < EVERY:
                return
            self._printed_at[key] = now
        part = f" of {total / 2**20:.0f}" if total else ""
        self._print(self._note(key, f"{done / 2**20:.0f}{part} MiB{unpacked_text(unpacked)}"))

    def _note(self, about: Step | Key, note: str) -> str:
        return self.style.line(".", f"{about!s:<{self.width}}", note)


class Failures(Lines):
    """One line per step that failed or was skipped, for --quiet."""

    def tell(self, event: Event) -> None:
        if event.result is not None and event.result.status is not Status.DONE:
            super().tell(event)

    def progress(self, key: Key, done: int, total: int | None, unpacked: int | None = None) -> None:
        pass


def unpacked_text(size: int | None) -> str:
    return "" if size is None else f", unpacked {size / 2**20:.0f} MiB"


# --- the end of an apply, for a person: what exists now, its addresses, the files written, and the next command ---


def summary(report: Report, spec: Path, style: Style) -> str:
    """Return the lines below the counts; none when nothing was changed, or when something failed."""
    if report.failed or report.skipped or not report.changed:
        return ""
    there = [result for result in report.results if result.observed and result.step.action is not Action.DELETE]
    counts = Counter(result.step.key.kind for result in there)
    lines = {
        "exists": ", ".join(f"{number} {_words(kind, number)}" for kind, number in counts.items()),
        "addresses": ", ".join(_addresses(there)),
        "written": ", ".join(dict.fromkeys(_files(report))),
    }
    texts = [style.wrapped(f"{f'{name}:':<11}{printable(text)}", 11) for name, text in lines.items() if text]
    commands = [f"{'next:':<11}{command}" for command in dict.fromkeys(_next(report, spec))]  # whole: to be pasted
    observed = (result.observed for result in report.changed if result.observed)
    needs = [f"{'needs:':<11}{each.outputs['needs']}" for each in observed if "needs" in each.outputs]
    return "\n".join([*texts, *commands, *needs])


def _words(kind: str, number: int) -> str:
    """Return "floating IPs" for ``floating_ip``."""
    acronyms = {acronym for extension in extensions.installed() for acronym in extension.acronyms}
    words = " ".join(word.upper() if word.upper() in acronyms else word for word in kind.split("_"))
    if words.endswith("s"):  # one resource is several of them, such as the rules of a group
        return f"{'set' if number == 1 else 'sets'} of {words}"
    if number == 1:
        return words
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _addresses(there: list[Result]) -> Iterator[str]:
    """Yield the floating IPs by name."""
    for result in there:
        address = result.observed.outputs.get("address") if result.observed else None
        if address and result.step.key.kind == "floating_ip":
            name = result.step.key.name
            yield address if name == address else f"{name} {address}"


def _files(report: Report) -> Iterator[str]:
    for result in report.changed:
        path = (
            result.observed.outputs.get("path") if result.observed and result.step.action is not Action.DELETE else None
        )
        if path:
            near = os.path.relpath(path)
            yield path if near.startswith("..") else near


def _next(report: Report, spec: Path) -> Iterator[str]:
    """Yield the commands for what was written: by the section, or as the resource itself says."""
    commands = {section.name: section.next for section in extensions.sections() if section.next}
    for result in report.changed:
        if result.step.key.kind in commands and result.step.action is not Action.DELETE:
            command = commands[result.step.key.kind].format(shell.quote(str(spec)))
            yield f"openstack-prep {command}"
        elif result.observed and "next" in result.observed.outputs:
            yield result.observed.outputs["next"]
