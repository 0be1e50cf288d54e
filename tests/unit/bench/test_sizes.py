"""Specs of a size, and whether what they take grows with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from openstack_prep.spec import load_spec
from tests.bench.sizes import RESOURCES, Runs, Taken, render, spec_of
from tests.unit.texts import contains


@pytest.mark.parametrize("size", RESOURCES)
def test_a_spec_has_as_many_resources_as_it_should(tmp_path: Path, size: int) -> None:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec_of(size)))
    assert len(load_spec(tmp_path / "spec.yaml").resources) == size


def test_a_square_is_seen() -> None:
    def taken(cpu: float) -> Taken:
        return Taken(requests=20, cpu=cpu, memory=2**27, seconds=2 * cpu)

    specs: Runs = {"plan": {100: taken(1.0), 500: taken(1.4), 1500: taken(2.4)}}
    ports: Runs = {"sync, nothing to do": {500: taken(1.0), 1000: taken(1.5), 2000: taken(4.5)}}
    text = render((specs, ports), "On two cores.")
    assert "| `plan` | 1500 | 20 | 2.40 | 128 | 4.8 | 1.00 |" in text
    assert contains(text, "| `sync", "| 2000 | 20 | 4.50 | 128 | 9.0 | 3.00 |")
    assert contains(text, "| CPU", "1.25 | 1.00 | yes |")
    assert contains(text, "| CPU", "1.25 | 3.00 | no |")
