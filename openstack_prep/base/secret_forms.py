"""The forms in which texts contain secrets: as they are, escaped, in base64, or within a URL."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import logging
import re
from collections.abc import Collection, Iterable, Iterator
from contextvars import ContextVar
from urllib.parse import quote, quote_plus

from openstack_prep.base.raw import walk

HIDDEN = "********"
SHORTEST = 6
"""Characters of a part of a secret that is looked for: shorter ones are in any text."""


def contains(text: str, secrets: Iterable[str]) -> bool:
    """Whether a text contains one of some secrets."""
    return any(form in text for secret in secrets if secret for form in _forms(secret))


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text with stars in place of secrets, and of the texts within those that are JSON or lists."""
    values = {value for secret in secrets if secret for value in (secret, *_values(secret))}
    for form in sorted({form for value in values for form in _forms(value)}, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def _values(secret: str) -> Iterator[str]:
    """Yield the texts within a secret that is a JSON object or list, or a list with commas; services show single ones.

    So does Heat for parameters of the types json and comma_delimited_list.
    """
    if secret.lstrip()[:1] not in ("{", "["):
        parts = secret.split(",") if "," in secret else ()
        yield from (part for each in parts if len(part := each.strip()) >= SHORTEST)
        return
    try:
        found = json.loads(secret)
    except (ValueError, RecursionError):
        return
    yield from (part for part in walk(found) if isinstance(part, str) and len(part) >= SHORTEST)


def _forms(secret: str) -> Collection[str]:
    once = json.dumps(secret)[1:-1]
    forms = {secret, " ".join(secret.split()) or secret, once, json.dumps(once)[1:-1]}
    forms |= {quote(secret, safe=""), quote_plus(secret)}
    forms |= {repr(secret)[1:-1], repr(f"{secret}'\"")[1:-4]}  # within single quotes, whichever Python chooses
    forms |= {html.escape(form, quote=quotes) for form in [*forms] for quotes in (False, True)}
    for offset in range(3):  # base64 of a text that has it in its middle, without what its neighbours change
        coded = base64.b64encode(bytes(offset) + secret.encode()).decode().rstrip("=")
        part = coded[(0, 2, 3)[offset] : len(coded) - 1]
        if len(part) >= SHORTEST:
            forms |= {part, part.translate(str.maketrans("+/", "-_"))}
    return forms


# --- logins, signatures and tokens that URLs contain ---------------------------------------

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


_TOKEN = re.compile(r"gAAAA[\w-]{60,}={0,2}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}|(?i:(?<=set-cookie: ))\S+")
"""A Fernet token, as Keystone makes them, a JSON Web Token, or a cookie of a session, in a log of requests."""


_UNPARSED = re.compile("(?<=Failed to parse: ).*")
"""What urllib3 2 cannot read as a URL: a part of one, perhaps with a password (exceptions.py, LocationParseError)."""


def without_logins(text: str) -> str:
    """Return a text such as an error that quotes a value, without the logins of the URLs in it, and without tokens."""
    text = _TOKEN.sub(HIDDEN, _UNPARSED.sub("...", text))
    return _QUOTED_BARE_LOGIN.sub("...", _LOGIN.sub("//...", text)) if "@" in text else text


_unlogged = ContextVar("unlogged", default=False)
# a filter does not count for loggers below: those of a session that splits them
_SPLIT = (f"keystoneauth.session{part}" for part in ("", ".request", ".response", ".body"))
for _name in ("urllib3.connection", "urllib3.connectionpool", *_SPLIT):
    logging.getLogger(_name).addFilter(lambda _: not _unlogged.get())


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Have no library log this thread's requests: URLs with queries, which may be signatures, or bodies of logins."""
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)


def has_url_secrets(value: object) -> bool:
    """Whether a text, or one within a value, has a URL with a login or a query."""
    return any(isinstance(part, str) and without_url_secrets(part) != part for part in walk(value))
