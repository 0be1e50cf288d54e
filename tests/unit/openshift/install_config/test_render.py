from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
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
    dump,
    findings,
    releases,
    render,
)
from tests.unit.openshift.install_config.parsable import CERTIFICATE, ECDSA

DATA = Path(__file__).parents[2] / "data" / "install_config"
RELEASES = [releases.name(minor) for minor in range(2, 25)]
WORD = "Zm9vOmJhcg=="
SUBNET = "0f2c8a4e-6b1d-4c3e-9a57-2d1b8e6f4a90"

CONTENTS = FileContents(
    pull_secret=Secret('{\n  "auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}\n}\n'),
    ssh_key=f"{ECDSA} lab",
    additional_trust_bundle=CERTIFICATE,
)

COMMON = InstallConfigFields(
    release="4.2",
    cluster_name="ocp4",
    base_domain="example.com",
    cloud="ocp-tenant",
    external_network="external",
    api_floating_ip="192.168.122.164",
    machines=Machines(flavor="master"),
    compute=MachinePool(replicas=2, flavor="worker"),
    machine_networks=("10.0.0.0/16",),
    service_networks=("172.60.0.0/16",),
    proxy=Proxy(http="http://proxy.example.com:3128", exceptions=("example.com", "10.0.0.0/8")),
    image_mirrors=(Mirror(source="quay.io/okd", mirrors=("mirror.example.com:5000/okd",)),),
)
"""What every release can say."""

OWN_NETWORK = replace(
    COMMON,
    ingress_floating_ip="192.168.122.180",
    api_vips=("10.0.0.5",),
    ingress_vips=("10.0.0.7",),
    machines_subnets=(ResourceReference(id=SUBNET),),
    cluster_os_image="https://images.example.com/rhcos.qcow2?sha256=00",
    cluster_os_image_properties={"hw_qemu_guest_agent": "yes"},
    machines=Machines(flavor="master", additional_networks=(SUBNET,), additional_security_groups=(SUBNET,)),
    control_plane=MachinePool(
        zones=("az1", "az2", "az3"),
        root_volume=RootVolume(size=100, types=("fast",), zones=("az1", "az2", "az3")),
        server_group_policy="anti-affinity",
    ),
    fips=True,
    publish="External",
    capabilities=Capabilities(baseline="vCurrent", additional=("marketplace",)),
)
"""What 4.11 can say, and all later ones."""

TWO_STACKS = replace(
    OWN_NETWORK,
    machine_networks=("10.0.0.0/16", "fd00::/64"),
    cluster_networks=("10.128.0.0/14", "fd01::/48"),
    service_networks=("172.30.0.0/16", "fd02::/112"),
    api_vips=("10.0.0.5", "fd00::5"),
    ingress_vips=("10.0.0.7", "fd00::7"),
    machines_network=ResourceReference(name="mine"),
    machines_subnets=(ResourceReference(name="mine-4"), ResourceReference(name="mine-6")),
    load_balancer="UserManaged",
    control_plane=replace(
        OWN_NETWORK.control_plane, root_volume=RootVolume(size=100, types=("a", "b", "c"), zones=("z",))
    ),
    additional_trust_bundle_policy="Always",
    cpu_partitioning="AllNodes",
    feature_set="TechPreviewNoUpgrade",
)
"""What 4.14 can say, and all later ones."""

SCENARIOS = {
    **{release: (COMMON, release) for release in RELEASES},
    **{f"{release}-own-network": (OWN_NETWORK, release) for release in ("4.11", "4.12", "4.13", "4.14", "4.15")},
    **{f"{release}-two-stacks": (TWO_STACKS, release) for release in ("4.14", "4.18", "4.21", "5.1")},
}


def rendered(cluster: InstallConfigFields, release: str, **fields: Any) -> dict[str, Any]:
    """Return it as the installer would read it."""
    found = yaml.safe_load(dump(render(replace(cluster, release=release, **fields), CONTENTS)))
    assert isinstance(found, dict)
    return found


