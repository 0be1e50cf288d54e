"""Upgrades of RKE2: the Plans of the system-upgrade-controller, and versions that do not fit the nodes that run.

Sources: RKE2's documentation, "Automated Upgrades"; rancher/system-upgrade-controller,
pkg/apis/upgrade.cattle.io/v1/types.go (PlanSpec, DrainSpec); Kubernetes' "Version Skew Policy": a kubelet must not be
newer than kube-apiserver, and kube-apiserver is upgraded by one minor version at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw, Values
from openstack_prep.kubernetes.cluster import rke_parameters
from openstack_prep.kubernetes.cluster.rke_related import RkeFields
from openstack_prep.kubernetes.convert.versions import minor_of
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.resources.files.marked_files import documents as read_documents
from openstack_prep.resources.heat.heat_flow import TRUTH
from openstack_prep.resources.heat.heat_parameters import items

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
    if any("etcd" in each.roles and "controlplane" not in each.roles for each in cluster.roles):
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
    default = next((each.url for each in cluster.private_registries if each.is_default), "")
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
        spec["prepare"] = {"image": image, "args": ["prepare", before[-1]["metadata"]["name"]]}
    if name == "agents":
        spec["drain"] = {"force": True, "skipWaitForDeleteTimeout": 60}
    metadata = {"name": f"rke2-{name}", "namespace": "system-upgrade"}
    return {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": metadata,
        "spec": spec | {"upgrade": {"image": image}},
    }


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
    return Mistake("kubernetes_version", what, fix, code=Code.CLUSTER_VERSION)


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


def _new_agents(cluster: RkeFields, live: Raw) -> Iterator[str]:
    """Yield the parameters whose change creates agents, or replaces them.

    A check of the stack has the preview that Heat made of it, but runs beside this one.
    """
    count, before = rke_parameters.counts(cluster).get("agent_count", ""), str(live.get("agent_count", ""))
    if count.isdecimal() and before.isdecimal():
        removed = _wanted(cluster, "agents_to_remove", live) - {*items(live.get("agents_to_remove") or ())}
        if int(count) > int(before):
            yield "agent_count"
        if removed and int(count) + len(removed) > int(before):
            yield "agents_to_remove"
    yield from (name for name in REPLACING if _differs(cluster, name, live))


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
    was, will = ([TRUTH.get(each.lower(), each) for each in items(value)] for value in (before, after))
    return was != will
