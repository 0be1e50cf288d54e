from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.base.errors import PrepError
from openstack_prep.resources.files.marked_files import MarkedFiles
from tests.unit.texts import Wording, contains

CLUSTER = """\
nodes:
- {hostname_override: a, address: 10.0.0.1}
- {hostname_override: b, address: 10.0.0.2}
private_registries:
- {url: registry, password: of-the-registry}
"""
POOLS = """\
kind: IPAddressPool
metadata: {name: one}
spec: {addresses: [10.0.0.1]}
---
kind: IPAddressPool
metadata: {name: two}
spec: {addresses: [10.0.0.2]}
"""


@pytest.fixture
def files(tmp_path: Path) -> MarkedFiles:
    made = MarkedFiles(tmp_path / "cluster", "# [ours]")
    made.write({"cluster.yml": CLUSTER, "pools.yaml": POOLS})
    return made


def drift(files: MarkedFiles, **changed: str) -> list[str]:
    texts = {"cluster.yml": CLUSTER, "pools.yaml": POOLS} | changed
    texts = {name: text for name, text in texts.items() if text}
    return list(files.drift(texts, {name: text.replace("10.0.0.1}", "'********'}") for name, text in texts.items()}))


def test_files_are_readable_by_their_owner_alone_and_begin_with_the_mark(files: MarkedFiles) -> None:
    for path in files.folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text().startswith(f"# {path.name} [ours]\n")
    assert drift(files) == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("address: 10.0.0.2", "address: 10.0.0.3", "cluster.yml: nodes.b.address 10.0.0.3 -> 10.0.0.2"),
        ("address: 10.0.0.1", "address: of-nobody", "cluster.yml: nodes.a.address ******** -> ********"),
        ("- {hostname_override: b, address: 10.0.0.2}\n", "", "cluster.yml: nodes.b is missing"),
        ("private_registries:", "registries: []\nprivate_registries:", "cluster.yml: registries is unexpected"),
        ("nodes:", "# by hand\nnodes:", "cluster.yml: comments or order differ"),
        ("nodes:", "nodes: [", "cluster.yml: is not YAML"),
        ("of-the-registry", "another", "cluster.yml: private_registries.registry.password ******** -> ********"),
    ],
)
def test_what_was_changed_by_hand_is_told_and_mended(files: MarkedFiles, before: str, after: str, told: str) -> None:
    path = files.folder / "cluster.yml"
    path.write_text(path.read_text().replace(before, after))
    assert drift(files) == [told]
    files.write({"cluster.yml": CLUSTER, "pools.yaml": POOLS})
    assert drift(files) == []


def test_no_file_changes_for_another_address_of_the_cloud_or_an_earlier_version(tmp_path: Path) -> None:
    def files(tag: str) -> MarkedFiles:
        return MarkedFiles(tmp_path, f"# [openstack-prep:lab/{tag}]", is_ours=lambda tag: True)

    path = tmp_path / "cluster.yml"
    files("c@home@0123abcd").write({"cluster.yml": CLUSTER})
    for line in ("c", "c@home", "c@home@9876dcba"):  # of earlier versions, and by an internal address
        path.write_text(f"# [openstack-prep:lab/{line}]\n{CLUSTER}")
        written = path.stat().st_mtime_ns
        files("c@home@0123abcd").write({"cluster.yml": CLUSTER})
        assert path.stat().st_mtime_ns == written
        assert list(files("c@home@0123abcd").drift({"cluster.yml": CLUSTER}, {"cluster.yml": CLUSTER})) == []
    files("c@another@0123abcd").write({"cluster.yml": CLUSTER})
    assert "c@another@0123abcd" in path.read_text()


def test_manifests_are_told_apart_by_kind_and_name(files: MarkedFiles) -> None:
    assert drift(files, **{"pools.yaml": POOLS.replace("10.0.0.2", "10.0.0.9")}) == [
        "pools.yaml: IPAddressPool/two.spec.addresses [10.0.0.2] -> [10.0.0.9]"
    ]


def test_a_file_that_is_missing_too_much_or_open_to_others_is_told_and_mended(files: MarkedFiles) -> None:
    (files.folder / "cluster.yml").chmod(0o644)
    (files.folder / "pools.yaml").unlink()
    assert drift(files) == ["cluster.yml: mode 0644", "pools.yaml is missing"]
    files.write({"cluster.yml": CLUSTER, "pools.yaml": POOLS})
    assert drift(files) == []
    assert drift(files, **{"pools.yaml": ""}) == ["unexpected file pools.yaml"]
    files.write({"cluster.yml": CLUSTER})
    assert [each.name for each in files.folder.iterdir()] == ["cluster.yml"]


def test_what_others_wrote_is_not_overwritten_nor_removed(files: MarkedFiles, wording: Wording) -> None:
    (files.folder / "pools.yaml").write_text("# somebody else's\n")
    (files.folder / "picture").write_bytes(b"\xff\xfe")
    with pytest.raises(PrepError) as caught:
        files.write({"cluster.yml": "{}", "pools.yaml": POOLS})
    wording(caught.value)
    assert (files.folder / "cluster.yml").read_text() == f"# cluster.yml [ours]\n{CLUSTER}"
    assert files.remove() == ["picture", "pools.yaml"]
    assert files.remove() == ["picture", "pools.yaml"]


