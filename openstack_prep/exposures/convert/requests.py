"""What a Service asks of a load balancer, and what an old Service would keep asking after it has changed.

Server-side apply only changes the fields in a manifest: annotations and fields of others stay. What the load balancer
would read there is cleared: each of them takes an empty annotation for none.

Sources: MetalLB 0.13.2 to 0.16.1, controller/service.go (getDesiredLbIPs, valueForAnnotation: the prefix metallb.io
goes before metallb.universe.tf, and 0.14.8 only reads the latter; an address beside loadBalancerIP, or in another pool
than that of address-pool, is refused); Cilium 1.13 to 1.19, operator/pkg/lbipam/lbipam.go (getSVCRequestedIPs: both
loadBalancerIP and the annotation count) and pkg/annotation (Get); kube-vip 1.2.3, pkg/instance/instance.go
(FetchServiceAddresses) and pkg/services/processor.go (kube-vip.io/ignore); kubernetes/kubernetes,
pkg/proxy/iptables/proxier.go (loadBalancerSourceRanges do not apply to externalIPs); cloud-provider-openstack 1.35,
pkg/openstack/loadbalancer.go (its annotations, and Services without a class).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures.convert.objects import LoadBalancerOptions, OldService, To
from openstack_prep.kubernetes.metallb import METALLB_IO_SINCE

POOLS = ("metallb.io/address-pool", "metallb.universe.tf/address-pool")
ADDRESSES = ("metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs")
CILIUM = ("lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips")
KUBE_VIP, IGNORE = "kube-vip.io/loadbalancerIPs", "kube-vip.io/ignore"
READ: Mapping[To, tuple[str, ...]] = {
    "metallb": (*POOLS, *ADDRESSES),
    "cilium": CILIUM,
    "kube-vip": (KUBE_VIP, IGNORE),
}
"""The annotations by which each load balancer decides about addresses."""
OCCM, OF_OCCM = "cloud-provider-openstack", "loadbalancer.openstack.org/"
"""What creates load balancers of Octavia, and the prefix of its annotations."""
INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer"
"""Its one annotation without that prefix (loadbalancer.go, ServiceAnnotationLoadBalancerInternal)."""
CLASSES: Mapping[To, str] = {"metallb": "metallb", "kube-vip": "kube-vip.io/kube-vip-class"}
"""Classes beside cloud-provider-openstack, which takes each Service without one. Cilium's are of its announcements."""
CILIUM_ANNOTATION_SINCE = (1, 16)


def cleared(service: OldService, wanted: LoadBalancerOptions, own: Iterable[str]) -> Values:
    """Return what the manifest of an old Service empties: ``annotations`` besides its ``own`` ones, and ``spec``."""
    stale = [name for name in READ[wanted.to] if service.annotations.get(name) and name not in own]
    found: Values = {"annotations": dict.fromkeys(stale, "")} if stale else {}
    return found | ({"spec": {"loadBalancerIP": ""}} if service.load_balancer_ip else {})


def restored(service: OldService, wanted: LoadBalancerOptions) -> Values:
    """Return what the way back restores of it."""
    annotations = {name: service.annotations[name] for name in READ[wanted.to] if service.annotations.get(name)}
    found: Values = {"annotations": annotations} if annotations else {}
    return found | ({"spec": {"loadBalancerIP": service.load_balancer_ip}} if service.load_balancer_ip else {})


def merged(service: OldService | None, manifest: Raw) -> Values:
    """Return a Service after server-side apply, as far as load balancers read it; ``service`` is what exists before."""
    if service is None:
        return dict(manifest)
    metadata, spec = manifest["metadata"], manifest["spec"]
    annotations = {**service.annotations, **(metadata.get("annotations") or {})}
    kept: Values = {"loadBalancerIP": service.load_balancer_ip, "loadBalancerClass": service.class_name}
    kept |= {"loadBalancerSourceRanges": list(service.source_ranges)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}, "spec": {**kept, **spec}}


def requested(service: Raw, wanted: LoadBalancerOptions) -> tuple[str, ...]:
    """Return the addresses that a Service requests of the load balancer, as this reads them."""
    annotations, field = service["metadata"].get("annotations") or {}, service["spec"].get("loadBalancerIP") or ""
    if wanted.to == "metallb":
        return _split(_first(annotations, _names(ADDRESSES, wanted)) or field)
    if wanted.to == "kube-vip":
        return _split(annotations.get(KUBE_VIP, field))
    return tuple(dict.fromkeys((*_split(field), *_split(_first(annotations, _names(CILIUM, wanted))))))


def refusals(service: Raw, pool: str, wanted: LoadBalancerOptions) -> Iterable[str]:
    """Yield why the load balancer does not assign the requested addresses, which are in ``pool``."""
    annotations, spec = service["metadata"].get("annotations") or {}, service["spec"]
    if wanted.to == "metallb":
        if spec.get("loadBalancerIP") and _first(annotations, _names(ADDRESSES, wanted)):
            yield "MetalLB refuses a Service with loadBalancerIP beside the annotation"
        asked = _first(annotations, _names(POOLS, wanted))
        if asked and asked != pool:
            yield f"it asks for pool {asked}, and its addresses are in {pool}"
    if wanted.to == "kube-vip" and annotations.get(IGNORE) == "true":
        yield f"kube-vip ignores it ({IGNORE})"
    if wanted.class_name and (spec.get("loadBalancerClass") or wanted.class_name) != wanted.class_name:
        yield f"its class is {spec['loadBalancerClass']}, not {wanted.class_name}"
    if spec.get("loadBalancerSourceRanges"):
        yield "loadBalancerSourceRanges would limit who reaches the address"


def _names(names: tuple[str, str], wanted: LoadBalancerOptions) -> tuple[str, ...]:
    """Return the annotations that a release reads, the first one first; older ones only know the second name."""
    old = wanted.minor < CILIUM_ANNOTATION_SINCE if wanted.to == "cilium" else wanted.version < METALLB_IO_SINCE
    return names[1:] if old else names


def _first(annotations: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the first annotation that exists, also if it is empty."""
    return next((annotations[name] for name in names if name in annotations), "")


def _split(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
