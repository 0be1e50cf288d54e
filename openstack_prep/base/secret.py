"""Secret values: only reveal() returns them, never str, repr, format or pickle."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.fields import file_path
from openstack_prep.base.given_file import MOST_SECRET, read_text, unreadable
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.private_file import CHOOSE_FOLDER, create_once, remove_temporary, target_of
from openstack_prep.base.raw import Values, rewrite, walk
from openstack_prep.base.secret_forms import HIDDEN as HIDDEN

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

SOURCES = (
    "{env: NAME}, {file: PATH}, {content: PATH}, {command: [WORD, ...]}, {vault: PATH#KEY}, {keyring: SERVICE/USER}, "
    "{prompt: true} or {generate: PATH}"
)
PROGRAMS = ("command", "vault", "keyring")
"""Sources that other programs have."""
SOURCE_NAMES = ("env", "file", "content", "prompt", "generate", *PROGRAMS)


def masked(value: object) -> object:
    """Return plain data with asterisks for secrets."""
    return rewrite(value, lambda part: HIDDEN if isinstance(part, Secret) else part)


def join_secrets(value: object) -> Secret:
    """Return plain data with secrets as one secret, its JSON; it exists as soon as all of them do."""
    absent = next((secret for secret in secrets_in(value) if not secret.ready), None)
    if absent is not None and absent.path is None:
        return Secret(missing=absent.missing)
    path, awaited = (None, False) if absent is None else (absent.path, absent.awaited)
    return Secret(fetch=lambda: json.dumps(revealed_in(value)), path=path, awaited=awaited)


def secrets_in(value: object) -> Iterator[Secret]:
    """Yield the secrets in data, also in that of dataclasses."""
    return (part for part in walk(value) if isinstance(part, Secret))


def revealed_in(value: object) -> object:
    """Return plain data with the values of its secrets."""
    return rewrite(value, lambda part: part.reveal() if isinstance(part, Secret) else part)


def digest(content: bytes, salt: bytes) -> str:
    """Return a digest of a content that is expensive to guess."""
    return _scrypt(hashlib.sha256(content).digest(), salt)


@lru_cache(maxsize=256)
def _scrypt(content: bytes, salt: bytes) -> str:
    """Return the digest of a digest, once for all targets of a fleet that have the same spec."""
    return hashlib.scrypt(content, salt=salt, n=2**14, r=8, p=1, dklen=24).hex()


class Secret:
    """A secret, given or fetched on first use.

    ``path`` is the file of a secret that may not exist yet. A generated one is written when it is fetched; one that is
    ``awaited`` is written by somebody else. ``missing`` says why a secret has no value here, which a check of its
    spec and destroy accept, and apply refuses. Equality compares the values, in constant time.
    """

    __slots__ = ("_fetch", "_lock", "_value", "awaited", "missing", "path")

    def __init__(
        self,
        value: str | None = None,
        *,
        fetch: Callable[[], str] | None = None,
        path: str | None = None,
        awaited: bool = False,
        missing: str | None = None,
    ) -> None:
        if [value, fetch, missing].count(None) != 2:
            raise TypeError("a Secret needs either its value or a function that fetches it")
        self._value = value
        self._fetch = fetch
        self.missing: str | None = missing
        self.path: str | None = path
        self.awaited: bool = awaited
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether the value exists already; a secret that does not exist yet is in use nowhere."""
        if self.missing is not None:
            return False
        return self._value is not None or self.path is None or os.path.exists(self.path)

    @property
    def is_to_generate(self) -> bool:
        """Whether a file shall store it that does not exist here, so that a new value would be generated."""
        return self.path is not None and not self.awaited and not self.ready

    @property
    def fetched(self) -> bool:
        """Whether the value is known already, so that ``reveal`` asks nobody for it."""
        return self._value is not None

    def reveal(self) -> str:
        """Return the value; the caller must not log, print or store it beyond its purpose."""
        if self.missing is not None:
            raise ConfigError(self.missing)
        with self._lock:
            if self._value is None:
                assert self._fetch is not None
                self._value = self._fetch()
            return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        if self is other or self.missing is not None or other.missing is not None:
            return self is other
        return hmac.compare_digest(self.reveal().encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash(Secret)

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, info: Any) -> Secret:
            try:
                return from_spec(value, **info.context)
            except InvalidValue as error:  # its own type, for the value must not be repeated
                raise PydanticCustomError(
                    "secret", "{what}", {"what": error.what, "fix": error.fix, "code": error.code}
                ) from None

        return core_schema.with_info_plain_validator_function(read)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        def source(name: str, kind: str | list[str], description: str, **more: object) -> Values:
            value = {"type": kind, "description": description, **more}
            return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}

        return {
            "anyOf": [
                source("env", "string", "environment variable that holds the secret"),
                source("file", "string", "file whose first line is the secret"),
                source("content", "string", "file that is the secret as a whole; the same apply may write it"),
                source(
                    "command",
                    "array",
                    "program and arguments, run without a shell in the folder of the spec; it prints the secret",
                    items={"type": "string"},
                    minItems=1,
                ),
                source("vault", "string", "path and key in HashiCorp Vault or OpenBao, such as secret/shop#password"),
                source("keyring", "string", "service and user name in the keyring of the desktop"),
                source(
                    "prompt", ["boolean", "string"], "prompt for it on the terminal; a text replaces the default prompt"
                ),
                source(
                    "generate",
                    "string",
                    "file (mode 0600) that stores it; a random secret is generated if the file does not exist",
                ),
                {"type": "string", "description": "the secret itself; everybody who can read the spec knows it"},
            ]
        }


