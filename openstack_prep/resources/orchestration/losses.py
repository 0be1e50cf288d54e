"""What the services take from others together with the resources of a stack, by the tables of cascades.

Heat deletes each resource of a stack as anybody would (27.0.1, engine/resources/openstack/neutron/net.py,
handle_delete), so the same rules apply as to the resources of a spec.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import ip_network
from typing import Any, ClassVar
from urllib.parse import quote

from openstack_prep import extensions
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import UNREAD, Deletion, DeletionLoss, LossEffect, Unchecked
from openstack_prep.core.model import Observed, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.resources.cascades.network import ON_PORT, PORT, REACHED
from openstack_prep.resources.cascades.row import (
    CascadeRow,
    CascadeTable,
    Deletions,
    Dependent,
    Read,
    find_losses,
    place_of,
)
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.heat.flow import GROUPS
from openstack_prep.resources.heat.preview import STATELESS
from openstack_prep.resources.heat.stacks import CONTAINER, HeatResource, HeatStack
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FloatingIPRecord,
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    Route,
    RouterRecord,
    RuleRecord,
    SubnetRecord,
    TrunkRecord,
    bare_device,
    list_by_id,
)
from openstack_prep.resources.lists.nova_records import ServerRecord, list_server_groups
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SELF, in_words
from openstack_prep.resources.network.uses import (
    blockers_of_group,
    blockers_of_network,
    blockers_of_subnet,
    interfaces_of,
)
from openstack_prep.resources.orchestration.record import StackRecord

GROUP = "OS::Neutron::SecurityGroup"
SERVER, SERVER_GROUP = "OS::Nova::Server", "OS::Nova::ServerGroup"
ROUTES = ("OS::Neutron::ExtraRoute", "OS::Neutron::ExtraRouteSet")
INTERFACE, GATEWAY = "OS::Neutron::RouterInterface", "OS::Neutron::RouterGateway"
POOL = "OS::Octavia::Pool"
FLOATING_IPS = ("OS::Neutron::FloatingIP", "OS::Nova::FloatingIP")
ASSOCIATIONS = {
    "OS::Neutron::FloatingIPAssociation": "floatingip_id",
    "OS::Nova::FloatingIPAssociation": "floating_ip",
}
"""The property with the id of the floating IP that Heat detaches (27.0.1, neutron/floatingip.py, handle_delete)."""
WITH_PORTS = (SERVER, "OS::Octavia::LoadBalancer")
"""Types whose ports are not resources of the stack, unless it declares them."""
UNJUDGED = {
    "AWS::EC2::EIP": "ports",
    "AWS::EC2::EIPAssociation": "ports",
    "AWS::EC2::Instance": "volumes and floating IPs",
    "AWS::EC2::NetworkInterface": "servers",
    "AWS::EC2::SecurityGroup": "rules",
    "AWS::EC2::RouteTable": "ports",
    "AWS::EC2::Subnet": "ports",
    "AWS::EC2::SubnetRouteTableAssociation": "ports",
    "AWS::EC2::VPC": "ports and subnets",
    "AWS::EC2::VPCGatewayAttachment": "ports",
    "OS::Cinder::Quota": "values",
    "OS::Designate::RecordSet": "records",
    "OS::Designate::Zone": "recordsets",
    "OS::Glance::WebImage": "servers",
    "OS::Heat::Stack": "things",
    "OS::Keystone::Domain": "projects and users",
    "OS::Keystone::Group": "members",
    "OS::Keystone::GroupRoleAssignment": "credentials",
    "OS::Keystone::Project": "things",
    "OS::Keystone::Region": "endpoints",
    "OS::Keystone::Role": "role assignments",
    "OS::Keystone::Service": "endpoints",
    "OS::Keystone::User": "credentials",
    "OS::Keystone::UserRoleAssignment": "credentials",
    "OS::Magnum::Cluster": "things",
    "OS::Neutron::Quota": "values",
    "OS::Nova::Flavor": "servers",
    "OS::Nova::HostAggregate": "hosts",
    "OS::Nova::Quota": "values",
    "OS::Octavia::Quota": "values",
    "OS::Trove::Cluster": "databases",
    "OS::Trove::Instance": "databases",
    "OS::Zaqar::Queue": "messages",
}
"""What others may have in resources of further types, of which nothing is read, so that each has to be allowed."""
RECORDS: Mapping[str, type[NeutronRecord]] = {
    "OS::Neutron::Net": NetworkRecord,
    "OS::Neutron::ProviderNet": NetworkRecord,
    "OS::Neutron::Router": RouterRecord,
    "OS::Neutron::Port": PortRecord,
    "OS::Neutron::Subnet": SubnetRecord,
    "OS::Neutron::Trunk": TrunkRecord,
    GROUP: GroupRecord,
}


def list_undeclared(record: StackRecord) -> Iterator[DeletionLoss]:
    """Yield the resources of a stack that the spec's template does not have, except those without data.

    Somebody may have added them by `openstack stack update`. An update would delete them, as Heat has previewed; the
    members by which a group would shrink are the spec's.
    """
    made = record.stack.made
    deleted = {each.place: each for each in record.preview if each.verb == "delete" and each.place in made}
    for place, effect in deleted.items():
        if effect.type not in STATELESS and not any(_goes(member, made, deleted) for member in _members(place, made)):
            where = f"{effect.type} {place} of stack {record.stack.name}, whose template in the spec does not have it"
            yield DeletionLoss(effect=LossEffect.DELETED, kind="stack_resource", id=made[place].id, detail=where)


def _members(place: str, made: Mapping[str, HeatResource]) -> Iterator[str]:
    """Yield the places of the members of groups that a place is, or is in."""
    while "." in place:
        group = place.rpartition(".")[0]
        if group in made and made[group].type in GROUPS:
            yield place
        place = group


def _goes(member: str, made: Mapping[str, HeatResource], deleted: Collection[str]) -> bool:
    """Whether a member of a group goes with all that it consists of, of which Heat lists nested stacks or not."""
    parts = (place for place, each in made.items() if f"{place}.".startswith(f"{member}.") and not each.nested)
    return all(place in deleted for place in parts)


def _snapshots(deletions: Deletions) -> Iterator[Dependent]:
    for deletion in deletions:
        stack = deletion.observed.record_as(StackRecord).stack
        for raw in stack.cloud.orchestration.get(f"{stack.path}/snapshots")["snapshots"]:
            yield Dependent(deletion, raw["id"], raw["name"] or "", "with the images and backups that Heat made for it")


STACK: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="stack_snapshot",
        what="snapshots of a stack",
        source="Heat 27.0.1, engine/stack.py, delete_all_snapshots",
        read=_snapshots,
    ),
)


@dataclass(frozen=True, kw_only=True)
class StackPart(Resource[CloudRun], Undeclarable):
    """A part of a stack, named by its place there; a port or floating IP by that of what it goes with."""

    kind: ClassVar[str] = "stack_part"

    name: str
    table: str
    """The key of its table."""


def _users(blockers: Callable[[CloudRun, Any, frozenset[str]], Iterable[PortRecord]]) -> Read:
    """Return what reads the ports that keep a service from deleting something, which Heat notices too late."""

    def read(deletions: Deletions) -> Iterator[Dependent]:
        for deletion in deletions:
            for port in blockers(deletions.run, deletion.observed.record, deletions.going):
                yield Dependent(deletion, port.id, port.name, place_of(deletions.run, port))

    return read


def _ports_on_network(run: CloudRun, network: NetworkRecord, going: frozenset[str]) -> Iterable[PortRecord]:
    return blockers_of_network(run, network.id, going)


def _ports_in_subnet(run: CloudRun, subnet: SubnetRecord, going: frozenset[str]) -> Iterable[PortRecord]:
    """Return the ports with an address of a subnet, unless those on its network are judged."""
    return () if subnet.network_id in going else blockers_of_subnet(run, subnet, going)


def _devices(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the devices of others that have a port, such as a server; interfaces of routers are judged as such."""
    for port in deletions:
        record = port.observed.record_as(PortRecord)
        device = bare_device(record.device_id)
        if device and device not in deletions.going and record.device_owner not in INTERFACES:
            yield Dependent(port, device, detail=f"{record.device_owner} of port {record.name or record.id}")


