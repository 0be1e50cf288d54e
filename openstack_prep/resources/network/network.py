"""Networks: those of the project, and external networks of the provider.

Source: Networking API v2.0, "Networks" and "External network".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, NotUnique
from openstack_prep.base.fields import Count, Name
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, Finding
from openstack_prep.core.model import Change, Coherent, Key, Observed, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.resources.cascades import row as cascades
from openstack_prep.resources.identity.project import Project, project_name
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import NetworkRecord
from openstack_prep.resources.network.neutron import NetworkResource, added, changed, is_new_value, unchanged
from openstack_prep.resources.network.uses import Use, blockers_of_network, clear, of_network, port_text, removal

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

PROVIDER = ("provider_network_type", "provider_physical_network", "provider_segmentation_id")
ADMINISTRATORS = (*PROVIDER, "shared", "external", "shared_with")
"""Fields that only administrators may set (Neutron 29.0.0, conf/policies/network.py and rbac.py)."""
NetworkType = Literal["local", "flat", "vlan", "vxlan", "gre", "geneve"]
SEGMENTS = {"vlan": 4094, "vxlan": 2**24 - 1, "gre": 2**32 - 1, "geneve": 2**24 - 1}
"""The highest segmentation id of each type that has one (neutron_lib 5.0.1, constants.py)."""
USUAL_MTU = 1400
"""Ethernet's 1500 without what tunnels add: at most 70 for VXLAN over IPv6 (Neutron 29.0.0, plugins/ml2/drivers)."""
LEAST_MTU = {4: 68, 6: 1280}
"""The least MTU of a network with subnets of an IP version (Neutron 29.0.0, _validate_subnet_network_mtu)."""
_MTU_TOO_BIG = re.compile(r"MTU is too big, maximum is (\d+)")


