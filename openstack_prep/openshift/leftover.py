"""Resources that a cluster left: found by its infraID or name, never declared, only deleted.

A name never decides against a tag of another cluster: ``dev-x7k2p`` and ``dev-x7k2p-web-b3c4d`` may be in one project.

Source: OpenShift installer docs/source, "What gets created, names and tags" and what its ``destroy`` looks for (4.21,
pkg/destroy/openstack/openstack.go); cloud-provider-openstack, to which OpenShift gives the infraID as the cluster's
name, 1.36.0, pkg/openstack/loadbalancer.go: Services of several clusters may share a load balancer.

Sources: Compute, Networking, Image, Block Storage, Object Store and Load Balancer API references.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar, cast
from urllib.parse import quote

import tenacity

from openstack_prep import extensions
from openstack_prep.base import shell
from openstack_prep.base.errors import (
    CloudError,
    Mistake,
    NotAllowed,
    NotFound,
    ResourceFailed,
    WaitTimeout,
    is_transient,
)
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.clusters import installer_names as naming
from openstack_prep.clusters.cloud_provider_names import CSI, cluster_of, cluster_of_tag, described_cluster
from openstack_prep.clusters.installer_names import TAG
from openstack_prep.core.deletion_loss import Deletion, Finding, LossEffect
from openstack_prep.core.model import ATTACHED, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.core.run import query
from openstack_prep.resources.cascades import row as cascades
from openstack_prep.resources.cascades.network import ON_PORT
from openstack_prep.resources.image import glance
from openstack_prep.resources.image.glance import ImageRecord
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cluster_naming import foreign_tags
from openstack_prep.resources.lists.load_balancers import (
    LoadBalancerRecord,
    MemberRecord,
    list_load_balancers,
    list_members,
)
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FixedIP,
    FloatingIPRecord,
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
    TrunkRecord,
    bare_device,
    list_records,
)
from openstack_prep.resources.lists.nova_records import (
    ServerGroupRecord,
    ServerRecord,
    list_server_groups,
    list_servers,
)
from openstack_prep.resources.lists.volumes import SnapshotRecord, VolumeRecord, list_snapshots, list_volumes
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.neutron import changed, unchanged
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.network.uses import remove_interface

# --- service ----------------------------------------------------------------------------------


GONE_SECONDS = 300.0
"""Seconds that the deletion of a server, volume or load balancer may take."""
PAUSE = 0.5
"""Seconds between two requests for the status, growing to four times that."""
OBJECTS = 8
"""Objects of a container deleted in parallel."""
META = "x-container-meta-"

T = TypeVar("T")
NETWORK: dict[str, type[NeutronRecord]] = {
    "floating_ip": FloatingIPRecord,
    "trunk": TrunkRecord,
    "port": PortRecord,
    "router": RouterRecord,
    "subnet": SubnetRecord,
    "network": NetworkRecord,
    "security_group": GroupRecord,
}
DECLARABLE: dict[str, type[Network] | type[Subnet] | type[SecurityGroup]] = {
    "network": Network,
    "subnet": Subnet,
    "security_group": SecurityGroup,
}
"""Kinds of a spec that delete a cluster's resources just as they delete their own.

