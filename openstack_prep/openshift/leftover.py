"""Resources that a cluster left: found by its infraID or name, never declared, only deleted.

Source: OpenShift installer docs/source, "What gets created, names and tags" and what its ``destroy`` does;
cloud-provider-openstack 1.36.0, pkg/openstack/loadbalancer.go: Services of several clusters may share a load balancer.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import ATTACHED, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.run import query
from openstack_prep.openshift import leftover_services as services
from openstack_prep.openshift.leftover_services import Record
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cloud_provider_names import cluster_of, cluster_of_tag
from openstack_prep.resources.lists.neutron_records import FixedIP, PortRecord
from openstack_prep.resources.network.uses import INTERFACES

HOLDS: dict[str, tuple[str, ...]] = {
    "server": ("trunk", "port", "security_group", "server_group", "image", "volume"),
    "load_balancer": ("floating_ip", "floating_ip_attachment", "port", "router", "subnet", "security_group"),
    "floating_ip": ("port", "router"),
    "floating_ip_attachment": ("port", "router"),
    "trunk": ("port",),
    "port": ("subnet", "network", "security_group"),
    "router": ("subnet", "network"),
    "subnet": ("network",),
    "network": (),
    "security_group": (),
    "server_group": (),
    "image": (),
    "volume_snapshot": ("volume",),
    "volume": (),
    "container": (),
}
"""What can only be deleted after a kind."""
LISTED = tuple(thing for thing in HOLDS if thing != "floating_ip_attachment")
"""Kinds with a list of their own."""

SERVED_BY_NEUTRON = ("network:dhcp", "network:distributed")
"""Owners of ports that Neutron deletes itself."""


@dataclass(frozen=True, kw_only=True)
class Leftover(Resource[CloudRun]):
    """A resource of a cluster; its key is OpenStack's kind and name."""

    kind: ClassVar[str] = "leftover"
    declarable: ClassVar[bool] = False

    thing: str
    """A key of ``HOLDS``, or ``tag``: a tag on a resource of the user."""
    id: str
    label: str
    """Its name or address; with its ID if two resources share it."""
    infra_id: str
    """The infraID of the cluster; its name in Kubernetes if the OpenShift installer did not create it."""
    detail: str = ""
    """The port's ID for a floating IP or its attachment, the tag for a tag."""
    released: bool = False
    """Whether a spec or Service created the floating IP: it is kept if it serves another port when it is to go."""

    @property
    def name(self) -> str:
        return self.label

    @property
    def key(self) -> Key:
        return Key(self.thing, self.label)

    def desired(self) -> Values:
        return {}

    def needs(self) -> Iterable[Key]:
        return [Key(self.kind, thing) for thing in HOLDS.get(self.thing, ())]

    def provides(self) -> Iterable[Key]:
        return (self.key, Key(self.kind, self.thing))

    @property
    def listing(self) -> str:
        """The kind in whose list it is found."""
        return {"floating_ip_attachment": "floating_ip", "tag": "network"}.get(self.thing, self.thing)

    # --- reading --------------------------------------------------------------------------

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        infra_id = wanted[0].infra_id
        things = sorted({each.listing for each in wanted})
        with ThreadPoolExecutor(len(things)) as pool:
            lists = dict(zip(things, pool.map(lambda thing: listed(run, thing, infra_id), things), strict=True))
        by_id = {(thing, raw["id"]): raw for thing, raws in lists.items() for raw in raws}
        found = ((each, by_id.get((each.listing, each.id))) for each in wanted)
        return {each.key: each.observe(raw) for each, raw in found if raw is not None and each._is_there(raw)}

    def observe(self, raw: Raw) -> Observed:
        return Observed(id=self.id, ours=True, record=Record.read(raw))

    def _is_there(self, raw: Raw) -> bool:
        if self.thing == "floating_ip_attachment":
            return bool(raw["port_id"] == self.detail)
        if self.released:
            return raw["port_id"] in (None, self.detail)
        return self.thing != "tag" or self.detail in raw["tags"]

    # --- what prevents its deletion --------------------------------------------------------

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        find = _HOLDERS.get(self.thing)
        record = observed.record_as(Record)
        for what in find(run, record, going, self.infra_id) if find else ():
            yield Mistake.about(self.key, f"is not used by {self.infra_id} alone: {what}", "move or delete that first")
        if record.protected:
            fix = shlex.join(["openstack", "image", "set", "--unprotected", self.id])
            yield Mistake.about(self.key, "is protected", fix)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        record = observed.record_as(Record)
        if self.thing == "router":
            ports = _interfaces_of(run, record, self.infra_id)
            record = replace(record, interfaces=tuple(sorted(port.id for port in ports)))
        if self.thing == "floating_ip_attachment":
            services.detach(run.admin, record, OwnershipTag(f"{self.infra_id}{ATTACHED}"))
        elif self.thing == "tag":
            services.untag(run.admin, "networks", record, self.detail)
        else:
            services.remove(run.admin, self.thing, record)


