"""Role assignments: the role of a user or group in a project or domain.

Tags of the project record the roles that a spec has given, because an assignment has no room for any. Without a record,
nothing tells such a role from one that somebody has given to a user of the spec by hand. So there is a record only
while the role exists: it is written after the role was given, and removed before the role is. A run that is killed in
between leaves a role without a record, which ``--prune`` keeps.

Source: Identity API v3, "Roles", "List role assignments", and OS-INHERIT; Keystone 30.0.0, resource/schema.py,
_project_tags_list_properties, at most 80.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, cast

from openstack_prep.base.errors import CloudError, Mistake, NotAllowed
from openstack_prep.base.fields import Name
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.suggestion import suggest
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.core.deletion_loss import Deletion, Finding
from openstack_prep.core.model import Coherent, Key, Observed, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.core.run import fact, query
from openstack_prep.resources.cascades.row import HasCascades, find_losses_everywhere
from openstack_prep.resources.identity.in_project import InProject, access
from openstack_prep.resources.identity.project import (
    DEFAULT_DOMAIN,
    Domain,
    Project,
    ProjectRecord,
    change_tags,
    in_domain,
    names_in_domain,
)
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.lists import queries

# --- records of roles ------------------------------------------------------------------------


MOST = 60
"""Most tags of a project with which a role is recorded; the others are for people and other programs."""
UNRECORDED = (
    "nothing records that this spec has given it, so somebody may have given it by hand; "
    "to remove it, run openstack role remove"
)


@dataclass
class RoleRecords:
    """The tags of one project, changed by one thread at a time."""

    run: CloudRun
    project_id: str
    tags: frozenset[str]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[str] = field(default_factory=list)

    def add(self, tag: str) -> bool:
        """Record a role, with those that wait meanwhile; return whether it is recorded. Raises CloudError.

        So the tags are read again once for all of them, and not once per role.
        """
        self._waiting.append(tag)
        with self._lock:
            waiting, self._waiting = self._waiting, []
            missing = [each for each in dict.fromkeys((tag, *waiting)) if each not in self.tags]
            if tag in missing and len(self.tags) < MOST:
                self.tags = change_tags(self.run, self.project_id, add=missing[: MOST - len(self.tags)])
            return tag in self.tags

    def remove(self, tag: str) -> None:
        """Remove the record of a role; raises CloudError."""
        with self._lock:
            if tag in self.tags:
                self.tags = change_tags(self.run, self.project_id, remove=[tag])


@fact
def records_in(run: CloudRun, project: Project) -> RoleRecords:
    """Return the records in an existing project, for all steps of a run."""
    return RoleRecords(run, run.id(project), tags_of(run, project))


def tags_of(run: CloudRun, project: Project) -> frozenset[str]:
    """Return the tags of a project."""
    observed = run.look(project)
    return observed.record.tags if observed and isinstance(observed.record, ProjectRecord) else frozenset()


# --- role assignment -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Group(Resource[CloudRun], Undeclarable):
    """A group of users; other resources only refer to it."""

    kind: ClassVar[str] = "group"

    name: Name
    domain: Name = DEFAULT_DOMAIN

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.domain,)

    def references(self) -> Iterable[Resource]:
        return (Domain(name=self.domain),)

    def find_one(self, run: CloudRun) -> Observed | None:
        group = in_domain(run, "groups", self, self.domain)
        return None if group is None else Observed(id=group["id"])

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return names_in_domain(run, "groups", self.domain)


@dataclass(frozen=True, kw_only=True)
class Role(Resource[CloudRun], Undeclarable):
    """A role of the cloud, not of a domain; other resources only refer to it."""

    kind: ClassVar[str] = "role"

    name: Name

    def find_one(self, run: CloudRun) -> Observed | None:
        found = role_id(run, self.name)
        return Observed(id=found) if found else None


@query
def roles(run: CloudRun) -> dict[str, str]:
    """Return the ids of all roles by name."""
    return {role["name"]: role["id"] for role in run.admin.identity.list("/roles", "roles")}


def role_id(run: CloudRun, name: str) -> str | None:
    """Return the id of a role: a role of our own token needs no list, which only administrators may read."""
    return run.admin.role_ids.get(name) or roles(run).get(name)


def unknown_role(run: CloudRun, name: str) -> tuple[str, str] | None:
    """Return that a role does not exist, and the most similar names."""
    if role_id(run, name):
        return None
    known = sorted(roles(run))
    return f"role {name} does not exist", suggest(name, known, f"choose one of {', '.join(known)}")


@dataclass(frozen=True)
class AssignmentPath:
    """The path of an assignment in Keystone, where it has no id."""

    path: str


@dataclass(frozen=True, kw_only=True)
class RoleAssignment(HasCascades, InProject, Coherent):
    """One role of one user or group, in a project or a domain. Managed if the user or the project is.

    ``--prune`` removes only roles that the spec has given: tags of the project record those of its own users there.
    """

    kind: ClassVar[str] = "role_assignment"

    role: Name
    """Name of the role."""
    user: Name | None = None
    """Name of the user who gets the role; the spec may declare the user or not."""
    user_domain: Name = DEFAULT_DOMAIN
    """Name of the user's domain."""
    group: Name | None = None
    """Name of the group that gets the role, instead of a user."""
    group_domain: Name = DEFAULT_DOMAIN
    """Name of the group's domain."""
    domain: Name | None = None
    """Name of the domain in which the role applies, instead of a project."""
    inherited: bool = False
    """Whether the role applies in the projects below instead of in the project or domain itself."""

    def contradictions(self) -> Iterable[InvalidValue]:
        if (self.user is None) == (self.group is None):
            yield InvalidValue("needs exactly one of user and group", "set one")
        if self.project and self.domain:
            yield InvalidValue("project and domain are both set", "set only one")

    @property
    def name(self) -> str:
        who = f"user:{self.user}" if self.user else f"group:{self.group}"
        who += _of_domain(self.holder.domain)
        where = f"domain:{self.domain}" if self.domain else f"project:{self.project or '(current)'}"
        where += _of_domain(self.project_domain) if self.project else ""
        return f"{who}@{where}/{self.role}" + (" (inherited)" if self.inherited else "")

    @property
    def scope(self) -> tuple[str, ...]:
        """The domain of the holder, and that of the project; the name contains the rest."""
        return (self.holder.domain, self.project_domain)

    def desired(self) -> Values:
        return {}  # an assignment exists or not

    @property
    def holder(self) -> User | Group:
        if self.user:
            return User(name=self.user, domain=self.user_domain)
        return Group(name=self.group or "", domain=self.group_domain)

    @property
    def container(self) -> Key:
        return self.holder.key

    @property
    def target(self) -> Project | Domain | None:
        """The project or domain in which it applies; None for the project of the connection."""
        return Domain(name=self.domain) if self.domain else self.owner

    @property
    def gives_access(self) -> bool:
        """Whether it lets its holder work in the project itself."""
        return not self.domain and not self.inherited

    def references(self) -> Iterable[Resource]:
        return (self.holder, self.target) if self.target else (self.holder,)

    def provides(self) -> Iterable[Key]:
        return (self.key, access(self.owner)) if self.gives_access else (self.key,)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        unknown = unknown_role(run, self.role)
        if unknown:
            yield self.mistake(*unknown)

    def find_one(self, run: CloudRun) -> Observed | None:
        ids = self._ids(run)
        if ids is None:
            return None
        holder, scope, role = ids
        try:
            listed = queries.role_assignments(run, "domain" if self.domain else "project", scope)
        except NotAllowed:
            # only administrators list assignments; a token has the roles of its own user, whatever gives them
            if not self.gives_access or (holder, scope) != (run.admin.user_id, run.admin.project_id):
                raise
            return self._observed(run, ids) if self.role in run.admin.roles else None
        return self._observed(run, ids) if (holder, role, self.inherited) in map(_triple, listed) else None

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the role assignments of a project; the spec manages those of its own users in its own projects."""
        project_id = run.find_project_id(owner)
        managed = {found.id for key, found in run.known.items() if key.kind in (User.kind, Group.kind)}
        for raw in queries.role_assignments(run, "project", project_id) if project_id else ():
            kind = "user" if "user" in raw else "group"
            who = {kind: raw[kind]["name"], f"{kind}_domain": raw[kind]["domain"]["name"]}
            holder, role, inherited = _triple(raw)
            declared = cls(role=raw["role"]["name"], inherited=inherited, **who, **cls.placing(owner))
            ends = [run.look(each) for each in (declared.holder, declared.target) if each is not None]
            ours = len(ends) == 2 and all(end is not None and end.ours for end in ends)
            ids = (holder, project_id or "", role)
            doubt = UNRECORDED if ours and not declared._is_recorded(run, ids) else ""
            # a holder that the spec declares belongs to the spec, whatever home project its tag names
            named = None if holder in managed or ends[0] is None else ends[0].home
            path = AssignmentPath(declared._path(*ids))
            yield declared, Observed(id=role, ours=ours, record=path, home=named, doubt=doubt)

    def cloud_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset({observed.record_as(AssignmentPath).path})  # the id is the id of the role

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return self.cloud_ids(observed)

    def _ids(self, run: CloudRun) -> tuple[str, str, str] | None:
        """Return the ids of holder, scope and role, unless one of them does not exist yet."""
        holder = run.find_id(self.holder)
        scope = run.find_id(self.target) if self.target else run.admin.project_id
        role = role_id(run, self.role)
        return (holder, scope, role) if holder and scope and role else None

    def _observed(self, run: CloudRun, ids: tuple[str, str, str]) -> Observed:
        ends = [run.look(each) for each in (self.holder, self.target) if each is not None]
        ours = any(end is not None and end.ours for end in ends)
        return Observed(id=ids[-1], ours=ours, record=AssignmentPath(self._path(*ids)))

    def _path(self, holder: str, scope: str, role: str) -> str:
        where = f"/{'domains' if self.domain else 'projects'}/{scope}"
        who = f"/{'users' if self.user else 'groups'}/{holder}/roles/{role}"
        return f"/OS-INHERIT{where}{who}/inherited_to_projects" if self.inherited else where + who

    def create(self, run: CloudRun) -> Observed:
        ends = [run.id(each) for each in (self.holder, self.target) if each is not None]
        holder, scope = ends if self.target else (*ends, run.admin.project_id)
        ids = (holder, scope, run.id(Role(name=self.role)))
        observed = self._observed(run, ids)
        run.admin.identity.put(observed.record_as(AssignmentPath).path)
        self._record(run, ids)
        return observed

    def _tag(self, run: CloudRun, ids: Sequence[str]) -> str:
        return run.ownership.record("role", *ids, self.inherited)

    def _is_recorded(self, run: CloudRun, ids: Sequence[str]) -> bool:
        return isinstance(self.target, Project) and self._tag(run, ids) in tags_of(run, self.target)

    def _record(self, run: CloudRun, ids: Sequence[str]) -> None:
        """Record the role of a user of the spec in a project of the spec, which --prune may remove one day."""
        ends = [run.look(each) for each in (self.holder, self.target) if each is not None]
        if isinstance(self.target, Project) and all(end is not None and end.ours for end in ends):
            try:
                recorded = records_in(run, self.target).add(self._tag(run, ids))
            except CloudError as error:  # the role was given, and without a record it is only not pruned
                run.note(self.key, f"--prune will not remove it, because it cannot be recorded: {error}")
            else:
                if not recorded:
                    run.note(self.key, "--prune will not remove it, because the project has too many tags to record it")

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        """Yield also what only a project's users list, read once more before the user of the spec loses a role there.

        Nobody else may read it right before the project is deleted.
        """
        yield from find_losses_everywhere(run, deletions, going)
        for deletion in deletions if run.is_patient else ():  # a plan has it from the deletion of the project
            role = cast(Self, deletion.resource)
            project, acting = role.owner, run.acting_user(role.owner)
            observed = run.look(project) if project and acting and acting.key == role.holder.key else None
            if project and observed and observed.id in going:
                last = [Deletion(project, observed)]
                for _, finding in find_losses_everywhere(run, last, going, by_member=True):
                    yield deletion.key, finding

    def delete(self, run: CloudRun, observed: Observed) -> None:
        ids = self._ids(run)
        if ids and isinstance(self.target, Project) and self._is_recorded(run, ids):
            try:
                records_in(run, self.target).remove(self._tag(run, ids))
            except NotAllowed as error:  # such as a project that is immutable by now
                run.note(self.key, f"its record stays, so --prune would remove the role if somebody gave it: {error}")
        run.admin.identity.delete(observed.record_as(AssignmentPath).path)


def _of_domain(domain: str) -> str:
    """Return the suffix that names a domain; empty for Default, as in the text of a key."""
    return "" if domain == DEFAULT_DOMAIN else f"@{domain}"


def _triple(raw: Raw) -> tuple[str, str, bool]:
    holder = raw.get("user") or raw["group"]
    return holder["id"], raw["role"]["id"], "OS-INHERIT:inherited_to" in raw["scope"]


# --- who acts in each project of a spec ---


def actors_of(resources: Sequence[Resource]) -> dict[Key | None, Actor]:
    """Return, by project, the first user whose password the spec knows and who may log in and has a role there."""
    held: dict[Key, dict[Project | None, list[RoleAssignment]]] = defaultdict(lambda: defaultdict(list))
    for resource in resources:
        if isinstance(resource, RoleAssignment) and resource.gives_access:
            held[resource.holder.key][resource.owner].append(resource)
    actors: dict[Key | None, Actor] = {}
    for user in resources:
        if isinstance(user, User) and user.password is not None and user.enabled is not False:
            for owner, roles in held[user.key].items():
                actor = Actor(roles[0].holder, user.password, user.domain, owner, tuple(roles))
                actors.setdefault(owner.key if owner else None, actor)
    return actors
