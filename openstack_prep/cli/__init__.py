"""The command's rooms: one file for a command, or a few that belong together.

Each has ``add(command)``, which calls ``command`` for each of its own. The options of the commands are in modules that
import little, because each --help reads them; the work is in others, and ``command`` gets a reference to it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Protocol

Run = Callable[[argparse.Namespace], int] | str


class AddCommand(Protocol):
    """Makes the parser of a command, whose ``run`` returns the exit code: a function, or a reference to one such as
    ``package.module:function``, which is imported when the command is called.

    With ``cloud`` it has the options of one that speaks to a cloud; without, ``data`` gives it --format. ``forms``
    are what --format offers instead of text and data.
    """

    def __call__(
        self,
        name: str,
        run: Run,
        cloud: bool = True,
        data: bool = False,
        forms: Sequence[str] = (),
    ) -> argparse.ArgumentParser: ...
