"""A folder from which a cluster was installed: another installation would lose its metadata.json, or fail.

Source: openshift/installer, pkg/asset/cluster: an existing metadata.json is overwritten (metadata.go); the files of
an earlier installation make ``create cluster`` fail after that (cluster.go).  See ``installer/traces.py``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.given_file import read_text
from openstack_prep.openshift.installer import METADATA, guard_of, infra_id_in, to_create_again, to_destroy


def installed(path: Path) -> Iterator[Diagnostic]:
    """Yield the cluster that was installed from an install-config's folder, if there is one."""
    metadata, guard = path.parent / METADATA, guard_of(path.parent)
    if not metadata.exists() and not guard:
        return
    verify = shlex.join(["openstack-prep", "verify", "--metadata", str(metadata)])
    again = f"for a new one use another folder, or first {to_destroy(path.parent)}, then {to_create_again(path.parent)}"
    lost = "the installer would overwrite this file, without which it cannot destroy the cluster"
    fails = f"because of {guard} the installer fails, after it has deleted install-config.yaml"
    yield Diagnostic(
        code="cluster.installed",
        where=str(metadata if metadata.exists() else guard),
        what=f"cluster {_infra_id(metadata)} was installed from this folder, or its installation has begun",
        why="; ".join([lost] * metadata.exists() + [fails] * (guard is not None)),
        fix=f"{verify}  # verifies that cluster; {again}" if metadata.exists() else again,
    )


def _infra_id(metadata: Path) -> str:
    """Return the infraID, as far as it can be read; the installer does not read it either."""
    try:
        text = read_text(metadata)
    except (OSError, ValueError):
        text = ""
    return infra_id_in(text) or "(of an infraID that cannot be read)"