The others would do more, or less: a router loses only the interfaces in subnets of its spec; a port is kept as soon as
Nova changes it, as it does while the cluster's servers go; and a floating IP asks for port forwardings, which that of
a bootstrap machine never has.
"""


# --- owner ------------------------------------------------------------------------------------


MACHINE = r"(master|worker|bootstrap)(-.+)?"
NAMES = {
    "network": ("{id}-openshift", naming.GUESTS + "{id}"),
    "subnet": ("{id}-nodes", naming.GUESTS + "{id}"),
    "router": ("{id}-external-router", naming.GUESTS + "{id}"),
    "port": ("{id}-(api-port|ingress-port)", "{id}-" + MACHINE),
    "trunk": ("{id}-" + MACHINE,),
    "security_group": ("{id}-(master|worker)",),
    "server_group": ("{id}-master", "{id}-worker(-.+)?"),
    "image": ("{id}" + naming.IMAGE,),
    "volume": ("{id}-dynamic-pvc-.+", "{id}-" + MACHINE),
    "volume_snapshot": (),
}
"""Full names that the installer gives: patterns around the infraID, for resources without a tag."""


@dataclass(frozen=True, kw_only=True)
class ContainerRecord:
    """A container of Swift, whose name is its id."""

    name: str
    metadata: Mapping[str, str]
    """By key in lower case."""

    @property
    def id(self) -> str:
        return self.name


TaggedRecord = NeutronRecord | ImageRecord
ClusterRecord = (
    TaggedRecord
    | ServerRecord
    | ServerGroupRecord
    | VolumeRecord
    | SnapshotRecord
    | LoadBalancerRecord
    | ContainerRecord
)


@dataclass(frozen=True)
class Owned:
    """Tells what belongs to a cluster, given the other clusters of the project."""

    infra_id: str
    others: frozenset[str] = frozenset()
    """InfraIDs of clusters whose names begin with this one's: dev-x7k2p-web-b3c4d."""

    def owns(self, thing: str, record: ClusterRecord) -> bool:
        """Whether a resource of a kind belongs to the cluster."""
        decide = _BY.get(thing)
        return decide(self, record) if decide else self._by_tag(thing, cast(TaggedRecord, record))

    def _by_tag(self, thing: str, record: TaggedRecord) -> bool:
        tag = naming.tag(self.infra_id)
        if tag in record.tags:
            return True
        return not foreign_tags(record.tags, tag) and self._named(thing, record.name)

    def _named(self, thing: str, name: str) -> bool:
        if any(name.startswith(f"{other}-") for other in self.others):
            return False
        patterns = (each.format(id=re.escape(self.infra_id)) for each in NAMES[thing])
        return any(re.fullmatch(pattern, name) for pattern in patterns)

    def _by_metadata(self, thing: str, record: VolumeRecord | SnapshotRecord) -> bool:
        if isinstance(record, VolumeRecord) and record.is_restored:
            return False
        infra_ids = [record.metadata[key] for key in (TAG, CSI) if key in record.metadata]
        return self.infra_id in infra_ids if infra_ids else self._named(thing, record.name)

    def _port(self, port: PortRecord) -> bool:
        """Ports of Neutron itself, such as a router's, are deleted with their device."""
        return not port.device_owner.startswith("network:") and self._by_tag("port", port)

    def _server(self, server: ServerRecord) -> bool:
        return server.metadata.get(TAG) == self.infra_id

    def _floating_ip(self, floating_ip: FloatingIPRecord) -> bool:
        """That of the bootstrap machine; the user's floating IPs have neither its tag nor its description."""
        tagged = naming.tag(self.infra_id) in floating_ip.tags
        return tagged or floating_ip.description == f"{self.infra_id}-bootstrap-fip"

    def _load_balancer(self, balancer: LoadBalancerRecord) -> bool:
        """Load balancers of Services name their cluster; those of Kuryr have its tag, or that as their description.

        A description that only mentions the infraID is one of somebody else, such as of a load balancer in front of it.
        Source: OpenShift installer 4.21, pkg/destroy/openstack/openstack.go, deleteLoadBalancers.
        """
        tag, cluster = naming.tag(self.infra_id), cluster_of(balancer) or described_cluster(balancer)
        return cluster == self.infra_id if cluster else tag in (*balancer.tags, balancer.description)

    def _security_group(self, group: GroupRecord) -> bool:
        """Groups of Services have no tag, and the installer's own destroy leaves them."""
        return cluster_of(group) == self.infra_id or self._by_tag("security_group", group)

    def _container(self, container: ContainerRecord) -> bool:
        """Registry containers."""
        return container.metadata.get(TAG.lower()) == self.infra_id


_BY: dict[str, Callable[[Owned, Any], bool]] = {
    "server": Owned._server,
    "port": Owned._port,
    "floating_ip": Owned._floating_ip,
    "load_balancer": Owned._load_balancer,
    "security_group": Owned._security_group,
    "container": Owned._container,
    "server_group": lambda owned, group: owned._named("server_group", group.name),
    "volume": lambda owned, volume: owned._by_metadata("volume", volume),
    "volume_snapshot": lambda owned, snapshot: owned._by_metadata("volume_snapshot", snapshot),
}


def infra_ids(records: Iterable[ClusterRecord]) -> Iterator[str]:
    """Yield the infraIDs in tags and metadata."""
    for record in records:
        if isinstance(record, NeutronRecord | ImageRecord | LoadBalancerRecord):
            yield from naming.infra_ids(record.tags)
        elif not isinstance(record, ServerGroupRecord):
            yield from (record.metadata[key] for key in (TAG, CSI) if record.metadata.get(key))


