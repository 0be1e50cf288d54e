"""What RKE2 refuses in a config.yaml, or reads as something else."""

from __future__ import annotations

from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.rke2_rules import document_faults


def test_what_becomes_a_flag_anyway() -> None:
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
    assert sorted(f"{each.what}; {each.fix}" for each in found) == [
        "'x' is not an integer; write an integer",
        "'yes' is not true or false; write true or false",
        "unknown key; did you mean tls-san?",
    ]


def test_what_rke2_takes_for_something_else() -> None:
    right = {"cni": ["multus", "canal"], "server": "https://[fd00::5]:9345", "write-kubeconfig-mode": 644}
    assert list(document_faults(right, load_schema("server"))) == []
    wrong = {"cni": "multus,cilum", "server": "10.0.0.5:9345", "write-kubeconfig-mode": 0o640}
    assert [f"{each.what}; {each.fix}" for each in document_faults(wrong, load_schema("server"))] == [
        "RKE2 does not support 'cilum'; did you mean cilium?",
        "'10.0.0.5:9345' is not the URL of a server; write one such as https://10.0.0.5:9345",
        'is the number 416 in YAML; write "0640" in quotes',
    ]
