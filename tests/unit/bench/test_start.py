from __future__ import annotations

import sys

import pytest

from tests.bench import start
from tests.bench.scenario import BenchError
from tests.bench.start import Row


def test_rows_and_goals() -> None:
    runs = {Row.VERSION: [0.09, 0.08, 0.2], Row.HELP: [0.11, 0.12, 0.13], Row.PYTHON: [0.01, 0.02, 0.03]}
    lines = start.render(runs, "caption").splitlines()
    assert lines[0] == "caption"
    assert lines[4:7] == [
        "| `openstack-prep --version` | 0.090 | 0.080 - 0.200 |",
        "| `openstack-prep --help` | 0.120 | 0.110 - 0.130 |",
        "| `python -c pass` | 0.020 | 0.010 - 0.030 |",
    ]
    assert lines[-2:] == [
        "| CPU of `openstack-prep --version` | at most 0.1 s | 0.090 s | yes |",
        "| CPU of `openstack-prep --help` | at most 0.1 s | 0.120 s | no |",
    ]


def test_the_cpu_of_the_command_alone_is_measured() -> None:
    busy = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    assert start._cpu(busy) >= 0.3
    with pytest.raises(BenchError, match="exit code 3"):
        start._cpu([sys.executable, "-c", "raise SystemExit(3)"])
