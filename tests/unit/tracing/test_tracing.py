"""Spans and durations: what is recorded, and that nothing is recorded without somebody who asks."""

from __future__ import annotations

import base64
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import pytest
import requests
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from openstack_prep import tracing
from openstack_prep.cli.main import main
from openstack_prep.tracing.telemetry import Telemetry
from tests.unit.tracing.receiver import Receiver, receiver

__all__ = ["receiver"]

SPEC = """\
name: lab
clouds: {admin: lab}
flavors:
  - {name: master, vcpus: 4, ram: 16GiB, disk: 25}
"""


@pytest.fixture(autouse=True)
def without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*tracing.EXPORTERS, *tracing.ENDPOINTS, "OTEL_SDK_DISABLED", "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of what a test does."""
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with tracing.use(Telemetry(tracers, MeterProvider([InMemoryMetricReader()]))):
        yield exporter


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [each for each in spans.get_finished_spans() if each.name == name]
    return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def traced() -> requests.Session:
    session = requests.Session()
    tracing.trace_requests(session)
    tracing.trace_requests(session)  # as for two connections that share it
    return session


def test_a_request_has_the_attributes_of_the_conventions(spans: InMemorySpanExporter, receiver: Receiver) -> None:
    port = receiver.server.server_port
    with tracing.of_service("object-store"):
        traced().get(f"http://user:s3cret@127.0.0.1:{port}/v1/a%20b?temp_url_sig=s3cret#s3cret")
    span = named(spans, "GET")
    assert span.kind is SpanKind.CLIENT
    assert attributes(span) == {
        "http.request.method": "GET",
        "server.address": "127.0.0.1",
        "server.port": port,
        "url.full": f"{receiver.url}/v1/a%20b",
        "openstack_prep.service": "object-store",
        "http.response.status_code": 404,
        "error.type": "404",
    }
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


def test_a_request_without_an_answer_is_an_error(spans: InMemorySpanExporter) -> None:
    with pytest.raises(requests.ConnectionError):
        traced().request("BREW", "http://127.0.0.1:1/v3/auth/tokens")
    span = named(spans, "HTTP")
    assert attributes(span)["http.request.method"] == "_OTHER"
    assert attributes(span)["openstack_prep.service"] == "identity"
    assert attributes(span)["error.type"] == "ConnectionError"
    assert span.events == ()


def test_steps_are_named_by_action_and_kind(
    spans: InMemorySpanExporter, clouds_yaml: Path, flavors: list[dict[str, Any]]
) -> None:
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    assert main(["apply", "--yes", "spec.yaml"]) == 0
    span = named(spans, "create flavor")
    assert attributes(span) == {"openstack_prep.action": "create", "openstack_prep.resource": "flavor/master"}
    assert span.status.status_code is StatusCode.UNSET


def test_threads_continue_the_span_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracers, MeterProvider())
    monkeypatch.setenv("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-01")

    def work() -> None:
        with tracing.step("create", "network", "network/nodes"):
            """Nothing."""

    def fail() -> None:
        with tracing.use(telemetry), telemetry.command("apply"), ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()
            raise ValueError("secret")

    with pytest.raises(ValueError, match="secret"):
        fail()
    command, step = named(exporter, "openstack-prep apply"), named(exporter, "create network")
    assert command.context is not None
    assert command.parent is not None
    assert step.parent is not None
    assert f"{command.parent.span_id:016x}" == "b" * 16
    assert f"{command.context.trace_id:032x}" == "a" * 32
    assert step.parent.span_id == command.context.span_id
    assert attributes(command)["error.type"] == "ValueError"
    assert "secret" not in command.to_json()


def test_the_exit_code_is_recorded() -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with Telemetry(tracers, MeterProvider()).command("audit") as end:
        end(1)
    found = attributes(named(exporter, "openstack-prep audit"))
    assert found == {"process.executable.name": "openstack-prep", "process.exit.code": 1, "error.type": "1"}


