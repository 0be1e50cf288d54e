"""Spans and metrics by OpenTelemetry, for who asks for them: without that, nothing is imported and nothing is done.

Nothing here knows more than names of commands, of kinds and of services, and addresses without queries: no secret, no
body and no header becomes an attribute.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    import requests

    from openstack_prep.tracing.telemetry import Telemetry

EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")
ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)

_used: Telemetry | None = None


def is_wanted() -> bool:
    """Whether the environment asks for spans or metrics.

    Source: OpenTelemetry's specification, environment variables for the configuration of the SDK.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    chosen = [os.environ.get(exporter, "") for exporter in EXPORTERS]
    return any(each not in ("", "none") for each in chosen) or (
        any(map(os.environ.get, ENDPOINTS)) and chosen != ["none", "none"]
    )


def of_command(name: str, run: Callable[[], int]) -> int:
    """Run a command, and return its exit code; trace it if the environment asks, and the extra [otel] is installed."""
    global _used
    if not is_wanted():
        return run()
    try:
        from openstack_prep.tracing.telemetry import configured  # an extra

        _used = configured()
    except ImportError:
        _log().debug("OTEL_* is set, but the extra [otel] is not installed", exc_info=True)
        return run()
    except Exception as error:  # noqa: BLE001 - of the SDK, such as for a delay below 0
        _warn("no spans and durations are sent", error)
        return run()
    try:
        with _used.command(name) as end:
            code = run()
            end(code)
            return code
    finally:
        used, _used = _used, None
        _close(used)


def _close(telemetry: Telemetry) -> None:
    """Send what has not been sent; the result of the command stays whatever happens here."""
    try:
        telemetry.close()
    except Exception as error:  # noqa: BLE001 - of a provider or an exporter of others
        _warn("the last spans and durations were not sent", error)


def _warn(what: str, error: Exception) -> None:
    _log().warning("%s: %s: %s", what, type(error).__name__, error)


def _log() -> logging.Logger:
    import logging  # not needed for --version and --help

    return logging.getLogger(__name__)


@contextlib.contextmanager
def use(telemetry: Telemetry) -> Iterator[None]:
    """Trace what happens meanwhile with providers of a program's own."""
    global _used
    before, _used = _used, telemetry
    try:
        yield
    finally:
        _used = before


def step(action: str, kind: str, resource: str) -> contextlib.AbstractContextManager[object]:
    """Trace a step of a plan."""
    attributes: Mapping[str, str] = {"openstack_prep.action": action, "openstack_prep.resource": resource}
    return _used.span(f"{action} {kind}", attributes) if _used else contextlib.nullcontext()


def of_service(name: str) -> contextlib.AbstractContextManager[object]:
    """Note for which service the requests of this thread are."""
    return _used.service(name) if _used else contextlib.nullcontext()


def trace_requests(session: requests.Session) -> None:
    """Trace the requests of a session, each attempt of keystoneauth's as one."""
    if _used:
        _used.trace(session)
