"""Verify the signature of sha256sum.txt by gpg(1), with a temporary home, so that no keyring of the user matters.

Source: GnuPG doc/DETAILS, "Format of the --status-fd output".
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from openstack_prep.base.errors import ConfigError, DownloadError

TIMEOUT = 60.0  # seconds

Status = list[list[str]]

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


def _gpg(folder: Path, *words: str) -> Status:
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


def _reason(status: Status) -> str | None:
    kinds = {words[0] for words in status}
    return next((text for kind, text in _REASONS if kind in kinds), None)


def _signer(status: Status) -> str | None:
    """Return the fingerprint of the primary key of a good signature; None if any signature is bad."""
    kinds: Sequence[str] = [words[0] for words in status]
    if "GOODSIG" not in kinds or "BADSIG" in kinds:
        return None
    after = kinds.index("GOODSIG")  # an expired key has a VALIDSIG, too
    return next((words[-1] for words in status[after:] if words[0] == "VALIDSIG"), None)
