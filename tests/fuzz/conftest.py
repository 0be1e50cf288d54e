"""How many examples Hypothesis tries, and the same ones in each run unless it is asked for many."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.fuzz.corpus import CLOUDS
from tests.fuzz.mutating import as_yaml
from tests.unit.conftest import empty_cloud, flavors, services, short_pauses

__all__ = ["empty_cloud", "flavors", "services", "short_pauses"]

FEW = 500
"""Examples of all trials together in CI."""
TRIALS = 30
"""Trials that share them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-examples", type=int, default=FEW, metavar="N", help=f"examples over all trials ({FEW})")


def pytest_configure(config: pytest.Config) -> None:
    examples = config.getoption("--fuzz-examples", FEW)
    settings.register_profile(
        "fuzz",
        max_examples=max(1, examples // TRIALS),
        deadline=None,  # the processor's time is judged instead
        derandomize=examples <= FEW and config.getoption("--hypothesis-seed") is None,
        database=None,
        print_blob=True,
        report_multiple_bugs=examples > FEW,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("fuzz")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that the shipped specs refer to, and a clouds.yaml whose cloud does not answer."""
    monkeypatch.chdir(tmp_path)
    for name in ("OS_AUTH_URL", "OS_CLIENT_SECURE_FILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS_CLOUD", "lab")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "clouds.yaml").write_text(as_yaml(CLOUDS))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me\n")
    return tmp_path
