"""Keys of RKE2's config.yaml that all servers must share, and keys of K3s that RKE2 does not support."""

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
