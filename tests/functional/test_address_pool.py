"""Pools of addresses on a real Neutron: kept by ports or outside the allocation pools, grown, shrunk, taken back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.unit.texts import contains

NODES = {"network": "nodes", "cidr": "10.1.0.0/24", "allocation_pools": ("10.1.0.10-10.1.0.199",)}


def nodes(**fields: Any) -> tuple[Network, Subnet]:
    return Network(name="nodes"), Subnet(**{"name": "nodes"} | NODES | fields)


def pool(*addresses: str, name: str = "lb", subnet: str = "nodes", **fields: Any) -> AddressPool:
    return AddressPool(name=name, subnet=subnet, addresses=addresses, **fields)


def reserved(lab: Lab) -> set[str]:
    """Return the addresses that ports of no device have."""
    found = lab.admin.network.ports(project_id=lab.project_id, device_owner="openstack-prep:reserved")
    return {each["ip_address"] for port in found for each in port.fixed_ips}


def addresses(first: int, last: int) -> set[str]:
    return {f"10.1.0.{number}" for number in range(first, last + 1)}


def refusal(lab: Lab, *wanted: Any) -> str:
    with pytest.raises((SpecError, PlanRefused)) as caught:
        lab.run(*wanted)
    return str(caught.value)


def port(lab: Lab, name: str, address: str) -> Any:
    """Make a port that is not ours, as the project's user may."""
    neutron = lab.as_user().connection.network
    subnet = neutron.find_subnet("nodes", ignore_missing=False)
    fixed = {"subnet_id": subnet.id, "ip_address": address}
    return neutron.create_port(name=name, network_id=subnet.network_id, fixed_ips=[fixed])


def test_a_pool_grows_shrinks_and_mends_and_goes(lab: Lab, devcloud: Devcloud) -> None:
    """Made with its subnet in one apply, by few requests; nobody else gets an address; a deleted port comes back."""
    mark = devcloud.mark()
    report = lab.run(*nodes(), pool("10.1.0.200-10.1.0.219"))
    report.raise_for_failures()
    assert report.outputs["address_pool/lb"] == "20 ports"
    assert "10.1.0.200-10.1.0.219  reserved 20 ports" in str(report)
    posts = [each.path for each in devcloud.requests_since(mark) if each.method == "POST" and "ports" in each.path]
    assert len(posts) == 1
    assert reserved(lab) == addresses(200, 219)
    assert not lab.plan(*nodes(), pool("10.1.0.200-10.1.0.219"))

    grown = pool("10.1.0.204/30", "10.1.0.208-10.1.0.215", "10.1.0.220")
    assert "addresses [10.1.0.200-10.1.0.219] -> [10.1.0.204-10.1.0.215, 10.1.0.220]" in str(lab.plan(*nodes(), grown))
    assert lab.apply(*nodes(), grown) == {"address_pool/lb": "update"}
    assert reserved(lab) == addresses(204, 215) | {"10.1.0.220"}

    lost = lab.admin.network.find_port("lb-10.1.0.207", project_id=lab.project_id, ignore_missing=False)
    lab.admin.network.delete_port(lost)
    assert lab.apply(*nodes(), grown) == {"address_pool/lb": "update"}
    assert "10.1.0.207" in reserved(lab)

    said = refusal(lab, *nodes(), pool("10.1.0.220"), pool("10.1.0.204/30", "10.1.0.215", name="other"))
    kept = "address_pool/other: 10.1.0.204-10.1.0.207, 10.1.0.215 is still reserved for address_pool/lb of this spec"
    assert f"{kept}; first shrink that pool in a separate apply" in said

    foreign = port(lab, "someone", "10.1.0.230")
    assert lab.destroy(grown) == {"address_pool/lb"}
    assert reserved(lab) == set()
    lab.admin.network.delete_port(foreign, ignore_missing=False)


