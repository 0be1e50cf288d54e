"""Fetch the tools from a mirror into a folder.

Both are in a hidden folder, together with files that are being unpacked: a killed run leaves nothing else, and the
next run deletes them.

Source: GnuPG doc/DETAILS, "Format of the --status-fd output".
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from openstack_prep.base.errors import ConfigError, DownloadError, PrepError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import read_text
from openstack_prep.base.private_file import write_readable_here
from openstack_prep.download.address import local_path, shown
from openstack_prep.download.source import read_small
from openstack_prep.openshift.tools import layout
from openstack_prep.openshift.tools.layout import ARCHIVES, Archive, ToolRequest
from openstack_prep.openshift.tools.unpacking import UnpackedTool, unpack

# --- record -----------------------------------------------------------------------------------


HIDDEN = ".openstack-prep"


@dataclass(frozen=True, kw_only=True)
class ToolOrigin:
    """The origin of a tool."""

    version: str
    archive: str
    archive_sha256: str
    sha256: str
    source: str
    signed_by: str | None

    def matches(self, path: Path) -> bool:
        """Whether a file is the one that was unpacked, and is executable."""
        return path.is_file() and os.access(path, os.R_OK | os.X_OK) and sha256_of(path) == self.sha256


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Lock a folder of tools, and yield a folder in it for files that are being unpacked; create both if missing.

    Raises PrepError if another run holds the lock, ConfigError if somebody else may have prepared the hidden folder.
    """
    parts = folder / HIDDEN / "parts"
    with contextlib.ExitStack() as stack:
        try:
            parts.parent.mkdir(parents=True, exist_ok=True)
            _refuse_planted(parts.parent)
            # a link in the place of the lock would have the file behind it emptied
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = stack.enter_context(os.fdopen(os.open(parts.parent / "lock", flags, 0o644), "r+"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir()
        except BlockingIOError as error:
            raise PrepError(f"{folder}: another run is fetching tools into this folder; wait until it ends") from error
        except OSError as error:
            raise PrepError(f"{folder}: cannot be written to: {error}") from error
        stack.callback(shutil.rmtree, parts, ignore_errors=True)  # before the lock is released
        yield parts


def _refuse_planted(hidden: Path) -> None:
    """Raise ConfigError for a hidden folder whose content somebody else chooses: in /tmp, anybody may create one.

    The owner of the folder around it may have created it, because who owns that could replace the tools themselves.
    """
    found, around = hidden.lstat(), hidden.parent.stat()
    if stat.S_ISLNK(found.st_mode):
        raise ConfigError(f"{hidden} is a link; delete it, or choose another folder")
    if found.st_uid not in (os.geteuid(), around.st_uid):
        what = f"{hidden} belongs to another user, who could replace the tools while they are unpacked"
        raise ConfigError(f"{what}; delete it, or choose a folder of your own")


def load(folder: Path) -> dict[str, ToolOrigin]:
    """Return the records of a folder by tool; an unreadable file counts as empty, and is replaced later."""
    try:
        text = read_text(folder / HIDDEN / "tools.json")
        return {name: ToolOrigin(**fields) for name, fields in parse_json(text).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save(folder: Path, records: Mapping[str, ToolOrigin]) -> None:
    """Write the records of a folder if they differ; raises PrepError."""
    if records == load(folder):
        return
    data = {name: asdict(record) for name, record in sorted(records.items())}
    write_readable_here(folder / HIDDEN / "tools.json", json.dumps(data, indent=2) + "\n")


# --- signature --------------------------------------------------------------------------------


TIMEOUT = 60.0  # seconds

SignatureStatus = list[list[str]]

_REASONS = (
    ("BADSIG", "does not match: sha256sum.txt was changed after it was signed"),
    ("REVKEYSIG", "was made with a revoked key"),
    ("EXPKEYSIG", "was made with an expired key"),
    ("EXPSIG", "has expired"),
    ("NO_PUBKEY", "was made with a key that is not in {key}"),
    ("ERRSIG", "cannot be verified by this gpg"),
)


def need_gpg() -> str:
    """Return the path of gpg; raises ConfigError."""
    path = shutil.which("gpg")
    if path is None:
        raise ConfigError("the signature cannot be verified without gpg; install gnupg, or leave the key out")
    return path


def verify(content: bytes, key: Path, signature: bytes, where: str) -> tuple[bytes, str]:
    """Return the signed content, and the fingerprint of the key that signed it.

    The signature is detached, or a signed message with content of its own, which is returned.  The key is a file
    with one or several OpenPGP public keys.  Raises DownloadError, ConfigError.
    """
    with tempfile.TemporaryDirectory(prefix="openstack-prep-") as name:  # mode 0700
        folder = Path(name)
        imported = _gpg(folder, "--import", str(key.absolute()))
        if not any(words[0] == "IMPORT_OK" for words in imported):
            raise ConfigError(f"{key} contains no OpenPGP public key; give the file of the key that signs the releases")
        (folder / "content").write_bytes(content)
        (folder / "signature").write_bytes(signature)
        status = _gpg(folder, "--verify", "signature", "content")
        if signer := _signer(status):
            return content, signer
        if not _reason(status):  # not a detached signature
            status = _gpg(folder, "--output", "message", "--decrypt", "signature")
            if signer := _signer(status):
                return (folder / "message").read_bytes(), signer
    reason = _reason(status) or "is not an OpenPGP signature of sha256sum.txt"
    raise DownloadError(f"the signature {where} {reason.format(key=key)}")


def _gpg(folder: Path, *words: str) -> SignatureStatus:
    """Return the status lines of gpg, which also report its failures."""
    options = ["--homedir", str(folder), "--no-options", "--batch", "--no-tty", "--no-autostart"]
    options += ["--disable-dirmngr", "--trust-model", "always", "--status-fd", "1"]
    try:
        done = subprocess.run(
            [need_gpg(), *options, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"gpg cannot be run: {error}") from error
    lines = done.stdout.decode(errors="replace").splitlines()
    return [line.split()[1:] for line in lines if line.startswith("[GNUPG:] ")]


def _reason(status: SignatureStatus) -> str | None:
    kinds = {words[0] for words in status}
    return next((text for kind, text in _REASONS if kind in kinds), None)


def _signer(status: SignatureStatus) -> str | None:
    """Return the fingerprint of the primary key of a good signature; None if any signature is bad."""
    kinds: Sequence[str] = [words[0] for words in status]
    if "GOODSIG" not in kinds or "BADSIG" in kinds:
        return None
    after = kinds.index("GOODSIG")  # an expired key has a VALIDSIG, too
    return next((words[-1] for words in status[after:] if words[0] == "VALIDSIG"), None)


# --- listing ----------------------------------------------------------------------------------


LARGEST = 2**20  # bytes of sha256sum.txt or its signature; today's have a few KiB
SIGNATURES = ("sha256sum.txt.gpg", "sha256sum.txt.sig", "sha256sum.txt.asc")
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](\S+)")


class ArchiveList:
    """The archives in sha256sum.txt of a source."""

    def __init__(self, wanted: ToolRequest) -> None:
        self.wanted = wanted
        self.where = f"{wanted.source}/sha256sum.txt"

    @cached_property
    def _content(self) -> tuple[dict[str, str], str | None]:
        try:
            content = read_small(self.where, LARGEST)
        except DownloadError as error:
            raise DownloadError(f"{error}; give an existing release, or the URL or folder of its files") from error
        signer = None
        if self.wanted.key is not None:
            content, signer = verify(content, self.wanted.key, *self._signature())
        return parse(content, shown(self.where)), signer

    @property
    def signed_by(self) -> str | None:
        """Fingerprint of the key that signed the list; None without a key to verify it."""
        return self._content[1]

    def archive(self, stem: str) -> Archive:
        """Return the archive whose name begins with ``stem``; raises DownloadError."""
        archive = layout.find_archive(self._content[0], stem, self.wanted.platforms, shown(self.where))
        if self.wanted.version not in (None, archive.version):
            raise DownloadError(f"{shown(self.where)} lists {archive.name} instead of {self.wanted.version}")
        return archive

    def location(self, archive: Archive) -> str:
        """Return the URL or path of an archive; a folder may have it under an alias."""
        places = [f"{self.wanted.source}/{name}" for name in (archive.name, *archive.aliases)]
        return next((place for place in places if Path(local_path(place)).exists()), places[0])

    def _signature(self) -> tuple[bytes, str]:
        """Return the signature, from the first of its file names that exists, and its URL or path."""
        errors = []
        for name in SIGNATURES:
            where = f"{self.wanted.source}/{name}"
            try:
                return read_small(where, LARGEST), shown(where)
            except DownloadError as error:
                errors.append(str(error))
        raise DownloadError("; ".join([*errors, "there is no signature to verify; leave the key out"]))


def parse(text: bytes, where: str) -> dict[str, str]:
    """Return the checksums by file name; raises DownloadError with the number of an invalid line."""
    sums: dict[str, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.rstrip())
        if not found:
            raise DownloadError(f"{where}:{number}: {line[:60]!r} is not a SHA-256 checksum with a file name")
        sha256, name = found[1].lower(), found[2]
        if sums.setdefault(name, sha256) != sha256:
            raise DownloadError(f"{where}:{number}: {name} has two different checksums; download the file again")
    return sums


# --- fetching ---------------------------------------------------------------------------------


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


def fetch_tools(wanted: ToolRequest, progress: Progress = lambda name, done, total: None) -> tuple[Tool, ...]:
    """Ensure that a folder has the tools of a release; each archive is verified against sha256sum.txt.

    ``progress`` is called with the name of an archive, the bytes read so far, and its size.  An unchanged
    version needs no request, a channel needs one.  A tool that was fetched before is replaced atomically, after the
    whole archive was verified; any other file with its name is refused.  Raises ConfigError, DownloadError, PrepError.
    """
    if wanted.key is not None:
        need_gpg()
    listing = ArchiveList(wanted)
    chosen = {stem: [name for name in tools if name in wanted.tools] for stem, tools in ARCHIVES.items()}
    needed = {stem: names for stem, names in chosen.items() if names}
    if not load(wanted.into):  # fails before the folder is created if the release does not exist
        for stem in needed:
            listing.archive(stem)
    fetched: list[Tool] = []
    with locked(wanted.into) as parts:
        known = load(wanted.into)
        for stem, names in needed.items():
            fetched += _ensure(listing, stem, names, known, parts, progress)
    return tuple(fetched)


def _ensure(
    listing: ArchiveList, stem: str, names: Sequence[str], known: dict[str, ToolOrigin], parts: Path, progress: Progress
) -> list[Tool]:
    """Return the tools of one archive, which is read only if a tool is missing or outdated."""
    wanted = listing.wanted
    kept = {name: known[name] for name in names if name in known and known[name].matches(wanted.into / name)}
    if len(kept) == len(names) and all(_is_wanted(record, wanted, stem) for record in kept.values()):
        return [_tool(name, wanted, "kept", record) for name, record in kept.items()]
    archive = listing.archive(stem)
    fetched = kept.keys()
    kept = {name: record for name, record in kept.items() if record.archive_sha256 == archive.sha256}
    status: dict[str, Status] = dict.fromkeys(kept, "kept")
    parts_by_name: Mapping[str, UnpackedTool] = {}
    if len(kept) < len(names):
        parts_by_name = unpack(
            listing.location(archive), archive.sha256, ARCHIVES[stem], parts, partial(progress, archive.name)
        )
    for name in names:
        if name not in fetched:
            _refuse_others(wanted.into / name, parts_by_name[name].sha256)
    for name in names:
        if name in kept:
            sha256, signed_by = kept[name].sha256, listing.signed_by or kept[name].signed_by
        else:
            sha256, signed_by = parts_by_name[name].sha256, listing.signed_by
            status[name] = _install(parts_by_name[name].path, wanted.into / name)
        known[name] = ToolOrigin(
            version=archive.version,
            archive=archive.name,
            archive_sha256=archive.sha256,
            sha256=sha256,
            source=shown(listing.location(archive)),
            signed_by=signed_by,
        )
    save(wanted.into, known)
    return [_tool(name, wanted, status[name], known[name]) for name in names]


def _is_wanted(record: ToolOrigin, wanted: ToolRequest, stem: str) -> bool:
    """Whether the record alone proves that this is the wanted tool; a channel may have moved on."""
    if wanted.version is None or (wanted.key is not None and record.signed_by is None):
        return False
    return record.archive in layout.archive_names(stem, wanted.platforms, wanted.version)


def _refuse_others(path: Path, sha256: str) -> None:
    """Raise ConfigError for a file in the place of a tool that was not fetched, unless it is the same."""
    if path.is_file() and not (os.access(path, os.R_OK) and sha256_of(path) == sha256):
        what = "is not the file that openstack-prep has fetched, so somebody may use it"
        raise ConfigError(f"{path} {what}; move it away, choose another folder (--into), or leave it out (--only)")


def _install(part: Path, path: Path) -> Status:
    """Move an unpacked tool to its place; raises PrepError."""
    try:
        status: Status = "replaced" if os.path.lexists(path) else "fetched"
        part.chmod(0o755)
        part.replace(path)
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}; the file is unchanged") from error
    return status


def _tool(name: str, wanted: ToolRequest, status: Status, record: ToolOrigin) -> Tool:
    return Tool(name=name, path=str(wanted.into / name), status=status, **asdict(record))
