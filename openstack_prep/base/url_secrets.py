"""Logins, signatures and tokens that URLs contain."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

_LOGIN = re.compile(r"""//(?:[^\s/@"'<>]+|[^\s/@"'<>:[]*:[^\s@"'<>]*)@(?!sha\d+:)""")
"""The login in a URL, also of one whose password has a slash; a port is taken for it if the path has an at sign,
except before a digest."""
_NO_SCHEME = r"""(?:\w+:)?/*[^\s/@"'<>:]+:[^\s/@"'<>]+@(?!sha\d+:)"""
BARE_LOGIN = re.compile(f"^{_NO_SCHEME}")
"""The beginning of a URL with a login whose scheme is missing; a digest follows the tag of a container's image."""
_QUOTED_BARE_LOGIN = re.compile(f"""(?<=["']){_NO_SCHEME}""")
QUERY = re.compile(r"\?[\w.~%-]+=[^\s\"'<>]*")
"""The query of a URL, which may contain a signature or token."""


def without_url_secrets(text: str) -> str:
    """Return a text without the logins and queries of the URLs in it."""
    return _LOGIN.sub("//", QUERY.sub("?...", text))


def without_logins(text: str) -> str:
    """Return a text of this package, such as an error that quotes a value, without the logins of the URLs in it."""
    return _QUOTED_BARE_LOGIN.sub("...", _LOGIN.sub("//...", text)) if "@" in text else text


_unlogged = ContextVar("unlogged", default=False)
logging.getLogger("urllib3.connectionpool").addFilter(lambda _: not _unlogged.get())


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Have urllib3 log nothing of this thread's requests: it logs URLs with their queries, which may be signatures."""
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)


def has_url_secrets(value: object) -> bool:
    """Whether a text, or one within a value, has a URL with a login or a query."""
    if isinstance(value, str):
        return without_url_secrets(value) != value
    if isinstance(value, Mapping):
        return any(map(has_url_secrets, value.values()))
    return isinstance(value, list | tuple) and any(map(has_url_secrets, value))
