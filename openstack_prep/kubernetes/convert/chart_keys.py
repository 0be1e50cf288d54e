"""The keys below ``network``, ``ingress``, ``dns`` and ``monitoring``: values for RKE2's own charts.

Sources: RKE 1.7 (templates/, cluster/network.go); the charts of the newest RKE2 of each minor version from 1.18 to 1.36
(rancher/rke2-charts; versions in charts/chart_versions.yaml and Dockerfile of rancher/rke2). Helm's engine has rendered
them with each value: all that are written here change the manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openstack_prep.base.raw import Values, value_at
from openstack_prep.kubernetes.convert.outcome import Draft, Handler, into, lost

NGINX, COREDNS, METRICS = "rke2-ingress-nginx", "rke2-coredns", "rke2-metrics-server"
CLASS = "ingress.default_ingress_class"
NO_DEFAULT_CLASS = 29
TRAEFIK_DEFAULT = 36
"""Since this minor version, RKE2 installs Traefik unless ingress-controller says otherwise."""
CANAL, CALICO, FLANNEL = "rke2-canal", "rke2-calico", "rke2-flannel"
OF_OPERATOR = "the chart of the network plugin decides where its pods run"
NO_PLUGIN = "RKE2 has no such network plugin"


PLUGINS = {"canal": 18, "none": 20, "calico": 21, "flannel": 26}
"""The network plugins of RKE and RKE2, and the first minor version of RKE2 that has each."""


def plugin(draft: Draft) -> str:
    """Return RKE2's cni for a cluster.yml."""
    name = value_at(draft.data, "network.plugin") or "canal"
    return name if PLUGINS.get(name, 99) <= draft.minor else "canal"


def _plugin(draft: Draft, key: str, value: str) -> None:
    chosen = plugin(draft)
    if value == "none" and chosen != "none":
        needed = f"--kubernetes-version v1.{PLUGINS['none']}.15+rke2r2 or later"
        why = f"RKE2 1.{draft.minor} always installs {chosen}, so that the cluster would have two plugins: {needed}"
        draft.note(key, None, why)
        return
    draft.note(key, "cni", "" if chosen == value else f"RKE2 1.{draft.minor} has no {value}; {chosen} is its default")


def _mtu(draft: Draft, key: str, value: object) -> None:
    chosen = plugin(draft)
    if not value:
        draft.note(key, None, "0 is the default")
    elif chosen == "canal":
        draft.chart(key, CANAL, "calico.vethuMTU", value)
    elif chosen == "calico":
        draft.chart(key, CALICO, "installation.calicoNetwork.mtu", value)
    else:
        draft.note(key, None, f"set it in the configuration of {chosen}")


def _interface(draft: Draft, key: str, value: str) -> None:
    chosen = plugin(draft)
    if chosen == "canal":
        draft.chart(key, CANAL, "flannel.iface", value)
    elif chosen == "flannel":
        draft.chart(key, FLANNEL, "flannel.args", ["--ip-masq", "--kube-subnet-mgr", f"--iface={value}"])
    else:
        draft.note(key, None, f"does not apply to {chosen}")


def _backend(draft: Draft, key: str, value: str) -> None:
    chosen = plugin(draft)
    if chosen in ("canal", "flannel"):
        draft.chart(key, f"rke2-{chosen}", "flannel.backend", value)
    else:
        draft.note(key, None, f"does not apply to {chosen}")


def _number(name: str) -> Handler:
    """Return the handler of a setting of VXLAN."""

    def convert(draft: Draft, key: str, value: str) -> None:
        chosen = plugin(draft)
        if chosen in ("canal", "flannel") and value.isdecimal():
            draft.chart(key, f"rke2-{chosen}", f"flannel.{name}", int(value))
        else:
            draft.note(key, None, f"does not apply to {chosen}")

    return convert


