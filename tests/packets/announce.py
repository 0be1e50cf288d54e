"""Announce an address of this machine: ``announce.py ADDRESS [link-local]``.

By ARP, and with IPv6 by unsolicited neighbour advertisements (RFC 4861, 4.4): from the address itself, as keepalived
does (keepalived/vrrp/vrrp_ndisc.c, 2.2.7), or from the link-local address, as MetalLB's speakers do
(internal/layer2/ndp.go, 0.15).
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
import time
from pathlib import Path

INTERFACE = "eth0"
TIMES, SECONDS = 3, 0.1
EVERYBODY = b"\xff" * 6
ARP, ETHERNET, IPV4, REQUEST = 0x0806, 1, 0x0800, 1
ADVERTISEMENT, OVERRIDE, LINK_ADDRESS, HOPS = 136, 1 << 29, b"\2\1", 255
ALL_NODES = "ff02::1"
LINUX_CHOOSES = "::"
"""To send to the nodes of a link, Linux takes the link-local address."""


def by_arp(address: ipaddress.IPv4Address, mac: bytes) -> None:
    frame = EVERYBODY + mac + struct.pack("!H", ARP)
    frame += struct.pack("!HHBBH", ETHERNET, IPV4, 6, 4, REQUEST) + mac + address.packed + bytes(6) + address.packed
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((INTERFACE, ARP))
        out.send(frame)


def by_advertisement(address: ipaddress.IPv6Address, mac: bytes, sender: str) -> None:
    message = struct.pack("!BBHI", ADVERTISEMENT, 0, 0, OVERRIDE) + address.packed + LINK_ADDRESS + mac
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as out:
        out.bind((sender, 0))
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, HOPS)
        out.sendto(message, (ALL_NODES, 0, 0, socket.if_nametoindex(INTERFACE)))  # Linux writes the checksum


def main() -> None:
    address = ipaddress.ip_address(sys.argv[1])
    mac = bytes.fromhex(Path(f"/sys/class/net/{INTERFACE}/address").read_text().strip().replace(":", ""))
    for _ in range(TIMES):
        if isinstance(address, ipaddress.IPv4Address):
            by_arp(address, mac)
        else:
            by_advertisement(address, mac, LINUX_CHOOSES if sys.argv[2:] == ["link-local"] else str(address))
        time.sleep(SECONDS)


if __name__ == "__main__":
    main()