def test_of_a_file_that_is_another_only_some_differences_are_told(files: MarkedFiles) -> None:
    (files.folder / "cluster.yml").write_text("# [ours]\n" + "".join(f"key{number}: 1\n" for number in range(20)))
    assert len(drift(files)) == 9
    assert drift(files)[-1] == "cluster.yml: 14 more"


def test_a_file_where_the_folder_should_be(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "file").write_text("")
    files = MarkedFiles(tmp_path / "file", "# [ours]")
    assert files.of_others(["cluster.yml"]) == [tmp_path / "file"]
    assert MarkedFiles(tmp_path / "file" / "below", "# [ours]").of_others([]) == [tmp_path / "file"]
    with pytest.raises(PrepError) as caught:
        files.write({"cluster.yml": ""})
    wording(caught.value)


def test_a_folder_that_cannot_be_read_is_said_to_be(
    files: MarkedFiles, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)  # root may read any
    with pytest.raises(PrepError) as caught:
        files.there()
    wording(caught.value)


def test_a_folder_of_ours_alone_goes_with_the_files(files: MarkedFiles) -> None:
    assert files.remove() == []
    assert not files.folder.exists()
    assert files.remove() == []


def test_a_link_that_leads_nowhere_is_not_written_through(tmp_path: Path) -> None:
    files, outside = MarkedFiles(tmp_path / "cluster", "# [ours]"), tmp_path / "outside"
    files.folder.mkdir()
    (files.folder / "a.yaml").symlink_to(outside)
    (files.folder / "b.yaml").write_text("theirs")
    with pytest.raises(PrepError) as refused:  # both at once
        files.write({"a.yaml": "1", "b.yaml": "2", "c.yaml": "3"})
    assert refused.value.code == "files.refused"
    assert contains(str(refused.value), f"{files.folder}/a.yaml", f"{files.folder}/b.yaml")
    assert not outside.exists()
    assert sorted(path.name for path in files.folder.iterdir()) == ["a.yaml", "b.yaml"]


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        ("inside.zone", "$TTL 300\n", "; inside.zone [ours]\n$TTL 300\n"),
        ("bridge.sh", "#!/bin/bash\ntrue\n", "#!/bin/bash\n# bridge.sh [ours]\ntrue\n"),
    ],
)
def test_the_tag_is_a_comment_in_zones_and_leaves_scripts_their_interpreter(
    files: MarkedFiles, name: str, text: str, written: str
) -> None:
    files.write({name: text})
    assert (files.folder / name).read_text() == written
    assert list(files.there()) == [name]
    assert list(files.drift({name: text}, {name: text})) == []
    assert files.remove() == []


def test_a_tag_elsewhere_does_not_make_a_file_managed(files: MarkedFiles) -> None:
    (files.folder / "notes.txt").write_text("mine\n# [ours]\n")
    (files.folder / "mine.zone").write_text("# [ours]\n")
    assert sorted(files.there()) == ["cluster.yml", "pools.yaml"]


def test_a_copy_with_changes_of_its_own_is_kept(files: MarkedFiles) -> None:
    mine = files.folder / "cluster-mine.yml"
    mine.write_text((files.folder / "cluster.yml").read_text() + "mine: 1\n")
    assert drift(files) == []
    files.write({"cluster.yml": CLUSTER, "pools.yaml": POOLS})
    assert files.of_others(["cluster-mine.yml"]) == [mine]
    assert files.remove() == ["cluster-mine.yml"]


def test_files_of_an_earlier_version_are_managed_and_stay_as_they_are(files: MarkedFiles) -> None:
    former = f"# [ours]\n{CLUSTER}"
    (files.folder / "cluster.yml").write_text(former)
    assert drift(files) == []
    files.write({"cluster.yml": CLUSTER, "pools.yaml": POOLS})
    assert (files.folder / "cluster.yml").read_text() == former
    assert files.remove() == []


def test_a_copy_of_a_file_beside_it_is_kept(tmp_path: Path) -> None:
    """The folder may have been moved as a whole."""
    files = MarkedFiles(tmp_path / "cluster", "# [ours]", placed=True)
    files.write({"a.conf": "1\n", "a.zone": "2\n", "former.sh": "#!/bin/sh\n3\n"})
    for name in ("a.conf", "a.zone", "former.sh"):
        (tmp_path / "cluster" / f"{name}.bak").write_text((tmp_path / "cluster" / name).read_text())
    files.write({"a.conf": "1\n", "a.zone": "2\n"})
    assert sorted(files.written_here()) == ["a.conf", "a.zone"]
    assert files.contents() == {"a.conf": "1\n", "a.zone": "2\n"}
    (tmp_path / "cluster").rename(tmp_path / "moved")
    moved = MarkedFiles(tmp_path / "moved", "# [ours]", placed=True)
    texts = {"a.conf": "1\n", "a.zone": "2\n"}
    assert not list(moved.drift(texts, texts))
    assert moved.written_here() == {}
    assert moved.remove(copies=False) == ["a.conf", "a.conf.bak", "a.zone", "a.zone.bak", "former.sh.bak"]
    assert moved.remove() == ["a.conf.bak", "a.zone.bak", "former.sh.bak"]
