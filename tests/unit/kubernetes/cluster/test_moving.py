"""Load balancers that work against each other, and the commands that move Services: run by a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.kubernetes.cilium import Cilium, CiliumLayer2, CiliumLoadBalancer, CiliumPool
from openstack_prep.kubernetes.cluster import rke_files
from openstack_prep.kubernetes.kube_vip import KubeVip, KubeVipPool
from openstack_prep.kubernetes.metallb import MetalLB, MetalLBPool

METALLB = MetalLB(pools=(MetalLBPool(name="m", addresses=("10.1.0.1-10.1.0.9",)),))
VIP = KubeVip(pools=(KubeVipPool(name="v", addresses=("10.1.0.20",)),))


def cilium(address: str, version: str = "1.19", **values: Any) -> Cilium:
    pools = (CiliumPool(name="c", addresses=(address,)),)
    balancer = CiliumLoadBalancer(pools=pools, l2=CiliumLayer2())
    return Cilium(cluster_id=1, version=version, load_balancer=balancer, values=values)


@pytest.mark.parametrize(
    ("metallb", "own", "vip", "where"),
    [
        (METALLB, None, None, []),
        (METALLB, Cilium(cluster_id=1), None, []),
        (None, cilium("10.1.0.9"), None, []),
        (METALLB, cilium("10.1.0.99"), None, ["cilium.load_balancer"]),
        (METALLB, None, VIP, ["kube_vip"]),
        (METALLB, cilium("10.1.0.99", defaultLBServiceIPAM="none"), None, []),
        (METALLB, cilium("10.1.0.99", "1.16", defaultLBServiceIPAM="none"), None, ["cilium.load_balancer"]),
        (METALLB, cilium("10.1.0.9", defaultLBServiceIPAM="none"), None, ["cilium.load_balancer.pools[0]"]),
        (None, cilium("10.1.0.20", defaultLBServiceIPAM="none"), VIP, ["kube_vip.pools[0]"]),
    ],
)
def test_two_load_balancers(metallb: MetalLB | None, own: Cilium | None, vip: KubeVip | None, where: list[str]) -> None:
    found = [each.where for each in rke_files.addon_mistakes(metallb, own, vip, {})]
    assert [each for each in found if not each.endswith("]") or each in where] == where


KUBECTL = """\
#!/bin/sh
case "$*" in
  *jsonpath*) printf 'shop front 10.1.0.5 fd00::5\\nshop waiting \\nkube-system mesh 10.1.0.6\\n' ;;
  *) echo "$*" >> "$LOG" ;;
esac
"""


@pytest.mark.parametrize(
    ("own", "vip", "wanted"),
    [
        (
            cilium("10.1.0.0/28"),
            None,
            ["annotate --overwrite service front lbipam.cilium.io/ips=10.1.0.5,fd00::5"],
        ),
        (
            cilium("10.1.0.0/28", "1.15"),
            None,
            ["annotate --overwrite service front io.cilium/lb-ipam-ips=10.1.0.5,fd00::5"],
        ),
        (
            None,
            VIP,
            [
                "label --overwrite service front implementation=kube-vip",
                "annotate --overwrite service front kube-vip.io/loadbalancerIPs=10.1.0.5,fd00::5",
            ],
        ),
    ],
)
def test_every_service_requests_the_addresses_that_it_has(
    tmp_path: Path, own: Cilium | None, vip: KubeVip | None, wanted: list[str]
) -> None:
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    log = tmp_path / "log"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(log)}
    text = rke_files.addon_commands("lb.yaml", own, vip)
    subprocess.run(["sh", "-euc", text], env=environment, check=True, timeout=60)
    done = log.read_text().splitlines()
    front = [f"-n shop {each}" for each in wanted]
    assert done[: len(front)] == front
    assert [each for each in done if "waiting" in each] == []
    assert [each for each in done if "service mesh" in each] == [
        each.replace("-n shop", "-n kube-system").replace("front", "mesh").replace("10.1.0.5,fd00::5", "10.1.0.6")
        for each in front
    ]
    assert "apply -f lb.yaml" in done
