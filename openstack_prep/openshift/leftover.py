"""Resources that a cluster left: found by its infraID or name, never declared, only deleted.

Source: OpenShift installer docs/source, "What gets created, names and tags" and what its ``destroy`` does;
cloud-provider-openstack 1.36.0, pkg/openstack/loadbalancer.go: Services of several clusters may share a load balancer.

Sources: Compute, Networking, Image, Block Storage, Object Store and Load Balancer API references.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar, Self
from urllib.parse import quote

import tenacity

from openstack_prep.base.errors import (
    CloudError,
    Mistake,
    NotAllowed,
    NotFound,
    ResourceFailed,
    WaitTimeout,
    is_transient,
)
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import ATTACHED, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.core.run import query
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cloud_provider_names import cluster_of, cluster_of_tag
from openstack_prep.resources.lists.neutron_records import FixedIP, PortRecord
from openstack_prep.resources.lists.queries import list_images
from openstack_prep.resources.network.neutron import changed
from openstack_prep.resources.network.uses import INTERFACES, remove_interface

# --- service ----------------------------------------------------------------------------------


GONE_SECONDS = 300.0
"""Seconds that the deletion of a server, volume or load balancer may take."""
PAUSE = 0.5
"""Seconds between two requests for the status, growing to four times that."""
OBJECTS = 8
"""Objects of a container deleted in parallel."""
META = "x-container-meta-"

NETWORK = {
    "floating_ip": "floatingips",
    "trunk": "trunks",
    "port": "ports",
    "router": "routers",
    "subnet": "subnets",
    "network": "networks",
    "security_group": "security-groups",
}
VOLUME = {"volume_snapshot": "snapshots", "volume": "volumes"}


@dataclass(frozen=True, kw_only=True)
class DeletableResource:
    """A resource of any kind, as far as its deletion needs it."""

    id: str
    name: str
    description: str = ""
    revision_number: int = 0
    protected: bool = False
    subnets: frozenset[str] = frozenset()
    """IDs of the subnets on a network."""
    has_routes: bool = False
    interfaces: tuple[str, ...] = ()
    """IDs of the ports by which a router is in subnets, as they were judged."""
    servers: tuple[str, ...] = ()
    """IDs of the servers that a volume is attached to."""
    tags: tuple[str, ...] = ()

    @classmethod
    def read(cls, raw: Raw) -> DeletableResource:
        return cls(
            id=raw["id"],
            name=raw.get("name") or "",
            description=raw.get("description") or "",
            revision_number=raw.get("revision_number", 0),
            protected=bool(raw.get("protected")),
            subnets=frozenset(raw.get("subnets") or ()),
            has_routes=bool(raw.get("routes")),
            servers=tuple(each["server_id"] for each in raw.get("attachments") or ()),
            tags=tuple(raw.get("tags") or ()),
        )


# --- reading ------------------------------------------------------------------------------


def list_all(cloud: Cloud, thing: str, infra_id: str) -> list[Values]:
    """Return all resources of a kind in the connection's project; none if the cloud lacks the service.

    Only containers whose names begin with the infraID are read, because each costs a request.  Raises CloudError.
    """
    mine = cloud.project_id
    if thing in NETWORK:
        return _of_network(cloud, NETWORK[thing], mine)
    if thing == "server":
        return cloud.compute.list("/servers/detail", "servers")
    if thing == "server_group":
        return cloud.compute.list("/os-server-groups", "server_groups")
    if thing == "image":
        return list_images(cloud, owner=mine)
    if thing in VOLUME:
        plural = VOLUME[thing]
        return cloud.volume.list(f"/{plural}/detail", plural) if cloud.has("block-storage") else []
    if thing == "load_balancer":
        path = "/lbaas/loadbalancers"
        return cloud.load_balancer.list(path, "loadbalancers", project_id=mine) if cloud.has("load-balancer") else []
    assert thing == "container", thing
    return _containers(cloud, infra_id) if cloud.has("object-store") else []


def members(cloud: Cloud, load_balancer: str) -> list[Values]:
    """Return the members of all pools of a load balancer; raises CloudError."""
    pools = cloud.load_balancer.list("/lbaas/pools", "pools", loadbalancer_id=load_balancer)
    found = (cloud.load_balancer.list(f"/lbaas/pools/{each['id']}/members", "members") for each in pools)
    return [member for of_pool in found for member in of_pool]


def _of_network(cloud: Cloud, collection: str, project_id: str) -> list[Values]:
    try:
        return cloud.network.list(f"/{collection}", collection.replace("-", "_"), project_id=project_id)
    except NotFound:
        if collection != "trunks":
            raise
        return []  # this Neutron lacks the extension


def _containers(cloud: Cloud, infra_id: str) -> list[Values]:
    """Return containers with their metadata by lowercase key."""
    swift = cloud.object_store
    found = swift.ask_list("", params={"format": "json", "prefix": infra_id})

    def described(name: str) -> Values | None:
        try:
            headers = swift.request("HEAD", f"/{quote(name, safe='')}", log=False).headers  # may contain Temp-URL keys
        except NotFound:  # deleted meanwhile; or Swift still lists it
            return None
        metadata = {key.lower().removeprefix(META): value for key, value in headers.items()}
        return {"id": name, "name": name, "metadata": metadata}

    with ThreadPoolExecutor(OBJECTS) as pool:
        return [each for each in pool.map(described, (each["name"] for each in found)) if each is not None]


# --- deleting -----------------------------------------------------------------------------


def remove(cloud: Cloud, thing: str, left: DeletableResource) -> None:
    """Delete a resource, and return when it is gone; a missing one counts as deleted."""
    special = _REMOVALS.get(thing)
    if special:
        special(cloud, left)
    elif thing in NETWORK:
        # a trunk's subports and Nova change what they belong to while the cluster is deleted
        _of_neutron(cloud, f"/{NETWORK[thing]}/{left.id}", {} if thing in ("trunk", "port") else _unchanged(left))
    elif thing == "image":
        cloud.image.delete(f"/images/{left.id}")
    else:
        cloud.compute.delete(f"/os-server-groups/{left.id}")


def _unchanged(left: DeletableResource) -> Mapping[str, str]:
    """Return the condition that it was not changed since it was read; after a 412 the executor reads it again."""
    return {"If-Match": f"revision_number={left.revision_number}"}


def _of_neutron(cloud: Cloud, path: str, condition: Mapping[str, str] | None = None) -> None:
    """Delete; Neutron also answers 403 while another request deletes the resource."""
    try:
        cloud.network.delete(path, headers=condition or {})
    except NotAllowed as error:
        raise CloudError(str(error), retryable=True, status=error.status) from error


def _server(cloud: Cloud, left: DeletableResource) -> None:
    path = f"/servers/{left.id}"
    cloud.compute.delete(path)
    _until_gone(f"server {left.name}", lambda: str(cloud.compute.get(path)["server"]["status"]))


def _volume(cloud: Cloud, left: DeletableResource, collection: str = "volumes") -> None:
    path, member = f"/{collection}/{left.id}", collection.removesuffix("s")
    what = f"{member} {left.name or left.id}"

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


def _load_balancer(cloud: Cloud, left: DeletableResource) -> None:
    path = f"/lbaas/loadbalancers/{left.id}"
    with contextlib.suppress(NotFound):
        cloud.load_balancer.request("DELETE", path, params={"cascade": "true"})
    what = f"load balancer {left.name or left.id}"
    _until_gone(what, lambda: str(cloud.load_balancer.get(path)["loadbalancer"]["provisioning_status"]))


def _router(cloud: Cloud, left: DeletableResource) -> None:
    """Delete routes first, then the interfaces that were judged: each prevents the next deletion.

    Neutron would compare the revision of a router with a gateway twice, see ``Router.delete``, so it is read again
    right before instead.
    """
    neutron, path = cloud.network, f"/routers/{left.id}"
    with contextlib.suppress(NotFound):
        if left.has_routes:
            neutron.put(path, {"router": {"routes": []}}, headers=_unchanged(left))
        for port_id in left.interfaces:
            remove_interface(cloud, left.id, {"port_id": port_id})
        now = neutron.get(path)["router"]
        if now.get("routes"):
            raise changed(f"router {left.id}")
        _of_neutron(cloud, path, {} if now.get("external_gateway_info") else _unchanged(DeletableResource.read(now)))


def detach(cloud: Cloud, left: DeletableResource, note: OwnershipTag) -> None:
    """Detach a floating IP from its port, and remove our note of the attachment; the user's text is kept."""
    text = left.description
    body = {"port_id": None, "description": note.strip(text) if note.owns(text) else text}
    with contextlib.suppress(NotFound):
        cloud.network.put(f"/floatingips/{left.id}", {"floatingip": body}, headers=_unchanged(left))


