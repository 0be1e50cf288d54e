"""All checks of virtual machines' ways outside, and those of their exposures.

``where`` of a mistake is a field of the settings, such as ``networks[0].gateway``, or of an exposure, such as
``exposures[web].address``.

Sources: kubemacpool 0.51 (pkg/pool-manager/pool.go, virtualmachine_pool.go: a MAC address of the range is given to any
machine unless a machine has it already); KubeVirt 1.9 (pkg/network/link/mac.go; pkg/network/admitter/netiface.go: ports
are TCP or UDP); Kubernetes, pkg/apis/core/validation/validation.go (ValidateNonSpecialIP), Service v1, and the default
of --service-node-port-range; KEP 5707 (externalIPs). No Service answers at a multicast address, also beyond those.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence

from openstack_prep.base.errors import Mistake
from openstack_prep.base.multicast import is_multicast_mac
from openstack_prep.exposures.model import ExposedPort, Placed
from openstack_prep.exposures.virtualization.attaching import (
    WAYS,
    attachments,
    bridged,
    is_host,
    networks_of,
    served,
)
from openstack_prep.exposures.virtualization.bridge_rules import Findings, bridge_mistakes
from openstack_prep.exposures.virtualization.cloud_init import leaves_outside
from openstack_prep.exposures.virtualization.machine_rules import machine_mistakes
from openstack_prep.exposures.virtualization.model import Virtualization
from openstack_prep.exposures.virtualization.network_rules import network_mistakes
from openstack_prep.exposures.virtualization.services import ID_SINCE, LONGEST_LABEL, release, selector
from openstack_prep.kubernetes.convert.versions import minor_of

SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names of Services, RFC 1035: the rule of all releases."""
RESERVED_MAC = "02:00:00:00:00:00"
"""The MAC address of KubeVirt's bridge within pods."""
NODE_PORTS = range(30000, 32768)
DEPRECATED, GATED = 36, 40
"""Kubernetes 1.N that warns about externalIPs, and the one that is planned to disable them."""


def mistakes(settings: Virtualization, placed: Sequence[Placed]) -> Iterator[Mistake]:
    """Yield all mistakes of the settings and of the exposures that lead to virtual machines."""
    yield from bridge_mistakes(settings)
    yield from network_mistakes(settings, placed)
    yield from machine_mistakes(settings, placed)
    yield from _pool(settings)
    for each in sorted(placed, key=lambda one: one.exposure.name):
        for rule in RULES:
            for field, what, fix in rule(settings, each):
                yield Mistake(f"exposures[{each.exposure.name}].{field}", what, fix)
    yield from _given_twice(settings, placed)


def _pool(settings: Virtualization) -> Iterator[Mistake]:
    pool = settings.mac_pool
    if pool is None:
        return
    for field, mac in (("first", pool.first), ("last", pool.last)):
        if is_multicast_mac(mac):
            what = f"{mac} is a multicast address, which kubemacpool refuses"
            yield Mistake(f"mac_pool.{field}", what, "use an even first byte, such as 02")
    if pool.first >= pool.last:
        what = f"{pool.last} is not above first ({pool.first}), which kubemacpool requires"
        yield Mistake("mac_pool.last", what, "correct the range")


# --- each exposure ------------------------------------------------------------------------


def _possible(settings: Virtualization, placed: Placed) -> Findings:
    exposure = placed.exposure
    if exposure.target.virtual_machine and exposure.how not in WAYS:
        fix = "set how: bridge, and floating_ip for a floating IP that leads to the machine's address"
        yield "how", f"{exposure.how} does not lead to a virtual machine", fix
    if exposure.how == "bridge" and not exposure.target.virtual_machine:
        yield "how", "bridge leads to virtual machines only", "set target.virtual_machine, or another way"


def _attached(settings: Virtualization, placed: Placed) -> Findings:
    if not bridged([placed]):
        return
    if placed.mac is None and placed.exposure.pool:  # the exposure itself reports that it has no pool
        yield "how", "a virtual machine on a bridge needs a MAC address, and none is reserved", "reserve one for it"
    if placed.address is None:  # reported by the exposure, or by its pool
        return
    address = ipaddress.ip_address(placed.address)
    networks = networks_of(settings, placed)
    if not networks:
        known = ", ".join(f"{each.name} {each.cidr}" for each in settings.networks) or "none"
        what = f"{address} is in none of the networks ({known})"
        yield "address", what, "choose an address of a network, or declare its network"
    for network in networks:
        if str(address) == network.gateway:
            yield "address", f"{address} is the gateway of network {network.name}", "choose another address"
        elif not is_host(address, ipaddress.ip_network(network.cidr)):
            what = f"{address} is network {network.name} itself or its broadcast address"
            yield "address", what, "choose another address"


def _not_translated(settings: Virtualization, placed: Placed) -> Findings:
    for port in placed.exposure.ports if bridged([placed]) else ():
        if port.inner != port.port:
            what = f"port {port} cannot lead to {port.inner}: on a bridge nothing translates ports"
            yield "ports", what, "remove target, or let the machine listen on this port"
        if port.node_port:
            yield "ports", f"node_port of {port} only applies to Services", "remove it"


def _mac(settings: Virtualization, placed: Placed) -> Findings:
    mac, pool = placed.mac, settings.mac_pool
    if mac is None or not bridged([placed]):
        return
    if is_multicast_mac(mac) or mac == RESERVED_MAC:
        fix = "reserve another one, such as 06:00:00:00:00:01"
        yield "mac", f"{mac} is {'a multicast' if is_multicast_mac(mac) else 'a reserved'} address", fix
    elif pool and pool.first <= mac <= pool.last:
        what = f"{mac} is in kubemacpool's range {pool.first} to {pool.last}, and another machine may get it"
        yield "mac", what, "reserve one outside of the range, or declare the cluster's own range in mac_pool"


