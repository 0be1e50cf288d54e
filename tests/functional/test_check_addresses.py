"""What check finds of floating IPs, the external network and names in a real project, and that its remedies help."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from openstack_prep.openshift.install_config import FileContents, document, dump
from openstack_prep.openshift.names.hosts import hosts_lines
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.check_room import PLATFORM, Room, _shared, room, second_external, shared
from tests.functional.conftest import COMMAND, Prep

__all__ = ["_shared", "room", "second_external", "shared"]


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
    assert missing[0].startswith(
        "error platform.openstack.lbFloatingIP: 192.168.122.99 is not a floating IP of project"
    )


def test_the_external_network(shared: Room, devcloud: Devcloud, second_external: Any) -> None:
    shared.own()
    where = f"error {PLATFORM}.externalNetwork: "
    missing, not_external = shared.found(external_network="no-such"), shared.found(external_network="machines")
    assert missing[0].startswith(f"{where}there is no network 'no-such'; external networks: external")
    assert not_external == [f"{where}'machines' is not external (router:external is false)"]
    nothing = {"external_network": None, "api_floating_ip": None, "ingress_floating_ip": None}
    assert f"{where}is missing, and so is a subnet of your own ({PLATFORM}.controlPlanePort.fixedIPs)" in shared.found(
        **nothing
    )
    assert f"{where}is missing; 4.5 requires it" in shared.found(release="4.5", **nothing)

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
    assert unsure.status == "warning"
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
    assert sure.status == "error"
    assert sure.fix == f"openstack-prep post-ipi --os-cloud {room.tenant.cloud} --infra-id {infra_id} --vip 10.0.0.7"
    admin.update_port(metadata, device_owner="network:dhcp", device_id="dhcp-agent")
    assert room.found() == []
    admin.update_port(metadata, device_owner="network:distributed")
    neutron.set_tags(machine, [f"openshiftClusterID={infra_id}"])
    command = shlex.split(sure.fix)
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
        f"leads to {ingress} ({shared.hosts}:1), not to {api}",
        f"leads to {api} ({shared.hosts}:2, {shared.hosts}:3), not to {ingress}",
    ]
    shared.hosts.write_text("\n".join(hosts_lines(shared.names("10.0.0.5", "10.0.0.7"))))
    assert [each.status for each in shared.findings()] == ["warning", "warning"]
    assert shared.found(external_network=None, api_floating_ip=None, ingress_floating_ip=None)[1:] == []
    shared.hosts.write_text("127.0.0.1 localhost\n")
    nowhere, nobody = shared.findings()
    assert nowhere.where == "names: api.dev.example.com"
    assert nobody.status == "warning"
    config = shared.folder / "install-config.yaml"
    assert nowhere.fix == f"openstack-prep names --install-config {config} --as hosts --write {shared.hosts}"
    config.write_text(dump(document(shared.cluster, FileContents())))
    prep.run(*shlex.split(nowhere.fix)[1:])
    assert shared.found() == []
    assert shared.hosts.read_text().startswith("127.0.0.1 localhost\n")
