"""Application credentials: a user's stand-in for programs, kept in a clouds.yaml.

Source: Identity API v3, "Application Credentials" and "List All Role Inference Rules".

Keystone tells a credential's secret once, in the answer to its creation, and cannot change or rename
a credential.  So one step makes the credential and writes the entry, and what differs is renewed: a
new one is made under the other of two names (NAME, NAME-new), the entry is switched, and the old one
deleted.  Killed in between, the next apply sees by the id in the entry which one lives, and goes on.
The first is announced by an entry with its name alone: killed then, nobody lives by it.  One whose
entry is elsewhere may serve a cluster, and is deleted by consent only; one that has ended serves nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

from openstack_prep import clouds_yaml
from openstack_prep.cloud import Cloud
from openstack_prep.errors import CloudError, Mistake, NotAllowed
from openstack_prep.fields import Count, File, Name, Timestamp, timestamp
from openstack_prep.model import Change, Condition, Key, Observed
from openstack_prep.private_file import PRIVATE, mode
from openstack_prep.resources.clouds_entry import InCloudsYaml, settings_of
from openstack_prep.resources.project import access
from openstack_prep.resources.role_assignment import unknown_role
from openstack_prep.secret import HIDDEN
from openstack_prep.site import Site

RENEWED = {"roles", "expires_at", "lifetime", "unrestricted", "description", "access_rules"}
REFUSED = (400, 401, 403)  # then there is none, unlike after a lost answer
SECRET = "application_credential_secret"
AUTH_TYPE = "v3applicationcredential"
IN_PLACE = Condition(HIDDEN)
"""The secret is in the entry, and the credential is the only one of ours."""
TWO = Condition("(an older one is left)")
UNWRITTEN = Condition("(not written)")
LOST = Condition("(lost)")

Raw = Mapping[str, Any]
ID, NAME = "application_credential_id", "application_credential_name"  # the name is for people, and to know ours by


@dataclass(frozen=True, kw_only=True)
class AccessRule:
    """One request that a credential allows; with rules it allows nothing else.

    Services refuse such a credential altogether unless their configuration names their service_type.
    """

    method: Name
    """HTTP method, such as GET."""
    service: Name
    """Type of the service, as in the catalogue."""
    path: Name
    """Path of the request, such as /v2.1/servers; * and ** stand for anything, {name} for one part."""

    def __str__(self) -> str:
        return f"{self.method} {self.service} {self.path}"


@dataclass(frozen=True)
class Credentials:
    """The credentials that exist for one that is declared, as Keystone lists them."""

    live: Raw | None
    """The one whose id stands in the entry."""
    mine: tuple[Raw, ...]
    """All that this spec has made, after a killed run several."""
    announced: bool
    """Whether the entry says that one was about to be made, so that nobody uses it yet."""
    lost: tuple[Raw, ...]
    """Those that somebody may use although their secret is not in the entry."""


@dataclass(frozen=True, kw_only=True)
class ApplicationCredential(InCloudsYaml):
    """A credential of the user who does the project's own work, and the clouds.yaml entry that holds it.

    The secret stands in that entry and nowhere else; whether it is the right one there is not tried.
    """

    kind: ClassVar[str] = "application_credential"
    identity: ClassVar[frozenset[str]] = InCloudsYaml.identity | {"clouds_yaml", "cloud", "renew_before"}

    name: Name
    """Name of the credential; after a renewal, in turns, NAME-new."""
    clouds_yaml: File
    """The clouds.yaml to write it into; other entries stay as they are."""
    roles: tuple[Name, ...] | None = None
    """Names of roles that it has, besides those they imply; default: all that the user has there."""
    expires_at: Timestamp | None = None
    """When it ends, such as 2027-01-31T12:00:00Z."""
    lifetime: Count | None = None
    """Days for which each is made, instead of expires_at."""
    renew_before: Count | None = None
    """Days before its end from which an apply renews one with a lifetime; default: when it has ended."""
    unrestricted: bool | None = None
    """Whether it may make further credentials and trusts; Heat may need that, little else does."""
    description: str | None = None
    """Free text; our mark stands behind it."""
    access_rules: tuple[AccessRule, ...] | None = None
    """Requests to allow, and no others."""

    @property
    def file(self) -> Path:
        return Path(self.clouds_yaml)

    def needs(self) -> Iterable[Key]:
        return (access(self.owner),)

    def desired(self) -> dict[str, Any]:
        values = super().desired() | {"secret": IN_PLACE, "mode": PRIVATE}
        if self.roles is not None:
            values["roles"] = frozenset(self.roles)
        if self.access_rules is not None:
            values["access_rules"] = frozenset(map(str, self.access_rules))
        if self.expires_at is not None:
            values["expires_at"] = timestamp(self.expires_at)
        return values

    @property
    def _names(self) -> tuple[str, str]:
        return self.name, f"{self.name}-new"

    # --- what is there ---------------------------------------------------------------------

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        pairs = ((each, each._observed(site, each._listed(site))) for each in wanted)
        return {each.key: observed for each, observed in pairs if observed is not None}

    def _holder(self, site: Site) -> tuple[Cloud, str | None]:
        """Return the id of the user, None when yet to be made, and who may read its credentials."""
        own, user = site.find_tenant(self.owner), site.acting_user(self.owner)
        if own is not None:
            return own, own.user_id
        return site.admin, site.find_id(user) if user else None

    def _listed(self, site: Site) -> list[dict[str, Any]]:
        """Return the user's credentials in the project."""
        cloud, user_id = self._holder(site)
        if user_id is None:
            return []
        path, plural = _path(user_id), "application_credentials"
        listed = site.once((plural, user_id), lambda: cloud.identity.list(path, plural))
        return [raw for raw in listed if raw["project_id"] == site.find_project_id(self.owner)]

    def _observed(self, site: Site, listed: Iterable[Raw]) -> Observed | None:
        """Return the one whose id stands in clouds.yaml, or one of ours whose secret nobody knows."""
        found = self.read_entry()
        entry = found or {}
        auth = entry.get("auth") or {}
        mine = [raw for raw in listed if site.mark.owns(raw["description"], self.name)]
        live = next((raw for raw in listed if raw["id"] == auth.get(ID)), None)
        raw = live or next(iter(mine), None)
        if raw is None:
            return None
        begun = self._announced(auth)
        absent = live is None and not begun and (found is None or auth.get(NAME) in self._names)
        secret = TWO if mine[1:] else IN_PLACE
        if live is None:
            secret = UNWRITTEN if begun else LOST
        elif _ended(live):
            secret = Condition(f"(ended {timestamp(live['expires_at'])})")
        settings = {**settings_of(entry), "auth_url": auth.get("auth_url"), "secret": secret}
        return Observed(
            id=raw["id"],
            ours=raw in mine,
            values={**self._values(site, raw), **settings, "mode": mode(self.file) if entry else None},
            outputs={"path": self.clouds_yaml},
            record=Credentials(live, tuple(mine), begun, tuple(raw for raw in mine if absent and not _ended(raw))),
        )

    def _announced(self, auth: Raw) -> bool:
        """Whether an entry says that one was to be made, and no more."""
        return auth.get(NAME) in self._names and not {ID, SECRET} & auth.keys()

    def _values(self, site: Site, raw: Raw) -> dict[str, Any]:
        rules = raw.get("access_rules") or ()
        return {
            "roles": self._roles(site, raw),
            "expires_at": raw["expires_at"] and timestamp(raw["expires_at"]),
            "lifetime": self._lifetime(raw["expires_at"]),
            "unrestricted": bool(raw["unrestricted"]),
            "description": site.mark.strip(raw["description"]),
            "access_rules": frozenset(f"{rule['method']} {rule['service']} {rule['path']}" for rule in rules),
        }

    def _roles(self, site: Site, raw: Raw) -> frozenset[str]:
        """Return its roles without those that the wanted ones imply."""
        roles, wanted = frozenset(role["name"] for role in raw["roles"]), frozenset(self.roles or ())
        if not wanted or not wanted < roles:
            return roles
        try:
            return roles - (_implied(site, wanted) - wanted)
        except NotAllowed:  # only administrators may ask what implies what: it may be all
            return wanted

    def _lifetime(self, expires_at: str | None) -> Any:
        """Return the lifetime wanted while the end is neither too near nor too far."""
        if self.lifetime is None or expires_at is None:
            return None
        left = datetime.fromisoformat(timestamp(expires_at)) - datetime.now(UTC)
        fits = timedelta(days=self.renew_before or 0) < left <= timedelta(days=self.lifetime)
        return self.lifetime if fits else Condition(f"ends {timestamp(expires_at)}")

    # --- what would go wrong ---------------------------------------------------------------

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        yield from self._check_time()
        for role in self.roles or () if site.acting_user(self.owner) else ():
            unknown = unknown_role(site, role)
            if unknown:
                yield self.mistake(*unknown)
        live = observed.recorded(Credentials).live if observed else None
        entry = self.read_entry()
        if live is None and entry is not None and (entry.get("auth") or {}).get(NAME) not in self._names:
            yield self.mistake(
                f"{self.clouds_yaml} has an entry {self.cloud} with other credentials",
                "choose another name, or take it out of the file",
            )
        for raw in self._listed(site):
            ours = site.mark.owns(raw["description"], self.name)
            if raw["name"] in self._names and not ours and raw is not live:
                taken = f"there is a credential {raw['name']} already, not made by this spec ({raw['id']})"
                yield self.mistake(taken, "choose another name")
        if observed is not None and live and not observed.ours:
            wrong = [name for name, value in self.desired().items() if observed.values[name] != value]
            if _ended(live):
                yield self.mistake(f"was not made by this spec and ended {live['expires_at']}", "choose another name")
            elif RENEWED.intersection(wrong):
                yield self.mistake(
                    f"was not made by this spec and differs in {', '.join(wrong)}", "choose another name"
                )

    def _check_time(self) -> Iterable[Mistake]:
        if self.lifetime is not None and self.expires_at is not None:
            yield self.mistake("has both lifetime and expires_at", "keep one of them")
        if self.renew_before is not None and self.renew_before >= (self.lifetime or 0):
            yield self.mistake("renew_before is not less than lifetime", "make it less, or take it out")
        if self.expires_at and datetime.fromisoformat(timestamp(self.expires_at)) <= datetime.now(UTC):
            yield self.mistake(f"expires_at {self.expires_at} has passed", "choose a later time")

    def losses(self, observed: Observed) -> Iterable[Mistake]:
        """Yield that one by which a cluster may live is to be deleted, for nobody here knows its secret."""
        lost = ", ".join(f"{raw['name']} ({raw['id']})" for raw in observed.recorded(Credentials).lost)
        if lost:
            yield self.mistake(
                f"{lost}, by which a cluster may live, would be deleted, for its secret is not in {self.clouds_yaml}",
                f"copy the entry {self.cloud} from where the spec was applied, or consent to that (--allow-replace)",
            )

    # --- what is done ----------------------------------------------------------------------

    def create(self, site: Site) -> Observed:
        return self._renew(site, None, ())

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        found = observed.recorded(Credentials)
        live, mine = found.live, found.mine
        if live is None or _ended(live) or RENEWED.intersection(change.field for change in changes):
            return self._renew(site, live, mine)
        self._drop(site.tenant(self.owner), (raw for raw in mine if raw is not live))
        self._write((self.read_entry() or {}).get("auth") or {})
        return self._made(site, live)

    def _renew(self, site: Site, live: Raw | None, mine: Iterable[Raw]) -> Observed:
        """Make one under the name that the living one does not have, switch the entry, delete the old."""
        tenant = site.tenant(self.owner)
        self._drop(tenant, (raw for raw in mine if raw is not live))
        first, second = self._names
        name = second if live and live["name"] == first else first
        if live is None:
            self._write({NAME: name})
        made = self._post(site, tenant, name)
        secret = made.pop("secret")
        self._write({ID: made["id"], NAME: made["name"], SECRET: secret})
        if live:
            self._drop(tenant, [live])
        return self._made(site, made)

    def _post(self, site: Site, tenant: Cloud, name: str) -> dict[str, Any]:
        body: dict[str, Any] = {"name": name, "description": site.mark.describe(self.name, self.description)}
        if self.roles is not None:
            body["roles"] = [{"name": role} for role in self.roles]
        if self.expires_at or self.lifetime:
            ends = datetime.now(UTC) + timedelta(days=self.lifetime or 0)
            body["expires_at"] = timestamp(self.expires_at or ends.isoformat())
        if self.unrestricted is not None:
            body["unrestricted"] = self.unrestricted
        if self.access_rules is not None:
            body["access_rules"] = [vars(rule) for rule in self.access_rules]
        try:  # the answer holds the secret
            answer = tenant.identity.post(_path(tenant.user_id), {"application_credential": body}, log=False)
        except CloudError as error:
            if error.status in REFUSED and self._announced((self.read_entry() or {}).get("auth") or {}):
                clouds_yaml.drop(self.file, self.cloud)
            if error.status == 400 and "role assignment" in str(error):
                # Keystone remembers for a while which roles there were before the latest
                raise CloudError(str(error), retryable=True, status=400) from error
            raise
        return dict(answer["application_credential"])

    def _write(self, auth: Raw) -> None:
        self.write_entry({**auth, "auth_url": self.auth_url}, auth_type=AUTH_TYPE)

    def _made(self, site: Site, raw: Raw) -> Observed:
        observed = self._observed(site, [raw])
        assert observed is not None
        return observed

    def _drop(self, cloud: Cloud, credentials: Iterable[Raw]) -> None:
        for raw in credentials:
            cloud.identity.delete(f"{_path(raw['user_id'])}/{raw['id']}")

    def delete(self, site: Site, observed: Observed) -> None:
        """Delete the entry first: a credential without one is found again, by its mark."""
        found = observed.recorded(Credentials)
        if found.live or found.announced:
            clouds_yaml.drop(self.file, self.cloud)
        self._drop(self._holder(site)[0], found.mine)


def _path(user_id: str) -> str:
    return f"/users/{user_id}/application_credentials"


def _ended(raw: Raw) -> bool:
    ends = raw["expires_at"]
    return bool(ends) and datetime.fromisoformat(timestamp(ends)) <= datetime.now(UTC)


def _implied(site: Site, names: frozenset[str]) -> frozenset[str]:
    """Return roles and all that they imply."""
    rules = site.once("role inferences", lambda: site.admin.identity.get("/role_inferences")["role_inferences"])
    implies = {rule["prior_role"]["name"]: {role["name"] for role in rule["implies"]} for rule in rules}
    found: set[str] = set(names)
    while more := set().union(*(implies.get(name, ()) for name in found)) - found:
        found |= more
    return frozenset(found)
