"""What cleanup takes of a Kubernetes cluster by its name, and what it leaves to others.

Octavia's answers are those of the Load Balancer API reference, v2.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks import cleanup
from openstack_prep.hooks.cleanup import plan_cleanup
from openstack_prep.openshift import leftover
from tests.unit.clusters.test_cloud_provider_names import CSI, made
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, connection, failure, port_row, sent, token
from tests.unit.hooks.test_cleanup import ID, NEUTRON, Lists, floating, there

__all__ = ["there"]

BALANCERS = "http://octavia/v2.0/lbaas"
CLUSTER, LONGER = "prod", "prod_eu"
"""``kube_service_prod_`` is how the names of both begin."""


def created(cluster: str) -> dict[str, dict[str, Any]]:
    """Return by list what a cluster has created: a load balancer with its port, address and group, and a volume."""
    raws = made(cluster, "default", "web")
    balancer, vip = f"lb-{cluster}", f"vip-{cluster}"
    node = [{"subnet_id": f"sub-{cluster}", "ip_address": "10.0.0.11"}]
    return {
        "load_balancers": raws["load_balancer"] | {"id": balancer, "vip_port_id": vip, "tags": []},
        "ports": port_row(id=vip, name=f"octavia-{balancer}", device_id=balancer, device_owner="Octavia", tags=[]),
        "nodes": port_row(id=f"node-{cluster}", device_id=f"s-{cluster}", device_owner="compute:nova", fixed_ips=node),
        "floatingips": floating("192.0.2.5" if cluster == CLUSTER else "192.0.2.6")
        | raws["floating_ip"]
        | {"port_id": vip},
        "security_groups": raws["security_group"] | {"id": f"g-{cluster}", "tags": []},
        "volumes": raws["volume"] | {"id": f"v-{cluster}", "name": f"pvc-{cluster}", "attachments": []},
        "snapshots": raws["volume_snapshot"] | {"id": f"n-{cluster}", "volume_id": f"v-{cluster}"},
    }


@pytest.fixture
def octavia(there: Lists, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> Lists:
    """Two clusters in one project; the machines of the first are gone."""
    monkeypatch.setitem(ENDPOINTS, "load-balancer", "http://octavia")
    monkeypatch.setattr(leftover, "PAUSE", 0.001)
    services.post(f"{IDENTITY}/auth/tokens", json=token(), headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    links = [{"rel": "self", "href": "http://octavia/v2"}]
    services.get("http://octavia", json={"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})
    there |= {name: [] for name in there}
    there["load_balancers"] = []
    for cluster in (CLUSTER, LONGER):
        raws = created(cluster)
        node = raws.pop("nodes")
        for name, raw in raws.items():
            there[name].append(raw)
        if cluster == LONGER:
            there["ports"].append(node)
            there["servers"] = [{"id": "s-prod_eu", "name": "prod-eu-worker-0", "metadata": {}}]
        members = [{"id": "m", "address": "10.0.0.11", "subnet_id": f"sub-{cluster}", "protocol_port": 31080}]
        services.get(f"{BALANCERS}/pools?loadbalancer_id=lb-{cluster}", json={"pools": [{"id": f"pool-{cluster}"}]})
        services.get(f"{BALANCERS}/pools/pool-{cluster}/members", json={"members": members})
    services.get(f"{BALANCERS}/loadbalancers", json=lambda *_: {"loadbalancers": there["load_balancers"]})
    return there


def plan(cluster: str = CLUSTER) -> dict[str, frozenset[str]]:
    found, _ = plan_cleanup(Cloud(connection()), cluster, installer=False)
    found.raise_for_refusals()
    return {str(step.key): frozenset(map(str, step.needs)) for step in found}


def refusals(cluster: str = CLUSTER) -> str:
    found, _ = plan_cleanup(Cloud(connection()), cluster, installer=False)
    with pytest.raises(PlanRefused) as caught:
        found.raise_for_refusals()
    return str(caught.value)


def test_all_of_one_cluster_in_the_right_order_and_nothing_of_the_other(octavia: Lists) -> None:
    group, snapshot = made(CLUSTER, "default", "web")["security_group"], made(CLUSTER, "", "")["volume_snapshot"]
    balancer = "load_balancer/kube_service_prod_default_web"
    assert plan() == {
        balancer: frozenset(),
        "floating_ip/192.0.2.5": {balancer},
        f"security_group/{group['name']}": {balancer},
        f"volume_snapshot/{snapshot['name']}": frozenset(),
        "volume/pvc-prod": {f"volume_snapshot/{snapshot['name']}"},
    }


RULE_OF_SERVICE: dict[str, Any] = {
    "id": "r",
    "project_id": ADMIN_PROJECT,
    "security_group_id": "nodes",
    "remote_group_id": "g-prod",
    "direction": "ingress",
    "ethertype": "IPv4",
    "protocol": "tcp",
    "port_range_min": 31080,
    "port_range_max": 31080,
    "remote_ip_prefix": None,
}
"""What the provider within Kubernetes adds to the group of the nodes, which stays."""


@pytest.mark.parametrize(
    ("fields", "is_lost"),
    [
        ({}, False),
        ({"project_id": "another"}, True),
        ({"description": "monitoring"}, True),
        ({"port_range_min": 30000, "port_range_max": 32767}, True),
        ({"direction": "egress"}, True),
    ],
)
def test_the_rules_of_its_own_services_are_no_loss(
    fields: dict[str, Any], is_lost: bool, octavia: Lists, services: requests_mock.Mocker
) -> None:
    octavia["security_groups"][0]["project_id"] = ADMIN_PROJECT
    there_is = {"security_group_rules": [RULE_OF_SERVICE | fields]}
    services.get(re.compile(f"^{NEUTRON}/security-group-rules.*remote_group_id=g-prod"), json=there_is)
    services.get(f"{IDENTITY}/projects/{ADMIN_PROJECT}", json={"project": {"id": ADMIN_PROJECT, "name": "lab"}})
    services.get(f"{IDENTITY}/projects/another", **failure(403))
    services.get(f"{NEUTRON}/security-groups/nodes", json={"security_group": {"id": "nodes", "name": "nodes"}})
    found, _ = plan_cleanup(Cloud(connection()), CLUSTER, installer=False)
    assert bool(found.refusals) is is_lost


@pytest.mark.parametrize("subnet", ["sub-prod", None])
def test_a_member_is_the_address_of_a_running_machine(
    subnet: str | None, octavia: Lists, services: requests_mock.Mocker
) -> None:
    """10.0.0.11 of the other cluster's subnet does not count, unless the member has no subnet."""
    member = {"id": "m", "address": "10.0.0.11", "subnet_id": subnet}
    services.get(f"{BALANCERS}/pools/pool-prod/members", json={"members": [member]})
    if subnet:
        assert plan()
    else:
        assert "balances to 10.0.0.11" in refusals()


