from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base import file_lock, private_file
from openstack_prep.base.errors import PrepError, SpecError
from openstack_prep.cloud import clouds_yaml
from tests.unit.texts import Wording

ENTRY = {"auth": {"username": "ocp"}, "region_name": "one"}
THEIRS = """\
# my clouds
clouds:
    work:   # do not touch
        auth: {username: me, password: 'x'}

    ocp:
        auth:
            username: old
    # the last one
    zoo:
        auth:
            username: z
cache:
    auth: true
"""


def test_an_entry_is_exchanged_and_the_rest_stays_to_the_letter() -> None:
    assert clouds_yaml.merge(THEIRS, "ocp", ENTRY) == THEIRS.replace(
        "        auth:\n            username: old\n",
        "      auth:\n        username: ocp\n      region_name: one\n",
    )


def test_a_new_entry_comes_last() -> None:
    new = clouds_yaml.merge(THEIRS, "new", ENTRY)
    assert list(yaml.safe_load(new)["clouds"]) == ["work", "ocp", "zoo", "new"]
    assert clouds_yaml.remove(new, "new") == THEIRS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "clouds:\n",
        "clouds: {}\n",
        "cache: {a: 1}",
        "clouds: {a: {auth: {}}}",
        "clouds:\n  a: {}",
        "clouds:\n  ocp:\n  a: {}\n",
        "{clouds: {ocp: {}}, x: 1}\n",
        "clouds:\n  ocp: &o\n    x: 1\n  a: *o\n",
        "clouds:\n  a:\n    note: |\n      text\n\n    b: 1\n",
        "---\nclouds:\n  a: {}\n...\n",
        'clouds:\n  "ocp":\n    x: [1,\n      2]\n  a: {}\n',
        "x-base: &b {r: 1}\nclouds:\n  a:\n    <<: *b\n",
    ],
)
def test_what_it_reads_as_is_right_for_any_yaml(text: str) -> None:
    before = yaml.safe_load(text) or {}
    clouds = before.get("clouds") or {}
    after = before | {"clouds": clouds | {"ocp": ENTRY}}
    merged = clouds_yaml.merge(text, "ocp", ENTRY)
    assert yaml.safe_load(merged) == after
    rest = {name: entry for name, entry in clouds.items() if name != "ocp"}
    others = {key: value for key, value in before.items() if key != "clouds"}
    left = clouds_yaml.remove(merged, "ocp")
    assert (yaml.safe_load(left) or {}) == others | ({"clouds": rest} if rest else {})


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("clouds:\n  a: [\n", 3, "is not YAML"),
        ("- a\n", 1, "is not a mapping"),
        ("x: 1\nclouds: [a]\n", 2, "clouds is not a mapping"),
    ],
)
def test_a_file_that_is_no_clouds_yaml_is_left_alone(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        clouds_yaml.put(path, "ocp", ENTRY)
    assert f"{path}:{line}: {said}" in str(caught.value)
    assert path.read_text() == text


def test_the_file_comes_and_goes_with_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "new" / "clouds.yaml"
    clouds_yaml.drop(path, "ocp")
    clouds_yaml.put(path, "ocp", ENTRY)
    assert path.stat().st_mode & 0o777 == 0o600
    assert clouds_yaml.read(path) == {"ocp": ENTRY}
    clouds_yaml.drop(path, "ocp")
    assert list(path.parent.iterdir()) == []


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    threads = [threading.Thread(target=clouds_yaml.put, args=(path, f"c{number}", ENTRY)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clouds_yaml.read(path)) == 16


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(THEIRS)

    def full(handle: int) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PrepError, match="No space left"):
        clouds_yaml.put(path, "ocp", ENTRY)
    assert path.read_text() == THEIRS
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o600, 0o600), (0o400, 0o400)])
def test_a_mode_is_never_widened(tmp_path: Path, before: int, after: int) -> None:
    path = tmp_path / "file"
    path.touch(mode=before)
    path.chmod(before)
    private_file.write_private(path, "x")
    assert path.stat().st_mode & 0o777 == after


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PrepError, match="cannot be written"):
        clouds_yaml.put(tmp_path / "file" / "clouds.yaml", "ocp", ENTRY)


@pytest.mark.parametrize("name", ["ocp", "new"])
def test_line_ends_of_other_entries_stay(tmp_path: Path, name: str) -> None:
    path, theirs = tmp_path / "clouds.yaml", THEIRS.replace("\n", "\r\n").encode()
    path.write_bytes(theirs)
    clouds_yaml.put(path, name, ENTRY)
    after = path.read_bytes()
    assert after.count(b"\n") == after.count(b"\r\n")
    assert clouds_yaml.read(path)[name] == ENTRY
    if name == "new":
        clouds_yaml.drop(path, name)
        assert path.read_bytes() == theirs


