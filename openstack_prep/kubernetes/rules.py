"""Checks of a cluster.yml: what RKE refuses before it contacts a node, or silently does wrong.

Sources: RKE 1.7 (cluster/validation.go, cluster/defaults.go); Kubernetes' removal of dockershim (1.24) and of the
OpenStack provider (1.26).  Values of a wrong type are ignored here: ``keys`` reports them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import cast

from openstack_prep.base.codes import Code
from openstack_prep.base.fields import is_address, is_host, words
from openstack_prep.base.raw import Raw, Steps, Values, dotted, value_at
from openstack_prep.base.secret import Secret
from openstack_prep.base.suggestion import suggest
from openstack_prep.kubernetes.keys.flags import flag_fault, flags_of
from openstack_prep.kubernetes.keys.schema import Fault, find_faults, load_schema, map_values
from openstack_prep.kubernetes.nodes import MASTER, REQUIRED, SUBDOMAIN, label_fault, taint_fault
from openstack_prep.kubernetes.rke2_rules import (
    DURATION,
    label_faults,
    placeholders,
    port_faults,
    s3_faults,
    taint_faults,
)

VERSION = re.compile(r"v1\.(\d{1,3})\.\d{1,3}-rancher\d+(-\d+)?")
EXAMPLE = "v1.31.1-rancher1-1"
NEWEST = 32
"""The newest Kubernetes 1.N of RKE 1.8, the last one: 1.8.14 installs v1.32.13 by default."""
LIST = "rke config --list-version --all"
CHOICES: dict[str, tuple[str, ...]] = {
    "network.plugin": ("none", "flannel", "calico", "canal", "weave", "aci"),
    "ingress.provider": ("nginx", "none"),
    "ingress.network_mode": ("hostNetwork", "hostPort", "none"),
    "ingress.dns_policy": ("ClusterFirst", "ClusterFirstWithHostNet", "None", "Default"),
    "services.kube-api.pod_security_configuration": ("privileged", "restricted"),
}
IGNORED: dict[str, tuple[tuple[str, ...], str]] = {
    "authorization.mode": (("rbac", "none"), "turns RBAC off"),
    "dns.provider": (("coredns", "kube-dns", "none"), "installs no DNS"),
    "monitoring.provider": (("metrics-server", "none"), "installs metrics-server"),
}
"""The values of keys that RKE does not check, and what it does with others (cluster/addons.go, cluster/plan.go)."""
POD_SECURITY_POLICY = "services.kube-api.pod_security_policy"
FORMER = {
    "authentication.options": "0.1.18",
    "nodes.machine_name": "0.1.1",
    **{f"system_images.{name}": "0.1.6" for name in ("dashboard", "grafana", "heapster", "influxdb", "tiller")},
    "system_images.wave_node": "0.1.18",
    **{
        f"network.aci_network_provider.{name}_operator_memory_{bound}": "1.3.25"
        for name in ("acc_provision", "aci_containers")
        for bound in ("limit", "request")
    },
}
"""Keys that RKE wrote or read before a release, and ignores since (yaml tags of rke_types.go at 18 tags)."""
RENAMED = {
    "name": "did you mean cluster_name?",
    "cloud_provider.cloud_config": "write openstackCloudProvider, awsCloudProvider, azureCloudProvider or "
    "vsphereCloudProvider, by the provider, or customCloudProvider for another one: it is their name since RKE 0.1.7",
}
"""Keys of other releases of RKE and of Rancher, and what to write today (types of RKE 0.1.5 and 0.1.7)."""
CILIUM = "write none and install Cilium separately; in a spec, remove network_plugin and add a section cilium"
TWO_ETCDS = (
    "etcd runs on nodes of the cluster although external_urls names an external etcd",
    "remove role etcd from all nodes, or remove external_urls",
)
OBJECTS: dict[str, dict[str, tuple[str | None, ...]]] = {
    "admission_configuration": {
        "apiVersion": ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"),  # of RKE 1.4.3 and later, and before
        "kind": ("AdmissionConfiguration",),
    },
    "audit_log.configuration.policy": {"kind": ("Policy",), "apiVersion": ("audit.k8s.io/v1", None)},
    "secrets_encryption_config.custom_config": {  # RKE 1.2 decodes it by both (cluster/encryption.go)
        "apiVersion": ("apiserver.config.k8s.io/v1",),
        "kind": ("EncryptionConfiguration",),
    },
}
"""The objects of Kubernetes below kube-api, and the kinds and versions that RKE decodes (cluster/cluster.go)."""
ACI = (
    *("system_id", "token", "apic_user_name", "apic_user_key", "apic_user_crt", "encap_type", "mcast_range_start"),
    *("mcast_range_end", "node_subnet", "aep", "vrf_name", "vrf_tenant", "l3out", "extern_dynamic", "extern_static"),
    *("node_svc_subnet", "kube_api_vlan", "service_vlan", "infra_vlan", "apic_hosts", "l3out_external_networks"),
)
"""What the plugin aci requires (cluster/validation.go, validateNetworkOptions)."""
SECTIONS = {name: f"{name}CloudProvider" for name in ("azure", "openstack", "vsphere")}
"""The sections that cloud providers require (cloudprovider/azure, openstack and vsphere)."""
LONGEST_NAME = 253
"""Characters of a node's name, a DNS subdomain."""
SERVICES = ("etcd", "kube-api", "kube-controller", "scheduler", "kubelet", "kubeproxy")


