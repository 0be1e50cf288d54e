"""The installer whose release an install-config.yaml is read for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.download.installer_program import release_of

INSTALLER = "openshift-install"


def find_installer(path: Path) -> Path | None:
    """Return the installer in the file's folder, in the one around it, or on PATH."""
    folder = Path(os.path.realpath(path)).parent
    near = (each / INSTALLER for each in (folder, folder.parent))
    found = next((each for each in near if each.is_file()), None) or shutil.which(INSTALLER)
    return Path(found) if found else None


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
