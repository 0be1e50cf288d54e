"""Values that must not be seen: they come out by reveal() alone, never by str, repr, format or pickle."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NoReturn

HIDDEN = "********"


class Secret:
    """A secret and where it came from.

    The value may be given or fetched when first asked for (a prompt, a file that is yet to be
    written).  Equality compares the values in constant time, so that plans can be compared.
    """

    __slots__ = ("_fetch", "_value", "origin")

    def __init__(self, value: str | None = None, *, origin: str = "", fetch: Callable[[], str] | None = None) -> None:
        if (value is None) == (fetch is None):
            raise TypeError("give a Secret either its value or a way to fetch it")
        self._value = value
        self._fetch = fetch
        self.origin = origin

    def reveal(self) -> str:
        """Return the value; the caller must not log, print or store it beyond its purpose."""
        if self._value is None:
            assert self._fetch is not None
            self._value = self._fetch()
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.reveal().encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash(Secret)

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not written anywhere")