def platform(release: str, **fields: Any) -> dict[str, Any]:
    found = rendered(COMMON, release, **fields)["platform"]["openstack"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_whole_file_of_a_release(name: str) -> None:
    cluster, release = SCENARIOS[name]
    assert dump(render(replace(cluster, release=release), CONTENTS)) == (DATA / f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_written_is_nothing_that_the_release_would_complain_of(name: str) -> None:
    assert findings(yaml.safe_load((DATA / f"{name}.yaml").read_text()), SCENARIOS[name][1]) == []


def test_what_the_files_are_for() -> None:
    assert {path.stem for path in DATA.glob("[45].*.yaml")} == set(SCENARIOS)


FLOATING = "192.168.122.164"
RENAMED: dict[str, tuple[dict[str, Any], str, str, Any, str, Any]] = {
    "the API's floating IP": ({}, "4.6", "lbFloatingIP", FLOATING, "apiFloatingIP", FLOATING),
    "the API's address": ({"api_vips": ("10.0.0.9",)}, "4.11", "apiVIP", "10.0.0.9", "apiVIPs", ["10.0.0.9"]),
    "the routers' address": (
        {"ingress_vips": ("10.0.0.9",)},
        "4.11",
        "ingressVIP",
        "10.0.0.9",
        "ingressVIPs",
        ["10.0.0.9"],
    ),
    "the flavor": ({}, "4.6", "computeFlavor", "master", "defaultMachinePlatform", {"type": "master"}),
    "the subnet": (
        {"machines_subnets": (ResourceReference(id=SUBNET),)},
        "4.14",
        "machinesSubnet",
        SUBNET,
        "controlPlanePort",
        {"fixedIPs": [{"subnet": {"id": SUBNET}}]},
    ),
}


@pytest.mark.parametrize(("fields", "last", "old", "before", "new", "after"), RENAMED.values(), ids=RENAMED)
def test_a_field_has_the_name_of_its_release(
    fields: dict[str, Any], last: str, old: str, before: Any, new: str, after: Any
) -> None:
    following = RELEASES[RELEASES.index(last) + 1]
    assert platform(last, **fields)[old] == before
    assert new not in platform(last, **fields)
    assert platform(following, **fields)[new] == after
    assert old not in platform(following, **fields)


def test_a_pool_names_its_flavor_even_if_it_is_that_of_all() -> None:
    found = rendered(COMMON, "4.20")
    kinds = [pool["platform"]["openstack"]["type"] for pool in (found["controlPlane"], *found["compute"])]
    assert kinds == ["master", "worker"]


def test_types_of_root_volumes_are_a_list_since_4_14() -> None:
    pool = MachinePool(root_volume=RootVolume(size=100, types=("fast",)))
    before = rendered(COMMON, "4.13", control_plane=pool)["controlPlane"]["platform"]["openstack"]["rootVolume"]
    after = rendered(COMMON, "4.14", control_plane=pool)["controlPlane"]["platform"]["openstack"]["rootVolume"]
    assert (before, after) == ({"size": 100, "type": "fast"}, {"size": 100, "types": ["fast"]})


def test_the_machines_network_has_its_old_name_up_to_4_3() -> None:
    assert rendered(COMMON, "4.3")["networking"]["machineCIDR"] == "10.0.0.0/16"
    assert rendered(COMMON, "4.4")["networking"]["machineNetwork"] == [{"cidr": "10.0.0.0/16"}]


def test_mirrors_have_a_new_name_since_4_14() -> None:
    assert rendered(COMMON, "4.13")["imageContentSources"] == rendered(COMMON, "4.14")["imageDigestSources"]


@pytest.mark.parametrize(("release", "kind"), [("4.11", "OpenShiftSDN"), ("4.12", "OVNKubernetes")])
def test_the_default_network_type_is_that_of_the_release(release: str, kind: str) -> None:
    assert rendered(COMMON, release)["networking"]["networkType"] == kind


@pytest.mark.parametrize("release", ["4.14.0", "4.14.23", "4.14.0-okd-scos.1"])
def test_a_whole_version_is_its_release(release: str) -> None:
    assert rendered(COMMON, release) == rendered(COMMON, "4.14")


def test_what_ended_with_4_5_is_a_digit_in_quotes() -> None:
    text = dump(render(replace(COMMON, release="4.5", octavia=False, trunks=True), CONTENTS))
    assert "    trunkSupport: '1'\n    octaviaSupport: '0'\n" in text


def test_the_pull_secret_is_one_line_and_the_bundle_a_block() -> None:
    text = dump(render(COMMON, CONTENTS))
    assert f"""pullSecret: '{{"auths":{{"quay.io":{{"auth":"{WORD}"}}}}}}'\n""" in text
    assert "additionalTrustBundle: |\n  -----BEGIN CERTIFICATE-----\n  MIHe" in text


def test_a_document_does_not_show_the_pull_secret() -> None:
    assert WORD not in str(render(COMMON, CONTENTS))


def test_what_is_wrong_is_told_at_once_and_not_rendered() -> None:
    with pytest.raises(SpecError) as caught:
        render(replace(COMMON, cluster_name="a.b", publish="Internal", cpu_partitioning="AllNodes"), CONTENTS)
    assert [each.where for each in caught.value.mistakes] == ["publish", "cpu_partitioning", "cluster_name"]
