"""Application credentials: a user's credentials for programs, stored in a clouds.yaml.

Source: Identity API v3, "Application Credentials" and "List All Role Inference Rules".

Keystone reports the secret of a credential once, in the answer to its creation, and cannot change or rename a
credential. Therefore one step creates the credential and writes the entry. A credential that differs from the spec is
renewed: a new one is created under the other of two names (NAME, NAME-new), the entry is switched, and the old one is
deleted. If the run is killed in between, the next apply sees from the id in the entry which credential is in use, and
continues. An entry that contains only the name announces the first credential: if the run is killed after that, nobody
uses the credential. A credential whose entry is in another file may serve a cluster, so its deletion needs
--allow-replace; an expired credential serves nobody. A rotation replaces the credential in use, whether it differs or
not.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Loss, Mistake, NotAllowed, PlanRefused, PrepError
from openstack_prep.base.fields import Count, File, Name, Timestamp, timestamp
from openstack_prep.base.private_file import PRIVATE, mode
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import HIDDEN
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.clouds_yaml import OWNER, owner_of
from openstack_prep.core.model import MANAGED, Change, Context, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.observed import owner_text
from openstack_prep.core.resource import Undeclarable
from openstack_prep.core.run import query
from openstack_prep.resources.credentials.credential_record import (
    CredentialRecord,
    Credentials,
    held,
    holder_in,
    holder_text,
    in_project,
    path,
)
from openstack_prep.resources.files.clouds_entry import UNKNOWN, InCloudsYaml, whole_entry
from openstack_prep.resources.files.owned_file import unwritable
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import access
from openstack_prep.resources.identity.role_assignment import RoleAssignment, actors_of, unknown_role
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.lists import queries

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


# Roles of application credentials, compared with those that their user has.
#
# Source: Keystone 30.0.0. models/token_model.py, ``_get_application_credential_roles``: a token holds those roles of
# its credential that the user still has, by group, inheritance or implication too; without any,
# ``_validate_project_scope`` refuses it. api/users.py, ``_get_roles``: a new credential may hold only roles of the
# token that creates it; without a list it holds all of them. assignment/core.py: credentials are deleted with a role,
# but not with an assignment.

ALL = "all of the user's"
"""The roles of a credential whose spec lists no roles."""


def held_roles(run: CloudRun, project: Resource | None) -> frozenset[str] | None:
    """Return the roles that the acting user has in a project once the spec is applied; None if unknown.

    A login in the project tells them without another request. Before all role assignments of the spec exist, there is
    no login; then Keystone is asked, and the assignments that the spec declares are added.
    """
    own = run.find_tenant(project)
    if own is not None:  # a token of a credential contains only that credential's roles
        return None if own.application_credential_id else own.roles or None
    actor = run.actor(project)
    project_id = run.find_project_id(project)
    if actor is None:
        return None
    try:
        user_id = run.find_id(actor.user)
        declared = frozenset(role.role for role in actor.roles if isinstance(role, RoleAssignment))
        effective = _effective(run, user_id, project_id) if user_id and project_id else frozenset()
        return implied_by(run, declared) | effective
    except NotAllowed:  # only administrators may ask
        return None


@query
def _effective(run: CloudRun, user_id: str, project_id: str) -> frozenset[str]:
    which: Values = {"user.id": user_id, "scope.project.id": project_id}
    listed = run.admin.identity.list(
        "/role_assignments", "role_assignments", **which, effective=True, include_names=True
    )
    return frozenset(each["role"]["name"] for each in listed)


@query
def _role_inferences(run: CloudRun) -> Sequence[Raw]:
    answer: Sequence[Raw] = run.admin.identity.get("/role_inferences")["role_inferences"]
    return answer


def implied_by(run: CloudRun, names: Iterable[str]) -> frozenset[str]:
    """Return roles and all roles that they imply."""
    rules = _role_inferences(run)
    implies = {rule["prior_role"]["name"]: {role["name"] for role in rule["implies"]} for rule in rules}
    found = set(names)
    while more := set().union(*(implies.get(name, ()) for name in found)) - found:
        found |= more
    return frozenset(found)


def compared(
    run: CloudRun, wanted: tuple[str, ...] | None, has: frozenset[str], project: Resource | None
) -> frozenset[str] | str:
    """Return a credential's roles as a spec would declare them: without roles that ``wanted`` implies, or ALL."""
    if wanted is None:
        held = held_roles(run, project)
        return ALL if held is None or has == held else has
    if not frozenset(wanted) < has:
        return has
    try:
        return has - (implied_by(run, wanted) - frozenset(wanted))
    except NotAllowed:  # only administrators may list implications: any role may be implied
        return frozenset(wanted)


