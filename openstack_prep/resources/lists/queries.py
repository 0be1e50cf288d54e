"""Lists that several kinds read: one function per list, with its own fields, requested once per run.

Source: Networking API v2.0 (``fields`` limits the answer); Compute API, "List Flavors With Details".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from openstack_prep.base.errors import CloudError, NotFound
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, in_project, refuse_others
from openstack_prep.core.deletion_loss import Deletion
from openstack_prep.core.run import IDS_PER_REQUEST, fact, query
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    AddressHolder,
    FloatingIPRecord,
    GroupRecord,
    NetworkRecord,
    PortRecord,
    R,
    RouterRecord,
    SubnetRecord,
    Subport,
    TrunkRecord,
    list_records,
)
from openstack_prep.resources.lists.nova_records import FlavorRecord, list_flavors

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


class Block(NamedTuple):
    """A subnet, limited to its addresses."""

    id: str
    name: str
    cidr: str
    ipv6_address_mode: str | None = None


@query
def flavors(run: CloudRun) -> Sequence[FlavorRecord]:
    """Return all flavors that these credentials see, public or not."""
    # is_public=None lists both kinds for administrators; others see the flavors that they may use
    return list_flavors(run.admin, is_public="None")


@query
def keypairs(run: CloudRun, cloud: Cloud, user_id: str) -> Mapping[str, Raw]:
    """Return the key pairs of a user by name; ``cloud`` is a connection that may list them."""
    listed = cloud.compute.list("/os-keypairs", "keypairs", user_id=user_id)
    return {each["keypair"]["name"]: each["keypair"] for each in listed}


@query
def volume_types(run: CloudRun) -> frozenset[str]:
    """Return the names and ids of all volume types that these credentials see, public or not."""
    listed = run.admin.volume.list("/types", "volume_types", is_public="None")
    return frozenset(each for raw in listed for each in (raw["name"], raw["id"]))


@query
def records_in(run: CloudRun, kind: type[R], project_id: str) -> Sequence[R]:
    """Return all resources of a kind of Neutron in a project."""
    member = kind.collection.removesuffix("s").replace("-", "_")
    return list(map(kind.read, in_project(run, kind.collection, member, project_id)))


@query
def external_networks(run: CloudRun) -> Sequence[NetworkRecord]:
    external: Values = {"router:external": True}
    return list_records(run.admin.network, NetworkRecord, **external)


@query
def external_for_all(run: CloudRun) -> frozenset[str]:
    """Return the ids of the networks that are external for all projects; others may share one with single projects.

    Whoever knows the id of a project may share a network with it as external, by any name; only an administrator may
    share one with all (Neutron 29.0.0, conf/policies/rbac.py, create_rbac_policy:target_tenant).
    """
    which: Values = {"object_type": "network", "action": "access_as_external", "target_tenant": "*"}
    return frozenset(raw["object_id"] for raw in run.admin.network.list("/rbac-policies", "rbac_policies", **which))


def gateways_of(run: CloudRun, project_id: str) -> frozenset[str | None]:
    """Return the ids of the external networks that routers of a project have their gateways on."""
    return frozenset(router.gateway_network_id for router in records_in(run, RouterRecord, project_id))


@query
def networks_at(run: CloudRun, physical_network: str) -> Sequence[NetworkRecord]:
    """Return the networks on a physical network, which only administrators see."""
    which: Values = {"provider:physical_network": physical_network}
    return list_records(run.admin.network, NetworkRecord, **which)


@query
def port_security_of(run: CloudRun, network_id: str) -> bool | None:
    """Return whether port security is enabled on new ports of a network; None if it is not seen."""
    listed = list_records(run.admin.network, NetworkRecord, id=network_id)
    return listed[0].port_security_enabled if listed else None


@query
def sharing(run: CloudRun, network_id: str) -> Mapping[str, str]:
    """Return the ids of the policies that share a network with single projects, by project id.

    Others are left out also where something in between drops queries: an update deletes what is not declared.
    """
    which: Values = {"object_type": "network", "object_id": network_id, "action": "access_as_shared"}
    listed = run.admin.network.list("/rbac-policies", "rbac_policies", **which)
    shared = (raw for raw in listed if raw["target_tenant"] != "*" and raw.items() >= which.items())
    return {raw["target_tenant"]: raw["id"] for raw in shared}


@fact
def extensions(run: CloudRun) -> frozenset[str]:
    """Return the aliases of Neutron's extensions, such as "dns-integration"."""
    return frozenset(raw["alias"] for raw in run.admin.network.list("/extensions", "extensions", fields="alias"))


