from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import Loss, NotFound, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Key
from openstack_prep.core.plan import Plan
from openstack_prep.openshift.install_config import Machines
from openstack_prep.openshift.install_config_file import InstallConfig
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.network.router import Router
from tests.unit.conftest import ENDPOINTS, IDENTITY, declared_mistakes, failure, port_row, resolved, sent
from tests.unit.texts import Wording, contains

NEUTRON = ENDPOINTS["network"] + "/v2.0"
API = FloatingIP(name="api", external_network="external", address="192.0.2.10")
ANY = FloatingIP(name="any", external_network="external")


def answer(**fields: Any) -> dict[str, Any]:
    """Return a floating IP as Neutron tells it."""
    return {
        "id": "f1",
        "floating_ip_address": "192.0.2.10",
        "floating_network_id": "n1",
        "description": "[openstack-prep:lab/api]",
        "port_id": None,
        "project_id": "admin-project",
        "revision_number": 1,
    } | fields


@pytest.fixture
def listed(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """What Neutron lists in the project; a test fills it."""
    found: list[dict[str, Any]] = []

    def some(request: Any, context: Any) -> dict[str, Any]:
        wanted = request.qs.get("floating_ip_address")
        return {"floatingips": [each for each in found if not wanted or each["floating_ip_address"] in wanted]}

    services.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "external"}]})
    services.get(f"{NEUTRON}/subnets", json={"subnets": [{"id": "s1", "name": "", "cidr": "192.0.2.0/24"}]})
    services.get(f"{NEUTRON}/floatingips", json=some)
    services.put(re.compile(f"{NEUTRON}/floatingips/[^/]+/tags/"), status_code=201)
    services.get(re.compile(f"{IDENTITY}/projects/"), json={"project": {"name": "theirs"}})
    return found


def plan(run: CloudRun, *wanted: FloatingIP) -> Plan:
    observed, mistakes = observation.examine(run, wanted)
    return planner.plan_apply("lab", wanted, observed, mistakes=mistakes)


@pytest.mark.parametrize(
    ("fields", "owner"),
    [
        ({"description": "[openstack-prep:theirs/api]"}, "theirs"),
        ({"description": "edited", "tags": ["openstack-prep:their%20s~api"]}, "their s"),
        ({"description": "edited", "tags": ["openstack-prep:lab~api"]}, ""),
        ({"description": "[openstack-prep:lab/api]", "tags": ["openstack-prep:theirs~api"]}, ""),
        ({"description": "[openstack-prep:theirs/api]", "tags": ["openstack-prep:lab~api"]}, "theirs"),
        ({"description": "edited", "tags": ["of~somebody"]}, ""),
    ],
)
def test_another_specs_is_known_by_either_and_not_taken_over(
    run: CloudRun, listed: list[Any], fields: dict[str, Any], owner: str
) -> None:
    listed.append(answer(**fields))
    made = plan(run, replace(API, adopt="permanently"))
    assert [step.observed.managed_by for step in made if step.observed] == [owner]
    assert [each.keys for each in made.refusals] == ([(API.key,)] if owner else [])


def test_the_request_that_allocates_it_carries_our_mark(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any]
) -> None:
    made = services.post(f"{NEUTRON}/floatingips", json={"floatingip": answer()}, status_code=201)
    report = executor.execute(plan(run, API), run)
    assert made.last_request.json() == {
        "floatingip": {
            "floating_network_id": "n1",
            "floating_ip_address": "192.0.2.10",
            "description": "[openstack-prep:lab/api]",
        }
    }
    assert report.outputs == {"floating_ip/api": "192.0.2.10"}


