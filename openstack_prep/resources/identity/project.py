"""Projects, their domains, and the content of projects.

Source: Identity API v3, "Domains", "Projects" and "Project Tags".
"""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import quote

import tenacity
from annotated_types import Len

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, NotAllowed, is_transient
from openstack_prep.base.fields import KeystoneName, Name, Reads
from openstack_prep.base.invalid import no_end_spaces, one_line
from openstack_prep.base.key import DEFAULT_DOMAIN as DEFAULT_DOMAIN
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.answers import objects
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import COPIED, Adoptable, Change, Context, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import OnePerSpec, Undeclarable, Unguarded
from openstack_prep.core.run import query
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.identity import home
from openstack_prep.resources.lists.queries import project_name as project_name

# Resources of Keystone by their names in a domain: few by one request each, many by one list.
#
# A whole domain may hold thousands, and LDAP truncates its lists, so it is listed only when a run asks for many names.
#
# Source: Identity API v3, "List users": filters by one name; ``truncated``, if the list has more than ``list_limit``;
# Keystone 30.0.0, server/flask/common.py (build_driver_hints): ``limit``; releases without it ignore it.

FEW = 8
"""Names that a run asks for one by one."""
MOST = 1000
"""Resources in a list. That of a larger domain costs more than it saves: Keystone stores an id per user of LDAP."""

Listed = list[dict[str, Any]]


@query
def named(run: CloudRun, plural: str, name: str, domain_id: str) -> Listed:
    """Return the resources with a name in a domain."""
    many = run.deletes_many(plural.removesuffix("s"), FEW) or next(_asked(run, plural, domain_id)) >= FEW
    everything = _by_name(run, plural, domain_id) if many else None
    if everything is not None and (name in everything or name.casefold() not in _folded(run, plural, domain_id)):
        return everything.get(name, [])
    # also for a name that differs in case alone, which only Keystone's database can compare
    return run.admin.identity.list(f"/{plural}", plural, name=name, domain_id=domain_id)


@query
def _asked(run: CloudRun, plural: str, domain_id: str) -> Iterator[int]:
    return itertools.count()


@query
def _by_name(run: CloudRun, plural: str, domain_id: str) -> Mapping[str, Listed] | None:
    """Return all resources of a domain by name; None if Keystone does not list all of them."""
    try:
        params = {"domain_id": domain_id, "limit": MOST}
        answer = run.admin.identity.ask("GET", f"/{plural}", params=params, once=True)
        listed = objects(answer[plural], answer.origin)
    except CloudError:  # too many to be listed in time, or only single names may be read
        return None
    if answer.get("truncated") or (answer.get("links") or {}).get("next"):
        return None
    found: dict[str, Listed] = {}
    for each in listed:
        found.setdefault(each["name"], []).append(each)
    return found


def all_names(run: CloudRun, plural: str, domain_id: str) -> frozenset[str]:
    """Return the names of all resources of a domain; none if Keystone does not list all of them."""
    return frozenset(_by_name(run, plural, domain_id) or ())


@query
def _folded(run: CloudRun, plural: str, domain_id: str) -> frozenset[str]:
    return frozenset(map(str.casefold, all_names(run, plural, domain_id)))


# The ``default`` security group of a deleted project.
#
# Neutron keeps it, and creates it again if somebody lists the groups of such a project. A destroy deletes it right
# after the project, because it holds the lease until then. A run that is killed between the two requests leaves it
# behind; therefore it is tagged before, and the next destroy finds it by that tag.
#
# Source: Networking API v2.0, "Standard Attributes Tag Extension"; Neutron 29.0.0, db/securitygroups_db.py,
# _ensure_default_security_group and delete_security_group (an administrator may delete a group called default).

ATTEMPTS = 5
PAUSE = 0.5  # seconds before the second attempt; doubled each time


def tag_of(ownership: OwnershipTag) -> str:
    """Return the tag of a default group whose project is about to be deleted."""
    return f"{ownership.tag}~default"


def announce(run: CloudRun, group_id: str) -> None:
    """Tag a group before its project is deleted; without the tag, a killed run would leave it behind."""
    with contextlib.suppress(CloudError):
        run.admin.network.put(f"/security-groups/{group_id}/tags/{quote(tag_of(run.ownership), safe='')}")


