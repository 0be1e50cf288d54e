"""What the services take from others together with the resources of a stack, by the tables of cascades.

Heat deletes each resource of a stack as anybody would (27.0.1, engine/resources/openstack/neutron/net.py,
handle_delete), so the same rules apply as to the resources of a spec.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import ip_network
from typing import Any, ClassVar

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import UNREAD, Deletion, DeletionLoss, LossEffect, Unchecked
from openstack_prep.core.model import Observed, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.resources.cascades.row import (
    CascadeRow,
    CascadeTable,
    Deletions,
    Dependent,
    HasCascades,
    find_losses,
)
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.heat.flow import GROUPS
from openstack_prep.resources.heat.preview import MAYBE, STATELESS, Effect
from openstack_prep.resources.heat.stacks import HeatResource, HeatStack
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import (
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    Route,
    RouterRecord,
    RuleRecord,
    bare_device,
    list_by_id,
)
from openstack_prep.resources.lists.nova_records import ServerRecord, list_server_groups
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SELF, in_words
from openstack_prep.resources.network.uses import interfaces_of
from openstack_prep.resources.orchestration.record import StackRecord

UNREAD_RULES = f"{UNREAD}/security_group_rule"
GROUP = "OS::Neutron::SecurityGroup"
SERVER, SERVER_GROUP = "OS::Nova::Server", "OS::Nova::ServerGroup"
ROUTES = ("OS::Neutron::ExtraRoute", "OS::Neutron::ExtraRouteSet")
ASSOCIATION = "OS::Neutron::FloatingIPAssociation"
WITH_PORTS = (SERVER, "OS::Octavia::LoadBalancer")
"""Types whose ports are not resources of the stack, unless it declares them."""
UNJUDGED = {
    "AWS::EC2::Instance": "volumes and floating IPs",
    "AWS::EC2::SecurityGroup": "rules",
    "OS::Designate::Zone": "recordsets",
    "OS::Glance::WebImage": "servers",
    "OS::Heat::Stack": "things",
    "OS::Keystone::Domain": "projects and users",
    "OS::Keystone::Project": "things",
    "OS::Keystone::User": "credentials",
    "OS::Magnum::Cluster": "things",
    "OS::Nova::Flavor": "servers",
}
"""What others may have in resources of further types, of which nothing is read, so that each has to be allowed."""
RECORDS: Mapping[str, type[NeutronRecord]] = {
    "OS::Neutron::Net": NetworkRecord,
    "OS::Neutron::ProviderNet": NetworkRecord,
    "OS::Neutron::Router": RouterRecord,
    "OS::Neutron::Port": PortRecord,
    GROUP: GroupRecord,
}


def taken_by_update(run: CloudRun, stack: HeatStack, effects: Collection[Effect]) -> Iterator[DeletionLoss | Unchecked]:
    """Yield what others lose by the effects of an update, and what these credentials may not read of it.

    An update of a security group deletes the rules that its new properties do not name (Heat 27.0.1,
    neutron/security_group.py, _update_rules).
    """
    losses = StackLosses(run, stack)
    if deleted := {effect.place for effect in effects if effect.verb in ("replace", "delete", MAYBE)}:
        yield from losses.find(deleted)
    if updated := {effect.place for effect in effects if effect.verb == "update" and effect.type == GROUP}:
        # the group stays: nothing is cut off, and what only administrators may read (Unchecked) is not in the group
        for loss in losses.find(updated):
            if isinstance(loss, DeletionLoss) and (loss.effect is LossEffect.DELETED or loss.address == UNREAD_RULES):
                yield loss


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
class StackPort(HasCascades, Resource[CloudRun], Undeclarable):
    """A port of a stack, named by its own place there, or by that of the server that it goes with."""

    kind: ClassVar[str] = "stack_port"

    name: str


@dataclass(frozen=True, kw_only=True)
class StackServer(HasCascades, Resource[CloudRun], Undeclarable):
    """A server of a stack, named by its place there."""

    kind: ClassVar[str] = "server"

    name: str


@dataclass(frozen=True)
class StackLosses:
    """What others lose by what happens to resources of a stack; ``going`` are the ids of what goes besides them."""

    run: CloudRun
    stack: HeatStack
    going: frozenset[str] = frozenset()

    def find(self, places: Collection[str] | None = None) -> Iterator[DeletionLoss | Unchecked]:
        """Yield what the deletion of the resources at some places takes along; of all of them by default."""
        made = self.stack.made
        chosen = {place: each for place, each in made.items() if places is None or place in places}
        parts = [*self._of_neutron(chosen), *self._of_nova(chosen)]
        own = (self.stack.contained_ids, self._own_rules(parts), self._associated)
        going = self.going.union(*own) - self.stack.attached_ids
        unchecked: dict[Unchecked, None] = {}
        for kind in dict.fromkeys(type(part.resource) for part in parts):
            same = [part for part in parts if type(part.resource) is kind]
            for key, finding in find_losses(self.run, same, going):
                if isinstance(finding, Unchecked):
                    unchecked[finding] = None
                elif finding.effect is LossEffect.UNREAD:
                    yield finding
                elif not self._is_kept(made[key.name]):
                    yield replace(finding, detail=", ".join(filter(None, (finding.detail, f"with {key.name}"))))
        yield from unchecked
        for place, each in chosen.items():
            if each.type in UNJUDGED and not self._is_kept(each):
                what, fix = f"{UNJUDGED[each.type]} of others with {each.type} {place}", "look for these first"
                yield DeletionLoss(effect=LossEffect.UNREAD, kind=UNREAD, id=place, detail=what, fix=fix)

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

    def _part(self, place: str, record: NeutronRecord) -> Deletion:
        """Return a resource with its place in the stack as its name."""
        part: Resource
        if isinstance(record, RouterRecord):
            record = replace(record, joined=interfaces_of(self.run, record.id))
            part = Router(name=place, routes=self._routes)
        elif isinstance(record, GroupRecord):
            part = SecurityGroup(name=place)
        elif isinstance(record, PortRecord):
            part = StackPort(name=place)
        else:
            part = Network(name=place)
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
                yield Deletion(StackServer(name=places[server.id]), Observed(id=server.id, record=server))

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
    def _associated(self) -> frozenset[str]:
        """The ids of the floating IPs that the stack itself attaches."""
        made = (self.stack.properties_of(each) for each in self.stack.made.values() if each.type == ASSOCIATION)
        return frozenset(str(properties.get("floatingip_id")) for properties in made)

    def _own_rules(self, parts: Collection[Deletion]) -> Iterator[str]:
        """Yield the ids of the rules in groups of the stack that the properties of these groups name.

        Heat knows no ids of such rules: it compares them as well (27.0.1, neutron/security_group.py, _update_rules).
        """
        for part in parts:
            if isinstance(part.observed.record, GroupRecord):
                group = part.observed.record
                present = {rule.id: _text(rule, group) for rule in group.security_group_rules}
                if not self.stack.contained_ids.issuperset(present):
                    properties = self.stack.properties_of(self.stack.made[part.resource.name])
                    own = {_text(_rule(raw, group), group) for raw in properties.get("rules") or ()}
                    yield from (rule_id for rule_id, text in present.items() if text in own)

    def _is_kept(self, resource: HeatResource) -> bool:
        """Whether Heat leaves a resource where it is when it deletes the stack."""
        template = self.stack.cloud.orchestration.get(f"/stacks/{resource.path}/template")
        definition: Any = (template.get("resources") or {}).get(resource.name) or {}
        return str(definition.get("deletion_policy")).lower() == "retain" or bool(definition.get("external_id"))


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
