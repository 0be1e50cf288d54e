from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.reading import Form, read, warnings
from openstack_prep.kubernetes.rules import ACI
from tests.unit.texts import Wording

FILE = """\
nodes:
- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker]}
"""


def told(path: Path, text: str, form: Form = "cluster.yml") -> list[str]:
    path.write_text(text)
    return [str(each).replace(f"{path}:", "") for each in read(path, form)[1]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cluster.yml"


def test_all_that_is_wrong_by_line(path: Path, wording: Wording) -> None:
    text = """\
nodes:
- address: 192.0.2.1
  user: me
  roles: [controlplane]
services:
  etcd:
    snapshot: true
    snapshot: false
  kubeapi: {}
ssh_key_path: ~/.ssh/id
"""
    wording(told(path, text))


def test_truth_as_yaml_1_1_has_it(path: Path, wording: Wording) -> None:
    assert told(path, f"{FILE}ssh_agent_auth: yes\nenable_cri_dockerd: On\nignore_docker_version: n\n") == []
    wording(told(path, f"{FILE}ssh_agent_auth: maybe\n"))


@pytest.mark.parametrize("value", ["yes", "true", "False", "on"])
def test_a_boolean_in_quotes_stops_rke(path: Path, value: str, wording: Wording) -> None:
    """yaml.v2 reads it as a string, and then refuses the whole file."""
    assert told(path, f"{FILE}ssh_agent_auth: {value}\n") == []
    wording(told(path, f'{FILE}ssh_agent_auth: "{value}"\n'))


def test_what_rke2_makes_a_flag_of(path: Path, wording: Wording) -> None:
    """Go's strconv.ParseBool reads the flag: it knows "True", but not "yes"."""
    assert told(path, 'selinux: "True"\ndebug: yes\netcd-expose-metrics: "f"\n', "server") == []
    wording(told(path, 'selinux: "yes"\n', "server"))


def test_a_key_that_begins_with_a_known_one(path: Path, wording: Wording) -> None:
    wording(told(path, f"{FILE}private_registries: [{{url: r.example.com, username: u}}]\n"))


OF_ACI = {name: ["a"] if name in ("apic_hosts", "l3out_external_networks") else "a" for name in ACI}
DUAL = "{kube-controller: {cluster_cidr: '10.42.0.0/16,fd42::/56'}}"
OVERRIDDEN = """\
{kube-api: {extra_args: {service-cluster-ip-range: 10.96.0.0/16}},
 kube-controller: {extra_args: {service-cluster-ip-range: 10.96.0.0/16}},
 kubelet: {cluster_dns_server: %s}}"""


@pytest.mark.parametrize(
    ("text", "told_of"),
    [
        (f"services: {DUAL}\nnetwork: {{plugin: calico}}", []),
        (
            f"services: {DUAL}\nnetwork: {{plugin: aci, aci_network_provider: {OF_ACI}}}",
            [],
        ),
        (f"services: {DUAL}", ["services.kube-controller.cluster_cidr: canal does not support 10.42.0.0/16,fd42::/56"]),
        (f"services: {DUAL}\nnetwork: {{plugin: flannel}}", ["services.kube-controller.cluster_cidr: flannel does"]),
        (  # RKE does not look for networks of two IP versions in extra_args
            "services: {kube-api: {extra_args: &same {service-cluster-ip-range: '10.43.0.0/16,fd43::/112'}}, "
            "kube-controller: {extra_args: {<<: *same, cluster-cidr: '10.42.0.0/16,fd42::/56'}}}",
            [],
        ),
        ("services: {kube-controller: {cluster_cidr: 10.42.0.0/25, extra_args: {node-cidr-mask-size: '28'}}}", []),
        (
            "services: {kube-controller: {cluster_cidr: 10.42.0.0/25, extra_args: {node-cidr-mask-size: '24'}}}",
            ["services.kube-controller.extra_args.node-cidr-mask-size: 10.42.0.0/25 has no /24 per node"],
        ),
        (
            "services: {kube-controller: {cluster_cidr: fd42::/56}}",
            ["services.kube-controller.cluster_cidr: cluster_cidr fd42::/56 and service_cidr 10.43.0.0/16 have"],
        ),
        (f"services: {OVERRIDDEN % '10.96.0.10'}", []),
        (f"services: {OVERRIDDEN % '10.43.0.10'}", ["services.kubelet.cluster_dns_server: cluster_dns 10.43.0.10 is"]),
        (
            "services: {kube-api: {extra_args: {service-cluster-ip-range: 10.96.0.0/16}}}",
            ["services.kube-api.extra_args.service-cluster-ip-range: 10.96.0.0/16 differs from 10.43.0.0/16"],
        ),
    ],
)
def test_networks_as_rke_takes_them(path: Path, text: str, told_of: list[str]) -> None:
    """RKE 1.7: cluster/validation.go for dual-stack, cluster/plan.go for extra_args."""
    found = [each.split(": ", 1)[1] for each in told(path, f"{FILE}{text}\n")]
    assert len(found) == len(told_of)
    assert all(one.startswith(other) for one, other in zip(found, told_of, strict=True))


@pytest.mark.parametrize(
    ("services", "told_of"),
    [
        ("{kubelet: {cluster_dns_server: 10.43.0.99}}", []),
        (
            "{kubelet: {cluster_dns_server: 10.44.0.10}}",
            ["services.kubelet.cluster_dns_server: cluster_dns 10.44.0.10 is not"],
        ),
        ("{kubelet: {cluster_dns_server: dns}}", ["services.kubelet.cluster_dns_server: 'dns' is not an IP address"]),
        (
            "{kube-controller: {cluster_cidr: 192.0.2.0/23}}",
            ["services.kube-controller.cluster_cidr: cluster_cidr 192"],
        ),
        ("{kube-controller: {cluster_cidr: pods}}", ["services.kube-controller.cluster_cidr: 'pods' is not a network"]),
        ("{kube-api: {service_cluster_ip_range: 10.96.0.0/16}}", ["services.kube-api.service_cluster_ip_range: 10.96"]),
        ("{kube-controller: {cluster_cidr: [1]}}", ["services.kube-controller.cluster_cidr: a list is not a string"]),
    ],
)
def test_networks(path: Path, services: str, told_of: list[str]) -> None:
    found = told(path, f"{FILE}services: {services}\n")
    assert len(found) == len(told_of)
    assert all(one.startswith(f"3: {other}") for one, other in zip(found, told_of, strict=True))


ZERO = {"integer": 0, "number": 0.0, "boolean": False, "object": {}, "array": []}


def zero(schema: Raw) -> Any:
    """Return Go's zero value of a type, which `rke config` writes for omitted keys."""
    if "properties" in schema:
        return {name: zero(each) for name, each in schema["properties"].items()}
    wanted = schema.get("type")
    return "" if isinstance(wanted, list) else None if "writeOnly" in schema else ZERO.get(str(wanted))


def test_zero_values_are_valid(path: Path) -> None:
    """Every key with Go's zero value, as in RKE's own samples."""
    node = zero(load_schema("node"))
    node |= {"address": "192.0.2.1", "user": "me", "role": ["controlplane", "etcd", "worker"]}
    whole = zero(load_schema("cluster.yml"))
    whole |= {"nodes": [node], "enable_cri_dockerd": None}
    services = whole["services"]
    assert isinstance(services, dict)
    services["etcd"]["backup_config"] = None
    services["kube-api"]["pod_security_policy"] = False
    assert told(path, dump(whole)) == []


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("[192.0.2.1]", "a list is not a string; write a string"),
        ("{a: 192.0.2.1}", "a mapping is not a string; write a string"),
        ("192.0.2.1/24", "'192.0.2.1/24' is not an address; use an IP address or a host name"),
    ],
)
def test_addresses_that_are_none(path: Path, address: str, what: str) -> None:
    assert told(path, FILE.replace("192.0.2.1", address)) == [f"2: nodes[0].address: {what}"]


