"""Pool files: the addresses of a network that OpenStack does not know, and who has claimed them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import ClassVar

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import File, Name
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import MANAGED, Change, Context, Observed
from openstack_prep.core.resource import WrittenFile
from openstack_prep.exposures.register.pool import PoolContent, PoolSettings
from openstack_prep.exposures.register.pool_file import PoolFileRegister
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import InProject


@dataclass(frozen=True, kw_only=True)
class PoolFile(PoolSettings, InProject):
    """A file that registers addresses and MAC addresses of a network outside of OpenStack, such as a libvirt network.

    Several specs can share the file, if they declare the same. Apply creates it, or adds the spec to its users; destroy
    removes the spec with its claims, and the file once nobody else uses it. Keep the file in git.
    """

    kind: ClassVar[str] = "pool_file"
    implied: ClassVar[frozenset[str]] = frozenset({MANAGED})

    name: Name
    """Name of the pool, in the spec and in the file."""
    path: File
    """The file."""

    @property
    def needs_cloud(self) -> bool:
        return self.owner is not None

    @property
    def settings(self) -> PoolSettings:
        return PoolSettings(**_values(self))

    def register(self, run: CloudRun, tell: Callable[[str], None] | None = None) -> PoolFileRegister:
        """Return the register in the file, for the claims of the spec; ``tell`` is called while the file is locked."""
        return PoolFileRegister(
            path=Path(self.path),
            name=self.name,
            settings=self.settings,
            spec=run.ownership.spec,
            project=home.ownership(run).home,
            tell=tell or partial(run.note, self.key),
        )

    def read(self, run: CloudRun) -> PoolContent | None:
        """Return the content of the file, read once per run; None if it does not exist. Raises SpecError."""
        return run.read_once((PoolFile, self.path, self.name), self.register(run).read)

    # --- what a plan shows ----------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterator[Mistake]:
        first = next(file for file in context.declared(PoolFile) if _target(file) == _target(self))
        if first.key != self.key:
            what = f"path {self.path} is also that of {first.key}"
            yield self.mistake(what, "use one file per pool", Code.SPEC_CONTRADICTION)

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        return (WrittenFile("path", self.path, f"pool {self.name}"),)  # list_mistakes() says more of two pools

    def desired(self) -> Values:
        return _values(self) | {"path": self.path, MANAGED: True}

    def find_one(self, run: CloudRun) -> Observed | None:
        pool = self.read(run)
        return self._observed(run, pool) if pool else None

    def _observed(self, run: CloudRun, pool: PoolContent) -> Observed:
        managed = self.register(run).is_user(pool)
        return Observed(
            id=self.path,
            values=_values(pool.settings) | {"path": self.path, MANAGED: managed},
            ours=managed,
            outputs={"path": self.path, "claims": str(len(pool.claims))},
        )

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        pool = self.read(run)
        if refusal := self.register(run).refuse(pool) if pool else None:
            yield self.mistake(f"{refusal.where} {refusal.what}", refusal.fix)
        if observed is None or observed.values != self.desired():
            yield from self._check_writable()

    def _check_writable(self) -> Iterator[Mistake]:
        target = _target(self)
        folder = next(parent for parent in target.parents if parent.exists())
        wrong = [each for each in (folder, target) if each.exists() and not os.access(each, os.W_OK)]
        if not folder.is_dir():
            yield self.mistake(f"{folder} is not a directory", "choose another file")
        elif wrong:
            yield self.mistake(f"{wrong[0]} is not writable", "change its permissions, or choose another file")

    # --- operations -----------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        return self._observed(run, self.register(run).ensure())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        left = self.register(run).leave()
        if left is not None:
            run.note(self.key, f"{self.path} is kept because it is used by {', '.join(_users(left))}")


def _values(settings: PoolSettings) -> Values:
    return {field.name: getattr(settings, field.name) for field in fields(PoolSettings)}


def _users(pool: PoolContent) -> Iterable[str]:
    """Return who uses a file: specs, and claims of people."""
    return [
        *(f"spec {user}" for user in sorted(pool.users)),
        *(claim for claim in sorted(pool.claims) if "/" not in claim),
    ]


def _target(pool: PoolFile) -> Path:
    return Path(os.path.realpath(pool.path))
