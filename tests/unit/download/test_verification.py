from __future__ import annotations

import gzip
import hashlib
import os
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep.base.errors import DownloadError
from openstack_prep.download import http as download
from openstack_prep.download import verification
from openstack_prep.download.address import CHUNK, Chunks
from openstack_prep.download.verification import AHEAD, Ahead, Digests, Verified
from tests.unit.texts import Wording
from tests.unit.web import Web, serve

CONTENT = os.urandom(3 * CHUNK + 12345)
PACKED = gzip.compress(CONTENT, 1)
WRONG = "sha256:" + "0" * 64


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(Web(PACKED)) as serving:
        yield serving


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.001)


def test_sums_of_what_passes_by() -> None:
    digests = Digests(["sha256", "sha512", "md5"])
    assert b"".join(digests.through([CONTENT[:100], CONTENT[100:]], Ahead)) == CONTENT
    assert digests.size == len(CONTENT)
    assert f"sha256:{digests.get('sha256')}" == sha256(CONTENT)
    assert digests.get("sha512") == hashlib.sha512(CONTENT).hexdigest()
    assert digests.get("sha1") is None


# --- the sums -----------------------------------------------------------------------------


def test_as_it_is(web: Web) -> None:
    told: list[tuple[int, int | None, int | None]] = []
    body = Verified(web.url, sha256(PACKED), compression="none", progress=lambda *numbers: told.append(numbers))
    assert b"".join(body) == PACKED
    assert told[-1] == (len(PACKED), len(PACKED), None)
    assert b"".join(body) == PACKED  # a request that is sent again starts anew


def test_unpacked_with_both_sums(web: Web) -> None:
    told: list[tuple[int, int | None, int | None]] = []
    body = Verified(
        web.url,
        sha256(CONTENT),
        compressed_checksum=sha256(PACKED),
        size=len(CONTENT),
        progress=lambda *numbers: told.append(numbers),
    )
    for _ in range(2):
        assert b"".join(body) == CONTENT
        assert f"sha256:{body.digests.get('sha256')}" == sha256(CONTENT)
        assert told[-1] == (len(PACKED), len(PACKED), len(CONTENT))
    assert len(web.asked) == 2


def test_over_a_bad_line(web: Web) -> None:
    web.refusals, web.breaks, web.etags = [503], [CHUNK, 1000, CHUNK], ['"a"'] * 4
    assert b"".join(Verified(web.url, sha256(CONTENT), compressed_checksum=sha256(PACKED))) == CONTENT
    assert len(web.asked) == 5


def test_a_broken_connection_is_the_error(web: Web) -> None:
    web.breaks, web.ranges = [2 * CHUNK], False
    with pytest.raises(DownloadError, match="cannot be resumed"):
        list(Verified(web.url))


def test_a_truncated_file(web: Web) -> None:
    web.content = PACKED[:-5]
    with pytest.raises(DownloadError, match="ends too early"):
        list(Verified(web.url, sha256(CONTENT)))


@pytest.mark.parametrize(
    "content", [PACKED[:-5], PACKED + b"x" * 9, PACKED + bytes(3 * CHUNK), PACKED[:CHUNK] + bytes(30 * CHUNK)]
)
def test_another_file_is_told_by_its_sum(web: Web, content: bytes, wording: Wording) -> None:
    web.content = content
    expected = f"has sha256 {sha256(content)[7:]} instead of {sha256(PACKED)[7:]}; correct the checksum, or use the"
    with pytest.raises(DownloadError, match=expected):
        list(Verified(web.url, compressed_checksum=sha256(PACKED)))
    with pytest.raises(DownloadError) as caught:
        list(Verified(web.url, compressed_checksum=sha256(content)))
    wording(caught.value)


def test_a_broken_connection_is_no_other_file(web: Web) -> None:
    web.content, web.ranges = PACKED[:CHUNK] + bytes(30 * CHUNK), False
    web.breaks = [9 * CHUNK]
    with pytest.raises(DownloadError, match="cannot be resumed"):
        list(Verified(web.url, compressed_checksum=sha256(PACKED)))


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        ({"checksum": WRONG}, r"disk has sha256 [0-9a-f]{64} instead of 0{64}"),
        ({"checksum": WRONG, "compressed_checksum": sha256(PACKED)}, "the content of .*disk has sha256"),
        ({"checksum": sha256(CONTENT), "compressed_checksum": WRONG}, r"http://\S+disk has sha256"),
        ({"compressed_checksum": "md5:" + "0" * 32}, "disk has md5"),
        ({"size": len(CONTENT) - 1}, "has more than"),
        ({"size": len(CONTENT) + 1}, f"has {len(CONTENT)} bytes instead of {len(CONTENT) + 1}"),
    ],
)
def test_what_is_wrong_ends_in_an_error(web: Web, sums: dict[str, str], message: str) -> None:
    with pytest.raises(DownloadError, match=f"^{message}" if message.startswith("http") else message):
        list(Verified(web.url, **sums))  # type: ignore[arg-type]


def test_a_bomb_is_broken_off(tmp_path: Path) -> None:
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(20 * CHUNK)))
    passed: list[bytes] = []
    with pytest.raises(DownloadError, match="has more than"):
        passed.extend(Verified(str(tmp_path / "bomb"), size=2 * CHUNK))
    assert passed
    assert sum(map(len, passed)) <= 2 * CHUNK


def test_a_bomb_of_no_known_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(verification, "UNDECLARED_MOST", 8 * CHUNK)
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(60 * CHUNK)))
    with pytest.raises(DownloadError) as caught:
        list(Verified(str(tmp_path / "bomb")))
    wording(caught.value)
    assert sum(map(len, Verified(str(tmp_path / "bomb"), size=60 * CHUNK))) == 60 * CHUNK


@pytest.mark.parametrize("data", [b"", gzip.compress(b"", mtime=0)])
def test_nothing_is_no_content(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "empty").write_bytes(data)
    with pytest.raises(DownloadError, match="is empty"):
        list(Verified(str(tmp_path / "empty")))


# --- flat memory, and no thread left ------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_size(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "large"
    with gzip.open(path, "wb", 1) if packed else path.open("wb") as file:
        for _ in range(40):
            file.write(bytes(CHUNK))
    tracemalloc.start()
    size = sum(len(chunk) for chunk in Verified(str(path), algorithms=["md5"]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 40 * CHUNK
    assert peak < (2 * AHEAD + 8) * CHUNK


def test_it_reads_only_so_far_ahead() -> None:
    read, enough = 0, threading.Event()

    def chunks() -> Chunks:
        nonlocal read
        for read in range(1, 100):
            if read > AHEAD:
                enough.set()
            yield b"x"

    ahead = Ahead(chunks())
    assert enough.wait(30)
    assert read == AHEAD + 1
    assert next(iter(ahead)) == b"x"
    ahead.close()


@pytest.mark.parametrize("wrong", [False, True])
def test_no_thread_stays_when_sending_fails(tmp_path: Path, wrong: bool, wording: Wording) -> None:
    path = tmp_path / "disk.gz"
    path.write_bytes(PACKED[: CHUNK // 2] + bytes(20 * CHUNK) if wrong else gzip.compress(bytes(60 * CHUNK), 1))
    before = set(threading.enumerate())
    body = iter(Verified(str(path)))
    if wrong:
        with pytest.raises(DownloadError) as kept:
            list(body)
        wording(kept.value)
        assert kept.value.__traceback__  # which would hold what is to be closed
    else:
        next(body)
        body.close()  # type: ignore[attr-defined]
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()
