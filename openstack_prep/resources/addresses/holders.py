"""Who uses an address of an external network: a floating IP of a project, a router's gateway, or another port.

Source: Networking API v2.0, "Ports" (``fixed_ips``). Only administrators see the ports of other projects.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.identity.project import project_name
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import PortRecord

MOST = 100
"""Addresses per request: with more, the URL would be too long for some proxies."""
FLOATING_IP, GATEWAY = "network:floatingip", "network:router_gateway"  # neutron-lib 5.0.1, constants.py, DEVICE_OWNER_*


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
            held = [port for port in ports if any(address == each.ip_address for each in port.fixed_ips)]
            run.read_once((holder_of, network_id, address), functools.partial(list, held))


def _ports_at(run: CloudRun, network_id: str, addresses: Sequence[str]) -> list[PortRecord]:
    at = [f"ip_address={address}" for address in addresses]
    return list(map(PortRecord.read, run.admin.network.list("/ports", "ports", network_id=network_id, fixed_ips=at)))


def _in_words(run: CloudRun, port: PortRecord) -> str:
    if (
        port.device_owner == FLOATING_IP
    ):  # such a port belongs to no project; without a port the address has just been released
        listed = run.admin.network.list("/floatingips", "floatingips", id=port.device_id, fields=["project_id"])
        return next((f"project {project_name(run, each['project_id'])}" for each in listed), "")
    if port.device_owner == GATEWAY:
        return f"router {queries.named(run, 'routers', 'router', port.device_id)} ({port.device_id})"
    return " ".join(filter(None, ("port", port.name, port.id, port.device_owner and f"({port.device_owner})")))
