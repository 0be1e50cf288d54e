from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.openshift.check.preflight import SKIP, fips
from openstack_prep.openshift.install_config import InstallConfigFields

CLUSTER = {"cluster_name": "ocp", "base_domain": "example.com", "cloud": "lab"}


def codes(folder: Path, text: str | None, release: str = "4.18", *, wanted: bool | None = True) -> list[str]:
    """Return the codes on a host whose kernel says ``text``; None: it has no such file."""
    file = folder / "fips_enabled"
    if text is not None:
        file.write_text(text)
    found = list(fips(InstallConfigFields(release=release, fips=wanted, **CLUSTER), file))
    assert all((each.status, each.where) == ("warning", "fips") for each in found)
    return [each.code for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1\n", []), ("1", []), ("0\n", ["host.no-fips"]), ("", ["host.no-fips"]), (None, ["host.no-fips"])],
)
def test_a_cluster_in_fips_mode_needs_a_host_in_fips_mode(
    tmp_path: Path, text: str | None, expected: list[str]
) -> None:
    assert codes(tmp_path, text) == expected
    assert codes(tmp_path, text, wanted=None) == codes(tmp_path, text, wanted=False) == []


@pytest.mark.parametrize(("release", "number"), [("4.14", 0), ("4.15", 1), ("4.16", 1), ("5.0", 1)])
def test_since_4_15(tmp_path: Path, release: str, number: int) -> None:
    assert len(codes(tmp_path, "0\n", release)) == number


def test_the_variable_of_the_installer_silences_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SKIP, "1")
    assert codes(tmp_path, "0\n") == []
