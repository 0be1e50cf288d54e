"""The entries of clouds.yaml: which one is in use, what it says, and the error of a choice that failed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import yaml

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError, Mistake, PrepError, SpecError
from openstack_prep.base.formats.foreign_text import parse_json, parse_yaml
from openstack_prep.base.formats.yaml_places import shared_document
from openstack_prep.base.given_file import MOST_SECRET, read_text
from openstack_prep.base.invalid import shown
from openstack_prep.base.raw import Raw, Values, has_value
from openstack_prep.core.model import OwnershipTag

MEMBER = "choose the entry of a project member with --os-cloud"
ADMINISTRATOR = "choose an administrator's entry with --os-cloud or clouds: admin:"
SELECTORS = ("OS_CLOUD", "OS_CLOUD_NAME", "OS_REGION_NAME", "OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE")
"""Variables that describe no cloud by themselves."""

PER_SERVICE = re.compile(
    r"(?P<service>[a-z][a-z0-9_]*?)_"
    r"(endpoint_override|endpoint|api_version|default_microversion|service_type|service_name|interface|region_name)"
)
"""Settings of single services (openstacksdk 4.22.0, cloud_region.py, _get_config)."""
IDENTITY_VERSION = "identity_api_version"
TLS_FILES = ("cacert", "cert", "key", "verify")
"""Settings with the path of a file, if they are a text."""


@dataclass(frozen=True, kw_only=True)
class Tls:
    """How clients check the cloud's certificate, and which one is their own, with absolute paths."""

    verify: bool = True
    cacert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    @classmethod
    def of(cls, verify: object, cert: object) -> Self:
        """Return what openstacksdk has for requests: ``verify`` is a boolean or a path, ``cert`` a path or a pair."""
        certificate, key = cert if isinstance(cert, tuple) else (cert, None)
        cacert = verify if isinstance(verify, str) else None
        return cls(
            verify=bool(verify),
            cacert=absolute(cacert),
            client_cert=absolute(certificate),
            client_key=absolute(key),
        )


@dataclass(frozen=True, kw_only=True)
class Reached:
    """How clients reach a cloud: the settings of an entry of clouds.yaml besides the login."""

    auth_url: str = ""
    region: str | None = None
    interface: str | None = None
    tls: Tls = field(default_factory=Tls)
    service_settings: Mapping[str, str] = field(default_factory=dict)


def service_settings(config: Raw, defaults: Raw, is_service: Callable[[str], bool]) -> dict[str, str]:
    """Return the settings of single services in an entry that the SDK has interpreted, without its defaults."""
    found = {}
    for name, value in sorted(config.items()):
        setting = PER_SERVICE.fullmatch(name)
        if (
            setting
            and name != IDENTITY_VERSION  # each written entry has it
            and isinstance(value, str | int | float)
            and value not in ("", defaults.get(name))
            and is_service(setting["service"].replace("_", "-"))
        ):
            found[name] = str(value)
    return found


