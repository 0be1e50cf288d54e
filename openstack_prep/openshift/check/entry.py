"""What keeps the installer from the cloud because of its entry of clouds.yaml, or makes other tools use another one.

``clientconfig`` has the rules by which the installer reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.formats.yaml_places import shared_document
from openstack_prep.base.given_file import read_text
from openstack_prep.base.raw import Raw
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.connection import find_mistakes
from openstack_prep.cloud.entries import AUTH_OPTION, PER_SERVICE, EntryMistake, readable
from openstack_prep.openshift.clientconfig import (
    AUTH_TEXTS,
    BOOLEANS,
    CLOUDS,
    PUBLIC,
    InstallerEntry,
    Login,
    find_changed_texts,
    find_entry,
    find_type_mistakes,
    first,
    identity_mistakes,
    places,
    profile_of,
)
from openstack_prep.reports.codes import documented

IGNORED = re.compile(
    "OS_(AUTH_.*|USER.*|PASSWORD|PROJECT_.*|TENANT_.*|TOKEN|REGION_NAME|CACERT|INTERFACE|APPLICATION_CREDENTIAL_.*)"
)
LARGEST_BUNDLE = 65535 * 9 // 16  # bytes; base64 twice makes 16 of 9


def entry(cloud: str, clouds_file: Path | None = None) -> Iterator[Diagnostic]:
    """Yield what keeps the installer from the cloud, or makes other tools use another one.

    A caller that gives ``clouds_file`` also sets OS_CLOUD, so the environment does not matter then.
    """
    found = find_entry(cloud, clouds_file)
    if found is None:
        yield _missing(cloud, clouds_file)
    else:
        for part in found.parts:
            shared_document(part.path).refuse_bare_keys((part.section, part.name))
        yield from _ca_bundle(cloud, found)
        yield from _profile(cloud, found)
        yield from _of_types(found)
        yield from _changed(found)
        yield from _of_login(found)
    if clouds_file is None:
        yield from _environment(cloud)


def _missing(cloud: str, clouds_file: Path | None) -> Diagnostic:
    path = clouds_file or first(CLOUDS)
    fix = (
        "write the entry there, set OS_CLIENT_CONFIG_FILE to the file that has it, "
        "or name another entry in platform.openstack.cloud"
    )
    if path is None:
        what = f"there is no clouds.yaml in {', '.join(map(str, places(CLOUDS)))}"
    elif cloud in (entries := clouds_yaml.read(path)):
        what = f"the entry {cloud!r} is not a mapping"
    else:
        what = f"has no entry {cloud!r}; it has {', '.join(sorted(map(str, entries))) or 'none'}"
        others = (str(place) for place in places(CLOUDS) if place != path and place.is_file())
        if hidden := next((each for each in others if cloud in readable(None, [each])), None):
            what += f", and hides {hidden}, which has this entry"
            fix = f"export OS_CLIENT_CONFIG_FILE={shell.quote(hidden)}"
    return Diagnostic(
        code="clouds-yaml.no-entry",
        where=str(path or CLOUDS),
        what=what,
        why="the installer reads no other file, and nothing in the cloud could be checked",
        fix=fix,
    )


def _ca_bundle(cloud: str, found: InstallerEntry) -> Iterator[Diagnostic]:
    named = found.settings.get("cacert")
    if not named:
        return
    where, shown = f"{found.path}: {cloud}: cacert", str(named)
    path = Path(shown)  # the installer does not expand ~
    if shown.startswith("-----BEGIN"):
        shown, problem = "holds a certificate", "the installer expects the path of a file"
    else:
        try:
            text = read_text(path)
        except (OSError, ValueError) as error:
            problem = str(error)
        else:
            problem = "" if "-----BEGIN CERTIFICATE-----" in text else "holds no certificate"
            yield from _size(where, shown, len(text))
        if not path.is_absolute():
            shown += f" (relative to the installer's working directory, now {Path.cwd()})"
    if problem:
        yield documented(
            code="ca-bundle.invalid",
            where=where,
            what=f"{shown}: {problem}",
            fix="write the absolute path of a file, or remove cacert",
        )


def _size(where: str, named: str, size: int) -> Iterator[Diagnostic]:
    if size > LARGEST_BUNDLE:
        yield Diagnostic(
            code="ca-bundle.too-large",
            where=where,
            what=f"{named} has {size} bytes",
            why="the installer encodes it twice into the bootstrap machine's user data, of which "
            "Nova accepts 65535 bytes",
            fix="keep only the CA of this cloud in it",
            status=DiagnosticStatus.WARNING,
        )


def _profile(cloud: str, found: InstallerEntry) -> Iterator[Diagnostic]:
    named = profile_of(next(part.given for part in found.parts if part.path == found.path))
    if not named:
        return
    path = first(PUBLIC)
    if path is None or named not in clouds_yaml.read(path, "public-clouds"):
        yield documented(
            code="clouds-yaml.no-profile",
            where=f"{found.path}: {cloud}: profile",
            what=f"{named!r} is not in clouds-public.yaml ({path or 'no such file'})",
            fix="write the profile's auth_url and other settings into the entry",
        )


def _of_types(found: InstallerEntry) -> Iterator[Diagnostic]:
    for mistake in find_type_mistakes(found):
        keys = ".".join(mistake.keys)
        what = f"{keys} {mistake.what}" if keys else mistake.what
        yield documented(code="clouds-yaml.invalid", where=mistake.place, what=what, fix=mistake.fix)


def _changed(found: InstallerEntry) -> Iterator[Diagnostic]:
    for mistake in find_changed_texts(found):
        where, what, fix = _of_key(found, mistake)
        why = "the installer logs in with what is written, and gives the cluster another text"
        yield Diagnostic(code="clouds-yaml.invalid", where=where, what=what, why=why, fix=fix)


def _of_login(found: InstallerEntry) -> Iterator[Diagnostic]:
    """Yield why the installer does not log in, what it ignores, and what other clients make of the entry."""
    settings, given = found.settings, found.given
    login = Login.of(settings)
    for mistake in (*identity_mistakes(settings), *login.find_mistakes()):
        where, what, fix = _of_key(found, _with_place(found, mistake))
        yield documented(code="clouds-yaml.incomplete", where=where, what=what, fix=fix)
    yield from _short_lived(found, login)
    auth = given.get("auth")
    warning = DiagnosticStatus.WARNING
    for mistake in _ignored(given, auth if isinstance(auth, dict) else {}):
        where, what, fix = _of_key(found, mistake)
        yield documented(code="clouds-yaml.ignored", where=where, what=what, fix=fix, status=warning)
    for mistake in find_mistakes(given):
        where, what, fix = _of_key(found, mistake)
        yield documented(code="clouds-yaml.other-clients", where=where, what=what, fix=fix, status=warning)


def _of_key(found: InstallerEntry, mistake: EntryMistake) -> tuple[str, str, str]:
    """Return the file and line of a mistake, what is wrong with which key, and the fix."""
    return found.place(*mistake.keys), f"{'.'.join((found.name, *mistake.keys))} {mistake.what}", mistake.fix


def _with_place(found: InstallerEntry, mistake: EntryMistake) -> EntryMistake:
    """Return what is missing in auth with the place where the entry has it instead, if there is one."""
    name, given = mistake.keys[-1], found.given
    auth = given.get("auth")
    auth = auth if isinstance(auth, dict) else {}
    if mistake.keys[:1] != ("auth",) or name in auth:
        return mistake
    fix, related = mistake.fix, (name, name.replace("_domain_name", "_domain_id"))
    if any(each in given or each.replace("_", "-") in given for each in related):
        fix = f"move it into auth; it stands in {found.place(name)}"
    elif name.replace("_", "-") in auth:
        fix = "write its name with underscores"
    elif name.startswith("project_") and {"tenant_name", "tenant_id"} & auth.keys():
        fix = "write project_name in place of tenant_name; the installer does not know that"
    elif given.get("regions"):
        fix = "write it, and region_name, into the entry; the installer takes no values of regions"
    return EntryMistake(mistake.keys, mistake.what, fix)


def _short_lived(found: InstallerEntry, login: Login) -> Iterator[Diagnostic]:
    auth = found.given.get("auth")
    trust = isinstance(auth, dict) and bool(auth.get("trust_id"))
    if login.is_token:
        what = "logs in by a token, which ends within hours"
    elif trust:
        what = "has a trust_id, which the installer ignores"
    elif login.auth_type in LASTING or (login.is_credential and not login.auth_type):
        return
    else:
        what = f"has the auth_type {login.auth_type}, which the installer ignores: it logs in by the password, or not"
    yield documented(
        code="credential.short-lived",
        where=found.place("auth_type") if login.auth_type else found.place("auth"),
        what=f"{found.name} {what}",
        fix="create an application credential, and write auth_type: v3applicationcredential",
    )


LASTING = ("", "password", "v3password", "v3applicationcredential")
"""The auth_types of credentials that last as long as the cluster."""
PREFERENCES = ("_api_version", "_default_microversion")
"""Settings of services by which the installer could not be meant."""


def _ignored(given: Raw, auth: Raw) -> Iterator[EntryMistake]:
    """Yield the settings that other clients use, and that the installer does not know."""
    ignored = "is a setting of other clients, which the installer ignores"
    for name in map(str, auth):
        if name.lower() not in (*AUTH_TEXTS, *BOOLEANS["auth"], "trust_id"):
            yield EntryMistake(("auth", name), ignored, "remove it, or move it to where it belongs")
    for name in map(str, given):
        known = name.replace("-", "_")
        if AUTH_OPTION.fullmatch(known) and known not in auth:
            yield EntryMistake((name,), ignored, "move it into auth")
        elif AUTH_OPTION.fullmatch(known) and auth.get(known) != given[name]:
            yield EntryMistake((name,), f"{ignored}: it takes auth.{known}", "remove one of them")
        elif PER_SERVICE.fullmatch(known) and not known.endswith(PREFERENCES) and given[name]:
            yield EntryMistake((name,), ignored, "remove it; the installer uses the catalogue")
    if given.get("insecure") and given.get("verify") is not False:
        yield EntryMistake(("insecure",), ignored, "write verify: false, or rather the file of the CA into cacert")
    if bool(given.get("cert")) != bool(given.get("key")):
        name = "cert" if given.get("cert") else "key"
        yield EntryMistake((name,), "stands alone; the installer uses cert and key together", "write both")
    regions = given.get("regions")
    if isinstance(regions, list) and regions and not given.get("region_name"):
        yield EntryMistake(("regions",), "is a list, from which the installer chooses none", "write region_name")
    elif isinstance(regions, list) and any(isinstance(region, dict) and region.get("values") for region in regions):
        yield EntryMistake(("regions",), "has values, which the installer does not take", "write them into the entry")


def _environment(cloud: str) -> Iterator[Diagnostic]:
    chosen = os.environ.get("OS_CLOUD")
    if chosen and chosen != cloud:
        yield Diagnostic(
            code="environment.other-cloud",
            where="OS_CLOUD",
            what=f"is {chosen!r}, but install-config.yaml makes the installer use {cloud!r}",
            why="other tools in this shell show another cloud or project than the cluster's",
            fix=f"export OS_CLOUD={shell.quote(cloud)}",
            status=DiagnosticStatus.WARNING,
        )
    named = os.environ.get("OS_CLIENT_CONFIG_FILE")
    if named and not Path(named).is_file():
        yield documented(
            code="environment.no-clouds-yaml",
            where="OS_CLIENT_CONFIG_FILE",
            what=f"{named} is not a file",
            why=f"the installer reads {first(CLOUDS) or 'no other'} instead, silently",
            status=DiagnosticStatus.WARNING,
        )
    ignored = sorted(each for each in os.environ if IGNORED.fullmatch(each))
    if ignored:
        yield Diagnostic(
            code="environment.ignored",
            where="environment",
            what=f"{', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} set",
            why="the installer ignores all but OS_CLOUD and OS_CLIENT_CONFIG_FILE: only clouds.yaml counts",
            fix=shell.join(["unset", *ignored]),
            status=DiagnosticStatus.WARNING,
        )
