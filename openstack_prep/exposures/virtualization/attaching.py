"""Which exposures lead to virtual machines, and how: pure functions over placed exposures."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.exposures.model import Placed, Way
from openstack_prep.exposures.virtualization.model import Machine, OutsideNetwork, Virtualization
from openstack_prep.neutron.addresses import Address, Block

SERVICE_WAYS: tuple[Way, ...] = ("node-port", "external-ip", "metallb", "cilium", "kube-vip")
"""Ways by which a Service leads to the pod network of a virtual machine."""
WAYS: tuple[Way, ...] = ("bridge", *SERVICE_WAYS)


@dataclass(frozen=True)
class Attachment:
    """An interface of a virtual machine in a network outside."""

    placed: Placed
    network: OutsideNetwork

    @property
    def machine(self) -> str:
        """The virtual machine, as NAMESPACE/NAME."""
        return self.placed.exposure.target.virtual_machine or ""

    @property
    def namespace(self) -> str:
        return self.placed.exposure.target.namespace

    @property
    def address(self) -> str:
        """The address with the prefix length of the network."""
        return f"{self.placed.address}/{ipaddress.ip_network(self.network.cidr).prefixlen}"


def bridged(placed: Sequence[Placed]) -> list[Placed]:
    """Return the exposures that attach a virtual machine to a network outside, in the order of their names."""
    return _of_ways(placed, ("bridge",))


def served(placed: Sequence[Placed]) -> list[Placed]:
    """Return the exposures with a Service that leads to a virtual machine, in the order of their names."""
    return _of_ways(placed, SERVICE_WAYS)


def _of_ways(placed: Sequence[Placed], ways: Sequence[Way]) -> list[Placed]:
    mine = (each for each in placed if each.exposure.target.virtual_machine and each.exposure.how in ways)
    return sorted(mine, key=lambda each: each.exposure.name)


def networks_of(settings: Virtualization, placed: Placed) -> list[OutsideNetwork]:
    """Return the networks that contain the address of an exposure; exactly one if the settings are right."""
    if placed.address is None:
        return []
    address = ipaddress.ip_address(placed.address)
    return [each for each in settings.networks if address in ipaddress.ip_network(each.cidr)]


def is_host(address: Address, network: Block) -> bool:
    """Whether an address of a network is neither the network itself nor its broadcast address."""
    return network.version == 6 or network.prefixlen >= 31 or address not in (network[0], network[-1])


def attachments(settings: Virtualization, placed: Sequence[Placed]) -> list[Attachment]:
    """Return the interfaces of virtual machines in networks outside, in the order of the exposures' names."""
    return [Attachment(each, network) for each in bridged(placed) for network in networks_of(settings, each)[:1]]


def namespaces_of(network: OutsideNetwork, attached: Sequence[Attachment]) -> list[str]:
    """Return the namespaces that get a network, sorted."""
    needed = {each.namespace for each in attached if each.network == network}
    return sorted(set(network.namespaces) or needed)


def by_machine(
    settings: Virtualization, attached: Sequence[Attachment]
) -> Iterator[tuple[Machine, tuple[Attachment, ...]]]:
    """Yield each virtual machine to render with its interfaces outside, in the order of the machines' names."""
    whole = {each.name for each in settings.machines if each.whole}
    for name in sorted(whole | {each.machine for each in attached}):
        yield settings.machine(name), tuple(each for each in attached if each.machine == name)
