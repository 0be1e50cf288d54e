"""One error tree: whatever leaves this package on purpose is a PrepError."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from openstack_prep.base.key import Key


class PrepError(Exception):
    """Base of all errors of this package; its text is fit to be shown to a person."""

    exit_code = 1


@dataclass(frozen=True)
class Mistake:
    """One thing wrong in what the user gave us.

    ``where`` names the place (``file:line: field``), ``what`` the value and what is wrong with it,
    ``remedy`` what to do.  ``keys`` are the resources concerned, for which a spec knows the lines.
    """

    where: str
    what: str
    remedy: str = ""
    keys: tuple[Key, ...] = ()

    @classmethod
    def about(cls, key: Key | Sequence[Key], what: str, remedy: str = "") -> Self:
        """Return a mistake in a resource, or in several together."""
        keys = (key,) if isinstance(key, Key) else tuple(key)
        return cls(", ".join(map(str, keys)), what, remedy, keys)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class Loss(Mistake):
    """What an update would take from those who use it; it needs consent.

    ``lost`` names each thing, so that what a run finds can be compared with what its plan has shown.
    """

    lost: tuple[str, ...] = ()

    @property
    def things(self) -> frozenset[str]:
        return frozenset(self.lost or (self.what,))


class SpecError(PrepError):
    """The input is wrong; ``mistakes`` lists everything that is, not only the first."""

    exit_code = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class ConfigError(PrepError):
    """clouds.yaml or the way to the cloud is wrong: no such file, entry or option."""

    exit_code = 2


class PlanRefused(PrepError):
    """The plan may not be carried out: it needs consent, or the cloud forbids or has moved since."""

    exit_code = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class LeaseHeld(PrepError):
    """Somebody else is at work on the same spec; nothing was changed in the project."""


class LeaseLost(PrepError):
    """We were away for so long that somebody else may be at work on the spec; the rest is not done."""


class CloudError(PrepError):
    """A service answered with an error, or not at all.

    ``retryable``: the same wish may be granted a moment later, after looking again what is there.
    ``request_id``: the service's ``X-Openstack-Request-Id``, for its administrator's logs.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message + (f" (request {request_id})" if request_id else ""))
        self.retryable = retryable
        self.status = status
        self.request_id = request_id


def passes(error: BaseException) -> bool:
    """Whether the same may go well a moment later."""
    return isinstance(error, CloudError) and error.retryable


class NotFound(CloudError):
    """Nothing of that name or id."""


class NotUnique(CloudError):
    """Several things answer to one name; the text holds their ids."""


class Overtaken(CloudError):
    """A concurrent run of the same spec created the same thing first; ours was removed again."""


class NotAllowed(CloudError):
    """401 or 403: these credentials may not do that."""


class QuotaExceeded(CloudError):
    """The project's quota is used up."""


class WaitTimeout(CloudError):
    """What we waited for did not come in time."""


class ResourceFailed(CloudError):
    """OpenStack took the order and reported failure later (status ERROR and the like)."""


class DownloadError(PrepError):
    """A file from elsewhere cannot be had, or is not what it should be (checksum, size)."""
