"""The providers of spans and metrics, and what is recorded.

Source: OpenTelemetry's semantic conventions for HTTP spans and metrics, client side; of the address no query, no user
and no fragment are recorded.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from opentelemetry.context import Context, get_current
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, TracerProvider, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter

from openstack_prep.version import __version__

E = TypeVar("E")

NAME = "openstack-prep"
PROTOCOL = "http/protobuf"
DURATION = "http.client.request.duration"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Source: OpenTelemetry's semantic conventions for HTTP metrics."""
PATIENCE = 3.0  # seconds for a collector that does not answer, unless OTEL_EXPORTER_OTLP_TIMEOUT says more

_log = logging.getLogger(__name__)


class Telemetry:
    """Where spans and metrics go."""

    def __init__(self, tracers: TracerProvider, meters: MeterProvider) -> None:
        self._providers = (tracers, meters)
        self._tracer = tracers.get_tracer(NAME, __version__)
        self.duration = meters.get_meter(NAME, __version__).create_histogram(
            DURATION, "s", "Duration of HTTP client requests.", explicit_bucket_boundaries_advisory=BOUNDS
        )
        self.of_service: ContextVar[str] = ContextVar("service", default="")
        self._root: Context | None = None

    def trace(self, session: Session) -> None:
        """Trace the requests of a session."""
        for prefix, adapter in session.adapters.items():
            if not isinstance(adapter, TracedAdapter):
                session.adapters[prefix] = TracedAdapter(adapter, self)

    @contextlib.contextmanager
    def command(self, name: str) -> Iterator[Callable[[int], None]]:
        """Record a command, within the span that the environment names by TRACEPARENT, as pipelines set it.

        Call what this yields with the exit code.
        """
        carrier = {key.lower(): os.environ[key] for key in ("TRACEPARENT", "TRACESTATE") if key in os.environ}
        self._root = TraceContextTextMapPropagator().extract(carrier, Context())
        with self.span(" ".join((NAME, name)), {"process.executable.name": NAME}) as span:
            self._root = get_current()

            def end(code: int) -> None:
                span.set_attribute("process.exit.code", code)
                if code:
                    self.fail(span, str(code))

            yield end

    @contextlib.contextmanager
    def span(self, name: str, attributes: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL) -> Iterator[Span]:
        """Record what happens meanwhile; of an error only its class, because a text may hold anything."""
        inner = get_current_span() is not INVALID_SPAN  # threads of a pool begin without a span
        with self._tracer.start_as_current_span(
            name,
            None if inner else self._root,
            kind,
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                self.fail(span, type(error).__name__)
                raise

    @staticmethod
    def fail(span: Span, why: str) -> None:
        """Record that it failed."""
        span.set_attribute("error.type", why)
        span.set_status(Status(StatusCode.ERROR))

    @contextlib.contextmanager
    def service(self, name: str) -> Iterator[None]:
        """Note for which service the requests of this thread are."""
        token = self.of_service.set(name)
        try:
            yield
        finally:
            self.of_service.reset(token)

    def close(self) -> None:
        """Send what has not been sent."""
        with contextlib.ExitStack() as stack:  # a failure of one provider does not stop the other
            for provider in self._providers:
                stack.callback(provider.shutdown)  # type: ignore[union-attr] # those that configured() makes


def configured() -> Telemetry:
    """Return what the environment asks for; raises ImportError without a package of the extra [otel]."""
    _log_failures()
    name = os.environ.get("OTEL_SERVICE_NAME", NAME)
    resource = Resource.create({"service.name": name, "service.version": __version__})
    tracers = SdkTracerProvider(resource=resource, shutdown_on_exit=False)
    for spans in _exporters("TRACES", ConsoleSpanExporter, _otlp_spans):
        tracers.add_span_processor(BatchSpanProcessor(spans))
    metrics = _exporters("METRICS", ConsoleMetricExporter, _otlp_metrics)
    readers = [PeriodicExportingMetricReader(metric) for metric in metrics]
    return Telemetry(tracers, SdkMeterProvider(readers, resource, shutdown_on_exit=False))


def _log_failures() -> None:
    """Have a collector that does not answer named like other notes, once, and not at each attempt.

    A warning of the SDK may repeat OTEL_EXPORTER_OTLP_HEADERS, which may hold a key, also with --debug.
    """
    for exporter in ("trace_exporter", "metric_exporter"):
        logging.getLogger(f"opentelemetry.exporter.otlp.proto.http.{exporter}").addFilter(_without_logins)
    exporters = logging.getLogger("opentelemetry")
    exporters.handlers[:] = logging.getLogger("openstack_prep").handlers
    exporters.propagate = not exporters.handlers  # --debug has no handlers here, but at the root
    exporters.setLevel(logging.ERROR)


def _without_logins(record: logging.LogRecord) -> bool:
    """Hide what the exporter sends to log in: the status line of a collector may repeat it."""
    given = {name: value for name, value in os.environ.items() if name.startswith("OTEL_EXPORTER_OTLP_")}
    headers = ",".join(value for name, value in given.items() if name.endswith("_HEADERS")).split(",")
    found = [word for each in headers for word in unquote(each.partition("=")[2]).split()]
    for url in (urlsplit(value) for name, value in given.items() if name.endswith("_ENDPOINT")):
        if url.password:
            login = f"{unquote(url.username or '')}:{unquote(url.password)}"
            found += [unquote(url.password), base64.b64encode(login.encode()).decode()]
    text = record.getMessage()
    for word in sorted(found, key=len, reverse=True):
        text = text.replace(word, "********")
    record.msg, record.args = text, ()
    return True


def _otlp_spans(timeout: float | None) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # unless another is chosen

    return OTLPSpanExporter(timeout=timeout)


def _otlp_metrics(timeout: float | None) -> MetricExporter:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # as above

    return OTLPMetricExporter(timeout=timeout)


def _exporters(signal: str, console: Callable[..., E], otlp: Callable[[float | None], E]) -> list[E]:
    """Return the exporters of a signal: those of its variable, or otlp if an endpoint is set."""
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    default = "otlp" if any(map(os.environ.get, endpoints)) else "none"
    found: list[E] = []
    for name in (os.environ.get(f"OTEL_{signal}_EXPORTER") or default).split(","):
        if name == "console":
            found.append(console(out=sys.stderr))  # standard output is for results
        elif name == "otlp" and _first(signal, "PROTOCOL") in ("", PROTOCOL):
            found.append(otlp(None if _first(signal, "TIMEOUT") else PATIENCE))
        elif name != "none":
            by = f" by {_first(signal, 'PROTOCOL')}" if name == "otlp" else ""
            fix = f"use otlp by {PROTOCOL}, or console"
            _log.warning("OTEL_%s_EXPORTER: %s%s is not supported; %s", signal, name, by, fix)
    return found


def _first(signal: str, setting: str) -> str:
    """Return a setting of the OTLP exporter, that of the signal before that of all."""
    names = (f"OTEL_EXPORTER_OTLP_{signal}_{setting}", f"OTEL_EXPORTER_OTLP_{setting}")
    return next(filter(None, map(os.environ.get, names)), "")


# --- spans and durations of HTTP requests -----------------------------------------------

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
