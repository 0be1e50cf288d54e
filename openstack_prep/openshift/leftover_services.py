"""How each kind of thing that a cluster leaves behind is listed, and how it is removed for good.

Sources: Compute, Networking, Image, Block Storage, Object Store and Load Balancer API references.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import quote

import tenacity

from openstack_prep.base.errors import CloudError, NotAllowed, NotFound, ResourceFailed, WaitTimeout, passes
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Mark
from openstack_prep.resources.network.uses import INTERFACES

GONE_SECONDS = 300.0
"""How long a server, volume or load balancer may take to go."""
PAUSE = 0.5
"""Seconds between two looks whether it has gone, growing to four times that."""
OBJECTS = 8
"""Objects of a container removed at a time."""
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
class Remains:
    """One thing of any kind, as far as its removal needs to know it."""

    id: str
    name: str
    description: str = ""
    revision_number: int = 0
    protected: bool = False
    subnets: frozenset[str] = frozenset()
    """Ids of those on a network."""
    has_routes: bool = False
    servers: tuple[str, ...] = ()
    """Ids of those that a volume is attached to."""

    @classmethod
    def read(cls, raw: Raw) -> Remains:
        return cls(
            id=raw["id"],
            name=raw.get("name") or "",
            description=raw.get("description") or "",
            revision_number=raw.get("revision_number", 0),
            protected=bool(raw.get("protected")),
            subnets=frozenset(raw.get("subnets") or ()),
            has_routes=bool(raw.get("routes")),
            servers=tuple(each["server_id"] for each in raw.get("attachments") or ()),
        )


# --- what there is ------------------------------------------------------------------------


def listed(cloud: Cloud, thing: str, infra_id: str) -> list[Values]:
    """Return all of a kind in the connection's project; none where the cloud has no such service.

    Of containers only those whose names begin with the infraID: each costs a request.  Raises CloudError.
    """
    mine = cloud.project_id
    if thing in NETWORK:
        return _of_network(cloud, NETWORK[thing], mine)
    if thing == "server":
        return cloud.compute.list("/servers/detail", "servers")
    if thing == "server_group":
        return cloud.compute.list("/os-server-groups", "server_groups")
    if thing == "image":
        return cloud.image.list("/images", "images", owner=mine)
    if thing in VOLUME:
        plural = VOLUME[thing]
        return cloud.volume.list(f"/{plural}/detail", plural) if cloud.has("block-storage") else []
    if thing == "load_balancer":
        path = "/lbaas/loadbalancers"
        return cloud.load_balancer.list(path, "loadbalancers", project_id=mine) if cloud.has("load-balancer") else []
    assert thing == "container", thing
    return _containers(cloud, infra_id) if cloud.has("object-store") else []


def _of_network(cloud: Cloud, collection: str, project_id: str) -> list[Values]:
    try:
        return cloud.network.list(f"/{collection}", collection.replace("-", "_"), project_id=project_id)
    except NotFound:
        if collection != "trunks":
            raise
        return []  # an extension that this Neutron has not got


def _containers(cloud: Cloud, infra_id: str) -> list[Values]:
    """Return containers with their metadata, by small-letter keys."""
    swift = cloud.object_store
    found = swift.request("GET", "", params={"format": "json", "prefix": infra_id}).json()

    def described(name: str) -> Values | None:
        try:
            headers = swift.request("HEAD", f"/{quote(name, safe='')}", log=False).headers  # there may be Temp-URL keys
        except NotFound:  # by now; or Swift still lists one that has gone
            return None
        metadata = {key.lower().removeprefix(META): value for key, value in headers.items()}
        return {"id": name, "name": name, "metadata": metadata}

    with ThreadPoolExecutor(OBJECTS) as pool:
        return [each for each in pool.map(described, (each["name"] for each in found)) if each is not None]


# --- and how it goes ----------------------------------------------------------------------


def remove(cloud: Cloud, thing: str, left: Remains) -> None:
    """Remove one, and return when it is gone; what is not there any more counts as removed."""
    special = _REMOVALS.get(thing)
    if special:
        special(cloud, left)
    elif thing in NETWORK:
        _of_neutron(cloud, f"/{NETWORK[thing]}/{left.id}", _unchanged(left) if thing == "floating_ip" else {})
    elif thing == "image":
        cloud.image.delete(f"/images/{left.id}")
    else:
        cloud.compute.delete(f"/os-server-groups/{left.id}")


def _unchanged(left: Remains) -> Mapping[str, str]:
    """Return the condition that nobody has changed it since we looked; 412 is read again by the executor."""
    return {"If-Match": f"revision_number={left.revision_number}"}


def _of_neutron(cloud: Cloud, path: str, condition: Mapping[str, str] | None = None) -> None:
    """Delete; Neutron also says 403 of what another request is removing at this moment."""
    try:
        cloud.network.delete(path, headers=condition or {})
    except NotAllowed as error:
        raise CloudError(str(error), retryable=True, status=error.status) from error


def _server(cloud: Cloud, left: Remains) -> None:
    path = f"/servers/{left.id}"
    cloud.compute.delete(path)
    _until_gone(f"server {left.name}", lambda: str(cloud.compute.get(path)["server"]["status"]))


def _volume(cloud: Cloud, left: Remains, collection: str = "volumes") -> None:
    path, member = f"/{collection}/{left.id}", collection.removesuffix("s")
    what = f"{member} {left.name or left.id}"

    def status() -> str:
        return str(cloud.volume.get(path)[member]["status"])

    with contextlib.suppress(NotFound):
        _until(f"{what}, which its server had", status, lambda now: now not in ("in-use", "detaching", "reserved"))
        cloud.volume.delete(path)
        _until_gone(what, status)


def _snapshot(cloud: Cloud, left: Remains) -> None:
    _volume(cloud, left, "snapshots")


def _load_balancer(cloud: Cloud, left: Remains) -> None:
    path = f"/lbaas/loadbalancers/{left.id}"
    with contextlib.suppress(NotFound):
        cloud.load_balancer.request("DELETE", path, params={"cascade": "true"})
    what = f"load balancer {left.name or left.id}"
    _until_gone(what, lambda: str(cloud.load_balancer.get(path)["loadbalancer"]["provisioning_status"]))


def _router(cloud: Cloud, left: Remains) -> None:
    """Routes go first, then interfaces: each holds the next."""
    neutron, path = cloud.network, f"/routers/{left.id}"
    with contextlib.suppress(NotFound):
        if left.has_routes:
            neutron.put(path, {"router": {"routes": []}})
        for port in neutron.list("/ports", "ports", device_id=left.id, device_owner=list(INTERFACES)):
            with contextlib.suppress(NotFound):
                neutron.put(f"{path}/remove_router_interface", {"port_id": port["id"]}, once=True)
        _of_neutron(cloud, path)


def detach(cloud: Cloud, left: Remains, note: Mark) -> None:
    """Take a floating IP from its port; our note that we put it there goes, the user's own text stays."""
    text = left.description
    body = {"port_id": None, "description": note.strip(text) if note.owns(text) else text}
    with contextlib.suppress(NotFound):
        cloud.network.put(f"/floatingips/{left.id}", {"floatingip": body}, headers=_unchanged(left))


