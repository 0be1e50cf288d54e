"""Checks of a cluster's Cilium and of a mesh.

Source: Cilium's guide to cluster mesh (addressing requirements, names and ids), its upgrade notes, and issue 24692
(one NodePort in two clusters).  ``where`` of a mistake is the name of the field.

Sources: the custom resource definitions of Cilium 1.13 to 1.19; operator/pkg/lbipam/lbipam.go (Services without a class
lose addresses of other load balancers as soon as there is a pool); Documentation/network/l2-announcements.rst.

Helm ignores unknown names in silence, and up to 1.15 also values of a wrong type.
"""

from __future__ import annotations

import gzip
import ipaddress
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.formats.foreign_text import parse_json, parse_yaml, shipped_yaml
from openstack_prep.base.given_file import refuse_special
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Steps, dotted, value_at
from openstack_prep.base.secret import Secret
from openstack_prep.base.suggestion import suggest
from openstack_prep.kubernetes.cilium import settings
from openstack_prep.kubernetes.cilium.announcement import OF_NAME, OF_NAMESPACE, WELL_KNOWN, pool_selector
from openstack_prep.kubernetes.cilium.settings import Cilium, CiliumBGP, CiliumLoadBalancer, CiliumPool
from openstack_prep.kubernetes.cilium.values import Member, conflicts, document, field_values, ip_version
from openstack_prep.kubernetes.keys.schema import Fault, hide, validator_class
from openstack_prep.kubernetes.metallb import MetalLB, MetalLBPool
from openstack_prep.kubernetes.model import LABEL
from openstack_prep.kubernetes.networks import split
from openstack_prep.kubernetes.rke2_rules import PLUGINS
from openstack_prep.kubernetes.rules import CHOICES
from openstack_prep.kubernetes.service_pools import (
    Addresses,
    Findings,
    address_findings,
    label_findings,
    list_mistakes,
    name_findings,
    ranges,
    repeated,
    selector_findings,
)

# The archive of a Helm chart: its name, its version and the schema of its values.
#
# Source: Helm's documentation ("Charts", "Schema Files"). An archive is untrusted: nothing is unpacked, two members are
# read, and all sizes are limited. Of the schema, only keywords without references and patterns are used.

MEMBERS = {"Chart.yaml": 2**18, "values.schema.json": 2**22}
"""The members that are read, and their maximum sizes."""
MOST_BYTES = 2**26
"""Maximum size of the whole archive without compression."""
EXAMPLE = "name the archive of a chart, such as cilium-1.18.12.tgz"
BOUNDS = ("enum", "minimum", "maximum", "minItems", "maxItems")
CHART_CHOICES = ("anyOf", "oneOf")


@dataclass(frozen=True)
class Chart:
    """A chart: its name, its version and the schema of its values."""

    name: str
    version: str
    schema: Raw


