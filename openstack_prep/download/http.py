"""Bytes from a URL.

The environment is respected as by curl: proxies by http_proxy, https_proxy and no_proxy; CAs by REQUESTS_CA_BUNDLE,
CURL_CA_BUNDLE or SSL_CERT_FILE, in this order; user names and passwords by ~/.netrc (or NETRC), which those in the URL
override. Logins do not follow a redirect to another host or port, and https does not become http.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_to_bytes, urlsplit

import requests
import tenacity
import urllib3

from openstack_prep.base import certificate
from openstack_prep.base.errors import DownloadError
from openstack_prep.base.secret_forms import SHORTEST, hide, unlogged, without_url_secrets
from openstack_prep.download.address import CHUNK, Chunks, shown

TIMEOUT = (10.0, 60.0)  # seconds to connect, seconds without data
ATTEMPTS = 5
PAUSE = 0.5  # seconds before the second attempt; grows, at random
PASSING = (408, 429, 500, 502, 503, 504)
REMEDIES = {
    401: "put user and password into the URL or into ~/.netrc",
    403: "put user and password into the URL or into ~/.netrc, or use a URL whose signature has not expired",
    404: "correct the URL",
    407: "put user and password into the proxy's URL",
    410: "correct the URL",
}
CA_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class Session(requests.Session):
    """A session whose login stays with the port that it was sent to.

    ~/.netrc knows hosts, not ports. After each redirect requests looks there again, so that its login goes to any port
    of the host, and in place of the one in the URL (requests 2.34.2, sessions.py, rebuild_auth).
    """

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        parent: Any = super()
        before, after = str(response.request.url), str(prepared_request.url)
        if urlsplit(before).hostname != urlsplit(after).hostname:
            parent.rebuild_auth(prepared_request, response)
        elif parent.should_strip_auth(before, after):
            prepared_request.headers.pop("Authorization", None)


def open_url(url: str) -> tuple[Chunks, int | None]:
    """Return the chunks of a URL, and the size in bytes if it is known; raises DownloadError."""
    answer = _get(url)
    length = answer.headers.get("Content-Length")
    size = int(length) if length and length.isdecimal() else None
    return _body(url, answer, size), size


def _body(url: str, answer: requests.Response, size: int | None) -> Chunks:
    """Yield the server's data, resuming where a broken connection ended."""
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
        broken = f"{shown(url)} broke off after {done} of {'?' if size is None else size} bytes"
        if done <= begun or (size is not None and done > size):
            raise DownloadError(f"{broken}: {_reason(broke, url)}") from broke
        begun = done
        answer = _get(url, {"Range": f"bytes={done}-", **unchanged})
        if not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            answer.close()
            raise DownloadError(f"{broken}, and has changed since or cannot be resumed") from broke


def _validator(answer: requests.Response) -> str | None:
    """Return the validator that detects a changed content of the same URL; weak tags may not be used for it."""
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified")


def _get(url: str, headers: dict[str, str] | None = None) -> requests.Response:
    """Request a URL; transient errors are retried."""

    def passing(error: BaseException) -> bool:
        return isinstance(error, requests.ConnectionError | requests.Timeout) and not _of_tls(error)

    retry = tenacity.Retrying(
        retry=tenacity.retry_if_exception(passing)
        | tenacity.retry_if_result(lambda answer: answer.status_code in PASSING),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(multiplier=PAUSE, max=8),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    try:
        answer: requests.Response = retry(_ask, url, headers or {})
    except (requests.RequestException, ValueError) as error:  # the latter for a redirect to an invalid URL
        # without the library's error, which repeats the address in full
        raise DownloadError(f"{shown(url)} cannot be downloaded: {_reason(error, url)}") from None
    if not answer.ok:
        answer.close()
        reason = _without_secrets(f"{answer.status_code} {answer.reason}", url, answer.url)
        status = "; ".join(filter(None, (reason, REMEDIES.get(answer.status_code))))
        raise DownloadError(f"{shown(url)} cannot be downloaded: {status}")
    return answer


def _without_secrets(answer: str, *urls: str) -> str:
    """Return what a server has answered, which may repeat the request."""
    return without_url_secrets(hide(answer, _secrets_of(*urls)))


def _secrets_of(*urls: str) -> Iterator[str]:
    """Yield the passwords and queries of URLs, and the values in these."""
    for parts in map(urlsplit, urls):
        yield unquote(parts.password or "")
        values = (unquote(parts.username or ""), unquote(parts.query), *(value for _, value in parse_qsl(parts.query)))
        yield from (value for value in values if len(value) >= SHORTEST)


def _ask(url: str, headers: dict[str, str]) -> requests.Response:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise requests.exceptions.InvalidURL from error
    login = [unquote_to_bytes(each or "") for each in (parts.username, parts.password)]
    try:
        with unlogged(), Session() as session:
            return session.get(
                url,
                stream=True,
                timeout=TIMEOUT,
                # the raw file, not its decompressed content: checksums are those of the file
                headers={"Accept-Encoding": "identity", **headers},
                auth=requests.auth.HTTPBasicAuth(*login)
                if any(login)
                else None,  # otherwise ~/.netrc overrides the URL in requests
                verify=next(filter(None, map(os.environ.get, CA_BUNDLES)), True),
                hooks={"response": _refuse_downgrade},
            )
    except requests.RequestException:
        raise
    except OSError as error:  # the CA bundle does not exist
        raise DownloadError(f"{shown(url)} cannot be downloaded: {error}") from None


def _refuse_downgrade(answer: requests.Response, *_: object, **__: object) -> None:
    """Raise DownloadError if a redirect leaves TLS: request and answer could be read and changed."""
    target = answer.headers.get("Location", "")
    if answer.is_redirect and answer.url.startswith("https://") and target.lower().startswith("http://"):
        answer.close()
        raise DownloadError(
            f"{shown(answer.url)} redirects to {shown(target)}, without TLS; use that URL directly if you trust it"
        )


def _reason(error: Exception | None, url: str) -> str:
    """Return why a request failed without its URL, which the library's own text repeats in full."""
    if error is None:
        return "the server closed the connection"
    if isinstance(error, requests.ReadTimeout | urllib3.exceptions.ReadTimeoutError):
        return f"no data for {TIMEOUT[1]:g} seconds"
    if isinstance(error, ValueError) and not isinstance(error, requests.exceptions.InvalidHeader):
        return f"{type(error).__name__}; correct the URL"
    inner = error.args[0] if error.args else None
    for each in (error, inner):
        if isinstance(each, urllib3.exceptions.ProtocolError):
            # the message of the system or the parser, or an invalid answer of a server
            reason = _without_secrets(str(each.args[-1]), url)
            return reason if reason.isprintable() else repr(reason)
    reason = str(getattr(inner, "reason", None) or type(error).__name__)
    return _of_tls(error) or reason


def _of_tls(error: BaseException) -> str | None:
    return certificate.explain(str(error), f"set {CA_BUNDLES[0]} to a file with its CA")