def role_changes(run: CloudRun, wanted: tuple[str, ...] | None, has: frozenset[str], project: Resource | None) -> str:
    """Return the roles that a new credential would have more or less than the existing ones, such as "new: admin"."""
    standing = compared(run, wanted, has, project)
    if isinstance(standing, str):
        return ""
    target = frozenset(wanted) if wanted is not None else held_roles(run, project) or standing
    parts = {"new": target - has, "no longer": standing - target}
    return "; ".join(f"{word}: {', '.join(sorted(roles))}" for word, roles in parts.items() if roles)


def lacking(run: CloudRun, wanted: Iterable[str], project: Resource | None) -> Iterable[tuple[str, str]]:
    """Yield each wanted role that does not exist or that the user lacks, and the fix."""
    held = held_roles(run, project) if wanted else None
    for role in wanted:
        unknown = unknown_role(run, role) if run.acting_user(project) else None
        if unknown:
            yield unknown
        elif held is not None and role not in held:
            has = ", ".join(sorted(held)) or "none"
            yield (
                f"{holder_text(run, project)} does not have the role {role} (has: {has}), so no credential can have it",
                "assign the role to the user, or remove it from roles",
            )


# --- rules and times -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AccessRule:
    """One request that a credential allows; a credential with rules allows no other request.

    Services refuse such credentials unless their configuration contains their service_type.
    """

    method: Name
    """HTTP method, such as GET."""
    service: Name
    """Type of the service, as in the catalogue."""
    path: Name
    """Path of the request, such as /v2.1/servers; * and ** match anything, {name} matches one path segment."""

    def __str__(self) -> str:
        return f"{self.method} {self.service} {self.path}"


def lifetime_of(record: CredentialRecord, wanted: int | None, renew_before: int | None) -> int | str | None:
    """Return the lifetime as declared, unless the credential expires too early, or by whole days too late."""
    if wanted is None or record.left is None or record.expires_at is None:
        return None
    fits = timedelta(days=renew_before or 0) < record.left < timedelta(days=wanted + 1)
    return wanted if fits else f"ends {timestamp(record.expires_at)}"


LONGEST_LIFETIME = 36500
"""Days: a hundred years. Dates end with the year 9999."""