def merge(entry: Raw, over: Raw) -> Values:
    """Return an entry of clouds.yaml with that of secure.yaml over it (openstacksdk 4.22.0, _util.py, merge_clouds)."""
    found = dict(entry)
    for name, value in over.items():
        below = found.get(name)
        found[name] = merge(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return found


AUTH_OPTION = re.compile(
    r"auth_url|username|password|passcode|token|trust_id|system_scope|(user|domain|project|tenant)_(id|name)"
    r"|(user|project|default)_domain_(id|name)|application_credential_(id|name|secret)"
)
"""Settings of logins, which an entry may also have outside of auth."""


def as_openstack_client_reads(entry: Raw) -> Values:
    """Return an entry with the settings of logins outside of auth in there, where the openstack client looks last.

    Source: osc_lib 4.7.0, cli/client_config.py, _validate_auth.
    """
    names = {name: name.replace("-", "_") for name in entry}
    outside = {name: value for name, value in entry.items() if AUTH_OPTION.fullmatch(names[name]) and value}
    rest = {name: value for name, value in entry.items() if name not in outside}
    auth = rest.get("auth")
    over = {names[name]: value for name, value in outside.items()}
    return rest | {"auth": {**auth, **over}} if isinstance(auth, dict) else dict(entry)


def absolute(path: str | None) -> str | None:
    """Return the path of a file for TLS as clients in other folders must name it.

    Source: openstacksdk 4.22.0, cloud_region.py, get_requests_verify_args.
    """
    return os.path.abspath(os.path.expanduser(path)) if path else None


def explain(cloud: str | None, reason: str, named: str | Path | None, usual: Sequence[str]) -> str:
    """Return what is wrong with the choice of a cloud, and the available entries.

    ``named`` is the file that the user has chosen, ``usual`` are those that the SDK searches.
    """
    chosen = cloud or os.environ.get("OS_CLOUD")
    chosen = f"cloud {chosen!r}" if chosen else "the cloud (no --os-cloud, OS_CLOUD or OS_AUTH_URL given)"
    choose = "choose one with --os-cloud" if cloud else "choose one with --os-cloud or OS_CLOUD"
    fix = f"{choose}, or set OS_CLIENT_CONFIG_FILE to the file (in Python: the arguments cloud, clouds_file of connect)"
    hidden = _hidden(cloud or os.environ.get("OS_CLOUD"), named, usual)
    if hidden:
        fix = f"export OS_CLIENT_CONFIG_FILE={shell.quote(hidden)}, or run this in another directory"
        fix = "unset OS_CLIENT_CONFIG_FILE" if named and hidden == _first(None, usual) else fix
    # both if the file can be read; the SDK passes over one that does not exist
    entries = _entries(named, usual) + (f" and hides {hidden}, which has this entry" if hidden else "")
    what = dict.fromkeys((reason.rstrip("."), *_missing(named), entries))
    return f"{chosen}: {'; '.join(what)}; {fix}"


def hidden_by(path: Path, entry: str, named: str | Path | None, usual: Sequence[str]) -> str | None:
    """Return the file of the entry in use if the SDK would no longer find it once there is a file at ``path``.

    It reads one file alone, the first that exists. Source: openstacksdk 4.22.0, openstack/config/loader.py,
    CONFIG_FILES and _load_yaml_json_file; gophercloud, which the OpenShift installer uses, searches the same folders.
    """
    in_use = _first(named, usual)
    if in_use is None or in_use not in usual or os.path.exists(path) or entry not in readable(None, [str(in_use)]):
        return None
    earlier = usual[: usual.index(str(in_use))]
    return str(in_use) if os.path.realpath(path) in map(os.path.realpath, earlier) else None


def _hidden(entry: str | None, named: str | Path | None, usual: Sequence[str]) -> str | None:
    """Return a file that has an entry and that the SDK does not read, because it reads another one before."""
    first = _first(named, usual)
    if not entry or first is None or entry in readable(named, usual):
        return None
    return next((each for each in usual if each != first and entry in readable(None, [each])), None)


TEXT = re.compile(r"auth_url|(.*_)?(username|password|passcode|secret|token|name|id)")
"""Names in auth whose values are texts in all of keystoneauth's plugins."""


INTERFACES = ("public", "internal", "admin")
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "y", "1"), "true"),
    **dict.fromkeys(("false", "no", "off", "n", "0"), "false"),
}
"""Texts and numbers that people write for a boolean, in lower case."""
BY_PYYAML = ("yes", "no", "on", "off")
"""Those that are booleans for the SDK's parser where they are not in quotes, and texts for Document."""
SWITCHES = ("verify", "insecure")
ONE_VALUE = ("auth_type", "region_name", "identity_api_version", "profile", "cloud", *TLS_FILES)
"""Settings that are never a list or a mapping."""


@dataclass(frozen=True)
class EntryMistake:
    """What is wrong with one key of an entry, and what to write."""

    keys: tuple[str, ...]
    """The key below the entry, such as ("auth", "verify"); empty: the entry itself."""
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{'.'.join(self.keys) or 'the entry'} {self.what}; {self.fix}"


