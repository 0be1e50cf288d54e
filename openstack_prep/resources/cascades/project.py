"""What a project leaves behind when Keystone deletes it: no other service hears of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import NotAllowed, NotFound
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, in_project
from openstack_prep.core.deletion_loss import LossEffect
from openstack_prep.core.model import Resource
from openstack_prep.core.run import fact, query
from openstack_prep.resources.cascades import identity
from openstack_prep.resources.cascades.row import (
    ADMINISTRATORS,
    CascadeRow,
    CascadeTable,
    Deletions,
    Dependent,
    UsuallyHidden,
    per_deletion,
    sees_everything,
    user_name,
)
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cluster_naming import cluster_namings
from openstack_prep.resources.lists.nova_records import list_all_server_groups, list_server_groups

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.cloud.service import Service

NO_OPERATOR = "the user needs one of Swift's operator_roles, often swiftoperator"
"""Why Swift refuses the list of a user who may log in to the project: swift 2.38.3, keystoneauth.py, authorize."""
ONLY_USERS = "only a user of the project may list them"
NO_ENDPOINT = "a token without a project may not show its endpoint"
"""Keystone 30.0.0, catalog/backends/sql.py, get_v3_catalog: it leaves out endpoints whose URL contains a project."""
CLEANUP = "keystone 30.0.0, resource/core.py, _post_delete_cleanup_project"
NO_EVENT = "keystone 30.0.0, resource/core.py, _delete_project: no other service takes part"


@dataclass(frozen=True)
class ProjectScope:
    """A project that something may be left in; ``resource`` finds the connections of its users."""

    id: str
    resource: Resource | None


Read = Callable[[CloudRun, ProjectScope], Iterable[Raw]]


def _everybodys(run: CloudRun, project_id: str) -> Values:
    """Return the filters by which only administrators look into other projects."""
    return {} if project_id == run.admin.project_id else {"all_tenants": True, "project_id": project_id}


def servers(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    return run.admin.compute.list("/servers", "servers", **_everybodys(run, project.id))


def _server_groups(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the server groups: by a user of the project if there is one, because Nova filters none by project."""
    for cloud in (run.find_tenant(project.resource), run.admin):
        if cloud is not None and cloud.project_id == project.id:
            return [vars(server_group) for server_group in list_server_groups(cloud)]
    return [
        vars(server_group)
        for server_group in list_all_server_groups(run.admin)
        if server_group.project_id == project.id
    ]


