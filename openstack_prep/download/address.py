"""How a source is written, as a path or URL, and how it is shown; how large the chunks of its content are."""

from __future__ import annotations

from collections.abc import Generator
from urllib.parse import unquote, urlsplit, urlunsplit

CHUNK = 2**18  # bytes; larger chunks are evicted from the processor's caches before the next stage reads them
Chunks = Generator[bytes, None, None]


def local_path(where: str) -> str:
    """Return the path of a local source, given as a path or as a file: URL."""
    return unquote(urlsplit(where).path) if where.startswith("file://") else where


def file_of(where: str) -> str | None:
    """Return the path of a source if it is on this machine."""
    path = local_path(where)
    return None if not path or "://" in path else path


def shown(where: str) -> str:
    """Return a source without user names, passwords and signatures, which URLs may contain."""
    if "://" not in where:
        return where
    try:
        parts = urlsplit(where)
    except ValueError:  # not a URL, but it may contain a password
        return f"{where.partition('://')[0]}://..."
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
