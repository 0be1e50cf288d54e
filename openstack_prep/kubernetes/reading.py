"""Strict checks of an existing config.yaml (RKE2) or cluster.yml (RKE).

Source: RKE decodes by yaml.v2, which ignores unknown keys and accepts the booleans of YAML 1.1.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.base.raw import Raw
from openstack_prep.base.yaml_places import Document
from openstack_prep.kubernetes import networks, nodes, rke2_rules, rules
from openstack_prep.kubernetes.keys.schema import Fault, Steps, dotted, load_schema, map_values, value_at
from openstack_prep.kubernetes.model import Cluster
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken

Form: TypeAlias = Literal["cluster.yml", "server", "agent"]
"""The config.yaml of an RKE2 server or agent, or RKE's cluster.yml."""

WORDS = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}
DEFAULTS = {
    "services.kube-controller.cluster_cidr": "10.42.0.0/16",
    "services.kube-controller.service_cluster_ip_range": "10.43.0.0/16",
    "services.kube-api.service_cluster_ip_range": "10.43.0.0/16",
}
"""RKE's defaults."""
PLACES: dict[str, Steps] = {
    "cluster_cidr": ("services", "kube-controller", "cluster_cidr"),
    "service_cidr": ("services", "kube-controller", "service_cluster_ip_range"),
    "cluster_dns": ("services", "kubelet", "cluster_dns_server"),
}
"""Keys of cluster.yml by the fields that the check of networks reports."""


def read(path: Path, form: Form = "cluster.yml") -> tuple[Raw, list[Mistake]]:
    """Return the content of a file, and all mistakes in it, in the order of the text.

    Raises SpecError when the file cannot be read or is not one YAML document.
    """
    document = Document(path)
    data = map_values(document.data, load_schema(form), _truth)
    if not isinstance(data, Mapping):
        raise SpecError([Mistake(str(path), "is not a mapping", f"name the {NAMES[form]}")])
    if "rke_clusters" in data:
        fix = f"run openstack-prep apply {path}, then check the files that it writes"
        raise SpecError([Mistake(document.place(["rke_clusters"]), "is a spec of openstack-prep", fix)])
    first: dict[Steps, Fault] = {}
    for fault in _faults(data, form):
        first.setdefault(fault.steps, fault)  # one per place: the others result from it
    found = [(document.part(steps), _mistake(fault, document)) for steps, fault in first.items()]
    return data, [each for _, each in sorted([*document.repeated_at.items(), *found], key=lambda each: each[0])]


def _mistake(fault: Fault, document: Document) -> Mistake:
    return fault.mistake(f"{document.place(fault.steps)}: {dotted(fault.steps)}")


NAMES: dict[Form, str] = {
    "cluster.yml": "cluster.yml of RKE",
    "server": "config.yaml of an RKE2 server",
    "agent": "config.yaml of an RKE2 agent",
}


def warnings(data: Raw, form: Form = "cluster.yml") -> Iterator[str]:
    """Yield warnings about valid settings."""
    if form != "cluster.yml":
        return
    yield from rules.warnings(data)
    found = data.get("nodes")
    roles = [value_at(each, "role") for each in found] if isinstance(found, list) else []
    yield from nodes.etcd_warning(sum("etcd" in each for each in roles if isinstance(each, list)))


def _truth(value: object, schema: Raw, steps: Steps) -> object:
    """Return a boolean for a string that is one in YAML 1.1."""
    return WORDS.get(value.lower(), value) if schema.get("type") == "boolean" and isinstance(value, str) else value


def _faults(data: Raw, form: Form) -> Iterator[Fault]:
    if form != "cluster.yml":
        yield from rke2_rules.document_faults(data, load_schema(form))
        return
    yield from rules.keys(data)
    yield from rules.values(data)
    yield from _networks(data)


def _networks(data: Raw) -> Iterator[Fault]:
    """Yield mistakes in the networks of pods and Services, and nodes with addresses in them."""
    values = {path: value_at(data, path) or default for path, default in DEFAULTS.items()}
    invalid = [path for path, value in values.items() if not _is_network(value)]
    for path in invalid:
        what = f"{values[path]!r} is not a network"
        yield Fault(tuple(path.split(".")), what, f"write one such as {DEFAULTS[path]}")
    pods, services, of_api = values.values()
    if invalid:
        return
    if services != of_api:
        what, fix = f"{of_api} differs from {services} of kube-controller", f"write {services} in both places"
        yield Fault(("services", "kube-api", "service_cluster_ip_range"), what, fix)
    dns = value_at(data, "services.kubelet.cluster_dns_server") or None
    if dns is not None and not is_address(str(dns)):
        yield Fault(("services", "kubelet", "cluster_dns_server"), f"{dns!r} is not an IP address", "remove it")
        dns = None
    cluster = Cluster(cluster_cidr=pods, service_cidr=services, cluster_dns=dns)
    machines = data.get("nodes") if isinstance(data.get("nodes"), list) else []
    taken = [Taken(f"nodes[{index}]", address) for index, address in _addresses(machines or [])]
    for found in networks.mistakes(ClusterNetworks(), {"it": cluster}, taken, {"it": len(machines or [])}):
        yield Fault(PLACES[found.field], found.what, found.fix)


def _is_network(value: Any) -> bool:
    try:
        ipaddress.ip_network(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def _addresses(machines: list[object]) -> Iterator[tuple[int, str]]:
    for index, machine in enumerate(machines):
        values = [value_at(machine, name) for name in ("address", "internal_address")]
        yield from ((index, each) for each in {each for each in values if isinstance(each, str) and is_address(each)})
