"""Services that lead to the pod network of virtual machines: pure functions.

Sources: KubeVirt's virtctl (pkg/virtctl/expose/expose.go of 0.36, 0.58, 1.5, 1.7 and 1.9), pkg/apimachinery/labels.go
(vmi.kubevirt.io/id since 1.7), pkg/virt-controller/services/template.go (vm.kubevirt.io/name since 0.51) and
pkg/util/net/dns/sanitize.go of 1.9; Kubernetes API, Service v1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from openstack_prep.base.raw import Values
from openstack_prep.exposures import services
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.services import ANNOTATIONS
from openstack_prep.exposures.virtualization.model import Virtualization

ID_LABEL, NAME_LABEL = "vmi.kubevirt.io/id", "vm.kubevirt.io/name"
ID_SINCE, NAME_SINCE = (1, 7), (0, 51)
LONGEST_LABEL = 63
DIGITS = 8
"""Digits of the hash in the id of a virtual machine with a long name."""


def release(settings: Virtualization) -> tuple[int, int] | None:
    """Return the first two numbers of KubeVirt's version, if it is declared."""
    if settings.kubevirt_version is None:
        return None
    first, second, *_ = settings.kubevirt_version.removeprefix("v").split(".")
    return int(first), int(second)


def selector(settings: Virtualization, machine: str) -> dict[str, str]:
    """Return the labels by which a Service selects a virtual machine; empty if KubeVirt adds none.

    KubeVirt without a declared version is assumed to have the older label, which newer ones keep.
    """
    labels = settings.machine(machine).labels
    if labels:
        return dict(labels)
    name = machine.rpartition("/")[2]
    known = release(settings)
    if known is not None and known >= ID_SINCE:
        return {ID_LABEL: machine_id(name)}
    if known is None or known >= NAME_SINCE:
        return {NAME_LABEL: name.partition(".")[0][:LONGEST_LABEL]}
    return {}


def machine_id(name: str) -> str:
    """Return the value of the label vmi.kubevirt.io/id: the name, or its beginning and a hash of it."""
    if len(name) <= LONGEST_LABEL:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[: LONGEST_LABEL - DIGITS - 1]}-{digest[:DIGITS]}"


def service(settings: Virtualization, placed: Placed, annotations: Mapping[str, str] = ANNOTATIONS) -> Values:
    """Return the Service of an exposure; ``annotations`` are those by which each way requests an address."""
    exposure = placed.exposure
    machine = selector(settings, exposure.target.virtual_machine or "")
    found = services.service(placed, machine, exposure.name, annotations)
    if exposure.how == "external-ip":
        ports = services.ports(exposure.ports, with_node_ports=False)
        found["spec"] |= {"type": "ClusterIP", "externalIPs": [placed.address], "ports": ports}
    return found
