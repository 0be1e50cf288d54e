"""What is left in files of this machine of exposures that a spec no longer declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed, Resource
from openstack_prep.exposures.leftovers.left_files import LeftFiles


def leftovers(run: CloudRun, resources: Sequence[Resource], folder: Path | None) -> Iterator[tuple[Resource, Observed]]:
    """Yield files of clusters in the folder of the spec, and claims in the pool files that it still names."""
    clusters = [each for each in resources if each.kind == LeftFiles.kind]
    yield from LeftFiles.within(run, [folder] if folder else [], clusters)
    if not any(each.kind == "pool_file" for each in resources):
        return
    from openstack_prep.exposures.exposed_cluster import ExposedCluster  # only a spec with pool files has use for them
    from openstack_prep.exposures.leftovers.left_file_claim import LeftFileClaim
    from openstack_prep.exposures.pool_file import PoolFile

    claims = [each.machine_claims for each in clusters if isinstance(each, ExposedCluster)]
    declared = {(each.pool.name, each.cluster.name) for each in claims if each}
    yield from LeftFileClaim.in_files(run, (each for each in resources if isinstance(each, PoolFile)), declared)
