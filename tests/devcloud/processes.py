"""The services' processes: find, start, await, stop.

There are no pid files, which could lie: a service is a process whose command line says so.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from tests.devcloud.layout import HOST, OFFSETS, REPOSITORY, SWIFT, DevcloudError, Layout, ovn_root

START_SECONDS = 180
STOP_SECONDS = 5
TAIL_LINES = 30

END_SERVICE, START_SERVICE = signal.SIGUSR1, signal.SIGUSR2  # orders to the hosts, which live on

_children: list[subprocess.Popen[bytes]] = []  # kept, because Python complains of forgotten ones

# Services are started in this order: the slowest first.
START_ORDER = ("nova", "neutron", "cinder", "heat", "keystone", "glance", "placement", "designate", "octavia", *SWIFT)

NEEDS = {"nova": ("keystone", "placement"), "octavia": ("keystone", "neutron")}
"""What has to answer before a service's workers start."""


def environment(layout: Layout) -> dict[str, str]:
    """The environment of everything that runs inside the servers' virtual environment."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
    return {
        **ours,
        "PATH": f"{layout.venv / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONWARNINGS": "ignore",
        "XDG_CACHE_HOME": str(layout.root / "cache"),  # stevedore keeps entry points there
        "OS_CINDER_DISABLE_EVENTLET_PATCHING": "1",
        "no_proxy": HOST,
        "OPENSTACK_PREP_DEVCLOUD_OVN": ovn_root(),
    }


def command(layout: Layout, service: str) -> list[str]:
    """How a service is started; its first words are also how it is recognised later."""
    module = "swift" if service in SWIFT else "host"
    return [
        str(layout.venv / "bin/python"), "-m", f"tests.devcloud.server.{module}",
        service, str(layout.home), str(layout.port(service)),
        *(str(layout.port(each)) for each in NEEDS.get(service, ())),
    ]  # fmt: skip


def running(layout: Layout) -> dict[str, int]:
    """Process ids of the services that run, by service."""
    commands = {tuple(command(layout, service)[1:5]): service for service in OFFSETS}
    found: dict[int, str] = {}
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        if service := commands.get(tuple(words(pid)[1:5])):
            found[pid] = service
    # a host and the fork of it that serves look alike; the parent is the one to signal
    return {service: pid for pid, service in found.items() if _parent(pid) not in found}


def words(pid: int) -> list[str]:
    """The command line of a process; empty if there is no such process, or no more than a zombie."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def memory(pid: int) -> float:
    """MiB that a process and its children use, shared pages counted in proportion."""
    total = 0
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (str(pid), *children):
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
            total += int(rollup.split("Pss:")[1].split()[0])
    return total / 1024


def tail(layout: Layout, service: str, lines: int = TAIL_LINES) -> str:
    """The last lines of a service's log."""
    try:
        with open(layout.service_log(service), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 100_000))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def check_ports(layout: Layout, services: Collection[str]) -> None:
    """Refuse to start when something that is not ours listens on a port that we need."""
    taken = [service for service in services if not is_free(layout.port(service))]
    if taken:
        ports = ", ".join(f"{layout.port(service)} ({service})" for service in taken)
        raise DevcloudError(
            f"another program listens on {ports}: stop it, or choose other ports with --port-base (now {layout.base})"
        )


def is_free(port: int) -> bool:
    """Whether a service could listen on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def listens(layout: Layout, service: str) -> bool:
    try:
        socket.create_connection((HOST, layout.port(service)), timeout=1).close()
    except OSError:
        return False
    return True


def start(layout: Layout, services: Collection[str]) -> None:
    """Start services; does not wait for them."""
    # blocked from their first instruction on, or a signal that comes too early would end them
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {END_SERVICE, START_SERVICE})
    try:
        _start(layout, services)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start(layout: Layout, services: Collection[str]) -> None:
    for service in (name for name in START_ORDER if name in services):
        with open(layout.service_log(service), "a") as log:
            process = subprocess.Popen(
                command(layout, service),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment(layout),
                cwd=layout.home,
                start_new_session=True,
            )
        _children.append(process)
        # for an instant a new process has no command line yet
        while process.poll() is None and not words(process.pid):
            time.sleep(0.001)


def answers(layout: Layout, service: str, timeout: float = 10) -> bool:
    """Whether a service answers a request that needs no token."""
    path = "/healthcheck" if service in ("heat", "cinder", *SWIFT) else "/"
    connection = http.client.HTTPConnection(HOST, layout.port(service), timeout=timeout)
    try:
        connection.request("GET", path, headers={"User-Agent": "devcloud/control"})
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wait(layout: Layout, services: Collection[str], seconds: float = START_SECONDS) -> None:
    """Return when all services answer; raise with the log's tail when one cannot."""
    deadline = time.monotonic() + seconds
    pending = [name for name in START_ORDER if name in services]
    while pending:
        alive = running(layout)
        for service in pending:
            if service not in alive:
                raise DevcloudError(f"{service} ended; its log ends with\n{tail(layout, service)}")
        pending = [service for service in pending if not answers(layout, service)]
        if pending and time.monotonic() > deadline:
            raise DevcloudError(
                f"{pending[0]} does not answer after {seconds:.0f} s; its log ends with\n{tail(layout, pending[0])}"
            )
        time.sleep(0.1)


def signal_all(layout: Layout, number: int, services: Collection[str] = tuple(OFFSETS)) -> None:
    """Signal services that run; by default also those that this command was not asked to have, such as Octavia."""
    for service, pid in running(layout).items():
        if service in services:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
            except PermissionError:
                raise DevcloudError(f"{service} ({pid}) was started by another user") from None


def stop(layout: Layout) -> None:
    """Stop every service, by force if it takes longer than STOP_SECONDS."""
    signal_all(layout, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while running(layout):
        if time.monotonic() > deadline:
            signal_all(layout, signal.SIGKILL)
        time.sleep(0.05)
