"""The forms in which a service repeats a secret: as it is, escaped, in a URL, or in base64. Pure functions."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import quote

from openstack_prep.base.secret import HIDDEN

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
        waiting: list[object] = [json.loads(secret)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and len(value) >= SHORTEST:
            yield value
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _forms(secret: str) -> Collection[str]:
    once = json.dumps(secret)[1:-1]
    forms = {secret, " ".join(secret.split()) or secret, once, json.dumps(once)[1:-1], quote(secret, safe="")}
    forms |= {repr(secret)[1:-1], repr(f"{secret}'\"")[1:-4]}  # within single quotes, whichever Python chooses
    forms |= {html.escape(form, quote=quotes) for form in [*forms] for quotes in (False, True)}
    for offset in range(3):  # base64 of a text that has it in its middle, without what its neighbours change
        coded = base64.b64encode(bytes(offset) + secret.encode()).decode().rstrip("=")
        part = coded[(0, 2, 3)[offset] : len(coded) - 1]
        if len(part) >= SHORTEST:
            forms |= {part, part.translate(str.maketrans("+/", "-_"))}
    return forms
