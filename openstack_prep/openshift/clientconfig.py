"""The entry of clouds.yaml as the OpenShift installer reads it: which files, which keys, and what it logs in with.

Source: gophercloud/utils v2 725b948, openstack/clientconfig (requests.go, results.go, utils.go), and gophercloud 2.8.0,
auth_options.go, which go.mod of openshift/installer 00075be6 names. The installer decodes each file twice: by yaml.v3
3.0.1 when it opens a client, and as JSON (sigs.k8s.io/yaml 1.6.0; pkg/asset/installconfig/openstack/session.go). It
reads no OS_* variables besides OS_CLOUD and OS_CLIENT_CONFIG_FILE (pkg/types/openstack/defaults/clientopts.go).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openstack_prep.base.formats import yaml_places
from openstack_prep.base.formats.yaml_places import Document, shared_document
from openstack_prep.base.raw import Raw, Values, has_value
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.entries import EntryMistake, merge, odd_url, of_v3

CLOUDS, SECURE, PUBLIC = "clouds.yaml", "secure.yaml", "clouds-public.yaml"
CREDENTIAL = ("application_credential_id", "application_credential_name", "application_credential_secret")
AUTH_TEXTS = (
    "auth_url", "token", "username", "user_id", "password", *CREDENTIAL, "system_scope", "project_name", "project_id",
    "user_domain_name", "user_domain_id", "project_domain_name", "project_domain_id", "domain_name", "domain_id",
    "default_domain",
)  # fmt: skip
ENTRY_TEXTS = (
    "cloud", "profile", "auth_type", "region_name", "endpoint_type", "interface", "identity_api_version",
    "volume_api_version", "cacert", "cert", "key",
)  # fmt: skip
TEXTS = {"auth": AUTH_TEXTS, "": ENTRY_TEXTS}
BOOLEANS = {"auth": ("allow_reauth",), "": ("verify",)}
YES, NO = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), ("n", "N", "no", "No", "NO", "off", "Off", "OFF")
"""Words that are booleans for both decoders where they are not in quotes."""


@dataclass(frozen=True)
class EntryPart:
    """What one file has for an entry."""

    path: Path
    section: str
    name: str
    given: Raw = field(repr=False)

    def place(self, *keys: str) -> str:
        """Return "file:line" of a key."""
        return shared_document(self.path).place((self.section, self.name, *keys))


@dataclass(frozen=True, kw_only=True)
class InstallerEntry:
    """An entry that the installer finds."""

    path: Path
    """The clouds.yaml that contains it."""
    name: str
    parts: Sequence[EntryPart] = field(repr=False)
    """What each file has for it; the one whose settings win comes first."""

    @property
    def settings(self) -> Values:
        """What the installer knows of it, with secrets; empty values are unset."""
        found: Values = {}
        for part in reversed(self.parts):
            found = _merged(decode(part.given), found)
        return found

    @property
    def given(self) -> Values:
        """What the files have for it, with keys that only other clients know."""
        found: Values = {}
        for part in reversed(self.parts):
            found = merge(found, part.given)
        return found

    @property
    def secure_file(self) -> Path | None:
        """The secure.yaml that has a part of it."""
        return self.parts[0].path if self.parts[0].path != self.path else None

    def place(self, *keys: str) -> str:
        """Return "file:line" of the key that counts, or of the entry if no file has the key."""
        for part in self.parts:
            if has_value(part.given, keys):
                return part.place(*keys)
        clouds = next(part for part in self.parts if part.path == self.path)
        return clouds.place(*keys)


# --- files ---------------------------------------------------------------------------------


def places(name: str) -> list[Path]:
    """Return where the installer looks for a file; it uses the first that exists.

    A name with .yml counts if no folder has the one with .yaml (gophercloud/utils 7297806).
    """
    named = os.environ.get("OS_CLIENT_CONFIG_FILE") if name == CLOUDS else None
    folders = [Path.cwd(), Path.home() / ".config" / "openstack", Path("/etc/openstack")]
    names = (name, name.removesuffix(".yaml") + ".yml")
    return [*([Path(named)] if named else []), *(folder / each for each in names for folder in folders)]


def first(name: str) -> Path | None:
    """Return the file that the installer reads; None if it finds none."""
    return next((place for place in places(name) if place.is_file()), None)


def find_entry(cloud: str, clouds_file: Path | None = None) -> InstallerEntry | None:
    """Return the entry as the installer finds it; raises SpecError when a file is not a clouds.yaml.

    ``clouds_file``: the file that OS_CLIENT_CONFIG_FILE will name; default: as in this environment.
    """
    path = clouds_file or first(CLOUDS)
    entry = clouds_yaml.read(path).get(cloud) if path else None
    if path is None or not isinstance(entry, dict):
        return None
    parts = [EntryPart(path, "clouds", cloud, entry)]
    if (secure := first(SECURE)) and isinstance(over := clouds_yaml.read(secure).get(cloud), dict):
        parts.insert(0, EntryPart(secure, "clouds", cloud, over))
    profile = profile_of(entry)
    public = first(PUBLIC) if profile else None
    if profile and public and isinstance(under := clouds_yaml.read(public, "public-clouds").get(profile), dict):
        parts.append(EntryPart(public, "public-clouds", profile, under))
    return InstallerEntry(path=path, name=cloud, parts=parts)


def profile_of(entry: Raw) -> str:
    """Return the name of the profile of an entry; empty if it has none."""
    return str(entry.get("profile") or entry.get("cloud") or "")


# --- what the decoders refuse ----------------------------------------------------------------


@dataclass(frozen=True)
class TypeMistake:
    """A key whose value the installer cannot decode, wherever in the file it is."""

    place: str
    keys: tuple[str, ...]
    what: str
    fix: str


def find_type_mistakes(entry: InstallerEntry) -> Iterator[TypeMistake]:
    """Yield what stops the installer in the files that it decodes for an entry: also what it does not use of them."""
    read = {entry.path: "clouds"}
    if secure := first(SECURE):
        read[secure] = "clouds"
    if profile_of(next(part.given for part in entry.parts if part.path == entry.path)) and (public := first(PUBLIC)):
        read[public] = "public-clouds"
    for path, section in read.items():
        document = shared_document(path)
        for mistake in document.repeated:
            yield TypeMistake(mistake.where, (), mistake.what, mistake.fix)
        for name, given in clouds_yaml.read(path, section).items():
            yield from _Decoder(document, (section, str(name))).entry(given, ())


class _Decoder:
    """Compares the values of one entry with the types that the installer has for them.

    The values of a region are decoded as JSON without a conversion of numbers to texts.
    """

    def __init__(self, document: Document, entry: tuple[str, ...]) -> None:
        self._document, self._entry = document, entry

    def entry(self, given: object, below: tuple[str | int, ...], *, is_region: bool = False) -> Iterator[TypeMistake]:
        if given is None:
            return
        if not isinstance(given, dict):
            yield self._mistake(below, "a mapping", given, "write the settings below it")
            return
        yield from self._values(given, below, "", is_region=is_region)
        auth = given.get("auth")
        if isinstance(auth, dict):
            yield from self._values(auth, (*below, "auth"), "auth", is_region=is_region)
        elif auth is not None:
            yield self._mistake((*below, "auth"), "a mapping", auth, "write auth_url and the login below it")
        yield from self._regions(given.get("regions"), (*below, "regions"))

    def _values(
        self, given: Raw, below: tuple[str | int, ...], level: str, *, is_region: bool
    ) -> Iterator[TypeMistake]:
        for name, value in given.items():
            keys = (*below, str(name))
            known = str(name).lower()  # as encoding/json of Go finds a field
            if known in TEXTS[level]:
                if isinstance(value, list | dict) or (is_region and isinstance(value, bool | int | float)):
                    fix = (
                        "write it in quotes" if is_region and not isinstance(value, list | dict) else "write one value"
                    )
                    yield self._mistake(keys, "a string", value, fix)
            elif known in BOOLEANS[level] and not self._is_boolean(value, keys):
                yield self._mistake(keys, "a boolean", value, "write true or false, without quotes")

    def _is_boolean(self, value: object, keys: tuple[str | int, ...]) -> bool:
        if isinstance(value, str):
            return value in (*YES, *NO) and not self._document.is_quoted((*self._entry, *keys))
        return isinstance(value, bool | None)

    def _regions(self, regions: object, below: tuple[str | int, ...]) -> Iterator[TypeMistake]:
        if regions is None:
            return
        if not isinstance(regions, list):
            yield self._mistake(below, "a list", regions, "write region_name with one region")
            return
        for index, region in enumerate(regions):
            keys = (*below, index)
            if isinstance(region, dict):
                if not isinstance(name := region.get("name"), str | None):
                    yield self._mistake((*keys, "name"), "a string", name, "write it in quotes")
                yield from self.entry(region.get("values"), (*keys, "values"), is_region=True)
            elif not isinstance(region, str | None):
                yield self._mistake(keys, "a string or a mapping", region, "write it in quotes")

    def _mistake(self, keys: tuple[str | int, ...], wanted: str, value: object, fix: str) -> TypeMistake:
        kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
        what = f"is {kinds.get(type(value), 'a mapping')}, not {wanted}"
        place = self._document.place((*self._entry, *keys))
        return TypeMistake(place, (*self._entry[1:], *map(str, keys)), what, fix)


def find_changed_texts(entry: InstallerEntry) -> Iterator[EntryMistake]:
    """Yield values without quotes of which the cluster, or openstacksdk, gets another text than is written.

    The installer logs in with the text itself (yaml.v3), and gives the cluster's operators the entry that it has
    decoded as JSON, where ``012345`` is ``5349`` (session.go, CloudConfig); PyYAML makes yet another value of some.
    """
    for level, names in TEXTS.items():
        for name in names:
            keys = (level, name) if level else (name,)
            part = next((each for each in entry.parts if has_value(each.given, keys)), None)
            where = part and (part.section, part.name, *keys)
            text = shared_document(part.path).plain(where) if part and where else None
            if part is None or text is None or yaml_places.resolve_go(text) is None:
                continue
            of_sdk = (part.given[level] if level else part.given)[name]
            if yaml_places.go_text(yaml_places.resolve_go(text)) != text or str(of_sdk) != text:
                yield EntryMistake(
                    keys, "is no text for YAML, and programs make different ones of it", "write it in quotes"
                )


# --- what the installer makes of it ----------------------------------------------------------


def decode(given: Raw) -> Values:
    """Return the settings that the installer knows of an entry, without empty ones."""
    found: Values = {name: text for name in ENTRY_TEXTS if (text := _text(given.get(name)))}
    if (verify := _boolean(given.get("verify"))) is not None:
        found["verify"] = verify
    auth = given.get("auth")
    if isinstance(auth, dict):
        found["auth"] = {name: text for name in AUTH_TEXTS if (text := _text(auth.get(name)))}
    return found


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or isinstance(value, list | dict) else str(value)


def _boolean(value: object) -> bool | None:
    if isinstance(value, str):
        return True if value in YES else False if value in NO else None
    return value if isinstance(value, bool) else None


def _merged(over: Raw, under: Raw) -> Values:
    """Return settings with others over them; a value that is false goes over none (utils.go, mergeInterfaces)."""
    found = dict(under)
    for name, value in over.items():
        below = under.get(name)
        if isinstance(value, dict):
            found[name] = _merged(value, below if isinstance(below, dict) else {})
        elif value or name not in under:
            found[name] = value
    return found


@dataclass(frozen=True)
class Login:
    """What the installer logs in with; ``auth`` has the domains that it takes for those that are not named."""

    auth: Raw = field(repr=False)
    auth_type: str = ""

    @classmethod
    def of(cls, settings: Raw) -> Login:
        """Return the login of an entry that is decoded (requests.go, v3auth and setDomainIfNeeded)."""
        auth = dict(settings.get("auth") or {})
        if any(auth.get(name) for name in (*CREDENTIAL, "project_id", "project_name")):
            for kind in ("id", "name"):
                if domain := auth.pop(f"domain_{kind}", None):
                    for whose in ("user", "project"):
                        auth.setdefault(f"{whose}_domain_{kind}", domain)
            for whose in ("user", "project"):
                names = (f"{whose}_domain_id", f"{whose}_domain_name")
                if auth.get("default_domain") and not any(name in auth for name in names):
                    auth[names[0]] = auth["default_domain"]
        return cls(auth, str(settings.get("auth_type") or ""))

    @property
    def is_token(self) -> bool:
        return "token" in self.auth_type or "token" in self.auth

    @property
    def is_credential(self) -> bool:
        return not self.is_token and "password" not in self.auth and any(name in self.auth for name in CREDENTIAL)

    def find_mistakes(self) -> Iterator[EntryMistake]:
        """Yield what the installer refuses before it asks Keystone, or why it finds no service afterwards."""
        auth = self.auth
        if "auth_url" not in auth:
            yield _missing("auth_url")
        elif (what := odd_url(str(auth["auth_url"]))) and "://" not in str(auth["auth_url"]):
            yield EntryMistake(("auth", "auth_url"), what, "write it with https:// or http://")
        if self.is_token:
            if "token" not in auth:
                yield _missing("token")
        elif self.is_credential:
            yield from self._credential()
        elif "password" not in auth:
            yield _missing("password")
        else:
            yield from self._password()
        yield from self._scope()

    def _credential(self) -> Iterator[EntryMistake]:
        if "application_credential_secret" not in self.auth:
            yield _missing("application_credential_secret")
        if "application_credential_id" in self.auth:
            return
        if "application_credential_name" not in self.auth:
            yield _missing("application_credential_id")
        elif "user_id" not in self.auth:
            if "username" not in self.auth:
                yield _missing("username")
            elif not {"user_domain_id", "user_domain_name"} & self.auth.keys():
                yield _missing("user_domain_name")

    def _password(self) -> Iterator[EntryMistake]:
        domains = [name for name in ("user_domain_id", "user_domain_name") if name in self.auth]
        if any(name in self.auth for name in CREDENTIAL):
            what = "and an application credential are both given: the installer logs in without a project"
            yield EntryMistake(("auth", "password"), what, "remove one of the two")
        if "user_id" in self.auth and "username" in self.auth:
            yield EntryMistake(("auth", "user_id"), "and username are both given", "remove one of them")
        elif "user_id" in self.auth and domains:
            yield EntryMistake(("auth", domains[0]), "is given beside user_id", "remove it")
        elif "user_id" not in self.auth and "username" not in self.auth:
            yield _missing("username")
        elif "username" in self.auth and not domains:
            yield _missing("user_domain_name")
        elif "username" in self.auth and len(domains) > 1:
            yield EntryMistake(("auth", domains[0]), f"and {domains[1]} are both given", "remove one of them")

    def _scope(self) -> Iterator[EntryMistake]:
        if any(name in self.auth for name in (*CREDENTIAL, "project_id")):
            return
        if "project_name" not in self.auth:
            yield _missing("project_name")
        elif not {"project_domain_id", "project_domain_name"} & self.auth.keys():
            yield _missing("project_domain_name")

    def for_client(self) -> Values:
        """Return auth and auth_type by which openstacksdk logs in as the installer does."""
        auth = self.auth
        if self.is_credential:
            names = (*CREDENTIAL, *(() if "application_credential_id" in auth else USER))
            kept = {name: auth[name] for name in names if name in auth} | {"auth_url": of_v3(str(auth["auth_url"]))}
            return {"auth_type": "v3applicationcredential", "auth": kept}
        project = ("project_id",) if "project_id" in auth else ("project_name", *PROJECT_DOMAIN)
        names = ("auth_url", *(("token",) if self.is_token else ("password", *USER)), *project)
        kept = {name: auth[name] for name in names if name in auth}
        return {"auth_type": "token" if self.is_token else "password", "auth": kept}


USER = ("user_id", "username", "user_domain_id", "user_domain_name")
PROJECT_DOMAIN = ("project_domain_id", "project_domain_name")


def _missing(name: str) -> EntryMistake:
    return EntryMistake(("auth", name), "is missing", "write it into auth")


def identity_mistakes(settings: Raw) -> Iterator[EntryMistake]:
    """Yield what chooses a version of the Identity API other than 3 (requests.go, determineIdentityAPI)."""
    given, url = settings.get("identity_api_version"), str((settings.get("auth") or {}).get("auth_url", ""))
    if given is not None:
        if given != "3":
            yield EntryMistake(("identity_api_version",), f"is {given!r}", "write 3, or remove it")
    elif "v2.0" in url and "v3" not in url:
        yield EntryMistake(("auth", "auth_url"), "is that of version 2.0", "write the one that ends with /v3")
    volume = settings.get("volume_api_version")
    if volume not in (None, "3", "v3"):
        yield EntryMistake(("volume_api_version",), f"is {volume!r}", "write 3, or remove it")


def interface_of(settings: Raw) -> str:
    """Return the kind of endpoints that the installer uses (utils.go, GetEndpointType)."""
    chosen = str(settings.get("endpoint_type") or settings.get("interface") or "").removesuffix("URL")
    return chosen if chosen in ("internal", "admin") else "public"


def for_client(settings: Raw) -> Values:
    """Return the entry by which openstacksdk uses the cloud as the installer does."""
    tls = {name: settings[name] for name in ("cacert", "verify") if name in settings}
    if "cert" in settings and "key" in settings:
        tls |= {name: settings[name] for name in ("cert", "key")}
    region = {"region_name": settings["region_name"]} if "region_name" in settings else {}
    of_v3_alone = {"identity_api_version": "3"}  # as identity_mistakes ensures
    return {**Login.of(settings).for_client(), **of_v3_alone, **tls, **region, "interface": interface_of(settings)}
