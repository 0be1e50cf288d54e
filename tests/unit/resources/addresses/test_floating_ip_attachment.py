from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action
from openstack_prep.core.plan import Plan
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.unit.conftest import ENDPOINTS, connection, port_row, sent
from tests.unit.texts import Wording, contains, expect_error

NEUTRON = ENDPOINTS["network"] + "/v2.0"
PORT = "dev-x7k2p-ingress-port"
TAG = "openshiftClusterID=dev-x7k2p"
INGRESS = FloatingIPAttachment(port=PORT, address="192.0.2.5", tag=TAG)


class Neutron:
    """One floating IP and one port, as Neutron tells them, and what was asked for the former."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        addresses = [{"subnet_id": "s1", "ip_address": "10.0.0.7"}, {"subnet_id": "s2", "ip_address": "fd00::7"}]
        self.ports: list[dict[str, Any]] = [{"id": "p1", "name": PORT, "tags": [TAG], "fixed_ips": addresses}]
        self.ips: list[dict[str, Any]] = [self.ip()]
        services.get(f"{NEUTRON}/ports", json=lambda *_: {"ports": [port_row(**each) for each in self.ports]})
        services.get(f"{NEUTRON}/floatingips", json=lambda *_: {"floatingips": self.ips})
        self.put = services.put(f"{NEUTRON}/floatingips/f1", json=self.change)

    @staticmethod
    def ip(**fields: Any) -> dict[str, Any]:
        return {
            "id": "f1",
            "floating_ip_address": "192.0.2.5",
            "floating_network_id": "n1",
            "description": "Ingress",
            "port_id": None,
            "revision_number": 3,
        } | fields

    def change(self, request: Any, context: Any) -> dict[str, Any]:
        if request.headers["If-Match"] != f"revision_number={self.ips[0]['revision_number']}":
            context.status_code = 412
            return {"NeutronError": {"message": "RevisionNumberConstraintFailed"}}
        self.ips[0] |= request.json()["floatingip"] | {"revision_number": self.ips[0]["revision_number"] + 1}
        return {"floatingip": self.ips[0]}


@pytest.fixture
def neutron(services: requests_mock.Mocker) -> Neutron:
    return Neutron(services)


def plan(run: CloudRun, wanted: FloatingIPAttachment = INGRESS) -> Plan:
    observed, mistakes = observation.examine(run, [wanted])
    return planner.plan_apply("lab", [wanted], observed, mistakes=mistakes)


def refusals(run: CloudRun, wanted: FloatingIPAttachment = INGRESS) -> str:
    return "\n".join(map(str, plan(run, wanted).refusals))


def test_it_attaches_and_says_so_in_one_request(run: CloudRun, neutron: Neutron) -> None:
    executor.execute(plan(run), run).raise_for_failures()
    assert neutron.put.last_request.json() == {
        "floatingip": {"port_id": "p1", "description": f"Ingress [openstack-prep:lab~attached/{PORT}]"}
    }
    assert neutron.put.last_request.headers["If-Match"] == "revision_number=3"
    assert not plan(run.fresh())


def test_what_is_right_is_left(run: CloudRun, neutron: Neutron) -> None:
    neutron.ips[0]["port_id"] = "p1"
    (step,) = plan(run)
    assert (step.action, step.observed and step.observed.ours) == (Action.KEEP, False)


def test_nobodys_address_is_stolen(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports.append({"id": "p9", "name": "dev2-q9m4t-ingress-port", "tags": []})
    neutron.ips[0]["port_id"] = "p9"
    assert contains(refusals(run), "192.0.2.5", "dev2-q9m4t-ingress-port p9")
    moving = FloatingIPAttachment(port=PORT, address="192.0.2.5", move=True)
    made = plan(run, moving)
    assert [step.action for step in made] == [Action.UPDATE]
    executor.execute(made, run).raise_for_failures()
    assert neutron.ips[0]["port_id"] == "p1"


def test_nor_when_it_was_free_while_planning(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    made = plan(run)
    neutron.ips[0] |= {"port_id": "p9", "revision_number": 4}
    report = executor.execute(made, run)
    wording(str(report.failed[0].error))
    assert not neutron.put.called


def test_412_looks_again(run: CloudRun, neutron: Neutron, services: requests_mock.Mocker) -> None:
    seen = []

    def somebody_else_first(request: Any, context: Any) -> dict[str, Any]:
        seen.append(request.headers["If-Match"])
        if len(seen) == 1:
            neutron.ips[0] |= {"revision_number": 4, "description": "theirs"}
        return neutron.change(request, context)

    services.put(f"{NEUTRON}/floatingips/f1", json=somebody_else_first)
    executor.execute(plan(run), run).raise_for_failures()
    assert seen == ["revision_number=3", "revision_number=4"]
    assert neutron.ips[0]["description"].startswith("theirs [")


def test_ours_is_known_by_its_tag_when_somebody_edited_its_description(run: CloudRun, neutron: Neutron) -> None:
    neutron.ips[0] |= {"description": "edited", "tags": ["openstack-prep:lab~ingress"]}
    wanted = FloatingIPAttachment(port=PORT, floating_ip="ingress")
    executor.execute(plan(run, wanted), run).raise_for_failures()
    assert (neutron.ips[0]["port_id"], neutron.ips[0]["description"]) == ("p1", "edited")
    (step,) = plan(run.fresh(), wanted)
    assert (step.action, step.observed and step.observed.ours) == (Action.KEEP, True)


def test_a_floating_ip_tagged_with_another_name_is_not_taken(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    neutron.ips[0] |= {"description": "edited", "tags": ["openstack-prep:lab~api"]}
    report = executor.execute(plan(run, FloatingIPAttachment(port=PORT, floating_ip="ingress")), run)
    assert report.failed[0].error.code == "cloud.not-found"
    wording(str(report.failed[0].error))


def test_no_port_of_a_like_name_will_do(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    neutron.ports[0]["name"] = f"{PORT}-2"
    wording(refusals(run))


def test_the_tag_may_come_later(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports[0]["tags"] = []
    assert not refusals(run)


def test_a_port_of_another_cluster_is_refused(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports[0]["tags"] = ["openshiftClusterID=other-aaaaa"]
    assert contains(refusals(run), "p1", "openshiftClusterID=other-aaaaa")


def test_two_ports_of_the_name(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    neutron.ports.append({"id": "p2", "name": PORT, "tags": []})
    with pytest.raises(PlanRefused) as caught:
        plan(run)
    wording(caught.value)


def test_a_port_that_has_another_floating_ip(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    neutron.ips.append(neutron.ip(id="f2", floating_ip_address="192.0.2.6", port_id="p1"))
    wording(refusals(run))


def test_a_floating_ip_that_is_not_there(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    wording(refusals(run, FloatingIPAttachment(port=PORT, floating_ip_id="f7")))


def test_a_long_description_is_left_alone(run: CloudRun, neutron: Neutron) -> None:
    neutron.ips[0]["description"] = "x" * 230
    executor.execute(plan(run), run).raise_for_failures()
    assert neutron.ips[0]["description"] == "x" * 230


def test_the_mark_of_another_spec_stays(run: CloudRun, neutron: Neutron) -> None:
    neutron.ips[0]["description"] = "[openstack-prep:ocp4/ingress]"
    executor.execute(plan(run), run).raise_for_failures()
    assert neutron.ips[0]["description"] == "[openstack-prep:ocp4/ingress]"


# --- with the floating IP of a spec -------------------------------------------------------

OWN = FloatingIP(name="ingress", external_network="external", address="192.0.2.5")
BY_NAME = FloatingIPAttachment(port=PORT, floating_ip="ingress")


@pytest.fixture
def cloud(services: requests_mock.Mocker, neutron: Neutron) -> Cloud:
    services.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "external"}]})
    return Cloud(connection())


def test_an_adopted_one_is_attached_and_detached_but_stays(cloud: Cloud, neutron: Neutron) -> None:
    spec = Spec("lab", (BY_NAME, OWN))
    api.apply(cloud, spec).raise_for_failures()
    assert neutron.ips[0]["port_id"] == "p1"
    assert not api.plan(cloud, spec)
    report = api.destroy(cloud, spec)
    assert [str(result.step.key) for result in report.changed] == [f"floating_ip_attachment/{PORT}"]
    assert (neutron.ips[0]["port_id"], neutron.ips[0]["description"]) == (None, "Ingress")


def test_one_that_the_installer_attached_already_is_adopted_as_it_is(cloud: Cloud, neutron: Neutron) -> None:
    neutron.ips[0]["port_id"] = "p1"
    made = api.plan(cloud, Spec("lab", (OWN, BY_NAME)))
    assert not made
    assert not made.refusals


def test_one_that_serves_another_port_is_refused_once(cloud: Cloud, neutron: Neutron) -> None:
    neutron.ips[0]["port_id"] = "p9"
    (said,) = api.plan(cloud, Spec("lab", (OWN, BY_NAME))).refusals
    assert said.where == f"floating_ip_attachment/{PORT}"


def test_destroy_leaves_what_others_attached(cloud: Cloud, neutron: Neutron) -> None:
    neutron.ips[0]["port_id"] = "p1"
    assert not api.plan_destroy(cloud, Spec("lab", (INGRESS,)))


def test_destroy_leaves_what_has_moved_on(cloud: Cloud, neutron: Neutron) -> None:
    spec = Spec("lab", (INGRESS,))
    api.apply(cloud, spec).raise_for_failures()
    neutron.ips[0]["port_id"] = "p9"
    assert not api.plan_destroy(cloud, spec)


def test_which_floating_ip_must_be_said_once(cloud: Cloud) -> None:
    for wrong in (
        FloatingIPAttachment(port=PORT),
        FloatingIPAttachment(port=PORT, address="192.0.2.5", floating_ip="x"),
    ):
        with expect_error(SpecError, "floating_ip", "address", "floating_ip_id"):
            api.plan(cloud, [wrong], name="lab")
    with expect_error(SpecError, "floating_ip ingress", code="spec.unresolved-reference"):
        api.plan(cloud, [BY_NAME], name="lab")


def test_nothing_to_do_is_two_lists(run: CloudRun, neutron: Neutron, services: requests_mock.Mocker) -> None:
    neutron.ips[0]["port_id"] = "p1"
    assert not plan(run)
    assert [each.partition("?")[0] for each in sorted(sent(services))] == ["GET /v2.0/floatingips", "GET /v2.0/ports"]


def test_of_two_networks_with_one_address_the_tag_tells_which(run: CloudRun, neutron: Neutron) -> None:
    elsewhere = neutron.ip(id="f2", floating_network_id="n2", port_id="p9")
    neutron.ips = [elsewhere, neutron.ip(description="[openstack-prep:lab/web]", port_id="p1")]
    found = run.look(FloatingIPAttachment(port=PORT, floating_ip="web", address="192.0.2.5", tag=TAG))
    assert found is not None
    assert found.id == "f1"


def test_of_two_networks_with_one_address_none_is_guessed(run: CloudRun, neutron: Neutron) -> None:
    neutron.ips = [neutron.ip(), neutron.ip(id="f2", floating_network_id="n2")]
    with pytest.raises(PlanRefused, match="f1 and f2") as refused:
        plan(run)
    assert [each.code for each in refused.value.mistakes] == ["cloud.not-unique"]
    assert not plan(run, FloatingIPAttachment(port=PORT, floating_ip_id="f2", tag=TAG)).refusals


@pytest.mark.parametrize("addresses", [(), ("fd00::7",), ("10.0.0.7", "10.0.0.8")])
def test_a_port_without_one_ipv4_address_is_refused(
    run: CloudRun, neutron: Neutron, addresses: tuple[str, ...]
) -> None:
    neutron.ports[0]["fixed_ips"] = [{"subnet_id": "s1", "ip_address": each} for each in addresses]
    assert [each.code for each in plan(run).refusals] == [Code.SPEC_CONTRADICTION]
