"""Commands as a person enters them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def join(words: Iterable[str]) -> str:
    """Return words as one command line."""
    return " ".join(map(quote, words))


def quote(word: str) -> str:
    """Return a word for a shell.

    A name such as ``x:y@z w`` is not quoted as a whole: within quotation marks it would look like a login, which texts
    of this package hide (``secret_forms``).
    """
    quoted = shlex.quote(word)
    if quoted == word or "@" not in word or "//" in word:
        return quoted
    return "@".join(shlex.quote(part) if part else "" for part in word.split("@"))