def test_an_answer_that_was_lost_leaks_nothing(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work_and_hang_up(request: Any, context: Any) -> dict[str, Any]:
        listed.append(answer(description=request.json()["floatingip"]["description"]))
        context.status_code = 504
        return {}

    made = services.post(f"{NEUTRON}/floatingips", json=work_and_hang_up)
    report = executor.execute(plan(run, ANY), run)
    report.raise_for_failures()
    assert made.call_count == 1
    assert report.outputs == {"floating_ip/any": "192.0.2.10"}


def test_one_of_ours_is_found_by_its_mark(run: CloudRun, listed: list[Any]) -> None:
    listed += [
        answer(id="f0", description="[openstack-prep:other/any]"),
        answer(description="[openstack-prep:lab/any]"),
    ]
    (step,) = plan(run, ANY)
    assert (step.action, step.observed and step.observed.id) == (Action.KEEP, "f1")


def test_the_address_wanted_is_adopted_and_stays_theirs(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(description="by hand"))
    (step,) = plan(run, API)
    assert step.action is Action.KEEP
    assert step.observed is not None
    assert not step.observed.ours


@pytest.mark.parametrize("spec", ["lab", "other"])
def test_one_that_carries_the_note_of_an_attachment_is_managed_by_no_spec(
    run: CloudRun, listed: list[Any], spec: str
) -> None:
    listed.append(answer(description=f"[openstack-prep:{spec}~attached/web]"))
    (step,) = plan(run, API)
    assert step.observed is not None
    assert step.observed.managed_by == ""
    ((found, observed),) = FloatingIP.scan(run, None)
    assert (found.name, observed.managed_by) == ("192.0.2.10", "")


@pytest.mark.parametrize("given", ["api", "192.0.2.10"])
def test_one_that_serves_a_port_is_refused_when_the_installer_would_take_it(
    run: CloudRun, listed: list[Any], tmp_path: Path, given: str, wording: Wording
) -> None:
    listed.append(answer(description="by hand", port_id="p9"))
    config = InstallConfig(
        path=str(tmp_path / "install-config.yaml"),
        release="4.20",
        cluster_name="ocp4",
        base_domain="example.com",
        cloud="lab",
        machines=Machines(flavor="master"),
        pull_secret_file="pull-secret.json",
        api_floating_ip=given,
    )
    (mistake,) = plan(run, resolved(API, [API, config], run.admin)).refusals
    assert mistake.code == "address.in-use"
    wording(mistake.what)
    config.kept.write_text("")
    (tmp_path / "metadata.json").write_text("{}")  # it is installed
    assert not plan(run, resolved(API, [API, config], run.admin)).refusals


@pytest.mark.parametrize("adopt", [False, "permanently"])
def test_one_that_serves_a_port_of_others_keeps_it(run: CloudRun, listed: list[Any], adopt: Any) -> None:
    listed.append(answer(description="by hand", port_id="p9"))
    assert not plan(run, resolved(replace(API, adopt=adopt), [API], run.admin)).refusals


def test_ours_may_serve_a_port(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(port_id="p9"))
    assert not plan(run, API).refusals


@pytest.mark.parametrize(
    ("port", "holder"),
    [
        ({"device_owner": "network:floatingip", "device_id": "f9"}, "project theirs (elsewhere)"),
        ({"device_owner": "network:router_gateway", "device_id": "r1"}, "router gw (r1)"),
        ({"name": "db", "device_owner": "compute:nova", "device_id": "s1"}, "port db p1 (compute:nova)"),
        ({"device_owner": ""}, "port web p1"),
        ({"fixed_ips": [{"subnet_id": "s1", "ip_address": "192.0.2.11"}]}, ""),
    ],
)
def test_an_address_that_others_have_is_refused(
    run: CloudRun,
    services: requests_mock.Mocker,
    listed: list[Any],
    ports: list[Any],
    port: dict[str, Any],
    holder: str,
) -> None:
    ports[0] |= {"fixed_ips": [{"subnet_id": "s1", "ip_address": "192.0.2.10"}]} | port
    services.get(f"{NEUTRON}/routers", json={"routers": [{"name": "gw"}]})
    theirs = {"floatingips": [{"project_id": "elsewhere"}]}
    services.get(f"{NEUTRON}/floatingips?id=f9&fields=project_id", json=theirs)
    refusals = plan(run, API).refusals
    assert [(each.code, each.where) for each in refusals] == [("address.in-use", "floating_ip/api")] * bool(holder)
    assert all(f"192.0.2.10 already belongs to {holder}" in each.what for each in refusals)


def test_an_address_that_has_just_been_released_is_free(run: CloudRun, listed: list[Any], ports: list[Any]) -> None:
    ports[0] |= {"fixed_ips": [{"subnet_id": "s1", "ip_address": "192.0.2.10"}]}
    ports[0] |= {"device_owner": "network:floatingip", "device_id": "f9"}
    assert not plan(run, API).refusals


def test_who_takes_any_address_comes_after_those_that_ask_for_one() -> None:
    gateway = Router(name="asks", external_network="external", external_fixed_ips=("192.0.2.11",))
    takers = (Router(name="takes", external_network="external"), ANY)
    others = (Router(name="inside"), Router(name="elsewhere", external_network="other"))
    before, askers = planner.dependencies((*takers, *others, gateway, API)), frozenset({gateway.key, API.key})
    assert {key: before[key] for key in before if before[key]} == {each.key: {askers} for each in takers}
    assert not any(planner.dependencies((*takers, *others, gateway, API), creating=False).values())


def test_an_address_outside_every_subnet_is_refused(
    run: CloudRun, listed: list[Any], ports: list[Any], wording: Wording
) -> None:
    wanted = FloatingIP(name="api", external_network="external", address="198.51.100.1")
    wording([str(each) for each in plan(run, wanted).refusals])


def test_an_external_network_that_does_not_exist_is_refused(run: CloudRun, listed: list[Any], wording: Wording) -> None:
    wanted = FloatingIP(name="api", external_network="extern", address="192.0.2.10")
    wording(str(plan(run, wanted).refusals[0]))


def test_another_address_of_ours_is_a_replacement(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(floating_ip_address="192.0.2.11"))
    result = plan(run, API)
    assert result.steps[0].action is Action.REPLACE
    assert "192.0.2.11" in str(result.refusals[0])


def test_many_are_read_by_one_list(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    many = [FloatingIP(name=f"a{number}", external_network="external") for number in range(50)]
    assert len(plan(run, *many).pending) == 50
    assert sorted(sent(services)) == [
        "GET /v2.0/floatingips?project_id=admin-project",
        "GET /v2.0/networks?router%3aexternal=true",
    ]


def test_who_holds_the_addresses_is_asked_at_once(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any]
) -> None:
    given = [
        FloatingIP(name=f"a{number}", external_network="external", address=f"192.0.2.{number}") for number in (7, 8)
    ]
    assert len(plan(run, *given).pending) == 2
    assert sorted(sent(services)) == [
        "GET /v2.0/floatingips?project_id=admin-project",
        "GET /v2.0/networks?router%3aexternal=true",
        "GET /v2.0/ports?network_id=n1&fixed_ips=ip_address%3d192.0.2.7&fixed_ips=ip_address%3d192.0.2.8",
        "GET /v2.0/subnets?network_id=n1&fields=id&fields=name&fields=cidr&fields=ipv6_address_mode&fields=network_id",
    ]


def test_subnets_that_cannot_be_read_fail_the_plan(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any]
) -> None:
    services.get(f"{NEUTRON}/subnets", **failure(404, "no such extension"))
    with pytest.raises(NotFound, match="no such extension"):
        plan(run, API)


