"""The folder of --output: judged before the work, created after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from openstack_prep.base.errors import FolderRefused
from openstack_prep.base.private_file import make_private_folder
from openstack_prep.resources.files.marked_files import MarkedFiles


def output_folder(folder: Path | None) -> Path | None:
    """Return the folder for the files, if one is given; raises FolderRefused if its name is that of a file."""
    if folder is None:
        return None
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise FolderRefused(f"--output {folder}: {path} is a file, not a folder; name another folder")
    return folder


def write_conversion(folder: Path, name: str, texts: Mapping[str, str], edited: Collection[str] = ()) -> str:
    """Write the files of a conversion, and return their paths, one per line; raises FolderRefused.

    Files that are not of a conversion with this name are not overwritten, nor ``edited`` ones with another text.
    """
    write_marked(folder, f"# [openstack-prep:convert/{name}]", texts, edited=edited)
    return "\n".join(f"{folder / text}" for text in texts)


def write_marked(
    folder: Path, mark: str, texts: Mapping[str, str], *, exactly: bool = True, edited: Collection[str] = ()
) -> None:
    """Write files whose first line is ``mark``, and if ``exactly`` remove others with it.

    Raises FolderRefused for files of these names without it, and for ``edited`` ones with another text.
    """
    try:
        make_private_folder(folder)
    except OSError as error:
        fix = "name a folder that you can create"
        raise FolderRefused(f"--output {folder} cannot be created: {error.strerror}; {fix}") from None
    MarkedFiles(folder, mark).write(texts, exactly=exactly, edited=edited)
