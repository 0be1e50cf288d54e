"""Machines of a services machine's cluster claim their addresses and MAC addresses in a pool file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.plan import Plan, Report
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.spec.spec import Spec, load_spec
from openstack_prep.verbs import scan
from tests.unit.conftest import ENDPOINTS, port_row
from tests.unit.texts import contains

FILES = [
    {"name": "out", "path": "out.yaml", "cidr": "192.0.2.0/24", "addresses": ["192.0.2.150-192.0.2.160"]},
    {"name": "in", "path": "in.yaml", "cidr": "10.0.0.0/24", "addresses": ["10.0.0.1-10.0.0.200"]},
]
HOST: dict[str, Any] = {
    "domain": "okd.example.com",
    "network": "10.0.0.0/24",
    "address": "10.0.0.100",
    "pool": "in",
    "external": {"nic": "eno1", "gateway": "192.0.2.254", "prefix_length": 24},
    "masters": {"count": 3, "first_address": "10.0.0.1"},
    "workers": {"count": 2, "first_address": "10.0.0.4", "macs": ["52:54:00:61:22:5a", "52:54:00:21:fd:fd"]},
    "kubeinit": {},
}
EXPOSURE = {"name": "okd", "cluster": "okd", "how": "service-host", "target": {"host": "okd-service-01"}}
EXPOSURE |= {"pool": "out", "ports": [{"port": 6443}]}


def loaded(folder: Path, files: list[dict[str, Any]] = FILES, **changed: Any) -> Spec:
    cluster = {"name": "okd", "directory": "okd", "service_host": HOST | changed}
    spec = {"name": "lab", "pool_files": files, "exposures": [EXPOSURE], "exposed_clusters": [cluster]}
    (folder / "s.yaml").write_text(yaml.safe_dump(spec))
    return load_spec(folder / "s.yaml")


@pytest.fixture
def ports(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """The ports of the project."""
    found: list[dict[str, Any]] = []
    services.get(ENDPOINTS["network"] + "/v2.0/ports", json=lambda *_: {"ports": found})
    return found


def plan(run: CloudRun, spec: Spec) -> tuple[Plan, Spec]:
    refuse_mistakes(spec)
    spec = resolve_spec(spec, run.admin, for_apply=True)
    observed, mistakes = observation.examine(run, spec.resources)
    return planner.plan_apply("lab", spec.resources, observed, mistakes=mistakes), spec


def apply(run: CloudRun, spec: Spec) -> Report:
    run = CloudRun(run.admin, run.ownership, homes=[None])
    report = executor.execute(plan(run, spec)[0], run)
    report.raise_for_failures()
    return report


def claims(folder: Path) -> dict[str, dict[str, str]]:
    found = yaml.safe_load((folder / "in.yaml").read_text())["claims"]
    return {name.removeprefix("lab/okd."): each for name, each in found.items()}


def macs(folder: Path) -> dict[str, str]:
    """Return the MAC addresses of the inventory by machine."""
    return dict(re.findall(r"^(\S+) .* mac=(\S+)", (folder / "okd" / "inventory").read_text(), flags=re.MULTILINE))


def test_machines_have_the_mac_addresses_of_the_register(
    run: CloudRun, ports: list[dict[str, Any]], tmp_path: Path
) -> None:
    apply(run, loaded(tmp_path))
    found = claims(tmp_path)
    masters = [f"okd-master-0{each}" for each in (1, 2, 3)]
    assert sorted(found) == [*masters, "okd-service-01", "okd-worker-01", "okd-worker-02"]
    assert found["okd-service-01"]["address"] == "10.0.0.100"
    assert found["okd-worker-02"] == {"address": "10.0.0.5"}
    given = {"okd-worker-01": "52:54:00:61:22:5a", "okd-worker-02": "52:54:00:21:fd:fd"}
    first = macs(tmp_path)
    assert first == {name: each["mac"] for name, each in found.items() if "mac" in each} | given
    assert len(set(first.values())) == 6
    again, _ = plan(CloudRun(run.admin, run.ownership, homes=[None]), loaded(tmp_path))
    assert not again
    (tmp_path / "okd" / "inventory").unlink()
    apply(run, loaded(tmp_path))
    assert macs(tmp_path) == first


def test_claims_of_former_machines_are_released(run: CloudRun, ports: list[dict[str, Any]], tmp_path: Path) -> None:
    apply(run, loaded(tmp_path))
    before = claims(tmp_path)
    apply(run, loaded(tmp_path, workers=None, masters={"count": 1, "first_address": "10.0.0.7"}))
    after = claims(tmp_path)
    assert sorted(after) == ["okd-master-01", "okd-service-01"]
    assert after["okd-master-01"] == {"address": "10.0.0.7", "mac": before["okd-master-01"]["mac"]}
    # nothing of a declared cluster is left over; without the cluster, the claims are
    mine = CloudRun(run.admin, run.ownership, homes=[None])
    resources = resolve_spec(
        loaded(tmp_path, masters={"count": 1, "first_address": "10.0.0.7"}), run.admin, for_apply=True
    )
    assert [each.key.name for each, _ in scan._entries(mine, resources.resources)] == ["okd (out)"]
    bare = [each for each in resources.resources if each.kind == "pool_file"]
    names = {each.key.name for each, _ in scan._entries(mine, bare)}
    assert names == {"okd (out)", "okd.okd-master-01 (in)", "okd.okd-service-01 (in)"}


def test_a_mac_address_of_a_port_or_another_file_is_not_given(
    run: CloudRun, ports: list[dict[str, Any]], tmp_path: Path
) -> None:
    apply(run, loaded(tmp_path))
    first = macs(tmp_path)
    text = (tmp_path / "in.yaml").read_text()
    identifier = yaml.safe_load(text)["id"]
    (tmp_path / "in.yaml").write_text(
        re.sub(r"^  lab/.*\n", "", text, flags=re.MULTILINE).replace("claims:\n", "claims: {}\n")
    )
    ports.append(port_row(id="p", mac_address=first["okd-master-01"]))
    outside = (tmp_path / "out.yaml").read_text()
    line = f"  printer: {{address: 192.0.2.160, mac: '{first['okd-master-02']}'}}\n"
    (tmp_path / "out.yaml").write_text(outside + line)
    apply(run, loaded(tmp_path))
    assert yaml.safe_load((tmp_path / "in.yaml").read_text())["id"] == identifier
    second = macs(tmp_path)
    assert second["okd-master-03"] == first["okd-master-03"]
    assert {first["okd-master-01"], first["okd-master-02"]}.isdisjoint(second.values())


def test_an_address_of_somebody_else_is_refused(run: CloudRun, ports: list[dict[str, Any]], tmp_path: Path) -> None:
    apply(run, loaded(tmp_path, masters={"count": 1, "first_address": "10.0.0.1"}, workers=None))
    text = (tmp_path / "in.yaml").read_text()
    (tmp_path / "in.yaml").write_text(text + "  printer: {address: 10.0.0.2}\n")
    made, _ = plan(CloudRun(run.admin, run.ownership, homes=[None]), loaded(tmp_path))
    assert [each.code for each in made.refusals] == [Code.ADDRESS_IN_USE]
    assert made.refusals[0].code == "address.in-use"
    assert contains(made.refusals[0].what, "10.0.0.2", "okd-master-02", "printer")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"pool": "none"}, Code.SPEC_UNRESOLVED),
        ({"pool": "out"}, Code.SPEC_CONTRADICTION),
        ({"address": "10.0.0.201"}, Code.SPEC_CONTRADICTION),
    ],
)
def test_a_pool_that_cannot_have_the_machines(changed: dict[str, Any], code: Code, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        refuse_mistakes(loaded(tmp_path, **changed))
    assert [each.code for each in caught.value.mistakes] == [code]


def test_a_pool_without_mac_addresses(tmp_path: Path) -> None:
    files = [FILES[0], FILES[1] | {"macs": False}]
    with pytest.raises(SpecError, match="has no MAC addresses"):
        refuse_mistakes(loaded(tmp_path, files))


def test_machines_take_the_addresses_of_one_another_and_of_former_ones(
    run: CloudRun, ports: list[dict[str, Any]], tmp_path: Path
) -> None:
    apply(run, loaded(tmp_path))
    before = claims(tmp_path)
    apply(run, loaded(tmp_path, workers=None, masters={"count": 4, "first_address": "10.0.0.2"}))
    after = claims(tmp_path)
    addresses = {f"okd-master-0{each}": f"10.0.0.{each + 1}" for each in (1, 2, 3, 4)}
    assert {name: each["address"] for name, each in after.items()} == addresses | {"okd-service-01": "10.0.0.100"}
    assert all(after[name]["mac"] == before[name]["mac"] for name in addresses if name in before)


def test_clusters_of_two_projects_with_one_name(tmp_path: Path) -> None:
    place = {"name": "okd", "project_domain": "Default"}
    clusters = [place | {"directory": each, "project": each, "service_host": HOST} for each in ("one", "two")]
    spec = {"name": "lab", "pool_files": FILES, "exposed_clusters": clusters}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec))
    with pytest.raises(SpecError) as caught:
        refuse_mistakes(load_spec(tmp_path / "s.yaml"))
    assert [each.code for each in caught.value.mistakes] == [Code.SPEC_CONTRADICTION] * 2
