"""A registry of images: what it answers to a request for a manifest, within one time limit.

Source: OCI distribution specification 1.1, "Pulling manifests" and "Error codes"; the token authentication of
distribution (docs/content/spec/auth/token.md).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode, urlsplit

from openstack_prep.base.secret import Secret

LARGEST = 4 * 2**20
"""Bytes of a manifest; the specification asks registries to accept that many."""
KINDS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


class Answer(StrEnum):
    """What became of a request."""

    FOUND = "found"
    MISSING = "missing"
    DENIED = "denied"
    UNTRUSTED = "untrusted"
    UNREACHABLE = "unreachable"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The answer, and the manifest or what is wrong."""

    answer: Answer
    detail: str = ""
    manifest: Any = None


@dataclass(frozen=True, kw_only=True)
class Registry:
    """A registry, and how to talk to it."""

    host: str
    """Host, with its port if it is not 443."""
    login: Secret | None = None
    """USER:PASSWORD in base64, as a pull secret has it."""
    bundle: str | None = None
    """CA certificates (PEM) to trust besides those of this machine."""
    seconds: float
    """Seconds for one request."""

    def manifest(self, repository: str, reference: str) -> Outcome:
        """Ask for a manifest by its tag or digest; no answer of the registry is an exception."""
        url = f"https://{self.host}/v2/{repository}/manifests/{reference}"
        try:
            status, headers, body = self._ask(url, None)
            if status == 401:
                status, headers, body = self._ask(url, self._authorization(headers, repository))
        except (OSError, http.client.HTTPException, ValueError) as error:
            return _failure(error, self.seconds)
        return _outcome(status, body, reference)

    def _authorization(self, headers: http.client.HTTPMessage, repository: str) -> str | None:
        """Return what the challenge of a registry asks for: the login itself, or a token for it."""
        challenge = headers.get("WWW-Authenticate", "")
        basic = f"Basic {self.login.reveal()}" if self.login else None
        if not challenge.lower().startswith("bearer"):
            return basic
        asked = dict(_PARAMETER.findall(challenge))
        realm = asked.get("realm", "")
        if urlsplit(realm).scheme != "https":  # the login goes there
            raise ValueError(f"its realm of tokens is {realm[:80]!r}, not an https URL")
        query = {"service": asked.get("service", ""), "scope": f"repository:{repository}:pull"}
        status, _, body = self._ask(f"{realm}?{urlencode(query)}", basic)
        answer = json.loads(body) if status == 200 else {}
        token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else None
        return f"Bearer {token}" if isinstance(token, str) and token.isascii() and token.isprintable() else None

    def _ask(self, url: str, authorization: str | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        request = urllib.request.Request(url, headers={"Accept": ", ".join(KINDS)})
        if authorization:
            request.add_unredirected_header("Authorization", authorization)
        deadline = time.monotonic() + self.seconds
        try:
            answer = self._opener().open(request, timeout=self.seconds)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body = b""
            while len(body) <= LARGEST and (chunk := answer.read1(2**16)):
                body += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError
        if len(body) > LARGEST:
            raise ValueError(f"it answers with more than {LARGEST} bytes")
        return answer.status, answer.headers, body

    def _opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context()
        if self.bundle:
            context.load_verify_locations(cadata=self.bundle)
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _StayInTls())


class _StayInTls(urllib.request.HTTPRedirectHandler):
    """Follow redirects, without the login, and to https only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise ValueError("it redirects to a URL without TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# --- answers ------------------------------------------------------------------------------


def _outcome(status: int, body: bytes, reference: str) -> Outcome:
    if status in (401, 403):
        return Outcome(answer=Answer.DENIED, detail=_codes(status, body))
    if status == 404:
        return Outcome(answer=Answer.MISSING, detail=_codes(status, body))
    if status != 200:
        return Outcome(answer=Answer.UNREACHABLE, detail=_codes(status, body))
    algorithm, _, digest = reference.partition(":")
    if algorithm == "sha256" and hashlib.sha256(body).hexdigest() != digest:
        return Outcome(answer=Answer.INVALID, detail="what it returns has another digest")
    try:
        manifest = json.loads(body)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("schemaVersion") != 2:
        return Outcome(answer=Answer.INVALID, detail="what it returns is not a manifest of an image")
    return Outcome(answer=Answer.FOUND, manifest=manifest)


def _codes(status: int, body: bytes) -> str:
    """Return the status, and the codes of the registry's own errors."""
    try:
        errors = json.loads(body)["errors"]
        codes = [str(each["code"]) for each in errors]
    except (ValueError, RecursionError, KeyError, TypeError):
        codes = []
    named = ", ".join(each for each in codes if re.fullmatch("[A-Z_]{1,40}", each))
    return f"{status} ({named})" if named else str(status)


def _failure(error: Exception, seconds: float) -> Outcome:
    """Return why there was no answer, in words without the request."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Outcome(answer=Answer.UNTRUSTED, detail=reason.verify_message)
    if isinstance(reason, TimeoutError):
        return Outcome(answer=Answer.UNREACHABLE, detail=f"no answer within {seconds:g} seconds")
    if isinstance(reason, socket.gaierror):
        return Outcome(answer=Answer.UNREACHABLE, detail="its name does not resolve")
    if isinstance(reason, ssl.SSLError):
        return Outcome(answer=Answer.INVALID, detail=f"no TLS: {reason.reason or reason}")
    if isinstance(reason, http.client.RemoteDisconnected):
        return Outcome(answer=Answer.UNREACHABLE, detail="it closes the connection")
    if isinstance(reason, OSError):
        return Outcome(answer=Answer.UNREACHABLE, detail=reason.strerror or type(reason).__name__)
    text = str(reason) if isinstance(reason, ValueError) and not isinstance(reason, json.JSONDecodeError) else ""
    return Outcome(answer=Answer.INVALID, detail=text or "its answer is not HTTP as a registry speaks it")