def _options(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    known: dict[str, Handler] = {
        "iface": _interface,
        "backend_type": _backend,
        "backend_vni": _number("vni"),
        "backend_port": _number("backendPort"),
    }
    for name, text in value.items():
        handle = known.get(str(name).removeprefix("canal_").removeprefix("flannel_"))  # canal_flannel_backend_type
        if handle and text not in (None, ""):
            handle(draft, f"{key}.{name}", str(text))
        else:
            draft.note(f"{key}.{name}", None, "has no counterpart; see the values of RKE2's chart of the plugin")


# --- ingress --------------------------------------------------------------------------------


def _ingress(draft: Draft, key: str, value: str) -> None:
    if draft.minor >= TRAEFIK_DEFAULT:
        draft.set(key, "ingress-controller", "none" if value == "none" else "ingress-nginx")
    elif value == "none":
        draft.add(key, "disable", NGINX)
    else:
        draft.note(key, None, "ingress-nginx is RKE2's default before 1.36; upstream has retired it: plan for Traefik")


def _port(name: str) -> Handler:
    def convert(draft: Draft, key: str, value: object) -> None:
        if value:
            draft.chart(key, NGINX, f"controller.hostPort.ports.{name}", value)
        else:
            draft.note(key, None, "0 is the default")

    return convert


def _network_mode(draft: Draft, key: str, value: str) -> None:
    draft.chart(key, NGINX, "controller.hostPort.enabled", value == "hostPort")
    draft.chart(key, NGINX, "controller.hostNetwork", value == "hostNetwork")  # the default of old charts is true


def default_ingress_class(draft: Draft) -> None:
    """Write RKE's default, which is to serve Ingresses without a class; the charts of RKE2 1.29 and later do not."""
    ingress = draft.data.get("ingress") or {}
    applies = draft.minor >= NO_DEFAULT_CLASS and ingress.get("provider") != "none"
    if applies and ingress.get("default_ingress_class") is None:
        draft.chart(CLASS, NGINX, "controller.ingressClassResource.default", True, "RKE's default")


def _update_strategy(chart: str, path: str) -> Handler:
    def convert(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
        names = {"strategy": "type", "rollingUpdate": "rollingUpdate"}
        draft.chart(key, chart, path, {names[name]: each for name, each in value.items() if name in names and each})

    return convert


def _rolling_update(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    """Write the numbers of a rolling update, the only strategy of the chart of CoreDNS."""
    numbers = value.get("rollingUpdate") or {}
    for name, number in numbers.items():
        draft.chart(key, COREDNS, f"rollingUpdate.{name}", number)
    if not numbers:
        draft.note(key, None, "the chart always has a rolling update")


def _tolerations(chart: str, path: str) -> Handler:
    def convert(draft: Draft, key: str, value: list[Mapping[str, Any]]) -> None:
        names = {"tolerationseconds": "tolerationSeconds"}
        items = [{names.get(name, name): each for name, each in item.items()} for item in value]
        draft.chart(key, chart, path, items)

    return convert


# --- DNS and metrics ------------------------------------------------------------------------


def _dns(draft: Draft, key: str, value: str) -> None:
    if value == "none":
        draft.add(key, "disable", COREDNS)
    else:
        draft.note(key, None, "RKE2 has coredns" if value == "coredns" else f"RKE2 has coredns in place of {value}")


def _servers(draft: Draft, key: str, value: object) -> None:
    """Write CoreDNS's servers: forwarding to name servers, reverse networks, and zones with servers of their own."""
    dns = draft.data["dns"]
    upstream = " ".join([".", *(dns.get("upstreamnameservers") or ["/etc/resolv.conf"])])
    kubernetes = {
        "name": "kubernetes",
        "parameters": " ".join(dns.get("reversecidrs") or ["in-addr.arpa", "ip6.arpa"]),  # after the cluster's domain
        "configBlock": "pods insecure\nfallthrough in-addr.arpa ip6.arpa\nttl 30",
    }
    plugins: list[dict[str, str]] = [
        {"name": "errors"},
        {"name": "health", "configBlock": "lameduck 10s"},
        {"name": "ready"},
        kubernetes,
        {"name": "prometheus", "parameters": "0.0.0.0:9153"},
        {"name": "forward", "parameters": upstream},
        {"name": "cache", "parameters": "30"},
        *({"name": each} for each in ("loop", "reload", "loadbalance")),
    ]
    servers: list[Values] = [{"zones": [{"zone": ".", "use_tcp": True}], "port": 53, "plugins": plugins}]
    for zone, addresses in (dns.get("stubdomains") or {}).items():
        forward = {"name": "forward", "parameters": " ".join([".", *addresses])}
        of_zone = [{"name": "errors"}, {"name": "cache", "parameters": "30"}, forward]
        servers.append({"zones": [{"zone": zone}], "port": 53, "plugins": of_zone})
    draft.chart(key, COREDNS, "servers", servers)


def _node_local(draft: Draft, key: str, value: str) -> None:
    """Write the address of the DNS cache, to which kube-proxy with iptables leads without more (RKE2, "Networking")."""
    draft.chart(key, COREDNS, "nodelocal.enabled", True)
    draft.chart(key, COREDNS, "nodelocal.ip_address", value)
    if value_at(draft.data, "services.kubeproxy.extra_args.proxy-mode") == "ipvs":
        draft.chart(key, COREDNS, "nodelocal.ipvs", True)
        draft.add(key, "kubelet-arg", f"cluster-dns={value}", "kube-proxy with ipvs does not lead to the cache")


def _monitoring(draft: Draft, key: str, value: str) -> None:
    if value == "none":
        draft.add(key, "disable", METRICS)
    else:
        draft.note(key, None, "RKE2 has metrics-server")


def _metrics_options(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    flags = [f"--{name}={text}" if text not in (None, "") else f"--{name}" for name, text in value.items()]
    draft.chart(key, METRICS, "args", flags)


HANDLERS: dict[str, Handler] = {
    "network.plugin": _plugin,
    "network.mtu": _mtu,
    "network.options": _options,
    "network.enable_br_netfilter": lost("RKE2 loads br_netfilter itself"),
    "network.calico_network_provider": lost("RKE2's calico is set up by its operator"),
    "network.canal_network_provider.iface": _interface,
    "network.canal_network_provider.blackhole_route": lost("has no counterpart"),
    "network.flannel_network_provider.iface": _interface,
    "network.weave_network_provider": lost(NO_PLUGIN),
    "network.aci_network_provider": lost(NO_PLUGIN),
    "network.node_selector": lost(OF_OPERATOR),
    "network.update_strategy": lost(OF_OPERATOR),
    "network.tolerations": lost(OF_OPERATOR),
    "ingress.provider": _ingress,
    "ingress.network_mode": _network_mode,
    "ingress.dns_policy": into(NGINX, "controller.dnsPolicy"),
    "ingress.options": into(NGINX, "controller.config"),
    "ingress.node_selector": into(NGINX, "controller.nodeSelector"),
    "ingress.extra_args": into(NGINX, "controller.extraArgs"),
    "ingress.http_port": _port("http"),
    "ingress.https_port": _port("https"),
    "ingress.extra_envs": into(NGINX, "controller.extraEnvs"),
    "ingress.extra_volumes": into(NGINX, "controller.extraVolumes"),
    "ingress.extra_volume_mounts": into(NGINX, "controller.extraVolumeMounts"),
    "ingress.default_backend": into(NGINX, "defaultBackend.enabled"),
    CLASS: into(NGINX, "controller.ingressClassResource.default"),
    "ingress.default_http_backend_priority_class_name": into(NGINX, "defaultBackend.priorityClassName"),
    "ingress.nginx_ingress_controller_priority_class_name": into(NGINX, "controller.priorityClassName"),
    "ingress.update_strategy": _update_strategy(NGINX, "controller.updateStrategy"),
    "ingress.tolerations": _tolerations(NGINX, "controller.tolerations"),
    "dns.provider": _dns,
    "dns.options": lost("are options of kube-dns"),
    "dns.node_selector": into(COREDNS, "nodeSelector"),
    "dns.upstreamnameservers": _servers,
    "dns.reversecidrs": _servers,
    "dns.stubdomains": _servers,
    "dns.nodelocal.ip_address": _node_local,
    "dns.nodelocal.node_local_dns_priority_class_name": lost("the chart sets system-node-critical"),
    "dns.nodelocal.node_selector": lost("the chart runs it on all nodes"),
    "dns.nodelocal.update_strategy": lost("the chart sets it"),
    "dns.update_strategy": _rolling_update,
    "dns.linear_autoscaler_params.cores_per_replica": into(COREDNS, "autoscaler.coresPerReplica"),
    "dns.linear_autoscaler_params.nodes_per_replica": into(COREDNS, "autoscaler.nodesPerReplica"),
    "dns.linear_autoscaler_params.min": into(COREDNS, "autoscaler.min"),
    "dns.linear_autoscaler_params.max": into(COREDNS, "autoscaler.max"),
    "dns.linear_autoscaler_params.prevent_single_point_failure": into(COREDNS, "autoscaler.preventSinglePointFailure"),
    "dns.tolerations": _tolerations(COREDNS, "tolerations"),
    "monitoring.provider": _monitoring,
    "monitoring.metrics_server_priority_class_name": into(METRICS, "priorityClassName"),
    "monitoring.options": _metrics_options,
    "monitoring.node_selector": into(METRICS, "nodeSelector"),
    "monitoring.replicas": into(METRICS, "replicas"),
    "monitoring.update_strategy": _update_strategy(METRICS, "updateStrategy"),
    "monitoring.tolerations": _tolerations(METRICS, "tolerations"),
}
