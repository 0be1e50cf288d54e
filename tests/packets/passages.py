"""Packets between the nodes of a mesh, in a node.

passages.py serve PORT                     echo what comes by UDP
passages.py ask PROTOCOL:ADDRESS:PORT...   print those that are answered; ICMP has port 0

What is asked by UDP is as large as this machine may send, and may not be cut on its way: a tunnel of a node is so.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 1.0
ECHO_REQUEST, HEADER = 8, "!BBHHH"
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3  # linux/in.h: whole, whatever a router has said before
HEADERS = 28
"""Bytes of the headers of IPv4 and UDP."""
LARGEST = 65535


def serve(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as open_socket:
        open_socket.bind(("", port))
        while True:
            data, sender = open_socket.recvfrom(LARGEST)
            open_socket.sendto(data, sender)


def answered(passage: str) -> bool:
    protocol, address, port = passage.split(":")
    try:
        return {"tcp": by_tcp, "udp": by_udp, "icmp": by_icmp}[protocol](address, int(port))
    except OSError:
        return False


def by_tcp(address: str, port: int) -> bool:
    with socket.create_connection((address, port), SECONDS):
        return True


def by_udp(address: str, port: int) -> bool:
    sent = os.urandom(int(Path("/sys/class/net/eth0/mtu").read_text()) - HEADERS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        asking.settimeout(SECONDS)
        asking.connect((address, port))
        asking.send(sent)
        return asking.recv(LARGEST) == sent


def by_icmp(address: str, _: int) -> bool:
    """Send an echo request: see RFC 792."""
    mine = os.urandom(2)
    words = struct.unpack("!4H", struct.pack("!BBH", ECHO_REQUEST, 0, 0) + mine + b"\0\1")
    total = sum(words)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as asking:
        asking.settimeout(SECONDS)
        asking.connect((address, 0))
        asking.send(struct.pack("!BBH", ECHO_REQUEST, 0, checksum) + mine + b"\0\1")
        while True:
            header = 20
            reply = asking.recv(100)[header:]
            if reply[0] == 0 and reply[4:6] == mine:
                return True


def main() -> None:
    mode, *words = sys.argv[1:]
    if mode == "serve":
        serve(int(words[0]))
    with ThreadPoolExecutor(len(words)) as pool:
        found = list(pool.map(answered, words))
    print(*(word for word, passed in zip(words, found, strict=True) if passed))


if __name__ == "__main__":
    main()
