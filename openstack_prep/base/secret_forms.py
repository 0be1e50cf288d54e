"""The forms in which texts contain secrets: as they are, escaped, in base64, or within a URL."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from html.entities import codepoint2name

from openstack_prep.base.raw import walk

HIDDEN = "********"
SHORTEST = 6
"""Characters of a part of a secret that is looked for: shorter ones are in any text."""


SHORTEST_CUT = 4
"""Characters of a secret's beginning that are looked for at the end of a text."""
LONGEST = 1000
"""Characters of a secret that is found in any form, which takes time to prepare; a longer one is found as it is, in
JSON, and as Python's repr."""


def contains(text: str, secrets: Iterable[str]) -> bool:
    """Whether a text contains one of some secrets."""
    return any(_pattern(each).search(text) or any(part in text for part in _coded(each)) for each in secrets if each)


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text with stars in place of secrets, and of the texts within those that are JSON or lists.

    Services cut texts, so the beginning of a secret at the end of the text is one, too.
    """
    values = {value for secret in secrets if secret for value in (secret, *_values(secret))}
    text = _hide_cut(text, values)
    for value in sorted(values, key=len, reverse=True):
        text = _pattern(value).sub(HIDDEN, text)
        for part in _coded(value):
            text = text.replace(part, HIDDEN)
    return text


def _hide_cut(text: str, values: Iterable[str]) -> str:
    """Return a text with stars in place of the beginning of a value at its end."""
    forms = {form for value in values for form in _list_literal_forms(value)}
    first_letters = {form[0] for form in forms}
    for start in range(max(0, len(text) - LONGEST), len(text) - SHORTEST_CUT + 1):
        if text[start] in first_letters and any(form.startswith(text[start:]) for form in forms):
            return text[:start] + HIDDEN
    return text


SECRET_WORDS = (
    r"pass(?:word|wd|phrase|code)?|pwd?|secret|token"
    r"|(?:private|secret|access|api|client|encryption|signing|s3|temp_?url)[_-]?key"
)
"""The last words of names of secrets, for a pattern that ignores case."""
_NAMED = re.compile(rf"(?:.*[\W_])?(?:{SECRET_WORDS})s?", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def with_underscores(name: str) -> str:
    """Return a name such as dbPassword with its words apart."""
    return _CAMEL.sub("_", name)


def _is_named(name: str) -> bool:
    return _NAMED.fullmatch(with_underscores(name)) is not None


def list_named_secrets(value: object, name: str = "") -> Iterator[str]:
    """Yield the texts in data whose key, or that of what they are in, is the name of a secret."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from list_named_secrets(inner, name if _is_named(name) else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from list_named_secrets(inner, name)
    elif isinstance(value, str) and value and _is_named(name):
        yield value


def _list_literal_forms(secret: str) -> frozenset[str]:
    """Return a secret as it is, in JSON, in JSON within JSON, and as Python's repr, each also on one line."""
    once = json.dumps(secret)[1:-1]
    quoted = repr(secret)[1:-1]
    forms = {secret, once, json.dumps(once)[1:-1], quoted, json.dumps(quoted)[1:-1], repr(quoted)[1:-1]}
    return frozenset(forms | {" ".join(form.split()) for form in forms})


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
    whole = repr(found)  # as services written in Python quote it
    found_texts = (whole, *(str(part) for part in walk(found) if isinstance(part, str | int | float)))
    yield from (text for text in found_texts if len(text) >= SHORTEST)


_PERCENT = "%(?:25){0,3}"
_BACKSLASH = rf"(?:\\|{_PERCENT}5c)"
_ESCAPES = f"{_BACKSLASH}{{0,7}}"
"""Before a character in JSON within JSON, three deep; bounded, because a service may answer thousands of them."""
_AMPERSAND = rf"(?:&|{_ESCAPES}u0026|{_PERCENT}26)(?:amp(?:;|{_PERCENT}3b)){{0,3}}"
_SPACE = rf"(?:\s|\+|{_PERCENT}(?:0[9a-d]|2[0b])|{_ESCAPES}{_BACKSLASH}(?:[nrtfv]|x0[9a-d]|u00(?:0[9a-d]|20)))"


