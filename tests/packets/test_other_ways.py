"""Shipped specs whose addresses lie on the external network itself: a services machine, and virtual machines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.test_exposed_clusters import SHIPPED, shown
from tests.packets.machines import boot, carry_out, from_outside, get, until

EXTERNAL = {"cidr": "192.168.122.0/24", "gateway": "192.168.122.1"}
PROGRAMS = """
mount -t tmpfs none /run && mkdir /run/named
for file in passwd group; do
    (cat /etc/$file; [ $file = group ] && echo haproxy:x:0: || echo haproxy:x:0:0::/:/bin/false) > /run/$file
    mount --bind /run/$file /etc/$file
done
named -g -c {folder}/named.conf &
exec haproxy -f {folder}/haproxy.cfg
"""
"""The programs of a services machine; a user namespace has one user, and HAProxy wants one of its own."""


@pytest.fixture
def owner(devcloud: Devcloud, tenant: Tenant) -> Any:
    """The administrator in the project: a server on the external network is up to administrators."""
    admin: Any = devcloud.admin
    role = admin.identity.find_role("admin", ignore_missing=False)
    admin.identity.assign_project_role_to_user(tenant.project_id, admin.current_user_id, role.id)
    return admin.connect_as_project(admin.identity.get_project(tenant.project_id))


def image(connection: Any) -> str:
    return str(connection.image.create_image("packets", data=qcow2(1), disk_format="qcow2", container_format="bare").id)


def services_spec(outside: str, folder: Path) -> dict[str, Any]:
    """Return the shipped spec with the network outside of this cloud, one master and one worker."""
    spec: dict[str, Any] = yaml.safe_load((SHIPPED / "exposures-service-host.yaml").read_text())
    spec["pool_files"][0] |= EXTERNAL | {"addresses": [outside]}
    host = spec["exposed_clusters"][0]["service_host"]
    host["external"]["gateway"] = EXTERNAL["gateway"]
    host["zone_directory"] = str(folder)
    for role in ("masters", "workers"):
        host[role]["count"] = 1
    return spec


def test_a_services_machine(devcloud: Devcloud, owner: Any, tmp_path: Path) -> None:
    """BIND and HAProxy read the files: a client outside gets names from the one, and answers through the other."""
    plane, neutron = DataPlane(devcloud.layout), owner.network
    network = neutron.create_network(name="inside", is_port_security_enabled=False)
    neutron.create_subnet(
        name="inside",
        network_id=network.id,
        ip_version=4,
        cidr="10.0.0.0/24",
        gateway_ip=None,
        allocation_pools=[{"start": "10.0.0.150", "end": "10.0.0.160"}],
    )
    external = neutron.find_network("external", ignore_missing=False)
    outer = neutron.create_port(name="outside", network_id=external.id, port_security_enabled=False)
    outside = outer.fixed_ips[0]["ip_address"]
    at = {"okd-master-01": "10.0.0.1", "okd-worker-01": "10.0.0.4", "okd-service-01": "10.0.0.100"}
    ports = [
        neutron.create_port(name=name, network_id=network.id, fixed_ips=[{"ip_address": address}])
        for name, address in at.items()
    ]
    master, worker, service = boot(owner, plane, ports, image(owner), okd_service_01=outer.id)
    host, console = "api.okd.example.com", "console.apps.okd.example.com"
    master.answer(tmp_path, 6443, 22623, host=host)
    worker.answer(tmp_path, 80, 443, 1936, host=host)
    prep, folder = Prep(tmp_path, {}), tmp_path / "okd-access"
    prep.write(services_spec(outside, folder))
    prep.apply()
    script = PROGRAMS.format(folder=folder)
    plane.start(service.id, "unshare", "--mount", "sh", "-c", script, log=tmp_path / "services.log")

    def asked(name: str) -> str:
        return plane.run(OUTSIDE, "dig", "+short", "+time=1", "+tries=1", f"@{outside}", name).stdout.strip()

    assert until(lambda: (asked(host), asked(console)) == (outside, outside))
    assert until(lambda: from_outside(plane, host, outside, 6443) == master.name)
    assert until(lambda: from_outside(plane, console, outside) == worker.name)
    assert asked("api-int.okd.example.com") == ""
    assert from_outside(plane, host, outside, 22623) == ""
    prep.destroy()


ANNOUNCED = "203.0.113.10"
SPEAKER = """
mount -t tmpfs none /run && mkdir /run/frr
(cat /etc/passwd; echo frr:x:0:0::/:/bin/false) > /run/passwd
(cat /etc/group; echo frr:x:0:; echo frrvty:x:0:) > /run/group
for file in passwd group; do mount --bind /run/$file /etc/$file; done
zebra -u root -g root &
exec bgpd -u root -g root -f {file}
"""
"""FRR; a user namespace has one user, and FRR wants one of its own."""
ROUTER = """
router bgp 64513
 bgp router-id 192.168.122.1
 no bgp ebgp-requires-policy
{neighbours}
 address-family ipv4 unicast
  maximum-paths 2
 exit-address-family
