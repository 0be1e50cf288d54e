from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep import disk_format, download
from openstack_prep.download import CHUNK, Digests, Verified, open_source, shown
from openstack_prep.errors import DownloadError
from tests.unit.web import Web, serve

CONTENT = os.urandom(3 * CHUNK + 12345)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(Web(CONTENT)) as serving:
        yield serving


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.001)


def read(where: str) -> bytes:
    chunks, size = open_source(where)
    content = b"".join(chunks)
    assert size in (None, len(content))
    return content


def test_a_file_by_path_or_url(tmp_path: Path) -> None:
    path = tmp_path / "a disk"
    path.write_bytes(CONTENT)
    assert read(str(path)) == CONTENT
    assert read(path.as_uri()) == CONTENT


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="No such file"):
        open_source(str(tmp_path / "none"))


def test_from_the_web(web: Web) -> None:
    assert read(web.url) == CONTENT
    assert web.asked[0]["Accept-Encoding"] == "identity"


def test_without_a_length(web: Web) -> None:
    web.length = False
    assert read(web.url) == CONTENT


def test_it_goes_on_where_it_broke_off(web: Web) -> None:
    web.breaks, web.etags = [2 * CHUNK, CHUNK], ['"a"'] * 3
    assert read(web.url) == CONTENT
    assert [(asked.get("Range"), asked.get("If-Range")) for asked in web.asked] == [
        (None, None),
        (f"bytes={2 * CHUNK}-", '"a"'),
        (f"bytes={3 * CHUNK}-", '"a"'),
    ]


def test_a_weak_tag_is_no_proof(web: Web) -> None:
    web.breaks, web.etags = [CHUNK], ['W/"a"', 'W/"a"']
    assert read(web.url) == CONTENT
    assert "If-Range" not in web.asked[1]


def test_another_content_meanwhile(web: Web) -> None:
    web.breaks, web.etags = [CHUNK], ['"a"', '"b"']
    with pytest.raises(DownloadError, match="has changed or cannot be resumed"):
        read(web.url)


def test_a_server_that_cannot_resume(web: Web) -> None:
    web.breaks, web.ranges = [CHUNK], False
    with pytest.raises(DownloadError, match="cannot be resumed"):
        read(web.url)


def test_no_progress_is_the_end(web: Web) -> None:
    web.breaks = [CHUNK, 0, 0]
    with pytest.raises(DownloadError, match=f"broke off after {CHUNK} of {len(CONTENT)} bytes"):
        read(web.url)


def test_passing_faults_are_waited_out(web: Web) -> None:
    web.refusals = [503, 429, 502]
    assert read(web.url) == CONTENT


@pytest.mark.parametrize(("refusals", "message"), [([404], "404 Not Found"), ([503] * 9, "503")])
def test_refusals(web: Web, refusals: list[int], message: str) -> None:
    web.refusals = refusals
    with pytest.raises(DownloadError, match=message):
        open_source(web.url)


def test_nobody_listens() -> None:
    with pytest.raises(DownloadError, match="refused") as caught:
        open_source("http://me:secret@127.0.0.1:1/disk?signature=secret")
    assert "secret" not in str(caught.value)


def test_what_is_shown_of_a_url() -> None:
    assert shown("https://me:pw@host:8443/a/disk?sig=x#y") == "https://host:8443/a/disk"
    assert shown("/a/disk") == "/a/disk"


# --- sums ---------------------------------------------------------------------------------


def test_sums_of_what_passes_by() -> None:
    digests = Digests(["sha256", "sha512", "md5"])
    assert b"".join(digests.through([CONTENT[:100], CONTENT[100:]])) == CONTENT
    assert digests.size == len(CONTENT)
    assert "sha256:" + (digests.get("sha256") or "") == SHA256
    assert digests.get("sha512") == hashlib.sha512(CONTENT).hexdigest()
    assert digests.get("sha1") is None


def test_the_right_sum(web: Web) -> None:
    told: list[tuple[int, int | None]] = []
    body = Verified(web.url, SHA256, progress=lambda done, total: told.append((done, total)))
    assert b"".join(body) == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert b"".join(body) == CONTENT  # a request that is sent again starts anew


def test_a_wrong_sum_ends_in_an_error(web: Web) -> None:
    chunks = iter(Verified(web.url, "sha256:" + "0" * 64))
    with pytest.raises(DownloadError, match=r"has sha256 [0-9a-f]{64} instead of 0{64}"):
        list(chunks)


def test_nothing_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(DownloadError, match="is empty"):
        list(Verified(str(tmp_path / "empty")))


def test_memory_does_not_grow_with_the_size(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(20 * CHUNK)
    tracemalloc.start()
    for _ in Verified(str(path), algorithms=["md5"]):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * CHUNK


# --- formats ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"QFI\xfb\0\0\0\3", "qcow2"),
        (b"KDMV\1", "vmdk"),
        (b"vhdxfile", "vhdx"),
        (b"\0" * 0x8001 + b"CD001", "iso"),
        (b"\0" * 0x40 + b"\x7f\x10\xda\xbe", "vdi"),
        (b"\xeb\x63\x90", "raw"),
    ],
)
def test_formats_by_their_first_bytes(tmp_path: Path, head: bytes, expected: str) -> None:
    (tmp_path / "disk").write_bytes(head)
    assert disk_format.of_source(str(tmp_path / "disk")) == expected


def test_a_compressed_file_is_no_disk(tmp_path: Path) -> None:
    (tmp_path / "disk.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(DownloadError, match="compressed \\(gzip\\)"):
        disk_format.of_source(str(tmp_path / "disk.gz"))
