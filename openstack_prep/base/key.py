"""The identity of resources within one spec: a kind, a name, and the scope in which the name is unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_DOMAIN = "Default"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The identity of a resource within one spec.

    ``scope`` is where the name is unique, from the outside in: the domain of a user, the domain and the project of a
    network, the folder of a file; empty for resources of the whole cloud, such as flavors. Two keys are equal only if
    all three are: ``user/ops`` of two domains are two users.
    """

    kind: str
    """Its kind, such as ``network``."""
    name: str
    """Its name in OpenStack, or the path of a file."""
    scope: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def qualified(self) -> str:
        """The text with its scope, such as ``network/net@lab`` or ``user/ops@corp``; Default is left out."""
        inner = self.scope[1:] if self.scope[:1] == (DEFAULT_DOMAIN,) else self.scope
        return f"{self}@{'/'.join(inner)}" if inner else str(self)


def labels(keys: Iterable[Key]) -> dict[Key, str]:
    """Return the shortest unique texts of keys: the short text if only one key has it, else the qualified text."""
    keys = tuple(dict.fromkeys(keys))
    shared = Counter(map(str, keys))
    return {key: str(key) if shared[str(key)] == 1 else key.qualified for key in keys}
