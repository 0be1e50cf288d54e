"""What RKE2 refuses in a config.yaml, or reads as something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.rke2_rules import answers_all_arp, document_faults, is_schedule, warnings
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


CONFIGS = [each for each in yaml.safe_load_all(Path(__file__).with_name("valid_configs.yaml").read_text()) if each]


@pytest.mark.parametrize("config", CONFIGS)
def test_valid_files(config: dict[str, Any]) -> None:
    of_agent = "server" in config and not config.keys() & {"tls-san", "cni"}
    assert list(document_faults(config, load_schema("agent" if of_agent else "server"))) == []


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("0 */5 * * *", True),
        ("*/15,30 0-6/2 ? jan-Mar SUN", True),
        ("@every 1h30m", True),
        ("CRON_TZ=UTC 0 0 * * *", True),
        ("0 0 * * 7", False),
        ("60 * * * *", False),
        ("5-1 * * * *", False),
        ("*/0 * * * *", False),
        ("1/2/3 * * * *", False),
        ("@every  6h", False),
        ("@reboot", False),
        ("TZ=UTC", False),
        ("0 0 L * *", False),
        ("1_0 * * * *", False),
        ("0 0 29 2 *", True),
        ("0 0 30 2 *", False),
        ("0 0 30 2 ?", False),
        ("0 0 30 2 0", True),  # on Sundays: a day of either field counts
        ("0 0 30 2 */2", True),  # a step makes the field one of days
        ("0 0 31 4,6,9,11 *", False),
        ("0 0 31 4-5 *", True),
        (", * * * *", False),
    ],
)
def test_schedules_as_the_parser_of_k3s_reads_them(text: str, valid: bool) -> None:
    """As robfig/cron v3.0.1 says itself; 6,547 texts were compared."""
    assert is_schedule(text) == valid


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"etcd-snapshot-schedule-cron": 5}, "etcd-snapshot-schedule-cron"),
        ({"server": "https://10.0.0.5:0"}, "server"),
        ({"server": "https://localhost.:9345"}, "server"),
        ({"server": "https://[::ffff:127.0.0.1]:9345"}, "server"),
        ({"server": "https://192.0.2.5:9345", "node-external-ip": "192.0.2.5"}, "server"),
        ({"server": "https://s1:9345", "node-name": "S1"}, "server"),
        ({"node-ip": "0.0.0.0"}, "node-ip"),
        ({"node-ip": "fe80::1%eth0"}, "node-ip"),
        ({"node-ip": "10.0.0.5,10.0.0.6"}, "node-ip"),
        ({"node-ip": ["10.0.0.5", "fd00::5", "fd00::6"]}, "node-ip"),
        ({"advertise-address": "::"}, "advertise-address"),
        ({"token": "${var.token}"}, "token"),
        ({"token": "${TOKEN:-x}"}, "token"),
        ({"token": "$TOKEN"}, "token"),
        ({"token": "((token))"}, "token"),
        ({"token": "__TOKEN__"}, "token"),
        ({"token": "%{TOKEN}"}, "token"),
        ({"tls-san": ["YOUR_VIP"]}, "tls-san"),
        ({"kubelet-arg": ["max-pods=$MAX_PODS"]}, "kubelet-arg"),
        ({"node-label": ["zone=@@ZONE@@"]}, "node-label"),
    ],
)
def test_what_a_node_cannot_start_with(config: dict[str, Any], place: str) -> None:
    found = list(document_faults(config, load_schema("server")))
    assert [each.steps[0] for each in found][:1] == [place]
    assert "var.token" not in "".join(each.fix for each in found)


@pytest.mark.parametrize(
    "config",
    [
        {"server": "https://10.0.0.9:9345", "advertise-address": "10.0.0.9"},  # a virtual address of all servers
        {"node-ip": "10.0.0.5,fd00::5"},
        {"bind-address": "0.0.0.0"},
        {"token": "pa$$WORD"},
        {"token": "$Tr0ub4dor"},
        {"token": "a__B__c"},
        {"token": "100%SURE%"},
        {"kubelet-arg": ["v=4", "feature-gates=A=true"]},
    ],
)
def test_what_only_looks_like_that(config: dict[str, Any]) -> None:
    assert list(document_faults(config, load_schema("server"))) == []


def test_each_item_has_its_own_place() -> None:
    config = {"node-label": ["a=b", "node-role.kubernetes.io/worker=true"], "node-taint": ["a:Never"]}
    found = {each.steps for each in document_faults(config, load_schema("agent"))}
    assert found == {("node-label", 1), ("node-taint", 0)}


def test_a_secret_is_judged_and_not_shown() -> None:
    config = {"token": Secret("K10ab::server:hidden"), "agent-token": Secret("<token>"), "etcd-s3-proxy": Secret("p")}
    found = list(document_faults(config, load_schema("server")))
    assert [each.steps[0] for each in found] == ["agent-token", "etcd-s3-proxy", "token"]
    assert not any("hidden" in each.what or "hidden" in each.fix for each in found)


@pytest.mark.parametrize("value", ["$ecret", "%Secret%", "__Secret__", "put-a-secret", "a${b}c", "xxxxxx", "@secret"])
def test_a_secret_may_look_like_a_placeholder(value: str) -> None:
    assert list(document_faults({"token": value}, load_schema("server"))) == []
    assert list(document_faults({"token": Secret(value)}, load_schema("server"))) == []


@pytest.mark.parametrize(("value", "shown"), [("${TOKEN}", True), ("<token>", False), ("CHANGE_ME", False)])
def test_placeholders_of_secrets(value: str, shown: bool) -> None:
    (found,) = document_faults({"token": value}, load_schema("server"))
    assert (value in found.what) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("node-name", each) for each in ("insert-db-1", "put-1", "your-node", "todo", "change")),
        *(("tls-san", each) for each in ("enter-prise", "fill", "change-it.example.com", "put-io")),
        *(("server", f"https://{each}:9345") for each in ("put-io", "xxx", "todo.example.com", "replace-it-2")),
        ("cluster-domain", "your-company"),
        ("etcd-s3-folder", "__snapshots__"),
    ],
)
def test_words_of_samples_are_valid_names(name: str, value: str) -> None:
    assert list(document_faults({name: value}, load_schema("server"))) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("server", f"https://{each}:9345") for each in ("<ip>", "CHANGEME", "x.x.x.x", "$VIP", "YOUR_SERVER_IP")),
        *(("tls-san", each) for each in ("<your vip>", "@VIP@", "%VIP%", "__VIP__", "{{ vip }}")),
        *(("token", each) for each in ("change-me", "REPLACE_ME", "<the token>")),
    ],
)
def test_what_nobody_has_filled_in(name: str, value: str) -> None:
    assert [each.steps for each in document_faults({name: value}, load_schema("server"))] == [(name,)]


@pytest.mark.parametrize("flag", ["oidc-client-secret: hush", "--oidc-client-secret hush", "hush oidc", "hush:hush"])
def test_no_value_of_a_flag_is_shown(flag: str) -> None:
    (found,) = document_faults({"kube-apiserver-arg": [flag]}, load_schema("server"))
    assert ("write oidc-client-secret=VALUE" in found.fix) == ("client" in flag)
    assert "hush" not in str(found)


@pytest.mark.parametrize(
    ("more", "ignored"),
    [
        *(({"etcd-s3-timeout": each}, False) for each in ("5m", "5m0s", "300s", "+4m60s", "300000ms", "0h5.0m")),
        *(({"etcd-s3-timeout": each}, True) for each in ("5m1s", "5s", "5h")),
        ({"etcd-s3-insecure": "false", "etcd-s3-skip-ssl-verify": False}, False),
        ({"etcd-s3-insecure": "true"}, True),
        ({"etcd-s3-region": "us-east-1", "etcd-s3-endpoint": "s3.amazonaws.com"}, False),
        ({"etcd-s3-folder": "false"}, True),
    ],
)
def test_the_secret_of_s3_beside_values_of_its_defaults(more: dict[str, object], ignored: bool) -> None:
    """K3s compares the values that it reads with its defaults (pkg/etcd/s3/s3.go, GetClient)."""
    config = {"etcd-s3": True, "etcd-s3-config-secret": "s3", **more}
    found = [each.steps for each in document_faults(config, load_schema("server"))]
    assert found == ([("etcd-s3-config-secret",)] if ignored else [])


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("server", "https://my_lb:9345", True),
        ("etcd-s3-endpoint", "my_minio:9000", True),
        ("tls-san", "my_lb", True),
        ("server", "https://_lb:9345", False),
        ("server", "https://10_0.0.256:9345", False),
        ("system-default-registry", "my_registry:5000", False),
        ("system-default-registry", "registry.example.com/my_project", True),
        ("node-name", "my_node", False),
    ],
)
def test_hosts_may_have_underscores(name: str, value: str, valid: bool) -> None:
    """Names of images (distribution/reference, regexp.go) and of nodes have none."""
    assert (not list(document_faults({name: value}, load_schema("server")))) == valid


def test_no_login_in_a_url_is_shown() -> None:
    config = {
        "server": "https://me:hush@10.0.0.5:9345",
        "etcd-s3-endpoint": "https://me:hush@s3.example.com/",
        "system-default-registry": "https://me:hush@registry.example.com",
    }
    found = list(document_faults(config, load_schema("server")))
    assert {each.steps[0] for each in found} == config.keys()
    assert "hush" not in str(found)


def test_the_source_of_a_secret_is_not_asked() -> None:
    """Validate runs no program and writes no file."""
    config = {"token": Secret(missing="not here"), "agent-token": Secret(fetch=lambda: pytest.fail("asked"))}
    assert list(document_faults(config, load_schema("server"))) == []


def test_networks_beside_a_placeholder_are_not_judged_with_defaults() -> None:
    config = {"service-cidr": "{{ services }}", "cluster-dns": "10.96.0.10"}
    assert [each.steps for each in document_faults(config, load_schema("server"))] == [("service-cidr",)]


MODE = "proxy-mode=ipvs"


@pytest.mark.parametrize(
    ("config", "warned"),
    [
        ({"kube-proxy-arg": MODE}, True),
        ({"kube-proxy-arg": [f"--{MODE}"]}, True),
        ({"kube-proxy-arg": [MODE], "kube-proxy-arg+": ["ipvs-strict-arp=true"]}, False),
        ({"services": {"kubeproxy": {"extra_args": {"proxy-mode": "ipvs"}}}}, True),
        ({"services": {"kubeproxy": {"extra_args": {"proxy-mode": "ipvs", "ipvs-strict-arp": True}}}}, False),
        ({"services": {"kubeproxy": {"extra_args": [MODE]}}}, True),
        *(({"kube-proxy-arg": each}, False) for each in (5, True, None, {"a": 5}, [5, None, Secret("a")])),
        *(({"services": {"kubeproxy": {"extra_args": each}}}, False) for each in (5, True, MODE, [5])),
    ],
    ids=str,
)
def test_kube_proxy_of_a_document_that_may_have_mistakes(config: dict[str, object], warned: bool) -> None:
    assert answers_all_arp(config) == warned


@pytest.mark.parametrize("value", [5, True, None, "x", [5, None], [{}], {"a": 5}, [["a"]], "https://[", "%zz"], ids=str)
@pytest.mark.parametrize("form", ["server", "agent"])
def test_each_key_may_have_a_value_of_another_type(form: Literal["server", "agent"], value: object) -> None:
    """Warnings are printed beside the mistakes."""
    for name in load_schema(form)["properties"]:
        for key in (name, f"{name}+"):
            assert list(document_faults({key: value}, load_schema(form))) is not None
            assert all(isinstance(each, str) for each in warnings({key: value}, is_server=form == "server"))
