"""A project of its own for a test, and what it takes to get rid of it again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.devcloud import clouds_file
from tests.devcloud.layout import Layout, with_octavia

if TYPE_CHECKING:
    from openstack.connection import Connection

ROLES = ("member", "swiftoperator", *(("load-balancer_member",) if with_octavia() else ()))
CLOUD = "devcloud-tenant"
GONE_SECONDS = 60


@dataclass(frozen=True)
class Tenant:
    """A project with one user.  ``clouds_file`` knows it as ``cloud``, and the administrator, too."""

    name: str  # of the project and of the user
    project_id: str
    user_id: str
    password: str
    clouds_file: Path
    cloud: str = CLOUD

    def connect(self) -> Connection:
        """A new connection of the tenant's user."""
        return connect(self.clouds_file, self.cloud)


def connect(path: Path, cloud: str) -> Connection:
    """A connection by that file alone: the environment has no say."""
    from openstack.config import OpenStackConfig
    from openstack.connection import Connection

    region = OpenStackConfig(config_files=[str(path)], load_envvars=False).get_one(cloud)
    return Connection(config=region)


def create(layout: Layout, admin: Connection, name: str, directory: Path) -> Tenant:
    """Make a project and its user; ``name`` gets a suffix that makes it unique."""
    unique, password = f"{name}-{secrets.token_hex(3)}", secrets.token_hex(8)
    identity: Any = admin.identity  # the SDK's types allow for version 2 as well
    project = identity.create_project(name=unique, domain_id="default")
    user = identity.create_user(name=unique, password=password, domain_id="default")
    roles = {role.name: role for role in identity.roles()}
    for role in ROLES:
        identity.assign_project_role_to_user(project, user, roles[role])
    path = directory / "clouds.yaml"
    entry = clouds_file.Entry(CLOUD, layout.auth_url, unique, password, unique)
    clouds_file.write(path, entry, clouds_file.admin(layout))
    return Tenant(unique, project.id, user.id, password, path)


def delete(admin: Connection, tenant: Tenant) -> None:
    """Delete all that the tenant holds, then the user and the project."""
    with tenant.connect() as connection:
        empty(connection)
    _empty_network(admin, tenant.project_id)  # where some things, like QoS policies, are not the user's
    identity: Any = admin.identity
    identity.delete_user(tenant.user_id, ignore_missing=True)
    identity.delete_project(tenant.project_id, ignore_missing=True)


def empty(connection: Connection) -> None:
    """Delete what the connection's project holds but for its networks, users of a thing before the thing."""
    project = connection.current_project_id
    heat, nova, cinder = connection.orchestration, connection.compute, connection.block_storage
    _delete(heat.stacks, heat.delete_stack)
    if with_octavia():
        octavia: Any = connection.load_balancer
        _delete(octavia.load_balancers, partial(octavia.delete_load_balancer, cascade=True))
    _delete(nova.servers, nova.delete_server)
    _delete(nova.server_groups, nova.delete_server_group)
    _delete(nova.keypairs, nova.delete_keypair)
    _delete(cinder.snapshots, cinder.delete_snapshot)
    _delete(cinder.volumes, cinder.delete_volume)
    _delete(lambda: connection.image.images(owner=project), connection.image.delete_image)
    _empty_object_store(connection)


def _delete(listing: Callable[[], Iterable[Any]], delete: Callable[..., object]) -> None:
    """Delete all that is listed, and wait until nothing is."""
    deadline = time.monotonic() + GONE_SECONDS
    asked: set[str] = set()
    while found := list(listing()):
        for each in found:
            if each.id not in asked:
                delete(each, ignore_missing=True)
                asked.add(each.id)
        if time.monotonic() > deadline:
            raise TimeoutError(f"not deleted after {GONE_SECONDS} s: {found}")
        if len(asked) == len(found):
            time.sleep(0.05)


def _empty_network(connection: Connection, project: str) -> None:
    neutron = connection.network

    def own(listing: Callable[..., Iterable[Any]], **query: str) -> Callable[[], list[Any]]:
        # a query by project leaves out what is shared with it
        return lambda: list(listing(project_id=project, **query))

    _delete(own(neutron.ips), neutron.delete_ip)
    _delete(own(neutron.trunks), neutron.delete_trunk)
    for router in neutron.routers(project_id=project):
        neutron.update_router(router, routes=[])
        for port in neutron.ports(device_id=router.id, device_owner="network:router_interface"):
            neutron.put(f"/routers/{router.id}/remove_router_interface", json={"port_id": port.id})
        neutron.delete_router(router)
    _delete(own(neutron.ports), neutron.delete_port)
    _delete(own(neutron.networks), neutron.delete_network)
    _delete(own(neutron.subnet_pools), neutron.delete_subnet_pool)
    _delete(own(neutron.qos_policies), neutron.delete_qos_policy)

    def groups() -> list[Any]:
        every = neutron.security_groups(project_id=project)
        return [group for group in every if group.name != "default"]

    _delete(groups, neutron.delete_security_group)


def _empty_object_store(connection: Connection) -> None:
    swift = connection.object_store
    for container in swift.containers():
        for each in swift.objects(container):
            swift.delete_object(each, ignore_missing=True)
        swift.delete_container(container, ignore_missing=True)
