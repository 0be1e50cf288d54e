"""Checks of a config.yaml: what RKE2 refuses at its start, or silently ignores.

Sources: RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/server.go, pkg/cli/cmds/profile_linux.go, pkg/rke2/rke2_linux.go,
pkg/cli/types.go, pkg/podtemplate) and K3s, which it contains (pkg/cli/server/server.go; pkg/clientaccess/token.go:
slashes at the end of a server's URL are cut off; pkg/etcd/snapshot.go: an invalid schedule is ignored without a
message; pkg/etcd/s3/s3.go; pkg/util/args.go). Kubernetes' kubelet for labels and taints of its node
(cmd/kubelet/app/options/options.go, pkg/util/taints/taints.go). The tags of rancher/rke2 for keys by release.
"""

from __future__ import annotations

import ipaddress
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.fields import GO_BOOLEANS, is_address, is_host, parse_address
from openstack_prep.base.raw import Raw, Steps, value_at, walk_steps
from openstack_prep.base.secret import Secret
from openstack_prep.base.suggestion import suggest
from openstack_prep.kubernetes import networks
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.kubernetes.keys.flags import LISTED, flag_fault
from openstack_prep.kubernetes.keys.schema import (
    K3S_KEYS,
    SINCE,
    Fault,
    find_faults,
    hide,
    hide_in_url,
    load_schema,
    map_values,
    union,
)
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken
from openstack_prep.kubernetes.nodes import SUBDOMAIN, etcd_warning, label_fault, repelling, taint_fault