def keys(data: object) -> Iterator[Fault]:
    """Yield unknown keys and wrong types of a cluster.yml."""
    yield from find_faults(data, load_schema("json"))
    for fault in find_faults(data, load_schema("cluster.yml")):
        path = dotted(fault.steps)
        if path in RENAMED and fault.code == Code.SPEC_UNKNOWN_KEY:
            yield replace(fault, fix=RENAMED[path])
        elif path == POD_SECURITY_POLICY:  # earlier samples of RKE contain it with the value false
            given = value_at(data, path)
            if given is not None and not isinstance(given, bool):
                yield Fault(fault.steps, f"{given!r} is not true or false", "write true or false, or remove it")
            elif isinstance(data, Mapping) and given and (_minor(data) or 0) >= 25:
                yield Fault(fault.steps, "is not supported since Kubernetes 1.25", "remove it")
        elif _form(path) not in FORMER:
            yield fault


def values(document: Raw, *, has_nodes: bool = True) -> Iterator[Fault]:
    """Yield what is wrong with the values of a cluster.yml, and with its nodes if it has them."""
    document = cast("Raw", map_values(document, load_schema("cluster.yml"), _as_text))
    yield from chain.from_iterable(rule(document) for rule in RULES)
    if has_nodes:
        yield from _nodes(document)
    yield from _placeholders(document)


def _as_text(value: object, schema: Raw, _: Steps) -> object:
    """Return a number or boolean as the text that Go makes of it where the field takes a text."""
    kinds = schema.get("type")
    return words(value) if isinstance(kinds, list) and "string" in kinds else value


def warnings(document: Raw) -> Iterator[str]:
    """Yield warnings about valid settings."""
    minor = _minor(document)
    if minor is not None and minor > NEWEST:
        version = value_at(document, "kubernetes_version")
        yield f"{version} is newer than Kubernetes 1.{NEWEST}, the newest that RKE installs; RKE2 installs newer ones"
    for path, (known, effect) in IGNORED.items():
        value = value_at(document, path)
        if isinstance(value, str) and value not in ("", *known):
            yield f"{path}: RKE does not know {value!r} and {effect}; write one of {', '.join(known)}"
    if value_at(document, POD_SECURITY_POLICY) and minor is None:
        yield f"{POD_SECURITY_POLICY}: Kubernetes 1.25 and later refuse it; write kubernetes_version, or remove it"
    if value_at(document, "network.plugin") == "weave":
        yield "Kubernetes 1.30 and later do not support weave; choose canal, calico or flannel"
    places: Values = {"": document, "bastion_host.": value_at(document, "bastion_host")}
    places |= {f"nodes[{index}].": node for index, node in enumerate(_list(document, "nodes"))}
    for place, part in places.items():
        for name in ("ssh_key", "ssh_cert"):
            if value_at(part, name) and value_at(part, f"{name}_path"):
                yield f"{place}{name} and {place}{name}_path are both set; remove one of them"

    for fault in find_faults(document, load_schema("cluster.yml")):
        path = dotted(fault.steps)
        if since := FORMER.get(_form(path)):
            yield f"{path}: RKE {since} and later ignore it; remove it"


