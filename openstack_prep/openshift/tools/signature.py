"""Who signed a list of sums: asked of gpg(1), in a folder of its own, so that nobody's keyring matters.

Source: GnuPG doc/DETAILS, "Format of the --status-fd output".
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from openstack_prep.base.errors import ConfigError, DownloadError

PATIENCE = 60.0  # seconds for gpg to end

Status = list[list[str]]

_REASONS = (
    ("BADSIG", "is wrong: the list is not the one that was signed"),
    ("REVKEYSIG", "was made with a key that is revoked"),
    ("EXPKEYSIG", "was made with a key that has expired"),
    ("EXPSIG", "has expired"),
    ("NO_PUBKEY", "was made with a key that {key} does not hold"),
    ("ERRSIG", "cannot be verified by this gpg"),
)


def need_gpg() -> str:
    """Return the path of gpg; raises ConfigError."""
    path = shutil.which("gpg")
    if path is None:
        raise ConfigError("a signature cannot be verified without gpg; install gnupg, or leave the key out")
    return path


def vouched(content: bytes, key: Path, signature: bytes, where: str) -> tuple[bytes, str]:
    """Return what a signature vouches for, and the fingerprint of the key that made it.

    The signature is a detached one of the content, or a signed message that has its own.  The key is
    a file with one or several OpenPGP public keys.  Raises DownloadError, ConfigError.
    """
    with tempfile.TemporaryDirectory(prefix="openstack-prep-") as name:  # made with 0700
        folder = Path(name)
        imported = _gpg(folder, "--import", str(key.absolute()))
        if not any(words[0] == "IMPORT_OK" for words in imported):
            raise ConfigError(f"{key} holds no OpenPGP public key; name the file of the key that signs the releases")
        (folder / "content").write_bytes(content)
        (folder / "signature").write_bytes(signature)
        status = _gpg(folder, "--verify", "signature", "content")
        if signer := _signer(status):
            return content, signer
        if not _reason(status):  # no detached one
            status = _gpg(folder, "--output", "message", "--decrypt", "signature")
            if signer := _signer(status):
                return (folder / "message").read_bytes(), signer
    reason = _reason(status) or "is no OpenPGP signature of the list"
    raise DownloadError(f"the signature {where} {reason.format(key=key)}")


def _gpg(folder: Path, *words: str) -> Status:
    """Return the lines that gpg has for programs; whether it failed is said there, too."""
    options = ["--homedir", str(folder), "--no-options", "--batch", "--no-tty", "--no-autostart"]
    options += ["--disable-dirmngr", "--trust-model", "always", "--status-fd", "1"]
    try:
        done = subprocess.run(
            [need_gpg(), *options, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
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
    """Return the fingerprint of the primary key of a good signature, if none is bad."""
    kinds: Sequence[str] = [words[0] for words in status]
    if "GOODSIG" not in kinds or "BADSIG" in kinds:
        return None
    after = kinds.index("GOODSIG")  # an expired key has a VALIDSIG as well
    return next((words[-1] for words in status[after:] if words[0] == "VALIDSIG"), None)
