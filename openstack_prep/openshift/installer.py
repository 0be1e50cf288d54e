"""The installer's files; without requests.

Source: openshift/installer, pkg/asset/cluster/cluster.go, Load: ``create cluster`` refuses while
.clusterapi_output/envtest.kubeconfig exists, unless OPENSHIFT_INSTALL_REENTRANT is true (4.21); early releases refuse
while terraform.tfstate exists, and those with several Terraform states look for a pattern that matches none of them.
This asset is the last one (pkg/asset/targets): by then install-config.yaml is deleted, and metadata.json is
overwritten, which cluster/metadata.go never reads.  pkg/clusterapi: the binaries and etcd's data.
pkg/asset/installconfig: the keys of the state file.  ``destroy cluster`` deletes metadata.json with the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import MIB, read_text
from openstack_prep.base.raw import Raw
from openstack_prep.clusters.installer_names import is_infra_id

# --- trace ------------------------------------------------------------------------------------


KEPT = ".kept"
CONFIG, METADATA, STATE = "install-config.yaml", "metadata.json", ".openshift_install_state.json"
LARGEST_STATE = 64 * MIB
CAPI = ".clusterapi_output"
GUARDS = (f"{CAPI}/envtest.kubeconfig", "terraform.tfstate")
LOGINS = ("auth/kubeconfig", "auth/kubeadmin-password")
STAGES = ("topology", "masters", "bootstrap")
"""Of Terraform, each with a state and outputs of its own (pkg/terraform/stages/split.go)."""
WRITTEN = (
    CAPI,
    *LOGINS,
    "tls/journal-gateway.crt",
    "tls/journal-gateway.key",
    *(f"cluster-api/{each}" for each in ("etcd", "kube-apiserver", "kubectl", "cluster-api")),
    "cluster-api/cluster-api-provider-*",
    *(f"terraform{each}.tfvars.json" for each in ("", ".platform.auto", ".openstack.auto")),
    *(f"{each}.tfvars.json" for each in STAGES),
    "terraform.tfstate",
    *(f"terraform.{each}.tfstate" for each in STAGES),
    *(f"{each}.ign" for each in ("bootstrap", "master", "worker")),
    STATE,
    METADATA,
)
"""Patterns of the files that ``create`` writes for one cluster; metadata.json, which names the cluster, is last."""
OF_TERRAFORM = ("terraform.tfstate", "terraform.tfvars.json")
"""Those of them that Terraform reads and writes in any directory; the installer's contain the infraID."""
MANIFESTS = {
    "manifests": "cluster-config.yaml",
    "openshift": "99_kubeadmin-password-secret.yaml",
    "cluster-api": "02_infra-cluster.yaml",
}
"""The folders of ``create manifests``, each with a file that shows that the installer wrote it."""


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
        return Path(str(parse_json(metadata)["infraID"])).name or None  # becomes a part of file names
    except (ValueError, KeyError, TypeError):
        return None


def is_reentrant() -> bool:
    """Whether the user allows the installer to start although an earlier installation has begun."""
    return os.environ.get("OPENSHIFT_INSTALL_REENTRANT", "").lower() == "true"


def guard_of(folder: Path) -> Path | None:
    """Return the file because of which ``create cluster`` refuses to start; None if there is none."""
    if is_reentrant():
        return None
    return next((each for name in GUARDS if (each := folder / name).exists()), None)


def written(folder: Path) -> list[Path]:
    """Return the files of an installation that exist, in the order in which to delete them."""
    found = (each for pattern in WRITTEN for each in sorted(folder.glob(pattern)))
    return list(dict.fromkeys(found))


def manifests(folder: Path) -> list[Path]:
    """Return the folders that ``create manifests`` wrote, and that ``create cluster`` has not used."""
    return [folder / name for name, witness in MANIFESTS.items() if (folder / name / witness).exists()]


def state_of(folder: Path) -> Raw:
    """Return the assets in the installer's state file; nothing if there is none, or it cannot be read."""
    try:
        found = parse_json(read_text(folder / STATE, LARGEST_STATE))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def config_in_state(folder: Path) -> Raw | None:
    """Return the install-config in the state file, with the installer's defaults; it contains the pull secret."""
    found = state_of(folder).get("*installconfig.InstallConfig")
    config = found.get("config") if isinstance(found, dict) else None
    return config if isinstance(config, dict) else None


def infra_id_in_state(folder: Path) -> str | None:
    """Return the infraID that the installer uses again while its install-config is the same; None without one."""
    identity = state_of(folder).get("*installconfig.ClusterID")
    named = identity.get("InfraID") if isinstance(identity, dict) else None
    return named if isinstance(named, str) and is_infra_id(named) else None


def infra_ids_in(folder: Path) -> Iterator[str]:
    """Yield the infraIDs that the installer's own files name, beside metadata.json."""
    prefix = "Cluster-openshift-cluster-api-guests-"
    clusters = [path.stem.removeprefix(prefix) for path in sorted((folder / CAPI).glob(f"{prefix}*.yaml"))]
    yield from (each for each in (infra_id_in_state(folder), *clusters) if each and is_infra_id(each))


def to_destroy(folder: Path, what: str = "cluster") -> str:
    """Return the command that destroys the cluster of a folder, or its bootstrap machine, for a person to type."""
    return shell.join(["openshift-install", "destroy", what, "--dir", str(folder)])


def to_continue(folder: Path, *, bootstrap: bool) -> str:
    """Return the commands that finish an installation whose machines exist.

    ``wait-for install-complete`` alone would leave the bootstrap machine, its floating IP and the image with its
    ignition, which contains secrets.
    """
    waits = [shell.join(["openshift-install", "wait-for", stage, "--dir", str(folder)]) for stage in WAITED_FOR]
    return " && ".join([waits[0], to_destroy(folder, "bootstrap"), waits[1]]) if bootstrap else waits[1]


WAITED_FOR = ("bootstrap-complete", "install-complete")


def to_create_again(folder: Path) -> str:
    """Return the command that puts the folder right and installs from it again."""
    installer = ["openshift-install", "create", "cluster", "--dir", str(folder)]
    return shell.join(["openstack-prep", "ipi", "--again", "--", *installer])
