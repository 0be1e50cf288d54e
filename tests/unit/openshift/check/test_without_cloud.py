from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.check.preflight import Verdict, check_file, preflight

WHOLE: dict[str, Any] = {
    "apiVersion": "v1",
    "metadata": {"name": "dev"},
    "baseDomain": "example.com",
    "controlPlane": {"name": "master", "replicas": 3},
    "compute": [{"name": "worker", "replicas": 2}],
    "platform": {"none": {}},
    "pullSecret": '{"auths":{"x":{"auth":"Zm9vOmJhcg=="}}}',
}
HOST = {"role": "master", "interfaces": [{"name": "eth0", "macAddress": "fa:16:3e:00:00:01"}]}
TWO_STACKS = {
    "machineNetwork": [{"cidr": "fd00::/64"}, {"cidr": "10.0.0.0/16"}],
    "clusterNetwork": [{"cidr": "fd01::/48", "hostPrefix": 64}, {"cidr": "10.128.0.0/14", "hostPrefix": 23}],
    "serviceNetwork": ["fd02::/112", "172.30.0.0/16"],
}


def config(folder: Path, **changed: Any) -> Path:
    path = folder / "install-config.yaml"
    path.write_text(yaml.safe_dump(WHOLE | changed))
    return path


def found(verdict: Verdict) -> set[tuple[str, str]]:
    return {(each.code, each.where) for each in verdict.findings}


@pytest.mark.parametrize("platform", [{"none": {}}, {"external": {"platformName": "lab"}}, {"None": {}}])
@pytest.mark.parametrize("release", ["4.14", "4.18", "5.0"])
def test_a_file_that_the_installer_accepts(tmp_path: Path, platform: dict[str, Any], release: str) -> None:
    verdict = check_file(config(tmp_path, platform=platform), release)
    assert not verdict.findings
    assert verdict.data()["cloud"] is None


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"platform": {"external": {"cloudControllerManager": "Yes"}}}, "platform.external.cloudControllerManager"),
        ({"platform": {"external": {"platformName": "oci"}}}, "platform.external.cloudControllerManager"),
        (
            {"controlPlane": {"name": "master", "platform": {"openstack": {"type": "m"}}}},
            "controlPlane.platform.openstack",
        ),
        ({"networking": {"machineNetwork": [{"cidr": "10.128.0.0/16"}]}}, "networking.machineNetwork"),
        ({"networking": TWO_STACKS}, "networking.machineNetwork"),
        ({"credentialsMode": "Manual"}, "credentialsMode"),
        ({"capabilities": {"baselineCapabilitySet": "None"}}, "capabilities.additionalEnabledCapabilities"),
        ({"publish": "Internal"}, "publish"),
    ],
)
def test_what_the_installer_refuses(tmp_path: Path, changed: dict[str, Any], where: str) -> None:
    verdict = check_file(config(tmp_path, **changed), "4.18")
    assert where in {each.where for each in verdict.findings}
    assert verdict.errors


