"""What a person or a program sees while targets run: a live table, plain lines, or lines of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from openstack_prep.base.style import PLAIN, Style
from openstack_prep.cli.progress import LiveOutput, PlainOutput
from openstack_prep.cli.running import FORMAT
from openstack_prep.fleet.commands.tables import line
from openstack_prep.fleet.engine import FleetEvent
from openstack_prep.fleet.order import BAD, TargetOutcome, TargetStatus

if TYPE_CHECKING:
    import argparse

MOST_SHOWN = 6
"""Names of running targets that the live table has."""


class FleetLines(PlainOutput):
    """One line per target that ended, and per wave; of unchanged ones only if all are wanted."""

    def __init__(self, out: TextIO, style: Style, widths: tuple[int, int], total: int, verb: str, quiet: bool) -> None:
        super().__init__(out)
        self.style, self.widths, self.total, self.verb = style, widths, total, verb
        self.quiet = quiet

    def tell(self, event: FleetEvent) -> None:
        if event.phase == "stopping":
            self._print("interrupted: waiting for the running targets; press Ctrl-C again to exit immediately")
        elif event.phase == "wave" and event.number != self.total:
            self._print(f"{event.name}: {event.number} of {self.total} targets")
        elif event.outcome is not None and self._is_shown(event.outcome):
            self._print(line(event.outcome, self.widths, self.style, seconds=True))

    def _is_shown(self, outcome: TargetOutcome) -> bool:
        if self.quiet or outcome.status is TargetStatus.NOT_BEGUN:
            return False  # the table at the end has it
        return self.style.unchanged or outcome.status is not TargetStatus.UNCHANGED


class FleetDisplay(LiveOutput, FleetLines):
    """The same lines, and below them how far the run is, and what is running."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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
        from rich.text import Text

        with self._lock:
            running = list(self._running.items())
        shown = [f"{name} {time.monotonic() - begun:.0f} s" for name, begun in running[:MOST_SHOWN]]
        more = f" and {len(running) - MOST_SHOWN} more" if len(running) > MOST_SHOWN else ""
        return Text(f"running: {', '.join(shown)}{more}" if shown else "")

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


class Json(FleetLines):
    """One line of JSON per target that ended."""

    def tell(self, event: FleetEvent) -> None:
        if event.outcome is not None and not self.quiet:
            self._print(json.dumps({"version": FORMAT, **event.outcome.line()}))


def display(
    options: argparse.Namespace, style: Style, widths: tuple[int, int], total: int, verb: str, *, quiet: bool = False
) -> FleetLines:
    """Return the display for where the output goes; a ``quiet`` one shows only how far the run is."""
    if options.format == "json":
        return Json(sys.stdout, PLAIN, widths, total, verb, quiet)
    out = sys.stderr if quiet else sys.stdout
    kind = FleetDisplay if out.isatty() and not options.debug else FleetLines
    return kind(out, style, widths, total, verb, quiet)
