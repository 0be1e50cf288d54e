"""A folder from which a cluster was installed: the installer creates no second cluster there.

Source: the OpenShift installer (asset/cluster): with a metadata.json in its folder it creates no cluster.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.openshift.installer.traces import infra_id_in, to_destroy


def installed(path: Path) -> Iterator[Diagnostic]:
    """Yield the cluster that was installed from an install-config's folder, if there is one."""
    metadata = path.parent / "metadata.json"
    if metadata.exists():
        verify = shlex.join(["openstack-prep", "verify", "--metadata", str(metadata)])
        destroy = to_destroy(path.parent)
        yield Diagnostic(
            code="cluster.installed",
            where=str(metadata),
            what=f"cluster {_infra_id(metadata)} was installed from this folder, or its installation has begun",
            why="the installer creates no second cluster here, and this cluster uses what would be checked",
            fix=f"{verify}  # verifies that cluster; for a new one use another folder, or first {destroy}",
        )


def _infra_id(metadata: Path) -> str:
    """Return the infraID, as far as it can be read; the installer only checks that the file exists."""
    try:
        text = metadata.read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    return infra_id_in(text) or "(of an infraID that cannot be read)"
