"""Removes a stand-in cluster as ``openshift-install destroy cluster`` does: by metadata, tag and name."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from openstack.connection import Connection

from tests.standin.maker import servers_of

GONE_SECONDS = 60


def remove(connection: Connection, infra_id: str) -> None:
    """Remove all that carries the infraID; the user's floating IPs stay, attached to nothing."""
    neutron: Any = connection.network
    nova: Any = connection.compute
    glance: Any = connection.image
    tag = f"openshiftClusterID={infra_id}"
    for server in servers_of(nova, infra_id):
        nova.delete_server(server)
    _until_none(lambda: servers_of(nova, infra_id))
    for floating_ip in neutron.ips(tags=tag):
        neutron.delete_ip(floating_ip)
    for port in neutron.ports(tags=tag):
        neutron.delete_port(port)
    for router in neutron.routers(tags=tag):
        for port in neutron.ports(device_id=router.id, device_owner="network:router_interface"):
            neutron.remove_interface_from_router(router, port_id=port.id)
        neutron.delete_router(router)
    for network in neutron.networks(tags=tag):
        neutron.delete_network(network)
    for group in neutron.security_groups(tags=tag):
        neutron.delete_security_group(group)
    for server_group in nova.server_groups():
        if server_group.name.startswith(f"{infra_id}-"):
            nova.delete_server_group(server_group)
    for image in glance.images(tag=tag):
        glance.delete_image(image)


def _until_none(listing: Callable[[], Any]) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    while left := list(listing()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still there after {GONE_SECONDS} s: {left}")
        time.sleep(0.2)
