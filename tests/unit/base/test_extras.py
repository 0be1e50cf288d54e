from __future__ import annotations

from importlib import metadata

import pytest

from openstack_prep.base import extras


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("vault", "pip install 'hvac>=2.3'"),
        (
            "otel",
            "pip install 'opentelemetry-exporter-otlp-proto-http>=1.31' 'opentelemetry-sdk>=1.31'",
        ),
    ],
)
def test_the_command_names_the_packages_of_others(extra: str, command: str) -> None:
    assert extras.install(extra) == command


def test_without_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert extras.install("vault").startswith("pip install '.[vault]'")