def test_a_file_without_a_last_line_end_is_spliced(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text("# mine\nclouds:\n  a: {region_name: x}")
    clouds_yaml.put(path, "ocp", ENTRY)
    assert path.read_text().startswith("# mine\nclouds:\n  a: {region_name: x}\n  ocp:\n")


def test_a_date_that_does_not_exist_is_a_mistake_of_the_file(tmp_path: Path, wording: Wording) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text("clouds:\n  a: {password: 2026-13-01}\n")
    with pytest.raises(SpecError) as caught:
        clouds_yaml.put(path, "ocp", ENTRY)
    wording(caught.value)
    assert path.read_text() == "clouds:\n  a: {password: 2026-13-01}\n"


MINE = "# where it comes from: wiki/clouds\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        MINE,
        f"{MINE}\n# more\n",
        f"---\n{MINE}",
        f"cache:\n  auth: true\n{MINE}",
    ],
)
def test_what_was_somebodys_is_left_to_the_letter(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clouds.yaml"
    if text:
        path.write_text(text)
    clouds_yaml.put(path, "ocp", ENTRY)
    assert clouds_yaml.read(path) == {"ocp": ENTRY}
    clouds_yaml.drop(path, "ocp")
    assert (path.read_text() if path.exists() else "") == text


@pytest.mark.parametrize(
    "text",
    [
        f"clouds:\n  {MINE}",
        f"{MINE}clouds:\n",
        f"{MINE}clouds: {{}}\n",
        f"clouds:\n  {MINE}  ocp: {{}}\n",
        f"{MINE}clouds: {{ocp: {{}}, a: {{region_name: x}}}}\n",
        f"{{clouds: {{a: {{region_name: 'x # y'}}}}}} {MINE}",
        f"{{clouds: {{ {MINE}  a: {{region_name: x}}}}}}\n",
        f"{{clouds: {{a: {{region_name: x}}}}}}\n{MINE.rstrip()}",
    ],
)
def test_no_comment_is_lost(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(text)
    for change in (lambda: clouds_yaml.put(path, "ocp", ENTRY), lambda: clouds_yaml.drop(path, "ocp")):
        change()
        assert MINE in path.read_text()
    assert "ocp" not in clouds_yaml.read(path)


def test_a_file_without_the_entry_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(MINE)
    clouds_yaml.drop(path, "ocp")
    assert path.read_text() == MINE


def test_a_link_stays_and_its_target_loses_the_entry(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    path, target = tmp_path / "clouds.yaml", tmp_path / "vault" / "mine.yaml"
    path.symlink_to(target)
    with clouds_yaml.turn(path):
        clouds_yaml.put(path, "ocp", ENTRY)
    assert target.stat().st_mode & 0o777 == 0o600
    clouds_yaml.put(target, "other", ENTRY)
    clouds_yaml.drop(path, "ocp")
    assert clouds_yaml.read(target) == {"other": ENTRY}
    clouds_yaml.drop(path, "other")
    assert path.is_symlink()
    assert not target.exists()


def test_the_present_entry_is_judged_when_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"

    def judge(found: Any) -> dict[str, Any]:
        if found is not None:
            raise SpecError([])
        return ENTRY

    clouds_yaml.put(path, "ocp", judge)
    with pytest.raises(SpecError):
        clouds_yaml.put(path, "ocp", judge)
    clouds_yaml.drop(path, "ocp", lambda found: bool(found != ENTRY))
    assert clouds_yaml.read(path) == {"ocp": ENTRY}


def test_who_judges_an_entry_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "WAIT", 0.1)
    path = tmp_path / "clouds.yaml"

    def judge(found: Any) -> dict[str, Any]:
        if "b" not in clouds_yaml.read(path):
            clouds_yaml.put(path, "b", {"auth": {}})
        return {"auth": {"username": "me"}}

    clouds_yaml.put(path, "a", judge)
    assert clouds_yaml.read(path) == {"a": {"auth": {"username": "me"}}, "b": {"auth": {}}}
    clouds_yaml.drop(path, "a", lambda found: clouds_yaml.drop(path, "b") is None)
    assert not path.exists()


def test_the_mode_stays_when_an_entry_goes(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text("clouds: {mine: {auth: {}}, theirs: {auth: {}}}\n")
    path.chmod(0o640)
    clouds_yaml.drop(path, "mine")
    assert path.stat().st_mode & 0o777 == 0o640
