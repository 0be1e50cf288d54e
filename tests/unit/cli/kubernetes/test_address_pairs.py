"""Options of ``address-pairs sync`` that exclude each other, and a cluster that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.cli.main import main
from tests.unit.kubernetes.recorded_api import Recorded, serve
from tests.unit.texts import contains

PORTS = ("--security-group", "rke", "--within", "10.1.0.200-10.1.0.211")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--watch",), "--watch requires --kubeconfig"),
        (("--context", "c"), "--context requires --kubeconfig"),
        (("--kubeconfig", "k", "--services", "-"), "--kubeconfig and --services exclude each other"),
        (("--kubeconfig", "k", "--watch", "--dry-run"), "remove --dry-run and --format"),
        (("--kubeconfig", "k", "--watch", "--format", "json"), "remove --dry-run and --format"),
        (("--kubeconfig", "none"), "none: cannot be read: No such file or directory"),
        (("--kubeconfig", "none", "--watch"), "none: cannot be read: No such file or directory"),
    ],
)
@pytest.mark.usefixtures("clouds_yaml")
def test_wrong_options(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    assert main(["--os-cloud", "lab", "address-pairs", "sync", *PORTS, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("clouds_yaml")
def test_a_cluster_that_refuses_ends_a_watch_before_its_first_sync(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with serve(Recorded(lists=[(403, "403.json")])) as recorded:
        kubeconfig = str(recorded.kubeconfig(tmp_path / "kubeconfig"))
        assert main(["--os-cloud", "lab", "address-pairs", "sync", *PORTS, "--kubeconfig", kubeconfig, "--watch"]) == 1
    assert contains(capsys.readouterr().err, "services", "namespaces", "[kubernetes.api]")


def test_convert_without_any_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exposures", "convert", "--to", "metallb"]) == 2
    assert contains(capsys.readouterr().err, "convert", "--kubeconfig", "[config.invalid]")


def test_convert_from_a_cluster_is_convert_from_its_list(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["exposures", "convert", "--to", "metallb"]
    with serve(Recorded()) as recorded:
        assert main([*words, "--kubeconfig", str(recorded.kubeconfig(tmp_path / "kubeconfig"))]) == 0
    shown = capsys.readouterr().out
    listed = Path(__file__).parents[2] / "kubernetes" / "data" / "api" / "services.json"
    assert main([*words, str(listed)]) == 0
    assert capsys.readouterr().out == shown
    assert "shop/old" in shown
    assert "marker-of-a-secret" not in shown