def _form(path: str) -> str:
    """Return a path without the numbers of items."""
    return re.sub(r"\[\d+\]", "", path)


def needs_cri_dockerd(version: str | None) -> bool:
    """Whether this Kubernetes requires cri-dockerd; RKE before 1.4 does not enable it by itself."""
    return version is not None and _at_least({"kubernetes_version": version}, 24)


def _minor(document: Raw) -> int | None:
    """Return N of Kubernetes 1.N; None for RKE's default version.

    RKE 0.1 wrote the version into the tag of the image alone.
    """
    image = str(value_at(document, "system_images.kubernetes")).rpartition(":")[2]
    found = re.match(r"v1\.(\d{1,3})\.", str(value_at(document, "kubernetes_version") or image))
    return int(found[1]) if found else None


def _at_least(document: Raw, minor: int) -> bool:
    """Whether Kubernetes is 1.``minor`` or later; the default version counts as the newest."""
    declared = _minor(document)
    return (NEWEST if declared is None else declared) >= minor


def _fault(path: str, what: str, fix: str) -> Fault:
    return Fault(tuple(path.split(".")), what, fix)


# --- rules --------------------------------------------------------------------------------


def _version(document: Raw) -> Iterator[Fault]:
    version = value_at(document, "kubernetes_version")
    if version in (None, "") or VERSION.fullmatch(str(version)):
        return
    if not re.fullmatch(r"v\d+\.\d+\.\d+([-+].+)?", str(version)):
        yield _fault("kubernetes_version", f"{version!r} is not a version", f"write one such as {EXAMPLE}")
    elif not value_at(document, "system_images.kubernetes"):
        what = f"{version!r} is not a version of RKE, and system_images.kubernetes is not set"
        yield _fault("kubernetes_version", what, f"write one such as {EXAMPLE}; {LIST} lists all")


def _choices(document: Raw) -> Iterator[Fault]:
    for path, known in CHOICES.items():
        value = value_at(document, path)
        if not isinstance(value, str) or value in ("", *known):
            continue
        fix = suggest(value, known) or f"write one of {', '.join(known)}"
        yield _fault(path, f"RKE does not support {value!r}", CILIUM if value == "cilium" else fix)


def _network(document: Raw) -> Iterator[Fault]:
    plugin = value_at(document, "network.plugin")
    if plugin == "weave" and _at_least(document, 30):
        yield _fault(
            "network.plugin", "Kubernetes 1.30 and later do not support weave", "write canal, calico or flannel"
        )
    if plugin == "flannel" and value_at(document, "network.mtu"):
        yield _fault("network.mtu", "flannel does not support it", "remove it, or choose canal or calico")
    path = "network.aci_network_provider"
    missing = [name for name in ACI if not value_at(document, f"{path}.{name}")] if plugin == "aci" else []
    if missing:
        yield _fault(path, f"lacks {', '.join(missing)}, which aci requires", "add them, or choose canal or calico")
    place = "dns.nodelocal.ip_address"
    local = value_at(document, place)
    if isinstance(local, str) and local and not is_address(local):
        yield _fault(place, f"{local!r} is not an IP address, so the DNS cache does not start", "write 169.254.20.10")


