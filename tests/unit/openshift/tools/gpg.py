"""Throw-away keys of the real gpg, and what they sign."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Signer:
    """A key pair in a folder of its own."""

    home: Path
    name: str

    def gpg(self, *words: str, content: bytes = b"") -> bytes:
        # the agent, which only the private half needs, is stopped by the fixture
        command = ["gpg", "--homedir", str(self.home), "--batch", "--no-tty", "--yes", "--passphrase", "", *words]
        done = subprocess.run(command, input=content, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def made(self, expires: str = "never") -> Signer:
        self.gpg("--quick-generate-key", self.name, "ed25519", "sign", expires)
        return self

    @property
    def fingerprint(self) -> str:
        lines = self.gpg("--list-keys", "--with-colons", self.name).decode().splitlines()
        return next(line for line in lines if line.startswith("fpr")).split(":")[9]

    def public(self, path: Path, *options: str) -> Path:
        path.write_bytes(self.gpg(*options, "--export", self.name))
        return path

    def detached(self, content: bytes, *options: str) -> bytes:
        return self.gpg("--local-user", self.name, *options, "--detach-sign", content=content)

    def attached(self, content: bytes, how: str = "--sign") -> bytes:
        return self.gpg("--local-user", self.name, how, content=content)
