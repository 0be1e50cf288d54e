"""Claims of addresses and MAC addresses, as arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openstack_prep.exposures.register import pool as macs
from openstack_prep.exposures.register.pool import (
    DEFAULT_RANGE,
    KUBEMACPOOL,
    RESERVED,
    Claim,
    ClaimRefused,
    ClaimRequest,
    MacRange,
    PoolContent,
    PoolSettings,
    number_of,
    text_of,
)

SETTINGS = PoolSettings(cidr="10.0.0.0/29", gateway="10.0.0.1", addresses=("10.0.0.0/29",), exclude=("10.0.0.4",))
POOL = PoolContent(name="lab", id="0123456789abcdef", settings=SETTINGS)


def ask(name: str, address: str | None = None, *, mac: bool = False) -> ClaimRequest:
    return ClaimRequest(name=name, address=address, mac=mac)


def test_all_that_can_be_claimed_is_given_once_and_nothing_else() -> None:
    """Never the network's own address, broadcast, gateway and exclusions."""
    pool = POOL.claim("s", [ask(name) for name in "abcd"])
    assert [each.address for each in pool.of_spec("s").values()] == ["10.0.0.2", "10.0.0.3", "10.0.0.5", "10.0.0.6"]
    with pytest.raises(ClaimRefused, match="no free address"):
        pool.claim("s", [ask("e")])


def test_a_name_keeps_its_address_and_another_spec_gets_another_one() -> None:
    pool = POOL.claim("s", [ask("a"), ask("b")]).claim("t", [ask("a")])
    assert pool.claim("s", [ask("b"), ask("a")]) == pool
    assert pool.of_spec("t") == {"a": Claim(address="10.0.0.5")}
    assert pool.release("s", ["a", "unknown"]).claim("s", [ask("c")]).of_spec("s")["c"].address == "10.0.0.2"


def test_an_explicit_address_comes_first_and_moves_a_claim() -> None:
    pool = POOL.claim("s", [ask("a"), ask("b", "10.0.0.2")])
    assert pool.of_spec("s") == {"b": Claim(address="10.0.0.2"), "a": Claim(address="10.0.0.3")}
    assert pool.claim("s", [ask("b", "10.0.0.6")]).of_spec("s")["b"].address == "10.0.0.6"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.0.0.0", "network's own"),
        ("10.0.0.7", "broadcast"),
        ("10.0.0.1", "gateway"),
        ("10.0.0.4", "excluded"),
        ("10.0.0.8", "not one of its addresses"),
        ("10.0.0.2", "claimed by s/a"),
        ("2001:db8::1", "not one of its addresses"),
    ],
)
def test_an_address_that_cannot_be_claimed_is_refused_with_the_reason(address: str, why: str) -> None:
    with pytest.raises(ClaimRefused, match=why):
        POOL.claim("s", [ask("a", "10.0.0.2")]).claim("t", [ask("b", address)])


def test_ipv6_pools_are_not_counted_through() -> None:
    settings = PoolSettings(
        cidr="2001:db8::/64", gateway="2001:db8::1", addresses=("2001:db8::/64",), exclude=("2001:db8::2/127",)
    )
    pool = replace(POOL, settings=settings).claim("s", [ask("a")])
    assert pool.of_spec("s")["a"].address == "2001:db8::4"
    assert settings.refuse("2001:db8::")
    assert not settings.refuse("2001:db8::ffff:ffff:ffff:ffff")


def test_a_mac_address_is_local_unicast_stable_and_given_once() -> None:
    pool = POOL.claim("s", [ask("a", mac=True), ask("b", mac=True), ask("c")])
    found = pool.of_spec("s")
    assert found["c"].mac is None
    assert pool.claim("s", [ask("a"), ask("b", mac=True)]) == pool
    first, second = (str(found[name].mac) for name in "ab")
    assert first != second
    assert all(number_of(each) >> 40 & 0b11 == 0b10 for each in (first, second))
    again = pool.release("s", ["a"]).claim("s", [ask("a", mac=True)])
    assert again.of_spec("s")["a"].mac == first
    assert POOL.claim("s", [ask("a", mac=True)], {first}).of_spec("s")["a"].mac == text_of(number_of(first) + 1)
    other = replace(POOL, id="f" * 16).claim("s", [ask("a", mac=True)])
    assert other.of_spec("s")["a"].mac != first


def test_a_small_range_of_mac_addresses_is_used_up_without_a_collision() -> None:
    pool = replace(POOL, settings=replace(SETTINGS, macs="d2:00:00:00:00:00-d2:00:00:00:00:02"))
    pool = pool.claim("s", [ask(name, mac=True) for name in "abc"])
    assert len({each.mac for each in pool.claims.values()}) == 3
    with pytest.raises(ClaimRefused, match="no free MAC address"):
        pool.claim("s", [ask("d", mac=True)])
    with pytest.raises(ClaimRefused, match="macs: false"):
        replace(POOL, settings=replace(SETTINGS, macs=False)).claim("s", [ask("d", mac=True)])


@pytest.mark.parametrize(
    "given",
    [
        "02:10:00:00:00:00-02:10:00:00:00:ff",
        "0a:58:0a:00:00:00-0a:58:0a:00:00:ff",
        "fa:16:00:00:00:00-fa:16:ff:ff:ff:ff",
        "52:54:00:00:00:00-52:54:00:00:00:ff",
        "d0:00:00:00:00:00-d0:ff:ff:ff:ff:ff",
        "d3:00:00:00:00:00-d3:ff:ff:ff:ff:ff",
        "d2:00:00:00:00:00-d6:ff:ff:ff:ff:ff",
    ],
)
def test_ranges_of_others_and_of_no_local_unicast_addresses_are_refused(given: str) -> None:
    assert list(macs.contradictions(given, KUBEMACPOOL))


def test_the_default_range_overlaps_nobody_unless_kubemacpool_has_it() -> None:
    assert not list(macs.contradictions(DEFAULT_RANGE, KUBEMACPOOL))
    assert not any(MacRange.read(DEFAULT_RANGE).overlaps(each) for each in RESERVED.values())
    assert list(macs.contradictions(DEFAULT_RANGE, "d2:80:00:00:00:00-d2:80:00:ff:ff:ff"))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"gateway": "10.1.0.1"}, "gateway 10.1.0.1 is outside"),
        ({"addresses": ("10.0.0.2-10.0.0.9",)}, "addresses: 10.0.0.2-10.0.0.9 is outside"),
        ({"exclude": ("10.1.0.4",)}, "exclude: 10.1.0.4 is outside"),
        ({"addresses": ("10.0.0.1", "10.0.0.4")}, "none of them can be claimed"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(fields: dict[str, object], what: str) -> None:
    (found,) = list(replace(SETTINGS, **fields).contradictions())  # type: ignore[arg-type]
    assert what in found.what