def _ingress(document: Raw) -> Iterator[Fault]:
    mode = value_at(document, "ingress.network_mode") or ("hostPort" if _at_least(document, 21) else "hostNetwork")
    if mode != "hostPort":
        return  # RKE only looks at the ports of the hosts
    default = {"http_port": 80, "https_port": 443}
    ports = {name: value_at(document, f"ingress.{name}") or each for name, each in default.items()}
    for name, port in ports.items():
        if isinstance(port, int) and not 0 <= port <= 65535:
            yield _fault(f"ingress.{name}", f"{port} is not a port", "write a port from 1 to 65535")
    if ports["http_port"] == ports["https_port"]:
        name, other = ("http_port", "https_port") if ports["http_port"] == 443 else ("https_port", "http_port")
        yield _fault(f"ingress.{name}", f"{ports[name]} is also {other}", "choose a different port")


def _authentication(document: Raw) -> Iterator[Fault]:
    strategy = value_at(document, "authentication.strategy")
    if not isinstance(strategy, str) or not strategy:
        return
    parts = [each.strip().lower() for each in strategy.split("|")]
    if "x509" not in parts or not {*parts} <= {"x509", "webhook"}:
        what = f"RKE does not support {strategy!r}"
        yield _fault("authentication.strategy", what, "write x509 or x509|webhook")


def _runtime(document: Raw) -> Iterator[Fault]:
    enabled = value_at(document, "enable_cri_dockerd")
    if enabled is True and not _at_least(document, 21):
        yield _fault("enable_cri_dockerd", "Kubernetes before 1.21 does not support it", "remove it")
    if enabled is False and _at_least(document, 24):
        fix = "remove it: RKE enables cri-dockerd"
        yield _fault("enable_cri_dockerd", "Kubernetes 1.24 and later require it for Docker", fix)


def _etcd(document: Raw) -> Iterator[Fault]:
    etcd = value_at(document, "services.etcd")
    if value_at(etcd, "external_urls"):
        for name in ("ca_cert", "cert", "key", "path"):
            if not value_at(etcd, name):
                yield _fault(f"services.etcd.{name}", "is missing, and external_urls requires it", "add it")
    target = value_at(etcd, "backup_config.s3backupconfig")
    if isinstance(target, Mapping):
        for name in ("endpoint", "bucket_name"):
            if not target.get(name):
                yield _fault(f"services.etcd.backup_config.s3backupconfig.{name}", "is missing", "add it")
        names = {"endpoint": target.get("endpoint"), "bucket": target.get("bucket_name")}
        for fault in s3_faults({f"etcd-s3-{name}": value for name, value in names.items()}):
            name = "endpoint" if fault.steps == ("etcd-s3-endpoint",) else "bucket_name"
            fix = fault.fix.partition(", and etcd-s3")[0].replace("etcd-s3-folder", "folder")
            yield _fault(f"services.etcd.backup_config.s3backupconfig.{name}", fault.what, fix)
    for name in ("creation", "retention"):
        value = value_at(etcd, name)
        if isinstance(value, str) and value and not DURATION.fullmatch(value):
            yield _fault(f"services.etcd.{name}", f"{value!r} is not a duration", "write one such as 12h")


def _flags(document: Raw) -> Iterator[Fault]:
    """Yield values that RKE hands to a component, which does not start with them."""
    place = "services.kube-api.service_node_port_range"
    for fault in port_faults({"service-node-port-range": value_at(document, place)}):
        yield _fault(place, fault.what, fault.fix)
    flags = value_at(document, "services.kubelet.extra_args")
    for name in ("node-labels", "register-with-taints"):
        value = flags.get(name) if isinstance(flags, Mapping) else None
        if isinstance(value, str):
            flag = {"kubelet-arg": [f"{name}={value}"]}
            for fault in (*label_faults(flag), *taint_faults(flag)):
                yield _fault(f"services.kubelet.extra_args.{name}", fault.what, fault.fix)
    declared = _minor(document)
    for service, component in FLAGGED.items():
        for place in (f"services.{service}.extra_args", f"services.{service}.extra_args_array"):
            given = value_at(document, place)
            for flag in given if isinstance(given, Mapping) else ():
                minor = NEWEST if declared is None else declared
                is_changed = component == "kubelet" and str(flag) in flags_of(component)
                if not is_changed and (found := flag_fault(component, str(flag), minor)):
                    yield _fault(f"{place}.{flag}", *found)


