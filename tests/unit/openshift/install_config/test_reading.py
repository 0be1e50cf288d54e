from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.openshift.install_config import findings, releases
from openstack_prep.openshift.install_config.reading import is_fatal
from tests.unit.texts import Wording, contains

REAL = Path(__file__).parents[2] / "data" / "install_config" / "real-run.yaml"


def told(release: str, document: dict[str, Any]) -> list[str]:
    return [str(each) for each in findings(document, release)]


def on_openstack(**fields: Any) -> dict[str, Any]:
    return {"platform": {"openstack": fields}}


def lowered(node: Any) -> Any:
    if isinstance(node, list):
        return [lowered(each) for each in node]
    return {key.lower(): lowered(value) for key, value in node.items()} if isinstance(node, dict) else node


@pytest.mark.parametrize("release", ["4.7", "4.14", "4.21"])
@pytest.mark.parametrize("read", [dict, lowered], ids=["as it is", "in small letters"])
def test_an_install_config_that_made_a_cluster(release: str, read: Any) -> None:
    assert told(release, read(yaml.safe_load(REAL.read_text()))) == []


def test_the_same_is_too_new_for_older_releases(wording: Wording) -> None:
    document = yaml.safe_load(REAL.read_text())
    wording(told("4.6", document))
    wording(told("4.2", document))


def replaced(mapping: dict[str, Any], old: str, fix: str) -> dict[str, Any]:
    """Return a mapping with a key replaced as a fix says; the others keep their places."""
    if new := re.fullmatch("rename it to (.*)", fix):
        written = {new[1]: mapping[old]}
    else:
        lines = re.fullmatch("write (.*) in its place", fix)
        assert lines
        written = yaml.safe_load(lines[1])
    return {
        key: each
        for name, value in mapping.items()
        for key, each in (written if name == old else {name: value}).items()
    }


@pytest.mark.parametrize(
    ("release", "old", "value", "since", "fix"),
    [
        ("4.7", "lbFloatingIP", "192.0.2.1", 7, "rename it to apiFloatingIP"),
        ("4.7", "computeFlavor", "m", 7, "write defaultMachinePlatform: {type: m} in its place"),
        ("4.12", "apiVIP", "10.0.0.5", 12, "write apiVIPs: [10.0.0.5] in its place"),
        ("4.12", "ingressVIP", "10.0.0.7", 12, "write ingressVIPs: [10.0.0.7] in its place"),
        ("4.15", "machinesSubnet", "x", 15, "write controlPlanePort: {fixedIPs: [{subnet: {id: x}}]} in its place"),
    ],
)
@pytest.mark.parametrize("case", [str, str.lower, str.upper])
def test_an_old_name_is_told_with_the_new(
    release: str, old: str, value: str, since: int, fix: str, case: Any, wording: Wording
) -> None:
    before = f"4.{int(release[2:]) - 1}"
    assert told(before, on_openstack(**{case(old): value})) == []
    wording(told(release, on_openstack(**{case(old): value})))
    document = on_openstack(**{old: value})
    assert told(release, on_openstack(**replaced(document["platform"]["openstack"], old, fix))) == []


def test_old_names_of_networks(wording: Wording) -> None:
    networks = {
        "machineCIDR": "10.0.0.0/16",
        "serviceCIDR": "172.30.0.0/16",
        "type": "OpenShiftSDN",
        "clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}],
    }
    wording(told("4.4", {"networking": networks}))
    for old, fix in [(each.where.rpartition(".")[2], each.fix) for each in findings({"networking": networks}, "4.4")]:
        if old == "hostSubnetLength":
            (part,) = networks["clusterNetwork"]  # renamed before
            networks["clusterNetwork"] = [replaced(part, old, fix)]
        else:
            networks = replaced(networks, old, fix)
    assert told("4.4", {"networking": networks}) == []


def test_the_old_name_of_mirrors(wording: Wording) -> None:
    document = {"imageContentSources": [{"source": "quay.io/okd", "mirrors": ["mirror.example.com/okd"]}]}
    assert told("4.13", document) == []
    wording(told("4.14", document))


def test_the_type_of_a_root_volume(wording: Wording) -> None:
    pool = {"name": "worker", "platform": {"openstack": {"rootVolume": {"size": 100, "type": "fast"}}}}
    assert told("4.13", {"compute": [pool]}) == []
    wording(told("4.14", {"compute": [pool]}))


@pytest.mark.parametrize(
    ("release", "fate"),
    [
        ("4.9", "the installer ignores it"),
        ("4.10", "the installer stops"),
        ("4.11", "the installer ignores it with a warning"),
        ("4.21", "the installer ignores it with a warning"),
        ("4.22", "the installer stops"),
        ("5.1", "the installer stops"),
        ("5.2", "the installer stops if it does not know it either"),
    ],
)
def test_an_unknown_field_is_told_with_its_fate_and_the_nearest(release: str, fate: str, wording: Wording) -> None:
    wording(told(release, on_openstack(externalNetworks="x")))
    (found,) = findings(on_openstack(externalNetworks="x"), release)
    assert is_fatal(found) == (fate == "the installer stops")


