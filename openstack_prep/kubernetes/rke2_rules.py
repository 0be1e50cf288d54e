"""Checks of a config.yaml: what RKE2 refuses at its start, or silently ignores.

Sources: RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/server.go, pkg/cli/cmds/profile_linux.go, pkg/rke2/rke2_linux.go,
pkg/cli/types.go) and K3s, which it contains (pkg/cli/server/server.go; pkg/clientaccess/token.go: slashes at the end of
a server's URL are cut off; pkg/etcd/snapshot.go: an invalid schedule is ignored without a message). Kubernetes'
NodeRestriction for the labels that a kubelet may set on its node.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from openstack_prep.base.codes import Code
from openstack_prep.base.fields import GO_BOOLEANS, is_address
from openstack_prep.base.raw import Raw
from openstack_prep.base.suggestion import suggest
from openstack_prep.kubernetes import networks
from openstack_prep.kubernetes.keys.schema import K3S_KEYS, Fault, Steps, find_faults, load_schema, map_values, union
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.kubernetes.networks import ClusterNetworks

PLUGINS = ("canal", "calico", "cilium", "flannel", "none")
INGRESS_CONTROLLERS = ("traefik", "ingress-nginx", "none")
EGRESS_SELECTOR_MODES = ("agent", "cluster", "pod", "disabled")
PROFILES = ("cis", "etcd")
API_PORT, JOIN_PORT = 6443, 9345
"""Ports of kube-apiserver, and of the supervisor, at which nodes join."""
DEFAULT_NETWORKS = {"cluster-cidr": "10.42.0.0/16", "service-cidr": "10.43.0.0/16"}
OWN_LABELS = re.compile(
    r"(.*\.)?(kubelet|node)\.kubernetes\.io/.*"
    r"|kubernetes\.io/(hostname|arch|os)"
    r"|beta\.kubernetes\.io/(arch|os|instance-type)"
    r"|(topology\.kubernetes\.io|failure-domain\.beta\.kubernetes\.io)/(zone|region)"
)
"""Labels in Kubernetes' own domains that a kubelet may set on its node."""
HOST = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?\.?")
CRON_FIELD = re.compile(r"(\*|\?|\w+(-\w+)?)(/\d+)?(,(\*|\?|\w+(-\w+)?)(/\d+)?)*")
CRON_NAMES = re.compile(r"(CRON_)?TZ=\S+")
SCHEDULES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
"""Descriptors of robfig/cron v3, parser.go; beside them @every and a duration of Go."""
DURATION = re.compile(r"(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+")
PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\$\{\w+\}|<%.*?%>")
"""What Ansible, Jinja, Helm, Terraform or envsubst put a value in the place of."""
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
    "node-ip": _Form(ipaddress.ip_address, "an IP address", "10.0.0.5"),
    "cluster-dns": _Form(ipaddress.ip_address, "an IP address", "10.43.0.10"),
}


def _as_flag(value: object, schema: Raw, steps: Steps) -> object:
    """Return the boolean or number that RKE2 reads from a string."""
    if schema.get("type") == "boolean":
        return GO_BOOLEANS.get(str(value), value)
    return int(value) if schema.get("type") == "integer" and isinstance(value, str) and value.isdecimal() else value