FLAGGED = {
    "kube-api": "kube-apiserver",
    "kube-controller": "kube-controller-manager",
    "scheduler": "kube-scheduler",
    "kubelet": "kubelet",
    "kubeproxy": "kube-proxy",
    "etcd": "etcd",
}
"""The services of cluster.yml and their components. RKE changes some of a kubelet's flags by the release itself."""


def _pod_security(document: Raw) -> Iterator[Fault]:
    path = "services.kube-api.pod_security_configuration"
    if value_at(document, path) and not _at_least(document, 23):
        yield _fault(path, "Kubernetes before 1.23 does not support it", "remove it")
    if value_at(document, path) and value_at(document, "authorization.mode") == "none":
        yield _fault(path, "requires rbac, but authorization.mode is not rbac", "remove authorization.mode")


def _objects(document: Raw) -> Iterator[Fault]:
    """Yield what keeps RKE from decoding the Kubernetes objects below kube-api (cluster/cluster.go)."""
    api = value_at(document, "services.kube-api")
    for path, known in OBJECTS.items():
        given = value_at(api, path)
        for name, supported in known.items() if isinstance(given, Mapping) else ():
            steps = ("services", "kube-api", *path.split("."), name)
            value = given.get(name)
            if isinstance(value, Secret) and value.fetched:  # of an object that is a secret as a whole
                value = value.reveal()
            if not value and None not in supported:
                yield Fault(steps, "is missing", "add it", Code.SPEC_MISSING_KEY)
            elif value and value not in supported:
                fix = f"write {' or '.join(filter(None, supported))}"
                yield Fault(steps, f"RKE does not support {value!r}", fix)
    limits = value_at(api, "event_rate_limit.configuration.limits")
    if limits is not None and not isinstance(limits, list):
        yield _fault(
            "services.kube-api.event_rate_limit.configuration.limits", "is not a list", "write a list of limits"
        )


def _images(document: Raw) -> Iterator[Fault]:
    for name in SERVICES:
        if value_at(document, f"services.{name}.image"):
            image = "etcd" if name == "etcd" else "kubernetes"
            yield _fault(f"services.{name}.image", "RKE ignores it", f"set system_images.{image} instead")


def _cloud_provider(document: Raw) -> Iterator[Fault]:
    name = value_at(document, "cloud_provider.name")
    section = SECTIONS.get(name) if isinstance(name, str) else None
    if name == "openstack" and _at_least(document, 26):
        what = "Kubernetes 1.26 and later have no built-in provider openstack"
        yield _fault("cloud_provider.name", what, "write external, and deploy the OpenStack cloud controller manager")
    elif section and value_at(document, f"cloud_provider.{section}") is None:
        yield _fault(f"cloud_provider.{section}", f"is missing, and the provider {name} requires it", "add it")
    elif not name and value_at(document, "cloud_provider.customCloudProvider"):
        yield _fault("cloud_provider.name", "is missing beside customCloudProvider", "add it")


RULES: tuple[Callable[[Raw], Iterable[Fault]], ...] = (
    _version,
    _choices,
    _network,
    _ingress,
    _authentication,
    _runtime,
    _etcd,
    _flags,
    _pod_security,
    _objects,
    _images,
    _cloud_provider,
)

# --- nodes of a file ----------------------------------------------------------------------


def _list(document: Raw, name: str) -> list[object]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _nodes(document: Raw) -> Iterator[Fault]:
    nodes = [each if isinstance(each, Mapping) else {} for each in _list(document, "nodes")]
    if not nodes:
        yield Fault(("nodes",), "no nodes defined", "list the machines")
        return
    for index, node in enumerate(_list(document, "nodes")):
        if node is not None and not isinstance(node, Mapping):
            continue  # keys() reports it
        yield from (replace(fault, steps=("nodes", index, *fault.steps)) for fault in _node(node or {}))
    for name in ("address", "hostname_override"):
        shown = [str(node.get(name) or node.get("address") or "").lower() for node in nodes]
        for index, value in enumerate(shown):
            if value in shown[:index] and (nodes[index].get(name) or nodes[shown.index(value)].get(name)):
                what = f"{value} is also used by nodes[{shown.index(value)}]"
                yield Fault(("nodes", index, name), what, f"give each node its own {name}")
    yield from _together(document, Counter(role for node in nodes for role in _roles(node)))