def test_secrets_stay_out_of_what_is_told(path: Path, wording: Wording) -> None:
    text = f"{FILE}private_registries:\n- {{password: [hush]}}\n- {{password: {{a: hush}}}}\naddons: [hush]\n"
    found = told(path, text)
    assert len(found) == 3
    assert "hush" not in str(found)
    (found_instead,) = told(path, f"{FILE}private_registries: hush\n")  # of a list of logins
    wording(found_instead)


@pytest.mark.parametrize(
    ("text", "form", "what"),
    [
        ("", "cluster.yml", "is not a mapping; name the cluster.yml of RKE"),
        ("- a\n", "server", "is not a mapping; name the config.yaml of an RKE2 server"),
        (
            "name: x\nrke_clusters: []\n",
            "cluster.yml",
            ":2: is a spec of openstack-prep, not the cluster.yml",
        ),
        ("a: b: c\n", "agent", ":1: is not YAML: mapping values are not allowed here; correct the YAML"),
        ("a: 1\n---\nb: 2\n", "agent", ":2: begins a second document"),
    ],
)
def test_what_is_no_such_file(path: Path, text: str, form: Form, what: str) -> None:
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read(path, form)
    assert what in str(caught.value)


def test_warnings(path: Path, wording: Wording) -> None:
    text = "nodes:\n" + "- {address: 192.0.2.%d, user: me, role: [controlplane, etcd, worker]}\n" * 2 % (1, 2)
    path.write_text(text + "network: {plugin: weave}\nkubernetes_version: v1.29.9-rancher1-1\n")
    data, mistakes, _ = read(path)
    assert mistakes == []
    wording(list(warnings(data)))
    path.write_text("nodes:\n- {address: 192.0.2.1, user: me, role: [controlplane, etcd]}\n")
    data, mistakes, _ = read(path)
    assert mistakes == []  # RKE takes it: cluster/validation.go requires etcd only
    wording(list(warnings(data)))
    assert list(warnings({}, "agent")) == []
    alone = ({"server": "https://10.0.0.5:9345"}, {"token": "x"})
    assert [each.partition(" ")[0] for data in alone for each in warnings(data, "agent")] == ["token", "server"]
    assert list(warnings({"server": "https://10.0.0.5:9345", "token-file": "/x"}, "agent")) == []
    without_etcd = ({}, {"server": "https://10.0.0.5:9345"})
    assert [len([*warnings({"disable-etcd": True, **each}, "server")]) for each in without_etcd] == [1, 0]


