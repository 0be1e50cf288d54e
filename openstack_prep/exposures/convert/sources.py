"""Reads Services, the pools of old controllers, and Nodes, as ``kubectl get -o json`` or ``-o yaml`` prints them.

Sources: Kubernetes API, Service v1 and Node v1; Mirantis/k8s-externalipcontroller, pkg/extensions/types.go
(ipcontroller.ext/v1: IpClaimPool, IpClaim, IpNode) and pkg/scheduler/scheduler.go; openelb/openelb,
api/v1alpha2/eip_types.go (network.kubesphere.io/v1alpha2: Eip) and pkg/constant.

Sources: Mirantis/k8s-externalipcontroller, pkg/extensions/types.go (AvailableIP: of a pool without ranges, the
addresses after that of its CIDR, without the last one of the network); openelb/openelb, api/v1alpha2/eip_types.go
(GetSize).

Annotations and labels are never copied: they may hold secrets (kubectl.kubernetes.io/last-applied-configuration holds
the whole manifest), and server-side apply leaves those of others untouched.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.formats.yaml_places import read_documents
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Range, merged, overlaps
from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures.convert.objects import (
    BgpPeer,
    Families,
    LoadBalancerOptions,
    Old,
    OldPool,
    OldService,
    To,
    families_of,
)
from openstack_prep.exposures.convert.requests import INTERNAL, OF_OCCM, READ
from openstack_prep.exposures.endpoint import HOST
from openstack_prep.kubernetes.model import LABEL, WORD
from openstack_prep.kubernetes.nodes import KEY
from openstack_prep.kubernetes.services import ANNOTATIONS

# --- field ------------------------------------------------------------------------------------


FIELD_TYPES = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", type(None): "null"}

T = TypeVar("T")


class Fields:
    """One object and its place; a wrong field becomes a mistake and counts as absent."""

    def __init__(self, data: Raw, where: str, mistakes: list[Mistake]) -> None:
        self.data = data
        self.where = where
        self.mistakes = mistakes

    def get(self, path: str, kind: type[T]) -> T | None:
        """Return the value at a dotted path; None if there is none or its type is wrong."""
        found: Any = self.data
        names = path.split(".")
        for number, name in enumerate(names, 1):
            found = found.get(name)
            if found is None:
                return None
            expected = kind if number == len(names) else dict
            if not isinstance(found, expected) or (kind is int and isinstance(found, bool)):
                what = f"is {type_name(found)}, not {FIELD_TYPES[expected]}"
                self.wrong(".".join(names[:number]), what, "pass the output of kubectl unchanged")
                return None
        return cast("T", found)

    def text(self, path: str) -> str:
        return self.get(path, str) or ""

    def items(self, path: str, kind: type[T]) -> list[T]:
        """Return the members of a list that have the right type."""
        found = []
        for index, each in enumerate(self.get(path, list) or []):
            if isinstance(each, kind) and not isinstance(each, bool):
                found.append(each)
            else:
                fix = "pass the output of kubectl unchanged"
                self.wrong(f"{path}[{index}]", f"is {type_name(each)}, not {FIELD_TYPES[kind]}", fix)
        return found

    def texts(self, path: str) -> dict[str, str]:
        """Return a mapping of texts, such as labels."""
        found = {}
        for key, value in (self.get(path, dict) or {}).items():
            if isinstance(key, str) and isinstance(value, str):
                found[key] = value
            else:
                what = f"has a key or value that is not a text: {key!r}"
                self.wrong(path, what, "pass the output of kubectl unchanged")
        return found

    def name(self, path: str, pattern: str = LABEL, default: str = "") -> str:
        """Return a name, which must be one that Kubernetes accepts: it becomes part of commands and files."""
        found = self.text(path) or default
        if not re.fullmatch(pattern, found):
            self.wrong(path, f"{found!r} is not a name of Kubernetes", "use lower-case letters, digits and hyphens")
            return ""
        return found

    def addresses(self, path: str) -> tuple[str, ...]:
        """Return addresses in their usual form, each once."""
        found = []
        for index, each in enumerate(self.get(path, list) or []):
            address = usual(each) if isinstance(each, str) else None
            if address is None:
                fix = "write an address that a Service can have, such as 192.0.2.10"
                self.wrong(f"{path}[{index}]", f"{each!r:.80} is not an address that a Service can have", fix)
            else:
                found.append(address)
        return tuple(dict.fromkeys(found))

    def wrong(self, path: str, what: str, fix: str) -> None:
        self.mistakes.append(Mistake(f"{self.where}: {path}", what, fix))


def type_name(value: object) -> str:
    return FIELD_TYPES.get(type(value), "a number")


def usual(text: str) -> str | None:
    """Return the usual form of an address; None for what Kubernetes does not accept as an external IP."""
    # Source: kubernetes/kubernetes, pkg/apis/core/validation (ValidateNonSpecialIP)
    try:
        found = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id:
            return None
        found = found.ipv4_mapped or found
    special = found.is_unspecified or found.is_loopback or found.is_link_local or found.is_multicast
    return None if special else str(found)


# --- pool -------------------------------------------------------------------------------------


SYNTAX = "write it as the API server prints it"
POOL_WORD = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}"
"""Name of an interface."""


def claim_pool(item: Fields) -> OldPool | None:
    """Return an IpClaimPool of Mirantis' controller."""
    name, cidr = item.name("metadata.name", HOST), item.text("spec.cidr")
    try:
        interface = ipaddress.ip_interface(cidr)
    except ValueError:
        item.wrong("spec.cidr", f"{cidr!r} is not a network in CIDR notation", SYNTAX)
        return None
    network = interface.network
    found = []
    for index, pair in enumerate(item.items("spec.ranges", list)):
        try:
            held = Range.read(f"{pair[0]}-{pair[-1]}")
        except (InvalidValue, IndexError) as error:
            item.wrong(f"spec.ranges[{index}]", f"is not a range of addresses: {error or 'it is empty'}", SYNTAX)
            continue
        if (both := held.overlap(Range.of(network))) is None or both != held:
            item.wrong(f"spec.ranges[{index}]", f"{held} is not within {network}", "correct one of the two")
        else:
            found.append(held)
    if "ranges" not in (item.data.get("spec") or {}) and int(network[-1]) - int(interface.ip) >= 2:
        found.append(Range(interface.ip + 1, network[-1] - 1))
    return _pool(item, name, found)