def untag(cloud: Cloud, collection: str, left: DeletableResource, tag: str) -> None:
    cloud.network.delete(f"/{collection}/{left.id}/tags/{quote(tag, safe='')}")


def _container(cloud: Cloud, left: DeletableResource) -> None:
    """Delete the objects first, page by page; if a running registry adds more, Swift answers 409."""
    swift, path = cloud.object_store, f"/{quote(left.name, safe='')}"

    def remove_object(name: str) -> None:
        # as one segment: requests would otherwise turn "../b/c" into the object c of the container b
        swift.delete(f"{path}/{quote(name, safe='').replace('.', '%2E')}")

    marker = ""
    with contextlib.suppress(NotFound), ThreadPoolExecutor(OBJECTS) as pool:
        while page := swift.ask_list(path, params={"format": "json", "marker": marker}):
            list(pool.map(remove_object, (each["name"] for each in page)))
            marker = page[-1]["name"]
    swift.delete(path)


_REMOVALS: dict[str, Callable[[Cloud, DeletableResource], None]] = {
    "server": _server,
    "volume": _volume,
    "volume_snapshot": lambda cloud, left: _volume(cloud, left, "snapshots"),
    "load_balancer": _load_balancer,
    "router": _router,
    "container": _container,
}


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
        return Observed(id=self.id, ours=True, record=DeletableResource.read(raw))

    def _is_there(self, raw: Raw) -> bool:
        if self.thing == "floating_ip_attachment":
            return bool(raw["port_id"] == self.detail)
        if self.released:
            return raw["port_id"] in (None, self.detail)
        return self.thing != "tag" or self.detail in raw["tags"]

    # --- what prevents its deletion --------------------------------------------------------

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        find = _HOLDERS.get(self.thing)
        record = observed.record_as(DeletableResource)
        for what in find(run, record, going, self.infra_id) if find else ():
            yield Mistake.about(self.key, f"is not used by {self.infra_id} alone: {what}", "move or delete that first")
        if record.protected:
            fix = shlex.join(["openstack", "image", "set", "--unprotected", self.id])
            yield Mistake.about(self.key, "is protected", fix)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        record = observed.record_as(DeletableResource)
        if self.thing == "router":
            ports = _interfaces_of(run, record, self.infra_id)
            record = replace(record, interfaces=tuple(sorted(port.id for port in ports)))
        if self.thing == "floating_ip_attachment":
            detach(run.admin, record, OwnershipTag(f"{self.infra_id}{ATTACHED}"))
        elif self.thing == "tag":
            untag(run.admin, "networks", record, self.detail)
        else:
            remove(run.admin, self.thing, record)


