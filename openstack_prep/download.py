"""Bytes from a file or a URL, in chunks: as much memory for a gigabyte as for a byte.

Proxies, CA bundles and ~/.netrc are taken from the environment, as ``requests`` does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from openstack_prep.errors import DownloadError

if TYPE_CHECKING:
    import requests

CHUNK = 2**18  # bytes; larger ones leave the processors' caches before the next stage has them
TIMEOUT = (10.0, 60.0)  # seconds to connect, seconds without a byte
ATTEMPTS = 5
PAUSE = 0.5  # seconds before the second attempt; grows, at random
PASSING = (408, 429, 500, 502, 503, 504)

Chunks = Generator[bytes, None, None]


def open_source(where: str) -> tuple[Chunks, int | None]:
    """Return the chunks of a file or URL, and the size in bytes if it is known; raises DownloadError."""
    return _open_url(where) if where.startswith(("http://", "https://")) else _open_file(local_path(where))


def local_path(where: str) -> str:
    """Return the path of a local source, given as such or as a file: URL."""
    return unquote(urlsplit(where).path) if where.startswith("file://") else where


def shown(where: str) -> str:
    """Return a source as it may be shown: user names, passwords and signatures stand in URLs, too."""
    if "://" not in where:
        return where
    parts = urlsplit(where)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _open_file(path: str) -> tuple[Chunks, int]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the generator
        size = file.seek(0, 2)
        file.seek(0)
    except OSError as error:
        raise DownloadError(f"{path} cannot be read: {error}") from error

    def chunks() -> Chunks:
        with file:
            try:
                while chunk := file.read(CHUNK):
                    yield chunk
            except OSError as error:
                raise DownloadError(f"{path} cannot be read: {error}") from error

    return chunks(), size


# --- over HTTP ----------------------------------------------------------------------------


def _open_url(url: str) -> tuple[Chunks, int | None]:
    answer = _get(url)
    length = answer.headers.get("Content-Length")
    size = int(length) if length and length.isdigit() else None
    return _body(url, answer, size), size


def _body(url: str, answer: requests.Response, size: int | None) -> Chunks:
    """Yield what the server sends, going on where a broken connection left off."""
    import urllib3

    unchanged = {"If-Range": tag} if (tag := _validator(answer)) else {}
    done, begun = 0, -1
    while True:
        broke: Exception | None = None
        try:
            for chunk in answer.raw.stream(CHUNK, decode_content=False):
                done += len(chunk)
                yield chunk
        except (urllib3.exceptions.HTTPError, OSError) as error:
            broke = error
        finally:
            answer.close()
        if broke is None and size in (None, done):
            return
        if done <= begun or (size is not None and done > size):
            raise DownloadError(f"{shown(url)} broke off after {done} of {size} bytes: {broke}") from broke
        begun = done
        answer = _get(url, {"Range": f"bytes={done}-", **unchanged})
        if not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            answer.close()
            raise DownloadError(
                f"{shown(url)} broke off after {done} of {size} bytes, and has changed or cannot be resumed"
            ) from broke


def _validator(answer: requests.Response) -> str | None:
    """Return what tells this content from a later one of the same address; weak tags may not be used for it."""
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified")


def _get(url: str, headers: dict[str, str] | None = None) -> requests.Response:
    """Ask for a URL; passing faults are waited out."""
    import requests
    import tenacity

    # what the file is, not what it decompresses to: sums are of the file
    asked = {"Accept-Encoding": "identity", **(headers or {})}

    def ask() -> requests.Response:
        return requests.get(url, stream=True, timeout=TIMEOUT, headers=asked)

    def passing(error: BaseException) -> bool:
        return isinstance(error, requests.ConnectionError | requests.Timeout) and not isinstance(
            error, requests.exceptions.SSLError
        )

    retry = tenacity.Retrying(
        retry=tenacity.retry_if_exception(passing)
        | tenacity.retry_if_result(lambda answer: answer.status_code in PASSING),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(multiplier=PAUSE, max=8),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    try:
        answer: requests.Response = retry(ask)
    except requests.RequestException as error:
        raise DownloadError(f"{shown(url)} cannot be downloaded: {_reason(error)}") from error
    if not answer.ok:
        answer.close()
        raise DownloadError(f"{shown(url)} cannot be downloaded: {answer.status_code} {answer.reason}")
    return answer


def _reason(error: Exception) -> str:
    """Return why a request failed without its address, which the library's own text repeats in full."""
    inner = getattr(error.args[0], "reason", None) if error.args else None
    return str(inner or type(error).__name__)
