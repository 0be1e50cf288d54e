"""What an apply does not change on nodes that run: their version, labels and taints.

For the version there are the Plans of the system-upgrade-controller, and refusals of versions that do not fit.

Sources: RKE2's documentation, "Automated Upgrades"; rancher/system-upgrade-controller 0.12 and later,
pkg/apis/upgrade.cattle.io/v1/types.go (PlanSpec, DrainSpec), pkg/upgrade/job/job.go (a job without a deadline of its
own has 15 minutes, in which it also waits); rancher/rke2-upgrade ed2e59b, scripts/upgrade.sh (prepare waits for nodes
with the label of masters, which K3s no longer sets since 729403345, and which are the ones that wait for those with
etcd alone; so the Plans wait by kubectl, which the image has); Kubernetes' "Version Skew Policy": a kubelet must not be
newer than kube-apiserver, and kube-apiserver is upgraded by one minor version at a time; rancher/rke2-docs 0267b20,
advanced.md, "Node Labels and Taints": both keys count when a node registers, and kubectl changes them later.
The namespace system-upgrade needs no labels from here: with profile cis, which forbids privileged pods elsewhere, the
controller's own manifest allows them since v0.12.0 (manifests/system-upgrade-controller.yaml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base import shell
from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw, Values, value_at
from openstack_prep.kubernetes import agent_pools
from openstack_prep.kubernetes.cluster import rke_parameters
from openstack_prep.kubernetes.cluster.rke_related import RkeFields
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.kubernetes.versions import minor_of
from openstack_prep.resources.files.marked_files import documents as read_documents
from openstack_prep.resources.heat.flow import TRUTH
from openstack_prep.resources.heat.parameters import items
from openstack_prep.resources.orchestration.record import StackRecord

FILE = "upgrade.yaml"
IMAGE = "rancher/rke2-upgrade"
CONTROL_PLANE, ETCD = "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/etcd"
VERSION = "rke2_version"
"""Parameter of the stack."""


def documents(cluster: RkeFields) -> list[Raw]:
    """Return the Plans, each of which waits for the one before: nodes with etcd alone, servers, agents.

    The controller changes nothing on nodes that run the version already.
    """
    plans: list[Raw] = []
    if any("etcd" in role.roles and "controlplane" not in role.roles for role in cluster.roles):
        plans.append(_plan(cluster, "etcd", [_is(ETCD), _is_not(CONTROL_PLANE)], plans))
    plans.append(_plan(cluster, "servers", [_is(CONTROL_PLANE)], plans))
    plans.append(_plan(cluster, "agents", [_is_not(CONTROL_PLANE), _is_not(ETCD)], plans))
    return plans


def version_in(text: str) -> str | None:
    """Return the version in a written file; None if it is no such file."""
    plan = (read_documents(text) or [None])[0]
    version = value_at(plan, "spec.version")
    return version if isinstance(version, str) else None


def _plan(cluster: RkeFields, name: str, nodes: list[Raw], before: Sequence[Raw]) -> Raw:
    default = next(
        (private_registry.url for private_registry in cluster.private_registries if private_registry.is_default), ""
    )
    image = f"{default}/{IMAGE}" if default else IMAGE
    spec: Values = {
        "version": cluster.kubernetes_version,
        "concurrency": 1,
        "serviceAccountName": "system-upgrade",
        "nodeSelector": {"matchExpressions": nodes},
        "tolerations": [{"operator": "Exists"}],
        "cordon": True,
    }
    if before:
        spec |= {"prepare": {"image": image, **_wait_for(before[-1]["spec"])}, "jobActiveDeadlineSecs": 0}
    if name == "agents":
        spec["drain"] = {"force": True, "skipWaitForDeleteTimeout": 60}
    metadata = {"name": f"rke2-{name}", "namespace": "system-upgrade"}
    return {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": metadata,
        "spec": spec | {"upgrade": {"image": image}},
    }


def _wait_for(earlier: Raw) -> Raw:
    """Return the command that waits until the nodes of an earlier Plan run its version."""
    signs = {"In": "=", "NotIn": "!="}
    nodes = [
        f"{matchexpression['key']}{signs[matchexpression['operator']]}true"
        for matchexpression in earlier["nodeSelector"]["matchExpressions"]
    ]
    version = re.sub(r"-rc\d+", "", earlier["version"])  # a kubelet does not show it
    is_met = f"--for=jsonpath={{.status.nodeInfo.kubeletVersion}}={version}"
    # a negative time is a week
    return {"command": ["kubectl"], "args": ["wait", "nodes", f"--selector={','.join(nodes)}", is_met, "--timeout=-1s"]}


def _is(label: str) -> Raw:
    return {"key": label, "operator": "In", "values": ["true"]}


def _is_not(label: str) -> Raw:
    return {"key": label, "operator": "NotIn", "values": ["true"]}


def mistakes(cluster: RkeFields, live: Raw) -> Iterator[Mistake]:
    """Yield why the nodes of an existing stack, whose parameters are ``live``, cannot get the declared version."""
    wanted, running = cluster.kubernetes_version, str(live.get(VERSION) or "")
    new, old = minor_of(wanted), minor_of(running)
    if cluster.distribution != "rke2" or new is None or old is None or new == old:
        return
    change = f"{running} -> {wanted}"
    if new < old:
        fix = "write the version that the nodes run; a new cluster can have an older one"
        yield _mistake(f"{change}: Kubernetes has no way back to an earlier minor version", fix)
    elif new > old + 1:
        fix = f"upgrade to a version v1.{old + 1} first"
        yield _mistake(f"{change}: Kubernetes is upgraded by one minor version at a time", fix)
    elif added := list(_new_agents(cluster, live)):
        what = f"{change}: new agents would be newer than the servers that run ({', '.join(added)})"
        same = " and ".join(f"{name} {live.get(name, '')}".strip() for name in added)
        fix = f"leave {same} until you have upgraded the nodes that run (docs/kubernetes.md)"
        yield _mistake(what, fix)


def _mistake(what: str, fix: str) -> Mistake:
    return Mistake("kubernetes_version", what, fix, code=ClusterCode.VERSION)


REPLACING = (
    "agent_image",
    "agent_volume_size",
    "agent_group_policy",
    "volume_type",
    "key_name",
    "config_drive",
    "zones",
)
"""Parameters whose change replaces agents (Heat 27, engine/resources/openstack/nova/server.py)."""
POOL = ("image", "name")
"""The same of a pool."""


def _new_agents(cluster: RkeFields, live: Raw) -> Iterator[str]:
    """Yield the parameters whose change creates agents, or replaces them.

    A check of the stack has the preview that Heat made of it, but runs beside this one.
    """
    pools = [declared_pool for declared_pool in rke_parameters.declared_pools(cluster) if not declared_pool.is_empty]
    groups = [("agent_count", "agents_to_remove"), *((x.parameter("count"), x.parameter("to_remove")) for x in pools)]
    for number, to_remove in groups:  # a stack of an earlier template has no pools
        count = rke_parameters.counts(cluster).get(number, "")
        before = str(live.get(number, "" if number == "agent_count" else "0"))
        if count.isdecimal() and before.isdecimal():
            removed = _wanted(cluster, to_remove, live) - {*items(live.get(to_remove) or ())}
            if int(count) > int(before):
                yield number
            if removed and int(count) + len(removed) > int(before):
                yield to_remove
    names = (*REPLACING, *(pool.parameter(name) for pool in pools for name in POOL))
    yield from (name for name in names if _differs(cluster, name, live))


def _wanted(cluster: RkeFields, name: str, live: Raw) -> set[str]:
    """Return the items of a parameter that an update sets; those of the stack if nobody knows them."""
    wanted = rke_parameters.value_of(cluster, name)
    return {*items(live.get(name) or () if wanted is None else wanted)}


def _differs(cluster: RkeFields, name: str, live: Raw) -> bool:
    """Whether an update changes a parameter; a stack of an earlier template may lack it, and has its default."""
    if name == "volume_type" and str(rke_parameters.value_of(cluster, "agent_volume_size")) == "0":
        return False
    declared = (cluster.related.template(cluster) or {}).get("parameters") or {}
    before, after = live.get(name, (declared.get(name) or {}).get("default")), rke_parameters.value_of(cluster, name)
    if before is None or after is None:
        return False
    was, will = ([TRUTH.get(item.lower(), item) for item in items(value)] for value in (before, after))
    return was != will


AGENTS = re.compile(f"agents|{agent_pools.GROUP.pattern}")
"""The groups of the template whose members are agents."""


def new_agent_warnings(cluster: RkeFields, record: StackRecord) -> Iterator[str]:
    """Yield a warning about agents that an update creates: a stack does not say which version its servers run."""
    places = [effect.place for effect in record.preview if effect.verb in ("add", "replace")]
    parts = [each.split(".") for each in (*places, *record.missing)]
    coming = sorted({".".join(part[:2]) for part in parts if AGENTS.fullmatch(part[0]) and len(part) > 1})
    if coming and cluster.kubernetes_version:
        what = f"{', '.join(coming)} will install {cluster.kubernetes_version}, and must not be newer than the servers"
        yield f"{what}; if kubectl get nodes shows an earlier version on servers, upgrade these first"


# --- labels and taints ------------------------------------------------------------------------


REGISTERED = {"node-label": "label", "node-taint": "taint"}
"""Keys of config.yaml that only count when a node registers, and the commands of kubectl that change them later."""


def registration_warnings(there: Mapping[str, str], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands for nodes that run; ``there`` are the written files by name, ``texts`` those of the spec."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(there.keys() & texts.keys()):
        before, after = ((read_documents(each[name]) or [None])[0] for each in (there, texts))
        if isinstance(before, Mapping) and isinstance(after, Mapping) and "node-name" in after:
            for key, command in REGISTERED.items():
                changes = list(_changes(items(before.get(key) or ()), items(after.get(key) or ())))
                if changes:
                    wanted.setdefault((command, *changes), []).append(str(after["node-name"]))
    for (command, *changes), nodes in wanted.items():
        printed = shell.join(["kubectl", command, "nodes", "--overwrite", *nodes, *changes])
        yield f"nodes that run keep their {command}s, which RKE2 sets when a node registers; after the apply: {printed}"


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that turn some labels or taints into others; a minus at the end removes one."""
    names = {_identity(each) for each in after}
    yield from (each for each in after if each not in before)
    yield from (f"{_identity(each)}-" for each in before if _identity(each) not in names)


def _identity(text: str) -> str:
    """Return the key of a label, or key and effect of a taint, of which a node has one each."""
    key, equals, value = text.partition("=")
    _, colon, effect = (value if equals else key).partition(":")
    return f"{key}{colon}{effect}" if equals else text
