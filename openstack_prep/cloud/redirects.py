"""Redirects of services: followed only to the scheme, host and port that a token or password was sent to."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from keystoneauth1.exceptions import ConnectionError as NotConnected

STATUSES = (301, 302, 303, 305, 307, 308)
"""Those that keystoneauth follows (keystoneauth1 5.18.1, session.py, _REDIRECT_STATUSES)."""
PORTS = {"http": 80, "https": 443}
FIX = (
    "if that target is right, write it as auth_url, or as the service's *_endpoint_override, in the entry of "
    "clouds.yaml; otherwise ask the cloud's administrator to correct the endpoint"
)


class RedirectRefused(NotConnected):
    """A service redirects to another address.

    It is an error of keystoneauth's, so that a version document that cannot be read stays what it is for keystoneauth:
    the endpoint of the catalogue is used without it (keystoneauth1 5.18.1, discover.py, _run_discovery).
    """


def stay_at_address(answer: requests.Response, *_: object, **__: object) -> None:
    """Raise RedirectRefused for a redirect to another scheme, host or port; a hook of a session of requests.

    keystoneauth sends method, headers and body again, wherever a redirect leads (keystoneauth1 5.18.1, session.py,
    _send_request). It takes the target as it is written, so that a relative one is completed here.
    """
    if answer.status_code not in STATUSES:
        return
    asked = f"{answer.request.method} {_shown(str(answer.url))} answers {answer.status_code}, a redirect"
    target = answer.headers.get("Location")
    if not target:
        raise RedirectRefused(f"{asked} without a target; {FIX}")
    url = _as_sent(str(answer.url), target)
    if url is None or _address(url) != _address(str(answer.url)):
        where = "what is not a URL" if url is None else _shown(url)
        raise RedirectRefused(
            f"{asked} to {where}, and tokens and passwords are sent to no other scheme, host or port; {FIX}"
        )
    answer.headers["Location"] = url


def keep_at_address(session: Any) -> None:
    """Have a session of keystoneauth, and all that share its connections, refuse redirects to other addresses."""
    hooks = session.session.hooks["response"]
    if stay_at_address not in hooks:
        hooks.append(stay_at_address)


def _as_sent(base: str, target: str) -> str | None:
    """Return the URL of a target as requests would send it, whose parser tells what the host is; None if it refuses."""
    request = requests.PreparedRequest()
    try:
        request.prepare_url(urljoin(base, target), None)
        _address(str(request.url))
    except (requests.RequestException, ValueError):
        return None
    return request.url


def _address(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)


def _shown(url: str) -> str:
    """Return a URL without a login and without its query, which may hold a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
