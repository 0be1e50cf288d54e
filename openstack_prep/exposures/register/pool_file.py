"""The register of a network that OpenStack does not know: a pool file."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.base.given_file import read_bytes, unreadable
from openstack_prep.base.lock_wait import WAIT
from openstack_prep.base.private_file import write_shared
from openstack_prep.exposures.register import pool_text
from openstack_prep.exposures.register.claims import Claim, ClaimRefused, Outcomes, Request
from openstack_prep.exposures.register.lock import locked
from openstack_prep.exposures.register.pool import Pool, PoolSettings, key_of

ATTEMPTS = 100
"""How often the file is read again after an editor, which knows no locks, has written to it."""


def _silent(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class PoolFileRegister:
    """The claims of one spec in a pool file, which several specs may share."""

    path: Path
    name: str
    """Name of the pool; the file of another pool is refused."""
    settings: PoolSettings
    spec: str
    """Name of the spec that claims."""
    project: str = ""
    """Id of the project of the spec, which distinguishes specs with the same name."""
    timeout: float = WAIT
    """Seconds to wait for the lock."""
    tell: Callable[[str], None] = _silent
    """Called with a message if the file is locked by another process."""

    # --- reading --------------------------------------------------------------------------

    def read(self) -> Pool | None:
        """Return the content of the file; None if it does not exist, or is empty.

        Needs no lock, because the file is replaced as a whole. Raises SpecError with all mistakes.
        """
        text = self._text()
        return self._parse(text) if text else None

    def held(self) -> Mapping[str, Claim]:
        pool = self.read()
        return pool.of_spec(self.spec) if pool and self.is_user(pool) else {}

    def holders(self) -> Mapping[str, str]:
        pool = self.read()
        return {each.address: key for key, each in pool.claims.items()} if pool else {}

    def is_user(self, pool: Pool) -> bool:
        """Whether this spec uses the file."""
        return self.spec in pool.users and self._owns(pool.users[self.spec])

    def refuse(self, pool: Pool) -> Mistake | None:
        """Return why this spec cannot use the file: a spec with its name does, or others use it with other settings."""
        where = str(self.path)
        if self.spec in pool.users and not self._owns(pool.users[self.spec]):
            theirs = pool.users[self.spec]
            project = f"project {theirs}" if theirs else "no project"
            what = f"is used by another spec {self.spec}, of {project}, in this cloud or another"
            fix = (
                f"rename this spec; or, if that spec is gone for good, remove by hand the line {self.spec} of users "
                f"and the lines {key_of(self.spec, '')}... of claims"
            )
            return Mistake(where, what, fix)
        others = sorted(pool.users.keys() - {self.spec})
        if pool.settings != self.settings and others:
            names = [each for each in vars(self.settings) if self._differs(pool, each)]
            what = f"is shared with spec {', '.join(others)} and has other {', '.join(names)}"
            return Mistake(where, what, "declare the same in all specs, or change the file by hand first")
        wrong = [f"{key}: {what}" for key, what, _ in replace(pool, settings=self.settings).mistakes()]
        return Mistake(where, "; ".join(wrong), "keep these addresses in the pool, or release them") if wrong else None

    def _differs(self, pool: Pool, field: str) -> bool:
        return bool(getattr(pool.settings, field) != getattr(self.settings, field))

    def _owns(self, project: str) -> bool:
        """Whether a recorded project is that of this spec: only the same id proves it.

        That a project does not exist here does not: it may exist in another cloud, whose spec shares the file.
        """
        return project == self.project

    def _text(self) -> str:
        try:
            return read_bytes(self.path).decode()  # with its own line ends
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except UnicodeDecodeError as error:
            what = unreadable(error)
            raise SpecError([Mistake(str(self.path), what, "restore an earlier version")]) from None
        except OSError as error:
            fix = "change its permissions, or choose another file"
            raise PrepError(f"{self.path} {unreadable(error)}; {fix}") from error

    def _parse(self, text: str) -> Pool:
        pool = pool_text.read(self.path, text)
        if pool.name != self.name:
            what = f"is the file of pool {pool.name}, not of {self.name}"
            raise SpecError([Mistake(str(self.path), what, "correct the path or the name of the pool")])
        return pool

    # --- writing --------------------------------------------------------------------------

    def claim(self, requests: Sequence[Request], foreign_macs: Collection[str] = ()) -> dict[str, Claim]:
        """Claim for all names in one write; see ``Register``. Raises SpecError if the file is damaged, PrepError."""
        pool = self._change(lambda pool: self._used(pool).claim(self.spec, requests, foreign_macs))
        claims = pool.of_spec(self.spec)
        return {each.name: claims[each.name] for each in requests}

    def claim_each(self, requests: Sequence[Request], foreign_macs: Collection[str] = ()) -> Outcomes:
        """Claim for each name, all in one write. Raises SpecError if the file is damaged, PrepError."""
        refused: dict[str, ClaimRefused] = {}

        def change(pool: Pool) -> Pool:
            nonlocal refused
            pool, refused = self._used(pool).claim_each(self.spec, requests, foreign_macs)
            return pool

        claims = self._change(change).of_spec(self.spec)
        return {each.name: refused.get(each.name) or claims[each.name] for each in requests}

    def release(self, names: Sequence[str]) -> None:
        if self._text():
            self._change(lambda pool: pool.release(self.spec, names) if self.is_user(pool) else pool)

    def ensure(self) -> Pool:
        """Create the file, or enter this spec and its settings into it."""
        return self._change(self._used, create=True)

    def leave(self) -> Pool | None:
        """Remove this spec and its claims, and the file if nobody else uses it; return what remains of it."""
        try:
            with locked(self.path, timeout=self.timeout, tell=self.tell) as target:
                while text := self._text():
                    before = self._parse(text)
                    after = before.without_spec(self.spec) if self.is_user(before) else before
                    if not (after.users or after.claims):
                        target.unlink()
                        return None
                    if self._write(before, after, text):
                        return after
        except FileNotFoundError:  # removed already
            pass
        return None

    def _used(self, pool: Pool) -> Pool:
        """Return the pool with this spec as a user, and with its settings."""
        if refusal := self.refuse(pool):
            raise ClaimRefused(str(refusal))
        return replace(pool, settings=self.settings, users={**pool.users, self.spec: self.project})

    def _change(self, change: Callable[[Pool], Pool], *, create: bool = False) -> Pool:
        """Change the file under its lock, from what it contains by then; without a change it is not written."""
        try:
            with locked(self.path, create=create, timeout=self.timeout, tell=self.tell):
                for _ in range(ATTEMPTS):
                    text = self._text()
                    if not text and not create:
                        raise FileNotFoundError
                    before = self._parse(text) if text else None
                    new = before or Pool(name=self.name, id=secrets.token_hex(8), settings=self.settings)
                    after = change(new)
                    if self._write(before, after, text):
                        return after
        except FileNotFoundError:
            raise PrepError(f"{self.path} does not exist; apply its pool_file first, or restore it") from None
        raise PrepError(f"{self.path} is modified all the time; close the program that writes to it")

    def _write(self, before: Pool | None, after: Pool, text: str) -> bool:
        """Write the file, unless somebody has edited it since it was read: then return False."""
        if before == after:
            return True
        new = pool_text.write(before, after, text)
        if self._text() != text:
            return False
        write_shared(self.path, new)
        return True
