"""The pools from which a load balancer assigns the addresses of exposures: pure functions.

A load balancer only assigns an address that a pool of it has. Sources: MetalLB 0.16.1, internal/allocator/allocator.go
(Assign) and internal/config/config.go (pools must not overlap); Cilium 1.19, operator/pkg/lbipam/lbipam.go
(findRangeOfIP, and the labels io.kubernetes.service.namespace and .name, by which a pool selects Services); kube-vip
1.2.3, pkg/instance/instance.go (FetchServiceAddresses: the annotation needs no pool).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address

from openstack_prep.base import ranges
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.kubernetes import metallb
from openstack_prep.kubernetes.cilium import Cilium, announcement
from openstack_prep.kubernetes.cilium.announcement import OF_NAME, OF_NAMESPACE
from openstack_prep.kubernetes.cilium.settings import LAYER2_SINCE, CiliumLayer2, CiliumLoadBalancer, CiliumPool, minor
from openstack_prep.kubernetes.service_pools import LabelExpression, LabelSelector

FILES: Mapping[str, str] = {"metallb": "metallb-pool.yaml", "cilium": "cilium-pool.yaml"}
"""The files by way; kube-vip needs no pool."""
HEAD = "# Apply it unless a pool of the cluster has these addresses: pools must not overlap.\n"
ASSUMED = "1.19"
"""The release of Cilium if no cluster of the spec says it."""


def files(
    cluster: str, placed: Iterable[PlacedExposure], known: Sequence[Range], cilium: str | None = None
) -> dict[str, str]:
    """Return the pool of each load balancer; ``known`` are the addresses that pools of the spec's clusters have.

    ``cilium`` is the cluster's release of Cilium, on which the version of the resources depends.
    """
    found = {}
    wanting = [each for each in placed if each.address and each.exposure.target.service and not _is_in(each, known)]
    for way, file in FILES.items():
        mine = [each for each in wanting if each.exposure.how == way]
        if mine:
            held = tuple(map(str, ranges.merged(Range.read(each.address) for each in mine if each.address)))
            name = f"{cluster}-exposures"
            documents = _metallb(name, held) if way == "metallb" else _cilium(name, held, mine, cilium or ASSUMED)
            head = (
                HEAD if cilium or way != "cilium" else f"{HEAD}# It is for Cilium {ASSUMED}: no cluster says another.\n"
            )
            found[file] = head + dump(*documents)
    return found


def _is_in(placed: PlacedExposure, known: Sequence[Range]) -> bool:
    return any(ip_address(placed.address or "") in each for each in known)


def _metallb(name: str, addresses: tuple[str, ...]) -> list[dict[str, object]]:
    """Return a pool that no other Service gets addresses of, announced by layer 2."""
    pool = metallb.MetalLBPool(name=name, addresses=addresses, auto_assign=False)
    return metallb.document(metallb.MetalLB(pools=(pool,)), {})


def _cilium(name: str, addresses: tuple[str, ...], placed: Sequence[PlacedExposure], version: str) -> list[Raw]:
    """Return a pool for these Services alone, announced by layer 2."""
    targets = [each.exposure.target for each in placed]
    mine = LabelSelector(
        match_expressions=(
            LabelExpression(
                key=OF_NAMESPACE, operator="In", values=tuple(sorted({each.namespace for each in targets}))
            ),
            LabelExpression(key=OF_NAME, operator="In", values=tuple(sorted({each.object_name for each in targets}))),
        )
    )
    balancer = CiliumLoadBalancer(
        pools=(CiliumPool(name=name, addresses=addresses, service_selector=mine),),
        l2=CiliumLayer2(service_selector=mine) if minor(version) >= LAYER2_SINCE else None,
    )
    config = Cilium(cluster_id=1, version=version, mesh="none", kube_proxy_replacement=True, load_balancer=balancer)
    return [_named(each, name) for each in announcement.documents(config, {})]


def _named(document: Raw, name: str) -> Raw:
    """Return a document of its own name: a cluster may have a policy of the spec's cluster already."""
    return {**document, "metadata": {**document["metadata"], "name": name}}
