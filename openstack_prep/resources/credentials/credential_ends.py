"""When an application credential expires, and when it is renewed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from openstack_prep.base.fields import timestamp


def ended(end: str | None) -> bool:
    return end is not None and datetime.fromisoformat(timestamp(end)) <= datetime.now(UTC)


def lifetime(end: str | None, wanted: int | None, renew_before: int | None) -> int | str | None:
    """Return the lifetime as declared, unless the credential expires too early or too late."""
    if wanted is None or end is None:
        return None
    left = datetime.fromisoformat(timestamp(end)) - datetime.now(UTC)
    fits = timedelta(days=renew_before or 0) < left <= timedelta(days=wanted)
    return wanted if fits else f"ends {timestamp(end)}"


def mistakes(lifetime: int | None, renew_before: int | None, expires_at: str | None) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with the times of a spec, and the fix."""
    if lifetime is not None and expires_at is not None:
        yield "lifetime and expires_at are both set", "set only one of them"
    if renew_before is not None and renew_before >= (lifetime or 0):
        yield "renew_before must be less than lifetime", "lower it, or remove it"
    if expires_at and datetime.fromisoformat(timestamp(expires_at)) <= datetime.now(UTC):
        yield f"expires_at {expires_at} is in the past", "choose a later time"
