"""What a stack would take from others as Heat creates its resources.

Heat attaches a floating IP wherever it serves, gives a router another gateway, and takes a container of the same name
for its own (27.0.1, neutron/floatingip.py, nova/server_network_mixin.py, neutron/router.py and swift/container.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotAllowed, NotFound
from openstack_prep.base.raw import Raw
from openstack_prep.resources.heat.stacks import CONTAINER, SERVER
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, RouterRecord, list_by_id
from openstack_prep.resources.orchestration.inputs import Inputs
from openstack_prep.resources.orchestration.losses import ASSOCIATIONS, GATEWAY
from openstack_prep.resources.orchestration.record import StackRecord

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

TAKING = frozenset({*ASSOCIATIONS, CONTAINER, GATEWAY, SERVER})
"""Types of resources that may take something."""


def added(record: StackRecord) -> frozenset[str]:
    """Return the names of the resources that an update adds and that may take something."""
    effects = (effect for effect in record.preview if effect.verb == "add" and effect.type in TAKING)
    return frozenset(effect.place.rpartition(".")[2] for effect in effects)


def taken_over(
    stack: Inputs, cloud: Cloud, resources: Iterable[Raw], own: frozenset[str] = frozenset()
) -> Iterator[Mistake]:
    """Yield what resources to create would take, as Heat previews them; ``own`` are the ids of the stack's own."""
    coming = [(str(each["resource_type"]), each.get("properties") or {}) for each in resources]
    ids = {str(found) for kind, properties in coming for found in _floating_ips(kind, properties) if found}
    for floating_ip in list_by_id(cloud.network, FloatingIPRecord, sorted(ids)).values() if ids else ():
        if floating_ip.port_id and own.isdisjoint((floating_ip.port_id, floating_ip.device_id)):
            what = f"floating IP {floating_ip.address} serves port {floating_ip.port_id}, and Heat would move it"
            fix = shell.join(["openstack", "floating", "ip", "unset", "--port", floating_ip.id])
            yield stack.mistake(what, f"detach it first: {fix}", Code.STILL_USED)
    ids = {
        str(properties["router_id"]) for kind, properties in coming if kind == GATEWAY and properties.get("router_id")
    }
    for router in list_by_id(cloud.network, RouterRecord, sorted(ids)).values() if ids else ():
        if router.gateway_network_id and router.id not in own:
            what = (
                f"router {router.name} {router.id} has a gateway, which Heat would replace, and delete with the stack"
            )
            yield stack.mistake(what, "leave OS::Neutron::RouterGateway out of the template", Code.STILL_USED)
    for name in sorted({str(properties.get("name") or "") for kind, properties in coming if kind == CONTAINER} - {""}):
        if _exists(cloud, name):
            what = f"container {name} exists, and Heat would take it for the stack's own"
            yield stack.mistake(what, "choose another name, or delete the container", Code.STILL_USED)


def _floating_ips(kind: str, properties: Raw) -> Iterator[Any]:
    """Yield the ids of the floating IPs that a resource attaches."""
    if kind in ASSOCIATIONS:
        yield properties.get(ASSOCIATIONS[kind])
    elif kind == SERVER:
        networks = properties.get("networks") or ()
        yield from (each.get("floating_ip") for each in networks if isinstance(each, Mapping))


def _exists(cloud: Cloud, container: str) -> bool:
    try:
        cloud.object_store.request("HEAD", f"/{quote(container, safe='')}")
    except (NotFound, NotAllowed):  # who may not read a container may not create one, either, so Heat may not
        return False
    return True
