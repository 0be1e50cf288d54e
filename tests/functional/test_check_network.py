"""What check finds of networks, addresses and names in a real project, and whether its remedies mend it."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from openstack.exceptions import ForbiddenException

from openstack_prep.check import (
    Finding,
    Scene,
    external_network,
    floating_ips,
    names,
    networks,
    ovn,
    own_subnet,
    vips,
)
from openstack_prep.cloud import Cloud
from openstack_prep.install_config import Cluster, Contents, Reference, document, dump
from openstack_prep.names.hosts import Names, hosts_lines
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.client import openstack
from tests.functional.conftest import COMMAND, Prep

MINE = (
    external_network.external_network,
    floating_ips.floating_ips,
    networks.networks,
    own_subnet.own_subnet,
    vips.vips,
    names.names,
    ovn.ovn,
)
PLATFORM = "platform.openstack"


@dataclass
class Room:
    """A project that a cluster could be installed in, with two floating IPs and their names."""

    tenant: Tenant
    folder: Path
    connection: Any = field(init=False)
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.connection = self.tenant.connect()
        self.external = self.connection.network.find_network("external", ignore_missing=False)
        api, ingress = self.float_ip(), self.float_ip()
        self.cluster = Cluster(
            release="4.18",
            cluster_name="dev",
            base_domain="example.com",
            cloud=self.tenant.cloud,
            external_network="external",
            api_floating_ip=api,
            ingress_floating_ip=ingress,
            external_dns=("192.0.2.53",),
        )
        self.name()

    def name(self) -> None:
        """Let the names lead where they should."""
        lines = hosts_lines(self.names(self.cluster.api_floating_ip or "", self.cluster.ingress_floating_ip or ""))
        self.hosts.write_text("\n".join(lines))

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts"

    @staticmethod
    def names(api: str, ingress: str) -> Names:
        return Names(cluster_name="dev", base_domain="example.com", api=api, ingress=ingress)

    def float_ip(self, network_id: str | None = None) -> str:
        return str(self.connection.network.create_ip(floating_network_id=network_id or self.external.id)["name"])

    def scene(self, *, connection: Any = None, **changes: Any) -> Scene:
        """Return what a run of its own sees."""
        return Scene(
            cloud=Cloud(connection or self.tenant.connect()),
            cluster=replace(self.cluster, **changes),
            contents=Contents(),
            path=self.folder / "install-config.yaml",
            hosts=self.hosts,
        )

    def findings(self, **changes: Any) -> list[Finding]:
        scene = self.scene(**changes)
        return [each for check in MINE for each in check(scene)]

    def found(self, **changes: Any) -> list[str]:
        return [f"{each.level} {each.where}: {each.what}" for each in self.findings(**changes)]

    def mend(self, finding: Finding, **words: str) -> None:
        """Do what a finding says, as a shell would read it."""
        command = shlex.split(finding.remedy, comments=True)
        assert command[0] == "openstack"
        given = [words.get(each, each) for each in command[1:]]
        openstack(given, {"OS_CLIENT_CONFIG_FILE": str(self.tenant.clouds_file)})

    def own(self, **of_network: Any) -> tuple[Any, Any]:
        """Make a network with a subnet as somebody would who knows nothing of the installer."""
        neutron = self.connection.network
        network = neutron.create_network(name="machines", **of_network)
        return network, neutron.create_subnet(name="v4", network_id=network.id, cidr="10.0.0.0/16", ip_version=4)


@pytest.fixture
def room(tenant: Tenant, tmp_path: Path) -> Room:
    return Room(tenant, tmp_path)


@pytest.fixture(scope="module")
def _shared(module_tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(module_tenant, tmp_path_factory.mktemp("room"))


@pytest.fixture
def shared(_shared: Room) -> Room:
    """One for tests that have no network by its name, and whose floating IPs stay as they are."""
    _shared.name()
    return _shared


@pytest.fixture
def second_external(devcloud: Devcloud) -> Iterator[Any]:
    """Another external network, with one address; it goes before the tenant does."""
    neutron: Any = devcloud.admin.network
    network = neutron.create_network(name=f"second-{secrets.token_hex(3)}", is_router_external=True)
    pool = [{"start": "198.51.100.10", "end": "198.51.100.10"}]
    cidr = {"cidr": "198.51.100.0/24", "ip_version": 4, "is_dhcp_enabled": False, "allocation_pools": pool}
    neutron.create_subnet(network_id=network.id, **cidr)
    yield network
    for each in neutron.ips(floating_network_id=network.id):
        neutron.delete_ip(each)
    neutron.delete_network(network)


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
    own = {"external_dns": (), "machines_network": Reference(name="clean")}
    assert shared.found(machines_subnets=(Reference(name="clean"),), **own) == []
    assert shared.found(machines_subnets=(Reference(id=subnet.id),), release="4.12", external_dns=()) == []


def test_floating_ips(room: Room, devcloud: Devcloud, second_external: Any) -> None:
    neutron = room.connection.network
    network, subnet = room.own()
    router = neutron.create_router(name="r", external_gateway_info={"network_id": room.external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    port = neutron.create_port(network_id=network.id, device_owner="test:machine")
    neutron.update_ip(neutron.find_ip(room.cluster.ingress_floating_ip), port_id=port.id)
    elsewhere = room.float_ip(second_external.id)
    hosts = room.hosts.read_text()
    room.hosts.write_text("\n".join(hosts_lines(room.names(elsewhere, room.cluster.ingress_floating_ip or ""))))

    wrong_network, in_use = room.findings(api_floating_ip=elsewhere)
    assert wrong_network.where == f"{PLATFORM}.apiFloatingIP"
    assert wrong_network.what.startswith(f"{elsewhere} is of network {second_external.id}, not of 'external'")
    assert in_use.where == f"{PLATFORM}.ingressFloatingIP"
    assert f"it serves port {port.id} (status ACTIVE)" in in_use.what
    room.mend(in_use)
    room.hosts.write_text(hosts)
    assert room.found() == []

    theirs = f"{room.cluster.api_floating_ip} belongs to project {room.tenant.project_id}, not to "
    assert any(theirs in each for each in room.found(connection=devcloud.admin))
    missing = room.found(api_floating_ip="192.168.122.99", release="4.6")
    assert missing[0].startswith("error platform.openstack.lbFloatingIP: 192.168.122.99 is no floating IP of project")


def test_the_external_network(shared: Room, devcloud: Devcloud, second_external: Any) -> None:
    shared.own()
    where = f"error {PLATFORM}.externalNetwork: "
    missing, not_external = shared.found(external_network="no-such"), shared.found(external_network="machines")
    assert missing[0].startswith(f"{where}there is no network 'no-such'; those that are external: external")
    assert not_external == [f"{where}'machines' is not external (router:external is false)"]
    nothing = {"external_network": None, "api_floating_ip": None, "ingress_floating_ip": None}
    assert f"{where}is missing, and so is a subnet of your own ({PLATFORM}.controlPlanePort.fixedIPs)" in shared.found(
        **nothing
    )
    assert f"{where}is missing; 4.5 cannot do without" in shared.found(release="4.5", **nothing)

    name = second_external.name
    overlapping = shared.found(external_network=name, machine_networks=("198.51.0.0/16",), connection=devcloud.admin)
    assert f"{where}{name!r} has 1 addresses left, 2 are needed" in "\n".join(overlapping)
    assert (
        f"error networking.machineNetwork: 198.51.0.0/16 overlaps 198.51.100.0/24 of the external network {name!r}"
        in overlapping
    )
    assert not any("addresses left" in each for each in shared.found(external_network=name))  # not the tenant's to know
    neutron: Any = devcloud.admin.network
    twin = neutron.create_network(name=name, is_router_external=True)
    twice = shared.found(external_network=name)
    neutron.delete_network(twin)
    assert twice[0].startswith(f"{where}2 networks are called {name!r}: ")


def test_the_remedies_for_an_own_subnet_mend_it(room: Room) -> None:
    neutron = room.connection.network
    network, subnet = room.own(port_security_enabled=False)
    neutron.update_subnet(subnet, is_dhcp_enabled=False, gateway_ip=None)
    neutron.create_port(network_id=network.id, name="theirs", fixed_ips=[{"ip_address": "10.0.0.7"}])
    router = neutron.create_router(name="r")
    own = {"machines_subnets": (Reference(name="v4"),), "external_dns": ()}
    found = room.findings(**own)
    (no_gateway,) = (each for each in found if each.what.endswith("has no gateway"))
    found.remove(no_gateway)
    room.mend(no_gateway)
    theirs = neutron.find_port("theirs", ignore_missing=False)
    pool = "lies in the allocation pool 10.0.0.2-10.0.255.254 of ID"
    assert [(each.level, each.what.replace(subnet.id, "ID")) for each in found] == [
        ("error", "DHCP is off on subnet ID"),
        ("warning", "subnet ID names no DNS servers"),
        ("error", "no router has an interface in subnet ID"),
        ("error", f"port security is off on network {network.id}"),
        ("error", f"the API's 10.0.0.5 (the installer's default) {pool}"),
        ("error", f"ingress's 10.0.0.7 (the installer's default) {pool}"),
        ("error", f"ingress's 10.0.0.7 (the installer's default) is in use by port theirs {theirs.id}"),
    ]
    for each in found[:5] + found[6:]:  # one command leaves both addresses out
        room.mend(each, ROUTER=router.id, ADDRESS="192.0.2.53")
    (left,) = room.findings(**own)
    assert left.what == f"router r {router.id} of subnet {subnet.id} has no external gateway"
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
        own = {"machines_subnets": (Reference(id=subnet.id),), "external_dns": ()}
        where = f"warning {PLATFORM}.controlPlanePort.fixedIPs: "
        assert shared.found(**own) == [
            f"{where}no router has an interface in subnet {subnet.id}, as far as you may see",
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
        "machines_subnets": (Reference(id=v4.id), Reference(id=v6.id)),
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
    assert f"10.0.0.7 are in use by port dev-ingress-port {made.id} compute:nova" in "\n".join(room.found(**stateful))


def test_a_floating_ip_on_a_port_without_a_machine(room: Room, devcloud: Devcloud) -> None:
    neutron, infra_id = room.connection.network, "dev2-x7k2p"
    network, subnet = room.own()
    router = neutron.create_router(name="r", external_gateway_info={"network_id": room.external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    name, fixed = f"{infra_id}-ingress-port", [{"ip_address": "10.0.0.7"}]
    virtual = neutron.create_port(network_id=network.id, name=name, fixed_ips=fixed)
    serving = room.float_ip()
    neutron.update_ip(neutron.find_ip(serving), port_id=virtual.id)
    machine = neutron.create_port(network_id=network.id, name=f"{infra_id}-worker-0", device_owner="test:machine")
    neutron.update_port(machine, allowed_address_pairs=[{"ip_address": "10.0.0.0/28"}])

    (unsure,) = room.findings()
    assert unsure.level == "warning"
    assert unsure.where == f"port {infra_id}-ingress-port {virtual.id}"
    assert unsure.what == (
        f"{serving} serves 10.0.0.7, which no machine has and no port's pairs allow"
        " (a network around it does, 10.0.0.0/28: not enough)"
    )
    admin: Any = devcloud.admin.network
    metadata = admin.create_port(
        network_id=network.id, project_id=room.tenant.project_id, device_owner="network:distributed"
    )
    (sure,) = room.findings()
    assert sure.level == "error"
    assert sure.remedy == f"openstack-prep post-ipi --os-cloud {room.tenant.cloud} --infra-id {infra_id} --vip 10.0.0.7"
    admin.update_port(metadata, device_owner="network:dhcp", device_id="dhcp-agent")
    assert room.found() == []
    admin.update_port(metadata, device_owner="network:distributed")
    neutron.set_tags(machine, [f"openshiftClusterID={infra_id}"])
    command = shlex.split(sure.remedy)
    subprocess.run(
        [str(Path(COMMAND).with_name(command[0])), *command[1:], "--yes"],
        env=os.environ | {"OS_CLIENT_CONFIG_FILE": str(room.tenant.clouds_file)},
        check=True,
        capture_output=True,
    )
    assert room.found() == []


def test_names_that_lead_elsewhere_and_nowhere(shared: Room, prep: Prep) -> None:
    api, ingress = shared.cluster.api_floating_ip or "", shared.cluster.ingress_floating_ip or ""
    shared.hosts.write_text("\n".join(hosts_lines(shared.names(ingress, api))))
    swapped = shared.findings()
    assert [each.what for each in swapped] == [
        f"leads to {ingress}, not to {api}",
        f"leads to {api}, not to {ingress}",
    ]
    shared.hosts.write_text("\n".join(hosts_lines(shared.names("10.0.0.5", "10.0.0.7"))))
    assert [each.level for each in shared.findings()] == ["warning", "warning"]
    assert shared.found(external_network=None, api_floating_ip=None, ingress_floating_ip=None)[1:] == []
    shared.hosts.write_text("127.0.0.1 localhost\n")
    nowhere, nobody = shared.findings()
    assert nowhere.where == "names: api.dev.example.com"
    assert nobody.level == "warning"
    config = shared.folder / "install-config.yaml"
    assert nowhere.remedy == f"openstack-prep names --install-config {config} --as hosts --write {shared.hosts}"
    config.write_text(dump(document(shared.cluster, Contents())))
    prep.run(*shlex.split(nowhere.remedy)[1:])
    assert shared.found() == []
    assert shared.hosts.read_text().startswith("127.0.0.1 localhost\n")


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
        ":6: networking.clusterNetwork: 10.128.0.0/22 has 2 parts of /23 (hostPrefix), and the cluster 6 nodes",
        ":13: platform.openstack.apiFloatingIP: 192.168.122.99 is no floating IP of project",
        f":14: platform.openstack.controlPlanePort.fixedIPs: DHCP is off on subnet {subnet.id}",
        f":14: platform.openstack.controlPlanePort.fixedIPs: subnet {subnet.id} has no gateway",
        f":14: platform.openstack.controlPlanePort.fixedIPs: no router has an interface in subnet {subnet.id}",
        ":15: platform.openstack.externalDNS: your own subnet has DNS servers of its own",
        "error: names: api.dev.example.com: leads to 203.0.113.9, not to 192.168.122.99",
        "warning: names: console-openshift-console.apps.dev.example.com",
    ):
        assert expected in said, said
    assert "virtual" not in said.replace("virtual addresses are made of it", "")  # they follow from the network
    assert "Zm9vOmJhcg==" not in said
    assert said.count("\n  why: ") == said.count("\n  mend: ") == len(said.splitlines()) // 3


def test_the_shipped_network_of_ones_own_passes(prep: Prep) -> None:
    shipped = resources.files("openstack_prep.install_configs") / "openshift-byo-network.yaml"
    prep.spec.write_text(shipped.read_text())
    (prep.folder / "pull-secret.json").write_text('{"auths": {"example.com": {"auth": "Zm9vOmJhcg=="}}}')
    (prep.folder / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n"
    )
    prep.apply()
    prep.run("names", "--install-config", "byo/install-config.yaml", "--write", "hosts")
    tenant = replace(prep, environment={"OS_CLIENT_CONFIG_FILE": str(prep.folder / "clouds.yaml")})
    said = tenant.run("check", "byo", "--release", "4.20", "--hosts", "hosts").stdout
    assert said == "byo/install-config.yaml for 4.20 in cloud 'byo': nothing stands in the way\n"