RANCHER = """\
docker_root_dir: /var/lib/docker
local_cluster_auth_endpoint: {enabled: true}
name: shop
rancher_kubernetes_engine_config:
  kubernetes_version: v1.20.15-rancher2-2
  ssh_agent_auth: yes
  network: {plugin: canal, mtuu: 0}
  services: {etcd: {snapshot: "false"}}
windows_prefered_cluster: false
"""


def test_a_template_is_refused_as_one(tmp_path: Path) -> None:
    """The file that Ansible or Helm makes of it is YAML."""
    (tmp_path / "cluster.yml").write_text("nodes:\n- address: {{ rke.master.ip }}\n  role: [etcd]\n")
    with pytest.raises(SpecError) as refused:
        read(tmp_path / "cluster.yml")
    (mistake,) = refused.value.mistakes
    assert (mistake.code, "template" in mistake.fix) == ("spec.unreadable", True)


def test_a_cluster_of_rancher(path: Path, wording: Wording) -> None:
    """Its node pools define the nodes, and its own keys are no keys of RKE."""
    wording(told(path, RANCHER))
    content = read(path)
    assert content.of_rancher
    assert content.data["cluster_name"] == "shop"
    assert content.data["ssh_agent_auth"] is True
    assert list(warnings(content.data)) == []


