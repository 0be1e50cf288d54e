from __future__ import annotations

from collections import Counter

from tests.faults.schedule import KINDS, make


def test_a_number_always_means_the_same_rules() -> None:
    """The figures of docs/reliability.md name numbers: a change here makes them those of other schedules."""
    assert make(1) == make(1)
    assert [str(make(number)).splitlines()[0].strip() for number in (1, 2, 200)] == FIRST


FIRST = [
    "keystone POST: half, 2 times after 0",
    "keystone POST: reset, 1 times after 8",
    "swift-proxy PUT: late 503, 1 times after 0",
]


def test_kinds_that_are_left_out_leave_the_other_rules_alone() -> None:
    for number in range(50):
        every, fewer = make(number), make(number, without=("html", "stale"))
        assert fewer.rules == tuple(rule for rule in every.rules if rule.effect not in ("html", "stale"))


def test_many_schedules_have_every_kind() -> None:
    found = Counter[str]()
    for number in range(200):
        for rule in make(number).rules:
            found.update([rule.effect or ("lost" if rule.drop_answer else str(rule.status or "delay"))])
    assert set(found) == set(KINDS)


def test_a_login_is_never_refused_for_its_token() -> None:
    rules = [rule for number in range(200) for rule in make(number).rules if rule.status == 401]
    assert rules
    assert not any(rule.matches("POST", "/v3/auth/tokens", "keystoneauth1") for rule in rules if rule.method == "POST")
    assert any(rule.matches("GET", "/v3/projects", "keystoneauth1") for rule in rules if rule.service == "keystone")
