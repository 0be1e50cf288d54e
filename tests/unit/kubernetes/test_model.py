"""What a user may write of a cluster."""

from __future__ import annotations

from openstack_prep.kubernetes.model import validate_host, validate_indexes
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
