"""What a person sees on a terminal while steps run."""

from __future__ import annotations

import time
from typing import Any, Self, TextIO

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from openstack_prep.base.style import PLAIN, Style, first_of, printable
from openstack_prep.cli.progress import NAMED, Lines, PlainOutput, unpacked_text
from openstack_prep.core.executor import Event
from openstack_prep.core.model import Action, Key, Status
from openstack_prep.core.plan import Plan


class LiveOutput(PlainOutput):
    """The same lines above a live display of rich."""

    _live: RichLive

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._live.__exit__(*exception)

    def _print(self, line: str) -> None:
        self._live.console.print(Text.from_ansi(line), soft_wrap=True)


class Live(LiveOutput, Lines):
    """The same lines; below them a bar for all changes, one for each long transfer, and the oldest running steps."""

    def __init__(self, plan: Plan, out: TextIO, style: Style = PLAIN) -> None:
        super().__init__(plan, out, style)
        console = Console(file=out, highlight=False, no_color=not style.color)
        name = TextColumn("{task.description}", markup=False)
        count = TextColumn("{task.completed} of {task.total} steps")
        self._steps = Progress(name, BarColumn(20), count, TimeElapsedColumn(), console=console)
        self._bytes = Progress(
            name, BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn(), console=console
        )
        self._whole = self._steps.add_task(f"{plan.purpose} {plan.spec}", total=len(plan.pending))
        self._transfers: dict[Key, Any] = {}
        self._running: dict[Key, tuple[str, float]] = {}
        self._live = RichLive(console=console, transient=True, get_renderable=self._render)

    def _render(self) -> Group:
        waited = Text(self._running_steps(), style="dim", no_wrap=True, overflow="ellipsis")
        return Group(self._bytes, self._steps, *([waited] if waited else []))

    def _running_steps(self) -> str:
        """Return what the run waits for, with the seconds since each began."""
        now, running = time.monotonic(), list(self._running.values())  # a copy: steps begin and end in other threads
        names = first_of((f"{printable(step)} ({now - started:.0f} s)" for step, started in running), NAMED)
        return f"waiting for {names}" if names else ""

    def tell(self, event: Event) -> None:
        super().tell(event)
        if event.phase == "started":
            self._running[event.step.key] = str(event.step), time.monotonic()
        if event.phase == "ended":
            self._running.pop(event.step.key, None)
            begun = event.result is not None and event.result.status is not Status.SKIPPED
            if begun and event.step.action is not Action.KEEP:
                self._steps.advance(self._whole)
            transfer = self._transfers.pop(event.step.key, None)
            if transfer is not None:
                self._bytes.remove_task(transfer)

    def progress(self, key: Key, done: int, total: int | None, unpacked: int | None = None) -> None:
        with self._lock:
            if key not in self._transfers:
                self._transfers[key] = self._bytes.add_task(str(key), total=total)
        shown = f"{key}{unpacked_text(unpacked)}"
        self._bytes.update(self._transfers[key], completed=done, total=total, description=shown)
