"""The machine that runs the installer: this one.

Source: OpenShift installer pkg/hostcrypt (hostcrypt.go, dynamic.go, static.go): a cluster in FIPS mode needs a host in
FIPS mode, and a build of the installer that is FIPS-capable; 4.15 warns (9b5b235e5f), 4.16 and later refuse
(b261deb2ae) unless OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.openshift.install_config import InstallConfigFields
from openstack_prep.openshift.install_config.releases import FIPS_HOSTS, minor

FIPS_FILE = Path("/proc/sys/crypto/fips_enabled")
SKIP = "OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION"


def fips(cluster: InstallConfigFields, fips_file: Path = FIPS_FILE) -> Iterator[Diagnostic]:
    """Yield why this machine cannot install a cluster in FIPS mode."""
    if not cluster.fips or minor(cluster.release) not in FIPS_HOSTS or os.environ.get(SKIP):
        return
    try:
        text = fips_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        what = f"{fips_file} cannot be read, so this machine is not known to be in FIPS mode: {error}"
    else:
        if text == "1":
            return
        what = f"this machine is not in FIPS mode: {fips_file} is {text[:20]!r}"
    yield Diagnostic(
        code="host.no-fips",
        where="fips",
        what=what,
        why="since 4.16 the installer installs a cluster in FIPS mode only from a host in FIPS mode, and only its "
        "FIPS-capable build does; 4.15 warns",
        fix="run the installer on such a host, as the openshift-install-fips that "
        "oc adm release extract --command=openshift-install-fips RELEASE_IMAGE writes",
        status=DiagnosticStatus.WARNING,  # the installer may run on another machine
    )
