"""What KubeVirt refuses of virtual machines, or would not lead outside.

Sources: KubeVirt 1.9 (pkg/network/admitter/netiface.go, binding.go; pkg/virt-api/webhooks/validating-webhook/admitters
/vmi-create-admitter.go: one source per volume, 2048 bytes of network data).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence

from openstack_prep.base.errors import Mistake
from openstack_prep.exposures.model import HOST, Placed
from openstack_prep.exposures.virtualization.attaching import WAYS, Attachment, attachments, served
from openstack_prep.exposures.virtualization.bridge_rules import Findings
from openstack_prep.exposures.virtualization.cloud_init import LONGEST, network_data
from openstack_prep.exposures.virtualization.findings import interface_findings, label_mapping_findings
from openstack_prep.exposures.virtualization.model import Machine, Virtualization
from openstack_prep.kubernetes.balancing.pools import repeated

Inside = tuple[Virtualization, Sequence[Placed], Sequence[Attachment]]
"""The settings, the exposures, and the interfaces of a machine in networks outside."""


def machine_mistakes(settings: Virtualization, placed: Sequence[Placed]) -> Iterator[Mistake]:
    """Yield all mistakes of the machines."""
    yield from repeated("machines", [each.name for each in settings.machines])
    attached = attachments(settings, placed)
    for index, machine in enumerate(settings.machines):
        inside = (settings, placed, [each for each in attached if each.machine == machine.name])
        for rule in RULES:
            for field, what, fix in rule(machine, inside):
                yield Mistake(f"machines[{index}].{field}", what, fix)
    yield from _default_routes(settings, attached)


def _exposed(machine: Machine, inside: Inside) -> Findings:
    _, placed, _ = inside
    names = {each.exposure.target.virtual_machine for each in placed if each.exposure.how in WAYS}
    if machine.name not in names:
        fix = "correct the name, or remove the machine"
        yield "name", f"no exposure leads to virtual machine {machine.name}", fix


def _complete(machine: Machine, inside: Inside) -> Findings:
    settings, _, attached = inside
    whole = machine.whole
    if whole is None:
        return
    if (whole.container_disk is None) == (whole.claim is None):
        yield "whole", "a machine has one disk", "set exactly one of container_disk and claim"
    if whole.container_disk and not re.fullmatch(r"[!-~]+", whole.container_disk):
        yield "whole.container_disk", f"{whole.container_disk!r} is not an image", "use one such as quay.io/org/image:1"
    for field, name in (("claim", whole.claim), ("user_data_secret", whole.user_data_secret)):
        if name and not re.fullmatch(HOST, name):
            yield f"whole.{field}", f"{name!r} is not a DNS name", "use lower-case letters, digits, hyphens and dots"
    if machine.interfaces == "replace":
        yield "interfaces", "replace only applies to a patch", "remove it, or remove whole"
    if not all(each.placed.mac for each in attached):
        return
    length = len(network_data(settings, machine, attached).encode())
    if length > LONGEST:
        what = f"the network data has {length} bytes, and a VirtualMachine may contain {LONGEST}"
        yield "whole", what, "list fewer DNS servers and cluster_networks"


def _on_the_pod_network(machine: Machine, inside: Inside) -> Findings:
    _, placed, _ = inside
    for what, fix in interface_findings(machine.pod_interface):
        yield "pod_interface", what, fix
    if machine.pod_network:
        return
    names = [each.exposure.name for each in served(placed) if each.exposure.target.virtual_machine == machine.name]
    if names:
        what = f"Services lead to the pod network, as exposure {names[0]} requires"
        yield "pod_network", what, "remove it, or expose the machine with how: bridge"
    if machine.default_route == "pod":
        yield "default_route", "the machine has no pod network", "remove it, or set pod_network: true"


def _labelled(machine: Machine, inside: Inside) -> Findings:
    for what, fix in label_mapping_findings(machine.labels):
        yield "labels", what, fix
    if machine.labels is not None and not machine.labels:
        yield "labels", "are empty, and a Service would select nothing", "remove it, or add a label"


RULES: tuple[Callable[[Machine, Inside], Findings], ...] = (_exposed, _complete, _on_the_pod_network, _labelled)


def _default_routes(settings: Virtualization, attached: Sequence[Attachment]) -> Iterator[Mistake]:
    """Yield exposures that give a machine a second default route."""
    seen: dict[tuple[str, int], str] = {}
    for each in attached:
        gateway = each.network.gateway
        if gateway is None or settings.machine(each.machine).default_route != "outside":
            continue
        key = (each.machine, ipaddress.ip_address(gateway).version)
        if seen.setdefault(key, each.network.name) != each.network.name:
            what = f"{each.machine} would have default routes by networks {seen[key]} and {each.network.name}"
            fix = "remove the gateway of one network, or set default_route: pod for the machine"
            yield Mistake(f"exposures[{each.placed.exposure.name}].address", what, fix)