class _Limited:
    """A stream that refuses to be read beyond a limit, because a small archive may contain terabytes."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._left = stream, MOST_BYTES

    def read(self, size: int) -> bytes:
        found = self._stream.read(min(size, self._left + 1))
        self._left -= len(found)
        if self._left < 0:
            raise InvalidValue(f"is larger than {MOST_BYTES // 2**20} MiB without compression", EXAMPLE)
        return found


def read_chart(path: str) -> Chart:
    """Return the chart in an archive; raises InvalidValue."""
    found: dict[str, bytes] = {}
    try:
        refuse_special(Path(path))
        with gzip.open(path) as stream, tarfile.open(fileobj=_Limited(stream), mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                folder, _, name = member.name.removeprefix("./").partition("/")
                if folder and name in MEMBERS and member.isfile() and name not in found:
                    found[name] = _member(archive, member, MEMBERS[name])
                if len(found) == len(MEMBERS):
                    break
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a .tgz archive"
        raise InvalidValue(f"{path} cannot be read: {why}", EXAMPLE) from None
    return _chart(path, found)


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> bytes:
    if member.size > limit:
        raise InvalidValue(f"{member.name} has {member.size} bytes, at most {limit} are read", EXAMPLE)
    content = archive.extractfile(member)
    return content.read(limit) if content else b""


def _chart(path: str, found: Mapping[str, bytes]) -> Chart:
    if "Chart.yaml" not in found:
        raise InvalidValue(f"{path} has no Chart.yaml", EXAMPLE)
    about = _parsed("Chart.yaml", found["Chart.yaml"])
    name, version = str(about.get("name")), str(about.get("version"))
    if "values.schema.json" not in found:
        what = f"{path} ({name} {version}) has no values.schema.json; charts of Cilium have one since 1.16"
        raise InvalidValue(what, "remove chart")
    try:
        return Chart(name, version, _strict(_parsed("values.schema.json", found["values.schema.json"])))
    except RecursionError:
        raise InvalidValue(f"values.schema.json of {path} is nested too deeply", EXAMPLE) from None


def _parsed(name: str, content: bytes) -> Raw:
    try:
        text = content.decode()
        data = parse_json(text) if name.endswith(".json") else parse_yaml(text)
    except (ValueError, yaml.YAMLError):
        raise InvalidValue(f"{name} of the chart cannot be parsed", EXAMPLE) from None
    if not isinstance(data, dict):
        raise InvalidValue(f"{name} of the chart is not a mapping", EXAMPLE)
    return data


def _strict(schema: Any) -> dict[str, Any]:
    """Return the schema with the known keywords, that refuses unknown names wherever it knows some.

    Helm itself passes unknown names over in silence.
    """
    if not isinstance(schema, dict):
        return {}
    strict: dict[str, Any] = {name: schema[name] for name in BOUNDS if name in schema}
    if isinstance(schema.get("type"), str | list):
        strict["type"] = schema["type"]
    if isinstance(schema.get("items"), dict):
        strict["items"] = _strict(schema["items"])
    for name in CHART_CHOICES:
        if isinstance(schema.get(name), list):
            strict[name] = [_strict(each) for each in schema[name]]
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        strict["properties"] = {name: _strict(each) for name, each in properties.items()}
        strict["additionalProperties"] = False
    return strict


# --- announcement -----------------------------------------------------------------------------


MESH_SERVICES = {"clustermesh-apiserver": "clustermesh-apiserver", "etcd": "cilium-etcd-external"}
"""Names of the Service of a mesh, by the kind of the mesh."""


def announcement_mistakes(cilium: Cilium, addresses: Addresses) -> Iterator[Mistake]:
    """Yield all mistakes; ``where`` is the name of a field of ``load_balancer``."""
    balancer = cilium.load_balancer
    if balancer is None:
        return
    yield from list_mistakes(balancer.pools, addresses)
    for index, pool in enumerate(balancer.pools):
        for field, what, fix in _pool(pool, addresses):
            yield Mistake(f"pools[{index}]{field and f'.{field}'}", what, fix)
    if not balancer.protocols:
        yield Mistake("l2", "neither l2 nor bgp is set, so no node announces an address", "write l2: {}, or set bgp")
    for field, what, fix in (*_layer2(cilium, balancer, addresses), *_bgp(cilium, balancer.bgp)):
        yield Mistake(field, what, fix)
    if balancer.bgp is not None:
        yield from repeated("bgp.peers", [peer.name for peer in balancer.bgp.peers])


def _pool(pool: CiliumPool, addresses: Addresses) -> Findings:
    yield from name_findings(pool)
    yield from address_findings(pool, addresses)
    for what, fix in selector_findings([pool.service_selector] if pool.service_selector else []):
        yield "service_selector", what, fix


def _layer2(cilium: Cilium, balancer: CiliumLoadBalancer, addresses: Addresses) -> Findings:
    if balancer.l2 is None:
        return
    if cilium.minor < settings.LAYER2_SINCE:
        yield "l2", f"Cilium {cilium.release} does not announce by ARP", "write version 1.14 or later, or use bgp"
    if not cilium.kube_proxy_replacement:
        yield "l2", "it requires kube_proxy_replacement", "write kube_proxy_replacement: true into the section cilium"
    if cilium.minor < settings.IPV6_LAYER2_SINCE and balancer.bgp is None:
        for index, pool in enumerate(balancer.pools):
            for each in ranges(pool, addresses):
                if each.version == 6:
                    what = f"Cilium {cilium.release} does not announce the IPv6 addresses {each} by layer 2"
                    yield f"pools[{index}]", what, "write version 1.19 or later, or use bgp"
    for name in ("node_selector", "service_selector"):
        selector = getattr(balancer.l2, name)
        for what, fix in selector_findings([selector] if selector else []):
            yield f"l2.{name}", what, fix


def _bgp(cilium: Cilium, bgp: CiliumBGP | None) -> Findings:
    if bgp is None:
        return
    for name in ("node_selector", "service_selector"):
        selector = getattr(bgp, name)
        for what, fix in selector_findings([selector] if selector else []):
            yield f"bgp.{name}", what, fix
    for field in ("communities", "local_pref"):
        if getattr(bgp, field) not in (None, ()) and cilium.minor < settings.BGP_RESOURCES_SINCE:
            yield f"bgp.{field}", _too_old(cilium), "remove it, or write version 1.16 or later"
    for community in bgp.communities:
        if not _is_community(community):
            fix = "write two numbers up to 65535 (64512:1234), three numbers (64512:1:2), or a name such as no-export"
            yield "bgp.communities", f"{community!r} is not a community", fix
    since = dict.fromkeys(("peer_port", "hold_time", "ebgp_multi_hop"), settings.BGP_PEER_OPTIONS_SINCE)
    since["password"] = settings.BGP_PASSWORD_SINCE
    for index, peer in enumerate(bgp.peers):
        for what, fix in label_findings(peer.name):
            yield f"bgp.peers[{index}].name", what, fix
        for field, first in since.items():
            if getattr(peer, field) is not None and cilium.minor < first:
                fix = f"remove it, or write version {'.'.join(map(str, first))} or later"
                yield f"bgp.peers[{index}].{field}", _too_old(cilium), fix
        same = [each.peer_address for each in bgp.peers[:index]]
        if peer.peer_address in same:
            what = f"{peer.peer_address} is also the address of peers[{same.index(peer.peer_address)}]"
            yield f"bgp.peers[{index}].peer_address", what, "declare each router once"


def _too_old(cilium: Cilium) -> str:
    return f"Cilium {cilium.release} does not support it"


def _is_community(text: str) -> bool:
    parts = text.split(":")
    limit = 2**16 if len(parts) == 2 else 2**32
    numbers = all(re.fullmatch(r"0|[1-9][0-9]{0,9}", part) and int(part) < limit for part in parts)
    return text in WELL_KNOWN or (len(parts) <= 3 and numbers)


# --- the address of a mesh ----------------------------------------------------------------


def mesh_address_findings(cilium: Cilium, addresses: Addresses) -> Findings:
    """Yield reasons for which Cilium would not assign the mesh's address to its Service."""
    if cilium.load_balancer is None or cilium.mesh_address is None:
        return
    address, pools = ipaddress.ip_address(cilium.mesh_address), cilium.load_balancer.pools
    holding = [each for each in pools if any(address in found for found in ranges(each, addresses))]
    if not holding:
        names = ", ".join(each.kubernetes_name for each in pools)
        yield "mesh_address", f"{address} is not in a pool of Cilium ({names})", "choose an address of a pool"
    for pool in holding:
        if pool.namespaces and cilium.namespace not in pool.namespaces:
            what = f"pool {pool.kubernetes_name} of {address} only serves the namespaces {', '.join(pool.namespaces)}"
            yield "mesh_address", what, f"add namespace {cilium.namespace}, or choose an address of a different pool"
        elif not pool_selector(pool):
            what = f"Cilium may assign {address} of pool {pool.kubernetes_name} to any other Service"
            service = f"{{{OF_NAMESPACE}: {cilium.namespace}, {OF_NAME}: {MESH_SERVICES[cilium.mesh]}}}"
            fix = f"put it into a pool of its own with service_selector: {{match_labels: {service}}}"
            yield "mesh_address", what, fix


