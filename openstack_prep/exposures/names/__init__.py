"""The names of exposures for hosts files, dnsmasq, BIND, systemd-resolved, resolv.conf and ExternalDNS.  Pure.

Sources: resolved.conf(5) (``~`` routes questions about a domain, and does not search in it); resolv.conf(5) (three name
servers at most); RFC 1035 (zones).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from openstack_prep.base.errors import Mistake
from openstack_prep.dns.lines import dnsmasq_lines, hosts_lines
from openstack_prep.dns.zone import Record, with_next_serial, zone_text
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.names import external_dns
from openstack_prep.exposures.names.model import Designate, ExposureNames, ExternalDns

__all__ = ["Designate", "ExposureNames", "ExternalDns", "files", "mistakes", "pairs"]

HOSTS, DNSMASQ = "hosts", "dnsmasq.conf"
RESOLVED, RESOLV_CONF = "resolved.conf", "resolv.conf"
VALUES, ENDPOINTS = "external-dns-values.yaml", "external-dns-endpoints.yaml"


def pairs(placed: Iterable[Placed]) -> list[tuple[str, str]]:
    """Return pairs of address and name, each of them once."""
    found = ((each.outside, name) for each in placed for name in each.exposure.names)
    return list(dict.fromkeys((address, name) for address, name in found if address))


def files(
    settings: ExposureNames, placed: Sequence[Placed], *, previous: Mapping[str, str] | None = None, today: date
) -> dict[str, str]:
    """Return the files by name, for exposures that have their addresses.

    ``previous`` are the files of the last run: zones that did not change keep their serials.
    """
    found = pairs(placed)
    texts = {HOSTS: _text(hosts_lines(found)), DNSMASQ: _text(dnsmasq_lines(found))}
    for zone in settings.zones:
        name = f"{zone}.zone"
        text = zone_text(zone, settings.server or zone, _records(settings, zone, found))
        texts[name] = with_next_serial((previous or {}).get(name, ""), text, today)
    if settings.name_servers:
        texts[RESOLVED] = _text(_resolved(settings, found))
        texts[RESOLV_CONF] = _text(f"nameserver {address}" for address in settings.name_servers)
    if settings.external_dns:
        texts[VALUES] = external_dns.values(settings, settings.external_dns)
        texts[ENDPOINTS] = external_dns.endpoints(settings.external_dns, _by_exposure(placed))
    return texts


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _zone_of(settings: ExposureNames, name: str) -> str | None:
    """Return the zone with the longest name that contains a name."""
    found = [zone for zone in settings.zones if name == zone or name.endswith(f".{zone}")]
    return max(found, key=len, default=None)


def _records(settings: ExposureNames, zone: str, found: Iterable[tuple[str, str]]) -> Iterator[Record]:
    """Yield the records of a zone, and those that delegate the zones below it."""
    for address, name in found:
        if _zone_of(settings, name) == zone:
            yield Record.address(name.removesuffix(zone).rstrip(".") or "@", address)
    for other in settings.zones:
        parents = [each for each in settings.zones if other.endswith(f".{each}")]
        if zone == max(parents, key=len, default=None):
            yield Record(other.removesuffix(f".{zone}"), "NS", f"{settings.server or zone}.")


def _resolved(settings: ExposureNames, found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a drop-in for systemd-resolved, which asks the name servers for these domains alone."""
    domains = settings.zones or dict.fromkeys(name.removeprefix("*.") for _, name in found)
    yield "[Resolve]"
    yield f"DNS={' '.join(settings.name_servers)}"
    yield f"Domains={' '.join(f'~{domain}' for domain in domains)}"


def _by_exposure(placed: Iterable[Placed]) -> dict[str, dict[str, list[str]]]:
    """Return the names of each exposure with their addresses; a name of several belongs to the first."""
    owners: dict[str, str] = {}
    found: dict[str, dict[str, list[str]]] = {}
    for each in placed:
        for address, name in pairs([each]):
            owner = owners.setdefault(name, each.exposure.name)
            targets = found.setdefault(owner, {}).setdefault(name, [])
            targets.extend([] if address in targets else [address])
    return found


# --- checks -------------------------------------------------------------------------------


def mistakes(settings: ExposureNames, placed: Sequence[Placed]) -> Iterator[Mistake]:
    """Yield all mistakes; addresses that are not reserved yet are not examined."""
    yield from _zones(settings, placed)
    if settings.external_dns and not settings.zones:
        yield Mistake("zones", "external_dns needs the zones of Designate", "list them, such as [example.com]")
    for each in placed:
        for index, name in enumerate(each.exposure.names):
            where = f"exposures.{each.exposure.name}.names[{index}]"
            if settings.zones and _zone_of(settings, name) is None:
                yield Mistake(where, f"{name} is in none of the zones {', '.join(settings.zones)}", "add its zone")
            if settings.external_dns and each.outside and ipaddress.ip_address(each.outside).version == 6:
                what = f"{name} has the IPv6 address {each.outside}, which the webhook for Designate cannot manage"
                yield Mistake(where, what, "use names.designate instead of external_dns")


def _zones(settings: ExposureNames, placed: Sequence[Placed]) -> Iterator[Mistake]:
    for index, zone in enumerate(settings.zones):
        if zone.startswith("*."):
            yield Mistake(f"zones[{index}]", f"{zone} is a wildcard", "use the name of the zone, without '*.'")
        if zone in settings.zones[:index]:
            yield Mistake(f"zones[{index}]", f"{zone} is listed twice", "list it once")
    if settings.zones and settings.server is None:
        yield Mistake("server", "zones need the name of their name server", "set one such as ns.example.com")
    elif settings.server and settings.server.startswith("*."):
        yield Mistake("server", f"{settings.server} is a wildcard", "use the name of a host")
    elif settings.server and _zone_of(settings, settings.server):
        names = {name for each in placed for name in each.exposure.names}
        if settings.server not in names:
            what = f"{settings.server} is in a zone of its own, and no exposure has this name"
            yield Mistake("server", what, "add it to the names of the exposure that leads to the name server")
