from __future__ import annotations

from openstack_prep.base.key import Key, labels

LAB = Key("network", "net", ("Default", "lab"))
OTHER = Key("network", "net", ("Default", "other"))
CORP = Key("user", "ops", ("corp",))


def test_the_scope_is_part_of_what_it_is() -> None:
    assert len({LAB, OTHER, Key("network", "net", ("Default", "lab"))}) == 2


def test_a_scope_is_shown_only_where_a_name_alone_could_be_two() -> None:
    assert labels([LAB, CORP]) == {LAB: "network/net", CORP: "user/ops"}
    assert labels([LAB, OTHER, LAB]) == {LAB: "network/net@lab", OTHER: "network/net@other"}


def test_the_default_domain_goes_without_saying() -> None:
    default = Key("user", "ops", ("Default",))
    assert labels([default, CORP]) == {default: "user/ops", CORP: "user/ops@corp"}
