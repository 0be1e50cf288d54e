"""Files that resources write: the protocol by which a spec finds two that would write the same one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from openstack_prep.core.resource import Context


@dataclass(frozen=True)
class WrittenFile:
    """A file, or a ``part`` of it: several resources may write different parts of one file."""

    field: str
    """The field of the resource that names it, as a dotted path."""
    path: str
    part: str = ""
    is_only_copy: bool = False
    """Whether it holds a secret that nobody can write again."""
    in_folder_of: str = ""
    """The program whose files its folder holds, and whose users delete the folder as a whole."""


@runtime_checkable
class WritesFiles(Protocol):
    """A kind whose resources write files, besides the files of its generated secrets."""

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        """Return the files, as far as they are known without a cloud."""
        ...