def _attached(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the ports that floating IPs lead to."""
    for floating_ip in deletions:
        record = floating_ip.observed.record_as(FloatingIPRecord)
        if record.port_id and deletions.going.isdisjoint((record.port_id, record.device_id)):
            yield Dependent(floating_ip, record.port_id, detail=f"reached by {record.address}")


def _subports(deletions: Deletions) -> Iterator[Dependent]:
    for trunk in deletions:
        for subport in trunk.observed.record_as(TrunkRecord).sub_ports:
            if subport.port_id not in deletions.going:
                yield Dependent(trunk, subport.port_id, detail="a subport")


def _pool_members(deletions: Deletions) -> Iterator[Dependent]:
    for pool in deletions:
        listed = deletions.run.admin.load_balancer.list(f"/lbaas/pools/{pool.id}/members", "members")
        for raw in filter(deletions.stays, listed):
            yield Dependent(pool, raw["id"], raw["name"], raw["address"])


def _objects(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the containers that Heat empties although something is in them: no resource of Heat creates objects."""
    for container in deletions:
        stack = container.observed.record_as(HeatStack)
        headers = stack.cloud.object_store.request("HEAD", f"/{quote(container.id, safe='')}").headers
        if (count := headers["X-Container-Object-Count"]) != "0":
            yield Dependent(container, f"{stack.cloud.project_id}/{container.id}", detail=f"{count} objects")


def _cut_off(takes: str, what: str, source: str, read: Read) -> CascadeRow:
    return CascadeRow(effect=LossEffect.CUT_OFF, takes=takes, what=what, source=source, read=read)


IN_STACKS: Mapping[str, CascadeTable] = {
    "network": (
        _cut_off(
            "port",
            "ports of others on a network",
            "Heat 27.0.1, engine/stack.py, delete: interfaces and routers go before Neutron refuses the network",
            _users(_ports_on_network),
        ),
    ),
    "security_group": (
        _cut_off(
            "port",
            "ports of others in a security group",
            "Heat 27.0.1, neutron/security_group.py, handle_delete: _delete_rules, before Neutron refuses the group",
            _users(blockers_of_group),
        ),
    ),
    "stack_subnet": (
        _cut_off(
            "port",
            "ports of others in a subnet",
            "Neutron 29.0.0, db/ipam_backend_mixin.py: ports lose addresses of SLAAC; others lose their router first",
            _users(_ports_in_subnet),
        ),
    ),
    "stack_interface": (REACHED,),
    "stack_port": (
        *PORT,
        ON_PORT,
        _cut_off(
            "device",
            "servers of others on a port",
            "Nova 34.0.0, compute/manager.py, _process_instance_event: network-vif-deleted detaches the interface",
            _devices,
        ),
    ),
    "stack_floatingip": (
        _cut_off(
            "port", "ports that a floating IP leads to", "Heat 27.0.1, neutron/floatingip.py, handle_delete", _attached
        ),
    ),
    "stack_pool": (
        _cut_off("member", "members of others in a pool", "octavia 19.0.0, db/models.py, Pool.members", _pool_members),
    ),
    "stack_container": (
        CascadeRow(
            effect=LossEffect.DELETED,
            takes="container",
            what="objects in a container",
            source="Heat 27.0.1, swift/container.py, handle_delete: PurgeOnDelete; otherwise it refuses",
            read=_objects,
        ),
    ),
    "stack_trunk": (
        _cut_off(
            "port", "subports of others in a trunk", "Neutron 29.0.0, services/trunk/plugin.py, delete_trunk", _subports
        ),
    ),
}
"""What Heat takes from others with a part of a stack, beside what the table of its kind says.

Heat asks nobody, and deletes what others depend on up to the first refusal of a service.
"""


def _table_of(part: Deletion) -> str:
    return part.resource.table if isinstance(part.resource, StackPart) else part.resource.kind


@dataclass(frozen=True)
class StackLosses:
    """What others lose by what happens to resources of a stack; ``going`` are the ids of what goes besides them."""

    run: CloudRun
    stack: HeatStack
    going: frozenset[str] = frozenset()

    def find(
        self, places: Collection[str] | None = None, kinds: Collection[str] = (), *, in_place: bool = False
    ) -> Iterator[DeletionLoss | Unchecked]:
        """Yield what the deletion of the resources at some places takes along; of all of them by default.

        ``kinds`` are those of what is looked for; all by default. ``in_place``: of an update, with which subnets of the
        stack stay, and which Heat does not leave out for resources that it would keep.
        """
        made = self.stack.made
        chosen = {place: each for place, each in made.items() if places is None or place in places}
        parts = [*self._of_neutron(chosen), *self._of_nova(chosen), *self._of_others(chosen)]
        own = (self.stack.contained_ids, self._own_rules(parts), self._associated.values())
        going = self.going.union(*own) - self.stack.attached_ids
        going -= {each.id for each in made.values() if in_place and each.type == "OS::Neutron::Subnet"}
        unchecked: dict[Unchecked, None] = {}
        for kind in dict.fromkeys(map(_table_of, parts)):
            same = [part for part in parts if _table_of(part) == kind]
            rows = (*extensions.cascades(kind), *IN_STACKS.get(kind, ()))
            rows = tuple(row for row in rows if not kinds or row.takes in kinds)
            for key, finding in find_losses(self.run, same, going, rows):
                if isinstance(finding, Unchecked):
                    unchecked[finding] = None
                elif finding.effect is LossEffect.UNREAD:
                    yield finding
                elif in_place or not self._is_kept(made[key.name]):
                    yield replace(finding, detail=", ".join(filter(None, (finding.detail, f"with {key.name}"))))
        yield from unchecked
        for place, each in chosen.items():
            if each.type in UNJUDGED and not self._is_kept(each):
                yield self.unread(place, each.type)

    def unread(self, place: str, kind: str) -> DeletionLoss:
        """Return what nobody knows of a resource of a type of which nothing is read."""
        what, fix = f"{UNJUDGED[kind]} of others with {kind} {place}", "look for these first"
        address = f"{self.stack.name}/{place}"  # a place alone may be called like a kind, such as zone
        return DeletionLoss(effect=LossEffect.UNREAD, kind=UNREAD, id=address, detail=what, fix=fix)

    def _of_neutron(self, chosen: Mapping[str, HeatResource]) -> Iterator[Deletion]:
        for kind in dict.fromkeys(RECORDS.values()):
            ids = {each.id: place for place, each in chosen.items() if RECORDS.get(each.type) is kind}
            for record in list_by_id(self.stack.cloud.network, kind, ids).values() if ids else ():
                yield self._part(ids[record.id], record)
        places = {each.id: place for place, each in chosen.items() if each.type in WITH_PORTS}
        for raw in queries.ports_in_project(self.run, self.stack.cloud.project_id) if places else ():
            place = places.get(bare_device(raw["device_id"]))
            if place and raw["id"] not in self.stack.contained_ids:
                yield self._part(place, PortRecord.read(raw))
        yield from self._interfaces(chosen)
        yield from self._floating_ips(chosen)

    def _of_others(self, chosen: Mapping[str, HeatResource]) -> Iterator[Deletion]:
        """Yield the pools of load balancers, and the containers that Heat deletes with their objects."""
        for place, each in chosen.items():
            if each.type == POOL:
                yield Deletion(StackPart(name=place, table="stack_pool"), Observed(id=each.id))
            elif each.type == CONTAINER:
                properties = self.stack.properties_of(each)  # without an event nobody knows
                if not properties or str(properties.get("PurgeOnDelete")).lower() == "true":
                    part = StackPart(name=place, table="stack_container")
                    yield Deletion(part, Observed(id=each.id, record=self.stack))

    def _interfaces(self, chosen: Mapping[str, HeatResource]) -> Iterator[Deletion]:
        """Yield the interfaces and gateways of routers that stay.

        Heat names them ROUTER:subnet_id=ID, ROUTER:port_id=ID, and ROUTER:NETWORK.
        """
        for place, each in chosen.items():
            router_id, _, end = each.id.partition(":") if each.type in (INTERFACE, GATEWAY) else ("", "", "")
            if router_id and router_id not in self.stack.contained_ids:
                joined = interfaces_of(self.run, router_id, end.partition("=")[2])
                part = StackPart(name=place, table="stack_interface")
                for record in list_by_id(self.stack.cloud.network, RouterRecord, [router_id]).values():
                    yield Deletion(part, Observed(id=router_id, record=replace(record, joined=joined)))

    def _floating_ips(self, chosen: Mapping[str, HeatResource]) -> Iterator[Deletion]:
        """Yield the floating IPs that do not lead to where the stack itself has attached them."""
        places = {place: each.id for place, each in chosen.items() if each.type in FLOATING_IPS}
        places |= {place: floating_ip_id for place, floating_ip_id in self._associated.items() if place in chosen}
        found = list_by_id(self.stack.cloud.network, FloatingIPRecord, [*places.values()]) if places else {}
        for place, floating_ip_id in places.items():
            record = found.get(floating_ip_id)
            if record is not None and record.port_id and not self._leads_to(record):
                yield self._part(place, record)

    def _leads_to(self, record: FloatingIPRecord) -> bool:
        """Whether a floating IP leads to a port or server of the stack, or to where the stack has attached it."""
        ends = {record.port_id, record.device_id}
        if not ends.isdisjoint(self.stack.contained_ids):
            return True
        for place, each in self.stack.made.items():
            if each.id == record.id or self._associated.get(place) == record.id:
                properties = self.stack.properties_of(each)
                if not ends.isdisjoint((properties.get("port_id"), properties.get("server_id"))):
                    return True
        return False

    def _part(self, place: str, record: NeutronRecord) -> Deletion:
        """Return a resource with its place in the stack as its name."""
        part: Resource
        if isinstance(record, RouterRecord):
            record = replace(record, joined=interfaces_of(self.run, record.id))
            part = Router(name=place, routes=self._routes)
        elif isinstance(record, GroupRecord):
            part = SecurityGroup(name=place)
        elif isinstance(record, NetworkRecord):
            part = Network(name=place)
        else:
            part = StackPart(name=place, table=f"stack_{record.collection[:-1]}")
        return Deletion(part, Observed(id=record.id, record=record))

    def _of_nova(self, chosen: Mapping[str, HeatResource]) -> Iterator[Deletion]:
        places = {each.id: place for place, each in chosen.items() if each.type == SERVER_GROUP}
        for group in list_server_groups(self.stack.cloud) if places else ():
            if group.id in places:
                part = ServerGroup(name=places[group.id], policy="affinity")  # a table reads members alone
                yield Deletion(part, Observed(id=group.id, record=group))
        places = {each.id: place for place, each in chosen.items() if each.type == SERVER}
        for server in map(ServerRecord.read, self.stack.servers if places else ()):
            if server.id in places:
                yield Deletion(StackPart(name=places[server.id], table="server"), Observed(id=server.id, record=server))

    @cached_property
    def _routes(self) -> tuple[Route, ...]:
        """The routes that the stack has added to routers."""
        found: list[Route] = []
        for each in self.stack.made.values():
            properties = self.stack.properties_of(each) if each.type in ROUTES else {}
            routes = properties.get("routes") or ([properties] if properties.get("destination") else [])
            found += (Route(destination=raw["destination"], nexthop=raw["nexthop"]) for raw in routes)
        return tuple(found)

    @cached_property
    def _associated(self) -> Mapping[str, str]:
        """The ids of the floating IPs that the stack itself attaches, by the place of what does it."""
        made = {place: each for place, each in self.stack.made.items() if each.type in ASSOCIATIONS}
        return {place: str(self.stack.properties_of(each).get(ASSOCIATIONS[each.type])) for place, each in made.items()}

    def _own_rules(self, parts: Collection[Deletion]) -> Iterator[str]:
        """Yield the ids of the rules in groups of the stack that the properties of these groups name."""
        for part in parts:
            if isinstance(part.observed.record, GroupRecord):
                yield from find_own_rules(self.stack, self.stack.made[part.resource.name], part.observed.record)

    def _is_kept(self, resource: HeatResource) -> bool:
        """Whether Heat leaves a resource where it is when it deletes the stack."""
        template = self.stack.cloud.orchestration.get(f"/stacks/{resource.path}/template")
        definition: Any = (template.get("resources") or {}).get(resource.name) or {}
        return str(definition.get("deletion_policy")).lower() == "retain" or bool(definition.get("external_id"))


def find_own_rules(stack: HeatStack, resource: HeatResource, group: GroupRecord) -> frozenset[str]:
    """Return the ids of the rules in a group of a stack that the stack has made.

    Heat knows no ids of rules in a group's properties: it compares them as well (27.0.1, neutron/security_group.py,
    _update_rules).
    """
    present = {rule.id: _text(rule, group) for rule in group.security_group_rules}
    resources = stack.contained_ids & present.keys()
    if len(resources) == len(present):
        return resources
    named = {_text(_rule(raw, group), group) for raw in stack.properties_of(resource).get("rules") or ()}
    return resources | {rule_id for rule_id, text in present.items() if text in named}


def _rule(raw: Raw, group: GroupRecord) -> RuleRecord:
    """Return a rule of a template as Neutron has it (Heat 27.0.1, neutron/security_group.py, _format_rule)."""
    remote, prefix = None, raw.get("remote_ip_prefix")
    if raw.get("remote_mode") == "remote_group_id":
        remote, prefix = raw.get("remote_group_id") or group.id, None
    low, high = (None if raw.get(name) is None else int(raw[name]) for name in ("port_range_min", "port_range_max"))
    return RuleRecord(
        direction=raw.get("direction") or "ingress",
        ethertype=raw.get("ethertype") or "IPv4",
        protocol=raw.get("protocol"),
        port_range_min=low,
        port_range_max=high,
        remote_ip_prefix=str(ip_network(prefix, strict=False)) if prefix else None,
        remote_group_id=remote,
    )


def _text(rule: RuleRecord, group: GroupRecord) -> str:
    return in_words(rule, SELF if rule.remote_group_id == group.id else rule.remote_group_id)
