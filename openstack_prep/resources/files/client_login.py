"""Whether a client logs in by an entry of a clouds.yaml, and what is in the way: other files, settings of others.

A client reads secure.yaml over clouds.yaml, and both over a vendor's profile. It runs in the folder of the file,
without the variables of this process. Source: openstacksdk 4.22.0, openstack/config/loader.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openstack_prep.base.errors import ConfigError, EntryUnusable, LoginBlocked, NotAllowed, SpecError
from openstack_prep.base.formats.yaml_places import shared_document
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project, in_domain
from openstack_prep.resources.identity.user import User

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import FoundByClient

# --- Why Keystone refuses the login of a user whose credentials may be right, as far as only its records say it ---
# A user who is disabled, or whose domain or project is, gets the answer of a wrong password. Source: keystone 30.0.0,
# auth/plugins/core.py, _assert_user_is_enabled; auth/core.py, _assert_project_is_enabled.


def find_block(run: CloudRun, user: User | None, project: Project | None) -> str:
    """Return what keeps a user from logging in to a project, whatever the password; empty if nothing is known."""
    try:
        return next(_disabled(run.fresh(), user, project), "")
    except NotAllowed:  # only administrators read users: then the login's own error is all that is known
        return ""


def _disabled(run: CloudRun, user: User | None, project: Project | None) -> Iterator[str]:
    for plural, resource in (("users", user), ("projects", project)):
        if resource is None:
            continue
        record = in_domain(run, plural, resource, resource.domain) or {}
        if record.get("enabled") is False:
            yield f"{resource.key} is disabled"
        domains = run.admin.identity.list("/domains", "domains", name=resource.domain)
        if any(domain.get("enabled") is False for domain in domains):
            yield f"domain {resource.domain} of {resource.key} is disabled"


def identity_in(auth: Mapping[str, Any]) -> tuple[User | None, Project | None]:
    """Return the user and the project that an entry names."""
    user, project = auth.get("username"), auth.get("project_name")
    return (
        User(name=user, domain=auth.get("user_domain_name") or DEFAULT_DOMAIN) if user else None,
        Project(name=project, domain=auth.get("project_domain_name") or DEFAULT_DOMAIN) if project else None,
    )


PAUSES = (0.5, 1.0, 2.0)
"""Seconds before a login is retried: Keystone may cache the roles from before the last assignment for a while."""
DEFAULTS = {"verify": True, "interface": "public", "auth_type": "password"}
INSECURE = "insecure"
"""Another name for the opposite of ``verify``, which wins (openstacksdk 4.22.0, get_requests_verify_args)."""
UNUSABLE = "written, but no client can log in by it: {}"
SAME = {"v3password": "password"}
"""Ways to log in that need the same settings."""


@dataclass(frozen=True)
class ClientLogin:
    """The login of a client by an entry; ``names`` are the settings that the entry must determine, besides auth."""

    path: Path
    cloud: str
    entry: Raw = field(repr=False)
    names: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What goes before everything else, such as variables."""

    def find(self) -> FoundByClient:
        """Return what the client finds; raises ConfigError for an entry that no client can use."""
        from openstack_prep.cloud.connection import found_by_client  # with openstacksdk: a spec is read without it

        try:
            return found_by_client(self.path, self.cloud, self.entry, self.options)
        except ConfigError as error:
            if not self.options:
                raise
            variables = ", ".join(f"OS_{name.upper()}" for name in self.options)
            raise ConfigError(f"{error}; {variables}, which the env_file sets, go before the entry") from error

    def list_overrides(self) -> list[str]:
        """Return each setting of auth, and of ``names``, that a client reads otherwise, with its place."""
        found = self.find()
        return [self._place_of(name, found) for name in self._differing(found)]

    def log_in(self, find_block: Callable[[], str], pauses: Sequence[float] = ()) -> None:
        """Log in; raises EntryUnusable, with the places of overrides, if Keystone refuses it, ConfigError, CloudError.

        A refused login is retried after ``pauses``, unless something else than the entry determines it: the
        password is that of the entry then, and no user is locked out by it. Raises LoginBlocked if the entry may be
        right: ``find_block`` returns what Keystone tells nobody who logs in, such as that the user is disabled.
        """
        found = self.find()
        overrides = [self._place_of(name, found) for name in self._differing(found)]
        remaining = [] if overrides else list(pauses)
        while True:
            try:
                found.cloud.authenticate()
                return
            except LoginBlocked:
                raise
            except NotAllowed as error:
                if not overrides and (block := find_block()):
                    raise LoginBlocked(block, status=error.status) from error
                if not remaining:
                    raise self._unusable(error, overrides) from error
            time.sleep(remaining.pop(0))

    def _unusable(self, error: Exception, overrides: Sequence[str]) -> EntryUnusable:
        over = f"; {', '.join(overrides)}, which goes before the entry" if overrides else ""
        return EntryUnusable(f"no client can log in by entry {self.cloud} of {self.path}: {error}{over}")

    def _differing(self, found: FoundByClient) -> Iterator[str]:
        """Yield the names of settings that the client has otherwise than the entry."""
        written, read = self.entry.get("auth") or {}, found.cloud.config.get("auth") or {}
        for name in sorted({*written, *read}):
            if str(written.get(name)) != str(read.get(name)):
                yield f"auth.{name}"
        for name in sorted({*self.names, "auth_type"}):
            wanted, has = (each.get(name, DEFAULTS.get(name)) for each in (self.entry, found.cloud.config))
            if name == "verify":
                wanted, has = bool(wanted), found.cloud.tls.verify
            if SAME.get(str(wanted), str(wanted or "")) != SAME.get(str(has), str(has or "")):
                yield name

    def _place_of(self, name: str, found: FoundByClient) -> str:
        """Return the file and line that determine a setting in place of the entry, and its key there."""
        keys = name.split(".")
        for path, content in ((found.secure_file, found.secured), (self.path, self.entry)):
            for place in (keys, keys[-1:], [INSECURE] if name == "verify" else keys):
                if path is not None and (path != self.path or place != keys) and _has(content, place):
                    return f"{_line(path, ('clouds', self.cloud, *place))} sets {'.'.join(place)}"
        if keys[-1] in self.options:
            return f"variables of the env_file set OS_{keys[-1].upper()}"
        profile = self.entry.get("profile") or self.entry.get("cloud")
        return f"profile {profile} sets {name}" if profile else f"openstacksdk reads another {name}"


def _has(content: object, keys: Sequence[str]) -> bool:
    for key in keys:
        found = (
            {str(name).replace("-", "_"): each for name, each in content.items()} if isinstance(content, dict) else {}
        )
        if key not in found:
            return False
        content = found[key]
    return True


def _line(path: Path, keys: Sequence[str]) -> str:
    try:
        return shared_document(path).place(keys)
    except SpecError:  # openstacksdk reads what we refuse, such as a duplicate key
        return str(path)
