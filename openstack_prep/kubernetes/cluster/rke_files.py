"""The texts of a cluster's files, from its declaration and the outputs of its stack.

Sources: Cilium (operator/pkg/lbipam/lbipam.go: with a pool, it removes all other addresses from Services without a
class); MetalLB and kube-vip's cloud provider, which also assign addresses to each Service without a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from openstack_prep.base import shell
from openstack_prep.base.errors import Mistake
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import masked
from openstack_prep.kubernetes import cilium, cluster_yml, kube_vip, metallb, rke2
from openstack_prep.kubernetes.agent_pools import AgentPool, members, pools_in
from openstack_prep.kubernetes.cilium import Cilium, Member, address_annotation, leaves_services, settings
from openstack_prep.kubernetes.cluster import rke_parameters, rke_upgrade
from openstack_prep.kubernetes.cluster.rke_related import RkeFields
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.kubernetes.keys.schema import hide, hide_secrets, load_schema, sort_keys
from openstack_prep.kubernetes.kube_vip import KubeVip
from openstack_prep.kubernetes.metallb import MetalLB
from openstack_prep.kubernetes.model import Node, NodeGroup, Role
from openstack_prep.kubernetes.nodes import Machine, nodes_of, taint_warning, unmatched
from openstack_prep.kubernetes.service_pools import Addresses, ServicePool, ranges
from openstack_prep.kubernetes.versions import check_version
from openstack_prep.resources.heat.parameters import items
from openstack_prep.resources.heat.stacks import Outputs

# --- addon ------------------------------------------------------------------------------------


PATH = 'jsonpath=\'{range .items[?(@.spec.type=="LoadBalancer")]}{.metadata.namespace}{" "}{.metadata.name}{" "}'
PATH += '{.status.loadBalancer.ingress[*].ip}{"\\n"}{end}\''
FILE = "load-balancer-commands.txt"
"""The file with the commands."""
Section = tuple[str, tuple[ServicePool, ...]]


def addon_mistakes(
    metallb: MetalLB | None, cilium: Cilium | None, vip: KubeVip | None, addresses: Addresses
) -> Iterator[Mistake]:
    """Yield load balancers that would work against each other, and addresses that two of them would announce."""
    own = cilium.load_balancer if cilium else None
    sections: list[Section] = [("metallb", metallb.pools)] if metallb else []
    sections += [("cilium.load_balancer", own.pools)] if own else []
    sections += [("kube_vip", vip.pools)] if vip else []
    apart = cilium is not None and own is not None and leaves_services(cilium)
    for index, (name, pools) in enumerate(sections):
        for other, others in sections[:index]:
            if not (apart and "cilium.load_balancer" in (name, other)):
                fix = f"keep one of them: {FILE} moves Services to another load balancer with their addresses"
                yield Mistake(name, f"{other} also assigns addresses to every Service", fix)
            yield from _shared(name, pools, other, others, addresses)


def _shared(
    name: str, pools: tuple[ServicePool, ...], other: str, others: tuple[ServicePool, ...], addresses: Addresses
) -> Iterator[Mistake]:
    for index, pool in enumerate(pools):
        for mine in ranges(pool, addresses):
            for theirs in (each for one in others for each in ranges(one, addresses)):
                if both := mine.overlap(theirs):
                    what = f"{both} is also in a pool of {other}"
                    yield Mistake(f"{name}.pools[{index}]", what, "let only one load balancer have each address")


def addon_commands(manifest: str, cilium: Cilium | None, vip: KubeVip | None, context: str = "") -> str:
    """Return the commands that install Cilium's or kube-vip's pools, and first move the Services of another one.

    Each Service requests the addresses that it has, so that the new load balancer assigns the same ones.
    """
    kubectl = f"kubectl --context {context}" if context else "kubectl"
    of_vip = vip is not None
    name = "kube-vip" if of_vip or cilium is None else "Cilium"
    wanted = kube_vip.ANNOTATION if of_vip or cilium is None else address_annotation(cilium)
    label = f'{kubectl} -n "$namespace" label --overwrite service "$name" {kube_vip.LABEL}; ' if of_vip else ""
    annotate = f'{kubectl} -n "$namespace" annotate --overwrite service "$name" {wanted}="$addresses"'
    lines = [
        f"# {name} assigns the addresses of Services. A cluster without another load balancer only needs step 3.",
        "# 1. Let every Service request the addresses that it has now:",
        f"{kubectl} get services -A -o {PATH} | tr ' ' ',' | sed 's/,/ /; s/,/ /' | "
        f'while read -r namespace name addresses; do [ -z "$addresses" ] || {{ {label}{annotate}; }}; done',
        "# 2. Uninstall the other load balancer the way it was installed, without deleting its pools before. From here",
        "#    to the end of step 3 nobody announces the addresses. For MetalLB, one of:",
        "#    helm uninstall metallb --namespace metallb-system",
        "#    kubectl delete namespace metallb-system",
        f"# 3. Install the pools{' and announcements' * (not of_vip)}:",
        f"{kubectl} apply -f {shell.quote(manifest)}",
    ]
    if of_vip:
        lines += [
            f"{kubectl} apply -f {kube_vip.PROVIDER}",
            '#    kube-vip itself must serve Services on the nodes: its DaemonSet has svc_enable: "true".',
        ]
    lines += ["# 4. Each Service has the same addresses as before:", f"{kubectl} get services -A"]
    return "\n".join(lines) + "\n"


# --- file -------------------------------------------------------------------------------------


METALLB, SERVICE, COMMANDS, REGISTRIES = "metallb.yaml", "cilium-etcd.yaml", "mesh-commands.txt", "registries.yaml"
CILIUM_BALANCER, KUBE_VIP = "cilium-load-balancer.yaml", "kube-vip.yaml"
VALUES = {"rke": "cilium-values.yaml", "rke2": "rke2-cilium-config.yaml"}
"""Helm's values; for RKE2, which runs Helm itself, a manifest that contains them."""
GROUPS = {"rke": ("node",), "rke2": ("server", "agent")}
WANTED = {
    "rke": ("node_names", "node_addresses"),
    "rke2": ("server_names", "server_addresses", "agent_names", "agent_addresses", "api_address"),
}
"""Required outputs of a stack; stacks with external addresses also have node_internal_addresses and the like."""


