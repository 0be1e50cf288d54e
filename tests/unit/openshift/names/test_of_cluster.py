from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.names import hosts
from openstack_prep.openshift.names import of_cluster as names
from openstack_prep.openshift.names.hosts import ClusterNames
from openstack_prep.openshift.names.of_cluster import domain_of, names_of, remove, text_of, write
from tests.unit.texts import Wording, expect_error

PLATFORM: dict[str, Any] = {
    "externalNetwork": "external",
    "apiFloatingIP": "192.0.2.4",
    "ingressFloatingIP": "192.0.2.5",
}
NAMES = ClusterNames(cluster_name="dev", base_domain="example.com", api="192.0.2.4", ingress="192.0.2.5")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return put(tmp_path / "install-config.yaml", PLATFORM)


def put(path: Path, platform: dict[str, Any], **others: Any) -> Path:
    document = {"baseDomain": "example.com", "metadata": {"name": "dev"}, "platform": {"openstack": platform}}
    path.write_text(yaml.safe_dump(document | others, sort_keys=False))
    return path


# --- from an install-config ---------------------------------------------------------------


@pytest.mark.parametrize("platform", ["none", "external"])
def test_a_cluster_without_a_cloud_has_the_addresses_that_one_gives(tmp_path: Path, platform: str) -> None:
    config = tmp_path / "install-config.yaml"
    config.write_text(
        yaml.safe_dump({"baseDomain": "example.com", "metadata": {"name": "dev"}, "platform": {platform: {}}})
    )
    with pytest.raises(SpecError) as caught:
        names_of(config, internal=True)
    assert [each.where for each in caught.value.mistakes] == ["api", "ingress"]
    found = names_of(config, api="192.0.2.4", ingress="192.0.2.5", internal=True)
    assert (found.api, found.ingress, found.api_int) == ("192.0.2.4", "192.0.2.5", "192.0.2.4")
    assert domain_of(config) == "dev.example.com"


def test_the_floating_ips(config: Path) -> None:
    assert names_of(config) == NAMES


def test_old_names_and_any_case(tmp_path: Path) -> None:
    platform = {"ExternalNetwork": "external", "lbfloatingip": "192.0.2.4", "ingressFloatingIp": "192.0.2.5"}
    assert names_of(put(tmp_path / "c", platform)) == NAMES


def test_what_is_said_by_hand_is_stronger(config: Path) -> None:
    found = names_of(config, cluster_name="prod", api="2001:DB8::0:1", api_int="10.0.0.5")
    assert (found.domain, found.api, found.ingress) == ("prod.example.com", "2001:db8::1", "192.0.2.5")
    assert found.api_int == "10.0.0.5"


@pytest.mark.parametrize(
    ("platform", "networking", "addresses"),
    [
        ({}, {}, ("10.0.0.5", "10.0.0.7")),
        ({}, {"machineNetwork": [{"cidr": "192.0.2.0/24"}]}, ("192.0.2.5", "192.0.2.7")),
        ({}, {"machineCIDR": "192.0.2.0/24"}, ("192.0.2.5", "192.0.2.7")),
        ({"apiVIP": "10.0.1.1", "ingressVIP": "10.0.1.2"}, {}, ("10.0.1.1", "10.0.1.2")),
        ({"apiVIPs": ["10.0.1.1", "fd00::1"], "ingressVIPs": ["10.0.1.2"]}, {}, ("10.0.1.1", "10.0.1.2")),
        ({"apiVIPs": [], "ingressVIPs": []}, {}, ("10.0.0.5", "10.0.0.7")),
    ],
)
def test_the_virtual_addresses(
    tmp_path: Path, platform: dict[str, Any], networking: dict[str, Any], addresses: tuple[str, str]
) -> None:
    path = put(tmp_path / "c", PLATFORM | platform, networking=networking)
    found = names_of(path, internal=True)
    assert (found.api, found.ingress, found.api_int) == (*addresses, addresses[0])


def test_without_an_external_network_there_are_no_others(tmp_path: Path) -> None:
    found = names_of(put(tmp_path / "c", {"cloud": "lab"}))
    assert (found.api, found.ingress, found.api_int) == ("10.0.0.5", "10.0.0.7", None)


def test_by_hand_within() -> None:
    found = names_of(cluster_name="dev", base_domain="example.com", api="10.0.0.5", ingress="10.0.0.7", internal=True)
    assert found.api_int == "10.0.0.5"


def test_by_hand() -> None:
    assert names_of(cluster_name="dev", base_domain="example.com.", api="192.0.2.4", ingress="192.0.2.5") == NAMES


# --- mistakes -----------------------------------------------------------------------------


