"""Services that lead to pods at the address of an exposure: pure functions.

Sources: Kubernetes API, Service v1; MetalLB, Cilium and kube-vip's cloud provider for the annotations.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence

from openstack_prep.base import shell
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.exposures.endpoint import ExposedPort, PlacedExposure

ANNOTATIONS: Mapping[str, str] = {
    "metallb": "metallb.io/loadBalancerIPs",
    "cilium": "lbipam.cilium.io/ips",
    "kube-vip": "kube-vip.io/loadbalancerIPs",
}
"""Annotations by which Services request addresses, by way; those of the newest releases."""
BY_SERVICE = (*ANNOTATIONS, "node-port")
"""Ways in which only a Service leads to the pods."""
SERVICES, PATCHES = "services.yaml", "patch-services.sh"
HEAD = "#!/bin/sh\n# Lets existing Services request their addresses: sh {name}\nset -eu\n\n"


def files(placed: Iterable[PlacedExposure]) -> dict[str, str]:
    """Return the manifests of new Services, and a script that changes existing ones; each only if it is needed."""
    mine = [exposure for exposure in placed if exposure.exposure.target.service and exposure.exposure.how in BY_SERVICE]
    made = [
        service(exposure, exposure.exposure.target.selector) for exposure in mine if exposure.exposure.target.selector
    ]
    changed = [patch(exposure) for exposure in mine if not exposure.exposure.target.selector]
    texts = {SERVICES: dump(*made)} if made else {}
    return texts | ({PATCHES: HEAD.format(name=PATCHES) + "\n".join(changed) + "\n"} if changed else {})


def service(
    placed: PlacedExposure,
    selector: Mapping[str, str],
    name: str | None = None,
    annotations: Mapping[str, str] = ANNOTATIONS,
) -> Values:
    """Return the Service of an exposure; ``annotations`` are those by which each way requests an address."""
    exposure = placed.exposure
    metadata: Values = {"name": name or exposure.target.object_name, "namespace": exposure.target.namespace}
    if exposure.how in annotations and placed.address:
        metadata["annotations"] = {annotations[exposure.how]: placed.address}
    spec: Values = {"type": "NodePort" if exposure.how == "node-port" else "LoadBalancer"}
    spec |= families([placed.address] if placed.address and exposure.how != "node-port" else [])
    spec |= {"selector": dict(selector), "ports": ports(exposure.ports)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def families(addresses: Sequence[str]) -> Values:
    """Return the IP versions of a Service with these addresses: kube-proxy serves no others."""
    versions = sorted({ipaddress.ip_address(address).version for address in addresses})
    if len(versions) == 2:
        return {"ipFamilyPolicy": "RequireDualStack"}
    return {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]} if versions == [6] else {}


def ports(exposed: Iterable[ExposedPort], *, with_node_ports: bool = True) -> list[Values]:
    """Return the ports of a Service."""
    found = []
    for port in exposed:
        values: Values = {"name": f"{port.protocol}-{port.port}", "protocol": port.protocol.upper()}
        values |= {"port": port.port, "targetPort": port.inner}
        if port.node_port and with_node_ports:
            values["nodePort"] = port.node_port
        found.append(values)
    return found


def patch(placed: PlacedExposure, kubectl: str = "kubectl") -> str:
    """Return the command that changes an existing Service; of its ports, only the node ports that the spec gives.

    A strategic merge finds a port of the list by its number, and keeps the rest of it, and all others (Kubernetes,
    core/v1/types.go, ServiceSpec.Ports: patchMergeKey=port).
    """
    whole = service(placed, {})
    change: Values = {"spec": {"type": whole["spec"]["type"]}}
    if given := [port for port in whole["spec"]["ports"] if "nodePort" in port]:
        change["spec"]["ports"] = [{name: each[name] for name in ("port", "protocol", "nodePort")} for each in given]
    if notes := whole["metadata"].get("annotations"):
        change = {"metadata": {"annotations": notes}} | change
    target = placed.exposure.target
    namespace, name = shell.quote(target.namespace), shell.quote(target.object_name)
    kind = "strategic" if given else "merge"
    return f"{kubectl} -n {namespace} patch service {name} --type {kind} -p {shell.quote(json.dumps(change))}"
