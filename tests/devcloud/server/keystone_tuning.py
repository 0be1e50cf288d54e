"""Empties Keystone's caches once more at the end of each request that writes.

Keystone empties them before it commits or beside it, so a read at the same time may keep what was before, for ten
minutes. Where values may be kept for a moment only, it computes the roles of each token again, which takes half
of its time. A region that is emptied gets another id, which is part of its keys, and a read uses one key to the end:
what it has read before the last emptying is never found again (keystone 30.0.0, common/cache/core.py; dogpile.cache
1.5.0, region.py, get_or_create).
"""

READS = ("GET", "HEAD")
LOGIN = "POST", "/v3/auth/tokens"  # writes nothing that is cached


class Emptied:
    """WSGI middleware of Keystone."""

    def __init__(self, application):
        from keystone import assignment, revoke
        from keystone.common import cache

        self.application = application
        self.regions = (cache.CACHE_REGION, assignment.COMPUTED_ASSIGNMENTS_REGION, revoke.REVOKE_REGION)

    def __call__(self, environ, start_response):
        try:
            return self.application(environ, start_response)
        finally:
            method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO")
            if method not in READS and (method, path) != LOGIN:
                for region in self.regions:
                    region.invalidate()