def time_mistakes(lifetime: int | None, renew_before: int | None, expires_at: str | None) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with the times of a spec, and the fix."""
    if lifetime is not None and expires_at is not None:
        yield "lifetime and expires_at are both set", "set only one of them"
    if lifetime is not None and lifetime > LONGEST_LIFETIME:
        yield f"lifetime {lifetime} is in days, and longer than {LONGEST_LIFETIME}", "use fewer days, or leave it out"
    if renew_before is not None and renew_before >= (lifetime or 0):
        yield "renew_before must be less than lifetime", "lower it, or remove it"
    if expires_at and datetime.fromisoformat(timestamp(expires_at)) <= datetime.now(UTC):
        yield f"expires_at {expires_at} is in the past", "choose a later time"


# --- credential ------------------------------------------------------------------------------


REFUSED = (400, 401, 403)  # then no credential was created, unlike after a lost answer
SECRET = "application_credential_secret"
AUTH_TYPE = "v3applicationcredential"
ID, NAME = "application_credential_id", "application_credential_name"
"""Fields of an entry; the name is for people, and identifies the credentials that the spec manages."""
LEFT = "openstack_prep_left"
"""A key of an entry, beside ``auth``: which credential a killed run of this file has left behind, if there is one: how
the ownership tag of the credential to be created ends, or the id of the predecessor. Its secret is in no other file."""
UNCHANGED = ""
RENEWED = {"roles", "expires_at", "lifetime", "unrestricted", "description", "access_rules", "rotated"}
AGREED = {"lifetime", "rotated"}
"""Fields whose change allows apply to delete the credential in use."""
UNIQUE = "choose another name: those of a user are unique, whatever project the credentials are for"
"""Keystone 30.0.0, application_credential/backends/sql.py, duplicate_app_cred_constraint."""
DEPENDS = "a running cluster may depend on it"


@dataclass(frozen=True, kw_only=True)
class ApplicationCredential(InCloudsYaml):
    """A credential of the user who acts in the project, and the clouds.yaml entry that stores it.

    The secret is stored only in this entry.
    """

    kind: ClassVar[str] = "application_credential"
    identity: ClassVar[frozenset[str]] = InCloudsYaml.identity | {"clouds_yaml", "cloud", "renew_before"}
    implied: ClassVar[frozenset[str]] = frozenset({"secret", "mode", MANAGED})
    needs_login: ClassVar[bool] = True
    file_field: ClassVar[str] = "clouds_yaml"
    has_only_copy: ClassVar[bool] = True

    name: Name
    """Name of the credential; each renewal alternates between NAME and NAME-new."""
    clouds_yaml: File
    """The clouds.yaml to write the entry to; other entries are left untouched."""
    roles: tuple[Name, ...] | None = None
    """Names of its roles, besides the roles that they imply; default: all roles of the user in the project."""
    expires_at: Timestamp | None = None
    """Expiry time, such as 2027-01-31T12:00:00Z."""
    lifetime: Count | None = None
    """Lifetime of each credential in days, instead of expires_at."""
    renew_before: Count | None = None
    """Renew a credential with a lifetime this many days before it expires; default: when it has expired."""
    unrestricted: bool | None = None
    """Whether it may create further credentials; it does not help Heat, because Keystone refuses trusts to all
    application credentials since the fix of CVE-2026-43000."""
    description: str | None = None
    """Free text; an ownership tag is appended."""
    access_rules: tuple[AccessRule, ...] | None = None
    """Requests to allow; no other requests are allowed."""

    @property
    def file(self) -> Path:
        return Path(self.clouds_yaml)

    def needs(self) -> Iterable[Key]:
        return (access(self.owner),)

    def desired(self) -> Values:
        values = super().desired() | {"secret": HIDDEN, "mode": PRIVATE, MANAGED: True}
        values["roles"] = ALL if self.roles is None else frozenset(self.roles)
        if self.access_rules is not None:
            values["access_rules"] = frozenset(map(str, self.access_rules))
        if self.expires_at is not None:
            values["expires_at"] = timestamp(self.expires_at)
        return values

    keeps_old: ClassVar[bool] = False
    """Whether a replaced credential is kept, in its own entry."""

    @property
    def old_entry(self) -> str:
        return f"{self.cloud}-old"

    @property
    def names(self) -> tuple[str, str]:
        return self.name, f"{self.name}-new"

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        """Yield each credential that a running cluster may depend on and that an update would delete.

        Its secret is missing, or a new credential replaces it. A ``lifetime`` and a rotation allow the replacement.
        """
        credentials = observed.record_as(Credentials)
        lost = ", ".join(f"{each.name} ({each.id})" for each in credentials.lost)
        if lost:
            because = f"its secret is missing from {self.clouds_yaml}"
            yield Loss.about(
                self.key,
                f"{lost} of {credentials.holder} would be deleted because {because}, and {DEPENDS}",
                f"copy the entry {self.cloud} from where the spec was applied, or allow the deletion (--allow-replace)",
            )
        if credentials.live and observed.ours and not credentials.keeps_one and not credentials.live.has_ended:
            yield from self._renewals(credentials.live, observed, credentials)

    def _renewals(self, live: CredentialRecord, observed: Observed, credentials: Credentials) -> Iterable[Loss]:
        """Yield that a new credential would replace the one in use."""
        changed = {name for name, value in self.desired().items() if observed.values.get(name) != value}
        if not RENEWED & changed or AGREED & changed:
            return
        roles = credentials.role_changes
        fields = ", ".join(sorted(RENEWED & changed)) + (f" ({roles})" if roles else "")
        whose = f"{live.name} ({live.id}) of {credentials.holder}"
        what = f"{whose} would be deleted because it differs in {fields}, and {DEPENDS}"
        command = f"openstack-prep credential rotate SPEC --name {shell.quote(self.name)} --keep-old"
        fix = f"keep the old credential ({command}), or allow the deletion (--allow-replace)"
        yield replace(Loss.about(self.key, what, fix), lost=(live.id,))

    def check_kept(self, observed: Observed) -> Iterable[Mistake]:
        """Yield that both names are in use, so that no further credential can be created."""
        wrong = [name for name, value in self.desired().items() if observed.values[name] != value]
        if observed.record_as(Credentials).keeps_one and RENEWED.intersection(wrong):
            what = f"differs in {', '.join(wrong)}, but its predecessor is still kept in the entry {self.old_entry}"
            entry = f"remove {self.old_entry} from {self.clouds_yaml}"
            fix = f"switch its clients to the new credential, {entry}, and apply again"
            yield self.mistake(what, fix)

    # --- existing state -------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        return self._observed(run, in_project(run, self.owner))

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the credentials of the user who acts in the project; credentials of other users cannot be listed.

        It is not known which file holds the entry of a credential, so the deletion touches no file.
        """
        families: dict[tuple[str, bool], list[CredentialRecord]] = defaultdict(list)
        any_one = cls(name="any", clouds_yaml="", cloud="", **cls.placing(owner))
        for each in in_project(run, owner):
            declared = replace(any_one, name=run.ownership.name_in(each.description) or each.name)
            ours = declared._is_ours(run, each)
            families[declared.name if ours else each.name, ours].append(each)
        for (name, ours), family in families.items():
            yield replace(any_one, name=name), _without_entry(family, ours=ours)

    def by_id(self, observed: Observed) -> LeftCredential:
        return LeftCredential(name=self.name, ids=observed.contained_ids, **self.placing(self.owner))

    def acting_user(self, run: CloudRun) -> User | None:
        user = run.acting_user(self.owner)
        return user if isinstance(user, User) else None

    def _observed(self, run: CloudRun, listed: Sequence[CredentialRecord]) -> Observed | None:
        """Return the credential whose id is in clouds.yaml, or a credential of this spec whose secret is lost."""
        found = self.read_entry()
        entry = found or {}
        auth = entry.get("auth") or {}
        mine = [each for each in listed if self._is_ours(run, each)]
        live = next((each for each in listed if each.id == auth.get(ID)), None)
        shown = live or next(iter(mine), None)
        if shown is None:
            return None
        begun = self._announced(auth)
        kept = self._id_of(self.old_entry)
        secret = (
            "(another credential remains)" if any(each.id != kept for each in mine if each is not shown) else HIDDEN
        )
        if live is None:
            secret = "(not written)" if begun else f"(lost, so a new credential replaces {shown.name})"
        elif live.expires_at and live.has_ended:
            secret = f"(ended {timestamp(live.expires_at)})"
        values = self.values(run, shown)
        differing = [name for name, value in self.desired().items() if name in values and values[name] != value]
        if live and shown in mine and not live.has_ended and self._is_renewed(live, differing):
            secret = f"(of {live.name}, which a new credential replaces)"
        settings = {**self.settings_in(entry), "auth_url": auth.get("auth_url"), "secret": secret}
        return Observed(
            id=shown.id,
            ours=shown in mine,
            managed_by=run.ownership.another_in(shown.description),
            values={
                **values,
                **settings,
                "mode": mode(self.file) if entry else None,
                MANAGED: found is None or shown not in mine or self._is_reserved(run, entry),
            },
            outputs={"path": self.clouds_yaml},
            contained_ids=frozenset(each.id for each in mine),
            record=Credentials(
                live=live,
                mine=tuple(mine),
                lost=tuple(record for record in mine if self._may_be_in_use(run, record, live, found)),
                kept=kept,
                begun=begun,
                holder=holder_text(run, self.owner),
                role_changes=role_changes(run, self.roles, live.roles, self.owner) if live else "",
            ),
        )

    def _is_ours(self, run: CloudRun, record: CredentialRecord) -> bool:
        """Whether a credential has the ownership tag, and a name that goes with it: a copy has another name."""
        return record.name in self.names and run.ownership.owns(record.description, self.name)

    def _announced(self, auth: Raw) -> bool:  # the entry only announces a credential
        return auth.get(NAME) in self.names and not {ID, SECRET} & auth.keys()

    def _may_be_in_use(
        self, run: CloudRun, record: CredentialRecord, live: CredentialRecord | None, found: Raw | None
    ) -> bool:
        """Whether somebody may use a credential of this spec whose secret is not in the file.

        The file may have an entry of somebody else, which is refused by itself; one of this spec may be of another
        kind, such as with a password. ``live`` is the credential of the entry.
        """
        entry = found or {}
        auth = entry.get("auth") or {}
        if record.has_ended or record == live or _is_left(entry, record):
            return False
        if live is not None:
            return record.id != self._id_of(self.old_entry)
        # earlier versions did not record which credential an announced one is
        is_unfinished = self._announced(auth) and LEFT not in entry
        is_ours = found is None or auth.get(NAME) in self.names or self._is_reserved(run, entry)
        return is_ours and not is_unfinished

    def _id_of(self, cloud: str) -> str | None:
        """Return the id of the credential in an entry of the file."""
        found = clouds_yaml.read(self.file).get(cloud)
        auth = found.get("auth") if isinstance(found, dict) else None
        return auth.get(ID) if isinstance(auth, dict) else None

    def values(self, run: CloudRun, record: CredentialRecord) -> Values:
        return {
            "roles": compared(run, self.roles, record.roles, self.owner),
            "expires_at": record.expires_at and timestamp(record.expires_at),
            "lifetime": lifetime_of(record, self.lifetime, self.renew_before),
            "unrestricted": record.unrestricted,
            "description": run.ownership.strip(record.description),
            "access_rules": record.access_rules,
        }

    # --- checks ---------------------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        yield from super().list_mistakes(context)
        for other in self._namesakes(context):
            what = f"needs the names {' and '.join(self.names)}, of which {other.key} of the same user needs one, too"
            yield self.mistake(what, UNIQUE, Code.SPEC_CONTRADICTION, "name")
        for what, fix in time_mistakes(self.lifetime, self.renew_before, self.expires_at):
            yield self.mistake(what, fix, Code.SPEC_CONTRADICTION)

    def _namesakes(self, context: Context) -> Iterator[ApplicationCredential]:
        """Yield the credentials declared before this one that the same user cannot have beside it."""
        actors = context.read_once(actors_of, lambda: actors_of(context.resources))

        def user(credential: ApplicationCredential) -> Key | None:
            actor = actors.get(credential.owner.key if credential.owner else None)
            return actor.user.key if actor else None

        for other in context.declared(ApplicationCredential):
            if other.key == self.key:
                return
            if user(other) == user(self) and not {*self.names}.isdisjoint(other.names):
                yield other

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        for what, fix in lacking(run, self.roles or (), self.owner):
            yield self.mistake(what, fix)
        live = observed.record_as(Credentials).live if observed else None
        tenant = run.find_tenant(self.owner)
        wrong = [name for name, value in self.desired().items() if observed and observed.values.get(name) != value]
        is_renewed = live is not None and observed is not None and observed.ours and self._is_renewed(live, wrong)
        if (live is None or is_renewed) and tenant and tenant.is_restricted:
            what = f"entry {tenant.name} logs in by an application credential, which Keystone lets create no other"
            fix = "apply by an entry with the user's password (--os-cloud, or clouds: tenant:)"
            yield self.mistake(what, fix, Code.MISSING_RIGHT)
        yield from unwritable(self, self.file, observed)
        entry = self.read_entry()
        if live is None and entry is not None and not self._is_free(run, entry):
            yield self._taken(self.cloud, entry)
        else:
            yield from self._check_overrides(entry, live)
        for each in held(run, self.owner):
            if each != live:
                yield from self._name_taken(run, each, self.names)
        if observed is not None and live:
            yield from self.check_kept(observed)
        if observed is not None and live and not observed.ours:
            what = f"{live.name} ({live.id}) of {holder_text(run, self.owner)} exists, is {observed.owner}, and "
            if live.has_ended:
                yield self.mistake(f"{what}expired at {live.expires_at}", "choose another name")
            elif wrong:  # the entry is not this spec's either
                yield self.mistake(f"{what}differs in {', '.join(wrong)}", "choose another name")

    def _name_taken(self, run: CloudRun, record: CredentialRecord, names: Collection[str]) -> Iterator[Mistake]:
        """Yield that a credential of the user has one of these names, and is not one of this declaration."""
        is_here = record.project_id == run.find_project_id(self.owner)
        if record.name not in names or (is_here and self._is_ours(run, record)):
            return
        place = "" if is_here else f" for project {queries.project_name(run, record.project_id)}"
        holder = holder_text(run, self.owner)
        owner = owner_text(run.ownership.another_in(record.description))
        if not is_here and run.ownership.owns(record.description):
            owner = "managed by this spec there"
        what = f"{holder} already has a credential {record.name} ({record.id}){place}, which is {owner}"
        yield self.mistake(what, "choose another name" if is_here else UNIQUE, Code.PLAN_FOREIGN)

    def _is_reserved(self, run: CloudRun, entry: Raw) -> bool:
        """Whether an entry names this credential of this spec as its owner."""
        tag = str(entry.get(OWNER, ""))
        return run.ownership.owns(tag, self.name) and home.owns_file(run, tag)

    def _is_free(self, run: CloudRun, entry: Raw) -> bool:
        """Whether an entry without an existing credential of this spec may be overwritten.

        Earlier versions wrote entries that name no owner: such an entry may hold the only secret of a credential that
        this user cannot list, unless it only announces one.
        """
        auth = entry.get("auth") or {}
        if OWNER in entry:
            return self._is_reserved(run, entry)
        return self._announced(auth)

    def _taken(self, cloud: str, entry: Raw) -> Mistake:
        owner = owner_of(entry)
        what = f"{self.clouds_yaml} already has an entry {cloud} with different credentials"
        what += f", {owner_text(owner)}" if owner else ""
        return self.mistake(what, "choose another name, or remove the entry from the file", Code.PLAN_FOREIGN)

    def _judge(self, run: CloudRun, live: CredentialRecord | None, found: Raw | None) -> None:
        """Raise PlanRefused for the entry of another owner, CloudError if a concurrent run of this spec wrote it.

        ``live`` is the credential that the entry is known to hold. It asks Keystone, so nothing calls it under the lock
        of the file.
        """
        held = ((found or {}).get("auth") or {}).get(ID)
        if found is None or (live is not None and held == live.id):
            return
        if held is not None and any(each.id == held for each in in_project(run.fresh(), self.owner)):
            raise CloudError(f"{self.clouds_yaml}: entry {self.cloud} was modified concurrently", retryable=True)
        if not self._is_free(run, found):
            raise PlanRefused([self._taken(self.cloud, found)])

    def _check_overrides(self, entry: Raw | None, live: CredentialRecord | None) -> Iterable[Mistake]:
        """Yield what would go before the entry, whose secret is unknown until a credential is created."""
        auth = (entry or {}).get("auth") or {} if live else {ID: UNKNOWN, NAME: self.name, SECRET: UNKNOWN}
        written = self.merged_entry(entry, {**auth, "auth_url": self.auth_url}, auth_type=AUTH_TYPE)
        return self.check_overrides(written)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield that destroy would delete the credential that the run itself logs in with."""
        for cloud in {run.admin, run.find_tenant(self.owner) or run.admin}:
            if cloud.application_credential_id in observed.contained_ids:
                what = f"the cloud in use, {cloud.name}, logs in with this credential, so destroy cannot delete it"
                fix = "choose another entry of clouds.yaml with --os-cloud, or with clouds: in the spec"
                yield self.mistake(what, fix, Code.OWN_CONNECTION)

    # --- the verbs ------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        return self._renew(run, None, ())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        credentials = observed.record_as(Credentials)
        live = credentials.live
        left = [each for each in credentials.mine if each != live and each.id != credentials.kept]
        if live is None or self._is_renewed(live, (change.field for change in changes)):
            return self._renew(run, live, left)
        self._drop(run.tenant(self.owner), left)
        with clouds_yaml.turn(self.file):
            self._write(run, live, (self.read_entry() or {}).get("auth") or {})
        self.confirm_login(run)
        return self._made(run, live)

    @staticmethod
    def _is_renewed(live: CredentialRecord, changed: Iterable[str]) -> bool:
        """Whether a new credential has to replace one, because Keystone cannot change these fields of it."""
        return live.has_ended or not RENEWED.isdisjoint(changed)

    def _renew(self, run: CloudRun, live: CredentialRecord | None, left: Iterable[CredentialRecord]) -> Observed:
        """Create a credential under the unused name, switch the entry, and delete the old credential.

        The entry is reserved first: Keystone reports a secret only once, so there must be a place for it. Two runs that
        share the file take turns; the second run reads the entry again and finds the work done.
        """
        tenant = run.tenant(self.owner)
        with clouds_yaml.turn(self.file):
            if live and self._id_of(self.cloud) != live.id:
                raise CloudError(f"{self.clouds_yaml}: entry {self.cloud} was modified concurrently", retryable=True)
            first, second = self.names
            name = second if live and live.name == first else first
            entry = self.read_entry() or {}
            auth = entry.get("auth") or {}
            attempt = str((entry.get(LEFT) if self._announced(auth) else "") or secrets.token_hex(4))
            if live and self.keeps_old:
                self._refuse_other(live, clouds_yaml.read(self.file).get(self.old_entry))
            self._drop(tenant, left)
            self._write(run, live, auth if live else {NAME: name}, left=attempt)
            now = tenant.now()
            made = self._post(run, tenant, name, attempt)
            try:
                if live and self.keeps_old:  # before its secret is removed from the entry
                    self._keep(live)
                new = {ID: made["id"], NAME: made["name"], SECRET: made.pop("secret")}
                self._write(run, live, new, left=live.id if live else None)
            except PrepError:  # its secret is lost, so nobody can use it
                self._drop(tenant, [CredentialRecord.read(made, now)])
                raise
            self.confirm_login(run)
            if live and not self.keeps_old:
                self._drop(tenant, [live])
        return self._made(run, CredentialRecord.read(made, now))

    def _keep(self, live: CredentialRecord) -> None:
        """Copy the entry in use to the entry for predecessors."""
        entry = self.read_entry() or {}

        def kept(found: Any) -> Raw:
            self._refuse_other(live, found)
            return entry

        clouds_yaml.put(self.file, self.old_entry, kept)

    def _refuse_other(self, live: CredentialRecord, found: Any) -> None:
        """Raise PlanRefused if the entry for predecessors holds any other credential."""
        entry = whole_entry(found)
        if entry is not None and (entry.get("auth") or {}).get(ID) != live.id:
            raise PlanRefused([self._taken(self.old_entry, entry)])

    def _post(self, run: CloudRun, tenant: Cloud, name: str, attempt: str) -> Values:
        tag = replace(run.ownership, place=attempt)
        body: Values = {"name": name, "description": tag.describe(self.name, self.description)}
        if self.roles is not None:
            body["roles"] = [{"name": role} for role in self.roles]
        if self.expires_at or self.lifetime:
            end = tenant.now() + timedelta(days=self.lifetime or 0)
            body["expires_at"] = timestamp(self.expires_at or end.isoformat())
        if self.unrestricted is not None:
            body["unrestricted"] = self.unrestricted
        if self.access_rules is not None:
            body["access_rules"] = [vars(rule) for rule in self.access_rules]
        try:  # the answer contains the secret
            answer = tenant.identity.post(path(tenant.user_id), {"application_credential": body}, log=False)
        except CloudError as error:
            taken: list[Mistake] = []
            if error.status == 409:
                found = held(run.fresh(), self.owner)
                taken = [mistake for each in found for mistake in self._name_taken(run, each, [name])]
            announced = self._announced((self.read_entry() or {}).get("auth") or {})
            if announced and (taken or error.status in REFUSED):
                clouds_yaml.drop(self.file, self.cloud)
            if taken:
                raise PlanRefused(taken) from error
            if error.status == 400 and "role assignment" in str(error):
                # Keystone caches the roles from before the latest assignment for a while
                raise CloudError(str(error), retryable=True, status=400) from error
            raise
        return dict(answer["application_credential"])

    def _write(self, run: CloudRun, live: CredentialRecord | None, auth: Raw, *, left: str | None = UNCHANGED) -> None:
        """Write the entry, which holds the ``live`` credential if any, unless it has another owner by now.

        ``left`` is the new value of LEFT; None removes it.
        """
        more = {OWNER: home.file_ownership(run).describe(self.name)} | ({} if left == UNCHANGED else {LEFT: left})
        judge = partial(self._judge, run, live)
        self.write_entry({**auth, "auth_url": self.auth_url}, judge, auth_type=AUTH_TYPE, **more)

    def _made(self, run: CloudRun, record: CredentialRecord) -> Observed:
        observed = self._observed(run, [record])
        assert observed is not None
        return observed

    def _drop(self, cloud: Cloud, credentials: Iterable[CredentialRecord]) -> None:
        for each in credentials:
            cloud.identity.delete(f"{path(each.user_id)}/{each.id}")

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete the entry first: a credential without an entry is found again by its ownership tag."""
        credentials = observed.record_as(Credentials)
        ids = {each.id for each in credentials.mine}

        def is_ours(found: Any) -> bool:
            entry = whole_entry(found) or {}
            auth = entry.get("auth") or {}
            return auth.get(ID) in ids or (self._announced(auth) and self._is_free(run, entry))

        if credentials.live or credentials.begun:
            clouds_yaml.drop(self.file, self.cloud, is_ours)
        self._drop(holder_in(run, self.owner)[0], credentials.mine)
        if credentials.keeps_one:
            clouds_yaml.drop(self.file, self.old_entry, is_ours)


