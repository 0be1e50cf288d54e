"""Errors of keystoneauth and the SDK as those of this package: terminal or retryable, decided here once.

keystoneauth reads the shapes of Keystone and of Placement's titles alone (keystoneauth1 5.18.1, exceptions/http.py,
from_response). The others, with the file that makes them:

- ``{"badRequest": {"code", "message"}}``: nova 34.0.0 and cinder 29.0.0, api/openstack/wsgi.py, Fault
- ``{"NeutronError": {"type", "message", "detail"}}``: neutron 29.0.0, api/api_common.py
- ``{"code", "title", "explanation", "error": {"type", "message", "traceback"}}``: openstack_heat 27.0.1,
  api/middleware/fault.py; without ``message`` if it is not for users
- ``{"errors": [{"status", "title", "detail"}]}``: openstack_placement 16.0.0, util.py, json_error_formatter
- ``{"code", "type", "message"}``, or ``"errors": {"errors": [{"path", "message"}]}`` for fields: Designate
- ``{"faultcode", "faultstring", "debuginfo"}``: Octavia
- ``{"message", "code", "title"}`` and pages: webob 1.8.11, exc.py, for all; ``{"message"}`` of Keystone's flask_restful
- pages without ``body``, and text: keystone 30.0.0 (werkzeug), swift 2.38.3, common/swob.py and common/constraints.py
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl

import requests
from keystoneauth1 import exceptions as ksa
from openstack import exceptions as sdk

from openstack_prep.base import certificate, secret_forms
from openstack_prep.base.errors import (
    CloudError,
    ConfigError,
    LoginBlocked,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    Unreachable,
)
from openstack_prep.base.raw import walk
from openstack_prep.base.secret_forms import without_url_secrets
from openstack_prep.base.style import printable
from openstack_prep.cloud.login import is_login

# --- the reason in the answer of a service that refuses a request: JSON of several shapes, a page of HTML, or text ---


MOST = 800
"""Characters of a reason; Heat's contain those of other services, one in another, and pages of portals are longer."""
TEXTS = ("message", "faultstring", "detail", "description", "error_description", "explanation", "title")
"""Members that contain a reason, the best first."""


@dataclass(frozen=True)
class Reason:
    """Why a service refuses a request."""

    text: str
    """For people; empty if the answer has none."""
    type: str = ""
    """The name that the service gives to the error, as Neutron, Heat and Designate do."""


def read_reason(response: requests.Response, hidden: Iterable[str] = ()) -> Reason:
    """Return the reason that an answer contains, as the service has written it, except ``hidden`` secrets.

    They are hidden before anything is taken for HTML: they may contain what looks like a tag.
    """
    has_charset = "charset" in response.headers.get("Content-Type", "").lower()
    # requests takes text without a charset for ISO-8859-1, in which no secret would be found
    body = (response.text if has_charset else response.content.decode(errors="replace")).strip()
    if body[:1] in ("{", "["):
        try:
            found: object = json.loads(body)
        except (ValueError, RecursionError):
            return Reason("")  # it broke off; keystoneauth's own text names the status
        # webob puts HTML into its JSON
        texts = (" ".join(_BREAK.split(secret_forms.hide(text, hidden))) for text in _texts(found) or _members(found))
        return Reason("; ".join(dict.fromkeys(texts)), _type(found))
    return Reason(_text_of_page(secret_forms.hide(body, hidden), response.status_code))


