"""How workloads move to a new cluster beside the old one.

Source: Rancher's documentation of the end of life of RKE1: clusters are replatformed to RKE2; Rancher does not support
a migration in place.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.convert.cluster_keys import included
from openstack_prep.kubernetes.convert.model import FOLDER
from openstack_prep.kubernetes.convert.versions import Target
from openstack_prep.kubernetes.keys.hiding import hide_in_url
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.kubernetes.model import Node
from openstack_prep.kubernetes.rke2 import is_server

FOR_KUBECTL = ("addons.yaml", "rke2-")
FOR_CLOUD = "cloud.conf"


def moving_steps(
    data: Raw, target: Target, nodes: Sequence[Node], files: Sequence[str], *, openly: bool
) -> tuple[str, ...]:
    """Return the steps, in their order, for this cluster; ``files`` are the names of the converted files.

    URLs have asterisks for logins and queries unless ``openly``.
    """
    urls = included(value_at(data, "addons_include"))
    urls = urls if openly else list(map(hide_in_url, urls))
    return (*_before(), *_new_cluster(data, target, nodes, files, urls), *_workloads(), *_addresses(data), *_end())


def _before() -> Iterator[str]:
    yield "Keep the old cluster running: Rancher supports no migration in place, only a new cluster next to the old."
    yield "Save the state of the old cluster: rke etcd snapshot-save, and kubectl get all,pv,pvc,ingress -A -o yaml."
    yield "Lower the TTL of the DNS names of Services and of the API to 60 seconds, a day before the move."


def _new_cluster(
    data: Raw, target: Target, nodes: Sequence[Node], files: Sequence[str], included: Sequence[str]
) -> Iterator[str]:
    servers = sum(map(is_server, nodes))
    yield (
        f"Write the spec of the new cluster: openstack-prep example rke2 > new.yaml, with server_count {servers}, "
        f"agent_count {len(nodes) - servers}, kubernetes_version {target.version}, other names than the old cluster's, "
        "and an address pool of its own, which does not overlap with the old pool. Put the keys of the converted "
        "files, except addresses, token and server, into config and roles of the cluster, and into server_config and "
        "agent_config of the stack. If pods of both clusters talk to each other, their networks must not overlap."
    )
    extra = [each for each in files if each.endswith((".pem", "webhook.yaml", "admission.yaml", "audit-policy.yaml"))]
    extra += [each for each in files if each == "registries.yaml"]
    if extra:
        yield f"Have the image or cloud-init put {', '.join(extra)} into {FOLDER} on the new nodes, before RKE2 starts."
    yield "openstack-prep plan new.yaml, then openstack-prep apply new.yaml; nodes are NotReady until the CNI runs."
    applied = [each for each in files if each.startswith(FOR_KUBECTL)]
    commands = [f"kubectl apply -f {shlex.quote(each)}" for each in [*applied, *included]]
    if commands:
        yield f"In the new cluster: {'; '.join(commands)}."
    if value_at(data, "cloud_provider.name") not in (None, "", "none"):
        settings = ", with cloud.conf" if FOR_CLOUD in files else ""
        yield (
            f"Install the cloud controller manager and the CSI driver in the new cluster{settings}, with a cluster "
            "name of its own: until then nodes keep the taint node.cloudprovider.kubernetes.io/uninitialized."
        )
    yield "Install the load balancer, in the order that openstack-prep kubernetes checklist new.yaml prints."


def _workloads() -> Iterator[str]:
    yield "Apply the manifests of the workloads to the new cluster, without Services of type LoadBalancer; test them."
    yield (
        "Move data. With cinder-csi in both clusters of one project: set the reclaim policy of the volumes to Retain "
        '(kubectl patch pv NAME -p \'{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}\'), scale the workload in '
        "the old cluster to 0, and create a PersistentVolume with the same volumeHandle and a claimRef in the new one. "
        "Otherwise back up and restore, for instance with Velero and its file system backup. Never attach a volume in "
        "both clusters."
    )


def _addresses(data: Raw) -> Iterator[str]:
    names = [str(each) for each in value_at(data, "authentication.sans") or ()]
    yield (
        "Create the Services of type LoadBalancer in the new cluster: they get addresses of the new pool, which the "
        "pairs on the new ports allow. Test each at its new address."
    )
    yield "Point the DNS names of the Services to the new addresses, and wait until the old ones see no more requests."
    yield (
        "To keep an address instead: delete the Service in the old cluster, remove the address from the pool in the "
        "old spec and apply it, then add the address to the pool in new.yaml and apply it. Pairs follow their pools."
    )
    if names:
        yield f"Point the names of the API to the new cluster: {', '.join(names)}."


def _end() -> Iterator[str]:
    yield "Check the new cluster: kubectl get nodes; openstack-prep plan new.yaml; with Cilium: cilium status --wait."
    yield (
        "Keep the old cluster until a backup of the new one was restored once. Then delete its Services and claims "
        "with kubectl, run openstack-prep destroy old.yaml, and openstack-prep cleanup --cluster NAME for what is left."
    )
