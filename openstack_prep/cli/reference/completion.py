"""``completion``: a script by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.extras import install
from openstack_prep.cli.of_spec import spec_path
from openstack_prep.cli.parser import new_path


def run(options: argparse.Namespace) -> int:
    try:
        text = script(options.build_parser(), options.shell)
    except ImportError:
        raise ConfigError(f"completion: needs a package that is not installed; {install('completion')}") from None
    print(text)
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell; setup.py puts it into the wheel."""
    import shtab  # an extra

    _complete_files(parser)
    return str(shtab.complete(parser, shell))


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Have all that is a path completed as one, in all subcommands."""
    import shtab  # an extra

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action.choices.values():
                _complete_files(choice)
        elif action.type in (Path, new_path, spec_path):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
