"""What others lose by an update of a stack: with what it replaces, and in what it overwrites.

Heat writes lists and mappings as a whole, and so deletes what others have added to them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openstack_prep.base.fields import block
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import UNREAD, DeletionLoss, LossEffect, Unchecked
from openstack_prep.resources.heat.changes import WHOLE
from openstack_prep.resources.heat.preview import MAYBE, Effect
from openstack_prep.resources.heat.stacks import PORT, SERVER, VOLUME, HeatStack
from openstack_prep.resources.lists.neutron_records import (
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
    list_by_id,
)
from openstack_prep.resources.network.port_addresses import specs_of
from openstack_prep.resources.orchestration.losses import ASSOCIATIONS, FLOATING_IPS, GROUP, UNJUDGED, StackLosses

UNREAD_RULES = f"{UNREAD}/security_group_rule"
CUT_OFF: Mapping[str, tuple[Collection[str], Collection[str]]] = {
    "OS::Neutron::Net": (("admin_state_up",), ("port",)),
    PORT: (("fixed_ips", "no_fixed_ips"), ("port_forwarding", "floating_ip")),
    "OS::Neutron::Router": (("external_gateway_info", "admin_state_up"), ("port",)),
    "OS::Neutron::Subnet": (("gateway_ip", "enable_dhcp"), ("port",)),
    SERVER: (("networks",), ("port_forwarding", "floating_ip", "log")),
}
"""By type the properties whose change ends traffic of others, and what that is.

A server with other networks also loses ports of its own (Heat 27.0.1, nova/server_network_mixin.py,
calculate_networks).
"""
ANY = "value_specs"
"""A property that may hold each other one."""
HARMLESS = frozenset({"description", "email", "ttl"})
"""Properties of the types of which nothing is read whose change takes nothing from others."""


def taken_by_update(run: CloudRun, stack: HeatStack, effects: Collection[Effect]) -> Iterator[DeletionLoss | Unchecked]:
    """Yield what others lose by the effects of an update, and what these credentials may not read of it.

    An update of a security group deletes the rules that its new properties do not name (Heat 27.0.1,
    neutron/security_group.py, _update_rules). Each update of a floating IP attaches it as its properties say
    (neutron/floatingip.py, handle_update).
    """
    losses = StackLosses(run, stack)
    attached = (*FLOATING_IPS, *ASSOCIATIONS)
    gone = {effect.place for effect in effects if effect.verb in ("replace", "delete", MAYBE)}
    groups = tuple(f"{effect.place}." for effect in effects if effect.verb == MAYBE)
    gone |= {place for place in stack.made if place.startswith(groups)} if groups else set()
    if gone:
        yield from losses.find(gone)
    if moved := {effect.place for effect in effects if effect.verb == "update" and effect.type in attached}:
        yield from losses.find(moved, in_place=True)
    # Heat takes the addresses of a port that it replaces, also of one to keep (neutron/port.py, prepare_for_replace)
    if ports := {effect.place for effect in effects if effect.verb == "replace" and effect.type == PORT}:
        yield from losses.find(ports, CUT_OFF[PORT][1], in_place=True)
    kept = [effect for effect in effects if effect.verb != "add" and effect.place not in gone]
    if updated := {effect.place for effect in kept if effect.type == GROUP}:
        # the group stays: nothing is cut off, and what only administrators may read (Unchecked) is not in the group
        for loss in losses.find(updated, in_place=True):
            if isinstance(loss, DeletionLoss) and (loss.effect is LossEffect.DELETED or loss.address == UNREAD_RULES):
                yield loss
    for kind, (names, taken) in CUT_OFF.items():
        if places := _find_changing(kept, kind, names):
            yield from losses.find(places, taken, in_place=True)
    for effect in kept:
        if effect.type in UNJUDGED and not effect.changed <= HARMLESS:
            yield losses.unread(effect.place, effect.type)
    for kind, (read, properties) in OVERWRITTEN.items():
        changes = {effect.place: effect.changed for effect in kept if effect.type == kind}
        yield from _find_overwritten(run, stack, changes, read, properties)


def _find_changing(effects: Iterable[Effect], kind: str, names: Collection[str]) -> set[str]:
    """Return the places of a type's resources of which one of some properties may change."""
    return {effect.place for effect in effects if effect.type == kind and effect.changed & {WHOLE, ANY, *names}}


@dataclass(frozen=True)
class Overwritten:
    """A property that Heat writes as a whole; ``takes`` is the kind of what is in it.

    ``list_present`` returns what the property contains, ``list_own`` what of it the stack has put there, by the value
    that Heat has set last (None: unknown, or without a value).
    """

    name: str
    takes: str
    list_present: Callable[[CloudRun, Any], Iterable[str]]
    list_own: Callable[[HeatStack, Any], Iterable[str]] = lambda stack, value: value or ()
    effect: LossEffect = LossEffect.DELETED


Read = Callable[[HeatStack, Collection[str]], Mapping[str, Any]]
"""Returns resources of a type by their ids."""


