"""Spans and durations of HTTP requests.

Source: OpenTelemetry's semantic conventions for HTTP spans and metrics, client side; of the address no query, no user
and no fragment are recorded.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.trace import SpanKind
from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter

from openstack_prep.tracing.telemetry import Telemetry

METHODS = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
PORTS = {"http": 80, "https": 443}
LOGIN = "/auth/tokens"
"""A request to another service may need a login first."""


class TracedAdapter(BaseAdapter):
    """A transport adapter of requests that records what another one sends."""

    def __init__(self, inner: BaseAdapter, telemetry: Telemetry) -> None:
        super().__init__()
        self._inner, self._telemetry = inner, telemetry

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """Send a request as the other adapter does."""
        attributes = self._attributes(request)
        method = attributes["http.request.method"]
        name = "HTTP" if method == "_OTHER" else method
        measured = {key: value for key, value in attributes.items() if key != "url.full"}
        started = time.monotonic()
        try:
            with self._telemetry.span(name, attributes, SpanKind.CLIENT) as span:
                response = self._inner.send(request, *args, **options)
                measured["http.response.status_code"] = response.status_code
                span.set_attribute("http.response.status_code", response.status_code)
                if response.status_code >= 400:
                    measured["error.type"] = str(response.status_code)
                    self._telemetry.fail(span, str(response.status_code))
                return response
        except Exception as error:
            measured["error.type"] = type(error).__name__
            raise
        finally:
            self._telemetry.duration.record(time.monotonic() - started, measured)

    def _attributes(self, request: PreparedRequest) -> dict[str, Any]:
        url = urlsplit(str(request.url))
        host, port = url.hostname or "", url.port or PORTS.get(url.scheme, 0)
        service = "identity" if url.path.endswith(LOGIN) else self._telemetry.of_service.get()
        return {
            "http.request.method": request.method if request.method in METHODS else "_OTHER",
            "server.address": host,
            "server.port": port,
            "url.full": f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}{url.path}",
        } | ({"openstack_prep.service": service} if service else {})

    def close(self) -> None:
        """Close the other adapter."""
        self._inner.close()
