from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

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
    mistakes,
    releases,
)
from tests.unit.texts import Wording, contains

RIGHT = InstallConfigFields(
    release="4.20",
    cluster_name="ocp4",
    base_domain="example.com",
    cloud="lab",
    external_network="external",
    machines=Machines(flavor="master"),
)
FILES = FileContents(pull_secret=Secret('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}'))
UUID4 = "0f2c8a4e-6b1d-4c3e-9a57-2d1b8e6f4a90"
UUID1 = "0f2c8a4e-6b1d-11ee-9a57-2d1b8e6f4a90"
BY_ID, BY_NAME = (ResourceReference(id=UUID4),), (ResourceReference(name="mine"),)
VOLUME = RootVolume(size=100, types=("fast",))
TWO_STACKS: dict[str, Any] = {
    "machine_networks": ("10.0.0.0/16", "fd00::/64"),
    "cluster_networks": ("10.128.0.0/14", "fd01::/48"),
    "service_networks": ("172.30.0.0/16", "fd02::/112"),
    "api_vips": ("10.0.0.5", "fd00::5"),
    "ingress_vips": ("10.0.0.7", "fd00::7"),
    "machines_subnets": (ResourceReference(name="mine-4"), ResourceReference(name="mine-6")),
}


def told(**fields: Any) -> list[str]:
    return [str(each) for each in mistakes(replace(RIGHT, **fields), FILES)]


@pytest.mark.parametrize("minor", range(2, 25))
def test_what_is_right_is_right_in_every_release(minor: int) -> None:
    assert told(release=releases.name(minor)) == []


# --- what a release does not have ---------------------------------------------------------

CAME: dict[str, tuple[int, str, dict[str, Any]]] = {
    "publish": (3, "publish", {"publish": "External"}),
    "fips": (3, "fips", {"fips": True}),
    "external_dns": (4, "externalDNS", {"external_dns": ("192.0.2.1",)}),
    "cluster_os_image": (4, "clusterOSImage", {"cluster_os_image": "rhcos"}),
    "api_vips": (5, "apiVIP", {"api_vips": ("10.0.0.5",)}),
    "ingress_vips": (5, "ingressVIP", {"ingress_vips": ("10.0.0.7",)}),
    "machines_subnets": (5, "machinesSubnet", {"machines_subnets": BY_ID}),
    "machines.additional_networks": (
        5,
        "additionalNetworkIDs",
        {"machines": Machines(flavor="m", additional_networks=(UUID4,))},
    ),
    "control_plane.additional_security_groups": (
        5,
        "additionalSecurityGroupIDs",
        {"control_plane": MachinePool(additional_security_groups=(UUID4,))},
    ),
    "ingress_floating_ip": (6, "ingressFloatingIP", {"ingress_floating_ip": "192.0.2.7"}),
    "compute.zones": (6, "zones", {"compute": MachinePool(zones=("az1",))}),
    "cluster_os_image_properties": (
        7,
        "clusterOSImageProperties",
        {"cluster_os_image": "https://images.example.com/rhcos", "cluster_os_image_properties": {"a": "b"}},
    ),
    "compute.root_volume.zones": (8, "zones", {"compute": MachinePool(root_volume=replace(VOLUME, zones=("az1",)))}),
    "compute.server_group_policy": (9, "serverGroupPolicy", {"compute": MachinePool(server_group_policy="affinity")}),
    "capabilities.baseline": (11, "baselineCapabilitySet", {"capabilities": Capabilities(baseline="None")}),
    "capabilities.additional": (
        11,
        "additionalEnabledCapabilities",
        {"capabilities": Capabilities(baseline="vCurrent", additional=("marketplace",))},
    ),
    "load_balancer": (14, "type", {"load_balancer": "UserManaged"}),
    "os_image_stream": (23, "osImageStream", {"os_image_stream": "rhel-9"}),
    "ovn_join_subnet": (18, "internalJoinSubnet", {"ovn_join_subnet": "100.68.0.0/16"}),
    "cpu_partitioning": (13, "cpuPartitioningMode", {"cpu_partitioning": "AllNodes"}),
    "feature_set": (12, "featureSet", {"feature_set": "TechPreviewNoUpgrade"}),
    "feature_gates": (14, "featureGates", {"feature_set": "CustomNoUpgrade", "feature_gates": ("A=true",)}),
    "machines_network": (
        15,
        "network",
        {"machines_network": ResourceReference(id=UUID4), "machines_subnets": BY_ID},
    ),
}


