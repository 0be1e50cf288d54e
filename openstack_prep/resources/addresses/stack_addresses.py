"""The addresses in the parameters of stacks: those of their APIs, and those that all nodes may use.

Source: heat_templates/rke2-cluster.yaml (api_address, extra_addresses), and copies of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from openstack_prep.base import ranges
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw
from openstack_prep.resources.addresses.node_addresses import OTHERS, DeclaredAddresses, Finding, HeldRange
from openstack_prep.resources.heat.heat_parameters import items
from openstack_prep.resources.orchestration.stack import Stack

API, EXTRA = "api_address", "extra_addresses"
"""The parameters with the address of the API, and with further addresses of all nodes."""


def api_holders(stacks: Iterable[Stack], declared: DeclaredAddresses, network: str | None) -> Iterator[HeldRange]:
    """Yield the addresses of the APIs of stacks on a network; without one, of all stacks."""
    for stack in stacks:
        given = stack.given
        if network is None or network_of(given, declared) == network:
            yield from (HeldRange(each, f"the API of {stack.key}") for each in readable([given.get(API)]))


def extra_addresses(stack: Stack) -> list[Range]:
    """Return the addresses that a stack's template allows on all nodes."""
    return readable(items(stack.given.get(EXTRA) or ()))


def extra_findings(stack: Stack, declared: DeclaredAddresses, *, for_plan: bool) -> Iterator[Finding]:
    """Yield the further addresses of nodes that a subnet has for its gateway, or may assign to any port.

    Only CIDRs can be given, so that a block may contain the broadcast address beside a pool, or the whole subnet.
    """
    network = network_of(stack.given, declared)
    for room in declared.rooms(network, for_plan=for_plan) if network else ():
        whole = Range.of(room.cidr)
        inside = [both for each in extra_addresses(stack) if (both := each.overlap(whole)) and both != whole]
        if room.gateway and any(room.gateway in each for each in inside):
            yield f"{room.gateway} is the gateway of subnet {room.name}", OTHERS
        yield from replace(room, gateway=None).special_in([each for each in inside if each.count == 1])
        for what in room.assignable(list(ranges.without(inside, declared.reserved(room.name)))):
            yield what, f"{OTHERS}, or reserve them with address_pools"


def network_of(parameters: Raw, declared: DeclaredAddresses) -> str | None:
    """Return the network of the nodes as the spec names it; None if no parameter says it."""
    subnet, network = (text(parameters, name) for name in ("subnet", "network"))
    return declared.network_of(subnet) or network


def text(parameters: Raw, name: str) -> str | None:
    """Return the value of a parameter that is a text; None if it is empty, or of another type."""
    value = parameters.get(name)
    return value if isinstance(value, str) and value else None


def readable(values: Iterable[object]) -> list[Range]:
    """Return the ranges among the values of parameters; Heat and Neutron report the others."""
    found = []
    for value in values:
        with contextlib.suppress(InvalidValue):
            found += [Range.read(value)] if isinstance(value, str) and value else []
    return found
