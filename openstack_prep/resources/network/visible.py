"""Networks and subnets that ports refer to: those of the project, and those that another project shares with it.

Source: Networking API v2.0, "Networks" (``shared``) and "RBAC policies".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Observed
from openstack_prep.core.resource import BareReference
from openstack_prep.core.run import query
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import NetworkRecord
from openstack_prep.resources.network.network import Network


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
        return (each.name for each in (queries.subnets_of(run, network_id) if network_id else ()))


@query
def _granted(run: CloudRun, project_id: str) -> frozenset[str]:
    """Return the ids of networks that policies share with a project, as far as these credentials see the policies."""
    which: Values = {"object_type": "network", "action": "access_as_shared", "target_tenant": project_id}
    try:
        listed = run.admin.network.list("/rbac-policies", "rbac_policies", **which)
    except NotAllowed:
        return frozenset()
    return frozenset(raw["object_id"] for raw in listed)