@pytest.mark.parametrize(
    ("text", "form", "what"),
    [
        (
            RANCHER,
            "server",
            "4: is a cluster.yml of RKE, not the config.yaml of an ",
        ),
        ("name: x\nrancher_kubernetes_engine_config: []\n", "cluster.yml", "2: rancher_kubernetes_engine_config of a"),
        (
            "apiVersion: provisioning.cattle.io/v1\nkind: Cluster\nspec: {rkeConfig: {}}\n",
            "cluster.yml",
            "2: is a file of Kubernetes objects, not the cluster.yml of RKE; Rancher keeps the keys",
        ),
        ("apiVersion: v1\nkind: Config\nclusters: []\n", "cluster.yml", "2: is a kubeconfig, not the cluster.yml"),
        ("apiVersion: v1\nkind: Config\n", "server", "2: is a kubeconfig, not the config.yaml"),
        (
            "token: a\nserver: b\n",
            "cluster.yml",
            "1: is a config.yaml of an RKE2 agent, not the cluster.yml of RKE; run `openstack-prep rke check --rke2 a",
        ),
        (
            "tls-san: [a]\ncni: b\n",
            "cluster.yml",
            "1: is a config.yaml of an RKE2 server, not the cluster.yml of RKE; run `openstack-prep rke check --rke2 s",
        ),
        ("tls-san: [a]\n", "registries", "1: is a config.yaml of an RKE2 server, not the registries.yaml of RKE2"),
        (FILE, "server", "1: is a cluster.yml of RKE, not the "),
        (FILE, "registries", "1: is a cluster.yml of RKE, not the "),
        ("mirrors: {}\n", "server", "1: is a registries.yaml of RKE2, not the config.yaml"),
        ("mirrors: {}\n", "cluster.yml", "1: is a registries.yaml of RKE2, not the cluster.yml"),
        ("services: {web: {image: nginx}}\n", "cluster.yml", "1: is a file of Docker Compose, not the cluster.yml"),
        ("version: '3'\nservices:\n  a: {build: .}\n", "agent", "2: is a file of Docker Compose, not the config"),
        ('{"desiredState": {}, "currentState": {}}', "cluster.yml", "1: is the state of a cluster of RKE"),
        ("apiVersion: v1\nbaseDomain: a\n", "cluster.yml", "2: is an install-config.yaml of OpenShift"),
        ("heat_template_version: wallaby\n", "server", "1: is a template of Heat"),
        ("#cloud-config\nwrite_files: []\n", "server", "2: is user data of cloud-init"),
        ("clouds: {}\n", "cluster.yml", "1: is a clouds.yaml"),
        ("name: a\nnetworks: [{name: b}]\n", "cluster.yml", "2: is a spec of openstack-prep"),
    ],
)
def test_a_file_of_another_kind_is_one_mistake(path: Path, text: str, form: Form, what: str) -> None:
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read(path, form)
    assert str(caught.value).removeprefix(f"{path}:").startswith(what)
    assert len(caught.value.mistakes) == 1


@pytest.mark.parametrize(
    ("node", "place"),
    [
        ("address: 10.0.0.256", "nodes[0].address"),
        ("address: <ip>", "nodes[0].address"),
        ("address: 192.0.2.1, internal_address: 10.0.0.300", "nodes[0].internal_address"),
        ("address: 192.0.2.1, labels: {a b: c}", "nodes[0].labels.a b"),
        ("address: 192.0.2.1, labels: {a: 'b c'}", "nodes[0].labels.a"),
        ("address: 192.0.2.1, taints: [{key: a, effect: Never}]", "nodes[0].taints[0]"),
        ("address: 192.0.2.1, ssh_key_path: CHANGEME", "nodes[0].ssh_key_path"),
    ],
)
def test_nodes_that_kubernetes_or_rke_do_not_take(path: Path, node: str, place: str) -> None:
    others = "user: me, role: [controlplane, etcd, worker]"
    assert told(path, f"nodes: [{{address: Node-1.example.com, {others}, labels: {{a: 1, b: true, c: null}}}}]\n") == []
    assert told(path, f"nodes: [{{address: 192.0.2.1, {others}, taints: [{{key: a.b/c, value: d}}]}}]\n") == []
    (found,) = told(path, f"nodes: [{{{node}, {others}}}]\n")
    assert found.startswith(f"1: {place}: ")
