"""The path of a packet from one cluster's nodes to another's, router by router, as Neutron routes it.

Source: Networking API v2.0, "Subnets" (gateway_ip, host_routes) and "Routers" (routes); the longest prefix wins,
as in any IP router.

Source: openstackclient's commands subnet set, router add subnet, router add port, router set.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import TypeVar

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks
from openstack_prep.neutron.rules import Address, Block, covers, pools, pools_without
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import Route, SubnetRecord

# --- fix --------------------------------------------------------------------------------------


class FixCommands:
    """Commands that fix the path from one subnet to another."""

    def __init__(self, visible: VisibleNetworks, source: SubnetRecord, target: SubnetRecord) -> None:
        self.visible, self.source, self.target = visible, source, target

    def gateway(self) -> str:
        """Return how to make a router the source's gateway: an existing one, or the subnet's first address."""
        there = [address for _, address in self.visible.interfaces_in(self.source.id)]
        gateway = there[0] if there else self.source.block.network_address + 1
        within = any(gateway in pool for pool in pools(self.source))
        apart = pools_without(self.source, [gateway]) if within else []
        command = self.visible.openstack("subnet", "set", *apart, "--gateway", str(gateway), self.source.id)
        return f"{command}  # all machines there get this default route with their next lease"

    def host_route(self, route: Route) -> str:
        given = f"destination={route.destination},gateway={route.nexthop}"
        return self.visible.openstack("subnet", "unset", "--host-route", given, self.source.id) + self._also(route)

    def without(self, router_id: str, route: Route) -> str:
        given = f"destination={route.destination},gateway={route.nexthop}"
        return self.visible.openstack("router", "unset", "--route", given, router_id) + self._also(route)

    def _also(self, route: Route) -> str:
        if self.is_for_target(route):
            return ""
        return f"  # ask first who uses it: it leads to more than {self.target.cidr}"

    def is_for_target(self, route: Route) -> bool:
        return covers(self.target.block, ipaddress.ip_network(route.destination))

    def router_for(self, subnet: SubnetRecord) -> str:
        """Return how to give a subnet a router: the other subnet's, or a new one for both."""
        other = self.source if subnet is self.target else self.target
        there = [port.device_id for port, _ in self.visible.interfaces_in(other.id)]
        if there:
            return self.visible.openstack("router", "add", "subnet", there[0], subnet.id)
        name = f"mesh-{subnet.id[:8]}"
        create = self.visible.openstack("router", "create", *self.visible.for_owner(subnet), name)
        return " && ".join([create, self.visible.openstack("router", "add", "subnet", name, subnet.id)])

    def route(self, router_id: str) -> str:
        """Return how to make a router lead to the target: by an interface there, or by a router that has one."""
        there = [(port.device_id, address) for port, address in self.visible.interfaces_in(self.target.id)]
        gateway = self.target.gateway
        if gateway and self.visible.is_free(self.target.network_id, gateway):
            return self.visible.openstack("router", "add", "subnet", router_id, self.target.id)
        next_hop = next(filter(None, (self._shared(router_id, each) for each, _ in there)), None)
        if next_hop is not None:
            given = f"destination={self.target.cidr},gateway={next_hop}"
            return self.visible.openstack("router", "set", "--route", given, router_id)
        # a second interface beside the gateway's gives the target's own router a next hop for the way back
        name = f"mesh-{router_id[:8]}-{self.target.id[:8]}"
        network, fixed = self.target.network_id, f"subnet={self.target.id}"
        words = [*self.visible.for_owner(self.target), "--network", network, "--fixed-ip", fixed]
        create = self.visible.openstack("port", "create", *words, name)
        return " && ".join([create, self.visible.openstack("router", "add", "port", router_id, name)])

    def _shared(self, router_id: str, other_id: str) -> Address | None:
        """Return the address of another router in a subnet that both have interfaces in."""
        mine = [subnet.id for subnet in self.visible.connected(router_id)]
        found = (at for each in mine for port, at in self.visible.interfaces_in(each) if port.device_id == other_id)
        return next((at for at in found if at.version == self.target.ip_version), None)


# --- routing ----------------------------------------------------------------------------------


