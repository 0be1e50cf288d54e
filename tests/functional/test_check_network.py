"""What check finds of the networks for machines in a real project, and whether its remedies mend it."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from openstack.exceptions import ForbiddenException

from openstack_prep.openshift.install_config import MachinePool, ResourceReference
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.check_room import PLATFORM, Room, _shared, room, shared
from tests.functional.conftest import Prep

__all__ = ["_shared", "room", "shared"]


def test_nothing_stands_in_the_way_of_a_clean_project(shared: Room) -> None:
    assert shared.found() == []
    assert shared.found(load_balancer="UserManaged") == []
    neutron = shared.connection.network
    network = neutron.create_network(name="clean")
    subnet = neutron.create_subnet(
        name="clean",
        network_id=network.id,
        cidr="10.0.0.0/16",
        ip_version=4,
        allocation_pools=[{"start": "10.0.1.0", "end": "10.0.255.254"}],
        dns_nameservers=["192.0.2.53"],
    )
    router = neutron.create_router(name="clean", external_gateway_info={"network_id": shared.external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    own = {"external_dns": (), "machines_network": ResourceReference(name="clean")}
    assert shared.found(machines_subnets=(ResourceReference(name="clean"),), **own) == []
    assert shared.found(machines_subnets=(ResourceReference(id=subnet.id),), release="4.12", external_dns=()) == []


def test_the_remedies_for_an_own_subnet_mend_it(room: Room) -> None:
    neutron = room.connection.network
    network, subnet = room.own(port_security_enabled=False)
    neutron.update_subnet(subnet, is_dhcp_enabled=False, gateway_ip=None)
    neutron.create_port(network_id=network.id, name="theirs", fixed_ips=[{"ip_address": "10.0.0.7"}])
    own = {"machines_subnets": (ResourceReference(name="v4"),), "external_dns": ()}
    found = room.findings(**own)
    (no_gateway,) = (each for each in found if each.what.endswith("has no gateway"))
    found.remove(no_gateway)
    room.mend(no_gateway)
    theirs = neutron.find_port("theirs", ignore_missing=False)
    pool = "lies in the allocation pool 10.0.0.2-10.0.255.254 of ID"
    assert [(each.status, each.what.replace(subnet.id, "ID")) for each in found] == [
        ("error", "DHCP is off on subnet ID"),
        ("warning", "subnet ID names no DNS servers"),
        ("error", "no router has an interface in subnet ID"),
        ("error", f"port security is off on network {network.id}"),
        ("error", f"the API's 10.0.0.5 (the installer's default) {pool}"),
        ("error", f"ingress's 10.0.0.7 (the installer's default) {pool}"),
        ("error", f"ingress's 10.0.0.7 (the installer's default) is in use by port theirs {theirs.id}"),
    ]
    for each in found[:5] + found[6:]:  # one command leaves both addresses out
        room.mend(each, **({"ADDRESS": "192.0.2.53"} if "ADDRESS" in each.fix else {}))
    assert room.found(**own) == []
    (router,) = neutron.routers(project_id=room.tenant.project_id)
    neutron.update_router(router, external_gateway_info={})
    (left,) = room.findings(**own)
    assert left.what == f"router {router.name} {router.id} of subnet {subnet.id} has no external gateway"
    room.mend(left)
    assert room.found(**own) == []
    ranges = [(each["start"], each["end"]) for each in neutron.get_subnet(subnet).allocation_pools]
    assert sorted(ranges) == [("10.0.0.2", "10.0.0.4"), ("10.0.0.6", "10.0.0.6"), ("10.0.0.8", "10.0.255.254")]

    wrong = room.found(**own | {"machine_networks": ("10.9.0.0/16",)})
    assert "error networking.machineNetwork: 10.9.0.0/16 is not 10.0.0.0/16, the network of subnet " in "\n".join(wrong)
    neutron.create_subnet(name="v4", network_id=network.id, cidr="10.1.0.0/24", ip_version=4)
    assert "error platform.openstack.controlPlanePort.fixedIPs: 2 subnets are called 'v4': " in "\n".join(
        room.found(**own)
    )


def test_a_network_of_another_project(shared: Room, devcloud: Devcloud) -> None:
    neutron: Any = devcloud.admin.network
    network = neutron.create_network(name="theirs")
    target = {"target_tenant": shared.tenant.project_id, "action": "access_as_shared"}
    neutron.create_rbac_policy(object_type="network", object_id=network.id, **target)
    pool = [{"start": "10.0.1.0", "end": "10.0.255.254"}]
    cidr = {"cidr": "10.0.0.0/16", "ip_version": 4, "allocation_pools": pool, "dns_nameservers": ["192.0.2.53"]}
    subnet = neutron.create_subnet(network_id=network.id, **cidr)
    try:
        own = {"machines_subnets": (ResourceReference(id=subnet.id),), "external_dns": ()}
        where = f"warning {PLATFORM}.controlPlanePort.fixedIPs: "
        assert shared.found(**own) == [
            f"{where}no router has an interface in subnet {subnet.id}, as far as these credentials show",
            f"{where}network {network.id} belongs to project {network.project_id}",
        ]
        with pytest.raises(ForbiddenException):  # what the installer would ask for
            shared.connection.network.create_port(network_id=network.id, fixed_ips=[{"ip_address": "10.0.0.5"}])
    finally:
        neutron.delete_network(network)


def test_two_stacks_need_ports_of_the_users_own(room: Room) -> None:
    neutron = room.connection.network
    network, v4 = room.own(mtu=1300)
    six = {"ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
    six |= {"cidr": "fd2e:6f44:5dd8::/64", "dns_nameservers": ["fd2e::53"]}
    v6 = neutron.create_subnet(name="v6", network_id=network.id, ip_version=6, **six)
    neutron.update_subnet(v4, dns_nameservers=["192.0.2.53"])
    router = neutron.create_router(name="r", external_gateway_info={"network_id": room.external.id})
    for subnet in (v4, v6):
        neutron.add_interface_to_router(router, subnet_id=subnet.id)
    stateful = {
        "machines_subnets": (ResourceReference(id=v4.id), ResourceReference(id=v6.id)),
        "machine_networks": ("10.0.0.0/16", "fd2e:6f44:5dd8::/64"),
        "cluster_networks": ("10.128.0.0/14", "fd01::/48"),
        "service_networks": ("172.30.0.0/16", "fd02::/112"),
        "api_vips": ("10.0.0.5",),
        "ingress_vips": ("10.0.0.7",),
        "external_dns": (),
    }
    found = room.findings(**stateful)
    assert [each.what for each in found] == [
        f"the MTU of network {network.id} is 1300",
        "no port has 10.0.0.5",
        "no port has 10.0.0.7",
    ]
    for each in found:
        room.mend(each)
    assert room.found(**stateful) == []
    made = neutron.find_port("dev-ingress-port", ignore_missing=False)
    neutron.update_port(made, device_owner="compute:nova")
    assert f"10.0.0.7: in use by port dev-ingress-port {made.id} compute:nova" in "\n".join(room.found(**stateful))


def test_networks_that_fixes_name_are_right(room: Room) -> None:
    neutron = room.connection.network
    network, subnet = room.own()
    for name in ("twice", "twice", "other"):
        neutron.create_network(name=name)
    own = {"machines_subnets": (ResourceReference(id=subnet.id),), "external_dns": ()}
    for name, code in (("nobodys", "missing"), ("twice", "ambiguous"), ("other", "not-of-subnet")):
        found = room.findings(**own, machines_network=ResourceReference(name=name))
        (finding,) = (each for each in found if each.code.startswith("network."))
        assert finding.code == f"network.{code}"
        named = ResourceReference(id=finding.fix.removeprefix("write the id ").partition(",")[0])
        assert named.id == network.id
        assert not [each for each in room.findings(**own, machines_network=named) if each.code.startswith("network.")]
    for code, field, wrong in (
        ("network.overlap", "machine_networks", {"machine_networks": ("192.168.0.0/16",)}),
        ("network.overlap", "cluster_networks", {"cluster_networks": ("192.168.0.0/17",)}),
        ("network.shadows-address", "service_networks", {"external_dns": ("172.30.0.10",)}),
    ):
        (finding,) = room.findings(**wrong)
        assert finding.code == code
        assert room.findings(**wrong | {field: (finding.fix.partition(", such as ")[2],)}) == []
    uplink = neutron.create_network(name="uplink", is_port_security_enabled=False)
    added = room.findings(compute=MachinePool(additional_networks=(uplink.id,)))
    assert {each.code for each in added} == {"port-security.off", "network.no-subnet"}
    neutron.create_subnet(network_id=uplink.id, cidr="10.77.0.0/24", ip_version=4)
    neutron.update_network(uplink, is_port_security_enabled=True)
    assert room.findings(compute=MachinePool(additional_networks=(uplink.id,))) == []


def test_room_and_floating_ips_that_fixes_make(room: Room, devcloud: Devcloud) -> None:
    neutron = room.connection.network
    _, subnet = room.own()
    neutron.update_subnet(subnet, allocation_pools=[{"start": "10.0.0.10", "end": "10.0.0.12"}])
    own = {"machines_subnets": (ResourceReference(id=subnet.id),), "external_dns": ()}
    (full,) = (each for each in room.findings(**own) if each.code == "subnet.full")
    room.mend(full)
    assert {each.code for each in room.findings(**own)} == {"subnet.no-dns-server", "router.missing"}
    with (
        contextlib.closing(sqlite3.connect(devcloud.layout.db / "neutron.sqlite", timeout=30)) as database,
        database,
    ):  # what an agent writes that fails
        row = (room.cluster.api_floating_ip,)
        database.execute("UPDATE floatingips SET status = 'ERROR' WHERE floating_ip_address = ?", row)
    (stale,) = room.findings()
    assert stale.code == "floating-ip.not-down"
    before = {each.floating_ip_address for each in neutron.ips()}
    room.mend(stale)
    (address,) = {each.floating_ip_address for each in neutron.ips()} - before or before & {stale.what.split()[0]}
    room.cluster = replace(room.cluster, api_floating_ip=address)
    room.name()
    assert room.findings() == []


def test_ten_mistakes_at_once(shared: Room, prep: Prep) -> None:
    """One run of the command tells them all, each with its line and something to do."""
    port = shared.connection.network.create_port(network_id=shared.own()[0].id, name="theirs")
    second = {"network_id": port.network_id, "cidr": "10.2.0.0/16", "ip_version": 4, "is_dhcp_enabled": False}
    subnet = shared.connection.network.create_subnet(gateway_ip=None, **second)
    shared.hosts.write_text("203.0.113.9 api.dev.example.com")
    (shared.folder / "install-config.yaml").write_text(f"""\