def eip(item: Fields) -> OldPool | None:
    """Return an Eip of OpenELB."""
    name, text = item.name("metadata.name", HOST), item.text("spec.address")
    try:
        held = Range.of(ipaddress.ip_network(text, strict=False)) if "/" in text else Range.read(text)
    except (ValueError, InvalidValue):
        item.wrong("spec.address", f"{text!r} is not an address, a network or a range", SYNTAX)
        return None
    interface = item.text("spec.interface")
    return _pool(item, name, [held], interface if re.fullmatch(POOL_WORD, interface) else "")  # else can_reach:ADDRESS


def _pool(item: Fields, name: str, ranges: list[Range], interface: str = "") -> OldPool | None:
    """Return a pool; its name becomes a DNS label, which load balancers require."""
    if not name:
        return None
    return OldPool(item.where, name.replace(".", "-")[:63].rstrip("-"), tuple(merged(ranges)), interface)


# --- service ----------------------------------------------------------------------------------


AUTOMATIC = "external-ip"
"""Annotation with which Mirantis' controller assigns an address (pkg/scheduler/scheduler.go)."""
OPENELB = "lb.kubesphere.io/v1alpha1"
"""Annotation of Services that OpenELB serves (pkg/constant/constant.go)."""
ASKED = tuple(dict.fromkeys(name for names in READ.values() for name in names))
SERVICE_VERSIONS = {"IPv4": 4, "IPv6": 6}
CHOICES = {
    "externalTrafficPolicy": ("Cluster", "Local"),
    "internalTrafficPolicy": ("Cluster", "Local"),
    "sessionAffinity": ("None", "ClientIP"),
    "ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack"),
}
SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
PROTOCOLS = ("TCP", "UDP", "SCTP")
UNCHANGED = "pass the output of kubectl unchanged"


