"""Checks of a cluster's Cilium and of a mesh.

Source: Cilium's guide to cluster mesh (addressing requirements, names and ids), its upgrade notes, and issue 24692
(one NodePort in two clusters).  ``where`` of a mistake is the name of the field.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.kubernetes.balancing.pools import Addresses, Findings, ranges
from openstack_prep.kubernetes.cilium import announcing_rules, releases, value_rules
from openstack_prep.kubernetes.cilium.chart import read_chart
from openstack_prep.kubernetes.cilium.model import Cilium
from openstack_prep.kubernetes.cilium.values import Member, conflicts, document, field_values, ip_version
from openstack_prep.kubernetes.keys.schema import dotted, value_at
from openstack_prep.kubernetes.metallb.model import MetalLB, MetalLBPool
from openstack_prep.kubernetes.model import LABEL
from openstack_prep.kubernetes.rke2_rules import PLUGINS
from openstack_prep.kubernetes.rules import CHOICES

CLUSTER_NAME = r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?"
NODE_PORTS = (30000, 32767)
EQUAL = ("mesh", "mesh_domain", "routing", "tunnel_protocol", "encryption")
"""Fields with the same value in all clusters of a mesh."""
EQUAL_VALUES = ("clustermesh.maxConnectedClusters", "tunnelPort")
"""Values of the chart with the same value in all clusters of a mesh.

