"""Floating IPs on ports: attached by the spec, never taken from another port without permission.

Source: Networking API v2.0, "Floating IPs"; OpenShift installer docs/source, "What gets created, names and tags": the
installer itself silently detaches a floating IP from its current port.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, NotUnique, PlanRefused, SpecError
from openstack_prep.base.fields import Address, Name
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import ATTACHED, Change, Context, FromContext, Key, Observed, OwnershipTag, Resource
from openstack_prep.resources.addresses.floating_ip import (
    AttachedFloatingIP,
    FloatingIP,
    given_address,
)
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists.cluster_naming import foreign_tags
from openstack_prep.resources.lists.neutron_records import INTERFACES, FloatingIPRecord, PortRecord
from openstack_prep.resources.lists.ownership import attachment_tag, carries, name_of, tagged_by
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import routers_of
from openstack_prep.resources.network.port import AwaitedPort, NamedPort, of_another, ports_of
from openstack_prep.resources.network.reserved_ports import claim_of
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.network.uses import attachment_id

LONGEST_DESCRIPTION = 255


@dataclass(frozen=True)
class AttachmentNeighbours(FromContext):
    """What the spec of an attachment declares."""

    may_connect: bool = False
    """Whether one of its resources may connect the subnet of a port to an external network."""
    routers: frozenset[str] = frozenset()
    """Names of its routers without a gateway in the spec; one that exists may have a gateway."""
    has_port: bool = False
    """Whether it declares the port."""
    versions: tuple[int | None, ...] | None = None
    """IP versions of the addresses that the spec declares for the port, None where unknown; None if it declares none.
    """


@dataclass(frozen=True, kw_only=True)
class FloatingIPAttachment(ByProjectUser, AttachedFloatingIP):
    """A floating IP on a port of the same project: one that exists, or one of this spec.

    Select the floating IP with exactly one of ``floating_ip``, ``address`` and ``floating_ip_id``. The spec manages the
    attachment if it manages the floating IP, or if the request that attached it recorded this in the floating IP's
    description. Destroy detaches no other floating IP, and none that has been attached to another port since.
    """

    kind: ClassVar[str] = "floating_ip_attachment"

    port: Name
    """Name of the port; it must match exactly and be unique in the project."""
    floating_ip: Name | None = None
    """Name of a floating IP of this spec."""
    address: Address | None = None
    """Address of a floating IP of the project."""
    floating_ip_id: Name | None = None
    """Id of a floating IP of the project."""
    tag: Name | None = None
    """KEY=VALUE that the port has as a tag, or will have; a port with a different value for this key is refused."""
    move: bool = False
    """Allow moving the floating IP from the port that it is attached to."""
    neighbours: AttachmentNeighbours = field(default=AttachmentNeighbours(), repr=False)
    """What else the spec declares, which ``resolve`` finds there."""

    @property
    def name(self) -> str:
        return self.port

    @property
    def label(self) -> str:
        return self.floating_ip or self.address or self.floating_ip_id or ""

    def desired(self) -> Values:
        return {"floating_ip": self.label, "port": self.port}

    def needs(self) -> Iterable[Key]:
        named = (self.key_of(FloatingIP.kind, self.floating_ip),) if self.floating_ip else ()
        at_address = (given_address(self.address),) if self.address else ()
        return (*super().needs(), routers_of(self.place), *named, *at_address)

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Take the address from the floating IP with this name, because an adopted floating IP has no ownership tag."""
        given = [each for each in (self.floating_ip, self.address, self.floating_ip_id) if each]
        if len(given) != 1:
            raise SpecError(
                [self.mistake("no floating IP selected", "set one of floating_ip, address, floating_ip_id")]
            )
        wanted = self.key_of(FloatingIP.kind, self.floating_ip or "")
        named = [each for each in context.declared(FloatingIP) if each.key == wanted]
        if self.floating_ip and not named:
            what = f"floating_ip {self.floating_ip} is not in this spec"
            raise SpecError([self.mistake(what, "declare it, or set address instead", Code.SPEC_UNRESOLVED)])
        port = next((each for each in self.of_project(context.declared(Port)) if each.name == self.port), None)
        neighbours = AttachmentNeighbours(
            may_connect=self._may_connect(context, port),
            routers=frozenset(router.name for router in self.of_project(context.declared(Router))),
            has_port=port is not None,
            versions=self._versions(context, port),
        )
        return (replace(self, address=named[0].address if named else self.address, neighbours=neighbours),)

    def _may_connect(self, context: Context, port: Port | None) -> bool:
        if any(resource.kind == "stack" for resource in context.resources):
            return True
        subnets = self.of_project(context.declared(Subnet)) if port else ()
        names = {subnet.name for subnet in subnets if port and subnet.network == port.network}
        connected = (router for router in context.declared(Router) if router.external_network)
        return any(not names or names.intersection(router.interfaces or ()) for router in connected)

    def _versions(self, context: Context, port: Port | None) -> tuple[int | None, ...] | None:
        """Return the IP versions of the addresses that the spec declares for the port."""
        if port is None or port.fixed_ips is None:
            return None
        subnets = self.of_project(context.declared(Subnet))
        cidrs = {subnet.name: subnet.cidr for subnet in subnets if subnet.network == port.network}
        texts = (fixed_ip.address or cidrs.get(fixed_ip.subnet or "") for fixed_ip in port.fixed_ips)
        return tuple(ipaddress.ip_interface(text).version if text else None for text in texts)

    def references(self) -> Iterable[Resource]:
        return (*super().references(), self._named_port)

    @property
    def _named_port(self) -> NamedPort:
        kind = AwaitedPort if self.tag else NamedPort
        return kind(name=self.port, project=self.project, project_domain=self.project_domain)

    # --- existing state -------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        record = self._floating_ip(run)
        self._port(run)  # two ports with the name are refused before anything else
        return self._observe(run, record) if record is not None and record.port_id else None

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the attachments that this spec has recorded: in descriptions of floating IPs, or as claims on ports.

        A floating IP of the spec is on a port that an exposure has claimed because the exposure names it. Ports of
        installers get theirs otherwise, also those of the spec.
        """
        project_id = run.find_project_id(owner)
        listed = [each for each in FloatingIP.listing(run, project_id) if each.port_id] if project_id else []
        reserved = ports_of(run, project_id) if listed else ()
        claimed = {each.id: each.name for each in reserved if run.ownership.owns(each.description) and claim_of(each)}
        for record in listed:
            noted = attachment_tag(run.ownership).owns(record.description)
            name = name_of(run.ownership, record)
            port = OwnershipTag.name_in(record.description) if noted else name and claimed.get(record.port_id or "")
            if port:
                declared = cls(port=port, floating_ip=name, address=record.address, **cls.placing(owner))
                yield declared, declared._observe(run, record)

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        """Return the attachment alone: the floating IP stays."""
        return frozenset({attachment_id(observed.id, observed.record_as(FloatingIPRecord).port_id)})

    def _floating_ip(self, run: CloudRun) -> FloatingIPRecord | None:
        project_id = run.find_project_id(self.owner)
        listed = FloatingIP.listing(run, project_id) if project_id else []
        marked = [record for record in listed if self.floating_ip and carries(run.ownership, record, self.floating_ip)]
        if self.floating_ip_id:
            return next((record for record in listed if record.id == self.floating_ip_id), None)
        if self.address:  # two external networks may have it; the tag tells which one the spec names
            at_address = [record for record in listed if record.address == self.address]
            found = [record for record in at_address if record in marked] or at_address
            if len({record.network_id for record in found}) > 1:
                ids = " and ".join(record.id for record in found)
                what = f"floating IPs {ids} of the project both have {self.address}, on different networks"
                raise NotUnique(f"{self.key}: {what}; select one by floating_ip_id")
            return next(iter(found), None)
        # as ``twin.choose`` does: twins in use first, then the oldest
        return min(marked, key=lambda each: (each.port_id is None, each.created_at, each.id), default=None)

    def _port(self, run: CloudRun) -> PortRecord | None:
        found = run.look(self._named_port)
        return found.record_as(PortRecord) if found else None

    def _observe(self, run: CloudRun, record: FloatingIPRecord) -> Observed:
        port = self._port(run)
        here = port is not None and record.port_id == port.id
        noted = (
            attachment_tag(run.ownership).owns(record.description, self.port)
            or name_of(run.ownership, record) is not None
        )
        return Observed(
            id=record.id,
            ours=here and noted,
            values={"floating_ip": self.label, "port": self.port if here else self._current_port(run, record)},
            outputs={"address": record.address},
            record=record,
        )

    def _current_port(self, run: CloudRun, record: FloatingIPRecord) -> str:
        """Return the port that a floating IP is attached to, by name and id as far as they are known."""
        listed = ports_of(run, run.find_project_id(self.owner))
        names = [port.name for port in listed if port.id == record.port_id and port.name]
        return " ".join([*names, record.port_id or ""])

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        record, port = self._floating_ip(run), self._port(run)
        if record is None and not self.floating_ip:
            yield self.mistake(
                f"floating IP {self.label} does not exist in the project", "allocate it, or correct the value"
            )
        if observed is not None and observed.values["port"] != self.port and not self.move:
            yield self._taken(run, observed.record_as(FloatingIPRecord))
        if observed is None or observed.values["port"] != self.port:
            yield from self._check_addresses(port)
        if port is None:  # to be created, or reported as a missing reference
            return
        if self.tag and (foreign := foreign_tags(port.tags, self.tag)):
            yield of_another(str(self.key), port.id, foreign)
        project_id = run.find_project_id(self.owner)
        for other in FloatingIP.listing(run, project_id) if project_id else ():
            if other.port_id == port.id and (record is None or other.id != record.id):
                has = f"floating IP {other.address} is already attached to the port"
                yield self.mistake(has, "detach it first, or attach that one")

    def _check_addresses(self, port: PortRecord | None) -> Iterator[Mistake]:
        """Yield whether the port has no IPv4 address, or several, of which Neutron does not choose one.

        Source: Neutron 29.0.0, db/l3_db.py, _internal_fip_assoc_data.
        """
        versions: Sequence[int | None] | None = self.neighbours.versions
        if versions is None and port is not None:
            versions = [ipaddress.ip_address(fixed_ip.ip_address).version for fixed_ip in port.fixed_ips]
        if versions is None or None in versions or versions.count(4) == 1:
            return
        what = f"port {self.port} has {versions.count(4) or 'no'} IPv4 addresses"
        yield self.mistake(what, "choose a port with one IPv4 address", Code.SPEC_CONTRADICTION)

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterator[str]:
        """Yield whose floating IP it is if another spec manages it, and what may connect the port to its network."""
        record = self._floating_ip(run)
        other = (run.ownership.another_in(record.description) or tagged_by(record)) if record else ""
        if record and other not in ("", run.ownership.spec):
            yield f"whether spec {other}, which manages floating IP {record.address}, may do without it"
        yield from self._unconnected(run)

    def _unconnected(self, run: CloudRun) -> Iterator[str]:
        """Yield that no router with a gateway is on a subnet of the port: Neutron attaches no floating IP without one.

        One of another project may. Source: Neutron 29.0.0, db/l3_db.py, get_router_for_floatingip.
        """
        port, project_id = self._port(run), run.find_project_id(self.owner)
        if self.neighbours.may_connect or (port is None and not self.neighbours.has_port):
            return
        ports = ports_of(run, project_id) if project_id else ()
        interfaces = [each for each in ports if each.device_owner in INTERFACES]
        listed = Router.listing(run, project_id) if project_id and (interfaces or self.neighbours.routers) else ()
        routers = {router.id: router.name for router in listed if router.gateway_network_id}
        if self.neighbours.routers.intersection(routers.values()):
            return
        connected = (each for each in interfaces if each.device_id in routers)
        joined = {each.subnet_id for interface in connected for each in interface.fixed_ips}
        addresses = port.fixed_ips if port else ()
        if joined.isdisjoint(each.subnet_id for each in addresses) and (port or not joined):
            yield f"whether a router of another project connects port {self.port}: none with a gateway of this one does"

    def _taken(self, run: CloudRun, record: FloatingIPRecord) -> Mistake:
        serves = f"{record.address} is attached to another port: {self._current_port(run, record)}"
        fix = "detach it there, choose another floating IP, or allow moving it (move: true, --move)"
        return self.mistake(serves, fix, Code.ADDRESS_IN_USE)

    # --- the verbs ------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        """Attach it after reading it again: it may be new, or may have been attached elsewhere in the meantime."""
        now = run.fresh()
        if self._port(run) is None:  # created since by the address pool that it reserves an address of
            run = now
        record, port = self._floating_ip(now), self._port(run)
        if record is None or port is None:
            raise NotFound(f"{self.key}: the {'floating IP' if record is None else 'port'} no longer exists")
        if record.port_id not in (None, port.id) and not self.move:
            raise PlanRefused([self._taken(run, record)])
        return self._observe(run, self._put(run, record, port.id, self._with_note(run, record)))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        record, note = observed.record_as(FloatingIPRecord), attachment_tag(run.ownership)
        mine = note.owns(record.description, self.port)
        self._put(run, record, None, note.strip(record.description) if mine else record.description)

    def _with_note(self, run: CloudRun, record: FloatingIPRecord) -> str:
        """Return a description that records who attached it, unless it already contains a spec's ownership tag."""
        text = record.description
        plain = OwnershipTag.strip(text)
        noted = attachment_tag(run.ownership).describe(self.port, plain)
        owned = plain != text and f"{ATTACHED}/" not in text.removeprefix(plain)
        owned = owned or name_of(run.ownership, record) is not None
        return text if owned or len(noted) > LONGEST_DESCRIPTION else noted

    def _put(self, run: CloudRun, record: FloatingIPRecord, port_id: str | None, description: str) -> FloatingIPRecord:
        """Update it unless it was changed since it was read: after a 412 the executor reads it again."""
        cloud, _ = run.creator_of(self.owner)
        answer = cloud.network.put(
            f"/floatingips/{record.id}",
            {"floatingip": {"port_id": port_id, "description": description}},
            headers={"If-Match": f"revision_number={record.revision_number}"},
        )
        return FloatingIPRecord.read(answer["floatingip"])
