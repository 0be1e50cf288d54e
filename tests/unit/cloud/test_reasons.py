"""What services answer to requests that they refuse: the kind of our error, and the reason in its text.

The bodies are those of keystone 30.0.0, nova 34.0.0, neutron 29.0.0, glance 33.0.0, cinder 29.0.0, openstack_heat
27.0.1, swift 2.38.3, openstack_placement 16.0.0, as requests to their real APIs were answered. Those of designate
23.0.0 and octavia 19.0.0 are what their own exceptions become in their middleware (designate/api/middleware.py,
FaultWrapperMiddleware; octavia/common/exceptions.py through WSME 0.13.0 and pecan 1.8.0), without a service around it.
Pages of proxies and rare statuses are written by hand, after what these programs document: nobody has seen them here.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from keystoneauth1 import exceptions as ksa

from openstack_prep.base.errors import CloudError, NotAllowed, NotFound, QuotaExceeded
from openstack_prep.base.style import visible
from openstack_prep.cloud.translation import MOST, translate

JSON, HTML, PLAIN = "application/json", "text/html; charset=UTF-8", "text/plain"
MALFORMED = "The server could not comply with the request since it is either malformed or otherwise incorrect."


def answer(status: int, body: object, kind: str = JSON, **headers: str) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    headers = {**({"X-Openstack-Request-Id": "req-1"} if status == 404 else {}), **headers}  # a proxy's 404 has none
    made.headers.update({"Content-Type": kind, **headers} if kind else headers)
    made._content = (body if isinstance(body, str) else json.dumps(body)).encode()
    return made


def refusal(status: int, body: object, kind: str = JSON, hidden: tuple[str, ...] = (), **headers: str) -> CloudError:
    """Return our error for the one that keystoneauth makes of an answer."""
    error = ksa.from_response(answer(status, body, kind, **headers), "GET", "http://service/x")
    found = translate(error, "GET service/x", hidden)
    assert isinstance(found, CloudError)
    return found


def reason(status: int, body: object, kind: str = JSON, **headers: str) -> str:
    """Return the text without what was asked and the status."""
    return str(refusal(status, body, kind, **headers)).removeprefix(f"GET service/x: {status} ")


def keystone(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "title": "Title"}}


def nova(name: str, code: int, message: str) -> dict[str, Any]:
    return {name: {"code": code, "message": message}}


def neutron(type_: str, message: str) -> dict[str, Any]:
    return {"NeutronError": {"type": type_, "message": message, "detail": ""}}


def heat(code: int, type_: str, message: str | None) -> dict[str, Any]:
    error = {"type": type_, "traceback": None} | ({"message": message} if message else {})
    return {"code": code, "title": "Bad Request", "explanation": MALFORMED, "error": error}


def placement(status: int, detail: str) -> dict[str, Any]:
    return {"errors": [{"status": status, "title": "Title", "detail": detail, "request_id": "req-1"}]}


def webob(title: str, text: str) -> str:
    return (
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n  {text}<br /><br />"
        "\n\n\n\n </body>\n</html>"
    )


def swift(title: str, text: str) -> str:
    return f"<html><h1>{title}</h1><p>{text}</p></html>"


def nginx(title: str) -> str:
    heading = f"<center><h1>{title}</h1></center>"
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n{heading}\r\n<hr><center>nginx/1.24.0</center>"
        "\r\n</body>\r\n</html>\r\n<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n"
    )


WERKZEUG = (
    "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"
    "<p>The requested URL was not found on the server.</p>\n"
)
APACHE = (
    '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n<title>503 Service Unavailable</title>\n</head>'
    "<body>\n<h1>Service Unavailable</h1>\n<p>The server is temporarily unable to service your\nrequest.</p>\n<hr>\n"
    "<address>Apache/2.4.58 (Ubuntu) Server at 10.0.0.1 Port 80</address>\n</body></html>\n"
)
HAPROXY = (
    "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n"
)
LIMITS = "Project p is over a limit for [Resource servers is over limit of 1 due to current usage 1 and delta 1]"

TABLE: list[tuple[int, object, str, type[CloudError], bool, str]] = [
    # Keystone
    (400, keystone(400, "Value: 5. 5 is not of type 'string'"), JSON, CloudError, False, "5 is not of type 'string'"),
    (401, keystone(401, "The request you have made requires"), JSON, CloudError, True, "The request you have made"),
    (403, keystone(403, "not authorized to perform identity:x"), JSON, NotAllowed, False, "perform identity:x"),
    (404, keystone(404, "Could not find user: nope."), JSON, NotFound, False, "Could not find user: nope."),
    (404, WERKZEUG, HTML, NotFound, False, "The requested URL was not found on the server."),
    (405, {"message": "The method is not allowed"}, JSON, CloudError, False, "The method is not allowed"),
    (409, keystone(409, "Duplicate entry found with name x"), JSON, CloudError, True, "Duplicate entry found"),
    (413, keystone(413, "Request is too large."), JSON, CloudError, False, "Request is too large."),
    # Nova
    (400, nova("badRequest", 400, "'server' is a required"), JSON, CloudError, False, "'server' is a required"),
    (403, nova("forbidden", 403, "Quota exceeded for cores"), JSON, QuotaExceeded, False, "Quota exceeded for cores"),
    (403, nova("forbidden", 403, LIMITS), JSON, QuotaExceeded, False, LIMITS),
    (404, nova("itemNotFound", 404, "Instance x could not"), JSON, NotFound, False, "Instance x could not"),
    (404, webob("404 Not Found", "The resource could not"), HTML, NotFound, False, "The resource could not"),
    (406, nova("computeFault", 406, "Version 9.99 is not"), JSON, CloudError, False, "Version 9.99 is not"),
    (409, nova("conflictingRequest", 409, "Cannot 'start'"), JSON, CloudError, True, "Cannot 'start'"),
    (413, webob("413 Request Entity Too Large", "Larger than"), HTML, CloudError, False, "Larger than"),
    (429, nova("overLimit", 429, "This request was"), JSON, CloudError, True, "This request was"),
    (500, nova("computeFault", 500, "Unexpected.\n<class 'x.Y'>"), JSON, CloudError, True, "Unexpected. <class 'x.Y'>"),
    # Neutron
    (400, neutron("HTTPBadRequest", "Invalid input for name."), JSON, CloudError, False, "Invalid input for name."),
    (400, {"NeutronError": "no such attribute"}, JSON, CloudError, False, "no such attribute"),
    (403, neutron("PolicyNotAuthorized", "rule:x disallowed"), JSON, NotAllowed, False, "rule:x disallowed"),
    (404, neutron("NetworkNotFound", "Network nope could not"), JSON, NotFound, False, "Network nope could not"),
    (405, neutron("HTTPMethodNotAllowed", MALFORMED), JSON, CloudError, False, MALFORMED),
    (409, neutron("OverQuota", "No more of: ['port']"), JSON, QuotaExceeded, True, "No more of: ['port']"),
    (409, neutron("IpAddressInUse", "IP address in use"), JSON, CloudError, True, "IP address in use"),
    (501, {"NotImplementedError": {"message": "no agent"}}, JSON, CloudError, False, "no agent"),
    (503, neutron("ServiceUnavailable", "OVN is away"), JSON, CloudError, True, "OVN is away"),
    # Glance
    (400, webob("400 Bad Request", "&#x27;x&#x27; is bad"), HTML, CloudError, False, "'x' is bad"),
    (400, {"message": "no<br /><br />\n\n", "code": "400 Bad Request", "title": "T"}, JSON, CloudError, False, "no"),
    (401, webob("401 Unauthorized", "could not verify"), HTML, CloudError, True, "could not verify"),
    (403, webob("403 Forbidden", "Image x is protected"), HTML, NotAllowed, False, "Image x is protected"),
    (405, webob("405 Method Not Allowed", "The method PUT"), HTML, CloudError, False, "The method PUT"),
    (409, webob("409 Conflict", "Image x is in use"), HTML, CloudError, True, "Image x is in use"),
    (410, webob("410 Gone", "The image is gone"), HTML, CloudError, False, "The image is gone"),
    (413, webob("413 Too Large", "it exceeds the quota: 5"), HTML, QuotaExceeded, False, "it exceeds the quota: 5"),
    (415, webob("415 Unsupported", "type x<br /><br />expects y"), HTML, CloudError, False, "type x expects y"),
    # Cinder
    (400, nova("badRequest", 400, "'volume' is a required"), JSON, CloudError, False, "'volume' is a required"),
    (404, nova("itemNotFound", 404, "Volume nope could not"), JSON, NotFound, False, "Volume nope could not"),
    (413, nova("overLimit", 413, "(10) exceeded for quota 'volumes'."), JSON, QuotaExceeded, False, "quota 'volumes'."),
    # Heat
    (400, heat(400, "StackValidationFailed", "Resource Type (OS::No)"), JSON, CloudError, False, "Type (OS::No)"),
    (400, heat(400, "AttributeError", None), JSON, CloudError, False, "incorrect. (AttributeError)"),
    (403, heat(403, "Forbidden", "You are not authorized to"), JSON, NotAllowed, False, "You are not authorized to"),
    (404, heat(404, "EntityNotFound", "The Stack (x) could"), JSON, NotFound, False, "The Stack (x) could"),
    (409, heat(409, "ActionInProgress", "Stack x already has"), JSON, CloudError, True, "Stack x already has"),
    # Swift
    (400, "Container name length of 300 longer than 256", HTML, CloudError, False, "Container name length of 300"),
    (400, "Metadata name too long: x-a", PLAIN, CloudError, False, "Metadata name too long: x-a"),
    (401, swift("Unauthorized", "could not verify"), HTML, CloudError, True, "could not verify"),
    (403, swift("Forbidden", "Access was denied to this"), HTML, NotAllowed, False, "Access was denied to this"),
    (404, swift("Not Found", "The resource could not be"), HTML, NotFound, False, "The resource could not be"),
    (408, swift("Request Timeout", "has waited too long"), HTML, CloudError, True, "has waited too long"),
    (409, swift("Conflict", "There was a conflict when"), HTML, CloudError, True, "There was a conflict when"),
    (411, "Missing Content-Length header.", PLAIN, CloudError, False, "Missing Content-Length header."),
    (412, swift("Precondition Failed", "was not met."), HTML, CloudError, True, "was not met."),
    (413, "Upload exceeds quota.", HTML, QuotaExceeded, False, "Upload exceeds quota."),
    (422, swift("Unprocessable Entity", "Unable to process"), HTML, CloudError, False, "Unable to process"),
    (507, swift("Insufficient Storage", "not enough space"), HTML, CloudError, False, "not enough space"),
    # Placement
    (400, placement(400, "JSON does not validate: 'name'"), JSON, CloudError, False, "JSON does not validate: 'name'"),
    (404, placement(404, "No provider with uuid x"), JSON, NotFound, False, "No provider with uuid x"),
    (406, placement(406, "Invalid microversion: 9.99"), JSON, CloudError, False, "Invalid microversion: 9.99"),
    (409, placement(409, "generation conflict"), JSON, CloudError, True, "generation conflict"),
    # Designate
    (
        400,
        {"code": 400, "type": "invalid_object", "errors": {"errors": [{"path": ["ttl"], "message": "is less than 0"}]}},
        JSON,
        CloudError,
        False,
        "ttl: is less than 0",
    ),
    (
        409,
        {"code": 409, "type": "duplicate_zone", "message": "Duplicate Zone"},
        JSON,
        CloudError,
        True,
        "Duplicate Zone",
    ),
    (413, {"code": 413, "type": "over_quota", "message": "For zones"}, JSON, QuotaExceeded, False, "For zones"),
    (403, {"code": 403, "type": "forbidden", "request_id": "r"}, JSON, NotAllowed, False, "forbidden"),
    (
        404,
        {"code": 404, "type": "recordset_not_found", "request_id": "r"},
        JSON,
        NotFound,
        False,
        "recordset_not_found",
    ),
    # Octavia
    (
        404,
        {"faultcode": "Client", "faultstring": "Pool x not found.", "debuginfo": None},
        JSON,
        NotFound,
        False,
        "Pool x",
    ),
    (404, {"code": 404, "title": "Bad Request", "description": "Listener x no"}, JSON, NotFound, False, "Listener x"),
    (409, {"faultcode": "Client", "faultstring": "x is immutable"}, JSON, CloudError, True, "x is immutable"),
    (501, {"faultcode": "Server", "faultstring": "Provider 'a' no"}, JSON, CloudError, False, "Provider 'a' no"),
    (400, {"faultcode": "Client", "faultstring": "Bad", "debuginfo": None}, JSON, CloudError, False, "Bad"),
    (403, {"faultcode": "Client", "faultstring": "Quota has been met"}, JSON, QuotaExceeded, False, "Quota has been"),
    # what stands in front of services
    (413, nginx("413 Request Entity Too Large"), HTML, CloudError, False, "Request Entity Too Large (nginx/1.24.0)"),
    (502, nginx("502 Bad Gateway"), HTML, CloudError, True, "Bad Gateway (nginx/1.24.0)"),
    (503, APACHE, HTML, CloudError, True, "unable to service your request. (Apache/2.4.58 (Ubuntu) Server"),
    (503, HAPROXY, HTML, CloudError, True, "No server is available to handle this request."),
    (504, "stream timeout", PLAIN, CloudError, True, "stream timeout"),
    (502, "", "", CloudError, True, "Bad Gateway"),
    (429, {"message": "API rate limit exceeded"}, JSON, CloudError, True, "API rate limit exceeded"),
    (400, {"error": "invalid_request", "error_description": "No grant"}, JSON, CloudError, False, "No grant"),
    (400, [{"msg": "no name"}], "application/problem+json", CloudError, False, "msg: no name"),
    (400, '{"error": {"mess', JSON, CloudError, False, "Bad Request"),
    (400, {}, JSON, CloudError, False, "Unrecognized schema"),
]


@pytest.mark.parametrize(("status", "body", "kind", "expected", "retryable", "text"), TABLE)
def test_an_error_has_its_kind_and_the_reason_of_the_service(
    status: int, body: object, kind: str, expected: type[CloudError], retryable: bool, text: str
) -> None:
    found = refusal(status, body, kind)
    assert (type(found), found.retryable, found.status) == (expected, retryable, status)
    said = str(found).removeprefix(f"GET service/x: {status} ")
    assert text in said
    assert not any(mark in said for mark in ("<h1", "<p>", "<br", "</", '{"', "\n"))


def test_nova_asks_to_wait() -> None:
    assert refusal(413, nova("overLimit", 413, "Too many"), **{"Retry-After": "5"}).retryable
    assert not refusal(413, nova("overLimit", 413, "Too many"), **{"Retry-After": "0"}).retryable


def test_a_login_with_a_second_factor_says_so() -> None:
    body = {
        "receipt": {"methods": ["password"], "expires_at": "2026-11-25T19:00:00.000000Z", "user": {"id": "u"}},
        "required_auth_methods": [["password", "totp"]],
    }
    error = ksa.from_response(answer(401, body, **{"Openstack-Auth-Receipt": "x"}), "POST", "http://keystone/v3")
    found = translate(error, "authenticate", refused=NotAllowed)
    assert isinstance(found, NotAllowed)
    assert found.status == 401
    assert "totp" in str(found)


SIGNED = "http://u:pw-of-u@swift/v1/a/o?temp_url_sig=5f3b&temp_url_expires=9"


@pytest.mark.parametrize("kind", [JSON, HTML, PLAIN])
def test_a_reason_reveals_nothing_and_is_one_short_line(kind: str) -> None:
    long = f"line\n\x1b[31m over \u202e {SIGNED}, password s3cr3t&<; {'x ' * 5000}end"
    body = {"error": {"message": long, "code": 400}} if kind == JSON else long
    if kind == HTML:
        body = swift("Bad Request", long.replace("&", "&amp;").replace("<;", "&lt;;"))
    said = str(refusal(400, body, kind, hidden=("s3cr3t&<",)))
    assert len(said) < MOST + 100
    assert "http://swift/v1/a/o?..." in said
    assert said.endswith("end")
    assert visible(said) == said
    for secret in ("5f3b", "pw-of-u", "s3cr3t", "\x1b", "\n", "\u202e"):
        assert secret not in said


@pytest.mark.parametrize("kind", [JSON, HTML])
def test_a_secret_that_looks_like_a_tag_is_hidden(kind: str) -> None:
    text = "bad password s3cr<br>3t<i>word"
    said = str(refusal(400, keystone(400, text) if kind == JSON else text, kind, hidden=("s3cr<br>3t<i>word",)))
    assert said.endswith("bad password ********")


def test_the_schema_and_the_value_that_does_not_fit_it_are_left_out() -> None:
    text = (
        "'x' is not one of ['y']\n\nFailed validating 'enum' in schema['a']:\n    {'enum': ['y']}\n\nOn instance: 'pw'"
    )
    assert reason(400, webob("400 Bad Request", text.replace("'", "&#x27;"))) == "'x' is not one of ['y']"
    assert reason(400, placement(400, text)) == "'x' is not one of ['y']"


def test_all_reasons_of_an_answer_are_named_once() -> None:
    both = {"errors": [*placement(400, "a")["errors"], *placement(400, "b")["errors"], *placement(400, "a")["errors"]]}
    assert reason(400, both) == "a; b"


@pytest.mark.parametrize(
    ("body", "kind", "headers", "of_resource"),
    [
        (nova("itemNotFound", 404, "Volume x could not be found."), JSON, {}, True),
        (webob("404 Not Found", "No image found with ID x"), HTML, {}, True),
        (swift("Not Found", "The resource could not be found."), HTML, {"X-Trans-Id": "tx1"}, True),
        ({"faultcode": "Client", "faultstring": "Pool x not found.", "debuginfo": None}, JSON, {}, True),
        (webob("404 Not Found", "The resource could not be found."), HTML, {}, False),  # nova, glance, cinder, heat
        (neutron("HTTPNotFound", "The resource could not be found."), JSON, {}, False),
        (WERKZEUG, HTML, {}, False),
        ({"code": 404, "title": "Not Found", "description": None}, JSON, {}, False),  # octavia
    ],
)
def test_a_service_that_does_not_know_the_path_says_nothing_about_a_resource(
    body: object, kind: str, headers: dict[str, str], of_resource: bool
) -> None:
    found = refusal(404, body, kind, **headers)
    assert isinstance(found, NotFound)
    assert found.of_resource is of_resource


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (nginx("404 Not Found"), HTML),
        ("default backend - 404", PLAIN),
        ({"message": "no Route matched with those values"}, JSON),
        ("", ""),
    ],
)
def test_a_404_of_a_proxy_says_nothing_about_a_resource(body: object, kind: str) -> None:
    error = ksa.from_response(answer(404, body, kind), "DELETE", "http://service/x")
    del error.response.headers["X-Openstack-Request-Id"]
    found = translate(error, "DELETE service/x")
    assert (type(found), found.retryable) == (CloudError, True)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "body",
    [
        nova("itemNotFound", 404, "Volume x could not be found."),
        neutron("NetworkNotFound", "Network x could not be found."),
        keystone(404, "Could not find user: x."),
        heat(404, "EntityNotFound", "The Stack (x) could not be found."),
        placement(404, "No provider with uuid x"),
        {"code": 404, "type": "recordset_not_found", "request_id": "r"},
        {"faultcode": "Client", "faultstring": "Pool x not found.", "debuginfo": None},
    ],
)
def test_a_gateway_may_drop_the_headers_of_a_service(body: object) -> None:
    error = ksa.from_response(answer(404, body), "DELETE", "http://service/x")
    del error.response.headers["X-Openstack-Request-Id"]
    assert isinstance(translate(error, "DELETE service/x"), NotFound)


@pytest.mark.parametrize("kind", [PLAIN, "text/html", HTML, ""])
def test_a_secret_beyond_ascii_is_hidden_whatever_the_charset(kind: str) -> None:
    assert "hunter" not in str(refusal(400, "Invalid: hunter-é-2", kind, hidden=("hunter-é-2",)))
