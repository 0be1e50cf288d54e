"""The DNS names of a cluster for hosts files, dnsmasq and BIND.

Source: OpenShift installer docs/source, "Failure modes users hit": api and *.apps must resolve.
hosts(5) has no wildcards, so it lists the routes of a default installation one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from openstack_prep.dns import entries
from openstack_prep.dns.entries import WILDCARD, Wanted
from openstack_prep.dns.zone import DnsRecord, with_next_serial, zone_text

ROUTES = (
    "console-openshift-console",
    "oauth-openshift",
    "downloads-openshift-console",
    "canary-openshift-ingress-canary",
    "alertmanager-main-openshift-monitoring",
    "prometheus-k8s-openshift-monitoring",
    "thanos-querier-openshift-monitoring",
)
"""First labels of the routes below ``apps`` in a default installation."""


@dataclass(frozen=True, kw_only=True)
class ClusterNames:
    """The names of one cluster and their addresses."""

    cluster_name: str
    """Name in install-config.yaml."""
    base_domain: str
    """Domain in install-config.yaml; the cluster's own is ``CLUSTER_NAME.BASE_DOMAIN``."""
    api: str
    """Address of the API for its clients."""
    ingress: str
    """Address of the ingress routers."""
    api_int: str | None = None
    """Address of the API within the cluster; without it, the name api-int is left out."""
    routes: tuple[str, ...] = ROUTES
    """Names below ``apps``, for formats without wildcards."""
    also: frozenset[str] = frozenset()
    """Addresses of the other IP version, which the names may have as well."""

    @property
    def domain(self) -> str:
        return f"{self.cluster_name}.{self.base_domain.rstrip('.')}"

    def servers(self) -> Iterator[tuple[str, str]]:
        """Yield address and name of api and api-int."""
        yield self.api, f"api.{self.domain}"
        if self.api_int:
            yield self.api_int, f"api-int.{self.domain}"

    def wanted(self) -> Wanted:
        """Return the addresses that each name may have, as entries of hosts files and dnsmasq spell names."""
        apps = [f"{route}.apps.{self.domain}" for route in self.routes]
        below = [(self.ingress, name) for name in (*apps, f"{WILDCARD}apps.{self.domain}")]
        exact = [pair for address, name in self.servers() for pair in ((address, name), (address, f"{WILDCARD}{name}"))]
        below += [(address, f"{WILDCARD}{name}") for address, name in below[:-1]]
        return {name.lower(): {address, *self.also} for address, name in (*exact, *below)}


# --- hosts files --------------------------------------------------------------------------


def hosts_lines(names: ClusterNames) -> list[str]:
    """Return the lines of a hosts file, one per name."""
    routes = ((names.ingress, f"{route}.apps.{names.domain}") for route in names.routes)
    return entries.hosts_lines([*names.servers(), *routes])


# --- name servers -------------------------------------------------------------------------


def dnsmasq_lines(names: ClusterNames) -> list[str]:
    """Return lines for dnsmasq: exact names for the API, a wildcard below ``apps`` for the routers."""
    return entries.dnsmasq_lines([*names.servers(), (names.ingress, f"*.apps.{names.domain}")])


_ZONE_LINE = re.compile(
    r"\$ORIGIN \S+|\$TTL \d+|@ IN SOA \S+ hostmaster\.\S+ \( [\d ]+ \)|@ IN NS \S+"
    r"|(api|api-int|\*\.apps) IN (A|AAAA) \S+"
)


def foreign_lines(zone_file: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a zone that ``zone`` never writes."""
    for number, line in enumerate(zone_file.splitlines(), 1):
        if line.strip() and not _ZONE_LINE.fullmatch(" ".join(line.split())):
            yield number, line.strip()


def zone(names: ClusterNames, *, server: str, today: date, old: str = "") -> str:
    """Return the cluster's domain as a zone for BIND, served by the host ``server``.

    The serial is ``YYYYMMDDnn`` and always higher than that of the ``old`` zone (RFC 1982).  If nothing else
    differs, the old zone is returned with its serial.
    """
    servers = [(name.removesuffix(f".{names.domain}"), address) for address, name in names.servers()]
    records = [DnsRecord.address(name, address) for name, address in (*servers, ("*.apps", names.ingress))]
    return with_next_serial(old, zone_text(names.domain, server, records), today)
