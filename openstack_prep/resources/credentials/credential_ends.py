"""When an application credential ends, and from when on it is renewed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from openstack_prep.base.fields import timestamp


def ended(end: str | None) -> bool:
    return end is not None and datetime.fromisoformat(timestamp(end)) <= datetime.now(UTC)


def lifetime(end: str | None, wanted: int | None, renew_before: int | None) -> int | str | None:
    """Return the lifetime wanted while the end is neither too near nor too far."""
    if wanted is None or end is None:
        return None
    left = datetime.fromisoformat(timestamp(end)) - datetime.now(UTC)
    fits = timedelta(days=renew_before or 0) < left <= timedelta(days=wanted)
    return wanted if fits else f"ends {timestamp(end)}"


def mistakes(lifetime: int | None, renew_before: int | None, expires_at: str | None) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with the times of a spec, and what to do about it."""
    if lifetime is not None and expires_at is not None:
        yield "has both lifetime and expires_at", "keep one of them"
    if renew_before is not None and renew_before >= (lifetime or 0):
        yield "renew_before is not less than lifetime", "make it less, or take it out"
    if expires_at and datetime.fromisoformat(timestamp(expires_at)) <= datetime.now(UTC):
        yield f"expires_at {expires_at} has passed", "choose a later time"