def _find_overwritten(
    run: CloudRun,
    stack: HeatStack,
    changes: Mapping[str, frozenset[str]],
    read: Read,
    properties: Collection[Overwritten],
) -> Iterator[DeletionLoss]:
    """Yield what is in properties of resources, does not come from the stack, and is lost by changes at places."""
    names = {WHOLE, ANY, *(written.name for written in properties)}
    made = {place: resource for place, resource in stack.made.items() if changes.get(place, frozenset()) & names}
    places = {resource.id: place for place, resource in made.items()}
    for resource_id, shown in (read(stack, places) if places else {}).items():
        place = places[resource_id]
        contents = {
            written: set(written.list_present(run, shown))
            for written in properties
            if changes[place] & {WHOLE, ANY, written.name}
        }
        values = stack.properties_of(made[place]) if any(contents.values()) else {}
        for written, present in contents.items():
            own = written.list_own(stack, values.get(written.name)) if present else ()
            for item in sorted(present.difference(own)):
                address, detail = f"{resource_id}/{item}", f"at {place}, whose {written.name} the update overwrites"
                yield DeletionLoss(effect=written.effect, kind=written.takes, id=address, detail=detail)


def _reads(kind: type[NeutronRecord]) -> Read:
    return lambda stack, ids: list_by_id(stack.cloud.network, kind, ids)


def _servers(stack: HeatStack, ids: Collection[str]) -> Mapping[str, Raw]:
    return {raw["id"]: raw for raw in stack.servers if raw["id"] in ids}


def _volumes(stack: HeatStack, ids: Collection[str]) -> Mapping[str, Raw]:
    return {raw["id"]: raw for raw in stack.cloud.volume.list("/volumes/detail", "volumes") if raw["id"] in ids}


def _pair(address: str, mac: str | None) -> str:
    return "~".join(filter(None, (str(block(address)), mac and mac.lower())))


def _pairs(run: CloudRun, port: PortRecord) -> Iterator[str]:
    """Yield the pairs of a port, without those of the spec, which the same run adds again."""
    for pair in port.allowed_address_pairs:
        if run.ownership.spec not in specs_of(pair.ip_address, port):
            yield _pair(pair.ip_address, None if pair.mac_address == port.mac_address else pair.mac_address)


def _own_pairs(stack: HeatStack, value: Iterable[Raw] | None) -> Iterator[str]:
    return (_pair(pair["ip_address"], pair.get("mac_address")) for pair in value or ())


def _own_groups(stack: HeatStack, value: Iterable[str] | None) -> Iterator[str]:
    """Yield the ids of security groups, which a template may name; a port without a value has the default group."""
    names = {"default"} if value is None else set(value)
    yield from names
    yield from (group["id"] for group in stack.security_groups if group["name"] in names)


def _metadata(run: CloudRun, raw: Raw) -> Iterator[str]:
    yield from raw["metadata"]


TAGS = Overwritten("tags", "tag", lambda run, record: record.tags)
"""The tags of a resource of Neutron (Heat 27.0.1, neutron/neutron.py, set_tags)."""
OVERWRITTEN: Mapping[str, tuple[Read, Collection[Overwritten]]] = {
    PORT: (
        _reads(PortRecord),
        (
            Overwritten("allowed_address_pairs", "address_pair", _pairs, _own_pairs),
            Overwritten("security_groups", "group_of_port", lambda run, port: port.security_groups, _own_groups),
            TAGS,
        ),
    ),
    "OS::Neutron::Net": (_reads(NetworkRecord), (TAGS,)),
    "OS::Neutron::ProviderNet": (_reads(NetworkRecord), (TAGS,)),
    "OS::Neutron::Router": (_reads(RouterRecord), (TAGS,)),
    "OS::Neutron::Subnet": (
        _reads(SubnetRecord),
        (
            TAGS,
            Overwritten("dns_nameservers", "name_server", lambda run, subnet: subnet.dns_nameservers),
            Overwritten(
                "host_routes",
                "host_route",
                lambda run, subnet: (route.destination for route in subnet.host_routes),
                lambda stack, value: (route["destination"] for route in value or ()),
            ),
        ),
    ),
    SERVER: (
        _servers,
        (
            Overwritten("metadata", "metadata", _metadata),
            Overwritten("tags", "tag", lambda run, raw: raw.get("tags") or ()),
        ),
    ),
    VOLUME: (
        _volumes,
        (
            Overwritten("metadata", "metadata", _metadata),
            Overwritten(
                "read_only",  # Heat detaches the volume, and attaches it again
                "volume_attachment",
                lambda run, raw: (attachment["server_id"] for attachment in raw["attachments"]),
                lambda stack, value: stack.contained_ids,
                LossEffect.CUT_OFF,
            ),
        ),
    ),
}
"""By type. Source: Heat 27.0.1, neutron/port.py and subnet.py, handle_update; clients/os/nova.py, meta_update;
nova/server.py, _update_server_tags; cinder/volume.py, handle_update.
"""
