from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import tarfile
from pathlib import Path

import pytest

from openstack_prep.base.errors import DownloadError, PrepError
from openstack_prep.openshift.tools import unpacking
from openstack_prep.openshift.tools.unpacking import unpack
from tests.unit.openshift.tools.archives import CLIENT, INSTALLER, client, installer, packed, plain, special
from tests.unit.texts import Wording, expect_error

Member = tuple[tarfile.TarInfo, bytes]


def unpacked(folder: Path, content: bytes, *tools: str, sha256: str = "") -> dict[str, bytes]:
    """Return what comes out of an archive, by the names of the files made."""
    archive = folder / "tools.tar.gz"
    archive.write_bytes(content)
    (folder / "parts").mkdir()
    sums = sha256 or hashlib.sha256(content).hexdigest()
    parts = unpack(str(archive), sums, tools or ("openshift-install",), folder / "parts", lambda done, total: None)
    for part in parts.values():
        assert part.sha256 == hashlib.sha256(part.path.read_bytes()).hexdigest()
    return {each.name: each.read_bytes() for each in (folder / "parts").iterdir()}


def test_an_installer(tmp_path: Path) -> None:
    assert unpacked(tmp_path, installer()) == {"openshift-install.part": INSTALLER}


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
@pytest.mark.parametrize("target", ["oc", "./oc"])
def test_kubectl_is_a_link_to_oc(tmp_path: Path, kind: bytes, target: str) -> None:
    content = packed(plain("./README.md"), plain("./oc", CLIENT), special("kubectl", kind, target))
    assert unpacked(tmp_path, content, "oc", "kubectl") == {"oc.part": CLIENT, "kubectl.part": CLIENT}
    assert os.path.samefile(tmp_path / "parts" / "oc.part", tmp_path / "parts" / "kubectl.part")


def test_where_there_are_no_links_it_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert unpacked(tmp_path, client(), "oc", "kubectl")["kubectl.part"] == CLIENT


def test_what_is_not_asked_for_is_not_written(tmp_path: Path) -> None:
    inner = special("docs", tarfile.DIRTYPE)
    content = packed(
        inner, plain("docs/openshift-install", b"no"), plain("openshift-install", b"yes"), plain("b" * 300)
    )
    assert unpacked(tmp_path, content) == {"openshift-install.part": b"yes"}


# --- archives that mean harm --------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (plain("../openshift-install"), "a name outside of its folder"),
        (plain("docs/../../x"), "a name outside of its folder"),
        (plain("/openshift-install"), "a name outside of its folder"),
        (plain("/etc/cron.d/x"), "a name outside of its folder"),
        (
            special("openshift-install", tarfile.SYMTYPE, "/etc/passwd"),
            "a link to '/etc/passwd', which is not an earlier tool",
        ),
        (special("openshift-install", tarfile.LNKTYPE, "../x"), "a link to '../x', which is not an earlier tool"),
        (special("openshift-install", tarfile.SYMTYPE, "openshift-install"), "which is not an earlier tool"),
        (special("x", tarfile.SYMTYPE, "/"), "a link to '/', which is not an earlier tool"),
        (special("openshift-install", tarfile.CHRTYPE), "which is not a regular file"),
        (special("openshift-install", tarfile.BLKTYPE), "which is not a regular file"),
        (special("openshift-install", tarfile.FIFOTYPE), "which is not a regular file"),
    ],
)
def test_members_that_mean_harm(tmp_path: Path, member: Member, said: str) -> None:
    with pytest.raises(DownloadError, match=f"tools.tar.gz contains .*{said}"):
        unpacked(tmp_path, packed(member, plain("openshift-install")))
    assert list((tmp_path / "parts").iterdir()) == []
    assert {each.name for each in tmp_path.iterdir()} == {"tools.tar.gz", "parts"}


def test_a_tool_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"contains './openshift-install' twice"):
        unpacked(tmp_path, packed(plain("openshift-install"), plain("./openshift-install", b"other")))


def test_a_sparse_file(tmp_path: Path, wording: Wording) -> None:
    member, content = plain("openshift-install")
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,1"}
    member.pax_headers["GNU.sparse.size"] = str(2**60)
    with pytest.raises(DownloadError) as caught:
        unpacked(tmp_path, packed((member, content)))
    wording(caught.value)


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(unpacking, "LARGEST", 10)
    with pytest.raises(DownloadError) as caught:
        unpacked(tmp_path, installer())
    wording(caught.value)


def test_headers_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(unpacking, "HEADERS", 2**21)
    member, content = plain("openshift-install")
    member.pax_headers = {"comment": "x" * 2**22}
    with pytest.raises(DownloadError) as caught:
        unpacked(tmp_path, packed((member, content)))
    wording(caught.value)


def test_too_much_behind_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(unpacking, "HEADERS", 2**21)
    tail = gzip.compress(bytes(2**23), 1)
    with pytest.raises(DownloadError) as caught:
        unpacked(tmp_path, installer() + tail)
    wording(caught.value)


def test_too_many_members(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(DownloadError) as caught:
        unpacked(tmp_path, packed(*(plain(f"{number}") for number in range(200))))
    wording(caught.value)


# --- archives that are broken -------------------------------------------------------------


def test_another_sum(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"has sha256 [0-9a-f]{64} instead of 0{64}"):
        unpacked(tmp_path, installer(), sha256="0" * 64)


def test_a_tool_that_is_not_there(tmp_path: Path) -> None:
    with expect_error(DownloadError, "tools.tar.gz", "oc", "kubectl"):
        unpacked(tmp_path, installer(), "oc", "kubectl")


@pytest.mark.parametrize("left", [0, 5, 30, 1000])
def test_a_truncated_file(tmp_path: Path, left: int) -> None:
    with pytest.raises(DownloadError, match=r"ends too early|is empty|no sound"):
        unpacked(tmp_path, client()[:left], "oc")


@pytest.mark.parametrize("size", [700, 3_000_000])
def test_a_truncated_tar(tmp_path: Path, size: int) -> None:
    content = gzip.compress(gzip.decompress(client())[:size], 1)
    with pytest.raises(DownloadError, match=r"is not a valid tar archive|contains no oc"):
        unpacked(tmp_path, content, "oc")


@pytest.mark.parametrize("content", [b"<html>", gzip.compress(b"<html>" * 1000, mtime=0)])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DownloadError, match=r"not a valid gz file|not a valid tar archive"):
        unpacked(tmp_path, content)


def test_bytes_that_are_wrong_anywhere_are_an_error_of_ours(tmp_path: Path) -> None:
    sound, chance = (
        gzip.decompress(packed(plain("oc", b"x" * 600), special("kubectl", tarfile.LNKTYPE, "oc"))),
        random.Random(4),
    )
    for _ in range(150):
        broken = bytearray(sound)
        for _ in range(chance.randint(1, 20)):
            broken[chance.randrange(2560)] = chance.choice(b"0179 \x00\xff/.LxgSDK")
        with pytest.raises(DownloadError):
            unpacked(tmp_path, gzip.compress(broken, 1), "oc", sha256="0" * 64)
        shutil.rmtree(tmp_path / "parts")


def test_a_folder_that_is_gone(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "a.tar.gz").write_bytes(installer())
    sums = hashlib.sha256(installer()).hexdigest()
    with pytest.raises(PrepError) as caught:
        unpack(str(tmp_path / "a.tar.gz"), sums, ["openshift-install"], tmp_path / "gone", lambda done, total: None)
    wording(caught.value)