@dataclass(frozen=True)
class ChosenEntry:
    """The entry that the SDK uses: that of clouds.yaml, with that of secure.yaml over it."""

    name: str
    settings: object = field(repr=False)
    parts: Sequence[tuple[Path, object]] = field(repr=False)
    """Each file with what it has for the entry; the file whose settings win comes first."""

    def refuse(self, found: Iterable[EntryMistake]) -> None:
        """Raise ConfigError with all mistakes, each with its file and line, if any; SpecError for bare keys."""
        if texts := [f"{self._place(mistake.keys)}: {mistake}" for mistake in found]:
            for path, _ in self.parts:
                shared_document(path).refuse_bare_keys(("clouds", self.name))
            raise ConfigError(f"cloud {self.name!r}: {'; '.join(texts)}")

    def _place(self, keys: Sequence[str]) -> str:
        path = next((path for path, part in self.parts if has_value(part, keys)), self.parts[-1][0])
        return shared_document(path).place(("clouds", self.name, *keys))


Files = tuple[str | Path | None, Sequence[str]]
"""The file that the user has chosen, and those that the SDK searches."""


def find_chosen(name: str, files: Files, secure_files: Files) -> ChosenEntry | None:
    """Return an entry as the SDK merges it; None if clouds.yaml does not have it, or can be read only once."""
    path, over = _first(*files), _first(*secure_files)
    found = entries_in(path) if path else {}
    if path is None or name not in found:
        return None
    parts = [(Path(path), found[name])]
    settings = found[name]
    secured = entries_in(over).get(name) if over else None
    if over and isinstance(secured, dict) and isinstance(settings, dict):
        parts.insert(0, (Path(over), secured))
        settings = merge(settings, secured)
    return ChosenEntry(name, settings, parts)


def find_malformed(entry: object) -> Iterator[EntryMistake]:
    """Yield the keys of an entry whose values openstacksdk cannot use, whatever the way to log in."""
    if not isinstance(entry, dict):
        yield EntryMistake((), f"is {_kind(entry)}, not a mapping", "write auth and region_name below it")
        return
    if "auth" in entry and not isinstance(auth := entry["auth"], dict):
        yield EntryMistake(("auth",), f"is {_kind(auth)}, not a mapping", "write auth_url and the login below it")
    for name in ONE_VALUE:
        if isinstance(value := entry.get(name), list | dict):
            yield EntryMistake((name,), f"is {_kind(value)}, not a single value", "write one value")
    for name in SWITCHES:
        value = entry.get(name)
        if name == "insecure" and isinstance(value, str) and value.lower() in ("true", "false"):
            continue  # which the SDK converts (openstacksdk 4.22.0, config/loader.py, BOOL_KEYS)
        if str(value).lower() not in BY_PYYAML and (meant := _meant(value)) is not None:
            yield EntryMistake((name,), f"is {value!r}, not a boolean", f"write {meant} without quotes")
    if "auth_type" in entry and not entry["auth_type"]:
        yield EntryMistake(("auth_type",), "is empty", "remove it, or write such as v3applicationcredential")
    if not isinstance(regions := entry.get("regions") or [], list):
        yield EntryMistake(("regions",), f"is {_kind(regions)}, not a list", "write region_name with one region")
    elif any(isinstance(region, dict) and not region.get("name") for region in regions):
        yield EntryMistake(("regions",), "has a region without a name", "write its name")
    if isinstance(timeout := entry.get("api_timeout"), str) and not timeout.replace(".", "", 1).isdigit():
        yield EntryMistake(("api_timeout",), f"is {timeout!r}, not a number", "write seconds")


def _meant(value: object) -> str | None:
    """Return the boolean that a text or a number stands for; None for a boolean, and for the path of a file."""
    return None if isinstance(value, bool | None) else BOOLEANS.get(str(value).lower())


