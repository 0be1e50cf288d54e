"""Ports on a real Neutron: created, changed, drifted, shared, raced for, and kept while somebody uses them."""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, PlanRefused, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, twin
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.port_addresses import PortAddress, PortPair
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from openstack_prep.verbs.audit import audit
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import connect
from tests.functional.conftest import OPENSTACK
from tests.functional.lab import Lab

NETWORK = Network(name="net")
V4 = Subnet(name="v4", network="net", cidr="10.0.0.0/24", allocation_pools=("10.0.0.100-10.0.0.200",))
V6 = Subnet(
    name="v6",
    network="net",
    cidr="fd00:5::/64",
    ipv6_ra_mode="dhcpv6-stateful",
    ipv6_address_mode="dhcpv6-stateful",
)
ROUTER = Router(name="out", external_network="external", interfaces=("v4", "v6"))
GROUP = SecurityGroup(name="web")
API = Port(
    name="api",
    network="net",
    fixed_ips=(PortAddress(subnet="v4", address="10.0.0.5"), PortAddress(subnet="v6", address="fd00:5::5")),
    security_groups=("web",),
    allowed_address_pairs=(PortPair(address="10.0.0.6"), PortPair(address="10.9.0.0/16")),
    tags=("vip", "role=api"),
    description="the virtual address of the API",
)
BASE = (NETWORK, V4, V6, ROUTER, GROUP)
ALL = (*BASE, API)


def ports(lab: Lab, name: str = "api") -> list[Any]:
    return list(lab.admin.network.ports(project_id=lab.project_id, name=name))


def port(lab: Lab, name: str = "api") -> Any:
    (found,) = ports(lab, name)
    return found


def addresses(found: Any) -> set[str]:
    return {each["ip_address"] for each in found.fixed_ips}


def test_from_create_to_destroy(lab: Lab) -> None:
    lab.apply(*ALL)
    made = port(lab)
    assert made.project_id == lab.project_id
    assert addresses(made) == {"10.0.0.5", "fd00:5::5"}
    assert made.description.startswith("the virtual address of the API [openstack-prep:")
    assert {"vip", "role=api"} == set(made.tags)
    assert {each["ip_address"] for each in made.allowed_address_pairs} == {"10.0.0.6", "10.9.0.0/16"}
    (group,) = made.security_group_ids
    assert lab.admin.network.get_security_group(group).name == "web"
    assert {"port/api", "subnet/v4", "network/net", "router/out", "security_group/web"} <= lab.destroy()


def test_what_is_changed_and_what_drifted(lab: Lab) -> None:
    lab.apply(*ALL)
    made, neutron = port(lab), lab.admin.network
    neutron.update_port(made, allowed_address_pairs=[{"ip_address": "10.7.7.7"}], security_groups=[])
    assert lab.apply(*ALL) == {"port/api": "update"}
    moved = replace(
        API,
        fixed_ips=(PortAddress(subnet="v4", address="10.0.0.8"), PortAddress(subnet="v6")),
        tags=("vip", "more"),
        port_security_enabled=True,
    )
    assert lab.apply(*BASE, moved) == {"port/api": "update"}
    after = port(lab)
    assert after.id == made.id
    assert addresses(after) == {"10.0.0.8", "fd00:5::5"}  # an address that fits the subnet is kept
    assert {"vip", "role=api", "more"} == set(after.tags)
    open_port = replace(moved, port_security_enabled=False, security_groups=(), allowed_address_pairs=())
    assert lab.apply(*BASE, open_port) == {"port/api": "update"}


def test_another_network_needs_consent(lab: Lab) -> None:
    other = (Network(name="other"), Subnet(name="far", network="other", cidr="10.8.0.0/24"))
    lab.apply(*ALL, *other)
    moved = replace(API, network="other", fixed_ips=(PortAddress(subnet="far", address="10.8.0.5"),))
    with pytest.raises(PlanRefused, match="network 'net' -> 'other'"):
        lab.run(*BASE, *other, moved)
    assert lab.apply(*BASE, *other, moved, allow_replace=True) == {"port/api": "replace"}
    assert addresses(port(lab)) == {"10.8.0.5"}


