"""The installer's --dir: what lies in it, and the way to the cloud from there."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from openstack.connection import Connection

from tests.devcloud.tenant import connect
from tests.standin.recipe import Recipe, from_install_config, new_infra_id

STATE = ".openshift_install_state.json"
CONFIG, IDENTITY = "*installconfig.InstallConfig", "*installconfig.ClusterID"


class Folder:
    """Reads and writes as the installer does: it eats install-config.yaml and leaves its state."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(json.loads((self.path / "metadata.json").read_text()))

    @property
    def infra_id(self) -> str:
        return str(self.metadata["infraID"])

    def consume(self, release: int, workers: int | None) -> Recipe:
        """Return what to make, from install-config.yaml or from the state that an earlier run left."""
        state = self._state()
        if (self.path / "metadata.json").exists():
            raise FileExistsError("metadata.json already exists.  There may already be a running cluster")
        document, infra_id = state[CONFIG]["config"], state[IDENTITY]["InfraID"]
        recipe = from_install_config(document, infra_id, release)
        (self.path / STATE).write_text(json.dumps(state, indent=4))
        (self.path / "install-config.yaml").unlink(missing_ok=True)
        cloud = document["platform"]["openstack"].get("cloud") or os.environ.get("OS_CLOUD", "openstack")
        metadata = {
            "clusterName": document["metadata"]["name"],
            "clusterID": state[IDENTITY]["UUID"],
            "infraID": infra_id,
            "openstack": {"cloud": cloud, "identifier": {"openshiftClusterID": infra_id}},
            "featureSet": "",
            "customFeatureSet": None,
        }
        (self.path / "metadata.json").write_text(json.dumps(metadata, separators=(",", ":")))
        return recipe if workers is None else replace(recipe, workers=workers)

    def _state(self) -> dict[str, Any]:
        if (self.path / STATE).exists():
            return dict(json.loads((self.path / STATE).read_text()))
        document = yaml.safe_load((self.path / "install-config.yaml").read_text())
        infra_id = new_infra_id(document["metadata"]["name"])
        return {CONFIG: {"config": document}, IDENTITY: {"UUID": str(uuid.uuid4()), "InfraID": infra_id}}

    def purge(self) -> None:
        """Remove what a cluster leaves behind, once it is destroyed."""
        for name in (STATE, "metadata.json"):
            (self.path / name).unlink(missing_ok=True)

    def connect(self) -> Connection:
        """Connect as the installer does: by clouds.yaml alone, whatever OS_* variables say."""
        places = [
            os.environ.get("OS_CLIENT_CONFIG_FILE"),
            "clouds.yaml",
            Path.home() / ".config/openstack/clouds.yaml",
            "/etc/openstack/clouds.yaml",
        ]
        found = next((Path(each) for each in places if each and Path(each).exists()), None)
        if found is None:
            raise FileNotFoundError("no clouds.yaml")
        return connect(found, self.metadata["openstack"]["cloud"])
