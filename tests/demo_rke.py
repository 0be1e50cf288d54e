"""Create two RKE clusters with MetalLB and a Cilium mesh on a devcloud, add nodes, and verify the mesh.

The servers are real to Nova, Neutron and Heat and run nothing: nobody waits for their cloud-init, and no ``rke up``
follows.
"""

from __future__ import annotations

import json
import os
import sys

from tests.demo import KEY, changed, shipped
from tests.devcloud.qcow2 import qcow2
from tests.show import begin

SPEC, GROWN = "rke-mesh.yaml", "rke-mesh-grown.yaml"
PUBLISHED = "https://cloud-images.ubuntu.com/releases/jammy/release/ubuntu-22.04-server-cloudimg-amd64.img"
CHANGED = {
    PUBLISHED: "ubuntu.qcow2",  # an empty disk stands in for the image
    "~/.ssh/id_ed25519.pub": "id_ed25519.pub",
    "node_count: 3": "node_count: 3\n      wait_timeout: 0 # no cloud-init runs here",
}
GIVEN_OUT = {"clustermesh-apiserver": "10.1.0.208", "web": "10.1.0.209"}


def services() -> str:
    """Return what ``kubectl get services -A -o json`` would print once MetalLB has given out addresses."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
        }
        for name, address in GIVEN_OUT.items()
    ]
    api = {"kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"}, "spec": {"type": "ClusterIP"}}
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [api, *items]})


def main() -> int:
    repository = os.getcwd()
    show = begin("demo-rke", __doc__)
    former = (show.place / SPEC).exists()
    spec = changed(shipped(SPEC), CHANGED)
    (show.place / SPEC).write_text(spec)
    (show.place / GROWN).write_text(changed(spec, {"node_count: 3": "node_count: 4"}))
    (show.place / "ubuntu.qcow2").write_bytes(qcow2())
    (show.place / "id_ed25519.pub").write_text(KEY)
    (show.place / "services.json").write_text(services())
    if former:
        show.chapter("Delete what an earlier demo left", "So that this demo begins with nothing.")
        show.prep("destroy", "--yes", SPEC)

    show.chapter(
        "Plan",
        """The spec is install_configs/rke-mesh.yaml: a project, networks, security groups, two Heat stacks of three
        servers, reserved addresses for MetalLB, address pairs, and the files of two RKE clusters.""",
    )
    show.prep(
        "plan", SPEC, writes=False, proves="a plan lists each change and makes none: {requests} requests, no write"
    )
    show.chapter("Apply", "Heat creates both stacks at the same time; the servers are real to Nova and run nothing.")
    show.prep("apply", "--yes", SPEC, proves="one apply creates both clusters' servers, addresses and files")
    show.prep(
        "apply", "--yes", SPEC, writes=False, proves="a second apply changes nothing: {requests} requests, no write"
    )
    show.chapter("Look at the files", "For rke up, kubectl and helm. rke check refuses keys that RKE silently ignores.")
    show.run("cat", "cluster1/cluster.yml", "cluster1/metallb.yaml", "cluster1/cilium-values.yaml")
    show.prep("rke", "check", "cluster1/cluster.yml", "cluster2/cluster.yml", proves="both cluster.yml are valid")
    show.chapter("Add a node to each cluster", "Address pairs and files follow in the same apply.")
    show.prep(
        "apply", "--yes", GROWN, proves="a node more per cluster, with its address pairs and its line in cluster.yml"
    )
    show.chapter(
        "Follow MetalLB",
        "From a timer, as the project's own user: the addresses that Services have are allowed on all nodes.",
    )
    sync = ("address-pairs", "sync", GROWN, "--pairs", "cluster1", "--services", "services.json")
    show.prep(*sync, proves="the addresses in use are allowed on all nodes", **show.user("mesh", "mesh"))
    again = "a second sync changes nothing: {requests} requests, no write"
    show.prep(*sync, writes=False, proves=again, **show.user("mesh", "mesh"))
    show.chapter(
        "Verify the mesh", "What must pass between the clusters, by Neutron's routers, rules and address pairs."
    )
    show.prep("rke", "mesh", GROWN, writes=False, proves="all that a Cilium mesh needs can pass: no problems")
    show.summary()
    show.farewell(
        ["openstack port list --long --project mesh", "ls cluster*"], [f"openstack-prep destroy {GROWN}"], repository
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
