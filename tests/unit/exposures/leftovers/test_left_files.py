"""Files of former exposed clusters are found by their tags, and never somebody else's."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import OwnershipTag
from openstack_prep.exposures import leftovers
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.leftovers import MOST_FOLDERS, LeftFiles
from openstack_prep.resources.files.marked_files import MarkedFiles
from tests.unit.texts import Wording


def write(run: CloudRun, folder: Path, name: str, texts: dict[str, str]) -> ExposedCluster:
    cluster = ExposedCluster(name=name, directory=str(folder))
    cluster.files(run).write(texts)
    return cluster


def test_files_of_a_removed_or_moved_cluster_are_found_and_removed(
    run: CloudRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    texts = {"hosts": "192.0.2.1 a\n", "a.zone": "$ORIGIN a.\n", "bridge.sh": "#!/bin/bash\ntrue\n"}
    run = CloudRun(run.admin, run.ownership, homes=[None])
    declared = write(run, tmp_path / "here", "okd", texts)
    write(run, tmp_path / "former", "okd", texts)
    write(run, tmp_path / "deep" / "removed", "gone", {"bridge.sh": texts["bridge.sh"]})
    write(CloudRun(run.admin, OwnershipTag("other"), homes=[None]), tmp_path / "foreign", "okd", texts)
    namesake = OwnershipTag("lab", home="another-project")
    for name, tag in (("namesake", namesake), ("untold", OwnershipTag("lab"))):
        head = f"# {tag.describe('exposed_cluster/okd')}"
        MarkedFiles(tmp_path / name, head, placed=True).write({"hosts": ""})
    (tmp_path / "former" / "mine").write_text("kept")
    for checkout, git in (("worktree", "file"), ("clone", "folder")):
        write(run, tmp_path / checkout / "here", "okd", texts)
        (tmp_path / checkout / ".git").mkdir() if git == "folder" else (tmp_path / checkout / ".git").write_text("")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "hosts").write_text("# 192.0.2.1\n")
    os.mkfifo(tmp_path / "mine" / "pipe")
    (tmp_path / "link").symlink_to("foreign")
    every = dict(LeftFiles.within(run, [tmp_path], [declared]))
    assert {Path(each.directory).name for each, seen in every.items() if not seen.ours} == {"namesake", "untold"}
    found = {left: seen for left, seen in every.items() if seen.ours}
    with monkeypatch.context() as patched:
        patched.setattr(leftovers, "_below", lambda top, depth: pytest.fail(f"searches {top}"))
        assert not [*LeftFiles.within(run, [Path("/")], [ExposedCluster(name="okd", directory="/okd")])]
    assert {each.key.name for each in found} == {
        f"okd ({tmp_path / 'former'})",
        f"gone ({tmp_path / 'deep' / 'removed'})",
    }
    notes: list[str] = []
    run.note = lambda key, text: notes.append(text)
    for left, observed in found.items():
        left.delete(run, observed)
        assert left.find_one(run) is None
    assert [each.name for each in (tmp_path / "former").iterdir()] == ["mine"]
    wording(notes)
    assert not (tmp_path / "deep" / "removed").exists()
    assert sorted(each.name for each in (tmp_path / "here").iterdir()) == sorted(texts)
    assert sorted(each.name for each in (tmp_path / "foreign").iterdir()) == sorted(texts)


def test_copies_are_no_left_files(run: CloudRun, tmp_path: Path) -> None:
    """Somebody's backup has the ownership tag, too: of a folder, of single files, of the folder around it."""
    run = CloudRun(run.admin, run.ownership, homes=[None])
    texts = {"hosts": "192.0.2.1 a\n", "a.zone": "$ORIGIN a.\n", "bridge.sh": "#!/bin/bash\ntrue\n"}
    former = tmp_path / "lab" / "okd"
    cluster = write(run, former, "okd", texts)
    for copy in (tmp_path / "backup", tmp_path / "lab" / "okd.old", tmp_path / "backups" / "okd"):
        shutil.copytree(former, copy)
    shutil.copytree(tmp_path / "lab", tmp_path / "lab2")
    (former / "hosts.bak").write_text((former / "hosts").read_text())
    found = dict(LeftFiles.within(run, [tmp_path], []))
    assert [each.directory for each in found] == [str(former)]
    for left, observed in found.items():
        left.delete(run, observed)
    assert [each.name for each in former.iterdir()] == ["hosts.bak"]
    copied = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("bridge.sh"))
    of_lab2 = ["lab2/okd.old/bridge.sh", "lab2/okd/bridge.sh"]
    assert copied == ["backup/bridge.sh", "backups/okd/bridge.sh", "lab/okd.old/bridge.sh", *of_lab2]
    # a cluster whose folder was moved keeps its files, and has nothing to do
    moved = ExposedCluster(name="okd", directory=str(tmp_path / "lab2" / "okd"))
    assert moved.files(run).there().keys() == texts.keys()
    assert not list(moved.files(run).drift(texts, texts))
    assert cluster.files(run).there() == {}


def test_files_without_a_place_may_be_copies(run: CloudRun, tmp_path: Path) -> None:
    """Earlier versions recorded none."""
    run = CloudRun(run.admin, run.ownership, homes=[None])
    write(run, tmp_path / "former", "okd", {"hosts": "192.0.2.1 a\n"})
    hosts = tmp_path / "former" / "hosts"
    hosts.write_text(re.sub(r"^# \S+ \S+ \[", "# [", hosts.read_text()))
    assert ExposedCluster(name="okd", directory=str(tmp_path / "former")).files(run).there()
    assert not dict(LeftFiles.within(run, [tmp_path], []))


def test_near_folders_are_found_among_thousands_further_down(
    run: CloudRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spec may lie in a home directory; each plan searches its folder."""
    run = CloudRun(run.admin, run.ownership, homes=[None])
    for number in range(MOST_FOLDERS + 1):
        (tmp_path / "a" / str(number)).mkdir(parents=True)
        (tmp_path / "b" / str(number)).mkdir(parents=True)
    write(run, tmp_path / "former", "okd", {"hosts": "192.0.2.1 a\n"})
    read: list[object] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(path) or scan(path))
    (found,) = LeftFiles.within(run, [tmp_path], [])
    assert found[0].directory == str(tmp_path / "former")
    assert len(read) < 2 * MOST_FOLDERS
