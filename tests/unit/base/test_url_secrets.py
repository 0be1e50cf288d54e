"""Texts that quote URLs, without the logins in them."""

from __future__ import annotations

import json
import textwrap
import traceback
from pathlib import Path

import pytest

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.base.secret_forms import has_url_secrets, without_logins, without_url_secrets

WORD = "corr:ect-horse"
URLS = (
    f"https://me:{WORD}@example.com/a",
    f"http://me:12/{WORD}@example.com:80",
    f"https://{WORD}@h",
    f"me:{WORD}@h/a",
    f"https://me:p@{WORD}@h",
    f"me@example.com:{WORD}@h",
    f"https://me:it's-{WORD}@h/a",
    f'https://me:"{WORD}"@h/a',
    f"https://me:a b {WORD} c@h/a",
)


@pytest.mark.parametrize("url", URLS)
def test_an_error_shows_no_login(url: str) -> None:
    found = Mistake("spec.yaml:3: source", f"{url!r} is wrong", f"see '{url}'")
    for error in (ConfigError(f"entry: '{url}'"), SpecError([found])):
        assert "horse" not in "".join(traceback.format_exception(error))
        assert "horse" not in str([each.data() for each in error.diagnostics])
    assert "horse" not in str(Diagnostic(where=f'"{url}"', what="is wrong", why=f"'{url}'").data())


@pytest.mark.parametrize(
    "text",
    [
        "see http://h:80/x, http://h/x@y, http://[::1]:80/a@b, https://h:8443/x@sha256:0",
        "image 'quay.io/a/b:1.2@sha256:0123' and 'b:1.2@sha256:0123'",
        "user atk@Default: 10:20 me@example.com",
        "'[openstack-prep:lab/app@0123]'",
        "'http://h:80/x of me@example.com' and 'https://h:8443 of a@b'",
        """{"href":"http://h:80/","tags":["lab/app@0123"]} ['http://h:80','a@b']""",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert without_logins(text) == text


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"https://me:{WORD}@h.example.com/a.yaml", "https://...h.example.com/a.yaml"),
        (f"http://{WORD}@h/a.yaml", "http://...h/a.yaml"),
        (f"https://h/a.yaml?token={WORD}", "https://h/a.yaml?..."),
        ("https://h/a@b.yaml", "https:/h/a@b.yaml"),
    ],
)
def test_a_url_that_is_given_as_a_path(path: str, shown: str) -> None:
    """pathlib makes one slash of the two."""
    assert without_logins(f"{Path(path)} cannot be read") == f"{shown} cannot be read"


def test_a_password_with_a_slash_is_a_login() -> None:
    assert without_url_secrets(f"proxy http://me:a/{WORD}@h:3128 failed") == "proxy http://h:3128 failed"


@pytest.mark.parametrize("query", ["&sig=horse", "a[b]=horse", "a:b=horse"])
def test_every_query_is_hidden(query: str) -> None:
    assert without_url_secrets(f"see https://h/a?{query} or not?") == "see https://h/a?... or not?"
    assert has_url_secrets([f"https://h/a?{query}"])
    assert has_url_secrets("https://h/a?horse")


def test_a_log_of_requests_shows_no_cookie() -> None:
    text = "RESP: [200] Server: x Set-Cookie: session=horse; Path=/ set-cookie: b=horse; Secure"
    assert "horse" not in without_logins(text)
    assert "[200] Server: x" in without_logins(text)


@pytest.mark.parametrize(
    "text",
    [
        "407 no Proxy-Authorization: Basic aG9yc2U=",
        'BadStatusLine("authorization: Bearer aG9yc2U")',
        '{"Authorization": "Basic aG9yc2U="}',
        "HTTP/1.1 400 Authorization=aG9yc2U=",
    ],
)
def test_an_answer_that_repeats_the_login_of_its_request_is_hidden(text: str) -> None:
    assert "aG9yc2U" not in without_logins(text)


@pytest.mark.parametrize(
    "text", ["the authorization failed", "no authorization: none", "Authorization: Basic ********"]
)
def test_words_about_authorization_stay(text: str) -> None:
    assert without_logins(text).startswith(text[:18])


KEY = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nhor+se/H0r=\nhorse\n-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "text", [KEY, repr(KEY), json.dumps(KEY), textwrap.indent(KEY, "  "), f"/a/{KEY}", repr(KEY)[:75]]
)
def test_a_private_key_in_the_place_of_a_path_is_hidden(text: str) -> None:
    for found in (without_logins(text), str(ConfigError(f"key {text} cannot be read"))):
        assert "BEGIN RSA PRIVATE KEY-----********" in found
        assert not [part for part in ("horse", "hor+") if part in found]
    assert str(ConfigError(f"key {text} cannot be read")).endswith(" cannot be read")
