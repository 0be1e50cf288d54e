"""What a devcloud with OVN would do with a packet: asked of OVN's own flows.

A devcloud of which OPENSTACK_PREP_DEVCLOUD_OVN names the folder of OVN's programs runs Neutron's OVN driver and
ovn-northd (server/ovn.py).  No ovn-controller runs: which machine has a port, and which sends for a virtual
address, a test says itself, by the same entries of the southbound database.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openstack.connection import Connection

from tests.devcloud.layout import Layout, ovn_root

CLIENT = "203.0.113.9"
"""Somebody in the internet."""
CLIENTS_MAC = "0a:00:00:00:00:09"
SECONDS = 30


@dataclass(frozen=True)
class Ovn:
    """OVN of one cloud."""

    layout: Layout

    def claim(self, port_id: str, *, parent: str | None = None) -> None:
        """Do what ovn-controller does when a machine with this port runs, or when ``parent`` sends for its address."""
        self._southbound("--may-exist", "lsp-bind", port_id, "devcloud")
        values = ["up=true", *([f"virtual_parent={parent}"] if parent else [])]
        self._southbound("set", "Port_Binding", port_id, *values)

    def followed(self, port_id: str) -> str:
        """Return the address of a virtual port whose sender OVN takes for the port's machine."""
        return self._northbound("get", "Logical_Switch_Port", port_id, "options:virtual-ip").strip('"')

    def from_outside(self, admin: Connection, floating_ip: Any, tcp_port: int) -> set[str]:
        """Return the ids of the ports that get a new TCP connection from the internet to a floating IP."""
        network: Any = admin.network
        router = network.get_router(floating_ip.router_id)
        (gateway,) = network.ports(device_id=router.id, device_owner="network:router_gateway")
        entrance = self._northbound("--bare", "--columns=name", "find", "Logical_Switch_Port", "type=localnet")
        packet = (
            f'inport=="{entrance}" && eth.src=={CLIENTS_MAC} && eth.dst=={gateway.mac_address} && ip.ttl==64 && '
            f"ip4.src=={CLIENT} && ip4.dst=={floating_ip.floating_ip_address} && tcp.src==40000 && tcp.dst=={tcp_port}"
        )
        return self._trace("external", packet)

    def sent(self, port: Any, source: str, to: Any, tcp_port: int) -> set[str]:
        """Return the ids of the ports that get what a port sends from an address to a port of its own network.

        Not for an address that only a pair with a network allows: ovn-trace compares with the network's first address
        (utilities/ovn-trace.c, check_in_port_sec_ip4, 23.03.1), other than ovn-controller (controller/lflow.c).
        """
        (target,) = (each["ip_address"] for each in to.fixed_ips)
        packet = (
            f'inport=="{port.id}" && eth.src=={port.mac_address} && eth.dst=={to.mac_address} && ip.ttl==64 && '
            f"ip4.src=={source} && ip4.dst=={target} && tcp.src==40000 && tcp.dst=={tcp_port}"
        )
        return self._trace(f"neutron-{port.network_id}", packet)

    def answer(self, port: Any, address: str) -> str:
        """Return the MAC address with which OVN itself answers a port's ARP request; empty if it asks all ports."""
        (source,) = (each["ip_address"] for each in port.fixed_ips)
        packet = (
            f'inport=="{port.id}" && eth.src=={port.mac_address} && eth.dst==ff:ff:ff:ff:ff:ff && arp.op==1 && '
            f"arp.sha=={port.mac_address} && arp.spa=={source} && arp.tpa=={address}"
        )
        found = re.search(r"arp\.sha = ([0-9a-f:]{17});", self._said(f"neutron-{port.network_id}", packet))
        return found[1] if found else ""

    def _trace(self, datapath: str, packet: str) -> set[str]:
        """Return which machines' ports the packet itself comes out of.

        Where OVN has no machine for an address, it asks all ports by ARP instead: these are not in the answer.
        """
        said = self._said(datapath, packet)
        return set(re.findall(r'output to "([^"]+)", type ""', said.partition("arp {")[0]))

    def _said(self, datapath: str, packet: str) -> str:
        self._northbound("--wait=sb", "sync")
        options = (f"--db={self._socket('sb')}", "--no-friendly-names", "--summary", "--ct=new")
        return self._run("ovn-trace", *options, datapath, packet)

    def _northbound(self, *words: str) -> str:
        return self._run("ovn-nbctl", f"--db={self._socket('nb')}", *words)

    def _southbound(self, *words: str) -> str:
        self._northbound("--wait=sb", "sync")
        return self._run("ovn-sbctl", f"--db={self._socket('sb')}", *words)

    def _socket(self, database: str) -> str:
        return f"unix:{self.layout.ovn / database}.sock"

    def _run(self, *command: str) -> str:
        root = Path(ovn_root())
        libraries = ":".join(map(str, root.glob("usr/lib/*-linux-gnu")))
        return subprocess.run(
            [root / "usr/bin" / command[0], *command[1:]],
            env=os.environ | {"LD_LIBRARY_PATH": libraries},
            check=True,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        ).stdout.strip()


def until_active(connection: Connection, port_id: str) -> None:
    """Wait until Neutron has heard from OVN that a port is up."""
    deadline = time.monotonic() + SECONDS
    while connection.network.get_port(port_id).status != "ACTIVE":
        assert time.monotonic() < deadline, f"port {port_id} does not become ACTIVE"
        time.sleep(0.2)