def test_what_resembles_nothing(wording: Wording) -> None:
    wording(told("4.9", {"zzz": 1, "platform": {"zzz": {"a": 1}}}))


def test_what_is_ignored_by_now(wording: Wording) -> None:
    wording(told("4.6", on_openstack(trunkSupport="1", region="one")))


@pytest.mark.parametrize(
    ("release", "path", "value", "fix"),
    [
        (
            "4.14",
            "controlPlanePort",
            {"fixedIPs": [{"subnet": {"id": "x"}}]},
            "write platform.openstack.machinesSubnet, or ",
        ),
        ("4.13", "loadBalancer", {"type": "UserManaged"}, "leave it out, or "),
    ],
)
def test_a_preview_needs_its_feature_set(release: str, path: str, value: Any, fix: str, wording: Wording) -> None:
    (said,) = told(release, on_openstack(**{path: value}))
    wording(said.partition(": ")[2])
    assert told(release, on_openstack(**{path: value}) | {"featureSet": "TechPreviewNoUpgrade"}) == []


@pytest.mark.parametrize(("subnet", "refused"), [("x", False), ("y", True), (None, True)])
def test_a_port_beside_its_subnet_is_no_preview(subnet: str | None, refused: bool) -> None:
    """4.14: types/openstack/validation/techpreview.go, FilledInTechPreviewFields."""
    document = on_openstack(machinesSubnet=subnet, controlPlanePort={"fixedIPs": [{"subnet": {"id": "x"}}]})
    assert any(is_fatal(each) for each in findings(document, "4.14")) == refused


def test_two_names_of_one_field_must_agree(wording: Wording) -> None:
    both = on_openstack(APIFLOATINGIP="192.0.2.1", lbFloatingIP="192.0.2.2", apiVIP="10.0.0.5", apiVIPs=["10.0.0.5"])
    (said,) = contradictions("4.20", both)
    wording(said)
    assert contradictions("4.6", both) == []  # one of them is unknown there


def contradictions(release: str, document: dict[str, Any]) -> list[str]:
    return [each for each in told(release, document) if "are one field" in each]


@pytest.mark.parametrize(
    ("document", "fate"),
    [
        (on_openstack(apiVIPs=["10.0.0.5", "fd00::5"], apiVIP="10.0.0.5"), None),  # the old one holds one of two
        (on_openstack(apiVIPs=["10.0.0.5", "fd00::5"], apiVIP="10.0.0.6"), "differ: the installer stops"),
        (on_openstack(machinesSubnet="x", controlPlanePort={"fixedIPs": [{"subnet": {"id": "x"}}]}), None),
        (
            on_openstack(machinesSubnet="x", controlPlanePort={"fixedIPs": [{"subnet": {"id": "y"}}]}),
            "differ: the installer stops",
        ),
        (on_openstack(computeFlavor="x", defaultMachinePlatform={"type": "y"}), "differ: the installer stops"),
        (
            {"networking": {"networkType": "OVNKubernetes", "type": "OpenShiftSDN"}},
            "differ: the installer uses the first",
        ),
        ({"networking": {"machineNetwork": [{"cidr": "10.0.0.0/16"}], "machineCIDR": "10.0.0.0/16"}}, None),
        (
            {"controlPlane": {"platform": {"openstack": {"rootVolume": {"type": "x", "types": ["x"]}}}}},
            "exclude each other: the installer stops",
        ),
        (
            {name: [{"source": "a/b", "mirrors": ["c/d"]}] for name in ("imageDigestSources", "imageContentSources")},
            "exclude each other: the installer stops",
        ),
        (on_openstack(apiVIPs=[], apiVIP="10.0.0.5"), None),
        (on_openstack(controlPlanePort={"fixedIPs": [7]}, machinesSubnet="x"), None),
    ],
)
def test_what_the_installer_makes_of_two_names(document: dict[str, Any], fate: str | None) -> None:
    wanted = [] if fate is None else [f"are one field, and {fate}; keep the first"]
    assert [each.partition(": ")[2] for each in contradictions("4.20", document)] == wanted


JOIN = {"networking": {"ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.68.0.0/16"}}}}
MIRROR = {"imageDigestSources": [{"source": "a/b", "mirrors": ["c/d"], "sourcePolicy": "NeverContactSource"}]}
DISK = {"controlPlane": {"diskSetup": [{"type": "swap", "swap": {"platformDiskID": "x"}}]}}

