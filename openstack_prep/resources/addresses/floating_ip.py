"""Floating IPs: a given address or the next free one, never leaked, never taken from others.

Source: Networking API v2.0, "Floating IPs".  A floating IP has no name: ours carry the spec's name
for them in their description, written by the very request that allocates them, so that a run that
lost the answer, or died, finds them again.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import quote, unquote

from openstack_prep.base.errors import Mistake, NotFound, PlanRefused, SpecError
from openstack_prep.base.fields import Address, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Context, Key, Mark, Observed, Resolved, Resource
from openstack_prep.resources.addresses.holders import ask_for_holders, holder_of
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord
from openstack_prep.resources.network.network import ExternalNetwork, given_addresses
from openstack_prep.resources.network.neutron import NetworkResource
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.uses import Use, of_floating_ip

MOST_OF_A_TAG = 60  # characters, in every Neutron; newer ones take 255


@dataclass(frozen=True, kw_only=True)
class AttachedFloatingIP(InProject):
    """Base of what says which port a floating IP serves."""

    @property
    def label(self) -> str:
        """The floating IP's name, address or id."""
        raise NotImplementedError(self.kind)

    if TYPE_CHECKING:  # a field of each kind

        @property
        def port(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class InstallerInput(InProject):
    """Base of what names floating IPs for an installer, which takes them from the ports that they serve."""

    @property
    def taken(self) -> frozenset[str]:
        """Names and addresses of the floating IPs that the installer has yet to attach."""
        raise NotImplementedError(self.kind)


@dataclass(frozen=True, kw_only=True)
class FloatingIP(NetworkResource[FloatingIPRecord]):
    """An address on an external network that belongs to the project.

    With ``address`` that very one, adopted when the project has it already; without, the next free.
    """

    kind: ClassVar[str] = "floating_ip"
    collection: ClassVar[str] = "floatingips"
    member: ClassVar[str] = "floatingip"
    immutable: ClassVar[frozenset[str]] = frozenset({"address", "external_network"})

    name: Name
    """What this spec calls it, such as api or ingress; kept in its description."""
    external_network: Name
    """Name of the external network it comes from."""
    address: Address | None = None
    """The address wanted; without it the next free one.  Asking for one is an administrator's right."""

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Refuse two that want one address: they would silently become the same floating IP."""
        for twin in (each for each in context.declared(FloatingIP) if each.key < self.key):
            if self.address is not None and twin.address == self.address:
                raise SpecError([self.mistake(f"{self.address} is wanted by {twin.key} too", "choose another address")])
        attached = ((each.label, each.port) for each in self.of_project(context.declared(AttachedFloatingIP)))
        taken = (each.taken for each in self.of_project(context.declared(InstallerInput)))
        return (ResolvedFloatingIP.of(self, attached=frozenset(attached), taken=frozenset().union(*taken)),)

    @property
    def attached(self) -> frozenset[tuple[str, str]]:
        """Which floating IPs (name, address or id) the spec attaches to ports of which name; known once resolved."""
        return frozenset()

    @property
    def taken(self) -> frozenset[str]:
        """Names and addresses of the floating IPs that an installer is to attach; known once resolved."""
        return frozenset()

    def references(self) -> Iterable[Resource]:
        return (*super().references(), ExternalNetwork(name=self.external_network))

    def provides(self) -> Iterable[Key]:
        if not self.address:
            return (self.key,)
        return (self.key, given_address(self.address), given_addresses(self.external_network))

    def needs(self) -> Iterable[Key]:
        # the administrator asks for given addresses, and need not wait for the tenant's roles
        return () if self.address else (*super().needs(), given_addresses(self.external_network))

    def maker(self, site: Site) -> tuple[Cloud, dict[str, str]]:
        project_id = site.find_project_id(self.owner)
        if self.address and project_id != site.admin.project_id:
            return site.admin, {"project_id": site.id(self.owner) if self.owner else ""}
        return super().maker(site)

    @classmethod
    def read(cls, raw: Raw) -> FloatingIPRecord:
        return FloatingIPRecord.read(raw)

    def body(self, site: Site, values: Raw) -> Values:
        body = dict(values)
        if "external_network" in body:
            body["floating_network_id"] = site.id(ExternalNetwork(name=body.pop("external_network")))
        if "address" in body:
            body["floating_ip_address"] = body.pop("address")
        return body

    def values(self, site: Site, record: FloatingIPRecord) -> Values:
        network = site.look(ExternalNetwork(name=self.external_network))
        same = network is not None and network.id == record.network_id
        return {
            "address": record.address,
            "external_network": self.external_network if same else record.network_id,
        }

    @classmethod
    def in_words(cls, site: Site, record: FloatingIPRecord) -> Values:
        theirs = site.mark.another_in(record.description) and site.mark.name_in(record.description)
        return {
            "name": name_of(site.mark, record) or theirs or record.address,
            "external_network": queries.external_network_name(site, record.network_id),
        }

    def outputs(self, record: FloatingIPRecord) -> dict[str, str]:
        return {"address": record.address}

    @property
    def can_have_twins(self) -> bool:
        return self.address is None  # Neutron allocates one address only once

    def named(self, site: Site, listed: Iterable[FloatingIPRecord]) -> list[FloatingIPRecord]:
        """Return those that carry our tag and name, of these the one with the address wanted; else that one."""
        marked = [record for record in listed if self.is_ours(site, record)]
        at_address = [record for record in marked or listed if self.address and record.address == self.address]
        return at_address or marked

    def is_ours(self, site: Site, record: FloatingIPRecord) -> bool:
        """Whether it carries our tag and name, in its description or among its tags: people edit the one in Horizon."""
        return carries(site.mark, record, self.name)

    def observe(self, site: Site, record: FloatingIPRecord) -> Observed:
        seen = super().observe(site, record)
        return replace(seen, managed_by="" if seen.ours else seen.managed_by or _tagged_by(record))

    def create(self, site: Site) -> Observed:
        observed = super().create(site)
        tag = _tag(site.mark, self.name)
        if len(tag) <= MOST_OF_A_TAG:
            cloud, _ = self.maker(site)
            cloud.network.put(f"/floatingips/{observed.id}/tags/{quote(tag, safe='')}")
        return observed

    def use(self, site: Site, record: FloatingIPRecord) -> Use:
        return of_floating_ip(record)

    def check_delete(self, site: Site, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield that it serves a port that stays, unless the attachment is managed by this spec and deleted first."""
        record = observed.recorded(FloatingIPRecord)
        if record.port_id is None:
            return
        listed = ports_of(site, site.find_project_id(self.owner))
        port = next((each for each in listed if each.id == record.port_id), None)
        names = {self.name, record.address, record.id}
        managed = {port_name for label, port_name in self.attached if label in names}
        if port is None or not ({port.id, port.device_id} & going or port.name in managed):
            yield self._in_use(record, port.name if port else "")

    def _in_use(self, record: FloatingIPRecord, port_name: str = "") -> Mistake:
        port = " ".join(filter(None, (port_name, record.port_id)))
        what = f"{record.address} serves port {port} and would be lost"
        return self.mistake(what, f"detach it first: openstack floating ip unset --port {record.address}")

    def delete(self, site: Site, observed: Observed) -> None:
        """Release it, unless somebody has attached it since we looked; a twin is then looked at again."""
        cloud, _ = self.maker(site)
        path, now = f"/floatingips/{observed.id}", observed.recorded(FloatingIPRecord)
        if not observed.created_at:  # one of several has it; the others' revision changes when they are detached
            try:
                now = self.read(cloud.network.get(path)["floatingip"])
            except NotFound:
                return
            if now.port_id not in (None, observed.recorded(FloatingIPRecord).port_id):
                raise PlanRefused([self._in_use(now)])
        cloud.network.delete(path, headers={"If-Match": f"revision_number={now.revision_number}"})

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        """Read also what check will want to know of those that are not there, while other kinds are read."""
        found = super().find(site, wanted)
        missing = [each for each in wanted if each.address and each.key not in found]
        for name in {each.external_network for each in missing}:
            network_id = site.find_id(ExternalNetwork(name=name))
            if network_id is not None:
                addresses = {each.address for each in missing if each.address and each.external_network == name}
                ask_for_holders(site, network_id, sorted(addresses))
                queries.subnets_of(site, network_id)
        return found

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        if observed is not None:
            record, names = observed.recorded(FloatingIPRecord), {self.name, self.address}
            attached = {observed.id, *names} & {label for label, _ in self.attached}
            if record.port_id and not observed.ours and not attached and names & self.taken:
                serves = f"{record.address} serves port {record.port_id}; openshift-install would take it from there"
                remedy = f"detach it first (openstack floating ip unset --port {record.address})"
                yield self.mistake(serves, f"{remedy}, or choose another address")
            return
        network_id = site.find_id(ExternalNetwork(name=self.external_network))
        if self.address is None or network_id is None:
            return
        address, blocks = ipaddress.ip_address(self.address), queries.subnets_of(site, network_id)
        if not any(address in ipaddress.ip_network(block.cidr) for block in blocks):
            yield self.mistake(f"{self.address} lies in no subnet of {self.external_network}", "choose one that does")
        holder = holder_of(site, network_id, self.address)
        if holder:
            yield self.mistake(f"{self.address} belongs to {holder} already", "choose another, or have it released")


@dataclass(frozen=True, kw_only=True)
class ResolvedFloatingIP(Resolved, FloatingIP):
    """A floating IP that knows which ones the spec attaches."""

    identity: ClassVar[frozenset[str]] = FloatingIP.identity | {"attached", "taken"}

    attached: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    taken: frozenset[str] = field(default=frozenset(), repr=False)


def carries(mark: Mark, record: FloatingIPRecord, name: str) -> bool:
    """Whether a floating IP carries an ownership tag with a name, in its description or among its tags."""
    return mark.owns(record.description, name) or _tag(mark, name) in record.tags


def name_of(mark: Mark, record: FloatingIPRecord) -> str | None:
    """Return the name that a spec has given a floating IP; None when it carries no ownership tag of the spec."""
    if mark.owns(record.description):
        return mark.name_in(record.description)
    ours = _tag(mark, "")
    return next((unquote(tag.removeprefix(ours)) for tag in sorted(record.tags) if tag.startswith(ours)), None)


def _tag(mark: Mark, name: str) -> str:
    return f"{mark.tag}~{quote(name, safe='')}"


def _tagged_by(record: FloatingIPRecord) -> str:
    """Return the name of a spec whose ownership tag is among the tags of a floating IP, or nothing."""
    specs = (tag.partition(":")[2].partition("~") for tag in sorted(record.tags) if Mark.is_tag(tag))
    return next((unquote(spec) for spec, named, _ in specs if spec and named), "")


def given_address(address: str) -> Key:
    """Return the key that the floating IP with a given address provides."""
    return Key("address", address)
