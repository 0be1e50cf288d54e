"""What Cilium refuses of a cluster and of a mesh, or what would not work; all of it at once.

Source: Cilium's guide to cluster mesh (addressing requirements, names and ids), its upgrade notes, and issue 24692
(one NodePort in two clusters).  ``where`` of a mistake is our name of the field.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from openstack_prep.base.errors import Mistake
from openstack_prep.kubernetes.cilium.model import NEWEST_MANAGED_ETCD
from openstack_prep.kubernetes.cilium.values import Member, clashes, typed
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.kubernetes.metallb.manifests import Addresses, ranges
from openstack_prep.kubernetes.metallb.model import MetalLB, MetalLBPool
from openstack_prep.kubernetes.nodes import LABEL
from openstack_prep.kubernetes.rke2 import PLUGINS
from openstack_prep.kubernetes.rules import CHOICES

CLUSTER_NAME = r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?"
NODE_PORTS = (30000, 32767)
EQUAL = ("mesh", "mesh_domain", "routing", "tunnel_protocol", "encryption")
"""What all clusters of a mesh must have the same."""


def mistakes(
    member: Member, members: Sequence[Member], metallb: MetalLB | None = None, addresses: Addresses | None = None
) -> Iterator[Mistake]:
    """Yield everything that is wrong with one cluster, and with it beside those named before it.

    ``members`` are all clusters with Cilium; ``metallb`` is this cluster's, ``addresses`` are those of the
    spec's address pools.
    """
    for rule in RULES:
        for where, what, remedy in rule(member):
            yield Mistake(where, what, remedy)
    for name in clashes(typed(member, members), member.cilium.values or {}):
        yield Mistake("values", f"{name} is what a field of ours writes", "say it with that field")
    for where, what, remedy in _beside(member, members):
        yield Mistake(where, what, remedy)
    if metallb is not None:
        for where, what, remedy in _given_out(member, metallb, addresses or {}):
            yield Mistake(where, what, remedy)


def warnings(member: Member) -> Iterator[str]:
    """Yield what works, but not as well as it could."""
    if member.cilium.kube_proxy_replacement and not (member.cluster.config or {}).get("disable-kube-proxy"):
        of_rke2 = "; write disable-kube-proxy: true into config, and into its stack's server_config"
        of = of_rke2 if member.cluster.distribution == "rke2" else ", which RKE cannot leave out"
        yield f"cilium.kube_proxy_replacement: Cilium does it beside kube-proxy{of}"


Said = Iterable[tuple[str, str, str]]


def _names(member: Member) -> Said:
    if member.name == "default":
        yield "name", "default is Cilium's word for a cluster without a name", "choose another"
    elif not re.fullmatch(CLUSTER_NAME, member.name):
        remedy = "use small letters, digits and hyphens, 32 at most"
        yield "name", f"{member.name!r} is no name of a cluster to Cilium", remedy
    domain = member.cilium.mesh_domain
    if not re.fullmatch(rf"{LABEL}(\.{LABEL})+", domain):
        yield "mesh_domain", f"{domain!r} is no domain", "write one such as mesh.cilium.io"
    if not re.fullmatch(LABEL, member.cilium.namespace):
        yield "namespace", f"{member.cilium.namespace!r} is no DNS label", "use small letters, digits and hyphens"


def _etcd(member: Member) -> Said:
    cilium = member.cilium
    if cilium.mesh == "etcd" and cilium.minor > NEWEST_MANAGED_ETCD:
        what = f"Cilium {cilium.version} has no managed etcd; its chart lost it in 1.16"
        yield "mesh", what, "write clustermesh-apiserver"


def _address(member: Member) -> Said:
    cilium = member.cilium
    if cilium.mesh_address and cilium.mesh == "none":
        yield "mesh_address", "there is nothing to reach without a mesh", "leave it out, or choose a mesh"
    services = member.cluster.service_cidr
    if cilium.mesh_address and services and cilium.mesh_service == "LoadBalancer":
        version = ipaddress.ip_network(services).version
        if ipaddress.ip_address(cilium.mesh_address).version != version:
            what = f"{cilium.mesh_address} is no IPv{version}, as the Services of {services} are"
            yield "mesh_address", what, "choose one that is"


def _node_port(member: Member) -> Said:
    cilium, config = member.cilium, member.cluster.config or {}
    given = value_at(config, "services.kube-api.service_node_port_range") or config.get("service-node-port-range")
    first, last = NODE_PORTS
    if cilium.mesh_service == "NodePort" and not given and not first <= cilium.mesh_node_port <= last:
        what = f"{cilium.mesh_node_port} is none of Kubernetes' node ports, {first}-{last}"
        yield "mesh_node_port", what, "choose one of these, or give others to kube-apiserver by config"


def _native(member: Member) -> Said:
    cilium = member.cilium
    if cilium.routing == "native" and cilium.native_routing_cidr is None:
        yield "native_routing_cidr", "is missing for native routing", "give a network that holds the pods of all"
    elif cilium.routing != "native" and cilium.native_routing_cidr is not None:
        yield "native_routing_cidr", "is for native routing only", "leave it out"


def _plugin(member: Member) -> Said:
    """Yield what would be a second network; one that nobody knows is told elsewhere."""
    plugin, distribution = member.cluster.network_plugin, member.cluster.distribution
    said = [each.strip() for each in (plugin or "").split(",")]
    if distribution == "rke" and plugin in CHOICES["network.plugin"] and plugin != "none":
        yield "network_plugin", f"{plugin} is there beside cilium", "leave it out: none, which Cilium needs"
    elif distribution == "rke2" and plugin and {*said} <= {*PLUGINS, "multus"} and "cilium" not in said:
        yield "network_plugin", f"{plugin} is not cilium, whose values are given", "leave it out, or write cilium"


RULES: tuple[Callable[[Member], Said], ...] = (_names, _etcd, _address, _node_port, _native, _plugin)


# --- beside the others --------------------------------------------------------------------


def _beside(member: Member, members: Sequence[Member]) -> Said:
    mesh = [each for each in members if each.cilium.mesh != "none"]
    if member.cilium.mesh == "none" or len(mesh) < 2:
        return
    if member.cilium.mesh_address is None:
        yield "mesh_address", "is missing: the other clusters are to be told where to ask", "give one out of a pool"
    yield from _covered(member, mesh)
    names = [each.name for each in mesh]
    for other in mesh[: names.index(member.name)]:
        yield from _against(member, other)


def _covered(member: Member, mesh: Sequence[Member]) -> Said:
    if member.cilium.native_routing_cidr is None:
        return
    whole = ipaddress.ip_network(member.cilium.native_routing_cidr)
    for each in mesh:
        pods = ipaddress.ip_network(each.cluster.cluster_cidr) if each.cluster.cluster_cidr else None
        if pods is not None and not (pods.version == whole.version and pods.subnet_of(whole)):  # type: ignore[arg-type]
            what = f"{whole} does not hold {pods}, the pods of {each.name}"
            yield "native_routing_cidr", what, "make it hold the pods of all clusters"


def _against(member: Member, other: Member) -> Said:
    one, two = member.cilium, other.cilium
    if one.cluster_id == two.cluster_id:
        yield "cluster_id", f"{one.cluster_id} is that of {other.name}, too", "give each cluster its own"
    for field in EQUAL:
        if getattr(one, field) != getattr(two, field):
            what = f"{getattr(one, field)}, and {other.name} has {getattr(two, field)}"
            yield field, what, "give all clusters of a mesh the same"
    if one.mesh_address and (one.mesh_address, one.mesh_port) == (two.mesh_address, two.mesh_port):
        yield "mesh_address", f"{one.mesh_address} is that of {other.name}, too", "give each cluster its own"
    node_ports = one.mesh_service == two.mesh_service == "NodePort" and one.mesh_node_port == two.mesh_node_port
    if node_ports and (one.kube_proxy_replacement or two.kube_proxy_replacement):
        what = f"{one.mesh_node_port} is that of {other.name}, too, which Cilium without kube-proxy takes for its own"
        yield "mesh_node_port", what, "give each cluster its own"


# --- MetalLB ------------------------------------------------------------------------------


def _given_out(member: Member, metallb: MetalLB, addresses: Addresses) -> Said:
    """Yield what keeps MetalLB from giving the mesh's Service its address."""
    cilium = member.cilium
    if cilium.mesh == "none" or cilium.mesh_service != "LoadBalancer" or cilium.mesh_address is None:
        return
    if any(_address(member)):  # the wrong one for any pool
        return
    address = ipaddress.ip_address(cilium.mesh_address)
    holding = [each for each in metallb.pools if any(address in found for found in ranges(each, addresses))]
    if not holding:
        pools = ", ".join(each.called for each in metallb.pools)
        yield "mesh_address", f"{address} is in none of MetalLB's pools ({pools})", "choose one that is"
    for pool in holding:
        if _kept_from(pool, cilium.namespace):
            what = f"{address} is of pool {pool.called}, which is for namespaces {', '.join(pool.namespaces)}"
            yield "mesh_address", what, f"let it be for {cilium.namespace} as well, or choose one of another pool"
        elif pool.auto_assign and not _restricted(pool):
            what = f"{address} is of pool {pool.called}, out of which MetalLB may give it to any Service first"
            yield "mesh_address", what, "keep it in a pool of its own with auto_assign: false"


def _kept_from(pool: MetalLBPool, namespace: str) -> bool:
    selecting = pool.namespace_selectors or pool.service_selectors  # nobody knows the labels yet
    return bool(pool.namespaces) and namespace not in pool.namespaces and not selecting


def _restricted(pool: MetalLBPool) -> bool:
    return bool(pool.namespaces or pool.namespace_selectors or pool.service_selectors)
