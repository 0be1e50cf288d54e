from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.raw import dotted
from openstack_prep.kubernetes.convert import convert
from openstack_prep.kubernetes.rules import FORMER, keys, needs_cri_dockerd, values, warnings
from tests.unit.texts import Wording, contains

NODE = {"address": "192.0.2.1", "user": "me", "role": ["controlplane", "etcd", "worker"]}
OLD = "v1.20.15-rancher2-2"


def made(path: str, value: Any) -> dict[str, Any]:
    *parents, last = path.split(".")
    whole: dict[str, Any] = {}
    inner = whole
    for each in parents:
        inner = inner.setdefault(each, {})
    inner[last] = value
    return whole


def told(document: dict[str, Any], *, has_nodes: bool = False) -> list[str]:
    return [str(each.mistake(dotted(each.steps))) for each in values(document, has_nodes=has_nodes)]


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ("network.plugin", "canall", "network.plugin: RKE does not support 'canall'; did you mean canal?"),
        ("network.plugin", "weave", "network.plugin: Kubernetes 1.30 and later do not support weave"),
        ("ingress.network_mode", "host", "ingress.network_mode: RKE does not support 'host'"),
        (
            "ingress.dns_policy",
            "clusterfirst",
            "ingress.dns_policy: RKE does not support 'clusterfirst'; did you mean C",
        ),
        ("ingress.http_port", 70000, "ingress.http_port: 70000 is not a port"),
        ("ingress", {"http_port": 80, "https_port": 80}, "ingress.https_port: 80 is also http_port"),
        (
            "authentication.strategy",
            "webhook",
            "authentication.strategy: RKE does not support 'webhook'",
        ),
        ("authentication.strategy", "x509|oidc", "authentication.strategy: RKE does not support 'x509|oidc'"),
        ("enable_cri_dockerd", False, "enable_cri_dockerd: Kubernetes 1.24 and later require it for Docker"),
        (
            "kubernetes_version",
            "v1.31.1",
            "kubernetes_version: 'v1.31.1' is not a version of RKE, and system_images",
        ),
        ("kubernetes_version", 1.31, "kubernetes_version: '1.31' is not a version"),
        ("authentication.strategy", 5, "authentication.strategy: RKE does not support '5'"),
        ("network.plugin", "aci", "network.aci_network_provider: lacks system_id, token"),
        ("cloud_provider.customCloudProvider", "x", "cloud_provider.name: is missing beside customCloudProvider"),
        ("cloud_provider.name", "vsphere", "cloud_provider.vsphereCloudProvider: is missing"),
        ("network.plugin", True, "network.plugin: RKE does not support 'true'"),
        ("services.kubelet.image", "x", "services.kubelet.image: RKE ignores it; set system_images.kubernetes instead"),
        ("services.etcd.image", "x", "services.etcd.image: RKE ignores it; set system_images.etcd instead"),
        (
            "cloud_provider.name",
            "openstack",
            "cloud_provider.name: Kubernetes 1.26 and later have no built-in provider openstack",
        ),
        (
            "services.etcd.backup_config.s3backupconfig",
            {"endpoint": "s3"},
            "services.etcd.backup_config.s3backupconfig.bucket_name: is missing",
        ),
        (
            "services.kube-api.pod_security_configuration",
            "baseline",
            "services.kube-api.pod_security_configuration: RKE does not support 'baseline'",
        ),
    ],
)
def test_values_that_rke_refuses(path: str, value: Any, what: str) -> None:
    (found,) = told(made(path, value))
    assert found.startswith(what)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"network": {"plugin": "weave"}, "kubernetes_version": "v1.29.9-rancher1-1"},
        {"network": {"plugin": "canal", "mtu": 1400}},
        {"authentication": {"strategy": "X509|webhook"}},
        {"enable_cri_dockerd": False, "kubernetes_version": "v1.23.16-rancher2-3"},
        {"kubernetes_version": "v1.10.3-rancher2"},
        {"kubernetes_version": "v1.31.99", "system_images": {"kubernetes": "mine"}},
        {
            "cloud_provider": {"name": "openstack", "openstackCloudProvider": {"global": {}}},
            "kubernetes_version": "v1.25.16-rancher2-3",
        },
        {"services": [], "network": "canal", "ingress": None},  # the keys' own check
    ],
)
def test_values_that_it_takes(document: dict[str, Any]) -> None:
    assert told(document) == []


def test_what_old_kubernetes_cannot(wording: Wording) -> None:
    document = {
        "kubernetes_version": OLD,
        "enable_cri_dockerd": True,
        "network": {"plugin": "flannel", "mtu": 1400},
        "services": {"kube-api": {"pod_security_configuration": "restricted"}},
        "authorization": {"mode": "none"},
    }
    wording(told(document))
    assert not needs_cri_dockerd(OLD)
    assert needs_cri_dockerd("v1.31.1-rancher1-1")
    assert not needs_cri_dockerd(None)