# --- reading ------------------------------------------------------------------------------


def list_all(run: CloudRun, thing: str, infra_id: str) -> Sequence[ClusterRecord]:
    """Return all resources of a kind in the connection's project; none if the cloud lacks the service.

    Only containers whose names begin with the infraID are read, because each costs a request.  Raises CloudError.
    """
    cloud = run.admin
    if thing in NETWORK:
        return _of_network(cloud, NETWORK[thing])
    if thing == "server":
        return list_servers(cloud)
    if thing == "server_group":
        return list_server_groups(cloud)
    if thing == "image":
        return glance.owned(run, cloud.project_id)
    if thing == "volume":
        return list_volumes(cloud) if cloud.has("block-storage") else []
    if thing == "volume_snapshot":
        return list_snapshots(cloud) if cloud.has("block-storage") else []
    if thing == "load_balancer":
        return list_load_balancers(cloud, cloud.project_id) if cloud.has("load-balancer") else []
    assert thing == "container", thing
    return _containers(cloud, infra_id) if cloud.has("object-store") else []


def _of_network(cloud: Cloud, kind: type[NeutronRecord]) -> Sequence[NeutronRecord]:
    try:
        return list_records(cloud.network, kind, project_id=cloud.project_id)
    except NotFound:
        if kind is not TrunkRecord:
            raise
        return []  # this Neutron lacks the extension


def _containers(cloud: Cloud, infra_id: str) -> list[ContainerRecord]:
    """Return containers with their metadata by lowercase key."""
    swift = cloud.object_store
    found = swift.ask_list("", params={"format": "json", "prefix": infra_id})

    def described(name: str) -> ContainerRecord | None:
        try:
            headers = swift.request("HEAD", f"/{quote(name, safe='')}").headers
        except NotFound:  # deleted meanwhile; or Swift still lists it
            return None
        return ContainerRecord(
            name=name, metadata={key.lower().removeprefix(META): value for key, value in headers.items()}
        )

    with ThreadPoolExecutor(OBJECTS) as pool:
        return [
            container for container in pool.map(described, (each["name"] for each in found)) if container is not None
        ]


# --- deleting -----------------------------------------------------------------------------


def remove(run: CloudRun, thing: str, record: ClusterRecord) -> None:
    """Delete a resource, and return when it is gone; a missing one counts as deleted."""
    cloud = run.admin
    match record:
        case ServerRecord():
            _server(cloud, record)
        case VolumeRecord() | SnapshotRecord():
            _volume(cloud, record)
        case LoadBalancerRecord():
            _load_balancer(cloud, record)
        case ContainerRecord():
            _container(cloud, record)
        case ImageRecord():
            glance.delete(run, record)
        case ServerGroupRecord():
            cloud.compute.delete(f"/os-server-groups/{record.id}")
        case _:
            _of_neutron(run, thing, record)


def _of_neutron(run: CloudRun, thing: str, record: NeutronRecord) -> None:
    try:
        if thing in DECLARABLE:
            DECLARABLE[thing](name=record.name).delete(run, Observed(id=record.id, ours=True, record=record))
        else:
            # a trunk's subports and Nova change what they belong to while the cluster is deleted
            headers = unchanged(record) if isinstance(record, FloatingIPRecord) else {}
            run.admin.network.delete(f"/{record.collection}/{record.id}", headers=headers)
    except NotAllowed as error:
        raise being_deleted(error) from error


def being_deleted(error: NotAllowed) -> CloudError:
    """Return the error of a resource that another request deletes, for which Neutron also answers 403."""
    return CloudError(str(error), retryable=True, status=error.status)


def _server(cloud: Cloud, server: ServerRecord) -> None:
    path = f"/servers/{server.id}"
    cloud.compute.delete(path)
    _until_gone(f"server {server.name}", lambda: str(cloud.compute.get(path)["server"]["status"]))


def _volume(cloud: Cloud, record: VolumeRecord | SnapshotRecord) -> None:
    member = "volume" if isinstance(record, VolumeRecord) else "snapshot"
    path, what = f"/{member}s/{record.id}", f"{member} {record.name or record.id}"

    def status() -> str:
        return str(cloud.volume.get(path)[member]["status"])

    with contextlib.suppress(NotFound):
        _until(
            f"{what}, attached to a server",
            status,
            lambda now: now not in ("in-use", "detaching", "reserved"),
        )
        cloud.volume.delete(path)
        _until_gone(what, status)