def test_addresses_that_the_network_does_not_offer(lab: Lab) -> None:
    lab.apply(*BASE, AddressPool(name="lb", subnet="v4", addresses=("10.0.0.240",)))
    with pytest.raises(SpecError, match=r"10.0.1.5 is outside 10.0.0.0/24 of subnet v4"):
        lab.run(*BASE, replace(API, fixed_ips=(PortAddress(subnet="v4", address="10.0.1.5"),)))
    outside, taken = PortAddress(subnet="v4", address="10.0.1.5"), PortAddress(address="10.0.0.240")
    with pytest.raises(PlanRefused) as refused:  # of a subnet that only the cloud has
        lab.run(replace(API, fixed_ips=(outside, taken)))
    said = str(refused.value)
    assert "10.0.1.5 is outside 10.0.0.0/24 of v4" in said
    assert "10.0.0.240 is used by port lb-10.0.0.240" in said
    slaac = Subnet(name="s6", network="net", cidr="fd00:6::/64", ipv6_ra_mode="slaac", ipv6_address_mode="slaac")
    chosen = replace(API, fixed_ips=(PortAddress(subnet="s6", address="fd00:6::5"),), dns_name="api")
    with pytest.raises(PlanRefused) as refused:
        lab.run(*BASE, slaac, chosen)
    assert "fd00:6::5 is in a subnet that derives addresses" in str(refused.value)
    assert "lacks the extension dns-integration" in str(refused.value)
    assert not ports(lab)


def test_an_address_derived_from_a_mac_address(lab: Lab) -> None:
    """Neutron adds such an address to every port of the network: it is no drift."""
    slaac = Subnet(name="s6", network="net", cidr="fd00:6::/64", ipv6_ra_mode="slaac", ipv6_address_mode="slaac")
    wanted = replace(
        API,
        mac_address="fa:16:3e:f1:1b:ad",
        fixed_ips=(
            PortAddress(subnet="v4", address="10.0.0.5"),
            PortAddress(subnet="s6", address="fd00:6::f816:3eff:fef1:1bad"),
        ),
    )
    lab.apply(*BASE, slaac, wanted)
    assert addresses(port(lab)) == {"10.0.0.5", "fd00:6::f816:3eff:fef1:1bad"}
    alone = replace(wanted, fixed_ips=wanted.fixed_ips[:1] if wanted.fixed_ips else ())
    assert lab.apply(*BASE, slaac, alone) == {}
    moved = replace(wanted, fixed_ips=(PortAddress(address="10.0.0.9"),))
    assert lab.apply(*BASE, slaac, moved) == {"port/api": "update"}
    assert addresses(port(lab)) == {"10.0.0.9", "fd00:6::f816:3eff:fef1:1bad"}


def test_an_address_that_a_port_forwarding_leads_to_stays(lab: Lab) -> None:
    """Also if somebody has created it since the plan."""
    lab.apply(*ALL)
    neutron, made = lab.admin.network, port(lab)
    moved = replace(API, fixed_ips=(PortAddress(address="10.0.0.9"),))
    before = api.plan(lab.cloud, lab.spec(*BASE, moved))
    theirs = neutron.create_ip(floating_network_id=neutron.find_network("external", ignore_missing=False).id)
    inside = {"internal_port_id": made.id, "internal_ip_address": "10.0.0.5", "internal_port": 80}
    forwarding = neutron.create_port_forwarding(floatingip_id=theirs.id, external_port=80, protocol="tcp", **inside)
    (late,) = api.apply(lab.cloud, before).failed
    assert forwarding.id in str(late.error)
    with pytest.raises(PlanRefused, match=forwarding.id):
        lab.run(*BASE, moved)
    neutron.delete_port_forwarding(forwarding, theirs)
    assert lab.apply(*BASE, moved) == {"port/api": "update"}
    neutron.delete_ip(theirs)


