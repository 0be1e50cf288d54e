"""Ports that a spec declares, such as those that reserve the virtual addresses of a cluster.

They refer to networks and subnets of the project, and to those that another project shares with it.

Source: Networking API v2.0, "Ports", "Standard attributes tag", "Networks" (``shared``), "RBAC policies". Everything
else that reads ports does so with ``port``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from openstack_prep.base import multicast
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotAllowed, NotFound, PlanRefused, ResourceFailed, SpecError
from openstack_prep.base.fields import Mac, Name
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect
from openstack_prep.core.model import Change, Context, FromContext, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import BareReference
from openstack_prep.core.run import query
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import AddressPair, NetworkRecord, PortRecord, SubnetRecord
from openstack_prep.resources.network.network import Network, subnets_on
from openstack_prep.resources.network.neutron import NetworkResource, is_new_value, unchanged, without_forwardings
from openstack_prep.resources.network.port import OWNER, ports_of, shown
from openstack_prep.resources.network.port_addresses import (
    PortAddress,
    PortPair,
    is_derived,
    match,
    multicast_mistakes,
    multicast_obstacle,
    pairs_of,
    recorded,
    specs_of,
    unchecked_pairs,
)
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.subnet import COMPUTED, Subnet, gateway_of, is_host, pools_of
from openstack_prep.resources.network.uses import Use, blockers_of_port, of_port

# --- networks and subnets of ports -----------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class VisibleNetwork(InProject, BareReference):
    """A network of the project, else the only one with this name that is shared with the project."""

    kind: ClassVar[str] = Network.kind

    name: str

    def find_one(self, run: CloudRun) -> Observed | None:
        own = Network.find(run, [self.sibling(Network, self.name)]).get(self.key)
        if own is not None:
            return Observed(id=own.id)
        shared = only_one(self._shared(run), f"network {self.name}, which other projects share")
        return Observed(id=shared.id) if shared else None

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        own = {each.name for each, _ in Network.scan(run, self.owner)}
        cloud = run.find_tenant(self.owner) or run.admin
        return own | {raw["name"] for raw in cloud.network.list("/networks", "networks", shared=True, fields="name")}

    def _shared(self, run: CloudRun) -> list[NetworkRecord]:
        """Return the networks of other projects with this name on which the project may create ports."""
        tenant, project_id = run.find_tenant(self.owner), run.find_project_id(self.owner)
        if tenant is not None and tenant is not run.admin:
            listed = tenant.network.list("/networks", "networks", name=self.name)
            return [NetworkRecord.read(raw) for raw in listed if raw["shared"]]
        listed = run.admin.network.list("/networks", "networks", name=self.name)
        granted = _granted(run, project_id) if project_id else frozenset()
        return [NetworkRecord.read(raw) for raw in listed if raw["shared"] or raw["id"] in granted]


@dataclass(frozen=True, kw_only=True)
class VisibleSubnet(InProject, BareReference):
    """A subnet of a network that the project may use; its name is unique on that network."""

    kind: ClassVar[str] = "subnet"

    name: str
    network: str

    def find_one(self, run: CloudRun) -> Observed | None:
        network_id = run.find_id(self.sibling(VisibleNetwork, self.network))
        blocks = queries.subnets_of(run, network_id) if network_id else ()
        block = only_one((each for each in blocks if each.name == self.name), str(self.key))
        return Observed(id=block.id) if block else None

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        network_id = run.find_id(self.sibling(VisibleNetwork, self.network))
        return (subnet.name for subnet in (queries.subnets_of(run, network_id) if network_id else ()))


@query
def _granted(run: CloudRun, project_id: str) -> frozenset[str]:
    """Return the ids of networks that policies share with a project, as far as these credentials see the policies."""
    which: Values = {"object_type": "network", "action": "access_as_shared", "target_tenant": project_id}
    try:
        listed = run.admin.network.list("/rbac-policies", "rbac_policies", **which)
    except NotAllowed:
        return frozenset()
    return frozenset(raw["object_id"] for raw in listed)


# --- port ------------------------------------------------------------------------------------


if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

MOST_TAGS = 50
UNORDERED = ("fixed_ips", "security_groups", "allowed_address_pairs", "tags")


@dataclass(frozen=True)
class PortNeighbours(FromContext):
    """The related resources of a port."""

    subnets: tuple[Subnet, ...] = ()
    """Those that the spec declares on its network."""
    network: Network | None = None
    """Its network, if the spec declares it."""
    ports: tuple[Port, ...] = ()
    """Those that the spec declares on its network, and whose keys come before its own."""


@dataclass(frozen=True, kw_only=True)
class Port(HasCascades, NetworkResource[PortRecord]):
    """A port of the project that belongs to no server yet, such as one that reserves a virtual address.

    Neutron allows several ports with the same name; the ownership tag tells which one the spec manages. Destroy deletes
    no port that a server uses, or a floating IP that is not managed by this spec.
    """

    kind: ClassVar[str] = "port"
    collection: ClassVar[str] = "ports"
    member: ClassVar[str] = "port"
    immutable: ClassVar[frozenset[str]] = frozenset({"network", "mac_address"})
    defaults: ClassVar[Values] = {"admin_state_up": True}

    name: Name
    """Name of the port, unique in its project."""
    network: Name
    """Name of its network: one of the project, or one that another project shares with it."""
    fixed_ips: tuple[PortAddress, ...] | None = None
    """Its addresses, all of them; default: one that Neutron chooses per IP version."""
    security_groups: tuple[Name, ...] | None = None
    """Names of its security groups, all of them; default: the group "default"."""
    port_security_enabled: bool | None = None
    """Whether port security is enabled, which filters spoofed addresses; default: as the network says."""
    allowed_address_pairs: tuple[PortPair, ...] | None = None
    """Its address pairs, besides those that address_pairs adds."""
    dns_name: Name | None = None
    """Host name of the port in the cloud's internal DNS."""
    mac_address: Mac | None = None
    """MAC address; default: one that Neutron chooses."""
    admin_state_up: bool | None = None
    """Administrative state: whether it forwards packets."""
    tags: tuple[Name, ...] | None = None
    """Tags to have; other tags of the port are kept."""
    neighbours: PortNeighbours = field(default=PortNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @classmethod
    def read(cls, raw: Raw) -> PortRecord:
        return PortRecord.read(raw)

    @classmethod
    def listing(cls, run: CloudRun, project_id: str) -> Sequence[PortRecord]:
        """Return the ports of a project, except those of address pools and those of routers and DHCP."""
        listed = ports_of(run, project_id)
        return [each for each in listed if not each.device_owner.startswith(("network:", OWNER))]

    def contradictions_with(self, context: Context) -> Iterator[Mistake]:
        """Yield what contradicts other resources of the spec."""
        yield from self._on_other_networks(self.of_project(context.declared(Subnet)))
        yield from self._declared_twice(context)

    def _on_other_networks(self, subnets: Sequence[Subnet]) -> Iterator[Mistake]:
        networks = {each.name: each.network for each in subnets}
        for fixed_ip in self.fixed_ips or ():
            other = networks.get(fixed_ip.subnet or "") or self.network
            if other != self.network:
                what = f"subnet {fixed_ip.subnet} is on network {other}, the port on network {self.network}"
                yield self.mistake(what, "choose a subnet of the port's network")

    def _outside(self, context: Context) -> Iterator[Mistake]:
        """Yield addresses outside of the subnet that they name (Neutron 29.0.0: InvalidIpForSubnet)."""
        declared = self.of_project(context.declared(Subnet))
        cidrs = {each.name: each.cidr for each in declared if each.cidr and each.network == self.network}
        for fixed_ip in self.fixed_ips or ():
            cidr = cidrs.get(fixed_ip.subnet or "")
            if not cidr or not fixed_ip.address or is_host(fixed_ip.address, cidr):
                continue
            is_inside = ipaddress.ip_address(fixed_ip.address) in ipaddress.ip_network(cidr)
            what = f"{fixed_ip.address} is {'no address of a host in' if is_inside else 'outside'} {cidr}"
            yield self.mistake(
                f"{what} of subnet {fixed_ip.subnet}", "choose an address inside it", Code.SPEC_CONTRADICTION
            )

    def _declared_twice(self, context: Context) -> Iterator[Mistake]:
        mine = {fixed_ip.address for fixed_ip in self.fixed_ips or () if fixed_ip.address}
        for other in self.of_project(context.declared(Port)) if mine else ():
            if other.key < self.key and other.network == self.network:
                for each in (fixed_ip for fixed_ip in other.fixed_ips or () if fixed_ip.address in mine):
                    yield self.mistake(f"{each.address} is also declared by {other.key}", "choose another address")

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        yield self.sibling(VisibleNetwork, self.network)
        for name in dict.fromkeys(fixed_ip.subnet for fixed_ip in self.fixed_ips or () if fixed_ip.subnet):
            yield self.subnet(name)
        for name in self.security_groups or ():
            yield self.sibling(SecurityGroup, name)

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), subnets_on(self.network))

    def subnet(self, name: str) -> VisibleSubnet:
        return VisibleSubnet(name=name, network=self.network, project=self.project, project_domain=self.project_domain)

    def desired(self) -> Values:
        values = super().desired()
        return values | {name: frozenset(values[name]) for name in UNORDERED if name in values}

    def resolve(self, context: Context) -> Sequence[Resource]:
        if self.neighbours != PortNeighbours():
            return (self,)
        mistakes = list(self.contradictions_with(context))
        if mistakes:
            raise SpecError(mistakes)
        subnets = self.of_project(context.declared(Subnet))
        here = tuple(each for each in subnets if each.network == self.network)
        networks = (each for each in self.of_project(context.declared(Network)) if each.name == self.network)
        ports = self.of_project(context.declared(Port))
        before = tuple(each for each in ports if each.network == self.network and each.key < self.key)
        return (replace(self, neighbours=PortNeighbours(here, next(networks, None), before)),)

    # --- existing state -------------------------------------------------------------------

    def named(self, run: CloudRun, listed: Iterable[PortRecord]) -> list[PortRecord]:
        """Exclude ports on a twin of the network, which are deleted together with it."""
        found = super().named(run, listed)
        same = self._own_networks(run, run.find_project_id(self.owner))
        kept = run.find_id(self.sibling(Network, self.network)) if len(same) > 1 else None
        twins = {each.id for each in same if run.ownership.manages(each.name, each.description)} - {kept}
        return [each for each in found if kept is None or each.network_id not in twins]

    def _own_networks(self, run: CloudRun, project_id: str | None) -> list[NetworkRecord]:
        """Return the networks of the project with the name of the port's network."""
        listed = Network.listing(run, project_id) if project_id else ()
        return [each for each in listed if each.name == self.network]

    def values(self, run: CloudRun, record: PortRecord) -> Values:
        own = {own_network.id for own_network in self._own_networks(run, record.project_id)}
        network = _network_name(run, record)
        elsewhere_named = network == self.network and own and record.network_id not in own
        declared = set(self.allowed_address_pairs or ())
        elsewhere = recorded(record)
        pairs = (each for each in pairs_of(record) if each in declared or each.address not in elsewhere)
        return super().values(run, record) | {
            "network": record.network_id if elsewhere_named else network,
            "fixed_ips": self._addresses(run, record),
            "security_groups": frozenset(_group_names(run, record, self._groups(run))),
            "allowed_address_pairs": frozenset(pairs),
            "tags": frozenset(self.tags or ()) & frozenset(record.tags),
        }

    def _addresses(self, run: CloudRun, record: PortRecord) -> frozenset[PortAddress]:
        """Return the fixed IPs: declared ones as declared, the others with their subnet and address."""
        names = self._subnet_names(run, record)
        pairs, left = match(self.fixed_ips or (), record.fixed_ips, names)
        others = (fixed_ip for fixed_ip in left if not is_derived(fixed_ip.ip_address, record.mac_address))
        return frozenset(
            [
                *(wanted for wanted, found in pairs if found is not None),
                *(
                    PortAddress(subnet=names.get(fixed_ip.subnet_id), address=fixed_ip.ip_address)
                    for fixed_ip in others
                ),
            ]
        )

    def _subnet_names(self, run: CloudRun, record: PortRecord) -> dict[str, str]:
        """Return the names of the network's subnets by id, with those that this run has created."""
        names = {block.id: block.name for block in _subnets_at(run, record)}
        declared = {fixed_ip.subnet for fixed_ip in self.fixed_ips or () if fixed_ip.subnet}
        made = ((run.known.get(self.subnet(name).key), name) for name in declared)
        return names | {found.id: name for found, name in made if found is not None}

    def _groups(self, run: CloudRun) -> dict[str, str]:
        """Return the names of the groups that this run has created, by id."""
        made = ((run.known.get(self.sibling(SecurityGroup, name).key), name) for name in self.security_groups or ())
        return {found.id: name for found, name in made if found is not None}

    @classmethod
    def in_words(cls, run: CloudRun, record: PortRecord) -> Values:
        names = {block.id: block.name for block in _subnets_at(run, record)}
        fixed = (
            PortAddress(subnet=names.get(fixed_ip.subnet_id), address=fixed_ip.ip_address)
            for fixed_ip in record.fixed_ips
        )
        elsewhere = recorded(record)
        return {
            "network": _network_name(run, record),
            "fixed_ips": tuple(fixed),
            "security_groups": tuple(_group_names(run, record)) if record.port_security_enabled else None,
            "allowed_address_pairs": tuple(each for each in pairs_of(record) if each.address not in elsewhere) or None,
            "dns_name": record.dns_name or None,
            "mac_address": None,
            "tags": tuple(each for each in record.tags if not OwnershipTag.is_tag(each)) or None,
        }

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Port, Observed]]:
        """Yield the ports of this spec, and those that belong to no device: a server's ports come and go with it."""
        for declared, found in super().scan(run, owner):
            record = found.record_as(PortRecord)
            if found.ours or not (record.device_id or record.device_owner):
                yield declared, found

    def outputs(self, record: PortRecord) -> dict[str, str]:
        addresses = ", ".join(fixed_ip.ip_address for fixed_ip in record.fixed_ips)
        return {"addresses": addresses} if addresses else {}

    def use(self, run: CloudRun, record: PortRecord) -> Use:
        return of_port(run, record)

    # --- checks ---------------------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterator[Mistake]:
        if self.port_security_enabled is False and (self.security_groups or self.allowed_address_pairs):
            what = "port_security_enabled: false excludes security groups and address pairs"
            fix = "set security_groups: [] and remove allowed_address_pairs"
            yield self.mistake(what, fix, Code.SPEC_CONTRADICTION, "port_security_enabled")
        yield from self._too_many_tags(())
        yield from self._outside(context)
        for other in self.of_project(context.declared(Port)) if self.mac_address else ():
            same = other.network == self.network and other.mac_address == self.mac_address
            if same and other.key < self.key:
                what = f"{self.mac_address} is also the MAC address of {other.key} on network {self.network}"
                yield self.mistake(what, "choose another one, or leave it out", Code.SPEC_CONTRADICTION, "mac_address")

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        if self.dns_name and "dns-integration" not in queries.extensions(run):
            yield self.mistake("dns_name: this cloud's Neutron lacks the extension dns-integration", "remove dns_name")
        yield from self._check_addresses(run, observed)
        yield from self._check_pairs(run, observed)
        yield from self._check_security(run, observed)
        if observed is None:
            is_chosen = self.fixed_ips is None or any(fixed_ip.address is None for fixed_ip in self.fixed_ips)
            yield from self._check_room(run) if is_chosen else ()
            yield from self._check_mac(run) if self.mac_address else ()
        if observed is not None:
            yield from self._too_many_tags(observed.record_as(PortRecord).tags)
            yield from self._check_use(run, observed)

    def _too_many_tags(self, present: Sequence[str]) -> Iterator[Mistake]:
        """Yield whether a port with these tags would have more of them than Neutron stores.

        Source: Neutron 29.0.0, extensions/tagging.py, MAX_TAGS_COUNT.
        """
        number = len({*(self.tags or ()), *present})
        if number > MOST_TAGS and not {*(self.tags or ())} <= {*present}:
            what = f"would have {number} tags, and Neutron stores {MOST_TAGS}"
            yield self.mistake(what, "remove some of them", Code.SPEC_INVALID_VALUE, "tags")

    def _check_pairs(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        """Yield the pairs because of which Neutron would refuse to write them."""
        wanted = frozenset(self.allowed_address_pairs or ())
        if self.allowed_address_pairs is None or (observed and observed.values.get("allowed_address_pairs") == wanted):
            return
        found = [*multicast_mistakes(run, (each.address for each in wanted))]
        if observed is not None:
            record = observed.record_as(PortRecord)
            found += filter(None, [multicast_obstacle(run, record, [raw for raw, _ in self._kept(record)])])
        for what, fix in found:
            yield self.mistake(what, fix, Code.ADDRESS_MULTICAST)

    def _check_security(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        """Yield what only applies with port security, where the network disables it for new ports.

        Source: Neutron 29.0.0, plugins/ml2/plugin.py (_portsec_ext_port_create_processing).
        """
        needing = [name for name in ("security_groups", "allowed_address_pairs") if getattr(self, name)]
        if observed is not None or self.port_security_enabled is not None or not needing:
            return
        declared = self.neighbours.network
        is_enabled = declared.port_security_enabled if declared else None
        if is_enabled is None and (found := run.find_id(self.sibling(VisibleNetwork, self.network))):
            is_enabled = queries.port_security_of(run, found)
        for name in needing if is_enabled is False else ():
            what = f"{name} need port security, which network {self.network} disables"
            yield self.mistake(what, f"set port_security_enabled: true, or remove {name}", Code.SPEC_CONTRADICTION)

    def _check_mac(self, run: CloudRun) -> Iterator[Mistake]:
        network_id = run.find_id(self.sibling(VisibleNetwork, self.network))
        for port in queries.ports_on(run, network_id) if network_id else ():
            if port.mac_address == self.mac_address:
                what = f"{self.mac_address} is the MAC address of {shown(port)} on the network"
                yield self.mistake(what, "choose another one, or leave it out", Code.ADDRESS_IN_USE, "mac_address")

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterable[str]:
        is_new = is_new_value("allowed_address_pairs", changes)
        number = len({*(self.allowed_address_pairs or ())}) if is_new else 0
        return unchecked_pairs(number, ports_of(run, run.find_project_id(self.owner)) if number else ())

    def list_warnings(self, context: Context) -> Iterable[str]:
        return multicast.warnings(
            allowed_address_pair.address for allowed_address_pair in self.allowed_address_pairs or ()
        )

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        """Yield also the pairs that other specs have recorded on them."""
        yield from super().find_losses(run, deletions, going)
        for deletion in deletions:
            port = deletion.observed.record_as(PortRecord)
            for address in dict.fromkeys(pair.ip_address for pair in port.allowed_address_pairs):
                if others := sorted({*specs_of(address, port)} - {run.ownership.spec}):
                    pair, words = f"{port.id}/{address}", f"of spec {', '.join(others)}"
                    loss = DeletionLoss(effect=LossEffect.DELETED, kind="address_pair", id=pair, detail=words)
                    yield deletion.key, loss

    def _check_use(self, run: CloudRun, observed: Observed) -> Iterator[Mistake]:
        """Yield the users of a port that would be replaced, or lose addresses."""
        record = observed.record_as(PortRecord)
        desired = self.desired()
        replaced = any(observed.values.get(name) != desired[name] for name in self.immutable & desired.keys())
        leaving = self._leaving(run, record)
        what = "cannot be replaced" if replaced else f"{', '.join(leaving)} cannot be removed"
        for user in self.use(run, record).others if replaced or leaving else ():
            yield self.mistake(f"{what}, because {user} uses the port", "detach it there first")
        # Neutron 29.0.0, services/portforwarding/pf_plugin.py, _process_port_request; of a replacement they are losses
        for floating_ip, raw in queries.forwardings_to(run, record) if leaving and not replaced else ():
            if raw["internal_ip_address"] in leaving:
                leads = f"port forwarding {raw['id']} of floating IP {floating_ip.address} leads to it"
                what = f"{raw['internal_ip_address']} cannot be removed, because {leads}, and Neutron would delete it"
                yield self.mistake(what, "delete it first, or keep the address", Code.STILL_USED)

    def _leaving(self, run: CloudRun, record: PortRecord) -> list[str]:
        """Return the addresses that an update removes."""
        if self.fixed_ips is None:
            return []
        _, left = match(self.fixed_ips, record.fixed_ips, self._subnet_names(run, record))
        return [fixed_ip.ip_address for fixed_ip in left if not is_derived(fixed_ip.ip_address, record.mac_address)]

    def _check_addresses(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        """Yield the given addresses that the network does not offer."""
        network_id = run.find_id(self.sibling(VisibleNetwork, self.network))
        given = any(fixed_ip.address for fixed_ip in self.fixed_ips or ())
        existing = queries.subnets_of(run, network_id) if network_id and given else ()
        blocks: dict[str, tuple[str | None, str | None]]
        blocks = {each.name: (each.cidr, each.ipv6_address_mode) for each in self.neighbours.subnets}
        blocks |= {block.name: (block.cidr, block.ipv6_address_mode) for block in existing}
        present = observed.record_as(PortRecord).fixed_ips if observed else ()
        for address, subnet in (
            (fixed_ip.address, fixed_ip.subnet) for fixed_ip in self.fixed_ips or () if fixed_ip.address
        ):
            if not blocks and (network_id or self.neighbours.network):
                what = f"network {self.network} has no subnet for {address}"
                yield self.mistake(what, "declare a subnet of it, or omit fixed_ips", Code.SPEC_CONTRADICTION)
            near = {cidr: mode for name, (cidr, mode) in blocks.items() if cidr and subnet in (None, name)}
            around = [cidr for cidr in near if ipaddress.ip_address(address) in ipaddress.ip_network(cidr)]
            if near and not around:
                what = f"{address} is outside {', '.join(near)} of {subnet or f'network {self.network}'}"
                yield self.mistake(what, "choose an address of the subnet")
            elif near and not any(is_host(address, cidr) for cidr in around):
                what = f"{address} is no address of a host in {', '.join(around)}"
                yield self.mistake(what, "choose an address inside it", Code.SPEC_CONTRADICTION)
            elif any(near[cidr] in COMPUTED for cidr in around) and not is_derived(address, self.mac_address or ""):
                what = f"{address} is in a subnet that derives addresses from MAC addresses"
                yield self.mistake(what, "set the mac_address that it is derived from, or omit the address")
            elif network_id and address not in {one.ip_address for one in present}:
                yield from self._check_holders(run, network_id, address)

    def _check_room(self, run: CloudRun) -> Iterator[Mistake]:
        """Yield that no IPv4 address is left for a new port, which lets Neutron choose it, after new ones before it.

        Nothing is claimed of networks of other projects, whose subnets and ports these credentials may not see.
        """
        pools, network_id = self._pools(run), run.find_id(self.sibling(Network, self.network))
        chosen = self._chosen_from(pools)
        new = [each for each in self.neighbours.ports if run.look(each) is None] if chosen else []
        if not chosen or not all(pools[name] for name in chosen):
            return
        ranges = [each for name in chosen for each in pools[name]]
        present = queries.ports_on(run, network_id) if network_id else ()
        held = {one.ip_address for port in present for one in port.fixed_ips}
        held |= {one.address for port in new for one in port.fixed_ips or () if one.address}
        used = sum(any(ipaddress.ip_address(address) in each for each in ranges) for address in held)
        used += sum(bool(taken := each._chosen_from(pools)) and taken <= chosen for each in new)
        room = sum(each.count for each in ranges)
        if used >= room:
            what = f"all {room} addresses of the allocation pools of {', '.join(sorted(chosen))} are used"
            yield self.mistake(what, "use a larger subnet, or fewer ports", Code.ADDRESS_IN_USE)

    def _chosen_from(self, pools: Mapping[str, Sequence[Range]]) -> frozenset[str]:
        """Return the subnets from which Neutron chooses its IPv4 address; none if the address is given."""
        if self.fixed_ips is None:
            return frozenset(pools)
        return frozenset(
            str(fixed_ip.subnet) for fixed_ip in self.fixed_ips if fixed_ip.address is None and fixed_ip.subnet in pools
        )

    def _pools(self, run: CloudRun) -> dict[str, Sequence[Range]]:
        """Return the allocation pools of the IPv4 subnets of its own network by name; empty if not all are known."""
        declared = {each.name: each for each in self.neighbours.subnets}
        network_id, project_id = run.find_id(self.sibling(Network, self.network)), run.find_project_id(self.owner)
        records: dict[str, SubnetRecord] = {}
        if network_id and project_id:
            listed = queries.records_in(run, SubnetRecord, project_id)
            records = {each.name: each for each in listed if each.network_id == network_id}
            if {block.id for block in queries.subnets_of(run, network_id)} != {each.id for each in records.values()}:
                return {}
        elif not self.neighbours.network:
            return {}
        pools: dict[str, Sequence[Range]] = {}
        for name in declared.keys() | records.keys():
            record, subnet = records.get(name), declared.get(name)
            cidr = record.cidr if record else subnet and subnet.cidr
            whole = ipaddress.ip_network(cidr) if cidr else None
            if whole is not None and whole.version == 4:
                pools[name] = pools_of(whole, gateway_of(whole, record, subnet), record, subnet)
        return pools

    def _check_holders(self, run: CloudRun, network_id: str, address: str) -> Iterator[Mistake]:
        project_id = run.find_project_id(self.owner)
        twins = {each.id for each in self.named(run, self.listing(run, project_id))} if project_id else set()
        for port in queries.ports_on(run, network_id):
            if port.id not in twins and address in (fixed_ip.ip_address for fixed_ip in port.fixed_ips):
                what = f"{address} is used by {shown(port)} ({port.device_owner or 'no device'})"
                yield self.mistake(what, "choose another address, or delete that port")

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        for user in blockers_of_port(run, observed.record_as(PortRecord), going):
            yield self.mistake(f"{user} uses the port", "detach or delete it there first", Code.STILL_USED)

    # --- the verbs ------------------------------------------------------------------------

    def maker(self, run: CloudRun) -> tuple[Cloud, dict[str, str]]:
        """Return the administrator for what only the network's owner may choose.

        Neutron 29.0.0, conf/policies/port.py: create_port:fixed_ips:ip_address, :mac_address, :port_security_enabled.
        """
        cloud, owner = super().maker(run)
        chosen = any(fixed_ip.address for fixed_ip in self.fixed_ips or ()) or self.mac_address
        own = run.find_id(self.sibling(Network, self.network)) is not None
        if own or not (chosen or self.port_security_enabled is not None):
            return cloud, owner
        return run.admin, {"project_id": str(run.find_project_id(self.owner))}

    def body(self, run: CloudRun, values: Raw) -> Values:
        body = {name: value for name, value in values.items() if name not in ("tags", "network")}
        if "network" in values:
            body["network_id"] = run.id(self.sibling(VisibleNetwork, self.network))
        if "fixed_ips" in values:
            body["fixed_ips"] = [each for each in map(partial(self._address_body, run), self.fixed_ips or ()) if each]
        if "security_groups" in values:
            body["security_groups"] = [
                run.id(self.sibling(SecurityGroup, security_group))
                for security_group in dict.fromkeys(self.security_groups or ())
            ]
        if "allowed_address_pairs" in values:
            body["allowed_address_pairs"] = list(map(_pair_body, dict.fromkeys(self.allowed_address_pairs or ())))
        return body

    def _address_body(self, run: CloudRun, wanted: PortAddress, *, is_new: bool = True) -> Values:
        """Return a fixed IP for a request; Neutron adds derived addresses itself, and refuses to do so twice."""
        subnet = {"subnet_id": run.id(self.subnet(wanted.subnet))} if wanted.subnet else {}
        if wanted.address is None or (is_new and is_derived(wanted.address, self.mac_address or "")):
            return subnet
        return {**subnet, "ip_address": wanted.address}

    def create(self, run: CloudRun) -> Observed:
        return self._with_tags(run, super().create(run))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        own = [change for change in changes if change.field != "tags"]
        addresses_change = any(change.field == "fixed_ips" for change in own)
        if wrong := [*self._check_use(run.fresh(), observed)] if addresses_change else []:
            raise PlanRefused(wrong)  # of what somebody has led to an address since the plan
        if own:
            observed = super().update(run, observed, own)
        return self._with_tags(run, observed)

    def put(self, run: CloudRun, observed: Observed, body: Raw) -> PortRecord:
        """Keep what the spec does not choose: addresses that fit, derived addresses, and recorded pairs."""
        record, more = observed.record_as(PortRecord), dict(body)
        if "fixed_ips" in more:
            names = self._subnet_names(run, record)
            pairs, left = match(self.fixed_ips or (), record.fixed_ips, names)
            derived = [fixed_ip for fixed_ip in left if is_derived(fixed_ip.ip_address, record.mac_address)]
            more["fixed_ips"] = [
                *(vars(found) if found else self._address_body(run, wanted, is_new=False) for wanted, found in pairs),
                *map(vars, derived),
            ]
        if "allowed_address_pairs" in more:
            kept = [_pair_body(pair) for _, pair in self._kept(record)]
            more["allowed_address_pairs"] = [*more["allowed_address_pairs"], *kept]
        return super().put(run, observed, more)

    def _kept(self, record: PortRecord) -> Iterator[tuple[AddressPair, PortPair]]:
        """Yield the pairs that address_pairs of some spec have added, which an update keeps."""
        declared, elsewhere = set(self.allowed_address_pairs or ()), recorded(record)
        for raw, pair in zip(record.allowed_address_pairs, pairs_of(record), strict=True):
            if pair.address in elsewhere and pair not in declared:
                yield raw, pair

    def _with_tags(self, run: CloudRun, observed: Observed) -> Observed:
        """Add the missing tags; their request cannot be part of the one that creates or updates the port.

        Neutron 29.0.0 reads the path of a request as Latin-1, and stores other letters than those of ASCII wrongly.
        """
        missing = sorted({*(self.tags or ())}.difference(observed.record_as(PortRecord).tags))
        cloud, _ = self.maker(run)
        path = f"/ports/{observed.id}/tags"
        if missing and "tag-creation" in queries.extensions(run):
            cloud.network.post(path, {"tags": missing})
        else:
            for tag in missing:
                cloud.network.put(f"{path}/{quote(tag, safe='')}")
        return replace(observed, values={**observed.values, "tags": frozenset(self.tags or ())})

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it unless somebody uses it by then, or changes it meanwhile."""
        cloud, _ = self.maker(run)
        try:
            port = self.read(cloud.network.get(f"/ports/{observed.id}")["port"])
        except NotFound:
            return
        if users := of_port(run, port).others:
            raise ResourceFailed(f"{self.key} {port.id} is now used by {', '.join(users)} and is kept")
        port = without_forwardings(run, cloud, port, observed.record_as(PortRecord))
        cloud.network.delete(f"/ports/{port.id}", headers=unchanged(port))


def _subnets_at(run: CloudRun, record: PortRecord) -> Sequence[queries.Block]:
    """Return the subnets of a port's network: of all networks with ports of its project by one list."""
    found = queries.subnets_at_ports(run, record.project_id).get(record.network_id)
    return queries.subnets_of(run, record.network_id) if found is None else found


def _pair_body(pair: PortPair) -> Values:
    return {"ip_address": pair.address} | ({"mac_address": pair.mac_address} if pair.mac_address else {})


def _network_name(run: CloudRun, record: PortRecord) -> str:
    return queries.network_name(run, record.network_id, record.project_id)


def _group_names(run: CloudRun, record: PortRecord, known: dict[str, str] | None = None) -> list[str]:
    """Return the names of a port's security groups; the id if a group belongs to another project."""
    names = {group.id: group.name for group in SecurityGroup.listing(run, record.project_id)} | (known or {})
    return [names.get(security_group, security_group) for security_group in record.security_groups]
