"""Install-configs that somebody wrote by hand: a valid one, and single changes of it, also in fields that no spec sets.

Each case is a list of paths and values; ``None`` stays a value, and ``GONE`` takes the field out.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import yaml

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.raw import Values
from openstack_prep.openshift.install_config import InstallConfigValues, document, dump, findings, mistakes, read
from openstack_prep.openshift.install_config.reading import is_fatal
from tests.unit.openshift.install_config.cases import BASE, FILES, SUBNET
from tests.unit.openshift.install_config.parsable import CERTIFICATE, ECDSA, ED25519, RSA

GONE = object()
CLOUD = "platform.openstack"
ALL = f"{CLOUD}.defaultMachinePlatform"
DISK = [{"type": "etcd", "etcd": {"platformDiskID": "x"}}]
PREVIEW, CUSTOM = {"featureSet": "TechPreviewNoUpgrade"}, {"featureSet": "CustomNoUpgrade"}
OWN = {
    f"{CLOUD}.loadBalancer.type": "UserManaged",
    f"{CLOUD}.apiVIPs": ["10.0.0.9"],
    f"{CLOUD}.ingressVIPs": ["10.0.0.9"],
}
PORT = {"fixedIPs": [{"subnet": {"id": SUBNET}}]}
VIPS = {f"{CLOUD}.apiVIPs": ["10.0.0.9"], f"{CLOUD}.ingressVIPs": ["10.0.0.10"]}
PODS = "networking.clusterNetwork"


def one(path: str, *values: object) -> dict[str, dict[str, object]]:
    """Return a case per value of a field."""
    return {f"{path} {'gone' if each is GONE else each}"[:100]: {path: each} for each in values}


def pods(*networks: tuple[str, int]) -> list[dict[str, object]]:
    return [{"cidr": cidr, "hostPrefix": length} for cidr, length in networks]


MACHINES: dict[str, dict[str, object]] = {
    **one("controlPlane.name", "x", "", None, GONE),
    **one("compute[].name", "edge", "infra", "", None, GONE),
    **one("compute", [], None, GONE, {}, [{}], [{"name": "worker"}] * 2, [{"name": "worker"}, {"name": "edge"}]),
    **one("controlPlane", None, GONE, {}, "x"),
    **one("compute[].replicas", 0, None, GONE, -1, "0"),
    **one("controlPlane.architecture", "arm64", "s390x", "x86_64", "AMD64", ""),
    **one("compute[].architecture", "arm64", "amd64", ""),
    "both ppc64le": {"controlPlane.architecture": "ppc64le", "compute[].architecture": "ppc64le"},
    "both arm64": {"controlPlane.architecture": "arm64", "compute[].architecture": "arm64"},
    **one("compute[].hyperthreading", "Enabled", "Disabled", "enabled", ""),
    **one("controlPlane.management", "ClusterAPI", "MachineAPI", ""),
    **one("controlPlane.platform", {}, None, {"aws": {}}, {"openstack": {"type": "x"}, "gcp": {}}, {"nutanix": {}}),
    **one("compute[].platform.vsphere", {}, None),
    **one("compute[].platform.none", {}),
    **one("arbiter", {}, None, {"name": "arbiter", "replicas": 1}),
    **one("controlPlane.fencing", {}, None),
    **one("compute[].fencing", {}, None),
    **one("controlPlane.diskSetup", DISK, [], None),
    "disks, preview": PREVIEW | {"controlPlane.diskSetup": DISK},
    "disks, custom": CUSTOM | {"controlPlane.diskSetup": DISK},
    "disks, gate": CUSTOM | {"controlPlane.diskSetup": DISK, "featureGates": ["MultiDiskSetup=true"]},
    "disks of workers": {"compute[].diskSetup": [{"type": "swap", "swap": {"platformDiskID": "x"}}]},
    **one(ALL, GONE, None, "x"),
    **one(f"{ALL}.rootVolume", {}, None, {"size": 100, "type": "a"}, {"size": 100, "type": "a", "types": ["a"]}),
    **one(f"{ALL}.serverGroupPolicy", "soft-affinity", "X", ""),
    **one(f"{CLOUD}.computeFlavor", "master", "other"),
}
PLATFORMS: dict[str, dict[str, object]] = {
    f"platform.{name} {value}": {f"platform.{name}": value}
    for name in ("none", "aws", "baremetal", "external", "gcp", "vsphere", "ovirt")
    for value in ({}, None)
}
FEATURES: dict[str, dict[str, object]] = {
    **one("publish", "Mixed", "Internal", "", None, "X"),
    **one("operatorPublishingStrategy", {}, None),
    **one("credentialsMode", "Manual", "Mint", "Passthrough", "", None),
    **one("featureGates", ["A=true"], [], None),
    **{
        f"gate {each}": CUSTOM | {"featureGates": [each]}
        for each in ("A=true", "A=T", "A=0", "A", "A=x", "A=1=1", "=1")
    },
    "gate, preview": PREVIEW | {"featureGates": ["A=true"]},
    **one("capabilities", {}, None, {"baselineCapabilitySet": ""}, {"additionalEnabledCapabilities": []}),
    **one("additionalTrustBundlePolicy", "ProxyOnly", "Proxyonly", ""),
    **one("featureSet", "", None),
    **{
        f"stream {stream}, {name}": {"osImageStream": stream} | feature_set
        for stream in ("rhel-9", "rhel-10", "")
        for name, feature_set in (
            ("alone", {}),
            ("preview", PREVIEW),
            ("custom", CUSTOM),
            ("its gate", CUSTOM | {"featureGates": ["OSStreams=true"]}),
            ("another gate", CUSTOM | {"featureGates": ["MultiDiskSetup=true"]}),
        )
    },
    **one("kind", "InstallConfig", "x", {}, [], 7, None),
    **one("metadata.labels", {"a": "b"}, {"a": 1}, {"a": {}}, {"a": None}, "x", [], None),
    **one("metadata.annotations", {"a": True}, {"a": []}, "x"),
    **one("metadata.namespace", "x", {}, 7),
    **one("apiVersion", "v1beta3", "v1beta4", "v1beta2", "", None, GONE),
}
NETWORKS: dict[str, dict[str, object]] = {
    **one("networking", None, GONE, {}),
    **one("networking.clusterNetworkMTU", 0, 1400),
    **one("networking.networkType", "ovnkubernetes", "OpenShiftSDN", "kuryr", "Calico", "", None),
    **one("networking.machineNetwork", [], GONE, "10.0.0.0/16", ["10.0.0.0/16"], [{"cidr": "10.0.0.1/16"}]),
    **{
        f"{name} {each}": {f"networking.{name}": [shape(each)]}
        for name, shape in (
            ("machineNetwork", lambda each: {"cidr": each}),
            ("clusterNetwork", lambda each: {"cidr": each, "hostPrefix": 32}),
            ("serviceNetwork", lambda each: each),
        )
        for each in ("192.0.2.0", "192.168.0.0/255.255.0.0", "192.168.0.0/016", "fe80::%eth0/64", " 192.168.0.0/16")
    },
    **one("networking.machineCIDR", "10.0.0.0/16", "192.168.0.0/24"),
    **one("networking.serviceNetwork", [], GONE, ["172.30.0.0/31"], ["172.16.0.0/11"], ["172.16.0.0/12"]),
    **one(PODS, [], GONE, [{"cidr": "10.128.0.0/14"}], [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}]),
    **{f"host prefix {each}": {PODS: pods(("10.128.0.0/14", each))} for each in (0, 13, 14, 32, 33, -1)},
    "host prefixes differ": {PODS: pods(("10.128.0.0/16", 23), ("10.129.0.0/16", 24))},
    "pods overlap": {PODS: pods(("10.128.0.0/15", 23), ("10.129.0.0/16", 23))},
    **one("networking.ovnKubernetesConfig", {}, None, {"ipv4": {}}, {"ipv4": {"internalJoinSubnet": "100.65.0.0/16"}}),
    **{
        f"room in a join subnet of /{join} for /{size}": {
            "networking.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": f"100.68.0.0/{join}"}},
            PODS: pods((f"10.128.0.0/{size}", 24)),
        }
        for join in (22, 23, 24)
        for size in (14, 15, 16)
    },
}
OF_CLOUD: dict[str, dict[str, object]] = {
    **one(f"{CLOUD}.loadBalancer", {}, None, {"type": ""}, {"type": "X"}),
    **one(f"{CLOUD}.dnsRecordsType", "Internal", "External", "", "X", {}),
    "own balancer": OWN,
    "own DNS": OWN | {f"{CLOUD}.dnsRecordsType": "External"},
    "own DNS, preview": OWN | PREVIEW | {f"{CLOUD}.dnsRecordsType": "External"},
    "own DNS, gate": OWN | CUSTOM | {f"{CLOUD}.dnsRecordsType": "External", "featureGates": ["OnPremDNSRecords=true"]},
    "addresses": VIPS,
    "addresses with a zone": OWN | {f"{CLOUD}.apiVIPs": ["fe80::9%eth0"]},
    "servers of names with a zone": {f"{CLOUD}.externalDNS": ["fe80::9%eth0"]},
    "addresses of IPv4 in IPv6": {f"{CLOUD}.apiVIPs": ["::ffff:10.0.0.9"]},
    "an old address too": VIPS | {f"{CLOUD}.apiVIP": "10.0.0.9"},
    "another old address": VIPS | {f"{CLOUD}.apiVIP": "10.0.0.11"},
    "three addresses": VIPS | {f"{CLOUD}.apiVIPs": ["10.0.0.9", "fd00::9", "10.0.0.11"]},
    **one(f"{CLOUD}.controlPlanePort", {}, {"fixedIPs": []}, {"fixedIPs": [{"subnet": {}}]}, {"fixedIPs": [{}]}),
    **one(f"{CLOUD}.controlPlanePort", {"fixedIPs": [{"subnet": {"id": SUBNET}}], "network": {}}),
    **one(f"{CLOUD}.controlPlanePort", None, {"fixedIPs": [{"subnet": {"id": SUBNET, "name": "x"}}]}),
    "own port, gate": CUSTOM | {"featureGates": ["A=true", "OSStreams=true"], f"{CLOUD}.controlPlanePort": PORT},
    "three subnets": {f"{CLOUD}.controlPlanePort": {"fixedIPs": [{"subnet": {"id": SUBNET}}] * 3}} | PREVIEW,
    **one(f"{CLOUD}.machinesSubnet", SUBNET, SUBNET.upper(), SUBNET.replace("-", ""), ""),
    **one(f"{CLOUD}.externalDNS", ["192.0.2.1"], ["x"], [], None),
    **one(f"{CLOUD}.lbFloatingIP", "192.0.2.10"),
    **one(f"{CLOUD}.clusterOSImage", "https://x/y.qcow2.gz?sha256=0", "file:///x", "rhcos", ""),
    **one(f"{CLOUD}.region", "x", ""),
}
HOSTS = (
    "pro xy",
    "u:p%zz@proxy",
    "u:p%20@proxy",
    "u:p@ss@proxy",
    "u:p[@proxy",
    "pro{xy",
    "pro,xy",
    "a%41b",
    "proxy/a b",
    "proxy?a#b",
    "[fd00::9]:3128",
)
TEXTS: dict[str, dict[str, object]] = {
    **{f"proxy {each}": {"proxy": {"httpProxy": f"http://{each}"}} for each in HOSTS},
    **one("proxy", {}, None, "x", {"httpProxy": ""}, {"httpProxy": " http://proxy"}, {"httpProxy": "HTTP://proxy"}),
    **{
        f"no proxy for {each!r}": {"proxy": {"httpProxy": "http://x", "noProxy": each}}
        for each in ("a,b", "a, b", "a,")
    },
    **one(
        "imageDigestSources", [{"source": "[fd00::1]:5000/okd", "mirrors": ["quay.io/m"]}], [{"source": "quay.io/m"}]
    ),
    **one(
        "imageContentSources", [{"source": "quay.io/M"}], [{"mirrors": []}], [{"source": "quay.io/m", "mirrors": None}]
    ),
    "mirrors by both names": {
        name: [{"source": "quay.io/a", "mirrors": ["quay.io/b"]}]
        for name in ("imageDigestSources", "imageContentSources")
    },
    **{
        f"key {options} {title}": {"sshKey": f"{options} {RSA}"} | extra
        for options in (
            'command="a',
            'no-pty,command="a b"',
            'command="a \\"b\\" c"',
            'command="a\\',
            "@cert-authority *",
        )
        for title, extra in (("", {}), ("and FIPS", {"fips": True}))
    },
    **{
        f"key of one kind with another's data {title}": {"sshKey": f"ssh-rsa {ECDSA.split()[1]}"} | extra
        for title, extra in (("", {}), ("and FIPS", {"fips": True}))
    },
    "keys, ed25519 behind ecdsa, FIPS": {"sshKey": f"{ECDSA}\n{ED25519}", "fips": True},
    "keys, ed25519 before ecdsa, FIPS": {"sshKey": f"{ED25519}\n{ECDSA}", "fips": True},
    "keys, text before, FIPS": {"sshKey": f"hunter2\n{RSA}", "fips": True},
    "keys in CRLF": {"sshKey": f"{ECDSA}\r\n{RSA}\r\n"},
    "keys, CRLF between": {"sshKey": f"{ECDSA}\r\n\r\n{RSA}"},
    "keys, blanks between": {"sshKey": f"{ECDSA}\n  \n{RSA}"},
    "keys, blanks between, FIPS": {"sshKey": f"{ECDSA}\n  \n{RSA}", "fips": True},
    "certificate with headers": {"additionalTrustBundle": CERTIFICATE.replace("-----\n", "-----\nA: b\n\n", 1)},
    "certificate with empty lines": {"additionalTrustBundle": CERTIFICATE.replace("\n", "\n\n")},
    "certificate behind a block": {"additionalTrustBundle": f"-----BEGIN X-----\nYQ==\n-----END X-----\n{CERTIFICATE}"},
    **one(
        "pullSecret",
        GONE,
        "",
        '{"Auths": {"a": {"auth": "x"}}}',
        '{"auths": {"a": {"Auth": "x"}}}',
        '{"auths": {"a": {"auth": NaN}}}',
        '{"auths": {"a": {"auth": "x"}}} x',
        '{"auths": null}',
        "[]",
        '{"auths": {"a": {}}, "auths": {"b": {"auth": "x"}}}',
        '{"auths": {"a": {"auth": "x"}}, "Auths": {"b": {}}}',
        '{"auths": {"a": {"auth": "x"}}, "AUTHS": null}',
        '{"auths": null, "auths": {"a": {"auth": "x"}}}',
        '{"auths": {"a": {}, "a": {"auth": "x"}}}',
        '{"auths": {"a": {"auth": "x"}, "a": {}}}',
        '{"auths": [["a", {"auth": "x"}]]}',
        '{"auths": {"a": [["auth", "x"]]}}',
    ),
}


def given_cases(release: str) -> Iterator[tuple[str, Values]]:
    """Yield the install-configs for a release, with a name that stays."""
    base = yaml.safe_load(dump(document(replace(BASE, release=release), FILES)))
    for group in (MACHINES, PLATFORMS, FEATURES, NETWORKS, OF_CLOUD, TEXTS):
        for name, changes in group.items():
            given = deepcopy(base)
            for path, value in changes.items():
                _put(given, path, value)
            yield f"given: {name}", given


def _put(given: Any, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for each in parents:
        given = given[each.removesuffix("[]")][0] if each.endswith("[]") else given.setdefault(each, {})
    if value is GONE:
        given.pop(last, None)
    else:
        given[last] = deepcopy(value)


def refusals(given: Values, release: str) -> list[Mistake]:
    """Return why ``check`` calls an install-config wrong, without asking a cloud."""
    try:
        cluster, contents = read(InstallConfigValues(given), release)
    except SpecError as error:
        return list(error.mistakes)
    return [*filter(is_fatal, findings(given, release)), *mistakes(cluster, contents)]
