"""What RKE2 refuses in a config.yaml, or reads as something else."""

from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.rke2_rules import document_faults
from tests.unit.texts import Wording


def test_what_becomes_a_flag_anyway(wording: Wording) -> None:
    config = {
        "etcd-expose-metrics": "true",
        "etcd-snapshot-retention": "5",
        "kubelet-arg+": ["v=4"],
        "node-ip": "10.1.0.1",
    }
    assert list(document_faults(config, load_schema("server"))) == []
    found = document_faults(
        {"etcd-expose-metrics": "yes", "lb-server-port": "x", "tls-sans+": []}, load_schema("server")
    )
    wording(sorted(f"{each.what}; {each.fix}" for each in found))


def test_what_rke2_takes_for_something_else(wording: Wording) -> None:
    right = {"cni": ["multus", "canal"], "server": "https://[fd00::5]:9345", "write-kubeconfig-mode": 644}
    assert list(document_faults(right, load_schema("server"))) == []
    wrong = {"cni": "multus,cilum", "server": "10.0.0.5:9345", "write-kubeconfig-mode": 0o640}
    wording([f"{each.what}; {each.fix}" for each in document_faults(wrong, load_schema("server"))])


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"profile": "cis"}, []),
        ({"profile": "etcd"}, []),
        ({"profile": "cis-1.23"}, ["profile: write cis: since RKE2 1.30 it is the only name"]),
        ({"profile": "strict"}, ["profile: write one of cis, etcd"]),
        ({"profile": "cis", "protect-kernel-defaults": True}, []),
        ({"profile": "cis", "protect-kernel-defaults": "false"}, ["protect-kernel-defaults: remove it: ..."]),
        ({"profile": "etcd", "protect-kernel-defaults": False}, []),
        ({"ingress-controller": "traefik,ingress-nginx"}, []),
        ({"ingress-controller": ["none"]}, []),
        ({"ingress-controller": "nginx"}, ["ingress-controller: write one of traefik, ingress-nginx, none"]),
        ({"ingress-controller": ["traefik", "haproxy"]}, ["ingress-controller: write one of ..."]),
        ({"egress-selector-mode": "pod"}, []),
        ({"egress-selector-mode": "pods"}, ["egress-selector-mode: did you mean pod?"]),
        ({"cni": ["multus", "none"]}, []),
        ({"cni": "multus"}, ["cni: name the primary one after it: multus,canal"]),
        ({"cni": ["canal", "cilium"]}, ["cni: write one, or multus and one: multus,canal"]),
        ({"cni": "multus,canal,cilium"}, ["cni: write one, or multus and one: multus,canal"]),
        ({"cluster-cidr": "10.42.0.0/16,fd42::/56", "service-cidr": ["10.43.0.0/16", "fd43::/112"]}, []),
        ({"cluster-cidr": "fd42::/56,10.42.0.0/16", "service-cidr": ["10.43.0.0/16", "fd43::/112"]}, []),
        ({"cluster-cidr": "fd42::/56", "service-cidr": "10.43.0.0/16"}, ["service-cidr: use the same IP versions ..."]),
        (
            {"cluster-cidr": "10.42.0.0/16,fd42::/56", "service-cidr": "10.43.0.0/16"},
            ["service-cidr: use the same IP versions ..."],
        ),
        ({"cluster-cidr": "10.42.0.0"}, ["cluster-cidr: write one such as 10.42.0.0/16"]),
        ({"cluster-cidr": "10.42.0.0/33"}, ["cluster-cidr: write one such as 10.42.0.0/16"]),
        ({"node-ip": "10.0.0.5", "cluster-cidr": "fd42::/56"}, ["cluster-cidr: use the same IP versions ..."]),
        ({"node-ip": "10.0.0.5,fd00::5", "cluster-cidr": "10.42.0.0/16"}, ["cluster-cidr: use the same ..."]),
        ({"service-cidr": "10.43.0.0/16", "cluster-dns": "fd43::a"}, ["cluster-dns: use the same IP versions ..."]),
        ({"service-cidr": "10.43.0.0/16,fd43::/112", "cluster-dns": "10.43.0.10"}, []),
        ({"cluster-dns": "dns"}, ["cluster-dns: write one such as 10.43.0.10"]),
        ({"cloud-provider-config": "/etc/cloud.conf"}, ["cloud-provider-name: add it, or ..."]),
        (
            {"cloud-provider-name": "external", "node-external-ip": "192.0.2.5"},
            ["node-external-ip: remove it: the cloud provider finds the address"],
        ),
        ({"cluster-reset": True, "server": "https://10.0.0.5:9345"}, ["server: remove it before the reset"]),
        ({"cluster-reset-restore-path": "/x"}, ["cluster-reset: add cluster-reset: true for the restore"]),
    ],
)
def test_what_rke2_refuses_at_its_start(config: dict[str, Any], told: list[str]) -> None:
    """As RKE2 v1.35.7+rke2r1 does (pkg/cli/cmds, and K3s's pkg/cli/server/server.go)."""
    found = [f"{each.steps[0]}: {each.fix}" for each in document_faults(config, load_schema("server"))]
    assert len(found) == len(told)
    assert all(one.startswith(other.removesuffix("...")) for one, other in zip(found, told, strict=True))
