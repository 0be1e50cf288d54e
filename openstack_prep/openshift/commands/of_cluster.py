"""Which cluster a command is about, and where it is: metadata.json or the infraID."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.cli.output import say, warn
from openstack_prep.cli.running import connect_chosen
from openstack_prep.download.installer_program import release_of
from openstack_prep.openshift.cluster import Metadata, cluster, find_metadata
from openstack_prep.openshift.installer import METADATA

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


# The installer whose release an install-config.yaml is read for.

INSTALLER = "openshift-install"


def find_installer(path: Path, release: str | None = None) -> Path | None:
    """Return the installer in the file's folder, in the one around it, or on PATH.

    Nobody has named the first two, so one that another user can have put there, as into /tmp, is not run; nor is one
    further away in its place, because its release may differ.  Raises ConfigError for it, unless ``release`` is given.
    """
    folder = Path(os.path.realpath(path)).parent
    near = next((each for each in (folder / INSTALLER, folder.parent / INSTALLER) if os.path.isfile(each)), None)
    if near is None:
        return Path(found) if (found := shutil.which(INSTALLER)) else None
    if not _is_of_others(near):
        return near
    what = f"{near} is not run, because another user can change it"
    if release is None:
        raise ConfigError(f"{what}; give --release RELEASE, or --installer {shell.quote(str(near))} if you trust it")
    warn(f"{what}; name it by --installer if you trust it")
    return None


def _is_of_others(program: Path) -> bool:
    """Whether a user other than this one and root can change a file, or replace it or a link to it in its folder.

    The own group does not count: where each user has one, it may write everywhere (umask 002).
    """
    target = Path(os.path.realpath(program))
    for path in {program.parent, target, target.parent}:
        found = path.stat()
        others = stat.S_IWOTH | (stat.S_IWGRP if found.st_gid != os.getegid() else 0)
        is_writable = found.st_mode & others and not found.st_mode & stat.S_ISVTX
        if is_writable or found.st_uid not in (0, os.geteuid()):
            return True
    return False


def ask_release(installer: Path | None) -> str:
    """Return the release that an installer tells; raises ConfigError if it tells none."""
    if installer is None:
        what = f"no {INSTALLER} on PATH or beside the file to ask which release it installs"
        raise ConfigError(f"{what}; give --release RELEASE, or --installer FILE")
    try:
        release = release_of(installer)
    except PrepError as error:
        raise ConfigError(f"{str(error).rstrip(': ')}; give --release RELEASE, or another --installer FILE") from error
    if release is None:
        raise ConfigError(f"{installer} does not report its release; give --release RELEASE")
    return release


def metadata_file(options: argparse.Namespace) -> Path | None:
    """Return the metadata.json that is meant, saying so of a copy; None beside --infra-id.  Raises ConfigError."""
    if options.infra_id is not None:
        return None
    found = find_metadata(options.metadata or Path())
    if options.metadata is None and not found.exists():
        raise ConfigError("this folder has no metadata.json; give --metadata PATH or --infra-id ID")
    if found.name != METADATA and found != options.metadata:
        say(f"{found.with_suffix('')} does not exist; using its copy {found}")
    return found


def chosen_cluster(options: argparse.Namespace) -> Metadata:
    """Return the cluster that the options name; raises ConfigError, SpecError."""
    return cluster(metadata_file(options), options.infra_id)


def cloud_of(options: argparse.Namespace, metadata: Metadata) -> Cloud:
    """Return the cluster's cloud: that of --os-cloud, of metadata.json, of OS_CLOUD.  Raises ConfigError."""
    if options.os_cloud or metadata.cloud is None:
        return connect_chosen(options, None)
    try:
        return connect_chosen(options, metadata.cloud)
    except ConfigError as error:
        raise ConfigError(f"{error}; the name comes from metadata.json, and --os-cloud overrides it") from error