def test_the_address_of_a_colleagues_server_is_no_pair(lab: Lab) -> None:
    """Of a port without a server it may be one: that is how virtual addresses are reserved."""
    lab.apply(*ALL)
    neutron, network = lab.admin.network, port(lab).network_id
    theirs = neutron.create_port(network_id=network, fixed_ips=[{"ip_address": "10.0.0.60"}], name="theirs")
    free = neutron.create_port(network_id=network, fixed_ips=[{"ip_address": "10.0.0.61"}], project_id=lab.project_id)
    taken = AddressPairs(name="taken", ports=("api",), addresses=("10.0.0.60",))
    before = api.plan(lab.cloud, lab.spec(*ALL, taken))
    neutron.update_port(theirs, device_owner="compute:nova", device_id=str(uuid.uuid4()))
    (late,) = api.apply(lab.cloud, before).failed
    assert theirs.id in str(late.error)
    with pytest.raises(PlanRefused, match=f"10.0.0.60 is used by port theirs {theirs.id}"):
        lab.run(*ALL, taken)
    lab.apply(*ALL, replace(taken, addresses=("10.0.0.61",)))
    for each in (theirs, free):
        neutron.delete_port(each)


def test_floating_ips_and_pairs_refer_to_declared_ports(lab: Lab) -> None:
    floating = FloatingIP(name="api", external_network="external")
    attached = FloatingIPAttachment(floating_ip="api", port="api")
    pairs = AddressPairs(name="vips", ports=("api",), addresses=("10.0.0.50",))
    lab.apply(*ALL, floating, attached, pairs)
    made = port(lab)
    (address,) = lab.admin.network.ips(project_id=lab.project_id)
    assert address.port_id == made.id
    assert {each["ip_address"] for each in made.allowed_address_pairs} == {"10.0.0.6", "10.9.0.0/16", "10.0.0.50"}
    fewer = replace(API, allowed_address_pairs=(PortPair(address="10.0.0.6"),))
    assert lab.apply(*BASE, fewer, floating, attached, pairs) == {"port/api": "update"}
    assert {each["ip_address"] for each in port(lab).allowed_address_pairs} == {"10.0.0.6", "10.0.0.50"}
    spec = lab.spec(*BASE, fewer, floating, attached, pairs)
    assert audit(lab.cloud, spec) == []
    lab.destroy()
    assert lab.admin.identity.find_project(lab.name) is None


def test_a_port_goes_after_its_attachment(lab: Lab) -> None:
    """The floating IP is not the spec's, which detaches it and leaves it."""
    external = lab.admin.network.find_network("external", ignore_missing=False)
    lab.apply(*ALL)
    theirs = lab.admin.network.create_ip(floating_network_id=external.id, project_id=lab.project_id)
    attached = FloatingIPAttachment(address=theirs.floating_ip_address, port="api")
    lab.apply(*ALL, attached)
    assert lab.admin.network.get_ip(theirs).port_id == port(lab).id
    lab.apply(*BASE, prune=True)
    assert lab.admin.network.get_ip(theirs).port_id is None
    lab.admin.network.delete_ip(theirs)


def destroy_refused(lab: Lab) -> str:
    with pytest.raises(PlanRefused) as refused:
        api.destroy(lab.cloud, Spec(lab.name, tuple(lab.declared.values())))
    return str(refused.value)


def test_destroy_touches_nothing_while_a_server_uses_the_port(lab: Lab, devcloud: Devcloud) -> None:
    lab.apply(*ALL)
    made = port(lab)
    compute = lab.as_user().connection.compute
    image = lab.as_user().connection.image.create_image(
        name="empty", data=qcow2(1), disk_format="qcow2", container_format="bare"
    )
    flavor = compute.find_flavor("m1.small")
    server = compute.create_server(name="theirs", image_id=image.id, flavor_id=flavor.id, networks=[{"port": made.id}])
    compute.wait_for_server(server, interval=0.2, wait=60)
    before = devcloud.mark()
    assert f"port/api: compute:nova {server.id} uses the port" in destroy_refused(lab)
    assert not [each for each in devcloud.requests_since(before) if each.method in ("DELETE", "PUT")]
    moved = replace(API, fixed_ips=(PortAddress(subnet="v4", address="10.0.0.9"), PortAddress(subnet="v6")))
    with pytest.raises(PlanRefused, match=f"10.0.0.5 cannot be removed, because compute:nova {server.id} uses"):
        lab.run(*BASE, moved)
    compute.delete_server(server)
    compute.wait_for_delete(server, interval=0.2, wait=60)
    lab.admin.image.delete_image(image)


def test_a_foreign_floating_ip_keeps_the_port(lab: Lab) -> None:
    lab.apply(*ALL)
    external = lab.admin.network.find_network("external")
    address = lab.admin.network.create_ip(
        floating_network_id=external.id, port_id=port(lab).id, project_id=lab.project_id
    )
    assert f"port/api: floating IP {address.floating_ip_address} uses the port" in destroy_refused(lab)
    lab.admin.network.delete_ip(address)