@pytest.mark.parametrize(("where", "came"), CAME.items(), ids=CAME)
def test_a_field_is_refused_before_it_came(where: str, came: tuple[int, str, dict[str, Any]]) -> None:
    number, name, fields = came
    before, since = releases.name(number - 1), releases.name(number)
    (said,) = [each for each in told(release=before, **fields) if each.startswith(f"{where}: ")]
    if where in PREVIEWS:
        what = f"{name} is a preview in {before}; leave it out, or set feature_set: TechPreviewNoUpgrade"
    else:
        what = f"{before} has no {name}; available since {since}; leave it out, or install {since} or later"
    assert said == f"{where}: {what}"
    assert told(release=since, **fields) == []


PREVIEWS = {"load_balancer": "4.13", "machines_network": "4.14", "os_image_stream": "4.22"}


@pytest.mark.parametrize("where", PREVIEWS)
def test_a_preview_is_allowed_with_its_feature_set(where: str) -> None:
    release, fields = PREVIEWS[where], CAME[where][2]
    before = releases.name(releases.minor(release) - 1)
    assert told(release=release, feature_set="TechPreviewNoUpgrade", **fields) == []
    assert told(release=before, feature_set="TechPreviewNoUpgrade", **fields) != []


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [("octavia", "octaviaSupport", False), ("trunks", "trunkSupport", True), ("region", "region", "one")],
)
def test_a_field_is_refused_once_it_is_ignored(where: str, name: str, value: Any, wording: Wording) -> None:
    assert told(release="4.5", **{where: value}) == []
    wording(told(release="4.6", **{where: value}))


def test_the_policy_of_a_bundle_came_with_4_12_and_needs_no_bundle() -> None:
    assert told(release="4.12", additional_trust_bundle_policy="Always") == []
    (said,) = told(release="4.11", additional_trust_bundle_policy="Always")
    assert "4.11 has no additionalTrustBundlePolicy; available since 4.12" in said


def test_several_where_a_release_takes_one(wording: Wording) -> None:
    volume = MachinePool(zones=("a", "b"), root_volume=RootVolume(size=100, types=("x", "y"), zones=("z",)))
    wording(told(release="4.13", control_plane=volume))
    assert told(release="4.14", control_plane=volume) == []
    vips = told(release="4.11", **{**TWO_STACKS, "machines_subnets": BY_ID})
    assert any(contains(text, "api_vips", "apiVIP", "4.11", "apiVIPs", "4.12") for text in vips)


@pytest.mark.parametrize("release", ["4", "4.1", "4.24", "6.0", "4.x", "latest", "3.11", ""])
def test_a_release_that_is_none(release: str) -> None:
    (said,) = told(release=release, publish="Internal")
    assert said.startswith(f"release: {release!r} is ")


@pytest.mark.parametrize("release", ["4.23", "4.23.0-ec.1", "5.0", "5.0.0-okd-scos.1"])
def test_one_number_for_two_names(release: str) -> None:
    assert releases.minor(release) == releases.FIRST_OF_5
    assert releases.is_same(release, "5.0")
    assert not releases.is_same(release, "5.1")
    assert not releases.is_same(release, "7.0")
    assert told(release=release) == []


def test_a_newer_release_follows_the_newest_rules() -> None:
    newest = releases.name(releases.NEWEST)
    assert newest == "5.1"
    for fields in ({}, {"os_image_stream": "rhel-10"}, {"publish": "Internal"}, {"load_balancer": "UserManaged"}):
        assert told(release="5.7", **fields) == told(release=newest, **fields)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"feature_set": "CustomNoUpgrade", "feature_gates": ("A=true", "B=F")}, []),
        ({"feature_set": "CustomNoUpgrade"}, []),
        ({"feature_gates": ("A=true",)}, ["feature_gates"]),
        ({"feature_set": "TechPreviewNoUpgrade", "feature_gates": ("A=true",)}, ["feature_gates"]),
        (
            {"feature_set": "CustomNoUpgrade", "feature_gates": ("A", "A=yes", "=true", "A=1")},
            ["feature_gates[0]", "feature_gates[1]"],  # the installer accepts a gate without a name
        ),
    ],
)
def test_gates_belong_to_the_custom_feature_set(fields: dict[str, Any], wrong: list[str]) -> None:
    assert [each.partition(":")[0] for each in told(release="4.22", **fields)] == wrong


def test_a_gate_enables_the_stream_of_4_22() -> None:
    custom: dict[str, Any] = {"release": "4.22", "os_image_stream": "rhel-10", "feature_set": "CustomNoUpgrade"}
    assert told(**custom, feature_gates=("OSStreams=true",)) == []
    assert [each.partition(":")[0] for each in told(**custom)] == ["os_image_stream"]


