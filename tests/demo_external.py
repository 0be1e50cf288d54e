"""Expose services of five kinds of clusters on a devcloud: plan, apply, each hop, destroy.

OpenStack's part is real: addresses, address pairs, rules, floating IPs. No cluster runs, and nothing connects to one.
"""

from __future__ import annotations

import os
import sys

from tests.demo import shipped
from tests.show import Show, begin

SITUATIONS = {
    "openshift": "The API and the applications of OpenShift at floating IPs, which the installer and post-ipi attach.",
    "metallb": "Services with MetalLB on servers of OpenStack: addresses, address pairs, rules, a floating IP.",
    "service-host": "OKD of KubeInit through a services machine: BIND with two views, HAProxy, a bridge.",
    "virtual-machines": "Virtual machines of KubeVirt: a bridge with a MAC address that stays, and a node port.",
    "external-ip": "Services with externalIPs: address pairs on exactly the node that carries the address.",
}
FOLDERS = {"openshift": "ocp", "service-host": "okd", "virtual-machines": "machines", "external-ip": "shop"}
"""Beginnings of the folders' names that differ from the situation's."""
INCOMPLETE = ("openshift", "service-host")
"""What nobody has done here: an installation, and name servers for wildcards, which no hosts file has."""
SERVICES = """\
apiVersion: v1
kind: Service
metadata: {name: frontend, namespace: shop}
spec: {externalIPs: [200.1.1.1], ports: [{port: 443}], selector: {app: frontend}}
"""


def main() -> int:
    repository = os.getcwd()
    show = begin("demo-external", __doc__)
    for name in SITUATIONS:
        spec = f"exposures-{name}.yaml"
        former = (show.place / spec).exists()
        (show.place / spec).write_text(shipped(spec))
        if former:
            show.prep("destroy", "--yes", spec)
    for name, text in SITUATIONS.items():
        situation(show, name, text)
    show.chapter("Leave externalIPs", "Kubernetes 1.36 deprecates them; each old address is kept and proven to be.")
    (show.place / "services.yaml").write_text(SERVICES)
    show.prep("exposures", "convert", "services.yaml", "--to", "cilium", proves="externalIPs become Cilium's, all kept")
    show.summary()
    show.farewell(["ls *-access"], [f"openstack-prep destroy exposures-{name}.yaml" for name in SITUATIONS], repository)
    return 0


def situation(show: Show, name: str, text: str) -> None:
    """Take one spec from plan to the state of its hops; a hosts file makes its names known."""
    spec, right = f"exposures-{name}.yaml", name not in INCOMPLETE
    show.chapter(spec, text)
    show.prep("plan", spec, writes=False)
    show.prep("apply", "--yes", spec, proves=f"{name}: addresses are reserved and opened, and the files written")
    again = f"{name}: a second apply changes nothing: {{requests}} requests, no write"
    show.prep("apply", "--yes", spec, writes=False, proves=again)
    hosts = f"{FOLDERS.get(name, name)}-access/hosts"
    proves = f"{name}: each hop leads to the next one" if right else ""
    show.prep("exposures", "show", spec, "--hosts", hosts, writes=False, code=0 if right else 1, proves=proves)


if __name__ == "__main__":
    sys.exit(main())