def test_a_used_up_quota_is_said_at_once(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    services.post(f"{NEUTRON}/floatingips", **failure(409, "Quota exceeded for resources: ['floatingip']."))
    report = executor.execute(plan(run, ANY), run)
    assert "Quota exceeded" in str(report.failed[0].error)
    assert sent(services).count("POST /v2.0/floatingips") == 1


def test_key() -> None:
    assert API.key == Key("floating_ip", "api")


def test_two_may_not_want_one_address() -> None:
    twin = FloatingIP(name="ingress", external_network="external", address=API.address)
    (found,) = declared_mistakes(API, twin)
    assert (found.keys, found.code) == ((twin.key,), "address.in-use")
    assert contains(str(found), "192.0.2.10", "floating_ip/api")


def going(run: CloudRun, *wanted: FloatingIP | FloatingIPAttachment) -> Plan:
    """Return a plan to destroy, with what forbids it."""
    resources = [resolved(each, wanted, run.admin) for each in wanted]
    made = planner.plan_destroy("lab", resources, observation.observe(run, resources))
    return replace(made, refusals=tuple(observation.examine_deletes(run, made)))


@pytest.fixture
def ports(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    found = [port_row(id="p1", name="web", device_id="server1")]
    services.get(f"{NEUTRON}/ports", json=lambda *_: {"ports": found})
    return found


def test_one_that_serves_a_port_is_not_deleted(
    run: CloudRun, listed: list[Any], ports: list[Any], wording: Wording
) -> None:
    listed.append(answer(port_id="p1"))
    (mistake,) = going(run, API).refusals
    assert mistake.keys == (API.key,)
    assert mistake.code == "plan.still-used"
    wording(mistake.what)
    assert mistake.fix.endswith("openstack floating ip unset --port 192.0.2.10")


@pytest.mark.parametrize("gone", ["p1", "server1"])
def test_one_goes_with_the_port_that_it_serves(run: CloudRun, listed: list[Any], ports: list[Any], gone: str) -> None:
    listed.append(answer(port_id="p1"))
    observed = observation.observe(run, [API])[API.key]
    assert list(API.check_delete(run, observed, frozenset({"f1", gone}))) == []
    assert list(API.check_delete(run, observed, frozenset({"f1"}))) != []


@pytest.mark.parametrize(("port", "refused"), [("web", 0), ("other", 1)])
def test_one_goes_with_its_own_attachment_and_no_other(
    run: CloudRun, listed: list[Any], ports: list[Any], port: str, refused: int
) -> None:
    listed.append(answer(port_id="p1"))
    made = going(run, API, FloatingIPAttachment(port=port, floating_ip="api"))
    assert len(made.refusals) == refused


def test_an_attachment_by_address_is_deleted_before_the_floating_ip(
    run: CloudRun, listed: list[Any], ports: list[Any]
) -> None:
    listed.append(answer(port_id="p1"))
    attachment = FloatingIPAttachment(port="web", address=API.address)
    made = going(run, API, attachment)
    assert not made.refusals
    assert {step.key: step.needs for step in made}[API.key] == {attachment.key}


def test_one_that_was_attached_after_the_plan_stays(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any], wording: Wording
) -> None:
    listed.append(answer())
    made = going(run, API)
    assert not made.refusals
    services.get(f"{NEUTRON}/floatingips/f1", json={"floatingip": answer(port_id="p1")})
    deleted = services.delete(f"{NEUTRON}/floatingips/f1", status_code=204)
    (failed,) = executor.execute(made, run).failed
    wording(str(failed.error))
    assert not deleted.called


def test_a_port_forwarding_that_came_after_the_judgement_stays(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any]
) -> None:
    listed.append(answer(router_id="r1"))
    services.get(f"{NEUTRON}/floatingips/f1", json={"floatingip": listed[0]})
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "floating-ip-port-forwarding"}]})
    path = f"{NEUTRON}/floatingips/f1/port_forwardings"
    known = [_forwarding(each) for each in "ab"]
    services.get(path, [{"json": {"port_forwardings": known[:1]}}, {"json": {"port_forwardings": known}}])
    made = replace(going(run, API), allow_loss=frozenset({"port_forwarding/a"}))
    deleted = services.delete(re.compile(f"{path}/"), status_code=204)
    services.delete(f"{NEUTRON}/floatingips/f1", **failure(409, "Floating IP f1 in use by Port Forwarding resources."))
    (failed,) = executor.execute(made, run).failed
    assert isinstance(failed.error, PlanRefused)
    assert [each.lost for each in failed.error.mistakes if isinstance(each, Loss)] == [("port_forwarding/b",)]
    assert [each.path.rpartition("/")[2] for each in deleted.request_history] == ["a"]


