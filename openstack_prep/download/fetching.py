"""Bytes from a file or a URL, in chunks: as much memory for a gigabyte as for a byte.

The environment has its say as it has for curl: proxies by http_proxy, https_proxy and no_proxy; CAs
by REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, in this order; user names and passwords by
~/.netrc (or NETRC), though those of the URL are stronger.  They do not follow a redirect to another
host, and https does not become http.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_to_bytes, urlsplit, urlunsplit

from openstack_prep.base.errors import DownloadError

if TYPE_CHECKING:
    import requests

CHUNK = 2**18  # bytes; larger ones leave the processors' caches before the next stage has them
TIMEOUT = (10.0, 60.0)  # seconds to connect, seconds without a byte
ATTEMPTS = 5
PAUSE = 0.5  # seconds before the second attempt; grows, at random
PASSING = (408, 429, 500, 502, 503, 504)
REMEDIES = {
    401: "give user and password in the URL or in ~/.netrc",
    403: "give user and password in the URL or in ~/.netrc, or a signature that has not expired",
    404: "correct the URL",
    407: "give user and password in the proxy's URL",
    410: "correct the URL",
}
CA_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")

Chunks = Generator[bytes, None, None]


def open_source(where: str) -> tuple[Chunks, int | None]:
    """Return the chunks of a file or URL, and the size in bytes if it is known; raises DownloadError."""
    return _open_url(where) if where.startswith(("http://", "https://")) else _open_file(local_path(where))


def read_small(where: str, largest: int) -> bytes:
    """Return what a file or URL holds if it is at most that many bytes; raises DownloadError."""
    text = b""
    chunks, _ = open_source(where)
    with contextlib.closing(chunks):
        for chunk in chunks:
            text += chunk
            if len(text) > largest:
                raise DownloadError(f"{shown(where)} is too large: more than {largest} bytes")
    return text


def local_path(where: str) -> str:
    """Return the path of a local source, given as such or as a file: URL."""
    return unquote(urlsplit(where).path) if where.startswith("file://") else where


def shown(where: str) -> str:
    """Return a source as it may be shown: user names, passwords and signatures stand in URLs, too."""
    if "://" not in where:
        return where
    try:
        parts = urlsplit(where)
    except ValueError:  # no URL, but there may be a password in it
        return f"{where.partition('://')[0]}://..."
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
    size = int(length) if length and length.isdecimal() else None
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
        said = f"{shown(url)} broke off after {done} of {'?' if size is None else size} bytes"
        if done <= begun or (size is not None and done > size):
            raise DownloadError(f"{said}: {_reason(broke)}") from broke
        begun = done
        answer = _get(url, {"Range": f"bytes={done}-", **unchanged})
        if not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            answer.close()
            raise DownloadError(f"{said}, and has changed or cannot be resumed") from broke


def _validator(answer: requests.Response) -> str | None:
    """Return what tells this content from a later one of the same address; weak tags may not be used for it."""
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified")


def _get(url: str, headers: dict[str, str] | None = None) -> requests.Response:
    """Ask for a URL; passing faults are waited out."""
    import requests
    import tenacity

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
        answer: requests.Response = retry(_ask, url, headers or {})
    except (requests.RequestException, ValueError) as error:  # the latter of a redirect to what is no URL
        # without the library's error, which repeats the address in full
        raise DownloadError(f"{shown(url)} cannot be downloaded: {_reason(error)}") from None
    if not answer.ok:
        answer.close()
        said = "; ".join(filter(None, (f"{answer.status_code} {answer.reason}", REMEDIES.get(answer.status_code))))
        raise DownloadError(f"{shown(url)} cannot be downloaded: {said}")
    return answer


def _ask(url: str, headers: dict[str, str]) -> requests.Response:
    import requests

    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise requests.exceptions.InvalidURL from error
    login = [unquote_to_bytes(each or "") for each in (parts.username, parts.password)]
    _this_thread.asks = True
    try:
        return requests.get(
            url,
            stream=True,
            timeout=TIMEOUT,
            # what the file is, not what it decompresses to: sums are of the file
            headers={"Accept-Encoding": "identity", **headers},
            auth=requests.auth.HTTPBasicAuth(*login) if any(login) else None,  # requests finds ~/.netrc stronger
            verify=next(filter(None, map(os.environ.get, CA_BUNDLES)), True),
            hooks={"response": _refuse_downgrade},
        )
    except requests.RequestException:
        raise
    except OSError as error:  # no such CA bundle
        raise DownloadError(f"{shown(url)} cannot be downloaded: {error}") from None
    finally:
        _this_thread.asks = False


def _refuse_downgrade(answer: requests.Response, *_: object, **__: object) -> None:
    """Raise DownloadError when a redirect leaves TLS: what is sent and what comes could be read and changed."""
    target = answer.headers.get("Location", "")
    if answer.is_redirect and answer.url.startswith("https://") and target.lower().startswith("http://"):
        answer.close()
        raise DownloadError(
            f"{shown(answer.url)} redirects to {shown(target)}, without TLS; give that URL itself if you trust it"
        )


def _reason(error: Exception | None) -> str:
    """Return why a request failed without its address, which the library's own text repeats in full."""
    import requests
    import urllib3

    if error is None:
        return "the server sent no more"
    if isinstance(error, requests.ReadTimeout | urllib3.exceptions.ReadTimeoutError):
        return f"nothing came for {TIMEOUT[1]:g} seconds"
    if isinstance(error, ValueError) and not isinstance(error, requests.exceptions.InvalidHeader):
        return f"{type(error).__name__}; correct the URL"
    inner = error.args[0] if error.args else None
    for each in (error, inner):
        if isinstance(each, urllib3.exceptions.ProtocolError):
            said = str(each.args[-1])  # what the system or the parser says, or a server's own nonsense
            return said if said.isprintable() else repr(said)
    said = str(getattr(inner, "reason", None) or type(error).__name__)
    if isinstance(error, requests.exceptions.SSLError):
        said += f"; name a file with its CA in {CA_BUNDLES[0]}"
    return said


_this_thread = threading.local()
logging.getLogger("urllib3.connectionpool").addFilter(lambda _: not getattr(_this_thread, "asks", False))
"""urllib3 logs addresses with their queries, in which signatures stand."""
