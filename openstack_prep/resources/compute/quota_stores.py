"""Where services store quotas, how they name them, and how much of each quota is free.

Source: Compute API and Block Storage API "os-quota-sets", Networking API "quotas" (details: limit, in use and
reserved). A limit of -1 means unlimited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from openstack_prep.base.raw import Raw

if TYPE_CHECKING:
    from openstack_prep.cloud.cloud_run import CloudRun
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.cloud.service import Service

UNLIMITED = -1
EACH = ("server_group_members", "per_volume_gigabytes", "router_routes")  # limits per resource, without a usage
_DEFAULT_GROUP = {"security_groups": 1, "security_group_rules": 4}  # Neutron creates it on the first request for groups
_UNITS = {"ram": " MiB", "gigabytes": " GiB", "per_volume_gigabytes": " GiB"}
_OPTIONS = {"security_groups": "secgroups", "security_group_rules": "secgroup-rules"}
"""Options of ``openstack quota set`` whose names differ from the names of the quotas."""


class Store(NamedTuple):
    """The quotas of one service, with the names that the service uses for them."""

    type: str
    service: Callable[[Cloud], Service]
    path: str
    detail: str
    defaults: str
    envelope: str
    names: Mapping[str, str]


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


COMPUTE = Store(
    "compute",
    attrgetter("compute"),
    "/os-quota-sets/{}",
    "/os-quota-sets/{}/detail",
    "/os-quota-sets/{}/defaults",
    "quota_set",
    _same(
        "cores",
        "instances",
        "ram",
        "key_pairs",
        "metadata_items",
        "server_groups",
        "server_group_members",
    ),
)
NETWORK = Store(
    "network",
    attrgetter("network"),
    "/quotas/{}",
    "/quotas/{}/details.json",
    "/quotas/{}/default",
    "quota",
    {
        "floating_ips": "floatingip",
        "networks": "network",
        "ports": "port",
        "rbac_policies": "rbac_policy",
        "routers": "router",
        "router_routes": "router_route",
        "security_groups": "security_group",
        "security_group_rules": "security_group_rule",
        "subnets": "subnet",
        "subnet_pools": "subnetpool",
        "trunks": "trunk",
    },
)
BLOCK_STORAGE = Store(
    "block-storage",
    attrgetter("volume"),
    "/os-quota-sets/{}",
    "/os-quota-sets/{}?usage=True",
    "/os-quota-sets/{}/defaults",
    "quota_set",
    _same(
        "volumes",
        "snapshots",
        "gigabytes",
        "per_volume_gigabytes",
        "backups",
        "backup_gigabytes",
        "groups",
    ),
)
STORES = (COMPUTE, NETWORK, BLOCK_STORAGE)


def stores_in(cloud: Cloud) -> list[Store]:
    """Return the stores whose services exist in the cloud, which may lack block storage."""
    return [store for store in STORES if cloud.has(store.type)]


class QuotaUsage(NamedTuple):
    """One quota of a project: its limit, and the used and reserved amounts."""

    limit: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    def allows(self, number: int) -> bool:
        return self.limit == UNLIMITED or self.limit - self.used >= number


def store_of(name: str) -> Store:
    """Return the store of a quota; names that are not listed belong to volume types."""
    return next((store for store in STORES if name in store.names), BLOCK_STORAGE)


def read(cloud: Cloud, store: Store, project_id: str, wanted: Raw | None = None) -> Raw:
    """Return a project's quotas of one service, in the service's own names.

    If they are known to be as ``wanted``, these alone are returned, without their usage, which only a change needs.
    """
    known = cloud.known_limits(store.type, project_id) if wanted else {}
    if wanted and all(name in known and known[name] == limit for name, limit in wanted.items()):
        return {name: {"limit": limit} for name, limit in wanted.items()}
    answer: Raw = store.service(cloud).get(store.detail.format(project_id))[store.envelope]
    return answer


def read_usage(run: CloudRun, store: Store, project_id: str) -> Raw:
    """Return a project's quotas of one service with their usage, as ``read`` does, requested once per run."""
    return run.read_once((read_usage, store.type, project_id), lambda: read(run.admin, store, project_id))


def read_defaults(run: CloudRun, store: Store) -> Raw:
    """Return the quotas of a new project of one service, as ``read`` does, requested once per run."""

    def read_once() -> Raw:
        limits = store.service(run.admin).get(store.defaults.format(run.admin.project_id))[store.envelope]
        return {name: {"limit": limit, "in_use": 0} for name, limit in limits.items() if isinstance(limit, int)}

    return run.read_once((read_defaults, store.type), read_once)


def has_quota(run: CloudRun, name: str) -> bool:
    """Whether the service of a quota has it, by the quotas of a new project."""
    return quota_usage(name, read_defaults(run, store_of(name))) is not None


def quota_usage(name: str, answer: Raw) -> QuotaUsage | None:
    """Return one quota by its name in a spec, out of the result of ``read``; None if the service has no such quota."""
    theirs = answer.get(store_of(name).names.get(name, name))
    if not isinstance(theirs, dict):
        return None
    used = 0 if name in EACH else theirs.get("in_use", theirs.get("used", 0)) + theirs.get("reserved", 0)
    return QuotaUsage(theirs["limit"], max(used, _DEFAULT_GROUP.get(name, 0)))


def unit(name: str) -> str:
    """Return the unit of a quota's number."""
    return _UNITS.get(name, "") or (_UNITS["gigabytes"] if name.startswith("gigabytes_") else "")


def set_command(name: str, limit: int, project: str) -> list[str]:
    """Return the command that raises a quota, as a list of arguments."""
    what, _, kind = name.partition("_")
    if what in ("volumes", "gigabytes") and kind:
        options = ["--volume-type", kind, f"--{what}", str(limit)]
    else:
        options = ["--" + _OPTIONS.get(name, name).replace("_", "-"), str(limit)]
    return ["openstack", "quota", "set", *options, project]