@pytest.mark.parametrize(
    ("release", "stream", "feature_set", "gates", "valid"),
    [
        ("5.0", "rhel-10", "CustomNoUpgrade", (), True),
        ("5.0", "rhel-9", "CustomNoUpgrade", (), False),
        ("4.23", "rhel-9", "CustomNoUpgrade", (), True),
        ("4.23", "rhel-10", "CustomNoUpgrade", (), False),
        ("4.23", "rhel-10", "CustomNoUpgrade", ("OSStreams=true",), True),
        ("4.23", "rhel-10", None, (), True),
        ("5.0", "centos-10", None, (), False),
        ("5.0.0-okd-scos.1", "centos-10", "CustomNoUpgrade", (), True),
        ("5.0.0-okd-scos.1", "rhel-10", None, (), False),
        ("5.0.0-okd-scos.1", None, "OKD", (), True),
        ("5.0", None, "OKD", (), False),
    ],
)
def test_streams_by_the_name_of_the_release(
    release: str, stream: str | None, feature_set: str | None, gates: tuple[str, ...], valid: bool
) -> None:
    """As the installer's validators say, built as 5.0, as 4.23 and with tag scos (pkg/rhcos)."""
    found = told(release=release, os_image_stream=stream, feature_set=feature_set, feature_gates=gates)
    assert (found == []) == valid


