"""The declaration of how the names of exposures become known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Name, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.exposures.model import DnsName, Label
from openstack_prep.kubernetes.model import STRICT, Namespace
from openstack_prep.resources.dns.record_data import is_within, zone_name
from openstack_prep.resources.dns.recordset import Ttl
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN


def release(value: object) -> object:
    """Read a release of an image; YAML reads 2.3 as a number."""
    if isinstance(value, float):
        raise InvalidValue("is a number in YAML", 'write the full release in quotes, such as "2.3.0"')
    return value


@dataclass(frozen=True, kw_only=True)
class ExternalDns:
    """ExternalDNS with the webhook for Designate: values for its Helm chart, and the names as DNSEndpoint."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

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
class Designate:
    """Recordsets of Designate: apply creates one for each name, and destroy deletes it."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

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
        return max((each for each in self.zones if is_within(name, each)), key=len, default=None)


@dataclass(frozen=True, kw_only=True)
class ExposureNames:
    """Files and recordsets that make the names of exposures known."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    zones: tuple[DnsName, ...] = ()
    """Zones that contain the names; each is rendered for BIND."""
    server: DnsName | None = None
    """Name server of the zones, such as ns.example.com."""
    name_servers: Annotated[tuple[Address, ...], Len(0, 3)] = ()
    """Addresses of name servers that serve the zones, for systemd-resolved and resolv.conf."""
    designate: Designate | None = None
    """Recordsets in zones of Designate."""
    external_dns: ExternalDns | None = None
    """ExternalDNS with Designate."""