def test_a_foreign_port_with_the_same_name(lab: Lab) -> None:
    """It is neither changed nor deleted; beside a managed one it does not matter."""
    lab.apply(*BASE)
    here = {"project_id": lab.project_id, "network_id": lab.admin.network.find_network("net").id}
    network = next(iter(lab.admin.network.networks(project_id=lab.project_id, name="net")))
    foreign = lab.admin.network.create_port(**here | {"network_id": network.id}, name="api")
    with pytest.raises(PlanRefused, match=r"--adopt|adopt"):
        lab.run(*ALL)
    lab.admin.network.delete_port(foreign)
    lab.apply(*ALL)
    foreign = lab.admin.network.create_port(**here | {"network_id": network.id}, name="api")
    assert not lab.plan(*ALL)
    assert {"port/api"} == lab.destroy(API)
    assert [each.id for each in ports(lab)] == [foreign.id]
    lab.admin.network.delete_port(foreign)


def test_a_port_that_is_no_longer_declared(lab: Lab) -> None:
    lab.apply(*ALL)
    report = api.apply(lab.cloud, lab.spec(*BASE), prune=True)
    report.raise_for_failures()
    assert {str(each.step.key) for each in report.changed} == {"port/api"}
    assert not ports(lab)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/ports$"), pytest.param("POST", "/tags$", marks=pytest.mark.more)]
)
def test_a_lost_answer_makes_nothing_twice(lab: Lab, devcloud: Devcloud, method: str, path: str) -> None:
    with devcloud.faults(Fault("neutron", method=method, path_regex=path, drop_answer=True)):
        lab.apply(*ALL)
    assert set(port(lab).tags) == {"vip", "role=api"}


def test_a_run_that_ended_before_the_tags(lab: Lab, devcloud: Devcloud) -> None:
    with devcloud.faults(Fault("neutron", method="POST", path_regex="/tags$", status=403)):
        lab.failure(*ALL)
    assert lab.apply(*ALL) == {"port/api": "update"}
    assert set(port(lab).tags) == {"vip", "role=api"}


@pytest.mark.parametrize("racers", [2, pytest.param(4, marks=pytest.mark.more)])
@pytest.mark.parametrize("chosen", [True, False], ids=["given address", "any address"])
def test_runs_at_once_leave_one_port(lab: Lab, racers: int, chosen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin, "WAIT", 10.0)
    wanted = (*BASE, API if chosen else replace(API, fixed_ips=None))
    lab.apply(*BASE)
    plans = [
        api.plan(Cloud(connect(lab.devcloud.clouds_file, "devcloud-admin")), lab.spec(*wanted)) for _ in range(racers)
    ]
    with ThreadPoolExecutor(racers) as pool:
        for report in pool.map(lambda made: executor.execute(made, made.run), plans):
            report.raise_for_failures()
    assert len(ports(lab)) == 1
    assert not lab.plan(*wanted)


@pytest.fixture
def shared(lab: Lab) -> Iterator[Any]:
    """A network of another project that is shared with the lab's project alone."""
    neutron = lab.admin.network
    network = neutron.create_network(name=f"shared-{lab.name}")
    subnet = neutron.create_subnet(network_id=network.id, name="common", cidr="10.44.0.0/24", ip_version=4)
    lab.apply()
    policy = neutron.create_rbac_policy(
        object_type="network", object_id=network.id, action="access_as_shared", target_project_id=lab.project_id
    )
    yield network
    lab.destroy()
    neutron.delete_rbac_policy(policy)
    neutron.delete_subnet(subnet)
    neutron.delete_network(network)


def test_a_port_on_a_network_of_another_project(lab: Lab, shared: Any) -> None:
    vip = Port(name="vip", network=shared.name, fixed_ips=(PortAddress(subnet="common", address="10.44.0.5"),))
    lab.apply(vip)
    made = port(lab, "vip")
    assert (made.project_id, made.network_id, addresses(made)) == (lab.project_id, shared.id, {"10.44.0.5"})
    report = api.apply(lab.cloud, lab.spec(), prune=True)
    report.raise_for_failures()
    assert not ports(lab, "vip")


