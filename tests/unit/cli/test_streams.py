"""Commands whose standard streams are closed end as they do with open ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("openstack-prep")
CLOSED = (">&-", "<&-", "2>&-", ">&- <&- 2>&-")


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    ("words", "code"), [("validate spec.yaml", 0), ("apply spec.yaml", 2), ("explain plan.refused", 0), ("nonsense", 2)]
)
def test_a_closed_stream_changes_no_exit_code(words: str, code: int, closed: str, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("name: lab\nproject: {name: lab}\n")
    script = f"{COMMAND} {words} {closed}"
    environment = {"PATH": "/bin:/usr/bin", "HOME": str(tmp_path)}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "internal" not in ran.stderr
    assert bool(ran.stdout) == (code == 0 and not closed.startswith(">"))
