"""What a real Neutron seldom says of pools, and the exact requests; the rest is tested on one."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Context
from openstack_prep.core.plan import Action, Plan, Report
from openstack_prep.core.text import observed_table
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.orchestration.existing import Existing
from openstack_prep.resources.orchestration.stack import Stack
from tests.unit.conftest import ENDPOINTS, failure, port_row
from tests.unit.texts import Wording, contains

NEUTRON = ENDPOINTS["network"] + "/v2.0"
HEAT = "http://heat/v1/admin-project"
SUBNET = {
    "id": "s1",
    "name": "nodes",
    "network_id": "n1",
    "cidr": "10.0.0.0/24",
    "gateway_ip": "10.0.0.1",
    "description": "",
    "dns_nameservers": [],
    "host_routes": [],
    "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.254"}],
    "ipv6_address_mode": None,
    "revision_number": 1,
}
POOL = AddressPool(name="lb", subnet="nodes", addresses=("10.0.0.100-10.0.0.219",))


class Neutron:
    """A subnet, and ports that are made in bulk."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.ports: list[dict[str, Any]] = []
        self.bulks: list[int] = []
        self.numbers = itertools.count()
        services.get(f"{NEUTRON}/ports", json=lambda *_: {"ports": [port_row(**each) for each in self.ports]})
        services.get(f"{NEUTRON}/subnets", json={"subnets": [SUBNET]})
        services.post(f"{NEUTRON}/ports", json=self.make, status_code=201)
        services.get(re.compile(f"{NEUTRON}/quotas/.*"), **failure(403))

    def make(self, request: Any, _: Any) -> dict[str, Any]:
        bodies = request.json()["ports"]
        self.bulks.append(len(bodies))
        made = [each | {"id": f"p{next(self.numbers)}", "revision_number": 1, "device_id": ""} for each in bodies]
        self.ports += made
        return {"ports": [port_row(**each) for each in made]}


@pytest.fixture
def neutron(services: requests_mock.Mocker) -> Neutron:
    return Neutron(services)


def plan(run: CloudRun, wanted: AddressPool = POOL) -> Plan:
    observed, mistakes = observation.examine(run, [wanted])
    return planner.plan_apply("lab", [wanted], observed, mistakes=mistakes)


def apply(run: CloudRun, wanted: AddressPool = POOL) -> Report:
    made = plan(run, wanted)
    made.raise_for_refusals()
    return executor.execute(made, run)


def test_ports_are_made_some_at_a_time_with_all_that_tells_whose_they_are(run: CloudRun, neutron: Neutron) -> None:
    """The quota is not shown to us: then Neutron's own word stands."""
    apply(run).raise_for_failures()
    assert neutron.bulks == [50, 50, 20]
    assert neutron.ports[0] == {
        "id": "p0",
        "revision_number": 1,
        "device_id": "",
        "network_id": "n1",
        "name": "lb-10.0.0.100",
        "description": "[openstack-prep:lab/lb]",
        "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.100"}],
        "admin_state_up": False,
        "security_groups": [],
        "device_owner": "openstack-prep:reserved",
    }
    assert not plan(run.fresh())


def test_a_subnet_found_by_its_name_alone_does_not_do_for_a_pool(run: CloudRun, neutron: Neutron) -> None:
    """A stack looks for the subnet of its parameter first."""
    assert run.look(Existing(of="subnet", name=POOL.subnet)) is not None
    apply(run).raise_for_failures()
    assert len(neutron.ports) == 120


def test_a_pool_is_made_beside_a_stack_whose_parameter_names_its_subnet(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron, tmp_path: Path
) -> None:
    template = tmp_path / "stack.yaml"
    parameter = "{type: string, constraints: [{custom_constraint: neutron.subnet}]}"
    template.write_text(f"heat_template_version: wallaby\nparameters: {{subnet: {parameter}}}\nresources: {{}}\n")
    services.get(f"{HEAT}/stacks", json={"stacks": []})
    services.post(f"{HEAT}/stacks/preview", json={"stack": {"resources": []}})
    services.get(re.compile("http://nova/v2.1/flavors.*"), json={"flavors": []})
    stack = Stack(name="s", template=str(template), parameters={"subnet": POOL.subnet})
    observed, mistakes = observation.examine(run, [POOL, stack])
    run.known.update(observed)
    assert not mistakes
    executor.execute(planner.plan_apply("lab", [POOL], observed), run).raise_for_failures()
    assert len(neutron.ports) == 120