PREVIEW = {"featureSet": "TechPreviewNoUpgrade"}


@pytest.mark.parametrize(
    ("since", "document"),
    [
        (18, JOIN),
        (21, MIRROR),
        (20, DISK | PREVIEW),
        (22, {"compute": [{"name": "worker", "management": "MachineAPI"}]}),
        (23, {"pki": {"signerCertificates": {"key": {"algorithm": "ECDSA", "ecdsa": {"curve": "P256"}}}}}),
    ],
)
def test_a_field_that_a_release_knows_is_not_called_unknown(since: int, document: dict[str, Any]) -> None:
    assert told(releases.name(since), document | {"featureSet": "TechPreviewNoUpgrade"}) == []
    (said,) = told(releases.name(since - 1), document)
    before, name = releases.name(since - 1), releases.name(since)
    fate = "the installer stops" if since > 22 else "the installer ignores it with a warning"
    assert contains(said, before, name, fate)


WORKERS = {"compute": [{"name": "worker", "DiskSetup": [{"type": "swap", "swap": {"platformDiskID": "x"}}]}]}
CUSTOM = {"featureSet": "CustomNoUpgrade"}


@pytest.mark.parametrize(
    ("document", "refused"),
    [
        (DISK, ["controlPlane.diskSetup"]),
        (WORKERS, ["compute[0].DiskSetup"]),
        (DISK | WORKERS, ["controlPlane.diskSetup", "compute[0].DiskSetup"]),
        ({"controlPlane": {"diskSetup": []}}, []),
        (DISK | PREVIEW, []),
        (DISK | {"featureSet": "DevPreviewNoUpgrade"}, []),
        (DISK | CUSTOM, ["controlPlane.diskSetup"]),
        (DISK | CUSTOM | {"featureGates": ["MultiDiskSetup=true"]}, []),
        (DISK | CUSTOM | {"featureGates": ["MultiDiskSetup=false", "OSStreams=true"]}, ["controlPlane.diskSetup"]),
        (DISK | CUSTOM | {"featureGates": None}, ["controlPlane.diskSetup"]),
        ({"pki": {"signerCertificates": {}}}, ["pki"]),
        (
            on_openstack(dnsRecordsType="External", loadBalancer={"type": "UserManaged"}),
            ["platform.openstack.dnsRecordsType"],
        ),
        (on_openstack(dnsRecordsType="Internal"), []),
    ],
)
def test_a_field_behind_a_feature_gate(document: dict[str, Any], refused: list[str]) -> None:
    found = [each for each in findings(document, "5.0") if is_fatal(each)]
    assert [each.where for each in found] == refused
    assert all("behind the feature gate" in each.what for each in found)


@pytest.mark.parametrize(
    ("gates", "number"), [([], 1), (["OSStreams=true"], 0), (["OSStreams=false"], 1), (["OSStreams"], 1)]
)
def test_the_stream_of_4_22_needs_its_gate(gates: list[str], number: int) -> None:
    assert len(told("4.22", {"osImageStream": "rhel-10", "featureGates": gates} | CUSTOM)) == number


def test_a_misspelled_field_inside_one_that_is_not_ours(wording: Wording) -> None:
    (said,) = told("4.20", {"networking": {"ovnKubernetesConfig": {"ipv4": {"internalJoinSubnets": "x"}}}})
    wording(said)


@pytest.mark.parametrize(
    ("release", "document"),
    [
        ("4.19", {"arbiter": {}}),
        ("4.16", {"networking": {"clusterNetworkMTU": 1400}}),
        ("4.20", {"credentialsMode": "x"}),
    ],
)
def test_a_field_that_openstack_does_not_have(release: str, document: dict[str, Any], wording: Wording) -> None:
    (said,) = told(release, document)
    wording(said.partition(": ")[2])


def test_the_credentials_mode_is_allowed_since_4_21() -> None:
    assert told("4.21", {"credentialsMode": "Passthrough"}) == []


def test_keys_of_a_users_own_are_nobodys_business() -> None:
    document = {"metadata": {"name": "x", "annotations": {"mine": 1}}}
    assert told("4.20", document | on_openstack(clusterOSImageProperties={"hw_x": "y"})) == []


@pytest.mark.parametrize(
    ("document", "number"),
    [({}, 0), ({"platform": None}, 0), ({"compute": "x"}, 1), ({5: 6}, 1), ({"platform": [1]}, 1)],
)
def test_what_is_no_install_config_is_no_crash(document: dict[Any, Any], number: int) -> None:
    assert len(findings(document, "4.20")) == number


ETCD, SWAP = {"type": "etcd", "etcd": {"platformDiskID": "a"}}, {"type": "swap", "swap": {"platformDiskID": "b"}}
MINE = {"type": "user-defined", "userDefined": {"platformDiskID": "c" * 12, "mountPath": "/var"}}
LONG = {"type": "user-defined", "userDefined": {"platformDiskID": "c" * 13, "mountPath": "/var"}}


