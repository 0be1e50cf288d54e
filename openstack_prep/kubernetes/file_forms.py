"""Files of RKE, RKE2 and Kubernetes, and those that are mistaken for them, by their keys."""

from __future__ import annotations

from collections.abc import Mapping

from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.keys.schema import load_schema

RANCHER = "rancher_kubernetes_engine_config"
"""The key of Rancher's own form of cluster.yml that holds the cluster.yml of RKE."""
OF_COMPOSE = ("image", "build", "ports", "volumes", "environment", "container_name", "depends_on")


def find_cluster_yml(data: Raw) -> str | None:
    """Return the key that only RKE or Rancher has."""
    nodes = data.get("nodes")
    if isinstance(nodes, list) and any(isinstance(node, Mapping) and "role" in node for node in nodes):
        return "nodes"
    return next((each for each in (RANCHER, "kubernetes_version") if each in data), None)


def find_registries(data: Raw) -> str | None:
    """Return the first key if registries.yaml has all of them."""
    names = _names(data)
    return names[0] if names and {*names} <= load_schema("registries")["properties"].keys() else None


def find_agent(data: Raw) -> str | None:
    """Return the first key if it is a config.yaml of RKE2 with no key that only servers have."""
    is_agent = "server" in data and {*_names(data)} <= load_schema("agent")["properties"].keys()
    return _names(data)[0] if is_agent else None


def find_server(data: Raw) -> str | None:
    """Return the first key if servers of RKE2 have most of them."""
    names, known = _names(data), load_schema("server")["properties"].keys()
    return names[0] if names and sum(name in known for name in names) * 2 > len(names) else None


def find_kubeconfig(data: Raw) -> str | None:
    return "kind" if data.get("kind") == "Config" and isinstance(data.get("apiVersion"), str) else None


def find_objects(data: Raw) -> str | None:
    """Return ``kind`` if it is an object of Kubernetes; an install-config.yaml of OpenShift may have both keys, too."""
    is_object = all(isinstance(data.get(each), str) for each in ("kind", "apiVersion")) and "platform" not in data
    return "kind" if is_object else None


def find_compose(data: Raw) -> str | None:
    """Return the services if one of them is no service of RKE and has keys of Docker Compose."""
    services = data.get("services")
    known = load_schema("cluster.yml")["properties"]["services"]["properties"]
    others = [each for name, each in services.items() if name not in known] if isinstance(services, Mapping) else []
    is_compose = any(isinstance(each, Mapping) and {*OF_COMPOSE} & each.keys() for each in others)
    return "services" if "nodes" not in data and is_compose else None


def _names(data: Raw) -> list[str]:
    """Return the keys as RKE2 reads them: a plus sign adds to the list of another file."""
    return [str(each).removesuffix("+") for each in data]
