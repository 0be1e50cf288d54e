"""What a person sees on a terminal while steps run."""

from __future__ import annotations

from typing import Any, Self, TextIO

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from openstack_prep.base.style import PLAIN, Style
from openstack_prep.cli.progress import Lines, PlainOutput, unpacked_text
from openstack_prep.core.executor import Event
from openstack_prep.core.model import Key
from openstack_prep.core.plan import Plan


class LiveOutput(PlainOutput):
    """The same lines above a live display of rich."""

    _live: RichLive

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._live.__exit__(*exception)

    def _print(self, line: str) -> None:
        self._live.console.print(Text.from_ansi(line), soft_wrap=True)


class Live(LiveOutput, Lines):
    """The same lines, and below them a bar for the whole and one for each long transfer."""

    def __init__(self, plan: Plan, out: TextIO, style: Style = PLAIN) -> None:
        super().__init__(plan, out, style)
        console = Console(file=out, highlight=False, no_color=not style.color)
        name = TextColumn("{task.description}", markup=False)
        self._steps = Progress(name, BarColumn(), TextColumn("{task.completed} of {task.total} steps"), console=console)
        self._bytes = Progress(
            name, BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn(), console=console
        )
        self._whole = self._steps.add_task(f"{plan.purpose} {plan.spec}", total=len(plan.steps))
        self._transfers: dict[Key, Any] = {}
        self._live = RichLive(Group(self._bytes, self._steps), console=console, transient=True)

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
        shown = f"{key}{unpacked_text(unpacked)}"
        self._bytes.update(self._transfers[key], completed=done, total=total, description=shown)
