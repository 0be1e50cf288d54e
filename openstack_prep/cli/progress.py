"""What a person sees while steps run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import errno
import threading
import time
from typing import Any, Self, TextIO

from openstack_prep.base.style import PLAIN, Style
from openstack_prep.core import text
from openstack_prep.core.executor import Event
from openstack_prep.core.model import Action, Key, Status, Step
from openstack_prep.core.plan import Plan

EVERY = 5.0  # seconds between two lines about the same long work


class Lines:
    """One line per step that ended, and now and then one about long work."""

    def __init__(self, plan: Plan, out: TextIO, style: Style = PLAIN) -> None:
        self.out, self.style = out, style
        self.width = text.width_of(step for step in plan if not text.is_unchanged(step))
        self.names_kept = plan.purpose == "destroy"  # nobody else says what a destroy leaves, and why
        self._told: dict[Key, float] = {}
        self._lock = threading.RLock()  # an interrupt may come in the middle of a line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def tell(self, event: Event) -> None:
        if event.phase in ("again", "note"):
            self._print(self._note(event.step, event.note))
        elif event.phase == "awaited":
            self._print(self._note(event.step, "finishing; press Ctrl-C again to exit immediately"))
        elif event.result is not None and not self._untouched(event):
            seconds = f"({event.result.seconds:.1f} s)"
            self._print(text.result_line(event.result, self.width, self.style, seconds))

    def _untouched(self, event: Event) -> bool:
        kept = event.step.action is Action.KEEP and event.result is not None and event.result.status is Status.DONE
        return kept and (not self.names_kept or text.is_unchanged(event.step))

    def progress(self, key: Key, done: int, total: int | None, unpacked: int | None = None) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._told.setdefault(key, now) < EVERY:
                return
            self._told[key] = now
        part = f" of {total / 2**20:.0f}" if total else ""
        self._print(self._note(key, f"{done / 2**20:.0f}{part} MiB{_unpacked(unpacked)}"))

    def _note(self, about: Step | Key, note: str) -> str:
        return self.style.line(".", f"{about!s:<{self.width}}", note)

    def _print(self, line: str) -> None:
        with self._lock:
            try:
                print(line, file=self.out, flush=True)
            except OSError as error:  # a closed terminal does not end the run; its SIGHUP is about to
                if error.errno != errno.EIO:
                    raise


def _unpacked(size: int | None) -> str:
    return "" if size is None else f", unpacked {size / 2**20:.0f} MiB"


class Live(Lines):
    """The same lines, and below them a bar for the whole and one for each long transfer."""

    def __init__(self, plan: Plan, out: TextIO, style: Style = PLAIN) -> None:
        super().__init__(plan, out, style)
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        console = Console(file=out, highlight=False, no_color=not style.color)
        name = TextColumn("{task.description}", markup=False)
        self._steps = Progress(name, BarColumn(), TextColumn("{task.completed} of {task.total} steps"), console=console)
        self._bytes = Progress(
            name, BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn(), console=console
        )
        self._whole = self._steps.add_task(f"{plan.purpose} {plan.spec}", total=len(plan.steps))
        self._transfers: dict[Key, Any] = {}
        from rich.console import Group
        from rich.live import Live as RichLive

        self._live = RichLive(Group(self._bytes, self._steps), console=console, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._live.__exit__(*exception)

    def tell(self, event: Event) -> None:
        super().tell(event)
        if event.phase == "ended":
            self._steps.advance(self._whole)
            transfer = self._transfers.pop(event.step.key, None)
            if transfer is not None:
                self._bytes.remove_task(transfer)

    def progress(self, key: Key, done: int, total: int | None, unpacked: int | None = None) -> None:
        with self._lock:
            if key not in self._transfers:
                self._transfers[key] = self._bytes.add_task(str(key), total=total)
        shown = f"{key}{_unpacked(unpacked)}"
        self._bytes.update(self._transfers[key], completed=done, total=total, description=shown)

    def _print(self, line: str) -> None:
        from rich.text import Text

        self._live.console.print(Text.from_ansi(line), soft_wrap=True)


def display(plan: Plan, out: TextIO, style: Style = PLAIN) -> Lines:
    """Return the display that suits where the output goes."""
    return Live(plan, out, style) if out.isatty() else Lines(plan, out, style)
