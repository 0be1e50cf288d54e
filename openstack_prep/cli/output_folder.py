"""The folder of --output: judged before the work, created after it."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.base.errors import ConfigError, FolderRefused


def output_folder(text: str) -> Path:
    """Return the folder for the files; raises ConfigError if its name is empty or that of a file."""
    folder = Path(text)
    if not text:
        raise ConfigError("--output is empty; name a folder, or . for this one")
    for each in (folder, *folder.parents):
        if each.exists() and not each.is_dir():
            raise FolderRefused(f"--output {folder}: {each} is a file, not a folder; name another folder")
    return folder


def create_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fix = "name a folder that you can create"
        raise FolderRefused(f"--output {folder} cannot be created: {error.strerror}; {fix}") from None
