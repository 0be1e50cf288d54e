"""Room for the machines of a cluster, as Placement shows it to administrators."""

from __future__ import annotations

from typing import Any

from openstack_prep.openshift.check.capacity.machines import hosts
from openstack_prep.openshift.install_config import Machines
from tests.unit.openshift.check.project import NOVA, Project, list_services

URL = "http://placement"
NAMES = ("VCPU", "MEMORY_MB")


def with_hosts(project: Project, *free: tuple[int, int], role: str = "admin") -> None:
    """Put Placement into the catalogue, with hosts that have so many processors and MiB."""
    endpoint = {"id": "p", "interface": "public", "region": "one", "region_id": "one", "url": URL}
    placement = {"id": "p", "type": "placement", "name": "placement", "endpoints": [endpoint]}
    project.login(roles=(role,), catalog=[*list_services(), placement])
    version: dict[str, Any] = {"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT"}
    links = [{"rel": "self", "href": ""}]
    project.services.get(URL, json={"versions": [version | {"links": links}]})
    summaries = {
        f"host{number}": {
            "root_provider_uuid": f"host{number}",
            "resources": {name: {"capacity": most, "used": 0} for name, most in zip(NAMES, room, strict=True)},
        }
        for number, room in enumerate(free)
    }

    def answer(request: Any, _: Any) -> dict[str, Any]:
        if request.qs["resources"] == ["pcpu:1"]:
            return {"allocation_requests": [], "provider_summaries": {}}
        pairs = (each.split(":") for each in request.qs["resources"][0].upper().split(","))
        wanted = {name: int(number) for name, number in pairs if name in NAMES}
        requests = [{"allocations": {host: {"resources": wanted}}} for host in summaries]
        return {"allocation_requests": requests, "provider_summaries": summaries}

    project.services.get(f"{URL}/allocation_candidates", json=answer)


def test_enough_for_masters_workers_and_bootstrap(project: Project) -> None:
    with_hosts(project, (16, 65536), (6, 24576))  # four like a master, and two or three workers
    (found,) = project.findings(hosts)
    assert (found.code, found.status) == ("capacity.short", "error")
    with_hosts(project, *[(64, 262144)] * 3)
    assert project.findings(hosts) == []


def test_strict_groups_need_as_many_hosts(project: Project) -> None:
    machines = Machines(flavor="master", server_group_policy="anti-affinity")
    with_hosts(project, *[(64, 262144)] * 2)
    assert [each.code for each in project.findings(hosts, machines=machines)] == ["capacity.short"]
    with_hosts(project, *[(64, 262144)] * 3)
    assert project.findings(hosts, machines=machines) == []


def test_zones_take_the_machines_in_turn(project: Project) -> None:
    rows = [{"availability_zone": name, "uuid": name} for name in ("az1", "az2")]
    project.services.get(f"{NOVA}/os-aggregates", json={"aggregates": rows})
    with_hosts(project)
    found = project.findings(hosts, machines=Machines(flavor="master", zones=("az1", "az2")))
    assert len(found) == 2  # everything is of one flavor, in two zones


def test_a_placement_that_fails_is_said_without_an_error(project: Project) -> None:
    """The installer asks it nothing."""
    with_hosts(project)
    project.services.get(f"{URL}/allocation_candidates", status_code=503)
    (found,) = project.findings(hosts)
    assert (found.code, found.status) == ("cloud.failed", "unknown")


def test_without_the_right_nothing_is_asked(project: Project) -> None:
    with_hosts(project, role="member")
    assert project.findings(hosts) == []
