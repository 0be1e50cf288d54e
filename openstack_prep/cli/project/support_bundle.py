"""``support-bundle``: what helps others to help, in one file that a person reads before sending it."""

from __future__ import annotations

import argparse
import contextlib
import traceback
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.private_file import create_private
from openstack_prep.base.raw import Values
from openstack_prep.cli.output import error_data, explained, print_result, reading, warn
from openstack_prep.cli.project.validate import check
from openstack_prep.cli.running import connect_chosen
from openstack_prep.cli.spec import read_spec
from openstack_prep.cloud.connection import Cloud, opened
from openstack_prep.reports import last_run, support
from openstack_prep.verbs import api

if TYPE_CHECKING:
    from openstack_prep.spec import Spec


def run(options: argparse.Namespace) -> int:
    path = options.output or Path(f"openstack-prep-support-{datetime.now():%Y%m%dT%H%M%S.%f}.yaml")
    if path.exists() or path.is_symlink():  # before the work; judged again when it is written
        raise ConfigError(f"--output: {path} exists; choose another file, or delete it")
    document: Values = {"versions": support.versions(), "last_run": last_run.read()}
    if failed := last_run.read_failed():
        document["last_failed_run"] = failed
    spec = cloud = None
    if options.spec:
        spec, document["spec"] = _spec(options)
    if not options.offline:
        cloud, document["cloud"] = _cloud(options, spec)
        if spec and cloud and "errors" not in document["cloud"]:
            document["plan"] = _plan(options, spec, cloud)
    secrets = support.known_secrets(spec, _entries(options, spec))
    create_private(path, support.written(document, secrets))
    print_result(options, f"{path} was written; read it before you send it", {"path": str(path)})
    return 0


def _spec(options: argparse.Namespace) -> tuple[Spec | None, Values]:
    """Return the spec, and what the bundle says of it: what is wrong with it, if it cannot be read."""
    try:
        spec = read_spec(options, options.spec, needs_secrets=not options.offline)
    except Exception as error:  # noqa: BLE001 - what ends here is what the bundle is for
        return None, _failed("spec", error)
    found: Values = {}
    try:
        found = support.of_spec(spec)
        _, warnings = check(spec)
        return spec, found | {"warnings": [*spec.warnings, *warnings]}
    except Exception as error:  # noqa: BLE001 - what ends here is what the bundle is for
        return spec, found | _failed("spec", error)


def _cloud(options: argparse.Namespace, spec: Spec | None) -> tuple[Cloud | None, Values]:
    cloud = None
    try:
        cloud = connect_chosen(options, spec.clouds.admin if spec else None)
        return cloud, support.of_cloud(cloud.authenticate())
    except Exception as error:  # noqa: BLE001 - what ends here is what the bundle is for
        return cloud, _failed("cloud", error)


def _entries(options: argparse.Namespace, spec: Spec | None) -> Iterator[Cloud]:
    """Yield the clouds that the command and the spec name, for their secrets; the other parts say what is wrong."""
    named = [options.os_cloud or spec.clouds.admin, spec.clouds.tenant] if spec else [options.os_cloud]
    for entry in dict.fromkeys([named[0], *filter(None, named[1:])]):
        with contextlib.suppress(Exception):  # also those of the SDK
            yield Cloud(opened(entry))


def _plan(options: argparse.Namespace, spec: Spec, cloud: Cloud) -> Values:
    try:
        with reading(options):
            return api.plan(cloud, spec, jobs=options.jobs).document()
    except Exception as error:  # noqa: BLE001 - what ends here is what the bundle is for
        return _failed("plan", error)


def _failed(part: str, error: Exception) -> Values:
    """Return an error as a part of the bundle, and say so; of an internal error also the lines that led to it."""
    found = explained(error)
    warn(f"{part}: the bundle has this error in its place: {found}")
    lines = [
        f"{summary.filename}:{summary.lineno} {summary.name}" for summary in traceback.extract_tb(error.__traceback__)
    ]
    return {"errors": error_data(found)} | ({} if found is error else {"lines": lines})