# --- value ------------------------------------------------------------------------------------


KINDS = {
    "boolean": "true or false",
    "text": "a string",
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "list": "a list",
    "array": "a list",
    "mapping": "a mapping",
    "object": "a mapping",
    "null": "null",
}
LONGEST = 40
"""Maximum length of a shown value."""


class ChartNames(NamedTuple):
    """The names at the top level, with the kinds of their values and the releases 1.N that read them."""

    kinds: Mapping[str, str]
    since: Mapping[str, int]
    until: Mapping[str, int]
    unlisted: frozenset[str]
    """Dotted names that charts read although their schemas do not have them."""
    defaults: Raw
    """The chart's values that ``refusals`` depend on."""
    refusals: Sequence[Raw]


@cache
def names() -> ChartNames:
    """Return the table."""
    found = shipped_yaml(__package__, "names.yaml")
    kinds = {name: kind for kind, listed in found["types"].items() for name in listed}
    rest = (frozenset(found["unlisted"]), found["defaults"], found["refusals"])
    return ChartNames(kinds, found["since"], found["until"], *rest)


def by_table(values: Mapping[str, object], release: str) -> Iterator[Fault]:
    """Yield unknown names at the top level, names of other releases, and values of a wrong type."""
    table = names()
    number = settings.minor(release)[1] if settings.is_known(release) else None
    for name, value in values.items():
        if name not in table.kinds:
            yield _unknown((name,), table.kinds)
            continue
        first, last = table.since.get(name, 0), table.until.get(name, 99)
        if number is not None and not first <= number <= last:
            what = f"Cilium {release} does not read it; 1.{first} and later do" if number < first else None
            what = what or f"Cilium {release} does not read it; 1.{last} was the last release that did"
            yield Fault((name,), what, "remove it, or correct version", Code.SPEC_UNKNOWN_KEY)
        elif value is not None and not _is_of(value, table.kinds[name]):
            wanted = KINDS[table.kinds[name]]
            yield Fault((name,), f"{_shown(value, name)} is not {wanted}", f"write {wanted}")


