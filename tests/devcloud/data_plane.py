"""The data plane beside a cloud: start, find, enter, stop.

It lives in namespaces of its own, whose first process is ``server/data_plane.py``: with that process all of it ends,
whoever ends it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcloud import processes, programs
from tests.devcloud.fill import Client
from tests.devcloud.layout import SERVICES, DevcloudError, Layout

SERVICE = "data-plane"
MODULE = "tests.devcloud.server.data_plane"
START_SECONDS = 60
OUTSIDE = "outside"
"""The namespace on the external network."""


def start(layout: Layout) -> None:
    """Start it unless it runs, and wait until Neutron knows its machine; raises DevcloudError."""
    if find(layout):
        return
    folder = layout.run / SERVICE
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _check_namespaces()
    namespaces = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
    python = str(layout.venv / "bin/python")
    ports = [str(layout.port(service)) for service in SERVICES]
    command = [python, "-m", MODULE, str(layout.home), str(layout.programs), *ports]
    outer = [python, "-m", "tests.devcloud.server.relay", "outer", str(folder / "relay.sock")]
    with open(layout.service_log(SERVICE), "a") as log:
        process = subprocess.Popen(
            [*outer, "unshare", *namespaces, *command],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=_environment(layout),
            cwd=layout.home,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while not ((folder / "ready").exists() and _is_alive(layout)):
        if process.poll() is not None or time.monotonic() > deadline:
            stop(layout)
            raise DevcloudError(f"the data plane does not start; its log ends with\n{processes.tail(layout, SERVICE)}")
        time.sleep(0.1)


def _check_namespaces() -> None:
    """Raise DevcloudError where this user may not create user namespaces."""
    ended = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "true"], capture_output=True, text=True)
    if ended.returncode:
        raise DevcloudError(
            f"a cloud with packets needs user namespaces: {ended.stderr.strip()}; "
            "see sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone and "
            "kernel.apparmor_restrict_unprivileged_userns"
        )


def _environment(layout: Layout) -> dict[str, str]:
    root = layout.programs
    patterns = ("usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib/*-linux-gnu/frr")
    libraries = [str(each) for pattern in patterns for each in root.glob(pattern)]
    folder = str(layout.run / SERVICE)
    own = processes.environment(layout)
    return own | {
        "PATH": ":".join([*(str(root / each) for each in programs.FOLDERS), own["PATH"]]),
        "LD_LIBRARY_PATH": ":".join(libraries),
        **dict.fromkeys(("OVN_RUNDIR", "OVS_RUNDIR", "OVN_LOGDIR", "OVS_LOGDIR", "OVS_DBDIR"), folder),
    }


def _is_alive(layout: Layout) -> bool:
    """Whether Neutron takes the machine for alive: it binds no port and places no gateway before."""
    agents = Client(layout)("GET", "neutron", "/v2.0/agents")["agents"]
    return any(each["binary"] == "ovn-controller" and each["alive"] for each in agents)


def find(layout: Layout) -> int:
    """Return the id of its first process; 0 if it does not run."""
    words = ["-m", MODULE, str(layout.home)]
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        if processes.words(pid)[1:4] == words:
            return pid
    return 0


def forget(layout: Layout) -> None:
    """Forget the servers of a cloud that goes back to its first state."""
    shutil.rmtree(layout.run / "servers", ignore_errors=True)


def stop(layout: Layout) -> None:
    """Stop it with all that runs in it."""
    while pid := find(layout):
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


@dataclass(frozen=True)
class DataPlane:
    """The machines of a cloud that carries traffic, from without; a machine has the id of its server."""

    layout: Layout

    def words(self, machine: str, *command: str) -> list[str]:
        """Return the command that runs ``command`` in a machine."""
        pid = find(self.layout)
        enter = ["nsenter", "--target", str(pid), "--user", "--net", "--mount", "--pid", "--preserve-credentials"]
        return [*enter, "ip", "netns", "exec", machine, *command]

    def run(self, machine: str, *command: str, seconds: float = 30) -> subprocess.CompletedProcess[str]:
        """Run a command in a machine, and return how it ended."""
        return subprocess.run(
            self.words(machine, *command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=self.environment,
        )

    def start(self, machine: str, *command: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a program in a machine: it ends with the machine."""
        with open(log, "a") as out:
            return subprocess.Popen(
                self.words(machine, *command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment
            )

    def kill(self, machine: str, program: str) -> int:
        """Kill a program in a machine; returns how many processes it had."""
        pids = self.run(machine, "ip", "netns", "pids", machine).stdout.split()
        names = {pid: self.run(machine, "cat", f"/proc/{pid}/comm").stdout.strip() for pid in pids}
        hit = [pid for pid, name in names.items() if name == program]
        if hit:
            self.run(machine, "kill", "-9", *hit)
        return len(hit)

    def sync(self) -> None:
        """Wait until the bridges do what stands in OVN's northbound database."""
        self.northbound("sync")

    def northbound(self, *words: str) -> str:
        """Read or change OVN's northbound database; returns when the bridges do what stands there."""
        database = f"unix:{self.layout.ovn / 'nb.sock'}"
        command = ["ovn-nbctl", f"--db={database}", "--timeout=30", "--wait=hv", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.environment).stdout

    def forget_neighbours(self) -> None:
        """Let OVN's routers forget which MAC address they have learned for an address."""
        database = f"unix:{self.layout.ovn / 'sb.sock'}"
        command = ["ovn-sbctl", f"--db={database}", "--all", "destroy", "MAC_Binding"]
        subprocess.run(command, check=True, env=self.environment)
        self.sync()

    @property
    def environment(self) -> Mapping[str, str]:
        return _environment(self.layout)
