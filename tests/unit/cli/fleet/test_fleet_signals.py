"""Signals while a cloud does not answer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.texts import Wording

COMMAND = str(Path(sys.executable).with_name("openstack-prep"))
FLEET = """\
name: sizes
targets: [{name: a, spec: spec.yaml, cloud: silent}]
"""
SPEC = """\
name: a
flavors: [{name: a, vcpus: 1, ram: 1GiB, disk: 1}]
"""
CLOUDS = """\
clouds:
  silent:
    auth: {{auth_url: "http://127.0.0.1:{port}/v3", username: a, password: b, project_name: c,
           user_domain_name: Default, project_domain_name: Default}}
"""


@pytest.mark.parametrize("words", [["plan"], ["audit"], ["export", "--output", "out"], ["apply"]])
def test_a_second_signal_ends_what_only_reads_at_once(tmp_path: Path, words: list[str], wording: Wording) -> None:
    with socket.create_server(("127.0.0.1", 0)) as keystone:
        keystone.settimeout(30)
        clouds = CLOUDS.format(port=keystone.getsockname()[1])
        for name, text in {"fleet.yaml": FLEET, "spec.yaml": SPEC, "clouds.yaml": clouds}.items():
            (tmp_path / name).write_text(text)
        environment = os.environ | {"HOME": str(tmp_path), "OS_CLIENT_CONFIG_FILE": "clouds.yaml"}
        process = subprocess.Popen(
            [COMMAND, "fleet", *words, "fleet.yaml"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout
        with keystone.accept()[0]:  # the login, which nobody answers
            process.send_signal(signal.SIGINT)
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=10)
    wording(first)
    assert "exited immediately" in rest
    assert process.returncode == 130
