"""Announce an address of this machine by ARP, as keepalived and MetalLB's speakers do: ``announce.py ADDRESS``."""

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


def main() -> None:
    address = ipaddress.IPv4Address(sys.argv[1]).packed
    mac = bytes.fromhex(Path(f"/sys/class/net/{INTERFACE}/address").read_text().strip().replace(":", ""))
    frame = EVERYBODY + mac + struct.pack("!H", ARP)
    frame += struct.pack("!HHBBH", ETHERNET, IPV4, 6, 4, REQUEST) + mac + address + bytes(6) + address
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((INTERFACE, ARP))
        for _ in range(TIMES):
            out.send(frame)
            time.sleep(SECONDS)


if __name__ == "__main__":
    main()
