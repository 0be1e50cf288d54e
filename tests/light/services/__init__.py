"""The services, each a module or more; importing this registers their paths."""

from tests.light.services import (
    cinder,
    credentials,
    flavors,
    glance,
    grants,
    keystone,
    nova,
    others,
    quotas,
    tokens,
    uploads,
)

__all__ = [
    "cinder",
    "credentials",
    "flavors",
    "glance",
    "grants",
    "keystone",
    "nova",
    "others",
    "quotas",
    "tokens",
    "uploads",
]
