"""One error tree: every exception that this package raises on purpose is a PrepError."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.diagnostic import Diagnostic, by_line
from openstack_prep.base.key import Key
from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import indented


class PrepError(Exception):
    """Base of all errors of this package; its text can be shown to users."""

    exit_code: int = 1
    """What the command exits with."""
    code: ClassVar[str] = "error.other"
    """For ``openstack-prep explain``."""

    def __str__(self) -> str:
        return without_logins(super().__str__())

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that is wrong, as ``--format json`` prints it."""
        return (Diagnostic(code=self.code, where="", what=str(self)),)


@dataclass(frozen=True)
class Mistake:
    """One error in the user's input.

    ``where`` names the place (``file:line: field``), ``what`` the value and the problem, ``fix`` the fix. ``keys``
    are the affected resources. A spec knows the lines of their fields: ``field`` is a dotted path in a resource, and
    ``parameter`` is a parameter of a stack. ``code`` is for ``openstack-prep explain``; without one, that of the error
    applies.
    """

    where: str
    what: str
    fix: str = ""
    keys: tuple[Key, ...] = ()
    parameter: str = field(default="", kw_only=True)
    code: str = field(default="", kw_only=True)
    field: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("where", "what", "fix"):
            object.__setattr__(self, name, without_logins(getattr(self, name)))

    @classmethod
    def about(cls, key: Key | Sequence[Key], what: str, fix: str = "", **more: str) -> Self:
        """Return a mistake in a resource, or in several together; ``more`` are field, parameter and code."""
        keys = (key,) if isinstance(key, Key) else tuple(key)
        return cls(", ".join(map(str, keys)), what, fix, keys, **more)

    def __str__(self) -> str:
        return indented(f"{self.where}: {self.what}" + (f"; {self.fix}" if self.fix else ""))

    def diagnostic(self, code: str) -> Diagnostic:
        """Return it with its own code, or with that of the error that contains it."""
        return Diagnostic(code=self.code or code, where=self.where, what=self.what, fix=self.fix)


@dataclass(frozen=True)
class Loss(Mistake):
    """Something that an update would delete and that others use; it needs permission.

    ``lost`` names each object, so that the losses of a run can be compared with those that its plan has shown.
    """

    lost: tuple[str, ...] = ()
    code: str = field(default=Code.PLAN_LOSES, kw_only=True)

    @property
    def things(self) -> frozenset[str]:
        return frozenset(self.lost or (self.what,))


@dataclass(frozen=True)
class MisreadNumber(Mistake):
    """A number that YAML reads otherwise than it is written, which causes what a field says about its value.

    If only its form ``loses_digits``, the field knows better what to write.
    """

    loses_digits: bool = field(default=False, kw_only=True)


