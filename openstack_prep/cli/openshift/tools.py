"""``tools``: openshift-install, oc and kubectl of a release, verified, in a folder."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.cli import AddCommand
from openstack_prep.cli.running import print_result

if TYPE_CHECKING:
    from openstack_prep.openshift.tools import Tool

EVERY = 5.0  # seconds between two lines about a download


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("tools", _run, "fetch openshift-install, oc and kubectl, and verify them", cloud=False, data=True)
    parser.add_argument(
        "release",
        metavar="RELEASE",
        help="4.18.7; stable-4.18, latest or another channel; or the URL or folder that has its sha256sum.txt",
    )
    parser.add_argument(
        "--mirror",
        metavar="URL|DIR",
        help="where ARCH/clients/ocp/RELEASE is (https://mirror.openshift.com/pub/openshift-v4; OKD: GitHub)",
    )
    parser.add_argument("--arch", default="x86_64", metavar="ARCH", help="architecture of the nodes (x86_64)")
    parser.add_argument("--host", metavar="ARCH", help="architecture of the machine that they run on (this one)")
    parser.add_argument("--system", metavar="OS", help="its operating system, linux or mac (this one)")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="some of openshift-install, oc, kubectl (all)")
    parser.add_argument("--into", type=Path, default=Path(), metavar="DIR", help="folder for them (.)")
    parser.add_argument("--key", type=Path, metavar="FILE", help="public keys, one of which signed the checksums")


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.openshift.tools import NAMES, Wanted, fetch_tools

    wanted = Wanted(
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
    print_result(options, "\n".join([*map(_line, tools), _trust(tools)]), [asdict(each) for each in tools])
    return 0


def _progress() -> Callable[[str, int, int | None], None]:
    """Return what tells of long downloads now and then, a line each, aside from the result."""
    told = time.monotonic()

    def tell(name: str, done: int, total: int | None) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY:
            told = time.monotonic()
            of = f" of {total / 2**20:.0f}" if total else ""
            print(f"  . {name}  {done / 2**20:.0f}{of} MiB", file=sys.stderr, flush=True)

    return tell


def _line(tool: Tool) -> str:
    return f"{tool.name:<17}  {tool.version}  {tool.status:<8}  {tool.path}  sha256 {tool.sha256}"


def _trust(tools: tuple[Tool, ...]) -> str:
    """Return what the sums are worth."""
    signers = sorted({each.signed_by for each in tools if each.signed_by})
    if signers and all(each.signed_by for each in tools):
        return f"sha256sum.txt is signed by {' and '.join(signers)}"
    return "sha256sum.txt is as trustworthy as where it comes from; --key FILE has its signature verified"
