"""Two of one name with our ownership tag, as concurrent or killed runs leave them, on the real services."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, twin
from openstack_prep.core.model import Action, Resource, Step
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.image import image_upload
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.verbs import api
from openstack_prep.verbs.opening import open_run
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import connect
from tests.functional.lab import Lab

NETWORK = Network(name="net")
NODES = Subnet(name="nodes", network="net", cidr="10.0.0.0/24")
ROUTER = Router(name="out", external_network="external", interfaces=("nodes",))
POOL = AddressPool(name="lb", subnet="nodes", addresses=("10.0.0.240-10.0.0.241",))
GROUP = SecurityGroup(name="web", rules=(SecurityGroupRule(protocol="tcp", ports="443"),))
ADDRESS = FloatingIP(name="api", external_network="external")
SPREAD = ServerGroup(name="masters", policy="soft-anti-affinity")


@pytest.fixture(autouse=True)
def old_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is at work on a twin that a test made by hand: it need not be left to its run for a while."""
    monkeypatch.setattr(twin, "WAIT", 2.0)


@pytest.fixture
def image(tmp_path: Any) -> Image:
    path = tmp_path / "disk.qcow2"
    path.write_bytes(qcow2(1))
    return Image(name="disk", source=str(path), disk_format="qcow2")


def twins(plan: Plan) -> dict[str, tuple[Action, str, Step]]:
    """Return what a plan does to twins, by kind."""
    return {step.key.kind: (step.action, step.duplicate_of, step) for step in plan if step.duplicate_of}


def counted(lab: Lab) -> Counter[str]:
    """Return how many there are in the project, by kind and name."""
    network, here = lab.admin.network, {"project_id": lab.project_id}
    found: Counter[str] = Counter(f"network {each.name}" for each in network.networks(**here))
    found.update(f"subnet {each.name}" for each in network.subnets(**here))
    found.update(f"router {each.name}" for each in network.routers(**here))
    found.update(f"group {each.name}" for each in network.security_groups(**here) if each.name != "default")
    found.update("floating IP" for _ in network.ips(**here))
    found.update(f"image {each.name}" for each in lab.admin.image.images(owner=lab.project_id))
    groups = lab.admin.compute.server_groups(all_projects=True)
    found.update(f"server group {each.name}" for each in groups if each.project_id == lab.project_id)
    found.update(each.name or each.device_owner for each in network.ports(**here))
    return found


def second(lab: Lab, *wanted: Resource) -> None:
    """Create everything once more, as a run does that sees nothing of the first."""
    run = api.plan(lab.cloud, lab.spec(*wanted)).run
    assert run is not None
    spec = lab.spec(*wanted)
    order = [each for each in open_run(lab.cloud, spec, 4)[0].resources if each.key.kind not in BASE]
    for each in order:
        run.known[each.key] = _made(each, run)


BASE = {"project", "user", "role_assignment"}


def _made(resource: Any, run: Any) -> Any:
    """Create without the look that follows."""
    alone = run.wave
    run.wave = _Blind()
    try:
        return resource.create(run)
    finally:
        run.wave = alone


class _Blind:
    def write(self, name: Any, write: Any, read: Any) -> Any:
        return write(), []


def test_twins_of_every_kind_go_and_the_older_stay(lab: Lab) -> None:
    """Made by hand as two runs would that never met: network, subnet, router, pool, group, address."""
    all_of_them = (NETWORK, NODES, ROUTER, POOL, GROUP, ADDRESS)
    lab.apply(*all_of_them)
    once = counted(lab)
    second(lab, NETWORK, NODES, ROUTER, GROUP, ADDRESS)
    plan = lab.plan(*all_of_them)
    assert not plan.refusals
    found = twins(plan)
    assert found.keys() == {"network", "router", "security_group", "floating_ip"}
    assert {action for action, _, _ in found.values()} == {Action.DELETE}
    assert "duplicate_of" in str(plan.data())
    lab.apply(*all_of_them)
    assert counted(lab) == once


def test_destroy_removes_both(lab: Lab) -> None:
    all_of_them = (NETWORK, NODES, ROUTER, GROUP, ADDRESS)
    lab.apply(*all_of_them)
    second(lab, *all_of_them)
    lab.destroy()
    assert lab.admin.identity.find_project(lab.name) is None


