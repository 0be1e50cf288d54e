"""The project's account in the object store: keys of temporary URLs, quota, metadata.

Source: Object Storage API, "Accounts"; Swift's middleware "tempurl" and "account_quotas". Reserved metadata: Swift
2.38.3, common/middleware/tempurl.py (get_tempurl_keys_from_metadata: both keys, in any case),
common/middleware/account_quotas.py (handle_account), proxy/server.py (swift_owner_headers).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self
from urllib.parse import quote, unquote, urlsplit

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Loss, Mistake, NotAllowed, NotFound, Overtaken
from openstack_prep.base.fields import Bytes, Name, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.base.secret_forms import unlogged
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import DIFFERS, Change, Context, Observed, Resource
from openstack_prep.core.resource import Unguarded, Untagged
from openstack_prep.core.run import query
from openstack_prep.resources.identity.in_project import ByProjectUser

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

HEADERS = {
    "temp_url_key": "X-Account-Meta-Temp-Url-Key",
    "temp_url_key_2": "X-Account-Meta-Temp-Url-Key-2",
    "quota_bytes": "X-Account-Meta-Quota-Bytes",
}
MARK = "X-Account-Meta-Openstack-Prep"
KEYS = f"{MARK}-Keys"
"""Names the keys that the spec has set, for users to whom Swift does not show them."""
PREFIX = "x-account-"
RESERVED = {
    "temp-url-key": "use the field temp_url_key, whose value no plan shows",
    "temp-url-key-2": "use the field temp_url_key_2, whose value no plan shows",
    "quota-bytes": "use the field quota_bytes",
    "openstack-prep": "remove it; openstack-prep keeps its ownership tag there",
    "openstack-prep-keys": "remove it; openstack-prep records there which keys it has set",
}
"""The fix for metadata that Swift or openstack-prep reserves, by its name in lower case."""
SECRET = re.compile("key|pass|secret|token|credential|private", re.IGNORECASE)
"""Names of metadata whose current value is never shown."""
VALID = 24 * 3600
"""Validity of a temporary URL that only tests a key, in seconds: the clock of the cloud may be late."""
RESELLER = "ResellerAdmin"
ROLE = "give the project's user a role that may use the object store, often swiftoperator"


def reserved(name: str) -> str | None:
    """Return the fix for a reserved name of metadata, in any spelling; None for any other name."""
    plain = name.strip().lower().replace("_", "-")
    if plain.startswith(PREFIX):
        plain = plain.removeprefix(PREFIX).removeprefix("meta-")
        return RESERVED.get(plain, "write the name without X-Account-Meta-")
    return RESERVED.get(plain)


def metadata_name(value: object) -> object:
    if isinstance(value, str) and (fix := reserved(value)):
        raise InvalidValue("is a reserved header, not metadata", fix)
    return value


MetadataName = Annotated[Name, Reads(metadata_name)]


@dataclass(frozen=True, kw_only=True)
# its headers have a tag of the spec, but not each of them: a removal would delete those of others as well
class ObjectStore(ByProjectUser, Untagged, Unguarded):
    """The project's account in the object store; omitted metadata is not managed.

    Swift creates the account on first use, and keeps it when its project is deleted. In an account that the spec does
    not manage, values that differ are overwritten only with --allow-replace. Destroy removes the values of the spec; it
    names and leaves those that differ, which others may have set. It is refused if it would delete a project
    whose account has containers. The account is read as the project's own user; while that user cannot log in or has no
    access, it counts as missing.
    """

    kind: ClassVar[str] = "object_store"

    needs_login: ClassVar[bool] = True

    temp_url_key: Secret | None = dataclass_field(default=None, repr=False)
    """Key that signs temporary URLs."""
    temp_url_key_2: Secret | None = dataclass_field(default=None, repr=False)
    """Second such key, so that one key can be changed while the other is in use."""
    quota_bytes: Bytes | None = None
    """Maximum size of the account in bytes; only a reseller (role ResellerAdmin) may set it."""
    metadata: Mapping[MetadataName, str] | None = None
    """Further metadata: names of letters, digits and hyphens (case-insensitive), ASCII values. Plans show the values.

    Names with their own fields (Temp-URL-Key, Temp-URL-Key-2, Quota-Bytes) are refused.
    """

    @property
    def name(self) -> str:
        return self.project or "(current project)"

    def desired(self) -> Values:
        """Return the fields to compare, without reserved names of metadata, which ``check`` refuses."""
        values = super().desired()
        if self.metadata is not None:
            values["metadata"] = {name.lower(): value for name, value in self.metadata.items() if not reserved(name)}
        return values

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        for name, value in (self.metadata or {}).items():
            if found := _metadata_mistake(name, value):
                yield self.mistake(*found, Code.SPEC_INVALID_VALUE, "metadata")

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        for name, key in self._keys().items():
            if not HEADER.fullmatch(key.reveal()):
                yield self.mistake(f"{name} is not a valid header value", ASCII, Code.SPEC_INVALID_VALUE, name)
        tenant = run.find_tenant(self.owner)
        if tenant and _has_no_access(run, tenant):
            name, has = tenant.user[0], ", ".join(sorted(tenant.roles)) or "none"
            what = f"user {name} may not use the object store of the project (its roles: {has})"
            yield self.mistake(what, f"{ROLE}, by role_assignments in the spec")

        elif tenant:
            new = self._new_metadata(observed.values.get("metadata", {}) if observed else {})
            for what, fix in self._exceeding(new, _limits(run, tenant)) if any(self._exceeding(new, LIMITS)) else ():
                yield self.mistake(what, fix, Code.SPEC_INVALID_VALUE, "metadata")
            for name in self._keys_beyond(LIMITS) and self._keys_beyond(_limits(run, tenant)):
                limit = _limits(run, tenant)[VALUE_LENGTH]
                yield self.mistake(f"{name} is longer than {limit} bytes", "shorten it", Code.SPEC_INVALID_VALUE, name)

    def _keys_beyond(self, limits: Mapping[str, float]) -> list[str]:
        """Return the names of keys that are longer than a value of metadata may be, which they are for Swift."""
        limit = limits.get(VALUE_LENGTH, math.inf)
        return [name for name, key in self._keys().items() if len(key.reveal()) > limit]

    def _keys(self) -> Mapping[str, Secret]:
        return {name: key for name, key in self.desired().items() if isinstance(key, Secret) and key.ready}

    def _new_metadata(self, present: Raw) -> Mapping[str, str]:
        """Return the metadata that the account, which has ``present``, does not have yet."""
        return {name: value for name, value in self.desired().get("metadata", {}).items() if present.get(name) != value}

    def _exceeding(self, new: Mapping[str, str], limits: Mapping[str, float]) -> Iterator[tuple[str, str]]:
        """Yield what Swift does not accept if it gets new metadata; without any, it is asked for nothing.

        It judges the items of a request, and the number and size of all that the account then has (Swift 2.38.3,
        common/constraints.py, check_metadata; common/db.py, validate_metadata). A missing limit is not known.
        """
        limits = {**dict.fromkeys(LIMITS, math.inf), **limits}
        for name, value in new.items():
            for what, text in (("name", name), ("value", value)):
                limit = limits[f"max_meta_{what}_length"]
                if len(text.encode()) > limit:
                    yield f"metadata {name}: the {what} is longer than {limit} bytes", f"shorten the {what}"
        metadata = self.desired()["metadata"] if new else {}
        count = limits["max_meta_count"] - RECORDS
        if len(metadata) > count:
            yield f"{len(metadata)} items of metadata are too many", f"keep at most {count}"
        size = sum(len(name.encode()) + len(value.encode()) for name, value in metadata.items())
        if size > limits["max_meta_overall_size"]:
            yield f"metadata is larger than {limits['max_meta_overall_size']} bytes", "shorten it"

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterable[str]:
        """Yield a quota by a user without the default reseller_admin_role of Swift (2.38.3, keystoneauth.py).

        And metadata beyond the defaults of Swift where the object store does not show its own limits.
        """
        is_new = changes is None or any(change.field == "quota_bytes" for change in changes)
        tenant = run.find_tenant(self.owner)
        if self.quota_bytes is not None and is_new and tenant and RESELLER not in tenant.roles:
            yield f"whether user {tenant.user[0]} may set quota_bytes without the role {RESELLER}"
        changed = [change for change in changes or () if change.field == "metadata"]
        present = [{}] if changes is None else [change.before or {} for change in changed]
        exceeds = any(found for each in present for found in self._exceeding(self._new_metadata(each), LIMITS))
        exceeds = exceeds or bool(changes != () and self._keys_beyond(LIMITS))
        if tenant and exceeds and not _limits(run, tenant).keys() >= LIMITS.keys():
            yield "whether the object store accepts metadata beyond the default limits of Swift"

    def find_one(self, run: CloudRun) -> Observed | None:
        tenant = run.find_tenant(self.owner)
        return self._read(run, tenant) if tenant and not _has_no_access(run, tenant) else None

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the account of a project with its quota and metadata, without keys and possible secrets."""
        tenant = run.find_tenant(owner)
        headers = _account(run, tenant) if tenant and tenant.has("object-store") else None
        if tenant is None or headers is None:
            return
        named = ((name.lower().removeprefix(_meta("").lower()), name) for name in headers if _is_meta(name))
        metadata = {name: headers[theirs] for name, theirs in named if not reserved(name) and not SECRET.search(name)}
        limit = headers.get(HEADERS["quota_bytes"])
        if metadata or limit:
            quota = int(limit) if limit else None
            declared = cls(quota_bytes=quota, metadata=metadata or None, **cls.placing(owner))
            yield declared, declared._observed(tenant, *_owner(run, headers), declared.desired())

    def _read(self, run: CloudRun, tenant: Cloud) -> Observed | None:
        """Return the account, unless it has none of the values that the spec sets."""
        headers = _account(run, tenant)
        if headers is None:
            return None
        ours, managed_by = _owner(run, headers)
        values = {field: self._value(field, value, headers) for field, value in self.desired().items()}
        for field in self._unseen(values) if ours else ():
            values[field] = self._unseen_value(self.desired()[field], tenant, field in headers.get(KEYS, "").split(","))
        if MARK not in headers and not any(values.values()):
            return None
        observed = self._observed(tenant, ours, managed_by, values)
        foreign = self._changed_by_others(observed)
        return replace(
            observed, kept_because=f"keeps {', '.join(foreign)}, which differ from the spec" if foreign else ""
        )

    def _unseen(self, values: Raw) -> list[str]:
        """Return the names of keys that the account has not, or that Swift does not show this user.

        It shows them only to whom it lets write as an operator; one of ``system_reader_roles`` or
        ``project_reader_roles`` reads the account without them (Swift 2.38.3, common/middleware/keystoneauth.py,
        authorize; proxy/controllers/account.py, GETorHEAD).
        """
        wanted = {name: value for name, value in self.desired().items() if isinstance(value, Secret)}
        return [name for name, value in wanted.items() if values[name] is None]

    @staticmethod
    def _unseen_value(wanted: Secret, tenant: Cloud, is_recorded: bool) -> object:
        """Return the value of a key that is not seen; one whose file is lost is in use if the spec has set it."""
        if wanted.is_to_generate:
            return DIFFERS if is_recorded else None
        return wanted if wanted.ready and _is_in_effect(tenant, wanted) else None

    def _changed_by_others(self, observed: Observed) -> list[str]:
        """Return the names of values that exist and are not those of the spec, of which nobody knows who set them."""
        names = []
        for field, value in self.desired().items():
            present = observed.values[field]
            if field == "metadata":
                names += [f"metadata.{name}" for name, text in present.items() if text != value[name]]
            elif present not in (None, value):
                names.append(field)
        return names

    def _value(self, field: str, wanted: Any, headers: Mapping[str, str]) -> Any:
        if field == "metadata":
            standing = {name: headers[_meta(name)] for name in wanted if _meta(name) in headers}
            return {name: _hidden_value(name, value, wanted[name]) for name, value in standing.items()}
        value = headers.get(HEADERS[field])
        if value is None or field == "quota_bytes":
            return value and int(value)
        return wanted if wanted.ready and wanted == Secret(value) else DIFFERS

    def _observed(self, tenant: Cloud, ours: bool, managed_by: str, values: Raw) -> Observed:
        account = tenant.object_store.endpoint.rstrip("/").rpartition("/")[2]
        return Observed(id=account, ours=ours, managed_by=managed_by, values=values)

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        """Yield the values of others that an update would overwrite: URLs that are in use are signed by their keys.

        Keys that would be generated are the planner's own losses.
        """
        new = {name for name, value in self.desired().items() if isinstance(value, Secret) and value.is_to_generate}
        for name in () if observed.ours else self._changed_by_others(observed):
            if name in new:
                continue
            what = f"{name} differs, and is {observed.owner}"
            fix = "declare the value that it has, remove it here, or allow to overwrite it (--allow-replace)"
            yield replace(Loss.about(self.key, what, fix), lost=(name,))

    def create(self, run: CloudRun) -> Observed:
        """Write all values, unless some are there by now: these are judged as an update, since Swift overwrites them.

        Those of the spec itself are there if only the login or a role of the user was missing.
        """
        found = self.find_one(run.fresh())
        if found is not None and (not found.ours or found.values != self.desired()):
            raise Overtaken(f"{self.key}: somebody has set its values since the plan", retryable=True)
        mark = {MARK: quote(run.ownership.spec), **self._record()}
        tenant = self._send(run, _headers(self.desired()) | mark, self.desired())
        return self._observed(tenant, True, "", self.desired())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        values = {change.field: change.after for change in changes}
        if "metadata" in values:
            values["metadata"] = self._new_metadata(observed.values["metadata"])
        tenant = self._send(run, _headers(values) | (self._record() if observed.ours else {}), values)
        return self._observed(tenant, observed.ours, observed.managed_by, self.desired())

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Remove the values of the spec that nobody has changed: Swift deletes metadata whose new value is empty."""
        foreign = {*self._changed_by_others(observed)}
        absent = {
            field for field, value in observed.values.items() if value is None
        }  # or not shown, and not the spec's
        names = [HEADERS[field] for field in self.desired() if field in HEADERS and field not in foreign | absent]
        names += [_meta(name) for name in self.desired().get("metadata", ()) if f"metadata.{name}" not in foreign]
        self._send(run, dict.fromkeys((*names, MARK, KEYS), ""), {})

    def _record(self) -> dict[str, str]:
        """Return the header that names the keys of the spec; Swift removes it where that is empty."""
        keys = [name for name, value in self.desired().items() if isinstance(value, Secret)]
        return {KEYS: ",".join(keys)}

    def _send(self, run: CloudRun, headers: Mapping[str, str], values: Raw) -> Cloud:
        """Write headers, which contain these values; no log shows the secrets among them."""
        tenant = run.tenant(self.owner)
        secrets = [value for value in values.values() if isinstance(value, Secret)]
        try:
            tenant.object_store.request("POST", "", headers=headers, secrets=secrets)
        except NotAllowed as error:
            quota = HEADERS["quota_bytes"] in headers
            fix = "have an administrator with role ResellerAdmin apply quota_bytes, or remove it" if quota else ROLE
            raise NotAllowed(f"{error}; {fix}", status=error.status) from None
        return tenant


# --- limits of metadata: Swift 2.38.3, common/constraints.py (check_metadata) ------------------

VALUE_LENGTH = "max_meta_value_length"
LIMITS = {
    "max_meta_name_length": 128,
    VALUE_LENGTH: 256,
    "max_meta_count": 90,
    "max_meta_overall_size": 4096,
}
"""Swift's defaults; those of a cloud are read only for metadata beyond them."""
RECORDS = 2
"""Number of items of metadata by which openstack-prep keeps its records."""


