from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from tests.devcloud.config import configs, ini
from tests.devcloud.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(22000, tmp_path)


def test_render_writes_booleans_as_the_projects_do() -> None:
    assert ini.render({"a": {"on": True, "n": 1}, "b": {}}) == "[a]\non = true\nn = 1\n\n[b]\n"


def test_project_overlays_what_all_share(layout: Layout) -> None:
    config = ini.project(layout, "heat", {"DEFAULT": {"host": "mine"}, "own": {"a": 1}})
    assert config["DEFAULT"]["host"] == "mine"
    assert config["DEFAULT"]["transport_url"] == "fake:///"
    assert config["own"] == {"a": 1}
    assert config["database"]["connection"] == f"sqlite:///{layout.db}/heat.sqlite?timeout=30"


def test_every_file_lies_in_the_clouds_directory_and_parses(layout: Layout) -> None:
    for path, config in configs(layout).items():
        assert path.is_relative_to(layout.home)
        parser = configparser.ConfigParser(interpolation=None, strict=True)
        parser.read_string(ini.render(config))
        assert parser.sections()


def test_no_address_belongs_to_another_base(layout: Layout) -> None:
    for config in configs(layout).values():
        text = ini.render(config)
        assert "127.0.0.1:25000" not in text
        assert "http://127.0.0.1:2" not in text.replace("http://127.0.0.1:27000", "")


def test_proxy_has_a_section_for_every_filter_of_its_pipeline(layout: Layout) -> None:
    config = configs(layout)[layout.etc / "swift/proxy.conf"]
    *filters, _app = str(config["pipeline:main"]["pipeline"]).split()
    assert {f"filter:{name}" for name in filters} <= set(config)
    assert config["filter:keystoneauth"]["operator_roles"] == "admin, swiftoperator"
