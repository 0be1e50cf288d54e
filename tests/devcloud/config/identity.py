"""Keystone."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, project
from tests.devcloud.layout import Layout


def keystone(layout: Layout) -> Config:
    keys = layout.data / "keystone"
    return project(
        layout,
        "keystone",
        {
            "api": {"response_validation": "ignore"},  # Keystone's tests judge its answers
            "token": {"provider": "fernet"},
            "fernet_tokens": {"key_repository": keys / "fernet"},
            # without it keystone looks for receipts' keys in /etc
            "fernet_receipts": {"key_repository": keys / "fernet"},
            "credential": {"key_repository": keys / "credential"},
            # the fewest rounds that bcrypt takes: a password check costs 2 ms, not 200
            "identity": {"password_hash_rounds": 4, "max_password_length": 72},
            # each reader gets a copy: with oslo_cache.dict a request that changes its answer changes everybody's, and
            # a value that expires while another thread stores one ends that thread's request with a KeyError
            "cache": {"enabled": True, "backend": "dogpile.cache.memory_pickle"},
        },
    )