def has_error_of_service(response: requests.Response) -> bool:
    """Whether an answer has the shape of an error of OpenStack's services.

    An error is an object in an object, as ``itemNotFound`` of Nova and Cinder, ``NeutronError``, ``error`` of Keystone
    and Heat. Placement (``errors``), Designate (``request_id``) and Octavia (``faultstring``) have members of their
    own.
    """
    try:
        found: object = json.loads(response.text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    return any(isinstance(each, dict) for each in found.values()) or bool(
        found.keys() & {"errors", "faultstring", "request_id"}
    )


def presentable(text: str, hidden: Iterable[str] = ()) -> str:
    """Return a reason for people: one line of bounded length, without secrets, queries of URLs and control characters.

    ``hidden`` are values of secrets that the service may repeat.
    """
    text = secret_forms.hide(text, hidden)
    text = printable(" ".join(_SCHEMA.sub("", text).split()))
    text = without_url_secrets(text)
    return text if len(text) <= MOST else f"{text[: MOST // 2]} ... {text[-MOST // 2 :]}"


_BREAK = re.compile(r"<br ?/?>")
_SCHEMA = re.compile(r"\s+Failed validating '\w+' in schema.*", re.DOTALL)
"""What jsonschema adds to a reason: the schema, and the value, which may be a secret."""


def _texts(found: object) -> list[str]:
    """Return the reasons in a part of an answer."""
    if isinstance(found, str):
        return [found] if found.strip() else []
    if isinstance(found, list):
        return [text for each in found for text in _texts(each)]
    if not isinstance(found, dict):
        return []
    inner = [each for each in _inner(found) if isinstance(each, dict | list)]
    if texts := [text for each in inner for text in _texts(each)]:
        return texts
    for name in TEXTS:
        if isinstance(text := found.get(name), str) and text.strip():
            # Heat's explanation is that of the status; the type of an error that is not for users says more
            cause = f" ({_type(found)})" if name == "explanation" and _type(found) else ""
            return [f"{_place(found)}{text}{cause}"]
    return []


def _members(found: object) -> list[str]:
    """Return the texts in an answer of an unknown shape, by name."""
    if isinstance(found, list):
        return [text for each in found for text in _members(each)]
    if isinstance(found, dict):
        return [f"{name}: {text}" for name, each in found.items() for text in _members(each)]
    return [] if found is None else [str(found)]


def _inner(found: dict[str, object]) -> Iterator[object]:
    """Yield the parts of an object that describe the error, if it is an envelope."""
    yield from (found[name] for name in ("error", "errors") if name in found)
    if len(found) == 1:
        yield from found.values()


def _place(found: dict[str, object]) -> str:
    """Return which field a reason is about, as Designate says it."""
    path = found.get("path")
    parts = path if isinstance(path, list) else [path]
    return f"{'.'.join(map(str, parts))}: " if path else ""


def _type(found: object) -> str:
    """Return the name of an error in an answer."""
    if not isinstance(found, dict):
        return ""
    for each in (*_inner(found), found):
        if isinstance(each, dict) and isinstance(name := each.get("type"), str):
            return name
    return ""


_UNSEEN = re.compile(r"<!--.*?-->|<(head|script|style)\b.*?</\1\s*>|<title\b.*?</title\s*>", re.DOTALL | re.IGNORECASE)
_HEADING = re.compile(r"<h1\b[^>]*>(.*?)</h1\s*>", re.DOTALL | re.IGNORECASE)
_RULE = re.compile(r"<hr\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>|<!doctype[^>]*>", re.IGNORECASE)


def _text_of_page(page: str, status: int) -> str:
    """Return what a page says below its heading, otherwise its heading; and which program has made it, if it says so.

    nginx and Apache name themselves below a rule: then a proxy has answered in place of the service.
    """
    body, *footer = _RULE.split(_UNSEEN.sub(" ", page), maxsplit=1)
    heading = _HEADING.search(body)
    text = _plain(_HEADING.sub(" ", body))
    if not text and heading:
        text = _plain(heading[1]).removeprefix(f"{status} ")
    program = _plain(" ".join(footer))
    return f"{text} ({program})" if program else text


def _plain(part: str) -> str:
    """Return the text of a part of a page on one line."""
    return " ".join(html.unescape(_TAG.sub(" ", part)).split())


LOGGED_OUT = "this user can no longer log in: its password, token or credential has changed or ended"
NEW_TOKEN = "the token that is refused was new; run the command again"
SECOND_FACTOR = "this user logs in with several factors; use an application credential, if a rule allows it alone"
BLOCKS = (
    (
        re.compile("account is locked"),
        "wait until the lock ends, or have an administrator run openstack user set --enable",
    ),
    (re.compile("password is expired"), "set another password"),
    (re.compile("account is disabled"), "run openstack user set --enable as an administrator"),
)
"""What Keystone's answers say about blocked users, and what helps: they have no code that tells these apart.

Source: keystone 30.0.0, exception.py (AccountLocked, PasswordExpired, UserDisabled), identity/backends/sql.py.
"""
RETRIABLE_LATER = (408, 409, 412, 429, 500, 502, 503, 504)


def translate(
    error: Exception, doing: str, hidden: Iterable[str] = (), fix: str = "", *, refused: type[CloudError] = CloudError
) -> Exception:
    """Return our error for one of keystoneauth's or the SDK's; what is neither is returned as it is.

    ``refused`` is the class for a login that Keystone refuses.
    """
    if type(error) is OSError:  # of requests, for REQUESTS_CA_BUNDLE and the like
        return ConfigError(f"{doing}: {error}; correct the path")
    if isinstance(error, ksa.OptionError | sdk.ConfigException):
        return ConfigError(f"{doing}: {error}; choose a cloud with --os-cloud, OS_CLOUD or OS_* variables")
    if not isinstance(error, ksa.ClientException | sdk.SDKException):
        return error
    status = getattr(error, "http_status", None) or getattr(error, "status_code", None)
    block = ""
    if isinstance(error, ksa.MissingAuthMethods):
        status, block = error.response.status_code, SECOND_FACTOR
    # an answer came through TLS: its text may tell how a service has failed to reach another one
    trust = "set cacert of the clouds.yaml entry to a file with its CA"
    if status is None and (why := certificate.explain(str(error), trust)):
        return ConfigError(f"{doing}: {why}")
    secrets = [*hidden, *_secrets_sent(error)]
    reason = _reason_of(error, secrets)
    detail = presentable(reason.text, secrets)
    if status == 401 and not block:
        block = next((fix for pattern, fix in BLOCKS if pattern.search(reason.text)), "")
    fix = block or fix
    if isinstance(error, ksa.EndpointNotFound):
        fix = "check region_name and interface of the clouds.yaml entry"
    elif status == 401:
        fix = fix or (LOGGED_OUT if is_login(error) else NEW_TOKEN)
    message = "; ".join(filter(None, (f"{doing}: {status} {detail}" if status else f"{doing}: {detail}", fix)))
    kind, retryable = _sort(error, status, reason)
    if status == 401 and (is_login(error) or refused is not CloudError):
        kind, retryable = (LoginBlocked if block else refused), False
    if kind is NotFound and not _is_of_service(error):
        kind, retryable, message = CloudError, True, f"{message}; {NOT_OF_SERVICE}"
    found = kind(message, retryable=retryable, status=status, request_id=getattr(error, "request_id", None))
    if isinstance(found, NotFound):
        found.of_resource = not _is_unknown_path(error, reason)
    return found


SECRET_MEMBERS = (
    "password", "original_password", "secret", "passcode", "adminPass", "client_secret", "code", "device_code",
    "refresh_token", "subject_token", "access_token",
)  # fmt: skip
SECRET_HEADERS = ("X-Auth-Token", "X-Subject-Token", "Authorization")


def _secrets_sent(error: Exception) -> Iterator[str]:
    """Yield the secrets of the refused request, such as the password of a login: a service may repeat them."""
    request = getattr(getattr(error, "response", None), "request", None)
    if request is None:
        return
    for value in filter(None, map(request.headers.get, SECRET_HEADERS)):
        scheme, _, credentials = value.partition(" ")
        yield from (value, credentials)
        if scheme == "Basic":
            yield base64.b64decode(credentials).decode(errors="replace").partition(":")[2]
    is_form = request.headers.get("Content-Type") == "application/x-www-form-urlencoded"  # of a provider of identities
    try:
        body = dict(parse_qsl(request.body)) if is_form else json.loads(request.body or "null")
    except (ValueError, TypeError, RecursionError):  # no JSON, or the content of an image
        return
    members = (member for part in walk(body) if isinstance(part, dict) for member in part.items())
    yield from (value for name, value in members if name in SECRET_MEMBERS and isinstance(value, str))


NOT_OF_SERVICE = "this answer is not that of the service: check its endpoint, and what is in front of it"
REQUEST_IDS = ("X-Openstack-Request-Id", "X-Compute-Request-Id", "X-Trans-Id")
"""Headers of answers of services: oslo.middleware 7.0.0, request_id.py; swift 2.38.3, common/swob.py."""
UNKNOWN_PATH = ("The resource could not be found.", "The requested URL was not found on the server")
"""How answers about paths that a service does not have begin: webob 1.8.11, exc.py; werkzeug 3.1.3, exceptions.py."""


def _is_of_service(error: Exception) -> bool:
    """Whether a service has answered 404, and not a proxy that knows no such service.

    Some gateways drop the headers of services; the shape of an error then tells.
    """
    response = getattr(error, "response", None)
    return response is None or any(name in response.headers for name in REQUEST_IDS) or has_error_of_service(response)


def _is_unknown_path(error: Exception, reason: Reason) -> bool:
    """Whether a 404 is about the path; Swift answers so for what does not exist."""
    response = getattr(error, "response", None)
    is_swift = response is not None and "X-Trans-Id" in response.headers
    return not is_swift and (reason.text.startswith(UNKNOWN_PATH) or reason.text == "Not Found")  # pecan 1.8.0


_STATED_ELSEWHERE = re.compile(r" \(HTTP \d+\)( \(Request-ID: [^)]*\))?$")


def _reason_of(error: Exception, hidden: Iterable[str]) -> Reason:
    """Return the reason that a service gives, otherwise the text of keystoneauth or the SDK."""
    response = getattr(error, "response", None)
    if isinstance(error, ksa.MissingAuthMethods):  # the body of a receipt says who has logged in, not what is missing
        response = None
    found = Reason("") if response is None else read_reason(response, hidden)
    text = found.text or _STATED_ELSEWHERE.sub("", str(getattr(error, "message", None) or error))
    if text.startswith(_NO_URL) or f" {_NO_URL}" in text:
        text = f"{text.partition(_NO_URL)[0]}the address, or that of the proxy (HTTPS_PROXY, HTTP_PROXY), is not a URL"
    return Reason(_POOL.sub(lambda pool: pool[1] or pool[0], text), found.type)


_NO_URL = "Failed to parse: "
"""urllib3 2's text, which quotes a part of the URL, perhaps with a password (exceptions.py, LocationParseError)."""
_POOL = re.compile(r"HTTPS?ConnectionPool\(.*?(\[Errno[^\]]*\] [\w ]+)?['\")]*$", re.DOTALL)
"""urllib3's text of a connection error, around the text of the system."""


# a policy's refusal may name a rule such as update_quota; Octavia's quota "has been met"; with limits of Keystone, Nova
# and Glance are "over limit" (oslo_limit, exception.py)
_OVER_QUOTA = re.compile(r"quota.*exceed|exceed.*quota|quota has been met|is over a? ?limit", re.IGNORECASE | re.DOTALL)
OVER_QUOTA = ("OverQuota", "over_quota")
"""Types of Neutron's and Designate's errors."""


def _sort(error: Exception, status: int | None, reason: Reason) -> tuple[type[CloudError], bool]:
    if reason.type in OVER_QUOTA or (status in (403, 409, 413) and _OVER_QUOTA.search(reason.text)):
        # Neutron counts what it creates twice until its reservation ends, so that one of two parallel requests for the
        # last two may fail (neutron 29.0.0, db/quota/driver.py, make_reservation)
        return QuotaExceeded, reason.type == OVER_QUOTA[0] and status == 409
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
    return CloudError, status in RETRIABLE_LATER or (status == 413 and _waits(error))


def _waits(error: Exception) -> bool:
    """Whether a service asks to wait, as Cinder does for too many requests (cinder 29.0.0, wsgi.py, OverLimitFault).

    keystoneauth's error of 413 forgets the header (keystoneauth1 5.18.1, exceptions/http.py, RequestEntityTooLarge).
    """
    response = getattr(error, "response", None)
    return response is not None and response.headers.get("Retry-After", "0") != "0"
