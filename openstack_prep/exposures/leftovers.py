"""What former specs have left: claims in registers, and files.

Only what apply has written into a folder is left there. A copy that somebody has made, or a folder that was moved, has
the ownership tag as well; the name and the folder beside the tag tell them apart.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import InProject

if TYPE_CHECKING:
    from openstack_prep.resources.files.marked_files import MarkedFiles

# --- left files -------------------------------------------------------------------------------


DEPTH = 2
"""How deep folders are searched: nothing records the former directory of a cluster."""
MOST_FOLDERS, MOST_FILES = 200, 50
"""In and below the folder of a spec, or one beside a declared directory; in each of these."""
LONGEST = 1000
"""Bytes that are read of a file: its tag is in the first or second line."""


@dataclass(frozen=True, kw_only=True)
class LeftFiles(InProject, Undeclarable):
    """The files of a cluster in a folder that no exposed cluster of the spec has."""

    kind: ClassVar[str] = "exposed_cluster"

    name: str
    directory: str
    tag: str
    """The ownership tag in the first lines of the files."""

    @property
    def key(self) -> Key:
        return Key(self.kind, f"{self.name} ({self.directory})", self.scope)

    @property
    def files(self) -> MarkedFiles:
        from openstack_prep.resources.files.marked_files import MarkedFiles  # every plan looks for files, few find any

        return MarkedFiles(Path(self.directory), f"# {self.tag}", placed=True)

    @classmethod
    def within(cls, run: CloudRun, folders: Iterable[Path], declared: Iterable[Any]) -> Iterator[tuple[Self, Observed]]:
        """Yield the files of the spec's clusters in and below some folders, and beside those of declared clusters."""
        own = {os.path.realpath(each.directory) for each in declared}
        tops = {os.path.realpath(each) for each in (*folders, *(Path(each).parent for each in own))}
        tops -= {os.sep}  # below it are /proc, whose files may block, and all else
        found = {str(each) for top in tops for each in islice(_below(Path(top), DEPTH), MOST_FOLDERS)}
        for path in sorted(found - own):
            for tag in sorted(_tags(Path(path))):
                name = (OwnershipTag.name_in(tag) or "").removeprefix(f"{cls.kind}/")
                left = cls(name=name, directory=path, tag=tag, **cls.placing(next(iter(run.homes), None)))
                if run.ownership.owns(tag) and left.files.written_here():
                    yield left, left._observed(run)

    def _observed(self, run: CloudRun) -> Observed:
        """Return the files; without the home project in the tag they may be those of another spec with the name.

        A spec that needs no cloud has no home project: its name and its folder are all that its files can say.
        """
        project_id = OwnershipTag.home_in(self.tag)
        known = home.family(run) | {home.ownership(run).home} - {""}
        managed = project_id in known or (not project_id and isinstance(run.admin, NoCloud))
        return Observed(id=self.directory, ours=managed, values={"directory": self.directory})

    def find_one(self, run: CloudRun) -> Observed | None:
        return self._observed(run) if self.files.written_here() else None

    def needs(self) -> Sequence[Key]:
        return ()

    def delete(self, run: CloudRun, observed: Observed) -> None:
        if left := self.files.remove(copies=False):
            run.note(self.key, f"{self.directory} is kept because it contains {', '.join(left)}")


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the folders in a folder, the nearest first: a home directory has thousands further down."""
    level = [folder]
    for _ in range(depth):
        found: list[Path] = []
        for outer in level:
            for path in _folders(outer):
                yield path
                found.append(path)
        level = found


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder, without links, hidden ones and other checkouts; an unreadable folder has none.

    A clone or worktree of git has its own copy of the spec, which may declare what lies there.
    """
    with contextlib.suppress(OSError):
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        visible = [each.path for each in entries if each.is_dir(follow_symlinks=False) and each.name[0] != "."]
        return [Path(each) for each in visible if not os.path.lexists(f"{each}/.git")]
    return []


def _tags(folder: Path) -> set[str]:
    """Return the ownership tags of exposed clusters' files in a folder."""
    tags: set[str] = set()
    with contextlib.suppress(OSError):
        files = (entry for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False))
        for entry in islice(files, MOST_FILES):
            tags |= {line[line.index("[") :] for line in _first_lines(Path(entry.path)) if _is_of_a_cluster(line)}
    return tags


def _first_lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError), path.open("rb") as file:
        lines = file.read(LONGEST).decode(errors="replace").split("\n")[:2]
        return [line.lstrip("#; ") for line in lines]
    return []


def _is_of_a_cluster(line: str) -> bool:
    return (OwnershipTag.name_in(line) or "").startswith(f"{LeftFiles.kind}/")


# --- left -------------------------------------------------------------------------------------


def leftovers(run: CloudRun, resources: Sequence[Resource], folder: Path | None) -> Iterator[tuple[Resource, Observed]]:
    """Yield files of clusters in the folder of the spec, and claims in the pool files that it still names."""
    clusters = [resource for resource in resources if resource.kind == LeftFiles.kind]
    yield from LeftFiles.within(run, [folder] if folder else [], clusters)
    if not any(resource.kind == "pool_file" for resource in resources):
        return
    from openstack_prep.exposures.exposed_cluster import ExposedCluster  # only a spec with pool files has use for them
    from openstack_prep.exposures.machine_claims import LeftFileClaim  # as above
    from openstack_prep.exposures.pool_file import PoolFile  # as above

    claims = [cluster.machine_claims for cluster in clusters if isinstance(cluster, ExposedCluster)]
    declared = {(claim.pool.name, claim.cluster.name) for claim in claims if claim}
    yield from LeftFileClaim.in_files(
        run, (resource for resource in resources if isinstance(resource, PoolFile)), declared
    )
