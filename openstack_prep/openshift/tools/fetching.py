"""Fetch the tools from a mirror into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from openstack_prep.base.errors import PrepError
from openstack_prep.download.fetching import shown
from openstack_prep.openshift.tools import layout, records, signature
from openstack_prep.openshift.tools.layout import ARCHIVES
from openstack_prep.openshift.tools.listing import Listing
from openstack_prep.openshift.tools.records import Record
from openstack_prep.openshift.tools.unpacking import Part, unpack
from openstack_prep.openshift.tools.wanted import Wanted

Status = Literal["fetched", "replaced", "kept"]
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool in the folder."""

    name: str
    """openshift-install, oc or kubectl."""
    version: str
    """Such as 4.18.7."""
    path: str
    """Its path."""
    sha256: str
    """Checksum of the tool."""
    status: Status
    """Whether it was fetched, has replaced another file, or was kept."""
    source: str
    """URL or path of its archive."""
    archive: str
    """Name of the archive."""
    archive_sha256: str
    """Checksum of the archive."""
    signed_by: str | None
    """Fingerprint of the key that signed sha256sum.txt; None if the signature was never verified."""


def fetch_tools(wanted: Wanted, progress: Progress = lambda name, done, total: None) -> tuple[Tool, ...]:
    """Ensure that a folder has the tools of a release; each archive is verified against sha256sum.txt.

    ``progress`` is called with the name of an archive, the bytes read so far, and its size.  An unchanged
    version needs no request, a channel needs one.  A file with the name of a tool is replaced atomically,
    after the whole archive was verified.  Raises ConfigError, DownloadError, PrepError.
    """
    if wanted.key is not None:
        signature.need_gpg()
    listing = Listing(wanted)
    chosen = {stem: [name for name in tools if name in wanted.tools] for stem, tools in ARCHIVES.items()}
    needed = {stem: names for stem, names in chosen.items() if names}
    if not records.load(wanted.into):  # fails before the folder is created if the release does not exist
        for stem in needed:
            listing.archive(stem)
    fetched: list[Tool] = []
    with records.locked(wanted.into) as parts:
        known = records.load(wanted.into)
        for stem, names in needed.items():
            fetched += _ensure(listing, stem, names, known, parts, progress)
    return tuple(fetched)


def _ensure(
    listing: Listing, stem: str, names: Sequence[str], known: dict[str, Record], parts: Path, progress: Progress
) -> list[Tool]:
    """Return the tools of one archive, which is read only if a tool is missing or outdated."""
    wanted = listing.wanted
    kept = {name: known[name] for name in names if name in known and known[name].matches(wanted.into / name)}
    if len(kept) == len(names) and all(_is_wanted(record, wanted, stem) for record in kept.values()):
        return [_tool(name, wanted, "kept", record) for name, record in kept.items()]
    archive = listing.archive(stem)
    kept = {name: record for name, record in kept.items() if record.archive_sha256 == archive.sha256}
    status: dict[str, Status] = dict.fromkeys(kept, "kept")
    parts_by_name: Mapping[str, Part] = {}
    if len(kept) < len(names):
        parts_by_name = unpack(
            listing.location(archive), archive.sha256, ARCHIVES[stem], parts, partial(progress, archive.name)
        )
    for name in names:
        if name in kept:
            sha256, signed_by = kept[name].sha256, listing.signed_by or kept[name].signed_by
        else:
            sha256, signed_by = parts_by_name[name].sha256, listing.signed_by
            status[name] = _install(parts_by_name[name].path, wanted.into / name)
        known[name] = Record(
            version=archive.version,
            archive=archive.name,
            archive_sha256=archive.sha256,
            sha256=sha256,
            source=shown(listing.location(archive)),
            signed_by=signed_by,
        )
    records.save(wanted.into, known)
    return [_tool(name, wanted, status[name], known[name]) for name in names]


def _is_wanted(record: Record, wanted: Wanted, stem: str) -> bool:
    """Whether the record alone proves that this is the wanted tool; a channel may have moved on."""
    if wanted.version is None or (wanted.key is not None and record.signed_by is None):
        return False
    return record.archive in layout.archive_names(stem, wanted.platforms, wanted.version)


def _install(part: Path, path: Path) -> Status:
    """Move an unpacked tool to its place; raises PrepError."""
    try:
        status: Status = "replaced" if os.path.lexists(path) else "fetched"
        part.chmod(0o755)
        part.replace(path)
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}; the file is unchanged") from error
    return status


def _tool(name: str, wanted: Wanted, status: Status, record: Record) -> Tool:
    return Tool(name=name, path=str(wanted.into / name), status=status, **asdict(record))
