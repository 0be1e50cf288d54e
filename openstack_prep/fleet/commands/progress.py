"""What a person or a program sees while targets run: a live table, plain lines, or lines of JSON."""

from __future__ import annotations

import json
from typing import TextIO

from openstack_prep.base.style import Style
from openstack_prep.cli.output import FORMAT
from openstack_prep.cli.progress import PlainOutput
from openstack_prep.fleet.commands.tables import line
from openstack_prep.fleet.engine import FleetEvent
from openstack_prep.fleet.order import TargetOutcome, TargetStatus


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


class Json(FleetLines):
    """One line of JSON per target that ended."""

    def __init__(self, out: TextIO, style: Style, widths: tuple[int, int], total: int, verb: str, quiet: bool) -> None:
        super().__init__(out, style, widths, total, verb, quiet)
        self.timed = False

    def tell(self, event: FleetEvent) -> None:
        if event.outcome is not None and not self.quiet:
            self._print(json.dumps({"version": FORMAT, **event.outcome.line()}))
