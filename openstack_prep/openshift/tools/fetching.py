"""The way of the tools from a mirror into a folder."""

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
    """A tool in its place."""

    name: str
    """openshift-install, oc or kubectl."""
    version: str
    """Such as 4.18.7."""
    path: str
    """Where it is."""
    sha256: str
    """Sum of the file there."""
    status: Status
    """Whether it was fetched, fetched in place of another file, or there already."""
    source: str
    """URL or path of the archive that it came in."""
    archive: str
    """The archive's name."""
    archive_sha256: str
    """Sum of the archive."""
    signed_by: str | None
    """Fingerprint of the key that signed the list of sums; None when it was never asked for."""


def fetch_tools(wanted: Wanted, progress: Progress = lambda name, done, total: None) -> tuple[Tool, ...]:
    """Make sure of a release's tools in a folder, each archive verified against sha256sum.txt.

    ``progress`` is told the name of an archive, how many bytes of it are read, and how many it has.
    A version that is there already, unchanged, takes no request; a channel takes one.  Another file
    of a tool's name is replaced in one step, once all of the archive proved right.  Raises
    ConfigError, DownloadError, PrepError.
    """
    if wanted.key is not None:
        signature.need_gpg()
    listing = Listing(wanted)
    chosen = {stem: [name for name in tools if name in wanted.tools] for stem, tools in ARCHIVES.items()}
    needed = {stem: names for stem, names in chosen.items() if names}
    if not records.load(wanted.into):  # no folder is made for a release that is not there
        for stem in needed:
            listing.archive(stem)
    done: list[Tool] = []
    with records.worked_in(wanted.into) as parts:
        known = records.load(wanted.into)
        for stem, names in needed.items():
            done += _make_sure(listing, stem, names, known, parts, progress)
    return tuple(done)


def _make_sure(
    listing: Listing, stem: str, names: Sequence[str], known: dict[str, Record], parts: Path, progress: Progress
) -> list[Tool]:
    """Return the wanted tools of one archive, which is read only if one of them is not there."""
    wanted = listing.wanted
    there = {name: known[name] for name in names if name in known and known[name].describes(wanted.into / name)}
    if len(there) == len(names) and all(_surely_right(each, wanted, stem) for each in there.values()):
        return [_tool(name, wanted, "kept", record) for name, record in there.items()]
    archive = listing.archive(stem)
    there = {name: record for name, record in there.items() if record.archive_sha256 == archive.sha256}
    status: dict[str, Status] = dict.fromkeys(there, "kept")
    found: Mapping[str, Part] = {}
    if len(there) < len(names):
        found = unpack(
            listing.location(archive), archive.sha256, ARCHIVES[stem], parts, partial(progress, archive.name)
        )
    for name in names:
        if name in there:
            sha256, signed_by = there[name].sha256, listing.signed_by or there[name].signed_by
        else:
            sha256, signed_by = found[name].sha256, listing.signed_by
            status[name] = _put(found[name].path, wanted.into / name)
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


def _surely_right(record: Record, wanted: Wanted, stem: str) -> bool:
    """Whether a record alone says that it is the tool wanted: only a version stays what it is."""
    if wanted.version is None or (wanted.key is not None and record.signed_by is None):
        return False
    return record.archive in layout.archive_names(stem, wanted.platforms, wanted.version)


def _put(part: Path, path: Path) -> Status:
    """Give an unpacked tool its name, in one step; raises PrepError."""
    try:
        status: Status = "replaced" if os.path.lexists(path) else "fetched"
        part.chmod(0o755)
        part.replace(path)
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}; it is as it was before") from error
    return status


def _tool(name: str, wanted: Wanted, status: Status, record: Record) -> Tool:
    return Tool(name=name, path=str(wanted.into / name), status=status, **asdict(record))
