"""What nodes of the shipped templates do by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TEMPLATES = Path(__file__).parents[3] / "heat_templates"


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


@pytest.mark.parametrize("name", ["rke2-node.yaml", "rke2-cluster.yaml", "rke-cluster.yaml"])
def test_systemd_executes_nothing_that_selinux_refuses(name: str) -> None:
    """Files of /var/lib have the type var_lib_t, which systemd may read, and not execute."""
    lines = [
        line.strip() for text in texts(yaml.safe_load((TEMPLATES / name).read_text())) for line in text.split("\n")
    ]
    programs = [line.partition("=")[2].split()[0] for line in lines if line.startswith("ExecStart=")]
    assert all(each.startswith(("/bin/", "/usr/bin/")) for each in programs)
    assert bool(programs) == (name == "rke2-node.yaml")


def test_a_server_has_no_config_drive_unless_it_is_asked_for() -> None:
    """False differs from nothing for Heat, which would replace each server that exists."""
    node = yaml.safe_load((TEMPLATES / "rke2-node.yaml").read_text())
    assert node["resources"]["server"]["properties"]["config_drive"] == {"if": ["with_drive", True]}