ONE_PER_NODE = "correct the template: one name and one address per node"

Content = str | Sequence[Raw]
"""A text, or the documents of a YAML file with secrets as ``Secret``."""


def names(cluster: RkeFields) -> list[str]:
    """Return the names of the files that do not depend on the nodes."""
    first = [cluster_yml.FILE] if cluster.distribution == "rke" else []
    return [*first, *_cluster_files(cluster)]


def texts(cluster: RkeFields, outputs: Outputs, *, openly: bool) -> dict[str, str]:
    """Return the files' texts by name, with secrets as asterisks unless ``openly``.

    Raises SpecError for nodes without a group.
    """
    found = {**_node_files(cluster, outputs), **_cluster_files(cluster)}
    return {
        name: content if isinstance(content, str) else dump(*(content if openly else map(masked, map(hide, content))))
        for name, content in found.items()
    }


def _node_files(cluster: RkeFields, outputs: Outputs) -> Mapping[str, Content]:
    """Return the files of the nodes: one per node of RKE2, or cluster.yml for RKE."""
    declared = as_declared(cluster, outputs)
    seconds = [each for group in GROUPS["rke2"] for each in outputs.values.get(f"{group}_second_addresses") or ()]
    nodes = [
        replace(node, second_address=second or "") for node, second in zip_longest(_nodes(declared, outputs), seconds)
    ]
    if cluster.distribution == "rke":
        return {cluster_yml.FILE: [cluster_yml.document(declared, nodes, cluster.name)]}
    api, outer = outputs.values["api_address"], outputs.values.get("api_floating_address")
    sans = [*filter(None, [outer]), *items(outputs.parameters.get("tls_san") or ())]
    token, agent_token = (cluster.related.secret_parameter(cluster, name) for name in ("token", "agent_token"))
    with_tokens = rke_parameters.without_tokens_of_stack(declared)
    configs = rke2.documents(with_tokens, nodes, api=api, token=token, agent_token=agent_token, tls_san=sans)
    in_pools = members(pools_in(outputs.parameters))
    pools: list[AgentPool | None] = [*[None] * (len(nodes) - len(in_pools)), *in_pools]
    for node, pool in zip(nodes, pools, strict=True):
        role = "server" if rke2.is_server(node) else "agent"
        keys = rke_parameters.shown_keys(cluster, role, outputs.parameters, pool)
        configs[node.name] = sort_keys(
            hide_secrets(configs[node.name] | keys, load_schema("server")), load_schema("server")
        )
    logins = rke2.registries(declared)
    return {f"{name}.yaml": [each] for name, each in configs.items()} | ({REGISTRIES: [logins]} if logins else {})


