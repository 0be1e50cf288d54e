from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import DownloadError
from openstack_prep.download import http, spool
from openstack_prep.download.address import CHUNK
from openstack_prep.download.spool import Contents, Shared
from tests.unit.texts import Wording
from tests.unit.web import Web, serve

CONTENT = b"QFI\xfb" + os.urandom(5 * CHUNK + 12345)
PACKED = gzip.compress(CONTENT, 1)
SUM = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
WRONG = "sha256:" + "0" * 64
ROOT = Path(__file__).parents[3]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(Web(PACKED)) as serving:
        yield serving


@pytest.fixture
def contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Contents]:
    monkeypatch.setattr(http, "PAUSE", 0.001)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = Contents()
    yield made
    made.close()
    wait_for(lambda: not files(tmp_path))


def files(folder: Path) -> list[str]:
    """Return what this process has open in a folder, also files without a name."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(each.readlink()))
        except FileNotFoundError:  # of another thread, closed meanwhile
            continue
    return [each for each in found if each.startswith(f"{folder}/")]


def wait_for(what: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 120
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(body: Shared) -> bytes | DownloadError:
    try:
        return b"".join(body)
    except DownloadError as error:
        return error


def read_all(bodies: list[Shared]) -> list[bytes | DownloadError]:
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(read, bodies))


def in_middle(body: Shared) -> Iterator[bytes]:
    """Return an iteration that has had the first chunk."""
    chunks = iter(body)
    assert CONTENT.startswith(next(chunks))
    return chunks


# --- one download -------------------------------------------------------------------------


def test_one_download_for_many_and_for_one_that_begins_late(web: Web, contents: Contents) -> None:
    bodies = [Shared(contents, web.url, SUM, algorithms=["sha512"]) for _ in range(8)]
    assert read_all(bodies) == [CONTENT] * 8
    late = Shared(contents, web.url, SUM, algorithms=["sha512"])
    assert late.disk_format() == "qcow2"
    for _ in range(2):  # a request that is sent again starts anew
        assert b"".join(late) == CONTENT
    for each in (*bodies, late):
        assert each.digests.get("sha512") == hashlib.sha512(CONTENT).hexdigest()
    assert len(web.asked) == 1


def test_a_local_file_is_read_once(tmp_path: Path, contents: Contents) -> None:
    (tmp_path / "disk").write_bytes(CONTENT)
    assert b"".join(Shared(contents, str(tmp_path / "disk"))) == CONTENT
    (tmp_path / "disk").write_bytes(b"another")
    assert b"".join(Shared(contents, str(tmp_path / "disk"))) == CONTENT


@pytest.mark.parametrize(
    "other",
    [{"checksum": None}, {"compression": "none", "checksum": None}, {"size": len(CONTENT)}, {"algorithms": ["md5"]}],
)
def test_what_is_verified_otherwise_is_another_content(web: Web, contents: Contents, other: dict[str, Any]) -> None:
    assert b"".join(Shared(contents, web.url, SUM)) == CONTENT
    expected = PACKED if "compression" in other else CONTENT
    options: dict[str, Any] = {"checksum": SUM} | other
    assert b"".join(Shared(contents, web.url, **options)) == expected
    assert len(web.asked) == 2


def test_uploads_begin_at_once_and_a_slow_one_delays_no_other(web: Web, contents: Contents) -> None:
    web.pause = threading.Event()
    slow = in_middle(Shared(contents, web.url, SUM))
    other = Shared(contents, web.url, SUM)
    beginning = in_middle(other)
    web.pause.set()
    assert CONTENT.endswith(b"".join(beginning))
    assert CONTENT.endswith(b"".join(slow))
    assert len(web.asked) == 1


@pytest.mark.parametrize(("content", "size"), [(PACKED, None), (PACKED, len(CONTENT)), (CONTENT, None)])
def test_progress_is_that_of_each_upload(web: Web, contents: Contents, content: bytes, size: int | None) -> None:
    web.content = content
    for _ in range(2):
        told: list[tuple[int, int | None, int | None]] = []
        b"".join(Shared(contents, web.url, size=size, progress=lambda *numbers: told.append(numbers)))  # noqa: B023
        assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
        assert told[-1] == (len(CONTENT), len(CONTENT), None)


def test_the_file_has_no_name_and_is_closed_when_nobody_reads_it(
    web: Web, contents: Contents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "IDLE", 0.1)
    web.pause = threading.Event()
    slow = in_middle(Shared(contents, web.url, SUM))
    assert len(files(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == []
    web.pause.set()
    wait_for(lambda: not files(tmp_path))
    assert CONTENT.endswith(b"".join(slow))  # by a download of its own
    assert len(web.asked) == 2
    assert b"".join(Shared(contents, web.url, SUM)) == CONTENT
    assert len(web.asked) == 3


# --- errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checksum": WRONG}, "disk has sha256"),
        ({"compressed_checksum": WRONG}, "disk has sha256"),
        ({"size": len(CONTENT) + 1}, f"has {len(CONTENT)} bytes instead of"),
        ({"size": len(CONTENT) - 1}, "has more than"),
    ],
)
def test_a_wrong_content_ends_for_nobody(web: Web, contents: Contents, options: dict[str, Any], message: str) -> None:
    web.pause = threading.Event()
    behind = in_middle(Shared(contents, web.url, **options))
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(read, Shared(contents, web.url, **options)) for _ in range(3)]
        web.pause.set()
        errors = [each.result() for each in found]
    assert all(isinstance(each, DownloadError) and message in str(each) for each in errors), errors
    assert len(set(map(id, errors))) == 3
    with pytest.raises(DownloadError, match=message):
        list(behind)
    assert len(web.asked) == 1
    assert isinstance(read(Shared(contents, web.url, **options)), DownloadError)
    assert len(web.asked) == 2


def test_after_a_broken_download_the_next_one_starts_anew(web: Web, contents: Contents) -> None:
    web.breaks, web.ranges = [4 * CHUNK], False
    errors = read_all([Shared(contents, web.url, SUM) for _ in range(3)])
    assert all("cannot be resumed" in str(each) for each in errors), errors
    assert b"".join(Shared(contents, web.url, SUM)) == CONTENT


def test_what_cannot_be_downloaded_has_no_format(web: Web, contents: Contents) -> None:
    web.files = {"/other": b""}
    with pytest.raises(DownloadError, match="404"):
        Shared(contents, web.url).disk_format()


def test_closed_in_the_middle(web: Web, contents: Contents, wording: Wording) -> None:
    web.pause = threading.Event()
    behind = in_middle(Shared(contents, web.url, SUM))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(read, Shared(contents, web.url, SUM))
        time.sleep(0.1)
        contents.close()
        wording(str(waiting.result(30)))
    web.pause.set()
    with pytest.raises(DownloadError) as caught:
        list(behind)
    wording(caught.value)
    with pytest.raises(DownloadError) as caught:
        list(Shared(contents, web.url, SUM))
    wording(caught.value)
    assert len(web.asked) == 1


def test_closed_after_the_end(web: Web, contents: Contents, wording: Wording) -> None:
    behind = in_middle(Shared(contents, web.url, SUM))
    assert b"".join(Shared(contents, web.url, SUM)) == CONTENT
    contents.close()
    with pytest.raises(DownloadError) as caught:
        list(behind)
    wording(caught.value)


# --- no room ------------------------------------------------------------------------------

FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
from openstack_prep.download.spool import Contents, Shared
url, checksum = sys.argv[1:]
contents = Contents()
bodies = [Shared(contents, url, checksum) for _ in range(3)]
readers = [iter(each) for each in bodies]
sent = [[next(each)] for each in readers]
for chunks, reader in zip(sent, readers):
    chunks.extend(reader)
for body, chunks in zip(bodies, sent):
    print(sum(map(len, chunks)), body.digests.get("sha256"))
contents.close()
"""