# --- what is wrong in any -----------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an ID with another hyphen": (
        {"machines_subnets": (ResourceReference(id="-3f333cf32ab4-4b3e-9b5c-0e7d0f6a2c11"),)},
        "machines_subnets: '-3f333cf32ab4-4b3e-9b5c-0e7d0f6a2c11' is not a UUID of version 4",
    ),
    "a dot": ({"cluster_name": "a.b"}, "cluster_name: 'a.b' contains a dot"),
    "capitals": ({"cluster_name": "Ocp"}, "cluster_name: 'Ocp' is not a DNS label"),
    "a long name": (
        {"release": "4.11", "cluster_name": "a" * 15},
        f"cluster_name: '{'a' * 15}' exceeds 14 characters, the maximum before 4.12",
    ),
    "no domain": ({"base_domain": "-x"}, "base_domain: '-x' is not a domain"),
    "two masters": ({"control_plane": MachinePool(replicas=2)}, "control_plane.replicas: etcd of two machines stops"),
    "five masters": (
        {"control_plane": MachinePool(replicas=5)},
        "control_plane.replicas: 5 replicas are not supported",
    ),
    "no master": (
        {"control_plane": MachinePool(replicas=0)},
        "control_plane.replicas: a cluster needs a control plane",
    ),
    "no flavor": (
        {"machines": Machines(), "compute": MachinePool(flavor="w")},
        "control_plane.flavor: no flavor for these machines",
    ),
    "no flavor for all": (
        {
            "release": "4.6",
            "machines": Machines(),
            "compute": MachinePool(flavor="w"),
            "control_plane": MachinePool(flavor="m"),
        },
        "machines.flavor: 4.6 requires computeFlavor",
    ),
    "a small volume": (
        {"compute": MachinePool(root_volume=RootVolume(size=24, types=("x",)))},
        "compute.root_volume.size: 24 GiB is less than the required 25 GiB",
    ),
    "types that do not pair": (
        {
            "compute": MachinePool(
                zones=("a", "b", "c"), root_volume=RootVolume(size=25, types=("x", "y"), zones=("z",))
            )
        },
        "compute.root_volume.types: 2 types do not match 3 zones of the machines",
    ),
    "zones without zones of volumes": (
        {"compute": MachinePool(zones=("a",), root_volume=VOLUME), "release": "4.14"},
        "compute.root_volume.zones: names no zone; compute.zones and a root volume require one",
    ),
    "zones that do not pair": (
        {
            "compute": MachinePool(
                zones=("a", "b", "c"), root_volume=RootVolume(size=25, types=("x",), zones=("a", "b"))
            )
        },
        "compute.root_volume.zones: 2 zones do not match 3 zones of the machines",
    ),
    "a network by name": (
        {"compute": MachinePool(additional_networks=("storage",))},
        "compute.additional_networks: 'storage' is not a UUID of version 4",
    ),
    "a UUID of version 1": (
        {"machines_subnets": (ResourceReference(id=UUID1),)},
        f"machines_subnets: '{UUID1}' is not a UUID",
    ),
    "properties of an image that is not uploaded": (
        {"cluster_os_image": "rhcos", "cluster_os_image_properties": {"a": "b"}},
        "cluster_os_image_properties: is ignored, because the installer does not upload 'rhcos'",
    ),
    "OpenShiftSDN": (
        {"network_type": "OpenShiftSDN", "release": "4.15"},
        "network_type: new clusters do not support OpenShiftSDN since 4.15; leave it out: OVNKubernetes",
    ),
    "openshiftsdn": (
        {"network_type": "openshiftsdn"},
        "network_type: new clusters do not support openshiftsdn since 4.15",
    ),
    "Kuryr": ({"network_type": "Kuryr"}, "network_type: new clusters do not support Kuryr since 4.15"),
    "an overlap": (
        {"service_networks": ("10.0.128.0/24",)},
        "machine_networks: 10.0.0.0/16 overlaps 10.0.128.0/24 of service_networks",
    ),
    "two service networks": (
        {"service_networks": ("172.30.0.0/16", "172.31.0.0/16")},
        "service_networks: the installer accepts one per address family",
    ),
    "a host prefix that is too short": (
        {"host_prefix": 13},
        "host_prefix: /13 is larger than the whole network 10.128.0.0/14",
    ),
    "IPv6 in some": (
        {"cluster_networks": ("10.128.0.0/14", "fd01::/48"), "machine_networks": ("10.0.0.0/16", "fd00::/64")},
        "cluster_networks: IPv4 and IPv6, while service_networks are IPv4",
    ),
    "IPv6 too early": (
        TWO_STACKS | {"release": "4.13"},
        "machine_networks: 4.13 does not support IPv6 on OpenStack; available since",
    ),
    "IPv6 with another plug-in": (
        TWO_STACKS | {"release": "4.14", "network_type": "OpenShiftSDN", "feature_set": "TechPreviewNoUpgrade"},
        "network_type: OpenShiftSDN does not support IPv6",
    ),
    "IPv6 in no subnet": (
        TWO_STACKS | {"machines_subnets": ()},
        "machines_subnets: the installer does not create IPv6 subnets",
    ),
    "one subnet for two stacks": (
        TWO_STACKS | {"machines_subnets": (ResourceReference(name="mine-4"),)},
        "machines_subnets: IPv4 and IPv6 require two subnets, not 1",
    ),
    "two addresses of one family": (
        {"api_vips": ("10.0.0.5", "10.0.0.6")},
        "api_vips: two addresses of the same family; give one per family",
    ),
    "an address elsewhere": ({"api_vips": ("10.1.0.5",)}, "api_vips: 10.1.0.5 is not in machine_networks"),
    "one address for both": (
        {"api_vips": ("10.0.0.5",), "ingress_vips": ("10.0.0.5",)},
        "ingress_vips: 10.0.0.5 is used by the API already",
    ),
    "a floating IP from nowhere": (
        {"external_network": None, "api_floating_ip": "192.0.2.5"},
        "api_floating_ip: requires an external network",
    ),
    "a floating IP that is none": ({"api_floating_ip": "api"}, "api_floating_ip: 'api' is not an IP address"),
    "one floating IP for both": (
        {"api_floating_ip": "192.0.2.5", "ingress_floating_ip": "192.0.2.5"},
        "ingress_floating_ip: 192.0.2.5 is used by the API already",
    ),
    "a subnet by name too early": (
        {"release": "4.14", "machines_subnets": BY_NAME},
        "machines_subnets: 4.14 takes subnets by ID; by name since 4.15; give the ID",
    ),
    "a subnet by nothing": (
        {"machines_subnets": (ResourceReference(),)},
        "machines_subnets: has neither an ID nor a name",
    ),
    "a subnet by its ID, and by both": (
        TWO_STACKS | {"machines_subnets": (*BY_ID, ResourceReference(id=UUID4, name="x"))},
        "machines_subnets: names the same subnet twice",
    ),
    "a network without subnet": ({"machines_network": BY_NAME[0]}, "machines_network: requires its subnet"),
    "DNS servers of one's own subnet": (
        {"machines_subnets": BY_NAME, "external_dns": ("192.0.2.1",)},
        "external_dns: does not apply to your own subnet",
    ),
    "two subnets for one stack": (
        {"machines_subnets": BY_NAME * 2},
        "machines_subnets: more than one subnet per address family",
    ),
    "Internal": ({"publish": "Internal"}, "publish: Internal is not supported on this platform"),
    "a proxy that is none": ({"proxy": Proxy(exceptions=("x",))}, "proxy: has no proxy; give http or https"),
    "a proxy without scheme": ({"proxy": Proxy(http="proxy:3128")}, "proxy.http: is not the URL of a proxy"),
    "a proxy in half a bracket": ({"proxy": Proxy(http="http://[::1")}, "proxy.http: is not the URL of a proxy"),
    "a proxy on no port": ({"proxy": Proxy(https="http://proxy:x")}, "proxy.https: is not the URL of a proxy"),
    "a proxy for HTTP by HTTPS": ({"proxy": Proxy(http="https://proxy")}, "proxy.http: is not the URL of a proxy"),
    "a mirror with a tag": (
        {"image_mirrors": (Mirror(source="quay.io/okd", mirrors=("mirror:5000/okd:4.20",)),)},
        "image_mirrors[0]: 'mirror:5000/okd:4.20' is not a repository",
    ),
    "a set of capabilities to come": (
        {"release": "4.14", "capabilities": Capabilities(baseline="v4.15")},
        "capabilities.baseline: 4.14 has no capability set 'v4.15'; write None, vCurrent or v4.11 to v4.14",
    ),
}


