"""The names of exposures for hosts files, dnsmasq, BIND, systemd-resolved, resolv.conf and ExternalDNS.  Pure.

Sources: resolved.conf(5) (``~`` routes questions about a domain, and does not search in it); resolv.conf(5) (three name
servers at most); RFC 1035 (zones).

Sources: ExternalDNS' chart 1.21.1 (values.yaml, templates/deployment.yaml, CHANGELOG.md) and its CRD
(externaldns.k8s.io/v1alpha1); inovex/external-dns-openstack-webhook 2.3.0: cmd/webhook/main.go has one option,
--domain-filter; internal/designate/client/client.go lists zones whose whole name is the filter;
internal/designate/provider/provider.go reads A, TXT and CNAME alone, so that it would create AAAA records again and
again; clouds.yaml is its only source of credentials.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from annotated_types import Ge, Le, Len

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Address, Name, Reads, Strict
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.dns.entries import dnsmasq_lines, hosts_lines
from openstack_prep.dns.zone import DnsRecord, with_next_serial, zone_text
from openstack_prep.exposures.endpoint import DnsName, Label, PlacedExposure
from openstack_prep.kubernetes.model import Namespace
from openstack_prep.resources.dns.record_data import is_within, zone_name
from openstack_prep.resources.dns.recordset import Ttl
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN

# --- settings ---------------------------------------------------------------------------------


def release(value: object) -> object:
    """Read a release of an image; YAML reads 2.3 as a number."""
    if isinstance(value, float):
        raise InvalidValue("is a number in YAML", 'write the full release in quotes, such as "2.3.0"')
    return value


@dataclass(frozen=True, kw_only=True)
class ExternalDns(Strict):
    """ExternalDNS with the webhook for Designate: values for its Helm chart, and the names as DNSEndpoint."""

    namespace: Namespace = "external-dns"
    """Namespace of ExternalDNS."""
    owner: Label
    """Name of this installation, which it writes beside its records; other records are left alone."""
    cloud: Name = "openstack"
    """Cloud of clouds.yaml."""
    secret: Label = "oscloudsyaml"
    """Secret of Kubernetes with the key clouds.yaml."""
    webhook_release: Annotated[Name, Reads(release)] = "2.3.0"
    """Release of the webhook's image."""
    ttl: Annotated[int, Ge(1), Le(2**31 - 1)] = 300
    """Seconds for which resolvers may cache the records."""


@dataclass(frozen=True, kw_only=True)
class Designate(Strict):
    """Recordsets of Designate: apply creates one for each name, and destroy deletes it."""

    zones: Annotated[tuple[Annotated[Name, Reads(zone_name)], ...], Len(1)]
    """Zones that exist in Designate and contain the names; of several, the longest one."""
    ttl: Ttl | None = None
    """Seconds for which resolvers may cache the records; default: those of the zone."""
    project: Name | None = None
    """Project of the zones, for administrators; default: the cluster's own, which may also use zones shared with it."""
    project_domain: Name = DEFAULT_DOMAIN
    """Name of the domain of that project."""

    def zone_of(self, name: str) -> str | None:
        """Return the innermost zone that contains a name."""
        return max((zone for zone in self.zones if is_within(name, zone)), key=len, default=None)


@dataclass(frozen=True, kw_only=True)
class ExposureNames(Strict):
    """Files and recordsets that make the names of exposures known."""

    zones: tuple[DnsName, ...] = ()
    """Zones that contain the names; each is rendered for BIND."""
    server: DnsName | None = None
    """Name server of the zones: a host in none of them, such as ns.example.net for the zone example.com, or a name of
    the exposure that leads to the name server."""
    name_servers: Annotated[tuple[Address, ...], Len(0, 3)] = ()
    """Addresses of name servers that serve the zones, for systemd-resolved and resolv.conf."""
    designate: Designate | None = None
    """Recordsets in zones of Designate."""
    external_dns: ExternalDns | None = None
    """ExternalDNS with Designate."""


# --- external dns -----------------------------------------------------------------------------


IMAGE = "ghcr.io/inovex/external-dns-openstack-webhook"
VOLUME = "clouds"
RECORD_TYPES = ("A", "CNAME")


def values(settings: ExposureNames, external_dns: ExternalDns) -> str:
    """Return the values of the Helm chart external-dns, which hold no secret: the webhook reads one of Kubernetes."""
    zones = list(settings.zones)
    webhook = {
        "image": {"repository": IMAGE, "tag": external_dns.webhook_release},
        "args": [f"--domain-filter={zone}" for zone in zones],
        "env": [{"name": "OS_CLOUD", "value": external_dns.cloud}],
        "extraVolumeMounts": [{"name": VOLUME, "mountPath": "/etc/openstack", "readOnly": True}],
    }
    return dump(
        {
            "provider": {"name": "webhook", "webhook": webhook},
            "extraVolumes": [{"name": VOLUME, "secret": {"secretName": external_dns.secret}}],
            "sources": ["crd"],
            "domainFilters": zones,
            "managedRecordTypes": list(RECORD_TYPES),
            "policy": "sync",
            "registry": "txt",
            "txtOwnerId": external_dns.owner,
            # the record beside a wildcard would be a-*.apps, which is no name in DNS
            "extraArgs": ["--txt-wildcard-replacement=any"],
        }
    )


