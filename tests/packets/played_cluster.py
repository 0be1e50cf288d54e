"""A cluster of the stand-in whose machines run programs: keepalived, and a responder for API and console.

keepalived has the settings of OpenShift's own: state BACKUP for all, priority 40 for the API and 20 for the routers,
an advertisement each second (machine-config-operator 4.20, templates/master/00-master/on-prem/files/
keepalived-keepalived.yaml).  Its checks of the services are one: whether the port is open.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests import standin
from tests.devcloud.data_plane import DataPlane
from tests.unit.openshift.probe.listener import certificate

RESPONDER = Path(__file__).with_name("responder.py")
RESPONDER_NAME = Path(sys.executable).name
"""The name of its processes."""
DOMAIN = "dev.example.com"
HOSTS = {"api": f"api.{DOMAIN}", "ingress": f"console-openshift-console.apps.{DOMAIN}"}
OAUTH = f"oauth-openshift.apps.{DOMAIN}"
PORTS = {"master": (6443, 22623), "worker": (80, 443, 1936)}
"""TCP ports that answer, by role."""
CHECKED = {"api": 6443, "ingress": 443}
ROUTER_IDS = {"api": 29, "ingress": 30}
PRIORITIES = {"api": 40, "ingress": 20}
ROLES = {"api": "master", "ingress": "worker"}
ELECTION_SECONDS = 20
NOBODY = ""


def ask_neighbours_often(plane: DataPlane, machine: str) -> None:
    """Let a machine notice within seconds, not a minute, that another interface has the address of its gateway."""
    settings = "echo 500 > $each/base_reachable_time_ms; echo 1 > $each/delay_first_probe_time"
    plane.run(machine, "sh", "-c", f"for each in /proc/sys/net/ipv?/neigh/eth0; do {settings}; done")
    # what is known already stays reachable until its former timer ends, up to 45 s (net/core/neighbour.c)
    plane.run(machine, "ip", "neigh", "flush", "dev", "eth0")


@dataclass(frozen=True)
class Machine:
    """A machine that runs."""

    plane: DataPlane
    name: str
    id: str
    """Of its server, and so of its namespace."""
    role: str
    address: str
    port_id: str

    def holds(self, address: str) -> bool:
        return f" {address}/" in self.plane.run(self.id, "ip", "-o", "addr", "show", "dev", "eth0").stdout


@dataclass(frozen=True)
class PlayedCluster:
    """The machines of a cluster, who holds its virtual addresses, and what a client gets."""

    cluster: standin.Cluster
    plane: DataPlane
    folder: Path
    """For certificates, settings and logs."""
    floating: dict[str, str] = field(default_factory=dict)
    """The floating IPs by the name of their service."""

    @cached_property
    def machines(self) -> list[Machine]:
        made = []
        for port in sorted(self.cluster.nodes(), key=lambda each: str(each.name)):
            role = "master" if "-master-" in port.name else "worker"
            address = port.fixed_ips[0]["ip_address"]
            made.append(Machine(self.plane, port.name, port.device_id, role, address, port.id))
        return made

    def of(self, service: str) -> list[Machine]:
        """Return the machines that may hold the virtual address of a service."""
        return [each for each in self.machines if each.role == ROLES[service]]

    def virtual(self, service: str) -> str:
        return self.cluster.recipe.vips[f"{service}-port"]

    # --- programs ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start all programs, once the machines are there, and wait until the addresses have holders."""
        certificate(self.folder, HOSTS["api"], f"*.apps.{DOMAIN}")
        self.restart(self.machines)

    def restart(self, machines: Sequence[Machine]) -> None:
        """Start the programs of machines that have booted, and wait until the addresses have holders."""
        self.wait_for_machines()
        for machine in machines:
            self.start_responder(machine)
            self.start_keepalived(machine)
        for service in HOSTS:
            self.wait_for_holder(service)

    def start_responder(self, machine: Machine) -> None:
        ports = map(str, PORTS[machine.role])
        words = (sys.executable, str(RESPONDER), machine.name, str(self.folder / "server.pem"), *ports)
        self.plane.start(machine.id, *words, log=self.folder / f"responder-{machine.name}.log")

    def fall(self, machine: Machine) -> int:
        """Kill a machine's keepalived, and take the virtual addresses that it leaves behind; returns what was hit."""
        killed = self.plane.kill(machine.id, "keepalived")
        for service in HOSTS:
            self.plane.run(machine.id, "ip", "addr", "del", f"{self.virtual(service)}/32", "dev", "eth0")
        return killed

    def start_keepalived(self, machine: Machine) -> None:
        (service,) = (each for each, role in ROLES.items() if role == machine.role)
        settings = self.folder / f"keepalived-{machine.name}.conf"
        settings.write_text(self._keepalived(service, machine))
        files = []
        for kind in ("pid", "vrrp_pid"):
            path = self.folder / f"{machine.name}-{kind}"
            path.unlink(missing_ok=True)  # what was killed left it, and another process may have its number by now
            files.append(f"--{kind}={path}")
        words = ("keepalived", "--dont-fork", "--log-console", f"--use-file={settings}", *files)
        self.plane.start(machine.id, *words, log=self.folder / f"keepalived-{machine.name}.log")

    def _keepalived(self, service: str, machine: Machine) -> str:
        peers = "".join(f"        {each.address}\n" for each in self.of(service) if each is not machine)
        return (
            "global_defs {\n    enable_script_security\n    script_user root\n    max_auto_priority -1\n"
            "    vrrp_garp_master_refresh 60\n}\n"
            f'vrrp_script answers {{\n    script "/bin/sh {self._check(service)}"\n'
            "    interval 1\n    weight 20\n    rise 1\n    fall 2\n}\n"
            f"vrrp_instance {service} {{\n    state BACKUP\n    interface eth0\n"
            f"    virtual_router_id {ROUTER_IDS[service]}\n    priority {PRIORITIES[service]}\n    advert_int 1\n"
            f"    unicast_src_ip {machine.address}\n    unicast_peer {{\n{peers}    }}\n"
            f"    virtual_ipaddress {{\n        {self.virtual(service)}/32\n    }}\n"
            "    track_script {\n        answers\n    }\n}\n"
        )

    def _check(self, service: str) -> Path:
        path = self.folder / f"check-{service}.sh"
        path.write_text(f"exec bash -c '</dev/tcp/127.0.0.1/{CHECKED[service]}'\n")
        return path

    def wait_for_machines(self) -> None:
        deadline = time.monotonic() + ELECTION_SECONDS
        while not all(each.holds(each.address) for each in self.machines):
            assert time.monotonic() < deadline, "machines without a network"
            time.sleep(0.1)

    def holders(self, service: str) -> list[Machine]:
        return [each for each in self.of(service) if each.holds(self.virtual(service))]

    def wait_for_holder(self, service: str) -> Machine:
        """Wait until one machine holds the address of a service, and only one."""
        deadline = time.monotonic() + ELECTION_SECONDS
        while len(found := self.holders(service)) != 1:
            assert time.monotonic() < deadline, f"{service}: held by {[each.name for each in found]}"
            time.sleep(0.1)
        return found[0]

    # --- requests ---------------------------------------------------------------------------

    def request(self, client: str, host: str, address: str, port: int, *, seconds: float = 2) -> str:
        scheme = "http" if port in (80, 1936) else "https"
        at = f"[{address}]" if ":" in address else address
        words = ("--silent", "--insecure", "--max-time", str(seconds), "--resolve", f"{host}:{port}:{at}")
        ended = self.plane.run(client, "curl", *words, f"{scheme}://{host}:{port}/")
        return ended.stdout.strip() if ended.returncode == 0 else NOBODY

    def settle(self) -> None:
        """Wait until the bridges do what Neutron wants."""
        self.plane.sync()