@query
def subnets_of(run: CloudRun, network_id: str) -> Sequence[Block]:
    """Return the subnets of a network, whoever owns them."""
    listed = of_companions(run, "network", network_id, "/subnets", "network_id", fields=BLOCK_FIELDS)
    return list(map(_block, listed))


BLOCK_FIELDS = ("id", "name", "cidr", "ipv6_address_mode", "network_id")


def _block(raw: Raw) -> Block:
    return Block(raw["id"], raw["name"], raw["cidr"], raw.get("ipv6_address_mode"))


@query
def subnets_at_ports(run: CloudRun, project_id: str) -> Mapping[str, Sequence[Block]]:
    """Return the subnets of all networks that a project has ports on, whoever owns them, by network id."""
    networks = sorted({raw["network_id"] for raw in ports_in_project(run, project_id)})
    if len(networks) == 1:
        return {networks[0]: subnets_of(run, networks[0])}
    found: dict[str, list[Block]] = {network_id: [] for network_id in networks}
    for raw in _of_any(run, "/subnets", "network_id", networks, fields=BLOCK_FIELDS):
        found[raw["network_id"]].append(_block(raw))
    return found


@query
def router_interfaces(run: CloudRun, project_id: str, owners: tuple[str, ...]) -> Sequence[PortRecord]:
    """Return the ports that routers of a project have in subnets."""
    return list_records(run.admin.network, PortRecord, project_id=project_id, device_owner=list(owners))


@query
def ports_on(run: CloudRun, network_id: str) -> Sequence[PortRecord]:
    """Return the ports on a network, as far as these credentials see them."""
    return list(map(PortRecord.read, of_companions(run, "network", network_id, "/ports", "network_id")))


PORT_FIELDS = (
    "id",
    "name",
    "project_id",
    "network_id",
    "mac_address",
    "device_id",
    "device_owner",
    "description",
    "fixed_ips",
    "security_groups",
    "allowed_address_pairs",
    "port_security_enabled",
    "tags",
    "revision_number",
    "created_at",
    "admin_state_up",
    "dns_name",
)


@query
def ports_in_project(run: CloudRun, project_id: str | None) -> Sequence[Raw]:
    """Return all ports of a project as Neutron returns them; empty if the project does not exist yet."""
    if project_id is None:
        return ()
    listed = neutron_list(run, "/ports", project_id=project_id, fields=PORT_FIELDS)
    refuse_others("GET network/ports", listed, "project_id", project_id)
    return listed


@query
def ports_in_groups(run: CloudRun, project_id: str) -> Sequence[PortRecord]:
    """Return the ports in the security groups of a project, whoever owns them, as far as these credentials see them."""
    groups = [group.id for group in records_in(run, GroupRecord, project_id)]
    return list(map(PortRecord.read, _of_any(run, "/ports", "security_groups", groups, fields=PORT_FIELDS)))


@query
def floating_ips_on(run: CloudRun, project_id: str) -> Sequence[FloatingIPRecord]:
    """Return the floating IPs on ports of a project, whoever owns them, as far as these credentials see them."""
    ports = [raw["id"] for raw in ports_in_project(run, project_id)]
    return list(map(FloatingIPRecord.read, _of_any(run, "/floatingips", "port_id", ports)))


def _of_any(run: CloudRun, path: str, field: str, ids: Sequence[str], **which: Any) -> Iterator[Raw]:
    """Yield what a list contains for any of many ids, in as few requests as their length allows."""
    for first in range(0, len(ids), IDS_PER_REQUEST):
        yield from listed_for(run, path, field, tuple(ids[first : first + IDS_PER_REQUEST]), tuple(which.items()))