def test_a_volume_or_group_in_use_is_refused(octavia: Lists) -> None:
    octavia["volumes"][0]["attachments"] = [{"server_id": "s-prod_eu"}]
    octavia["ports"][-1]["security_groups"] = ["g-prod"]
    found = refusals()
    assert "volume/pvc-prod" in found
    assert "security_group/lb-sg-" in found


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        ({"port_id": None}, True),
        ({"port_id": "elsewhere"}, False),
        ({"description": "mine"}, False),
        ({"description": made("old name", "a", "b")["floating_ip"]["description"]}, True),
        ({"description": made("old name", "a", "b")["floating_ip"]["description"], "port_id": None}, False),
    ],
)
def test_floating_ips(change: dict[str, Any], taken: bool, octavia: Lists) -> None:
    octavia["floatingips"][0] |= change
    assert ("floating_ip/192.0.2.5" in plan()) == taken


def test_what_the_name_may_mean(octavia: Lists) -> None:
    octavia["volumes"].append({"id": "v", "name": "pvc-nameless", "metadata": {CSI: ""}, "attachments": []})
    _, ordinary = plan_cleanup(Cloud(connection()), CLUSTER, installer=False)
    _, default = plan_cleanup(Cloud(connection()), "kubernetes", installer=False)
    assert "pvc-nameless" in ordinary[0]
    assert set(ordinary[:1]) < set(default)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"cluster": ""}, "cluster"),
        ({"cluster": CLUSTER, "infra_id": ID}, "cluster"),
        ({"cluster": CLUSTER, "release": "lab"}, "release"),
    ],
)
def test_options_that_contradict(options: dict[str, str], where: str, services: requests_mock.Mocker) -> None:
    with pytest.raises(SpecError) as caught:
        cleanup(Cloud(connection()), **options)  # type: ignore[arg-type]
    assert [each.where for each in caught.value.mistakes] == [where]
    assert sent(services) == []


def test_an_openshift_cluster_takes_what_its_services_created_too(
    octavia: Lists, services: requests_mock.Mocker
) -> None:
    """OpenShift gives the infraID to the provider as the cluster's name."""
    services.get(f"{BALANCERS}/pools?loadbalancer_id=lb-{ID}", json={"pools": []})
    raws = created(ID)
    for name, raw in raws.items():
        octavia[name] = [raw] if name != "nodes" else []
    octavia["load_balancers"].append(created(f"{ID}-web-q9m4t")["load_balancers"])
    found, _ = plan_cleanup(Cloud(connection()), ID)
    assert {str(each.key) for each in found} == {
        f"load_balancer/kube_service_{ID}_default_web",
        "floating_ip/192.0.2.6",
        f"security_group/{raws['security_groups']['name']}",
        f"volume/pvc-{ID}",
        f"volume_snapshot/{raws['snapshots']['name']}",
    }
