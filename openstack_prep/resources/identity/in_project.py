"""Resources in a project: the base of most kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Resource
from openstack_prep.core.resource import InEachProject, scan_kind
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project

In = TypeVar("In", bound="InProject")
CURRENT = "(current project)"
"""The name of the project that the connection is scoped to, where a spec names none."""


@dataclass(frozen=True, kw_only=True)
class InProject(Resource[CloudRun], InEachProject):
    """Base of resources in a project; ``project`` None means the project that the connection is scoped to."""

    project: Name | None = None
    """Name of the project; default: the project of the spec."""
    project_domain: Name = DEFAULT_DOMAIN
    """Name of the project's domain."""

    identity: ClassVar[frozenset[str]] = frozenset({"name", "project", "project_domain"})
    needs_login: ClassVar[bool] = False
    """Whether only a user who is logged in to the project can create it: its service takes the project from the token.
    """

    @property
    def place(self) -> tuple[str, ...]:
        """The scope of resources in the same project."""
        return (self.project_domain, self.project) if self.project else ()

    @property
    def scope(self) -> tuple[str, ...]:
        return self.place

    @property
    def owner(self) -> Project | None:
        return Project(name=self.project, domain=self.project_domain) if self.project else None

    def references(self) -> Iterable[Resource]:
        return (self.owner,) if self.owner else ()

    @staticmethod
    def placing(owner: Resource | None) -> dict[str, Any]:
        """Return the fields that assign a resource to a project."""
        return {"project": owner.name, "project_domain": owner.domain} if isinstance(owner, Project) else {}

    def sibling(self, kind: type[Any], name: str, **fields: Any) -> Any:
        """Return a bare resource of the same project, to refer to."""
        return kind(name=name, project=self.project, project_domain=self.project_domain, **fields)

    def key_of(self, kind: str, name: str) -> Key:
        """Return the key of a resource in the same project, to depend on."""
        return Key(kind, name, self.place)

    def of_project(self, others: Iterable[In]) -> list[In]:
        """Return those resources that are in the same project."""
        return [each for each in others if each.place == self.place]

    @classmethod
    def by_project(cls, wanted: Sequence[Self]) -> dict[Project | None, list[Self]]:
        """Group resources by project: one list request per project."""
        groups: dict[Project | None, list[Self]] = {}
        for each in wanted:
            groups.setdefault(each.owner, []).append(each)
        return groups

    def guests(self, projects: Iterable[Project]) -> list[Key]:
        """Return the keys of projects that may use the resource, besides its own."""
        return [each.key for each in projects if each != self.owner]

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return (each.name for each, _ in scan_kind(type(self), run, self.owner))

    def mistake(self, what: str, fix: str, code: str = "", field: str = "") -> Mistake:
        return Mistake.about(self.key, what, fix, code=code, field=field)


def access(project: Project | None) -> Key:
    """Return the key that all role assignments in a project provide together.

    Resources that the project's own user creates need it.
    """
    return Key("access", project.name, project.scope) if project else Key("access", "")


def quotas_of(place: tuple[str, ...], project: str | None) -> Key:
    """Return the key of the quotas of a project: what counts against them is created once they are raised."""
    return Key("quota", project or CURRENT, place)


@dataclass(frozen=True, kw_only=True)
class ByProjectUser(InProject):
    """Base of kinds that the project's own user creates, so they come after that user's role assignments."""

    def needs(self) -> Iterable[Key]:
        return (access(self.owner), quotas_of(self.place, self.project))

    def outlives(self) -> Iterable[Key]:
        return (access(self.owner), quotas_of(self.place, self.project))


@dataclass(frozen=True, kw_only=True)
class InstallerInput(InProject):
    """Base of kinds that are the input of an installer: of what it takes of the cloud.

    It moves floating IPs away from their current ports, and boots machines from an image.
    """

    @property
    def taken(self) -> frozenset[str]:
        """Names and addresses of the floating IPs that the installer will attach."""
        raise NotImplementedError(self.kind)

    @property
    def boots(self) -> tuple[str, str] | None:
        """The name of the machines' image and the stream of their operating system, if both are chosen."""
        raise NotImplementedError(self.kind)
