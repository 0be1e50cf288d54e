"""A cloud that requests-mock plays: one token, one catalogue; each test says what the services answer."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import openstack
import pytest
import requests_mock
from openstack.connection import Connection

from openstack_prep.base.errors import Mistake
from openstack_prep.cloud import connection as cloud
from openstack_prep.cloud import service
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core import executor
from openstack_prep.core.model import Context, OwnershipTag, Resource
from openstack_prep.core.resource import ListsMistakes, resolve, supports
from openstack_prep.resources.identity import user
from tests.unit.texts import StoredTexts

IDENTITY = "http://keystone/v3"
ENDPOINTS = {
    "identity": IDENTITY,
    "compute": "http://nova/v2.1",
    "network": "http://neutron",
    "image": "http://glance",
    "block-storage": "http://cinder/v3",
    "object-store": "http://swift/v1/AUTH_admin-project",
    "orchestration": "http://heat/v1/admin-project",
}
R = TypeVar("R", bound=Resource)

ADMIN_PROJECT, ADMIN_USER = "admin-project", "admin-user"


def token(
    user_id: str = ADMIN_USER, project_id: str | None = ADMIN_PROJECT, *, roles: Sequence[str] = ()
) -> dict[str, Any]:
    """Return Keystone's answer to a login."""
    domain = {"id": "default", "name": "Default"}
    body: dict[str, Any] = {
        "methods": ["password"],
        "user": {"id": user_id, "name": user_id, "domain": domain},
        "issued_at": datetime.now(UTC).isoformat(),
        "expires_at": "2036-11-21T00:00:00.000000Z",
    }
    if project_id:
        endpoints = {name: url.replace(ADMIN_PROJECT, project_id) for name, url in ENDPOINTS.items()}
        body["project"] = {"id": project_id, "name": project_id, "domain": domain}
        body["catalog"] = [
            {
                "id": name,
                "type": name,
                "name": name,
                "endpoints": [{"id": name, "interface": "public", "region": "one", "region_id": "one", "url": url}],
            }
            for name, url in endpoints.items()
        ]
    if roles:
        body["roles"] = [{"id": each, "name": each} for each in roles]
    return {"token": body}


@pytest.fixture
def administrator(services: requests_mock.Mocker) -> None:
    """The connection has the role admin, to which services show what all projects have."""
    answer = token(roles=["admin"])
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)


def connection(username: str = "admin", password: str = "admin-password") -> Connection:
    """Return the SDK's connection by that alone: neither files nor the environment have a say."""
    auth = {"auth_url": IDENTITY, "username": username, "password": password, "user_domain_name": "Default"}
    auth |= {"project_name": "admin", "project_domain_name": "Default"}
    versions = {"identity_api_version": "3", "compute_api_version": "2"}
    return openstack.connect(load_yaml_config=False, load_envvars=False, region_name="one", auth=auth, **versions)


def resolved(resource: R, among: Sequence[Resource], cloud: Cloud, *, for_apply: bool = False) -> R:
    """Return a resource that does not become several, resolved among those of its spec."""
    (found,) = resolve(resource, Context(resources=among, cloud=cloud, for_apply=for_apply))
    assert isinstance(found, type(resource))
    return found