def _load_balancer(cloud: Cloud, balancer: LoadBalancerRecord) -> None:
    path = f"/lbaas/loadbalancers/{balancer.id}"
    with contextlib.suppress(NotFound):
        cloud.load_balancer.request("DELETE", path, params={"cascade": "true"})
    what = f"load balancer {balancer.name or balancer.id}"
    _until_gone(what, lambda: str(cloud.load_balancer.get(path)["loadbalancer"]["provisioning_status"]))


def remove_router(run: CloudRun, router: RouterRecord, interfaces: Iterable[str]) -> None:
    """Delete routes first, then the interfaces with these ports, which were judged: each prevents the next deletion.

    Neutron would compare the revision of a router with a gateway twice, see ``Router.delete``, so it is read again
    right before instead.
    """
    neutron, path = run.admin.network, f"/routers/{router.id}"
    with contextlib.suppress(NotFound):
        if router.routes:
            neutron.put(path, {"router": {"routes": []}}, headers=unchanged(router))
        for port_id in interfaces:
            remove_interface(run.admin, router.id, {"port_id": port_id})
        now = RouterRecord.read(neutron.get(path)["router"])
        if now.routes:
            raise changed(f"router {router.id}")
        try:
            neutron.delete(path, headers={} if now.gateway_network_id else unchanged(now))
        except NotAllowed as error:
            raise being_deleted(error) from error


def detach(cloud: Cloud, floating_ip: FloatingIPRecord, note: OwnershipTag) -> None:
    """Detach a floating IP from its port, and remove our note of the attachment; the user's text is kept."""
    text = floating_ip.description
    body = {"port_id": None, "description": note.strip(text) if note.owns(text) else text}
    with contextlib.suppress(NotFound):
        cloud.network.put(f"/floatingips/{floating_ip.id}", {"floatingip": body}, headers=unchanged(floating_ip))


def untag(cloud: Cloud, record: NeutronRecord, tag: str) -> None:
    cloud.network.delete(f"/{record.collection}/{record.id}/tags/{quote(tag, safe='')}")


def _container(cloud: Cloud, container: ContainerRecord) -> None:
    """Delete the objects first, page by page; if a running registry adds more, Swift answers 409."""
    swift, path = cloud.object_store, f"/{quote(container.name, safe='')}"

    def remove_object(name: str) -> None:
        # as one segment: requests would otherwise turn "../b/c" into the object c of the container b
        swift.delete(f"{path}/{quote(name, safe='').replace('.', '%2E')}")

    marker = ""
    with contextlib.suppress(NotFound), ThreadPoolExecutor(OBJECTS) as pool:
        while page := swift.ask_list(path, params={"format": "json", "marker": marker}):
            list(pool.map(remove_object, (each["name"] for each in page)))
            marker = page[-1]["name"]
    swift.delete(path)


# --- waiting ------------------------------------------------------------------------------


def _until_gone(what: str, status: Callable[[], str]) -> None:
    with contextlib.suppress(NotFound):
        _until(what, status, lambda now: now.upper() in ("DELETED", "SOFT_DELETED"))


def _until(what: str, status: Callable[[], str], enough: Callable[[str], bool]) -> None:
    """Wait for a status; raises NotFound if the resource is gone, WaitTimeout, ResourceFailed."""
    last = ""

    def look() -> bool:
        nonlocal last
        last = status()
        if last.startswith("error_deleting"):
            raise ResourceFailed(f"{what}: {last}; an administrator must reset it")
        return enough(last)

    tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda done: not done) | tenacity.retry_if_exception(is_transient),
        stop=tenacity.stop_after_delay(GONE_SECONDS),
        wait=tenacity.wait_exponential(PAUSE, max=4 * PAUSE, min=PAUSE),
        retry_error_callback=lambda state: _too_long(what, last),
    )(look)


def _too_long(what: str, last: str) -> None:
    raise WaitTimeout(
        f"{what} still exists after {GONE_SECONDS:.0f} s, in status {last}; examine it, and run this again"
    )


# --- leftover ---------------------------------------------------------------------------------


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

REACHING = frozenset({"image", "network", "port", "security_group", "server", "server_group"})
"""Kinds whose deletion takes something from what is not the cluster's; ``_HOLDERS`` judges who uses routers."""