PLUGINS = ("canal", "calico", "cilium", "flannel", "none")
PLUGINS_SINCE = {"cilium": 20, "none": 20, "calico": 21, "multus": 21, "flannel": 26}
INGRESS_CONTROLLERS = ("traefik", "ingress-nginx", "none")
EGRESS_SELECTOR_MODES = ("agent", "cluster", "pod", "disabled")
BUCKET_LOOKUPS = ("auto", "dns", "path")
ENCRYPTION_PROVIDERS = ("aescbc", "secretbox")
CLOUD_PROVIDERS = ("external", "aws", "rancher-vsphere", "harvester", "ovirt")
"""What RKE2 v1.36 replaces by external or nothing (pkg/cli/cmds/root.go, pkg/rke2/rke2_linux.go), or is external."""
BUILT_IN_UNTIL = {"openstack": 25, "azure": 30, "gce": 30, "vsphere": 30}
"""The last minor version with a built-in cloud provider; then no component starts with its name.

k8s.io/cloud-provider 1.26 to 1.36, plugins.go, InitCloudProvider; kubernetes/kubernetes pull requests 67782 and 128197.
"""
PROFILES = ("cis", "etcd")
OLD_PROFILES = {25: ("cis-1.5", "cis-1.6"), 30: ("cis-1.23", "cis")}
"""Profiles of RKE2 before a minor version."""
COMPONENTS = (
    *("rke2-coredns", "rke2-metrics-server", "rke2-ingress-nginx", "rke2-traefik", "rke2-traefik-crd"),
    *("rke2-snapshot-controller", "rke2-snapshot-controller-crd", "rke2-snapshot-validation-webhook"),
    *("rke2-canal", "rke2-calico", "rke2-calico-crd", "rke2-cilium", "rke2-flannel", "rke2-multus", "rke2-kube-proxy"),
    *("rke2-runtimeclasses", "rke2-security-responder", "rke2-ovirt-csi-driver"),
    *("rancher-vsphere-cpi", "rancher-vsphere-csi", "harvester-cloud-provider", "harvester-csi-driver"),
)
"""What disable may name (charts/chart_versions.yaml and Dockerfile of the tags)."""
OF_K3S = ("coredns", "metrics-server", "traefik")
"""Components of K3s that RKE2 has under other names, and so never installs."""
API_PORT, JOIN_PORT = 6443, 9345
"""Ports of kube-apiserver, and of the supervisor, at which nodes join."""
DEFAULT_NETWORKS = {"cluster-cidr": "10.42.0.0/16", "service-cidr": "10.43.0.0/16"}
ALL_DEFAULTS = {
    "cluster-cidr": (DEFAULT_NETWORKS["cluster-cidr"], "fd00:42::/56"),
    "service-cidr": (DEFAULT_NETWORKS["service-cidr"], "fd00:43::/112"),
}
"""The same with those of nodes whose first address is one of IPv6."""
OWN_LABELS = re.compile(
    r"(.*\.)?(kubelet|node)\.kubernetes\.io/.*"
    r"|kubernetes\.io/(hostname|arch|os)"
    r"|beta\.kubernetes\.io/(arch|os|instance-type)"
    r"|(topology\.kubernetes\.io|failure-domain\.beta\.kubernetes\.io)/(zone|region)"
)
"""Labels in Kubernetes' own domains that a kubelet may set on its node."""
CRON_FIELDS = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    (0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
"""Least and greatest value of each field of a schedule, and the names of the values from 0 on."""
CRON_ZONE = re.compile(r"(?:CRON_)?TZ=(\S*)\s+")
SCHEDULES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
"""Descriptors of robfig/cron v3.0.1, parser.go; beside them @every and a duration of Go."""
DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
"""What Go's time.ParseDuration reads."""
SECONDS = {"ns": Decimal("1e-9"), **dict.fromkeys(("us", "µs", "μs"), Decimal("1e-6")), "ms": Decimal("1e-3")}
SECONDS |= {"s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
"""The seconds in each unit of a duration."""
ARGUMENT = re.compile(r"(--)?[A-Za-z][\w.-]*[-+]?(=.*)?", re.DOTALL)
TLS_FLAGS = {
    "tls-min-version": re.compile("(VersionTLS1[0-3])?"),
    "tls-cipher-suites": re.compile("(TLS_(AES|CHACHA20|(ECDHE_(RSA|ECDSA)|RSA)_WITH)_[A-Z0-9_]+)?"),
}
"""Flags of kube-apiserver that RKE2 reads itself, at its start (component-base, cli/flag/ciphersuites_flag.go)."""
TLS_EXAMPLES = {"tls-min-version": "VersionTLS12", "tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
SNAPSHOTTERS = ("overlayfs", "fuse-overlayfs", "native", "stargz", "btrfs", "devmapper", "zfs", "blockfile", "erofs")
"""Those of containerd itself (K3s 1.34, pkg/containerd/builtins_linux.go)."""
REPLACED = {
    "kube-apiserver": {
        "service-cluster-ip-range": "service-cidr",
        "service-node-port-range": "service-node-port-range",
    },
    "kube-controller-manager": {"cluster-cidr": "cluster-cidr", "service-cluster-ip-range": "service-cidr"},
    "kubelet": {
        "cluster-domain": "cluster-domain",
        "hostname-override": "node-name",
        "node-labels": "node-label",
        "register-with-taints": "node-taint",
    },
}
"""Flags by which RKE2 passes on a key, and which replace it (K3s, pkg/util/args.go, GetArgs; pkg/daemons)."""
ARGUMENTS = tuple(
    f"{name}-arg"
    for name in (
        *("kubelet", "kube-proxy", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"),
        *("kube-cloud-controller-manager", "helm-controller"),
    )
)
POD_COMPONENTS = (
    *("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kube-proxy", "etcd"),
    "cloud-controller-manager",
)
PATHS = (
    *("private-registry", "token-file", "agent-token-file", "audit-policy-file", "pod-security-admission-config-file"),
    *("cloud-provider-config", "image-credential-provider-bin-dir", "image-credential-provider-config"),
    *("datastore-cafile", "datastore-certfile", "datastore-keyfile", "etcd-snapshot-dir"),
)
"""Keys with the path of a file or folder on the node, where RKE2 starts in /."""
WITHOUT_BLANKS = (
    *("cni", "ingress-controller", "cluster-cidr", "service-cidr", "cluster-dns", "node-ip", "node-external-ip"),
    *("node-taint", "tls-san"),
)
"""Lists that RKE2 and K3s split at commas and read without removing blanks."""
PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|[$%]\{[^{}]+\}|#\{[\w.-]+\}#?|<%.*?%>")
"""What Ansible, Jinja, Helm, Terraform or envsubst put a value in the place of."""
SAMPLE = r"(change|replace|fill)[-_ ]?(me|it|this|in)"
BRACKETS = r"\[\[ ?[\w.-]+ ?\]\]|\(\([\w.-]+\)\)"
IN_CAPITALS = r"\$[A-Z][A-Z0-9_]{3,}|__[A-Z][A-Z0-9_]+__|@@?[A-Z][A-Z0-9_]{3,}@@?|%[A-Z][A-Z0-9_]{3,}%"
SECRET_PLACEHOLDER = re.compile(rf"<[\w .-]+>|{SAMPLE}|{BRACKETS}|(?-i:{IN_CAPITALS})", re.IGNORECASE)
WHOLE_PLACEHOLDER = re.compile(
    rf"<[^<>]+>|@@?\w+@@?|%\w+%|__[A-Z0-9_]+__|\$[A-Z_][A-Z0-9_]*|[Xx]+(\.[Xx]+){{3}}|\.{{3,}}|{SAMPLE.upper()}|{BRACKETS}"
)
"""What documentation and samples have in the place of a whole value; the first of a secret, the other of the rest.

A name such as todo, put-1 or your-company is valid: outside of secrets, a word is a placeholder in capitals alone.
"""
RENDERED = "check the file that Ansible, Helm, Terraform or a script makes of it"


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


class _Form(NamedTuple):
    parse: Callable[[str], Any]
    kind: str
    example: str


ADDRESSES = {
    "cluster-cidr": _Form(_network, "a network", "10.42.0.0/16"),
    "service-cidr": _Form(_network, "a network", "10.43.0.0/16"),
    "node-ip": _Form(parse_address, "an IP address", "10.0.0.5"),
    "cluster-dns": _Form(parse_address, "an IP address", "10.43.0.10"),
}
OTHER_ADDRESSES = {
    "node-external-ip": "192.0.2.5",
    "advertise-address": "10.0.0.5",
    "bind-address": "0.0.0.0",
}
"""Keys with IP addresses that do not decide about the networks, and an example of each."""


def _as_flag(value: object, schema: Raw, steps: Steps) -> object:
    """Return the boolean or number that RKE2 reads from a string."""
    if schema.get("type") == "boolean":
        return GO_BOOLEANS.get(str(value), value)
    return int(value) if schema.get("type") == "integer" and isinstance(value, str) and value.isdecimal() else value


def document_faults(data: object, schema: Raw, minor: int | None = None) -> Iterator[Fault]:
    """Yield what is wrong with a config.yaml, with fixes for keys of K3s and for keys of servers on agents.

    RKE2 turns all keys into flags, so "true" and "5" are valid; KEY+ in a drop-in file appends to a list. ``minor`` is
    N of the Kubernetes 1.N of this RKE2; None for the newest.
    """
    lists = {f"{name}+": each for name, each in schema["properties"].items() if "items" in each}
    adding = union({**schema, "properties": lists}, schema)
    for fault in find_faults(map_values(data, schema, _as_flag), adding):
        name = str(fault.steps[0]) if fault.steps else ""
        if fault.code != Code.SPEC_UNKNOWN_KEY:
            yield fault
        elif name in K3S_KEYS:
            yield Fault(fault.steps, f"RKE2 does not support {name}", K3S_KEYS[name])
        elif name in load_schema("server")["properties"]:
            yield Fault(fault.steps, "is a key of servers, and these nodes are agents", "remove it")
        else:
            yield fault
    if isinstance(data, Mapping):
        unfilled = list(placeholders(data))
        yield from unfilled
        names = {str(fault.steps[0]) for fault in unfilled}
        names |= ADDRESSES.keys() if names & ADDRESSES.keys() else set()  # they are judged together
        filled = {name: value for name, value in data.items() if name not in names}
        of_server = SERVER_RULES if "cluster-cidr" in schema["properties"] else ()
        yield from chain.from_iterable(rule(filled) for rule in (*NODE_RULES, *of_server))
        yield from chain.from_iterable(rule(filled, minor) for rule in RELEASE_RULES)


def _listed(of: Raw, name: str) -> Iterator[tuple[Steps, str]]:
    """Yield the items of a list as RKE2 reads them, and where each is, with those that KEY+ adds.

    A string is split at its commas, and so is each item of a list.
    """
    for key in (name, f"{name}+"):
        value = of.get(key)
        texts = value if isinstance(value, list | tuple) else [] if value is None else [value]
        for index, text in enumerate(texts):
            steps: Steps = (key, index) if isinstance(value, list | tuple) else (key,)
            yield from ((steps, item) for item in str(text).split(",") if not isinstance(text, Secret | Mapping))


def _items(of: Raw, name: str) -> list[str]:
    """Return the items of a list without blanks around them."""
    return [item.strip() for _, item in _listed(of, name) if item.strip()]


def _texts(of: Raw, name: str) -> Iterator[tuple[Steps, str]]:
    """Yield the items of a list that RKE2 does not split at commas, and where each is."""
    for key in (name, f"{name}+"):
        value = of.get(key)
        if isinstance(value, list | tuple):
            yield from (((key, index), each) for index, each in enumerate(value) if isinstance(each, str))
        elif isinstance(value, str):
            yield (key,), value


def _flags(of: Raw, component: str) -> dict[str, tuple[Steps, str]]:
    """Return the values of a component's flags that replace RKE2's own, of each the last one, and where it is."""
    found = {}
    for steps, text in _texts(of, f"{component}-arg"):
        name, mark, value = text.removeprefix("--").partition("=")
        found[name] = steps, value if mark else "true"
    return {name: each for name, each in found.items() if not name.endswith(("+", "-"))}


def _in_flag(of: Raw, flag: str) -> Iterator[tuple[Steps, str]]:
    """Yield the items of a flag of the kubelet, and where each is."""
    for steps, text in _texts(of, "kubelet-arg"):
        name, _, value = text.removeprefix("--").partition("=")
        yield from ((steps, item) for item in value.split(",") if name.rstrip("+-") == flag)


def revealed(value: object) -> object:
    """Return a value that no message may contain, if it is a secret; None if its source has not been asked for it."""
    if isinstance(value, Secret):
        return value.reveal() if value.fetched else None
    return value


def _revealed(of: Raw, name: str) -> Raw:
    """Return the values of a list that has secrets; those without a value here are left out."""

    def reveal(value: object) -> object:
        return [revealed(each) for each in value] if isinstance(value, list | tuple) else revealed(value)

    return {key: reveal(of[key]) for key in (name, f"{name}+") if key in of}


def _on(value: object) -> bool:
    return GO_BOOLEANS.get(str(value), False)


def _choice(of: Raw, name: str, known: Sequence[str]) -> Iterator[Fault]:
    """Yield values that are not among the known ones; RKE2 does not start with them."""
    for item in _items(of, name):
        if item not in known:
            fix = suggest(item, known) or f"write one of {', '.join(known)}"
            yield Fault((name,), f"RKE2 does not support {item!r}", fix)


# --- rules: each returns the faults of one part of the file -----------------------------------


def _choices(of: Raw) -> Iterator[Fault]:
    yield from _choice(of, "cni", ("multus", *PLUGINS))
    yield from _choice(of, "ingress-controller", INGRESS_CONTROLLERS)
    yield from _choice(of, "egress-selector-mode", EGRESS_SELECTOR_MODES)
    yield from _choice(of, "etcd-s3-bucket-lookup-type", BUCKET_LOOKUPS)
    yield from _choice(of, "secrets-encryption-provider", ENCRYPTION_PROVIDERS)


def _components(of: Raw) -> Iterator[Fault]:
    """Yield names in disable that RKE2 ignores; the name of a manifest of the user's own is valid."""
    for steps, item in _listed(of, "disable"):
        name = item.strip().removesuffix(".yaml")
        if name in COMPONENTS:
            continue
        whole = [component for component in COMPONENTS if name in OF_K3S and component == f"rke2-{name}"]
        inside = [component for component in COMPONENTS if len(name) > 3 and name in component]
        fix = suggest(name, COMPONENTS) if not whole else f"write {whole[0]}"
        if not fix and inside:
            fix = f"write {' or '.join(inside)}"
        if fix or name.startswith("rke2-"):
            yield Fault(steps, f"RKE2 has no component {name!r}", fix or f"write one of {', '.join(COMPONENTS)}")


def _multus(of: Raw) -> Iterator[Fault]:
    plugins = _items(of, "cni")
    if plugins == ["multus"]:
        yield Fault(("cni",), "multus is the only plugin", "name the primary one after it: multus,canal")
    elif len(plugins) > 2 or (len(plugins) == 2 and plugins[0] != "multus"):
        what = f"{','.join(plugins)} is more than one primary plugin"
        yield Fault(("cni",), what, "write one, or multus and one: multus,canal")


def _profile(of: Raw) -> Iterator[Fault]:
    if of.get("profile") == "cis" and GO_BOOLEANS.get(str(of.get("protect-kernel-defaults"))) is False:
        what = "is false, and profile cis requires true"
        yield Fault(("protect-kernel-defaults",), what, "remove it: the profile sets it")


def _cloud_provider(of: Raw) -> Iterator[Fault]:
    named = bool(of.get("cloud-provider-name"))
    if of.get("cloud-provider-config") and not named:
        fix = "add it, or remove cloud-provider-config"
        yield Fault(
            ("cloud-provider-name",), "is missing, and cloud-provider-config requires it", fix, Code.SPEC_MISSING_KEY
        )
    if of.get("node-external-ip") and (named or of.get("cloud-provider-config")):
        what = "RKE2 does not accept it together with a cloud provider"
        yield Fault(("node-external-ip",), what, "remove it: the cloud provider finds the address")


def _networks(of: Raw) -> Iterator[Fault]:
    """Yield networks and addresses that do not exist, or have other IP versions than the rest.

    Without a value, RKE2 takes the networks for the IP version of the node's first address.
    """
    versions: dict[str, list[int]] = {}
    for name, form in ADDRESSES.items():
        items, found = _items(of, name), []
        for item in items:
            try:
                found.append(form.parse(item).version)
            except ValueError:
                yield Fault((name,), f"{item!r} is not {form.kind}", f"write one such as {form.example}")
        if items and len(found) == len(items):
            versions[name] = found
        if (name in DEFAULT_NETWORKS or name == "node-ip") and len(found) > len({*found}):
            kind = "network" if name in DEFAULT_NETWORKS else "address"
            what = f"{','.join(items)} has two of one IP version, and Kubernetes takes one {kind} of each"
            yield Fault((name,), what, f"write one {kind}, or one of IPv4 and one of IPv6")
    for name in ("service-cidr", "cluster-dns"):
        for other in ("cluster-cidr", "node-ip", "service-cidr"):
            if {name, other} <= versions.keys() and not _fit(name, versions[name], versions[other]):
                what = f"{_named(versions[name])} does not fit {_named(versions[other])} in {other}"
                yield Fault((name,), what, f"use the same IP versions in {other} and {name}")
                break
    if {"cluster-cidr", "node-ip"} <= versions.keys() and {*versions["cluster-cidr"]} != {*versions["node-ip"]}:
        what = f"{_named(versions['cluster-cidr'])} does not fit {_named(versions['node-ip'])} in node-ip"
        yield Fault(("cluster-cidr",), what, "use the same IP versions in node-ip and cluster-cidr")


def _addresses(of: Raw) -> Iterator[Fault]:
    """Yield addresses that no node can have, and blanks where RKE2 reads them as a part of the value."""
    for name, example in OTHER_ADDRESSES.items():
        for steps, item in _listed(of, name):
            if item.strip() and not is_address(item.strip()):
                yield Fault(steps, f"{item.strip()!r} is not an IP address", f"write one such as {example}")
    for name in ("node-ip", "node-external-ip", "advertise-address"):
        for steps, item in _listed(of, name):
            address = ipaddress.ip_address(item.strip()) if is_address(item.strip()) else None
            if address and (address.is_loopback or address.is_multicast or address.is_unspecified):
                kind = "a loopback" if address.is_loopback else "a multicast" if address.is_multicast else "no"
                yield Fault(steps, f"{address} is {kind} address", "write the address at which others reach the node")
    for name in WITHOUT_BLANKS:
        for steps, item in _listed(of, name):
            if item != item.strip() or (not item and of[str(steps[0])] not in ("", [""])):
                what = f"RKE2 reads {item!r} with its blanks" if item.strip() else "has an empty item"
                yield Fault(steps, what, "remove blanks and commas around the items")


def _runtime(of: Raw) -> Iterator[Fault]:
    """Yield a container runtime with which RKE2 starts no embedded registry (K3s, pkg/agent/run.go)."""
    if _on(of.get("embedded-registry")) and of.get("container-runtime-endpoint"):
        what = "embedded-registry requires RKE2's own containerd"
        yield Fault(("container-runtime-endpoint",), what, "remove one of them")
    name = str(of.get("snapshotter") or SNAPSHOTTERS[0])
    if name not in SNAPSHOTTERS and (fix := suggest(name, SNAPSHOTTERS)):  # others may be plugins of the user's own
        yield Fault(("snapshotter",), f"containerd has no snapshotter {name!r}", fix)


def _names(of: Raw) -> Iterator[Fault]:
    """Yield names of the node, the cluster and the API that are no names."""
    name = of.get("node-name")
    if isinstance(name, str) and name and not re.fullmatch(SUBDOMAIN, name.lower()):
        yield Fault(("node-name",), f"{name!r} is not a valid node name", "use letters, digits, hyphens and dots")
    domain = of.get("cluster-domain")
    if isinstance(domain, str) and domain and not re.fullmatch(SUBDOMAIN, domain):
        yield Fault(("cluster-domain",), f"{domain!r} is not a domain", "write one such as cluster.local")
    registry = of.get("system-default-registry")
    host = registry.partition("/")[0] if isinstance(registry, str) else ""
    if isinstance(registry, str) and registry and (not is_endpoint(host) or "_" in host):  # no image's host has one
        fix = "write HOST, HOST:PORT or HOST/PATH, without a scheme"
        yield Fault(("system-default-registry",), f"{hide_in_url(registry)!r} is not a registry", fix)
    for steps, item in _listed(of, "tls-san"):
        host = item.strip().removeprefix("*.")
        if host and not is_host(host, underscores=True):
            fix = "write a name or an IP address, without scheme, port and prefix length"
            yield Fault(steps, f"{item.strip()!r} is neither", fix)


def _fit(name: str, versions: Sequence[int], others: Sequence[int]) -> bool:
    """Whether IP versions fit; one address of DNS is enough in a dual-stack cluster."""
    return {*versions} <= {*others} if name == "cluster-dns" else {*versions} == {*others}


def _named(versions: Sequence[int]) -> str:
    return " and ".join(f"IPv{version}" for version in dict.fromkeys(versions))


def _etcd(of: Raw) -> Iterator[Fault]:
    if _on(of.get("etcd-s3")) and not (of.get("etcd-s3-bucket") or of.get("etcd-s3-config-secret")):
        yield Fault(("etcd-s3-bucket",), "is missing, and etcd-s3 requires it", "add it", Code.SPEC_MISSING_KEY)
    if of.get("cluster-reset-restore-path") and not _on(of.get("cluster-reset")):
        what = "is missing, and cluster-reset-restore-path requires it"
        yield Fault(("cluster-reset",), what, "add cluster-reset: true for the restore", Code.SPEC_MISSING_KEY)
    if _on(of.get("cluster-reset")) and of.get("server"):
        yield Fault(("server",), "RKE2 does not accept it together with cluster-reset", "remove it before the reset")
    for name in ("disable-apiserver", "disable-etcd"):  # the latter since K3s 3f649e3bc of 2024-03
        if of.get("datastore-endpoint") and _on(of.get(name)):
            yield Fault((name,), "RKE2 does not accept it together with datastore-endpoint", "remove one of them")
    if _on(of.get("cluster-reset")) and _on(of.get("disable-etcd")):
        yield Fault(("disable-etcd",), "RKE2 cannot reset a cluster without etcd", "remove one of them")


S3_SETTINGS = (
    *("etcd-s3-access-key", "etcd-s3-bucket", "etcd-s3-endpoint", "etcd-s3-endpoint-ca", "etcd-s3-folder"),
    *("etcd-s3-insecure", "etcd-s3-proxy", "etcd-s3-region", "etcd-s3-secret-key", "etcd-s3-session-token"),
    *("etcd-s3-skip-ssl-verify", "etcd-s3-timeout", "etcd-s3-bucket-lookup-type"),
)
"""Settings with any of which RKE2 ignores etcd-s3-config-secret (K3s, pkg/etcd/s3/s3.go, GetClient)."""
S3_DEFAULTS = {"etcd-s3-endpoint": "s3.amazonaws.com", "etcd-s3-region": "us-east-1", "etcd-s3-timeout": "5m"}
BUCKET = re.compile(r"(?!.*(\.[.-]|-\.))[A-Za-z0-9][A-Za-z0-9._:-]{1,61}[A-Za-z0-9]")


def s3_faults(of: Raw) -> Iterator[Fault]:
    """Yield settings of S3 with which RKE2 starts, and uploads no snapshot (minio-go 7, utils.go and pkg/s3utils)."""
    endpoint = of.get("etcd-s3-endpoint")
    if isinstance(endpoint, str) and endpoint:
        scheme, mark, rest = endpoint.partition("://")
        host = (rest if mark else endpoint).rstrip("/")
        if mark or not is_endpoint(endpoint):
            right = f"write {host}" if is_endpoint(host) else "write one such as s3.example.com:8080"
            more = ", and etcd-s3-insecure: true" if scheme.lower() == "http" and mark else ""
            yield Fault(
                ("etcd-s3-endpoint",), f"{hide_in_url(endpoint)!r} is not a host, optionally with a port", right + more
            )
    bucket = of.get("etcd-s3-bucket")
    if isinstance(bucket, str) and bucket and (not BUCKET.fullmatch(bucket) or is_address(bucket)):
        fix = "use 3 to 63 letters, digits, hyphens, underscores and dots; a folder belongs into etcd-s3-folder"
        yield Fault(("etcd-s3-bucket",), f"{bucket!r} is not a name of a bucket", fix)
    proxy = revealed(of.get("etcd-s3-proxy"))
    if isinstance(proxy, str) and proxy not in ("", "none") and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]", proxy):
        what = "the value has no scheme and host"
        yield Fault(("etcd-s3-proxy",), what, "write one such as http://proxy.example.com:3128, or none")
    others = [name for name in S3_SETTINGS if not _is_default(name, of.get(name))]
    if of.get("etcd-s3-config-secret") and others and not of.get("etcd-s3-bucket"):
        what = f"RKE2 ignores it because {others[0]} is set, and then has no bucket"
        fix = f"move {', '.join(others)} into the Secret"
        yield Fault(("etcd-s3-config-secret",), what, fix)


def _is_default(name: str, value: object) -> bool:
    """Whether a setting of S3 is as without its key, as K3s compares it: a duration or a boolean in any form."""
    if value in (None, "", False, S3_DEFAULTS.get(name)):
        return True
    if name == "etcd-s3-timeout":
        return DURATION.fullmatch(str(value)) is not None and _seconds(str(value)) == _seconds(S3_DEFAULTS[name])
    return name in ("etcd-s3-insecure", "etcd-s3-skip-ssl-verify") and GO_BOOLEANS.get(str(value)) is False


def _seconds(duration: str) -> Decimal:
    """Return the seconds of a text that ``DURATION`` matches."""
    parts = re.findall(r"([\d.]+)(ns|us|µs|μs|ms|s|m|h)", duration)
    total = sum((Decimal(number) * SECONDS[unit] for number, unit in parts), Decimal())
    return -total if duration.startswith("-") else total


def is_endpoint(text: str) -> bool:
    """Whether a text is HOST or HOST:PORT; the name of a host may have underscores."""
    try:
        parts = urlsplit(f"//{text}")
        whole = parts.netloc == text and "@" not in text and not text.endswith(":") and parts.port != 0
        return whole and is_host(parts.hostname or "", underscores=True)
    except ValueError:
        return False


DURATIONS = ("etcd-s3-timeout", "etcd-snapshot-reconcile-interval")
WITH_VALUE = (
    *(*ADDRESSES, "node-external-ip", "cni", "ingress-controller", "egress-selector-mode", "service-node-port-range"),
    *DURATIONS,
)
"""Keys whose empty value stops RKE2: K3s reads null as an empty text (pkg/configfilearg/parser.go)."""


def _empty(of: Raw) -> Iterator[Fault]:
    """Yield keys without a value that need one, also booleans and numbers, of which K3s reads null as a text."""
    properties = load_schema("server")["properties"]
    for name, value in of.items():
        flag = value is None and properties.get(name, {}).get("type") in ("boolean", "integer")
        if flag or (name in WITH_VALUE and value in (None, "", [""], [None])):
            yield Fault((str(name),), "has no value, and RKE2 does not start", "write a value, or remove the key")


def _durations(of: Raw) -> Iterator[Fault]:
    """Yield durations with which RKE2 does not start, or without time for an upload."""
    takes_snapshots = not _on(of.get("etcd-disable-snapshots")) or _on(of.get("cluster-reset"))
    uploads = takes_snapshots and _on(of.get("etcd-s3"))
    for name, needs_time in zip(DURATIONS, (uploads, takes_snapshots), strict=True):
        value = of.get(name)
        if value in (None, ""):
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not DURATION.fullmatch(str(value)):
            fix = f"write {value}s or {value}m" if number else "write one such as 5m or 1h30m"
            yield Fault((name,), f"{value!r} is not a duration", fix)
        elif needs_time and (not re.search("[1-9]", str(value)) or str(value).startswith("-")):
            yield Fault((name,), f"{value} is no time at all", "write one such as 5m")


PORT_RANGE = re.compile(r"(\d{1,5})(?:([-+])(\d{1,5}))?")


def port_faults(of: Raw) -> Iterator[Fault]:
    """Yield a port and a range of ports with which RKE2 does not start (apimachinery, pkg/util/net/port_range.go)."""
    port = of.get("lb-server-port")
    if isinstance(port, int) and not 1 < port <= 65535:  # the port before it is one as well
        yield Fault(("lb-server-port",), f"{port} is not a port", "remove it, or write one such as 6444")
    name = "service-node-port-range"
    text = of.get(name)
    if text in (None, ""):
        return
    found = PORT_RANGE.fullmatch(str(text).strip())
    first = int(found[1]) if found else 0
    last = (first + int(found[3]) if found[2] == "+" else int(found[3])) if found and found[3] else first
    if not found or not first <= last <= 65535:
        yield Fault((name,), f"{text!r} is not a range of ports", "write one such as 30000-32767")


def _tokens(of: Raw) -> Iterator[Fault]:
    """Yield tokens that RKE2 ignores or cannot read; none of the texts contains the value."""
    for name in ("token", "agent-token"):
        value = of.get(name)
        if value and of.get(f"{name}-file"):
            yield Fault((name,), f"RKE2 ignores it because {name}-file is set", "remove one of them")
        text = str(revealed(value) or "")
        sha256 = text.removeprefix("K10").partition("::")[0]
        if text.startswith("K10") and "::" in text and len(sha256) not in (0, 64):
            what = f"the sha256 between K10 and :: has {len(sha256)} characters in place of 64"
            yield Fault((name,), what, "copy the whole file /var/lib/rancher/rke2/server/node-token")


def _arguments(of: Raw) -> Iterator[Fault]:
    """Yield flags with which a component does not start."""
    for name in ARGUMENTS:
        for steps, text in _texts(of, name):
            if not ARGUMENT.fullmatch(text):
                flag = re.match(r"[- ]*([a-z]+(?:-[a-z]+)+)[\s:]", text)  # anything else may be a secret
                what = f"{flag[1]!r} has no = before its value" if flag else "the value is not a flag"
                fix = f"write {flag[1]}=VALUE" if flag else "write NAME=VALUE, such as max-pods=200"
                yield Fault(steps, what, fix)
    for steps, text in _texts(of, "kube-apiserver-arg"):
        option, _, value = text.removeprefix("--").partition("=")
        if option in TLS_FLAGS and not all(TLS_FLAGS[option].fullmatch(each.strip()) for each in value.split(",")):
            yield Fault(steps, f"RKE2 does not support {value!r}", f"write {option}={TLS_EXAMPLES[option]}")
    patterns = of.get("vmodule")  # a flag of the kubelet (component-base, logs/api/v1/pflags.go)
    for item in patterns.split(",") if isinstance(patterns, str) else ():
        if item and not re.fullmatch(r"[^=]+=\d{1,9}", item):
            yield Fault(("vmodule",), f"{item!r} does not have the form PATTERN=N", "write one such as kubelet*=4")


def _replacing_flags(of: Raw) -> Iterator[Fault]:
    """Yield flags of one component in place of a key by which RKE2 configures others, too, and which says otherwise."""
    for component, replaced in REPLACED.items():
        flags = _flags(of, component)
        for flag in replaced.keys() & flags.keys():
            key, (steps, value) = replaced[flag], flags[flag]
            given = _items(of, key)
            known = [given] if given else [[each] for each in ALL_DEFAULTS.get(key, ())]
            if known and sorted(filter(None, value.split(","))) not in map(sorted, known):
                what = f"{flag} replaces {key} for {component} alone, and has another value"
                yield Fault(steps, what, f"write the value into {key}, and remove the flag")


def _node_sizes(of: Raw) -> Iterator[Fault]:
    """Yield prefix lengths of the nodes' parts of the network of pods that Kubernetes refuses."""
    flags = _flags(of, "kube-controller-manager")
    try:
        pods = [_network(item) for item in _items(of, "cluster-cidr") or [DEFAULT_NETWORKS["cluster-cidr"]]]
    except ValueError:
        return  # reported by _networks
    for name, what, fix in networks.node_size_findings(pods, {name: value for name, (_, value) in flags.items()}):
        yield Fault(flags[name][0], f"{name}: {what}", fix)


def _pods(of: Raw) -> Iterator[Fault]:
    """Yield settings of the control plane's pods with which RKE2 does not start, or which it ignores."""
    for component in POD_COMPONENTS:
        for steps, text in _texts(of, f"{component}-extra-mount"):
            source, *rest = text.split(":")
            paths = [source, *rest[:1]]
            if not (len(paths) == 2 and len(rest) <= 3 and all(path.startswith("/") for path in paths)):
                yield Fault(steps, f"{text!r} is not a mount", "write one such as /srv/data:/srv/data:ro")
            elif len(rest) == 2 and rest[1].lower() not in ("ro", "rw"):
                yield Fault(steps, f"RKE2 does not know the option {rest[1]!r} of a mount", "write ro or rw")
        for steps, text in _texts(_revealed(of, f"{component}-extra-env"), f"{component}-extra-env"):
            if not re.match(r"[A-Za-z_][\w.-]*=", text):
                yield Fault(steps, "the value is not NAME=VALUE", "write one such as HTTPS_PROXY=http://192.0.2.1:3128")
    for name, form, example in POD_SETTINGS:
        for steps, item in _listed(of, name):
            if not form.fullmatch(item.strip() if item == item.lstrip() else item):
                yield Fault(steps, f"{item!r} is not such a setting", f"write one such as {example}")


COMPONENT = rf"(?:{'|'.join(POD_COMPONENTS)})"
QUANTITY = r"\d+(\.\d*)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei|u|n|[eE]-?\d+)?"
RESOURCE = re.compile(rf"{COMPONENT}-(cpu|memory)={QUANTITY}")
PROBE = re.compile(
    rf"{COMPONENT}-(liveness|readiness|startup)-"
    r"(initial-delay-seconds|timeout-seconds|failure-threshold|period-seconds)=\d{1,10}"
)
POD_SETTINGS = (
    ("control-plane-resource-requests", RESOURCE, "kube-apiserver-cpu=500m"),
    ("control-plane-resource-limits", RESOURCE, "kube-apiserver-memory=2Gi"),
    ("control-plane-probe-configuration", PROBE, "kube-apiserver-startup-failure-threshold=42"),
)
"""Keys with settings of the pods by component, their form, and an example."""


def _paths(of: Raw) -> Iterator[Fault]:
    """Yield paths that do not begin with /; K3s resolves ~ and variables in data-dir alone."""
    for name in PATHS:
        value = of.get(name)
        if isinstance(value, str) and value and not value.startswith("/"):
            what = f"{value!r} is not an absolute path on the node"
            fix = "write the path of the file, such as /etc/rancher/rke2/registries.yaml"
            yield Fault((name,), what, fix if name == "private-registry" else "write one that begins with /")
    folder = of.get("data-dir")
    if isinstance(folder, str) and folder and not folder.startswith(("/", "~", "$HOME", "${HOME}")):
        what = f"{folder!r} is not an absolute path on the node"
        yield Fault(("data-dir",), what, "write one such as /var/lib/rancher/rke2")


def _server(of: Raw) -> Iterator[Fault]:
    """Yield a URL at which no server answers a node that joins; a load balancer may have another port than 9345."""
    server = of.get("server")
    if not server:
        return
    place = ("server",)
    host, port = _host_of(server)
    if not host:
        yield Fault(
            place, f"{hide_in_url(str(server))!r} is not the URL of a server", "write one such as https://10.0.0.5:9345"
        )
        return
    right = f"write https://{f'[{host}]' if ':' in host else host}:{JOIN_PORT}"
    if port is None:
        right += ", or :443 if a load balancer listens there"
        yield Fault(place, f"{hide_in_url(str(server))!r} has no port, which means 443", right)
    elif port == API_PORT:
        yield Fault(place, f"{API_PORT} is the port of the Kubernetes API, and nodes join at {JOIN_PORT}", right)
    address = ipaddress.ip_address(host) if is_address(host) else None
    address = getattr(address, "ipv4_mapped", None) or address
    itself = address and (address.is_loopback or address.is_unspecified)
    own = {"localhost", str(of.get("node-name")).lower(), *_items(of, "node-ip"), *_items(of, "node-external-ip")}
    if itself or host.removesuffix(".") in own:
        yield Fault(place, f"{host} is the node itself", "write the address of another server")


def _host_of(server: object) -> tuple[str, int | None]:
    """Return host and port of a server's URL; no host for a text that is not one."""
    try:
        parts = urlsplit(str(server).rstrip("/"))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    other = parts.scheme != "https" or parts.path or parts.query or parts.fragment or parts.username is not None
    other = other or port == 0
    return ("", None) if other or not is_host(host.removesuffix("."), underscores=True) else (host, port)


def label_faults(of: Raw) -> Iterator[Fault]:
    """Yield labels of the node with which the kubelet does not start."""
    for steps, label in [*_listed(of, "node-label"), *_in_flag(of, "node-labels")]:
        key, mark, value = label.strip().partition("=")
        if not label.strip():
            continue
        if not mark:
            yield Fault(steps, f"{label.strip()!r} is not a label", "write KEY=VALUE, or KEY= for an empty value")
        elif found := label_fault(key.strip(), value.strip()):
            yield Fault(steps, *found)
        elif not kubelet_may_set(key.strip()):
            yield Fault(steps, *refused_label(key.strip()))


def taint_faults(of: Raw) -> Iterator[Fault]:
    """Yield taints of the node with which the kubelet does not start."""
    first: dict[tuple[str, str], str] = {}
    for steps, taint in [*_listed(of, "node-taint"), *_in_flag(of, "register-with-taints")]:
        if not taint.strip():
            continue
        if found := taint_fault(taint.strip()):
            yield Fault(steps, *found)
            continue
        key, _, effect = taint.strip().rpartition(":")
        other = first.setdefault((key.partition("=")[0], effect), taint.strip())
        if other != taint.strip():
            what = f"{taint.strip()!r} has the key and effect of {other!r}"
            yield Fault(steps, what, "a node has one taint of each key and effect: remove one")


def refused_label(key: str) -> tuple[str, str]:
    """Return what is wrong with a label that a kubelet may not set, and the fix."""
    fix = f"set it when the node has joined: kubectl label node NAME {shell.quote(key)}=..."
    return f"a kubelet may not set {key} on its node", fix


def kubelet_may_set(label: str) -> bool:
    """Whether a kubelet may set a label on its node: one outside of Kubernetes' domains, or in ``OWN_LABELS``."""
    domain = label.partition("/")[0] if "/" in label else ""
    return not re.search(r"(^|\.)(kubernetes|k8s)\.io$", domain) or bool(OWN_LABELS.fullmatch(label))


def _snapshots(of: Raw) -> Iterator[Fault]:
    """Yield a schedule that RKE2 cannot read: it starts, says nothing, and never takes a snapshot of etcd."""
    name = "etcd-snapshot-schedule-cron"
    text = of.get(name)
    if isinstance(text, str | int | float) and str(text).strip() and not is_schedule(str(text)):
        fix = 'write five fields such as "0 */5 * * *", @daily, or @every 6h'
        yield Fault((name,), f"{text!r} names no time of any day, so RKE2 would take no snapshots", fix)
    snapshot = of.get("etcd-snapshot-name")
    if isinstance(snapshot, str) and "/" in snapshot:
        yield Fault(("etcd-snapshot-name",), f"{snapshot!r} is not the name of a file", "remove the slashes")


def is_schedule(text: str) -> bool:
    """Whether a text is a schedule as robfig/cron v3.0.1 reads it (parser.go, ParseStandard)."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone = CRON_ZONE.match(text)
        known = zoneinfo.available_timezones()  # empty where the time zones are not installed
        if not zone or (known and zone[1] not in ("", "UTC", "Local", *known)):
            return False
        text = text[zone.end() :].strip()
    if text.startswith("@"):
        return text in SCHEDULES or bool(text.startswith("@every ") and DURATION.fullmatch(text[len("@every ") :]))
    fields = text.split()
    if len(fields) != len(CRON_FIELDS):
        return False
    try:
        given = [_cron_values(field, *bounds) for field, bounds in zip(fields, CRON_FIELDS, strict=True)]
    except ValueError:
        return False
    _, _, days, months, _ = given
    _, _, day, _, weekday = ({"*", "?"} & {*field.split(",")} for field in fields)
    on_weekdays = not day and not weekday  # then a day of either field counts
    return all(given) and (on_weekdays or any(min(days) <= DAYS[month - 1] for month in months))


DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""The most days of each month."""


def _cron_values(field: str, least: int, greatest: int, names: Sequence[str]) -> set[int]:
    """Return the values of a field, whose parts are * or a number or a range of them, optionally with a step."""
    found: set[int] = set()
    for part in filter(None, field.split(",")):
        values, *steps = part.split("/")
        low, *high = values.split("-")
        if len(steps) > 1 or len(high) > 1:
            raise ValueError(part)
        step = _cron_value(steps[0], ()) if steps else 1
        start, end = least, greatest
        if low not in ("*", "?"):
            start = _cron_value(low, names)
            end = _cron_value(high[0], names) if high else greatest if steps else start
        if step < 1 or not least <= start <= end <= greatest:
            raise ValueError(part)
        found |= {*range(start, end + 1, step)}
    return found


def _cron_value(text: str, names: Sequence[str]) -> int:
    if text and text.lower() in names:
        return names.index(text.lower())
    if not (text.isascii() and text.removeprefix("+").isdecimal()):
        raise ValueError(text)
    return int(text)


def ranges(of: Raw, minor: int | None) -> Iterator[Fault]:
    """Yield what is wrong with the networks of pods and Services together, which RKE2 gives to Kubernetes."""
    names = ("cluster-cidr", "service-cidr", "cluster-dns")
    if not of.keys() & {*names}:
        return
    given: dict[str, dict[int, list[str]]] = {name: {} for name in names}
    try:
        for name in names:
            default = [DEFAULT_NETWORKS[name]] if name in DEFAULT_NETWORKS else []
            for item in _items(of, name) or default:
                given[name].setdefault(ADDRESSES[name].parse(item).version, []).append(item)
    except ValueError:
        return  # reported by _networks
    sized = any(flag.startswith(networks.NODE_SIZE) for flag in _flags(of, "kube-controller-manager"))
    for version in given["cluster-cidr"].keys() & given["service-cidr"].keys():
        taken = [machine for machine in _machines(of) if ipaddress.ip_address(machine.addresses).version == version]
        addresses: Sequence[str | None] = given["cluster-dns"].get(version) or [None]
        for dns in addresses:
            cluster = KubernetesCluster(
                distribution="rke2",
                kubernetes_version=None if minor is None else f"1.{minor}",
                cluster_cidr=str(_network(given["cluster-cidr"][version][0])),
                service_cidr=str(_network(given["service-cidr"][version][0])),
                cluster_dns=dns,
            )
            for found in networks.mistakes(ClusterNetworks(), {"it": cluster}, taken, {"it": None if sized else 1}):
                what = found.what.removeprefix(f"{found.field} ").replace(" of it", "")
                for key in names:
                    what = what.replace(key.replace("-", "_"), key)
                yield Fault((found.field.replace("_", "-"),), what, found.fix, found.code)


def _machines(of: Raw) -> Iterator[Taken]:
    """Yield the addresses of nodes in a config.yaml, which must not be in the networks of pods and Services."""
    for name in ("node-ip", "advertise-address"):
        yield from (Taken(name, item) for item in _items(of, name) if is_address(item))
    host, _ = _host_of(of.get("server") or "")
    if is_address(host):
        yield Taken("server", host)


def _default_networks(of: Raw) -> Iterator[Fault]:
    """Yield addresses of a server in networks that RKE2 gives to pods and Services by default."""
    for name, default in DEFAULT_NETWORKS.items():
        for steps, item in _listed(of, "node-ip"):
            address = ipaddress.ip_address(item) if is_address(item) and not _items(of, name) else None
            if address and address in _network(default):
                fix = f"write a {name} that does not contain the nodes"
                yield Fault(steps, f"{item} is in {default}, RKE2's default of {name}", fix, ClusterCode.NETWORKS)


def placeholders(data: object, reader: str = "RKE2", within: Steps = ()) -> Iterator[Fault]:
    """Yield values that a program or a person has not filled in; the reader takes them as they are."""
    for steps, value in walk_steps(data, within):
        name = next((step for step in reversed(steps) if isinstance(step, str)), "")
        if found := _find_placeholder(value, name):
            yield Fault(steps, f"{found} is a placeholder, which {reader} takes as it is", RENDERED)


def _find_placeholder(value: object, name: str) -> str:
    """Return the placeholder in the value of a key, if it is a text of one line; empty if there is none.

    A secret is returned only if it is a variable in braces, and any other placeholder in its place as "the value": a
    password may look like one. K3s replaces a variable in a path below the home folder. Of a URL, the host may be a
    placeholder.
    """
    text = revealed(value)
    if not isinstance(text, str) or "\n" in text:
        return ""
    if isinstance(value, Secret) or isinstance(hide(text, name), Secret):
        if PLACEHOLDER.fullmatch(text):
            return text
        return "the value" if SECRET_PLACEHOLDER.fullmatch(text) else ""
    if name == "data-dir" and text.startswith(("$HOME", "${HOME}")):
        return ""
    if found := PLACEHOLDER.search(text):
        return found[0]
    whole = re.sub(r"^https?://|(:\d+)?/*$", "", text) if name == "server" else text.strip()
    whole = whole.partition("=")[2] if name.removesuffix("+").endswith(("-arg", "-label")) else whole
    return whole if WHOLE_PLACEHOLDER.fullmatch(whole) or _is_sample_host(whole, name) else ""


def _is_sample_host(text: str, name: str) -> bool:
    """Whether a text in the place of a host is a sample such as YOUR_SERVER_IP, which no host is named."""
    of_host = name.removesuffix("+") in ("server", "tls-san", "etcd-s3-endpoint")
    return of_host and bool(re.fullmatch("(YOUR|INSERT|ENTER|PUT)_[A-Z0-9_]+", text))


def _file_mode(of: Raw) -> Iterator[Fault]:
    mode = of.get("write-kubeconfig-mode")
    if mode in (0o600, 0o640, 0o644, 0o660, 0o664, 0o666):  # YAML reads 0644 as 420
        yield Fault(("write-kubeconfig-mode",), f"is the number {mode} in YAML", f'write "{mode:04o}" in quotes')
    elif mode not in (None, "") and not re.fullmatch("0?[0-7]{3,4}", str(mode)):
        what = f"{mode!r} is not a mode in octal digits, and RKE2 ignores it"
        yield Fault(("write-kubeconfig-mode",), what, 'write one such as "0640"')


# --- rules that depend on the release -----------------------------------------------------------


def profile_names(of: Raw, minor: int | None) -> Iterator[Fault]:
    profile = of.get("profile")
    known = next((names for before, names in OLD_PROFILES.items() if minor is not None and minor < before), PROFILES)
    if profile and profile not in known:
        old = known is PROFILES and str(profile).startswith("cis-")
        fix = "write cis: since RKE2 1.30 it is the only name" if old else f"write one of {', '.join(known)}"
        yield Fault(("profile",), f"RKE2 {_release(minor)}does not support {profile!r}", fix)


def newer_keys(of: Raw, minor: int | None) -> Iterator[Fault]:
    """Yield keys and plugins that this RKE2 does not have yet; it logs such keys alone."""
    if minor is None:
        return
    for name in of:
        if SINCE.get(str(name).removesuffix("+"), 0) > minor:
            what = f"RKE2 has it since 1.{SINCE[str(name).removesuffix('+')]}, and this is 1.{minor}"
            yield Fault((str(name),), what, "remove it, or choose a newer release", Code.SPEC_UNKNOWN_KEY)
    for plugin in _items(of, "cni"):
        if PLUGINS_SINCE.get(plugin, 0) > minor:
            what = f"RKE2 has {plugin} since 1.{PLUGINS_SINCE[plugin]}, and this is 1.{minor}"
            yield Fault(("cni",), what, "choose another plugin, or a newer release")


def cloud_providers(of: Raw, minor: int | None) -> Iterator[Fault]:
    """Yield a cloud provider that this Kubernetes does not have: kubelet and controller manager do not start."""
    name = of.get("cloud-provider-name")
    last = BUILT_IN_UNTIL.get(str(name), 0)
    if name and name not in CLOUD_PROVIDERS and (minor is None or minor > last):
        what = f"Kubernetes {_release(minor)}has no built-in cloud provider {name}"
        yield Fault(("cloud-provider-name",), what, "write external, and deploy its cloud controller manager")


def component_flags(of: Raw, minor: int | None) -> Iterator[Fault]:
    """Yield flags that a component of this release does not have: it does not start, and etcd ignores them."""
    for component in LISTED:
        for steps, text in _texts(of, f"{component}-arg"):
            name = text.removeprefix("--").partition("=")[0].rstrip("+-")
            if ARGUMENT.fullmatch(text) and (found := flag_fault(component, name, minor)):
                yield Fault(steps, *found)


def _release(minor: int | None) -> str:
    return f"1.{minor} " if minor is not None else ""


NODE_RULES: tuple[Callable[[Raw], Iterable[Fault]], ...] = (
    _choices,
    _components,
    _multus,
    _profile,
    _cloud_provider,
    _networks,
    _addresses,
    _runtime,
    _names,
    _etcd,
    s3_faults,
    _empty,
    _durations,
    port_faults,
    _tokens,
    _arguments,
    _replacing_flags,
    _node_sizes,
    _pods,
    _paths,
    _server,
    label_faults,
    taint_faults,
    _snapshots,
    _file_mode,
)
SERVER_RULES: tuple[Callable[[Raw], Iterable[Fault]], ...] = (_default_networks,)
"""Rules for servers alone: an agent does not know the networks."""
RULES = (placeholders, *NODE_RULES, *SERVER_RULES)
RELEASE_RULES: tuple[Callable[[Raw, int | None], Iterable[Fault]], ...] = (
    profile_names,
    newer_keys,
    ranges,
    cloud_providers,
    component_flags,
)


# --- warnings -----------------------------------------------------------------------------------


def warnings(of: Raw, *, is_server: bool) -> Iterator[str]:
    """Yield valid settings of a config.yaml that are right only under a condition which it does not show."""
    host, port = _host_of(of["server"]) if of.get("server") else ("", None)
    if host and port not in (None, API_PORT, JOIN_PORT):
        yield f"server: nodes join at {JOIN_PORT}; {port} is right if a load balancer maps it to that port"
    yield from arp_warning(of)
    if is_server and _on(of.get("disable-etcd")) and not of.get("server"):
        yield "disable-etcd: RKE2 does not start without server; write it here, or in another file of config.yaml.d"
    if is_server and (taints := repelling(taints_of(of))):
        what = f"the server takes no pods that do not tolerate {', '.join(taints)}"
        yield f"node-taint: {what}; they stay Pending without agents"


def warnings_of_servers(configs: Sequence[Raw]) -> Iterator[str]:
    """Yield warnings about the servers of one cluster together: the first one joins no other."""
    if len(configs) > 1 and [config.get("server") for config in configs].count(None) == 1:
        members = [
            config for config in configs if not _on(config.get("disable-etcd")) and not config.get("datastore-endpoint")
        ]
        yield from etcd_warning(len(members))


def arp_warning(config: Raw) -> Iterator[str]:
    """Yield a warning for a load balancer that the configuration does not show."""
    if answers_all_arp(config):
        what = "kube-proxy in mode ipvs answers ARP for all addresses of load balancers on all nodes"
        yield f"{what}; set ipvs-strict-arp: true for MetalLB in layer 2, and for kube-vip with ARP"


def answers_all_arp(config: Raw) -> bool:
    """Whether kube-proxy answers ARP for the addresses of load balancers on all nodes, by keys of RKE2 or RKE.

    Sources: MetalLB's documentation, "Installation"; kube-proxy's reference, --ipvs-strict-arp.
    """
    given = value_at(config, "services.kubeproxy.extra_args")  # of any type: documents with mistakes come here as well
    arguments = [text for _, text in _texts(config, "kube-proxy-arg")]
    arguments += [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else []
    arguments += map(str, given) if isinstance(given, list | tuple) else []
    arguments = [argument.lower().removeprefix("--") for argument in arguments]
    return "proxy-mode=ipvs" in arguments and "ipvs-strict-arp=true" not in arguments


def taints_of(of: Raw) -> list[str]:
    """Return the taints with which a node registers."""
    return [*_items(of, "node-taint"), *(each.strip() for _, each in _in_flag(of, "register-with-taints"))]