@pytest.mark.parametrize(
    ("platform", "capabilities"),
    [
        ({"none": {}}, ["Ingress"]),
        ({"external": {}}, ["Ingress", "CloudCredential"]),
        (
            {"external": {"cloudControllerManager": "External"}},
            ["Ingress", "CloudCredential", "CloudControllerManager"],
        ),
    ],
)
def test_capabilities_that_a_platform_needs(tmp_path: Path, platform: dict[str, Any], capabilities: list[str]) -> None:
    def errors(*names: str) -> int:
        chosen = {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": [*names]}
        return check_file(config(tmp_path, platform=platform, capabilities=chosen), "4.18").errors

    assert errors(*capabilities) == 0
    assert errors(*capabilities[:-1]) == 1


def test_the_names_must_resolve_and_no_cloud_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.4 api.dev.example.com\n")
    verdict = preflight(config(tmp_path), "4.18", hosts=hosts)
    assert {(each.status.value, each.where) for each in verdict.findings} == {
        ("warning", "names: api-int.dev.example.com"),
        ("warning", "names: console-openshift-console.apps.dev.example.com"),
    }
    hosts.write_text("")
    assert preflight(config(tmp_path), "4.18", hosts=hosts).errors == 1


# --- the agent-based installer ------------------------------------------------------------


def static(*addresses: str) -> dict[str, Any]:
    """Return the configuration of a network with static addresses, as nmstate reads it."""
    ipv4 = {"enabled": True, "address": [{"ip": each, "prefix-length": 24} for each in addresses]}
    return {"interfaces": [{"name": "eth0", "type": "ethernet", "ipv4": ipv4}]}


def port(mac: str, name: str = "eth0") -> dict[str, str]:
    return {"name": name, "macAddress": mac}


URLS = ("files.example.com", "http://a/%zz", "http://[::1", "http://a:x/", "http://a b", "//a", "1:x")
FIRST = "hosts[0].interfaces[0]"
MACS = ("", "x", "fb:16:3e:00:00:01", "fa:16:3e:00:00", "fa163e000001", "fa:16:3e:00:00:01:02:03")


def agent(folder: Path, **changed: Any) -> None:
    document = {"apiVersion": "v1beta1", "kind": "AgentConfig", "metadata": {"name": "dev"}, "rendezvousIP": "10.0.0.9"}
    (folder / "agent-config.yaml").write_text(yaml.safe_dump(document | changed))


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"kind": "Agent"}, "kind"),
        ({"rendezvousIP": "10.0.0.300"}, "rendezvousIP"),
        ({"hosts": {}}, "hosts"),
        ({"hosts": [HOST | {"role": "control"}]}, "hosts[0].role"),
        ({"hosts": [HOST | {"role": "worker", "networkConfig": static("10.0.0.9")}]}, "hosts[0].role"),
        ({"hosts": [{"role": "master"}]}, "hosts[0].interfaces"),
        ({"hosts": [HOST | {"interfaces": [{"name": "eth0"}]}]}, "hosts[0].interfaces[0].macAddress"),
        ({"hosts": [HOST, HOST]}, "hosts[1].interfaces[0].macAddress"),
        *(({"hosts": [HOST | {"interfaces": [{"macAddress": each}]}]}, f"{FIRST}.macAddress") for each in MACS),
        (
            {
                "hosts": [
                    HOST
                    | {"interfaces": [port("fa:16:3e:00:00:01", "a"), port("fa:16:3e:00:00:02", "a")]}
                    | {"networkConfig": static("10.0.0.9")}
                ]
            },
            "hosts[0].interfaces",
        ),
        (
            {"hosts": [HOST | {"interfaces": [port("fa-16-3e-00-00-01")], "networkConfig": static("10.0.0.9")}]},
            f"{FIRST}.macAddress",
        ),
        ({"hosts": [HOST | {"networkConfig": "x"}]}, "hosts[0].networkConfig"),
        ({"hosts": [HOST | {"networkConfig": static("10.0.0.8")}]}, "rendezvousIP"),
        ({"rendezvousIP": None}, "rendezvousIP"),
        ({"rendezvousIP": None, "hosts": [HOST | {"networkConfig": static("x")}]}, "rendezvousIP"),
        ({"rendezvousIP": "fe80::1%eth0"}, "rendezvousIP"),
        ({"rendezvousIP": ["10.0.0.9"]}, "rendezvousIP"),
        ({"rendevousIP": "10.0.0.9"}, "rendevousIP"),
        ({"apiVersion": "v1"}, "apiVersion"),
        ({"apiVersion": None}, "apiVersion"),
        ({"metadata": {"name": "dev", "title": "x"}}, "metadata.title"),
        ({"minimalISO": "true"}, "minimalISO"),
        *(({"bootArtifactsBaseURL": each}, "bootArtifactsBaseURL") for each in URLS),
        *(
            ({"additionalNTPSources": ["a.b", each]}, "additionalNTPSources[1]")
            for each in ("a_b", "A.b", "", "http://a")
        ),
        ({"additionalNTPSources": "a.b"}, "additionalNTPSources"),
        *(
            ({"hosts": [HOST | {"rootDeviceHints": each}]}, f"hosts[0].rootDeviceHints.{next(iter(each))}")
            for each in (
                {"deviceName": "sda"},
                {"deviceName": "/dev/disk/by-id/x"},
                {"wwnWithExtension": "x"},
                {"minSizeGigabytes": "10"},
                {"size": 10},
                {"rotational": "no"},
            )
        ),
        ({"hosts": [HOST | {"bmc": {"user": "x"}}]}, "hosts[0].bmc.user"),
        ({"hosts": [dict(HOST, interfaces=[port(f"fa:16:3e:00:00:0{n}")]) for n in range(4)]}, "hosts"),
        ({"hosts": ["x"]}, "hosts[0]"),
    ],
)
def test_what_the_agent_based_installer_refuses(tmp_path: Path, changed: dict[str, Any], where: str) -> None:
    agent(tmp_path, **({"hosts": [HOST]} | changed))
    (mistake,) = check_file(config(tmp_path), "4.18").findings
    assert mistake.code == "agent-config.invalid"
    assert mistake.where.endswith(f": {where}")


def test_hosts_that_it_accepts(tmp_path: Path) -> None:
    agent(tmp_path, hosts=[HOST, {"interfaces": [{"name": "a", "macAddress": "FA:16:3E:00:00:02"}]}])
    assert not check_file(config(tmp_path), "4.18").findings


