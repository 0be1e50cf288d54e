"""Who answers for the addresses of a pool: OVN itself, or the machine whose load balancer has them."""

from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.core.model import Status
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from tests.devcloud.ovn import Ovn
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.lab import Lab

LB = "10.1.0.200"


def nodes() -> tuple[Any, ...]:
    subnet = Subnet(name="nodes", network="nodes", cidr="10.1.0.0/24", allocation_pools=("10.1.0.10-10.1.0.199",))
    return Network(name="nodes"), subnet, Port(name="node-0", network="nodes"), Port(name="node-1", network="nodes")


def allowed(reserve: Any, *addresses: str) -> tuple[Any, ...]:
    pool = AddressPool(name="lb", subnet="nodes", addresses=addresses, reserve=reserve)
    return pool, AddressPairs(name="lb", ports=("node-0", "node-1"), pools=("lb",))


def node(lab: Lab, name: str) -> Any:
    return lab.admin.network.find_port(name, ignore_missing=False, project_id=lab.project_id)


@pytest.mark.parametrize(("reserve", "addresses"), [("outside", f"{LB}/29"), ("ports", LB)])
def test_the_machines_answer(lab: Lab, devcloud: Devcloud, reserve: str, addresses: str) -> None:
    lab.apply(*nodes(), *allowed(reserve, addresses))
    ovn, first, second = Ovn(devcloud.layout), node(lab, "node-0"), node(lab, "node-1")
    assert ovn.answer(first, LB) == ""
    assert ovn.sent(first, LB, second, 80) == set()  # by its security group, not by port security
    assert ovn.answer(first, second.fixed_ips[0]["ip_address"]) == second.mac_address


def test_with_ports_and_networks_ovn_answers_for_the_reserving_port(lab: Lab, devcloud: Devcloud) -> None:
    """Refused by the plan, and by the step when the same apply creates the network; what it prevents is real."""
    wanted = (*nodes(), *allowed("ports", f"{LB}/29"))
    report = lab.run(*wanted)
    (failed,) = [each for each in report.results if each.status is Status.FAILED]
    assert failed.step.key.kind == "address_pairs"
    assert "with OVN nobody could then reach the addresses" in str(failed.error)
    with pytest.raises(PlanRefused, match="reserves its addresses with ports"):
        lab.run(*wanted)

    ovn, network = Ovn(devcloud.layout), lab.admin.network
    for name in ("node-0", "node-1"):
        network.update_port(node(lab, name), allowed_address_pairs=[{"ip_address": f"{LB}/29"}])
    (reserving,) = network.ports(project_id=lab.project_id, fixed_ips=f"ip_address={LB}")
    assert ovn.answer(node(lab, "node-0"), LB) == reserving.mac_address
    each = tuple(f"10.1.0.{number}" for number in range(200, 208))
    singles = AddressPairs(name="lb", ports=("node-0", "node-1"), addresses=each)
    lab.apply(*wanted[:-1], singles)
    assert ovn.answer(node(lab, "node-0"), LB) == ""
