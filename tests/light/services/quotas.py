"""The quotas of a project: Nova's, Cinder's and Neutron's, with what is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.light.apis import COMPUTE, NETWORK, VOLUME
from tests.light.state import Cloud
from tests.light.table import Table
from tests.light.web import NOTHING, Answer, Api, Refused, Request

NOVA = {
    "cores": 20,
    "instances": 10,
    "key_pairs": 100,
    "metadata_items": 128,
    "ram": 51200,
    "server_group_members": 10,
    "server_groups": 10,
}
CINDER = {
    "volumes": 10,
    "per_volume_gigabytes": -1,
    "snapshots": 10,
    "gigabytes": 1000,
    "backups": 10,
    "backup_gigabytes": 1000,
    "volumes___DEFAULT__": -1,
    "gigabytes___DEFAULT__": -1,
    "snapshots___DEFAULT__": -1,
    "groups": 10,
}
NEUTRON = {
    "network": 100,
    "subnet": 100,
    "subnetpool": -1,
    "port": 500,
    "router_route": 30,
    "router": 10,
    "floatingip": 50,
    "rbac_policy": 10,
    "security_group": 10,
    "security_group_rule": 100,
    "trunk": -1,
}
TABLES: Mapping[str, Callable[[Cloud], Table]] = {
    "network": lambda cloud: cloud.networks,
    "subnet": lambda cloud: cloud.subnets,
    "port": lambda cloud: cloud.ports,
    "router": lambda cloud: cloud.routers,
    "floatingip": lambda cloud: cloud.floating_ips,
    "security_group": lambda cloud: cloud.security_groups,
    "security_group_rule": lambda cloud: cloud.rules,
    "server_groups": lambda cloud: cloud.server_groups,
}
DEFAULTS = {COMPUTE.name: NOVA, VOLUME.name: CINDER, NETWORK.name: NEUTRON}
NO_QUOTAS = {COMPUTE.name: {"force"}, VOLUME.name: {"id", "tenant_id"}, NETWORK.name: {"force"}}
"""What may stand among quotas; Cinder's client sends tenant_id.  Source: cinder/quota.py, NON_QUOTA_KEYS."""


def limits(cloud: Cloud, service: str, project_id: str) -> dict[str, int]:
    return DEFAULTS[service] | cloud.quotas.get((service, project_id), {})


def used(cloud: Cloud, name: str, project_id: str) -> int:
    return len(TABLES[name](cloud).having("project_id", project_id)) if name in TABLES else 0


def check_room(cloud: Cloud, name: str, project_id: str, more: int = 1) -> None:
    """Raise Refused if a project's Neutron quota does not allow more."""
    limit = limits(cloud, NETWORK.name, project_id)[name]
    if 0 <= limit < used(cloud, name, project_id) + more:
        raise Refused(409, f"Quota exceeded for resources: ['{name}'].", "OverQuota")


def _usage(cloud: Cloud, service: str, project_id: str, word: str) -> dict[str, object]:
    return {
        name: {"limit": limit, word: used(cloud, name, project_id), "reserved": 0}
        for name, limit in limits(cloud, service, project_id).items()
    }


def _may_see(asked: Request, project_id: str) -> None:
    if asked.caller.project_id != project_id:
        asked.only_admin()


def _write(asked: Request, service: str, project_id: str, envelope: str) -> dict[str, int]:
    given = {name: value for name, value in asked.json(envelope).items() if name not in NO_QUOTAS[service]}
    if wrong := sorted(given.keys() - DEFAULTS[service].keys()):
        raise Refused(400, f"Bad key(s) in quota set: {', '.join(wrong)}")
    if wrong := sorted(name for name, value in given.items() if type(value) is not int or value < -1):
        raise Refused(400, f"Quota limit of {', '.join(wrong)} must be an integer of -1 or more")
    key = service, project_id
    asked.cloud.quotas[key] = asked.cloud.quotas.get(key, {}) | given
    return limits(asked.cloud, service, project_id)


# --- Nova and Cinder ----------------------------------------------------------------------


def _register(api: Api, prefix: str, deleted: int) -> None:
    path, service = f"{prefix}/os-quota-sets/{{}}", api.name

    @api.on("GET", path)
    def show(asked: Request, project_id: str) -> Answer:
        _may_see(asked, project_id)
        if asked.says("usage"):
            found: dict[str, object] = _usage(asked.cloud, service, project_id, "in_use")
        else:
            found = dict(limits(asked.cloud, service, project_id))
        return Answer(200, {"quota_set": {"id": project_id} | found})

    @api.on("GET", f"{path}/detail")
    def details(asked: Request, project_id: str) -> Answer:
        _may_see(asked, project_id)
        found = _usage(asked.cloud, service, project_id, "in_use")
        return Answer(200, {"quota_set": {"id": project_id} | found})

    @api.on("GET", f"{path}/defaults")
    def defaults(_asked: Request, project_id: str) -> Answer:
        return Answer(200, {"quota_set": {"id": project_id} | DEFAULTS[service]})

    @api.on("PUT", path, admin=True)
    def change(asked: Request, project_id: str) -> Answer:
        if project_id not in asked.cloud.projects.rows:
            raise Refused(400, f"Project ID {project_id} is not a valid project.")
        return Answer(200, {"quota_set": _write(asked, service, project_id, "quota_set")})

    @api.on("DELETE", path, admin=True)
    def delete(asked: Request, project_id: str) -> Answer:
        asked.cloud.quotas.pop((service, project_id), None)
        return Answer(deleted)


_register(COMPUTE, "/v2.1", 202)
_register(VOLUME, "/v3", 200)


# --- Neutron ------------------------------------------------------------------------------

PATH = "/v2.0/quotas/{}"


@NETWORK.on("GET", "/v2.0/quotas", admin=True)
def list_quotas(asked: Request) -> Answer:
    """Answer those of all projects that differ from the defaults."""
    cloud, service = asked.cloud, NETWORK.name
    ids = asked.query.get("project_id") or [project for kind, project in cloud.quotas if kind == service]
    rows = [limits(cloud, service, each) | {"project_id": each, "tenant_id": each} for each in ids]
    return Answer(200, {"quotas": rows})


@NETWORK.on("GET", PATH)
def show_quota(asked: Request, project_id: str) -> Answer:
    _may_see(asked, project_id)
    return Answer(200, {"quota": limits(asked.cloud, NETWORK.name, project_id)})


@NETWORK.on("GET", f"{PATH}/details.json")
@NETWORK.on("GET", f"{PATH}/details")
def show_details(asked: Request, project_id: str) -> Answer:
    _may_see(asked, project_id)
    return Answer(200, {"quota": _usage(asked.cloud, NETWORK.name, project_id, "used")})


@NETWORK.on("GET", f"{PATH}/default")
def show_default(_asked: Request, _project_id: str) -> Answer:
    return Answer(200, {"quota": NEUTRON})


@NETWORK.on("PUT", PATH, admin=True)
def change_quota(asked: Request, project_id: str) -> Answer:
    return Answer(200, {"quota": _write(asked, NETWORK.name, project_id, "quota")})


@NETWORK.on("DELETE", PATH, admin=True)
def delete_quota(asked: Request, project_id: str) -> Answer:
    if asked.cloud.quotas.pop((NETWORK.name, project_id), None) is None:
        raise Refused(404, f"Quota for tenant {project_id} could not be found.", "TenantQuotaNotFound")
    return NOTHING