def _roles(node: Raw) -> list[str]:
    found = node.get("role")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _node(node: Raw) -> Iterator[Fault]:
    for name in ("address", "user", "role"):
        if not node.get(name):
            yield Fault((name,), "is missing", "add it", Code.SPEC_MISSING_KEY)
    for name in ("address", "internal_address"):
        address = node.get(name)
        if not isinstance(address, str) or not address or is_address(address):
            continue
        if not is_host(address):
            fix = "replace the variable: RKE does not" if "${" in address else "use an IP address or a host name"
            yield Fault((name,), f"{address!r} is not an address", fix)
    roles = node.get("role")
    for number, each in enumerate(roles if isinstance(roles, list) else ()):
        if each is None or (isinstance(each, str) and each not in MASTER):  # null is an empty text to RKE
            what = f"{'null' if each is None else repr(each)} is not a role"
            yield Fault(("role", number), what, f"write one of {', '.join(MASTER)}")
    shown = node.get("hostname_override")
    address = node.get("address")
    if not shown and isinstance(address, str) and is_address(address) and ":" in address:
        what = f"is missing, and RKE would name the node {address}, which is not a valid name"
        yield Fault(("hostname_override",), what, "add it", Code.SPEC_MISSING_KEY)
    if isinstance(address, str) and len(address) > LONGEST_NAME and not shown:
        what = f"exceeds {LONGEST_NAME} characters, and is the name of the node"
        yield Fault(("address",), what, "set a shorter hostname_override")
    if shown and isinstance(shown, str) and not re.fullmatch(SUBDOMAIN, shown.lower()):
        fix = "use lower-case letters, digits, hyphens and dots"
        yield Fault(("hostname_override",), f"{shown!r} is not a valid node name", fix)
    labels = node.get("labels")
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if found := label_fault(str(key), str(words("" if value is None else value))):
            yield Fault(("labels", str(key)), *found)
    for number, taint in enumerate(_list(node, "taints")):
        if isinstance(taint, Mapping) and (found := taint_fault(_taint(taint))):
            yield Fault(("taints", number), *found)


def taints_of(node: object) -> Iterator[str]:
    """Yield the taints of a node as KEY=VALUE:EFFECT."""
    given = value_at(node, "taints")
    yield from (_taint(each) for each in given if isinstance(each, Mapping)) if isinstance(given, list) else ()


def _taint(taint: Raw) -> str:
    """Return a taint as KEY=VALUE:EFFECT; without an effect, RKE takes NoSchedule."""
    key, value, effect = (str(words(taint.get(name) or "")) for name in ("key", "value", "effect"))
    return f"{key}{f'={value}' if value else ''}:{effect or 'NoSchedule'}"


WITH_PLACEHOLDERS = (
    *("nodes", "bastion_host", "private_registries", "cluster_name", "authentication.sans"),
    *("cloud_provider.openstackCloudProvider", "services.etcd.backup_config"),
)
"""Where people fill a sample in; other values may be templates of other programs."""


def _placeholders(document: Raw) -> Iterator[Fault]:
    for path in WITH_PLACEHOLDERS:
        yield from placeholders(value_at(document, path), "RKE", tuple(path.split(".")))


def _together(document: Raw, roles: Counter[str]) -> Iterator[Fault]:
    external = bool(value_at(document, "services.etcd.external_urls"))
    for role in REQUIRED:
        if not roles[role] and not (external and role == "etcd"):
            yield Fault(("nodes",), f"no node has role {role}", f"give at least one node role {role}")
    if external and roles["etcd"]:
        yield Fault(("nodes",), *TWO_ETCDS)
