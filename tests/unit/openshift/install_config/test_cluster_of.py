from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import (
    FileContents,
    InstallConfigFields,
    InstallConfigValues,
    MachinePool,
    Machines,
    ResourceReference,
    RootVolume,
    dump,
    read,
    releases,
)
from openstack_prep.openshift.install_config.document import document
from openstack_prep.openshift.install_config.rules import mistakes
from tests.unit.openshift.install_config.test_render import CONTENTS, DATA, RELEASES, SCENARIOS, SUBNET
from tests.unit.texts import Wording

STORED = sorted(DATA.glob("*.yaml"))
WHOLE = {
    "apiVersion": "v1",
    "metadata": {"name": "ocp4"},
    "baseDomain": "example.com",
    "platform": {"openstack": {"cloud": "lab"}},
    "pullSecret": '{"auths":{"x":{"auth":"Zm9vOmJhcg=="}}}',
}


def whole(**more: Any) -> dict[str, Any]:
    return {**WHOLE, **more}


def on_openstack(**more: Any) -> dict[str, Any]:
    return whole(platform={"openstack": {"cloud": "lab", **more}})


def cased(node: Any, case: Any) -> Any:
    """Return a document with its keys in other letters; those of image properties are the user's own."""
    if isinstance(node, list):
        return [cased(each, case) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        case(key): value if key == "clusterOSImageProperties" else cased(value, case) for key, value in node.items()
    }


def refusals(source: Any, release: str = "4.18") -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(source, release)
    return [str(each) for each in caught.value.mistakes]


# --- what was written comes back ----------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_was_rendered_is_read_as_it_was_declared(name: str) -> None:
    cluster, release = SCENARIOS[name]
    declared = replace(cluster, release=release)
    found, contents = read(DATA / f"{name}.yaml", release)
    assert found == declared
    assert document(found, contents) == document(declared, CONTENTS)


@pytest.mark.parametrize("path", STORED, ids=lambda path: str(path.stem))
@pytest.mark.parametrize("case", [str, str.lower, str.upper])
def test_all_stored_files_are_written_again_as_they_were(path: Path, case: Any) -> None:
    text = path.read_text()
    release = next((each for each in sorted(RELEASES, key=len, reverse=True) if each in path.stem), "4.20")
    written = yaml.safe_load(text)
    again = yaml.safe_load(dump(document(*read(cased(written, case), release))))
    assert again == written


def test_every_release_reads_what_it_writes_of_everything() -> None:
    every = InstallConfigFields(
        release="4.2",
        cluster_name="ocp4",
        base_domain="example.com",
        cloud="lab",
        region="one",
        trunks=True,
        octavia=False,
        host_prefix=24,
        machines=Machines(flavor="m", root_volume=RootVolume(size=100, types=("fast",))),
        compute=MachinePool(replicas=0),
        network_type="Calico",
    )
    for release in RELEASES:
        declared = replace(every, release=release)
        if releases.minor(release) > 5:  # from then on ignored
            declared = replace(declared, region=None, trunks=None, octavia=None)
        found, _ = read(document(declared, CONTENTS) | {"pullSecret": "{}"}, release)
        assert found == declared, release


# --- old names, other letters -------------------------------------------------------------


def test_old_names_count_when_the_release_still_takes_them() -> None:
    old = on_openstack(
        lbFloatingIP="192.0.2.1",
        computeFlavor="m",
        apiVIP="10.0.0.5",
        ingressVIP="10.0.0.7",
        machinesSubnet=SUBNET,
        region="one",
        externalNetwork="external",
    )
    old["networking"] = {
        "machineCIDR": "10.0.0.0/24",
        "serviceCIDR": "172.31.0.0/16",
        "type": "OVNKubernetes",
        "clusterNetworks": [{"cidr": "10.64.0.0/14", "hostSubnetLength": 8}],
    }
    old["compute"] = [{"name": "worker", "platform": {"openstack": {"rootVolume": {"size": 50, "type": "fast"}}}}]
    found, _ = read(old, "4.18")
    assert found == InstallConfigFields(
        release="4.18",
        cluster_name="ocp4",
        base_domain="example.com",
        cloud="lab",
        external_network="external",
        api_floating_ip="192.0.2.1",
        api_vips=("10.0.0.5",),
        ingress_vips=("10.0.0.7",),
        machines_subnets=(ResourceReference(id=SUBNET),),
        machines=Machines(flavor="m"),
        compute=MachinePool(root_volume=RootVolume(size=50, types=("fast",))),
        machine_networks=("10.0.0.0/24",),
        service_networks=("172.31.0.0/16",),
        cluster_networks=("10.64.0.0/14",),
        host_prefix=24,
    )


def test_names_that_came_later_do_not_count() -> None:
    newer = on_openstack(apiFloatingIP="192.0.2.1", ingressFloatingIP="192.0.2.2", apiVIPs=["10.0.0.5"], cloud="lab")
    found, _ = read(newer | {"fips": True}, "4.2")
    assert (found.api_floating_ip, found.ingress_floating_ip, found.api_vips, found.fips) == (None, None, (), None)


