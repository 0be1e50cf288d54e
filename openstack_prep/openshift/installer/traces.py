"""The files of an installation in the installer's folder, their copies, and the command that destroys its cluster.

Source: the OpenShift installer (asset/cluster): with a metadata.json in its folder it creates no cluster.  It deletes
install-config.yaml when it uses it, and metadata.json with the cluster.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

KEPT = ".kept"


def copy_of(path: Path) -> Path:
    """Return the path of the copy that we keep of a file which the installer deletes."""
    return path.with_name(path.name + KEPT)


def find_file(given: str | Path, name: str) -> Path:
    """Return a file of the installer, given by its path or its folder; its copy if only the copy exists."""
    path = Path(given) / name if Path(given).is_dir() else Path(given)
    return path if path.exists() or not copy_of(path).exists() else copy_of(path)


def infra_id_in(metadata: str) -> str | None:
    """Return the infraID in the text of a metadata.json, or None."""
    try:
        return Path(str(json.loads(metadata)["infraID"])).name or None  # becomes a part of file names
    except (ValueError, KeyError, TypeError):
        return None


def to_destroy(folder: Path) -> str:
    """Return the command that destroys the cluster of a folder, for a person to type."""
    return shlex.join(["openshift-install", "destroy", "cluster", "--dir", str(folder)])
