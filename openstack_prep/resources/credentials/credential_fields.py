"""The fields of an application credential, and what its renewal would take from the users of the old one.

A credential cannot be changed: one that differs from the spec is replaced by a new one and deleted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from openstack_prep.base.errors import Loss, Mistake
from openstack_prep.base.fields import Count, File, Name, Timestamp, timestamp
from openstack_prep.base.private_file import PRIVATE
from openstack_prep.base.raw import Values
from openstack_prep.base.secret import HIDDEN
from openstack_prep.core.model import MANAGED, Key, Observed
from openstack_prep.resources.credentials import credential_ends as ends
from openstack_prep.resources.credentials.access_rule import AccessRule
from openstack_prep.resources.credentials.credential_record import CredentialRecord, Credentials
from openstack_prep.resources.credentials.credential_roles import ALL
from openstack_prep.resources.files.clouds_entry import InCloudsYaml
from openstack_prep.resources.identity.in_project import access

RENEWED = {"roles", "expires_at", "lifetime", "unrestricted", "description", "access_rules", "rotated"}
AGREED = {"lifetime", "rotated"}
"""Fields whose change allows apply to delete the credential in use."""
DEPENDS = "a running cluster may depend on it"


@dataclass(frozen=True, kw_only=True)
class CredentialFields(InCloudsYaml):
    """The fields of an application credential."""

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
            yield Loss.about(
                self.key,
                f"{lost} would be deleted because its secret is missing from {self.clouds_yaml}, and {DEPENDS}",
                f"copy the entry {self.cloud} from where the spec was applied, or allow the deletion (--allow-replace)",
            )
        if (
            credentials.live
            and observed.ours
            and not credentials.keeps_one
            and not ends.ended(credentials.live.expires_at)
        ):
            yield from self._renewals(credentials.live, observed, credentials.role_changes)

    def _renewals(self, live: CredentialRecord, observed: Observed, role_changes: str) -> Iterable[Loss]:
        """Yield that a new credential would replace the one in use."""
        changed = {name for name, value in self.desired().items() if observed.values.get(name) != value}
        if not RENEWED & changed or AGREED & changed:
            return
        fields = ", ".join(sorted(RENEWED & changed)) + (f" ({role_changes})" if role_changes else "")
        what = f"{live.name} ({live.id}) would be deleted because it differs in {fields}, and {DEPENDS}"
        command = f"openstack-prep credential rotate SPEC --name {shlex.quote(self.name)} --keep-old"
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
