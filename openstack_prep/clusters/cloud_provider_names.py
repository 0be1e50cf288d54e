"""Which Kubernetes cluster a resource was created for, by the names that cloud-provider-openstack gives.  Pure.

Source: cloud-provider-openstack 1.36.0, and the same words in 1.16.0 to 1.35.0: pkg/openstack/loadbalancer.go
(``lbFormat``, ``createOctaviaLoadBalancer``, ``ensureFloatingIP``), loadbalancer_sg.go, loadbalancer_rename.go,
pkg/util/util.go (``CutString255``), pkg/ingress/utils/utils.go and controller/controller.go, pkg/csi/csi.go,
pkg/csi/cinder/controllerserver.go. Volumes of the provider within Kubernetes (up to 1.25):
pkg/volume/cinder/cinder_util.go.

The names of namespaces, Services and Ingresses have no underscore, so the rest of a name is the cluster's, whatever it
contains: ``kube_service_prod_eu_default_web`` belongs to ``prod_eu``, not to ``prod``.
"""

from __future__ import annotations

import re
from functools import singledispatch

from openstack_prep.resources.lists.cluster_naming import ClusterNaming
from openstack_prep.resources.lists.load_balancers import LoadBalancerRecord
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, GroupRecord, RuleRecord
from openstack_prep.resources.lists.volumes import SnapshotRecord, VolumeRecord

CSI = "cinder.csi.openstack.org/cluster"
"""Key of the metadata of volumes and snapshots; its value is empty if the driver was started without --cluster."""
DEFAULT = "kubernetes"
"""The cluster's name unless somebody chose one: kube-controller-manager's default, and that of the CSI chart."""
LONGEST = 255  # characters; longer names are cut

THINGS = ("load_balancer", "floating_ip", "port", "security_group", "server", "volume_snapshot", "volume")
"""Kinds that are read: ports and servers only show who uses the others."""

_OBJECT = r"[^\s/]+/[^\s/]+"
_IN_NAMESPACE = r"\S+ in namespace \S+"
_NAMED = re.compile(r"kube_(?:service|ingress)_(?P<cluster>.+)_(?P<namespace>[^_]+)_(?P<name>[^_]+)", re.DOTALL)
_LOAD_BALANCER = re.compile(rf"Kubernetes external service {_OBJECT} from cluster (?P<cluster>.+)", re.DOTALL)
_FLOATING_IP = re.compile(
    rf"Floating IP for Kubernetes (?:external service {_OBJECT}|ingress {_IN_NAMESPACE}) from cluster (?P<cluster>.+)",
    re.DOTALL,
)
_GROUP = re.compile(
    rf"Security Group for {_OBJECT} Service LoadBalancer in cluster (?P<cluster>.+)"
    rf"|Security group created for Ingress {_OBJECT} from cluster (?P<other>.+)",
    re.DOTALL,
)
_IN_TREE = re.compile(r"(?P<cluster>.+)-dynamic-pvc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)


@singledispatch
def cluster_of(record: object) -> str | None:
    """Return the cluster that a resource was created for; None: for none, or unknown."""
    return None


def cluster_of_tag(tag: str) -> str | None:
    """Return the cluster of a Service that shares a load balancer: each has a tag, like the load balancer's name."""
    found = _NAMED.fullmatch(tag)
    return found["cluster"] if found and len(tag) < LONGEST else None


def claim_of(volume: VolumeRecord) -> str:
    """Return the claim (PVC) that a volume was created for, as NAMESPACE/NAME; empty if unknown."""
    found = [volume.metadata.get(f"csi.storage.k8s.io/pvc/{key}") for key in ("namespace", "name")]
    return f"{found[0]}/{found[1]}" if all(found) else ""


@cluster_of.register
def _of_load_balancer(balancer: LoadBalancerRecord) -> str | None:
    """The name decides, because the provider renames load balancers when a cluster's name changes.

    The end of a name that was cut says nothing, so the description, which is not cut, must agree with its beginning.
    """
    if len(balancer.name) < LONGEST:
        found = _NAMED.fullmatch(balancer.name)
        return found["cluster"] if found else None
    described = described_cluster(balancer)
    return described if described and balancer.name.startswith(f"kube_service_{described}_") else None


def described_cluster(balancer: LoadBalancerRecord) -> str | None:
    """Return the cluster in the description that the provider has given a load balancer, whatever its name is now."""
    found = _LOAD_BALANCER.fullmatch(balancer.description)
    return found["cluster"] if found else None


@cluster_of.register
def _of_floating_ip(floating_ip: FloatingIPRecord) -> str | None:
    found = _FLOATING_IP.fullmatch(floating_ip.description)
    return found["cluster"] if found else None


@cluster_of.register
def _of_group(group: GroupRecord) -> str | None:
    found = _GROUP.fullmatch(group.description)
    if not found or not group.name.startswith(("lb-sg-", "kube_ingress_")):
        return None
    return found["cluster"] or found["other"]


@cluster_of.register
def _of_volume(volume: VolumeRecord) -> str | None:
    if volume.is_restored:
        return None
    if CSI in volume.metadata:
        return volume.metadata[CSI] or None
    found = _IN_TREE.fullmatch(volume.name)
    return found["cluster"] if found else None


@cluster_of.register
def _of_snapshot(snapshot: SnapshotRecord) -> str | None:
    return snapshot.metadata.get(CSI) or None


class ProviderNaming(ClusterNaming):
    def cluster_of(self, record: object) -> str:
        tags = getattr(record, "tags", None) or ()
        named = cluster_of(record) or next(filter(None, map(cluster_of_tag, tags)), None)
        return f"Kubernetes cluster {named}" if named else ""

    def is_own_rule(self, rule: RuleRecord, admitted: GroupRecord) -> bool:
        """Whether the provider has created a rule in the nodes' group that admits the group of a Service.

        Such a rule is of no use without that group, whose name contains the UID of the Service.
        Source: Kubernetes 1.25 and earlier, staging/src/k8s.io/legacy-cloud-providers/openstack/,
        openstack_loadbalancer.go, createNodeSecurityGroup; later providers give the group to the nodes' ports instead.
        """
        is_of_node_port = rule.port_range_min is not None and rule.port_range_min == rule.port_range_max
        is_as_created = rule.direction == "ingress" and is_of_node_port and not rule.description
        return is_as_created and cluster_of(admitted) is not None