def test_the_newer_of_two_names_wins() -> None:
    found, _ = read(on_openstack(apiVIP="10.0.0.5", apiVIPs=["10.0.0.5", "fd00::5"]), "4.18")
    assert found.api_vips == ("10.0.0.5", "fd00::5")


def test_what_is_not_there_is_the_installers_default() -> None:
    found, contents = read({**WHOLE, "pullSecret": None, "compute": [], "networking": None}, "4.18")
    assert found == InstallConfigFields(release="4.18", cluster_name="ocp4", base_domain="example.com", cloud="lab")
    assert contents == FileContents()


@pytest.mark.parametrize(("environment", "cloud"), [("of-the-shell", "of-the-shell"), ("", "openstack")])
def test_the_cloud_is_the_one_that_the_installer_takes(
    monkeypatch: pytest.MonkeyPatch, environment: str, cloud: str
) -> None:
    monkeypatch.setenv("OS_CLOUD", environment)
    assert read(whole(platform={"openstack": {}}), "4.18")[0].cloud == cloud
    assert read(WHOLE, "4.18")[0].cloud == "lab"


def test_a_number_is_its_text_where_a_text_is_wanted() -> None:
    found, _ = read(on_openstack(cloud=5, externalNetwork=True), "4.18")
    assert (found.cloud, found.external_network) == ("5", "true")
    properties = {"replicas": "x", "size": 5}  # names of a user's own, which are fields elsewhere
    found, _ = read(on_openstack(clusterOSImageProperties=properties), "4.18")
    assert found.cluster_os_image_properties == {"replicas": "x", "size": "5"}


# --- what cannot be read ------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "install-config.yaml"
        path.write_text(text)
        return path

    return write


def test_a_file_is_told_with_its_lines_and_everything_at_once(written: Any, wording: Wording) -> None:
    path = written(
        """apiVersion: v2
metadata: {}
controlPlane:
  replicas: "3"
compute:
- name: infra
  platform:
    openstack:
      rootVolume: {size: 100GiB, types: [a]}
- name: worker
Platform:
  OpenStack:
    externalDNS: [nobody]
    serverGroupPolicy: x
    defaultMachinePlatform: {serverGroupPolicy: near}
networking:
  machineNetwork: [{cidr: 10.0.0.5/16}]
  clusterNetwork: [{cidr: 10.128.0.0/14}]
pullSecret: {auths: {x: {auth: Zm9vOmJhcg==}}}
"""
    )
    said = refusals(path)
    assert "Zm9v" not in "".join(said)
    wording([each.removeprefix(f"{path}:") for each in said])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "is not YAML: while parsing a flow node"),
        ("- 1", "1: platform.openstack: is missing"),
        ("", "1: platform.openstack: is missing"),
        ("apiVersion: v1\nplatform: {aws: {}}", "2: platform.openstack: is missing; the platform is aws"),
        ("apiVersion: v1\nplatform: {}", "2: platform: names no platform; write openstack"),
        ("platform:\n  openstack:\n", "2: platform.openstack: is missing"),
        (
            "name: lab\ninstall_config: {}",
            "2: is a spec of openstack-prep, not an install-config",
        ),
    ],
)
def test_what_is_no_install_config_of_openstack(written: Any, text: str, what: str) -> None:
    (said,) = refusals(written(text))
    assert what in said


@pytest.mark.parametrize(
    ("document", "fix"),
    [
        (on_openstack(apiVIPs=["::ffff:10.0.0.9"]), "write 10.0.0.9"),
        (on_openstack() | {"networking": {"machineNetwork": [{"cidr": "::ffff:10.0.0.0/112"}]}}, "write 10.0.0.0/16"),
    ],
)
def test_ipv4_in_the_form_of_ipv6(document: dict[str, Any], fix: str) -> None:
    with pytest.raises(SpecError) as refused:
        read(document, "4.18")
    assert [each.fix for each in refused.value.mistakes] == [fix]


def test_what_is_missing_because_its_name_is_too_new(wording: Wording) -> None:
    pool = {"name": "worker", "platform": {"openstack": {"rootVolume": {"size": 100, "types": ["fast"]}}}}
    wording(refusals(whole(compute=[pool]), "4.13"))


def test_a_release_that_nobody_knows(wording: Wording) -> None:
    wording(refusals(WHOLE, "4.99"))


def test_a_pull_secret_that_is_no_json_is_read_and_not_shown(wording: Wording) -> None:
    cluster, contents = read(whole(pullSecret="Zm9vOmJhcg=="), "4.18")
    said = [str(each) for each in mistakes(cluster, contents) if each.where == "pull_secret"]
    wording(said)
    assert contents.pull_secret == Secret("Zm9vOmJhcg==")


def test_a_proxys_password_is_not_shown(wording: Wording) -> None:
    said = refusals(whole(proxy={"httpProxy": ["http://me:hush@proxy"]}))
    wording(said)


def test_what_was_read_once_is_not_read_again(written: Any) -> None:
    path = written(yaml.safe_dump(WHOLE))
    given = InstallConfigValues(path)
    path.unlink()
    assert read(given, "4.18") == read(WHOLE, "4.18")
