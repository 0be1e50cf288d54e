"""What was asked of OpenStack, for whoever listens to the logger ``openstack_prep.requests``.

One record per request, with all its retries; neither query, body nor headers, in which secrets may be.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openstack_prep.base.errors import as_request_id

if TYPE_CHECKING:
    import requests

NAME = "openstack_prep.requests"
_log = logging.getLogger(NAME)
_log.propagate = False


@dataclass
class Asked:
    """A request: ``status`` None means that no answer came, and ``error`` is then the class of the error."""

    method: str
    service: str
    path: str
    started: float = field(default_factory=time.time)
    seconds: float = 0.0
    status: int | None = None
    request_id: str | None = None
    error: str | None = None

    def answered(self, response: requests.Response) -> None:
        self.status = response.status_code
        self.request_id = response.headers.get("X-Openstack-Request-Id")


@contextlib.contextmanager
def recorded(method: str, service: str, path: str) -> Iterator[Asked]:
    """Log a request when the block ends, also if it raises the error of a service."""
    asked, begun = Asked(method, service, path.partition("?")[0]), time.monotonic()
    try:
        yield asked
    except Exception as error:
        asked.status = getattr(error, "status", None) or getattr(error, "http_status", None)
        asked.request_id = getattr(error, "request_id", None)
        asked.error = type(error).__name__
        raise
    finally:
        asked.request_id = as_request_id(asked.request_id)
        asked.seconds = time.monotonic() - begun
        _log.info("%s %s%s", method, service, asked.path, extra={"asked": asked})
