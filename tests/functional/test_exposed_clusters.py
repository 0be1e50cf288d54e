"""The shipped specs of exposures, from plan to destroy, and what `exposures show` says of each hop."""

from __future__ import annotations

import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.resources.network.port import OWNER
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

SHIPPED = resources.files("openstack_prep.install_configs")
NAMES = (
    *("external-ip", "metallb", "openshift", "service-host"),
    pytest.param("virtual-machines", marks=pytest.mark.more),  # test_virtual_machines.py has the way itself
)
DATA = Path(__file__).parent / "data" / "exposures"
CHANGING = {
    r"(?<=/exposed_cluster%2F)([a-z]+)@[^\]]+": r"\1@HOME",  # the project in the ownership tag
    r"(?m)^([#;]) \S+ [0-9a-f]{12} (?=\[)": r"\1 ",  # a digest of the folder
    r"d2(:[0-9a-f]{2}){5}": "d2:MAC",  # derived from the random id of the pool file
    r"(?<=\( )\d{10}(?= )": "SERIAL",
    r"192\.168\.122\.\d+": "FLOATING",  # the next free one of the external network
}
"""What differs each time."""


def compare(name: str, folder: Path) -> None:
    """Compare the files of a folder with a stored text; OPENSTACK_PREP_STORE=1 writes it anew."""
    text = "".join(f"===== {each.name}\n{each.read_text()}" for each in sorted(folder.iterdir()))
    for pattern, word in CHANGING.items():
        text = re.sub(pattern, word, text)
    if os.environ.get("OPENSTACK_PREP_STORE"):
        DATA.mkdir(parents=True, exist_ok=True)
        (DATA / name).write_text(text)
    assert text == (DATA / name).read_text()


def shown(prep: Prep, code: int = 0) -> dict[str, set[str]]:
    """Return the codes of what is wrong with each exposure; names lead where the written hosts file says."""
    (hosts,) = prep.folder.glob("*-access/hosts")
    out = prep.run("exposures", "show", prep.spec.name, "--hosts", str(hosts), "--format", "json", code=code).stdout
    found = json.loads(out)["exposures"]
    return {each["name"]: {hop["code"] for hop in each["hops"] if hop["status"] != "ok"} for each in found}


def deleted(steps: dict[str, dict[str, Any]]) -> set[str]:
    """Return the kinds of what an apply has deleted."""
    return {key.partition("/")[0] for key, step in steps.items() if step["action"] == "delete"}