def endpoints(external_dns: ExternalDns, names: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return a DNSEndpoint per exposure: its names, and the addresses of each."""
    documents = [
        {
            "apiVersion": "externaldns.k8s.io/v1alpha1",
            "kind": "DNSEndpoint",
            "metadata": {"name": exposure, "namespace": external_dns.namespace},
            "spec": {
                "endpoints": [
                    {"dnsName": name, "recordTTL": external_dns.ttl, "recordType": "A", "targets": list(targets)}
                    for name, targets in of_exposure.items()
                ]
            },
        }
        for exposure, of_exposure in names.items()
    ]
    return dump(*documents)


# --- files ------------------------------------------------------------------------------------


HOSTS, DNSMASQ = "hosts", "dnsmasq.conf"
RESOLVED, RESOLV_CONF = "resolved.conf", "resolv.conf"
VALUES, ENDPOINTS = "external-dns-values.yaml", "external-dns-endpoints.yaml"


def pairs(placed: Iterable[PlacedExposure]) -> list[tuple[str, str]]:
    """Return pairs of address and name, each of them once."""
    found = ((exposure.outside, name) for exposure in placed for name in exposure.exposure.names)
    return list(dict.fromkeys((address, name) for address, name in found if address))


def files(
    settings: ExposureNames, placed: Sequence[PlacedExposure], *, previous: Mapping[str, str] | None = None, today: date
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
        texts[VALUES] = values(settings, settings.external_dns)
        texts[ENDPOINTS] = endpoints(settings.external_dns, _by_exposure(placed))
    return texts


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _zone_of(settings: ExposureNames, name: str) -> str | None:
    """Return the zone with the longest name that contains a name."""
    found = [zone for zone in settings.zones if name == zone or name.endswith(f".{zone}")]
    return max(found, key=len, default=None)


def _records(settings: ExposureNames, zone: str, found: Iterable[tuple[str, str]]) -> Iterator[DnsRecord]:
    """Yield the records of a zone, and those that delegate the zones below it."""
    for address, name in found:
        if _zone_of(settings, name) == zone:
            yield DnsRecord.address(name.removesuffix(zone).rstrip(".") or "@", address)
    for other in settings.zones:
        parents = [each for each in settings.zones if other.endswith(f".{each}")]
        if zone == max(parents, key=len, default=None):
            yield DnsRecord(other.removesuffix(f".{zone}"), "NS", f"{settings.server or zone}.")


def _resolved(settings: ExposureNames, found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a drop-in for systemd-resolved, which asks the name servers for these domains alone."""
    domains = settings.zones or dict.fromkeys(name.removeprefix("*.") for _, name in found)
    yield "[Resolve]"
    yield f"DNS={' '.join(settings.name_servers)}"
    yield f"Domains={' '.join(f'~{domain}' for domain in domains)}"


def _by_exposure(placed: Iterable[PlacedExposure]) -> dict[str, dict[str, list[str]]]:
    """Return the names of each exposure with their addresses; a name of several belongs to the first."""
    owners: dict[str, str] = {}
    found: dict[str, dict[str, list[str]]] = {}
    for exposure in placed:
        for address, name in pairs([exposure]):
            owner = owners.setdefault(name, exposure.exposure.name)
            targets = found.setdefault(owner, {}).setdefault(name, [])
            targets.extend([] if address in targets else [address])
    return found


# --- checks -------------------------------------------------------------------------------


def mistakes(settings: ExposureNames, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    """Yield all mistakes; addresses that are not reserved yet are not examined."""
    yield from _zones(settings, placed)
    if settings.external_dns and not settings.zones:
        yield Mistake("zones", "external_dns needs the zones of Designate", "list them, such as [example.com]")
    for exposure in placed:
        for index, name in enumerate(exposure.exposure.names):
            where = f"exposures.{exposure.exposure.name}.names[{index}]"
            if settings.zones and _zone_of(settings, name) is None:
                yield Mistake(where, f"{name} is in none of the zones {', '.join(settings.zones)}", "add its zone")
            if settings.external_dns and exposure.outside and ipaddress.ip_address(exposure.outside).version == 6:
                what = f"{name} has the IPv6 address {exposure.outside}, which the webhook for Designate cannot manage"
                yield Mistake(where, what, "use names.designate instead of external_dns")


SERVER = "set a host in none of the zones, such as ns.example.net, or a name of the exposure that leads to it"


def _zones(settings: ExposureNames, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    for index, zone in enumerate(settings.zones):
        if zone.startswith("*."):
            yield Mistake(f"zones[{index}]", f"{zone} is a wildcard", "use the name of the zone, without '*.'")
        if zone in settings.zones[:index]:
            yield Mistake(f"zones[{index}]", f"{zone} is listed twice", "list it once")
    if settings.zones and settings.server is None:
        yield Mistake("server", "zones need the name of their name server", SERVER)
    elif settings.server and settings.server.startswith("*."):
        yield Mistake("server", f"{settings.server} is a wildcard", "use the name of a host")
    elif settings.server and _zone_of(settings, settings.server):
        names = {name for exposure in placed for name in exposure.exposure.names}
        if settings.server not in names:
            what = f"{settings.server} is in a zone of its own, and no exposure has this name"
            yield Mistake("server", what, "add it to the names of the exposure that leads to the name server")
