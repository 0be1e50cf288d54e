"""Given addresses of an external network: whether it has them, and who uses them.

A floating IP of a project, a router's gateway, or another port does. Only administrators see the ports of others.

Source: Networking API v2.0, "Ports" (``fixed_ips``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import project_name
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.network import ExternalNetwork
from openstack_prep.resources.network.neutron import is_new_value
from openstack_prep.resources.network.subnet import is_host

MOST = 100
"""Addresses per request: with more, the URL would be too long for some proxies."""
FLOATING_IP_PORT, GATEWAY_PORT = (
    "network:floatingip",
    "network:router_gateway",
)  # neutron-lib 5.0.1, constants.py, DEVICE_OWNER_*


@dataclass(frozen=True, kw_only=True)
class AsksForAddresses(InProject):
    """Base of kinds that ask for given addresses of an external network."""

    @property
    def asked_addresses(self) -> tuple[str, ...]:
        return ()

    if TYPE_CHECKING:  # a field of each kind

        @property
        def external_network(self) -> str | None: ...

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        """Yield addresses that an earlier resource of the spec asks for as well, of whichever project.

        An address is unique on its network only: two networks may have the same subnet.
        """
        for other in context.declared(AsksForAddresses):
            if other.key < self.key and other.external_network == self.external_network:
                for address in (
                    asked_address for asked_address in self.asked_addresses if asked_address in other.asked_addresses
                ):
                    what = f"{address} is also declared by {other.key}"
                    yield self.mistake(what, "choose another address", Code.ADDRESS_IN_USE)

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterator[str]:
        """Yield that several external networks have the name."""
        if self.external_network and is_new_value("external_network", changes):
            yield from ExternalNetwork(name=self.external_network).list_others(run)


def refused(run: CloudRun, network: str, network_id: str, address: str) -> Iterator[tuple[str, str, str]]:
    """Yield why Neutron refuses an address of a network to a floating IP or a gateway, the fix, and the code.

    Nothing is known of the subnets of an external network that is not shared: a member does not see them.
    """
    subnets = queries.subnets_of(run, network_id)
    around = [subnet.cidr for subnet in subnets if ip_address(address) in ip_network(subnet.cidr)]
    if subnets and not around:
        yield f"{address} is not in any subnet of {network}", "choose an address of that network", ""
    elif around and not any(is_host(address, cidr) for cidr in around):
        yield f"{address} is no address of a host in {', '.join(around)}", "choose another address", ""
    elif holder := holder_of(run, network_id, address):
        yield (
            f"{address} already belongs to {holder}",
            "choose another address, or have this one released",
            Code.ADDRESS_IN_USE,
        )


def holder_of(run: CloudRun, network_id: str, address: str) -> str:
    """Return a description of who uses an address, such as "project theirs (ID)"; empty if no user is visible."""
    ports = run.read_once((holder_of, network_id, address), lambda: _ports_at(run, network_id, [address]))
    return next(filter(None, (_in_words(run, port) for port in ports)), "")


def ask_for_holders(run: CloudRun, network_id: str, addresses: Sequence[str]) -> None:
    """Read the users of many addresses at once, so that ``holder_of`` needs no request per address."""
    for start in range(0, len(addresses), MOST):
        some = addresses[start : start + MOST]
        ports = _ports_at(run, network_id, some)
        for address in some:
            held = [port for port in ports if any(address == fixed_ip.ip_address for fixed_ip in port.fixed_ips)]
            run.read_once((holder_of, network_id, address), functools.partial(list, held))


def _ports_at(run: CloudRun, network_id: str, addresses: Sequence[str]) -> list[PortRecord]:
    at = [f"ip_address={address}" for address in addresses]
    return list(map(PortRecord.read, run.admin.network.list("/ports", "ports", network_id=network_id, fixed_ips=at)))


def _in_words(run: CloudRun, port: PortRecord) -> str:
    if (
        port.device_owner == FLOATING_IP_PORT
    ):  # such a port belongs to no project; without a port the address has just been released
        listed = run.admin.network.list("/floatingips", "floatingips", id=port.device_id, fields=["project_id"])
        return next((f"project {project_name(run, each['project_id'])}" for each in listed), "")
    if port.device_owner == GATEWAY_PORT:
        return f"router {queries.named(run, 'routers', 'router', port.device_id)} ({port.device_id})"
    return " ".join(filter(None, ("port", port.name, port.id, port.device_owner and f"({port.device_owner})")))
