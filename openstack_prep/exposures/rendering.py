"""All files of an exposed cluster, what is wrong with its settings, and what to know of them: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from openstack_prep.base.errors import Mistake
from openstack_prep.exposures import external_ips, names, service_host, services, virtualization
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.model import Exposed, Placed, Way

NEEDS: Mapping[Way, str] = {"service-host": "service_host", "external-ip": "external_ips", "bridge": "virtualization"}
"""The settings that a way needs, except for Services that lead to virtual machines."""


def texts(
    cluster: ClusterFields,
    placed: Sequence[Placed],
    before: Mapping[str, str],
    today: date,
    *,
    openly: bool = False,
    only_ready: bool = False,
) -> dict[str, str]:
    """Return the texts of all files by name, with secrets as asterisks unless ``openly``.

    ``only_ready``: those that do not exist yet are asterisks, too; who only compares must not generate them.
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
        found |= service_host.files(cluster.service_host, mine, previous=before, today=today)
    return found


def mistakes(cluster: ClusterFields, placed: Sequence[Placed]) -> Iterator[Mistake]:
    """Yield all mistakes; their places are fields of the cluster."""
    yield from missing_settings(cluster, [each.exposure for each in placed])
    yield from _under("names", names.mistakes(cluster.names, placed))
    version = cluster.kubernetes_version
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        yield from _under("external_ips", external_ips.mistakes(cluster.external_ips, mine, version))
    if cluster.virtualization:
        yield from _under("virtualization", virtualization.mistakes(cluster.virtualization, placed))
    if cluster.service_host:
        yield from _under("service_host", service_host.mistakes(cluster.service_host, _by(placed, "service-host")))
        if lacking := service_host.without_mac(cluster.service_host):
            what = f"{', '.join(lacking)} have no MAC addresses"
            yield Mistake("service_host", what, "set macs of each group, and mac of the services machine")


def warnings(cluster: ClusterFields, placed: Sequence[Placed]) -> Iterator[str]:
    """Yield warnings about valid settings."""
    version = cluster.kubernetes_version
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        yield from external_ips.warnings(cluster.external_ips, mine, version)
    if cluster.virtualization:
        yield from virtualization.warnings(cluster.virtualization, placed, version)
    if cluster.service_host:
        yield from service_host.warnings(cluster.service_host)


def _by(placed: Sequence[Placed], way: Way) -> list[Placed]:
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
