"""Two RKE clusters with MetalLB, meshed by Cilium, shown on a devcloud: apply, look, scale out, sync.

The servers are real to Nova, Neutron and Heat and run nothing: so nobody waits for their cloud-init, and
no ``rke up`` follows.  An argument is the port base of the devcloud
(20000, or another one whose ports are free).
"""

from __future__ import annotations

import json
import os
import sys
from importlib import resources

from tests.demo import begin, run
from tests.devcloud.qcow2 import qcow2

SPEC, GROWN = "rke-mesh.yaml", "rke-mesh-grown.yaml"
PUBLISHED = "https://cloud-images.ubuntu.com/releases/jammy/release/ubuntu-22.04-server-cloudimg-amd64.img"
CHANGED = {
    PUBLISHED: "ubuntu.qcow2",  # an empty disk stands in for the image
    "~/.ssh/id_ed25519.pub": "id_ed25519.pub",
    "node_count: 3": "node_count: 3\n      wait_timeout: 0 # no cloud-init runs here",
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB demo\n"
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


def changed(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def main() -> int:
    repository = os.getcwd()
    cloud, place = begin("demo-rke")
    spec = changed((resources.files("openstack_prep.install_configs") / SPEC).read_text(), CHANGED)
    (place / SPEC).write_text(spec)
    (place / GROWN).write_text(changed(spec, {"node_count: 3": "node_count: 4"}))
    (place / "ubuntu.qcow2").write_bytes(qcow2())
    (place / "id_ed25519.pub").write_text(KEY)
    (place / "services.json").write_text(services())
    os.chdir(place)
    admin = {"OS_CLIENT_CONFIG_FILE": str(cloud.clouds_file), "OS_CLOUD": "devcloud-admin"}

    run("openstack-prep", "destroy", "--yes", SPEC, **admin)  # what an earlier demo left
    run("openstack-prep", "plan", SPEC, **admin)
    run("openstack-prep", "apply", "--yes", SPEC, **admin)
    run("openstack-prep", "apply", "--yes", SPEC, **admin)
    run("cat", "cluster1/cluster.yml", "cluster1/metallb.yaml", "cluster1/cilium-values.yaml", **admin)
    run("openstack-prep", "rke", "check", "cluster1/cluster.yml", "cluster2/cluster.yml", **admin)
    run("openstack-prep", "rke", "mesh", SPEC, **admin)
    print("\nA node more for each cluster: pairs and files follow in the same apply.")
    run("openstack-prep", "apply", "--yes", GROWN, **admin)
    run("openstack-prep", "apply", "--yes", GROWN, **admin)
    print("\nAs the project's own user, from a timer: what MetalLB gave out, on the ports of all nodes.")
    user = {"OS_CLIENT_CONFIG_FILE": str(place / "clouds.yaml"), "OS_CLOUD": "mesh"}
    sync = ("address-pairs", "sync", GROWN, "--pairs", "cluster1", "--services", "services.json")
    run("openstack-prep", *sync, **user)
    run("openstack-prep", *sync, **user)
    print(f"""
The cloud goes on running. Look around:
  export PATH={os.path.dirname(sys.executable)}:$PATH
  export OS_CLIENT_CONFIG_FILE={cloud.clouds_file} OS_CLOUD=devcloud-admin
  openstack port list --long --project mesh
  ls {place}/cluster*
Take it all back, and stop the cloud:
  openstack-prep destroy {place / GROWN}
  cd {repository} && python -m tests.devcloud down --port-base {cloud.base}""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