def _nodes(declared: RkeFields, outputs: Outputs) -> list[Node]:
    """Return the nodes of a stack: ``roles`` of a cluster count its servers and agents, not the nodes of pools."""
    listed, pools = machines(declared, outputs), members(pools_in(outputs.parameters))
    own = len(listed) - len(pools)
    workers = replace(declared, roles=(NodeGroup(nodes="0-", roles=("worker",)),))
    added = zip(nodes_of(workers, listed[own:]) if pools else (), pools, strict=True)
    return [
        *nodes_of(declared, listed[:own]),
        *(replace(node, taints=tuple(items(pool.config.get("node-taint") or ()))) for node, pool in added),
    ]


def as_declared(cluster: RkeFields, outputs: Outputs | None) -> RkeFields:
    """Return a cluster with the defaults that its stack and Cilium provide."""
    if cluster.distribution == "rke":
        user = cluster.user or (outputs.values.get("login_user") if outputs else None)
        plugin = cluster.network_plugin or ("none" if cluster.cilium else None)
        return replace(cluster, user=user, network_plugin=plugin)
    cni = ",".join(items(outputs.parameters.get("cni") or ())) if outputs else ""
    plugin = cluster.network_plugin or ("cilium" if cluster.cilium else cni or None)
    roles = cluster.roles or (_servers_and_agents(outputs) if outputs else ())
    return replace(cluster, network_plugin=plugin, roles=roles)


def _servers_and_agents(outputs: Outputs) -> tuple[NodeGroup, ...]:
    """Return the roles of the nodes of an RKE2 stack; by default its servers run no pods."""
    servers, workers = (len(outputs.values[f"{group}_names"]) for group in GROUPS["rke2"])
    agents = workers - len(members(pools_in(outputs.parameters)))
    works: tuple[Role, ...] = ("worker",)
    both = not workers or str(outputs.parameters.get("server_taint", True)).lower() == "false"
    first = NodeGroup(nodes=f"0-{servers - 1}", roles=("controlplane", "etcd", *(works if both else ())))
    return (first, NodeGroup(nodes=f"{servers}-", roles=works)) if agents else (first,)


def _cluster_files(cluster: RkeFields) -> dict[str, Content]:
    """Return the files for kubectl and Helm, which do not depend on the nodes."""
    found: dict[str, Content] = {}
    if cluster.distribution == "rke2" and cluster.kubernetes_version:
        found[rke_upgrade.FILE] = rke_upgrade.documents(cluster)
    if cluster.metallb:
        found[METALLB] = metallb.document(cluster.metallb, cluster.related.addresses(cluster))
    if cluster.cilium:
        me, members = member(cluster), all_members(cluster)
        values = cilium.document(me, members)
        found[VALUES[cluster.distribution]] = [
            values if cluster.distribution == "rke" else cilium.helm_chart_config(values)
        ]
        if manifests := cilium.manifests(me):
            found[SERVICE] = manifests
        if balancer := cilium.load_balancer_documents(me.cilium, me.addresses):
            found[CILIUM_BALANCER] = balancer
            found[FILE] = addon_commands(f"{cluster.directory}/{CILIUM_BALANCER}", me.cilium, None)
        if commands := cilium.hint(members):
            found[COMMANDS] = commands
    if cluster.kube_vip:
        found[KUBE_VIP] = kube_vip.document(cluster.kube_vip, cluster.related.addresses(cluster))
        found[FILE] = addon_commands(f"{cluster.directory}/{KUBE_VIP}", None, cluster.kube_vip)
    return found