def from_spec(
    value: object,
    *,
    base: Path,
    warn: Callable[[str], None] = lambda text: None,
    given: Callable[[object], Secret | None] = lambda value: None,
    needed: bool = True,
) -> Secret:
    """Return the secret that a spec refers to; paths are relative to ``base``.

    ``given`` returns the secrets that are no text: of variables, and of resources made in Python. Unless its value is
    ``needed``, only the source is checked: no program is run, nobody is asked, and a missing value is no mistake.
    Raises InvalidValue.
    """
    if (found := given(value)) is not None:
        return found
    if value == "":
        raise InvalidValue("is empty", f"leave it out, or use one of {SOURCES}", Code.SECRET_MISSING)
    if isinstance(value, str):
        warn(f"the spec contains a secret in plain text; use {SOURCES} instead")
        return Secret(value)
    if not isinstance(value, dict) or len(value) != 1:
        raise InvalidValue("is not a source of a secret", f"use one of {SOURCES}")
    ((source, where),) = value.items()
    if source in PROGRAMS:
        of_program = _from_program(source, where, base)
        return of_program if needed else Secret(missing=f"{{{source}: ...}} was not asked for its value")
    if source not in READERS or (source != "prompt" and not isinstance(where, str)):
        raise InvalidValue("is not a source of a secret", f"use one of {SOURCES}")
    if source in ("file", "content") and (warning := _readable_file(file_path(where, base))):
        warn(warning)
    if source == "generate":
        _check_generated(file_path(where, base), warn, change=needed)
    if source == "prompt" and not needed:
        _check_prompt(where)
        return Secret(missing="nobody was prompted for the secret")
    return _read(source, where, base, needed=needed)


def _read(source: str, where: Any, base: Path, *, needed: bool) -> Secret:
    """Return the secret of a source; unless its value is needed, one that lacks it says why."""
    try:
        secret = READERS[source](where, base)
    except _NoValue as error:
        if needed and source != "generate":  # of these a plan judges: destroy can do without
            raise
        return Secret(missing=str(error))
    if needed or secret.ready:
        return secret
    generated = None if secret.awaited else secret.path  # apply would write it
    return Secret(missing=f"{secret.path} does not exist", path=generated)


