"""kube-vip as a load balancer of Services: pure functions.

Source: kube-vip-cloud-provider 0.0.12 (pkg/provider/loadBalancer.go): the keys are range-NAMESPACE and range-global, a
value is several ranges with commas; a namespace with a range of its own does not use the global one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name, Strict
from openstack_prep.kubernetes.service_pools import (
    Addresses,
    ServicePool,
    address_findings,
    label_findings,
    list_mistakes,
    name_findings,
    ranges,
)

# --- settings ---------------------------------------------------------------------------------


ANNOTATION = "kube-vip.io/loadbalancerIPs"
"""The annotation of a Service with its addresses."""
EVERYWHERE = "global"
"""The pool of all namespaces that have none of their own."""


@dataclass(frozen=True, kw_only=True)
class KubeVipPool(ServicePool):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    name: Name | None = None
    """Name of the pool in messages; kube-vip has no names of pools. Default: the name of the address pool."""
    namespace: Name = EVERYWHERE
    """Namespace that the addresses are for; default: all namespaces that have no pool of their own."""


@dataclass(frozen=True, kw_only=True)
class KubeVip(Strict):
    """kube-vip and its cloud provider in place of MetalLB; install both by their own manifests."""

    pools: tuple[KubeVipPool, ...]
    """Addresses for Services."""


# --- pool -------------------------------------------------------------------------------------


NAME, NAMESPACE = "kubevip", "kube-system"
LABEL = "implementation=kube-vip"
"""The label by which the cloud provider finds Services whose addresses are in use."""
PROVIDER = (
    "https://raw.githubusercontent.com/kube-vip/kube-vip-cloud-provider/v0.0.12/manifest/kube-vip-cloud-controller.yaml"
)


def document(kube_vip: KubeVip, addresses: Addresses) -> list[dict[str, object]]:
    """Return the ConfigMap."""
    data: dict[str, list[str]] = {}
    for pool in kube_vip.pools:
        found = [f"{each.first}-{each.last}" for each in ranges(pool, addresses)]
        data.setdefault(f"range-{pool.namespace}", []).extend(found)
    texts = {key: ",".join(each) for key, each in data.items()}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}]


def mistakes(kube_vip: KubeVip, addresses: Addresses) -> Iterator[Mistake]:
    """Yield all mistakes; ``where`` is the name of a field."""
    yield from list_mistakes(kube_vip.pools, addresses)
    for index, pool in enumerate(kube_vip.pools):
        for field, what, fix in (*name_findings(pool), *address_findings(pool, addresses)):
            yield Mistake(f"pools[{index}]{field and f'.{field}'}", what, fix)
        for what, fix in label_findings(pool.namespace):
            yield Mistake(f"pools[{index}].namespace", what, fix)
