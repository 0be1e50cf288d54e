"""Load balancers of one cluster: which combinations work, and the commands that replace one by another.

Sources: Cilium (operator/pkg/lbipam/lbipam.go: with a pool, it removes all other addresses from Services without a
class); MetalLB and kube-vip's cloud provider, which also assign addresses to each Service without a class.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from openstack_prep.base.errors import Mistake
from openstack_prep.kubernetes import kube_vip
from openstack_prep.kubernetes.balancing.pools import Addresses, ServicePool, ranges
from openstack_prep.kubernetes.cilium import Cilium, address_annotation, leaves_services
from openstack_prep.kubernetes.kube_vip import KubeVip
from openstack_prep.kubernetes.metallb import MetalLB

PATH = 'jsonpath=\'{range .items[?(@.spec.type=="LoadBalancer")]}{.metadata.namespace}{" "}{.metadata.name}{" "}'
PATH += '{.status.loadBalancer.ingress[*].ip}{"\\n"}{end}\''
FILE = "load-balancer-commands.txt"
"""The file with the commands."""
Section = tuple[str, tuple[ServicePool, ...]]


def mistakes(
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


def commands(manifest: str, cilium: Cilium | None, vip: KubeVip | None, context: str = "") -> str:
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
        f"{kubectl} apply -f {shlex.quote(manifest)}",
    ]
    if of_vip:
        lines += [
            f"{kubectl} apply -f {kube_vip.PROVIDER}",
            '#    kube-vip itself must serve Services on the nodes: its DaemonSet has svc_enable: "true".',
        ]
    lines += ["# 4. Each Service has the same addresses as before:", f"{kubectl} get services -A"]
    return "\n".join(lines) + "\n"
