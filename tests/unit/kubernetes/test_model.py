"""What a user may write of a cluster."""

from __future__ import annotations

import pytest

from openstack_prep.base.invalid import InvalidValue
from openstack_prep.kubernetes.model import read_networks, validate_host, validate_indexes
from tests.unit.texts import Wording, expect_error


def test_indexes(wording: Wording) -> None:
    assert [validate_indexes(each) for each in (0, "0-2", "3-")] == ["0", "0-2", "3-"]
    for wrong in ("2-1", "a", "-1", "0,1"):
        with expect_error(ValueError) as caught:
            validate_indexes(wrong)
        wording(caught.value)


def test_a_registry_is_no_url(wording: Wording) -> None:
    assert validate_host("registry.example.com:5000/proxy") == "registry.example.com:5000/proxy"
    for wrong in ("https://registry.example.com", "registry.example.com/"):
        with expect_error(ValueError) as caught:
            validate_host(wrong)
        wording(caught.value)


def test_networks() -> None:
    both = "10.42.0.0/16, fd00:42::/56"
    assert [read_networks(each) for each in ("10.42.0.0/16", both, "fd00:042::/56,10.42.0.0/16")] == [
        "10.42.0.0/16",
        "10.42.0.0/16,fd00:42::/56",
        "fd00:42::/56,10.42.0.0/16",
    ]
    for wrong in ("10.42.0.0/16,10.43.0.0/16", "10.42.0.0/16,", f"{both},fd00::/56", "10.42.0.0/16,x"):
        with pytest.raises(InvalidValue):
            read_networks(wrong)
