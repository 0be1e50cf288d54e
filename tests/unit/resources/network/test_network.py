from __future__ import annotations

import re
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.cloud_run import CloudRun, in_project
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.network.declared_port import VisibleNetwork
from openstack_prep.resources.network.network import ExternalNetwork, Network
from openstack_prep.resources.network.router import Router
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, connection, failure
from tests.unit.texts import contains

NEUTRON = ENDPOINTS["network"] + "/v2.0"
POLICIES = f"{NEUTRON}/rbac-policies"
PROJECT = {"domain_id": "default", "enabled": True, "description": "", "tags": []}
FLAT: dict[str, Any] = {"provider_network_type": "flat", "provider_physical_network": "physnet1"}
ROW = {"id": "n1", "name": "net", "project_id": "admin-project", "description": "[openstack-prep:lab/net]"}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"provider_physical_network": "physnet1"}, "provider_network_type is missing"),
        ({"provider_network_type": "flat"}, "a flat network needs provider_physical_network"),
        ({"provider_network_type": "vlan"}, "a vlan network needs provider_physical_network"),
        (FLAT | {"provider_network_type": "vxlan"}, "a vxlan network has no physical network"),
        (FLAT | {"provider_segmentation_id": 7}, "provider_segmentation_id 7 is impossible for a flat network"),
        (FLAT | {"provider_network_type": "vlan", "provider_segmentation_id": 4095}, "4095 is impossible for a vlan"),
        ({"shared": True, "shared_with": ("other",)}, "shared: true already includes"),
    ],
)
def test_fields_that_contradict_each_other(fields: dict[str, Any], what: str) -> None:
    (found,) = Network(name="net", **fields).contradictions()
    assert what in str(found)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        FLAT,
        FLAT | {"provider_network_type": "vlan", "provider_segmentation_id": 4094},
        {"provider_network_type": "vxlan", "provider_segmentation_id": 5000},
        {"shared": True, "shared_with": ()},
    ],
)
def test_fields_that_agree(fields: dict[str, Any]) -> None:
    assert not list(Network(name="net", **fields).contradictions())


def plan(run: CloudRun, network: Network) -> Plan:
    observed, mistakes = observation.examine(run, [network])
    return planner.plan_apply("lab", [network], observed, mistakes=mistakes)


