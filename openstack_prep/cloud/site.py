"""A cloud during one run: who acts there, beside what was read and made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar, cast

from openstack_prep.base.errors import NotAllowed, NotUnique
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Key, Mark, Resource
from openstack_prep.core.run import Run


@dataclass(frozen=True)
class Actor:
    """A user of the spec as whom a project's own work is done, once all its ``roles`` there exist.

    A token got earlier would lack the roles that came later.  ``user`` is bare: it only names them.
    """

    user: Resource
    password: Secret
    user_domain: str
    project: Resource | None = None
    roles: tuple[Resource, ...] = ()


class Site(Run):
    """A cloud during one run.

    ``admin`` is the connection we were given.  ``tenant`` is one scoped to the project itself: an
    entry of clouds.yaml, or the user whom the spec makes (``actors``, by the key of the project).
    The other arguments are those of a run.
    """

    def __init__(
        self,
        admin: Cloud,
        mark: Mark,
        *,
        tenant: Cloud | None = None,
        actors: Mapping[Key | None, Actor] | None = None,
        homes: Sequence[Resource | None] = (),
        progress: Callable[[Key, int, int | None, int | None], None] = lambda key, done, total, unpacked: None,
    ) -> None:
        super().__init__(mark, homes=homes, progress=progress)
        self.admin = admin
        self._tenant = tenant
        self._actors = actors or {}
        self._logins: dict[tuple[Key, str], Future[Cloud]] = {}

    def _again(self) -> Self:
        other = type(self)(self.admin, self.mark, tenant=self._tenant, actors=self._actors, homes=self.homes)
        other._logins = self._logins
        return other

    # --- who acts -------------------------------------------------------------------------

    def find_project_id(self, project: Resource | None) -> str | None:
        """Return a project's id; None names the project that the connection itself is scoped to."""
        return self.admin.project_id if project is None else self.find_id(project)

    def find_tenant(self, project: Resource | None) -> Cloud | None:
        """Return the connection scoped to a project, if one can be had at this moment."""
        actor = self._actors.get(project.key if project else None)
        if self._tenant is not None:
            return self._tenant
        if actor is None:
            own = project is None or self.find_project_id(project) == self.admin.project_id
            return self.admin if own else None
        project_id = self._workplace(actor)
        return self._logged_in(actor, project_id) if project_id else None

    def actor(self, project: Resource | None) -> Actor | None:
        """Return who of the spec acts in a project; None when that is a connection's own user."""
        return None if self._tenant else self._actors.get(project.key if project else None)

    def acting_user(self, project: Resource | None) -> Resource | None:
        """Return the user of the spec who acts in a project; None when it is a connection's own."""
        actor = self._actors.get(project.key if project else None)
        return actor.user if actor and self._tenant is None else None

    def tenant(self, project: Resource | None) -> Cloud:
        """Return the connection scoped to a project; raises NotAllowed when there is none."""
        found = self.find_tenant(project)
        if found is None:
            raise NotAllowed(
                f"no one to act within {project.key if project else 'the project'}: give the spec a user "
                "with a password and a role there, or name an entry of clouds.yaml under clouds: tenant:"
            )
        return found

    def worker(self, project: Resource | None) -> tuple[Cloud, dict[str, str]]:
        """Return who makes network things in a project, and what the body must say of their owner."""
        tenant = self.find_tenant(project)
        if tenant is not None:
            return tenant, {}
        return self.admin, {"project_id": self.id(cast(Resource, project))}

    def logs_in(self, actor: Actor) -> bool:
        """Whether a user's password is the one we know.

        One attempt a run: services lock users out after some.  Who acts in a project logs in there
        anyway, if it can.
        """
        mine = (other for other in self._actors.values() if other.user.key == actor.user.key)
        project_id = next(filter(None, map(self._workplace, mine)), "")
        return self._logged_in(actor, project_id) is not None

    def log_out(self, user: Resource) -> None:
        """Forget how a user's logins went; its password or its right to log in has changed."""
        with self._lock:
            for login in [login for login in self._logins if login[0] == user.key]:
                del self._logins[login]

    def _workplace(self, actor: Actor) -> str | None:
        """Return the id of the project in which an actor can work by now."""
        if not actor.password.ready or None in map(self.look, actor.roles):
            return None
        if actor.project is None:
            return self.admin.project_id
        project = self.look(actor.project)
        return project.id if project and project.values.get("enabled") else None

    def _logged_in(self, actor: Actor, project_id: str = "") -> Cloud | None:
        """Return the connection of a user, asked for once; None when the user may not log in."""
        try:
            return self._shared(
                self._logins,
                (actor.user.key, project_id),
                lambda: self.admin.as_user(
                    username=actor.user.name,
                    password=actor.password,
                    user_domain=actor.user_domain,
                    project_id=project_id or None,
                ).authenticate(),
            )
        except NotAllowed:
            return None


class Identified(Protocol):
    """A record of something that has an id."""

    @property
    def id(self) -> str: ...


M = TypeVar("M", bound=Raw | Identified)


def only_one(found: Iterable[M], what: str) -> M | None:
    """Return the one match of a name, or None; two are an error that names both ids."""
    matches = list(found)
    if len(matches) > 1:
        ids = ", ".join(str(match["id"]) if isinstance(match, Mapping) else match.id for match in matches)
        raise NotUnique(f"{what}: {len(matches)} have that name ({ids}); rename or delete one")
    return matches[0] if matches else None
