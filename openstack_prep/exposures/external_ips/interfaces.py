"""Files that assign the addresses on each node: a script, or the form of a network service.

Sources: iproute2 (ip-address(8): replace); systemd.network(5) (drop-ins); netplan's reference (files are merged by the
name of the interface; dummy-devices since 1.0); nmstate, rust/src/lib (the list of addresses of an interface replaces
all others, so only an interface of its own can be declared).
"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator, Sequence

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.exposures.external_ips.carrying import addresses, carried, hops
from openstack_prep.exposures.external_ips.model import ExternalIPs
from openstack_prep.exposures.model import Placed

ROUTES = "routes.sh"


def files(settings: ExternalIPs, placed: Sequence[Placed]) -> dict[str, str]:
    """Return the files of all nodes that carry addresses, and the script for the router."""
    builders = {"script": _script, "networkd": _networkd, "netplan": _netplan, "nmstate": _nmstate}
    texts: dict[str, str] = {}
    for node, held in carried(settings, placed).items():
        if held:
            for ending, text in builders[settings.configuration](
                settings, node, [_with_mask(settings, a) for a in held]
            ):
                texts[f"addresses-{node}{ending}"] = text
    if settings.static_routes and addresses(placed):
        texts[ROUTES] = _routes(settings, placed)
    return texts


def _with_mask(settings: ExternalIPs, address: str) -> str:
    return f"{address}/{settings.mask if ipaddress.ip_address(address).version == 4 else settings.mask_v6}"


def _script(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    up = ['ip address replace "$address" dev "$interface"']
    if not settings.is_routed:  # others may still have the MAC address of the node before
        up += [
            'case "$address" in',
            "*:*) ;;",
            "*)",
            "    if command -v arping >/dev/null; then",
            '        arping -q -U -c 3 -I "$interface" "${address%/*}" || true',
            "    fi",
            "    ;;",
            "esac",
        ]
    first = []
    if settings.create_interface:
        first = ['ip link show dev "$interface" >/dev/null 2>&1 || ip link add "$interface" type dummy']
        first += ['ip link set "$interface" up']
    down = ['ip address delete "$address" dev "$interface" 2>/dev/null || true']
    lines = [
        "#!/bin/sh",
        f"# External addresses of node {node}, until its next start: sh addresses-{node}.sh up, or down",
        "set -eu",
        f"interface={shlex.quote(settings.interface)}",
        f"addresses={shlex.quote(' '.join(held))}",
        'case "${1-}" in',
        "up)",
        *(f"    {each}" for each in first),
        "    for address in $addresses; do",
        *(f"        {each}" for each in up),
        "    done",
        "    ;;",
        "down)",
        "    for address in $addresses; do",
        *(f"        {each}" for each in down),
        "    done",
        "    ;;",
        "*)",
        f'    echo "usage: sh addresses-{node}.sh up | down" >&2',
        "    exit 2",
        "    ;;",
        "esac",
    ]
    yield ".sh", "\n".join(lines) + "\n"


def _networkd(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    lines = [f"Address={each}" for each in held]
    if not settings.create_interface:
        where = (
            f"/etc/systemd/network/NAME.network.d/external-ips.conf, where NAME.network configures {settings.interface}"
        )
        yield ".conf", "\n".join([f"# {where}; then run networkctl reload", "[Network]", *lines]) + "\n"
        return
    folder = "/etc/systemd/network/90-external-ips"
    yield ".netdev", f"# {folder}.netdev\n[NetDev]\nName={settings.interface}\nKind=dummy\n"
    text = [f"# {folder}.network", "[Match]", f"Name={settings.interface}", "", "[Network]", "LinkLocalAddressing=no"]
    yield ".network", "\n".join([*text, *lines]) + "\n"


def _netplan(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    kind = "dummy-devices" if settings.create_interface else "ethernets"
    data = {"network": {"version": 2, kind: {settings.interface: {"addresses": list(held)}}}}
    yield ".yaml", f"# /etc/netplan/90-external-ips.yaml; then run netplan apply\n{dump(data)}"


def _nmstate(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    interface: dict[str, object] = {"name": settings.interface, "type": "dummy", "state": "up"}
    for version in (4, 6):
        found = [each.split("/") for each in held if ipaddress.ip_interface(each).version == version]
        if found:
            listed = [{"ip": address, "prefix-length": int(length)} for address, length in found]
            interface[f"ipv{version}"] = {"enabled": True, "address": listed}
    yield ".nmstate.yaml", f"# nmstatectl apply addresses-{node}.nmstate.yaml\n{dump({'interfaces': [interface]})}"


def _routes(settings: ExternalIPs, placed: Sequence[Placed]) -> str:
    """Return the script for a Linux router."""
    lines = ["#!/bin/sh", f"# Routes to the external addresses, on the router: sh {ROUTES} up, or down", "set -eu"]
    up, down = [], []
    for each in hops(settings, placed):
        program = "ip -6 route" if ":" in each.address else "ip route"
        via = " ".join(f"nexthop via {hop}" for hop in each.next_hops)
        if len(each.next_hops) == 1:
            via = f"via {each.next_hops[0]}"
        up.append(f"    {program} replace {each.destination} {via}")
        down.append(f"    {program} delete {each.destination} 2>/dev/null || true")
    usage = [f'    echo "usage: sh {ROUTES} up | down" >&2', "    exit 2"]
    body = ['case "${1-}" in', "up)", *up, "    ;;", "down)", *down, "    ;;", "*)", *usage, "    ;;", "esac"]
    return "\n".join([*lines, *body]) + "\n"
