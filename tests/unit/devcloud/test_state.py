from __future__ import annotations

import contextlib
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.devcloud import clouds_file, state
from tests.devcloud.layout import DevcloudError, Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(22000, tmp_path)
    layout.home.mkdir()
    return layout


def test_delete_takes_only_what_is_ours(layout: Layout) -> None:
    (layout.home / "db").mkdir()
    (layout.home / "db/nova.sqlite").touch()
    (layout.home / "thesis.txt").touch()
    state.delete(layout)
    assert [path.name for path in layout.home.iterdir()] == ["thesis.txt"]
    (layout.home / "thesis.txt").unlink()
    state.delete(layout)
    assert not layout.home.exists()


def test_delete_does_not_follow_links(layout: Layout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "db").mkdir(parents=True)
    (layout.home / "db").symlink_to(elsewhere / "db")
    state.delete(layout)
    assert (elsewhere / "db").exists()
    layout.home.symlink_to(elsewhere)
    with pytest.raises(DevcloudError, match="symbolic link"):
        state.delete(layout)
    assert (elsewhere / "db").exists()


def test_state_of_another_version_is_neither_pristine_nor_complete(layout: Layout) -> None:
    layout.pristine.mkdir()
    (layout.pristine / "stamp").write_text("of old")
    assert not state.has_pristine(layout)
    assert not state.is_complete(layout)


def test_clouds_file_is_private_and_names_every_entry(layout: Layout) -> None:
    other = clouds_file.Entry("other", layout.auth_url, "u", "p", "project")
    clouds_file.write(layout.clouds_file, clouds_file.admin(layout), other)
    assert stat.S_IMODE(layout.clouds_file.stat().st_mode) == 0o600
    text = layout.clouds_file.read_text()
    assert text.startswith("clouds:\n  devcloud-admin:\n")
    assert "\n  other:\n" in text


def test_a_copied_state_names_its_own_ports_and_folder(layout: Layout) -> None:
    """Nova's cells have the paths of databases, Keystone's endpoints the ports; keys and rings are each cloud's own."""
    other = Layout(22500, layout.root)
    keys = ("data/keystone/fernet/0", "data/rings/object.ring.gz")
    for at in (*(other.pristine / key for key in keys), *(layout.home / key for key in keys)):
        at.parent.mkdir(parents=True)
        at.write_text(str(at))
    (other.pristine / "db").mkdir()
    values = (f"sqlite:///{other.home}/db/x.sqlite?timeout=30", f"{other.url('nova')}/v2.1", other.url("heat"), None)
    with contextlib.closing(sqlite3.connect(other.pristine / "db/x.sqlite")) as database, database:
        database.execute("CREATE TABLE told (id INTEGER PRIMARY KEY, text VARCHAR(255))")
        database.executemany("INSERT INTO told (text) VALUES (?)", [(value,) for value in values])
    assert state.built_alike(layout) is None  # it has no stamp
    (other.pristine / "stamp").write_text(state.stamp(other))
    assert state.built_alike(layout) == other
    state.adopt(layout, other)
    with contextlib.closing(sqlite3.connect(layout.pristine / "db/x.sqlite")) as database:
        copied = [text for (text,) in database.execute("SELECT text FROM told ORDER BY id")]
    own = f"sqlite:///{layout.home}/db/x.sqlite?timeout=30"
    assert copied == [own, f"{layout.url('nova')}/v2.1", layout.url("heat"), None]
    assert all((layout.pristine / key).read_text() == str(layout.home / key) for key in keys)
    assert state.has_pristine(layout)
