"""The ConfigMap of kube-vip's cloud provider, and pools that it would not use."""

from __future__ import annotations

import pytest

from openstack_prep.kubernetes.kube_vip import KubeVip, KubeVipPool, document, mistakes

ADDRESSES = {"lb": ["10.1.0.200-10.1.0.206", "10.1.0.240/29"]}


def test_ranges_by_namespace() -> None:
    pools = (
        KubeVipPool(pool="lb"),
        KubeVipPool(name="shop", addresses=("10.2.0.5",), namespace="shop"),
        KubeVipPool(name="six", addresses=("fd00::10-fd00::1f",)),
    )
    (found,) = document(KubeVip(pools=pools), ADDRESSES)
    assert found == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubevip", "namespace": "kube-system"},
        "data": {
            "range-global": "10.1.0.200-10.1.0.206,10.1.0.240-10.1.0.247,fd00::10-fd00::1f",
            "range-shop": "10.2.0.5-10.2.0.5",
        },
    }
    assert list(mistakes(KubeVip(pools=pools), ADDRESSES)) == []


@pytest.mark.parametrize(
    ("pools", "where"),
    [
        ((), ["pools"]),
        ((KubeVipPool(pool="none"),), ["pools[0].pool"]),
        ((KubeVipPool(pool="lb", namespace="My Shop"),), ["pools[0].namespace"]),
        ((KubeVipPool(pool="lb"), KubeVipPool(name="a", addresses=("10.1.0.206",))), ["pools[1].addresses"]),
    ],
)
def test_mistakes(pools: tuple[KubeVipPool, ...], where: list[str]) -> None:
    assert [each.where for each in mistakes(KubeVip(pools=pools), ADDRESSES)] == where
