"""Entries of clouds.yaml files, so that clients find the cloud as a user of the spec.

Source: openstacksdk's "Configuring OpenStack SDK Applications".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, LoginBlocked, Mistake, PlanRefused
from openstack_prep.base.fields import File, Name, Text
from openstack_prep.base.private_file import PRIVATE, mode
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.clouds_yaml import OWNER, owner_of
from openstack_prep.cloud.entries import IDENTITY_VERSION, PER_SERVICE, absolute
from openstack_prep.core.model import DIFFERS, MANAGED, Change, Context, Key, Observed, Resource
from openstack_prep.core.observed import owner_text
from openstack_prep.core.resource import Unguarded, WrittenFile
from openstack_prep.resources.files.client_login import INSECURE, PAUSES, UNUSABLE, ClientLogin, find_block
from openstack_prep.resources.files.owned_file import unwritable
from openstack_prep.resources.identity.in_project import InProject, access
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project
from openstack_prep.resources.identity.user import User

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

SETTINGS = {
    "region": "region_name",
    "interface": "interface",
    "verify": "verify",
    "cacert": "cacert",
    "client_cert": "cert",
    "client_key": "key",
}
UNKNOWN = "unknown until apply has written it"
"""Placeholder for a secret in an entry that is to be written."""
AUTH = {
    "auth_url": "auth_url",
    "user": "username",
    "password": "password",
    "user_domain": "user_domain_name",
    "project": "project_name",
    "project_domain": "project_domain_name",
}


@dataclass(frozen=True, kw_only=True)
class InCloudsYaml(InProject, Unguarded):
    """Base of kinds that write an entry of a clouds.yaml: how clients reach the cloud."""

    file_field: ClassVar[str] = "path"
    """The field that names the file."""
    has_only_copy: ClassVar[bool] = False
    """Whether the entry holds a secret that Keystone does not report again."""

    cloud: Name
    """Name of the entry, for --os-cloud or OS_CLOUD."""
    auth_url: Name | None = field(default=None, repr=False)  # the URL may contain a login
    """URL of Keystone; default: as in the connection in use."""
    region: Name | None = None
    """Name of the region; default: as in the connection in use."""
    interface: Name | None = None
    """public, internal or admin; default: as in the connection in use."""
    cacert: File | None = None
    """File of CA certificates; default: as in the connection in use."""
    verify: bool | None = None
    """Whether certificates are verified; default: as in the connection in use, with a warning if it verifies none, and
    true with `cacert`."""
    client_cert: File | None = None
    """File of the client's certificate for TLS; default: as in the connection in use."""
    client_key: File | None = None
    """File of its key, unless that is in the same file; default: as in the connection in use."""
    service_settings: Mapping[Name, Text] | None = field(default=None, repr=False)
    """Settings of single services, such as `compute_endpoint_override`, `volume_api_version` or `image_interface`;
    default: as in the connection in use."""

    @property
    def file(self) -> Path:
        raise NotImplementedError

    def provides(self) -> Iterable[Key]:
        return (self.key, entry(self.file, self.cloud))

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        return (WrittenFile(self.file_field, str(self.file), self.cloud, is_only_copy=self.has_only_copy),)

    def resolve(self, context: Context) -> Sequence[Resource]:
        return (self._reached_as(context.cloud),)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        for name in self.service_settings or ():
            if not PER_SERVICE.fullmatch(name):
                fix = "write one such as compute_endpoint_override or volume_api_version"
                what = f"{name!r} is not a setting of a service"
                yield self.mistake(what, fix, Code.SPEC_INVALID_VALUE, "service_settings")

    def list_inherited(self, resolved: Resource) -> Iterable[str]:
        if self.verify is None and isinstance(resolved, InCloudsYaml) and resolved.verify is False:
            yield (
                f"clients of entry {self.cloud} will not verify the cloud's certificate, as the connection in use "
                "(verify: false); set cacert to a file with its CA, or say verify: false here"
            )

    def _reached_as(self, cloud: Cloud) -> Self:
        """Return the entry with its unset fields taken from a connection."""
        reached = cloud.reached
        tls = reached.tls
        verify = self.verify
        if verify is None:
            verify = tls.verify or self.cacert is not None
        return replace(
            self,
            auth_url=self.auth_url or reached.auth_url,
            region=self.region or reached.region,
            interface=self.interface or reached.interface,
            verify=verify,
            cacert=absolute(self.cacert or (tls.cacert if verify else None)),
            client_cert=absolute(self.client_cert or tls.client_cert),
            client_key=absolute(self.client_key or (None if self.client_cert else tls.client_key)),
            service_settings=self.service_settings or reached.service_settings or None,
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings of the entry besides auth."""
        values = {key: getattr(self, field) for field, key in SETTINGS.items()}
        if self.verify:  # the default of all clients
            del values[SETTINGS["verify"]]
        values |= self.service_settings or {}
        return {IDENTITY_VERSION: "3"} | {key: value for key, value in values.items() if value is not None}

    def settings_in(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry's settings as a spec would declare them."""
        values = {field: found.get(key) for field, key in SETTINGS.items()}
        insecure = str(found.get(INSECURE, "")).lower() == "true"
        services = {key: str(found[key]) for key in self.service_settings or () if key in found}
        return values | {"verify": not insecure and found.get("verify", True), "service_settings": services}

    def read_entry(self) -> dict[str, Any] | None:
        """Return the entry with this name in the file; raises SpecError if the file is not a clouds.yaml."""
        return whole_entry(clouds_yaml.read(self.file).get(self.cloud))

    def write_entry(self, auth: Mapping[str, Any], judge: Callable[[dict[str, Any] | None], None], **more: Any) -> None:
        """Write the entry; settings that others have added to it are kept.

        ``judge`` gets the entry as it is when the file is written, and raises PlanRefused if it has another owner.
        """

        def merge(present: Any) -> dict[str, Any]:
            found = whole_entry(present)
            judge(found)
            return self.merged_entry(found, auth, **more)

        clouds_yaml.put(self.file, self.cloud, merge)

    def merged_entry(self, found: Mapping[str, Any] | None, auth: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return the entry that apply writes to the file, without the keys whose value in ``more`` is None.

        Settings of TLS that neither the spec nor the connection has are kept: somebody has added them for its clients.
        """
        replaced = {SETTINGS["verify"], INSECURE} | ({SETTINGS["client_key"]} if self.client_cert else set())
        old = {key: value for key, value in (found or {}).items() if key not in replaced}
        kept = {key: value for key, value in {**old, **more}.items() if value is not None}
        return {**kept, "auth": dict(auth), **self.settings()}

    def client_login(self, entry: Mapping[str, Any] | None = None) -> ClientLogin:
        """Return how clients log in by an entry; default: the one in the file."""
        names = (*SETTINGS.values(), *(self.service_settings or ()))
        return ClientLogin(self.file, self.cloud, entry or self.read_entry() or {}, names)

    def list_left(self, run: CloudRun, projects: Iterable[Project | None]) -> Iterator[tuple[Resource, Observed]]:
        """Yield the entries of the file that this spec manages, for the projects that it declares."""
        return CloudsEntry.in_file(run, self.file, self.auth_url, projects)

    def check_login(self, run: CloudRun, pauses: Sequence[float] = ()) -> None:
        """Log in as a client does, by what is in the file; raises EntryUnusable, ConfigError, CloudError."""
        self.client_login().log_in(lambda: find_block(run, self.acting_user(run), self.owner), pauses)

    def acting_user(self, run: CloudRun) -> User | None:
        """Return the user who logs in by the entry; None if it is the connection's own."""
        raise NotImplementedError

    def confirm_login(self, run: CloudRun) -> None:
        """Log in by the entry that has just been written; a user who may not log in is reported, and fails nothing."""
        try:
            self.check_login(run, PAUSES)
        except LoginBlocked as error:
            run.note(self.key, UNUSABLE.format(error))

    def check_overrides(self, entry: Mapping[str, Any]) -> Iterator[Mistake]:
        """Yield what would go before the settings of the entry that apply writes."""
        fix = "remove the setting there, or choose another name with cloud:"
        try:
            overrides = self.client_login(entry).list_overrides()
        except ConfigError as error:
            yield self.mistake(f"no client could use the entry that apply writes: {error}", "", Code.ENTRY_LOGIN)
            return
        for override in overrides:
            what = (
                f"{override}, which clients use in place of what this spec writes to entry {self.cloud} of {self.file}"
            )
            yield self.mistake(what, fix, Code.ENTRY_OVERRIDDEN)


def whole_entry(found: Any) -> dict[str, Any] | None:
    """Return an entry of a clouds.yaml; an ``auth`` that is not a mapping, which nobody can log in with, is empty."""
    if found is None or not isinstance(found, dict):
        return None if found is None else {}
    return found if isinstance(found.get("auth"), dict) else {**found, "auth": {}}


def entry(path: Path, cloud: str) -> Key:
    """Return the key that every kind that writes an entry provides."""
    return Key("cloud", f"{path.name}#{cloud}", folder_of(path))


def folder_of(path: Path) -> tuple[str, ...]:
    """Return the scope of a file's content: the folder that contains the file, with links resolved."""
    return (os.path.realpath(path.parent),)


def _same(field: str, before: Any, after: Any) -> bool:
    """Whether two values of a field in auth are equivalent; the URL of Keystone may end with its version."""
    if field != "auth_url":
        return bool(before == after)
    first, second = (str(each).rstrip("/").removesuffix("/v3") for each in (before, after))
    return first == second


@dataclass(frozen=True, kw_only=True)
class CloudsEntry(InCloudsYaml):
    """An entry by which a user logs in with a password, in a file that only its owner can read.

    An entry with this name for a different user, project or cloud, or of another spec, is never overwritten or deleted.
    """

    kind: ClassVar[str] = "clouds_entry"
    identity: ClassVar[frozenset[str]] = frozenset({"path", "cloud"})
    implied: ClassVar[frozenset[str]] = frozenset({"mode", MANAGED})

    path: File
    """The clouds.yaml to write the entry to; other entries are left untouched."""
    user: Name
    """Name of the user."""
    user_domain: Name = DEFAULT_DOMAIN
    """Name of the user's domain."""
    password: Secret | None = field(default=None, repr=False)
    """The user's password; default: the password that this spec declares for the user."""

    @property
    def name(self) -> str:
        return f"{self.file.name}#{self.cloud}"

    @property
    def scope(self) -> tuple[str, ...]:
        return folder_of(self.file)

    @property
    def file(self) -> Path:
        return Path(self.path)

    def desired(self) -> dict[str, Any]:
        return super().desired() | {"mode": PRIVATE, MANAGED: True}

    def _user(self) -> User:
        return User(name=self.user, domain=self.user_domain)

    def needs(self) -> Iterable[Key]:
        return (self._user().key, access(self.owner))

    def resolve(self, context: Context) -> Sequence[Resource]:
        known = (each.password for each in context.declared(User) if each.key == self._user().key)
        return (replace(self._reached_as(context.cloud), password=self.password or next(known, None)),)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if self.password is None:
            yield self.mistake(
                f"the password of user {self.user} is unknown", "set password here, or for the user in this spec"
            )
        if self.project is None:
            yield self.mistake("project is missing", "set project")
        yield from unwritable(self, self.file, observed)
        if observed is not None and not observed.ours:
            yield from self._foreign(run, observed)
        elif self.password is not None and self.project is not None:
            yield from self._check_overrides(self.password)

    def _check_overrides(self, password: Secret) -> Iterable[Mistake]:
        """Return what would go before the entry; the password, which might be prompted for, is fetched only then."""
        found = self.read_entry()
        overrides = list(self.check_overrides(self.merged_entry(found, self._auth(UNKNOWN))))
        if overrides and password.ready:
            return self.check_overrides(self.merged_entry(found, self._auth(password.reveal())))
        return overrides

    def _foreign(self, run: CloudRun, observed: Observed) -> Iterator[Mistake]:
        owner = owner_of(self.read_entry() or {})
        differing = [field for field in AUTH if observed.values[field] != getattr(self, field)]
        what = f"{self.path} already has an entry {self.cloud}"
        if owner in (None, run.ownership.spec):
            what += f" that differs in {', '.join(differing) or 'auth'}"
        fix = "choose another name, or remove the entry from the file"
        if owner is not None:
            what += f", {owner_text(owner)}"
            fix += ", and apply writes it for this spec"
        yield self.mistake(what, fix, Code.PLAN_FOREIGN)

    def find_one(self, run: CloudRun) -> Observed | None:
        found = self.read_entry()
        return None if found is None else self._observed(run, found)

    @classmethod
    def in_file(
        cls, run: CloudRun, path: Path, auth_url: str | None, projects: Iterable[Project | None]
    ) -> Iterator[tuple[Self, Observed]]:
        """Yield the entries of a file that this spec manages, for the projects that it declares.

        An entry of another project may belong to another spec with the same name, and one whose tag names another
        entry, or none, may be a copy that somebody made for another user.
        """
        homes = {(project.name, project.domain) for project in projects if project is not None}
        for cloud, entry in clouds_yaml.read(path).items():
            is_tagged = isinstance(entry, dict) and run.ownership.owns(str(entry.get(OWNER)), cloud)
            auth = entry.get("auth") if is_tagged else None
            if not isinstance(auth, dict) or auth.get(AUTH["auth_url"]) != auth_url:
                continue
            given: dict[str, Any] = {
                field: auth.get(key) for field, key in AUTH.items() if field != "password" and auth.get(key)
            }
            if (given.get("project"), given.get("project_domain", DEFAULT_DOMAIN)) in homes and "user" in given:
                declared = cls(path=str(path), cloud=cloud, **given)
                yield declared, declared._observed(run, entry)

    def _observed(self, run: CloudRun, found: Mapping[str, Any]) -> Observed:
        auth = found.get("auth") or {}
        values = {field: auth.get(key) for field, key in AUTH.items()} | self.settings_in(found)
        if values["password"] is not None:
            values["password"] = self.password if self._holds(str(values["password"])) else DIFFERS
        owner = owner_of(found) or ""
        return Observed(
            id=f"{self.path}#{self.cloud}",
            ours=self._is_ours(run, found, auth, values),
            managed_by=owner if owner != run.ownership.spec else "",
            values=values | {"mode": mode(self.file), MANAGED: bool(owner)},  # no entry is taken from another spec
            outputs={"path": self.path},
        )

    def _is_ours(
        self, run: CloudRun, found: Mapping[str, Any], auth: Mapping[str, Any], values: Mapping[str, Any]
    ) -> bool:
        """Whether this spec manages an entry: it names the spec, and has the same user, project and cloud.

        Earlier versions wrote entries that do not name the spec: such an entry counts if it has the same login as the
        declared one, and names the spec after the next apply.
        """
        same = all(_same(field, values[field], getattr(self, field)) for field in AUTH if field != "password")
        if OWNER in found:
            return same and owner_of(found) == run.ownership.spec
        return same and values["password"] not in (None, DIFFERS) and auth.keys() == set(AUTH.values())

    def _holds(self, password: str) -> bool:
        return self.password is not None and self.password.ready and self.password == Secret(password)

    def create(self, run: CloudRun) -> Observed:
        assert self.password is not None
        auth = self._auth(self.password.reveal())
        self.write_entry(auth, partial(self._refuse_foreign, run), **{OWNER: run.ownership.describe(self.cloud)})
        self.confirm_login(run)
        return self._observed(run, self.read_entry() or {})

    def _refuse_foreign(self, run: CloudRun, found: Mapping[str, Any] | None) -> None:
        """Raise PlanRefused for an entry that another spec has written since the plan."""
        observed = None if found is None else self._observed(run, found)
        if observed is not None and not observed.ours:
            raise PlanRefused(list(self._foreign(run, observed)))

    def check_login(self, run: CloudRun, pauses: Sequence[float] = ()) -> None:
        if pauses or not self._is_known_to_work(run):
            super().check_login(run, pauses)

    def acting_user(self, run: CloudRun) -> User:
        return self._user()

    def _is_known_to_work(self, run: CloudRun) -> bool:
        """Whether this run has logged in by the same settings and login: most specs write the entry of their actor."""
        actor = run.actor(self.owner)
        if actor is None or actor.user.key != self._user().key or actor.password != self.password:
            return False
        unset: dict[str, Any] = dict.fromkeys(("auth_url", "service_settings", *SETTINGS))
        inherited = replace(self, **unset)._reached_as(run.admin)
        return (
            inherited == self and run.find_tenant(self.owner) is not None and not self.client_login().list_overrides()
        )

    def _auth(self, password: str) -> dict[str, Any]:
        return {key: getattr(self, field) for field, key in AUTH.items()} | {AUTH["password"]: password}

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Remove the entry, unless it has another owner by now."""
        clouds_yaml.drop(self.file, self.cloud, lambda found: self._observed(run, whole_entry(found) or {}).ours)