def member(cluster: RkeFields) -> Member:
    """Return a cluster as a member of Cilium's mesh; without a declared release, with the distribution's."""
    assert cluster.cilium is not None
    release = cluster.cilium.version or settings.DEFAULT[cluster.distribution]
    return Member(
        name=cluster.name,
        cilium=replace(cluster.cilium, version=release),
        cluster=cluster,
        old_metallb=cluster.metallb is not None and cluster.metallb.manifests == "configmap",
        by_kube_vip=cluster.kube_vip is not None,
        addresses=cluster.related.addresses(cluster),
        values_file=f"{cluster.directory}/{VALUES[cluster.distribution]}",
    )


def all_members(cluster: RkeFields) -> list[Member]:
    """Return all clusters of the spec that have Cilium."""
    return [member(each) for each in cluster.related.clusters.values() if each.cilium]


def machines(cluster: RkeFields, outputs: Outputs) -> list[Machine]:
    """Return name, address and internal address of the nodes in the outputs of a stack."""
    return [(name, address, inner) for name, address, inner in _rows(cluster, outputs)]


def _rows(cluster: RkeFields, outputs: Outputs) -> Iterator[tuple[Any, ...]]:
    values = outputs.values
    for group in GROUPS[cluster.distribution]:
        outer = values[f"{group}_addresses"]
        inner = values.get(f"{group}_internal_addresses") or outer
        yield from zip(values[f"{group}_names"], outer, inner, strict=True)


# --- checks -------------------------------------------------------------------------------


def mistakes(cluster: RkeFields, outputs: Outputs | None) -> Iterator[Mistake]:
    """Yield all mistakes in the files; ``outputs`` is None until the stack is complete."""
    found = list(output_mistakes(cluster, outputs) if outputs else _template_mistakes(cluster))
    yield from _coded(ClusterCode.STACK, found)
    usable = outputs if not found else None
    declared, nodes = as_declared(cluster, usable), None
    count = count_nodes(cluster, usable)
    if count is not None:
        pools = pools_in(usable.parameters) if usable else rke_parameters.declared_pools(cluster)
        found = list(unmatched(declared, count - len(members(pools))))
        yield from _coded(ClusterCode.CONFIG, found)
        nodes = _nodes(declared, usable) if usable and not found else None
    of = cluster_yml if cluster.distribution == "rke" else rke2
    yield from _coded(ClusterCode.CONFIG, of.mistakes(declared, nodes))
    yield from _coded(ClusterCode.STACK, rke_parameters.mistakes(declared))
    yield from _balancer_mistakes(cluster)