def of_companions(run: CloudRun, kind: str, thing_id: str, path: str, field: str, **which: Any) -> list[Raw]:
    """Return what a list of Neutron contains for one resource, read for all that the plan deletes beside it."""
    ids = run.companions_of(kind, thing_id)
    listed = listed_for(run, path, field, ids, tuple(which.items()))
    return [raw for raw in listed if len(ids) == 1 or raw[field] == thing_id]


@query
def listed_for(
    run: CloudRun, path: str, field: str, ids: tuple[str, ...], which: tuple[tuple[str, Any], ...] = ()
) -> Sequence[Raw]:
    """Return what a list of Neutron contains for any of some ids."""
    return neutron_list(run, path, **{field: ids if len(ids) > 1 else ids[0]}, **dict(which))


def neutron_list(run: CloudRun, path: str, /, **which: Any) -> Sequence[Raw]:
    """Return a list of Neutron, whose member has the name of the path."""
    return run.admin.network.list(path, path.rpartition("/")[2].replace("-", "_"), **which)


@query
def floating_ips_behind(run: CloudRun, router_id: str) -> Sequence[FloatingIPRecord]:
    """Return the floating IPs that a router serves, also those whose port forwardings it serves."""
    return list_records(run.admin.network, FloatingIPRecord, router_id=router_id)


def list_images(cloud: Cloud, **filters: Any) -> list[Values]:
    """Return the images that match, of any visibility, hidden or not.

    Glance 33.0.0 lists hidden images only by themselves (api/v2/images.py, index), and the community images of others
    only if all visibilities are asked for (db/sqlalchemy/api.py, image_get_all). An image that is hidden meanwhile is
    in both lists.
    """
    lists = (
        cloud.image.list("/images", "images", visibility="all", os_hidden=hidden, limit=1000, **filters)
        for hidden in ("false", "true")
    )
    return list({raw["id"]: raw for listed in lists for raw in listed}.values())


@query
def flavor_access(run: CloudRun, flavor_id: str) -> Sequence[str]:
    """Return the ids of the projects that may use a flavor that is not public."""
    listed = run.admin.compute.get(f"/flavors/{flavor_id}/os-flavor-access")["flavor_access"]
    return [raw["tenant_id"] for raw in listed]


@query
def named(run: CloudRun, collection: str, member: str, thing_id: str) -> str:
    """Return the name of a Neutron resource by its id; the id if these credentials may not read it."""
    listed = run.admin.network.list(f"/{collection}", f"{member}s", id=thing_id, fields="name")
    return str(listed[0]["name"]) if listed else thing_id


def network_name(run: CloudRun, network_id: str, project_id: str) -> str:
    """Return the name of a network of the project, or of a network that another project shares with it."""
    mine = (network.name for network in records_in(run, NetworkRecord, project_id) if network.id == network_id)
    return next(mine, None) or named(run, "networks", "network", network_id)


def external_network_name(run: CloudRun, network_id: str) -> str:
    """Return the name of an external network, which another one may have, too; the id if it is not visible."""
    return next(
        (external_network.name for external_network in external_networks(run) if external_network.id == network_id),
        network_id,
    )


def project_name(run: CloudRun, project_id: str) -> str:
    """Return a project's name and id, or only the id if the credentials in use may not read the name."""
    try:
        return f"{_project(run, project_id)['name']} ({project_id})"
    except CloudError:
        return project_id


@fact
def _project(run: CloudRun, project_id: str) -> Raw:
    found: Raw = run.admin.identity.get(f"/projects/{project_id}")["project"]
    return found


@query
def role_assignments(run: CloudRun, scope: str, scope_id: str) -> Sequence[Raw]:
    """Return the role assignments in a project or domain ("project", "domain"), with names besides the ids."""
    which: Values = {f"scope.{scope}.id": scope_id, "include_names": True}
    return run.admin.identity.list("/role_assignments", "role_assignments", **which)


@query
def subnets_named(run: CloudRun, cloud: Cloud, name: str) -> Sequence[SubnetRecord]:
    """Return the subnets with a name that an identity sees, including those on shared networks."""
    return list_records(cloud.network, SubnetRecord, name=name)


