"""Files of clouds.yaml that hide one another: every client reads one alone, the first that exists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from openstack_prep.cloud import clouds_yaml, entries
from tests.unit.texts import contains

ADMIN = {"auth": {"auth_url": "http://keystone/v3"}}
OURS = {**ADMIN, "openstack_prep": "ocp4"}


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The places where clients look, of which the second one has the administrator's entry."""
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE", raising=False)
    monkeypatch.delenv("OS_CLOUD", raising=False)
    found = [tmp_path / folder / "clouds.yaml" for folder in ("here", "home", "etc")]
    for each in found:
        each.parent.mkdir()
    clouds_yaml.put(found[1], "admin", ADMIN)
    return found


def hidden(path: Path, usual: list[Path], named: Path | None = None, entry: str = "admin") -> str | None:
    return entries.hidden_by(path, entry, named, list(map(str, usual)))


def test_a_new_file_hides_those_after_it(usual: list[Path], tmp_path: Path) -> None:
    here, home, etc = usual
    assert hidden(here, usual) == str(home)
    (tmp_path / "link").symlink_to("here")
    assert hidden(tmp_path / "link" / "clouds.yaml", usual) == str(home)
    for path in (etc, here.parent / "ocp4" / "clouds.yaml", here.with_name("other.yaml"), home):
        assert hidden(path, usual) is None
    assert hidden(here, usual, entry="envvars") is None  # of OS_* variables: no file is in use
    assert hidden(here, usual, named=home) is None  # OS_CLIENT_CONFIG_FILE
    clouds_yaml.put(here, "admin", ADMIN)
    assert hidden(here, usual) is None  # it is the file in use


def test_an_entry_that_is_missing_from_our_file_is_found_in_the_hidden_one(usual: list[Path]) -> None:
    here, home, _ = usual
    clouds_yaml.put(here, "ocp", OURS)
    said = entries.explain("admin", "not found", None, list(map(str, usual)))
    assert contains(said, here, f"openstack-prep for spec ocp4, has the entries ocp and hides {home}")
    command = said.rpartition("; ")[2].partition(", ")[0]
    assert subprocess.check_output(["sh", "-c", f"{command}; printenv OS_CLIENT_CONFIG_FILE"], text=True) == f"{home}\n"
    said = entries.explain("ocp", "not found", home, list(map(str, usual)))
    assert said.endswith("unset OS_CLIENT_CONFIG_FILE")
    said = entries.explain("nowhere", "not found", None, list(map(str, usual)))
    assert "hides" not in said
