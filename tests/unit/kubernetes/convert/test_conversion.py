"""RKE's cluster.yml as files of RKE2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.raw import Raw, Values, value_at
from openstack_prep.kubernetes import reading
from openstack_prep.kubernetes.convert import Conversion, convert
from openstack_prep.kubernetes.convert.conversion import HANDLERS
from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.rke2_rules import document_faults

FULL = """\
cluster_name: prod
kubernetes_version: v1.30.5-rancher1-1
ssh_key_path: ~/.ssh/id_rsa
nodes:
- {address: 192.0.2.1, internal_address: 10.0.0.1, user: u, role: [etcd], hostname_override: E1}
- {address: 10.0.0.2, user: u, role: [controlplane], hostname_override: c1}
- address: 10.0.0.3
  user: u
  role: [worker]
  labels: {disk: ssd, node-role.kubernetes.io/worker: "true"}
  taints: [{key: gpu, value: a, effect: NoSchedule}, {key: old, effect: NoExecute}]
- {address: w2.example.com, user: u, role: [worker]}
private_registries:
- {url: registry.example.com:5000, user: me, password: s3cret-pull, is_default: true}
network: {plugin: canal, mtu: 1400, options: {canal_iface: eth1, canal_flannel_backend_vni: "2"}}
authentication: {strategy: x509, sans: [api.example.com]}
addons: "kind: Secret\\nstringData: {a: s3cret-addon}"
addons_include: [https://example.com/a.yaml]
cloud_provider:
  name: external
  openstackCloudProvider: {global: {auth-url: https://k/v3, password: s3cret-cloud}, load_balancer: {use-octavia: true}}
ingress: {provider: none, options: {}}
dns: {provider: coredns, upstreamnameservers: [192.0.2.53], stubdomains: {corp: [192.0.2.54]}}
monitoring: {provider: none}
services:
  etcd:
    extra_args: {quota-backend-bytes: "1"}
    backup_config:
      interval_hours: 6
      retention: 4
      s3backupconfig: {access_key: a, secret_key: s3cret-s3, bucket_name: bkp, endpoint: s3.example.com, custom_ca: PEM}
  kube-api:
    service_cluster_ip_range: 10.96.0.0/16
    service_node_port_range: 30000-31000
    always_pull_images: true
    pod_security_configuration: restricted
    event_rate_limit: {enabled: true}
    secrets_encryption_config: {enabled: true}
    audit_log: {enabled: true, configuration: {max_age: 7, policy: {kind: Policy, rules: [{level: None}]}}}
    extra_args: {v: "4", enable-admission-plugins: "NodeRestriction,PodSecurityPolicy", etcd-cafile: /etc/ca.pem}
    extra_binds: ["/srv/a:/a:ro,z"]
    extra_env: [TZ=UTC]
  kube-controller: {cluster_cidr: 10.42.0.0/16, service_cluster_ip_range: 10.96.0.0/16}
  kubelet:
    cluster_dns_server: 10.96.0.10
    cluster_domain: corp.local
    extra_args: {max-pods: 250}
    extra_binds: ["/srv:/srv"]
    extra_args_array: {node-labels: [a=b, c=d], register-with-taints: ["e=f:NoSchedule"]}
"""


def converted(text: str, version: str | None = None) -> Conversion:
    return convert(yaml.safe_load(text), version=version)


def small(more: str = "") -> str:
    return f"nodes: [{{address: 10.0.0.1, user: u, role: [controlplane, etcd, worker]}}]\n{more}"


def config(conversion: Conversion, name: str) -> Values:
    return dict(yaml.safe_load(conversion.texts(openly=True)[f"{name}.yaml"]))


def helm(conversion: Conversion, chart: str) -> Values:
    return dict(yaml.safe_load(config(conversion, f"{chart}-config")["spec"]["valuesContent"]))


def became(conversion: Conversion) -> dict[str, str | None]:
    return {each.key: each.becomes for each in conversion.entries}


def leaves(schema: Raw, key: str = "") -> Iterator[str]:
    """Yield the keys of a schema that contain no further keys."""
    inner = schema.get("items", {})
    if "properties" in schema:
        for name, each in schema["properties"].items():
            yield from leaves(each, f"{key}.{name}".lstrip("."))
    elif "properties" in inner:
        yield from leaves(inner, f"{key}[]")
    else:
        yield key


def test_each_key_of_rke_has_a_handler() -> None:
    for key in leaves(load_schema("cluster.yml")):
        steps = [found.end() for found in re.finditer(r"\w(?=\.|\[|$)|\]", key)]
        assert any(key[:end] in HANDLERS for end in steps), key


def test_a_whole_file_is_valid_for_both_programs(tmp_path: Path) -> None:
    (tmp_path / "cluster.yml").write_text(FULL)
    assert reading.read(tmp_path / "cluster.yml")[1] == []
    conversion = converted(FULL)
    for name, form in {"e1": "server", "c1": "server", "10.0.0.3": "agent", "w2.example.com": "agent"}.items():
        assert list(document_faults(config(conversion, name), load_schema(form))) == []  # type: ignore[arg-type]


def test_roles_and_addresses() -> None:
    conversion = converted(FULL)
    etcd, control = config(conversion, "e1"), config(conversion, "c1")
    assert "server" not in etcd
    assert (etcd["node-name"], etcd["node-ip"]) == ("e1", "10.0.0.1")
    assert {name for name in etcd if name.startswith("disable-")} == {
        "disable-apiserver",
        "disable-cloud-controller",
        "disable-controller-manager",
        "disable-scheduler",
    }
    assert control["server"] == "https://10.0.0.1:9345"
    assert (control["disable-etcd"], control["tls-san"]) == (True, ["10.0.0.1", "api.example.com"])
    assert control["cluster-dns"] == "10.96.0.10"
    agent = config(conversion, "10.0.0.3")
    assert agent["node-label"] == ["disk=ssd"]
    assert agent["node-taint"] == ["gpu=a:NoSchedule", "old:NoExecute"]
    assert "node-name" not in agent
    assert not [name for name in agent if name.startswith(("kube-apiserver", "etcd", "tls-san", "cluster-"))]
    assert "node-ip" not in config(conversion, "w2.example.com")


def test_what_services_become() -> None:
    server = config(converted(FULL), "e1")
    assert server["kube-apiserver-arg"] == [
        "audit-log-maxage=7",
        "v=4",
        "enable-admission-plugins=NodeRestriction,AlwaysPullImages,EventRateLimit",
    ]
    assert server["kubelet-arg"] == [
        "max-pods=250",
        "node-labels+=a=b",
        "node-labels+=c=d",
        "register-with-taints+=e=f:NoSchedule",
    ]
    assert server["kube-apiserver-extra-mount"] == ["/srv/a:/a:ro"]
    assert server["kube-apiserver-extra-env"] == ["TZ=UTC"]
    assert server["service-node-port-range"] == "30000-31000"
    assert server["disable"] == ["rke2-ingress-nginx", "rke2-metrics-server"]
    wanted = {"schedule-cron": "0 */6 * * *", "retention": 4}
    assert {name: server[f"etcd-snapshot-{name}"] for name in wanted} == wanted
    assert (server["etcd-s3"], server["etcd-s3-bucket"]) == (True, "bkp")
    assert server["system-default-registry"] == "registry.example.com:5000"


@pytest.mark.parametrize(
    ("password", "written"),
    [
        ("plain=x", "plain=x"),
        ("one#two;three", '"one#two;three"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        (" a ", '" a "'),
        ("a\nb\tc", r'"a\nb\tc"'),
        ('"one#two"', '"one#two"'),  # RKE writes it as it is, so that people have put it in quotes
        ('"one\\four"', r'"\"one\\four\""'),  # these quotes are a part of the value
    ],
)
def test_values_of_cloud_conf_as_gcfg_reads_them(password: str, written: str) -> None:
    """As gcfg v1.2.3 says itself; 2,020 values were read back."""
    data = yaml.safe_load(FULL)
    data["cloud_provider"]["openstackCloudProvider"]["global"]["password"] = password
    text = convert(data).texts(openly=True)["cloud.conf"]
    assert f"\npassword={written}\n" in text


def test_files_beside_the_configuration() -> None:
    conversion = converted(FULL)
    texts = conversion.texts(openly=True)
    assert texts["etcd-s3-ca.pem"] == "PEM\n"
    assert texts["cloud.conf"] == (
        "[Global]\nauth-url=https://k/v3\npassword=s3cret-cloud\n\n[LoadBalancer]\nuse-octavia=true\n"
    )
    plugins = config(conversion, "admission")["plugins"]
    assert [each["name"] for each in plugins] == ["PodSecurity", "EventRateLimit"]
    assert plugins[0]["configuration"]["defaults"]["enforce"] == "restricted"
    assert config(conversion, "audit-policy")["kind"] == "Policy"
    assert helm(conversion, "rke2-canal") == {"calico": {"vethuMTU": 1400}, "flannel": {"iface": "eth1", "vni": 2}}
    servers = helm(conversion, "rke2-coredns")["servers"]
    assert [each["zones"][0]["zone"] for each in servers] == [".", "corp"]
    forward = {each["name"]: each.get("parameters") for each in servers[0]["plugins"]}
    assert (forward["forward"], forward["kubernetes"]) == (
        ". 192.0.2.53",
        "in-addr.arpa ip6.arpa",
    )  # the chart adds corp.local
    assert servers[0]["zones"][0]["use_tcp"] is True  # else the chart's Service has no TCP port


def test_no_secret_is_shown() -> None:
    conversion = converted(FULL)
    secrets = {"s3cret-pull", "s3cret-addon", "s3cret-cloud", "s3cret-s3"}
    openly = "".join(conversion.texts(openly=True).values())
    shown = f"{conversion}{conversion.data()}{''.join(conversion.texts(openly=False).values())}"
    assert {each for each in secrets if each in openly} == secrets
    assert not {each for each in secrets if each in shown}


def test_every_key_is_accounted_for() -> None:
    conversion = converted(FULL)
    accounted = {*became(conversion), *conversion.empty}

    def paths(value: Any, key: str) -> Iterator[str]:
        if isinstance(value, dict) and value:
            for name, each in value.items():
                yield from paths(each, f"{key}.{name}".lstrip("."))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for each in value:
                yield from paths(each, f"{key}[]")
        else:
            yield key

    for path in paths(yaml.safe_load(FULL), ""):
        steps = [found.end() for found in re.finditer(r"\w(?=\.|\[|$)|\]", path)]
        within = any(path[:end] in accounted for end in steps)
        assert within or any(each.startswith(path) for each in accounted), path
    assert {name for name, becomes in became(conversion).items() if becomes is None} >= {
        "cluster_name",
        "ssh_key_path",
        "nodes[].user",
        "services.kubelet.extra_binds",
        "services.kube-api.extra_args.etcd-cafile",
        "addons_include",
    }


@pytest.mark.parametrize(
    ("declared", "chosen", "version"),
    [
        ("v1.31.1-rancher1-1", None, "v1.31.14+rke2r2"),
        ("v1.32.13-rancher1-1", None, "v1.32.13+rke2r2"),
        ("v1.14.9-rancher1-1", None, "v1.18.20+rke2r1"),
        (None, None, "v1.32.13+rke2r2"),
        ("v1.31.1-rancher1-1", "v1.35.7+rke2r1", "v1.35.7+rke2r1"),
    ],
)
def test_the_release(declared: str | None, chosen: str | None, version: str) -> None:
    text = small(f"kubernetes_version: {declared}\n" if declared else "")
    assert converted(text, chosen).target.version == version


def test_a_newer_release_keeps_ingress_nginx() -> None:
    assert config(converted(small(), "v1.36.3+rke2r1"), "10.0.0.1")["ingress-controller"] == "ingress-nginx"
    assert "ingress-controller" not in config(converted(small(), "v1.35.7+rke2r1"), "10.0.0.1")


def test_an_older_release_does_not_get_newer_keys() -> None:
    text = small("kubernetes_version: v1.24.9-rancher1-1\nservices: {kube-api: {event_rate_limit: {enabled: true}}}\n")
    conversion = converted(text)
    assert "pod-security-admission-config-file" not in config(conversion, "10.0.0.1")
    notes = [each.note for each in conversion.entries if each.key == "services.kube-api.event_rate_limit"]
    assert "RKE2 has pod-security-admission-config-file since 1.25" in notes


@pytest.mark.parametrize(
    ("plugin", "version", "cni"),
    [
        ("weave", "v1.29.9-rancher1-1", "canal"),
        ("flannel", "v1.29.9-rancher1-1", "flannel"),
        ("flannel", "v1.24.9-rancher1-1", "canal"),
        ("none", "v1.29.9-rancher1-1", "none"),
    ],
)
def test_the_network_plugin(plugin: str, version: str, cni: str) -> None:
    text = small(f"kubernetes_version: {version}\nnetwork: {{plugin: {plugin}}}\n")
    assert config(converted(text), "10.0.0.1")["cni"] == [cni]


@pytest.mark.parametrize(
    ("etcd", "settings"),
    [
        ("{snapshot: true, creation: 6h, retention: 24h}", {"schedule-cron": "0 */6 * * *", "retention": 4}),
        ("{backup_config: {interval_hours: 48}}", {"schedule-cron": "0 0 */2 * *"}),
        ("{backup_config: {interval_hours: 24}}", {"schedule-cron": "0 0 * * *"}),
        ("{backup_config: {enabled: true}, snapshot: false}", {}),
    ],
)
def test_snapshots(etcd: str, settings: dict[str, object]) -> None:
    server = config(converted(small(f"services: {{etcd: {etcd}}}\n")), "10.0.0.1")
    found = {name: value for name, value in server.items() if name.startswith("etcd-snapshot-")}
    assert found == {f"etcd-snapshot-{name}": value for name, value in settings.items()}


@pytest.mark.parametrize("etcd", ["{snapshot: false}", "{backup_config: {enabled: false}}"])
def test_no_snapshots(etcd: str) -> None:
    assert config(converted(small(f"services: {{etcd: {etcd}}}\n")), "10.0.0.1")["etcd-disable-snapshots"] is True


def test_an_external_etcd_is_never_shared() -> None:
    text = """\
nodes: [{address: 10.0.0.1, user: u, role: [controlplane]}]
services: {etcd: {external_urls: [https://e:2379], ca_cert: a, cert: b, key: c, path: /p}}
"""
    conversion = converted(text)
    server = config(conversion, "10.0.0.1")
    assert not {"disable-etcd", "datastore-endpoint"} & server.keys()
    assert became(conversion)["services.etcd.external_urls"] is None


def test_a_dual_stack_cluster_needs_addresses_that_rke_does_not_know() -> None:
    text = """\
network: {plugin: calico}
services:
  kube-api: {service_cluster_ip_range: "10.43.0.0/16,fd43::/112"}
  kube-controller: {cluster_cidr: "10.42.0.0/16,fd42::/56", service_cluster_ip_range: "10.43.0.0/16,fd43::/112"}
"""
    conversion = converted(small(text))
    server = config(conversion, "10.0.0.1")
    assert server["cluster-cidr"] == "10.42.0.0/16,fd42::/56"
    assert "node-ip" not in server
    assert list(document_faults(server, load_schema("server"))) == []
    assert [each.note for each in conversion.entries if each.key == "nodes[].address" and not each.becomes]


def test_a_node_with_the_name_of_another_file() -> None:
    text = """\
nodes: [{address: 10.0.0.1, user: u, role: [controlplane, etcd], hostname_override: registries}]
private_registries: [{url: https://r.example.com/v2, user: me, password: p}]
"""
    texts = converted(text).texts(openly=True)
    assert yaml.safe_load(texts["registries.yaml"])["configs"].keys() == {"r.example.com"}
    assert yaml.safe_load(texts["node-registries.yaml"])["node-name"] == "registries"


def new_spec_of(conversion: Conversion) -> Any:
    return yaml.safe_load(conversion.texts(openly=True)["new.yaml"])


def test_steps_name_what_this_cluster_has() -> None:
    steps, spec = "\n".join(converted(FULL).steps), new_spec_of(converted(FULL))
    parameters = spec["stacks"][0]["parameters"]
    assert (parameters["server_count"], parameters["agent_count"]) == (3, 2)  # of 2 servers; a stack has 1, 3, 5 or 7
    for part in ("3 servers in place of 2", "v1.30.14+rke2r4", "api.example.com", "https://example.com/a.yaml"):
        assert part in steps
    assert value_at(yaml.safe_load(small()), "addons_include") is None
    assert "api.example.com" not in "\n".join(converted(small()).steps)


def test_port_0_of_the_ingress_is_the_default() -> None:
    conversion = converted(small("ingress: {http_port: 0, https_port: 8443}\n"))
    controller = helm(conversion, "rke2-ingress-nginx")["controller"]
    assert controller["hostPort"] == {"ports": {"https": 8443}}
    assert became(conversion)["ingress.http_port"] is None


@pytest.mark.parametrize(
    ("more", "version"),
    [
        (
            "kubernetes_version: ''\nsystem_images: {kubernetes: 'r.example:5000/hyperkube:v1.30.4-rancher1'}\n",
            "v1.30.",
        ),
        ("kubernetes_version: v1.29.1-rancher1-1\nsystem_images: {kubernetes: 'r/h:v1.30.4-rancher1'}\n", "v1.29."),
    ],
)
def test_the_image_has_the_version_if_no_key_has_it(more: str, version: str) -> None:
    assert converted(small(more)).target.version.startswith(version)


def test_the_table_says_which_addresses_no_file_has() -> None:
    node = "nodes: [{{address: {}, internal_address: {}, user: u, role: [controlplane, etcd, worker]}}]\n{}"
    dual = "services: {kube-controller: {cluster_cidr: '10.42.0.0/16,fd02::/56'}}"
    cases = [
        (node.format("n1.example.com", "10.0.0.1", ""), {"node-ip"}),
        (node.format("192.0.2.1", "10.0.0.1", "cloud_provider: {name: external}"), {"node-ip"}),
        (node.format("192.0.2.1", "10.0.0.1", dual), set()),
        (node.format("192.0.2.1", "10.0.0.1", ""), {"node-ip", "node-external-ip"}),
    ]
    for text, written in cases:
        conversion = converted(text)
        (name,) = [each for each in conversion.files if each.endswith((".1.yaml", "com.yaml"))]
        assert written == {each for each in config(conversion, name[:-5]) if each.endswith("-ip")}
        assert written == {each for each in became(conversion).values() if each and each.endswith("-ip")}


def test_secrets_in_variables_are_not_printed() -> None:
    env = "[HTTP_PROXY=http://u:s3cret-a@proxy:3128, API_TOKEN=s3cret-b, NO_PROXY=10.0.0.0/8]"
    conversion = converted(small(f"services: {{kube-api: {{extra_env: {env}}}}}"))
    assert "s3cret" not in f"{conversion}{conversion.data()}"
    assert config(conversion, "10.0.0.1")["kube-apiserver-extra-env"] == [
        "HTTP_PROXY=http://u:s3cret-a@proxy:3128",
        "API_TOKEN=s3cret-b",
        "NO_PROXY=10.0.0.0/8",
    ]
    assert "NO_PROXY=10.0.0.0/8" in conversion.texts(openly=False)["10.0.0.1.yaml"]


@pytest.mark.parametrize(("version", "kept"), [("v1.26.15+rke2r1", True), ("v1.27.16+rke2r2", False)])
def test_a_flag_that_kubernetes_removed_is_dropped(version: str, kept: bool) -> None:
    head = "kubernetes_version: v1.26.15-rancher1-1\n"
    services = "services: {kube-controller: {extra_args: {pod-eviction-timeout: 40s}}}"
    config_yaml = config(converted(head + small(services), version), "10.0.0.1")
    assert ("pod-eviction-timeout" in str(config_yaml)) == kept


def test_a_file_of_the_engineer_in_a_folder_of_rke_is_to_be_copied() -> None:
    extra = "{oidc-ca-file: /etc/kubernetes/ssl/oidc.pem, client-ca-file: /etc/kubernetes/ssl/kube-ca.pem}"
    conversion = converted(small(f"services: {{kube-api: {{extra_args: {extra}}}}}"))
    notes = {each.key.rpartition(".")[2]: each.note for each in conversion.entries}
    assert "kube-apiserver-arg" in notes["oidc-ca-file"]
    assert "kube-apiserver-arg" not in notes["client-ca-file"]


@pytest.mark.parametrize(
    ("ingress", "version", "default"),
    [
        ("", "v1.29.15+rke2r1", True),
        ("", "v1.28.15+rke2r1", None),
        ("ingress: {default_ingress_class: false}\n", "v1.29.15+rke2r1", False),
        ("ingress: {provider: none}\n", "v1.29.15+rke2r1", None),
    ],
)
def test_ingresses_without_a_class(ingress: str, version: str, default: bool | None) -> None:
    """RKE serves them unless told otherwise; the charts of RKE2 did before 1.29 (watchIngressWithoutClass)."""
    conversion = converted(small(ingress), version)
    assert ("rke2-ingress-nginx-config.yaml" in conversion.files) == (default is not None)
    if default is not None:
        controller = helm(conversion, "rke2-ingress-nginx")["controller"]
        assert controller == {"ingressClassResource": {"default": default}}


@pytest.mark.parametrize(("mode", "port", "network"), [("hostPort", True, False), ("hostNetwork", False, True)])
def test_the_network_of_the_ingress(mode: str, port: bool, network: bool) -> None:
    controller = helm(converted(small(f"ingress: {{network_mode: {mode}}}\n")), "rke2-ingress-nginx")["controller"]
    assert (controller["hostPort"]["enabled"], controller["hostNetwork"]) == (port, network)


UPDATE = "{update_strategy: {strategy: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}}"


def test_values_that_older_charts_do_not_have() -> None:
    text = small(f"monitoring: {UPDATE}\ndns: {UPDATE}\nnetwork: {{options: {{canal_flannel_backend_port: '8473'}}}}\n")
    new, old = converted(text, "v1.27.16+rke2r2"), converted(text, "v1.23.17+rke2r1")
    assert helm(new, "rke2-metrics-server")["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2}
    assert helm(new, "rke2-canal") == {"flannel": {"backendPort": 8473}}
    for each in (new, old):
        assert helm(each, "rke2-coredns") == {"rollingUpdate": {"maxUnavailable": 2}}
    assert became(old)["monitoring.update_strategy"] is None
    assert became(old)["network.options.canal_flannel_backend_port"] is None


def test_texts_that_yaml_reads_as_something_else() -> None:
    s3 = {"services": {"etcd": {"backup_config": {"enabled": True, "s3backupconfig": {"custom_ca": 5}}}}}
    data = {"nodes": [{"address": "192.0.2.1", "user": "u", "role": ["controlplane", "etcd", "worker"]}], **s3}
    assert {"true\n", "5\n"} <= set(convert({**data, "addons": True}).texts(openly=True).values())
    found = convert({**data, "addons_include": [None, 1, True, "https://example.com/a.yaml"]})
    included = [each.note for each in found.entries if each.key == "addons_include"]
    assert included == [f"kubectl apply -f {each}" for each in ("1", "true", "https://example.com/a.yaml")]


SMALL = """\
nodes: [{address: 192.0.2.1, user: me, role: [controlplane, etcd, worker]}]
kubernetes_version: v1.%d.1-rancher1-1
network: {plugin: none}
addons: |
  apiVersion: apps/v1
  kind: DaemonSet
  metadata:
    name: calico-node
"""


@pytest.mark.parametrize(("minor", "plugins"), [(20, ["none"]), (19, ["canal"])])
def test_the_new_cluster_has_one_network_plugin(minor: int, plugins: list[str]) -> None:
    """RKE2 1.19 cannot leave its own plugin out, so that the one in the addons would be the second."""
    conversion = converted(SMALL % minor)
    assert config(conversion, "192.0.2.1")["cni"] == plugins
    (entry,) = (each for each in conversion.entries if each.key == "network.plugin")
    assert (entry.becomes is None) == (plugins != ["none"])
    assert any("calico-node" in each for each in conversion.steps) == (plugins != ["none"])
    (cluster,) = new_spec_of(conversion)["rke_clusters"]
    assert cluster["network_plugin"] == plugins[0]
    assert "cilium" not in cluster


@pytest.mark.parametrize(
    ("services", "ipvs", "flags"),
    [
        ({}, None, None),
        ({"kubeproxy": {"extra_args": {"proxy-mode": "ipvs"}}}, True, ["cluster-dns=169.254.20.10"]),
        ({"kubelet": {"extra_args": {"cluster-dns": "169.254.20.10"}}}, None, ["cluster-dns=169.254.20.10"]),
    ],
)
def test_the_dns_cache_of_nodes(services: dict[str, Any], ipvs: bool | None, flags: list[str] | None) -> None:
    """RKE itself gives its address to the kubelet (cluster/plan.go); cluster-dns of RKE2 is CoreDNS's Service."""
    data = yaml.safe_load(SMALL % 31) | {"services": services, "dns": {"nodelocal": {"ip_address": "169.254.20.10"}}}
    conversion = convert(data)
    assert helm(conversion, "rke2-coredns")["nodelocal"].get("ipvs") == ipvs
    server = config(conversion, "192.0.2.1")
    assert (server.get("kubelet-arg"), server.get("cluster-dns")) == (flags, None)


def test_pod_security_policy_without_a_version(tmp_path: Path) -> None:
    """The default version depends on the release of RKE, which nobody knows here."""
    data = yaml.safe_load(SMALL % 20)
    del data["kubernetes_version"]
    data["services"] = {"kube-api": {"pod_security_policy": True}}
    (tmp_path / "cluster.yml").write_text(yaml.safe_dump(data))
    content = reading.read(tmp_path / "cluster.yml")
    assert content.mistakes == []
    assert any("pod_security_policy" in each for each in reading.warnings(content.data))
    (entry,) = (each for each in convert(content.data).entries if "pod_security_policy" in each.key)
    assert entry.becomes is None
