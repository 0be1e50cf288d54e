from __future__ import annotations

import pytest

from openstack_prep.resources.compute.quota_stores import QuotaUsage, quota_usage, set_command, store_of, unit


def test_what_is_left_is_without_what_is_used_and_reserved() -> None:
    assert quota_usage("cores", {"cores": {"limit": 9, "in_use": 4, "reserved": 2}}) == QuotaUsage(9, 6)
    assert quota_usage("ports", {"port": {"limit": 9, "used": 4, "reserved": 0}}) == QuotaUsage(9, 4)
    assert quota_usage("server_group_members", {"server_group_members": {"limit": 9, "in_use": 4}}) == QuotaUsage(9, 0)
    assert quota_usage("security_groups", {"security_group": {"limit": 9, "used": 0}}) == QuotaUsage(9, 1)
    assert quota_usage("cores", {"id": "p", "cores": 20}) is None


@pytest.mark.parametrize(("limit", "used", "number", "allowed"), [(-1, 9, 99, True), (9, 4, 5, True), (9, 4, 6, False)])
def test_limits(limit: int, used: int, number: int, allowed: bool) -> None:
    assert QuotaUsage(limit, used).allows(number) is allowed


def test_more_in_use_than_allowed_is_nothing_left() -> None:
    assert QuotaUsage(3, 5).left == 0


def test_names() -> None:
    assert store_of("gigabytes_fast") is store_of("volumes")
    assert [unit(name) for name in ("ram", "gigabytes_fast", "cores")] == [" MiB", " GiB", ""]
    assert set_command("security_group_rules", 9, "p")[3:] == ["--secgroup-rules", "9", "p"]
    assert set_command("volumes_very fast", 9, "p")[3:] == ["--volume-type", "very fast", "--volumes", "9", "p"]
