"""Clusters whose install-configs the real validators judged: the valid ones, and single mistakes in them.

Each case is a change of a base; ``verdicts.json`` holds the verdict of the installer's own code for it in each release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import (
    Capabilities,
    FileContents,
    InstallConfigFields,
    MachinePool,
    Machines,
    Mirror,
    Proxy,
    ResourceReference,
    RootVolume,
    releases,
)
from tests.unit.openshift.install_config.parsable import CERTIFICATE, ECDSA, ED25519, RSA

SUBNET = "0f2c8a4e-6b1d-4c3e-9a57-2d1b8e6f4a90"
UUID1 = "0f2c8a4e-6b1d-11ee-9a57-2d1b8e6f4a90"
PULL_SECRET = '{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}'
THREE = ("az1", "az2", "az3")

BASE = InstallConfigFields(
    release="4.20",
    cluster_name="ocp4",
    base_domain="example.com",
    cloud="lab",
    external_network="external",
    machines=Machines(flavor="master"),
)
FILES = FileContents(pull_secret=Secret(PULL_SECRET), ssh_key=ECDSA)
TWO: dict[str, Any] = {
    "machine_networks": ("10.0.0.0/16", "fd00::/64"),
    "cluster_networks": ("10.128.0.0/14", "fd01::/48"),
    "service_networks": ("172.30.0.0/16", "fd02::/112"),
    "machines_subnets": (ResourceReference(name="mine-4"), ResourceReference(name="mine-6")),
}
SIX: dict[str, Any] = {
    "machine_networks": ("fd00::/64",),
    "cluster_networks": ("fd01::/48",),
    "service_networks": ("fd02::/112",),
    "machines_subnets": (ResourceReference(name="mine-6"),),
    "external_network": None,
}
MINE = {"load_balancer": "UserManaged"}
PREVIEW = {"feature_set": "TechPreviewNoUpgrade"}


def turned(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return fields with some lists in reverse order."""
    return fields | {name: tuple(reversed(fields[name])) for name in names}


def volume(**fields: Any) -> RootVolume:
    return RootVolume(**({"size": 100, "types": ("fast",)} | fields))


