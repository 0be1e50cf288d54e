"""User data as cloud-init would judge it: by a few rules of our own, and by its schema where that is at hand.

cloud-init is not on PyPI, and its schema not in this repository: OPENSTACK_PREP_CLOUD_INIT_SCHEMA names the file, which
Debian's package cloud-init installs (``tox -e cloud-init``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

VARIABLE = "OPENSTACK_PREP_CLOUD_INIT_SCHEMA"


def check_cloud_config(config: Mapping[str, Any]) -> None:
    """Insist that cloud-init would accept it."""
    assert set(config) <= {"package_update", "packages", "write_files", "runcmd"}
    assert config.get("packages") != []  # at least one, by the schema
    paths = [each["path"] for each in config["write_files"]]
    assert len(paths) == len(set(paths))
    assert {name for each in config["write_files"] for name in each} <= {"path", "content", "permissions"}
    assert all(isinstance(each["content"], str) for each in config["write_files"])
    assert all(isinstance(each, str) for each in config["runcmd"])
    if path := os.environ.get(VARIABLE):
        jsonschema.Draft4Validator(json.loads(Path(path).read_text())).validate(config)