def _forwarding(forwarding_id: str) -> dict[str, Any]:
    ends = {"internal_port_id": "p1", "internal_ip_address": "10.0.0.5", "internal_port": 80, "external_port": 80}
    return {"id": forwarding_id, "protocol": "tcp"} | ends


def test_one_that_is_attached_while_it_is_deleted_stays(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any], wording: Wording
) -> None:
    listed.append(answer())
    made = going(run, API)

    def attached_meanwhile(request: Any, context: Any) -> dict[str, Any]:
        assert request.headers["If-Match"] == "revision_number=1"
        listed[:] = [answer(port_id="p1", revision_number=2)]
        context.status_code = 412
        return {"NeutronError": {"message": "RevisionNumberConstraintFailed"}}

    services.get(f"{NEUTRON}/floatingips/f1", json=lambda *_: {"floatingip": listed[0]})
    deleted = services.delete(f"{NEUTRON}/floatingips/f1", json=attached_meanwhile)
    (failed,) = executor.execute(made, run).failed
    wording(str(failed.error))
    assert deleted.call_count == 1


def test_a_deletion_shows_the_address(run: CloudRun, listed: list[Any], ports: list[Any]) -> None:
    listed.append(answer())
    made = going(run, API)
    assert "address 192.0.2.10" in made.table
    assert made.data()[0]["address"] == "192.0.2.10"
    left = [(step.resource, step.observed) for step in made if step.observed]
    kept = planner.plan_removals(planner.plan_apply("lab", (), {}), left, prune=False)
    assert contains(kept.table, "address 192.0.2.10", "no longer")
    assert [each["address"] for each in kept.undeclared_data()] == ["192.0.2.10"]


# --- one address on two external networks --------------------------------------------------------


@pytest.mark.parametrize("first", [Router(name="a", external_fixed_ips=("192.0.2.10",)), replace(API, name="a")])
@pytest.mark.parametrize(("network", "codes"), [("external", ["address.in-use"]), ("elsewhere", [])])
def test_an_address_is_unique_on_its_network_only(first: Router | FloatingIP, network: str, codes: list[str]) -> None:
    mistakes = declared_mistakes(replace(first, external_network=network), API)
    assert [each.code for each in mistakes] == codes


def test_the_same_address_on_another_network_is_not_adopted(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], ports: list[Any]
) -> None:
    networks = [{"id": "n1", "name": "external"}, {"id": "n2", "name": "elsewhere"}]
    services.get(f"{NEUTRON}/networks", json={"networks": networks})
    listed.append(answer(id="f2", floating_network_id="n2", description="by hand"))
    ((action, found),) = [(step.action, step.observed) for step in plan(run, API)]
    assert (action, found) == (Action.CREATE, None)
    listed.append(answer(description="by hand"))
    ((action, found),) = [(step.action, step.observed) for step in plan(CloudRun(run.admin, run.ownership), API)]
    assert found is not None
    assert (action, found.id) == (Action.KEEP, "f1")
