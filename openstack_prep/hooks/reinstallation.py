"""Another installation from a folder that was used before, and what to do after an installation that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.clusters import installer_names as naming
from openstack_prep.hooks.cleanup import remaining
from openstack_prep.openshift.folder import Folder, clouds_file
from openstack_prep.openshift.installer import (
    infra_id_in,
    is_reentrant,
    to_continue,
    to_create_again,
    to_destroy,
    written,
)
from openstack_prep.openshift.leftover import Leftover

INFRASTRUCTURE_FAILED = 4
"""Exit code after which the installer cannot continue: it has deleted the data of its Cluster API.

Source: openshift/installer, cmd/openshift-install/create.go and pkg/infrastructure/clusterapi (CleanEtcd).
"""


def start_over(folder: str | Path, *, clouds: Path | None = None, jobs: int = 8) -> tuple[Path, ...]:
    """Prepare the installer's ``folder`` for another installation; return the files that were deleted.

    Deletes what the installer wrote for an earlier cluster, once nothing of that cluster exists; this is looked up
    in its project first.  install-config.yaml is restored from its copy; of metadata.json and the files to log in to
    the cluster copies stay.
    ``clouds``: the clouds.yaml of the installer. ``jobs`` is how many requests are sent at a time. Raises ConfigError
    if something of the cluster exists, if another run is at work in the folder, if it is not known which cluster
    the files belong to, or if one may be somebody's own for Terraform; CloudError.
    """
    place = Folder(Path(folder))
    with place.locked():
        found = written(place.path)
        if not found and not place.used:
            return ()
        clusters = place.clusters
        place.refuse_others(clusters)
        for infra_id, entry in clusters.items():
            cloud = connect(entry or place.cloud(), clouds_file=clouds or clouds_file())
            if what := _existing(cloud, infra_id, jobs):
                raise ConfigError(f"{place.path}: {what}; {_to_remove(place, infra_id)}")
        place.clear()
        return tuple(path for path in found if path not in place.logins)


def forbid_twins(place: Folder, cloud: Cloud, *, jobs: int) -> None:
    """Raise ConfigError if the installer would create resources of a cluster a second time.

    A run that died before its Cluster API started leaves security groups, server groups and an image, but no file
    because of which the next run refuses.  That run takes the same infraID, looks for nothing that exists, and fails
    at the machines.  Source: openshift/installer, pkg/infrastructure/openstack/preprovision (4.17 and later), and
    cluster-api-provider-openstack, pkg/cloud/services/compute/servergroup.go: too many server groups with a name.
    """
    infra_id = None if is_reentrant() else place.continued
    if infra_id and (what := _existing(cloud, infra_id, jobs)):
        twins = "the installer would create them a second time with the same names, and fail"
        again = f"to keep it, use another --dir; else {_to_remove(place, infra_id)}, then {to_create_again(place.path)}"
        raise ConfigError(f"{place.path}: {what}; {twins}; {again}")


def _existing(cloud: Cloud, infra_id: str, jobs: int) -> str:
    """Return what exists of a cluster, and where; nothing if nothing exists."""
    left = remaining(cloud, infra_id, jobs=jobs)
    where = f"in project {cloud.project_name} of cloud {cloud.name}"
    return f"{infra_id} still has {_counted(left)} {where}" if left else ""


def _counted(left: Sequence[Leftover]) -> str:
    """Return how many resources of each kind there are."""
    counts = Counter(leftover.thing.replace("_", " ") for leftover in left)
    return ", ".join(f"{number} {thing}{'' if number == 1 else 's'}" for thing, number in counts.items())


def _to_remove(place: Folder, infra_id: str) -> str:
    """Return the commands that remove a cluster, of which metadata.json may know nothing."""
    cleanup = shell.join(["openstack-prep", "cleanup", "--infra-id", infra_id])
    named = infra_id_in(place.metadata_text() or "") == infra_id
    return f"remove it first: {f'{to_destroy(place.path)} (or {cleanup})' if named else cleanup}"


def advice(place: Folder, infra_id: str, left: Sequence[Leftover], *, code: int | None, masters: int) -> Iterator[str]:
    """Yield what to do after an installation that did not complete, by what exists of its cluster.

    ``code`` is the installer's exit code, if known; ``masters`` is how many the cluster shall have.
    """
    if not left:
        yield f"nothing of {infra_id} exists, so there is nothing to destroy"
        yield f"to start over: correct the cause, then {to_create_again(place.path)}"
        return
    if code != INFRASTRUCTURE_FAILED and count_masters(left, infra_id) >= masters:
        yield f"to continue: {to_continue(place.path, bootstrap=has_bootstrap(left, infra_id))}"
    yield f"to start over: {place.restart_commands}"


def count_masters(left: Sequence[Leftover], infra_id: str) -> int:
    """Return how many servers of masters exist."""
    names = [leftover.label for leftover in left if leftover.thing == "server"]
    return sum(naming.role(name, infra_id) == "master" for name in names)


def has_bootstrap(left: Sequence[Leftover], infra_id: str) -> bool:
    """Whether the bootstrap machine exists."""
    return any(leftover.thing == "server" and leftover.label == f"{infra_id}-bootstrap" for leftover in left)
