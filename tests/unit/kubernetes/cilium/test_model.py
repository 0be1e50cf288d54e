"""Releases of Cilium, as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.kubernetes.cilium import Cilium
from openstack_prep.kubernetes.cilium.settings import release


@pytest.mark.parametrize(("value", "read"), [("1.17", "1.17"), ("v1.13.4", "1.13.4"), ("2.0", "2.0"), (None, None)])
def test_a_release_is_read(value: Any, read: Any) -> None:
    assert release(value) == read


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.2, "is a number in YAML; write the release in quotes"),
        ("latest", "is not a release of Cilium"),
        ("1.17.0-rc1", "is not a release of Cilium"),
        ("1.12.9", "is not supported"),
    ],
)
def test_what_is_none_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        release(value)


def test_the_port_is_that_of_the_service() -> None:
    assert Cilium(cluster_id=1).mesh_port == 2379
    assert Cilium(cluster_id=1, mesh_service="NodePort", mesh_node_port=30001).mesh_port == 30001
    assert (Cilium(cluster_id=1, version="1.9").minor < Cilium(cluster_id=1, version="1.13.4").minor) is True
