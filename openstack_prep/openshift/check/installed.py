"""A folder from which a cluster was installed: nothing else about it matters, for no second one is made there.

Source: the OpenShift installer (asset/cluster): with a metadata.json in its folder it makes no cluster.
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
            why="the installer makes no second one here, and what is checked before the first is in use by it",
            fix=f"{verify}  # looks at that one; for a new one take another folder, or first {destroy}",
        )


def _infra_id(metadata: Path) -> str:
    """Return the infraID; the installer looks no further than whether there is such a file."""
    try:
        text = metadata.read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    return infra_id_in(text) or "(of an infraID that cannot be read)"
