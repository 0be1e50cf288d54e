"""Manifests of the new Services, and those that go back: only fields that server-side apply is to set.

Sources: Kubernetes API, Service v1; kubernetes/kubernetes, pkg/registry/core/service (a Service that stops being of
type LoadBalancer loses the fields of this type); MetalLB 0.16.1, controller/service.go (convergeBalancer: a Service
with one address and the policy PreferDualStack gets a second one from the same pool).
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.raw import Values
from openstack_prep.exposures.convert import sharing
from openstack_prep.exposures.convert.model import IN_POOL, OF, POOL, Carrier, Decision, Old, OldService, Wanted
from openstack_prep.kubernetes.cilium import Cilium, address_annotation
from openstack_prep.kubernetes.kube_vip import ANNOTATION, LABEL


def services(old: Old, decision: Decision, wanted: Wanted) -> Iterator[Values]:
    """Yield the Services that change, and additional ones, in the order of their names."""
    leases = sharing.lease_namespaces(decision.carriers)
    for service in old.services:
        own = [each for each in decision.carriers if each.of is service]
        if not own:
            continue
        if all(each.is_additional for each in own):
            yield _unassigned(service, decision.remaining(service))
        for each in own:
            yield _carrier(each, decision, wanted, leases.get(each.sharing, ""))


def before(old: Old, decision: Decision) -> Iterator[Values]:
    """Yield the changed Services as they are now."""
    changed = {each.of.key for each in decision.carriers}
    for service in old.services:
        if service.key in changed:
            yield _unassigned(service, service.addresses)


def annotation(wanted: Wanted) -> str:
    """Return the annotation by which a Service requests addresses."""
    if wanted.to == "metallb":
        return f"{sharing.metallb_prefix(wanted)}/loadBalancerIPs"
    return ANNOTATION if wanted.to == "kube-vip" else address_annotation(Cilium(cluster_id=1, version=wanted.release))


def _carrier(carrier: Carrier, decision: Decision, wanted: Wanted, lease: str) -> Values:
    service = carrier.of
    labels = dict([LABEL.split("=", 1)]) if wanted.to == "kube-vip" else {}
    labels |= {IN_POOL: POOL} if wanted.to == "cilium" else {}
    labels |= {OF: service.name} if carrier.is_additional else {}
    notes = {annotation(wanted): ",".join(carrier.addresses), **dict(sharing.key_annotations(carrier, wanted, lease))}
    spec: Values = {"type": "LoadBalancer"}
    if wanted.class_name and service.type != "LoadBalancer":
        spec["loadBalancerClass"] = wanted.class_name
    if carrier.is_additional or service.type == "ClusterIP":
        spec["allocateLoadBalancerNodePorts"] = False  # as before: the addresses do not need node ports
    spec |= service.spec
    if carrier.is_additional:
        spec["ports"] = [{key: value for key, value in each.items() if key != "nodePort"} for each in spec["ports"]]
        spec["ipFamilyPolicy"] = "SingleStack" if len(carrier.families) == 1 else "RequireDualStack"
        ordered = [each for each in service.families if each in carrier.families]
        spec["ipFamilies"] = [f"IPv{each}" for each in ordered]
    else:
        if wanted.to == "metallb" and len(carrier.addresses) == 1 and "ipFamilyPolicy" in spec:
            spec["ipFamilyPolicy"] = "SingleStack"  # else MetalLB adds an address, perhaps one of another Service
        spec["externalIPs"] = list(decision.remaining(service))
    return _manifest(service.namespace, carrier.name, spec, labels, notes)


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