def service(item: Fields, namespace: str, name: str) -> OldService | None:
    """Return a Service whose addresses are to move; None if it has none."""
    addresses = item.addresses("spec.externalIPs")
    kind = item.text("spec.type") or "ClusterIP"
    if kind not in SERVICE_TYPES:
        item.wrong("spec.type", f"{kind!r} is not a type of a Service", f"write one of {', '.join(SERVICE_TYPES)}")
    ingress = _ingress(item) if kind == "LoadBalancer" else ()
    annotations = item.get("metadata.annotations", dict) or {}
    is_openelb = kind == "LoadBalancer" and annotations.get(OPENELB) == "openelb"
    if is_openelb:
        addresses = tuple(dict.fromkeys((*addresses, *ingress)))
    if not addresses and not item.get("spec.externalIPs", list):
        return None
    cluster_ips = _cluster_ips(item)
    return OldService(
        where=item.where,
        namespace=namespace,
        name=name,
        type=kind,
        addresses=addresses,
        families=_families(item, cluster_ips) or families_of(addresses),
        spec=_spec(item),
        class_name=item.text("spec.loadBalancerClass"),
        balanced=tuple(each for each in (*ingress, *_host_names(item, kind)) if each not in addresses),
        is_headless="None" in cluster_ips,
        keeps_annotation=OPENELB if is_openelb else AUTOMATIC if AUTOMATIC in annotations else "",
        annotations={name: each for name in ASKED if isinstance(each := annotations.get(name), str)},
        load_balancer_ip=item.text("spec.loadBalancerIP"),
        source_ranges=tuple(item.items("spec.loadBalancerSourceRanges", str)),
        by_cloud=is_by_cloud(item),
    )


def is_by_cloud(item: Fields) -> bool:
    """Whether a Service has annotations of cloud-provider-openstack."""
    return any(str(name).startswith((OF_OCCM, INTERNAL)) for name in item.get("metadata.annotations", dict) or {})


def is_balanced(item: Fields) -> bool:
    """Whether any load balancer may take this Service."""
    return item.text("spec.type") == "LoadBalancer" and not item.text("spec.loadBalancerClass")


def of_others(item: Fields) -> tuple[str, ...]:
    """Return the addresses that a Service of type LoadBalancer has or requests."""
    annotations = item.get("metadata.annotations", dict) or {}
    asked = [each for name in ANNOTATIONS for each in str(annotations.get(name) or "").split(",")]
    found = [*_ingress(item), *(usual(each) for each in (*asked, item.text("spec.loadBalancerIP")) if each.strip())]
    return tuple(dict.fromkeys(each for each in found if each))


def _ingress(item: Fields) -> tuple[str, ...]:
    found = [usual(str(each.get("ip") or "")) for each in item.items("status.loadBalancer.ingress", dict)]
    return tuple(each for each in found if each)


def _host_names(item: Fields, kind: str) -> Iterator[str]:
    """Yield the names that a load balancer has given instead of addresses, such as 203.0.113.5.nip.io."""
    for each in item.items("status.loadBalancer.ingress", dict) if kind == "LoadBalancer" else ():
        if each.get("hostname") and not each.get("ip"):
            yield str(each["hostname"])


def _cluster_ips(item: Fields) -> list[str]:
    return item.items("spec.clusterIPs", str) or [each for each in [item.text("spec.clusterIP")] if each]


