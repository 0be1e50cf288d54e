"""Files of other programs that people give to a check of config.yaml, registries.yaml or cluster.yml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.keys.schema import load_schema

RANCHER = "rancher_kubernetes_engine_config"
"""The key of Rancher's own form of cluster.yml that holds the cluster.yml of RKE."""
Foreign: TypeAlias = tuple[str, str, str]
"""The key by which a file is known, what the file is, and the fix."""
BY_KEY = {
    "heat_template_version": "is a template of Heat",
    "clouds": "is a clouds.yaml",
    "write_files": "is user data of cloud-init",
    "runcmd": "is user data of cloud-init",
    "baseDomain": "is an install-config.yaml of OpenShift",
    "pullSecret": "is an install-config.yaml of OpenShift",
    "desiredState": "is the state of a cluster of RKE, with its keys and certificates",
    "all": "is an inventory of Ansible",
}
OF_SPEC = ("rke_clusters", "stacks", "install_config", "exposed_clusters", "role_assignments", "address_pools")
"""Sections of a spec that no other file has."""
LISTS_OF_SPEC = ("networks", "subnets", "routers", "flavors", "images", "security_groups")
"""Sections that may be mappings in files of other programs."""
OF_COMPOSE = ("image", "build", "ports", "volumes", "environment", "container_name", "depends_on")


def foreign_file(data: Raw, form: str, file: str, wanted: str) -> Foreign | None:
    """Return what a file is that is not the ``wanted`` one, ``file`` being its path for a command; None for any other.

    ``form`` is server, agent or registries for files of RKE2, or cluster.yml.
    """
    return _of_ours(data, file) or _of_kubernetes(data, wanted) or _of_rke(data, form, file) or _of_key(data, wanted)


def _of_ours(data: Raw, file: str) -> Foreign | None:
    lists = [each for each in LISTS_OF_SPEC if isinstance(data.get(each), list)]
    key = next((each for each in (*OF_SPEC, *lists) if each in data), None)
    if key is None or "nodes" in data:
        return None
    return key, "is a spec of openstack-prep", f"run openstack-prep apply {file}, then check the files that it writes"


def _of_kubernetes(data: Raw, wanted: str) -> Foreign | None:
    kind, version = data.get("kind"), data.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        return None
    if kind == "Config":
        return "kind", "is a kubeconfig", f"name the {wanted}"
    what = f"is the Kubernetes object {kind} of {version}"
    if version.startswith("provisioning.cattle.io/"):
        fix = f"name the {wanted}; Rancher keeps the keys of RKE2 in spec.rkeConfig"
    else:
        fix = f"name the {wanted}; from Rancher, that is what Edit as YAML shows of the cluster"
    return "kind", what, fix


def _of_rke(data: Raw, form: str, file: str) -> Foreign | None:
    """Return the file of RKE or RKE2 that another option of the command, or none, checks."""
    if RANCHER in data:
        if form != "cluster.yml":
            return RANCHER, "is a cluster.yml of Rancher", f"run openstack-prep rke check {file}"
        if not isinstance(data[RANCHER], Mapping):
            what = f"{RANCHER} of a cluster.yml of Rancher is not a mapping"
            return RANCHER, what, "write the keys of RKE below it"
        return None
    nodes = data.get("nodes")
    of_nodes = isinstance(nodes, list) and any(isinstance(each, Mapping) and "role" in each for each in nodes)
    if form != "cluster.yml" and (of_nodes or "kubernetes_version" in data):
        key = "nodes" if of_nodes else "kubernetes_version"
        return key, "is a cluster.yml of RKE", f"run openstack-prep rke check {file}"
    names = [str(each).removesuffix("+") for each in data]
    if form != "registries" and names and {*names} <= load_schema("registries")["properties"].keys():
        return names[0], "is a registries.yaml of RKE2", f"run openstack-prep rke check --rke2 registries {file}"
    agent, server = (load_schema(each)["properties"].keys() for each in ("agent", "server"))
    if form in ("cluster.yml", "registries") and names and sum(each in server for each in names) * 2 > len(names):
        role = "agent" if {*names} <= agent and "server" in names else "server"
        return str(next(iter(data))), "is a config.yaml of RKE2", f"run openstack-prep rke check --rke2 {role} {file}"
    return None


def _of_key(data: Raw, wanted: str) -> Foreign | None:
    key = next((each for each in BY_KEY if each in data), None)
    if key is not None and "nodes" not in data:
        return key, BY_KEY[key], f"name the {wanted}"
    services = data.get("services")
    known = load_schema("cluster.yml")["properties"]["services"]["properties"]
    others = [each for name, each in services.items() if name not in known] if isinstance(services, Mapping) else []
    if "nodes" not in data and any(isinstance(each, Mapping) and {*OF_COMPOSE} & each.keys() for each in others):
        return "services", "is a file of Docker Compose", f"name the {wanted}"
    return None
