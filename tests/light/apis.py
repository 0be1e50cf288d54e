"""The services by name, and how each writes an error."""

from __future__ import annotations

import html
from http import HTTPStatus

from tests.light.web import Answer, Api, Refused

_NOVA = {400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 409: "conflictingRequest"}


def _title(status: int) -> str:
    return HTTPStatus(status).phrase


def _keystone(refused: Refused) -> Answer:
    error = {"code": refused.status, "message": refused.message, "title": _title(refused.status)}
    return Answer(refused.status, {"error": error})


def _nova(refused: Refused) -> Answer:
    name = _NOVA.get(refused.status, "computeFault")
    return Answer(refused.status, {name: {"code": refused.status, "message": refused.message}})


def _neutron(refused: Refused) -> Answer:
    error = {"type": refused.kind or f"HTTP{_title(refused.status)}", "message": refused.message, "detail": ""}
    return Answer(refused.status, {"NeutronError": error})


def _page(refused: Refused) -> Answer:
    title = f"{refused.status} {_title(refused.status)}"
    text = f"""<html>
 <head>
  <title>{title}</title>
 </head>
 <body>
  <h1>{title}</h1>
  {html.escape(refused.message)}<br /><br />
 </body>
</html>"""
    return Answer(refused.status, text.encode(), type=b"text/html; charset=UTF-8")


IDENTITY = Api("identity", "keystone", _keystone)
COMPUTE = Api("compute", "nova", _nova)
NETWORK = Api("network", "neutron", _neutron)
IMAGE = Api("image", "glance", _page)
VOLUME = Api("block-storage", "cinder", _nova)
ORCHESTRATION = Api("orchestration", "heat", _nova)
OBJECT_STORE = Api("object-store", "swift-proxy", _page)

ALL = (IDENTITY, COMPUTE, NETWORK, IMAGE, VOLUME, ORCHESTRATION, OBJECT_STORE)
