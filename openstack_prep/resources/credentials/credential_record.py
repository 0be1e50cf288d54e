"""Application credentials as Keystone keeps them, and what is known of those of one declaration."""

from __future__ import annotations

from dataclasses import dataclass

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.site import Site
from openstack_prep.core.run import query


@dataclass(frozen=True, kw_only=True)
class CredentialRecord:
    """An application credential, without its secret, which Keystone tells only once."""

    id: str
    name: str
    description: str
    project_id: str
    user_id: str
    roles: frozenset[str]
    """Their names."""
    expires_at: str | None
    unrestricted: bool
    access_rules: frozenset[str]
    """Such as "GET compute /v2.1/servers"."""

    @classmethod
    def read(cls, raw: Raw) -> CredentialRecord:
        rules = raw.get("access_rules") or ()
        return cls(
            id=raw["id"],
            name=raw["name"],
            description=raw["description"] or "",
            project_id=raw["project_id"],
            user_id=raw["user_id"],
            roles=frozenset(role["name"] for role in raw["roles"]),
            expires_at=raw["expires_at"],
            unrestricted=bool(raw["unrestricted"]),
            access_rules=frozenset(f"{rule['method']} {rule['service']} {rule['path']}" for rule in rules),
        )


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What there is in Keystone and in clouds.yaml for one declared credential."""

    live: CredentialRecord | None
    """The one whose id stands in the entry."""
    mine: tuple[CredentialRecord, ...]
    """All that carry our tag and its name."""
    lost: tuple[CredentialRecord, ...]
    """Those of mine by which somebody may live whose entry is elsewhere."""
    kept: str | None
    """Id of the one before, in an entry of its own."""
    begun: bool
    """Whether the entry only announces one."""
    role_changes: str = ""
    """Which roles the one in use lacks or has too many; empty when its roles do not differ."""

    @property
    def keeps_one(self) -> bool:
        """Whether the one before is still there."""
        return self.kept in {each.id for each in self.mine}


def path(user_id: str) -> str:
    return f"/users/{user_id}/application_credentials"


@query
def of_user(site: Site, cloud: Cloud, user_id: str) -> list[CredentialRecord]:
    """Return the application credentials of a user, in all projects."""
    return list(map(CredentialRecord.read, cloud.identity.list(path(user_id), "application_credentials")))
