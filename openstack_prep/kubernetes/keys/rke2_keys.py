"""Every key of RKE2's config.yaml: the flags of ``rke2 server`` and ``rke2 agent`` without their hyphens.

Source: rancher/rke2 1.36, pkg/cli/cmds (server.go, agent.go, root.go), and the flags of K3s that they let
through.  A list may be one text.  RKE2 itself passes over what it does not know, with a line in its log.
"""

from __future__ import annotations

from openstack_prep.kubernetes.keys.language import ANY, NUMBER, SECRET, TEXT, TEXTS, TRUTH, Tree, words

COMPONENTS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kube-proxy", "etcd")

COMMON: dict[str, Tree] = {
    "server": TEXT,
    "token": SECRET,
    **words("token-file node-name"),
    **words("node-ip node-external-ip node-internal-dns node-external-dns node-label node-taint", TEXTS),
    **words("with-node-id selinux protect-kernel-defaults enable-pprof debug alsologtostderr", TRUTH),
    **words("cloud-provider-name cloud-provider-config"),
    "node-name-from-cloud-provider-metadata": TRUTH,
    **words(
        """
        config data-dir bind-address private-registry container-runtime-endpoint default-runtime snapshotter
        resolv-conf image-credential-provider-bin-dir image-credential-provider-config kubelet-path log vmodule
        profile audit-policy-file pod-security-admission-config-file
        """
    ),
    **words("lb-server-port v", NUMBER),
    **words("kubelet-arg kube-proxy-arg airgap-extra-registry", TEXTS),
    **words("disable-default-registry-endpoint nonroot-devices", TRUTH),
    **{f"{name}-image": TEXT for name in (*COMPONENTS, "cloud-controller-manager", "pause", "runtime")},
    **words("control-plane-resource-requests control-plane-resource-limits control-plane-probe-configuration", TEXTS),
    **{f"{name}-extra-mount": TEXTS for name in (*COMPONENTS, "cloud-controller-manager")},
    **{f"{name}-extra-env": TEXTS for name in (*COMPONENTS, "cloud-controller-manager")},
}
"""Of servers and agents alike."""

SERVER: dict[str, Tree] = {
    **{name: COMMON[name] for name in ("server", "token", "token-file", "node-name")},
    **words("agent-token", SECRET),
    **words("agent-token-file"),
    **words("tls-san cni cluster-cidr service-cidr cluster-dns", TEXTS),
    **words("cluster-domain service-node-port-range advertise-address egress-selector-mode servicelb-namespace"),
    **words(
        """
        disable-cloud-controller disable-kube-proxy disable-agent disable-apiserver disable-controller-manager
        disable-scheduler disable-etcd tls-san-security embedded-registry enable-servicelb secrets-encryption
        supervisor-metrics cluster-reset
        """,
        TRUTH,
    ),
    "prime": ANY,
    **words("disable ingress-controller", TEXTS),
    **words(
        """
        kube-apiserver-arg kube-controller-manager-arg kube-scheduler-arg kube-cloud-controller-manager-arg
        helm-controller-arg etcd-arg
        """,
        TEXTS,
    ),
    **words("secrets-encryption-provider system-default-registry helm-job-image cluster-reset-restore-path"),
    **words("write-kubeconfig write-kubeconfig-mode write-kubeconfig-group write-kubeconfig-name"),
    "datastore-endpoint": SECRET,
    **words("datastore-cafile datastore-certfile datastore-keyfile"),
    **words("etcd-disable-snapshots etcd-expose-metrics etcd-snapshot-compress", TRUTH),
    **words("etcd-snapshot-dir etcd-snapshot-name etcd-snapshot-schedule-cron etcd-snapshot-reconcile-interval"),
    **words("etcd-snapshot-retention etcd-s3-retention", NUMBER),
    **words("etcd-s3 etcd-s3-insecure etcd-s3-skip-ssl-verify", TRUTH),
    **words("etcd-s3-secret-key etcd-s3-session-token etcd-s3-proxy", SECRET),
    **words(
        """
        etcd-s3-access-key etcd-s3-bucket etcd-s3-bucket-lookup-type etcd-s3-config-secret etcd-s3-endpoint
        etcd-s3-endpoint-ca etcd-s3-folder etcd-s3-region etcd-s3-timeout
        """
    ),
    **COMMON,
}

AGENT: dict[str, Tree] = COMMON

SAME = (
    "agent-token",
    "cluster-cidr",
    "service-cidr",
    "cluster-dns",
    "cluster-domain",
    "disable-cloud-controller",
    "disable-kube-proxy",
    "egress-selector-mode",
)
"""What all servers must say alike."""

OF_K3S = {
    "cluster-init": "take it out: the first server is the one without a key server",
    "flannel-backend": "write cni: flannel",
    "no-flannel": "write cni: none",
    "flannel-iface": "take it out, or set it by the plugin's HelmChartConfig",
    "flannel-conf": "take it out, or set it by the plugin's HelmChartConfig",
    "https-listen-port": "take it out: the API is at 6443",
    "advertise-port": "take it out: the API is at 6443",
    "docker": "take it out: RKE2 runs containerd",
    "disable-helm-controller": "take it out: RKE2 deploys its own parts by it",
    "disable-network-policy": "choose by cni a plugin without policies",
    "disable-selinux": "write selinux",
    "kube-controller-arg": "write kube-controller-manager-arg",
    "kube-cloud-controller-arg": "write kube-cloud-controller-manager-arg",
    "no-deploy": "write disable",
    "cluster-secret": "write token",
    "default-local-storage-path": "take it out: RKE2 brings no local storage",
    "rootless": "take it out: RKE2 runs as root",
    "prefer-bundled-bin": "take it out: RKE2 brings its own programs",
    "disable-apiserver-lb": "take it out",
    "image-service-endpoint": "take it out",
    "vpn-auth": "take it out",
    "vpn-auth-file": "take it out",
}
"""What K3s knows and RKE2 refuses or has no use for, and what to do."""
