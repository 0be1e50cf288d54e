"""The installer's --dir: the files in it, and the way to the cloud from there.

Source: openshift/installer, pkg/asset (store, targets, cluster/cluster.go, cluster/metadata.go, tls/journal.go) and
pkg/clusterapi; the folder of the real run of 22 November 2026.  The contents are placeholders.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from openstack.connection import Connection

from tests.devcloud.tenant import connect
from tests.standin.recipe import CAPI, STAGES, Recipe, from_install_config, new_infra_id

STATE, LOG = ".openshift_install_state.json", ".openshift_install.log"
COLORS = {"info": 36, "warning": 33, "fatal": 31}
CONFIG, IDENTITY, CLUSTER = "*installconfig.InstallConfig", "*installconfig.ClusterID", "*cluster.Cluster"
OUTPUT = ".clusterapi_output"
GUESTS = "openshift-cluster-api-guests"
ASSETS = (
    "terraform.tfvars.json",
    "terraform.platform.auto.tfvars.json",
    "auth/kubeconfig",
    "auth/kubeadmin-password",
    "tls/journal-gateway.crt",
    "tls/journal-gateway.key",
)
"""What is written before metadata.json."""
MANIFESTS = (
    "manifests/cluster-config.yaml",
    "openshift/99_cloud-creds-secret.yaml",
    "openshift/99_kubeadmin-password-secret.yaml",
    "cluster-api/02_infra-cluster.yaml",
)


class Folder:
    """Reads and writes as the installer does: it eats install-config.yaml and leaves its state."""

    def __init__(self, path: Path, *, logged: bool = False) -> None:
        self.path, self.logged = path, logged

    def log(self, level: str, text: str) -> None:
        """Print a line: padded and in colour on a terminal, else as logrus does; append it to the log in the folder."""
        line = f'level={level} msg="[stand-in] {text}"'
        if self.logged:
            self.path.mkdir(parents=True, exist_ok=True)
            with (self.path / LOG).open("a") as file:
                file.write(f"{line}\n")
        if sys.stderr.isatty():
            line = f"\x1b[{COLORS[level]}m{level.upper()}\x1b[0m {f'[stand-in] {text}':<44} "
        print(line, file=sys.stderr, flush=True)

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(json.loads((self.path / "metadata.json").read_text()))

    @property
    def infra_id(self) -> str:
        return str(self.metadata["infraID"])

    def consume(self, release: int, workers: int | None) -> Recipe:
        """Write all assets but the last, and return what to make; the last one is refused only then."""
        state = self._use()
        document, infra_id = state[CONFIG]["config"], state[IDENTITY]["InfraID"]
        recipe = from_install_config(document, infra_id, release)
        for name in ASSETS:
            self._write(name, infra_id)
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
        self._refuse(release)
        return recipe if workers is None else replace(recipe, workers=workers)

    def make_manifests(self, release: int) -> None:
        """Write the manifests of an install-config, which is eaten; no cluster has begun."""
        self._use()
        for name in MANIFESTS if release >= CAPI else MANIFESTS[:-1]:
            self._write(name)

    def _use(self) -> dict[str, Any]:
        """Return the state, and delete what it was made from: install-config.yaml and manifests."""
        state = self._state()
        (self.path / STATE).write_text(json.dumps(state, indent=4))
        (self.path / "install-config.yaml").unlink(missing_ok=True)
        for name in MANIFESTS:
            (self.path / name).unlink(missing_ok=True)
            self._tidy(name)
        return state

    def _state(self) -> dict[str, Any]:
        """Return the state of an earlier run, unless there is an install-config that differs from its own."""
        file, found = self.path / "install-config.yaml", self.path / STATE
        earlier = dict(json.loads(found.read_text())) if found.exists() else None
        if earlier is not None and not file.exists():
            return earlier
        document = yaml.safe_load(file.read_text())
        if earlier is not None and document == earlier[CONFIG]["config"]:
            return earlier
        infra_id = new_infra_id(document["metadata"]["name"])
        data = base64.b64encode(yaml.safe_dump(document).encode()).decode()
        config = {"config": document, "file": {"Filename": "install-config.yaml", "Data": data}}
        return {CONFIG: config, IDENTITY: {"UUID": str(uuid.uuid4()), "InfraID": infra_id}}

    def _refuse(self, release: int) -> None:
        """Raise an error if a cluster was created from here; those with a Terraform state per stage notice nothing."""
        if release >= CAPI:
            again = os.environ.get("OPENSHIFT_INSTALL_REENTRANT", "").lower() == "true"
            if (self.path / OUTPUT / "envtest.kubeconfig").exists() and not again:
                what = "local infrastructure provisioning artifacts already exist"
                raise FileExistsError(f"{what}. There may already be a running cluster")
        elif release < STAGES and (self.path / "terraform.tfstate").exists():
            raise FileExistsError('"terraform.tfstate" already exists.  There may already be a running cluster')

    # --- while the infrastructure is made --------------------------------------------------

    def start_control_plane(self, release: int) -> None:
        """Leave what the local control plane writes, or Terraform."""
        if release < CAPI:
            names = [f"terraform.{each}.tfstate" for each in ("topology", "masters", "bootstrap")]
            for name in names if release >= STAGES else ["terraform.tfstate"]:
                self._write(name, self.infra_id)
            return
        for name in ("etcd.log", "kube-apiserver.log", "etcd/member/wal/0.wal", "envtest.kubeconfig"):
            self._write(f"{OUTPUT}/{name}")

    def end_infrastructure(self, infra_id: str, release: int, *, failed: bool) -> None:
        """Leave the manifests of Cluster API; after a failure its data is deleted."""
        if release < CAPI or not (self.path / OUTPUT).exists():
            return
        for kind, name in (("Cluster", infra_id), ("OpenStackCluster", infra_id), ("Machine", f"{infra_id}-bootstrap")):
            self._write(f"{OUTPUT}/{kind}-{GUESTS}-{name}.yaml")
        if failed:
            self.forget_control_plane()

    def forget_control_plane(self) -> None:
        shutil.rmtree(self.path / OUTPUT / "etcd", ignore_errors=True)

    def recipe_of_bootstrap(self, release: int) -> Recipe:
        """Return the cluster whose bootstrap machine can be destroyed from here; raises FileNotFoundError."""
        witness = f"{OUTPUT}/etcd" if release >= CAPI else "terraform.bootstrap.tfstate"
        witness = "terraform.tfstate" if release < STAGES else witness
        if not (self.path / witness).exists():
            raise FileNotFoundError(f"failed to delete bootstrap machine: {witness} does not exist")
        return Recipe(infra_id=self.infra_id, release=release)

    # --- how --------------------------------------------------------------------------------

    def _write(self, name: str, infra_id: str = "") -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of a stand-in {infra_id}\n")
        path.chmod(0o640)

    def _tidy(self, name: str) -> None:
        parent = (self.path / name).parent
        if parent != self.path and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()

    def purge(self) -> None:
        """Remove what a cluster leaves behind, once it is destroyed; the log stays."""
        for name in (*ASSETS, STATE, "metadata.json", *(each.name for each in self.path.glob("terraform*.tfstate"))):
            (self.path / name).unlink(missing_ok=True)
            self._tidy(name)
        shutil.rmtree(self.path / OUTPUT, ignore_errors=True)

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
