"""The command's rooms: one file for a command, or a few that belong together.

Each has ``add(command)``, which calls ``command`` for each of its own.  What needs time to import is imported
where it is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Protocol


class AddCommand(Protocol):
    """Makes the parser of a command, whose ``run`` returns the exit code.

    With ``cloud`` it has the options of one that speaks to a cloud; without, ``data`` gives it --format. ``forms``
    are what --format offers instead of text and data.
    """

    def __call__(
        self,
        name: str,
        run: Callable[[argparse.Namespace], int],
        cloud: bool = True,
        data: bool = False,
        forms: Sequence[str] = (),
    ) -> argparse.ArgumentParser: ...
