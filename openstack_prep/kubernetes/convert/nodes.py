"""The nodes of a cluster.yml as nodes of RKE2, and the config.yaml of each.

The addresses are those of the old machines; a stack gives the new ones theirs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from openstack_prep.base.fields import is_address
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes import rke2, rke2_rules
from openstack_prep.kubernetes.convert.chart_keys import plugin
from openstack_prep.kubernetes.convert.cluster_keys import NODE
from openstack_prep.kubernetes.convert.model import Draft
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.kubernetes.model import Cluster, Node, Registry, Role

OF_SERVERS = ("kube-apiserver-", "kube-controller-manager-", "kube-scheduler-", "etcd-", "audit-", "pod-security-")
"""Keys of config.yaml, by their beginnings, that only affect pods of the control plane."""
ADDRESSES = {name: NODE[name] for name in ("internal_address", "address")}


def nodes_of(draft: Draft) -> list[Node]:
    """Return the nodes, with a note for each of their keys."""
    external = bool(value_at(draft.data, "services.etcd.external_urls"))
    return [_node(draft, each, external) for each in draft.data["nodes"]]


def _node(draft: Draft, given: Mapping[str, Any], external: bool) -> Node:
    roles = [cast(Role, each) for each in given["role"]]
    if external and "controlplane" in roles:
        roles.append("etcd")
        draft.note("nodes[].role", NODE["role"], "the control plane gets role etcd in place of the external etcd")
    address = str(given["address"])
    inner = str(given.get("internal_address") or address)
    for name in NODE:
        if name in ADDRESSES and given.get(name):
            _note_address(draft, f"nodes[].{name}", str(given[name]), inner)
        elif given.get(name) not in (None, "", [], {}):
            draft.note(f"nodes[].{name}", NODE[name])
    return Node(
        name=str(given.get("hostname_override") or address).lower(),
        address=address,
        internal_address=inner,
        roles=tuple(roles),
        labels=dict(_labels(draft, given.get("labels") or {})),
        taints=tuple(_taints(given.get("taints") or ())),
        config={},
    )


def _note_address(draft: Draft, key: str, address: str, inner: str) -> None:
    """Record what becomes of an address; RKE takes host names, RKE2 addresses alone."""
    becomes = NODE["internal_address" if address == inner else "address"]
    if _is_dual_stack(draft):
        draft.note(key, None, "node-ip needs an address of each IP version: add both on the new nodes")
    elif not is_address(address):
        draft.note(key, None, f"{becomes} must be an IP address, not a host name")
    elif draft.external and becomes == NODE["address"]:
        draft.note(key, None, "the cloud controller manager sets it")
    else:
        draft.note(key, becomes)


def _is_dual_stack(draft: Draft) -> bool:
    return "," in str(draft.config.get("cluster-cidr", ""))


def _labels(draft: Draft, labels: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in labels.items():
        if rke2_rules.kubelet_may_set(str(name)):
            yield str(name), "" if value is None else str(value)
        else:
            command = f"kubectl label node NAME {shlex.quote(f'{name}={value}')}"
            note = f"a kubelet may not set {name}: {command}"
            draft.note("nodes[].labels", None, note)


def _taints(taints: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in taints:
        value = each.get("value")
        yield f"{each['key']}{'' if value in (None, '') else f'={value}'}:{each.get('effect') or 'NoSchedule'}"


def documents(draft: Draft, nodes: Sequence[Node]) -> dict[str, dict[str, object]]:
    """Return the config.yaml of each node by its name."""
    config = dict(draft.config)
    sans = config.pop("tls-san", [])
    first = rke2.first_server(nodes)
    assert first is not None  # rke check refuses a cluster without servers
    found = rke2.documents(_cluster(draft, config), nodes, api=first.internal_address, tls_san=sans)
    named = {str(each.get("hostname_override") or "").lower() for each in draft.data["nodes"]}
    for name, document in found.items():
        for key in ADDRESSES.values():
            if _is_dual_stack(draft) or not is_address(str(document.get(key, ""))):
                document.pop(key, None)  # _note_address says why
        if "tls-san" not in document:  # an agent runs no pods of the control plane
            for key in [each for each in document if each.startswith(OF_SERVERS)]:
                del document[key]
        if name not in named:
            document.pop("node-name")  # RKE names such a node by its address, RKE2 by its host name
    return found


def _cluster(draft: Draft, config: Mapping[str, Any]) -> Cluster:
    return Cluster(
        distribution="rke2",
        network_plugin=plugin(draft),
        external_cloud_provider=draft.external,
        private_registries=tuple(_registries(draft)),
        config=config,
    )


def _registries(draft: Draft) -> Iterator[Registry]:
    for each in draft.data.get("private_registries") or ():
        password = each.get("password")
        yield Registry(
            url=_host(str(each.get("url") or "docker.io")),
            user=each.get("user") or None,
            password=Secret(str(password)) if password not in (None, "") else None,
            is_default=each.get("is_default") is True,
        )


def _host(url: str) -> str:
    """Return the host and port of a registry: RKE2 takes neither a scheme nor a login nor a path."""
    host = url.partition("://")[2].partition("/")[0] if "://" in url else url.partition("/")[0]
    return host.rpartition("@")[2]


def registries(draft: Draft) -> dict[str, object] | None:
    """Return the registries.yaml."""
    return rke2.registries(_cluster(draft, {}))