def remove(run: CloudRun, group_id: str) -> None:
    """Delete the group of a project that has just been deleted; temporary failures are retried here.

    A step that fails temporarily is decided again, and would find no project any more, and nothing left to do.
    Raises CloudError, for which nothing is decided again.
    """
    patient = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_transient),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_exponential(PAUSE),
        reraise=True,
    )
    try:
        patient(run.admin.network.delete, f"/security-groups/{group_id}")
    except CloudError as error:
        what = f"{error}; the project is deleted, and its security group default is left; run destroy again"
        raise CloudError(what, status=error.status) from error


@dataclass(frozen=True, kw_only=True)
class LeftGroup(Resource[CloudRun], Undeclarable):
    """A default group that an interrupted destroy has left behind."""

    kind: ClassVar[str] = "default_group"

    name: str
    """Its id, because all of these groups have the same name."""

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {each.key: observed for each, observed in cls.scan(run, None)}
        return {each.key: found[each.key] for each in wanted if each.key in found}

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the groups with our tag whose project no longer exists."""
        if not run.admin.has("network"):
            return
        for raw in run.admin.network.list("/security-groups", "security_groups", tags=tag_of(run.ownership)):
            tagged = tag_of(run.ownership) in raw.get("tags", ())  # also where something in between drops queries
            if tagged and raw["name"] == "default" and not home.exists(run, raw["project_id"]):
                yield cls(name=raw["id"]), Observed(id=raw["id"], ours=True)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        run.admin.network.delete(f"/security-groups/{observed.id}")


@dataclass(frozen=True, kw_only=True)
class Domain(Resource[CloudRun], Undeclarable):
    """A domain of Keystone; other resources only refer to it."""

    kind: ClassVar[str] = "domain"

    name: Name = DEFAULT_DOMAIN
    """Name of the domain."""

    def find_one(self, run: CloudRun) -> Observed | None:
        known = run.admin.domains  # the domains of our own token need no request: they are enabled
        if self.name in known:
            return Observed(id=known[self.name], values={"enabled": True})
        listed = run.admin.identity.list("/domains", "domains", name=self.name)
        return Observed(id=listed[0]["id"], values={"enabled": listed[0].get("enabled", True)}) if listed else None

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return (raw["name"] for raw in run.admin.identity.list("/domains", "domains"))


@dataclass(frozen=True)
class ProjectRecord:
    """All tags of a project, including those of others, and whether Keystone refuses to change and delete it."""

    tags: frozenset[str]
    is_immutable: bool = False


MOST_TAGS = 80
"""Tags of a project (keystone 30.0.0, resource/schema.py, _project_tags_list_properties)."""
OWN_TAGS = 2
"""Ownership tags that a project of a spec has at least."""


@dataclass(frozen=True, kw_only=True)
class Project(HasCascades, Adoptable[CloudRun], OnePerSpec, Unguarded):
    """A project (tenant) and its domain.

    The ownership tag is a tag of the project. Others share these tags: declared tags are ensured, all others are left
    alone.
    """

    kind: ClassVar[str] = "project"
    identity: ClassVar[frozenset[str]] = frozenset({"name", "domain"})

    name: Annotated[str, Len(1, 64), Reads(one_line), Reads(no_end_spaces)]
    """Name of the project, unique in its domain; at most 64 characters."""
    domain: Name = DEFAULT_DOMAIN
    """Name of the project's domain."""
    description: str | None = None
    """Free text."""
    tags: tuple[KeystoneName, ...] | None = None
    """Tags to have, without comma or slash; other tags are left alone."""
    enabled: bool | None = None
    """Whether users can get a token for it."""

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.domain,)

    def references(self) -> Iterable[Resource]:
        return (Domain(name=self.domain),)

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return names_in_domain(run, "projects", self.domain)

    def desired(self) -> dict[str, Any]:
        values = super().desired()
        if self.tags is not None:
            values["tags"] = frozenset(self.tags)
        return values

    def find_one(self, run: CloudRun) -> Observed | None:
        if (self.name, self.domain) == (run.admin.project_name, run.admin.project_domain_name):
            return self.of_connection(run)
        project = in_domain(run, "projects", self, self.domain)
        return None if project is None else self._observed(run, project)

    def of_connection(self, run: CloudRun) -> Observed:
        """Return the project of the connection, which its members may read by its id, but not list."""
        project = run.admin.identity.get(f"/projects/{run.admin.project_id}")["project"]
        return self._observed(run, project)

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the projects that have our ownership tag, in all domains."""
        names = {domain_id: name for name, domain_id in run.admin.domains.items()}
        for raw in run.admin.identity.list("/projects", "projects", tags=run.ownership.tag):
            domain = names.get(raw["domain_id"]) or domain_name(run, raw["domain_id"])
            tags = tuple(sorted(foreign_tags(run, raw["tags"]))) or None
            text = raw.get("description") or None
            declared = cls(name=raw["name"], domain=domain, description=text, tags=tags, enabled=raw["enabled"])
            yield declared, declared._observed(run, raw)

    def _observed(self, run: CloudRun, project: Mapping[str, Any]) -> Observed:
        tags = frozenset(project.get("tags", ()))
        tagged = run.ownership.tag in tags
        doubt = run.ownership.doubt(tags, *_identity(project)) if tagged else ""
        ours = (
            tagged
            and doubt != COPIED
            and (self._is_home(run) or home.is_our_project(run, run.ownership.home_among(tags)))
        )
        known = {run.ownership.spec} if ours or doubt == COPIED else set()
        return Observed(
            id=project["id"],
            ours=ours,
            managed_by=", ".join(name for name in OwnershipTag.specs_in(tags) if name not in known),
            values={
                "description": project.get("description") or "",
                "enabled": project["enabled"],
                "tags": tags & frozenset(self.tags or ()),
            },
            record=ProjectRecord(tags, bool((project.get("options") or {}).get("immutable"))),
            home=run.ownership.home_among(tags),
            doubt=doubt,
        )

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        for tag in self.tags or ():
            if {",", "/"} & {*tag}:
                what = f"{tag!r} contains a comma or a slash, which Keystone does not accept in a tag"
                yield Mistake.about(self.key, what, "remove it", code=Code.SPEC_INVALID_VALUE, field="tags")
        yield from self._too_many_tags(self.tags or ())

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        present = observed.record_as(ProjectRecord).tags if observed else ()
        return self._too_many_tags((*self.tags, *present)) if self.tags and present else ()

    def _too_many_tags(self, tags: Iterable[str]) -> Iterator[Mistake]:
        number = len({each for each in tags if not OwnershipTag.is_tag(each)}) + OWN_TAGS
        if number > MOST_TAGS:
            what = f"would have {number} tags with those of openstack-prep, and Keystone stores {MOST_TAGS}"
            fix = f"remove {number - MOST_TAGS} of them"
            yield Mistake.about(self.key, what, fix, code=Code.SPEC_INVALID_VALUE, field="tags")

    def create(self, run: CloudRun) -> Observed:
        body: Values = {
            "name": self.name,
            "domain_id": run.id(Domain(name=self.domain)),
            "description": self.description or "",
            "enabled": self.enabled is not False,
        }
        body["tags"] = [*self._own_tags(run, body), *(self.tags or ())]
        return self._observed(run, run.admin.identity.post("/projects", {"project": body})["project"])

    def _own_tags(self, run: CloudRun, project: Raw) -> tuple[str, ...]:
        """Return the ownership tags; only a project other than the home project names the home project.

        They may be added one by one: the one that makes the project the spec's comes last.
        """
        mark = run.ownership if self._is_home(run) else home.ownership(run)
        return (mark.name_tag(*_identity(project)), *mark.tags)

    def _is_home(self, run: CloudRun) -> bool:
        first = next(iter(run.homes), None)
        return first is None or first.key == self.key

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        body = {change.field: change.after for change in changes}
        tags = body.pop("tags", ())
        path = f"/projects/{observed.id}"
        answer = run.admin.identity.patch(path, {"project": body}) if body else run.admin.identity.get(path)
        named = [run.ownership.name_tag(*_identity(answer["project"]))] if observed.ours else []
        return self._tagged(run, answer["project"], [*sorted(tags), *named])

    def take_over(self, run: CloudRun, observed: Observed) -> Observed:
        answer = run.admin.identity.get(f"/projects/{observed.id}")
        return self._tagged(run, answer["project"], self._own_tags(run, answer["project"]))

    def _tagged(self, run: CloudRun, project: Mapping[str, Any], tags: Iterable[str]) -> Observed:
        """Add the missing tags; one that exists by then is refused, and the executor then reads the project again."""
        missing = [tag for tag in tags if tag not in project["tags"]]
        known = change_tags(run, project["id"], add=missing) if missing else project["tags"]
        return self._observed(run, {**project, "tags": known})

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield what the spec does not manage in it and would lose its project; and that the run itself works in it."""
        if observed.id == run.admin.project_id:
            what = f"the cloud in use, {run.admin.name}, is scoped to this project"
            fix = "run destroy with another entry of clouds.yaml (--os-cloud or OS_CLOUD)"
            yield Mistake.about(self.key, what, fix, code=Code.OWN_CONNECTION)
        if observed.record_as(ProjectRecord).is_immutable:  # keystone 30.0.0, resource/core.py, _delete_project: 403
            command = shell.join(["openstack", "project", "set", "--no-immutable", observed.id])
            yield Mistake.about(
                self.key, "has the option immutable", f"unset that first: {command}", code=Code.STILL_USED
            )
        try:
            children = run.admin.identity.list("/projects", "projects", parent_id=observed.id)
        except NotAllowed:  # of a user who may not delete projects either, which the plan refuses by its own rule
            children = []
        for child in children:
            if child["id"] not in going:  # keystone 30.0.0, resource/core.py, _delete_project: 403
                what = f"project {child['name']} ({child['id']}) is below it, so Keystone refuses to delete it"
                yield Mistake.about(self.key, what, "delete that project first", code=Code.STILL_USED)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it, then its ``default`` security group, which Neutron would leave behind.

        In this order, because the group holds the lease, and listing the groups of a project would create it again.
        """
        listed = run.admin.network.list("/security-groups", "security_groups", project_id=observed.id)
        groups = [group["id"] for group in listed if group["name"] == "default"]
        for each in groups:
            announce(run, each)
        run.admin.identity.delete(f"/projects/{observed.id}")
        for each in groups:
            remove(run, each)


def _identity(project: Raw) -> tuple[object, ...]:
    """Return what tells a project apart: its name is unique in its domain, and its id is not known in advance."""
    return "project", project.get("domain_id"), project.get("name")


def foreign_tags(run: CloudRun, tags: Iterable[str]) -> set[str]:
    """Return the tags of a project without those by which the spec identifies it."""
    own = run.ownership
    return {tag for tag in tags if tag != own.tag and not tag.startswith(f"{own.tag}~") and not own.is_record(tag)}


def in_domain(run: CloudRun, plural: str, wanted: Resource, domain: str) -> Mapping[str, Any] | None:
    """Return the resource with this name in a domain of Keystone; raises NotUnique."""
    domain_id = run.find_id(Domain(name=domain))
    if domain_id is None:
        return None
    return only_one(named(run, plural, wanted.name, domain_id), wanted.key.qualified)


def names_in_domain(run: CloudRun, plural: str, domain: str) -> Iterable[str]:
    """Return the names of all resources in a domain of Keystone, unless there are too many."""
    domain_id = run.find_id(Domain(name=domain))
    return all_names(run, plural, domain_id) if domain_id else ()


@query
def domain_name(run: CloudRun, domain_id: str) -> str:
    return str(run.admin.identity.get(f"/domains/{domain_id}")["domain"]["name"])


# --- tags, which several specs and other programs share ------------------------------------


TAG_ROUNDS = 5
TAG_PAUSE = 0.2
"""Longest pause before a change that was undone is repeated, in seconds, so that two programs do not keep step."""


def change_tags(
    run: CloudRun, project_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> frozenset[str]:
    """Add missing tags in this order, remove present ones, and return all tags by then; raises CloudError.

    Keystone has requests for one tag, but reads all tags of the project for each and writes them again: of two at a
    time, one can undo the other. So the tags are read again afterwards. Source: Keystone 30.0.0, resource/core.py
    (create_project_tag, delete_project_tag), api/projects.py (ProjectTagResource.put: 400 for a tag that exists).
    """
    missing, surplus = list(add), list(remove)
    for left in reversed(range(TAG_ROUNDS)):
        refused = None
        try:
            for tag in missing:
                run.admin.identity.put(_tag_path(project_id, tag))
            for tag in surplus:
                run.admin.identity.delete(_tag_path(project_id, tag))
        except CloudError as error:  # the answer was lost, or another program has done the same: the tags show it
            if not is_transient(error) and error.status not in (400, 404):
                raise
            refused = error
        tags = frozenset(run.admin.identity.get(f"/projects/{project_id}")["project"]["tags"])
        missing, surplus = [tag for tag in missing if tag not in tags], [tag for tag in surplus if tag in tags]
        if not missing and not surplus:
            return tags
        if left:
            time.sleep(random.uniform(0, TAG_PAUSE))
    if refused:
        raise refused
    what = f"project {project_id}: somebody else keeps changing its tags, which undoes changes of these"
    raise CloudError(f"{what}: {', '.join([*missing, *surplus])}", retryable=True)


def _tag_path(project_id: str, tag: str) -> str:
    return f"/projects/{project_id}/tags/{quote(tag, safe='')}"
