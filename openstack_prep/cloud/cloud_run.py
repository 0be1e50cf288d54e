"""A cloud during one run: the acting users, and what was read and created."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast

from openstack_prep.base.errors import CloudError, LoginBlocked, NotAllowed, NotUnique
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Key, OwnershipTag, Resource
from openstack_prep.core.run import AnswerCache, Run, query

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud  # with openstacksdk, which reading a spec does not need

DECLARE_USER = (
    "declare a user with a password and a role in it, or set clouds: tenant: to an entry that is scoped to it"
)
NO_TRUSTS = (
    "Heat creates a trust for each new stack (unless its deferred_auth_method is not trusts, the default), and "
    "Keystone refuses trusts to application credentials, unrestricted ones included since the fix of CVE-2026-43000"
)
"""Source: Heat 27.0.1, engine/stack.py; Keystone 30.0.0, api/trusts.py: the operator may allow it by
allow_insecure_application_credential_trust_escalation, which nobody else can read."""
BY_PASSWORD = "create the stack by an entry with the user's password (--os-cloud, or clouds: tenant:)"


@dataclass(frozen=True)
class Actor:
    """A user of the spec who acts in a project, as soon as all its ``roles`` there exist.

    A token from before would lack the later roles. ``user`` is bare: it only names the user.
    """

    user: Resource
    password: Secret
    user_domain: str
    project: Resource | None = None
    roles: tuple[Resource, ...] = ()


class CloudRun(Run):
    """A cloud during one run.

    ``admin`` is the given connection. ``tenant`` is a connection scoped to the project itself: an entry of clouds.yaml,
    or the user whom the spec declares (``actors``, by the key of the project). The other arguments are those of a run.
    """

    def __init__(
        self,
        admin: Cloud,
        ownership: OwnershipTag,
        *,
        tenant: Cloud | None = None,
        actors: Mapping[Key | None, Actor] | None = None,
        homes: Sequence[Resource | None] = (),
        progress: Callable[[Key, int, int | None, int | None], None] = lambda key, done, total, unpacked: None,
    ) -> None:
        super().__init__(ownership, homes=homes, progress=progress)
        self.admin = admin
        self._tenant = tenant
        self._actors = actors or {}
        self._logins = AnswerCache()  # by the key of the user and the id of the project

    def _again(self) -> Self:
        other = type(self)(self.admin, self.ownership, tenant=self._tenant, actors=self._actors, homes=self.homes)
        other._logins = self._logins
        return other

    def in_region(self, region: str) -> Self:
        """Return the same run in another region of the cloud, which shares only Keystone with this one."""
        admin, tenant = self.admin.own.in_region(region), self._tenant and self._tenant.own.in_region(region)
        other = type(self)(admin, self.ownership, tenant=tenant, actors=self._actors, homes=self.homes)
        other.known = self.known
        return other

    # --- who acts -------------------------------------------------------------------------

    def find_project_id(self, project: Resource | None) -> str | None:
        """Return a project's id; None names the project that the connection itself is scoped to."""
        return (self.admin.project_id or None) if project is None else self.find_id(project)

    def find_tenant(self, project: Resource | None) -> Cloud | None:
        """Return the connection scoped to a project, if one is available at this moment."""
        if self._has_entry(project):
            return self._tenant
        actor = self._actors.get(project.key if project else None)
        if actor is None:
            own = project is None or self.find_project_id(project) == self.admin.project_id
            return self.admin if own else None
        project_id = self._workplace(actor)
        return self._logged_in(actor, project_id) if project_id else None

    def actor(self, project: Resource | None) -> Actor | None:
        """Return the spec's user who acts in a project; None if a connection's own user acts."""
        return None if self._has_entry(project) else self._actors.get(project.key if project else None)

    def acting_user(self, project: Resource | None) -> Resource | None:
        """Return the user of the spec who acts in a project; None if it is a connection's own."""
        actor = self.actor(project)
        return actor.user if actor else None

    @property
    def entry(self) -> Cloud | None:
        """The given connection for a project's own work."""
        return self._tenant

    def _has_entry(self, project: Resource | None) -> bool:
        """Whether the given connection is scoped to a project.

        Its requests name no project, so those for another project would go to its own.
        """
        project_id = self.find_project_id(project) if self._tenant else None
        return self._tenant is not None and project_id is not None and project_id == self._tenant.project_id

    def tenant(self, project: Resource | None) -> Cloud:
        """Return the connection scoped to a project; raises NotAllowed if there is none."""
        found = self.find_tenant(project)
        if found is None:
            if refused := self.refused_login(project):
                raise refused
            raise NotAllowed(f"no user can log in to {project.key if project else 'the project'}: {DECLARE_USER}")
        return found

    def refused_login(self, project: Resource | None) -> NotAllowed | None:
        """Return why the spec's user cannot log in to a project; None if that is unknown, or the user may."""
        actor = self.actor(project)
        project_id = self._workplace(actor) if actor else None
        return self._refusal(actor, project_id) if actor and project_id else None

    def has_tenant(self, project: Resource | None) -> bool:
        """Whether there is a connection scoped to a project, or a user of the spec who can log in when it exists."""
        return self.actor(project) is not None or self.find_tenant(project) is not None

    def creator_of(self, project: Resource | None) -> tuple[Cloud, dict[str, str]]:
        """Return the connection that creates network resources in a project, and the owner fields for their body."""
        tenant = self.find_tenant(project)
        if tenant is not None:
            return tenant, {}
        return self.admin, {"project_id": self.id(cast(Resource, project))}

    def logs_in(self, actor: Actor) -> bool:
        """Whether a user's password is the known one, as far as Keystone tells: it does not test that of a locked user.

        One attempt per run: services lock users out after several. An acting user logs in to its project anyway, if it
        can.
        """
        mine = (other for other in self._actors.values() if other.user.key == actor.user.key)
        project_id = next(filter(None, map(self._workplace, mine)), "")
        refused = self._refusal(actor, project_id)
        return refused is None or isinstance(refused, LoginBlocked)

    def log_out(self, user: Resource) -> None:
        """Forget the result of a user's logins; its password or its right to log in has changed."""
        self._logins.forget(*(name for name in self._logins.names() if cast(tuple[Key, str], name)[0] == user.key))

    def _workplace(self, actor: Actor) -> str | None:
        """Return the id of the project in which an actor can work by now."""
        if not actor.password.ready or None in map(self.look, actor.roles):
            return None
        if actor.project is None:
            return self.admin.project_id
        where = [actor.project, *actor.project.references()]  # the project and its domain
        if not all(found and found.values.get("enabled") for found in map(self.look, where)):
            return None
        return self.id(actor.project)

    def _logged_in(self, actor: Actor, project_id: str = "") -> Cloud | None:
        """Return the connection of a user, requested once; None if the user may not log in."""
        try:
            return self._login(actor, project_id)
        except NotAllowed:
            return None

    def _refusal(self, actor: Actor, project_id: str) -> NotAllowed | None:
        """Return why Keystone refuses the login of a user, requested once; None if the user may log in."""
        try:
            self._login(actor, project_id)
        except NotAllowed as error:
            return error
        return None

    def _login(self, actor: Actor, project_id: str) -> Cloud:
        def log_in() -> Cloud:
            user, domain = actor.user.name, actor.user_domain
            own = self.admin.as_user(
                username=user, password=actor.password, user_domain=domain, project_id=project_id or None
            )
            return own.authenticate()

        return self._logins.once((actor.user.key, project_id), log_in)


