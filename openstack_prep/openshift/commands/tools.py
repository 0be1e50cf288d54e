"""``tools``: download openshift-install, oc and kubectl of a release, and verify them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

from openstack_prep.base.style import visible
from openstack_prep.cli.output import print_result
from openstack_prep.openshift.tools import NAMES, Tool, ToolRequest, fetch_tools

INTERVAL = 5.0  # seconds between two progress lines


def run(options: argparse.Namespace) -> int:
    wanted = ToolRequest(
        release=options.release,
        mirror=options.mirror,
        arch=options.arch,
        host=options.host,
        system=options.system,
        tools=NAMES if options.only is None else [each for each in options.only.split(",") if each],
        into=options.into,
        key=options.key,
    )
    tools = fetch_tools(wanted, _progress())
    print_result(options, "\n".join([*map(_line, tools), _trust(tools)]), {"tools": [asdict(tool) for tool in tools]})
    return 0


def _progress() -> Callable[[str, int, int | None], None]:
    """Return a function that prints a line on stderr every few seconds of a download."""
    printed = time.monotonic()

    def report(name: str, done: int, total: int | None) -> None:
        nonlocal printed
        if time.monotonic() - printed >= INTERVAL:
            printed = time.monotonic()
            of = f" of {total / 2**20:.0f}" if total else ""
            print(visible(f"  . {name}  {done / 2**20:.0f}{of} MiB"), file=sys.stderr, flush=True)

    return report


def _line(tool: Tool) -> str:
    return f"{tool.name:<17}  {tool.version}  {tool.status:<8}  {tool.path}  sha256 {tool.sha256}"


def _trust(tools: tuple[Tool, ...]) -> str:
    """Return who vouches for the checksums."""
    signers = sorted({tool.signed_by for tool in tools if tool.signed_by})
    if signers and all(tool.signed_by for tool in tools):
        return f"sha256sum.txt is signed by {' and '.join(signers)}"
    return "the signature of sha256sum.txt was not verified; pass --key FILE to verify it"
