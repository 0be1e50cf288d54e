"""Recordsets of Designate with the names of exposures: like their pairs and rules, a spec need not declare them."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name
from openstack_prep.core.model import Context, Resource
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.model import Exposed
from openstack_prep.exposures.opened import versions
from openstack_prep.resources.dns.record_data import RecordType
from openstack_prep.resources.dns.recordset import Recordset

TYPES: Mapping[int, RecordType] = {4: "A", 6: "AAAA"}


@dataclass(frozen=True, kw_only=True)
class ExposedRecordset(Recordset):
    """A recordset with the addresses of exposures, some of which only their pools will know."""

    identity: ClassVar[frozenset[str]] = Recordset.identity | {"exposures"}

    exposures: tuple[Name, ...] = ()
    """Exposures whose addresses the pool chooses."""

    @property
    def has_records(self) -> bool:
        return bool(self.exposures) or super().has_records

    def find_sources(self, context: Context) -> tuple[Resource, ...]:
        """Return also the exposures whose addresses are records."""
        named = (each for each in context.declared(Exposure) if each.name in self.exposures and self.name in each.names)
        return (*super().find_sources(context), *(part for each in named for part in each.resolve(context)))


def with_recordsets(resources: Sequence[Resource], cluster: ClusterFields) -> tuple[Resource, ...]:
    """Return the resources of a spec with the recordsets for the names of a cluster's exposures; idempotent."""
    exposures: list[Any] = [each for each in resources if isinstance(each, Exposed) and each.cluster == cluster.name]
    return (*resources, *_of_names(cluster, cluster.of_project(exposures), resources))


def _of_names(cluster: ClusterFields, exposures: Iterable[Any], resources: Sequence[Resource]) -> Iterator[Recordset]:
    """Yield the recordsets for the names of a cluster's exposures, without those that the spec declares itself."""
    settings = cluster.names.designate
    if settings is None:
        return
    wanted: dict[tuple[str, RecordType], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in exposures:
        for kind, source, value in _sources(each, resources):
            for name in each.names:
                values = wanted[name, kind][source]
                values += [] if value in values else [value]
    place: dict[str, Any] = {"project": cluster.project, "project_domain": cluster.project_domain}
    if settings.project:
        place = {"project": settings.project, "project_domain": settings.project_domain}
    there = {each.key for each in resources}
    for (name, kind), sources in wanted.items():
        zone = settings.zone_of(name)
        fields: dict[str, Any] = {source: tuple(values) for source, values in sources.items()}
        found = ExposedRecordset(name=name, zone=zone or name, type=kind, ttl=settings.ttl, **fields, **place)
        if zone and found.key not in there:
            yield found


def _sources(exposure: Any, resources: Sequence[Resource]) -> Iterator[tuple[RecordType, str, str]]:
    """Yield the type of the record of an exposure, and the field of a recordset that says its address."""
    if exposure.floating_ip:
        yield TYPES[4], "floating_ips", exposure.floating_ip
    elif exposure.address:
        yield TYPES[ipaddress.ip_address(exposure.address).version], "records", exposure.address
    elif exposure.pool and len(found := versions(exposure, resources)) == 1:
        yield TYPES[found[0]], "exposures", exposure.name


def mistakes(cluster: ClusterFields, exposures: Iterable[Exposed], resources: Sequence[Resource]) -> Iterator[Mistake]:
    """Yield the names that get no recordset, each with its reason."""
    settings = cluster.names.designate
    for each in exposures if settings else ():
        for index, name in enumerate(each.names):
            where = f"exposures.{each.name}.names[{index}]"
            assert settings is not None
            if settings.zone_of(name) is None:
                what = f"{name} is in none of Designate's zones {', '.join(settings.zones)}"
                yield Mistake(where, what, "add its zone to names.designate.zones")
            elif not list(_sources(each, resources)):
                what = f"no address is known that {name} leads to"
                yield Mistake(where, what, "set address, floating_ip, or a pool with addresses of one IP version")