@query
def _limits(run: CloudRun, tenant: Cloud) -> Mapping[str, int]:
    """Return the limits that Swift shows to everybody; none if it does not, or where they are Ceph's."""
    root = urlsplit(tenant.object_store.endpoint)._replace(path="/", query="").geturl()
    try:
        found = tenant.object_store.at(root).get("info").get("swift")
    except CloudError:
        found = None
    if not isinstance(found, Mapping):
        return {}
    return {name: found[name] for name in LIMITS if isinstance(found.get(name), int)}


@query
def _account(run: CloudRun, tenant: Cloud) -> Mapping[str, str] | None:
    """Return the headers of the account; None if nobody has used it yet. Raises NotAllowed."""
    try:
        return tenant.object_store.request("HEAD", "").headers
    except NotFound:
        return None


def _is_in_effect(tenant: Cloud, key: Secret) -> bool:
    """Whether a temporary URL that is signed by a key is valid: Swift then says that its object does not exist.

    Source: Swift 2.38.3, common/middleware/tempurl.py (__call__, _get_hmacs): 401 for any other key. Ceph's RGW answers
    403 (rgw_swift_auth.cc, TempURLEngine; rgw_common.cc, rgw_http_swift_errors).
    """
    path, until = "/openstack-prep/none", int(tenant.now().timestamp()) + VALID
    whole = urlsplit(tenant.object_store.endpoint.rstrip("/")).path + path
    signed = hmac.new(key.reveal().encode(), f"HEAD\n{until}\n{whole}".encode(), hashlib.sha256)
    query = {"temp_url_sig": signed.hexdigest(), "temp_url_expires": str(until)}
    try:
        with unlogged():
            tenant.object_store.request("HEAD", path, params=query, authenticated=False)
    except NotFound:
        return True
    except CloudError as error:
        if error.status not in (401, 403):
            raise
        return False
    return True


