"""List and delete each kind of resource that a cluster leaves.

Sources: Compute, Networking, Image, Block Storage, Object Store and Load Balancer API references.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import quote

import tenacity

from openstack_prep.base.errors import CloudError, NotAllowed, NotFound, ResourceFailed, WaitTimeout, is_transient
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.lists.queries import list_images
from openstack_prep.resources.network.neutron import changed
from openstack_prep.resources.network.uses import remove_interface

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
class Record:
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
    def read(cls, raw: Raw) -> Record:
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


def listed(cloud: Cloud, thing: str, infra_id: str) -> list[Values]:
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


def remove(cloud: Cloud, thing: str, left: Record) -> None:
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


def _unchanged(left: Record) -> Mapping[str, str]:
    """Return the condition that it was not changed since it was read; after a 412 the executor reads it again."""
    return {"If-Match": f"revision_number={left.revision_number}"}


def _of_neutron(cloud: Cloud, path: str, condition: Mapping[str, str] | None = None) -> None:
    """Delete; Neutron also answers 403 while another request deletes the resource."""
    try:
        cloud.network.delete(path, headers=condition or {})
    except NotAllowed as error:
        raise CloudError(str(error), retryable=True, status=error.status) from error


def _server(cloud: Cloud, left: Record) -> None:
    path = f"/servers/{left.id}"
    cloud.compute.delete(path)
    _until_gone(f"server {left.name}", lambda: str(cloud.compute.get(path)["server"]["status"]))


def _volume(cloud: Cloud, left: Record, collection: str = "volumes") -> None:
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


def _load_balancer(cloud: Cloud, left: Record) -> None:
    path = f"/lbaas/loadbalancers/{left.id}"
    with contextlib.suppress(NotFound):
        cloud.load_balancer.request("DELETE", path, params={"cascade": "true"})
    what = f"load balancer {left.name or left.id}"
    _until_gone(what, lambda: str(cloud.load_balancer.get(path)["loadbalancer"]["provisioning_status"]))


def _router(cloud: Cloud, left: Record) -> None:
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
        _of_neutron(cloud, path, {} if now.get("external_gateway_info") else _unchanged(Record.read(now)))


def detach(cloud: Cloud, left: Record, note: OwnershipTag) -> None:
    """Detach a floating IP from its port, and remove our note of the attachment; the user's text is kept."""
    text = left.description
    body = {"port_id": None, "description": note.strip(text) if note.owns(text) else text}
    with contextlib.suppress(NotFound):
        cloud.network.put(f"/floatingips/{left.id}", {"floatingip": body}, headers=_unchanged(left))


def untag(cloud: Cloud, collection: str, left: Record, tag: str) -> None:
    cloud.network.delete(f"/{collection}/{left.id}/tags/{quote(tag, safe='')}")


def _container(cloud: Cloud, left: Record) -> None:
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


_REMOVALS: dict[str, Callable[[Cloud, Record], None]] = {
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
