"""The entry of clouds.yaml that the installer will use, found where and as the installer finds it.

Source: gophercloud/utils openstack/clientconfig, which the OpenShift installer reads clouds.yaml with; it
knows only the names clouds.yaml, secure.yaml and clouds-public.yaml, and ignores OS_* variables.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.given_file import read_text
from openstack_prep.base.raw import Raw
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.entries import readable
from openstack_prep.reports.codes import documented

IGNORED = re.compile(
    "OS_(AUTH_.*|USER.*|PASSWORD|PROJECT_.*|TENANT_.*|TOKEN|REGION_NAME|CACERT|INTERFACE|APPLICATION_CREDENTIAL_.*)"
)
CLOUDS = "clouds.yaml"
LARGEST_BUNDLE = 65535 * 9 // 16  # bytes; base64 twice makes 16 of 9


@dataclass(frozen=True, kw_only=True)
class InstallerEntry:
    """An entry that the installer finds."""

    path: Path
    """The file that contains it."""
    settings: Raw
    """Its settings, including secrets."""

    def __repr__(self) -> str:
        return f"InstallerEntry({self.path})"


def places(name: str) -> list[Path]:
    """Return where the installer looks for a file; it uses the first that exists."""
    named = os.environ.get("OS_CLIENT_CONFIG_FILE") if name == CLOUDS else None
    folders = [Path.cwd(), Path.home() / ".config" / "openstack", Path("/etc/openstack")]
    return [*([Path(named)] if named else []), *(folder / name for folder in folders)]


def find_entry(cloud: str, clouds_file: Path | None = None) -> InstallerEntry | None:
    """Return the entry as the installer finds it; raises SpecError when the file is not a clouds.yaml.

    ``clouds_file``: the file that OS_CLIENT_CONFIG_FILE will name; default: as in this environment.
    """
    path = clouds_file or _first(CLOUDS)
    settings = clouds_yaml.read(path).get(cloud) if path else None
    return InstallerEntry(path=path, settings=settings) if path and isinstance(settings, dict) else None


def _first(name: str) -> Path | None:
    return next((each for each in places(name) if each.is_file()), None)


def entry(cloud: str, clouds_file: Path | None = None) -> Iterator[Diagnostic]:
    """Yield what keeps the installer from the cloud, or makes other tools use another one.

    A caller that gives ``clouds_file`` also sets OS_CLOUD, so the environment does not matter then.
    """
    found = find_entry(cloud, clouds_file)
    if found is None:
        yield _missing(cloud, clouds_file)
    else:
        yield from _ca_bundle(cloud, found)
        yield from _profile(cloud, found)
    if clouds_file is None:
        yield from _environment(cloud)


def _missing(cloud: str, clouds_file: Path | None) -> Diagnostic:
    path = clouds_file or _first(CLOUDS)
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
        others = (str(each) for each in places(CLOUDS) if each != path and each.is_file())
        if hidden := next((each for each in others if cloud in readable(None, [each])), None):
            what += f", and hides {hidden}, which has this entry"
            fix = f"export OS_CLIENT_CONFIG_FILE={shlex.quote(hidden)}"
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
    named = found.settings.get("profile") or found.settings.get("cloud")
    if not named:
        return
    path = _first("clouds-public.yaml")
    if path is None or named not in clouds_yaml.read(path, "public-clouds"):
        yield documented(
            code="clouds-yaml.no-profile",
            where=f"{found.path}: {cloud}: profile",
            what=f"{named!r} is not in clouds-public.yaml ({path or 'no such file'})",
            fix="write the profile's auth_url and other settings into the entry",
        )


def _environment(cloud: str) -> Iterator[Diagnostic]:
    shell = os.environ.get("OS_CLOUD")
    if shell and shell != cloud:
        yield Diagnostic(
            code="environment.other-cloud",
            where="OS_CLOUD",
            what=f"is {shell!r}, but install-config.yaml makes the installer use {cloud!r}",
            why="other tools in this shell show another cloud or project than the cluster's",
            fix=f"export OS_CLOUD={shlex.quote(cloud)}",
            status=DiagnosticStatus.WARNING,
        )
    named = os.environ.get("OS_CLIENT_CONFIG_FILE")
    if named and not Path(named).is_file():
        yield documented(
            code="environment.no-clouds-yaml",
            where="OS_CLIENT_CONFIG_FILE",
            what=f"{named} is not a file",
            why=f"the installer reads {_first(CLOUDS) or 'no other'} instead, silently",
            status=DiagnosticStatus.WARNING,
        )
    ignored = sorted(each for each in os.environ if IGNORED.fullmatch(each))
    if ignored:
        yield Diagnostic(
            code="environment.ignored",
            where="environment",
            what=f"{', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} set",
            why="the installer ignores all but OS_CLOUD and OS_CLIENT_CONFIG_FILE: only clouds.yaml counts",
            fix=shlex.join(["unset", *ignored]),
            status=DiagnosticStatus.WARNING,
        )
