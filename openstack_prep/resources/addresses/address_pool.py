"""Pools of addresses on a subnet that Neutron assigns to no port, for example for MetalLB.

Source: Networking API v2.0, "Ports", "Subnets"; "Quotas".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Len

from openstack_prep import extensions
from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, ResourceFailed
from openstack_prep.base.fields import Name
from openstack_prep.base.multicast import PoolRange
from openstack_prep.base.ranges import Ip, Range
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core import observation
from openstack_prep.core.deletion_loss import Deletion, Finding
from openstack_prep.core.model import Change, Context, FromContext, Key, Observed, Resource
from openstack_prep.core.text import counted
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.cascades import row as cascades
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import PortRecord, SubnetRecord
from openstack_prep.resources.network import reserved_ports
from openstack_prep.resources.network.port import ports_of, shown, use_of
from openstack_prep.resources.network.reserved_ports import (
    PoolPorts,
    addresses_of,
    claim_id,
    claim_of,
    port_name,
)
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.network.uses import stays_attached

OUTSIDE = "outside the allocation pools"
CEILING = 1024
"""Maximum number of addresses that ports reserve; each port counts against the project's quota."""


@dataclass(frozen=True)
class PoolNeighbours(FromContext):
    """The related resources in the project of a pool: its subnet, and all pools."""

    subnet: Subnet | None = None
    pools: tuple[AddressPool, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AddressPool(ByProjectUser):
    """Addresses of a subnet that are reserved for the load balancer of a cluster, so that no server gets them.

    They are reserved with one port per address, which has the ownership tag, or by being outside the allocation pools,
    which is checked.
    """

    kind: ClassVar[str] = "address_pool"

    name: Name
    """Name within this spec; the names of the ports begin with it."""
    subnet: Name
    """Name of the subnet, in the spec or in the cloud."""
    addresses: Annotated[tuple[PoolRange, ...], Len(1)]
    """The addresses: ranges such as 10.0.0.200-10.0.0.219, networks such as 10.0.0.192/28, or single addresses."""
    reserve: Literal["ports", "outside"] = "ports"
    """ports: one port per address (up to 1024). outside: the addresses are outside every allocation pool of the subnet.
    """
    neighbours: PoolNeighbours = field(default=PoolNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @property
    def ranges(self) -> list[Range]:
        """The addresses as the fewest ranges."""
        return ranges.merged(map(Range.read, self.addresses))

    @property
    def count(self) -> int:
        return sum(each.count for each in self.ranges)

    def room(self, run: CloudRun) -> Room | None:
        """Return the addresses of the subnet, as it exists or as declared; None if there is no such subnet."""
        found = run.look(self.sibling(Subnet, self.subnet))
        record = found.record_as(SubnetRecord) if found else None
        if record is None and self.neighbours.subnet is None:
            record = self._shared_subnet(run)
        return Room.of(self.subnet, record, self.neighbours.subnet)

    def _shared_subnet(self, run: CloudRun) -> SubnetRecord | None:
        """Return the subnet with this name on a network that another project shares."""
        cloud = run.find_tenant(self.owner)
        if cloud is None:
            return None
        listed = queries.subnets_named(run, cloud, self.subnet)
        return only_one(listed, f"subnet/{self.subnet}")

    def kept(self, run: CloudRun) -> list[PortRecord]:
        """Return the existing ports of this pool, on all subnets."""
        return reserved_ports.of_pool(run.ownership, self.name, ports_of(run, run.find_project_id(self.owner)))

    def missing(self, room: Room | None, kept: Iterable[PortRecord]) -> list[str]:
        """Return the addresses that still need a port of this pool."""
        if self.reserve == "outside":
            return []
        reserved = {each for port in kept for each in addresses_of(port, room.id if room else None)}
        return [text for each in self.ranges for address in each if (text := str(address)) not in reserved]

    def going(self, room: Room, kept: Iterable[PortRecord]) -> list[PortRecord]:
        """Return the ports of this pool whose address no longer belongs to the pool."""
        if self.reserve == "outside":
            return list(kept)
        return [port for port in kept if not any(map(self.has, map(ip_address, addresses_of(port, room.id))))]

    def has(self, address: Ip) -> bool:
        return any(address in each for each in self.ranges)

    def resolve(self, context: Context) -> Sequence[AddressPool]:
        if self.neighbours.pools:
            return (self,)
        subnets = [each for each in self.of_project(context.declared(Subnet)) if each.name == self.subnet]
        neighbours = PoolNeighbours(
            subnet=next(iter(subnets), None),
            pools=tuple(self.of_project(context.declared(AddressPool))),
        )
        return (replace(self, neighbours=neighbours),)

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), self.key_of(Subnet.kind, self.subnet))

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        return {"ports": len(self.missing(self.room(run), self.kept(run))) if self.count <= CEILING else 0}

    def provides(self) -> Iterable[Key]:
        """Return also the ports that reserve its addresses, to which floating IPs lead."""
        ranges = self.ranges if self.reserve == "ports" and self.count <= CEILING else ()
        ports = (self.key_of("port", port_name(self.name, str(address))) for each in ranges for address in each)
        return (self.key, *ports)

    def desired(self) -> Values:
        return {"subnet": self.subnet, "addresses": tuple(map(str, self.ranges)), "reserve": self.reserve}

    # --- existing state -------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        room = self.room(run)
        return self._observe(room.id if room else None, self.kept(run))

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the pools that a project's ports reserve, whichever spec manages them."""
        project_id = run.find_project_id(owner)
        for (spec, name), kept in reserved_ports.by_pool(ports_of(run, project_id)).items():
            subnet_id = next((each.subnet_id for port in kept for each in port.fixed_ips), "")
            addresses = ranges.merged(map(Range.read, (a for port in kept for a in addresses_of(port, subnet_id))))
            subnet = queries.named(run, "subnets", "subnet", subnet_id)
            declared = cls(name=name, subnet=subnet, addresses=tuple(map(str, addresses)), **cls.placing(owner))
            observed = declared._observe(subnet_id, kept)
            if observed is not None:
                ours = spec == run.ownership.spec
                yield declared, replace(observed, ours=ours, managed_by="" if ours else spec)

    def _observe(self, here: str | None, kept: Sequence[PortRecord]) -> Observed | None:
        """Return the addresses that the ports on subnet ``here`` reserve, and those on other subnets."""
        addresses = ranges.merged(map(Range.read, (a for port in kept for a in addresses_of(port, here))))
        elsewhere = {each.subnet_id for port in kept if not addresses_of(port, here) for each in port.fixed_ips}
        values = {
            "subnet": ", ".join(sorted(elsewhere)) or self.subnet,
            "addresses": tuple(map(str, addresses)),
            "reserve": "ports",
        }
        if self.reserve == "outside" and not kept:
            if here is None:
                return None
            outputs, why = {"reserved": OUTSIDE}, "no ports to delete"
            return Observed(
                id=self._shown, values=self.desired(), outputs=outputs, record=PoolPorts(), kept_because=why
            )
        if not kept:
            return None
        return Observed(
            id=", ".join(values["addresses"]) or self._shown,
            values=values,
            ours=True,
            outputs={"reserved": counted(len(kept), "port")},
            record=PoolPorts(tuple(kept)),
            contained_ids=frozenset(port.id for port in kept),
        )

    @property
    def _shown(self) -> str:
        return ", ".join(map(str, self.ranges))

    # --- checks ---------------------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterator[Mistake]:
        (resolved,) = self.resolve(context)
        if self.reserve == "ports" and self.count > CEILING:
            yield self.mistake(
                f"{self.count} addresses are too many to reserve with one port each (at most {CEILING})",
                "reserve fewer addresses, or set reserve: outside",
                Code.SPEC_CONTRADICTION,
            )
            return
        yield from resolved._check_others()
        yield from self.conflicts(Room.declared(resolved.neighbours.subnet, for_plan=context.for_plan))

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        room = self.room(run)
        if room is None:
            if self.neighbours.subnet is None:
                what = f"subnet {self.subnet} does not exist"
                otherwise = "declare it in the spec, or correct the name"
                fix = observation.suggestion(run, self.sibling(Subnet, self.subnet), otherwise)
                yield self.mistake(what, fix, Code.SPEC_UNRESOLVED)
            return
        yield from self.conflicts(room)
        yield from self._check_holders(run, room, self.kept(run))
        going = self.going(room, observed.record_as(PoolPorts).ports if observed else ())
        yield from self._check_leaving(run, going)
        for port in going:
            claim = claim_of(port)
            if used := use_of(port) or (f"claimed by exposure {claim.exposure}" if claim else ""):
                what = f"{shown(port)} would be removed from the pool, but is {used}"
                yield self.mistake(what, "release it there first, or keep the address in the pool", Code.STILL_USED)

    def conflicts(self, room: Room | None) -> Iterator[Mistake]:
        """Yield the addresses that are not available in the subnet."""
        for what, fix in room.conflicts(self.ranges, outside=self.reserve == "outside") if room else ():
            yield self.mistake(what, fix, Code.SPEC_CONTRADICTION)

    def _check_others(self) -> Iterator[Mistake]:
        for one, other, both in ranges.overlaps(map(Range.read, self.addresses)):
            what = f"{both} is listed both in {one} and in {other}"
            yield self.mistake(what, "list every address only once", Code.SPEC_CONTRADICTION)
        beside = [each for each in self.neighbours.pools if each.subnet == self.subnet]
        earlier = beside[: [each.name for each in beside].index(self.name)] if beside else []
        for pool in earlier:
            for mine in self.ranges:
                for both in filter(None, map(mine.overlap, pool.ranges)):
                    what = f"{both} also belongs to {pool.key}"
                    fix = "change the pools so that they do not overlap"
                    yield self.mistake(what, fix, Code.SPEC_CONTRADICTION)

    def _check_holders(self, run: CloudRun, room: Room, kept: Sequence[PortRecord]) -> Iterator[Mistake]:
        """Yield ports outside of this pool that use an address of it, as far as the credentials in use can see them."""
        if room.id is None or (self.reserve == "ports" and not self.missing(room, kept)):
            return
        listed = queries.ports_in_subnet(run, room.id)
        # an address of two pools is reported as an overlap
        same_subnet = [each for each in self.neighbours.pools if each.subnet == self.subnet and each.name != self.name]
        mine = {port.id for port in kept}
        held = {ip_address(text): port for port in listed for text in addresses_of(port, room.id)}
        passing: dict[str, list[Range]] = defaultdict(list)
        for address, port in sorted(held.items(), key=lambda each: int(each[0])):
            others = port.id not in mine and address != room.gateway
            if not others or not self.has(address) or any(each.has(address) for each in same_subnet):
                continue
            if run.ownership.owns(port.description):
                passing[port.name.removesuffix(f"-{address}")].append(Range(address, address))
                continue
            what = f"{address} is used by {shown(port)} ({port.device_owner or 'no device'})"
            yield self.mistake(what, "choose other addresses, or delete that port", Code.ADDRESS_IN_USE)
        for name, each in passing.items():
            what = f"{', '.join(map(str, ranges.merged(each)))} is still reserved for address_pool/{name} of this spec"
            fix = "first shrink that pool in a separate apply, or destroy it under its old name"
            yield self.mistake(what, fix, Code.ADDRESS_IN_USE)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        kept = {port.id: port for port in observed.record_as(PoolPorts).ports}
        for port in kept.values():
            if (used := use_of(port)) and port.device_id not in going:
                yield self.mistake(f"{shown(port)} is {used}", "release it there first", Code.STILL_USED)
            ids = {claim_id(self.name, fixed_ip.ip_address) for fixed_ip in port.fixed_ips}
            if (claim := claim_of(port)) and not ids & going:
                what = f"{shown(port)} is claimed by exposure {claim.exposure}"
                yield self.mistake(what, "delete that exposure first", Code.STILL_USED)
        yield from self._check_floating(run, kept, going)

    def _check_floating(
        self, run: CloudRun, ports: Mapping[str, PortRecord], going: frozenset[str]
    ) -> Iterator[Mistake]:
        """Yield floating IPs on ports that are deleted, unless the plan detaches them: Neutron would do so silently."""
        project_id = run.find_project_id(self.owner) if ports else None
        for record in queries.floating_ips_on(run, project_id) if project_id else ():
            port = ports.get(record.port_id or "")
            if port is not None and stays_attached(record, going):
                what = f"floating IP {record.address} is attached to {shown(port)}"
                yield self.mistake(what, "detach it first", Code.STILL_USED)

    def _check_leaving(self, run: CloudRun, going: Sequence[PortRecord]) -> Iterator[Mistake]:
        """Yield what leads to ports that an update deletes."""
        yield from self._check_floating(run, {port.id: port for port in going}, frozenset())
        for port in going:
            for floating_ip, raw in queries.forwardings_to(run, port):
                what = f"port forwarding {raw['id']} of floating IP {floating_ip.address} leads to {shown(port)}"
                yield self.mistake(what, "delete it first, or keep the address in the pool", Code.STILL_USED)

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        """Yield what Neutron deletes with each of their ports."""
        ports = [
            Deletion(deletion.resource, replace(deletion.observed, id=port.id, record=port))
            for deletion in deletions
            for port in deletion.observed.record_as(PoolPorts).ports
        ]
        # what cannot be read of one port cannot be read of the others either
        return dict.fromkeys(cascades.find_losses(run, ports, going, extensions.cascades("port")))

    # --- the verbs ------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        return self._create_and_delete(run, ())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self._create_and_delete(run, observed.record_as(PoolPorts).ports)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        reserved_ports.remove(run, self.owner, observed.record_as(PoolPorts).ports)

    def _create_and_delete(self, run: CloudRun, kept: Sequence[PortRecord]) -> Observed:
        """Delete the ports that are no longer needed, and create the missing ones."""
        room = self.room(run)
        if room is None or room.id is None or room.network_id is None:
            raise NotFound(f"{self.key}: subnet {self.subnet} does not exist")
        going = self.going(room, kept)
        # a floating IP that is attached since does not change the revision of its port
        leaving = self._check_leaving(run.fresh(), going) if going else ()
        wrong = [mistake.what for mistake in (*self.conflicts(room), *leaving)]
        if wrong:
            raise ResourceFailed(f"{self.key}: {'; '.join(wrong)}")
        reserved_ports.remove(run, self.owner, going)
        gone = {port.id for port in going}
        left = [port for port in kept if port.id not in gone]
        left += reserved_ports.make(
            run,
            self.owner,
            self.name,
            network_id=room.network_id,
            subnet_id=room.id,
            addresses=self.missing(room, left),
        )
        observed = self._observe(room.id, left)
        assert observed is not None
        return observed
