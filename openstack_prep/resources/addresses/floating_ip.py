"""Floating IPs: a given address or the next free one; never leaked, and never taken from others.

Source: Networking API v2.0, "Floating IPs". A floating IP has no name, so its description contains the spec's name for
it. The request that allocates the floating IP also writes the description; therefore the next run finds it even if this
run loses the answer or is killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import quote

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, PlanRefused, SpecError
from openstack_prep.base.fields import Address, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion
from openstack_prep.core.model import Context, FromContext, Key, Observed, Resource
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.identity.in_project import InProject, InstallerInput
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord
from openstack_prep.resources.lists.ownership import carries, floating_ip_tag, name_of, tagged_by
from openstack_prep.resources.lists.queries import forwardings_of
from openstack_prep.resources.network import external_addresses
from openstack_prep.resources.network.external_addresses import AsksForAddresses
from openstack_prep.resources.network.network import ExternalNetwork, given_addresses, subnets_on
from openstack_prep.resources.network.neutron import NetworkResource
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.uses import Use, attachment_id, of_floating_ip

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class AttachedFloatingIP(InProject):
    """Base of kinds that attach a floating IP to a port."""

    @property
    def label(self) -> str:
        """The name, address or id of the floating IP."""
        raise NotImplementedError(self.kind)


@dataclass(frozen=True)
class FloatingIPNeighbours(FromContext):
    """What the spec does with a floating IP."""

    attached: frozenset[str] = frozenset()
    """Names, addresses or ids of the floating IPs that it attaches."""
    taken: frozenset[str] = frozenset()
    """Names and addresses of the floating IPs that an installer will attach."""


@dataclass(frozen=True, kw_only=True)
class FloatingIP(HasCascades, AsksForAddresses, NetworkResource[FloatingIPRecord]):
    """An address on an external network that belongs to the project.

    With ``address``, exactly that address, which is adopted if the project already has it; otherwise the next free one.
    """

    kind: ClassVar[str] = "floating_ip"
    collection: ClassVar[str] = "floatingips"
    member: ClassVar[str] = "floatingip"
    immutable: ClassVar[frozenset[str]] = frozenset({"address", "external_network"})

    name: Name
    """Name within this spec, such as api or ingress; stored in the description."""
    external_network: Name
    """Name of the external network."""
    address: Address | None = None
    """The address to allocate; default: the next free one. Only administrators may ask for a given address."""
    neighbours: FloatingIPNeighbours = field(default=FloatingIPNeighbours(), repr=False)
    """What the spec does with it, which ``resolve`` finds there."""

    def resolve(self, context: Context) -> Sequence[Resource]:
        if self.neighbours != FloatingIPNeighbours():
            return (self,)
        if mistakes := list(self.list_mistakes(context)):  # two with one address would silently become one
            raise SpecError(mistakes)
        attached = (each.label for each in self.of_project(context.declared(AttachedFloatingIP)))
        taken = (each.taken for each in self.of_project(context.declared(InstallerInput)))
        return (replace(self, neighbours=FloatingIPNeighbours(frozenset(attached), frozenset().union(*taken))),)

    @property
    def asked_addresses(self) -> tuple[str, ...]:
        return (self.address,) if self.address else ()

    def references(self) -> Iterable[Resource]:
        return (*super().references(), ExternalNetwork(name=self.external_network))

    def provides(self) -> Iterable[Key]:
        if not self.address:
            return (self.key,)
        return (self.key, given_address(self.address), given_addresses(self.external_network))

    def needs(self) -> Iterable[Key]:
        # the administrator asks for given addresses, and need not wait for the tenant's roles
        return (subnets_on(self.external_network), *(() if self.address else super().needs()))

    def yields_to(self) -> Iterable[Key]:
        return () if self.address else (given_addresses(self.external_network),)

    def maker(self, run: CloudRun) -> tuple[Cloud, dict[str, str]]:
        project_id = run.find_project_id(self.owner)
        if self.address and project_id != run.admin.project_id:
            return run.admin, {"project_id": run.id(self.owner) if self.owner else ""}
        return super().maker(run)

    @classmethod
    def read(cls, raw: Raw) -> FloatingIPRecord:
        return FloatingIPRecord.read(raw)

    def body(self, run: CloudRun, values: Raw) -> Values:
        body = dict(values)
        if "external_network" in body:
            body["floating_network_id"] = run.id(ExternalNetwork(name=body.pop("external_network")))
        if "address" in body:
            body["floating_ip_address"] = body.pop("address")
        return body

    def values(self, run: CloudRun, record: FloatingIPRecord) -> Values:
        return {
            "address": record.address,
            "external_network": queries.external_network_name(run, record.network_id),
        }

    @classmethod
    def in_words(cls, run: CloudRun, record: FloatingIPRecord) -> Values:
        theirs = run.ownership.another_in(record.description) and run.ownership.name_in(record.description)
        return {
            "name": name_of(run.ownership, record) or theirs or record.address,
            "external_network": queries.external_network_name(run, record.network_id),
        }

    @classmethod
    def scan_tagged(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield those of ``scan`` by their names alone: an address would tell duplicates apart."""
        for declared, observed in cls.scan(run, owner):
            yield replace(declared, address=None), observed

    def outputs(self, record: FloatingIPRecord) -> dict[str, str]:
        return {"address": record.address}

    @property
    def can_have_twins(self) -> bool:
        return self.address is None  # Neutron allocates an address only once

    def named(self, run: CloudRun, listed: Iterable[FloatingIPRecord]) -> list[FloatingIPRecord]:
        """Return floating IPs with our tag and name, preferably the one with the address; else the address alone."""
        marked = [record for record in listed if self.is_ours(run, record)]
        at_address = [record for record in marked or listed if self.address and record.address == self.address]
        if at_address and not marked:  # another external network may have the same address
            network_id = run.find_id(ExternalNetwork(name=self.external_network))
            return [record for record in at_address if network_id in (None, record.network_id)]
        return at_address or marked

    def is_ours(self, run: CloudRun, record: FloatingIPRecord) -> bool:
        """Whether description or tags contain our ownership tag and name: users edit the description in Horizon."""
        return carries(run.ownership, record, self.name)

    def observe(self, run: CloudRun, record: FloatingIPRecord) -> Observed:
        seen = super().observe(run, record)
        return replace(seen, managed_by="" if seen.ours else seen.managed_by or tagged_by(record))

    def create(self, run: CloudRun) -> Observed:
        observed = super().create(run)
        tag = floating_ip_tag(run.ownership, self.name)
        if len(tag) <= MOST_OF_A_TAG:
            cloud, _ = self.maker(run)
            cloud.network.put(f"/floatingips/{observed.id}/tags/{quote(tag, safe='')}")
        return observed

    def use(self, run: CloudRun, record: FloatingIPRecord) -> Use:
        return of_floating_ip(record)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield that it is attached to a port that is kept, unless the plan deletes the attachment first."""
        record = observed.record_as(FloatingIPRecord)
        if record.port_id is None:
            return
        listed = ports_of(run, run.find_project_id(self.owner))
        port = next((each for each in listed if each.id == record.port_id), None)
        if port is None or going.isdisjoint({port.id, port.device_id, attachment_id(record.id, port.id)}):
            yield self._in_use(record, port.name if port else "")

    def _in_use(self, record: FloatingIPRecord, port_name: str = "") -> Mistake:
        port = " ".join(filter(None, (port_name, record.port_id)))
        what = f"{record.address} is attached to port {port} and would be lost"
        fix = f"detach it first: openstack floating ip unset --port {record.address}"
        return self.mistake(what, fix, Code.STILL_USED)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Release it, unless it has been attached since it was read; a twin is read again first.

        Neutron 29.0.0 does not delete a floating IP with port forwardings (services/portforwarding/pf_plugin.py). Those
        that this run has judged are deleted first; the others keep the floating IP.
        """
        cloud, _ = self.maker(run)
        path, now = f"/floatingips/{observed.id}", observed.record_as(FloatingIPRecord)
        if (
            not observed.created_at
        ):  # one of several floating IPs has the port; the revision of the others changes when they are detached
            try:
                now = self.read(cloud.network.get(path)["floatingip"])
            except NotFound:
                return
            if now.port_id not in (None, observed.record_as(FloatingIPRecord).port_id):
                raise PlanRefused([self._in_use(now)])
        for forwarding in forwardings_of(run, Deletion(self, observed)):  # as the losses were judged by
            cloud.network.delete(f"{path}/port_forwardings/{forwarding['id']}")
        cloud.network.delete(path, headers={"If-Match": f"revision_number={now.revision_number}"})

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        """Also read what ``check`` needs about missing floating IPs, while other kinds are being read."""
        found = super().find(run, wanted)
        missing = [each for each in wanted if each.address and each.key not in found]
        for name in {each.external_network for each in missing}:
            network_id = run.find_id(ExternalNetwork(name=name))
            if network_id is not None:
                addresses = {each.address for each in missing if each.address and each.external_network == name}
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(queries.subnets_of, run, network_id)  # the run stores the answer, also an error
                    external_addresses.ask_for_holders(run, network_id, sorted(addresses))
        return found

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if observed is not None:
            record, names = observed.record_as(FloatingIPRecord), {self.name, self.address}
            attached = {observed.id, *names} & self.neighbours.attached
            if record.port_id and not observed.ours and not attached and names & self.neighbours.taken:
                serves = (
                    f"{record.address} is attached to port {record.port_id}; openshift-install would move it from there"
                )
                fix = f"detach it first (openstack floating ip unset --port {record.address})"
                yield self.mistake(serves, f"{fix}, or choose another address", Code.ADDRESS_IN_USE)
            return
        network_id = run.find_id(ExternalNetwork(name=self.external_network))
        if self.address is None or network_id is None:
            return
        for what, fix, code in external_addresses.refused(run, self.external_network, network_id, self.address):
            yield self.mistake(what, fix, code)


def given_address(address: str) -> Key:
    """Return the key that the floating IP with a given address provides."""
    return Key("address", address)


MOST_OF_A_TAG = 60  # characters, in every Neutron; newer ones take 255