def test_nodes(wording: Wording) -> None:
    nodes = [
        NODE,
        {"address": "192.0.2.1", "user": "", "role": ["master"]},
        {"address": "192.0.2.3", "user": "me", "role": ["worker"], "hostname_override": "n_3"},
        {"address": "192.0.2.4", "user": "me", "role": ["worker"], "hostname_override": "N4"},
        {"address": "192.0.2.5", "user": "me", "role": ["worker"], "hostname_override": "n4"},
        "192.0.2.6",
    ]
    wording(told({"nodes": nodes}, has_nodes=True))
    assert told({"nodes": [NODE]}, has_nodes=True) == []
    wording(told({}, has_nodes=True))


def test_etcd_elsewhere(wording: Wording) -> None:
    outside = {"external_urls": ["https://etcd"], "ca_cert": "a", "cert": "b", "key": "c", "path": "/k"}
    document = {"nodes": [NODE], "services": {"etcd": outside}}
    wording(told(document, has_nodes=True))
    document["nodes"] = [NODE | {"role": ["controlplane", "worker"]}]
    assert told(document, has_nodes=True) == []


@pytest.mark.parametrize(
    ("version", "value", "refused"),
    # without a version RKE installs its default, which nothing here knows: a warning
    [(None, True, False), ("v1.25.9-rancher2-2", True, True), (OLD, True, False), (None, False, False)],
)
def test_a_key_that_depends_on_the_version(version: str | None, value: bool, refused: bool) -> None:
    document = {"kubernetes_version": version, "services": {"kube-api": {"pod_security_policy": value}}}
    places = [fault.steps for fault in keys(document)]
    assert places == ([("services", "kube-api", "pod_security_policy")] if refused else [])
    warned = [each for each in warnings(document) if each.startswith("services.kube-api.pod_security_policy")]
    assert len(warned) == (version is None and value)


@pytest.mark.parametrize("key", FORMER)
def test_a_key_of_former_releases_is_no_mistake(key: str) -> None:
    document: dict[str, Any] = {"nodes": [dict(NODE)]}
    *folders, name = key.split(".")
    inner = document
    for folder in folders:
        inner = inner["nodes"][0] if folder == "nodes" else inner.setdefault(folder, {})
    inner[name] = "x"
    assert list(keys(document)) == []
    assert [each.partition(":")[0].replace("[0]", "") for each in warnings(document)] == [key]
    carried = {each.key.replace("[]", ""): each.becomes for each in convert(document).entries}
    assert any(key.startswith(known) and becomes is None for known, becomes in carried.items()), carried


def test_a_key_and_its_path_at_once(wording: Wording) -> None:
    document = {
        "bastion_host": {"ssh_key": "x", "ssh_key_path": "y"},
        "nodes": [{"ssh_cert": "x", "ssh_cert_path": "y"}],
    }
    wording(list(warnings(document)))


ODD: list[Any] = [None, "", 0, True, 1.5, "x", [], [None], [[1]], {}, [{}], {"a": 1}, {1: 2}]


