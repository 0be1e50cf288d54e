"""BIND of the services machine: two views of the cluster's domain that differ.

Clients inside see the cluster's addresses, and may ask for any name. Clients outside see the exposures' addresses, and
nothing else: neither api-int nor machines, and no answers of other servers. KubeInit 1.0.2 serves api-int outside, and
lets everybody recurse (kubeinit_bind/templates/externals_db.local.j2, named.conf.j2).

Source: BIND 9.18, Administrator Reference Manual (views are tried in their order; recursion, allow-transfer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from openstack_prep.dns.zone import Record, reverse_records, with_next_serial, zone_text
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.service_host.haproxy import API, HTTP, HTTPS
from openstack_prep.exposures.service_host.model import Machine, ServiceHost

CONF = "named.conf"
SERVER = "ns"
"""Name of the services machine in its own domain, for both views: the name of the machine is for inside."""
INSIDE_ONLY = ("api-int", SERVER)


def files(
    settings: ServiceHost, placed: Sequence[Placed], found: Sequence[Machine], previous: Mapping[str, str], today: date
) -> dict[str, str]:
    """Return named.conf and the zones; zones continue the serials of their ``previous`` texts."""
    zones = dict(_inside(settings, placed, found))
    reverse = [name for name in zones if name.endswith(".arpa.zone")]
    inside = {
        settings.domain: f"{settings.domain}.inside.zone",
        **{name.removesuffix(".zone"): name for name in reverse},
    }
    outside = {settings.domain: f"{settings.domain}.outside.zone"}
    zones[outside[settings.domain]] = _outside(settings, placed)
    texts = {name: with_next_serial(previous.get(name, ""), text, today) for name, text in zones.items()}
    return {CONF: _conf(settings, placed, inside, outside), **texts}


# --- zones --------------------------------------------------------------------------------


def _inside(settings: ServiceHost, placed: Sequence[Placed], found: Sequence[Machine]) -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each zone for clients inside."""
    names = {SERVER: settings.address, "api": settings.address, "api-int": settings.address, "*.apps": settings.address}
    names |= {machine.name: machine.address for machine in found}
    names |= {name: settings.address for name, _ in _exposed(settings, placed)}
    records = [Record.address(name, address) for name, address in names.items()]
    yield f"{settings.domain}.inside.zone", zone_text(settings.domain, f"{SERVER}.{settings.domain}", records)
    pairs = ((machine.address, f"{machine.name}.{settings.domain}") for machine in found)
    for zone, pointers in reverse_records(pairs):
        yield f"{zone}.zone", zone_text(zone, f"{SERVER}.{settings.domain}", pointers)


def _outside(settings: ServiceHost, placed: Sequence[Placed]) -> str:
    """Return the zone for clients outside."""
    first = next(each.outside for each in placed if each.outside)
    records = dict.fromkeys([(SERVER, first), *_exposed(settings, placed)])
    return zone_text(
        settings.domain,
        f"{SERVER}.{settings.domain}",
        (Record.address(name, str(address)) for name, address in records),
    )


def _exposed(settings: ServiceHost, placed: Sequence[Placed]) -> Iterator[tuple[str, str]]:
    """Yield names below the domain and their addresses outside: by the exposures' ports, then those they declare."""
    for each in placed:
        if not each.outside:
            continue
        ports = {port.port for port in each.exposure.ports}
        if API in ports:
            yield "api", each.outside
        if ports & {HTTP, HTTPS}:
            yield "*.apps", each.outside
        for name in each.exposure.names:
            if name == settings.domain:
                yield "@", each.outside
            elif name.endswith(f".{settings.domain}"):
                yield name.removesuffix(f".{settings.domain}"), each.outside


# --- named.conf ---------------------------------------------------------------------------


def clients_inside(settings: ServiceHost) -> list[str]:
    """Return the networks whose clients are inside."""
    return list(dict.fromkeys([settings.network, *settings.inside]))


def _conf(
    settings: ServiceHost, placed: Sequence[Placed], inside: Mapping[str, str], outside: Mapping[str, str]
) -> str:
    own = dict.fromkeys(["127.0.0.1", settings.address, *(each.address for each in placed if each.address)])
    listen = {version: [each for each in own if (":" in each) == (version == 6)] for version in (4, 6)}
    forwarders = [f"    forwarders {_list(settings.forwarders)};", "    forward only;"] if settings.forwarders else []
    return "\n".join(
        [
            f"acl inside {_list(['127.0.0.0/8', '::1', *clients_inside(settings)])};",
            "",
            "options {",
            f'    directory "{settings.zone_directory}";',
            f"    listen-on {_list(listen[4])};",
            f"    listen-on-v6 {_list(listen[6] or ['none'])};",
            "    allow-transfer { none; };",
            f"    dnssec-validation {'auto' if settings.dnssec_validation else 'no'};",
            "};",
            "",
            'view "inside" {',
            "    match-clients { inside; };",
            "    recursion yes;",
            "    allow-recursion { inside; };",
            *forwarders,
            *_zones(inside),
            "};",
            "",
            'view "outside" {',
            "    match-clients { any; };",
            "    allow-query { any; };",
            "    allow-query-cache { none; };",
            "    recursion no;",
            "    minimal-responses yes;",
            *_zones(outside),
            "};",
            "",
        ]
    )


def _zones(zones: Mapping[str, str]) -> Iterator[str]:
    for zone, file in zones.items():
        yield f'    zone "{zone}" {{ type primary; file "{file}"; }};'


def _list(entries: Sequence[str]) -> str:
    return f"{{ {' '.join(f'{each};' for each in entries)} }}"