@query
def ports_in_subnet(run: CloudRun, subnet_id: str) -> Sequence[AddressHolder]:
    """Return the ports with an address in a subnet, as far as these credentials see them."""
    fields = ["id", "name", "description", "device_owner", "fixed_ips"]
    return list_records(run.admin.network, AddressHolder, fixed_ips=f"subnet_id={subnet_id}", fields=fields)


@query
def machines_with(run: CloudRun, networks: tuple[str, ...], addresses: tuple[str, ...]) -> Sequence[AddressHolder]:
    """Return the ports of servers with one of some addresses on networks, as far as these credentials see them."""
    fields = ["id", "name", "description", "device_owner", "fixed_ips"]
    which: Values = {"network_id": list(networks), "fixed_ips": [f"ip_address={address}" for address in addresses]}
    listed = list_records(run.admin.network, AddressHolder, fields=fields, **which)
    return [port for port in listed if port.device_owner.startswith("compute:")]


@query
def distributed_addresses(run: CloudRun, networks: tuple[str, ...]) -> Sequence[tuple[str, str, frozenset[str]]]:
    """Return the ids, networks and addresses of Neutron's own ports for distributed services on networks."""
    owner, fields = "network:distributed", ["id", "network_id", "fixed_ips", "device_owner"]
    which: Values = {"device_owner": owner, "network_id": list(networks)}
    listed = run.admin.network.list("/ports", "ports", fields=fields, **which)
    return [
        (raw["id"], raw["network_id"], frozenset(fixed_ip["ip_address"] for fixed_ip in raw["fixed_ips"]))
        for raw in listed
        if raw["device_owner"] == owner
    ]


@query
def trunks(run: CloudRun) -> Sequence[TrunkRecord]:
    """Return the trunks that these credentials see, of all projects; none if Neutron has no trunks."""
    return list_records(run.admin.network, TrunkRecord) if "trunk" in extensions(run) else ()


@query
def subports(run: CloudRun, project_id: str) -> Sequence[Subport]:
    """Return the subports of a project's trunks; none if Neutron has no trunks (extension trunk)."""
    try:
        listed = list_records(run.admin.network, TrunkRecord, project_id=project_id)
    except NotFound:
        return ()
    return [subport for trunk in listed for subport in trunk.sub_ports]


STACK_GONE = "DELETE_COMPLETE"
"""The status of a deleted stack, which Heat still lists for a moment."""


@query
def stacks_of(run: CloudRun, cloud: Cloud) -> Sequence[Raw]:
    """Return the stacks that one identity sees, without deleted ones."""
    return [each for each in cloud.orchestration.list("/stacks", "stacks") if each["stack_status"] != STACK_GONE]


# --- port forwardings of floating IPs ---

FORWARDING = "floating-ip-port-forwarding"


def forwardings_of(run: CloudRun, deletion: Deletion) -> Iterable[Raw]:
    """Return the port forwardings of a floating IP as it is now, from the list of its project."""
    project_id = deletion.observed.record_as(FloatingIPRecord).project_id
    listed = records_in(run, FloatingIPRecord, project_id)
    return [raw for floating_ip in listed if floating_ip.id == deletion.id for raw in forwardings(run, floating_ip)]


@query
def forwardings(run: CloudRun, floating_ip: FloatingIPRecord) -> Sequence[Raw]:
    """Return the port forwardings of a floating IP: of one that a router serves, and no port."""
    served = floating_ip.router_id and floating_ip.port_id is None
    if not served or FORWARDING not in extensions(run):
        return ()
    return neutron_list(run, f"/floatingips/{floating_ip.id}/port_forwardings")


def forwardings_to(run: CloudRun, port: PortRecord) -> Iterator[tuple[FloatingIPRecord, Raw]]:
    """Yield the port forwardings to a port, each with its floating IP, which may belong to another project."""
    if FORWARDING not in extensions(run):
        return
    neighbours = ports_on(run, port.network_id)
    for router_id in sorted({each.device_id for each in neighbours if each.device_owner in INTERFACES}):
        for floating_ip in floating_ips_behind(run, router_id):
            for forwarding in forwardings(run, floating_ip):
                if forwarding["internal_port_id"] == port.id:
                    yield floating_ip, forwarding
