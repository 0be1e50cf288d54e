"""What one run knows of the cloud: who acts, what was read, and the ids of what was found or made.

Everything read is read once, by whichever thread comes first; the others wait for its answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from openstack_prep.base.errors import NotAllowed, NotFound, NotUnique
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Key, Mark, Observed, Resource
from openstack_prep.core.wave import Wave

T = TypeVar("T")
P = ParamSpec("P")


class Reader(Protocol):
    """What keeps the answers of queries: a site, or what stands on one."""

    def once(self, name: Hashable, read: Callable[[], T]) -> T: ...


R = TypeVar("R", bound=Reader)


def query(read: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Have a function of a site read once for the same arguments; who asks meanwhile waits for the answer.

    The function itself is the name under which the answer is kept, so that no two lists of different
    fields can be taken for each other.
    """

    @wraps(read)
    def ask(reader: R, /, *args: P.args, **options: P.kwargs) -> T:
        name = (read, args, tuple(sorted(options.items())))
        return reader.once(name, lambda: read(reader, *args, **options))

    return ask


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


class Site:
    """A cloud during one run.

    ``admin`` is the connection we were given.  ``tenant`` is one scoped to the project itself: an
    entry of clouds.yaml, or the user whom the spec makes (``actors``, by the key of the project).
    ``homes`` are the projects that the spec works in, its home project first; None is that of ``admin``.
    ``progress`` is told of long work: (key, bytes done, bytes in all or None, bytes unpacked or None);
    ``note`` of what OpenStack says of work that it does for us: (key, text).
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
        self.admin = admin
        self.mark = mark
        self.homes = tuple(homes)
        self.progress = progress
        self.note: Callable[[Key, str], None] = lambda key, text: None
        self.check_lease: Callable[[], None] = lambda: None  # raises LeaseLost when we may not write any more
        self.known: dict[Key, Observed] = {}
        self.spent = False  # whether a plan made from what was read here has been carried out
        self._tenant = tenant
        self._actors = actors or {}
        self._logins: dict[tuple[Key, str], Future[Cloud]] = {}
        self._read: dict[Hashable, Future[object]] = {}
        self._lock = threading.Lock()
        self.wave = Wave()

    def fresh(self) -> Site:
        """Return a view of the same site that has read nothing yet but knows what was made."""
        other = Site(self.admin, self.mark, tenant=self._tenant, actors=self._actors, homes=self.homes)
        other.known, other._logins, other._lock = self.known, self._logins, self._lock
        other.progress, other.note = self.progress, self.note
        other.wave, other.check_lease = self.wave, self.check_lease
        return other

    def once(self, name: Hashable, read: Callable[[], T]) -> T:
        """Return what ``read`` returns, calling it at most once for that name; so are its errors.  See ``query``."""
        return self._shared(self._read, name, read)

    def _shared(self, answers: dict[Any, Future[Any]], name: Hashable, read: Callable[[], T]) -> T:
        with self._lock:
            answer = answers.get(name)
            first = answer is None
            if answer is None:
                answer = answers[name] = Future()
        if first:
            try:
                answer.set_result(read())
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                answer.set_exception(error)
        return cast(T, answer.result())

    # --- ids ------------------------------------------------------------------------------

    def look(self, resource: Resource) -> Observed | None:
        """Return what stands for a resource, from what is known or by reading.

        Two types may share a key, and what one of them finds need not do for the other: see ``Existing``.
        """
        found = self.known.get(resource.key)
        if found is None:
            found = self.once(
                (type(resource), resource.key), lambda: type(resource).find(self, [resource]).get(resource.key)
            )
        return found

    def find_id(self, resource: Resource) -> str | None:
        found = self.look(resource)
        return found.id if found else None

    def id(self, resource: Resource) -> str:
        """Return the id of what must exist by now; raises NotFound."""
        found = self.find_id(resource)
        if found is None:
            raise NotFound(f"{resource.key.qualified} is neither in the spec nor in the cloud")
        return found

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