NETWORKS: dict[str, dict[str, Any]] = {
    f"{name} {each}": {name: (each,)}
    for name in ("machine_networks", "cluster_networks", "service_networks")
    for each in (
        "10.0.0.0/16",
        "10.128.0.0/14",
        "172.30.0.0/16",
        "172.16.0.0/12",
        "172.0.0.0/8",
        "172.17.0.0/16",
        "192.168.0.0/24",
        "192.168.0.0/29",
        "192.168.0.0/30",
        "100.64.0.0/16",
        "100.64.0.0/10",
        "100.88.0.0/16",
        "100.88.4.0/24",
        "169.254.0.0/16",
        "169.254.128.0/17",
        "0.0.0.0/8",
        "fd00::/64",
    )
}
STACKS: dict[str, dict[str, Any]] = {
    "two stacks": TWO,
    "two stacks, preview": TWO | PREVIEW,
    "IPv6 alone": SIX,
    "IPv6 alone, preview": SIX | PREVIEW,
    **{f"two stacks, {name} turned": turned(TWO, name) for name in TWO},
    "two stacks, networks turned": turned(TWO, "machine_networks", "cluster_networks", "service_networks"),
    "two stacks, one service": TWO | {"service_networks": ("172.30.0.0/16",)},
    "two stacks, one of pods": TWO | {"cluster_networks": ("10.128.0.0/14",)},
    "two stacks of machines": {name: TWO[name] for name in ("machine_networks", "machines_subnets")},
    "three services": TWO | {"service_networks": ("172.30.0.0/16", "172.31.0.0/16", "fd02::/112")},
    **{f"IPv6 services {each}": TWO | {"service_networks": ("172.30.0.0/16", each)} for each in ("fd02::/64",)},
    **{f"IPv6 pods {each}": TWO | {"cluster_networks": ("10.128.0.0/14", each)} for each in ("fd01::/64", "fd01::/80")},
    **{
        f"IPv6 machines {each}": TWO | {"machine_networks": ("10.0.0.0/16", each)}
        for each in ("fd98::/64", "fd69::/96")
    },
}
VIPS: dict[str, dict[str, Any]] = {
    "given": {"api_vips": ("10.0.0.9",), "ingress_vips": ("10.0.0.10",)},
    "of the API": {"api_vips": ("10.0.0.9",)},
    "of the ingress": {"ingress_vips": ("10.0.0.9",)},
    "the API has the default of the ingress": {"api_vips": ("10.0.0.7",)},
    "the ingress has the default of the API": {"ingress_vips": ("10.0.0.5",)},
    "swapped": {"api_vips": ("10.0.0.7",), "ingress_vips": ("10.0.0.5",)},
    "equal": {"api_vips": ("10.0.0.5",), "ingress_vips": ("10.0.0.5",)},
    "outside": {"api_vips": ("10.1.0.5",), "ingress_vips": ("10.1.0.7",)},
    "in the second network": {
        "machine_networks": ("10.0.0.0/24", "10.0.1.0/24"),
        "api_vips": ("10.0.1.5",),
        "ingress_vips": ("10.0.1.7",),
    },
    "two of one family": {"api_vips": ("10.0.0.5", "10.0.0.6"), "ingress_vips": ("10.0.0.7",)},
    "balanced, none": MINE,
    "balanced, given": MINE | {"api_vips": ("10.0.0.9",), "ingress_vips": ("10.0.0.10",)},
    "balanced, one": MINE | {"api_vips": ("10.0.0.9",)},
    "balanced, equal": MINE | {"api_vips": ("10.0.0.5",), "ingress_vips": ("10.0.0.5",)},
    "balanced, outside": MINE | {"api_vips": ("192.0.2.5",), "ingress_vips": ("192.0.2.7",)},
    "balanced, preview": MINE | PREVIEW | {"api_vips": ("10.0.0.9",), "ingress_vips": ("10.0.0.10",)},
    "balanced by default": {"load_balancer": "OpenShiftManagedDefault"},
    **{
        f"two stacks {number}": TWO | (vips | extra)
        for number, (vips, extra) in enumerate(
            (vips, extra)
            for vips in (
                {"api_vips": ("10.0.0.5", "fd00::5"), "ingress_vips": ("10.0.0.7", "fd00::7")},
                {"api_vips": ("fd00::5", "10.0.0.5"), "ingress_vips": ("fd00::7", "10.0.0.7")},
                {"api_vips": ("10.0.0.5", "fd00::5"), "ingress_vips": ("fd00::7", "10.0.0.7")},
                {"api_vips": ("10.0.0.5",), "ingress_vips": ("10.0.0.7",)},
                {"api_vips": ("fd00::5",), "ingress_vips": ("fd00::7",)},
                {"api_vips": ("10.0.0.5", "fd00::5")},
            )
            for extra in (
                {},
                PREVIEW,
                {name: tuple(reversed(TWO[name])) for name in TWO if name.endswith("networks")},
                {"machine_networks": tuple(reversed(TWO["machine_networks"]))},
            )
        )
    },
}
JOIN: dict[str, dict[str, Any]] = {
    f"{each} {number}": {"ovn_join_subnet": each} | extra
    for each in ("100.68.0.0/16", "100.64.0.0/16", "10.0.0.0/16", "10.130.0.0/16", "100.68.0.0/24", "0.0.0.0/8")
    for number, extra in enumerate(
        (
            {},
            {"machine_networks": ("100.64.0.0/16",)},
            {"network_type": "Calico"},
            {"cluster_networks": ("10.128.0.0/22",)},
            {"cluster_networks": ("10.128.0.0/16",), "host_prefix": 24},
        )
    )
}
MACHINES: dict[str, dict[str, Any]] = {
    f"{where} {name}": {where: (Machines if where == "machines" else MachinePool)(**({"flavor": "master"} | fields))}
    for where in ("machines", "control_plane", "compute")
    for name, fields in {
        "zones": {"zones": THREE},
        "volume": {"root_volume": volume()},
        "volume and zones": {"zones": THREE, "root_volume": volume()},
        "volume and one zone": {"zones": ("az1",), "root_volume": volume(zones=("z",))},
        "volume, one zone of volumes": {"zones": THREE, "root_volume": volume(zones=("z",))},
        "volume, zones of volumes": {"zones": THREE, "root_volume": volume(zones=THREE)},
        "volume, two zones of volumes": {"zones": THREE, "root_volume": volume(zones=("x", "y"))},
        "types": {"root_volume": volume(types=("a", "b"))},
        "types, one zone": {"zones": ("az1",), "root_volume": volume(types=("a", "b"), zones=("z",))},
        "types as zones": {"zones": THREE, "root_volume": volume(types=THREE, zones=THREE)},
        "two types, three zones": {"zones": THREE, "root_volume": volume(types=("a", "b"), zones=THREE)},
        "policy": {"server_group_policy": "anti-affinity"},
    }.items()
}
REPLICAS = {
    f"replicas {masters} {workers}": {
        "control_plane": MachinePool(replicas=masters),
        "compute": MachinePool(replicas=workers),
    }
    for masters, workers in ((3, 0), (1, 0), (3, 3), (0, 3))
} | {
    f"replicas of {kind} {masters}": {
        "network_type": kind,
        "control_plane": MachinePool(replicas=masters),
        "compute": MachinePool(replicas=0),
    }
    for kind in ("OpenShiftSDN", "OVNKubernetes", "Calico", "Kuryr", "openshiftsdn")
    for masters in (1, 3)
}
EXCEPTIONS = (
    "example.com",
    ".example.com",
    "example.com.",
    "*.example.com",
    "*",
    "Example.com",
    "example.com:443",
    "my_host",
    "a b",
    "10.0.0.5",
    "10.0.0.5:80",
    "10.0.0.0/8",
    "10.0.0.1/8",
    "fd00::5",
    "fd00::/8",
    "host",
    "-x",
    "https://example.com",
    "a..b",
    ".",
    "..",
    ".a.",
    "::1",
    "[::1]",
    "::ffff:192.0.2.1",
    "fe80::1%eth0",
    "10.0.0.0/255.0.0.0",
    "fd00::1/8",
    "10.0.0.0/33",
    "010.0.0.1",
    "1.2.3",
    "a" * 64,
)
PROXIES: dict[str, dict[str, Any]] = {
    **{f"exception {each}": {"proxy": Proxy(http="http://proxy:3128", exceptions=(each,))} for each in EXCEPTIONS},
    "exception * among": {"proxy": Proxy(http="http://proxy:3128", exceptions=("*", "x"))},
    **{
        f"http {each}": {"proxy": Proxy(http=each)}
        for each in ("http://u:p@proxy:3128", "https://proxy", "proxy:3128", "http://10.128.0.9", "http://172.30.0.9:1")
    },
    **{
        f"http {each}": {"proxy": Proxy(http=each)}
        for each in (
            " http://proxy",
            "http://pro xy",
            "http://u:p%zz@proxy",
            "http://u:p%20@proxy",
            "http://proxy:",
            "http://proxy/a b",
            "HTTP://proxy",
            "http:x",
            "//proxy",
        )
    },
    **{
        f"https {each}": {"proxy": Proxy(https=each)}
        for each in (
            "http://proxy",
            "https://proxy:1",
            "ftp://proxy",
            "http://proxy:x",
            "https://10.0.0.9",
            "http://[::1",
        )
    },
    "a proxy in the join subnet": {"proxy": Proxy(http="http://100.68.0.9"), "ovn_join_subnet": "100.68.0.0/16"},
    "no proxy": {"proxy": Proxy(exceptions=("x",))},
}
REPOSITORIES = (
    "quay.io/okd",
    "quay.io/okd/release",
    "Quay.io/okd",
    "quay.io/Okd",
    "quay.io/okd/",
    "quay.io/",
    "quay.io",
    "registry",
    "registry:5000",
    "registry.lab:5000",
    "registry.lab:5000/okd",
    "registry:5000/a/b",
    "localhost/okd",
    "okd/release",
    "*.quay.io",
    "*.quay.io/okd",
    "quay.io/*",
    "https://quay.io/okd",
    "quay.io/okd:4.20",
    "quay.io/okd@sha256:" + "0" * 64,
    "quay.io/o kd",
    "quay.io/a__b",
    "quay.io/a_b-c.d",
    "quay.io/a--b",
    "quay.io/a..b",
    "quay.io/-a",
    "docker.io/okd",
    "docker.io/library/okd",
    "index.docker.io/library/okd",
    "10.0.0.5",
    "10.0.0.5:5000",
    "10.0.0.5:5000/okd",
    "10.0.0.5/okd",
    "-x.io/okd",
    "x_y.io/okd",
    "0" * 64,
    "quay.io/" + "a" * 260,
    "quay.io/" + "a" * 247,
    "quay.io/" + "a" * 248,
    "[fd00::1]:5000/okd",
    "[fd00::1]:5000",
    "quay.io:/x",
    "quay.io:x/y",
    "quay.io//a",
    "docker.io/",
    "LOCALHOST/x",
    "Localhost",
    "a.b./c",
    "a.b.",
    "/a",
)
MIRRORS = {f"source {each}": {"image_mirrors": (Mirror(source=each, mirrors=("quay.io/m",)),)} for each in REPOSITORIES}
MIRRORS |= {
    f"mirror {each}": {"image_mirrors": (Mirror(source="quay.io/s", mirrors=(each,)),)} for each in REPOSITORIES
}
SETS = ("None", "vCurrent", "v4.10", *(f"v4.{number}" for number in range(11, 22)), "v5.0", "vX", "none")
ALL = tuple(releases.CAPABILITIES)
CAPABILITIES: dict[str, dict[str, Any]] = {
    **{f"set {name}": {"capabilities": Capabilities(baseline=name)} for name in SETS},
    **{
        f"set {name} with mandatory": {
            "capabilities": Capabilities(baseline=name, additional=tuple(releases.MANDATORY)),
        }
        for name in SETS
    },
    **{
        f"set {name} with mandatory and OLM": {
            "capabilities": Capabilities(
                baseline=name, additional=(*releases.MANDATORY, "OperatorLifecycleManager", "marketplace", "baremetal")
            ),
        }
        for name in SETS
    },
    **{f"one, {name}": {"capabilities": Capabilities(baseline="vCurrent", additional=(name,))} for name in (*ALL, "X")},
    **{f"one alone, {name}": {"capabilities": Capabilities(baseline="None", additional=(name,))} for name in ALL},
    "additional alone": {"capabilities": Capabilities(additional=("Console",))},
    "marketplace and OLM": {
        "capabilities": Capabilities(
            baseline="None", additional=("marketplace", "OperatorLifecycleManager", *releases.MANDATORY)
        )
    },
    "marketplace": {"capabilities": Capabilities(baseline="None", additional=("marketplace", *releases.MANDATORY))},
    "bare metal": {"capabilities": Capabilities(baseline="None", additional=("baremetal", *releases.MANDATORY))},
}
OTHER: dict[str, dict[str, Any]] = {
    "nothing": {},
    **{
        f"name {len(each)} {each[:9]}": {"cluster_name": each}
        for each in (
            "a",
            "a" * 14,
            "a" * 15,
            "a" * 27,
            "a" * 54,
            "a" * 55,
            "a" * 64,
            "a.b",
            "Ocp",
            "a-b",
            "-a",
            "a-",
            "4",
            "a_b",
        )
    },
    **{
        f"domain {len(each)} {each[:12]}": {"base_domain": each}
        for each in (
            "example.com",
            "example.com.",
            "com",
            "Example.com",
            "a..b",
            "-x",
            "a b",
            ".".join(["a" * 60] * 4),
            ".".join(["a" * 61] * 4),
            ".".join(["a" * 62] * 4),
            "*.example.com",
            "a_b.com",
        )
    },
    **{
        f"domain of {number} characters": {
            "cluster_name": "a" * 13,
            "base_domain": ".".join(["b" * 59] * 3 + ["c" * (number - 194)]),
        }
        for number in (252, 253, 254)
    },
    "domain of 253 characters and a dot": {
        "cluster_name": "a" * 13,
        "base_domain": ".".join(["b" * 59] * 3 + ["c" * 59, ""]),
    },
    **{
        f"feature set {each}": {"feature_set": each}
        for each in (
            "TechPreviewNoUpgrade",
            "CustomNoUpgrade",
            "DevPreviewNoUpgrade",
            "LatencySensitive",
            "OKD",
            "Default",
            "X",
        )
    },
    **{f"stream {each}": {"os_image_stream": each} for each in releases.STREAMS},
    **{f"stream {each}, preview": {"os_image_stream": each} | PREVIEW for each in releases.STREAMS},
    "own subnet": {"machines_subnets": (ResourceReference(id=SUBNET),)},
    "own subnet, UUID 1": {"machines_subnets": (ResourceReference(id=UUID1),)},
    "own subnet by name": {"machines_subnets": (ResourceReference(name="mine"),)},
    "own subnet by name, preview": {"machines_subnets": (ResourceReference(name="mine"),)} | PREVIEW,
    "own network": {
        "machines_subnets": (ResourceReference(id=SUBNET),),
        "machines_network": ResourceReference(name="mine"),
    },
    "own network by UUID 1": {
        "machines_subnets": (ResourceReference(id=SUBNET),),
        "machines_network": ResourceReference(id=UUID1),
    },
    "own network, preview": {
        "machines_subnets": (ResourceReference(id=SUBNET),),
        "machines_network": ResourceReference(name="mine"),
    }
    | PREVIEW,
    "Internal": {"publish": "Internal"},
    "External": {"publish": "External"},
    "policy": {"additional_trust_bundle_policy": "Always"},
    "partitioned": {"cpu_partitioning": "AllNodes"},
    "partitioned not": {"cpu_partitioning": "None"},
    "FIPS": {"fips": True},
    "image": {"cluster_os_image": "rhcos"},
    "properties": {"cluster_os_image_properties": {"a": "b"}},
    "DNS": {"external_dns": ("192.0.2.1",)},
    **{f"host prefix {each}": {"host_prefix": each} for each in (13, 14, 23, 28, 32)},
    "overlap": {"service_networks": ("10.0.128.0/24",)},
    "two services": {"service_networks": ("172.30.0.0/16", "172.31.0.0/16")},
    "two networks of pods": {"cluster_networks": ("10.128.0.0/16", "10.129.0.0/16")},
    "two networks of machines that overlap": {"machine_networks": ("10.0.0.0/16", "10.0.1.0/24")},
}
TEXTS: dict[str, dict[str, Any]] = {
    "no key": {"ssh_key": None},
    "ed25519": {"ssh_key": ED25519},
    "rsa": {"ssh_key": RSA},
    "two keys": {"ssh_key": f"{ECDSA}\n{ED25519} me@here"},
    "a comment after": {"ssh_key": f"{ECDSA}\n# another"},
    "a comment before": {"ssh_key": f"# another\n{ECDSA}"},
    "options": {"ssh_key": f'from="10.0.0.0/8" {ECDSA}'},
    "an empty line": {"ssh_key": f"{ECDSA}\n\n{RSA}"},
    "text": {"ssh_key": "hunter2"},
    "half a key": {"ssh_key": ECDSA[:60]},
    "a key and text": {"ssh_key": f"{ECDSA}\nhunter2"},
    "bundle": {"additional_trust_bundle": CERTIFICATE},
    "two certificates": {"additional_trust_bundle": CERTIFICATE * 2},
    "certificate without newline": {"additional_trust_bundle": CERTIFICATE.rstrip()},
    "certificate and empty line": {"additional_trust_bundle": f"{CERTIFICATE}\n"},
    "text before": {"additional_trust_bundle": f"my CA\n{CERTIFICATE}"},
    "text between": {"additional_trust_bundle": f"{CERTIFICATE}mine\n{CERTIFICATE}"},
    "text behind": {"additional_trust_bundle": f"{CERTIFICATE}mine"},
    "half a certificate": {"additional_trust_bundle": CERTIFICATE[:150]},
    "no certificate in it": {"additional_trust_bundle": CERTIFICATE.replace("MIHe", "MIHf")},
    "text alone": {"additional_trust_bundle": "hunter2"},
    "wrong second": {"additional_trust_bundle": CERTIFICATE + CERTIFICATE.replace("MIHe", "MIHf")},
    **{
        f"pull secret {number}": {"pull_secret": Secret(text)}
        for number, text in enumerate(
            (
                '{"auths": {}}',
                '{"auths": {"a": {}}}',
                '{"auths": {"a": {"auth": ""}}}',
                '{"auths": {"a": {"auth": "x"}}}',
                '{"auths": {"a": {"auth": null}}}',
                '{"auths": {"a": {"auth": 7}}}',
                '{"auths": {"a": {"credsStore": "desktop"}}}',
                '{"auths": {"a": {"password": "x"}}}',
                '{"auths": "x"}',
                "{}",
                "x",
                '{"auths": {"a": null}}',
                '{"auths": {"a": "x"}}',
            )
        )
    },
}


def cases() -> Iterator[tuple[str, InstallConfigFields, FileContents]]:
    """Yield all cases, with a name that stays."""
    groups = (NETWORKS, STACKS, VIPS, JOIN, MACHINES, REPLICAS, PROXIES, MIRRORS, CAPABILITIES, OTHER)
    titles = ("network", "stack", "vip", "join", "machine", "replicas", "proxy", "mirror", "capability", "other")
    for title, group in zip(titles, groups, strict=True):
        for name, fields in group.items():
            yield f"{title}: {name}", replace(BASE, **fields), FILES
    for name, fields in TEXTS.items():
        yield f"text: {name}", BASE, replace(FILES, **fields)
        if "ssh_key" in fields:
            yield f"text: {name}, FIPS", replace(BASE, fips=True), replace(FILES, **fields)
