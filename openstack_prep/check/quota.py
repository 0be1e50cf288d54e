"""Quotas: what is free of each is enough.

Source: Compute, Networking and Block Storage API, quota details: limit, in use and reserved.  A limit of -1
is none; that of members in a server group, and of a volume's size, is for each one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from openstack_prep.check.finding import Finding
from openstack_prep.check.need import Need, needs
from openstack_prep.check.scene import Scene
from openstack_prep.errors import CloudError, NotAllowed, NotFound
from openstack_prep.resources.quota import STORES, Store

EACH = ("server_group_members", "per_volume_gigabytes")  # limits of one thing, of which nothing is used up
DEFAULT_GROUP = {"security_groups": 1, "security_group_rules": 4}  # Neutron makes it when it is first asked for groups
UNITS = {"ram": " MiB", "gigabytes": " GiB", "per_volume_gigabytes": " GiB"}
OPTIONS = {"security_groups": "secgroups", "security_group_rules": "secgroup-rules"}
"""Options of ``openstack quota set`` that are called otherwise."""
SKIPPED = (
    "the installer fails half-way; its own check counts a machine set as one instance, leaves the bootstrap "
    "machine out, and looks at neither floating IPs nor volumes"
)


def quota(scene: Scene) -> Iterator[Finding]:
    """Yield each quota of which less is free than needed."""
    wanted = needs(scene)
    for store in STORES:
        mine = {name: need for name, need in wanted.items() if _store_of(name) is store}
        if mine:
            yield from _in_store(scene, store, mine)


def _store_of(name: str) -> Store:
    return next((store for store in STORES if name in store.names), STORES[-1])  # others are of volume types


def _in_store(scene: Scene, store: Store, wanted: Mapping[str, Need]) -> Iterator[Finding]:
    try:
        path = store.detail.format(scene.cloud.project_id)
        answer = store.service(scene.cloud).get(path)[store.envelope]
    except CloudError as error:
        names = ", ".join(f"{need.number}{_unit(name)} {name}" for name, need in wanted.items())
        hidden = isinstance(error, NotAllowed | NotFound)
        yield Finding(
            where="quota",
            what=f"could not be read: {error}",
            why=f"needed are {names}; the installer's own check " + ("is skipped, too" if hidden else "fails, too"),
            remedy=f"openstack quota show --usage {scene.cloud.project_id}  # as an administrator",
            level="warning" if hidden else "error",
        )
        return
    for name, need in wanted.items():
        theirs = answer.get(store.names.get(name, name))
        if isinstance(theirs, dict):
            yield from _compared(scene, name, need, theirs)


def _compared(scene: Scene, name: str, need: Need, quota: Mapping[str, Any]) -> Iterator[Finding]:
    limit = quota["limit"]
    used = 0 if name in EACH else quota.get("in_use", quota.get("used", 0)) + quota.get("reserved", 0)
    used = max(used, DEFAULT_GROUP.get(name, 0))
    if limit == -1 or limit - used >= need.number:
        return
    unit = _unit(name)
    words = ["openstack", "quota", "set", *_options(name, used + need.number), scene.cloud.project_id]
    yield Finding(
        where=f"quota.{name}",
        what=f"{need.number}{unit} are needed ({need.parts}), {max(0, limit - used)} of {limit}{unit} are free",
        why=SKIPPED,
        remedy=f"{shlex.join(words)}  # as an administrator; or quota: in the spec, which else sets it back",
    )


def _unit(name: str) -> str:
    return UNITS.get(name, "") or (UNITS["gigabytes"] if name.startswith("gigabytes_") else "")


def _options(name: str, limit: int) -> list[str]:
    what, _, kind = name.partition("_")
    if what in ("volumes", "gigabytes") and kind:
        return ["--volume-type", kind, f"--{what}", str(limit)]
    return ["--" + OPTIONS.get(name, name).replace("_", "-"), str(limit)]