def test_what_stands_in_the_way_is_named_at_once(lab: Lab) -> None:
    """Without a cloud: the gateway, another subnet, another pool, the broadcast address, too many; then ports."""
    lab.apply(*nodes(gateway_ip="10.1.0.210"))
    node = port(lab, "node", "10.1.0.205")
    other = pool("10.1.0.218-10.1.0.225", name="other")
    said = refusal(lab, *nodes(gateway_ip="10.1.0.210"), pool("10.1.0.200-10.1.0.219", "10.2.0.0/30"), other)
    for line in (
        "address_pool/lb: 10.1.0.210 is the gateway of subnet nodes; remove it from the pool",
        "address_pool/lb: 10.2.0.0-10.2.0.3 is outside 10.1.0.0/24 of subnet nodes",
        "address_pool/other: 10.1.0.218-10.1.0.219 also belongs to address_pool/lb",
    ):
        assert line in said
    assert not lab.plan(*nodes(), pool("10.1.0.1")).refusals  # the subnet exists, and has another gateway
    used = refusal(lab, *nodes(gateway_ip="10.1.0.210"), pool("10.1.0.200-10.1.0.209"))
    assert f"address_pool/lb: 10.1.0.205 is used by port node {node.id} (no device); choose other addresses" in used
    assert "10.1.0.255 is the broadcast address" in refusal(lab, *nodes(), pool("10.1.0.250-10.1.0.255"))
    assert "1025 addresses are too many" in refusal(lab, *nodes(), pool("10.1.0.0-10.1.4.0"))
    assert "subnet none does not exist" in refusal(lab, *nodes(), pool("10.1.0.9", subnet="none"))
    assert reserved(lab) == set()
    lab.admin.network.delete_port(node)


def test_the_quota_is_counted_first_and_may_be_raised_by_the_same_spec(lab: Lab) -> None:
    few, pools = Quota(ports=3), (pool("10.1.0.200-10.1.0.203"), pool("10.1.0.204-10.1.0.205", name="b"))
    lab.apply(*nodes(), few)
    said = refusal(lab, *nodes(), few, *pools)
    assert said.count("quota ports") == 1
    short = "exceed together the quota ports: 6 more, 3 of 3 left; raise quota.ports in the spec to 6"
    assert f"address_pool/lb, address_pool/b: {short}" in said
    lab.apply(*nodes(), Quota(ports=6), *pools)
    assert reserved(lab) == addresses(200, 205)


def test_outside_is_checked_and_ports_give_way_to_it(lab: Lab) -> None:
    """What the spec makes of the allocation pools counts, and ports are no longer needed then."""
    lab.apply(*nodes(), pool("10.1.0.196-10.1.0.203"))
    outside = pool("10.1.0.196-10.1.0.203", reserve="outside")
    said = refusal(lab, *nodes(), outside)
    assert "10.1.0.196-10.1.0.199 is in the allocation pool 10.1.0.10-10.1.0.199 of subnet nodes" in said
    shrunk = nodes(allocation_pools=("10.1.0.10-10.1.0.195",))
    assert lab.apply(*shrunk, outside) == {"subnet/nodes": "update", "address_pool/lb": "update"}
    assert reserved(lab) == set()
    (found,) = [each for key, each in api.show(lab.cloud, lab.spec(*shrunk, outside)).items() if key.name == "lb"]
    assert found is not None
    assert found.outputs == {"reserved": "outside the allocation pools"}
    node = port(lab, "node", "10.1.0.197")
    assert "10.1.0.197 is used by port node" in refusal(lab, *shrunk, outside)
    lab.admin.network.delete_port(node)