def paths(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield before
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, each in inner:
        yield from paths(each, (*before, step))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.copy(data)
    made[path[0]] = replaced(data[path[0]], path[1:], value)
    return made


def test_nothing_that_may_stand_there_makes_it_fall_over() -> None:
    """Each part of a whole file is replaced by each odd value; a wrong type is always told."""
    whole = yaml.safe_load((Path(__file__).parent / "data" / "full.yml").read_text())
    for path in paths(whole):
        for odd in ODD:
            document = replaced(whole, path, odd)
            if isinstance(document, dict):
                list(values(document))
                list(warnings(document))
            wrong = list(keys(document))
            if isinstance(odd, list | dict) and not isinstance(found_at(whole, path), type(odd)):
                assert wrong


def found_at(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


@pytest.mark.parametrize(
    ("path", "value"), [("authorization.mode", "abac"), ("dns.provider", "kubedns"), ("monitoring.provider", "metric")]
)
def test_values_that_rke_does_not_check(path: str, value: str) -> None:
    """RKE 1.7, cluster/addons.go: other values are installed, or not, without an error."""
    section, name = path.split(".")
    assert list(values({section: {name: value}}, has_nodes=False)) == []
    (warning,) = warnings({section: {name: value}})
    assert contains(warning, path, f"{value!r}")


@pytest.mark.parametrize(("mode", "count"), [("hostNetwork", 0), ("none", 0), ("hostPort", 1), (None, 1)])
def test_ports_of_the_ingress_are_compared_only_as_host_ports(mode: str | None, count: int) -> None:
    document = {"ingress": {"http_port": 80, "https_port": 80, "network_mode": mode}}
    assert len(list(values(document, has_nodes=False))) == count


@pytest.mark.parametrize(("name", "port"), [("http_port", 443), ("https_port", 80)])
def test_a_port_is_compared_with_the_default_of_the_other(name: str, port: int) -> None:
    places = [fault.steps for fault in values({"ingress": {name: port}}, has_nodes=False)]
    assert places == [("ingress", name)]
    assert list(values({"ingress": {name: port}, "kubernetes_version": OLD}, has_nodes=False)) == []


def test_ports_in_the_network_of_the_host_are_not_checked() -> None:
    assert list(values({"ingress": {"http_port": 70000, "network_mode": "hostNetwork"}}, has_nodes=False)) == []


def test_a_role_that_is_null() -> None:
    found = list(values({"nodes": [NODE, NODE | {"address": "192.0.2.2", "role": [None]}]}))
    assert [dotted(each.steps) for each in found] == ["nodes[1].role[0]"]


@pytest.mark.parametrize(("replicas", "wrong"), [(2, False), (2**31 - 1, False), (2**31, True), ("2", True)])
def test_replicas_have_32_bits(replicas: object, wrong: bool) -> None:
    """RKE 1.7, types/rke_types.go: MonitoringConfig.Replicas is an *int32."""
    found = [dotted(each.steps) for each in keys({"monitoring": {"replicas": replicas}})]
    assert found == (["monitoring.replicas"] if wrong else [])


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("admission_configuration", {"kind": "AdmissionConfiguration", "plugins": []}, ".apiVersion"),
        ("audit_log", {"enabled": True, "configuration": {"policy": {"rules": []}}}, ".configuration.policy.kind"),
        ("event_rate_limit", {"enabled": True, "configuration": {"limits": "a"}}, ".configuration.limits"),
    ],
)
def test_objects_that_rke_cannot_decode(path: str, value: object, place: str) -> None:
    """RKE 1.7, cluster/cluster.go: parseAdmissionConfig, parseAuditLogConfig and parseEventRateLimit."""
    found = values(made(f"services.kube-api.{path}", value), has_nodes=False)
    assert [dotted(each.steps) for each in found] == [f"services.kube-api.{path}{place}"]


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("ingress.extra_envs", ["a"], "ingress.extra_envs[0]"),
        ("ingress.extra_volumes", [{"name": "a", "hostPath": "/a"}], "ingress.extra_volumes[0].hostPath"),
        ("ingress.extra_volume_mounts", [{"mountPath": 5}], "ingress.extra_volume_mounts[0].mountPath"),
        ("dns.update_strategy", {"strategy": 5}, "dns.update_strategy.strategy"),
        ("services.kube-api.admission_configuration", "x", "services.kube-api.admission_configuration"),
        (
            "services.kube-api.event_rate_limit.configuration",
            {"limits": [{"qps": "x"}]},
            "services.kube-api.event_rate_limit.configuration.limits[0].qps",
        ),
        ("services.kube-api.event_rate_limit.configuration", "x", "services.kube-api.event_rate_limit.configuration"),
        ("services.kube-api.pod_security_policy", "yes", "services.kube-api.pod_security_policy"),
        ("services.etcd.backup_config.retention", 10**20, "services.etcd.backup_config.retention"),
    ],
)
def test_types_that_go_does_not_decode(path: str, value: object, place: str) -> None:
    """RKE 1.2.23 refuses each of them (cluster/cluster.go, ParseConfig)."""
    assert [dotted(each.steps) for each in keys(made(path, value))] == [place]


def test_the_name_of_a_node_is_also_compared_with_the_addresses_of_later_ones() -> None:
    """RKE 1.2.23 and 1.7, cluster/validation.go: the default of hostname_override is the address."""
    nodes = [NODE | {"hostname_override": "192.0.2.2"}, NODE | {"address": "192.0.2.2"}]
    assert [fault.steps for fault in values({"nodes": nodes})] == [("nodes", 1, "hostname_override")]


def test_a_node_is_not_named_by_its_ipv6_address() -> None:
    """RKE 1.7, cluster/validation.go: hostname_override, by default the address, is a DNS name."""
    node = {"address": "fd00::1", "user": "u", "role": ["controlplane", "etcd", "worker"]}
    places = [fault.steps for fault in values({"nodes": [node]})]
    assert places == [("nodes", 0, "hostname_override")]
    assert list(values({"nodes": [node | {"hostname_override": "a"}]})) == []


@pytest.mark.parametrize(
    ("more", "labels"),
    [({"hostname_override": "put-1"}, {"team": "todo"}), ({"hostname_override": "insert-db-1"}, {"phase": "change"})],
)
def test_words_of_samples_are_valid_names(more: dict[str, str], labels: dict[str, str]) -> None:
    """Of RKE as of RKE2, a placeholder has brackets or is a sample in capitals."""
    document = {"cluster_name": "your-company", "nodes": [{**NODE, **more, "labels": labels}]}
    assert told(document, has_nodes=True) == []
    assert len(told(document | {"cluster_name": "<your company>"}, has_nodes=True)) == 1