@dataclass(frozen=True, kw_only=True)
class Network(NetworkResource[NetworkRecord], Coherent):
    """A network of the project.

    Fields that begin with ``provider_``, and ``shared``, ``external`` and ``shared_with``, need an administrator.
    """

    kind: ClassVar[str] = "network"
    collection: ClassVar[str] = "networks"
    member: ClassVar[str] = "network"
    immutable: ClassVar[frozenset[str]] = frozenset(PROVIDER)
    defaults: ClassVar[Values] = {"admin_state_up": True, "port_security_enabled": True}

    name: Name
    """Name of the network, unique in its project."""
    mtu: Count | None = None
    """MTU: largest packet, bytes."""
    port_security_enabled: bool | None = None
    """Whether port security is enabled on new ports, which filters spoofed addresses."""
    admin_state_up: bool | None = None
    """Administrative state: whether it forwards packets."""
    provider_network_type: NetworkType | None = None
    """How the cloud carries the network; default: the type of the cloud's project networks."""
    provider_physical_network: Name | None = None
    """Name of the physical network that carries a flat or VLAN network."""
    provider_segmentation_id: Count | None = None
    """VLAN ID, or the network identifier of the tunnels."""
    external: bool | None = None
    """Whether it is an external network, which offers floating IPs and gateways."""
    shared: bool | None = None
    """Whether all projects may use it."""
    shared_with: tuple[Name, ...] | None = None
    """Names of the projects that may use it, all of them, in the domain of its own project; each is an RBAC policy."""

    def contradictions(self) -> Iterable[InvalidValue]:
        kind, physical = self.provider_network_type, self.provider_physical_network
        number, most = self.provider_segmentation_id, SEGMENTS.get(self.provider_network_type or "", 0)
        if kind is None and (physical or number):
            yield InvalidValue("provider_network_type is missing", "set it: flat, vlan, vxlan, gre or geneve")
        elif kind in ("flat", "vlan") and not physical:
            yield InvalidValue(f"a {kind} network needs provider_physical_network", "name the physical network")
        elif kind not in (None, "flat", "vlan") and physical:
            yield InvalidValue(f"a {kind} network has no physical network", "remove provider_physical_network")
        if kind is not None and number is not None and number > most:
            limit = f"use a number up to {most}" if most else "remove it"
            yield InvalidValue(f"provider_segmentation_id {number} is impossible for a {kind} network", limit)
        if self.shared and self.shared_with:
            yield InvalidValue("shared: true already includes the projects of shared_with", "remove one of them")

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *self._projects())

    def outlives(self) -> Iterable[Key]:
        return (*super().outlives(), *self.guests(self._projects()))

    def _projects(self) -> list[Project]:
        return [Project(name=name, domain=self.project_domain) for name in self.shared_with or ()]

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        return {**super().quota_need(run, changes), "rbac_policies": added(self, "shared_with", changes)}

    def provides(self) -> Iterable[Key]:
        """Return also the keys by which others refer to it: as an external network, or from other projects."""
        yield self.key
        if self.external:
            yield ExternalNetwork(name=self.name).key
        for project in self._projects():
            yield replace(self.key, scope=(project.domain, project.name))

    def desired(self) -> Values:
        values = super().desired()
        return values | ({"shared_with": frozenset(self.shared_with)} if self.shared_with is not None else {})

    @property
    def is_administrators(self) -> bool:
        return any(getattr(self, field) is not None for field in ADMINISTRATORS)

    def maker(self, run: CloudRun) -> tuple[Cloud, dict[str, str]]:
        if not self.is_administrators:
            return super().maker(run)
        return run.admin, {"project_id": run.id(self.owner)} if self.owner else {}

    def values(self, run: CloudRun, record: NetworkRecord) -> Values:
        values = super().values(run, record)
        if record.provider_network_type is None:  # only administrators see it
            values |= {name: getattr(self, name) for name in PROVIDER if name in values}
        if self.shared_with is None:
            return values
        ids = queries.sharing(run, record.id).keys()
        names = {found.id: each.name for each in self._projects() if (found := run.look(each))}
        return values | {"shared_with": frozenset(names.get(each) or project_name(run, each) for each in ids)}

    def body(self, run: CloudRun, values: Raw) -> Values:
        api = {name: name.replace("provider_", "provider:", 1) for name in PROVIDER} | {"external": "router:external"}
        return {api.get(name, name): value for name, value in values.items() if name != "shared_with"}

    @classmethod
    def in_words(cls, run: CloudRun, record: NetworkRecord) -> Values:
        """Leave out what Neutron chooses for any network: its type and identifier, unless it is a physical one's."""
        same = {} if record.provider_physical_network else dict.fromkeys(PROVIDER)
        return same | {"shared": record.shared or None, "external": record.external or None}

    def create(self, run: CloudRun) -> Observed:
        with self._refused_mtu():
            observed = super().create(run)
        return self._share(run, observed)

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        own = [change for change in changes if change.field != "shared_with"]
        if own:
            with self._refused_mtu():
                observed = super().update(run, observed, own)
        return self._share(run, observed)

    @contextlib.contextmanager
    def _refused_mtu(self) -> Iterator[None]:
        """Explain Neutron's refusal of an MTU, which alone tells the highest one: no list or resource contains it.

        It is the MTU of the physical network minus what the tunnels of the network's type add, both in Neutron's
        configuration (Neutron 29.0.0, plugins/ml2/plugin.py, ``_get_network_mtu``; drivers/type_*.py, ``get_mtu``).
        """
        try:
            yield
        except CloudError as error:
            found = _MTU_TOO_BIG.search(str(error))
            if error.status != 400 or not found:
                raise
            what = f"mtu {self.mtu} is more than this network carries, at most {found[1]}"
            raise CloudError(f"{what}; set mtu to {found[1]} or less, or omit it ({error})", status=400) from error

    def _share(self, run: CloudRun, observed: Observed) -> Observed:
        """Add the missing policies, then delete those for other projects; Neutron keeps those that are in use."""
        run.known.update(dict.fromkeys(self.provides(), replace(observed, twins=())))  # for references to it
        if self.shared_with is None:
            return observed
        judged, present = queries.sharing(run, observed.id), queries.sharing(run.fresh(), observed.id)
        wanted = {run.id(each) for each in self._projects()}
        if present.keys() - judged.keys() - wanted:  # somebody has shared it since; no condition of a request says so
            raise changed(f"network {observed.id}")
        for project_id in sorted(wanted - present.keys()):
            # of the network's project, whose quota then counts it, also where an administrator creates it
            owner = {"project_id": run.id(self.owner)} if self.owner else {}
            policy = {"object_type": "network", "object_id": observed.id, "action": "access_as_shared", **owner}
            run.admin.network.post("/rbac-policies", {"rbac_policy": {**policy, "target_tenant": project_id}})
        for project_id in sorted(present.keys() - wanted):
            run.admin.network.delete(f"/rbac-policies/{present[project_id]}")
        return replace(observed, values={**observed.values, "shared_with": frozenset(self.shared_with)})

    @classmethod
    def read(cls, raw: Raw) -> NetworkRecord:
        return NetworkRecord.read(raw)

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        """Yield what Neutron deletes with networks, without the policies that the spec itself declares."""
        policies = (cast(Network, deletion.resource)._own_policies(run, deletion.id) for deletion in deletions)
        return cascades.find_losses(run, deletions, going.union(*policies))

    def _own_policies(self, run: CloudRun, network_id: str) -> frozenset[str]:
        if self.shared_with is None:
            return frozenset()
        declared = {run.find_id(each) for each in self._projects()}
        return frozenset(policy for guest, policy in queries.sharing(run, network_id).items() if guest in declared)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        if observed is not None and self.mtu and self.mtu != observed.values.get("mtu"):
            versions = {ip_network(subnet.cidr).version for subnet in queries.subnets_of(run, observed.id)}
            for version in sorted(each for each in versions if self.mtu < LEAST_MTU[each]):
                what = f"mtu {self.mtu} is too small for its subnets: IPv{version} needs {LEAST_MTU[version]} or more"
                yield self.mistake(what, f"raise it to {LEAST_MTU[version]} or more", Code.SPEC_CONTRADICTION, "mtu")
        if observed is None and self.provider_network_type in ("flat", "vlan") and self.provider_physical_network:
            yield from self._check_segment(run)

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterator[str]:
        """Yield an MTU, a type and a physical network that no network here shows.

        They are in the configuration of Neutron alone: see ``_refused_mtu``.
        """
        project_id = run.find_project_id(self.owner)
        networks = Network.listing(run, project_id) if project_id else ()
        known = [network.mtu or 0 for network in networks]
        if self.mtu and self.mtu > max((*known, USUAL_MTU)) and is_new_value("mtu", changes):
            yield f"mtu {self.mtu}, beyond that of other networks of the project"
        kinds = {None, *(network.provider_network_type for network in networks)}
        if changes is None and self.provider_network_type not in kinds:
            yield f"whether Neutron has networks of type {self.provider_network_type}"
        if changes is None and (name := self.provider_physical_network):
            yield f"whether Neutron has the physical network {name}"

    def _check_segment(self, run: CloudRun) -> Iterator[Mistake]:
        """Yield which network has the flat network or the VLAN of a new one; only administrators see that."""
        if self.provider_network_type == "vlan" and self.provider_segmentation_id is None:
            return
        for each in queries.networks_at(run, str(self.provider_physical_network)):
            same = (self.provider_network_type, self.provider_segmentation_id)
            if (each.provider_network_type, each.provider_segmentation_id) == same:
                what = f"network {each.name} {each.id} has {' '.join(map(str, filter(None, same)))} on "
                what += f"{self.provider_physical_network} already"
                yield self.mistake(what, "choose another one", Code.SPEC_CONTRADICTION)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        for port in blockers_of_network(run, observed.id, going):
            fix = removal(port, "delete that port or server first")
            yield self.mistake(f"{port_text(port)} is still on the network", fix, Code.STILL_USED)

    def use(self, run: CloudRun, record: NetworkRecord) -> Use:
        return of_network(run, record)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it; for a twin first its tagged resources, because the spec does not declare its subnets."""
        seen = observed.record_as(NetworkRecord)
        if observed.contained_ids:
            use = of_network(run.fresh(), seen)
            clear(self.maker(run)[0], use, f"{self.key} {observed.id}")
            # its subnets are part of its revision (Neutron 29.0.0, db/models_v2.py, Subnet.revises_on_change)
            seen = self.again(self.maker(run)[0], observed) or seen
        # as the project's user, Neutron 29.0.0 answers 500 if somebody else has a subnet on it, which that user does
        # not see (db/db_base_plugin_v2.py, delete_network)
        cloud = run.admin if cascades.sees_everything(run) else self.maker(run)[0]
        cloud.network.delete(f"/networks/{observed.id}", headers=unchanged(seen))


@dataclass(frozen=True, kw_only=True)
class ExternalNetwork(Resource[CloudRun], Undeclarable):
    """A provider's network for floating IPs and gateways; other resources only refer to it."""

    kind: ClassVar[str] = "external_network"

    name: Name
    """Name of the network."""

    def find_one(self, run: CloudRun) -> Observed | None:
        """Return, of several with the name, the one that routers of the spec's projects use, or the one for all.

        Only members of a project connect its routers, and Neutron attaches no floating IP of another network.
        """
        named = self._named(run)
        if len(named) > 1:
            projects = filter(None, map(run.find_project_id, run.homes))
            used = frozenset[str | None]().union(*(queries.gateways_of(run, project) for project in projects))
            in_use = [network for network in named if network.id in used]
            for_all = [network for network in named if network.id in queries.external_for_all(run)]
            named = in_use if len(in_use) == 1 else for_all or named
        if len(named) > 1:
            found = ", ".join(
                f"{network.id} of project {queries.project_name(run, network.project_id)}" for network in named
            )
            fix = (
                "have an administrator rename one, or delete the RBAC policy by which a project shares one as external"
            )
            raise NotUnique(f"{self.key}: {len(named)} external networks have this name ({found}); {fix}")
        return Observed(id=named[0].id) if named else None

    def _named(self, run: CloudRun) -> list[NetworkRecord]:
        return [
            external_network
            for external_network in queries.external_networks(run)
            if external_network.name == self.name
        ]

    def list_others(self, run: CloudRun) -> Iterator[str]:
        """Yield that other networks have the name, for what nobody can check: a spec names no network by id."""
        chosen = run.find_id(self)
        others = [network.id for network in self._named(run) if network.id != chosen]
        if chosen and others:
            yield f"whether {self.key} is {chosen}, and not {' or '.join(others)} with the same name"

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return (network.name for network in queries.external_networks(run))


def given_addresses(external_network: str) -> Key:
    """Return the key that everything that asks for a certain address of an external network provides.

    What takes any address waits for it: Neutron draws one at random from the free ones (Neutron 29.0.0,
    ipam/drivers/neutrondb_ipam/driver.py, _generate_ips), and may draw one that the spec asks for.
    """
    return Key("given_addresses", external_network)


def subnets_on(network: str) -> Key:
    """Return the key that all subnets of the networks with a name provide, in whichever project.

    A port, a floating IP and a gateway take their addresses from those that exist: without one Neutron answers 400.
    """
    return Key("subnets", network)


def routers_of(place: tuple[str, ...]) -> Key:
    """Return the key that all routers in a project provide: a floating IP on a port needs one that reaches the port.

    Neutron 29.0.0, db/l3_db.py (get_router_for_floatingip), answers 404 before.
    """
    return Key("routers", "", place)
