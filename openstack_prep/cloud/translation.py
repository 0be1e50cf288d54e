"""Errors of keystoneauth and the SDK as those of this package: terminal or retryable, decided here once."""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Iterable

from openstack_prep.base import certificate
from openstack_prep.base.errors import CloudError, ConfigError, NotAllowed, NotFound, QuotaExceeded, Unreachable
from openstack_prep.base.secret import HIDDEN
from openstack_prep.cloud.login import is_login

LOGGED_OUT = "this user can no longer log in: its password, token or credential has changed or ended"
NEW_TOKEN = "the token that is refused was new; run the command again"
RETRIABLE_LATER = (409, 412, 429, 500, 502, 503, 504)


def translate(
    error: Exception, doing: str, hidden: Iterable[str] = (), fix: str = "", *, refused: type[CloudError] = CloudError
) -> Exception:
    """Return our error for one of keystoneauth's or the SDK's; what is neither is returned as it is.

    ``refused`` is the class for a login that Keystone refuses.
    """
    from keystoneauth1 import exceptions as ksa
    from openstack import exceptions as sdk

    if type(error) is OSError:  # of requests, for REQUESTS_CA_BUNDLE and the like
        return ConfigError(f"{doing}: {error}; correct the path")
    if isinstance(error, ksa.OptionError | sdk.ConfigException):
        return ConfigError(f"{doing}: {error}; choose a cloud with --os-cloud, OS_CLOUD or OS_* variables")
    if not isinstance(error, ksa.ClientException | sdk.SDKException):
        return error
    status = getattr(error, "http_status", None) or getattr(error, "status_code", None)
    # an answer came through TLS: its text may tell how a service has failed to reach another one
    trust = "set cacert of the clouds.yaml entry to a file with its CA"
    if status is None and (why := certificate.explain(str(error), trust)):
        return ConfigError(f"{doing}: {why}")
    detail = _detail_of(error)
    for value in hidden:
        detail = detail.replace(value, HIDDEN)
    if isinstance(error, ksa.EndpointNotFound):
        fix = "check region_name and interface of the clouds.yaml entry"
    elif status == 401:
        fix = fix or (LOGGED_OUT if is_login(error) else NEW_TOKEN)
    message = "; ".join(filter(None, (f"{doing}: {status} {detail}" if status else f"{doing}: {detail}", fix)))
    kind, retryable = _sort(error, status, detail)
    if status == 401 and (is_login(error) or refused is not CloudError):
        kind, retryable = refused, False
    return kind(message, retryable=retryable, status=status, request_id=getattr(error, "request_id", None))


_STATED_ELSEWHERE = re.compile(r" \(HTTP \d+\)( \(Request-ID: [^)]*\))?$")


def _detail_of(error: Exception) -> str:
    """Return the service's message; keystoneauth passes it on, except the forms of Neutron's extensions."""
    response = getattr(error, "response", None)
    detail = _STATED_ELSEWHERE.sub("", str(getattr(error, "message", None) or error))
    if response is not None and "nrecognized schema" in detail:
        detail = " ".join(response.text.split())[:500]
        with contextlib.suppress(ValueError, AttributeError, KeyError, TypeError):  # then the text is used as it is
            detail = str(next(iter(response.json().values()))["message"])
    if response is not None and (page := _PAGE.search(response.text)):
        detail = " ".join(html.unescape(page[1]).split()) or detail
    return _POOL.sub(lambda found: found[1] or found[0], detail)


_PAGE = re.compile(r"</h1>(.*?)(?:<br|</body)", re.DOTALL)
"""Glance's message is an HTML page, of which keystoneauth passes on the title."""
_POOL = re.compile(r"HTTPS?ConnectionPool\(.*?(\[Errno[^\]]*\] [\w ]+)?['\")]*$", re.DOTALL)
"""urllib3's text of a connection error, around the text of the system."""


# a policy's refusal may name a rule such as update_quota
_OVER_QUOTA = re.compile(r"quota.*exceed|exceed.*quota", re.IGNORECASE | re.DOTALL)


def _sort(error: Exception, status: int | None, detail: str) -> tuple[type[CloudError], bool]:
    from keystoneauth1 import exceptions as ksa

    if status in (403, 409, 413) and _OVER_QUOTA.search(detail):
        return QuotaExceeded, False
    if status == 401:
        # a service: keystoneauth has logged in once more by now (keystoneauth1 5.18.1, session.py, request)
        return CloudError, True
    if status == 403:
        return NotAllowed, False
    if status == 404:
        return NotFound, False
    if status is None:
        transient = (ksa.RetriableConnectionFailure, ksa.UnknownConnectionError, ksa.DiscoveryFailure, ksa.SSLError)
        unreachable = isinstance(error, (*transient, ksa.ConnectionError))
        return Unreachable if unreachable else CloudError, isinstance(error, transient)
    return CloudError, status in RETRIABLE_LATER