SERVED_BY_NEUTRON = ("network:dhcp", "network:distributed")
"""Owners of ports that Neutron deletes itself."""


@dataclass(frozen=True, kw_only=True)
class Leftover(Resource[CloudRun], Undeclarable):
    """A resource of a cluster; its key is OpenStack's kind and name."""

    kind: ClassVar[str] = "leftover"

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
    belongs: Callable[[Any], bool] = field(default=lambda record: True, compare=False, repr=False)
    """Whether a record still shows that it is the cluster's: people take the tag or metadata off what they rescue."""

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
        by_id = {(thing, record.id): record for thing, records in lists.items() for record in records}
        found = ((each, by_id.get((each.listing, each.id))) for each in wanted)
        return {
            each.key: each.observe(record) for each, record in found if record is not None and each._is_there(record)
        }

    def observe(self, record: ClusterRecord) -> Observed:
        return Observed(id=self.id, ours=self.belongs(record), record=record)

    def _is_there(self, record: ClusterRecord) -> bool:
        if isinstance(record, FloatingIPRecord):
            if self.thing == "floating_ip_attachment":
                return record.port_id == self.detail
            return not self.released or record.port_id in (None, self.detail)
        return self.thing != "tag" or (isinstance(record, NetworkRecord) and self.detail in record.tags)

    # --- what prevents its deletion --------------------------------------------------------

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        find = _HOLDERS.get(self.thing)
        record = observed.record
        for what in find(run, record, going, self.infra_id) if find else ():
            yield Mistake.about(self.key, f"is not used by {self.infra_id} alone: {what}", "move or delete that first")
        if isinstance(record, ImageRecord) and record.protected:
            fix = shell.join(["openstack", "image", "set", "--unprotected", self.id])
            yield Mistake.about(self.key, "is protected", fix)

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        """Yield what stays and loses something; what others have added to a resource of the cluster goes with it."""
        view = run.for_deletions({}, is_patient=run.is_patient)
        by_thing: dict[str, list[Deletion]] = defaultdict(list)
        for deletion in deletions:
            by_thing[cast(Self, deletion.resource).thing].append(deletion)
        for thing in sorted(by_thing.keys() & REACHING):
            whole = thing in ("port", "server")
            rows = [row for row in extensions.cascades(thing) if row.effect is LossEffect.CUT_OFF or whole]
            yield from cascades.find_losses(view, by_thing[thing], going, rows)
        of_servers = list(_with_servers(view, by_thing["server"], going))
        yield from cascades.find_losses(view, of_servers, going, (*extensions.cascades("port"), ON_PORT))

    def delete(self, run: CloudRun, observed: Observed) -> None:
        if self.thing == "router":
            router = observed.record_as(RouterRecord)
            remove_router(run, router, sorted(port.id for port in _interfaces_of(run, router, self.infra_id)))
        elif self.thing == "floating_ip_attachment":
            detach(run.admin, observed.record_as(FloatingIPRecord), OwnershipTag(f"{self.infra_id}{ATTACHED}"))
        elif self.thing == "tag":
            untag(run.admin, observed.record_as(NetworkRecord), self.detail)
        else:
            remove(run, self.thing, cast(ClusterRecord, observed.record))


def _with_servers(run: CloudRun, servers: Iterable[Deletion], going: frozenset[str]) -> Iterator[Deletion]:
    """Yield the ports that Nova has made for servers, and deletes with them."""
    by_id = {each.id: cast(Leftover, each.resource) for each in servers}
    for infra_id in {each.infra_id for each in by_id.values()}:
        for port in _ports(run, infra_id):
            if port.device_id in by_id and port.id not in going:
                yield Deletion(by_id[port.device_id], Observed(id=port.id, record=port))


@query
def listed(run: CloudRun, thing: str, infra_id: str) -> Sequence[ClusterRecord]:
    """Return all resources of a kind in the project."""
    return list_all(run, thing, infra_id)


def of_kind(kind: type[T], records: Iterable[ClusterRecord]) -> list[T]:
    """Return records with their type: each list has records of one kind."""
    return [record for record in records if isinstance(record, kind)]


def _ports(run: CloudRun, infra_id: str) -> list[PortRecord]:
    return of_kind(PortRecord, listed(run, "port", infra_id))