@lru_cache(maxsize=256)
def _pattern(secret: str) -> re.Pattern[str]:
    """Return what finds a secret however JSON, repr, URLs, forms or HTML have escaped it, one in another, too."""
    if len(secret) > LONGEST:
        return re.compile("|".join(map(re.escape, sorted(_list_literal_forms(secret), key=len, reverse=True))))
    return re.compile("".join(map(_escaped, re.findall(r"[A-Za-z0-9_]+|\\+|\s+|.", secret.strip() or secret))))


def _escaped(part: str) -> str:
    """Return the pattern of a word, of backslashes or spaces, or of one other character of a secret."""
    if re.fullmatch("[A-Za-z0-9_]+", part):
        return part
    if part.isspace():
        return f"(?i:{_SPACE}{{1,{len(part)}}})"
    if part[0] == "\\":
        return f"(?i:{_BACKSLASH}{{1,{8 * len(part)}}})"
    code, pairs = ord(part), part.encode("utf-16-be", "surrogatepass")
    name = "apos" if part == "'" else codepoint2name.get(code, "#")
    octets = part.encode("utf-8", "surrogatepass")
    forms = (
        _ESCAPES.join(f"u{pairs[each : each + 2].hex()}" for each in range(0, len(pairs), 2)),
        rf"[xu]0{{0,6}}{code:x}",
        _ESCAPES.join(f"(?:x|{_PERCENT}){octet:02x}" for octet in octets),
        rf"{_AMPERSAND}(?:(?:\#|{_PERCENT}23)(?:x0{{0,6}}{code:x}|0{{0,6}}{code})|{name})(?:;|{_PERCENT}3b)",
    )
    return f"(?i:{_ESCAPES})(?:{re.escape(part)}|(?i:{'|'.join(forms)}))"


def _coded(secret: str) -> Iterator[str]:
    """Yield the base64 of texts that have a secret in their middle, without what its neighbours change."""
    for text in {secret, *(json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))}:
        for offset in range(3):
            coded = base64.b64encode(bytes(offset) + text.encode("utf-8", "surrogatepass")).decode().rstrip("=")
            part = coded[(0, 2, 3)[offset] : len(coded) - 1]
            if len(part) >= SHORTEST:
                yield from (part, part.translate(str.maketrans("+/", "-_")))


# --- logins, signatures and tokens that URLs contain ---------------------------------------

_QUOTE = r"""["'](?=[\w@!#$%&*=^~-])"""
"""A quote within a password; at the end of a quoted text a comma, bracket or space follows it."""
_SLASHES = "(?://|(?:(?<=https:)|(?<=http:))/(?!/))"
"""Those of a URL, also of one that was given as a path: pathlib makes https:/ of https://."""
_LOGIN = re.compile(rf"""{_SLASHES}(?:(?:[^\s/"'<>]|{_QUOTE})+|[^\s/@"'<>:[]*:(?:[^\s"'<>]|{_QUOTE})*)@(?!sha\d+:)""")
"""The login in a URL, up to its last at sign, also of one whose password has a slash; a port is taken for it if the
path has an at sign, except before a digest."""
_NO_SCHEME = r"""(?:\w+:)?/*[^\s/@"'<>:][^\s/"'<>:]*:[^\s/"'<>]+@(?!sha\d+:)"""
BARE_LOGIN = re.compile(r"^(?:\w+:)?/*[^\s/@:][^\s/:]*:[^\s/]+@(?!sha\d+:)")
"""The beginning of a URL with a login whose scheme is missing; a digest follows the tag of a container's image."""
_QUOTED_BARE_LOGIN = re.compile(f"""(?<=["']){_NO_SCHEME}""")
_QUOTED_LOGIN = re.compile(r"""(?<=["'])(\w+://)[^\s/"'<>:]*:(?!\d+[/\s])[^"'<>\n]{0,200}\s[^"'<>\n]{0,200}@""")
"""The login in a quoted URL, whose password has a blank."""
QUERY = re.compile(r"\?[^\s\"'<>?=]+=[^\s\"'<>]*")
"""The query of a URL, which may contain a signature or token."""
_URL_QUERY = re.compile(r"//[^\s\"'<>?]+\?[^\s\"'<>]")
"""A URL with a query, which may be a token without a name."""