@dataclass(frozen=True, kw_only=True)
class LeftCredential(ApplicationCredential, Undeclarable):
    """The credentials of one removed declaration, found by id: it is not known which file holds the entry."""

    clouds_yaml: str = ""
    cloud: str = ""
    ids: frozenset[str]

    def find_one(self, run: CloudRun) -> Observed | None:
        listed = (credential for credential in in_project(run, self.owner) if credential.id in self.ids)
        mine = [credential for credential in listed if self._is_ours(run, credential)]
        return _without_entry(mine, ours=True) if mine else None


def _is_left(entry: Raw, record: CredentialRecord) -> bool:
    """Whether a killed run of this file has left a credential behind, and not one of another file."""
    return bool(entry.get(LEFT)) and entry[LEFT] in (record.id, OwnershipTag.place_in(record.description))


def _without_entry(family: Sequence[CredentialRecord], *, ours: bool) -> Observed:
    """Return credentials with one name, whose entry nobody knows."""
    known = Credentials(live=None, mine=tuple(family if ours else ()), lost=(), kept=None, begun=False, holder="")
    ids = frozenset(credential.id for credential in family)
    return Observed(id=family[0].id, ours=ours, record=known, contained_ids=ids)


# --- rotation --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RotatedCredential(ApplicationCredential, Undeclarable):
    """A credential that must differ from the one that was in use when the rotation was planned.

    So a second run has nothing left to do, and the next run continues after a run that was killed.
    """

    identity: ClassVar[frozenset[str]] = ApplicationCredential.identity | {"retired"}

    retired: str
    """Id of the credential to replace."""

    @staticmethod
    def of(credential: ApplicationCredential, observed: Observed, keep_old: bool) -> RotatedCredential:
        given = {field.name: getattr(credential, field.name) for field in fields(ApplicationCredential)}
        made = RotatedKeepingOld if keep_old else RotatedCredential
        return made(**given, retired=observed.id)

    def desired(self) -> Values:
        return super().desired() | {"rotated": True}

    def values(self, run: CloudRun, record: CredentialRecord) -> Values:
        return super().values(run, record) | {"rotated": record.id != self.retired}


@dataclass(frozen=True, kw_only=True)
class RotatedKeepingOld(RotatedCredential):
    """A rotated credential whose predecessor stays in use elsewhere, stored in the entry CLOUD-old."""

    keeps_old: ClassVar[bool] = True
