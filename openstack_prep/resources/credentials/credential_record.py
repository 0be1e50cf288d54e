"""Application credentials as Keystone stores them, and the credentials that belong to one declaration."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from openstack_prep.base.fields import timestamp
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class CredentialRecord:
    """An application credential without its secret, which Keystone reports only once."""

    id: str
    name: str
    description: str
    project_id: str
    user_id: str
    roles: frozenset[str]
    """The names of its roles."""
    expires_at: str | None
    left: timedelta | None = field(compare=False)
    """How long it was valid when it was read, by the cloud's clock; None if it does not expire."""
    unrestricted: bool
    access_rules: frozenset[str]
    """Such as "GET compute /v2.1/servers"."""

    @classmethod
    def read(cls, raw: Raw, now: datetime) -> CredentialRecord:
        rules, end = raw.get("access_rules") or (), raw["expires_at"]
        return cls(
            id=raw["id"],
            name=raw["name"],
            description=raw["description"] or "",
            project_id=raw["project_id"],
            user_id=raw["user_id"],
            roles=frozenset(role["name"] for role in raw["roles"]),
            expires_at=end,
            left=None if end is None else datetime.fromisoformat(timestamp(end)) - now,
            unrestricted=bool(raw["unrestricted"]),
            access_rules=frozenset(f"{rule['method']} {rule['service']} {rule['path']}" for rule in rules),
        )

    @property
    def has_ended(self) -> bool:
        return self.left is not None and self.left <= timedelta()


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What exists in Keystone and in clouds.yaml for one declared credential."""

    live: CredentialRecord | None
    """The credential whose id is in the entry."""
    mine: tuple[CredentialRecord, ...]
    """All credentials with our ownership tag and this name."""
    lost: tuple[CredentialRecord, ...]
    """Those of ``mine`` whose entry is in another file, so that somebody may use them."""
    kept: str | None
    """Id of the predecessor, which has its own entry."""
    begun: bool
    """Whether the entry only announces a credential."""
    holder: str
    """The user and the project that they are for, in words."""
    role_changes: str = ""
    """Which roles the credential in use lacks or has in excess; empty if its roles do not differ."""

    @property
    def keeps_one(self) -> bool:
        """Whether the predecessor still exists."""
        return self.kept in {credential.id for credential in self.mine}


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether the user who acts in a project has credentials there that the spec manages."""
    return any(run.ownership.owns(credential.description) for credential in in_project(run, project))


def in_project(run: CloudRun, project: Resource | None) -> list[CredentialRecord]:
    """Return the credentials in a project of the user who acts there."""
    return [credential for credential in held(run, project) if credential.project_id == run.find_project_id(project)]


def held(run: CloudRun, project: Resource | None) -> list[CredentialRecord]:
    """Return the credentials, for any project, of the user who acts in a project."""
    cloud, user_id = holder_in(run, project)
    return of_user(run, cloud, user_id) if user_id else []


def holder_in(run: CloudRun, project: Resource | None) -> tuple[Cloud, str | None]:
    """Return a connection that may list the credentials of the user who acts in a project, and the user's id.

    The id is None if the user does not exist.
    """
    own, user = run.find_tenant(project), run.acting_user(project)
    if own is not None:
        return own, own.user_id
    return run.admin, run.find_id(user) if user else None


def holder_text(run: CloudRun, project: Resource | None) -> str:
    """Return whose the credentials in a project are: the user who acts there, and the project."""
    own, user = run.find_tenant(project) or run.admin, run.acting_user(project)
    return f"user {user.name if user else own.user[0]} in project {project.name if project else own.project_name}"


def path(user_id: str) -> str:
    return f"/users/{user_id}/application_credentials"


@query
def of_user(run: CloudRun, cloud: Cloud, user_id: str) -> list[CredentialRecord]:
    """Return the application credentials of a user, in all projects."""
    listed = cloud.identity.list(path(user_id), "application_credentials")
    now = cloud.now()
    return [CredentialRecord.read(each, now) for each in listed]
