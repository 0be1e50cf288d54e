"""Rules of the installer for fields of an install-config that no spec sets, and for sections that are empty.

Source: the OpenShift installer's validation (types/validation/installconfig.go: validateCompute, validatePlatform,
validateCloudCredentialsMode, validateProxy, ValidateFeatureSet; machinepools.go: ValidateMachinePool;
types/openstack/validation); ``releases`` names the releases of each rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import shown
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.document import HOST_PREFIX_IPV6
from openstack_prep.openshift.install_config.fields import OBJECT_META
from openstack_prep.openshift.install_config.given import BOOLEANS, LISTS, NUMBERS, TEXTS
from openstack_prep.openshift.install_config.paths import known_paths, oldest, platform_of, value_of

OPENSTACK = "platform.openstack"
DNS_RECORDS = f"{OPENSTACK}.dnsRecordsType"
SPELLINGS = {"hyperthreading": ("Enabled", "Disabled"), "architecture": ("amd64", "arm64", "ppc64le", "s390x")}
SOURCE_POLICIES = ("NeverContactSource", "AllowContactingSource")
DISKS = {"etcd": "etcd", "swap": "swap", "user-defined": "userDefined"}  # sections of diskSetup, by type
LONGEST_DISK = 12  # characters of platformDiskID
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "text": str,
    "time": str,
    "list": list,
    "mapping": Mapping,
    "number": int,
    "boolean": bool,
}
MAPS = ("metadata.labels", "metadata.annotations")
POD_NETWORKS = ("networking.clusterNetwork", "networking.clusterNetworks")  # the new name goes first
OWNERS, MANAGERS = "metadata.ownerreferences", "metadata.managedfields"
META = (  # k8s.io/apimachinery 0.36.2 pkg/apis/meta/v1/types.go: ObjectMeta, OwnerReference, ManagedFieldsEntry
    *("kind", "metadata", *({f"metadata.{name}".lower() for name in OBJECT_META} - {*MAPS})),
    *(f"{OWNERS}.{name}" for name in ("apiversion", "kind", "name", "uid", "controller", "blockownerdeletion")),
    *(f"{MANAGERS}.{name}" for name in ("manager", "operation", "apiversion", "time", "fieldstype", "subresource")),
)
TIMES = ("metadata.creationtimestamp", "metadata.deletiontimestamp", f"{MANAGERS}.time")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")  # time.RFC3339 of Go
UNSEEN = ("nutanix", "powervc")  # platforms of pools that the installer does not look at


def mistakes_of_others(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield what the installer refuses in fields that no spec sets."""
    for rule in RULES:
        yield from rule(document, release)


def _platforms(document: Raw, release: int) -> Iterator[Mistake]:
    for name in _other_platforms(document, "", platform_of(document), release):
        yield Mistake(f"platform.{name}", "is a second platform beside openstack", "take it out")


