"""The conversion as a whole: files, the proof, what does not carry over, notes and steps.

Sources: Mirantis/k8s-externalipcontroller, pkg/scheduler/scheduler.go (it assigns a further address to each Service of
type LoadBalancer) and examples/claims; kubectl's server-side apply, which only changes the fields in the file.

Sources: Kubernetes API, Service v1; kubernetes/kubernetes, pkg/registry/core/service (a Service that stops being of
type LoadBalancer loses the fields of this type); MetalLB 0.16.1, controller/service.go (convergeBalancer: a Service
with one address and the policy PreferDualStack gets a second one from the same pool).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.ranges import Range, merged, without
from openstack_prep.base.raw import Values, rewrite
from openstack_prep.base.style import first_of
from openstack_prep.exposures.convert import decisions, proof, requests
from openstack_prep.exposures.convert.decisions import decide
from openstack_prep.exposures.convert.objects import (
    IN_POOL,
    OF,
    POOL,
    Carrier,
    Decision,
    Left,
    LoadBalancerOptions,
    Old,
    OldService,
)
from openstack_prep.exposures.convert.proof import ServiceAddresses
from openstack_prep.exposures.convert.sources import AUTOMATIC, CILIUM_CLASSES, COMMAND, OPENELB
from openstack_prep.kubernetes import kube_vip, metallb
from openstack_prep.kubernetes.cilium import Cilium, address_annotation, announcement, rules
from openstack_prep.kubernetes.cilium.settings import (
    CiliumBGP,
    CiliumLayer2,
    CiliumLoadBalancer,
    CiliumPeer,
    CiliumPool,
)
from openstack_prep.kubernetes.kube_vip import ANNOTATION, LABEL
from openstack_prep.kubernetes.service_pools import LabelSelector

# The manifests of the pools and announcements of the new load balancer.


def ranges(old: Old, decision: Decision) -> dict[str, list[Range]]:
    """Return the addresses of each pool: of old ones without nodes and what does not carry over, and of all others."""
    out = {*old.nodes, *(address for each in decision.left for address in each.addresses)}
    found = _old_pools(old, out)
    while apart := _apart(found, decision):  # MetalLB takes both addresses of a Service from one pool
        out |= apart
        found = _old_pools(old, out)
    carried = merged(Range.read(address) for carrier in decision.carriers for address in carrier.addresses)
    rest = list(without(carried, [each for held in found.values() for each in held]))
    name = POOL if POOL not in found else f"{POOL}-2"
    return {name: held for name, held in ({name: rest} | found).items() if held}


def _old_pools(old: Old, out: Iterable[str]) -> dict[str, list[Range]]:
    gone = [Range.read(each) for each in out]
    return {pool.name: list(without(pool.ranges, gone)) for pool in old.pools}


def _apart(pools: Mapping[str, Sequence[Range]], decision: Decision) -> set[str]:
    """Return addresses of old pools, while another address of the same Service is not in the same pool."""
    found = set()
    for carrier in decision.carriers:
        homes = {address: _home(address, pools) for address in carrier.addresses}
        if len(set(homes.values())) > 1:
            found |= {address for address, home in homes.items() if home}
    return found


def _home(address: str, pools: Mapping[str, Sequence[Range]]) -> str:
    one = Range.read(address).first
    return next((name for name, held in pools.items() if any(one in each for each in held)), "")


def pool_manifests(pools: Mapping[str, Sequence[Range]], wanted: LoadBalancerOptions) -> list[dict[str, object]]:
    """Return the manifests; raises SpecError if the load balancer refuses them."""
    texts = {name: tuple(map(str, held)) for name, held in pools.items()}
    if not texts:
        return []
    builders = {"metallb": _metallb, "cilium": _cilium, "kube-vip": _kube_vip}
    found, mistakes = builders[wanted.to](texts, wanted)
    if mistakes:
        raise SpecError([Mistake(f"{wanted.to}: {mistake.where}", mistake.what, mistake.fix) for mistake in mistakes])
    return found


Texts = Mapping[str, tuple[str, ...]]
Built = tuple[list[dict[str, object]], list[Mistake]]


def _metallb(pools: Texts, wanted: LoadBalancerOptions) -> Built:
    layer2 = wanted.announce == "l2"
    config = metallb.MetalLB(
        version=wanted.release,
        pools=tuple(
            metallb.MetalLBPool(
                name=name,
                addresses=held,
                auto_assign=False,
                protocol="layer2" if layer2 else "bgp",
                l2=metallb.MetalLBLayer2(interfaces=wanted.interfaces) if layer2 else None,
            )
            for name, held in pools.items()
        ),
        peers=tuple(
            metallb.MetalLBPeer(
                name=f"{POOL}-peer-{number}", my_asn=wanted.my_asn or 0, peer_asn=each.asn, peer_address=each.address
            )
            for number, each in enumerate(wanted.peers, 1)
        ),
    )
    return metallb.document(config, {}), list(metallb.mistakes(config, {}, wanted.kubernetes))


def _cilium(pools: Texts, wanted: LoadBalancerOptions) -> Built:
    mine = LabelSelector(match_labels={IN_POOL: POOL})
    routers = tuple(
        CiliumPeer(name=f"{POOL}-peer-{number}", peer_asn=each.asn, peer_address=each.address)
        for number, each in enumerate(wanted.peers, 1)
    )
    interfaces = tuple(f"^{re.escape(interface)}$" for interface in wanted.interfaces)
    layer2 = CiliumLayer2(interfaces=interfaces, service_selector=mine) if wanted.announce == "l2" else None
    bgp = CiliumBGP(my_asn=wanted.my_asn or 0, peers=routers, service_selector=mine) if layer2 is None else None
    config = Cilium(
        cluster_id=1,
        version=wanted.release,
        mesh="none",
        kube_proxy_replacement=True,
        load_balancer=CiliumLoadBalancer(
            pools=tuple(CiliumPool(name=name, addresses=held, service_selector=mine) for name, held in pools.items()),
            l2=layer2,
            bgp=bgp,
        ),
    )
    found = [_renamed(document) for document in announcement.documents(config, {})]
    return found, list(rules.announcement_mistakes(config, {}))


def _renamed(value: Any) -> Any:
    """Return manifests with a name that no policy of a spec has: a cluster may have one already."""
    return rewrite(value, lambda part: POOL if part == announcement.NAME else part)


def _kube_vip(pools: Texts, wanted: LoadBalancerOptions) -> Built:
    config = kube_vip.KubeVip(
        pools=tuple(kube_vip.KubeVipPool(name=name, addresses=held) for name, held in pools.items())
    )
    return kube_vip.document(config, {}), list(kube_vip.mistakes(config, {}))


# --- step -------------------------------------------------------------------------------------


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
class ConversionStep:
    """One step: its commands, what is normal, and how to go back."""

    title: str
    commands: tuple[str, ...]
    normal: str
    back: str

    def __str__(self) -> str:
        lines = [self.title, *(f"   {command}" for command in self.commands), f"   normal: {self.normal}"]
        return "\n".join([*lines, f"   back: {self.back}"])


def steps(old: Old, decision: Decision, wanted: LoadBalancerOptions) -> Iterator[ConversionStep]:
    """Yield the steps."""
    back = [f"{APPLY} -f {BEFORE}"]
    if any(carrier.is_additional for carrier in decision.carriers):
        back.append(f"kubectl delete services -A -l {OF}")
    yield ConversionStep(
        "Compare the files with the cluster",
        (f"kubectl diff -f {POOLS}", f"{APPLY.replace('apply', 'diff')} -f {SERVICES}"),
        f"exit code 1; {POOLS} only adds objects; in {SERVICES} only type, externalIPs, "
        "allocateLoadBalancerNodePorts, labels and annotations of the load balancer differ, and further Services are "
        "added. If a Service differs otherwise, somebody has changed it since: run convert again",
        "nothing was changed",
    )
    setting = "enable-l2-announcements" if wanted.announce == "l2" else "enable-bgp-control-plane"
    normal = NORMAL[wanted.to].format(setting=setting) + _class(wanted)
    yield ConversionStep(
        f"Check that {wanted.to} {wanted.release} runs", CHECKS[wanted.to], normal, "nothing was changed"
    )
    yield from _old_controller(old)
    yield ConversionStep(
        "Create the pools",
        (f"kubectl apply -f {POOLS}",),
        "objects are created, and no Service changes yet",
        f"kubectl delete -f {POOLS}",
    )
    yield ConversionStep(
        "Change the Services; each address is not served until the load balancer has assigned it, mostly a second",
        (f"{APPLY} -f {SERVICES}",),
        "serverside-applied for each Service; Kubernetes 1.36 and later also warn about externalIPs where some remain",
        "; ".join(back),
    )
    yield ConversionStep(
        "Compare the addresses with the list above, then send requests to them from outside",
        ("kubectl get services -A --field-selector spec.type=LoadBalancer",),
        "within a minute EXTERNAL-IP has the same addresses as before; <pending> means that the load balancer refuses "
        "them: kubectl describe service says why",
        "; ".join(back),
    )
    yield from _nodes(old)


def _class(wanted: LoadBalancerOptions) -> str:
    """Return what is normal beside a class, which Services have from now on."""
    settings = {
        "metallb": f"the arguments of both contain --lb-class={wanted.class_name} (Helm: loadBalancerClass)",
        "kube-vip": f'its DaemonSet has lb_class_only: "true" and the class {wanted.class_name}',
    }
    return f"; {settings[wanted.to]}" if wanted.class_name and wanted.to in settings else ""


def _old_controller(old: Old) -> Iterator[ConversionStep]:
    if old.pools or any(service.keeps_annotation == AUTOMATIC for service in old.services):
        yield ConversionStep(
            "Stop what assigns addresses until now; Mirantis' scheduler would assign another one to each Service of "
            "type LoadBalancer",
            ("kubectl -n default scale deployment claimscheduler --replicas 0",),
            "deployment.apps/claimscheduler scaled; its namespace is where it was installed. Its claimcontroller keeps "
            "running, so the nodes keep the addresses. For OpenELB, scale its Deployment",
            "scale it to 1 again",
        )


def _nodes(old: Old) -> Iterator[ConversionStep]:
    kept = "no node lists an old one in ip -brief address, except those of MetalLB, Cilium or kube-vip themselves"
    back = "ip address add ADDRESS/32 dev INTERFACE on the node that had it"
    if old.has_claims:
        title = "Remove the addresses from the nodes: the old controller first, then those configured by hand"
        commands = ("kubectl delete ipclaims --all", "ip -brief address")
        yield ConversionStep(title, commands, f"the claimcontroller removes its addresses, and {kept}", back)
    else:
        yield ConversionStep(
            "Remove the addresses that somebody has configured on the nodes", ("ip -brief address",), kept, back
        )
    names = {service.keeps_annotation for service in old.services if service.keeps_annotation}
    for name in sorted(names & {AUTOMATIC, OPENELB}):
        held = [service for service in old.services if service.keeps_annotation == name]
        yield ConversionStep(
            f"Remove the annotation {name}, which means nothing any more",
            tuple(f"kubectl -n {service.namespace} annotate service {service.name} {name}-" for service in held),
            "annotated for each Service",
            "not needed",
        )


# --- spec -------------------------------------------------------------------------------------


def services(old: Old, decision: Decision, wanted: LoadBalancerOptions) -> Iterator[Values]:
    """Yield the Services that change, and additional ones, in the order of their names."""
    leases = decisions.lease_namespaces(decision.carriers)
    for service in old.services:
        own = [carrier for carrier in decision.carriers if carrier.of is service]
        if not own:
            continue
        if all(carrier.is_additional for carrier in own):
            yield _unassigned(service, decision.remaining(service))
        for carrier in own:
            yield _carrier(carrier, decision, wanted, leases.get(carrier.sharing, ""))


def before(old: Old, decision: Decision, wanted: LoadBalancerOptions) -> Iterator[Values]:
    """Yield the changed Services as they are now."""
    changed = {carrier.of.key for carrier in decision.carriers}
    for service in old.services:
        if service.key in changed:
            yield _restored(service, wanted)


def annotation(wanted: LoadBalancerOptions) -> str:
    """Return the annotation by which a Service requests addresses."""
    if wanted.to == "metallb":
        return f"{decisions.metallb_prefix(wanted)}/loadBalancerIPs"
    return ANNOTATION if wanted.to == "kube-vip" else address_annotation(Cilium(cluster_id=1, version=wanted.release))


def _carrier(carrier: Carrier, decision: Decision, wanted: LoadBalancerOptions, lease: str) -> Values:
    service = carrier.of
    labels = dict([LABEL.split("=", 1)]) if wanted.to == "kube-vip" else {}
    labels |= {IN_POOL: POOL} if wanted.to == "cilium" else {}
    labels |= {OF: service.name} if carrier.is_additional else {}
    notes = {annotation(wanted): ",".join(carrier.addresses), **dict(decisions.key_annotations(carrier, wanted, lease))}
    spec: Values = {"type": "LoadBalancer"}
    if wanted.class_name and (carrier.is_additional or service.type != "LoadBalancer"):
        spec["loadBalancerClass"] = wanted.class_name
    if carrier.is_additional or service.type == "ClusterIP":
        spec["allocateLoadBalancerNodePorts"] = False  # as before: the addresses do not need node ports
    spec |= service.spec
    if carrier.is_additional:
        spec["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in spec["ports"]]
        spec["ipFamilyPolicy"] = "SingleStack" if len(carrier.families) == 1 else "RequireDualStack"
        ordered = [family for family in service.families if family in carrier.families]
        spec["ipFamilies"] = [f"IPv{each}" for each in ordered]
    else:
        if wanted.to == "metallb" and len(carrier.addresses) == 1 and "ipFamilyPolicy" in spec:
            spec["ipFamilyPolicy"] = "SingleStack"  # else MetalLB adds an address, perhaps one of another Service
        spec["externalIPs"] = list(decision.remaining(service))
        stale = requests.cleared(service, wanted, notes)
        notes |= stale.get("annotations", {})
        spec |= stale.get("spec", {})
    return _manifest(service.namespace, carrier.name, spec, labels, notes)


def _restored(service: OldService, wanted: LoadBalancerOptions) -> Values:
    """Return a Service as it is now, with what its new manifest clears."""
    found, emptied = _unassigned(service, service.addresses), requests.restored(service, wanted)
    annotations = {"annotations": emptied["annotations"]} if "annotations" in emptied else {}
    return found | {"metadata": found["metadata"] | annotations, "spec": found["spec"] | emptied.get("spec", {})}


def _unassigned(service: OldService, addresses: tuple[str, ...]) -> Values:
    """Return a Service of its old type with these externalIPs."""
    spec: Values = {"type": service.type, **service.spec, "externalIPs": list(addresses)}
    if service.type == "ClusterIP" and not addresses:
        spec.pop("externalTrafficPolicy", None)  # valid only together with addresses from outside
    return _manifest(service.namespace, service.name, spec, {}, {})


def _manifest(namespace: str, name: str, spec: Values, labels: Values, annotations: Values) -> Values:
    metadata: Values = {"name": name, "namespace": namespace}
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {k: v for k, v in spec.items() if v != {}},
    }


# --- conversion -------------------------------------------------------------------------------


MOST_NAMES = 5


@dataclass(frozen=True)
class ExposureConversion:
    """What was converted to what; ``files`` contain no secrets."""

    wanted: LoadBalancerOptions
    count: int
    kept: tuple[ServiceAddresses, ...]
    left: tuple[Left, ...]
    notes: tuple[str, ...]
    steps: tuple[ConversionStep, ...]
    files: Mapping[str, str]

    @property
    def tag(self) -> str:
        """The name in the ownership tag of the files: it differs for other Services, whose way back is not replaced."""
        return f"{self.wanted.to}-{hashlib.sha256(self.files[BEFORE].encode()).hexdigest()[:12]}"

    def data(self) -> Values:
        """Return the conversion as data."""
        return {
            "to": self.wanted.to,
            "release": self.wanted.release,
            "services": [_lists(asdict(addresses)) for addresses in self.kept],
            "left": [_lists(asdict(each)) for each in self.left],
            "notes": list(self.notes),
            "files": dict(self.files),
            "steps": [_lists(asdict(step)) for step in self.steps],
        }

    def __str__(self) -> str:
        if not self.kept and not self.left:
            return f"nothing to convert: {self.count} Services, without addresses in externalIPs"
        lines = [f"{self.wanted.to} {self.wanted.release}: {len(self.kept)} of {self.count} Services change"]
        if self.kept:
            lines += ["", "addresses afterwards = before, read again from the files:", *proof.table(self.kept)]
        if self.left:
            lines += ["", "does not carry over:", *_left_lines(self.left)]
        lines += ["", "notes:", *(f"  - {note}" for note in self.notes)] if self.notes else []
        lines += ["", "steps:", *_numbered(self.steps)] if self.steps else []
        return "\n".join(lines)


def _lists(values: Values) -> Values:
    return {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}


def _left_lines(left: tuple[Left, ...]) -> Iterator[str]:
    for each in left:
        yield f"  {each.service}  {', '.join(each.addresses)}: {each.why}"
        yield f"    fix: {each.fix}"


def _numbered(found: tuple[ConversionStep, ...]) -> Iterator[str]:
    return (f"{number}. {step}" for number, step in enumerate(found, 1))


def convert(old: Old, wanted: LoadBalancerOptions) -> ExposureConversion:
    """Convert; raises SpecError if the load balancer refuses the pools."""
    wanted = replace(wanted, kubernetes=old.kubernetes)
    if old.by_cloud and not wanted.class_name:
        wanted = replace(wanted, class_name=requests.CLASSES.get(wanted.to) or CILIUM_CLASSES[wanted.announce])
    decision = decide(old, wanted)
    manifests = pool_manifests(ranges(old, decision), wanted) if decision.carriers else []
    texts = {
        POOLS: dump(*manifests),
        SERVICES: dump(*services(old, decision, wanted)),
        BEFORE: dump(*before(old, decision, wanted)),
    }
    kept = proof.prove(old, texts[POOLS], texts[SERVICES], wanted)
    way = tuple(steps(old, decision, wanted)) if decision.carriers else ()
    files = {**texts, COMMANDS: "\n".join(_numbered(way)) + "\n"} if decision.carriers else {}
    notes = tuple(_notes(old, decision, wanted))
    return ExposureConversion(wanted, old.count, kept, decision.left, notes, way, files)


def _notes(old: Old, decision: Decision, wanted: LoadBalancerOptions) -> Iterator[str]:
    if not decision.carriers:
        return
    if not old.has_nodes:
        yield f"no Nodes were given, so addresses of nodes are not recognized; {COMMAND} lists them"
    if wanted.to == "metallb" and wanted.peers and not old.kubernetes and wanted.version < metallb.PEERS_SINCE:
        first = metallb.PEERS_REFUSED_BY
        yield f"Kubernetes 1.{first} and later refuse each BGPPeer of MetalLB {wanted.release}: it is fixed in 0.16.0"
    if old.by_cloud:
        yield (
            f"{requests.OCCM} serves {_names(list(old.by_cloud))}, and creates a load balancer of Octavia for each "
            f"Service of type LoadBalancer without a class: the Services here get the class {wanted.class_name}"
        )
    for carrier in (one for one in decision.carriers if not one.is_additional):
        stale = requests.cleared(carrier.of, wanted, [annotation(wanted)])
        if found := [*stale.get("annotations", {}), *stale.get("spec", {})]:
            yield f"{', '.join(found)} of Service {carrier.key} would keep the address from it, and is emptied"
    if old.others:
        names = f"{_names(list(old.others))} of type LoadBalancer without a class"
        if wanted.to == "cilium":
            yield (
                f"as soon as there is a pool, Cilium removes addresses that are in no pool of Cilium from {names}: "
                "give them a loadBalancerClass first, or (1.17 and later) set defaultLBServiceIPAM: none"
            )
        else:
            yield f"{wanted.to} also takes {names}, unless another load balancer that runs has a class"
    for pool in old.pools:
        what = f"pool {pool.name} keeps its free addresses"
        interface = f"; its interface was {pool.interface}" if pool.interface else ""
        if wanted.to == "kube-vip":
            yield f"{what}, and kube-vip assigns them to any Service of type LoadBalancer{interface}"
        else:
            yield f"{what}, which Services get only on request{interface}"
    changed = {carrier.of.key: carrier.of for carrier in decision.carriers}
    if without := [key for key, each in changed.items() if not each.selector]:
        yield f"{_names(without)} without a selector: their EndpointSlices must have ready addresses"
    if local := [key for key, each in changed.items() if each.policy == "Local"]:
        yield f"{_names(local)} with externalTrafficPolicy Local: only nodes with a ready pod announce and answer"
    if added := [carrier.key for carrier in decision.carriers if carrier.is_additional]:
        why = "one Service cannot have these addresses together, or has others already"
        yield f"additional, with the same selector and ports: {_names(added)}; {why}"
    yield "manifests of these Services in git, Helm or Argo CD still contain externalIPs; change them, too"


def _names(keys: list[str]) -> str:
    return f"Service{'s' if len(keys) > 1 else ''} {first_of(sorted(keys), MOST_NAMES)}"
