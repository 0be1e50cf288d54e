"""Our library as a program uses it: from reading the spec to the report, without the interpreter's start.

python -m tests.bench.inside SPEC    prints the seconds
"""

from __future__ import annotations

import sys
import time

import openstack.connection  # noqa: F401 - otherwise imported at first use, as is pydantic
import pydantic  # noqa: F401

import openstack_prep as prep

if __name__ == "__main__":
    started = time.monotonic()
    spec = prep.load_spec(sys.argv[1])
    report = prep.apply(prep.connect(spec.clouds.admin), spec)
    report.raise_for_failures()
    print(time.monotonic() - started)
