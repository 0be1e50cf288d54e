"""Keys of RKE2's config.yaml that all servers must share, and keys of K3s that RKE2 does not support."""

SAME_ON_SERVERS = (
    "agent-token",
    "cluster-cidr",
    "service-cidr",
    "cluster-dns",
    "cluster-domain",
    "disable-cloud-controller",
    "disable-kube-proxy",
    "egress-selector-mode",
)
"""Keys with the same value on all servers."""

K3S_KEYS = {
    "cluster-init": "remove it: the first server is the one without the key server",
    "flannel-backend": "write cni: flannel",
    "no-flannel": "write cni: none",
    "flannel-iface": "remove it, or set it in the HelmChartConfig of the plugin",
    "flannel-conf": "remove it, or set it in the HelmChartConfig of the plugin",
    "https-listen-port": "remove it: the API listens at port 6443",
    "advertise-port": "remove it: the API listens at port 6443",
    "docker": "remove it: RKE2 uses containerd",
    "disable-helm-controller": "remove it: RKE2 needs the Helm controller for its own components",
    "disable-network-policy": "choose a cni without network policies",
    "disable-selinux": "write selinux",
    "kube-controller-arg": "write kube-controller-manager-arg",
    "kube-cloud-controller-arg": "write kube-cloud-controller-manager-arg",
    "no-deploy": "write disable",
    "cluster-secret": "write token",
    "default-local-storage-path": "remove it: RKE2 has no local storage provider",
    "rootless": "remove it: RKE2 runs as root",
    "prefer-bundled-bin": "remove it: RKE2 contains its own programs",
    "disable-apiserver-lb": "remove it",
    "image-service-endpoint": "remove it",
    "vpn-auth": "remove it",
    "vpn-auth-file": "remove it",
}
"""Keys of K3s that RKE2 refuses or ignores, and the fix for each."""