@pytest.mark.parametrize(
    "changed",
    [
        {"rendezvousIP": None, "hosts": [HOST | {"role": "worker", "networkConfig": static("10.0.0.7")}]},
        {"rendezvousIP": None, "RENDEZVOUSIP": "fd00::9", "apiVersion": "v1alpha1", "minimalISO": True},
        {"additionalNTPSources": ["10.0.0.1", "fd00::1", "a.b.", 5], "bootArtifactsBaseURL": "http://[fd00::1]:80/x"},
        {"hosts": [HOST | {"rootDeviceHints": {"DeviceName": "/dev/disk/by-path/x", "minSizeGigabytes": 9}}]},
        {"hosts": [HOST | {"interfaces": [port("fa16.3e00.0001")], "bmc": {"address": "x"}, "role": ""}]},
    ],
)
def test_what_it_accepts(tmp_path: Path, changed: dict[str, Any]) -> None:
    agent(tmp_path, **changed)
    assert not check_file(config(tmp_path), "4.18").findings


@pytest.mark.parametrize(
    ("release", "changed", "where"),
    [
        ("4.17", {"minimalISO": True}, "minimalISO"),
        ("4.14", {"hosts": [HOST | {"BMC": {}}]}, "hosts[0].BMC"),
        ("4.13", {"bootArtifactsBaseURL": "http://a"}, "bootArtifactsBaseURL"),
        ("4.19", {"hosts": [HOST | {"role": "arbiter"}]}, "hosts[0].role"),
        ("4.15", {"hosts": [HOST | {"role": "worker", "networkConfig": {"dns": "10.0.0.9"}}]}, "hosts[0].role"),
        ("4.16", {"hosts": [HOST | {"role": "worker", "networkConfig": {"dns": "10.0.0.9"}}]}, None),
        ("4.20", {"hosts": [HOST | {"role": "arbiter"}]}, None),
        ("4.17", {"hosts": [HOST | {"interfaces": [port("fa-16-3e-00-00-01")], "networkConfig": {}}]}, None),
    ],
)
def test_what_depends_on_the_release(tmp_path: Path, release: str, changed: dict[str, Any], where: str | None) -> None:
    agent(tmp_path, **changed)
    one = {"controlPlane": {"name": "master", "replicas": 1}, "compute": [{"name": "worker", "replicas": 0}]}
    given = config(tmp_path, **(one if release == "4.13" else {}))
    places = [each.where.rpartition(": ")[2] for each in check_file(given, release).findings]
    assert places == ([where] if where else [])


@pytest.mark.parametrize(
    ("masters", "workers", "where", "release"),
    [
        (1, 0, None, "4.18"),
        (1, 1, "compute", "4.18"),
        (2, 0, "controlPlane.replicas", "4.18"),
        (5, 2, None, "4.18"),
        (5, 2, "controlPlane.replicas", "4.17"),
        (3, 2, "controlPlane.replicas", "4.13"),
        (6, 2, "controlPlane.replicas", "4.18"),
        (0, 0, "controlPlane.replicas", "4.18"),
    ],
)
def test_numbers_of_machines(tmp_path: Path, masters: int, workers: int, where: str | None, release: str) -> None:
    agent(tmp_path)
    pools = {
        "controlPlane": {"name": "master", "replicas": masters},
        "compute": [{"name": "worker", "replicas": workers}],
    }
    assert found(check_file(config(tmp_path, **pools), release)) == (
        {("install-config.refused", where)} if where else set()
    )


@pytest.mark.parametrize(
    ("changed", "where", "release"),
    [
        ({"networking": {"networkType": "Calico"}}, "networking.networkType", "4.18"),
        ({"featureSet": "TechPreviewNoUpgrade"}, "featureSet", "4.18"),
        ({"featureSet": "TechPreviewNoUpgrade"}, None, "5.0"),
    ],
)
def test_a_cluster_of_one_machine(tmp_path: Path, changed: dict[str, Any], where: str | None, release: str) -> None:
    agent(tmp_path)
    one = {"controlPlane": {"name": "master", "replicas": 1}, "compute": [{"name": "worker", "replicas": 0}]}
    places = {
        each.where
        for each in check_file(config(tmp_path, **one, **changed), release).findings
        if each.status == "error"
    }
    assert places == ({where} if where else set())


def test_its_file_beside_an_install_config_for_openstack(tmp_path: Path) -> None:
    agent(tmp_path)
    platform = {"openstack": {"cloud": "lab", "externalNetwork": "external", "defaultMachinePlatform": {"type": "m"}}}
    verdict = check_file(config(tmp_path, platform=platform), "4.18")
    assert found(verdict) == {("agent-config.other-platform", "platform.openstack")}
    assert verdict.warnings == 1


def test_several_platforms_are_none(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        check_file(config(tmp_path, platform={"none": {}, "external": {}}), "4.18")
