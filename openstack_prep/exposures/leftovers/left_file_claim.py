"""Claims in pool files that no declared exposure holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed
from openstack_prep.exposures.leftovers.left_claim import LeftClaim
from openstack_prep.exposures.machine_claims import cluster_of
from openstack_prep.exposures.pool_file import PoolFile


@dataclass(frozen=True, kw_only=True)
class LeftFileClaim(LeftClaim):
    """An address in a pool file that an exposure of the spec holds."""

    file: PoolFile

    @classmethod
    def in_files(
        cls, run: CloudRun, files: Iterable[PoolFile], clusters: Collection[tuple[str, str]] = ()
    ) -> Iterator[tuple[Self, Observed]]:
        """Yield the claims of the spec in the pool files that it still names.

        ``clusters`` are the names of pools and of clusters whose machines have claims there, which are not left.
        """
        for file in files:
            register = file.register(run)
            pool = file.read(run)
            for name, claim in pool.of_spec(run.ownership.spec).items() if pool else ():
                if (file.name, cluster_of(name)) in clusters:
                    continue
                left = cls(name=name, pool=file.name, file=file, **cls.placing(file.owner))
                assert pool is not None
                yield left, left._observed(claim.address, ours=register.is_user(pool))

    def find_one(self, run: CloudRun) -> Observed | None:
        claims = self.in_files(run, (self.file,))
        return next((seen for left, seen in claims if (left.name, left.pool) == (self.name, self.pool)), None)

    def needs(self) -> Iterable[Key]:
        """Return the pool, so that it is deleted after the claim."""
        return (self.key_of(PoolFile.kind, self.pool),)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        self.file.register(run).release([self.name])
