from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep import disk_format, download
from openstack_prep.download import CHUNK, open_source, shown
from openstack_prep.errors import DownloadError
from tests.unit.web import Web, serve

CONTENT = os.urandom(3 * CHUNK + 12345)


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


def test_the_format_of_what_is_compressed(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(gzip.compress(b"QFI\xfb" + CONTENT))
    assert disk_format.of_source(str(tmp_path / "disk")) == "qcow2"
    assert disk_format.of_source(str(tmp_path / "disk"), "none") == "raw"
