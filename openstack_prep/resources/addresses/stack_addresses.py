"""The addresses in the parameters of stacks: those of their APIs, and those that all nodes may use.

Source: heat_templates/rke2-cluster.yaml (api_address, extra_addresses), and copies of it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from openstack_prep.base import ranges
from openstack_prep.base.errors import PrepError
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw, walk
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.node_addresses import OTHERS, DeclaredAddresses, Finding, HeldRange
from openstack_prep.resources.heat.flow import PARAMETERS
from openstack_prep.resources.heat.package import SHIPPED
from openstack_prep.resources.heat.parameters import items
from openstack_prep.resources.orchestration.stack import Stack

API, EXTRA = "api_address", "extra_addresses"
"""The parameters with the address of the API, and with further addresses of all nodes."""
PAIRS = "allowed_address_pairs"
"""The property of OS::Neutron::Port by which a template adds pairs itself."""
SECURITY = "port_security_enabled"
"""The property of OS::Neutron::Port and OS::Neutron::Net that lets ports send from any address, without pairs."""


def api_holders(stacks: Iterable[Stack], declared: DeclaredAddresses, network: str | None) -> Iterator[HeldRange]:
    """Yield the addresses of the APIs of stacks on a network; without one, of all stacks."""
    for stack in stacks:
        given = stack.given
        if network is None or network_of(given, declared) == network:
            yield from (HeldRange(each, f"the API of {stack.key}") for each in readable([given.get(API)]))


def extra_addresses(stack: Stack) -> list[Range]:
    """Return the addresses that a stack's template allows on all nodes."""
    return readable(items(stack.given.get(EXTRA) or ()))


def on_nodes(pairs: AddressPairs, stack: str, given: Raw | None) -> bool:
    """Whether pairs select the ports of all nodes of a stack, as far as the spec says it.

    ``given``: the parameters of a stack with a shipped template, which say the security groups of its nodes.
    """
    if pairs.stack:
        return pairs.stack == stack
    if pairs.security_group and given is not None:
        names = ("extra_security_groups", "security_groups")
        groups = [group for name in names for group in items(given.get(name) or ())]
        return pairs.security_group in (*groups, f"{stack}-nodes")
    return not pairs.infra_id


def extra_findings(stack: Stack, declared: DeclaredAddresses, *, for_plan: bool) -> Iterator[Finding]:
    """Yield the further addresses of nodes that a subnet has for its gateway, or may assign to any port.

    Only CIDRs can be given, so that a block may contain the broadcast address beside a pool, or the whole subnet.
    """
    network = network_of(stack.given, declared)
    for room in declared.rooms(network, for_plan=for_plan) if network else ():
        whole = Range.of(room.cidr)
        inside = [
            both for extra_address in extra_addresses(stack) if (both := extra_address.overlap(whole)) and both != whole
        ]
        if room.gateway and any(room.gateway in each for each in inside):
            yield f"{room.gateway} is the gateway of subnet {room.name}", OTHERS
        yield from replace(room, gateway=None).special_in([each for each in inside if each.count == 1])
        for what in room.assignable(list(ranges.without(inside, declared.reserved(room.name)))):
            yield what, f"{OTHERS}, or reserve them with address_pools"


def decides_itself(stack: Stack) -> bool:
    """Whether a template, or one that it includes, decides in a way that only Heat evaluates what its ports may send.

    It may add pairs to those of its parameters, turn port security off, or take ports. One that cannot be read may.
    """
    package = stack.package
    if isinstance(package, PrepError):
        return True
    if stack.template.startswith(SHIPPED):
        return False
    texts = [json.dumps(package.template, default=str)]
    texts += (file if isinstance(file, str) else file.decode(errors="replace") for file in package.files.values())
    words = (SECURITY,) if EXTRA in package.parameters else (SECURITY, PAIRS)
    return any(word in text for word in words for text in texts) or any(
        _takes_ports(*each) for document in package.documents() for each in _fields(document)
    )


def _takes_ports(name: str, value: object) -> bool:
    """Whether a field of a template names ports that others have created.

    Source: Heat 27.0.0, engine/resources/openstack/nova/server.py (networks, port), setup.cfg (heat.constraints).
    """
    if name == "port":
        if isinstance(value, Mapping) and ("type" in value or "value" in value):
            return False  # a resource, a parameter or an output of this name
        named = isinstance(value, str) and not value.isdigit()
        return named or any(function in PARAMETERS for function, _ in _fields(value))
    if name == "networks":
        return isinstance(value, Mapping) and any(parameter in value for parameter in PARAMETERS)
    return name == "custom_constraint" and value == "neutron.port"


def _fields(value: object) -> Iterator[tuple[str, object]]:
    """Yield all fields of a document, at any depth."""
    return (field for part in walk(value) if isinstance(part, Mapping) for field in part.items())


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
