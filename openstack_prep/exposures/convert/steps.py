"""The commands of a conversion in their order, with what is normal at each step and how to go back.

Sources: Mirantis/k8s-externalipcontroller, pkg/scheduler/scheduler.go (it assigns a further address to each Service of
type LoadBalancer) and examples/claims; kubectl's server-side apply, which only changes the fields in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openstack_prep.exposures.convert.model import OF, Decision, Old, Wanted
from openstack_prep.exposures.convert.old_services import AUTOMATIC, OPENELB

POOLS, SERVICES, BEFORE, COMMANDS = "pools.yaml", "services.yaml", "before.yaml", "commands.txt"
APPLY = "kubectl apply --server-side --force-conflicts --field-manager openstack-prep"
CHECKS = {
    "metallb": (
        "kubectl -n metallb-system rollout status deployment/controller",
        "kubectl -n metallb-system rollout status daemonset/speaker",
    ),
    "cilium": (
        "kubectl -n kube-system rollout status deployment/cilium-operator",
        "kubectl -n kube-system get configmap cilium-config -o yaml",
    ),
    "kube-vip": (
        "kubectl -n kube-system rollout status daemonset/kube-vip-ds",
        "kubectl -n kube-system rollout status deployment/kube-vip-cloud-provider",
    ),
}
NORMAL = {
    "metallb": "both are rolled out; a Helm chart may have installed them under other names",
    "cilium": 'it is rolled out, and cilium-config contains {setting}: "true"',
    "kube-vip": 'both are rolled out, and the DaemonSet has svc_enable: "true"',
}


@dataclass(frozen=True)
class Step:
    """One step: its commands, what is normal, and how to go back."""

    title: str
    commands: tuple[str, ...]
    normal: str
    back: str

    def __str__(self) -> str:
        lines = [self.title, *(f"   {each}" for each in self.commands), f"   normal: {self.normal}"]
        return "\n".join([*lines, f"   back: {self.back}"])


def steps(old: Old, decision: Decision, wanted: Wanted) -> Iterator[Step]:
    """Yield the steps."""
    back = [f"{APPLY} -f {BEFORE}"]
    if any(each.is_additional for each in decision.carriers):
        back.append(f"kubectl delete services -A -l {OF}")
    yield Step(
        "Compare the files with the cluster",
        (f"kubectl diff -f {POOLS}", f"{APPLY.replace('apply', 'diff')} -f {SERVICES}"),
        f"exit code 1; {POOLS} only adds objects; in {SERVICES} only type, externalIPs, "
        "allocateLoadBalancerNodePorts, labels and annotations of the load balancer differ, and further Services are "
        "added. If a Service differs otherwise, somebody has changed it since: run convert again",
        "nothing was changed",
    )
    setting = "enable-l2-announcements" if wanted.announce == "l2" else "enable-bgp-control-plane"
    normal = NORMAL[wanted.to].format(setting=setting)
    yield Step(f"Check that {wanted.to} {wanted.release} runs", CHECKS[wanted.to], normal, "nothing was changed")
    yield from _old_controller(old)
    yield Step(
        "Create the pools",
        (f"kubectl apply -f {POOLS}",),
        "objects are created, and no Service changes yet",
        f"kubectl delete -f {POOLS}",
    )
    yield Step(
        "Change the Services; each address is not served until the load balancer has assigned it, mostly a second",
        (f"{APPLY} -f {SERVICES}",),
        "serverside-applied for each Service; Kubernetes 1.36 and later also warn about externalIPs where some remain",
        "; ".join(back),
    )
    yield Step(
        "Compare the addresses with the list above, then send requests to them from outside",
        ("kubectl get services -A --field-selector spec.type=LoadBalancer",),
        "within a minute EXTERNAL-IP has the same addresses as before; <pending> means that the load balancer refuses "
        "them: kubectl describe service says why",
        "; ".join(back),
    )
    yield from _nodes(old)


def _old_controller(old: Old) -> Iterator[Step]:
    if old.pools or any(each.keeps_annotation == AUTOMATIC for each in old.services):
        yield Step(
            "Stop what assigns addresses until now; Mirantis' scheduler would assign another one to each Service of "
            "type LoadBalancer",
            ("kubectl -n default scale deployment claimscheduler --replicas 0",),
            "deployment.apps/claimscheduler scaled; its namespace is where it was installed. Its claimcontroller keeps "
            "running, so the nodes keep the addresses. For OpenELB, scale its Deployment",
            "scale it to 1 again",
        )


def _nodes(old: Old) -> Iterator[Step]:
    kept = "no node lists an old one in ip -brief address, except those of MetalLB, Cilium or kube-vip themselves"
    back = "ip address add ADDRESS/32 dev INTERFACE on the node that had it"
    if old.has_claims:
        title = "Remove the addresses from the nodes: the old controller first, then those configured by hand"
        commands = ("kubectl delete ipclaims --all", "ip -brief address")
        yield Step(title, commands, f"the claimcontroller removes its addresses, and {kept}", back)
    else:
        yield Step("Remove the addresses that somebody has configured on the nodes", ("ip -brief address",), kept, back)
    names = {each.keeps_annotation for each in old.services if each.keeps_annotation}
    for name in sorted(names & {AUTOMATIC, OPENELB}):
        held = [each for each in old.services if each.keeps_annotation == name]
        yield Step(
            f"Remove the annotation {name}, which means nothing any more",
            tuple(f"kubectl -n {each.namespace} annotate service {each.name} {name}-" for each in held),
            "annotated for each Service",
            "not needed",
        )
