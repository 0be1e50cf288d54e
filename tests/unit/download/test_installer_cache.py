from __future__ import annotations

import fcntl
import hashlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep.base.errors import DownloadError, PrepError
from openstack_prep.download.installer_cache import Kept, cached
from tests.unit.texts import Wording

LOCATION = "https://host/art/rhcos-4.11.qcow2.gz"
CONTENT = b"QFI\xfb a disk"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "openshift-installer" / "image_cache"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "name", ["rhcos-4.11.qcow2", hashlib.md5(f"{LOCATION}?sha256={SHA256}".encode(), usedforsecurity=False).hexdigest()]
)
def test_what_the_installer_has(cache: Path, name: str) -> None:
    assert cached(LOCATION, SHA256) is None
    (cache / name).write_bytes(CONTENT)
    assert cached(LOCATION, SHA256) == str(cache / name)
    (cache / name).write_bytes(CONTENT[:-1])
    assert cached(LOCATION, SHA256) is None


def test_the_cache_is_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".cache" / "openshift-installer" / "image_cache" / "rhcos-4.11.qcow2"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert cached(LOCATION, SHA256) == str(path)
    assert cached("https://host/", SHA256) is None


# --- as target ----------------------------------------------------------------------------

NEWER, OLDER = (
    "rhcos-4.11.qcow2",
    hashlib.md5(f"{LOCATION}?sha256={SHA256}".encode(), usedforsecurity=False).hexdigest(),
)
CHUNKS = [CONTENT[:4], CONTENT[4:]]


def test_what_passes_by_is_kept_under_all_names(cache: Path) -> None:
    cache.rmdir()
    with Kept(CHUNKS, LOCATION, SHA256) as kept:
        assert list(kept) == CHUNKS
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == {NEWER: CONTENT, OLDER: CONTENT}
    assert (cache / NEWER).stat().st_mode & 0o777 == 0o444
    assert cached(LOCATION, SHA256) == str(cache / NEWER)


def test_what_was_wrong_or_left_over_is_replaced(cache: Path) -> None:
    for name in (NEWER, OLDER, f"{NEWER}.tmp", f"{NEWER}.lock"):
        (cache / name).write_bytes(b"old")
    with Kept(CHUNKS, LOCATION, SHA256) as kept:
        assert list(kept) == CHUNKS
        assert list(kept) == CHUNKS  # an upload may be sent again
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == {NEWER: CONTENT, OLDER: CONTENT}


def test_wrong_content_is_not_kept(cache: Path) -> None:
    def wrong() -> Iterator[bytes]:
        yield from CHUNKS
        raise DownloadError("has sha256 0")

    with pytest.raises(DownloadError), Kept(wrong(), LOCATION, SHA256) as kept:
        list(kept)
    assert not list(cache.iterdir())


def test_nothing_stays_of_what_was_given_up(cache: Path) -> None:
    with Kept(CHUNKS, LOCATION, SHA256) as kept:
        held = iter(kept)  # as a traceback holds it
        next(held)
        assert {path.name for path in cache.iterdir()} == {f"{NEWER}.tmp", f"{NEWER}.lock"}
    assert not list(cache.iterdir())


def test_it_is_left_to_an_installer_that_fills_it(cache: Path) -> None:
    with (cache / f"{NEWER}.lock").open("w") as lock, Kept(CHUNKS, LOCATION, SHA256) as kept:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert list(kept) == CHUNKS
    assert [path.name for path in cache.iterdir()] == [f"{NEWER}.lock"]


def test_a_cache_that_cannot_be_written(cache: Path, wording: Wording) -> None:
    cache.rmdir()
    cache.write_text("a file")
    with (
        pytest.raises(PrepError) as caught,
        Kept(CHUNKS, LOCATION, SHA256) as kept,
    ):
        list(kept)
    wording(caught.value)


def test_a_full_disk(cache: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        with (
            pytest.raises(PrepError, match=r"cannot be written: File too large"),
            Kept([bytes(2**20)] * 2, LOCATION, SHA256) as kept,
        ):
            list(kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not list(cache.iterdir())
