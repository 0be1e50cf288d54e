"""The client's commands that open a path between two subnets, using what exists already.

Source: openstackclient's commands subnet set, router add subnet, router add port, router set.
"""

from __future__ import annotations

import ipaddress

from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.mesh.visible import VisibleNetworks, block_of
from openstack_prep.neutron.addresses import Address
from openstack_prep.neutron.allocation_pools import pools, pools_without


class FixCommands:
    """Commands that fix the path from one subnet to another."""

    def __init__(self, visible: VisibleNetworks, source: Raw, target: Raw) -> None:
        self.visible, self.source, self.target = visible, source, target

    def gateway(self) -> str:
        """Return how to make a router the source's gateway: an existing one, or the subnet's first address."""
        there = [address for _, address in self.visible.interfaces_in(self.source["id"])]
        gateway = there[0] if there else block_of(self.source).network_address + 1
        within = any(int(first) <= int(gateway) <= int(last) for first, last in pools(self.source))
        apart = pools_without(self.source, [gateway]) if within else []
        return self.visible.openstack("subnet", "set", *apart, "--gateway", str(gateway), self.source["id"])

    def host_route(self, route: Raw) -> str:
        given = f"destination={route['destination']},gateway={route['nexthop']}"
        return self.visible.openstack("subnet", "unset", "--host-route", given, self.source["id"])

    def without(self, router_id: str, route: Raw) -> str:
        given = f"destination={route['destination']},gateway={route['nexthop']}"
        return self.visible.openstack("router", "unset", "--route", given, router_id)

    def router_for(self, subnet: Raw) -> str:
        """Return how to give a subnet a router: the other subnet's, or a new one for both."""
        other = self.source if subnet is self.target else self.target
        there = [port["device_id"] for port, _ in self.visible.interfaces_in(other["id"])]
        if there:
            return self.visible.openstack("router", "add", "subnet", there[0], subnet["id"])
        name = f"mesh-{subnet['id'][:8]}"
        create = self.visible.openstack("router", "create", *self.visible.for_owner(subnet), name)
        return " && ".join([create, self.visible.openstack("router", "add", "subnet", name, subnet["id"])])

    def route(self, router_id: str) -> str:
        """Return how to make a router lead to the target: by an interface there, or by a router that has one."""
        there = [(port["device_id"], address) for port, address in self.visible.interfaces_in(self.target["id"])]
        gateway = self.target["gateway_ip"]
        if gateway and self.visible.is_free(self.target["network_id"], ipaddress.ip_address(gateway)):
            return self.visible.openstack("router", "add", "subnet", router_id, self.target["id"])
        next_hop = next(filter(None, (self._shared(router_id, each) for each, _ in there)), None)
        if next_hop is not None:
            given = f"destination={self.target['cidr']},gateway={next_hop}"
            return self.visible.openstack("router", "set", "--route", given, router_id)
        # a second interface beside the gateway's gives the target's own router a next hop for the way back
        name = f"mesh-{router_id[:8]}-{self.target['id'][:8]}"
        network, fixed = self.target["network_id"], f"subnet={self.target['id']}"
        words = [*self.visible.for_owner(self.target), "--network", network, "--fixed-ip", fixed]
        create = self.visible.openstack("port", "create", *words, name)
        return " && ".join([create, self.visible.openstack("router", "add", "port", router_id, name)])

    def _shared(self, router_id: str, other_id: str) -> Address | None:
        """Return the address of another router in a subnet that both have interfaces in."""
        mine = [subnet["id"] for subnet in self.visible.connected(router_id)]
        found = (at for each in mine for port, at in self.visible.interfaces_in(each) if port["device_id"] == other_id)
        return next((at for at in found if at.version == self.target["ip_version"]), None)
