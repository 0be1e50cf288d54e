"""What a stack would take from others as Heat creates its resources.

Heat attaches a floating IP wherever it serves, gives a router another gateway, and takes a container of the same name
for its own (27.0.1, neutron/floatingip.py, nova/server_network_mixin.py, neutron/router.py and swift/container.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotAllowed, NotFound
from openstack_prep.base.raw import Raw
from openstack_prep.resources.heat.stacks import CONTAINER, SERVER
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, NeutronRecord, RouterRecord, list_by_id
from openstack_prep.resources.orchestration.inputs import Inputs
from openstack_prep.resources.orchestration.losses import ASSOCIATIONS, GATEWAY
from openstack_prep.resources.orchestration.record import StackRecord

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

R = TypeVar("R", bound=NeutronRecord)
TAKING = frozenset({*ASSOCIATIONS, CONTAINER, GATEWAY, SERVER})
"""Types of resources that may take something."""


def list_added_names(record: StackRecord) -> frozenset[str]:
    """Return the names of the resources that an update adds and that may take something."""
    effects = (effect for effect in record.preview if effect.verb == "add" and effect.type in TAKING)
    return frozenset(effect.place.rpartition(".")[2] for effect in effects)


def find_taken_over(
    stack: Inputs, cloud: Cloud, resources: Iterable[Raw], own_ids: frozenset[str] = frozenset()
) -> Iterator[Mistake]:
    """Yield what resources to create would take, as Heat previews them; ``own_ids`` are the ids of the stack's own."""
    by_type: dict[str, list[Raw]] = defaultdict(list)
    for resource in resources:
        by_type[str(resource["resource_type"])].append(resource.get("properties") or {})
    for record in _read(cloud, FloatingIPRecord, _list_floating_ips(by_type)):
        if record.port_id and own_ids.isdisjoint((record.port_id, record.device_id)):
            what = f"floating IP {record.address} serves port {record.port_id}, and Heat would move it"
            fix = f"detach it first: openstack floating ip unset --port {record.address}"
            yield stack.mistake(what, fix, Code.STILL_USED)
    for router in _read(cloud, RouterRecord, (properties.get("router_id") for properties in by_type[GATEWAY])):
        if router.gateway_network_id and router.id not in own_ids:
            what = f"router {router.name} {router.id} has a gateway, which Heat would manage, and delete with the stack"
            yield stack.mistake(what, "remove OS::Neutron::RouterGateway from the template", Code.STILL_USED)
    for name in sorted({str(properties.get("name") or "") for properties in by_type[CONTAINER]} - {""}):
        if _exists(cloud, name):
            what = f"container {name} exists, and Heat would manage it, and delete it with the stack"
            yield stack.mistake(what, "choose another name, or delete the container", Code.STILL_USED)


def _list_floating_ips(by_type: Mapping[str, Iterable[Raw]]) -> Iterator[object]:
    """Yield the ids of the floating IPs that resources attach; None where a preview does not know the id."""
    for kind, name in ASSOCIATIONS.items():
        yield from (properties.get(name) for properties in by_type.get(kind, ()))
    for properties in by_type.get(SERVER, ()):
        networks = properties.get("networks") or ()
        yield from (network.get("floating_ip") for network in networks if isinstance(network, Mapping))


def _read(cloud: Cloud, kind: type[R], ids: Iterable[object]) -> Iterable[R]:
    known_ids = sorted({str(resource_id) for resource_id in ids if resource_id})
    return list_by_id(cloud.network, kind, known_ids).values() if known_ids else ()


def _exists(cloud: Cloud, container: str) -> bool:
    try:
        cloud.object_store.request("HEAD", f"/{quote(container, safe='')}")
    except (NotFound, NotAllowed):  # who may not read a container may not create one, either, so Heat may not
        return False
    return True
