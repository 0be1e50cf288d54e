"""Networks in the files of a cluster, and the outputs of a run: path, next commands, warnings."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace

from openstack_prep.kubernetes import cilium, cluster_yml, rke2
from openstack_prep.kubernetes.cluster import moving
from openstack_prep.kubernetes.cluster.rke_files import COMMANDS, VALUES, all_members, member, mistakes, warnings
from openstack_prep.kubernetes.cluster.rke_related import RkeFields
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.resources.files.marked_files import documents
from openstack_prep.resources.orchestration.stack_outputs import Outputs

PLACES = {
    "cluster_cidr": ("cluster-cidr", "services.kube-controller.cluster_cidr"),
    "service_cidr": ("service-cidr", "services.kube-api.service_cluster_ip_range"),
}
"""The keys of config.yaml and cluster.yml that correspond to fields of a cluster."""


def networks_in(there: Iterable[str]) -> dict[str, str]:
    """Return the networks of pods and Services in files, by the names of their fields."""
    read = [each for text in there for each in documents(text) or ()]
    found = {}
    for name, places in PLACES.items():
        values = (value_at(document, place) for document in read for place in places)
        found[name] = next((each for each in values if isinstance(each, str)), None)
    return {name: value for name, value in found.items() if value}


def run_outputs(cluster: RkeFields, outputs: Outputs | None, folder: str) -> dict[str, str]:
    """Return the outputs for written files: their path, the next commands, warnings."""
    known = outputs if outputs and not list(mistakes(cluster, outputs)) else None
    values = {"path": folder} if cluster.distribution == "rke2" else {"path": f"{folder}/{cluster_yml.FILE}"}
    if known:
        values["next"] = _one_line(_next(cluster, known, folder))
        values["then"] = "; ".join(_later(cluster, folder))
        values["warning"] = "; ".join(warnings(cluster, known))
    return {name: text for name, text in values.items() if text}


def _later(cluster: RkeFields, folder: str) -> Iterator[str]:
    """Yield the files with commands for later, and when to run them."""
    if cluster.kube_vip or (cluster.cilium and cluster.cilium.load_balancer):
        yield f"{folder}/{moving.FILE}, when {'the cluster' if cluster.kube_vip else 'Cilium'} runs"
    if _in_a_mesh(cluster):
        yield f"{folder}/{COMMANDS}, when all clusters run"


def _next(cluster: RkeFields, outputs: Outputs, folder: str) -> str:
    """Return the commands for the kubeconfig and for Cilium, whose commands in a mesh are in a file."""
    if cluster.cilium is None or (_in_a_mesh(cluster) and cluster.cilium.mesh == "clustermesh-apiserver"):
        return _kubeconfig(cluster, outputs, folder)
    me = replace(member(cluster), values_file=f"{folder}/{VALUES[cluster.distribution]}")
    return f"{_kubeconfig(cluster, outputs, folder)}\n{cilium.install(me)}"


def _in_a_mesh(cluster: RkeFields) -> bool:
    return cluster.cilium is not None and cluster.cilium.mesh != "none" and bool(cilium.hint(all_members(cluster)))


def _kubeconfig(cluster: RkeFields, outputs: Outputs, folder: str) -> str:
    if cluster.distribution == "rke":
        return cluster_yml.kubeconfig_hint(shlex.quote(f"{folder}/{cluster_yml.FILE}"))
    api = outputs.values.get("api_floating_address") or outputs.values["api_address"]
    server = (outputs.values.get("node_floating_addresses") or outputs.values["server_addresses"])[0]
    user, kubeconfig = cluster.user or cluster_yml.DEFAULT_USER, shlex.quote(f"{folder}/kubeconfig")
    return rke2.kubeconfig_hint(user, server, api, kubeconfig, name=cluster.name)


def _one_line(commands: str) -> str:
    return commands.replace("\n", " && ")
