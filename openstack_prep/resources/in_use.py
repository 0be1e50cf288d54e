"""Who uses what is to be deleted: the ports of others, which Neutron would refuse to lose.

Source: Networking API v2.0, "Ports"; owners of ports that Neutron deletes by itself are
``AUTO_DELETE_PORT_OWNERS`` in neutron/db/db_base_plugin_common.py and neutron_lib/constants.py (29.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from openstack_prep.resources import queries
from openstack_prep.resources.neutron_records import PortRecord
from openstack_prep.resources.port import ports_of
from openstack_prep.site import Site

AUTOMATIC = ("network:dhcp", "network:distributed")


def on_network(site: Site, network_id: str, going: frozenset[str]) -> Iterator[str]:
    """Yield the ports on a network that stay when ``going`` goes, in words."""
    return _described(_staying(queries.ports_on(site, network_id), going))


def on_subnet(site: Site, network_id: str, subnet_id: str, going: frozenset[str]) -> Iterator[str]:
    """Yield the ports with an address of a subnet that stay when ``going`` goes, in words."""
    ports = _staying(queries.ports_on(site, network_id), going)
    return _described(port for port in ports if any(fixed.subnet_id == subnet_id for fixed in port.fixed_ips))


def in_group(site: Site, project_id: str, group_id: str, going: frozenset[str]) -> Iterator[str]:
    """Yield the ports of a project in a security group that stay when ``going`` goes, in words."""
    return _described(port for port in _staying(ports_of(site, project_id), going) if group_id in port.security_groups)


def _staying(ports: Iterable[PortRecord], going: frozenset[str]) -> Iterator[PortRecord]:
    for port in ports:
        if port.device_owner not in AUTOMATIC and not {port.id, port.device_id} & going:
            yield port


def _described(ports: Iterable[PortRecord]) -> Iterator[str]:
    for port in ports:
        user = f" of {port.device_owner} {port.device_id}" if port.device_id else ""
        yield " ".join(filter(None, ("port", port.name, port.id))) + user