def _kinds(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield values of another kind than their Go types; ``given`` has made texts of numbers where Go does."""
    yield from _of_other_kind(document, "", "", release)
    for where in MAPS:
        value = value_of(document, where)
        parts = value.values() if isinstance(value, Mapping) else [] if value is None else [value, [value]]
        if any(isinstance(part, Mapping | list) for part in parts):
            yield Mistake(where, "is not a mapping of strings", "write NAME: VALUE, or leave it out")


def _is_time(text: str) -> bool:
    """Whether Go decodes a text as a time (k8s.io/apimachinery 0.36.2 pkg/apis/meta/v1/time.go, UnmarshalJSON)."""
    if not TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _of_other_kind(section: Raw, path: str, shown: str, release: int) -> Iterator[Mistake]:
    """Yield the fields below a path whose values Go does not decode; null is a value of every kind."""
    for name, value in section.items():
        inner, here = f"{path}.{name}".lstrip(".").lower(), f"{shown}.{name}".lstrip(".")
        if value is None or not _is_decoded(inner, release):
            continue
        kind = _kind(inner)
        fits = isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
        if not fits:
            yield Mistake(here, f"is not a {kind}", "correct it, or leave it out")
        elif kind == "time" and not _is_time(value):
            yield Mistake(here, f"{value!r} is not a time such as 2026-01-31T12:00:00Z", "leave it out")
        elif kind == "mapping":
            yield from _of_other_kind(value, inner, here, release)
        elif kind == "list":
            yield from _elements(value, inner, here, release)


def _elements(values: list[object], path: str, shown: str, release: int) -> Iterator[Mistake]:
    of_texts = path.rpartition(".")[2] in TEXTS
    for index, each in enumerate(values):
        if of_texts and not isinstance(each, str | None):
            yield Mistake(f"{shown}[{index}]", "is not a text", "correct it, or leave it out")
        elif isinstance(each, Mapping):
            yield from _of_other_kind(each, path, f"{shown}[{index}]", release)
        elif not of_texts and each is not None:
            yield Mistake(f"{shown}[{index}]", "is not a mapping", "correct it, or leave it out")


def _is_decoded(path: str, release: int) -> bool:
    """Whether a release has a field of this path for OpenStack; others are unknown, or refused whatever they are."""
    steps = path.split(".")
    of_other = len(steps) > 1 and steps[-2] == "platform" and steps[-1] != "openstack"
    _, span = known_paths().get(path, ("", releases.Span(releases.NEVER)))
    return path in META or (max(release, oldest()) in span and not of_other)


def _kind(path: str) -> str:
    """Return the kind of a field's values: that of its Go type."""
    name = path.rpartition(".")[2]
    if name in LISTS or name in TEXTS:
        return "list"
    if name in NUMBERS:
        return "number"
    if name in BOOLEANS:
        return "boolean"
    return "time" if path in TIMES else "mapping" if path in _mappings() else "text"


@cache
def _mappings() -> frozenset[str]:
    """Return the lowercase paths that have fields below them."""
    return frozenset(path.rpartition(".")[0] for path in known_paths()) | {
        *("metadata", "platform.openstack.clusterosimageproperties", "compute.platform", "controlplane.platform"),
    }


def _credentials_mode(document: Raw, release: int) -> Iterator[Mistake]:
    mode = value_of(document, "credentialsMode")
    if mode not in (None, "", "Passthrough") and release not in releases.NOT_ON_OPENSTACK["credentialsMode"]:
        yield Mistake("credentialsMode", f"is {mode!r}", "write Passthrough, or leave it out")


def _no_proxy(document: Raw, release: int) -> Iterator[Mistake]:
    hosts = str(value_of(document, "proxy.noProxy") or "")
    if " " in hosts and release in releases.NO_BLANKS:
        yield Mistake("proxy.noProxy", "contains a blank", "write a comma alone between two hosts")
    if hosts and not all(each.strip() for each in hosts.split(",")):
        yield Mistake(
            "proxy.noProxy", "contains an empty element", "write one comma between two hosts, and none at the end"
        )


def _host_prefixes(document: Raw, release: int) -> Iterator[Mistake]:
    path = next((pod_network for pod_network in POD_NETWORKS if value_of(document, pod_network)), POD_NETWORKS[0])
    networks = value_of(document, path)
    lengths = [_host_prefix(network) for network in networks] if isinstance(networks, list) else []
    if len({length for version, length in lengths if version == 4}) > 1 and release in releases.ONE_HOST_PREFIX:
        yield Mistake(f"{path}[].hostPrefix", "differs between IPv4 networks", "write the same for all of them")
    for index, (version, length) in enumerate(lengths):
        if version == 6 and length not in (None, 0, HOST_PREFIX_IPV6):
            fix = f"write {HOST_PREFIX_IPV6}, the only one for IPv6, or leave it out"
            yield Mistake(f"{path}[{index}].hostPrefix", f"is {length}", fix)


def _host_prefix(network: object) -> tuple[int, object]:
    """Return the IP version of a network of pods and its host prefix (convertNetworking)."""
    version = 6 if ":" in str(value_of(network, "cidr")) else 4
    length, rest = value_of(network, "hostPrefix"), value_of(network, "hostSubnetLength")
    if not length and isinstance(rest, int) and rest:
        length = (32 if version == 4 else 128) - rest
    return version, length


def _ovn_config(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield settings of OVN-Kubernetes for another plug-in; the rules of a cluster judge internalJoinSubnet."""
    path, kind = "networking.ovnKubernetesConfig", value_of(document, "networking.networkType")
    if release not in releases.OVN_CONFIG or not isinstance(value_of(document, path), Mapping):
        return
    if kind and str(kind).lower() != "ovnkubernetes" and not value_of(document, f"{path}.ipv4.internalJoinSubnet"):
        yield Mistake(path, f"belongs to OVNKubernetes, not to {kind}", "take it out")


def _source_policies(document: Raw, release: int) -> Iterator[Mistake]:
    sources = value_of(document, "imageDigestSources")
    for index, each in enumerate(sources if isinstance(sources, list) and release in releases.SOURCE_POLICIES else ()):
        where, policy = f"imageDigestSources[{index}].sourcePolicy", value_of(each, "sourcePolicy")
        if policy in (None, ""):
            continue
        if policy not in SOURCE_POLICIES:
            yield Mistake(where, f"is {policy!r}", f"write {' or '.join(SOURCE_POLICIES)}")
        elif not value_of(each, "mirrors"):
            yield Mistake(where, "requires mirrors", "add them, or leave it out")


# --- machines -----------------------------------------------------------------------------


def _all_pools(document: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the pools of machines, by their places."""
    master, workers = value_of(document, "controlPlane"), value_of(document, "compute")
    pools = {"controlPlane": master}
    if isinstance(workers, list):
        pools |= {f"compute[{index}]": each for index, each in enumerate(workers)}
    for where, pool in pools.items():
        if isinstance(pool, Mapping):
            yield where, pool


def _pools(document: Raw, release: int) -> Iterator[Mistake]:
    platform = platform_of(document)
    for where, pool in _all_pools(document):
        for name, every in SPELLINGS.items():
            spellings = [each for each in every if each != "arm64" or release in releases.ARM]
            value = value_of(pool, name)
            if value not in (None, "", *spellings):
                yield Mistake(f"{where}.{name}", f"is {value!r}", f"write {' or '.join(spellings)}")
        if where != "controlPlane" and value_of(pool, "name") in (None, ""):
            yield Mistake(f"{where}.name", "is missing", "write worker")
        if value_of(pool, "management") == "ClusterAPI" and release in releases.MANAGEMENT:
            yield Mistake(f"{where}.management", "OpenStack does not support ClusterAPI here", "leave it out")
        yield from _disks(where, pool, release)
        for name in _other_platforms(pool, f"{where.partition('[')[0]}.", platform, release):
            if name.lower() not in UNSEEN:
                yield Mistake(f"{where}.platform.{name}", f"the platform is {platform}", "take it out")
    kinds = {where: value_of(pool, "architecture") or "amd64" for where, pool in _all_pools(document)}
    master = kinds.pop("controlPlane", "amd64")
    kinds = kinds or {"compute[0]": "amd64"}  # the pool that SetInstallConfigDefaults adds
    for where, kind in kinds.items():
        if kind != master:
            what = f"is {kind}, while that of controlPlane is {master}"
            yield Mistake(f"{where}.architecture", what, "write the same architecture in all pools")


def _disks(where: str, pool: Raw, release: int) -> Iterator[Mistake]:
    """Yield what diskSetup lacks, or repeats."""
    disks, seen = value_of(pool, "diskSetup"), set()
    for index, disk in enumerate(disks if isinstance(disks, list) and release in releases.DISKS else ()):
        place, kind = f"{where}.diskSetup[{index}]", value_of(disk, "type")
        if isinstance(kind, Mapping | list):
            yield Mistake(f"{place}.type", "is not a string", f"write {' or '.join(DISKS)}")
            continue
        if kind not in DISKS:
            continue
        if kind in seen and kind != "user-defined":
            yield Mistake(place, f"is a second disk of type {kind}", "keep one")
        elif value_of(disk, DISKS[str(kind)]) is None:
            yield Mistake(place, f"lacks {DISKS[str(kind)]}", "add it")
        elif kind == "etcd" and where != "controlPlane":
            yield Mistake(place, "only the control plane has a disk for etcd", "take it out")
        elif kind == "user-defined" and len(str(value_of(disk, "userDefined.platformDiskID") or "")) > LONGEST_DISK:
            yield Mistake(f"{place}.userDefined.platformDiskID", f"exceeds {LONGEST_DISK} characters", "shorten it")
        seen.add(kind)


def _other_platforms(section: Raw, path: str, own: str, release: int) -> Iterator[str]:
    """Yield the platforms beside the cluster's own in a section, among those that the release knows."""
    platforms = value_of(section, "platform")
    for name, value in platforms.items() if isinstance(platforms, Mapping) else ():
        _, span = known_paths().get(f"{path}platform.{name}".lower(), ("", releases.Span(releases.NEVER)))
        if str(name).lower() != own and value is not None and max(release, oldest()) in span:
            yield str(name)


def _empty_zones(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield pools whose only zone is an empty text: Nova's default, and a zone (OS machinepool.go, len of Zones)."""
    pools = {f"{OPENSTACK}.defaultMachinePlatform": value_of(document, f"{OPENSTACK}.defaultMachinePlatform")}
    pools |= {f"{where}.{OPENSTACK}": value_of(pool, OPENSTACK) for where, pool in _all_pools(document)}
    for where, pool in pools.items() if release in releases.VOLUME_ZONES else ():
        volume = value_of(pool, "rootVolume")
        has_empty = value_of(pool, "zones") == [""] and volume is not None
        if has_empty and value_of(volume, "zones") in (None, []):
            what = "is missing; zones: [''] counts as a zone, and a root volume requires a zone of volumes for it"
            yield Mistake(f"{where}.rootVolume.zones", what, "leave out zones")


# --- feature gates ------------------------------------------------------------------------


def _gates(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield what a field behind a gate requires besides; the rules of specs judge the gates themselves."""
    external, balancer = (
        value_of(document, DNS_RECORDS) == "External",
        value_of(document, f"{OPENSTACK}.loadBalancer.type"),
    )
    if external and balancer != "UserManaged" and release in releases.GATES[DNS_RECORDS].checked:
        what = "External requires a load balancer of your own"
        yield Mistake(DNS_RECORDS, what, "set loadBalancer.type: UserManaged, or leave it out")


KEYS = {"RSA": ("rsa.keySize", range(2048, 8193, 1024)), "ECDSA": ("ecdsa.curve", ("P256", "P384", "P521"))}
"""Algorithms of a signer's key, the field with its size, and the sizes (5.0, pkg/types/pki/validation.go)."""


def _signer_key(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield what is wrong with the key of pki, which releases since 5.0 know behind a feature gate."""
    gates = value_of(document, "featureGates")
    named = map(str, gates) if isinstance(gates, list) else ()
    is_open = releases.is_enabled(releases.GATES["pki"], release, value_of(document, "featureSet"), named)
    if value_of(document, "pki") is None or release not in releases.GATES["pki"].checked or not is_open:
        return  # a closed gate is reported where the field is found
    path = "pki.signerCertificates.key"
    algorithm = value_of(document, f"{path}.algorithm")
    if not isinstance(algorithm, str) or algorithm not in KEYS:
        what = "is missing" if algorithm in (None, "") else f"{algorithm!r} is not an algorithm of keys"
        yield Mistake(f"{path}.algorithm", what, f"write {' or '.join(KEYS)}")
        return
    field, sizes = KEYS[algorithm]
    size = value_of(document, f"{path}.{field}")
    if isinstance(size, bool) or size not in sizes:
        yield Mistake(f"{path}.{field}", f"{shown(size)} is not a size of {algorithm}", f"write {sizes[1]}")
    for name in KEYS.keys() - {algorithm}:
        if value_of(document, other := f"{path}.{name.lower()}") is not None:
            yield Mistake(other, f"cannot be combined with algorithm {algorithm}", "remove it")


# --- sections that are there, and empty ---------------------------------------------------


def _empty_sections(document: Raw, release: int) -> Iterator[Mistake]:
    """Yield sections without what they need; without the section, the installer has a default."""
    for path, (needed, span) in releases.NEEDED_IN.items():
        section = value_of(document, path)
        if not isinstance(section, Mapping) or release not in span:
            continue
        if all(value_of(section, name) in (None, "", []) for name in needed):
            yield Mistake(path, f"lacks {' or '.join(needed)}", "add it, or leave out the section")


RULES: tuple[Callable[[Raw, int], Iterable[Mistake]], ...] = (
    _pools,
    _empty_zones,
    _platforms,
    _gates,
    _signer_key,
    _empty_sections,
    _kinds,
    _credentials_mode,
    _no_proxy,
    _source_policies,
    _host_prefixes,
    _ovn_config,
)
