"""FRR with its rendered configuration."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.exposures.external_ips import files
from tests.external.conftest import Programs
from tests.unit.exposures.external_ips.declared import ALL, FORMS


def test_frr_accepts_its_configuration(programs: Programs, tmp_path: Path) -> None:
    found = [(key, text) for key, text in files(FORMS["frr"], ALL).items() if key.endswith(".conf")]
    assert found
    for key, text in found:
        (tmp_path / key).write_text(text)
        assert "line " not in programs.run("vtysh", "-C", "-f", tmp_path / key)  # line N: % Unknown command