@query
def listed(run: CloudRun, thing: str, infra_id: str) -> list[Values]:
    """Return all resources of a kind in the project."""
    return list_all(run.admin, thing, infra_id)


def _ports(run: CloudRun, infra_id: str) -> list[PortRecord]:
    return list(map(PortRecord.read, listed(run, "port", infra_id)))


def _on_network(run: CloudRun, network: DeletableResource, going: frozenset[str], infra_id: str) -> Iterator[str]:
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


def _of_port(run: CloudRun, port: DeletableResource, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the server that stays without this port: user-provisioned machines lack the metadata of the installer."""
    device = next((raw["device_id"] for raw in listed(run, "port", infra_id) if raw["id"] == port.id), "")
    for server in listed(run, "server", infra_id):
        if server["id"] == device and device not in going:
            yield f"server {server['name']} {device} has the port"


def _interfaces(run: CloudRun, router: DeletableResource, going: frozenset[str], infra_id: str) -> Iterator[str]:
    """Yield the subnets of a router's interfaces that stay."""
    for port in _interfaces_of(run, router, infra_id):
        for subnet_id in sorted({each.subnet_id for each in port.fixed_ips} - going):
            yield f"the router has an interface in subnet {subnet_id}"


def _interfaces_of(run: CloudRun, router: DeletableResource, infra_id: str) -> list[PortRecord]:
    ports = _ports(run, infra_id)
    return [port for port in ports if port.device_id == router.id and port.device_owner in INTERFACES]


def _in_group(run: CloudRun, group: DeletableResource, going: frozenset[str], infra_id: str) -> Iterator[str]:
    for port in _ports(run, infra_id):
        if group.id in port.security_groups and not _goes(port, going):
            yield _described(run, port, infra_id)


def _of_volume(run: CloudRun, volume: DeletableResource, going: frozenset[str], infra_id: str) -> Iterator[str]:
    for server_id in volume.servers:
        if server_id not in going:
            yield f"server {server_id} has the volume attached"
    for snapshot in listed(run, "volume_snapshot", infra_id):
        if snapshot["volume_id"] == volume.id and snapshot["id"] not in going:
            yield f"snapshot {snapshot['name'] or ''} {snapshot['id']} was created from the volume"


def _of_load_balancer(
    run: CloudRun, balancer: DeletableResource, going: frozenset[str], infra_id: str
) -> Iterator[str]:
    """Yield Services of other clusters that share a load balancer, and members that are servers that stay."""
    named = cluster_of("load_balancer", {"name": balancer.name, "description": balancer.description})
    for tag in balancer.tags:
        if cluster_of_tag(tag) not in (None, infra_id, named):
            yield f"{tag} shares it"
    ports = [each for each in _ports(run, infra_id) if each.device_id and not _goes(each, going)]
    for member in members(run.admin, balancer.id):
        for port in ports:
            if any(_is_at(member, each) for each in port.fixed_ips):
                yield f"it balances to {member['address']}: {_described(run, port, infra_id)}"


def _is_at(member: Raw, fixed_ip: FixedIP) -> bool:
    """Whether a member is this address; without a subnet of its own it may be in any."""
    return member["address"] == fixed_ip.ip_address and member.get("subnet_id") in (None, fixed_ip.subnet_id)


_HOLDERS: dict[str, Callable[[CloudRun, DeletableResource, frozenset[str], str], Iterator[str]]] = {
    "network": _on_network,
    "port": _of_port,
    "router": _interfaces,
    "security_group": _in_group,
    "volume": _of_volume,
    "load_balancer": _of_load_balancer,
}
"""By kind, what yields the users of a resource that stay."""
