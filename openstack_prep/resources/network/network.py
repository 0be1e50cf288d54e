"""Networks: those of the project, and external networks of the provider.

Source: Networking API v2.0, "Networks" and "External network".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Count, Name
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Key, Observed, Resource
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import NetworkRecord
from openstack_prep.resources.network.neutron import NetworkResource
from openstack_prep.resources.network.uses import Use, blockers_of_network, clear, of_network


@dataclass(frozen=True, kw_only=True)
class Network(NetworkResource[NetworkRecord]):
    """A network of the project."""

    kind: ClassVar[str] = "network"
    collection: ClassVar[str] = "networks"
    member: ClassVar[str] = "network"

    name: Name
    """Name of the network, unique in its project."""
    mtu: Count | None = None
    """MTU: largest packet, bytes."""
    port_security_enabled: bool | None = None
    """Whether port security is enabled on new ports, which filters spoofed addresses."""
    admin_state_up: bool | None = None
    """Administrative state: whether it forwards packets."""

    @classmethod
    def read(cls, raw: Raw) -> NetworkRecord:
        return NetworkRecord.read(raw)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        for user in blockers_of_network(run, observed.id, going):
            yield self.mistake(f"{user} is still on the network", "delete that port or server first", Code.STILL_USED)

    def use(self, run: CloudRun, record: NetworkRecord) -> Use:
        return of_network(run, record)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it; for a twin first its tagged resources, because the spec does not declare its subnets."""
        if observed.contained_ids:
            use = of_network(run.fresh(), observed.record_as(NetworkRecord))
            clear(self.maker(run)[0], use, f"{self.key} {observed.id}")
        super().delete(run, observed)


@dataclass(frozen=True, kw_only=True)
class ExternalNetwork(Resource[CloudRun]):
    """A provider's network for floating IPs and gateways; other resources only refer to it."""

    kind: ClassVar[str] = "external_network"
    declarable: ClassVar[bool] = False

    name: Name

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        listed = queries.external_networks(run)
        found = {}
        for each in wanted:
            network = only_one((one for one in listed if one.name == each.name), str(each.key))
            if network is not None:
                found[each.key] = Observed(id=network.id)
        return found


def given_addresses(external_network: str) -> Key:
    """Return the key that everything that asks for a certain address of an external network provides.

    What takes any address waits for it: Neutron draws one at random from the free ones (Neutron 29.0.0,
    ipam/drivers/neutrondb_ipam/driver.py, _generate_ips), and may draw one that the spec asks for.
    """
    return Key("given_addresses", external_network)