def _balancer_mistakes(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield mistakes in the sections of load balancers and of Cilium."""
    addresses = cluster.related.addresses(cluster)
    if cluster.metallb:
        for mistake in metallb.mistakes(cluster.metallb, addresses, cluster.kubernetes_version):
            yield replace(mistake, where=f"metallb.{mistake.where}", code=ClusterCode.METALLB)
    if cluster.kube_vip:
        for mistake in kube_vip.mistakes(cluster.kube_vip, addresses):
            yield replace(mistake, where=f"kube_vip.{mistake.where}", code=ClusterCode.KUBE_VIP)
    both = addon_mistakes(cluster.metallb, cluster.cilium, cluster.kube_vip, addresses)
    yield from _coded(ClusterCode.BALANCERS, both)
    if cluster.cilium:
        found = cilium.mistakes(member(cluster), all_members(cluster), cluster.metallb, addresses)
        for mistake in _coded(ClusterCode.CILIUM, found):
            in_section = mistake.where not in ("name", "network_plugin")
            yield replace(mistake, where=f"cilium.{mistake.where}") if in_section else mistake


def _coded(code: ClusterCode, found: Iterable[Mistake]) -> Iterator[Mistake]:
    """Yield mistakes, those without a code of their own with this one."""
    return (replace(mistake, code=mistake.code or code) for mistake in found)


def warnings(cluster: RkeFields, outputs: Outputs | None) -> Iterator[str]:
    """Yield warnings about valid settings; those about nodes need the outputs of the stack."""
    if cluster.ssh_key_path and not Path(cluster.ssh_key_path).exists():
        yield f"ssh_key_path: {cluster.ssh_key_path} does not exist on this machine; run rke where it exists"
    if cluster.distribution == "rke2":
        yield from rke_parameters.warnings(as_declared(cluster, None))
        version = cluster.kubernetes_version
        yield from (f"kubernetes_version: {each}" for each in (check_version(version) if version else ()))
    if outputs is not None:
        declared = as_declared(cluster, outputs)
        of = cluster_yml if cluster.distribution == "rke" else rke2
        nodes = _nodes(declared, outputs)
        yield from of.warnings(declared, nodes)
        if cluster.distribution == "rke" or cluster.related.stack(cluster) is None:  # or else the stack warns
            yield from taint_warning([node.taints for node in nodes])
    yield from cilium.warnings(member(cluster)) if cluster.cilium else ()
    if cluster.metallb:
        yield from metallb.warnings(cluster.metallb, cluster.related.addresses(cluster), cluster.config or {})


def count_nodes(cluster: RkeFields, outputs: Outputs | None) -> int | None:
    """Return the number of nodes that the stack has or, by its parameters, will have; None when unknown."""
    if outputs:
        return len(machines(cluster, outputs))
    counts = list(rke_parameters.counts(cluster).values())
    return sum(map(int, counts)) if all(count.isdecimal() for count in counts) else None


def planned_nodes(cluster: RkeFields, outputs: Outputs) -> int | None:
    """Return the number of nodes that the stack will have; None when it does not change or is unknown."""
    counts = rke_parameters.counts(cluster)
    same = all(str(outputs.parameters.get(name)) == count for name, count in counts.items())
    return None if same else count_nodes(cluster, None)


def _template_mistakes(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield outputs that the template of a stack of the spec does not have."""
    template = cluster.related.template(cluster)
    if template is not None:
        offered = template.get("outputs") or {}
        missing = [name for name in WANTED[cluster.distribution] if name not in offered]
        yield from [missing_outputs(cluster, missing)] if missing else []


def output_mistakes(cluster: RkeFields, outputs: Outputs) -> Iterator[Mistake]:
    """Yield missing and invalid outputs of a stack."""
    missing = [name for name in WANTED[cluster.distribution] if outputs.values.get(name) is None]
    if missing:
        yield missing_outputs(cluster, missing)
        return
    for group in GROUPS[cluster.distribution]:
        lists = [outputs.values.get(f"{group}_{what}") for what in ("names", "addresses", "internal_addresses")]
        if not all(isinstance(each, list) for each in lists[:2]) or len({len(each) for each in lists if each}) > 1:
            what = (
                f"stack/{outputs.stack}: outputs {group}_names and {group}_addresses are not lists of the same length"
            )
            yield Mistake("stack", what, ONE_PER_NODE)
            return
    in_pools = len(members(pools_in(outputs.parameters))) if cluster.distribution == "rke2" else 0
    if in_pools > len(outputs.values.get("agent_names") or ()):
        what = f"stack/{outputs.stack}: output agent_names has fewer nodes than the {in_pools} of its pools"
        yield Mistake(
            "stack", what, "correct the template: agent_names lists the other agents, then the nodes of the pools"
        )
        return
    for name in ("api_address",) if cluster.user else ("api_address", "login_user"):
        value = outputs.values.get(name)
        if value is not None and not (isinstance(value, str) and re.fullmatch(r"[\w.:-]+", value)):
            yield Mistake(
                "stack", f"stack/{outputs.stack}: output {name} is not an address or name", "correct the template"
            )
    rows = list(_rows(cluster, outputs))
    if not rows:
        yield Mistake("stack", f"stack/{outputs.stack} has no nodes", "set the number of nodes to at least 1")
    if unknown := [str(name) for name, *addresses in rows if not (name and all(addresses))]:
        what = f"stack/{outputs.stack} has no address of {', '.join(unknown)}"
        yield Mistake("stack", what, "check that these servers exist: openstack server list")
    elif not all(isinstance(each, str) for row in rows for each in row):
        what = f"stack/{outputs.stack}: names and addresses of nodes are not all strings"
        yield Mistake("stack", what, ONE_PER_NODE)


def missing_outputs(cluster: RkeFields, missing: Iterable[str]) -> Mistake:
    """Return the mistake for a stack without required outputs."""
    what = f"stack/{cluster.stack} has no output {', '.join(missing)}"
    fix = f"add it to the outputs of the template, or use shipped:{cluster.distribution}-cluster.yaml"
    return Mistake("stack", what, fix)