class _NoValue(InvalidValue):
    """The source of a secret is valid, and has no value on this machine."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what, fix, Code.SECRET_MISSING)


def _from_program(source: str, where: object, base: Path) -> Secret:
    """Return a secret that another program has; it is fetched when it is needed."""
    from openstack_prep.base import secret_programs as programs  # few specs have such secrets

    fetches = {
        "command": lambda: programs.from_command(where, base),
        "vault": lambda: programs.from_vault(where),
        "keyring": lambda: programs.from_keyring(where),
    }
    return Secret(fetch=fetches[source]())


def _from_environment(name: str, base: Path) -> Secret:
    if re.fullmatch(r"[^\s=${}\0]+", name) is None:
        raise InvalidValue("is not the name of an environment variable", "write {env: NAME}, without $")
    if not os.environ.get(name):
        raise _NoValue(f"environment variable {name} is not set", "export it")
    return Secret(os.environ[name])


def _readable_file(path: str) -> str:
    """Return a warning about a file with a secret that others may read, if its mode can be changed; or nothing.

    It cannot for a secret that a container has mounted read-only, usually with mode 0444.
    """
    mode = _readable_mode(path)
    if not mode or not os.access(path, os.W_OK) or os.stat(path).st_uid != os.geteuid():
        return ""
    return f"{path} holds a secret and has mode {mode}, so other users can read it; chmod 600 {shell.quote(path)}"


def _from_file(name: str, base: Path) -> Secret:
    path = Path(file_path(name, base))
    try:
        lines = read_text(path, MOST_SECRET).splitlines()
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise _NoValue(f"{path} {unreadable(error)}", "write the secret to it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"{path} {unreadable(error)}", "write the secret to it", Code.SECRET_MISSING) from None
    if not lines or not lines[0]:
        raise InvalidValue(f"{path} is empty", "write the secret to its first line", Code.SECRET_MISSING)
    return Secret(lines[0])


def _whole_file(name: str, base: Path) -> Secret:
    path = file_path(name, base)

    def fetch() -> str:
        try:
            text = read_text(Path(path), MOST_SECRET)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} {unreadable(error)}") from None
        if not text.strip():
            raise ConfigError(f"{path} is empty; write the secret to it")
        return text

    return Secret(fetch=fetch, path=path, awaited=True)


_prompts = ContextVar("prompts", default=True)


@contextlib.contextmanager
def without_prompts() -> Iterator[None]:
    """Refuse secrets that are prompted for."""
    token = _prompts.set(False)
    try:
        yield
    finally:
        _prompts.reset(token)


def _from_prompt(wanted: object, base: Path) -> Secret:
    _check_prompt(wanted)
    if not sys.stdin.isatty():
        fix = f"use {SOURCES.replace('{prompt: true} or ', '')}"
        raise InvalidValue("not a terminal, so it cannot prompt", fix, Code.SECRET_MISSING)
    answer = getpass.getpass("Password: " if wanted is True else f"{wanted}: ")
    if not answer:  # anybody could log in with an empty password
        raise InvalidValue("no secret was entered", "run the command again, and enter one", Code.SECRET_MISSING)
    return Secret(answer)


def _check_prompt(wanted: object) -> None:
    if wanted is not True and not (isinstance(wanted, str) and wanted):
        raise InvalidValue("use {prompt: true}, or {prompt: PROMPT TEXT}")
    if not _prompts.get():
        raise InvalidValue("cannot prompt for each of several specs", "use another source", Code.SECRET_MISSING)


def _generated(name: str, base: Path) -> Secret:
    path = file_path(name, base)
    _refuse_empty(path)

    def fetch() -> str:
        if not os.path.exists(path):
            create_once(Path(path), secrets.token_urlsafe(24) + "\n")
        remove_temporary(target_of(Path(path)))  # of a killed run; a concurrent one needs its own no more
        try:
            _close_to_others(path)
            return _from_file(path, base).reveal()  # of whoever has created it
        except InvalidValue as error:
            raise ConfigError(str(error)) from None

    return Secret(fetch=fetch, path=path)


def _readable_mode(path: str | Path) -> str:
    """Return the mode of a file that other users may read or write; empty for others, and if there is none."""
    try:
        found = os.stat(path).st_mode
    except OSError:
        return ""
    return f"{found & 0o777:04o}" if stat.S_ISREG(found) and found & 0o077 else ""


def _check_generated(path: str, warn: Callable[[str], None], *, change: bool) -> None:
    """Judge the file of a generated secret that exists, before anything is changed in the cloud."""
    _close_to_others(path, warn, change=change)
    with contextlib.suppress(OSError):
        found = os.stat(path)
        if found.st_uid not in (0, os.geteuid()):
            warn(f"{path} belongs to another user (uid {found.st_uid}), who can read or replace the secret")


def _refuse_empty(path: str) -> None:
    """Raise _NoValue for an empty file; none that a run has begun is empty, because it appears with its content."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode) and found.st_size == 0:
            fix = "write the secret to its first line, or delete the file to have one generated"
            raise _NoValue(f"{path} is empty", fix)


def _close_to_others(path: str, warn: Callable[[str], None] = lambda text: None, *, change: bool = True) -> None:
    """Make the file of a generated secret its owner's alone, with a warning; only warn unless ``change`` is set.

    Other tools open such files: Kubernetes with fsGroup at each mount of a volume, Git and artifacts of pipelines by
    the umask. Raises InvalidValue for a file of another user, and on a file system that has no modes.
    """
    mode = _readable_mode(path)
    if not mode:
        return
    what = f"{path} has mode {mode}, so other users of this machine can read or replace the secret"
    if os.stat(path).st_uid != os.geteuid():
        fix = f"have its owner run chmod 600 {shell.quote(path)}, or copy it to a file of your own"
        raise InvalidValue(f"{what}, and it belongs to another user", fix, Code.SECRET_READABLE)
    if not change:
        warn(f"{what}; apply sets mode 0600")
        return
    with contextlib.suppress(OSError):  # whether it has helped is read back: some file systems only pretend
        os.chmod(path, os.stat(path).st_mode & 0o700)
    if _readable_mode(path):
        what = f"{what}, and its file system does not let openstack-prep change the mode"
        raise InvalidValue(what, CHOOSE_FOLDER, Code.SECRET_READABLE)
    warn(f"{what}: its mode is 0600 now; if somebody may have used it, delete it and apply with --allow-replace")


READERS: Mapping[str, Callable[[Any, Path], Secret]] = {
    "env": _from_environment,
    "file": _from_file,
    "content": _whole_file,
    "prompt": _from_prompt,
    "generate": _generated,
}
