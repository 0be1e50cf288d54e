"""The reason in the answer of a service that refuses a request: JSON of several shapes, a page of HTML, or text.

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

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.base.secret import HIDDEN
from openstack_prep.base.style import printable
from openstack_prep.base.url_secrets import without_url_secrets

if TYPE_CHECKING:
    import requests

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


def read_reason(response: requests.Response) -> Reason:
    """Return the reason that an answer contains, as the service has written it."""
    body = response.text.strip()
    if body[:1] in ("{", "["):
        try:
            found: object = json.loads(body)
        except (ValueError, RecursionError):
            return Reason("")  # it broke off; keystoneauth's own text names the status
        # webob puts HTML into its JSON
        texts = (" ".join(_BREAK.split(text)) for text in _texts(found) or _members(found))
        return Reason("; ".join(dict.fromkeys(texts)), _type(found))
    return Reason(_text_of_page(body, response.status_code))


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
    for value in hidden:
        text = text.replace(value, HIDDEN)
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