class Identified(Protocol):
    """A record of a resource with an id."""

    @property
    def id(self) -> str: ...


M = TypeVar("M", bound=Raw | Identified)


def only_one(found: Iterable[M], what: str) -> M | None:
    """Return the only match of a name, or None; two are an error that names both ids."""
    matches = list(found)
    if len(matches) > 1:
        ids = ", ".join(str(match["id"]) if isinstance(match, Mapping) else match.id for match in matches)
        raise NotUnique(f"{what}: {len(matches)} resources have this name ({ids}); rename or delete one of them")
    return matches[0] if matches else None


# --- lists that the lease and the kinds share -------------------------------------------


@query
def in_project(run: CloudRun, collection: str, member: str, project_id: str) -> Sequence[Values]:
    """Return all Neutron resources of a kind in a project, such as ("security-groups", "security_group")."""
    listed = run.admin.network.list(f"/{collection}", f"{member}s", project_id=project_id)
    refuse_others(f"GET network/{collection}", listed, "project_id", project_id)
    return listed


def refuse_others(asked: str, listed: Iterable[Raw], field: str, project_id: str) -> None:
    """Raise CloudError if a list of one project has resources of others: what is in between drops queries.

    Those of a spec with the same name in another project would count as duplicates of this project's, and be deleted.
    """
    if other := next((raw[field] for raw in listed if raw.get(field) not in (None, project_id)), None):
        what = f"the answer lists resources of project {other}, although those of {project_id} were asked for"
        raise CloudError(f"{asked}: {what}; check what is in front of the service: it ignores queries")