def document_faults(data: object, schema: Raw) -> Iterator[Fault]:
    """Yield what is wrong with a config.yaml, with fixes for keys of K3s and for keys of servers on agents.

    RKE2 turns all keys into flags, so "true" and "5" are valid; KEY+ in a drop-in file appends to a list.
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
        yield from chain.from_iterable(rule(data) for rule in RULES)


def _items(of: Raw, name: str) -> list[str]:
    """Return a list as RKE2 reads it: a string is split at its commas, and so is each item of a list."""
    value = of.get(name)
    texts = value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else []
    return [item.strip() for text in texts for item in str(text).split(",") if item.strip()]


def _on(value: object) -> bool:
    return GO_BOOLEANS.get(str(value), False)


def _choice(of: Raw, name: str, known: Sequence[str]) -> Iterator[Fault]:
    """Yield values that are not among the known ones; RKE2 does not start with them."""
    for each in _items(of, name):
        if each not in known:
            fix = suggest(each, known) or f"write one of {', '.join(known)}"
            yield Fault((name,), f"RKE2 does not support {each!r}", fix)


# --- rules: each returns the faults of one part of the file -----------------------------------


def _choices(of: Raw) -> Iterator[Fault]:
    yield from _choice(of, "cni", ("multus", *PLUGINS))
    yield from _choice(of, "ingress-controller", INGRESS_CONTROLLERS)
    yield from _choice(of, "egress-selector-mode", EGRESS_SELECTOR_MODES)
    profile = of.get("profile")
    if profile and profile not in PROFILES:
        old = str(profile).startswith("cis-")
        fix = "write cis: since RKE2 1.30 it is the only name" if old else f"write one of {', '.join(PROFILES)}"
        yield Fault(("profile",), f"RKE2 does not support {profile!r}", fix)


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
        for each in items:
            try:
                found.append(form.parse(each).version)
            except ValueError:
                yield Fault((name,), f"{each!r} is not {form.kind}", f"write one such as {form.example}")
        if items and len(found) == len(items):
            versions[name] = found
    for name in ("service-cidr", "cluster-dns"):
        for other in ("cluster-cidr", "node-ip", "service-cidr"):
            if {name, other} <= versions.keys() and not _fit(name, versions[name], versions[other]):
                what = f"{_named(versions[name])} does not fit {_named(versions[other])} in {other}"
                yield Fault((name,), what, f"use the same IP versions in {other} and {name}")
                break
    if {"cluster-cidr", "node-ip"} <= versions.keys() and {*versions["cluster-cidr"]} != {*versions["node-ip"]}:
        what = f"{_named(versions['cluster-cidr'])} does not fit {_named(versions['node-ip'])} in node-ip"
        yield Fault(("cluster-cidr",), what, "use the same IP versions in node-ip and cluster-cidr")


def _fit(name: str, versions: Sequence[int], others: Sequence[int]) -> bool:
    """Whether IP versions fit; one address of DNS is enough in a dual-stack cluster."""
    return {*versions} <= {*others} if name == "cluster-dns" else {*versions} == {*others}


def _named(versions: Sequence[int]) -> str:
    return " and ".join(f"IPv{each}" for each in dict.fromkeys(versions))


def _etcd(of: Raw) -> Iterator[Fault]:
    if _on(of.get("etcd-s3")) and not (of.get("etcd-s3-bucket") or of.get("etcd-s3-config-secret")):
        yield Fault(("etcd-s3-bucket",), "is missing, and etcd-s3 requires it", "add it", Code.SPEC_MISSING_KEY)
    if of.get("cluster-reset-restore-path") and not _on(of.get("cluster-reset")):
        what = "is missing, and cluster-reset-restore-path requires it"
        yield Fault(("cluster-reset",), what, "add cluster-reset: true for the restore", Code.SPEC_MISSING_KEY)
    if _on(of.get("cluster-reset")) and of.get("server"):
        yield Fault(("server",), "RKE2 does not accept it together with cluster-reset", "remove it before the reset")


def _server(of: Raw) -> Iterator[Fault]:
    """Yield a URL at which no server answers a node that joins; a load balancer may have another port than 9345."""
    server = of.get("server")
    if not server or PLACEHOLDER.search(str(server)):
        return
    place = ("server",)
    try:
        parts = urlsplit(str(server).rstrip("/"))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme != "https" or parts.path or parts.query or not (is_address(host) or HOST.fullmatch(host)):
        yield Fault(place, f"{server!r} is not the URL of a server", "write one such as https://10.0.0.5:9345")
        return
    right = f"write https://{f'[{host}]' if ':' in host else host}:{JOIN_PORT}"
    if port is None:
        right += ", or :443 if a load balancer listens there"
        yield Fault(place, f"{server!r} has no port, which means 443", right)
    elif port == API_PORT:
        yield Fault(place, f"{API_PORT} is the port of the Kubernetes API, and nodes join at {JOIN_PORT}", right)
    if host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback):
        yield Fault(place, f"{host} is the node itself", "write the address of another server")


def _labels(of: Raw) -> Iterator[Fault]:
    """Yield labels of the node with which the kubelet does not start."""
    for label in _items(of, "node-label"):
        key = label.partition("=")[0]
        if not kubelet_may_set(key):
            yield Fault(("node-label",), *refused_label(key))


def refused_label(key: str) -> tuple[str, str]:
    """Return what is wrong with a label that a kubelet may not set, and the fix."""
    fix = f"set it when the node has joined: kubectl label node NAME {shlex.quote(key)}=..."
    return f"a kubelet may not set {key} on its node", fix


def kubelet_may_set(label: str) -> bool:
    """Whether a kubelet may set a label on its node: one outside of Kubernetes' domains, or in ``OWN_LABELS``."""
    domain = label.partition("/")[0] if "/" in label else ""
    return not re.search(r"(^|\.)(kubernetes|k8s)\.io$", domain) or bool(OWN_LABELS.fullmatch(label))