def test_a_collector_receives_what_the_environment_asks_for(
    receiver: Receiver, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clouds_yaml.write_text(clouds_yaml.read_text().replace("http://keystone/v3", f"{receiver.url}/identity"))
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=blue")
    assert main(["plan", "spec.yaml"]) == 1
    (root,) = [each for each in receiver.spans if each.name == "openstack-prep plan"]
    requested = [each for each in receiver.spans if each.name in ("GET", "POST")]
    assert requested
    assert {each.parent_span_id for each in requested} == {root.span_id}
    assert receiver.resources[0]["service.name"] == "openstack-prep"
    assert receiver.resources[0]["team"] == "blue"
    assert {each.name for each in receiver.durations} == {"http.client.request.duration"}
    points = receiver.durations[0].histogram.data_points
    assert sum(each.count for each in points) == len(requested)
    assert capfd.readouterr().err.count("\n") == 1  # the error of the plan


def test_a_collector_that_is_down_costs_seconds_and_not_the_run(
    clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    assert main(["validate", "spec.yaml"]) == 0
    assert capfd.readouterr().out == "spec.yaml: valid, 1 resources\n"


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("--color=auto", "ENDPOINT", "http://me:pass/w0rd@127.0.0.1:1"),
        ("--debug", "HEADERS", "Authorization: Bearer pass-w0rd"),
    ],
)
def test_a_secret_of_the_collector_is_not_repeated(
    clouds_yaml: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    option: str,
    name: str,
    value: str,
) -> None:
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    caplog.set_level(logging.DEBUG, "opentelemetry")
    monkeypatch.setattr(logging.getLogger("openstack_prep"), "handlers", [])  # as a process has them
    for variable, given in {"ENDPOINT": "http://127.0.0.1:1", "TIMEOUT": "0.2", name: value}.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{variable}", given)
    assert main([option, "validate", "spec.yaml"]) == 0
    assert "pass" not in capfd.readouterr().err + caplog.text


class Repeating(BaseHTTPRequestHandler):
    """A collector that refuses a login, and repeats it in its status line."""

    def do_POST(self) -> None:
        self.send_response(401, f"Bad {self.headers.get('Authorization')} {self.headers.get('api-key')}")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.mark.parametrize("option", ["--color=auto", "--debug"])
@pytest.mark.parametrize("login", ["me:pass-w0rd@", ""])
def test_a_collector_that_repeats_a_login(
    clouds_yaml: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    option: str,
    login: str,
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Repeating)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    monkeypatch.setattr(logging.getLogger("openstack_prep"), "handlers", [])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{login}127.0.0.1:{server.server_port}")
    headers = "api-key=pass-k3y" if login else "api-key=pass-k3y,authorization=Bearer%20pass-t0k"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    assert main([option, "validate", "spec.yaml"]) == 0
    server.shutdown()
    server.server_close()
    err = capfd.readouterr().err + caplog.text
    assert "401" in err
    for word in ("pass", base64.b64encode(b"me:pass-w0rd").decode()):
        assert word not in err


def test_an_exporter_that_is_not_supported_is_named(
    clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    assert main(["validate", "spec.yaml"]) == 0
    assert "zipkin" in capfd.readouterr().err


def test_a_failure_at_the_end_does_not_replace_the_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> NoReturn:
        raise RuntimeError("no memory")

    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setattr(TracerProvider, "shutdown", fail)
    assert tracing.of_command("apply", lambda: 1) == 1
    assert "no memory" in caplog.text


def test_a_setting_that_an_exporter_refuses_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    assert tracing.of_command("apply", lambda: 0) == 0
    assert "positive" in caplog.text


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "x", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, False),
    ],
)
def test_only_the_environment_turns_it_on(
    environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tracing.is_wanted() is wanted


def run_in_a_process(script: str, clouds_yaml: Path) -> str:
    (clouds_yaml.parent / "spec.yaml").write_text(SPEC)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


VALIDATE = "from openstack_prep.cli.main import main; assert main(['validate', 'spec.yaml']) == 0"


def test_nothing_is_imported_unless_somebody_asks(clouds_yaml: Path) -> None:
    printed = run_in_a_process(f"import sys\n{VALIDATE}\nprint('opentelemetry' in sys.modules)", clouds_yaml)
    assert printed.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("exporter", "missing"), [("console", "opentelemetry"), ("otlp", "opentelemetry.exporter.otlp.proto.http")]
)
def test_without_a_package_of_the_extra_a_command_runs_as_always(
    exporter: str, missing: str, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", exporter)
    missing = f"import sys; sys.modules[{missing!r}] = None"
    assert run_in_a_process(f"{missing}\n{VALIDATE}", clouds_yaml) == "spec.yaml: valid, 1 resources\n"
