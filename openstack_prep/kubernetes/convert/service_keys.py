"""The keys below ``services`` and ``authentication``: flags, mounts, audit, admission, encryption, snapshots.

Sources: RKE 1.7 (cluster/plan.go, cluster/defaults.go); RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/root.go and server.go;
pkg/executor/staticpod/staticpod.go mounts the folder of audit-log-path, and sets admission-control-config-file).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.convert.model import ENABLED, FOLDER, Draft, Handler, lost, to
from openstack_prep.kubernetes.keys.hiding import hide_variable

COMPONENTS = {
    "etcd": "etcd",
    "kube-api": "kube-apiserver",
    "kube-controller": "kube-controller-manager",
    "scheduler": "kube-scheduler",
    "kubelet": "kubelet",
    "kubeproxy": "kube-proxy",
}
OWN_KEYS = {
    "service-cluster-ip-range": "service-cidr",
    "service-node-port-range": "service-node-port-range",
    "cluster-cidr": "cluster-cidr",
    "cluster-dns": "cluster-dns",
    "cluster-domain": "cluster-domain",
}
"""Flags that are keys of config.yaml."""
MANAGED = re.compile(
    r"(tls-(cert|private-key)|client-ca|root-ca|requestheader-client-ca|proxy-client-(cert|key)|kubelet-client-.*|etcd-.*"
    r"|service-account-(key|private-key|signing-key)|cluster-signing-.*|trusted-ca|peer-.*|cert|key|container-runtime"
    r"|encryption-provider-config|kubeconfig|authentication-kubeconfig|authorization-kubeconfig)"
    r"(-file|-dir|-endpoint)?|etcd-servers|network-plugin|cni-.*-dir|pod-infra-container-image|cloud-config|bind-address"
)
"""Flags for certificates, sockets and images that RKE2 sets itself."""
ADMISSION = "admission.yaml"
RKE2_ENCRYPTS = "RKE2 always encrypts Secrets, with keys of its own"


def _args(component: str) -> Handler:
    def convert(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
        for flag, given in value.items():
            for text in given if isinstance(given, list) else [given]:
                _flag(draft, f"{key}.{flag}", component, str(flag), "" if text is None else _go(text))

    return convert


def _go(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(draft: Draft, key: str, component: str, flag: str, text: str) -> None:
    if flag in OWN_KEYS:
        draft.set(key, OWN_KEYS[flag], text)
    elif flag == "cloud-provider":
        draft.external = draft.external or bool(text)
        draft.note(key, "cloud-provider-name" if text else None, "external: RKE2 has no built-in providers")
    elif flag == "admission-control-config-file":
        why = f"write the file's content to {FOLDER}/{ADMISSION}, and its path to pod-security-admission-config-file"
        draft.note(key, None, why)
    elif flag == ENABLED:
        draft.admit(key, *text.split(","))
    elif flag == "audit-policy-file":
        draft.set(key, "audit-policy-file", f"{FOLDER}/audit-policy.yaml", f"copy the policy {text} there")
    elif MANAGED.fullmatch(flag):
        draft.note(key, None, "names a file, socket or image of RKE; RKE2 has its own")
    elif "/etc/kubernetes/" in text:
        why = f"names a file in a folder of RKE; copy the file to {FOLDER}, and its path to {component}-arg"
        draft.note(key, None, why)
    else:
        path = "the file must exist on the new nodes" if text.startswith("/") else ""
        draft.add(key, f"{component}-arg", f"{flag}={text}", path)


def _binds(component: str) -> Handler:
    def convert(draft: Draft, key: str, value: list[str]) -> None:
        for text in map(str, value):
            source, _, rest = text.partition(":")
            inside, _, options = rest.partition(":")
            if component == "kubelet":
                draft.note(key, None, "RKE2's kubelet runs on the node itself and sees all its folders")
                continue
            others = {*options.split(",")} - {"", "ro", "rw"}
            note = f"without the options {', '.join(sorted(others))}" if others else ""
            mode = ":ro" if "ro" in options.split(",") else ""
            draft.add(key, f"{component}-extra-mount", f"{source}:{inside or source}{mode}", note)

    return convert


def _env(component: str) -> Handler:
    def convert(draft: Draft, key: str, value: list[str]) -> None:
        for text in map(str, value):
            if component == "kubelet":
                why = "write it to /etc/default/rke2-server and /etc/default/rke2-agent on the new nodes"
                draft.note(key, None, why)
            else:
                draft.add(key, f"{component}-extra-env", hide_variable(text))

    return convert


# --- kube-api -----------------------------------------------------------------------------


def _always_pull(draft: Draft, key: str, value: object) -> None:
    if value is True:
        draft.admit(key, "AlwaysPullImages")
    else:
        draft.note(key, None, "the default")


def _pod_security(draft: Draft, key: str, value: object) -> None:
    if value != "restricted":
        draft.note(key, None, "RKE2's default")
        return
    levels = dict.fromkeys(("enforce", "audit", "warn"), value)
    defaults = levels | {f"{each}-version": "latest" for each in levels}
    configuration = {
        "apiVersion": f"pod-security.admission.config.k8s.io/{'v1' if draft.minor >= 25 else 'v1beta1'}",
        "kind": "PodSecurityConfiguration",
        "defaults": defaults,
        "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": ["kube-system", "cilium-secrets"]},
    }
    _plugin(draft, key, "PodSecurity", configuration, "add the namespaces that need more to exemptions")


def _event_rate_limit(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    if value.get("enabled") is not True:
        draft.note(key, None, "is not enabled")
        return
    limits = value.get("configuration") or {"limits": [{"type": "Server", "qps": 5000, "burst": 20000}]}
    own = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}
    _plugin(draft, key, "EventRateLimit", own | {name: each for name, each in limits.items() if name == "limits"})
    draft.admit(key, "EventRateLimit")


def _plugin(draft: Draft, key: str, name: str, configuration: Mapping[str, Any], note: str = "") -> None:
    """Add the configuration of an admission plugin to the file that replaces RKE2's own."""
    existing = draft.files.get(ADMISSION)
    whole: Any = existing[0] if isinstance(existing, list) else _admission_file()
    whole["plugins"] = [each for each in whole["plugins"] if each.get("name") != name]
    whole["plugins"].append({"name": name, "configuration": configuration})
    draft.file(key, ADMISSION, [whole], note)
    draft.set(key, "pod-security-admission-config-file", f"{FOLDER}/{ADMISSION}")