def test_who_may_not_see_provider_attributes_replaces_nothing(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/networks", json={"networks": [ROW]})
    assert [step.action for step in plan(run, Network(name="net", **FLAT))] == [Action.KEEP]


def test_another_physical_network_is_a_replacement(run: CloudRun, services: requests_mock.Mocker) -> None:
    seen = {"provider:network_type": "flat", "provider:physical_network": "physnet2"}
    services.get(f"{NEUTRON}/networks", json={"networks": [ROW | seen]})
    (step,) = plan(run, Network(name="net", **FLAT))
    assert (step.action, [each.field for each in step.changes]) == (Action.REPLACE, ["provider_physical_network"])


@pytest.mark.parametrize("rows", [[], [ROW | {"mtu": 1442}]])
def test_neutrons_refusal_of_an_mtu_is_explained(
    rows: list[dict[str, Any]], run: CloudRun, services: requests_mock.Mocker
) -> None:
    """The words are those of Neutron 29.0.0, plugins/ml2/plugin.py."""
    words = "Invalid input for operation: Requested MTU is too big, maximum is 1442."
    services.post(f"{NEUTRON}/networks", **failure(400, words))
    services.put(f"{NEUTRON}/networks/n1", **failure(400, words))
    services.get(f"{NEUTRON}/networks", json={"networks": rows})
    result = apply(run, Network(name="net", mtu=9000))
    assert isinstance(result, CloudError)
    assert result.status == 400
    assert result.code == "cloud.error"
    assert contains(str(result), "mtu 9000", "1442", "mtu")
    assert words in str(result)


def apply(run: CloudRun, network: Network) -> Exception | None:
    """Create or update a network, and return why it failed."""
    (result,) = executor.execute(plan(run, network), run).results
    return result.error


def test_another_refusal_is_passed_on(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.post(f"{NEUTRON}/networks", **failure(400, "Invalid input for name."))
    services.get(f"{NEUTRON}/networks", json={"networks": []})
    assert contains(
        str(apply(run, Network(name="net", mtu=9000))), "POST network/networks", "400 Invalid input for name"
    )


@pytest.fixture
def policies(services: requests_mock.Mocker) -> None:
    """Both kinds for p0 and p1; by access_as_external a project may use the network for floating IPs."""
    present = [
        {
            "id": f"{action}-{project}",
            "object_type": "network",
            "object_id": "n1",
            "action": action,
            "target_tenant": project,
        }
        for action, project in (
            ("access_as_shared", "p0"),
            ("access_as_shared", "p1"),
            ("access_as_external", "p1"),
            ("access_as_external", "p2"),
        )
    ]

    def listed(request: Any, _: Any) -> dict[str, Any]:
        asked = {key: value for key, (value,) in request.qs.items()}
        return {"rbac_policies": [each for each in present if each.items() >= asked.items()]}

    services.get(f"{NEUTRON}/networks", json={"networks": [ROW | {"shared": False}]})
    services.get(POLICIES, json=listed)
    services.get(f"{ENDPOINTS['identity']}/projects/p0", json={"project": PROJECT | {"id": "p0", "name": "project-p0"}})
    for each in ("p1", "p2"):
        services.get(f"{NEUTRON}/networks?project_id={each}", json={"networks": []})
        project = PROJECT | {"id": each, "name": f"project-{each}"}
        services.get(f"{ENDPOINTS['identity']}/projects?name=project-{each}", json={"projects": [project]})


def test_policies_share_a_network_and_make_none_external(
    run: CloudRun, services: requests_mock.Mocker, policies: None
) -> None:
    services.post(POLICIES, json={})
    services.delete(re.compile(f"{POLICIES}/"))
    assert apply(run, Network(name="net", shared_with=("project-p1", "project-p2"))) is None
    (post,) = [each.json() for each in services.request_history if each.method == "POST" and "rbac" in each.path]
    meant = {"object_type": "network", "object_id": "n1", "action": "access_as_shared", "target_tenant": "p2"}
    assert post == {"rbac_policy": meant}
    deleted = [each.path.rpartition("/")[2] for each in services.request_history if each.method == "DELETE"]
    assert deleted == ["access_as_shared-p0"]


@pytest.mark.parametrize(("project", "found"), [("project-p1", ["n1"]), ("project-p2", [])])
def test_a_network_that_is_only_external_for_a_project_takes_no_ports_of_it(
    run: CloudRun, policies: None, project: str, found: list[str]
) -> None:
    network = VisibleNetwork(name="net", project=project)
    assert [each.id for each in VisibleNetwork.find(run, [network]).values()] == found


def test_only_single_projects_are_compared(run: CloudRun, services: requests_mock.Mocker) -> None:
    everyone = [{"id": "p0", "target_tenant": "*"}]
    services.get(f"{NEUTRON}/networks", json={"networks": [ROW]})
    services.get(POLICIES, json={"rbac_policies": everyone})
    assert [step.action for step in plan(run, Network(name="net", shared_with=()))] == [Action.KEEP]
    assert services.request_history[-1].qs == {
        "object_type": ["network"],
        "object_id": ["n1"],
        "action": ["access_as_shared"],
    }


@pytest.mark.parametrize(
    ("gateways", "chosen"),
    [([], "public"), (["own"], "own"), (["public"], "public"), (["own", "public"], "public"), ([None], "public")],
)
def test_two_external_networks_of_one_name(
    services: requests_mock.Mocker, gateways: list[str | None], chosen: str
) -> None:
    """One is for all projects, one is shared with this one: the routers of the project tell which one it uses."""
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=[None])
    networks = [{"id": each, "name": "external", "project_id": "admin-project"} for each in ("own", "public")]
    routers = [{"id": f"r{each}", "external_gateway_info": each and {"network_id": each}} for each in gateways]
    services.get(f"{NEUTRON}/networks", json={"networks": networks})
    services.get(f"{NEUTRON}/routers?project_id=admin-project", json={"routers": routers})
    services.get(POLICIES, json={"rbac_policies": [{"object_id": "public"}]})
    assert run.find_id(ExternalNetwork(name="external")) == chosen
    for kind in (Router, FloatingIP):
        (unchecked,) = kind(name="x", external_network="external").list_unchecked(run, None)
        assert all(each["id"] in unchecked for each in networks)
        assert list(kind(name="x", external_network="external").list_unchecked(run, [])) == []
    services.get(f"{NEUTRON}/networks", json={"networks": networks[:1]})
    assert list(FloatingIP(name="x", external_network="external").list_unchecked(run.fresh(), None)) == []


@pytest.mark.usefixtures("administrator")
def test_a_list_with_resources_of_other_projects_is_an_error(run: CloudRun, services: requests_mock.Mocker) -> None:
    """A proxy that drops queries: a network of a spec of the same name elsewhere would be a duplicate to delete."""
    mine, theirs = ({"id": each, "name": "n", "project_id": each} for each in (ADMIN_PROJECT, "elsewhere"))
    services.get(f"{NEUTRON}/networks", json={"networks": [mine, theirs]})
    with pytest.raises(CloudError, match="elsewhere"):
        in_project(run, "networks", "network", ADMIN_PROJECT)
