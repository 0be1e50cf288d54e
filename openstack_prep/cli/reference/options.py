"""The options of the commands in this folder; the work of each is in a module that only its call loads."""

from __future__ import annotations

from openstack_prep import extensions
from openstack_prep.cli import AddCommand

_HERE = "openstack_prep.cli.reference"
SHELLS = ("bash", "zsh", "fish")


def add_explain(command: AddCommand) -> None:
    parser = command("explain", f"{_HERE}.explain:run", cloud=False, data=True)
    parser.add_argument("code", nargs="?", metavar="CODE", help="code printed in brackets, such as quota.short")


def add_schema(command: AddCommand) -> None:
    what = command("schema", f"{_HERE}.schema:run_schema", cloud=False).add_mutually_exclusive_group()
    what.add_argument(
        "--output", action="store_true", help="the schema of what commands print with --format json or yaml"
    )
    for name in (name for extension in extensions.installed() for name in extension.schemas):
        what.add_argument(f"--{name}", dest="of", action="store_const", const=name, help=f"the schema of {name} files")
    what.add_argument("--included", action="store_true", help="the schema of files that specs include")
    example = command("example", f"{_HERE}.about:run_example", cloud=False)
    example.add_argument("name", nargs="?", metavar="NAME")


def add_completion(command: AddCommand) -> None:
    parser = command("completion", f"{_HERE}.completion:run", cloud=False)
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def add_help(command: AddCommand) -> None:
    parser = command("help", f"{_HERE}.about:run_help", cloud=False)
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="a command, or a group and one of its commands")
    command("version", f"{_HERE}.about:run_version", cloud=False)