@pytest.mark.parametrize(
    ("masters", "workers", "places"),
    [
        ([ETCD, SWAP, MINE, MINE], [SWAP, MINE], []),
        ([ETCD, ETCD], [], ["controlPlane.diskSetup[1]"]),
        ([SWAP, ETCD, SWAP], [], ["controlPlane.diskSetup[2]"]),
        ([{"type": "etcd"}, {"type": "user-defined"}], [], ["controlPlane.diskSetup[0]", "controlPlane.diskSetup[1]"]),
        ([LONG], [], ["controlPlane.diskSetup[0].userDefined.platformDiskID"]),
        ([], [ETCD], ["compute[0].diskSetup[0]"]),
        ([{"type": "other"}, {}], [], []),
        ([{"type": {}}], [], ["controlPlane.diskSetup[0].type"]),
    ],
)
def test_disks(masters: list[Any], workers: list[Any], places: list[str]) -> None:
    """As pkg/types/validation/machinepools_test.go has them."""
    pools = {"controlPlane": {"diskSetup": masters}, "compute": [{"name": "worker", "diskSetup": workers}]}
    assert [each.where for each in findings(pools | PREVIEW, "4.20") if is_fatal(each)] == places
    assert not any(is_fatal(each) for each in findings(pools | PREVIEW, "4.19"))


@pytest.mark.parametrize(
    ("policy", "mirrors", "number"),
    [
        ("NeverContactSource", ["quay.io/m"], 0),
        ("AllowContactingSource", ["quay.io/m"], 0),
        ("", [], 0),
        ("X", ["quay.io/m"], 1),
        ("NeverContactSource", [], 1),
        ({}, ["quay.io/m"], 1),
    ],
)
def test_policies_of_sources(policy: object, mirrors: list[str], number: int) -> None:
    document = {"imageDigestSources": [{"source": "quay.io/s", "mirrors": mirrors, "sourcePolicy": policy}]}
    assert [each.where for each in findings(document, "4.21")] == ["imageDigestSources[0].sourcePolicy"] * number
    assert not any(is_fatal(each) for each in findings(document, "4.20"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("featureGates", 7),
        ("publish", {}),
        ("featureSet", []),
        ("networking.networkType", {}),
        ("networking.clusterNetworkMTU", ""),
        ("networking.ovnKubernetesConfig", ""),
        ("bootstrapInPlace", []),
        ("proxy", ""),
        ("capabilities", ""),
        ("controlPlane.name", []),
        ("controlPlane.management", {}),
        ("controlPlane.platform.openstack.zones", ""),
        ("platform.openstack.region", {}),
        ("platform.openstack.clusterOSImageProperties", ""),
        ("platform.openstack.defaultMachinePlatform.type", {}),
        ("imageDigestSources", ""),
    ],
)
def test_a_value_of_another_kind(path: str, value: object) -> None:
    """Go decodes none of them, and null in the place of each; as the validators of 5.0 said."""

    def document(value: object) -> dict[str, Any]:
        for step in reversed(path.split(".")):
            value = {step: value}
        assert isinstance(value, dict)
        return value

    assert [each.where for each in findings(document(value), "5.0") if is_fatal(each)] == [path]
    assert [each.where for each in findings(document(None), "5.0") if is_fatal(each)] == []


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ({}, "algorithm"),
        ({"algorithm": "DSA"}, "algorithm"),
        ({"algorithm": "RSA"}, "rsa.keySize"),
        ({"algorithm": "RSA", "rsa": {"keySize": 3000}}, "rsa.keySize"),
        ({"algorithm": "RSA", "rsa": {"keySize": "4096"}}, "rsa.keySize"),
        ({"algorithm": "RSA", "rsa": {"keySize": 4096}, "ecdsa": {"curve": "P256"}}, "ecdsa"),
        ({"algorithm": "ECDSA", "ecdsa": {"curve": "p256"}}, "ecdsa.curve"),
        ({"algorithm": "ECDSA", "ecdsa": {"curve": "P384"}}, None),
        ({"algorithm": "RSA", "rsa": {"keySize": 4096}}, None),
    ],
)
def test_the_key_of_the_signers(key: dict[str, Any], place: str | None) -> None:
    """The installer's validators agree on 768 files (pkg/types/pki/validation.go at 5.0)."""
    document = {"featureSet": "TechPreviewNoUpgrade", "pki": {"signerCertificates": {"key": key}}}
    found = [each.where for each in findings(document, "5.0") if is_fatal(each)]
    assert found == ([f"pki.signerCertificates.key.{place}"] if place else [])
