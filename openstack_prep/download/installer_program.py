"""An ``openshift-install`` program on this machine, and its version.

Source: the installer's command ``version``, whose first line contains the program name and its version: 4.18.7, v4.2.0,
4.20.0-okd-scos.3, 5.0.0-ec.1, or unreleased-master-6542-g... of a development build.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.programs import INSTEAD, SWITCH, is_off

PATIENCE = 60.0  # seconds for the installer to print its metadata

_RELEASE = re.compile(r"v?([45]\.\d+)\.\d")


def release_of(binary: Path) -> str | None:
    """Return the release that an installer installs, such as 4.18; None if it is unknown.

    Raises PrepError if it cannot be run or fails.
    """
    version = version_of(binary)
    found = _RELEASE.match(version or "")
    return found[1] if found else None


def release_image_of(binary: Path) -> str | None:
    """Return the release image that an installer installs, such as quay.io/...@sha256:...; raises PrepError.

    Source: OpenShift installer cmd/openshift-install/version.go prints it; the variable replaces it
    (pkg/asset/releaseimage/default.go and image.go).
    """
    if replaced := os.environ.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"):
        return replaced
    found = re.search(r"^release image (\S+)$", asked(binary, "version").decode(errors="replace"), re.MULTILINE)
    return found[1] if found else None


def version_of(binary: Path) -> str | None:
    """Return the version that an installer prints, such as 4.18.7; raises PrepError in the same way."""
    first = asked(binary, "version").decode(errors="replace").partition("\n")[0].split()
    return first[-1] if len(first) > 1 else None


def asked(binary: Path, *words: str) -> bytes:
    """Return the output of an installer's command; raises PrepError."""
    if is_off():
        raise ConfigError(f"{binary} is not run, because {SWITCH} is off; {INSTEAD}")
    path = str(binary.absolute())  # a bare name would be searched on PATH
    command = " ".join([str(binary), *words])
    try:
        done = subprocess.run(
            [path, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True
        )
    except OSError as error:
        raise PrepError(f"{binary} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise PrepError(f"{command} did not end within {PATIENCE:.0f} seconds") from error
    except subprocess.CalledProcessError as error:
        text = error.stderr.decode(errors="replace").strip()
        raise PrepError(f"{command} failed ({error.returncode}): {text}") from error
    return done.stdout