def _has_no_access(run: CloudRun, tenant: Cloud) -> bool:
    """Whether the project's user has no access to the object store; then destroy has nothing to remove."""
    try:
        _account(run, tenant)
    except NotAllowed:
        return True
    return False


def _owner(run: CloudRun, headers: Mapping[str, str]) -> tuple[bool, str]:
    """Return whether this spec manages the values of an account, and which other spec does."""
    spec = unquote(headers.get(MARK, ""))
    return (True, "") if spec == run.ownership.spec else (False, spec)


def _headers(values: Raw) -> dict[str, str]:
    headers: dict[str, str] = {}
    for field, value in values.items():
        if field == "metadata":
            headers |= {_meta(name): text for name, text in value.items()}
        else:
            headers[HEADERS[field]] = value.reveal() if isinstance(value, Secret) else str(value)
    return headers


def _hidden_value(name: str, value: str, wanted: str) -> str | Secret:
    """Return the current value of metadata; one that differs is a Secret if its name suggests so."""
    return Secret(value) if value != wanted and SECRET.search(name) else value


def _meta(name: str) -> str:
    return f"X-Account-Meta-{name}"


def _is_meta(name: str) -> bool:
    return name.lower().startswith(_meta("").lower())


HEADER = re.compile("[!-~]([ -~]*[!-~])?")
"""Values that requests sends as they are, and Swift keeps."""
ASCII = "use printable ASCII"


def _metadata_mistake(name: str, value: str) -> tuple[str, str] | None:
    """Return what is wrong with one item of metadata, which Swift takes as a header, and the fix."""
    if fix := reserved(name):
        return f"metadata: {name!r} is a reserved header, not metadata", fix
    if not re.fullmatch(r"[A-Za-z0-9-]+", name):
        return f"metadata {name!r} is not a valid header name", "use letters, digits and hyphens"
    if not HEADER.fullmatch(value):
        return f"metadata {name}: {value!r} is not a valid header value", ASCII
    return None
