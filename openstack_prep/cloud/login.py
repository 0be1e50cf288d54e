"""A login that would wait for itself."""

from __future__ import annotations

import threading


def refuse_endless_login(plugin: object) -> None:
    """Replace the lock of a keystoneauth plugin by one that refuses the thread that holds it."""
    if hasattr(plugin, "_lock") and not isinstance(plugin._lock, _Lock):
        plugin._lock = _Lock()


class _Lock:
    """A lock that raises Unauthorized where the thread would wait for itself, for ever.

    When Keystone answers 401 to the request for its versions, keystoneauth repeats it with a token, for which it needs
    the versions (keystoneauth1 5.18.1, discover.get_version_data and identity/base.get_access). After Unauthorized it
    takes the version from the URL.
    """

    def __init__(self) -> None:
        self._lock, self._owner = threading.Lock(), 0

    def __enter__(self) -> None:
        from keystoneauth1.exceptions import Unauthorized

        if self._owner == threading.get_ident():
            raise Unauthorized("Keystone refuses to list its versions without a token")
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = 0
        self._lock.release()