def test_a_full_disk_is_no_error(web: Web) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, web.url, SUM], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    assert done.stdout.split() == [str(len(CONTENT)), SUM[7:]] * 3, done.stderr
    assert len(web.asked) == 4


def test_too_little_room_is_known_before(web: Web, contents: Contents) -> None:
    errors = read_all([Shared(contents, web.url, size=2**60) for _ in range(2)])
    assert all("bytes instead of" in str(each) for each in errors), errors
    assert len(web.asked) == 2


def test_without_a_folder_for_temporary_files(
    web: Web, contents: Contents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert read_all([Shared(contents, web.url, SUM) for _ in range(2)]) == [CONTENT] * 2
    assert len(web.asked) == 2


def test_what_has_changed_meanwhile_has_other_digests(
    tmp_path: Path, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "IDLE", 0.05)
    source = tmp_path / "disk"
    source.write_bytes(CONTENT)
    body = Shared(contents, str(source))
    chunks = iter(body)
    sent = next(chunks)
    wait_for(lambda: not files(tmp_path))
    source.write_bytes(bytes(len(CONTENT)))
    sent += b"".join(chunks)
    assert sent == CONTENT[:CHUNK] + bytes(len(CONTENT) - CHUNK)
    assert body.digests.get("sha256") == hashlib.sha256(bytes(len(CONTENT))).hexdigest()


# --- flat memory --------------------------------------------------------------------------

MEMORY = """
import sys, threading
from openstack_prep.download.spool import Contents, Shared
source, number = sys.argv[1], int(sys.argv[2])
contents, others, sizes = Contents(), [], []
slow = iter(Shared(contents, source, algorithms=["md5"]))
size = len(next(slow))
def follow():
    sizes.append(sum(map(len, Shared(contents, source, algorithms=["md5"]))))
threads = [threading.Thread(target=follow) for _ in range(number - 1)]
for each in threads:
    each.start()
for each in threads:
    each.join()
sizes.append(size + sum(map(len, slow)))
assert sizes == [2**28] * number, sizes
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
contents.close()
"""


def test_memory_depends_neither_on_the_size_nor_on_the_number(tmp_path: Path) -> None:
    path = tmp_path / "large.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(256):
            file.write(bytes(2**20))

    def peak(number: int) -> int:
        """Return the most KiB that a process with so many uploads has used."""
        words = [sys.executable, "-c", MEMORY, str(path), str(number)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=50)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert peak(8) < peak(1) + 20 * 1024
