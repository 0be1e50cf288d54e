"""All files of an exposed cluster, what is wrong with its settings, and what to know of them: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from openstack_prep.base.errors import Mistake
from openstack_prep.exposures import external_ips, names, service_host, services, virtualization
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.endpoint import Exposed, PlacedExposure, Way

NEEDS: Mapping[Way, str] = {"service-host": "service_host", "external-ip": "external_ips", "bridge": "virtualization"}
"""The settings that a way needs, except for Services that lead to virtual machines."""


def texts(
    cluster: ClusterFields,
    placed: Sequence[PlacedExposure],
    before: Mapping[str, str],
    today: date,
    *,
    openly: bool = False,
    only_ready: bool = False,
    macs: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the texts of all files by name, with secrets as asterisks unless ``openly``.

    ``only_ready``: those that do not exist yet are asterisks, too; who only compares must not generate them.
    ``macs`` are MAC addresses that are reserved for machines of ``service_host``, by name.
    ``before`` are the existing files: zones take their serials from them, so that equal ones keep theirs.
    """
    found = services.files(placed)
    if any(each.exposure.names for each in placed):
        found |= names.files(cluster.names, placed, previous=before, today=today)
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        on_openstack = cluster.router is not None
        found |= external_ips.files(
            cluster.external_ips, mine, on_openstack=on_openstack, openly=openly, only_ready=only_ready
        )
    if cluster.virtualization:
        found |= virtualization.files(cluster.virtualization, placed)
    if cluster.service_host and (mine := _by(placed, "service-host")):
        found |= service_host.files(cluster.service_host, mine, macs=macs, previous=before, today=today)
    return found


def mistakes(
    cluster: ClusterFields, placed: Sequence[PlacedExposure], macs: Mapping[str, str] | None = None
) -> Iterator[Mistake]:
    """Yield all mistakes; their places are fields of the cluster."""
    yield from missing_settings(cluster, [each.exposure for each in placed])
    yield from _under("names", names.mistakes(cluster.names, placed))
    version = cluster.kubernetes_version
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        yield from _under("external_ips", external_ips.mistakes(cluster.external_ips, mine, version))
    if cluster.virtualization:
        yield from _under("virtualization", virtualization.mistakes(cluster.virtualization, placed))
    if cluster.service_host:
        mine = _by(placed, "service-host")
        yield from _under("service_host", service_host.mistakes(cluster.service_host, mine, macs))
        if (lacking := service_host.without_mac(cluster.service_host)) and not cluster.service_host.pool:
            what = f"{', '.join(lacking)} have no MAC addresses"
            fix = "set pool to a pool file for the cluster's network; or macs of each group, and mac"
            yield Mistake("service_host", what, fix)


def warnings(cluster: ClusterFields, placed: Sequence[PlacedExposure]) -> Iterator[str]:
    """Yield warnings about valid settings."""
    version = cluster.kubernetes_version
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        yield from external_ips.warnings(cluster.external_ips, mine, version)
    if cluster.virtualization:
        yield from virtualization.warnings(cluster.virtualization, placed, version)
    if cluster.service_host:
        yield from service_host.warnings(cluster.service_host)


def _by(placed: Sequence[PlacedExposure], way: Way) -> list[PlacedExposure]:
    """Return the exposures of a way that lead to Services or hosts; virtual machines have their own files."""
    return [each for each in placed if each.exposure.how == way and not each.exposure.target.virtual_machine]


def missing_settings(cluster: ClusterFields, exposures: Iterable[Exposed]) -> Iterator[Mistake]:
    """Yield the settings that exposures need and the cluster lacks."""
    for each in exposures:
        needed = "virtualization" if each.target.virtual_machine else NEEDS.get(each.how)
        if needed and getattr(cluster, needed) is None:
            what = f"is missing, and exposure {each.name} ({each.how}, {each.target}) needs it"
            yield Mistake(needed, what, "add it")


def _under(field: str, found: Iterator[Mistake]) -> Iterator[Mistake]:
    for each in found:
        yield replace(each, where=f"{field}.{each.where}" if each.where else field)
