"""What a user may write of a cluster."""

from __future__ import annotations

import pytest

from openstack_prep.kubernetes.model import validate_host, validate_indexes


def test_indexes() -> None:
    assert [validate_indexes(each) for each in (0, "0-2", "3-")] == ["0", "0-2", "3-"]
    for wrong in ("2-1", "a", "-1", "0,1"):
        with pytest.raises(ValueError, match="is not a node index or range"):
            validate_indexes(wrong)


def test_a_registry_is_no_url() -> None:
    assert validate_host("registry.example.com:5000/proxy") == "registry.example.com:5000/proxy"
    for wrong in ("https://registry.example.com", "registry.example.com/"):
        with pytest.raises(ValueError, match="remove the scheme and the trailing slash"):
            validate_host(wrong)
