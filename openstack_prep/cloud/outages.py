"""Services that do not answer: while many lists are read, each of these services is waited for once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from openstack_prep.base.errors import CloudError, Unreachable

DOWN = (502, 503, 504)
"""Answers of a service that cannot work, and of what stands in front of it."""


@dataclass
class Outages:
    """Services that did not answer while this was in use: by type, the path that was asked, and the error."""

    found: dict[str, tuple[str, CloudError]] = field(default_factory=dict)
    retries: int | None = None
    """How often a request is sent again; None: as often as usual."""

    @contextlib.contextmanager
    def in_use(self, retries: int | None) -> Iterator[None]:
        """Let the requests of this thread fail at once if their service did not answer an earlier one."""
        self.retries = retries
        token = _IN_USE.set(self)
        try:
            yield
        finally:
            _IN_USE.reset(token)

    def check(self, service: str, path: str) -> None:
        """Raise the error of a service that did not answer, as if this had been asked.

        Plans are compared, and which of several threads asks first differs from plan to plan.
        """
        if service in self.found:
            before, error = self.found[service]
            message = error.reason.replace(before, path)
            raise type(error)(message, retryable=error.retryable, status=error.status) from error

    def note(self, service: str, path: str, error: BaseException) -> None:
        if isinstance(error, Unreachable) or (isinstance(error, CloudError) and error.status in DOWN):
            self.found.setdefault(service, (path, error))


_IN_USE: ContextVar[Outages | None] = ContextVar("outages", default=None)


def in_use() -> Outages | None:
    return _IN_USE.get()