def mistakes(*words: Any, **more: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        names_of(*words, **more)
    return [str(each) for each in caught.value.mistakes]


def test_all_that_is_missing() -> None:
    assert mistakes(internal=True) == [
        "cluster-name: is missing; give --cluster-name, or --install-config FILE",
        "base-domain: is missing; give --base-domain, or --install-config FILE",
        "api: is missing; give --api ADDR, or --install-config FILE",
        "ingress: is missing; give --ingress ADDR, or --install-config FILE",
    ]


def test_what_a_file_lacks_is_said_by_its_line(tmp_path: Path) -> None:
    path = put(tmp_path / "c", {"externalNetwork": "external"})
    fix = "or --internal for the address within the cluster"
    assert mistakes(path) == [
        f"{path}:5: platform.openstack.apiFloatingIP: is missing; give --api ADDR, {fix}",
        f"{path}:5: platform.openstack.ingressFloatingIP: is missing; give --ingress ADDR, {fix}",
    ]


def test_all_that_is_wrong(tmp_path: Path, wording: Wording) -> None:
    path = put(tmp_path / "c", PLATFORM | {"apiFloatingIP": "192.0.2"}, baseDomain="example.com\n127.0.0.1 x")
    wording(mistakes(path, cluster_name="Dev", ingress="x y", api_int="10.0.0"))


def test_a_machine_network_that_is_none(tmp_path: Path, wording: Wording) -> None:
    path = put(tmp_path / "c", {}, networking={"machineNetwork": [{"cidr": "10.0.0.0/33"}]})
    wording(mistakes(path, ingress="10.0.0.7"))


def test_a_file_that_cannot_be_read(tmp_path: Path, wording: Wording) -> None:
    found = mistakes(tmp_path / "gone", api="x")
    assert len(found) == 2
    wording(found[0])
    wording(found[1])


# --- domains ------------------------------------------------------------------------------


def test_the_domain_alone(config: Path) -> None:
    assert domain_of(config) == "dev.example.com"
    assert domain_of(config, base_domain="lan.") == "dev.lan"
    with pytest.raises(SpecError, match=r"^cluster-name: is missing"):
        domain_of(base_domain="lan")


# --- files --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["hosts", "dnsmasq"])
def test_a_block_comes_once_and_goes(tmp_path: Path, form: names.Form) -> None:
    path = tmp_path / "file"
    path.write_text("# mine\n")
    assert write(path, NAMES, form)
    assert path.read_text().startswith("# mine\n# BEGIN openstack-prep dev.example.com\n")
    assert text_of(NAMES, form) in path.read_text()
    assert not write(path, NAMES, form)
    assert remove(path, NAMES.domain)
    assert path.read_text() == "# mine\n"
    assert not remove(path, NAMES.domain)


def test_a_zone_is_written_once_and_its_serial_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "zone"
    assert write(path, NAMES, "bind", "ns.example.org")
    first = path.read_text()
    assert first == hosts.zone(NAMES, server="ns.example.org", today=date.today())
    assert not write(path, NAMES, "bind", "ns.example.org")
    assert write(path, names_of(cluster_name="dev", base_domain="example.com", api="::1", ingress="::2"), "bind", "a.b")
    assert int(path.read_text().split("( ")[1].split()[0]) == int(first.split("( ")[1].split()[0]) + 1


@pytest.mark.parametrize("line", ["registry IN A 192.0.2.9", "; asked for by the DNS team", "_etcd IN SRV 0 10 1 a"])
def test_a_zone_in_which_somebody_has_written_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "zone"
    write(path, NAMES, "bind", "ns.example.org")
    text = path.read_text() + f"{line}\n"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        write(path, NAMES, "bind", "ns.example.org")
    assert [mistake.where for mistake in caught.value.mistakes] == [f"{path}:{len(text.splitlines())}"]
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text", ["127.0.0.1 localhost\n", "$ORIGIN dev2.example.com.\n", "$ORIGIN dev.example.com.x\n"]
)
def test_a_zone_takes_no_other_files_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with expect_error(SpecError, "dev.example.com", "file"):
        write(path, NAMES, "bind", "ns.example.org")
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (None, "is missing; give --server NAME"),
        ("ns", "'ns' is not a fully qualified host name"),
        ("ns example.org", "'ns example.org' is not a fully qualified host name"),
        ("ns.dev.example.com.", "is a name in the zone itself, which has no address for it"),
        ("dev.example.com", "is a name in the zone itself"),
    ],
)
def test_name_servers(server: str | None, said: str) -> None:
    with pytest.raises(SpecError, match=f"^server: .*{said}"):
        text_of(NAMES, "bind", server)


def test_a_file_that_cannot_be_written(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        write(tmp_path, NAMES, "bind", "ns.example.org")
    wording(caught.value)


def test_lines_of_the_other_ip_version_are_no_conflict(tmp_path: Path) -> None:
    platform = {"apiVIPs": ["10.0.1.1", "fd00::1"], "ingressVIPs": ["10.0.1.2", "fd00::2"]}
    found = names_of(put(tmp_path / "c", platform))
    assert found.also == {"fd00::1", "fd00::2"}
    hosts = tmp_path / "hosts"
    hosts.write_text("fd00::1 api.dev.example.com\n")
    assert write(hosts, found, "hosts")
    hosts.write_text("fd00::9 api.dev.example.com\n")
    with pytest.raises(SpecError, match="fd00::9"):
        write(hosts, found, "hosts")
