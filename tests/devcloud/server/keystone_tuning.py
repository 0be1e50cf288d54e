"""Lets Keystone keep in its caches no value that it has read while something was written.

Keystone deletes what a write changes from its caches before it commits, so a read at the same time may store again what
was before, for ten minutes (keystone 30.0.0, resource/core.py, assignment/core.py and identity/core.py; dogpile.cache
1.5.0, region.py, get_or_create: the value is stored after it was read). Where values may be kept for a moment only, it
computes the roles of each token again, which takes half of its time.
"""

import threading

READS = ("GET", "HEAD")
LOGIN = "POST", "/v3/auth/tokens"  # writes nothing that is cached


class Writes:
    """Counts the requests that write: those that have begun, and those that are under way."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begun = self.under_way = 0

    def __enter__(self):
        with self.lock:
            self.begun += 1
            self.under_way += 1

    def __exit__(self, *error):
        with self.lock:
            self.under_way -= 1


class Cautious:
    """WSGI middleware of Keystone."""

    def __init__(self, application):
        from keystone import assignment, revoke
        from keystone.common import cache

        self.application = application
        self.writes = Writes()
        for region in (cache.CACHE_REGION, assignment.COMPUTED_ASSIGNMENTS_REGION, revoke.REVOKE_REGION):
            store_unless_written(region, self.writes)

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] in READS or (environ["REQUEST_METHOD"], environ.get("PATH_INFO")) == LOGIN:
            return self.application(environ, start_response)
        with self.writes:
            return self.application(environ, start_response)


def store_unless_written(region, writes):
    """Let a region store a value only if no request has written since before the value was read."""
    local = threading.local()
    get_or_create, store = region.get_or_create, region._set_cached_value_to_backend

    def get_or_create_noting(*arguments, **options):
        outer = getattr(local, "unwritten_since", None)
        with writes.lock:
            local.unwritten_since = None if writes.under_way else writes.begun
        try:
            return get_or_create(*arguments, **options)
        finally:
            local.unwritten_since = outer

    def store_if_unwritten(key, value):
        with writes.lock:
            if local.unwritten_since == writes.begun:
                store(key, value)

    region.get_or_create = get_or_create_noting
    region._set_cached_value_to_backend = store_if_unwritten
