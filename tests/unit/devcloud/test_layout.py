from __future__ import annotations

from pathlib import Path

import pytest

from tests.devcloud.layout import HIGHEST_BASE, OFFSETS, SERVICES, DevcloudError, Layout, default_root


def test_ports_are_the_usual_ones_above_the_base() -> None:
    layout = Layout(20000)
    assert layout.auth_url == "http://127.0.0.1:25000/v3"
    assert layout.port("neutron") == 29696


def test_ports_stay_below_the_ephemeral_ones() -> None:
    assert max(Layout(HIGHEST_BASE).port(service) for service in SERVICES) == 32767
    with pytest.raises(DevcloudError, match="between 0 and 23071"):
        Layout(HIGHEST_BASE + 1)


def test_bases_a_thousand_apart_share_no_port() -> None:
    ports = [Layout(base).port(service) for base in (20000, 21000, 22000, 23000) for service in OFFSETS]
    assert len(set(ports)) == len(ports)


def test_environment_chooses_the_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENSTACK_PREP_DEVCLOUD_DIR", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("OPENSTACK_PREP_DEVCLOUD_DIR")
    assert default_root().name == ".devcloud"