def _one_per_number(mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """Leave out the second mistake about a number that YAML misreads."""
    misread = {mistake.where: mistake for mistake in mistakes if isinstance(mistake, MisreadNumber)}
    explained = {mistake.where for mistake in mistakes if not isinstance(mistake, MisreadNumber)}
    for mistake in mistakes:
        cause = misread.get(mistake.where)
        if cause is None or mistake.where not in explained or (mistake is cause) is not cause.loses_digits:
            yield mistake


class Mistaken(PrepError):
    """Base of the errors that consist of mistakes; ``mistakes`` lists all of them, those of a file by line."""

    exit_code: int = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes: tuple[Mistake, ...] = tuple(by_line(_one_per_number(mistakes)))
        super().__init__("\n".join(map(str, self.mistakes)))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(mistake.diagnostic(self.code) for mistake in self.mistakes)


class SpecError(Mistaken):
    """The input is wrong."""

    code = "spec.invalid"


class ConfigError(PrepError):
    """clouds.yaml or the choice of the cloud is wrong: no such file, entry or option."""

    exit_code = 2
    code = "config.invalid"


class EntryUnusable(PrepError):
    """No client can log in by an entry of clouds.yaml that apply has written."""

    code = Code.ENTRY_LOGIN


class ExtensionError(ConfigError):
    """An installed extension cannot be used: it cannot be loaded, or has a name that another one has, too."""

    code = "extension.unusable"


class FolderRefused(ConfigError):
    """The folder for files cannot be used: it is a file, others have files of these names there, or it is read-only."""

    code = "files.refused"


class PlanRefused(Mistaken):
    """The plan may not be carried out: it needs permission, the cloud forbids it, or the cloud has changed since."""

    code = "plan.refused"


class LeaseHeld(PrepError):
    """Another run is at work on the same spec; nothing was changed in the project."""

    code = "lease.held"


class LeaseLost(PrepError):
    """The lease was not renewed for so long that another run may be at work; the remaining steps are skipped."""

    code = "lease.lost"


class FileLocked(PrepError):
    """Another process has held the lock of a file for too long; the file was not changed."""

    code = "file.locked"


class RunInterrupted(PrepError):
    """A signal stopped the command before it had a result."""

    code = "run.interrupted"

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class InternalError(PrepError):
    """A bug in this package: an exception that nothing handles."""

    code = "error.internal"


def text_of(error: BaseException | None) -> str:
    """Return the text of an error, of a foreign one after its class.

    Its ``repr`` has all arguments: of a text that cannot be encoded the whole text, which may be a secret.
    """
    if isinstance(error, PrepError):
        return str(error)
    shown = error.reason if isinstance(error, UnicodeEncodeError | UnicodeDecodeError) else error
    return without_logins(f"{type(error).__name__}: {shown}")


def as_request_id(text: str | None) -> str | None:
    """Return the id of a request; None for a header of another form, in which a program may repeat the request."""
    return text if text and re.fullmatch(r"[\w.:-]{1,80}", text) else None


class CloudError(PrepError):
    """A service answered with an error, or not at all.

    ``retryable``: the request may succeed a moment later, after reading the present state. ``request_id``: the
    service's ``X-Openstack-Request-Id``, for its administrator's logs; ``reason`` is the text without it, which is the
    same when the request is repeated.
    """

    code = "cloud.error"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        request_id = as_request_id(request_id)
        super().__init__(message + (f" (request {request_id})" if request_id else ""))
        self.reason = message
        self.retryable = retryable
        self.status = status
        self.request_id = request_id


def is_transient(error: BaseException) -> bool:
    """Whether the error is transient, so that a retry may succeed."""
    return isinstance(error, CloudError) and error.retryable


class NotFound(CloudError):
    """No resource has this name or id; or, unless ``of_resource``, the service does not have such a request at all."""

    code = "cloud.not-found"
    of_resource: bool = True


class Unreachable(CloudError):
    """A service did not answer: no connection, or none to its list of versions."""

    code = "cloud.unreachable"


class NotUnique(CloudError):
    """Several resources have the same name; the text contains their ids."""

    code = "cloud.not-unique"


class Overtaken(CloudError):
    """A concurrent run of the same spec created the same resource first; the resource of this run was deleted again."""

    code = "cloud.overtaken"


class NotAllowed(CloudError):
    """401 or 403: these credentials have no permission."""

    code = "access.denied"


class LoginBlocked(NotAllowed):
    """Keystone refuses a login for another reason than its credentials, such as a second factor or a lock."""


class QuotaExceeded(CloudError):
    """The project's quota is used up."""

    code = "quota.exceeded"


class WaitTimeout(CloudError):
    """The expected state was not reached in time."""

    code = "cloud.timeout"


class ResourceFailed(CloudError):
    """OpenStack accepted a request and reported a failure later (status ERROR and the like)."""

    code = "cloud.resource-failed"


class DownloadError(PrepError):
    """A file cannot be downloaded, or its checksum or size is wrong."""

    code = "download.failed"