def declared_mistakes(*resources: Resource) -> list[Mistake]:
    """Return what is wrong with the resources of a spec by rules that need no cloud."""
    context = Context(resources=resources, cloud=NoCloud.as_cloud())
    return [mistake for each in resources if supports(each, ListsMistakes) for mistake in each.list_mistakes(context)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long before the second attempt, nor for a second that only a real Keystone counts."""
    monkeypatch.setattr(executor, "PAUSE", 0.001)
    monkeypatch.setattr(cloud, "PAUSE", 0.001)
    monkeypatch.setattr(service, "PAUSE", 0.001)
    # keystoneauth1 5.x, session.py: it uses the module only to sleep before a retry, 7.5 s in all for one request
    monkeypatch.setattr("keystoneauth1.session.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(user, "REVOKED_FOR", 0.0)
    monkeypatch.setenv("OPENSTACK_PREP_REQUEST_LOG", "off")


@pytest.fixture
def services() -> Iterator[requests_mock.Mocker]:
    """The services, with Keystone's login and all version documents in place."""
    numbers = itertools.count()
    with requests_mock.Mocker() as mocker:
        versions = {"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": IDENTITY}]}}
        mocker.get(IDENTITY, json=versions)
        nova: dict[str, Any] = {"id": "v2.1", "status": "CURRENT", "version": "2.96", "min_version": "2.1"}
        nova |= {"links": [{"rel": "self", "href": "http://nova/v2.1"}]}
        mocker.get("http://nova/", json={"versions": [nova]})
        mocker.get("http://nova/v2.1", json={"version": nova})
        heat = {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": "http://heat/v1/"}]}
        mocker.get("http://heat/", json={"versions": [heat]})
        mocker.post(
            f"{IDENTITY}/auth/tokens",
            json=token(),
            headers={"X-Subject-Token": f"token-{next(numbers)}"},
            status_code=201,
        )
        # every plan of a whole spec asks which projects carry its tag
        mocker.get(f"{IDENTITY}/projects?tags=openstack-prep%3Alab", json={"projects": []})
        nothing_to_lose(mocker)
        default_group(mocker)
        yield mocker


def nothing_to_lose(services: requests_mock.Mocker) -> None:
    """Let nothing of others depend on what is deleted: the lists that are only read for that are empty."""
    for path in ("rbac-policies", "security-group-rules", "subnets", "ports", "floatingips", "subnetpools"):
        services.get(f"http://neutron/v2.0/{path}", json={path.replace("-", "_"): []})
    services.get("http://neutron/v2.0/qos/policies", json={"policies": []})
    for path in ("snapshots", "backups", "groups"):
        services.get(f"{ENDPOINTS['block-storage']}/{path}/detail", json={path: []})
    services.get(f"{ENDPOINTS['image']}/v2/metadefs/namespaces", json={"namespaces": []})
    services.get("http://neutron/v2.0/extensions", json={"extensions": []})
    services.get(f"{ENDPOINTS['compute']}/os-keypairs?user_id=u1", json={"keypairs": []})
    services.get(f"{ENDPOINTS['compute']}/servers/detail?all_tenants=True", json={"servers": []})
    services.get(f"{ENDPOINTS['compute']}/os-server-groups", json={"server_groups": []})
    services.get(f"{IDENTITY}/projects?parent_id=p1", json={"projects": []})
    services.get(f"{IDENTITY}/OS-TRUST/trusts", json={"trusts": []})
    for path in ("credentials", "role_assignments", "users/u1/application_credentials", "users/u1/groups"):
        services.get(f"{IDENTITY}/{path}", json={path.rpartition("/")[2]: []})


LEASE = "http://neutron/v2.0/security-groups/default-group"


def default_group(services: requests_mock.Mocker, description: str = "Default security group") -> dict[str, Any]:
    """Let Neutron have the group that leases lie in, of which it counts the revisions; return the group."""
    kept: dict[str, Any] = {
        "id": "default-group",
        "name": "default",
        "description": description,
        "revision_number": 1,
        "project_id": "project",
        "security_group_rules": [],
        "tags": [],
    }

    def put(request: Any, context: Any) -> dict[str, Any]:
        if request.headers["If-Match"] != f"revision_number={kept['revision_number']}":
            context.status_code = 412
            return {"NeutronError": {"type": "", "message": "Constrained to another revision", "detail": ""}}
        kept["description"] = request.json()["security_group"]["description"]
        kept["revision_number"] += 1
        return {"security_group": dict(kept)}

    def listed(request: Any, context: Any) -> dict[str, Any]:
        (project_id,) = request.qs.get("project_id", ["project"])
        return {"security_groups": [{**kept, "project_id": project_id}]}

    services.get("http://neutron/v2.0/security-groups", json=listed)
    services.get(LEASE, json=lambda *_: {"security_group": dict(kept)})
    services.put(LEASE, json=put)
    return kept


@pytest.fixture
def run(services: requests_mock.Mocker) -> CloudRun:
    return CloudRun(Cloud(connection()), OwnershipTag("lab"))


CLOUDS = f"""
clouds:
  lab:
    region_name: one
    compute_api_version: "2"
    identity_api_version: "3"
    auth:
      auth_url: {IDENTITY}
      username: admin
      password: admin-password
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
  other:
    auth: {{auth_url: {IDENTITY}}}
"""


@pytest.fixture
def clouds_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only clouds.yaml there is."""
    path = tmp_path / "clouds.yaml"
    path.write_text(CLOUDS)
    for name in ("OS_CLOUD", "OS_AUTH_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def flavors(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """The flavors of a Nova that remembers what it is told."""
    kept: list[dict[str, Any]] = []
    nova = ENDPOINTS["compute"]

    def create(request: Any, _: Any) -> dict[str, Any]:
        kept.append({"id": f"f{len(kept) + 1}", "os-flavor-access:is_public": True} | request.json()["flavor"])
        return {"flavor": kept[-1]}

    def drop(request: Any, context: Any) -> str:
        kept[:] = [each for each in kept if each["id"] != request.path.rpartition("/")[2]]
        context.status_code = 204
        return ""

    services.get(f"{nova}/flavors/detail", json=lambda *_: {"flavors": kept})
    services.get(re.compile(f"{nova}/flavors/[^/]+/os-extra_specs$"), json={"extra_specs": {}})
    services.post(f"{nova}/flavors", json=create)
    services.delete(re.compile(f"{nova}/flavors/.*"), text=drop)
    return kept


@pytest.fixture
def stored() -> Callable[[str, str], None]:
    """Compare a text with a file of data/; with OPENSTACK_PREP_STORE=1 write the file instead."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "data" / name
        if os.environ.get("OPENSTACK_PREP_STORE"):
            path.write_text(text + "\n")
        assert text + "\n" == path.read_text()

    return compare


@pytest.fixture
def wording(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredTexts]:
    """Compare texts with those that are stored for the test."""
    compared = StoredTexts(request.path, request.node.name, tmp_path)
    yield compared
    compared.end()


def port_row(**fields: Any) -> dict[str, Any]:
    """Return a port with all the fields that Neutron always gives, and these."""
    return {
        "name": "",
        "description": "",
        "tags": [],
        "network_id": "n1",
        "mac_address": "fa:16:3e:00:00:01",
        "device_id": "",
        "device_owner": "",
        "fixed_ips": [],
        "security_groups": [],
        "allowed_address_pairs": [],
        "revision_number": 1,
    } | fields


def subnet_row(**fields: Any) -> dict[str, Any]:
    """Return a subnet with all the fields that Neutron always gives, and these."""
    return {
        "name": "",
        "description": "",
        "network_id": "n1",
        "cidr": "10.0.0.0/24",
        "gateway_ip": None,
        "allocation_pools": [],
        "dns_nameservers": [],
        "host_routes": [],
    } | fields


def failure(status: int, message: str = "no") -> dict[str, Any]:
    """Return what a service answers to a request it refuses, as requests-mock takes it."""
    body = {"error": {"message": message, "code": status}}
    headers = {"Content-Type": "application/json"}
    if status == 404:  # a proxy's has none
        headers["X-Openstack-Request-Id"] = "req-0"
    return {"status_code": status, "json": body, "headers": headers}


def sent(services: requests_mock.Mocker) -> list[str]:
    """Return what was asked so far, without logins, version documents and leases: "GET /v3/users?name=x"."""
    return [
        f"{request.method} {request.path}" + (f"?{request.query}" if request.query else "")
        for request in services.request_history
        if not request.path.endswith("/auth/tokens")
        and not (request.path.startswith("/v2.0/security-groups") and "default" in request.url)
        and f"{request.scheme}://{request.netloc}{request.path}" not in BARE
    ]


BARE = {"http://heat/", "http://keystone/v3", "http://nova/v2.1", "http://nova/", "http://nova"}


EMPTY = (
    "networks subnets routers floatingips security_groups ports images stacks keypairs server_groups flavors servers "
    "volumes role_assignments roles users projects application_credentials trunks snapshots backups rbac_policies "
    "security_group_rules subnetpools address_groups policies groups credentials trusts namespaces"
    " address_scopes software_configs"
)


@pytest.fixture
def empty_cloud(services: requests_mock.Mocker) -> requests_mock.Mocker:
    """The services of a cloud in which nothing stands: every list is empty, and all quotas are those by default."""
    nothing: dict[str, Any] = {plural: [] for plural in EMPTY.split()}
    glance = {"id": "v2.16", "status": "CURRENT", "links": [{"rel": "self", "href": "http://glance/v2/"}]}
    services.get("http://glance/", json={"versions": [glance]})
    for place in ("neutron/v2.0", "nova/v2.1", "glance/v2", "cinder/v3", "heat/v1/admin-project"):
        services.get(re.compile(f"^http://{place}/.+"), json={**nothing, "quota_set": {}, "quota": {}})
    services.head(re.compile("^http://swift/v1/"), **failure(404))
    services.get(re.compile(f"^{IDENTITY}/(projects|users|roles|role_assignments|credentials|OS-TRUST)"), json=nothing)
    default_group(services)
    return services


def without(service_type: str) -> dict[str, Any]:
    """Return Keystone's answer to a login at a cloud that lacks a service."""
    answer = token()
    answer["token"]["catalog"] = [each for each in answer["token"]["catalog"] if each["type"] != service_type]
    return answer
