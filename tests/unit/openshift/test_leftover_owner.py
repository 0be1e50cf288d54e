from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from openstack_prep.openshift.leftover import NETWORK, ContainerRecord, Owned, infra_ids
from openstack_prep.resources.image.glance import ImageRecord
from openstack_prep.resources.lists.load_balancers import LoadBalancerRecord
from openstack_prep.resources.lists.nova_records import ServerGroupRecord, ServerRecord
from openstack_prep.resources.lists.volumes import SnapshotRecord, VolumeRecord
from tests.unit.conftest import port_row, subnet_row

ID = "dev-x7k2p"
LONGER = "dev-x7k2p-web-q9m4t"
TAG, FOREIGN = f"openshiftClusterID={ID}", f"openshiftClusterID={LONGER}"
GUESTS = "k8s-clusterapi-cluster-openshift-cluster-api-guests"
CSI = "cinder.csi.openstack.org/cluster"


def tagged(name: str, *tags: str) -> dict[str, Any]:
    return {"name": name, "tags": list(tags), "device_owner": ""}


def with_metadata(name: str, **metadata: str) -> dict[str, Any]:
    return {"name": name, "metadata": metadata}


READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{thing: kind.read for thing, kind in NETWORK.items()},
    "image": ImageRecord.read,
    "server": ServerRecord.read,
    "server_group": ServerGroupRecord.read,
    "volume": VolumeRecord.read,
    "volume_snapshot": SnapshotRecord.read,
    "load_balancer": LoadBalancerRecord.read,
    "container": lambda raw: ContainerRecord(name=raw["name"], metadata=raw["metadata"]),
}
ALWAYS: dict[str, Any] = port_row(id="x") | subnet_row()
ALWAYS |= {"status": "active", "visibility": "private", "port_id": None, "sub_ports": [], "volume_id": "v"}
ALWAYS |= {"policy": "affinity", "rules": {}, "project_id": "p"}
ALWAYS |= {"external_gateway_info": None, "routes": [], "security_group_rules": []}
ALWAYS |= {"floating_ip_address": "192.0.2.1", "floating_network_id": "x"}
"""Fields that each list has, whichever it is."""


def record(thing: str, raw: dict[str, Any]) -> Any:
    """Return the record of an answer; fields that do not matter are added."""
    return READ[thing](ALWAYS | raw)


OURS = [
    ("network", tagged("renamed", TAG)),
    ("network", tagged(f"{ID}-openshift")),
    ("subnet", tagged(f"{GUESTS}-{ID}")),
    ("router", tagged(f"{ID}-external-router", "mine")),
    ("port", tagged(f"{ID}-api-port")),
    ("port", tagged(f"{ID}-master-port-0")),
    ("port", tagged(f"{ID}-worker-0-abcde-0")),
    ("port", tagged("additional", TAG)),
    ("trunk", tagged(f"{ID}-master-trunk-0", TAG)),
    ("security_group", tagged(f"{ID}-worker")),
    ("image", tagged(f"{ID}-ignition")),
    ("server", with_metadata("renamed", openshiftClusterID=ID)),
    ("server_group", {"name": f"{ID}-master"}),
    ("server_group", {"name": f"{ID}-worker-zone-1"}),
    ("volume", with_metadata("pvc-1", **{CSI: ID})),
    ("volume", with_metadata(f"{ID}-dynamic-pvc-1")),
    ("volume", with_metadata("root", openshiftClusterID=ID)),
    ("volume_snapshot", with_metadata("snapshot-1", **{CSI: ID})),
    ("floating_ip", {"tags": [TAG], "description": ""}),
    ("floating_ip", {"tags": [], "description": f"{ID}-bootstrap-fip"}),
    ("load_balancer", {"name": "lb", "description": f"Kubernetes external service a/b from cluster {ID}"}),
    ("load_balancer", {"name": "lb", "description": TAG}),
    ("load_balancer", {"name": "lb", "tags": [TAG]}),
    ("container", {"name": f"{ID}-image-registry-abc", "metadata": {"openshiftclusterid": ID}}),
]
THEIRS = [
    ("network", tagged(f"{ID}-openshift", FOREIGN)),
    ("network", tagged(f"{LONGER}-openshift", FOREIGN)),
    ("network", tagged("mine", f"{ID}-primaryClusterNetwork")),
    ("network", tagged("dev-x7k2pp-openshift")),
    ("network", tagged("devxx7k2p-openshift")),
    ("port", tagged(f"{LONGER}-api-port")),
    ("port", tagged(f"{LONGER}-master-0-0", FOREIGN)),
    ("port", tagged(f"{ID}-bastion")),
    ("port", tagged("", TAG) | {"device_owner": "network:router_interface"}),
    ("security_group", tagged("default")),
    ("security_group", tagged(f"{ID}-bastion")),
    ("image", tagged("rhcos")),
    ("server", with_metadata(f"{ID}-master-0")),
    ("server", with_metadata("x", openshiftClusterID=LONGER)),
    ("server_group", {"name": f"{LONGER}-master"}),
    ("server_group", {"name": f"{ID}-mine"}),
    ("volume", with_metadata(f"{ID}-dynamic-pvc-1", **{CSI: LONGER})),
    ("volume", with_metadata(f"{ID}-backup")),
    ("volume_snapshot", with_metadata(f"{ID}-master-0")),
    ("floating_ip", {"tags": [], "description": f"API of {ID}"}),
    ("floating_ip", {"tags": [FOREIGN], "description": ""}),
    ("load_balancer", {"name": "lb", "description": f"service a/b from cluster {LONGER}"}),
    ("load_balancer", {"name": "lb", "description": None}),
    ("load_balancer", {"name": "in-front", "description": f"API and ingress of {ID}, made by hand"}),
    ("load_balancer", {"name": "lb", "tags": [FOREIGN]}),
    ("volume", with_metadata(f"pvc-{ID}", **{CSI: ID, "src_backup_id": "b"})),
    ("volume", with_metadata(f"{ID}-master-0", src_backup_id="b")),
    ("container", {"name": f"{ID}-image-registry-abc", "metadata": {}}),
]


@pytest.mark.parametrize(("thing", "raw"), OURS)
def test_what_belongs_to_the_cluster(thing: str, raw: dict[str, Any]) -> None:
    assert Owned(ID, frozenset({LONGER})).owns(thing, record(thing, raw))


@pytest.mark.parametrize(("thing", "raw"), THEIRS)
def test_what_does_not(thing: str, raw: dict[str, Any]) -> None:
    assert not Owned(ID, frozenset({LONGER})).owns(thing, record(thing, raw))


def test_a_cluster_named_like_a_worker_keeps_its_server_group() -> None:
    """Nothing but the other's infraID tells whose this is: server groups have no tags."""
    group = record("server_group", {"name": f"{ID}-worker-q9m4t-master"})
    assert Owned(ID).owns("server_group", group)
    assert not Owned(ID, frozenset({f"{ID}-worker-q9m4t"})).owns("server_group", group)


def test_which_clusters_there_are() -> None:
    records = [
        record("port", tagged("a", TAG, "b")),
        record("server", with_metadata("c", openshiftClusterID=LONGER)),
        record("server_group", {"name": "d"}),
        record("volume", {"metadata": {CSI: "e"}}),
    ]
    assert set(infra_ids(records)) == {ID, LONGER, "e"}
