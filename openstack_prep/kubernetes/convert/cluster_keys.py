"""The keys of nodes, registries, addons and the cloud provider, and those that only concern how RKE installs.

Sources: RKE 1.7 (types/rke_types.go); RKE2's documentation ("Private Registry Configuration"); Kubernetes 1.26 and
later have no built-in cloud providers.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from openstack_prep.base.fields import words
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.convert.model import Draft, Handler, lost, to
from openstack_prep.kubernetes.keys.hiding import hide_in_url

SSH = "RKE2 does not log in to nodes; cloud-init installs it"
DOCKER = "RKE2 contains containerd; docker commands become crictl or nerdctl, and images in Docker are not seen"
IMAGES = "RKE2 has its own images; system-default-registry changes their registry"
ACTION = "is an action of RKE, not a setting"
OTHER_CLOUD = "give it to the chart of the provider's own cloud controller manager"
ADDONS = "addons.yaml"


def _registries(draft: Draft, key: str, value: list[Mapping[str, Any]]) -> None:
    for each in value:
        for name in (name for name, given in each.items() if given not in (None, "", {})):
            place = f"{key}[].{name}"
            if name == "is_default":
                draft.note(place, "system-default-registry" if each[name] is True else None, "")
            elif name == "ecr_credential_plugin":
                draft.note(place, None, "install the plugin, and name it in image-credential-provider-config")
            else:
                draft.note(place, "registries.yaml")


def _addons(draft: Draft, key: str, given: str) -> None:
    value = str(words(given))  # RKE reads true and numbers as texts
    draft.file(key, ADDONS, Secret(value if value.endswith("\n") else f"{value}\n"), "apply it with kubectl")


def included(value: Sequence[Any] | None) -> list[str]:
    """Return addons_include as RKE reads it: true and numbers are texts, and null is an empty one."""
    return [str(words(each)) for each in value or () if each not in (None, "")]


def _include(draft: Draft, key: str, value: list[Any]) -> None:
    for each in included(value):
        draft.note(key, None, f"kubectl apply -f {shlex.quote(hide_in_url(each))}")


def _provider(draft: Draft, key: str, value: str) -> None:
    if value in ("", "none"):
        draft.note(key, None, "none is also RKE2's")
        return
    draft.external = True
    note = "" if value == "external" else f"external: install the cloud controller manager of {value}"
    draft.note(key, "cloud-provider-name", note)


SECTIONS = {
    "global": "Global",
    "load_balancer": "LoadBalancer",
    "block_storage": "BlockStorage",
    "route": "Route",
    "metadata": "Metadata",
}


def _openstack(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    lines = []
    for name, title in SECTIONS.items():
        settings = {each: text for each, text in (value.get(name) or {}).items() if text not in (None, "")}
        if settings:
            lines += [f"[{title}]", *(f"{each}={_plain(text)}" for each, text in settings.items()), ""]
    note = "for openstack-cloud-controller-manager and cinder-csi; prefer an application credential to the password"
    draft.file(key, "cloud.conf", Secret("\n".join(lines)), note)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


NODE = {
    "address": "node-external-ip",
    "internal_address": "node-ip",
    "role": "server or agent, and the disable- keys",
    "hostname_override": "node-name",
    "labels": "node-label",
    "taints": "node-taint",
}
HANDLERS: dict[str, Handler] = {
    **{f"nodes[].{name}": lambda draft, key, value: None for name in NODE},
    "nodes[].nodeName": lost("RKE uses it only inside Rancher"),
    **{f"nodes[].{name}": lost(SSH) for name in ("port", "user", "ssh_agent_auth", "ssh_key", "ssh_key_path")},
    **{f"nodes[].{name}": lost(SSH) for name in ("ssh_cert", "ssh_cert_path")},
    "nodes[].docker_socket": lost(DOCKER),
    "cluster_name": lost("names the kubeconfig of RKE; RKE2's is named default"),
    "kubernetes_version": lambda draft, key, value: None,
    **{name: lost(SSH) for name in ("ssh_key_path", "ssh_cert_path", "ssh_agent_auth", "bastion_host")},
    "private_registries": _registries,
    **{name: lost(DOCKER) for name in ("enable_cri_dockerd", "ignore_docker_version")},
    **{name: lost(DOCKER) for name in ("cri_dockerd_stream_server_address", "cri_dockerd_stream_server_port")},
    "cloud_provider.name": _provider,
    "cloud_provider.useInstanceMetadataHostname": to("node-name-from-cloud-provider-metadata"),
    "cloud_provider.openstackCloudProvider": _openstack,
    **{
        f"cloud_provider.{name}CloudProvider": lost(OTHER_CLOUD)
        for name in ("vsphere", "azure", "aws", "harvester", "custom")
    },
    "addon_job_timeout": lost("RKE2 installs its charts by Helm, which retries"),
    "addons": _addons,
    "addons_include": _include,
    "upgrade_strategy": lost("upgrade RKE2 by system-upgrade-controller, or node by node"),
    "restore": lost(ACTION),
    "rotate_certificates": lost(f"{ACTION}; use rke2 certificate rotate"),
    "rotate_encryption_key": lost(f"{ACTION}; use rke2 secrets-encrypt rotate"),
    "prefix_path": lost("data-dir is RKE2's folder for data"),
    "win_prefix_path": lost("data-dir is RKE2's folder for data"),
    "system_images": lost(IMAGES),
}
