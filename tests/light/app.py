"""The ASGI application: which cloud and service a port is, who asks, how long it takes, and what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson

from tests.light import neutron, services
from tests.light.apis import ALL
from tests.light.state import Cloud, Counts
from tests.light.web import Answer, Api, Json, Receive, Refused, Request, Route, parsed

Send = Callable[[Json], Awaitable[None]]
REGISTERED = (neutron, services)
UNAUTHORIZED = Refused(401, "The request you have made requires authentication.")


class App:
    """All clouds of a process; each service has a port of its own."""

    def __init__(self, clouds: list[Cloud]) -> None:
        self._ports = {cloud.layout.port(api.process): (cloud, api) for cloud in clouds for api in ALL}
        self._number = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        cloud, api = self._ports[scope["server"][1]]
        method, path = scope["method"], scope["raw_path"].decode("latin-1")
        if path in CONTROL:
            await _send(send, method, CONTROL[path](cloud, method, await _body(receive)), ())
            return
        cloud.pending += 1
        try:
            answer = await self._answer(cloud, api, method, path, scope, receive)
        finally:
            cloud.pending -= 1
        self._number += 1
        request_id = b"req-%08x-0000-4000-8000-000000000000" % self._number
        await _send(send, method, answer, ((b"x-openstack-request-id", request_id),))

    async def _answer(self, cloud: Cloud, api: Api, method: str, path: str, scope: Any, receive: Receive) -> Answer:
        counts = cloud.counts
        counts.at_once = max(counts.at_once, cloud.pending)
        route, ids = api.find(method, path)
        if route is None:
            counts.unknown[api.name, f"{method} {path}"] += 1
        else:
            counts.known[api.name, route.label] += 1
        if cloud.latency:
            await asyncio.sleep(cloud.latency)
        try:
            answer = await _handled(cloud, api, route, ids, scope, receive)
        except Refused as refused:
            answer = api.error(refused)
        counts.statuses[answer.status] += 1
        return answer


async def _handled(cloud: Cloud, api: Api, route: Route | None, ids: list[str], scope: Any, receive: Receive) -> Answer:
    method, path, query_text = scope["method"], scope["raw_path"].decode("latin-1"), scope["query_string"].decode()
    headers = dict(scope["headers"])
    asked = Request(cloud, method, path, query_text, headers, parsed(query_text), cloud.layout.url(api.process))
    asked.token = cloud.tokens.get(headers.get(b"x-auth-token", b"").decode("latin-1"))
    if route is None:
        await _body(receive)
        raise Refused(404, f"this stand-in knows no {method} {path}")
    if asked.token is None and not route.public:
        raise UNAUTHORIZED
    if route.admin:
        asked.only_admin()
    if route.streams:
        return await cast("Awaitable[Answer]", route.handler(asked, receive, *ids))
    if method in ("POST", "PUT", "PATCH"):
        asked.body = await _body(receive)
    return cast("Answer", route.handler(asked, *ids))


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _send(send: Send, method: str, answer: Answer, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    body = answer.body
    content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    all_headers = [*headers, *answer.headers]
    if answer.status != 204:
        all_headers += [(b"content-type", answer.type), (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": answer.status, "headers": all_headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else content})


def _count(cloud: Cloud, method: str, _body: bytes) -> Answer:
    """Answer what was counted; POST begins again from zero."""
    report = cloud.counts.report()
    if method == "POST":
        cloud.counts = Counts()
    return Answer(200, report | {"region": cloud.region, "latency_ms": cloud.latency * 1000})


def _latency(cloud: Cloud, _method: str, body: bytes) -> Answer:
    """Set the latency to a number of milliseconds, the body."""
    try:
        cloud.latency = float(body) / 1000
    except ValueError:
        return Answer(400, {"error": "the body is the number of milliseconds"})
    return Answer(200, {"latency_ms": cloud.latency * 1000})


CONTROL = {"/_count": _count, "/_latency": _latency}
