"""What an installation leaves in its folder, and the command that takes its cluster away.

Source: the OpenShift installer (asset/cluster): with a metadata.json in its folder it makes no cluster.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path


def infra_id_in(metadata: str) -> str | None:
    """Return the infraID that the text of a metadata.json names; None when it names none."""
    try:
        return Path(str(json.loads(metadata)["infraID"])).name or None  # it becomes a part of file names
    except (ValueError, KeyError, TypeError):
        return None


def to_destroy(folder: Path) -> str:
    """Return the command for people that takes away the cluster of a folder."""
    return shlex.join(["openshift-install", "destroy", "cluster", "--dir", str(folder)])
