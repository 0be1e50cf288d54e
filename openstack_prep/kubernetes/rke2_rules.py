"""Checks of a config.yaml: what RKE2 refuses at its start, or silently ignores.

Sources: RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/server.go, pkg/cli/cmds/profile_linux.go, pkg/rke2/rke2_linux.go,
pkg/cli/types.go) and K3s, which it contains (pkg/cli/server/server.go).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from openstack_prep.base.codes import Code
from openstack_prep.base.fields import GO_BOOLEANS
from openstack_prep.base.raw import Raw
from openstack_prep.base.suggestion import suggest
from openstack_prep.kubernetes.keys.rke2_keys import K3S_KEYS
from openstack_prep.kubernetes.keys.schema import Fault, Steps, find_faults, load_schema, map_values, union

PLUGINS = ("canal", "calico", "cilium", "flannel", "none")
INGRESS_CONTROLLERS = ("traefik", "ingress-nginx", "none")
EGRESS_SELECTOR_MODES = ("agent", "cluster", "pod", "disabled")
PROFILES = ("cis", "etcd")


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
    server = of.get("server")
    if server and not re.fullmatch(r"https://[^/]+", str(server)):
        what = f"{server!r} is not the URL of a server"
        yield Fault(("server",), what, "write one such as https://10.0.0.5:9345")


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
    _server,
    _file_mode,
)