def without_url_secrets(text: str) -> str:
    """Return a text without the logins and queries of the URLs in it."""
    return QUERY.sub("?...", _LOGIN.sub("//", text))


def is_in_url_secret(letter: str, text: str) -> bool:
    """Whether a letter is in the login or the query of a URL in a text."""
    in_query = any(letter in found[0].partition("?")[2] for found in re.finditer(r"//[^\s\"'<>]+", text))
    return in_query or without_url_secrets(text).count(letter) < text.count(letter)


_TOKEN = re.compile(r"gAAAA[\w-]{60,}={0,2}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}|(?i:(?<=set-cookie: ))\S+")
"""A Fernet token, as Keystone makes them, a JSON Web Token, or a cookie of a session, in a log of requests."""
_AUTHORIZATION = re.compile(r"""(authorization["']?\s?[:=]\s?["']?(?:[a-z]+\s)?+)(?!\*)[^\s"'<>]+""", re.IGNORECASE)
"""The header of a request with a login in base64 or a token, which a server or proxy may repeat in its status line."""


_PATH_WITH_QUERY = re.compile(r"""(?:(?<=https:)|(?<=http:))/(?!/)([^\s"'<>?]+)\?[^\s"'<>]+""")
"""A URL with a query that was given as a path, such as the raw file of a private repository with its token."""
_UNPARSED = re.compile("(?<=Failed to parse: ).*")
"""What urllib3 2 cannot read as a URL: a part of one, perhaps with a password (exceptions.py, LocationParseError)."""


_KEY = re.compile(
    r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?!\*)"
    r"(?:(?s:.{0,10000}?)-----END [A-Z0-9 ]*PRIVATE KEY-----|"
    r"(?:(?:\n\s*|\\+[nr])+(?:(?:Proc-Type|DEK-Info): [^\s\\]*|[\w+/=]*))*)"
)
"""A private key in PEM, also one that is cut, such as somebody writes in the place of a path."""


def without_logins(text: str) -> str:
    """Return a text such as an error that quotes a value, without the logins of the URLs in it, tokens and keys."""
    if "PRIVATE KEY" in text:
        text = _KEY.sub(rf"\1{HIDDEN}", text)
    text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    text = _TOKEN.sub(HIDDEN, _PATH_WITH_QUERY.sub(r"//\1?...", _UNPARSED.sub("...", text)))
    if "@" in text:
        text = _QUOTED_BARE_LOGIN.sub("...", _LOGIN.sub("//...", _QUOTED_LOGIN.sub(r"\1...", text)))
    return text


def without_login(value: str) -> str:
    """Return the text of a field, which may be a URL without its scheme, without logins."""
    return BARE_LOGIN.sub("...", _LOGIN.sub("//...", value)) if "@" in value else value


_unlogged = ContextVar("unlogged", default=False)
# a filter does not count for loggers below: those of a session that splits them
_SPLIT = (f"keystoneauth.session{part}" for part in ("", ".request", ".response", ".body"))
for _name in ("urllib3.connection", "urllib3.connectionpool", *_SPLIT):
    logging.getLogger(_name).addFilter(lambda _: not _unlogged.get())
# these log whole answers (keystoneauth1 5.18.1, identity/v3/base.py), and warnings that a person needs
for _name in (f"keystoneauth.identity.v3.{part}" for part in ("base", "federation", "oidc")):
    logging.getLogger(_name).addFilter(lambda record: record.levelno > logging.DEBUG or not _unlogged.get())


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
    texts = (part for part in walk(value) if isinstance(part, str))
    return any(without_url_secrets(text) != text or _URL_QUERY.search(text) for text in texts)