"""


def announced_spec(addresses: dict[str, str]) -> dict[str, Any]:
    """Return a spec of Services with externalIPs that all nodes carry, as docs/external-access.md shows it."""
    bgp = {"my_asn": 64512, "peers": [{"name": "tor1", "peer_asn": 64513, "peer_address": "192.168.122.1"}]}
    nodes = [{"name": name, "addresses": [address]} for name, address in addresses.items()]
    return {
        "name": "metal",
        "pool_files": [{"name": "public", "path": "public.yaml", "cidr": "203.0.113.0/24", "addresses": [ANNOUNCED]}],
        "exposures": [
            {
                "name": "frontend",
                "cluster": "metal",
                "how": "external-ip",
                "target": {"service": "shop/frontend"},
                "ports": [{"port": 443}],
                "pool": "public",
                "address": ANNOUNCED,
                "names": ["shop.example.com"],
            }
        ],
        "exposed_clusters": [
            {
                "name": "metal",
                "directory": "metal-access",
                "kubernetes_version": "v1.33.4",
                "nodes": {"ports": list(addresses)},
                "external_ips": {"interface": "lo", "carriers": "all", "nodes": nodes, "bgp": bgp},
            }
        ],
    }


def test_announced_by_bgp(devcloud: Devcloud, tenant: Tenant, owner: Any, tmp_path: Path) -> None:
    """FRR on two nodes reads the files; a router outside, another FRR, leads to both, and to those that are left."""
    plane, neutron = DataPlane(devcloud.layout), owner.network
    external = neutron.find_network("external", ignore_missing=False)
    group = neutron.create_security_group(name="nodes")
    neutron.create_security_group_rule(security_group_id=group.id, direction="ingress", ether_type="IPv4")
    ports = [
        neutron.create_port(name=name, network_id=external.id, security_groups=[group.id]) for name in ("k8s6", "k8s9")
    ]
    nodes = boot(owner, plane, ports, image(owner))
    prep = in_project(devcloud, tenant, tmp_path)
    prep.write(announced_spec({node.name: node.address for node in nodes}))
    prep.apply()
    access = tmp_path / "metal-access"
    for node in nodes:
        node.answer(tmp_path, 443)
        assert plane.run(node.id, "sh", str(access / f"addresses-{node.name}.sh"), "up").returncode == 0
        speak(plane, node.id, access / f"frr-{node.name}.conf", tmp_path)
    neighbours = "\n".join(f" neighbor {node.address} remote-as 64512" for node in nodes)
    (tmp_path / "router.conf").write_text(ROUTER.format(neighbours=neighbours))
    speak(plane, OUTSIDE, tmp_path / "router.conf", tmp_path)

    def led_to() -> set[str]:
        routes = plane.run(OUTSIDE, "ip", "route", "show", ANNOUNCED).stdout
        return {node.name for node in nodes if f"via {node.address} " in routes}

    def answered() -> str:
        return from_outside(plane, "shop.example.com", ANNOUNCED)

    assert until(lambda: led_to() == {"k8s6", "k8s9"}, 60)
    assert until(lambda: answered() in {"k8s6", "k8s9"})
    assert shown(prep) == {"frontend": set()}
    first, other = nodes
    assert plane.run(first.id, "sh", str(access / f"addresses-{first.name}.sh"), "down").returncode == 0
    assert until(lambda: (led_to(), answered()) == ({other.name}, other.name), 60)
    assert plane.kill(other.id, "bgpd")
    assert until(lambda: (led_to(), answered()) == (set(), ""), 60)
    for program in ("bgpd", "zebra"):
        plane.kill(OUTSIDE, program)
    prep.destroy()


def speak(plane: DataPlane, machine: str, file: Path, folder: Path) -> None:
    """Start FRR in a machine."""
    words = ("unshare", "--mount", "sh", "-c", SPEAKER.format(file=file))
    plane.start(machine, *words, log=folder / f"frr-{machine}.log")


def in_project(devcloud: Devcloud, tenant: Tenant, folder: Path) -> Prep:
    """Return the command of the administrator in the project."""
    clouds = yaml.safe_load(devcloud.clouds_file.read_text())
    project = devcloud.admin.identity.get_project(tenant.project_id)
    clouds["clouds"]["devcloud-admin"]["auth"]["project_name"] = project.name
    (folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    os.chmod(folder / "clouds.yaml", 0o600)
    return Prep(folder, {"OS_CLIENT_CONFIG_FILE": str(folder / "clouds.yaml"), "OS_CLOUD": "devcloud-admin"})


def machines_spec(address: str) -> dict[str, Any]:
    """Return the shipped spec with the network outside of this cloud, on which one node has a port."""
    spec: dict[str, Any] = yaml.safe_load((SHIPPED / "exposures-virtual-machines.yaml").read_text())
    spec["pool_files"][0] |= EXTERNAL | {"addresses": [address]}
    (cluster,) = spec["exposed_clusters"]
    cluster["nodes"] = {"ports": ["node1-office"]}
    (office,) = cluster["virtualization"]["networks"]
    office |= EXTERNAL | {"openstack_network": "external"}
    return spec


def test_virtual_machines(devcloud: Devcloud, tenant: Tenant, owner: Any, tmp_path: Path) -> None:
    """One on a bridge of its node, the other one behind a node port, answer clients outside.

    In the place of a bridge, which is the kernel's, the interface of the node has the machine's addresses itself: its
    frames are those that a bridge would let out.
    """
    plane, neutron = DataPlane(devcloud.layout), owner.network
    external = neutron.find_network("external", ignore_missing=False)
    port = neutron.create_port(name="node1-office", network_id=external.id, port_security_enabled=False)
    (node,) = boot(owner, plane, [port], image(owner))
    node.answer(tmp_path, 5432, 30022)
    prep = in_project(devcloud, tenant, tmp_path)
    address = "192.168.122.245"
    prep.write(machines_spec(address))
    prep.apply()
    assert until(lambda: get(plane, OUTSIDE, f"https://{node.address}:30022/") == node.name)
    (machine,) = (each for each in hops(prep) if each["name"] == "database")
    plane.run(node.id, "ip", "addr", "flush", "dev", "eth0")
    plane.run(node.id, "ip", "link", "set", "eth0", "address", machine["mac_address"])
    plane.run(node.id, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
    assert shown(prep) == {"database": set(), "ssh": set()}

    def answered() -> bool:
        return get(plane, OUTSIDE, f"https://{address}:5432/") == node.name

    assert until(answered)
    group = neutron.create_security_group(name="node1")
    neutron.create_security_group_rule(security_group_id=group.id, direction="ingress", ether_type="IPv4")
    neutron.update_port(port.id, port_security_enabled=True, security_groups=[group.id])
    plane.sync()
    (machine,) = (each for each in hops(prep, 1) if each["name"] == "database")
    (broken,) = (hop for hop in machine["hops"] if hop["status"] != "ok")
    assert broken["code"] == "bridge.pair-missing"
    assert until(lambda: not answered())
    carry_out(prep, [broken["fix"]])
    assert until(answered)
    assert shown(prep) == {"database": set(), "ssh": set()}
    prep.destroy()


def hops(prep: Prep, code: int = 0) -> list[dict[str, Any]]:
    """Return what ``exposures show`` says of each exposure."""
    words = ("exposures", "show", prep.spec.name, "--hosts", "machines-access/hosts", "--format", "json")
    found: list[dict[str, Any]] = json.loads(prep.run(*words, code=code).stdout)["exposures"]
    return found
