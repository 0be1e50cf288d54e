"""A STAND-IN for the program openshift-install: not the installer.

It makes on OpenStack what the real one makes, and nothing that would be a cluster.  Environment:
STANDIN_RELEASE (4.18), STANDIN_SECONDS (3: how long its pauses take in all; the real ones take 80), STANDIN_FAIL
(STAGE or STAGE:CODE: end there with that exit code), STANDIN_STREAM (file that ``coreos print-stream-json`` prints).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from openstack_prep.openshift.install_config.releases import minor, name
from tests.standin.folder import Folder
from tests.standin.maker import Maker
from tests.standin.recipe import ERAS
from tests.standin.remover import remove

CONFIG_REFUSED, INTERRUPT = 3, 8
SIGNALS_SINCE = 16
"""The first minor release that ends by itself when interrupted; those before die of the signal."""


class Stage(NamedTuple):
    """One stretch of an installation."""

    name: str
    share: float
    """Of the time that all pauses take, before it begins."""
    code: int
    """Exit code of an installation that fails there."""
    steps: tuple[Callable[[Maker], None], ...] = ()
    waits: str = ""
    """The line of the log before the pause."""
    says: tuple[str, ...] = ()
    """The lines of the log after it."""


STAGES = (
    Stage("groups", 0.05, 4, (Maker.make_image, Maker.make_groups), waits="Creating infrastructure resources..."),
    Stage(
        "network",
        0.2,
        4,
        (Maker.make_network,),
        says=(
            "Started local control plane with envtest",
            "Waiting up to 15m0s for network infrastructure to become ready...",
        ),
    ),
    Stage(
        "ports",
        0.15,
        4,
        (Maker.make_virtual_ports, Maker.attach_floating_ips),
        says=("Network infrastructure is ready",),
    ),
    Stage(
        "machines",
        0.05,
        4,
        (Maker.make_ignition, Maker.make_machines, Maker.expose_bootstrap),
        says=("Waiting up to 15m0s for machines to provision...",),
    ),
    Stage("bootstrap", 0.1, 5, waits="Waiting up to 20m0s for the Kubernetes API..."),
    Stage(
        "install",
        0.1,
        6,
        (Maker.remove_bootstrap, Maker.make_workers, Maker.wait_for_servers),
        waits="Waiting up to 45m0s for bootstrapping to complete...",
        says=("Destroying the bootstrap resources...",),
    ),
)
INFRASTRUCTURE = ("groups", "network", "ports", "machines")
STOPPING, STOPPING_INFRASTRUCTURE = 0.02, 0.15
"""Shares of the time that an interrupted program takes to end: at most 12 of 80 seconds."""


FAIL_AT = ("config", *(each.name for each in STAGES))


class Ended(Exception):
    """The program ends with an exit code."""

    share = STOPPING
    """Of the time that all pauses take, until it has ended."""

    def __init__(self, code: int, said: str) -> None:
        self.code = code
        super().__init__(said)


LOGGED = ("create", "destroy", "wait-for")
"""Commands that write the log in the folder, too."""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--dir", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="assets directory")
    everywhere.add_argument("--log-level", default=argparse.SUPPRESS, metavar="LEVEL", help="is ignored")
    stages = f"Stages of STANDIN_FAIL: {', '.join(FAIL_AT)}."
    parser = argparse.ArgumentParser(prog="openshift-install", description=__doc__, epilog=stages, parents=[everywhere])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    create = commands.add_parser("create", parents=[everywhere], help="make what the installer makes (stand-in)")
    create.add_argument("what", choices=("cluster", "manifests"))
    create.add_argument("--era", choices=sorted(ERAS), help="of names, instead of STANDIN_RELEASE")
    create.add_argument("--workers", type=int, metavar="N", help="how many workers come, if not as many as declared")
    destroy = commands.add_parser("destroy", parents=[everywhere], help="remove it again (stand-in)")
    destroy.add_argument("what", choices=("cluster", "bootstrap"))
    wait = commands.add_parser("wait-for", parents=[everywhere], help="look whether it is there (stand-in)")
    wait.add_argument("what", choices=("bootstrap-complete", "install-complete"))
    coreos = commands.add_parser("coreos", parents=[everywhere], help="print the file STANDIN_STREAM (stand-in)")
    coreos.add_argument("what", choices=("print-stream-json",))
    coreos.add_argument("--stream", metavar="NAME", help="a member of that file, if it has several streams")
    commands.add_parser("version", parents=[everywhere], help="print a version (stand-in)")
    return parser.parse_args(arguments)


def release(era: str | None = None) -> int:
    return ERAS[era] if era else minor(os.environ.get("STANDIN_RELEASE", "4.18"))


def pause(share: float) -> None:
    time.sleep(share * float(os.environ.get("STANDIN_SECONDS", "3")))


def create(folder: Folder, number: int, workers: int | None) -> None:
    """Eat the install-config, leave state and metadata.json, then make everything."""
    fail_at, _, code = os.environ.get("STANDIN_FAIL", "").partition(":")
    if fail_at and fail_at not in FAIL_AT:
        raise Ended(1, f"STANDIN_FAIL: {fail_at} is no stage; there are {', '.join(FAIL_AT)}")
    if fail_at == "config":
        raise Ended(int(code or CONFIG_REFUSED), "failed to load asset: invalid install-config")
    folder.log("info", "Consuming Install Config from target directory")
    recipe = folder.consume(number, workers)
    maker = Maker(folder.connect(), recipe, pause=pause)
    for stage in STAGES:
        made = stage.name not in INFRASTRUCTURE
        if stage.name == "bootstrap":
            folder.end_infrastructure(recipe.infra_id, number, failed=False)
        try:
            _run_stage(stage, folder, maker, int(code or stage.code) if fail_at == stage.name else None)
        except BaseException as error:
            if not made:
                folder.end_infrastructure(recipe.infra_id, number, failed=True)
            if isinstance(error, Ended) and error.code == INTERRUPT:
                error.share = STOPPING if made else STOPPING_INFRASTRUCTURE
            raise
    folder.forget_control_plane()
    folder.log("info", "Install complete!")


def _run_stage(stage: Stage, folder: Folder, maker: Maker, code: int | None) -> None:
    if stage.waits:
        folder.log("info", stage.waits)
    pause(stage.share)
    if stage.name == "network":
        folder.start_control_plane(maker.recipe.release)
        if maker.recipe.capi:  # a line of a library, which is not one of the log
            print('I1122 00:19:11.788634   31401 session.go:227] "[stand-in] a raw line"', file=sys.stderr, flush=True)
    for line in stage.says:
        folder.log("info", line)
    if code is not None:
        raise Ended(code, f"failed at {stage.name}, as asked for by STANDIN_FAIL")
    for step in stage.steps:
        step(maker)


def destroy_bootstrap(folder: Folder, number: int) -> None:
    """Remove the bootstrap machine and what only it needed, if the data of the run that made it is there."""
    recipe = folder.recipe_of_bootstrap(number)
    Maker(folder.connect(), recipe, pause=pause).remove_bootstrap()
    folder.forget_control_plane()
    folder.log("info", "Finished destroying bootstrap resources")


def stream(chosen: str | None) -> str:
    """Return the stream metadata that a test has given, of one stream if chosen; the stand-in has none in itself."""
    path = os.environ.get("STANDIN_STREAM")
    if not path:
        raise Ended(1, "no stream metadata; name its file in STANDIN_STREAM")
    try:
        text = Path(path).read_text()
        return json.dumps(json.loads(text)[chosen]) if chosen else text
    except KeyError:
        raise Ended(1, f"invalid value {chosen!r} for --stream") from None
    except OSError as error:
        raise Ended(1, f"STANDIN_STREAM: {path} cannot be read: {error.strerror}") from error


def run(options: argparse.Namespace, folder: Folder) -> None:
    match options.command:
        case "version":
            print(f"openshift-install {name(release())}.0-standin\nbuilt from nothing: a stand-in, not the installer")
        case "coreos":
            print(stream(options.stream), end="")
        case "create" if options.what == "manifests":
            folder.make_manifests(release(options.era))
            folder.log("info", "Manifests created in: manifests, openshift and cluster-api")
        case "create":
            create(folder, release(options.era), options.workers)
        case "wait-for":
            folder.log("info", f"Waiting up to 40m0s for {options.what}...")
            pause(0.2)
            folder.log("info", f"Cluster {folder.infra_id} is taken to be complete")
        case "destroy" if options.what == "bootstrap":
            destroy_bootstrap(folder, release())
        case "destroy":
            remove(folder.connect(), folder.infra_id)
            folder.purge()
            folder.log("info", "Uninstallation complete!")


def interrupted(_number: int, _frame: FrameType | None) -> None:
    raise Ended(INTERRUPT, "Received interrupt signal")


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code, those of the real one."""
    options = parse(arguments)
    folder = Folder(getattr(options, "dir", Path()), logged=options.command in LOGGED)
    gentle = release(getattr(options, "era", None)) >= SIGNALS_SINCE
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted if gentle else signal.SIG_DFL)
    try:
        run(options, folder)
    except Ended as error:
        folder.log("warning" if error.code == INTERRUPT else "fatal", str(error))
        if error.code == INTERRUPT:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is already about to end
            pause(error.share)
        return error.code
    except Exception as error:  # noqa: BLE001 - the installer, too, says any error in a line of its log
        folder.log("fatal", f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