def _families(item: Fields, cluster_ips: list[str]) -> Families:
    named = item.items("spec.ipFamilies", str)
    for each in named:
        if each not in SERVICE_VERSIONS:
            item.wrong("spec.ipFamilies", f"{each!r} is not an IP version", "write IPv4 or IPv6")
    if named:
        return tuple(dict.fromkeys(SERVICE_VERSIONS.get(each, 4) for each in named))
    found = [cluster_ip for cluster_ip in cluster_ips if cluster_ip and cluster_ip != "None"]
    try:
        return tuple(dict.fromkeys(ipaddress.ip_address(each).version for each in found))
    except ValueError:
        item.wrong("spec.clusterIP", f"{', '.join(found)!r} is not an address", UNCHANGED)
        return ()


def _spec(item: Fields) -> Values:
    """Return the fields that decide what answers at the addresses."""
    found: Values = {"selector": _selector(item)}
    ports = [each for index, one in enumerate(item.items("spec.ports", dict)) if (each := _port(item, index, one))]
    found["ports"] = ports
    for name, choices in CHOICES.items():
        value = item.text(f"spec.{name}")
        if value and value not in choices:
            item.wrong(f"spec.{name}", f"{value!r} is not a value of it", f"write one of {', '.join(choices)}")
        elif value:
            found[name] = value
    seconds = item.get("spec.sessionAffinityConfig.clientIP.timeoutSeconds", int)
    if seconds is not None and found.get("sessionAffinity") == "ClientIP":
        found["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": seconds}}
    if item.get("spec.publishNotReadyAddresses", bool):
        found["publishNotReadyAddresses"] = True
    return found


def _selector(item: Fields) -> dict[str, str]:
    found = item.texts("spec.selector")
    for key, value in found.items():
        if not re.fullmatch(KEY, key) or (value and not re.fullmatch(WORD, value)):
            item.wrong("spec.selector", f"{key!r:.80}: {value!r:.80} is not a label", UNCHANGED)
    return found


def _port(item: Fields, index: int, port: Raw) -> Values | None:
    where = f"spec.ports[{index}]"
    number, protocol = port.get("port"), port.get("protocol", "TCP")
    if not _is_port(number):
        item.wrong(f"{where}.port", f"{number!r:.40} is not a port", "write a number from 1 to 65535")
        return None
    if protocol not in PROTOCOLS:
        item.wrong(f"{where}.protocol", f"{protocol!r:.40} is not a protocol", f"write one of {', '.join(PROTOCOLS)}")
        return None
    found: Values = {"port": number, "protocol": protocol}
    for name, (is_number, pattern) in PORT_FIELDS.items():
        value: Any = port.get(name)
        if value in (None, "", 0):
            continue
        if (is_number and _is_port(value)) or (isinstance(value, str) and re.fullmatch(pattern, value)):
            found[name] = value
        else:
            item.wrong(f"{where}.{name}", f"{value!r:.40} is not valid", UNCHANGED)
    return dict(sorted(found.items(), key=lambda each: ORDER.index(each[0])))


PORT_FIELDS = {
    "name": (False, LABEL),
    "targetPort": (True, LABEL),
    "nodePort": (True, "(?!)"),
    "appProtocol": (False, KEY),
}
"""Whether each field may be a port number, and the pattern of its texts."""
ORDER = ("name", "protocol", "port", "targetPort", "nodePort", "appProtocol")


