"""The devcloud's commands: up, down, reset, status."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from tests.devcloud import clouds_file, config, data_plane, faults, processes, programs, state, venv
from tests.devcloud.build import Builder
from tests.devcloud.fill import fill_cloud, warm_up
from tests.devcloud.layout import HOSTED, SERVICES, DevcloudError, Layout, ovn_root, with_octavia, with_packets
from tests.devcloud.progress import say, timed


def up(layout: Layout, *, fresh: bool = False) -> None:
    """Bring the cloud up, whatever state it is in: install, build, mend as needed."""
    with _alone(layout), _whole_or_stopped(layout):
        _up(layout, fresh=fresh)
        _carry_traffic(layout)


def _up(layout: Layout, *, fresh: bool) -> None:
    _check_ovn()
    if fresh or not state.has_pristine(layout):
        if layout.pristine.exists() and not fresh:
            say("the state was built from other sources than today's; it is built anew")
        processes.stop(layout)
        with _locked(layout.root / "build.lock"):
            state.delete(layout)
            other = None if fresh else state.built_alike(layout)
            if other is None:
                _build(layout)
                return
            _adopt(layout, other)
    if not state.is_complete(layout):
        processes.stop(layout)
        state.restore(layout)
    alive = processes.running(layout)
    missing = [service for service in SERVICES if service not in alive]
    if not missing:
        # an interrupted reset may have left hosts without their services
        processes.signal_all(layout, processes.START_SERVICE, HOSTED)
        processes.wait(layout, SERVICES)
        say("runs already")
        return
    processes.check_ports(layout, missing)
    if alive:
        say(f"{', '.join(missing)} had ended; starting again")
    config.write(layout)
    faults.clear(layout)
    with timed("started the services"):
        processes.start(layout, missing)
        processes.wait(layout, SERVICES)
        warm_up(layout)


def _carry_traffic(layout: Layout) -> None:
    """Start the data plane of a cloud that has one; stop what is left of one where it has none."""
    if with_packets():
        with timed("started the data plane"):
            data_plane.start(layout)
    else:
        data_plane.stop(layout)


def _check_ovn() -> None:
    root = ovn_root()
    if with_octavia() and not root:
        raise DevcloudError("Octavia's provider here is OVN: add --packets, or name OVN's programs")
    for program in ("usr/sbin/ovsdb-server", "usr/bin/ovn-northd", "usr/bin/ovn-trace") if root else ():
        if not (Path(root) / program).exists():
            raise DevcloudError(
                f"OPENSTACK_PREP_DEVCLOUD_OVN={root}: it has no {program}; install OVN (Debian: ovn-central, 23.03 or "
                "later), or name the folder into which its packages were unpacked"
            )


def _build(layout: Layout) -> None:
    processes.check_ports(layout, SERVICES)
    say(f"building a new cloud in {layout.home}; this takes a minute")
    config.write(layout)
    with timed("built the databases"):
        Builder(layout).build()
    with timed("started the services"):
        processes.start(layout, [service for service in SERVICES if service != "keystone"])
        processes.wait(layout, SERVICES)
    with timed("filled the cloud and kept a copy of it"):
        fill_cloud(layout)
        state.keep_as_pristine(layout)


def _adopt(layout: Layout, other: Layout) -> None:
    """Copy the first state of another cloud."""
    config.write(layout)
    with timed(f"copied the databases of port base {other.base}"):
        Builder(layout).build_own()
        state.adopt(layout, other)


def down(layout: Layout, *, purge: bool = False) -> None:
    """Stop the cloud; ``purge`` deletes its state, too."""
    with _alone(layout):
        stopped = bool(processes.running(layout))
        data_plane.stop(layout)
        processes.stop(layout)
        if purge:
            with _locked(layout.root / "build.lock"):  # nobody copies it meanwhile
                state.delete(layout)
        say(f"{'stopped' if stopped else 'nothing ran'}{', state deleted' if purge else ''}")


def reset(layout: Layout) -> None:
    """Back to the state that the cloud had when it was built; brings it up if it is not.

    The warm parents fork their services anew; Swift, which keeps nothing in memory, runs on.
    """
    with _alone(layout), _whole_or_stopped(layout):
        data_plane.stop(layout)
        data_plane.forget(layout)
        if state.has_pristine(layout) and len(processes.running(layout)) == len(SERVICES):
            with timed("reset"):
                _reset(layout)
        else:
            processes.stop(layout)
            state.spoil(layout)
            _up(layout, fresh=False)
        _carry_traffic(layout)


def _reset(layout: Layout) -> None:
    faults.clear(layout)
    processes.signal_all(layout, processes.END_SERVICE, HOSTED)
    deadline = time.monotonic() + processes.STOP_SECONDS
    while any(processes.listens(layout, service) for service in HOSTED):
        if time.monotonic() > deadline:
            raise DevcloudError("a service does not stop; try down and up")
        time.sleep(0.01)
    state.restore(layout)
    processes.signal_all(layout, processes.START_SERVICE, HOSTED)
    processes.wait(layout, SERVICES)
    warm_up(layout)


def status(layout: Layout) -> bool:
    """Print what runs and how big it is; whether all of it runs and answers."""
    alive = processes.running(layout)
    healthy, total = True, 0.0
    for service in SERVICES:
        pid = alive.get(service)
        size = processes.memory(pid) if pid else 0.0
        total += size
        answers = pid is not None and processes.answers(layout, service)
        healthy = healthy and answers
        verdict = "answers" if answers else "does not answer" if pid else "down"
        print(f"{service:16} {layout.port(service):6} {pid or '-':>8} {size:7.0f} MiB  {verdict}")
    print(f"{'all':16} {'':6} {'':8} {total:7.0f} MiB  {'up' if healthy else 'NOT UP'}")
    return healthy


def _ensure_venv(layout: Layout) -> None:
    with _locked(layout.root / "venv.lock"):
        if not venv.is_current(layout.venv):
            _install(layout)
        for service in (each for each in venv.MORE if each in SERVICES and not venv.has(layout.venv, each)):
            venv.add(layout.venv, service)


def _install(layout: Layout) -> None:
    bases = [int(path.name) for path in layout.root.iterdir() if path.name.isdigit()]
    for other in (Layout(base, layout.root) for base in bases):
        if processes.running(other):
            raise DevcloudError(
                "the servers have to be installed anew, but a cloud runs on port base "
                f"{other.base}: stop it first (down --port-base {other.base})"
            )
    with timed("installed the servers"):
        venv.install(layout.venv)


@contextlib.contextmanager
def _alone(layout: Layout) -> Iterator[None]:
    """One command at a time on a cloud."""
    layout.root.mkdir(parents=True, exist_ok=True)
    (layout.root / ".gitignore").write_text("*\n")
    with _locked(layout.root / f"{layout.base}.lock"):
        yield


@contextlib.contextmanager
def _whole_or_stopped(layout: Layout) -> Iterator[None]:
    """What fails or is interrupted inside leaves nothing running; what succeeds, a clouds.yaml."""
    _ensure_venv(layout)
    if with_packets() and not programs.is_there(layout.programs):
        with _locked(layout.root / "programs.lock"):
            programs.unpack(layout)
    try:
        yield
    except BaseException:
        data_plane.stop(layout)
        processes.stop(layout)
        raise
    clouds_file.write(layout.clouds_file, clouds_file.admin(layout))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another devcloud command is at work; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
