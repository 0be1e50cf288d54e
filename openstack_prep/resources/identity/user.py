"""Users and their passwords.

Source: Identity API v3, "Users"; "Security compliance and PCI-DSS" of Keystone's guide for its password rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, NotAllowed
from openstack_prep.base.fields import KeystoneName, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.core.model import (
    COPIED,
    DIFFERS,
    UNNAMED,
    Adoptable,
    Change,
    Condition,
    Observed,
    OwnershipTag,
    Resource,
)
from openstack_prep.core.resource import InEachProject, Unguarded
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Domain, Project, in_domain, named, names_in_domain
from openstack_prep.resources.lists import queries

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

REVOKED_FOR = 1.1  # seconds: a new password revokes all tokens of the same second, even those issued later in it


@dataclass(frozen=True, kw_only=True)
class User(HasCascades, Adoptable[CloudRun], InEachProject, Unguarded):
    """A user in Keystone's own database; resources can only refer to users of LDAP or a federation.

    Keystone never reports a password, so the run logs in once to see whether it is correct. The password of a disabled
    user, or of one in a disabled domain, cannot be tested and is assumed to be correct.
    """

    kind: ClassVar[str] = "user"
    identity: ClassVar[frozenset[str]] = frozenset({"name", "domain"})

    name: KeystoneName
    """Name of the user, unique in its domain."""
    domain: Name = DEFAULT_DOMAIN
    """Name of the domain of the user and of its default project."""
    password: Secret | None = field(default=None, repr=False)
    """Password; without one, the user cannot log in until somebody sets it."""
    description: str | None = None
    """Free text; an ownership tag is appended."""
    email: str | None = None
    """E-mail address."""
    enabled: bool | None = None
    """Whether the user can log in."""
    default_project: Name | None = None
    """Name of the project that clients use by default."""

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.domain,)

    def references(self) -> Iterable[Resource]:
        yield Domain(name=self.domain)
        if self.default_project:
            yield self._default_project()

    def _default_project(self) -> Project:
        return Project(name=self.default_project or "", domain=self.domain)

    def find_one(self, run: CloudRun) -> Observed | None:
        user: Raw | None
        if (self.name, self.domain) == run.admin.user:
            if not self.desired():
                return Observed(id=run.admin.user_id)  # only referred to, and our token contains its id
            # users may read themselves, but only administrators list users (keystone 30.0.0, policies/user.py)
            user = run.admin.identity.get(f"/users/{run.admin.user_id}")["user"]
        else:
            user = in_domain(run, "users", self, self.domain)
        if user is None:
            return None
        return self._observed(run, user, self._known_password(run, user) if self.password else None)

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return names_in_domain(run, "users", self.domain)

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the users who have a role in a project.

        It lists neither all users of the cloud, who may be thousands in an LDAP, nor passwords.
        """
        project_id = run.find_project_id(owner)
        rows = queries.role_assignments(run, "project", project_id) if project_id else ()
        holders = {row["user"]["id"]: row["user"] for row in rows if "user" in row}
        for user_id, user in holders.items():
            domain = user["domain"]["name"]
            if user_id == run.admin.user_id:
                yield cls(name=user["name"], domain=domain), Observed(id=user_id)
                continue
            for raw in named(run, "users", user["name"], user["domain"]["id"]):
                text = run.ownership.strip(raw.get("description")) or None
                declared = cls(name=raw["name"], domain=domain, description=text, email=raw.get("email"))
                yield declared, declared._observed(run, raw, None)

    def _known_password(self, run: CloudRun, user: Raw) -> Secret | Condition:
        assert self.password is not None
        if self.password.is_to_generate:  # then the present one differs, and others may use it
            return DIFFERS
        domain = run.look(Domain(name=self.domain))
        if not user.get("enabled", True) or (domain and not domain.values["enabled"]):
            return self.password
        same = self.password.ready and run.logs_in(Actor(self, self.password, self.domain))
        return self.password if same else DIFFERS

    def _observed(self, run: CloudRun, user: Raw, password: Secret | Condition | None) -> Observed:
        project_id = user.get("default_project_id")
        if self.default_project and project_id and run.find_id(self._default_project()) == project_id:
            project_id = self.default_project
        description = user.get("description")
        named_home, tagged = OwnershipTag.home_in(description), run.ownership.owns(description)
        doubt = self._doubt(run, user) if tagged else ""
        return Observed(
            id=user["id"],
            ours=tagged and doubt != COPIED and home.is_ours(run, named_home),
            home=named_home,
            doubt=doubt,
            managed_by=home.another(run, user.get("description")),
            values={
                "password": password,
                "description": run.ownership.strip(user.get("description")),
                "email": user.get("email"),
                "enabled": user.get("enabled", True),
                "default_project": project_id,
            },
        )

    def _doubt(self, run: CloudRun, user: Raw) -> str:
        """Return why our ownership tag does not prove that the spec manages a user; empty if it does.

        Names are unique in their domain, so the tag of a user outside of the home project's domain names the domain;
        that of an earlier version does not.
        """
        description, elsewhere = user.get("description"), self._is_elsewhere(run)
        named = OwnershipTag.place_in(description)
        if not run.ownership.manages(user["name"], description) or named not in ("", user.get("domain_id")):
            return COPIED
        return UNNAMED if elsewhere and not named else ""

    def _is_elsewhere(self, run: CloudRun) -> bool:
        """Whether the user is in another domain than the home project."""
        first = next(iter(run.homes), None)
        return self.domain != (first.domain if isinstance(first, Project) else run.admin.project_domain_name)

    def _ownership_of_user(self, run: CloudRun) -> OwnershipTag:
        domain = run.id(Domain(name=self.domain)) if self._is_elsewhere(run) else ""
        return replace(home.ownership(run), place=domain)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if observed is not None and not observed.ours and observed.values["password"] is DIFFERS:
            yield Mistake.about(
                self.key,
                f"exists, is {observed.owner}, and has a different password",
                "correct the password, remove it, or choose another name",
                code=Code.PLAN_FOREIGN,
            )

    def create(self, run: CloudRun) -> Observed:
        body = self.desired() | {
            "name": self.name,
            "domain_id": run.id(Domain(name=self.domain)),
            "description": self._ownership_of_user(run).describe(self.name, self.description),
        }
        return self._send(run, "POST", "/users", body)

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        body = {change.field: change.after for change in changes}
        if observed.ours and (observed.doubt or "description" in body):
            text = body.get("description", observed.values["description"])
            body["description"] = self._ownership_of_user(run).describe(self.name, text)
        changed = self._send(run, "PATCH", f"/users/{observed.id}", body)
        if "password" in body:
            time.sleep(REVOKED_FOR)
        return changed

    def _send(self, run: CloudRun, method: str, path: str, body: Values) -> Observed:
        if "default_project" in body:
            body["default_project_id"] = run.id(self._default_project())
            del body["default_project"]
        secrets = []
        if "password" in body:
            secrets = [body["password"]]
            body["password"] = body["password"].reveal()
        try:
            answer = run.admin.identity.ask(method, path, json={"user": body}, secrets=secrets)
        except CloudError as error:
            if secrets and error.status in (400, 403, 409) and "password" in str(error).lower():
                raise NotAllowed(f"{error}; choose another password", status=error.status) from None
            raise
        finally:
            run.log_out(self)
        return self._observed(run, answer["user"], self.password)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield that destroy would delete the user of the run itself: later requests would fail or see nothing."""
        if observed.id == run.admin.user_id:
            what = f"the cloud in use, {run.admin.name}, logs in as this user, so destroy cannot delete it"
            fix = "run destroy with another user's entry of clouds.yaml (--os-cloud or OS_CLOUD)"
            yield Mistake.about(self.key, what, fix, code=Code.OWN_CONNECTION)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        run.admin.identity.delete(f"/users/{observed.id}")


# --- their key pairs; a plan asks for these before it loads the kind ---------------------------


def keypair_holder(run: CloudRun, project: Resource | None, user: User | None) -> tuple[Cloud, str | None]:
    """Return a connection that may manage the key pairs of a user, and the user's id; None if there is no user yet.

    Without ``user``, they are those of the user who acts in the project. A connection that may create users may manage
    their key pairs, even before these users can log in.
    """
    holder = user or run.acting_user(project)
    if holder is not None:
        return run.admin, run.find_id(holder)
    own = run.find_tenant(project) or run.admin
    return own, own.user_id


def keypairs(run: CloudRun, project: Resource | None) -> Iterator[tuple[User | None, Raw, str]]:
    """Yield the key pairs of the user who acts in a project, else of the spec's users who have a role there.

    Each comes with that user, None for the acting one, and the user's id.
    """
    holders: list[User | None] = [None]
    if run.acting_user(project) is None and run.find_tenant(project) is None:
        holders = [user for user, found in User.scan(run, project) if found.ours]
    for user in holders:
        cloud, user_id = keypair_holder(run, project, user)
        for raw in queries.keypairs(run, cloud, user_id).values() if user_id else ():
            yield user, raw, user_id or ""


def has_keypairs(run: CloudRun, project: Resource | None) -> bool:
    """Whether any of these key pairs may have the ownership tag of the spec."""
    return any(f" {run.ownership.tag}/" in raw["public_key"] for _, raw, _ in keypairs(run, project))