def _admission_file() -> dict[str, Any]:
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": []}


def _admission(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    for plugin in value.get("plugins") or ():
        if plugin.get("configuration"):
            _plugin(draft, f"{key}.plugins", str(plugin.get("name")), plugin["configuration"])
        else:
            draft.note(f"{key}.plugins", None, f"{plugin.get('name')}: write its path's content to {ADMISSION}")
    if not value.get("plugins"):
        draft.note(key, None, "has no plugins")


def _audit_log(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    if value.get("enabled") is not True:
        draft.note(key, None, "is not enabled; RKE enables it since 1.15, RKE2 only with audit-policy-file")
        return
    settings = value.get("configuration") or {}
    flags = {"max_age": "maxage", "max_backup": "maxbackup", "max_size": "maxsize", "path": "path", "format": "format"}
    for name, flag in flags.items():
        if settings.get(name) not in (None, "", 0):
            draft.add(f"{key}.configuration.{name}", "kube-apiserver-arg", f"audit-log-{flag}={settings[name]}")
    default = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    policy = settings.get("policy")
    draft.file(f"{key}.configuration.policy" if policy else key, "audit-policy.yaml", [policy or default])
    draft.set(key, "audit-policy-file", f"{FOLDER}/audit-policy.yaml")


def _encryption(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    draft.note(f"{key}.enabled", "secrets-encryption", RKE2_ENCRYPTS)
    if value.get("custom_config"):
        draft.note(f"{key}.custom_config", None, f"{RKE2_ENCRYPTS}; rke2 secrets-encrypt rotates them")


def _webhook(draft: Draft, key: str, value: str) -> None:
    draft.file(key, "webhook.yaml", Secret(value))
    draft.add(key, "kube-apiserver-arg", f"authentication-token-webhook-config-file={FOLDER}/webhook.yaml")
    draft.add(key, "kube-apiserver-extra-mount", f"{FOLDER}/webhook.yaml:{FOLDER}/webhook.yaml:ro")


def _cache_timeout(draft: Draft, key: str, value: str) -> None:
    draft.add(key, "kube-apiserver-arg", f"authentication-token-webhook-cache-ttl={value}")


# --- kubelet --------------------------------------------------------------------------------


def _swap(draft: Draft, key: str, value: object) -> None:
    if value is True:
        draft.add(key, "kubelet-arg", "fail-swap-on=true")
    else:
        draft.note(key, None, "the default")


IMAGES = "RKE2 has its own images; system-default-registry changes their registry"
HANDLERS: dict[str, Handler] = {
    "services.kube-api.service_cluster_ip_range": to("service-cidr"),
    "services.kube-api.service_node_port_range": to("service-node-port-range"),
    "services.kube-api.pod_security_configuration": _pod_security,
    "services.kube-api.pod_security_policy": lost("Kubernetes 1.25 and later have no PodSecurityPolicy"),
    "services.kube-api.always_pull_images": _always_pull,
    "services.kube-api.secrets_encryption_config": _encryption,
    "services.kube-api.audit_log": _audit_log,
    "services.kube-api.admission_configuration": _admission,
    "services.kube-api.event_rate_limit": _event_rate_limit,
    "services.kube-controller.cluster_cidr": to("cluster-cidr"),
    "services.kube-controller.service_cluster_ip_range": to("service-cidr"),
    "services.kubelet.cluster_domain": to("cluster-domain"),
    "services.kubelet.cluster_dns_server": to("cluster-dns"),
    "services.kubelet.infra_container_image": lost(IMAGES),
    "services.kubelet.fail_swap_on": _swap,
    "services.kubelet.generate_serving_certificate": lost("RKE2 always issues the kubelet's certificate"),
    "authentication.strategy": lost("RKE2 uses x509; a webhook is a flag of kube-apiserver"),
    "authentication.sans": to("tls-san"),
    "authentication.webhook.config_file": _webhook,
    "authentication.webhook.cache_timeout": _cache_timeout,
    "authorization.mode": lost("RKE2 always uses Node,RBAC"),
    "authorization.options": lost("RKE2 always uses Node,RBAC"),
}
for _name, _component in COMPONENTS.items():
    HANDLERS |= {
        f"services.{_name}.extra_args": _args(_component),
        f"services.{_name}.extra_args_array": _args(_component),
        f"services.{_name}.extra_binds": _binds(_component),
        f"services.{_name}.extra_env": _env(_component),
        f"services.{_name}.image": lost(IMAGES),
    }
    for _windows in ("win_extra_args", "win_extra_args_array", "win_extra_binds", "win_extra_env"):
        HANDLERS[f"services.{_name}.{_windows}"] = lost("Windows agents of RKE2 have a config.yaml of their own")