def test_pools_of_ipv6(lab: Lab) -> None:
    """A few addresses by ports, a whole /64 only outside; where addresses are computed no port can have one."""
    v6: dict[str, Any] = {"cidr": "fd00:1::/48", "allocation_pools": ("fd00:1::10-fd00:1::ffff",)}
    stateful = {"ipv6_ra_mode": "dhcpv6-stateful", "ipv6_address_mode": "dhcpv6-stateful"}
    net, subnet = nodes(**v6, **stateful)
    wanted = (net, subnet, pool("fd00:1::f00-fd00:1::f03"), pool("fd00:1:0:5::/64", name="wide", reserve="outside"))
    lab.apply(*wanted)
    assert reserved(lab) == {f"fd00:1::f0{digit}" for digit in range(4)}
    assert "18446744073709551616 addresses are too many" in refusal(lab, net, subnet, pool("fd00:1:0:5::/64"))
    slaac = {"ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
    auto = Subnet(name="auto", network="nodes", cidr="fd00:2::/64", **slaac)  # type: ignore[arg-type]
    computed = pool("fd00:2::f00-fd00:2::f0f", name="auto", subnet="auto")
    assert "derives addresses from MAC addresses" in refusal(lab, *wanted, auto, computed)
    lab.apply(*wanted, auto, pool("fd00:2::f00-fd00:2::f0f", name="auto", subnet="auto", reserve="outside"))


def test_what_somebody_uses_is_kept(lab: Lab) -> None:
    """A reserved port that a server got, or a floating IP serves, is neither shrunk away nor destroyed."""
    wanted = pool("10.1.0.200-10.1.0.202")
    lab.apply(*nodes(), wanted)
    kept = lab.admin.network.find_port("lb-10.1.0.201", project_id=lab.project_id, ignore_missing=False)
    lab.admin.network.update_port(kept, device_id="a-server", device_owner="compute:nova")
    port_shown = f"port lb-10.1.0.201 {kept.id}"
    assert f"{port_shown} would be removed from the pool, but is attached to a-server" in refusal(
        lab, *nodes(), pool("10.1.0.200")
    )
    with pytest.raises(PlanRefused, match=f"{port_shown} is attached to a-server"):
        lab.destroy(wanted)
    assert reserved(lab) == {"10.1.0.200", "10.1.0.202"}
    lab.admin.network.update_port(kept, device_id="", device_owner="")


def test_port_forwardings_of_others_to_a_pool(lab: Lab) -> None:
    """Neutron deletes them with the port: none is shrunk away, and destroy names them."""
    wanted, out = pool("10.1.0.200-10.1.0.201"), Router(name="out", external_network="external", interfaces=("nodes",))
    lab.apply(*nodes(), out, wanted)
    neutron = lab.admin.network
    reserved_port = neutron.find_port("lb-10.1.0.201", project_id=lab.project_id, ignore_missing=False)
    address = neutron.create_ip(floating_network_id=neutron.find_network("external").id, project_id=lab.project_id)
    forwarding = {"internal_port_id": reserved_port.id, "internal_ip_address": "10.1.0.201", "protocol": "tcp"}
    made = neutron.create_port_forwarding(floatingip_id=address.id, internal_port=80, external_port=80, **forwarding)
    assert contains(refusal(lab, *nodes(), out, pool("10.1.0.200")), made.id, address.floating_ip_address)
    with pytest.raises(PlanRefused, match=f"--allow-loss port_forwarding/{made.id}"):
        lab.destroy(wanted)
    assert neutron.get_port_forwarding(made.id, address).internal_port_id == reserved_port.id
    (rest,) = [each for each in lab.spec(wanted).resources if each.kind == wanted.kind]
    report = api.destroy(lab.cloud, Spec(lab.name, (rest,)), allow_loss=[f"port_forwarding/{made.id}"])
    report.raise_for_failures()
    assert reserved(lab) == set()
    neutron.delete_ip(address)


def test_a_floating_ip_that_was_attached_after_the_plan_keeps_its_port(lab: Lab) -> None:
    wanted, out = pool("10.1.0.200-10.1.0.201"), Router(name="out", external_network="external", interfaces=("nodes",))
    lab.apply(*nodes(), out, wanted)
    made = lab.plan(*nodes(), out, pool("10.1.0.200"))
    neutron = lab.admin.network
    kept = neutron.find_port("lb-10.1.0.201", project_id=lab.project_id, ignore_missing=False)
    address = neutron.create_ip(floating_network_id=neutron.find_network("external").id, project_id=lab.project_id)
    neutron.update_ip(address, port_id=kept.id)
    assert [str(each.step.key) for each in api.apply(lab.cloud, made).failed] == ["address_pool/lb"]
    assert neutron.get_ip(address).port_id == kept.id
    neutron.delete_ip(address)


SMALL_BULKS = "from openstack_prep.cli import main as cli"
SMALL_BULKS += "; from openstack_prep.resources.network import reserved_ports"
SMALL_BULKS += "; reserved_ports.BULK = 4; raise SystemExit(cli.main())"


def test_a_killed_run_and_a_lost_answer_converge(devcloud: Devcloud, tenant: Tenant, prep: Prep) -> None:
    """Killed when some ports are made; then the answer that tells of the rest never comes."""
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    neutron: Any = tenant.connect().network
    network = neutron.create_network(name="nodes")
    neutron.create_subnet(name="nodes", network_id=network.id, cidr="10.1.0.0/24", ip_version=4)
    prep.write(
        {
            "name": "killed",
            "address_pools": [{"name": "lb", "subnet": "nodes", "addresses": ["10.1.0.200-10.1.0.209"]}],
        }
    )

    def kept() -> list[str]:
        listed = neutron.ports(device_owner="openstack-prep:reserved")
        return sorted(each["ip_address"] for port in listed for each in port.fixed_ips)

    command = [sys.executable, "-c", SMALL_BULKS, "apply", "--yes", prep.spec.name]
    with devcloud.faults(Fault("neutron", method="POST", path_regex="ports$", skip=1, delay=3.0, status=503)):
        running = subprocess.Popen(command, cwd=prep.folder, env=os.environ | prep.environment)
        while not kept():
            time.sleep(0.05)
        running.kill()
        running.wait()
    assert kept() == sorted(addresses(200, 203))
    with devcloud.faults(Fault("neutron", method="POST", path_regex="ports$", drop_answer=True)):
        prep.apply()
    assert kept() == sorted(addresses(200, 209))
    assert prep.changes() == set()