def mistakes(config: Raw, interface: str | None, for_tls: Iterable[object]) -> Iterator[str]:
    """Yield what is wrong with settings that the SDK accepts and fails on later, with the fix."""
    yield from odd_values(config["auth"])
    if (meant := _meant(verify := config.get("verify"))) is not None:  # of OS_VERIFY
        yield f"verify is {verify!r}, not a boolean; write verify: {meant} into an entry of clouds.yaml"
    else:
        yield from missing_files(for_tls)
    if "auth_url" not in config["auth"]:  # auth_type http_basic, none or admin_token: a service alone, without Keystone
        yield "auth_url is missing; write the address of Keystone into clouds.yaml or OS_AUTH_URL"
    elif what := odd_url(url := str(config["auth"]["auth_url"])):
        yield f"auth_url {shown(url)} {what}; correct it in clouds.yaml or OS_AUTH_URL"
    if interface is not None and interface.removesuffix("URL") not in INTERFACES:
        yield f"interface {interface!r} is not one of {', '.join(INTERFACES)}; choose one of these"


def odd_values(auth: Raw) -> Iterator[str]:
    """Yield what in auth is no text although it must be one, without the value: Keystone would repeat it."""
    for name, value in auth.items():
        if value is not None and not isinstance(value, str) and TEXT.fullmatch(name):
            number = isinstance(value, int | float | date)
            fix = "write it in quotes" if number else "write a string"
            yield f"auth.{name} is {_kind(value)}, not a string; {fix}"


def missing_files(for_tls: Iterable[object]) -> Iterator[str]:
    """Yield the files that cannot be read among a CA, a certificate, or a pair of certificate and key."""
    for given in for_tls:
        for path in given if isinstance(given, tuple) else (given,):
            if isinstance(path, str) and not os.access(path, os.R_OK):
                what = f"{path!r} of cacert, cert or key is not a readable file ({os.path.abspath(path)})"
                yield f"{what}; correct the path or the file's permissions"


def of_v3(auth_url: str) -> str:
    """Return the address of Keystone's API v3; that of an entry may be one without a version.

    Source: openstacksdk 4.22.0, cloud_region.py, get_endpoint: identity requests of a login without a project's name go
    to the auth_url as it is.
    """
    return f"{auth_url.rstrip('/').removesuffix('/v3')}/v3"


def odd_url(url: str) -> str | None:
    """Return what is wrong with an auth_url; None for a usable one, or none at all."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # parsed here
    except ValueError:  # whose text may quote a part of a password
        return "is not a URL"
    if "@" in parts.netloc:  # it is not sent, but would stand in errors and saved plans
        return "holds a login; write username and password beside it"
    usable = not url or (parts.scheme in ("http", "https") and parts.hostname)
    return None if usable else "is not an http or https URL"


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a mapping", str: "a string"}
    kinds[type(None)] = "empty"
    return kinds.get(type(value), "a date" if isinstance(value, date) else "a value of another type")


def unreadable(named: str | Path | None, usual: Sequence[str]) -> str | None:
    """Return what is wrong with the file that the SDK reads, without its values; None if it can be read.

    A pipe can be read only once, which is left to the SDK.
    """
    path = _first(named, usual)
    if path is None or _is_pipe(path) or (path != named and not os.access(path, os.R_OK)):
        return None
    try:
        text = read_text(Path(path), MOST_SECRET)
        parse_json(text) if str(path).endswith("json") else parse_yaml(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        return f"{path} cannot be read: {error}; correct the file"
    return None


def in_use(name: str | None, named: str | Path | None, usual: Sequence[str]) -> str | None:
    """Return an entry's name: the given one, that of OS_CLOUD, or the only one; None for OS_* variables.

    Source: openstacksdk 4.22.0, openstack/config/loader.py, _get_os_environ and __init__ (default_cloud).
    """
    chosen = name or os.environ.get("OS_CLOUD")
    if not chosen and not any(each.startswith("OS_") and each not in SELECTORS for each in os.environ):
        found = readable(named, usual)
        chosen = next(iter(found)) if len(found) == 1 else None
    return chosen or None


def described(entry: str | None, named: str | Path | None, usual: Sequence[str]) -> tuple[str, str]:
    """Return the region and the address of Keystone that an entry has in its file, or OS_* variables; to compare them.

    They are empty where the file does not say so, and for a file that cannot be read, or only once: the SDK reads it.
    """
    if entry is None:
        return os.environ.get("OS_REGION_NAME", ""), os.environ.get("OS_AUTH_URL", "")
    found = readable(named, usual).get(entry)
    settings = {str(key).replace("-", "_"): value for key, value in found.items()} if isinstance(found, dict) else {}
    auth, region = settings.get("auth"), settings.get("regions") or settings.get("region_name")
    region = region[0] if isinstance(region, list) else region
    region = region.get("name") if isinstance(region, dict) else region
    return str(region or ""), str(auth.get("auth_url", "") if isinstance(auth, dict) else "")


OWNER = "openstack_prep"
"""Key of an entry that names the spec that manages it; OpenStack clients ignore unknown keys.