def untag(cloud: Cloud, collection: str, left: Remains, tag: str) -> None:
    cloud.network.delete(f"/{collection}/{left.id}/tags/{quote(tag, safe='')}")


def _container(cloud: Cloud, left: Remains) -> None:
    """Objects first, page by page; more may come while a registry still runs: then Swift says 409."""
    swift, path = cloud.object_store, f"/{quote(left.name, safe='')}"

    def remove_object(name: str) -> None:
        # as one segment: of "../b/c" requests would otherwise make the object c of the container b
        swift.delete(f"{path}/{quote(name, safe='').replace('.', '%2E')}")

    marker = ""
    with contextlib.suppress(NotFound), ThreadPoolExecutor(OBJECTS) as pool:
        while page := swift.request("GET", path, params={"format": "json", "marker": marker}).json():
            list(pool.map(remove_object, (each["name"] for each in page)))
            marker = page[-1]["name"]
    swift.delete(path)


_REMOVALS: dict[str, Callable[[Cloud, Remains], None]] = {
    "server": _server,
    "volume": _volume,
    "volume_snapshot": _snapshot,
    "load_balancer": _load_balancer,
    "router": _router,
    "container": _container,
}


# --- waiting ------------------------------------------------------------------------------


def _until_gone(what: str, status: Callable[[], str]) -> None:
    with contextlib.suppress(NotFound):
        _until(what, status, lambda now: now.upper() in ("DELETED", "SOFT_DELETED"))


def _until(what: str, status: Callable[[], str], enough: Callable[[str], bool]) -> None:
    """Look until a status is enough; raises NotFound when the thing is gone, WaitTimeout, ResourceFailed."""
    last = ""

    def look() -> bool:
        nonlocal last
        last = status()
        if last.startswith("error_deleting"):
            raise ResourceFailed(f"{what}: {last}; an administrator must reset it")
        return enough(last)

    tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda done: not done) | tenacity.retry_if_exception(passes),
        stop=tenacity.stop_after_delay(GONE_SECONDS),
        wait=tenacity.wait_exponential(PAUSE, max=4 * PAUSE, min=PAUSE),
        retry_error_callback=lambda state: _too_long(what, last),
    )(look)


def _too_long(what: str, last: str) -> None:
    raise WaitTimeout(f"{what} is still there after {GONE_SECONDS:.0f} s, in status {last}; look at it, and run again")