def _is_of(value: object, kind: str) -> bool:
    """Whether a value is of a kind; templates write numbers and strings alike."""
    scalar = isinstance(value, str | int | float)
    checks = {
        "boolean": isinstance(value, bool),
        "text": scalar,
        "number": scalar and not isinstance(value, bool) and str(value).lstrip("-").isdecimal(),
        "list": isinstance(value, list | tuple),
        "mapping": isinstance(value, Mapping),
    }
    return checks.get(kind, True)


def by_chart(values: Mapping[str, object], chart: Chart) -> Iterator[Fault]:
    """Yield everything in values that the schema of a chart does not allow."""
    unlisted = names().unlisted
    for error in validator_class()(chart.schema).iter_errors(values):
        steps: Steps = tuple(error.absolute_path)
        if error.validator != "additionalProperties":
            yield _wrong(error, steps)
            continue
        known = error.schema["properties"]
        for name in (str(each) for each in error.instance if each not in known):
            if ".".join(map(str, (*steps, name))) not in unlisted:
                yield _unknown((*steps, name), known)


def _wrong(error: Any, steps: Steps) -> Fault:
    shown = _shown(error.instance, str(steps[-1]) if steps else "")
    if error.validator == "type":
        types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        wanted = " or ".join(dict.fromkeys(KINDS.get(str(each), str(each)) for each in types if each != "null"))
        return Fault(steps, f"{shown} is not {wanted}", f"write {wanted}")
    if error.validator == "enum":
        choices = ", ".join(map(str, error.validator_value))
        return Fault(steps, f"{shown} is not supported", f"write one of {choices}")
    return Fault(steps, f"the chart does not allow {shown}", "see values.yaml of the chart")


def _unknown(steps: Steps, known: Mapping[str, object]) -> Fault:
    return Fault(steps, "unknown key", suggest(str(steps[-1]), known) or "remove it", Code.SPEC_UNKNOWN_KEY)


def _shown(value: object, name: str) -> str:
    """Return a value for a message, unless it may be a secret by its name or form; a long string may be a key."""
    if isinstance(value, Mapping | list | tuple):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    return "the value" if len(str(value)) > LONGEST or isinstance(hide(value, name), Secret) else repr(value)