@query
def listed(run: CloudRun, thing: str, infra_id: str) -> list[Values]:
    """Return all resources of a kind in the project."""
    return services.listed(run.admin, thing, infra_id)


def _ports(run: CloudRun, infra_id: str) -> list[PortRecord]:
    return list(map(PortRecord.read, listed(run, "port", infra_id)))


def _on_network(run: CloudRun, network: Record, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the ports and subnets on a network that stay; the network's owner sees them all."""
    for port in queries.ports_on(run, network.id):
        if not _goes(port, going):
            yield _described(run, port, infra_id)
    for subnet_id in sorted(network.subnets - going):
        yield f"subnet {subnet_id} is on the network"


def _goes(port: PortRecord, going: frozenset[str]) -> bool:
    device = port.device_id.removeprefix("lb-")
    return port.id in going or device in going or port.device_owner in SERVED_BY_NEUTRON


def _described(run: CloudRun, port: PortRecord, infra_id: str) -> str:
    """Return the user of a port, as far as this project sees it."""
    named = " ".join(filter(None, (port.name, port.id)))
    if port.device_owner.startswith("compute:"):
        servers = {each["id"]: each["name"] for each in listed(run, "server", infra_id)}
        server = servers.get(port.device_id, f"of project {port.project_id}")
        return f"server {server} {port.device_id} has port {named}"
    owner = f"{port.device_owner} {port.device_id}".strip()
    return f"port {named} exists" + (f" ({owner})" if owner else "")


def _of_port(run: CloudRun, port: Record, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the server that stays without this port: user-provisioned machines lack the metadata of the installer."""
    device = next((raw["device_id"] for raw in listed(run, "port", infra_id) if raw["id"] == port.id), "")
    for server in listed(run, "server", infra_id):
        if server["id"] == device and device not in going:
            yield f"server {server['name']} {device} has the port"


def _interfaces(run: CloudRun, router: Record, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the subnets of a router's interfaces that stay."""
    for port in _interfaces_of(run, router, infra_id):
        for subnet_id in sorted({each.subnet_id for each in port.fixed_ips} - going):
            yield f"the router has an interface in subnet {subnet_id}"


def _interfaces_of(run: CloudRun, router: Record, infra_id: str) -> list[PortRecord]:
    ports = _ports(run, infra_id)
    return [port for port in ports if port.device_id == router.id and port.device_owner in INTERFACES]


def _in_group(run: CloudRun, group: Record, going: frozenset[str], infra_id: str) -> Iterator[str]:
    for port in _ports(run, infra_id):
        if group.id in port.security_groups and not _goes(port, going):
            yield _described(run, port, infra_id)


def _of_volume(run: CloudRun, volume: Record, going: frozenset[str], infra_id: str) -> Iterator[str]:
    for server_id in volume.servers:
        if server_id not in going:
            yield f"server {server_id} has the volume attached"
    for snapshot in listed(run, "volume_snapshot", infra_id):
        if snapshot["volume_id"] == volume.id and snapshot["id"] not in going:
            yield f"snapshot {snapshot['name'] or ''} {snapshot['id']} was created from the volume"


def _of_load_balancer(run: CloudRun, balancer: Record, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield Services of other clusters that share a load balancer, and members that are servers that stay."""
    named = cluster_of("load_balancer", {"name": balancer.name, "description": balancer.description})
    for tag in balancer.tags:
        if cluster_of_tag(tag) not in (None, infra_id, named):
            yield f"{tag} shares it"
    ports = [each for each in _ports(run, infra_id) if each.device_id and not _goes(each, going)]
    for member in services.members(run.admin, balancer.id):
        for port in ports:
            if any(_is_at(member, each) for each in port.fixed_ips):
                yield f"it balances to {member['address']}: {_described(run, port, infra_id)}"


def _is_at(member: Raw, fixed_ip: FixedIP) -> bool:
    """Whether a member is this address; without a subnet of its own it may be in any."""
    return member["address"] == fixed_ip.ip_address and member.get("subnet_id") in (None, fixed_ip.subnet_id)


_HOLDERS: dict[str, Callable[[CloudRun, Record, frozenset[str], str], Iterator[str]]] = {
    "network": _on_network,
    "port": _of_port,
    "router": _interfaces,
    "security_group": _in_group,
    "volume": _of_volume,
    "load_balancer": _of_load_balancer,
}
"""By kind, what yields the users of a resource that stay."""
