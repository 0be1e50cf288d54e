"""The contenders' pins: whole, and readable for the caption."""

from __future__ import annotations

import pytest

from tests.bench import environments


@pytest.mark.parametrize(
    ("name", "package"), [("shell", "python-openstackclient"), ("ansible", "ansible"), ("ansible", "openstacksdk")]
)
def test_version_of_a_pin(name: str, package: str) -> None:
    assert environments.version(name, package)[0].isdigit()


@pytest.mark.parametrize("name", ["shell", "ansible"])
def test_everything_is_pinned(name: str) -> None:
    lines = environments.requirements(name).read_text().splitlines()
    assert [line for line in lines if not line.startswith("#") and "==" not in line] == []
