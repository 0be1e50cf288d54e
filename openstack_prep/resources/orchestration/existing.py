"""Resources that another kind refers to by name or id, whether the spec declares them or not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from openstack_prep.base.errors import NotFound
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed
from openstack_prep.core.resource import BareReference
from openstack_prep.resources.heat.parameters import Kind
from openstack_prep.resources.heat.stacks import stack_names, stack_of
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.lists import queries

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

CLOUD_WIDE = ("flavor", "volume_type")
"""Kinds outside of projects."""


@dataclass(frozen=True, kw_only=True)
class Existing(InProject, BareReference):
    """A resource that a service finds by name or id; its key is that of the kind that declares such resources."""

    kind: ClassVar[str] = "existing"

    of: Kind
    name: str

    @property
    def key(self) -> Key:
        return Key(self.of, self.name) if self.of in CLOUD_WIDE else self.key_of(self.of, self.name)

    def find_one(self, run: CloudRun) -> Observed | None:
        cloud = run.find_tenant(self.owner) or run.admin
        raw = next(iter(self._matches(run, cloud)), None)
        return Observed(id=str(raw["id"])) if raw else None

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        cloud = run.find_tenant(self.owner) or run.admin
        if self.of == "flavor":
            return (flavor.name for flavor in queries.flavors(run))
        if self.of == "volume_type":
            return queries.volume_types(run)
        if self.of == "stack":
            return stack_names(run, self.owner)
        return (str(raw.get("name") or "") for raw in _listed(cloud, self.of))

    def _matches(self, run: CloudRun, cloud: Cloud) -> Iterable[Raw]:
        if self.of == "flavor":
            return ({"id": flavor.id} for flavor in queries.flavors(run) if self.name in (flavor.id, flavor.name))
        if self.of == "volume_type":
            return ({"id": name} for name in queries.volume_types(run) if name == self.name)
        if self.of == "keypair":
            raw = _at(cloud.compute, f"/os-keypairs/{quote(self.name, safe='')}", "keypair")
            return [{"id": raw["name"]}] if raw else []
        if self.of == "image":
            listed = cloud.image.list("/images", "images", name=self.name)
            return listed or filter(None, [_at(cloud.image, f"/images/{quote(self.name, safe='')}")])
        if self.of == "stack":
            found = stack_of(run, self.owner, self.name, elsewhere=True)
            return [found[1]] if found else []
        path, plural = f"/{self.of.replace('_', '-')}s", f"{self.of}s"
        fields = ("id", "project_id", "shared")
        named = cloud.network.list(path, plural, name=self.name, fields=fields)
        own = run.find_project_id(self.owner)
        # an administrator sees the networks of all projects, among which others may have the same name
        named = sorted(named, key=lambda raw: (raw.get("project_id") != own, not raw.get("shared")))
        return named or cloud.network.list(path, plural, id=self.name, fields=fields)


def _listed(cloud: Cloud, kind: Kind) -> Iterable[Raw]:
    """Return everything of a kind that an identity sees."""
    if kind == "keypair":
        return [raw["keypair"] for raw in cloud.compute.list("/os-keypairs", "keypairs")]
    if kind == "image":
        return cloud.image.list("/images", "images")
    return cloud.network.list(f"/{kind.replace('_', '-')}s", f"{kind}s", fields="name")


def _at(service: Any, path: str, member: str | None = None) -> Raw | None:
    try:
        answer: Raw = service.get(path)
    except NotFound:
        return None
    return answer[member] if member else answer
