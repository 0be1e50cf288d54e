"""Logins, signatures and tokens that URLs contain."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LOGIN = re.compile(r"//[^\s/@\"'<>]+@")
QUERY = re.compile(r"\?[\w.~%-]+=[^\s\"'<>]*")
"""The query of a URL, which may contain a signature or token."""


def without_url_secrets(text: str) -> str:
    """Return a text without the logins and queries of the URLs in it."""
    return _LOGIN.sub("//", QUERY.sub("?...", text))


def has_url_secrets(value: object) -> bool:
    """Whether a text, or one within a value, has a URL with a login or a query."""
    if isinstance(value, str):
        return without_url_secrets(value) != value
    if isinstance(value, Mapping):
        return any(map(has_url_secrets, value.values()))
    return isinstance(value, list | tuple) and any(map(has_url_secrets, value))