def _as_a_service(settings: Virtualization, placed: Placed) -> Findings:
    exposure = placed.exposure
    if not served([placed]):
        return
    if not SERVICE_NAME.fullmatch(exposure.name):
        yield "name", f"{exposure.name!r} is not a name of a Service", "begin it with a letter, and use at most 63"
    if exposure.how == "external-ip":
        yield from _external_ip(placed)
    if not selector(settings, exposure.target.virtual_machine or ""):
        what = f"KubeVirt {settings.kubevirt_version} adds no label with the name of a virtual machine"
        yield "target", what, f"declare {exposure.target.virtual_machine} in machines with the labels of its template"
    for index, port in enumerate(exposure.ports):
        yield from _service_port(placed, port, exposure.ports[:index])


def _external_ip(placed: Placed) -> Findings:
    if placed.address is None:  # reported by the exposure, or by its pool
        return
    address = ipaddress.ip_address(placed.address)
    if address.is_unspecified or address.is_loopback or address.is_link_local or address.is_multicast:
        fix = "choose an address of a network of the nodes"
        yield "address", f"{address} cannot be an external IP", fix


def _service_port(placed: Placed, port: ExposedPort, before: Sequence[ExposedPort]) -> Findings:
    if port.protocol == "sctp":
        yield "ports", f"KubeVirt does not forward {port}", "use tcp or udp, or how: bridge"
    if port.key in [each.key for each in before]:
        yield "ports", f"{port} is listed twice", "list it once"
    if port.node_port is None:
        return
    if placed.exposure.how == "external-ip":
        yield "ports", f"node_port of {port} does not apply to external-ip", "remove it"
    elif (port.protocol, port.node_port) in [(each.protocol, each.node_port) for each in before]:
        yield "ports", f"node_port {port.node_port} is used twice", "give each port its own"


RULES: tuple[Callable[[Virtualization, Placed], Findings], ...] = (
    _possible,
    _attached,
    _not_translated,
    _mac,
    _as_a_service,
)


def _given_twice(settings: Virtualization, placed: Sequence[Placed]) -> Iterator[Mistake]:
    """Yield MAC addresses and interfaces that two exposures claim."""
    macs: dict[str, str] = {}
    interfaces: dict[tuple[str, str], str] = {}
    for each in attachments(settings, placed):
        name, mac = each.placed.exposure.name, each.placed.mac
        if mac is not None and macs.setdefault(mac, name) != name:
            yield Mistake(f"exposures[{name}].mac", f"{mac} is also that of {macs[mac]}", "reserve another one")
        other = interfaces.setdefault((each.machine, each.network.name), name)
        if other != name:
            what = f"{each.machine} is attached to network {each.network.name} by {other} already"
            yield Mistake(f"exposures[{name}].target", what, f"add the ports to exposure {other}")


# --- warnings -----------------------------------------------------------------------------


def warnings(
    settings: Virtualization, placed: Sequence[Placed], kubernetes_version: str | None = None
) -> Iterator[str]:
    """Yield warnings about valid settings, for a version of Kubernetes such as v1.36.1+rke2r1, if it is known."""
    minor = minor_of(kubernetes_version)
    for each in served(placed):
        name, machine = each.exposure.name, each.exposure.target.virtual_machine or ""
        if each.exposure.how == "external-ip":
            yield from _about_external_ips(name, minor)
        for port in each.exposure.ports:
            if port.node_port and port.node_port not in NODE_PORTS:
                what = f"exposures[{name}]: node_port {port.node_port} is outside of 30000-32767, the default range"
                yield f"{what}; the API server needs service-node-port-range"
        yield from _about_names(settings, name, machine)
        attached = [one for one in attachments(settings, placed) if one.machine == machine]
        if leaves_outside(settings.machine(machine), attached) and not settings.cluster_networks:
            what = f"exposures[{name}]: {machine} answers pods by its default route outside, so that answers get lost"
            yield f"{what}; list the networks of pods, Services and nodes in cluster_networks"
    if settings.nmstate_version == "v1alpha1":
        yield "nmstate_version: kubernetes-nmstate 0.84 and later have no v1alpha1; use v1"


def _about_external_ips(name: str, minor: int | None) -> Iterator[str]:
    fix = "use how: metallb, cilium or kube-vip"
    if minor is not None and minor >= GATED:
        yield f"exposures[{name}]: Kubernetes 1.{GATED} and later are planned to ignore externalIPs; {fix}"
    elif minor is None or minor >= DEPRECATED:
        yield f"exposures[{name}]: externalIPs is deprecated since Kubernetes 1.{DEPRECATED}; {fix}"


def _about_names(settings: Virtualization, name: str, machine: str) -> Iterator[str]:
    """Yield machines whose label is not unique: before KubeVirt 1.7 it is the first part of the name."""
    known = release(settings)
    short = machine.rpartition("/")[2]
    if settings.machine(machine).labels or (known is not None and known >= ID_SINCE):
        return
    if "." in short or len(short) > LONGEST_LABEL:
        what = f"exposures[{name}]: the Service selects every virtual machine whose name begins like {short}"
        yield f"{what}; declare kubevirt_version '1.7' or later, or labels of the machine"