def _is_port(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535


# --- reading ----------------------------------------------------------------------------------


COMMAND = "kubectl get services,nodes -A -o json"
FIX = f"pass the output of {COMMAND}"
MOST_YAML = 2 * 2**20
"""Bytes; YAML is slow to read, and kubectl prints JSON as well."""
VERSIONS = {
    "Service": "v1",
    "Node": "v1",
    "IpClaimPool": "ipcontroller.ext/v1",
    "Eip": "network.kubesphere.io/v1alpha2",
    "IpClaim": "ipcontroller.ext/v1",
    "IpNode": "ipcontroller.ext/v1",
}
"""API versions of what is read; IpClaim and IpNode are state of the old controller, which is ignored."""


def read(texts: Mapping[str, str]) -> Old:
    """Return what the texts contain, by their names; raises SpecError with all mistakes."""
    mistakes: list[Mistake] = []
    objects: list[Fields] = []
    for name, text in texts.items():
        try:
            found = list(_objects(name, text))
        except SpecError as error:
            mistakes += error.mistakes
            continue
        if not found:
            mistakes.append(Mistake(name, "contains no objects", FIX))
        objects += [each for item, where in found if (each := _known(item, where, mistakes))]
    old = _sorted(objects, mistakes)
    if not mistakes and not old.count:
        mistakes.append(Mistake(", ".join(texts), "contain no Services", FIX))
    if mistakes:
        raise SpecError(mistakes)
    return old


def _objects(name: str, text: str) -> Iterator[tuple[object, str]]:
    """Yield the objects of a text, and of lists in it, each with its place."""
    for where, document in _documents(name, text.removeprefix("\ufeff")):
        kind = document.get("kind") if isinstance(document, dict) else None
        items = document.get("items") if isinstance(document, dict) else None
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            inner = kind.removesuffix("List")
            for index, each in enumerate(items):
                if inner and isinstance(each, dict):  # members of a ServiceList need no kind
                    each = {"apiVersion": document.get("apiVersion"), "kind": inner, **each}
                yield each, f"{where}: items[{index}]"
        else:
            yield document, where


def _documents(name: str, text: str) -> Iterator[tuple[str, Any]]:
    if not text.strip():
        raise _unreadable(name, "is empty", FIX)
    if text.lstrip().startswith("{"):
        try:
            yield name, parse_json(text)
        except ValueError as error:
            raise _unreadable(name, f"is not JSON: {error}", FIX) from None
        return
    if len(text.encode()) > MOST_YAML:
        raise _unreadable(name, f"is YAML with more than {MOST_YAML // 2**20} MiB", f"{FIX}, which has no limit here")
    yield from ((f"{name}:{line}", each) for line, each in read_documents(name, text) if each is not None)


def _unreadable(where: str, what: str, fix: str) -> SpecError:
    return SpecError([Mistake(where, what, fix, code=Code.SPEC_UNREADABLE)])


def _known(item: object, where: str, mistakes: list[Mistake]) -> Fields | None:
    """Return an object of a known kind."""
    if not isinstance(item, dict):
        mistakes.append(Mistake(where, f"is {type_name(item)}, not an object of Kubernetes", FIX))
        return None
    kind, version = item.get("kind"), item.get("apiVersion")
    if not isinstance(kind, str) or kind not in VERSIONS:
        shown = repr(kind)[:80] if kind else "an object without a kind"
        mistakes.append(Mistake(where, f"is {shown}; read are {', '.join(VERSIONS)}", FIX))
        return None
    if version != VERSIONS[kind]:
        fix = f"convert it to {VERSIONS[kind]}, as the API server prints it"
        mistakes.append(Mistake(where, f"is a {kind} of {str(version)[:80]!r}, not of {VERSIONS[kind]}", fix))
        return None
    return Fields(item, where, mistakes)


def _sorted(objects: list[Fields], mistakes: list[Mistake]) -> Old:
    """Return the objects by their kinds."""
    by_kind: dict[str, list[Fields]] = {kind: [] for kind in VERSIONS}
    for each in objects:
        by_kind[str(each.data["kind"])].append(each)
    first: dict[str, str] = {}
    services: list[OldService] = []
    others: dict[str, tuple[str, ...]] = {}
    by_cloud: list[str] = []
    for each in by_kind["Service"]:
        name, namespace = each.name("metadata.name"), each.name("metadata.namespace", default="default")
        key = f"{namespace}/{name}"
        if name and namespace and key in first:
            mistakes.append(Mistake(each.where, f"Service {key} is also in {first[key]}", "pass each Service once"))
        first.setdefault(key, each.where)
        if is_by_cloud(each):
            by_cloud.append(f"{key} ({', '.join(_ingress(each)) or 'no address yet'})")
        found = service(each, namespace, name)
        if found is not None:
            services.append(found)
        elif is_balanced(each):
            others[key] = of_others(each)
    read_pools = [*map(claim_pool, by_kind["IpClaimPool"]), *map(eip, by_kind["Eip"])]
    pools = [pool for pool in read_pools if pool is not None]
    _distinct(pools, mistakes)
    nodes = {address: name for each in by_kind["Node"] for name, address in _node(each)}
    versions = (each.text("status.nodeInfo.kubeletVersion") for each in by_kind["Node"])
    return Old(
        services=tuple(sorted(services, key=lambda each: (each.namespace, each.name))),
        pools=tuple(pools),
        nodes=nodes,
        taken=frozenset(first),
        others=others,
        has_claims=any(by_kind[kind] for kind in ("IpClaimPool", "IpClaim", "IpNode"))
        or any(each.keeps_annotation == AUTOMATIC for each in services),
        has_nodes=bool(by_kind["Node"]),
        kubernetes=max(versions, key=_minor, default=""),
        by_cloud=tuple(sorted(by_cloud)),
        count=len(by_kind["Service"]),
    )


def _minor(version: str) -> int:
    found = re.match(r"v?1\.(\d{1,4})", version)
    return int(found[1]) if found else 0


def _node(item: Fields) -> Iterator[tuple[str, str]]:
    name = item.text("metadata.name")
    for each in item.items("status.addresses", dict):
        inner: Raw = each
        if inner.get("type") in ("InternalIP", "ExternalIP"):
            one = Fields({"list": [inner.get("address")]}, item.where, item.mistakes)
            for address in one.addresses("list"):
                yield name, address


def _distinct(pools: list[OldPool], mistakes: list[Mistake]) -> None:
    """Report pools with one name, and addresses that are in two pools."""
    first: dict[str, OldPool] = {}
    for pool in pools:
        if pool.name in first:
            what = f"pool {pool.name} is also in {first[pool.name].where}"
            mistakes.append(Mistake(pool.where, what, "give each pool its own name"))
        first.setdefault(pool.name, pool)
    holders = {id(each): pool for pool in pools for each in pool.ranges}
    for one, other, both in overlaps([each for pool in pools for each in pool.ranges]):
        what = f"{both} is also in pool {holders[id(one)].name} ({holders[id(one)].where})"
        mistakes.append(Mistake(holders[id(other)].where, what, "put each address into one pool only"))


# --- option -----------------------------------------------------------------------------------


DEFAULTS: dict[To, str] = {"metallb": "0.16.1", "cilium": "1.19", "kube-vip": "1.2.3"}
"""The releases whose sources were read."""
OLDEST: dict[To, tuple[int, int]] = {"metallb": (0, 13), "cilium": (1, 13), "kube-vip": (0, 6)}
"""MetalLB 0.13 has IPAddressPool and loadBalancerIPs; kube-vip 0.6 reads kube-vip.io/loadbalancerIPs."""
RELEASE = r"v?(\d{1,4})\.(\d{1,4})(\.\d{1,6})?"
MOST_ASN = 2**32 - 1
CILIUM_CLASSES = {"l2": "io.cilium/l2-announcer", "bgp": "io.cilium/bgp-control-plane"}
"""Source: Cilium, Documentation/network/lb-ipam.rst and the CRDs of announcements."""


def wanted(
    to: To,
    *,
    release: str | None = None,
    announce: str | None = None,
    interfaces: Sequence[str] = (),
    my_asn: str | None = None,
    peers: Sequence[str] = (),
    class_name: str | None = None,
) -> LoadBalancerOptions:
    """Return the options; raises SpecError with all mistakes."""
    found = [*_release(to, release), *_announcement(to, announce, interfaces, my_asn, peers)]
    found += [*_values(interfaces, my_asn, peers, class_name), *_class(to, announce, class_name)]
    if found:
        raise SpecError(found)
    return LoadBalancerOptions(
        to=to,
        release=(release or DEFAULTS[to]).removeprefix("v"),
        announce="bgp" if announce == "bgp" else "l2",
        interfaces=tuple(interfaces),
        my_asn=int(my_asn) if my_asn else None,
        peers=tuple(BgpPeer(peer.partition("=")[0], int(peer.partition("=")[2])) for peer in peers),
        class_name=class_name or "",
    )


def _release(to: To, release: str | None) -> Iterator[Mistake]:
    if release is None:
        return
    found = re.fullmatch(RELEASE, release)
    if not found:
        yield Mistake(f"--release {release}", "is not a release", f"write one such as {DEFAULTS[to]}")
    elif (int(found[1]), int(found[2])) < OLDEST[to]:
        oldest = ".".join(map(str, OLDEST[to]))
        yield Mistake(f"--release {release}", f"{to} {release} is not supported", f"write {oldest} or later")


def newer_than_known(to: To, release: str | None) -> str:
    """Return a warning if a release is newer than those whose sources were read; empty if it is not."""
    found = re.fullmatch(RELEASE, release or "")
    known = re.fullmatch(RELEASE, DEFAULTS[to])
    assert known is not None
    if found is None or (int(found[1]), int(found[2])) <= (int(known[1]), int(known[2])):
        return ""
    what = f"--release {release}: {to} is known up to {DEFAULTS[to]}, and what is rendered is for that release"
    return f"{what}; compare the release notes of {to}, or write --release {shell.quote(DEFAULTS[to])}"


def _announcement(
    to: To, announce: str | None, interfaces: Sequence[str], my_asn: str | None, peers: Sequence[str]
) -> Iterator[Mistake]:
    """Yield options that do not fit together."""
    given = {"--announce": announce, "--interface": interfaces, "--my-asn": my_asn, "--peer": peers}
    if to == "kube-vip":
        for name in (name for name, value in given.items() if value):
            what = "kube-vip announces as its DaemonSet is configured"
            yield Mistake(name, what, "omit it, and set vip_arp or bgp_enable in the DaemonSet")
    elif announce == "bgp":
        for name in (name for name in ("--my-asn", "--peer") if not given[name]):
            yield Mistake(name, "is missing, and --announce bgp requires it", "give it")
        if interfaces:
            yield Mistake("--interface", "only applies to --announce l2", "omit it")
    else:
        for name in (name for name in ("--my-asn", "--peer") if given[name]):
            yield Mistake(name, "only applies to --announce bgp", "omit it, or add --announce bgp")


def _values(
    interfaces: Sequence[str], my_asn: str | None, peers: Sequence[str], class_name: str | None
) -> Iterator[Mistake]:
    for interface in interfaces:
        if not re.fullmatch(POOL_WORD, interface):
            yield Mistake(f"--interface {interface}", "is not the name of an interface", "write one such as eth0")
    if my_asn and not _is_asn(my_asn):
        yield Mistake(f"--my-asn {my_asn}", "is not an AS number", "write one such as 64512")
    for peer in peers:
        address, _, asn = peer.partition("=")
        if not is_address(address) or "%" in address or not _is_asn(asn):
            yield Mistake(f"--peer {peer}", "is not ADDRESS=ASN", "write one such as 192.0.2.1=64513")
    if class_name and not re.fullmatch(rf"({HOST}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?", class_name):
        fix = "write one such as metallb.example.com/internal"
        yield Mistake(f"--load-balancer-class {class_name}", "is not the name of a class", fix)


def _class(to: To, announce: str | None, class_name: str | None) -> Iterator[Mistake]:
    served = CILIUM_CLASSES[announce or "l2"]
    if to == "cilium" and class_name and class_name != served:
        what = f"Cilium does not serve this class with --announce {announce or 'l2'}"
        yield Mistake(f"--load-balancer-class {class_name}", what, f"write {served}, or omit it")


def _is_asn(text: str) -> bool:
    return bool(re.fullmatch(r"[1-9][0-9]{0,9}", text)) and int(text) <= MOST_ASN