def test_a_pool_that_is_too_big_is_not_counted(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    """Counting 2^64 addresses one by one would never end."""
    big = AddressPool(name="big", subnet="none", addresses=("10.0.0.0/16",))
    assert big.quota_need(run, None) == {"ports": 0}
    assert POOL.quota_need(run, None) == {"ports": 120}
    (mistake,) = big.list_mistakes(Context(resources=[POOL, big], cloud=run.admin))
    wording(mistake.what)


def test_a_bulk_that_fails_leaves_the_rest_to_be_made(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    """A 503 is looked at again, and only what is missing is asked for."""
    answers = iter([{"json": neutron.make}, failure(503), failure(503)])

    def answer(request: Any, context: Any) -> Any:
        given = next(answers, {"json": neutron.make})
        context.status_code = given.get("status_code", 201)
        return given["json"](request, context) if callable(given["json"]) else given["json"]

    services.post(f"{NEUTRON}/ports", json=answer)
    apply(run).raise_for_failures()
    assert neutron.bulks == [50, 50, 20]
    assert len({port["name"] for port in neutron.ports}) == len(neutron.ports) == 120


def test_who_may_not_choose_addresses_is_told_what_else_there_is(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker, wording: Wording
) -> None:
    services.post(f"{NEUTRON}/ports", **failure(403, "rule:create_port:fixed_ips is disallowed by policy"))
    (failed,) = apply(run).failed
    assert failed.error.code == "access.denied"
    wording(str(failed.error))


def test_who_took_a_port_meanwhile_keeps_it(run: CloudRun, neutron: Neutron, services: requests_mock.Mocker) -> None:
    """It is deleted only as it was when we looked: after a 412 we look again."""
    one = AddressPool(name="lb", subnet="nodes", addresses=("10.0.0.100",))
    apply(run, one).raise_for_failures()
    now = run.fresh()
    made = planner.plan_destroy("lab", [one], observation.observe(now, [one]))

    def refuse(request: Any, context: Any) -> Any:
        assert request.headers["If-Match"] == "revision_number=1"
        neutron.ports[0] |= {"device_id": "server", "device_owner": "compute:nova", "revision_number": 2}
        return failure(412)["json"]

    services.delete(f"{NEUTRON}/ports/p0", json=refuse, status_code=412)
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": []})
    services.get(f"{NEUTRON}/ports/p0", json=lambda *_: {"port": port_row(**neutron.ports[0])})
    (failed,) = executor.execute(made, now).failed
    assert failed.error.code == "plan.refused"
    assert contains(str(failed.error), "lb-10.0.0.100 p0", "server (compute:nova")


def test_a_copy_of_a_port_is_not_the_pools(run: CloudRun, neutron: Neutron) -> None:
    one = AddressPool(name="lb", subnet="nodes", addresses=("10.0.0.100",))
    apply(run, one).raise_for_failures()
    fixed = [{**neutron.ports[0]["fixed_ips"][0], "ip_address": "10.0.0.200"}]
    neutron.ports.append({**neutron.ports[0], "id": "copy", "fixed_ips": fixed})
    assert [port.id for port in one.kept(run.fresh())] == ["p0"]


def test_destroy_says_that_a_pool_outside_the_allocation_pools_has_no_ports(
    run: CloudRun, neutron: Neutron, wording: Wording
) -> None:
    outside = replace(POOL, reserve="outside")
    observed, _ = observation.examine(run, [outside])
    (step,) = planner.plan_destroy("lab", [outside], observed).steps
    assert step.action == Action.KEEP
    wording(step.reason)
    wording(observed_table(observed))
