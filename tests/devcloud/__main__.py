"""Command line of the devcloud: ``python -m tests.devcloud up|down|reset|status``."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from typing import NoReturn

from tests.devcloud import cloud
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import DEFAULT_BASE, HIGHEST_BASE, DevcloudError, Layout, default_root, with_octavia
from tests.devcloud.progress import say

EXAMPLES = """\
up      start the cloud; installs and builds what is missing, mends what has ended
down    stop it, keeping its state
reset   back to the state that it had when first built
status  what runs, and how big it is; exit code 1 unless all of it answers

OPENSTACK_PREP_DEVCLOUD_DIR names the directory for everything it writes (default: .devcloud).
"""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.devcloud",
        description="A real OpenStack control plane on loopback.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("up", "down", "reset", "status"))
    parser.add_argument(
        "--port-base",
        type=int,
        default=DEFAULT_BASE,
        metavar="N",
        help=f"Keystone listens on N+5000 and so on; 0 to {HIGHEST_BASE} (default: {DEFAULT_BASE})",
    )
    parser.add_argument("--packets", action="store_true", help="with up and reset: a cloud that carries traffic")
    parser.add_argument("--octavia", action="store_true", help="the same, with load balancers (Octavia, by OVN)")
    parser.add_argument("--fresh", action="store_true", help="with up: forget all state first")
    parser.add_argument("--purge", action="store_true", help="with down: delete the state")
    options = parser.parse_args(arguments)
    if options.fresh and options.command != "up":
        parser.error("--fresh goes with up")
    if options.purge and options.command != "down":
        parser.error("--purge goes with down")
    return options


def run(options: argparse.Namespace) -> int:
    if options.packets or options.octavia:
        os.environ["OPENSTACK_PREP_DEVCLOUD_PACKETS"] = "1"
    if options.octavia and not with_octavia():  # which services there are is decided as modules load
        os.environ["OPENSTACK_PREP_DEVCLOUD_OCTAVIA"] = "1"
        os.execv(sys.executable, sys.orig_argv)
    layout = Layout(options.port_base, default_root())
    match options.command:
        case "up":
            cloud.up(layout, fresh=options.fresh)
            path = shlex.quote(str(layout.clouds_file))
            print(f"export OS_CLIENT_CONFIG_FILE={path} OS_CLOUD={ADMIN}")
        case "down":
            cloud.down(layout, purge=options.purge)
        case "reset":
            cloud.reset(layout)
        case "status":
            return 0 if cloud.status(layout) else 1
    return 0


def interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Exit code of a command: 0, 1 with a message, or 130 when interrupted."""
    signal.signal(signal.SIGTERM, interrupt)  # cleans up as Ctrl-C does
    try:
        return run(parse(arguments))
    except DevcloudError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
