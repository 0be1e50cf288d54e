"""Redirects without logins that were meant for another server."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests


class Session(requests.Session):
    """A session whose login stays with the port that it was sent to.

    ~/.netrc knows hosts, not ports. After each redirect requests looks there again, so that its login goes to any port
    of the host, and in place of the one in the URL (requests 2.34.2, sessions.py, rebuild_auth).
    """

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        parent: Any = super()
        before, after = str(response.request.url), str(prepared_request.url)
        if urlsplit(before).hostname != urlsplit(after).hostname:
            parent.rebuild_auth(prepared_request, response)
        elif parent.should_strip_auth(before, after):
            prepared_request.headers.pop("Authorization", None)
