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
        ({"hosts": [HOST | {"role": "worker", "networkConfig": {"ip": "10.0.0.9"}}]}, "hosts[0].role"),
        ({"hosts": [{"role": "master"}]}, "hosts[0].interfaces"),
        ({"hosts": [HOST | {"interfaces": [{"name": "eth0"}]}]}, "hosts[0].interfaces[0].macAddress"),
        ({"hosts": [HOST, HOST]}, "hosts[1].interfaces[0].macAddress"),
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
    ("masters", "workers", "where"),
    [
        (1, 0, None),
        (1, 1, "compute"),
        (2, 0, "controlPlane.replicas"),
        (5, 2, None),
        (6, 2, "controlPlane.replicas"),
        (0, 0, "controlPlane.replicas"),
    ],
)
def test_numbers_of_machines(tmp_path: Path, masters: int, workers: int, where: str | None) -> None:
    agent(tmp_path)
    pools = {
        "controlPlane": {"name": "master", "replicas": masters},
        "compute": [{"name": "worker", "replicas": workers}],
    }
    assert found(check_file(config(tmp_path, **pools), "4.18")) == (
        {("install-config.refused", where)} if where else set()
    )


def test_its_file_beside_an_install_config_for_openstack(tmp_path: Path) -> None:
    agent(tmp_path)
    platform = {"openstack": {"cloud": "lab", "externalNetwork": "external", "defaultMachinePlatform": {"type": "m"}}}
    verdict = check_file(config(tmp_path, platform=platform), "4.18")
    assert found(verdict) == {("agent-config.other-platform", "platform.openstack")}
    assert verdict.warnings == 1


def test_several_platforms_are_none(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        check_file(config(tmp_path, platform={"none": {}, "external": {}}), "4.18")
