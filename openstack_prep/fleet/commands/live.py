"""What a person sees on a terminal while targets run."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from openstack_prep.base.style import first_of
from openstack_prep.cli.live import LiveOutput
from openstack_prep.fleet.commands.progress import FleetLines
from openstack_prep.fleet.engine import FleetEvent
from openstack_prep.fleet.order import BAD

MOST_SHOWN = 6
"""Names of running targets that the live table has."""


class FleetDisplay(LiveOutput, FleetLines):
    """The same lines, and below them how far the run is, and what is running."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        console = Console(file=self.out, highlight=False, no_color=not self.style.color)
        counts = TextColumn("{task.completed} of {task.total} targets{task.fields[failed]}", markup=False)
        name = TextColumn("{task.description}", markup=False)
        self._bar = Progress(name, BarColumn(), counts, TimeRemainingColumn(), console=console)
        self._whole = self._bar.add_task(self.verb, total=self.total, failed="")
        self._running: dict[str, float] = {}
        self._failed = 0
        self._live = Live(Group(self, self._bar), console=console, transient=True)

    def __rich__(self) -> Any:
        """Return what is running now, and for how long."""
        with self._lock:
            running = list(self._running.items())
        shown = first_of((f"{name} {time.monotonic() - begun:.0f} s" for name, begun in running), MOST_SHOWN)
        return Text(f"running: {shown}" if shown else "")

    def tell(self, event: FleetEvent) -> None:
        super().tell(event)
        if event.phase == "wave":
            self._bar.update(self._whole, description=f"{self.verb}, {event.name}")
        elif event.phase == "begun":
            with self._lock:
                self._running[event.name] = time.monotonic()
        elif event.outcome is not None:
            with self._lock:
                self._running.pop(event.name, None)
            self._failed += event.outcome.status in BAD
            failed = f", {self._failed} failed" if self._failed else ""
            self._bar.update(self._whole, advance=1, failed=failed)