# --- rules ------------------------------------------------------------------------------------


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
    for value in _values(member, members):
        if value.where.removeprefix("values.") not in taken:
            yield value
    for where, what, fix in _mesh_findings(member, members):
        yield Mistake(where, what, fix)
    for found in announcement_mistakes(member.cilium, addresses or {}):
        yield replace(found, where=f"load_balancer.{found.where}")
    if _takes_address(member):
        for where, what, fix in mesh_address_findings(member.cilium, addresses or {}):
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
        for fault in by_table(given, cilium.release):
            yield fault.mistake(f"values.{dotted(fault.steps)}")
    elif chart.name not in {"rke": ["cilium"], "rke2": ["rke2-cilium", "cilium"]}[distribution]:
        yield Mistake("chart", f"{cilium.chart} is the chart {chart.name}", "name a chart of Cilium")
    elif not chart.version.startswith(f"{'.'.join(map(str, cilium.minor))}."):
        what = f"{cilium.chart} is version {chart.version}, and version is {cilium.release}"
        yield Mistake("chart", what, f'write version: "{chart.version}", or name a chart of that version')
    else:
        for fault in by_chart(document(member, members), chart):
            yield fault.mistake(f"values.{dotted(fault.steps)}")


def warnings(member: Member) -> Iterator[str]:
    """Yield warnings about valid settings."""
    if not settings.is_known(member.cilium.release):
        known = settings.range_of_known()
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
    if distribution == "rke" and settings.is_of_rke2(cilium.release):
        fix = f"write {settings.released(cilium.release)}"
        yield "version", f"{cilium.release} is a version of RKE2's own chart", fix
    if distribution == "rke2" and cilium.namespace != "kube-system":
        yield "namespace", "RKE2 installs Cilium into kube-system", "remove it"


def _ip_versions(member: Member) -> Findings:
    """Yield settings with which the agent does not start, by the IP version of the pods."""
    cilium, version = member.cilium, ip_version(member.cluster)
    if version == 6 and cilium.routing == "tunnel" and cilium.minor < settings.IPV6_TUNNEL_SINCE:
        what = f"Cilium {cilium.release} has no tunnels between nodes of an IPv6 cluster"
        yield "routing", what, "write version 1.18 or later, or routing: native"
    since = {"ipsec": settings.IPV6_IPSEC_SINCE, "wireguard": settings.IPV6_WIREGUARD_SINCE}
    tunnelled = cilium.encryption == "ipsec" or cilium.routing == "tunnel"
    if version == 6 and tunnelled and cilium.minor < since.get(cilium.encryption, cilium.minor):
        first = ".".join(map(str, since[cilium.encryption]))
        what = f"Cilium {cilium.release} does not support {cilium.encryption} in an IPv6 cluster"
        yield "encryption", what, f"write version {first} or later, or encryption: none"
    native = cilium.native_routing_cidr
    if native and ipaddress.ip_network(native).version != version:
        yield "native_routing_cidr", f"{native} is not an IPv{version} network like the pods", "use one IP version"
    versions = [ipaddress.ip_network(each).version for each in split(member.cluster.cluster_cidr)] or [4]
    enabled = {each: value_at(cilium.values or {}, f"ipv{each}.enabled") for each in (4, 6)}
    for each in versions:
        if enabled[each] is False:
            yield "values", f"ipv{each}.enabled is false, and the pods have IPv{each} addresses", "remove it"
    other = 10 - version
    second = f"ipv{other}NativeRoutingCIDR"
    if native and other in versions and not value_at(cilium.values or {}, second):
        what = f"{native} covers one of the two IP versions of the pods"
        yield "native_routing_cidr", what, f"write the network of the other one into values.{second}"
    if other not in versions and enabled[other] is True and cilium.ipam == "kubernetes":
        what = f"ipv{other}.enabled is true, and Kubernetes has no IPv{other} network of pods in this cluster"
        yield "values", what, "remove it, or write a network of each IP version into cluster_cidr"


def _etcd(member: Member) -> Findings:
    cilium = member.cilium
    if cilium.mesh == "etcd" and cilium.minor > settings.NEWEST_MANAGED_ETCD:
        yield "mesh", f"Cilium {cilium.release} has no managed etcd (1.16 removed it)", "write clustermesh-apiserver"