Its value is the name of the spec, or an ownership tag for an entry that does not name its project.
"""


def owner_of(entry: Raw) -> str | None:
    """Return the name of the spec that manages an entry; None if it names none."""
    owner = entry.get(OWNER)
    return None if owner is None else OwnershipTag.spec_in(str(owner)) or str(owner)


def read(path: Path, section: str = "clouds") -> Values:
    """Return the entries of a file by name, not to be changed; raises SpecError that names the line of an error."""
    if not path.exists():
        return {}
    document = shared_document(path)
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise SpecError([Mistake(f"{path}:1", "is not a mapping", "correct it, or choose another file")])
    clouds = data.get(section) or {}
    if not isinstance(clouds, dict):
        place = document.place((section,))
        raise SpecError(
            [Mistake(place, f"{section} is not a mapping of entries", "correct it, or choose another file")]
        )
    return clouds


def readable(named: str | Path | None, usual: Sequence[str]) -> Values:
    """Return the entries of the file that the SDK reads; none of a file that cannot be read, or only once."""
    path = _first(named, usual)
    return {} if path is None else entries_in(path)


def entries_in(path: str | Path) -> Values:
    """Return the entries of a file; none of a file that cannot be read, or only once."""
    try:
        return {} if _is_pipe(path) else read(Path(path))
    except (PrepError, OSError):
        return {}


def _first(named: str | Path | None, usual: Sequence[str]) -> str | Path | None:
    """Return the file that the SDK reads: it passes over those that only other users may read.

    Source: openstacksdk 4.22.0, openstack/config/loader.py, _load_yaml_json_file (EACCES).
    """
    if named and os.path.exists(named):
        return named
    existing = [each for each in usual if os.path.exists(each)]
    return next((each for each in existing if os.access(each, os.R_OK)), existing[0] if existing else None)


def _is_pipe(path: str | Path) -> bool:
    return stat.S_ISFIFO(os.stat(path).st_mode)


def _missing(named: str | Path | None) -> Iterator[str]:
    if named and not os.path.exists(named):
        yield f"{named} does not exist"


def _entries(named: str | Path | None, usual: Sequence[str]) -> str:
    """Return what clouds.yaml contains, or what is wrong with it: the SDK ignores a broken file."""
    path = _first(named, usual)
    if path is None:
        return "no clouds.yaml was found"
    if _is_pipe(path):
        return f"{path} is a pipe, which can be read only once"
    try:
        entries = (parse_yaml(read_text(Path(path))) or {}).get("clouds", {})
        broken = [name for name, entry in entries.items() if not isinstance(entry, dict)]
    except (OSError, ValueError, yaml.YAMLError) as error:
        return f"{path} cannot be read: {error}"
    except AttributeError:
        return f"{path} is not a mapping with the key `clouds`"
    if broken:
        return f"{path}: entry {broken[0]} is not a mapping"
    owners = sorted({owner for entry in entries.values() if (owner := owner_of(entry))})
    written = f", written by openstack-prep for spec {', '.join(owners)}," if owners else ""
    return f"{path}{written} has the entries {', '.join(sorted(entries)) or 'none'}"
