"""Machines of a spec's ports: servers that run, answer, and announce addresses."""

from __future__ import annotations

import ipaddress
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.functional import client
from tests.functional.conftest import Prep
from tests.packets.played_cluster import ELECTION_SECONDS, RESPONDER, ask_neighbours_often
from tests.unit.openshift.probe.listener import certificate

ANNOUNCE = Path(__file__).with_name("announce.py")


@dataclass(frozen=True)
class Node:
    """A server that runs, in a namespace of its own."""

    plane: DataPlane
    name: str
    id: str
    """Of its server, and so of its namespace."""
    address: str
    port_id: str

    def answer(self, folder: Path, *ports: int, host: str = "shop.example.com") -> None:
        """Answer on all of its addresses with its name."""
        if not (folder / "server.pem").exists():
            certificate(folder, host)
        words = (sys.executable, str(RESPONDER), self.name, str(folder / "server.pem"), *map(str, ports))
        self.plane.start(self.id, *words, log=folder / f"responder-{self.name}.log")

    def announce(self, address: str, *words: str) -> None:
        """Take an address besides its own, and announce it; ``words`` are those of announce.py."""
        more = ["nodad"] if ":" in address else []
        self.plane.run(self.id, "ip", "addr", "replace", str(ipaddress.ip_network(address)), "dev", "eth0", *more)
        self.plane.run(self.id, sys.executable, str(ANNOUNCE), address, *words)

    def withdraw(self, address: str) -> None:
        self.plane.run(self.id, "ip", "addr", "del", str(ipaddress.ip_network(address)), "dev", "eth0")

    def get(self, url: str, *words: str, seconds: float = 1) -> str:
        """Return what it gets by HTTP; empty without an answer."""
        return get(self.plane, self.id, url, *words, seconds=seconds)


def get(plane: DataPlane, client: str, url: str, *words: str, seconds: float = 1) -> str:
    """Return what a client gets by HTTP; empty without an answer."""
    ended = plane.run(client, "curl", "--silent", "--insecure", "--max-time", str(seconds), *words, url)
    return ended.stdout.strip() if ended.returncode == 0 else ""


def from_outside(plane: DataPlane, host: str, address: str, port: int = 443) -> str:
    """Return what a client outside gets that knows the address of a name."""
    at = f"[{address}]" if ":" in address else address
    return get(plane, OUTSIDE, f"https://{host}:{port}/", "--resolve", f"{host}:{port}:{at}")


def serve_outside(plane: DataPlane, folder: Path, port: int) -> None:
    """Answer on the external network, with the name ``outside`` and the certificate of the machines."""
    words = (sys.executable, str(RESPONDER), OUTSIDE, str(folder / "server.pem"), str(port))
    plane.start(OUTSIDE, *words, log=folder / f"responder-{OUTSIDE}.log")


def boot(connection: Any, plane: DataPlane, ports: list[Any], image_id: str, **more: str) -> list[Node]:
    """Create a server for each port, as its user would, and wait until each has a network.

    ``more`` are the ids of second ports, by the names of the first ones, with underscores.
    """
    flavor = next(iter(connection.compute.flavors()))
    made = []
    for port in ports:
        second = more.get(port.name.replace("-", "_"))
        networks = [{"port": each} for each in (port.id, second) if each]
        made.append(
            connection.compute.create_server(name=port.name, image_id=image_id, flavor_id=flavor.id, networks=networks)
        )
    nodes = []
    for server, port in zip(made, ports, strict=True):
        connection.compute.wait_for_server(server, interval=0.2, wait=120)
        address = next(each["ip_address"] for each in port.fixed_ips if ":" not in each["ip_address"])
        nodes.append(Node(plane, port.name, server.id, address, port.id))
    wait_for_network(nodes)
    return nodes


def wait_for_network(nodes: list[Node]) -> None:
    """Wait until each has its address; from then on it soon notices a gateway with another MAC address."""
    deadline = time.monotonic() + ELECTION_SECONDS
    for node in nodes:
        while f" {node.address}/" not in node.plane.run(node.id, "ip", "-o", "addr", "show", "dev", "eth0").stdout:
            assert time.monotonic() < deadline, f"{node.name} has no network"
            time.sleep(0.1)
        ask_neighbours_often(node.plane, node.id)


def until(met: Any, seconds: float = 15) -> bool:
    """Wait until something is so, or until a change would have been noticed."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def carry_out(prep: Prep, fixes: Iterable[str]) -> None:
    """Run the commands of fixes, each once, as a shell would; ``apply`` and ``post-ipi``, which ask, get yes."""
    commands = (command for fix in fixes for command in fix.partition("  # ")[0].split(" && "))
    for command in dict.fromkeys(filter(None, commands)):
        first, *words = shlex.split(command)
        if first == "openstack":
            client.openstack(words, prep.environment, prep.folder)
        else:
            assert first == "openstack-prep"
            prep.run(*words, *(["--yes"] if words[0] in ("apply", "post-ipi") and "--yes" not in words else []))