def _on_network(run: CloudRun, network: NetworkRecord, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the ports and subnets on a network that stay; the network's owner sees them all."""
    for port in queries.ports_on(run, network.id):
        if not _goes(port, going):
            yield _described(run, port, infra_id)
    for subnet_id in sorted(set(network.subnets) - going):
        yield f"subnet {subnet_id} is on the network"


def _goes(port: PortRecord, going: frozenset[str]) -> bool:
    return bool({port.id, bare_device(port.device_id)} & going) or port.device_owner in SERVED_BY_NEUTRON


def _described(run: CloudRun, port: PortRecord, infra_id: str) -> str:
    """Return the user of a port, as far as this project sees it."""
    named = " ".join(filter(None, (port.name, port.id)))
    if port.device_owner.startswith("compute:"):
        servers = {each.id: each.name for each in of_kind(ServerRecord, listed(run, "server", infra_id))}
        server = servers.get(port.device_id, f"of project {port.project_id}")
        return f"server {server} {port.device_id} has port {named}"
    owner = f"{port.device_owner} {port.device_id}".strip()
    return f"port {named} exists" + (f" ({owner})" if owner else "")


def _of_port(run: CloudRun, port: PortRecord, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the server that stays without this port: user-provisioned machines lack the metadata of the installer."""
    for server in of_kind(ServerRecord, listed(run, "server", infra_id)):
        if server.id == port.device_id and server.id not in going:
            yield f"server {server.name} {server.id} has the port"


def _interfaces(run: CloudRun, router: RouterRecord, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the subnets of a router's interfaces that stay."""
    for port in _interfaces_of(run, router, infra_id):
        for subnet_id in sorted(port.subnet_ids - going):
            yield f"the router has an interface in subnet {subnet_id}"


def _interfaces_of(run: CloudRun, router: RouterRecord, infra_id: str) -> list[PortRecord]:
    ports = _ports(run, infra_id)
    return [port for port in ports if port.device_id == router.id and port.device_owner in INTERFACES]


def _in_group(run: CloudRun, group: GroupRecord, going: frozenset[str], infra_id: str) -> Iterator[str]:
    for port in _ports(run, infra_id):
        if group.id in port.security_groups and not _goes(port, going):
            yield _described(run, port, infra_id)


def _of_volume(run: CloudRun, volume: VolumeRecord, going: frozenset[str], infra_id: str) -> Iterator[str]:
    for server_id in volume.servers:
        if server_id not in going:
            yield f"server {server_id} has the volume attached"
    for snapshot in of_kind(SnapshotRecord, listed(run, "volume_snapshot", infra_id)):
        if snapshot.volume_id == volume.id and snapshot.id not in going:
            yield f"snapshot {snapshot.name} {snapshot.id} was created from the volume"


def _of_load_balancer(
    run: CloudRun, balancer: LoadBalancerRecord, going: frozenset[str], infra_id: str
) -> Iterator[str]:
    """Yield Services of other clusters that share a load balancer, and members that are servers that stay."""
    named = cluster_of(balancer)
    for tag in balancer.tags:
        if cluster_of_tag(tag) not in (None, infra_id, named):
            yield f"{tag} shares it"
    ports = [each for each in _ports(run, infra_id) if each.device_id and not _goes(each, going)]
    for member in list_members(run.admin, balancer.id):
        for port in ports:
            if any(_is_at(member, fixed_ip) for fixed_ip in port.fixed_ips):
                yield f"it balances to {member.address}: {_described(run, port, infra_id)}"


def _is_at(member: MemberRecord, fixed_ip: FixedIP) -> bool:
    return member.address == fixed_ip.ip_address and member.subnet_id in (None, fixed_ip.subnet_id)


def _forwarded(run: CloudRun, floating_ip: FloatingIPRecord, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield its port forwardings: Neutron 29.0.0 (services/portforwarding/pf_plugin.py) refuses to delete it."""
    for port_forwarding in floating_ip.port_forwardings:
        yield " ".join(filter(None, ("it has port forwarding", port_forwarding.id, f"({port_forwarding})")))


_HOLDERS: dict[str, Callable[[CloudRun, Any, frozenset[str], str], Iterator[str]]] = {
    "floating_ip": _forwarded,
    "network": _on_network,
    "port": _of_port,
    "router": _interfaces,
    "security_group": _in_group,
    "volume": _of_volume,
    "load_balancer": _of_load_balancer,
}
"""By kind, what yields the users of a resource that stay."""