def _address(member: Member) -> Findings:
    cilium = member.cilium
    if cilium.mesh_address and cilium.mesh == "none":
        yield "mesh_address", "only applies to clusters with a mesh", "remove it, or choose a mesh"
    services = member.cluster.service_cidr
    if cilium.mesh_address and services and cilium.mesh_service == "LoadBalancer":
        versions = [ipaddress.ip_network(each).version for each in split(services)]
        if ipaddress.ip_address(cilium.mesh_address).version not in versions:
            what = f"{cilium.mesh_address} is not an IPv{versions[0]} address like the Services of {services}"
            yield "mesh_address", what, f"choose an IPv{versions[0]} address"


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


def _features(member: Member) -> Findings:
    """Yield features that the chart refuses to render, or the agent to start, without another one.

    Source: Cilium 1.13 to 1.19, install/kubernetes/cilium/templates/validate.yaml (Hubble's relay and UI) and
    Documentation/network/servicemesh (prerequisites of ingress and Gateway API).
    """
    cilium = member.cilium
    values = cilium.values or {}
    has_ports = cilium.kube_proxy_replacement or value_at(values, "nodePort.enabled") is True
    for name in (each for each in ("gatewayAPI", "ingressController") if value_at(values, f"{each}.enabled") is True):
        if not has_ports:
            what = f"{name}.enabled requires the kube-proxy replacement, or nodePort.enabled"
            yield "values", what, "write kube_proxy_replacement: true into the section cilium"
        if value_at(values, "l7Proxy") is False:
            yield "values", f"{name}.enabled requires l7Proxy", "remove l7Proxy: false"
    relay = value_at(values, "hubble.relay.enabled") is True
    if relay and value_at(values, "hubble.enabled") is False:
        yield "values", "hubble.relay.enabled requires hubble.enabled", "remove hubble.enabled: false"
    alone = value_at(values, "hubble.ui.standalone.enabled") is True
    if value_at(values, "hubble.ui.enabled") is True and not (relay or alone):
        yield "values", "hubble.ui.enabled requires hubble.relay.enabled", "write hubble.relay.enabled: true"


def _templates(member: Member) -> Findings:
    """Yield combinations of values that the templates of the release's chart refuse (names.yaml)."""
    release, table = member.cilium.release, names()
    number = settings.minor(release)[1] if settings.is_known(release) else 0
    for refusal in table.refusals:
        if refusal["since"] <= number <= refusal.get("until", 99) and _is_refused(refusal, member):
            parts = (*refusal.get("set", ()), *refusal.get("one_of", ()), *refusal.get("none_of", ()))
            shown = " and ".join(name for name in parts if value_at(member.cilium.values, name) is not None)
            without = "".join(f" without {name}" for name in refusal.get("unset", ()))
            yield "values", f"Cilium {release} refuses {shown}{without}", refusal["fix"]


def _is_refused(refusal: Raw, member: Member) -> bool:
    def of(name: str) -> Any:
        if name == "clustermesh.useAPIServer":
            return member.cilium.mesh == "clustermesh-apiserver"
        given = value_at(member.cilium.values, name)
        return names().defaults.get(name) if given is None else given

    def has(name: str, choices: Sequence[object]) -> bool:
        given = of(name)
        listed = (
            [each.get("name") for each in given if isinstance(each, Mapping)]
            if isinstance(given, list | tuple)
            else [given]
        )
        return any(str(each) in map(str, choices) for each in listed)

    return (
        all(of(name) for name in refusal.get("set", ()))
        and not any(of(name) for name in refusal.get("unset", ()))
        and all(has(*each) for each in refusal.get("one_of", {}).items())
        and not any(has(*each) for each in refusal.get("none_of", {}).items())
    )


RULES: tuple[Callable[[Member], Findings], ...] = (
    _names,
    _release,
    _ip_versions,
    _etcd,
    _address,
    _node_port,
    _native,
    _plugin,
    _features,
    _templates,
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
        found = [ipaddress.ip_network(pods) for pods in split(each.cluster.cluster_cidr)]
        same = [pods for pods in found if pods.version == whole.version]
        if found and not (same and same[0].subnet_of(whole)):  # type: ignore[arg-type]
            what = f"{whole} does not contain {(same or found)[0]}, the pods of {each.name}"
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