@pytest.fixture
def shipped(prep: Prep, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A shipped spec in the folder, whose project's user has a password of the test."""
    spec: dict[str, Any] = yaml.safe_load((SHIPPED / f"exposures-{request.param}.yaml").read_text())
    for user in spec.get("users", ()):
        user["password"] = {"env": "PREP_PASSWORD"}
    prep.write(spec)
    return spec


@pytest.mark.parametrize("shipped", NAMES, indirect=True)
def test_a_shipped_spec_from_plan_to_destroy(prep: Prep, shipped: dict[str, Any]) -> None:
    """Nothing is wrong with any hop after the first apply, except what the cluster itself brings."""
    planned = {key for key, action in prep.plan().items() if action == "create"}
    assert planned <= set(prep.apply())
    assert prep.changes() == set()
    (folder,) = prep.folder.glob("*-access")
    compare(f"exposures-{_name(shipped)}.txt", folder)
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    # a wildcard is no entry of a hosts file, and nobody has installed a cluster that has the floating IPs
    expected = {
        each["name"]: {"dns.missing"} if any("*" in name for name in each.get("names", ())) else set()
        for each in shipped["exposures"]
    }
    if _name(shipped) == "openshift":
        expected = {name: codes | {"floating-ip.detached"} for name, codes in expected.items()}
    assert shown(prep, 1 if any(expected.values()) else 0) == expected
    prep.destroy()
    assert not folder.exists()


def _name(spec: dict[str, Any]) -> str:
    """Return which of the shipped specs it is."""
    names = {"shop": "external-ip", "ocp": "openshift", "okd": "service-host", "machines": "virtual-machines"}
    return names.get(spec["name"], spec["name"])


@pytest.mark.parametrize("shipped", ["external-ip"], indirect=True)
def test_an_exposure_is_pruned_with_its_pool(prep: Prep, shipped: dict[str, Any], devcloud: Devcloud) -> None:
    """Its floating IP is detached and stays, because the spec still declares it; then it goes as well."""
    prep.apply()
    for section in ("exposures", "address_pools", "exposed_clusters"):
        del shipped[section]
    prep.write(shipped)
    project = devcloud.admin.identity.find_project("shop", ignore_missing=False).id
    (before,) = devcloud.admin.network.ips(project_id=project)
    assert prep.changes() == {"security_group_rules/nodes"}  # without --prune the others are only named
    assert deleted(prep.apply("--prune")) >= {"floating_ip_attachment", "exposure", "address_pool"}
    (floating,) = devcloud.admin.network.ips(project_id=project)
    assert (floating.id, floating.port_id) == (before.id, None)
    assert list(devcloud.admin.network.ports(project_id=project, device_owner=OWNER)) == []
    del shipped["floating_ips"]
    prep.write(shipped)
    assert deleted(prep.apply("--prune")) == {"floating_ip"}
    assert prep.changes() == set()


@pytest.mark.parametrize("shipped", ["external-ip"], indirect=True)
def test_a_floating_ip_leaves_its_exposure(prep: Prep, shipped: dict[str, Any], devcloud: Devcloud) -> None:
    """The exposure no longer names it; both go with one apply, and the address stays reserved."""
    prep.apply()
    del shipped["exposures"][0]["floating_ip"], shipped["floating_ips"]
    prep.write(shipped)
    assert deleted(prep.apply("--prune")) >= {"floating_ip_attachment", "floating_ip"}
    project = devcloud.admin.identity.find_project("shop", ignore_missing=False).id
    assert list(devcloud.admin.network.ips(project_id=project)) == []
    assert prep.changes() == set()


@pytest.mark.parametrize("shipped", ["metallb"], indirect=True)
def test_a_broken_hop_is_named_and_the_next_apply_mends_it(
    prep: Prep, shipped: dict[str, Any], devcloud: Devcloud
) -> None:
    """Somebody removes pairs, a rule, the floating IP from its port, and a file; a foreign file is kept."""
    prep.apply()
    neutron = devcloud.admin.network
    project = devcloud.admin.identity.find_project("metallb", ignore_missing=False).id
    (node,) = neutron.ports(project_id=project, name="node1")
    neutron.update_port(node, allowed_address_pairs=[])
    (group,) = neutron.security_groups(project_id=project, name="nodes")
    (rule,) = (each for each in group.security_group_rules if each["port_range_min"] == 443)
    neutron.delete_security_group_rule(rule["id"])
    (floating,) = neutron.ips(project_id=project)
    neutron.update_ip(floating, port_id=None)
    (prep.folder / "metallb-access" / "services.yaml").unlink()
    (prep.folder / "metallb-access" / "mine").write_text("kept")
    pairs, files = {"pairs.missing"}, {"exposure.files-differ"}
    wanted = {"shop": pairs | files | {"security-group.blocks", "floating-ip.detached"}, "metrics": pairs | files}
    assert shown(prep, 1) == wanted
    prep.apply()
    assert shown(prep) == {"shop": set(), "metrics": set()}
    prep.destroy()
    assert [each.name for each in Path(prep.folder / "metallb-access").iterdir()] == ["mine"]


@pytest.mark.parametrize("shipped", ["service-host"], indirect=True)
def test_a_foreign_file_is_refused_and_serials_grow_with_changes_alone(prep: Prep, shipped: dict[str, Any]) -> None:
    folder = prep.folder / "okd-access"
    folder.mkdir()
    (folder / "haproxy.cfg").write_text("somebody's\n")
    assert "haproxy.cfg exists and is not managed by this spec" in prep.run("plan", prep.spec.name, code=2).stderr
    (folder / "haproxy.cfg").unlink()
    planned = prep.run("plan", prep.spec.name, "--format", "json")
    (warning,) = json.loads(planned.stdout)["warnings"]
    assert "exposed_cluster/okd: kubeinit: " in warning
    assert warning in planned.stderr
    prep.apply()
    zone = folder / "okd.example.com.outside.zone"
    first = zone.read_text()
    shipped["exposures"][0]["names"].append("git.okd.example.com")
    prep.write(shipped)
    assert prep.apply()["exposed_cluster/okd"]["action"] == "update"
    second = zone.read_text()
    assert "git IN A 192.0.2.150" in second
    assert _serial(second) > _serial(first)
    zone.unlink()
    prep.apply()
    shipped["exposed_clusters"][0]["directory"] = "moved"
    prep.write(shipped)
    left = f"exposed_cluster/okd ({folder})"
    assert left not in prep.apply()
    assert folder.exists()
    assert left in prep.apply("--prune")
    assert not folder.exists()
    prep.destroy()
    assert not (prep.folder / "moved").exists()


def _serial(zone: str) -> int:
    return int(zone.partition("( ")[2].split()[0])