def _snapshots(of: Raw) -> Iterator[Fault]:
    """Yield a schedule that RKE2 cannot read: it starts, says nothing, and never takes a snapshot of etcd."""
    name = "etcd-snapshot-schedule-cron"
    text = of.get(name)
    if not isinstance(text, str) or not text.strip() or PLACEHOLDER.search(text):
        return
    words = text.split()
    if CRON_NAMES.fullmatch(words[0]):  # robfig/cron v3, parser.go: a time zone may come first
        words = words[1:]
    every = len(words) == 2 and words[0] == "@every" and DURATION.fullmatch(words[1])
    fields = len(words) == 5 and all(map(CRON_FIELD.fullmatch, words))
    if not (fields or every or (len(words) == 1 and words[0] in SCHEDULES)):
        fix = 'write five fields such as "0 */5 * * *", @daily, or @every 6h'
        yield Fault((name,), f"{text!r} is not a schedule, so RKE2 would take no snapshots", fix)


def _ranges(of: Raw) -> Iterator[Fault]:
    """Yield what is wrong with the networks of pods and Services together, which RKE2 gives to Kubernetes."""
    if not of.keys() & {"cluster-cidr", "service-cidr", "cluster-dns"}:
        return
    given: dict[str, dict[int, str]] = {}
    for name in ("cluster-cidr", "service-cidr", "cluster-dns"):
        try:
            found = {ADDRESSES[name].parse(each).version: each for each in _items(of, name)}
        except ValueError:
            return  # reported by _networks
        default = DEFAULT_NETWORKS.get(name)
        given[name] = found or ({4: default} if default else {})
    sized = any(each.startswith("node-cidr-mask-size") for each in _items(of, "kube-controller-manager-arg"))
    for version in given["cluster-cidr"].keys() & given["service-cidr"].keys():
        pods, services, dns = (of_version.get(version) for of_version in given.values())
        cluster = KubernetesCluster(
            cluster_cidr=pods and str(_network(pods)),
            service_cidr=services and str(_network(services)),
            cluster_dns=dns,
        )
        for each in networks.mistakes(ClusterNetworks(), {"it": cluster}, (), {"it": None if sized else 1}):
            name = each.field.replace("_", "-")
            what = each.what.removeprefix(f"{each.field} ").replace(" of it", "")
            for key in given:
                what = what.replace(key.replace("-", "_"), key)
            yield Fault((name,), what, each.fix, each.code)


def _placeholders(of: Raw) -> Iterator[Fault]:
    """Yield values that a program has not filled in; RKE2 takes them as they are."""
    for name, value in of.items():
        texts = value if isinstance(value, list | tuple) else [value]
        for index, text in enumerate(texts):
            found = PLACEHOLDER.search(text) if isinstance(text, str) else None
            if found and (name == "server" or found[0] == text):
                steps: Steps = (name, index) if text is not value else (name,)
                yield Fault(steps, f"{found[0]} is a placeholder, which RKE2 takes as it is", RENDERED)


def _file_mode(of: Raw) -> Iterator[Fault]:
    mode = of.get("write-kubeconfig-mode")
    if mode in (0o600, 0o640, 0o644, 0o660, 0o664, 0o666):  # YAML reads 0644 as 420
        yield Fault(("write-kubeconfig-mode",), f"is the number {mode} in YAML", f'write "{mode:04o}" in quotes')


RULES: tuple[Callable[[Raw], Iterable[Fault]], ...] = (
    _choices,
    _multus,
    _profile,
    _cloud_provider,
    _networks,
    _etcd,
    _ranges,
    _server,
    _labels,
    _snapshots,
    _placeholders,
    _file_mode,
)
