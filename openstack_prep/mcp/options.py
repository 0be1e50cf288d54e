"""The options of the server; its work is in modules that only its call loads."""

from __future__ import annotations

from openstack_prep.cli import AddCommand


def add(command: AddCommand) -> None:
    parser = command("mcp", "openstack_prep.mcp.serve:run", cloud=False)
    parser.add_argument(
        "--allow-programs",
        action="store_true",
        help="also run programs that specs and folders name, such as {command: ...} of a secret or openshift-install",
    )
