"""The keys below ``services`` and ``authentication``: flags, mounts, audit, admission, encryption, snapshots.

Sources: RKE 1.7 (cluster/plan.go, cluster/defaults.go); RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/root.go and server.go;
pkg/executor/staticpod/staticpod.go mounts the folder of audit-log-path, and sets admission-control-config-file).

Sources: RKE 1.7 (services/etcd.go: intervals are hours, ``creation`` and ``retention`` are durations that only count
without backup_config; types/backup_types.go); RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/server.go).

Sources: RKE 1.7 (types/rke_types.go); RKE2's documentation ("Private Registry Configuration"); Kubernetes 1.26 and
later have no built-in cloud providers.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from openstack_prep.base import shell
from openstack_prep.base.fields import is_address, words
from openstack_prep.base.raw import value_at
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.convert.outcome import ENABLED, FOLDER, Draft, Handler, lost, to
from openstack_prep.kubernetes.keys.flags import flag_fault
from openstack_prep.kubernetes.keys.schema import hide_in_url, hide_variable

# --- service ----------------------------------------------------------------------------------


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


ADDED = ("node-labels", "register-with-taints")
"""Flags that would replace what node-label and node-taint say; with + they add to it (K3s, pkg/util/args.go)."""


def _go(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(draft: Draft, key: str, component: str, flag: str, text: str) -> None:
    if flag == "cluster-dns" and _is_link_local(text):  # a cache on the node; RKE2's own key is CoreDNS's Service
        draft.add(key, "kubelet-arg", f"{flag}={text}", "the cache must run on the new nodes")
    elif flag in OWN_KEYS:
        draft.set(key, OWN_KEYS[flag], text)
    elif flag == "cloud-provider":
        draft.external = draft.external or bool(text)
        draft.note(key, "cloud-provider-name" if text else None, "external: RKE2 has no built-in providers")
    elif found := flag_fault(component, flag, draft.minor):
        draft.note(key, None, found[0])
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
        adding = "+" if flag in ADDED else ""
        draft.add(key, f"{component}-arg", f"{flag}{adding}={text}", path)


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


def _is_link_local(text: str) -> bool:
    return is_address(text) and ipaddress.ip_address(text).is_link_local


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
    defaults = levels | {f"{level}-version": "latest" for level in levels}
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
    whole["plugins"] = [plugin for plugin in whole["plugins"] if plugin.get("name") != name]
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
    "authentication.options": lost("RKE itself ignores it"),
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


# --- etcd -------------------------------------------------------------------------------------


BACKUP = "services.etcd.backup_config"
CA_FILE = "etcd-s3-ca.pem"
OLD_ETCD = "the new cluster has an etcd of its own; two clusters must never share one"
OWNER = "RKE2 runs etcd as root, or as user etcd with profile: cis or etcd"


def _schedule(hours: int) -> tuple[str, str]:
    """Return the cron expression for an interval, and a remark when it differs from the interval."""
    if hours < 24:
        return f"0 */{hours} * * *" if hours > 1 else "0 * * * *", "" if 24 % hours == 0 else "and at midnight"
    days = min(hours // 24, 28)
    return f"0 0 */{days} * *" if days > 1 else "0 0 * * *", "" if hours == 24 * days else f"every {days} days"


def _interval(draft: Draft, key: str, value: Any) -> None:
    if isinstance(value, int) and value > 0:
        text, note = _schedule(value)
        draft.set(key, "etcd-snapshot-schedule-cron", text, note)
    else:
        draft.note(key, None, "the default, 12 hours, is also RKE2's")


def _kept(draft: Draft, key: str, value: Any) -> None:
    if value:
        draft.set(key, "etcd-snapshot-retention", value)
    else:
        draft.note(key, None, "RKE keeps 6 by default, RKE2 5")


def _enabled(draft: Draft, key: str, value: object) -> None:
    if value is False:
        draft.set(key, "etcd-disable-snapshots", True)
    else:
        draft.note(key, None, "RKE2 takes snapshots by default")


def _snapshot(draft: Draft, key: str, value: object) -> None:
    backup = value_at(draft.data, BACKUP)
    if value is False and not (isinstance(backup, dict) and backup.get("enabled", True)):
        draft.set(key, "etcd-disable-snapshots", True)
    else:
        draft.note(key, None, "RKE2 takes snapshots by default")


def _hours(text: object) -> float:
    """Return the hours of a Go duration such as 6h or 5m0s; 0 for other texts."""
    units = {"h": 1.0, "m": 1 / 60, "s": 1 / 3600}
    found = re.findall(r"(\d+(?:\.\d+)?)(h|m|s)", str(text))
    return sum(float(number) * units[unit] for number, unit in found)


def _creation(draft: Draft, key: str, value: object) -> None:
    if value_at(draft.data, BACKUP) or value_at(draft.data, "services.etcd.snapshot") is False:
        draft.note(key, None, "RKE ignores it with backup_config or without snapshots")
        return
    hours = _hours(value)
    if not hours:
        draft.note(key, None, "is not a duration")
        return
    text, note = _schedule(max(1, round(hours)))
    draft.set(key, "etcd-snapshot-schedule-cron", text, note or ("hourly at most" if hours < 1 else ""))


def _retention(draft: Draft, key: str, value: object) -> None:
    if value_at(draft.data, BACKUP) or value_at(draft.data, "services.etcd.snapshot") is False:
        draft.note(key, None, "RKE ignores it with backup_config or without snapshots")
        return
    hours, interval = _hours(value), max(1, round(_hours(value_at(draft.data, "services.etcd.creation")) or 12))
    if hours:
        note = f"as many as RKE keeps for {value}"
        draft.set(key, "etcd-snapshot-retention", max(1, round(hours / interval)), note)
    else:
        draft.note(key, None, "is not a duration")


def _s3(name: str, note: str = "") -> Handler:
    def convert(draft: Draft, key: str, value: object) -> None:
        draft.config["etcd-s3"] = True
        draft.set(key, name, value, note)

    return convert


def _ca(draft: Draft, key: str, given: str) -> None:
    value = str(words(given))  # RKE reads true and numbers as texts
    draft.file(key, CA_FILE, value if value.endswith("\n") else f"{value}\n")
    draft.set(key, "etcd-s3-endpoint-ca", f"{FOLDER}/{CA_FILE}")


NOT_SHARED = "use a folder of the new cluster's own, so that each cluster prunes only its own snapshots"
ETCD_HANDLERS: dict[str, Handler] = {
    "services.etcd.external_urls": lost(OLD_ETCD),
    "services.etcd.ca_cert": lost(OLD_ETCD),
    "services.etcd.cert": lost(OLD_ETCD),
    "services.etcd.key": lost(OLD_ETCD),
    "services.etcd.path": lost(OLD_ETCD),
    "services.etcd.uid": lost(OWNER),
    "services.etcd.gid": lost(OWNER),
    "services.etcd.snapshot": _snapshot,
    "services.etcd.creation": _creation,
    "services.etcd.retention": _retention,
    f"{BACKUP}.enabled": _enabled,
    f"{BACKUP}.interval_hours": _interval,
    f"{BACKUP}.retention": _kept,
    f"{BACKUP}.timeout": lost("RKE2 has a timeout for S3 only: etcd-s3-timeout"),
    f"{BACKUP}.safe_timestamp": lost("RKE2 names its snapshots itself"),
    f"{BACKUP}.s3backupconfig.access_key": _s3("etcd-s3-access-key"),
    f"{BACKUP}.s3backupconfig.secret_key": _s3("etcd-s3-secret-key"),
    f"{BACKUP}.s3backupconfig.bucket_name": _s3("etcd-s3-bucket"),
    f"{BACKUP}.s3backupconfig.region": _s3("etcd-s3-region"),
    f"{BACKUP}.s3backupconfig.endpoint": _s3("etcd-s3-endpoint"),
    f"{BACKUP}.s3backupconfig.folder": _s3("etcd-s3-folder", NOT_SHARED),
    f"{BACKUP}.s3backupconfig.custom_ca": _ca,
}


# --- cluster ----------------------------------------------------------------------------------


SSH = "RKE2 does not log in to nodes; cloud-init installs it"
DOCKER = "RKE2 contains containerd; docker commands become crictl or nerdctl, and images in Docker are not seen"
ACTION = "is an action of RKE, not a setting"
OTHER_CLOUD = "give it to the chart of the provider's own cloud controller manager"
ADDONS = "addons.yaml"


def _registries(draft: Draft, key: str, value: list[Mapping[str, Any]]) -> None:
    for each in value:
        for name in (name for name, given in each.items() if given not in (None, "", {})):
            place = f"{key}[].{name}"
            if name == "is_default":
                draft.note(place, "system-default-registry" if each[name] is True else None, "")
            elif name == "ecr_credential_plugin":
                draft.note(place, None, "install the plugin, and name it in image-credential-provider-config")
            else:
                draft.note(place, "registries.yaml")


def _addons(draft: Draft, key: str, given: str) -> None:
    value = str(words(given))  # RKE reads true and numbers as texts
    draft.file(key, ADDONS, Secret(value if value.endswith("\n") else f"{value}\n"), "apply it with kubectl")


def included(value: Sequence[Any] | None) -> list[str]:
    """Return addons_include as RKE reads it: true and numbers are texts, and null is an empty one."""
    return [str(words(each)) for each in value or () if each not in (None, "")]


def _include(draft: Draft, key: str, value: list[Any]) -> None:
    for each in included(value):
        draft.note(key, None, f"kubectl apply -f {shell.quote(hide_in_url(each))}")


def _provider(draft: Draft, key: str, value: str) -> None:
    if value in ("", "none"):
        draft.note(key, None, "none is also RKE2's")
        return
    draft.external = True
    note = "" if value == "external" else f"external: install the cloud controller manager of {value}"
    draft.note(key, "cloud-provider-name", note)


SECTIONS = {
    "global": "Global",
    "load_balancer": "LoadBalancer",
    "block_storage": "BlockStorage",
    "route": "Route",
    "metadata": "Metadata",
}


def _openstack(draft: Draft, key: str, value: Mapping[str, Any]) -> None:
    lines = []
    for name, title in SECTIONS.items():
        settings = {each: text for each, text in (value.get(name) or {}).items() if text not in (None, "")}
        if settings:
            lines += [f"[{title}]", *(f"{each}={_in_gcfg(text)}" for each, text in settings.items()), ""]
    note = "for openstack-cloud-controller-manager and cinder-csi; prefer an application credential to the password"
    draft.file(key, "cloud.conf", Secret("\n".join(lines)), note)


IN_QUOTES = re.compile(r'"([^"\\\n]|\\["\\nt])*"')
"""A value of gcfg in quotes, which RKE writes into cloud.conf as it is given."""
SPECIAL = re.compile(r'[#;"\\\n\t]|^ | $')
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t"})


def _in_gcfg(value: object) -> str:
    """Return a value as gcfg reads it, which takes # and ; outside of quotes for the beginning of a comment.

    Source: gcfg v1.2.3, the parser of both programs (scanner/scanner.go, scanValString and scanEscape).
    """
    text = _go(value)
    return f'"{text.translate(ESCAPES)}"' if SPECIAL.search(text) and not IN_QUOTES.fullmatch(text) else text


NODE = {
    "address": "node-external-ip",
    "internal_address": "node-ip",
    "role": "server or agent, and the disable- keys",
    "hostname_override": "node-name",
    "labels": "node-label",
    "taints": "node-taint",
}
CLUSTER_HANDLERS: dict[str, Handler] = {
    **{f"nodes[].{name}": lambda draft, key, value: None for name in NODE},
    "nodes[].machine_name": lost("RKE itself ignores it"),
    "nodes[].nodeName": lost("RKE uses it only inside Rancher"),
    **{f"nodes[].{name}": lost(SSH) for name in ("port", "user", "ssh_agent_auth", "ssh_key", "ssh_key_path")},
    **{f"nodes[].{name}": lost(SSH) for name in ("ssh_cert", "ssh_cert_path")},
    "nodes[].docker_socket": lost(DOCKER),
    "cluster_name": lost("names the kubeconfig of RKE; RKE2's is named default"),
    "kubernetes_version": lambda draft, key, value: None,
    **{name: lost(SSH) for name in ("ssh_key_path", "ssh_cert_path", "ssh_agent_auth", "bastion_host")},
    "private_registries": _registries,
    **{name: lost(DOCKER) for name in ("enable_cri_dockerd", "ignore_docker_version")},
    **{name: lost(DOCKER) for name in ("cri_dockerd_stream_server_address", "cri_dockerd_stream_server_port")},
    "cloud_provider.name": _provider,
    "cloud_provider.useInstanceMetadataHostname": to("node-name-from-cloud-provider-metadata"),
    "cloud_provider.openstackCloudProvider": _openstack,
    **{
        f"cloud_provider.{name}CloudProvider": lost(OTHER_CLOUD)
        for name in ("vsphere", "azure", "aws", "harvester", "custom")
    },
    "addon_job_timeout": lost("RKE2 installs its charts by Helm, which retries"),
    "addons": _addons,
    "addons_include": _include,
    "upgrade_strategy": lost("upgrade RKE2 by system-upgrade-controller, or node by node"),
    "restore": lost(ACTION),
    "rotate_certificates": lost(f"{ACTION}; use rke2 certificate rotate"),
    "rotate_encryption_key": lost(f"{ACTION}; use rke2 secrets-encrypt rotate"),
    "prefix_path": lost("data-dir is RKE2's folder for data"),
    "win_prefix_path": lost("data-dir is RKE2's folder for data"),
    "system_images": lost(IMAGES),
}