Source: Cilium's guide to cluster mesh (maxConnectedClusters, PR 29637); pkg/datapath/tunnel (one port for all peers).
"""
MOST_CLUSTERS = 255
TUNNEL_PORTS = {"vxlan": 8472, "geneve": 6081}
OF_FIELDS = ("encryption.enabled", "encryption.type", "kubeProxyReplacement")
"""Values that fields decide, also where the default of the field writes none."""
OF_MESH = ("clustermesh.useAPIServer", "clustermesh.config")
"""Values that the field mesh decides, also without a mesh."""


def mistakes(
    member: Member, members: Sequence[Member], metallb: MetalLB | None = None, addresses: Addresses | None = None
) -> Iterator[Mistake]:
    """Yield all mistakes in one cluster, and its conflicts with the clusters before it.

    ``members`` are all clusters with Cilium; ``metallb`` belongs to this cluster, ``addresses`` are those of the
    spec's address pools.
    """
    for rule in RULES:
        for where, what, fix in rule(member):
            yield Mistake(where, what, fix)
    taken = list(_taken(member, members))
    for name in taken:
        yield Mistake("values", f"{name} is set by a field of the section cilium", "remove it, and use the field")
    for each in _values(member, members):
        if each.where.removeprefix("values.") not in taken:
            yield each
    for where, what, fix in _mesh_findings(member, members):
        yield Mistake(where, what, fix)
    for found in announcing_rules.mistakes(member.cilium, addresses or {}):
        yield replace(found, where=f"load_balancer.{found.where}")
    if _takes_address(member):
        for where, what, fix in announcing_rules.mesh_address_findings(member.cilium, addresses or {}):
            yield Mistake(where, what, fix)
    if metallb is not None:
        for where, what, fix in _assigned(member, metallb, addresses or {}):
            yield Mistake(where, what, fix)


def _taken(member: Member, members: Sequence[Member]) -> dict[str, None]:
    """Return the dotted names of given values that a field decides."""
    given = member.cilium.values or {}
    silent = (*OF_FIELDS, *(OF_MESH if member.cilium.mesh == "none" else ()))
    found = (
        *conflicts(field_values(member, members), given),
        *(each for each in silent if value_at(given, each) is not None),
    )
    return dict.fromkeys(found)


def _values(member: Member, members: Sequence[Member]) -> Iterator[Mistake]:
    """Yield what the chart does not accept; without a chart, what no chart of the release reads."""
    cilium = member.cilium
    given, distribution = cilium.values or {}, member.cluster.distribution
    try:
        chart = read_chart(cilium.chart) if cilium.chart else None
    except InvalidValue as error:
        yield Mistake("chart", error.what, error.fix)
        chart = None
    if chart is None:
        for fault in value_rules.by_table(given, cilium.release):
            yield fault.mistake(f"values.{dotted(fault.steps)}")
    elif chart.name not in {"rke": ["cilium"], "rke2": ["rke2-cilium", "cilium"]}[distribution]:
        yield Mistake("chart", f"{cilium.chart} is the chart {chart.name}", "name a chart of Cilium")
    elif not chart.version.startswith(f"{'.'.join(map(str, cilium.minor))}."):
        what = f"{cilium.chart} is version {chart.version}, and version is {cilium.release}"
        yield Mistake("chart", what, f'write version: "{chart.version}", or name a chart of that version')
    else:
        for fault in value_rules.by_chart(document(member, members), chart):
            yield fault.mistake(f"values.{dotted(fault.steps)}")


def warnings(member: Member) -> Iterator[str]:
    """Yield warnings about valid settings."""
    if not releases.is_known(member.cilium.release):
        known = releases.range_of_known()
        yield f"cilium.version: values and manifests for {member.cilium.release} are not checked; known are {known}"
    if member.cilium.kube_proxy_replacement and not (member.cluster.config or {}).get("disable-kube-proxy"):
        of_rke2 = "; write disable-kube-proxy: true into config, and into server_config of the stack"
        of = of_rke2 if member.cluster.distribution == "rke2" else ", which RKE cannot disable"
        yield f"cilium.kube_proxy_replacement: Cilium runs in addition to kube-proxy{of}"


def _names(member: Member) -> Findings:
    if member.name == "default":
        yield "name", "Cilium reserves default for clusters without a name", "choose a different name"
    elif not re.fullmatch(CLUSTER_NAME, member.name):
        fix = "use at most 32 lower-case letters, digits and hyphens"
        yield "name", f"{member.name!r} is not a valid cluster name for Cilium", fix
    domain = member.cilium.mesh_domain
    if not re.fullmatch(rf"{LABEL}(\.{LABEL})+", domain):
        yield "mesh_domain", f"{domain!r} is not a domain", "write one such as mesh.cilium.io"
    if not re.fullmatch(LABEL, member.cilium.namespace):
        what = f"{member.cilium.namespace!r} is not a DNS label"
        yield "namespace", what, "use lower-case letters, digits and hyphens"


def _release(member: Member) -> Findings:
    cilium, distribution = member.cilium, member.cluster.distribution
    if distribution == "rke" and releases.is_of_rke2(cilium.release):
        fix = f"write {releases.released(cilium.release)}"
        yield "version", f"{cilium.release} is a version of RKE2's own chart", fix
    if distribution == "rke2" and cilium.namespace != "kube-system":
        yield "namespace", "RKE2 installs Cilium into kube-system", "remove it"


def _ip_versions(member: Member) -> Findings:
    """Yield settings with which the agent does not start, by the IP version of the pods."""
    cilium, version = member.cilium, ip_version(member.cluster)
    if version == 6 and cilium.routing == "tunnel" and cilium.minor < releases.IPV6_TUNNEL_SINCE:
        what = f"Cilium {cilium.release} has no tunnels between nodes of an IPv6 cluster"
        yield "routing", what, "write version 1.18 or later, or routing: native"
    since = {"ipsec": releases.IPV6_IPSEC_SINCE, "wireguard": releases.IPV6_WIREGUARD_SINCE}
    tunnelled = cilium.encryption == "ipsec" or cilium.routing == "tunnel"
    if version == 6 and tunnelled and cilium.minor < since.get(cilium.encryption, cilium.minor):
        first = ".".join(map(str, since[cilium.encryption]))
        what = f"Cilium {cilium.release} does not support {cilium.encryption} in an IPv6 cluster"
        yield "encryption", what, f"write version {first} or later, or encryption: none"
    native = cilium.native_routing_cidr
    if native and ipaddress.ip_network(native).version != version:
        yield "native_routing_cidr", f"{native} is not an IPv{version} network like the pods", "use one IP version"
    enabled = {each: value_at(cilium.values or {}, f"ipv{each}.enabled") for each in (4, 6)}
    if enabled[version] is False:
        yield "values", f"ipv{version}.enabled is false, and the pods have IPv{version} addresses", "remove it"
    other = 10 - version
    if enabled[other] is True and cilium.ipam == "kubernetes":
        what = f"ipv{other}.enabled is true, and Kubernetes has no IPv{other} network of pods in this cluster"
        yield "values", what, "remove it: a cluster has one IP version here"


def _etcd(member: Member) -> Findings:
    cilium = member.cilium
    if cilium.mesh == "etcd" and cilium.minor > releases.NEWEST_MANAGED_ETCD:
        yield "mesh", f"Cilium {cilium.release} has no managed etcd (1.16 removed it)", "write clustermesh-apiserver"


def _address(member: Member) -> Findings:
    cilium = member.cilium
    if cilium.mesh_address and cilium.mesh == "none":
        yield "mesh_address", "only applies to clusters with a mesh", "remove it, or choose a mesh"
    services = member.cluster.service_cidr
    if cilium.mesh_address and services and cilium.mesh_service == "LoadBalancer":
        version = ipaddress.ip_network(services).version
        if ipaddress.ip_address(cilium.mesh_address).version != version:
            what = f"{cilium.mesh_address} is not an IPv{version} address like the Services of {services}"
            yield "mesh_address", what, f"choose an IPv{version} address"


def _node_port(member: Member) -> Findings:
    cilium, config = member.cilium, member.cluster.config or {}
    given = value_at(config, "services.kube-api.service_node_port_range") or config.get("service-node-port-range")
    first, last = NODE_PORTS
    if cilium.mesh_service == "NodePort" and not given and not first <= cilium.mesh_node_port <= last:
        what = f"{cilium.mesh_node_port} is not a node port of Kubernetes ({first}-{last})"
        yield "mesh_node_port", what, "choose one of these, or change the range of kube-apiserver in config"


def _native(member: Member) -> Findings:
    cilium = member.cilium
    if cilium.routing == "native" and cilium.native_routing_cidr is None:
        yield (
            "native_routing_cidr",
            "is missing, and native routing requires it",
            "write a network that contains the pods of all clusters",
        )
    elif cilium.routing != "native" and cilium.native_routing_cidr is not None:
        yield "native_routing_cidr", "only applies to native routing", "remove it"


def _plugin(member: Member) -> Findings:
    """Yield a second network plugin; the checks of RKE2 and RKE report unknown plugins."""
    plugin, distribution = member.cluster.network_plugin, member.cluster.distribution
    names = [each.strip() for each in (plugin or "").split(",")]
    if distribution == "rke" and plugin in CHOICES["network.plugin"] and plugin != "none":
        yield (
            "network_plugin",
            f"{plugin} conflicts with cilium",
            "remove it: Cilium requires the default, none",
        )
    elif distribution == "rke2" and plugin and {*names} <= {*PLUGINS, "multus"} and "cilium" not in names:
        yield "network_plugin", f"{plugin} conflicts with the section cilium", "remove it, or write cilium"


RULES: tuple[Callable[[Member], Findings], ...] = (
    _names,
    _release,
    _ip_versions,
    _etcd,
    _address,
    _node_port,
    _native,
    _plugin,
)


# --- conflicts in a mesh ------------------------------------------------------------------


def _mesh_findings(member: Member, members: Sequence[Member]) -> Findings:
    mesh = [each for each in members if each.cilium.mesh != "none"]
    if member.cilium.mesh == "none" or len(mesh) < 2:
        return
    if member.cilium.mesh_address is None:
        yield "mesh_address", "is missing, and the other clusters need it", "write an address of a pool"
    yield from _covered(member, mesh)
    names = [each.name for each in mesh]
    for other in mesh[: names.index(member.name)]:
        yield from _pair_findings(member, other)


def _covered(member: Member, mesh: Sequence[Member]) -> Findings:
    if member.cilium.native_routing_cidr is None:
        return
    whole = ipaddress.ip_network(member.cilium.native_routing_cidr)
    for each in mesh:
        pods = ipaddress.ip_network(each.cluster.cluster_cidr) if each.cluster.cluster_cidr else None
        if pods is not None and not (pods.version == whole.version and pods.subnet_of(whole)):  # type: ignore[arg-type]
            what = f"{whole} does not contain {pods}, the pods of {each.name}"
            yield "native_routing_cidr", what, "write a network that contains the pods of all clusters"


def _pair_findings(member: Member, other: Member) -> Findings:
    one, two = member.cilium, other.cilium
    if one.cluster_id == two.cluster_id:
        yield "cluster_id", f"{one.cluster_id} is also used by {other.name}", "give each cluster its own"
    for field in EQUAL:
        if getattr(one, field) != getattr(two, field):
            what = f"{getattr(one, field)} differs from {getattr(two, field)} of {other.name}"
            yield field, what, "use the same value in all clusters of a mesh"
    for name in EQUAL_VALUES:
        given = any(value_at(each.values or {}, name) for each in (one, two))  # the fields differ otherwise
        mine, theirs = (_effective(each, name) for each in (one, two))
        if given and mine != theirs:
            yield (
                f"values.{name}",
                f"{mine} differs from {theirs} of {other.name}",
                "use the same value in all clusters",
            )
    if one.mesh_address and (one.mesh_address, one.mesh_port) == (two.mesh_address, two.mesh_port):
        yield "mesh_address", f"{one.mesh_address} is also used by {other.name}", "give each cluster its own"
    node_ports = one.mesh_service == two.mesh_service == "NodePort" and one.mesh_node_port == two.mesh_node_port
    if node_ports and (one.kube_proxy_replacement or two.kube_proxy_replacement):
        what = (
            f"{one.mesh_node_port} is also used by {other.name}; without kube-proxy, Cilium takes that port for its own"
        )
        yield "mesh_node_port", what, "give each cluster its own"


def _effective(cilium: Cilium, name: str) -> object:
    """Return a value of ``EQUAL_VALUES``, or what Cilium takes without it."""
    given = value_at(cilium.values or {}, name)
    default = MOST_CLUSTERS if name.startswith("clustermesh.") else TUNNEL_PORTS[cilium.tunnel_protocol]
    return given or default


# --- MetalLB ------------------------------------------------------------------------------


def _assigned(member: Member, metallb: MetalLB, addresses: Addresses) -> Findings:
    """Yield reasons for which MetalLB would not assign the mesh's address to its Service."""
    cilium = member.cilium
    if cilium.mesh_address is None or not _takes_address(member):
        return
    address = ipaddress.ip_address(cilium.mesh_address)
    holding = [each for each in metallb.pools if any(address in found for found in ranges(each, addresses))]
    if not holding:
        pools = ", ".join(each.kubernetes_name for each in metallb.pools)
        yield "mesh_address", f"{address} is not in a pool of MetalLB ({pools})", "choose an address of a pool"
    for pool in holding:
        if _excludes(pool, cilium.namespace):
            what = f"pool {pool.kubernetes_name} of {address} only serves the namespaces {', '.join(pool.namespaces)}"
            yield "mesh_address", what, f"add namespace {cilium.namespace}, or choose an address of a different pool"
        elif pool.auto_assign and not _restricted(pool):
            what = f"MetalLB may assign {address} of pool {pool.kubernetes_name} to any other Service"
            yield "mesh_address", what, "put it into a pool of its own with auto_assign: false"


def _takes_address(member: Member) -> bool:
    """Whether a load balancer must assign the address of the mesh, and the address suits the cluster."""
    cilium = member.cilium
    return cilium.mesh != "none" and cilium.mesh_service == "LoadBalancer" and not any(_address(member))


def _excludes(pool: MetalLBPool, namespace: str) -> bool:
    selecting = pool.namespace_selectors or pool.service_selectors  # labels are unknown before the cluster runs
    return bool(pool.namespaces) and namespace not in pool.namespaces and not selecting


def _restricted(pool: MetalLBPool) -> bool:
    return bool(pool.namespaces or pool.namespace_selectors or pool.service_selectors)