def volumes(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    return _of_cinder("volumes")(run, project)


def _of_cinder(name: str, microversion: str = "3.0") -> Read:
    def read(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
        """Return them without those that Cinder is about to delete, such as the boot volumes of deleted servers."""
        headers = {"OpenStack-API-Version": f"volume {microversion}"}
        listed = run.admin.volume.list(f"/{name}/detail", name, headers=headers, **_everybodys(run, project.id))
        return [raw for raw in listed if raw["status"] != "deleting"]

    return read


def _of_neutron(collection: str, member: str, extension: str = "") -> Read:
    def read(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
        if extension and extension not in queries.extensions(run):
            return ()
        return in_project(run, collection, member, project.id)

    return read


def _images(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    return queries.list_images(run.admin, owner=project.id)


def _namespaces(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the namespaces of metadata definitions: Glance 33.0.0 filters none by owner, and knows them by name."""
    listed = run.admin.image.list("/metadefs/namespaces", "namespaces")
    return [{"id": raw["namespace"]} for raw in listed if raw.get("owner") == project.id]


def _software_configs(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the software configs outside of stacks that go."""
    reader = _reader_in_heat(run, project)
    listed = reader.orchestration.list("/software_configs", "software_configs")
    return [raw for raw in listed if raw.get("project", reader.project_id) == project.id]


def _qos_policies(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    if "qos" not in queries.extensions(run):
        return ()
    return run.admin.network.list("/qos/policies", "policies", project_id=project.id)


def _groups(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    listed = in_project(run, "security-groups", "security_group", project.id)
    return [raw for raw in listed if raw["name"] != "default"]  # destroy deletes that with the project


def _containers(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the containers of the project's account; Swift keeps them, and then only a reseller reaches them.

    A user of the project lists them, or an administrator who may read all accounts: swift 2.38.3, keystoneauth.py,
    authorize (reseller_admin_role, system_reader_roles).
    """
    refused = NotAllowed(ONLY_USERS)
    for account in _accounts(run, project):
        try:
            listed = account.ask_list("", params={"format": "json"})
            return [{"id": f"{project.id}/{each['name']}"} for each in listed]
        except NotFound:  # nobody has used the account yet
            return ()
        except NotAllowed as error:
            reason = f"{error.reason}; {NO_OPERATOR}" if error.status == 403 else error.reason
            refused = NotAllowed(reason, status=error.status)
    if sees_everything(run):  # by Swift's default settings no administrator may read the accounts of others
        raise UsuallyHidden(str(refused), status=refused.status)
    raise refused


def _accounts(run: CloudRun, project: ProjectScope) -> Iterator[Service]:
    """Yield the clients that may list the project's account: of its user, then of the connection."""
    tenant = run.find_tenant(project.resource)
    if tenant is not None and tenant.project_id == project.id:
        yield tenant.object_store
    own, endpoint = run.admin.project_id, run.admin.object_store.endpoint
    if own and own != project.id and own in endpoint:
        yield run.admin.object_store.at(endpoint.replace(own, project.id))


def stacks(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    reader = _reader_in_heat(run, project)
    listed = queries.stacks_of(run, reader)
    mine = (raw for raw in listed if raw.get("project", reader.project_id) == project.id and not raw.get("parent"))
    return [{**raw, "name": raw["stack_name"]} for raw in mine]


def _reader_in_heat(run: CloudRun, project: ProjectScope) -> Cloud:
    """Return the connection of a user of the project, or of an administrator; raises NotAllowed.

    Whoever has the role admin sees what all projects have, with their project (Heat 27.0.1, db/api.py, stack_get_all
    and software_config_get_all).
    """
    tenant = run.find_tenant(project.resource)
    if tenant is not None and tenant.project_id == project.id:
        return tenant
    if sees_everything(run):
        return run.admin
    raise NotAllowed(ONLY_USERS)


def _is_in(project: ProjectScope, raw: Raw) -> bool:
    return bool(raw.get("project_id", project.id) == project.id)


@query
def _of_designate(run: CloudRun, collection: str, project_id: str) -> Sequence[Raw]:
    headers = {"X-Auth-Sudo-Project-ID": project_id}
    return run.admin.dns.list(f"/{collection}", collection, headers=headers, limit="max")


def _own_zones(run: CloudRun, project: ProjectScope) -> list[Raw]:
    return [raw for raw in _of_designate(run, "zones", project.id) if _is_in(project, raw)]


def _zones(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the zones that stay; designate 23.0.0 also lists those that it is deleting, or that others have shared."""
    mine = _own_zones(run, project)
    return (raw for raw in mine if (raw.get("action"), raw.get("status")) != ("DELETE", "PENDING"))


def _recordsets(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the recordsets in zones of other projects; those in its own zones go or stay with these."""
    own = {raw["id"] for raw in _own_zones(run, project)}
    listed = _of_designate(run, "recordsets", project.id)
    mine = (raw for raw in listed if _is_in(project, raw) and raw["zone_id"] not in own)
    return (raw for raw in mine if raw.get("action") != "DELETE")


def _load_balancers(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    return run.admin.load_balancer.list("/lbaas/loadbalancers", "loadbalancers", project_id=project.id)


def _subnets(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    return _on_other_networks(run, project, in_project(run, "subnets", "subnet", project.id))


def _ports(run: CloudRun, project: ProjectScope) -> Iterable[Raw]:
    """Return the ports without a device: a server or router that has one is reported itself."""
    listed = _on_other_networks(run, project, queries.ports_in_project(run, project.id))
    return (raw for raw in listed if not raw["device_id"])


def _on_other_networks(run: CloudRun, project: ProjectScope, listed: Iterable[Raw]) -> Iterable[Raw]:
    """Return subnets or ports of the project on networks of others: those on its own networks go or stay with these."""
    own = {raw["id"] for raw in in_project(run, "networks", "network", project.id)}
    return (raw for raw in listed if raw["network_id"] not in own)


def _holders(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the role assignments of others; those of the user who deletes the project are that user's own."""
    for project in deletions:
        for raw in queries.role_assignments(deletions.run, "project", project.id):
            holder = raw.get("user") or raw["group"]
            if holder["id"] not in deletions.going and identity.path_of(raw) not in deletions.going:
                yield Dependent(project, identity.name_of(raw), is_own=holder["id"] == deletions.run.admin.user_id)


def orphans(takes: str, service: str, read: Read, *, by_member: bool = False) -> CascadeRow:
    """Return the row of what stays in a service of the cloud without a project.

    Only to administrators do services show what other projects have. ``by_member``: a user of the project reads it.
    """

    def find(deletions: Deletions) -> Iterator[Dependent]:
        run = deletions.run
        if not run.admin.has(service):
            if run.admin.has_project or not _may_exist(run, service):
                return
            raise NotAllowed(NO_ENDPOINT)
        for project in deletions:
            for raw in read(run, ProjectScope(project.id, project.resource)):
                if deletions.stays(raw):
                    name = str(raw.get("name") or raw.get("floating_ip_address") or "")
                    yield Dependent(project, raw["id"], name, fix=_cleanup(name))
        if not (by_member or sees_everything(run)):
            raise NotAllowed(ADMINISTRATORS)

    return CascadeRow(
        effect=LossEffect.ORPHANED,
        takes=takes,
        what=f"{takes.replace('_', ' ')}s in a project",
        source=NO_EVENT,
        read=find,
        is_final=True,
        by_member=by_member,
        service=service,
        code=Code.STILL_USED,
    )


def _may_exist(run: CloudRun, service: str) -> bool:
    """Whether the cloud has a service that the catalogue does not show, as far as Keystone tells."""
    try:
        return service in _registered_services(run)
    except NotAllowed:
        return True


@fact
def _registered_services(run: CloudRun) -> frozenset[str]:
    """Return the types of the cloud's services, "block-storage" for volumev3."""
    from os_service_types import ServiceTypes  # reads a file of names

    known, listed = ServiceTypes(), run.admin.identity.list("/services", "services")
    return frozenset(known.get_service_type(str(raw["type"])) or str(raw["type"]) for raw in listed)


def _cleanup(name: str) -> str:
    """Return how to remove a resource of a cluster that has its own command; empty for others."""
    command = next(filter(None, (cluster_naming.removal_of(name) for cluster_naming in cluster_namings())), "")
    return f"run {command} first" if command else ""


def _unread_services(deletions: Deletions) -> Iterator[Dependent]:
    """Refuse to claim anything about services that no row reads."""
    types = {endpoint["type"] for endpoint in deletions.run.admin.endpoints}
    read = {row.service for row in (*PROJECT, *extensions.cascades("project"))}
    if unknown := sorted(types - read - KNOWN):
        raise NotAllowed(f"these services are not read: {', '.join(unknown)}")
    return iter(())


CONTAINER = "container"
OTHER_NAMES = ("compute_legacy", "volume", "volumev2", "volumev3", "cloudformation")
WITHOUT_CONTENT = ("identity", "placement", "metric", "metering", "alarming")
KNOWN = frozenset((*OTHER_NAMES, *WITHOUT_CONTENT))
"""Other types of services that rows read, and services that keep nothing that a project's users create."""

PROJECT: CascadeTable = (
    orphans("server", "compute", servers),
    orphans("server_group", "compute", _server_groups),
    orphans("volume", "block-storage", volumes),
    orphans("snapshot", "block-storage", _of_cinder("snapshots")),
    orphans("backup", "block-storage", _of_cinder("backups")),
    orphans("volume_group", "block-storage", _of_cinder("groups", "3.13")),
    orphans("image", "image", _images),
    orphans("metadef_namespace", "image", _namespaces),
    orphans("network", "network", _of_neutron("networks", "network")),
    orphans("router", "network", _of_neutron("routers", "router")),
    orphans("floating_ip", "network", _of_neutron("floatingips", "floatingip")),
    orphans("security_group", "network", _groups),
    orphans("subnet", "network", _subnets),
    orphans("port", "network", _ports),
    orphans("trunk", "network", _of_neutron("trunks", "trunk", "trunk")),
    orphans("subnet_pool", "network", _of_neutron("subnetpools", "subnetpool")),
    orphans("address_group", "network", _of_neutron("address-groups", "address_group", "address-group")),
    orphans("address_scope", "network", _of_neutron("address-scopes", "address_scope", "address-scope")),
    orphans("qos_policy", "network", _qos_policies),
    orphans(CONTAINER, "object-store", _containers, by_member=True),
    orphans("stack", "orchestration", stacks, by_member=True),
    orphans("software_config", "orchestration", _software_configs, by_member=True),
    orphans("zone", "dns", _zones),
    orphans("recordset", "dns", _recordsets),
    orphans("load_balancer", "load-balancer", _load_balancers),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="role_assignment",
        what="roles of others in a project",
        source=f"{CLEANUP}: delete_project_assignments",
        read=_holders,
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="credential",
        what="EC2 credentials of all users in a project",
        source=f"{CLEANUP}: delete_credentials_for_project",
        read=per_deletion(
            lambda run, project: identity.credentials_in(run, project.id),
            name=lambda run, raw: f"of type {raw['type']}",
            detail=lambda run, raw: f"of user {user_name(run, raw['user_id'])}",
        ),
        hidden=True,
        is_final=True,
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="trust",
        what="trusts in a project",
        source=f"{CLEANUP}: delete_trusts_for_project",
        read=identity.trusts_in,
        hidden=True,
        is_final=True,
    ),
    CascadeRow(
        effect=LossEffect.ORPHANED,
        takes="resource",
        what="what other services hold for a project",
        source=NO_EVENT,
        read=_unread_services,
    ),
)