def test_pairs_of_another_spec_on_a_port_that_goes(lab: Lab) -> None:
    api_port = replace(API, security_groups=None)
    lab.apply(*BASE, api_port)
    made = port(lab, "api")
    theirs = AddressPairs(name="vips", ports=("api",), addresses=("10.0.0.50",))
    other = Spec(f"other-{lab.name}", (lab.project, replace(theirs, project=lab.project.name)))
    api.apply(lab.cloud, other).raise_for_failures()
    moved = lab.spec(*BASE, replace(api_port, mac_address="fa:16:3e:00:00:77"))
    whole = lab.spec(*BASE, api_port)
    (key,) = (each.key for each in whole.resources if each.key.name == "api")
    for plan in (
        api.plan(lab.cloud, moved, allow_replace=True),
        api.plan_destroy(lab.cloud, replace(whole, only=frozenset({key}))),
    ):
        lost = [loss for step in plan for loss in step.deletion_losses if loss.kind == "address_pair"]
        assert [(each.id, each.detail) for each in lost] == [(f"{made.id}/10.0.0.50", f"of spec {other.name}")]
        assert [each.code for each in plan.refusals] == [Code.PLAN_LOSES]
    api.destroy(lab.cloud, replace(other, only=frozenset({other.resources[-1].key}))).raise_for_failures()


def test_pairs_of_multicast_that_others_added_before_neutron_refused_them(lab: Lab, devcloud: Devcloud) -> None:
    """Neutron 2026.2 refuses them (extension aap-reject-multicast), and each update that keeps one from before."""
    names = ("blocked", "free")
    base = (NETWORK, V4, *(Port(name=name, network="net") for name in names))
    lab.apply(*base)

    def add_as_before(*addresses: str) -> None:
        found = ports(lab, "blocked")[0]
        with (
            contextlib.closing(sqlite3.connect(devcloud.layout.db / "neutron.sqlite", timeout=30)) as database,
            database,
        ):
            rows = [(found.id, found.mac_address, address) for address in addresses]
            database.executemany("INSERT INTO allowedaddresspairs VALUES (?, ?, ?)", rows)

    def carried_out(refusal: Mistake) -> None:
        """Carry out the printed fix as it stands."""
        command = shlex.split(refusal.fix.partition(": ")[2])
        assert command[0] == "openstack"
        environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
        subprocess.run([OPENSTACK, *command[1:]], env={**environment, "PATH": "/bin:/usr/bin"}, check=True)

    add_as_before("224.0.0.18", "::/0", "10.9.9.9")
    pairs = AddressPairs(name="vips", ports=names, addresses=("10.0.0.5",))
    (refusal,) = lab.plan(*base, pairs).refusals
    assert refusal.code == Code.ADDRESS_MULTICAST
    assert "224.0.0.18" in refusal.what
    assert "::/0" in refusal.what
    assert not ports(lab, "free")[0].allowed_address_pairs
    carried_out(refusal)
    assert lab.apply(*base, pairs) == {"address_pairs/vips": "create"}
    addresses = {each["ip_address"] for each in ports(lab, "blocked")[0].allowed_address_pairs}
    assert addresses == {"10.9.9.9", "10.0.0.5"}

    add_as_before("224.0.0.18")  # the end of the spec is not stuck either
    (refusal,) = api.plan_destroy(lab.cloud, lab.spec(*base, pairs)).refusals
    assert refusal.code == Code.ADDRESS_MULTICAST
    carried_out(refusal)
    assert not api.plan_destroy(lab.cloud, lab.spec(*base, pairs)).refusals

    wide = AddressPairs(name="vips", ports=names, addresses=("0.0.0.0/0", "128.0.0.0/1"))
    (refusal,) = lab.plan(*base, wide).refusals  # Neutron accepts the first one
    assert (refusal.code, "128.0.0.0/1" in refusal.what) == (Code.ADDRESS_MULTICAST, True)
    rest = tuple(refusal.fix.partition(": ")[2].split(", "))
    lab.apply(*base, replace(wide, addresses=("0.0.0.0/0", *rest)))
    declared = Port(name="free", network="net", allowed_address_pairs=(PortPair(address="::/0"),))
    assert [each.code for each in lab.plan(*base[:-1], declared).refusals] == [Code.ADDRESS_MULTICAST]