T = TypeVar("T")


def routing(visible: VisibleNetworks, one: MeshCluster, other: MeshCluster) -> Iterator[Diagnostic]:
    """Yield what keeps the packets of one cluster's nodes from the other's nodes."""
    for source in one.subnets:
        for target in other.subnets:
            if source.ip_version == target.ip_version and source.id != target.id:
                yield from PacketPath(visible, f"{one.name} to {other.name}", source, target).problems()
    versions = ({subnet.ip_version for subnet in cluster.subnets} for cluster in (one, other))
    if one.subnets and other.subnets and set.isdisjoint(*versions):
        yield documented(
            code="network.no-common-ip-version",
            where=f"{one.name} to {other.name}",
            what=f"the nodes of {one.name} and of {other.name} have no IP version in common",
            why="nodes of a mesh talk to one another by their addresses",
        )


class PacketPath:
    """The path from one subnet to another."""

    def __init__(self, visible: VisibleNetworks, where: str, source: SubnetRecord, target: SubnetRecord) -> None:
        self.visible, self.where, self.source, self.target = visible, where, source, target
        self.goal = target.block
        self.fix = FixCommands(visible, source, target)
        self.why = f"packets from {source.cidr} do not reach {self.goal}"
        self.taken: list[tuple[str, Route]] = []
        """Routers, and the routes by which they lead on."""

    def problems(self) -> Iterator[Diagnostic]:
        """Yield where the path ends too early; nothing if it is complete."""
        if self.source.block.overlaps(self.goal):
            yield self._diagnostic(
                "network.overlap",
                f"the nodes' subnets overlap: {_describe(self.source)}, {_describe(self.target)}",
                "give one cluster a subnet with a CIDR of its own",
            )
            return
        hop: str | Diagnostic | None = self._first_hop()
        passed: set[str] = set()
        while isinstance(hop, str) and hop not in passed:
            passed.add(hop)
            hop = self._next_hop(hop)
        if isinstance(hop, Diagnostic):
            yield hop
        elif hop is not None:
            names = ", ".join(self.visible.router(each) for each in sorted(passed))
            what = f"packets for {self.goal} go in a circle: {names}"
            yield self._diagnostic("route.loop", what, self.fix.without(*self.taken[-1]))

    def _diagnostic(self, code: str, what: str, fix: str, *, sure: bool = True) -> Diagnostic:
        return Diagnostic(
            code=code,
            where=self.where,
            what=what + ("" if sure else ", as far as these credentials show"),
            why=self.why,
            fix=fix,
            status=DiagnosticStatus.ERROR if sure else DiagnosticStatus.WARNING,
        )

    # --- from a node to its first router ------------------------------------------------------

    def _first_hop(self) -> str | Diagnostic:
        """Return the router that a node sends its packets to."""
        name = _describe(self.source)
        routes = ((ipaddress.ip_network(host_route.destination), host_route) for host_route in self.source.host_routes)
        route = longest(routes, self.goal)
        gateway = route.nexthop if route else self.source.gateway_ip
        if gateway is None:
            what = f"{name} has no gateway, and no host route to {self.goal}"
            return self._diagnostic("subnet.no-gateway", what, self.fix.gateway())
        address = ipaddress.ip_address(gateway)
        interface = self.visible.interface_at([self.source.network_id], address)
        if interface is not None:
            return interface.device_id
        if foreign := self._not_a_router(address, self.source.network_id):
            return foreign
        sure = (
            self.visible.sees(self.source) and not address.is_link_local
        )  # which Neutron's routers keep to themselves
        if route:
            what = (
                f"the host route of {name} to {route.destination} leads to {gateway}, which is not a router's address"
            )
            return self._diagnostic("route.dead-end", what, self.fix.host_route(route), sure=sure)
        mine = list(self.visible.interfaces_in(self.source.id))
        if mine:
            has = ", ".join(f"{self.visible.router(port.device_id)} has {at}" for port, at in mine)
            what = f"the gateway_ip of {name} is {gateway}, which no router has: {has}"
            return self._diagnostic("subnet.wrong-gateway", what, self.fix.gateway(), sure=sure)
        what = f"no router has an interface in {name}"
        return self._diagnostic("router.missing", what, self.fix.router_for(self.source), sure=sure)

    def _not_a_router(self, address: Address, network_id: str) -> Diagnostic | None:
        """Return a diagnostic for a next hop that is a machine, or an address that machines share.

        Neutron does not know what that forwards.
        """
        shared = ipaddress.ip_network(address)
        for port in self.visible.ports:
            pairs = (ipaddress.ip_network(pair.ip_address) for pair in port.allowed_address_pairs)
            if port.network_id == network_id and (address in port.addresses or shared in pairs):
                what = f"the path to {self.goal} leads to {address}, which is port {port.name or ''} {port.id}"
                show = self.visible.openstack("port", "show", port.id)
                return Diagnostic(
                    code="route.through-machine",
                    where=self.where,
                    what=f"{what.replace('  ', ' ')} of {port.device_owner or 'a device'}: not a Neutron router",
                    why="whether it forwards packets is not visible to OpenStack",
                    fix=f"{show}  # and check its forwarding there",
                    status=DiagnosticStatus.WARNING,
                )
        return None

    # --- from router to router ----------------------------------------------------------------

    def _next_hop(self, router_id: str) -> str | Diagnostic | None:
        """Return the router after one; None when that one has an interface in the subnet."""
        visible, name = self.visible, self.visible.router(router_id)
        router = visible.routers.get(router_id)
        if router is None:
            return Diagnostic(
                code="access.denied",
                status=DiagnosticStatus.UNKNOWN,
                where=self.where,
                what=f"{name} is not visible with these credentials",
                why=self.why,
                fix="ask its owner for its routes, or run this with an administrator's --os-cloud",
            )
        if router.admin_state_up is False:
            fix = visible.openstack("router", "set", "--enable", router_id)
            return self._diagnostic("router.disabled", f"{name} is switched off", fix)
        connected = visible.connected(router_id)
        if self.target.id in [subnet.id for subnet in connected]:
            return None
        routes: list[tuple[Block, SubnetRecord | Route]] = [(subnet.block, subnet) for subnet in connected]
        routes += [(ipaddress.ip_network(each.destination), each) for each in router.routes]
        best = longest(routes, self.goal)
        if best is None:
            out = ": it sends them out by its external gateway" if router.gateway_network_id else ""
            what = f"{name} has neither an interface in {_describe(self.target)} nor a route to it{out}"
            return self._diagnostic("route.missing", what, self.fix.route(router_id))
        if isinstance(best, SubnetRecord):
            what = f"{name} has an interface in another subnet with {self.goal} in it: {_describe(best)}"
            return self._diagnostic("network.overlap", what, "give one of the two a CIDR of its own")
        return self._over(router_id, best)

    def _over(self, router_id: str, route: Route) -> str | Diagnostic:
        """Return the router that a route leads to."""
        address = ipaddress.ip_address(route.nexthop)
        networks = [port.network_id for port in self.visible.interfaces_of(router_id)]
        interface = self.visible.interface_at(networks, address)
        if interface is not None:
            self.taken.append((router_id, route))
            return interface.device_id
        for network_id in networks:
            if foreign := self._not_a_router(address, network_id):
                return foreign
        what = (
            f"{self.visible.router(router_id)} has a route to {route.destination} by {address}, "
            "which is not a router's address"
        )
        sure = all(self.visible.sees(subnet) for subnet in self.visible.connected(router_id) if address in subnet.block)
        fix = self.fix.without(router_id, route) if self.fix.is_for_target(route) else self.fix.route(router_id)
        return self._diagnostic("route.dead-end", what, fix, sure=sure)


def longest(routes: Iterable[tuple[Block, T]], goal: Block) -> T | None:
    """Return what the longest of the prefixes that hold a network leads to."""
    found = [(block.prefixlen, way) for block, way in routes if covers(block, goal)]
    return max(found, key=lambda each: each[0])[1] if found else None


def _describe(subnet: SubnetRecord) -> str:
    return " ".join(filter(None, ["subnet", subnet.name, subnet.id, f"({subnet.cidr})"]))