def test_a_foreign_namesake_is_left_alone(lab: Lab) -> None:
    lab.apply(NETWORK, GROUP)
    here = {"project_id": lab.project_id}
    network = lab.admin.network.create_network(name="net", **here)
    group = lab.admin.network.create_security_group(name="web", **here)
    assert not lab.plan(NETWORK, GROUP)
    assert lab.admin.network.get_network(network).id == network.id
    lab.admin.network.delete_network(network)
    lab.admin.network.delete_security_group(group)


def test_of_two_server_groups_alike_none_is_deleted(lab: Lab) -> None:
    """They have no ownership tag: somebody else may have created one of them."""
    lab.apply(SPREAD)
    second(lab, SPREAD)
    assert twins(lab.plan(SPREAD))["server_group"][0] is Action.KEEP
    lab.apply(SPREAD)
    lab.destroy(SPREAD)
    assert counted(lab)["server group masters"] == 2
    for each in lab.admin.compute.server_groups(all_projects=True):
        if each.project_id == lab.project_id:
            lab.admin.compute.delete_server_group(each)


def test_a_twin_in_use_is_kept_and_its_users_are_named(lab: Lab) -> None:
    """Both have ports of others: nothing in use is lost.  When one is free, that one goes, although it is older."""
    lab.apply(NETWORK, NODES)
    second(lab, NETWORK, NODES)
    here = {"project_id": lab.project_id}
    older, younger = sorted(lab.admin.network.networks(**here), key=lambda each: (each.created_at, each.id))
    port = lab.admin.network.create_port(network_id=younger.id, name="theirs", **here)
    other = lab.admin.network.create_port(network_id=older.id, name="others", **here)
    action, kept, step = twins(lab.plan(NETWORK, NODES))["network"]
    assert (action, kept) == (Action.KEEP, older.id)
    assert "port theirs" in step.reason
    assert not lab.plan(NETWORK, NODES)
    lab.admin.network.delete_port(other)
    lab.apply(NETWORK, NODES)
    assert [each.id for each in lab.admin.network.networks(**here)] == [younger.id]
    lab.admin.network.delete_port(port)


def test_a_twin_of_an_image_goes(lab: Lab, image: Image) -> None:
    lab.apply(image)
    (made,) = lab.admin.image.images(owner=lab.project_id)
    time.sleep(1.1)  # Glance dates by the second; of two with one date the lower id stays
    spec = lab.spec(image)
    run = api.plan(lab.cloud, spec).run
    assert run is not None
    (declared,) = (each for each in spec.resources if isinstance(each, Image))
    raw = image_upload.upload(declared, run, "disk")
    assert twins(lab.plan(image))["image"][:2] == (Action.DELETE, made.id)
    lab.apply(image)
    assert [each.id for each in lab.admin.image.images(owner=lab.project_id)] == [made.id]
    assert raw.id != made.id


def race(lab: Lab, racers: int, *wanted: Resource) -> list[Report]:
    """Plan several times, then carry these plans out at once, as runs do that can have no lease."""
    plans = [
        api.plan(Cloud(connect(lab.devcloud.clouds_file, "devcloud-admin")), lab.spec(*wanted)) for _ in range(racers)
    ]
    with ThreadPoolExecutor(racers) as pool:
        return list(pool.map(lambda made: executor.execute(made, made.run), plans))


@pytest.mark.parametrize("racers", [2, pytest.param(4, marks=pytest.mark.more)])
def test_runs_without_a_lease_leave_one_of_everything(lab: Lab, image: Image, racers: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(twin, "WAIT", 10.0)
    wanted = (NETWORK, NODES, ROUTER, POOL, GROUP, ADDRESS, SPREAD, image)
    lab.apply()
    reports = race(lab, racers, *wanted)
    assert len(reports) == racers
    for report in reports:
        report.raise_for_failures()
    assert set(counted(lab).values()) == {1}
    assert not lab.plan(*wanted)


@pytest.fixture
def slow(devcloud: Devcloud) -> Iterator[None]:
    with devcloud.faults(Fault("neutron", method="POST", path_regex="/networks$", delay=3.0)):
        yield


def test_what_a_killed_run_has_asked_for_is_met(lab: Lab, slow: None) -> None:
    """The first request for a network takes three seconds; a run that begins meanwhile ends with just one."""
    lab.apply()
    run = api.plan(lab.cloud, lab.spec(NETWORK)).run
    late = threading.Thread(target=lambda: _made(lab.spec(NETWORK).resources[-1], run))
    late.start()
    threading.Event().wait(0.5)
    report = lab.run(NETWORK)
    late.join()
    report.raise_for_failures()
    lab.apply(NETWORK)
    assert counted(lab)["network net"] == 1
