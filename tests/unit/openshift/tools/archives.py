"""Archives as ``oc adm release extract --tools`` makes them, and a release's folder of them."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

INSTALLER = b"#!/bin/sh\necho $0 4.18.7\n#"
CLIENT = b"#!/bin/sh\necho Client Version: 4.18.7\n" + b"#" * 3_000_000  # more than one chunk


def plain(name: str, content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o644
    return member, content


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    """A link, a device and the like."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a tar.gz."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(whole.getvalue(), 1, mtime=0)  # the same bytes each time


def installer(content: bytes = INSTALLER) -> bytes:
    return packed(plain("README.md"), plain("openshift-install", content))


def client(content: bytes = CLIENT) -> bytes:
    return packed(plain("README.md"), plain("oc", content), special("kubectl", tarfile.LNKTYPE, "oc"))


def release(version: str = "4.18.7") -> dict[str, bytes]:
    """Return the files of a release's folder: archives for several machines, release.txt and the sums."""
    mine, other = (INSTALLER + version.encode(), b"another machine's")
    files = {f"openshift-client-linux-{version}.tar.gz": client(CLIENT + version.encode())}
    files[f"openshift-install-linux-{version}.tar.gz"] = installer(mine)
    files["openshift-install-linux.tar.gz"] = files[f"openshift-install-linux-{version}.tar.gz"]
    for name in ("install-linux-arm64", "install-mac", "install-mac-arm64", "install-rhel9-amd64"):
        files[f"openshift-{name}-{version}.tar.gz"] = installer(other + name.encode())
    files["release.txt"] = f"Name: {version}\n".encode()
    return files | {"sha256sum.txt": listed(files)}


def listed(files: dict[str, bytes]) -> bytes:
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return "".join(lines).encode()


def put(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