@pytest.mark.parametrize(("fields", "expected"), WRONG.values(), ids=WRONG)
def test_a_mistake_names_the_field_and_what_is_wrong(fields: dict[str, Any], expected: str) -> None:
    (said,) = [each for each in told(**fields) if each.startswith(expected.partition(":")[0] + ":")]
    assert said.startswith(expected)


FINE: dict[str, dict[str, Any]] = {
    "a long name": {"release": "4.12", "cluster_name": "a" * 27},
    "one machine": {"control_plane": MachinePool(replicas=1), "compute": MachinePool(replicas=0)},
    "three and none": {"compute": MachinePool(replicas=0)},
    "flavors of the pools": {
        "machines": Machines(),
        "compute": MachinePool(flavor="w"),
        "control_plane": MachinePool(flavor="m"),
    },
    "zones of all": {
        "machines": Machines(flavor="m", zones=("a", "b")),
        "compute": MachinePool(root_volume=RootVolume(size=25, types=("x", "y"), zones=("a", "b"))),
    },
    "OpenShiftSDN": {"release": "4.14", "network_type": "OpenShiftSDN"},
    "another plug-in": {"network_type": "Calico"},
    "two stacks": TWO_STACKS | {"release": "4.15"},
    "two stacks as a preview": TWO_STACKS | {"release": "4.14", "feature_set": "TechPreviewNoUpgrade"},
    "one address for two stacks": TWO_STACKS | {"api_vips": ("10.0.0.5",), "ingress_vips": ()},
    "machines with one family more": {
        "machine_networks": ("10.0.0.0/16", "fd00::/64"),
        "machines_subnets": TWO_STACKS["machines_subnets"],
    },
    "several types without zones": {"compute": MachinePool(root_volume=RootVolume(size=25, types=("x", "y")))},
    "properties of RHCOS": {"cluster_os_image_properties": {"a": "b"}},
    "a balancer elsewhere": {
        "load_balancer": "UserManaged",
        "api_vips": ("192.0.2.5",),
        "ingress_vips": ("192.0.2.5",),
    },
    "a proxy": {"proxy": Proxy(http="http://u:p@proxy:3128", https="https://proxy:3129")},
    "networks that no pool takes": {
        "machines": Machines(flavor="m", additional_networks=("x",)),
        "compute": MachinePool(additional_networks=(UUID4,)),
        "control_plane": MachinePool(additional_networks=(UUID4,)),
    },
}


@pytest.mark.parametrize("fields", FINE.values(), ids=FINE)
def test_what_is_allowed(fields: dict[str, Any]) -> None:
    assert told(**fields) == []


# --- all of it -----------------------------------------------------------------------------


def test_a_proxy_is_not_repeated_for_it_may_hold_a_password() -> None:
    assert "hunter2" not in "".join(told(proxy=Proxy(http="ftp://me:hunter2@proxy")))


def test_all_mistakes_are_told_at_once() -> None:
    said = told(release="4.2", cluster_name="a.b", publish="Internal", ingress_floating_ip="x", region="one")
    assert [each.partition(":")[0] for each in said] == [
        "ingress_floating_ip",
        "publish",
        "cluster_name",
        "ingress_floating_ip",
    ]


@pytest.mark.parametrize(("release", "number"), [("4.7", 0), ("4.8", 1), ("5.1", 1)])
def test_endpoints_are_always_external_since_4_8(release: str, number: int) -> None:
    assert len(told(release=release, publish="Internal")) == number