apiVersion: v1
baseDomain: example.com
metadata: {{name: dev}}
networking:
  machineNetwork: [{{cidr: 192.168.0.0/16}}]
  clusterNetwork: [{{cidr: 10.128.0.0/22, hostPrefix: 23}}]
  serviceNetwork: [172.30.0.0/16]
platform:
  openstack:
    cloud: {shared.tenant.cloud}
    defaultMachinePlatform: {{type: m1.large}}
    externalNetwork: external
    apiFloatingIP: 192.168.122.99
    controlPlanePort: {{fixedIPs: [{{subnet: {{id: {subnet.id}}}}}]}}
    externalDns: [192.0.2.53]
pullSecret: '{{"auths": {{"example.com": {{"auth": "Zm9vOmJhcg=="}}}}}}'
""")
    prep.environment = {"OS_CLIENT_CONFIG_FILE": str(shared.tenant.clouds_file)}
    said = prep.run("check", str(shared.folder), "--release", "4.18", "--hosts", str(shared.hosts), code=1).stdout
    for expected in (
        f":5: networking.machineNetwork: 192.168.0.0/16 is not 10.2.0.0/16, the network of subnet {subnet.id}",
        ":5: networking.machineNetwork: 192.168.0.0/16 overlaps 192.168.122.0/24 of the external network 'external'",
        ":6: networking.clusterNetwork: 10.128.0.0/22 has 2 parts of /23 (hostPrefix), the cluster has 6 nodes",
        ":13: platform.openstack.apiFloatingIP: 192.168.122.99 is not a floating IP of project",
        f":14: platform.openstack.controlPlanePort.fixedIPs: DHCP is off on subnet {subnet.id}",
        f":14: platform.openstack.controlPlanePort.fixedIPs: subnet {subnet.id} has no gateway",
        f":14: platform.openstack.controlPlanePort.fixedIPs: no router has an interface in subnet {subnet.id}",
        ":15: platform.openstack.externalDNS: does not apply to your own subnet",
        f"error: names: api.dev.example.com: leads to 203.0.113.9 ({shared.hosts}:1), not to 192.168.122.99",
        "warning: names: console-openshift-console.apps.dev.example.com",
    ):
        assert expected in said, said
    assert "virtual" not in said.replace("virtual addresses follow from it", "")  # they follow from the network
    assert "Zm9vOmJhcg==" not in said
    assert said.count("\n  why: ") == said.count("\n  fix: ") == len(said.splitlines()) // 3


def test_the_shipped_network_of_ones_own_passes(prep: Prep) -> None:
    shipped = resources.files("openstack_prep.install_configs") / "openshift-byo-network.yaml"
    prep.spec.write_text(shipped.read_text())
    (prep.folder / "pull-secret.json").write_text('{"auths": {"example.com": {"auth": "Zm9vOmJhcg=="}}}')
    (prep.folder / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n"
    )
    prep.apply()
    prep.run("names", "--install-config", "byo/install-config.yaml", "--write", "hosts")
    tenant = replace(prep, environment={"OS_CLIENT_CONFIG_FILE": str(prep.folder / "byo-credentials" / "clouds.yaml")})
    said = tenant.run("check", "byo", "--release", "4.20", "--hosts", "hosts").stdout
    assert said == "byo/install-config.yaml for 4.20 in cloud 'byo': no problems found\n"
