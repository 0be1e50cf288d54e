"""Address pairs of a stack's nodes on a real cloud, in step at each moment: by apply, and by a sync from a timer."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep import sync_address_pairs
from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks.address_pairs import Sync
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.unit.kubernetes.recorded_api import Recorded, serve

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"


@pytest.fixture
def image(devcloud: Devcloud) -> Iterator[str]:
    """An image that all projects see."""
    name = f"pairs-{secrets.token_hex(3)}"
    formats = {"disk_format": "qcow2", "container_format": "bare"}
    made = devcloud.admin.image.create_image(name, data=qcow2(1), visibility="public", **formats)
    yield name
    devcloud.admin.image.delete_image(made)


class Cluster:
    """A stack of RKE nodes by the shipped template, their pool and pairs."""

    def __init__(self, lab: Lab, image: str) -> None:
        self.lab, self.image = lab, image

    def wanted(self, count: int, *addresses: str, **pairs: Any) -> tuple[Any, ...]:
        given = {"node_count": count, "image": self.image, "flavor": "m1.small", "key_name": "key"}
        given |= {"network": "nodes", "wait_timeout": 0}
        return (
            Keypair(name="key", public_key=KEY),
            Network(name="nodes"),
            Subnet(name="nodes", network="nodes", cidr="10.1.0.0/24", allocation_pools=("10.1.0.10-10.1.0.199",)),
            Subnet(
                name="nodes6",
                network="nodes",
                cidr="fd00:1::/64",
                ipv6_ra_mode="dhcpv6-stateful",
                ipv6_address_mode="dhcpv6-stateful",
            ),
            Stack(name="cluster", template="shipped:rke-cluster.yaml", parameters=given),
            AddressPool(name="lb", subnet="nodes", addresses=addresses),
            AddressPool(name="lb6", subnet="nodes6", addresses=("fd00:1::100-fd00:1::103",)),
            AddressPairs(name="cluster", **({"stack": "cluster", "pools": ("lb", "lb6")} | pairs)),
        )

    def pairs(self) -> list[set[str]]:
        """Return the pairs of each node's port."""
        ports = self.lab.admin.network.ports(project_id=self.lab.project_id)
        return [
            {each["ip_address"] for each in port.allowed_address_pairs}
            for port in ports
            if port.device_owner.startswith("compute:")
        ]

    def others(self) -> list[Any]:
        """Return the pairs of ports that are none of nodes."""
        ports = self.lab.admin.network.ports(project_id=self.lab.project_id)
        return [port.allowed_address_pairs for port in ports if not port.device_owner.startswith("compute:")]


V6 = {"fd00:1::100/126"}
POOL = {"10.1.0.200/29", "10.1.0.208/30"}
POOLS = [{"start": "10.1.0.10", "end": "10.1.0.199"}]  # Neutron draws at random from these, so not what tests name


def entry(lab: Lab, folder: Path) -> dict[str, str]:
    """Return the environment of the project's own user, by an application credential as a timer has it."""
    user = lab.as_user().connection
    made = user.identity.create_application_credential(user=user.current_user_id, name="timer")
    auth = {"auth_url": lab.cloud.auth_url, "application_credential_id": made.id}
    auth["application_credential_secret"] = made.secret
    path = folder / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"timer": {"auth_type": "v3applicationcredential", "auth": auth}}}))
    return {"OS_CLIENT_CONFIG_FILE": str(path), "OS_CLOUD": "timer"}


def from_a_timer(lab: Lab, cluster: Cluster, devcloud: Devcloud, tmp_path: Path) -> None:
    """With a spec whose secrets nobody has: what is missing comes back, by eight at once; nothing to do is cheap."""
    timer = Prep(tmp_path, entry(lab, tmp_path))
    user = lab.as_user().connection
    timer.write(
        {
            "name": lab.name,
            "project": {"name": lab.name},
            "users": [{"name": "nobody", "password": {"env": "NOT_SET_IN_A_TIMER"}}],
            "address_pools": [
                {"name": "lb", "subnet": "nodes", "addresses": ["10.1.0.200-10.1.0.211"]},
                {"name": "lb6", "subnet": "nodes6", "addresses": ["fd00:1::100-fd00:1::103"]},
            ],
            "address_pairs": [{"name": "cluster", "stack": "cluster", "pools": ["lb", "lb6"]}],
        }
    )
    words = ("address-pairs", "sync", timer.spec.name)
    mark = devcloud.mark()
    assert "nothing to do: 1 unchanged" in timer.run(*words).stdout
    asked = [f"{each.method} {each.path.partition('?')[0]}" for each in devcloud.requests_since(mark)]
    assert len(asked) <= 8, asked
    assert not [each for each in asked if not each.startswith("GET")][1:], asked  # the token

    for port in lab.admin.network.ports(project_id=lab.project_id):
        if port.allowed_address_pairs:
            lab.admin.network.update_port(port, allowed_address_pairs=[])
    shown = timer.run(*words, "--dry-run").stdout
    assert "address_pairs/cluster" in shown
    assert cluster.pairs() == [set()] * 2
    running = [timer.start(*words) for _ in range(8)]
    for each in running:
        out, err = each.communicate(timeout=120)
        assert each.returncode == 0, out + err
    assert cluster.pairs() == [POOL | V6] * 2
    assert json.loads(timer.run(*words, "--format", "json").stdout)["steps"][0]["action"] == "keep"
    (own,) = user.identity.application_credentials(user.current_user_id, name="timer")
    user.identity.delete_application_credential(user.current_user_id, own)  # destroy would refuse to take it along


def test_pairs_are_exact_on_every_node_at_each_step(lab: Lab, image: str, devcloud: Devcloud, tmp_path: Path) -> None:
    """Made, scaled out when a node was deleted by hand, synced, pool shrunk and scaled in, nothing declared."""
    cluster = Cluster(lab, image)
    lab.run(*cluster.wanted(1, "10.1.0.200-10.1.0.211")).raise_for_failures()
    assert cluster.pairs() == [POOL | V6]

    (lost,) = lab.admin.compute.servers(all_projects=True, project_id=lab.project_id)
    lab.admin.compute.delete_server(lost)
    lab.admin.compute.wait_for_delete(lost, interval=0.2)
    assert cluster.pairs() == []
    out = cluster.wanted(2, "10.1.0.200-10.1.0.211")
    assert "~ address_pairs/cluster" in str(lab.plan(*out))
    assert set(lab.apply(*out)) == {"stack/cluster", "address_pairs/cluster"}
    assert cluster.pairs() == [POOL | V6] * 2

    from_a_timer(lab, cluster, devcloud, tmp_path)

    (port, *_) = [each for each in lab.admin.network.ports(project_id=lab.project_id) if each.allowed_address_pairs]
    foreign = {"ip_address": "10.9.9.9", "mac_address": port.mac_address}
    lab.admin.network.update_port(port, allowed_address_pairs=[*port.allowed_address_pairs, foreign])
    fewer = cluster.wanted(1, "10.1.0.204-10.1.0.207", "10.1.0.212")
    lab.run(*fewer, allow_replace=True).raise_for_failures()
    assert [each - {"10.9.9.9"} for each in cluster.pairs()] == [{"10.1.0.204/30", "10.1.0.212"} | V6]
    assert not any(cluster.others())

    lab.apply(*cluster.wanted(1, "10.1.0.204-10.1.0.207", pools=(), addresses=()))
    assert set().union(*cluster.pairs()) <= {"10.9.9.9"}
    assert [each for port in lab.admin.network.ports(project_id=lab.project_id) for each in port.tags] == []


def service(name: str, **spec: Any) -> dict[str, Any]:
    status = {"loadBalancer": {"ingress": spec.pop("ingress", [])}}
    return {"kind": "Service", "metadata": {"namespace": "shop", "name": name}, "spec": spec, "status": status}


@pytest.fixture
def nodes(tenant: Tenant) -> Any:
    """Two nodes' ports that joined a cluster without Heat, and a third port."""
    neutron: Any = tenant.connect().network
    network = neutron.create_network(name="nodes")
    neutron.create_subnet(name="nodes", network_id=network.id, cidr="10.1.0.0/24", ip_version=4, allocation_pools=POOLS)
    group = neutron.create_security_group(name="rke")
    for name, groups in (("one", [group.id]), ("two", [group.id]), ("other", [])):
        neutron.create_port(name=name, network_id=network.id, security_group_ids=groups)
    return neutron


def pairs_of(neutron: Any) -> dict[str, set[str]]:
    return {port.name: {each["ip_address"] for each in port.allowed_address_pairs} for port in neutron.ports()}


def test_a_sync_of_what_services_have(tenant: Tenant, nodes: Any, tmp_path: Path) -> None:
    """Without a spec: from kubectl's list; an empty list takes ours away, what is no list takes nothing."""
    timer = Prep(tmp_path, {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud})
    front = service("front", type="LoadBalancer", ingress=[{"ip": "10.1.0.201"}])
    old = service("old", type="ClusterIP", externalIPs=["10.1.0.1", "10.1.0.202"])

    def sync(said: str, code: int = 0) -> str:
        words = ("--security-group", "rke", "--services", "-", "--within", "10.1.0.200-10.1.0.211")
        process = timer.start("address-pairs", "sync", *words, stdin=subprocess.PIPE)
        out, err = process.communicate(said, timeout=60)
        assert process.returncode == code, out + err
        return str(err)

    said = sync(json.dumps({"kind": "List", "items": [front, old]}))
    assert "10.1.0.1 of Service shop/old is outside all pools, so it is skipped" in said
    both = {"10.1.0.201", "10.1.0.202"}
    assert pairs_of(nodes) == {"one": both, "two": both, "other": set()}
    assert "is empty; pass the output of kubectl get services -A -o json" in sync("", code=2)
    assert "is PodList, not a list of Services" in sync('{"kind": "PodList", "items": []}', code=2)
    assert pairs_of(nodes)["one"] == both
    assert "unless the list covers all namespaces (-A)" in sync(json.dumps({"kind": "List", "items": []}))
    assert pairs_of(nodes) == {"one": set(), "two": set(), "other": set()}


def test_a_watch_of_recorded_services(tenant: Tenant, nodes: Any, tmp_path: Path) -> None:
    """The API server lists, reports changes, refuses, and has other Services: the ports follow; SIGTERM ends it."""
    prep = Prep(tmp_path, {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud})
    words = ("--security-group", "rke", "--within", "10.1.0.200-10.1.0.211", "--kubeconfig", "kubeconfig")
    lists = ["services.json", (403, "403.json"), (500, b""), "services-later.json"]
    with serve(Recorded(lists=lists, watches=["watch.jsonl"])) as recorded:
        recorded.kubeconfig(tmp_path / "kubeconfig")
        process = prep.start("address-pairs", "sync", *words, "--watch")
        later = {"10.1.0.201", "10.1.0.203"}
        deadline = time.monotonic() + 120
        while pairs_of(nodes) != {"one": later, "two": later, "other": set()}:
            assert time.monotonic() < deadline, recorded.asked
            time.sleep(0.2)
        while len(recorded.asked) < 6:  # its next watch
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        lines = [line.partition(" ")[2] for line in out.splitlines()]
        expected = (
            "following the Services of kubeconfig",
            "10.1.0.1 of Service shop/old is outside all pools",
            "+ 10.1.0.201 of Service shop/front",
            "+ 10.1.0.202 of Service shop/old",
            "~ address_pairs/sync-security_group-rke  2 ports",
            "! context test of kubeconfig: cannot list services of https://127.0.0.1",
            "! retrying in 1 s, later less often",
            "! context test of kubeconfig: cannot list services of https://127.0.0.1",
            "! retrying in 2 s, later less often",
            "- 10.1.0.202 of Service shop/old",
            "+ 10.1.0.203 of Service shop/new",
            "~ address_pairs/sync-security_group-rke  2 ports",
            "recovered",
            "stopped by SIGTERM",
        )
        assert all(line.startswith(begin) for line, begin in zip(lines, expected, strict=True)), out
        assert "nothing to do" in prep.run("address-pairs", "sync", *words).stdout
        assert "marker-of-a-secret" not in out


def test_too_many_addresses_for_one_port_change_none(tenant: Tenant, nodes: Any) -> None:
    """Neighbours become networks; what is too much for the fullest port is refused before any other is changed."""
    cloud = Cloud(tenant.connect())
    items = [
        service(f"s{each}", type="LoadBalancer", ingress=[{"ip": f"10.1.0.{each}"}]) for each in (*range(200, 208), 210)
    ]
    by_services = Sync(security_group="rke", within=["10.1.0.200-10.1.0.239"])
    sync_address_pairs(cloud, by_services, services=json.dumps({"kind": "List", "items": items})).raise_for_failures()
    before = {"10.1.0.200/29", "10.1.0.210"}
    assert pairs_of(nodes) == {"one": before, "two": before, "other": set()}

    own = [{"ip_address": f"10.9.0.{each}"} for each in (1, 3, 5)]
    two = nodes.find_port("two")
    nodes.update_port(two, allowed_address_pairs=[*two.allowed_address_pairs, *own])
    tags = {port.name: set(port.tags) for port in nodes.ports()}
    scattered = [
        service(f"s{each}", type="LoadBalancer", ingress=[{"ip": f"10.1.0.{each}"}]) for each in range(201, 218, 2)
    ]
    (failed,) = sync_address_pairs(cloud, by_services, services=json.dumps({"kind": "List", "items": scattered})).failed
    assert "12 pairs" in str(failed.error)
    assert "allow the whole range of the Services" in str(failed.error)
    assert pairs_of(nodes) == {"one": before, "two": before | {"10.9.0.1", "10.9.0.3", "10.9.0.5"}, "other": set()}
    assert {port.name: set(port.tags) for port in nodes.ports()} == tags


def scattered(count: int) -> str:
    """Return the list of Services of which no two addresses are neighbours."""
    items = [
        service(f"s{each}", type="LoadBalancer", loadBalancerClass="io.cilium/l2-announcer", ingress=[{"ip": address}])
        for each, address in enumerate(f"10.1.0.{201 + 2 * each}" for each in range(count))
    ]
    return json.dumps({"kind": "List", "items": items})


def test_the_maximum_is_met_exactly_and_one_more_changes_no_port(tenant: Tenant) -> None:
    """Half of the ports are fuller than the others, by pairs of somebody else; a killed run has left a record."""
    neutron: Any = tenant.connect().network
    network = neutron.create_network(name="nodes")
    neutron.create_subnet(name="nodes", network_id=network.id, cidr="10.1.0.0/24", ip_version=4, allocation_pools=POOLS)
    group = neutron.create_security_group(name="rke")
    own = [{"ip_address": "10.9.0.1"}, {"ip_address": "10.9.0.3"}]
    for number in range(6):
        more = {"allowed_address_pairs": own} if number % 2 else {}
        neutron.create_port(name=f"n{number}", network_id=network.id, security_group_ids=[group.id], **more)
    neutron.set_tags(neutron.find_port("n2"), ["openstack-prep:sync-security_group-rke~10.1.0.203"])
    cloud = Cloud(tenant.connect())
    by_services = Sync(security_group="rke", within=["10.1.0.200-10.1.0.239"])

    sync_address_pairs(cloud, by_services, services=scattered(8)).raise_for_failures()
    mine = {f"10.1.0.{201 + 2 * each}" for each in range(8)}
    assert pairs_of(neutron) == {
        f"n{each}": mine | ({"10.9.0.1", "10.9.0.3"} if each % 2 else set()) for each in range(6)
    }
    before = {port.name: (port.allowed_address_pairs, sorted(port.tags)) for port in neutron.ports()}
    assert len(before["n1"][0]) == 10

    (failed,) = sync_address_pairs(cloud, by_services, services=scattered(9)).failed
    assert "11 pairs" in str(failed.error)
    assert "max_allowed_address_pair" in str(failed.error)
    assert {port.name: (port.allowed_address_pairs, sorted(port.tags)) for port in neutron.ports()} == before

    for each in neutron.ports():
        if len(each.allowed_address_pairs) == 10:  # their owner takes one away
            neutron.update_port(
                each,
                allowed_address_pairs=[pair for pair in each.allowed_address_pairs if pair["ip_address"] != "10.9.0.3"],
            )
    sync_address_pairs(cloud, by_services, services=scattered(9)).raise_for_failures()
    assert {len(pairs) for pairs in pairs_of(neutron).values()} == {9, 10}


def test_syncs_of_two_minds_leave_nothing_that_is_not_recorded(devcloud: Devcloud, tenant: Tenant, nodes: Any) -> None:
    """As when a timer fires again before its last sync has taken the records away, and the Services changed."""
    cloud = Cloud(tenant.connect())
    one, two = (Sync(security_group="rke", addresses=[address]) for address in ("10.1.0.201", "10.1.0.202"))
    sync_address_pairs(cloud, one).raise_for_failures()
    slow = Fault("neutron", method="DELETE", path_regex="tags/", delay=1.0, times=4)
    with devcloud.faults(slow), ThreadPoolExecutor(1) as pool:
        running = pool.submit(sync_address_pairs, cloud, two)
        while "10.1.0.201" in set().union(*pairs_of(nodes).values()):
            time.sleep(0.05)
        sync_address_pairs(cloud, one).raise_for_failures()
        running.result().raise_for_failures()
    sync_address_pairs(cloud, two).raise_for_failures()
    assert pairs_of(nodes) == {"one": {"10.1.0.202"}, "two": {"10.1.0.202"}, "other": set()}


def test_the_call_of_the_library(tenant: Tenant, nodes: Any) -> None:
    """A port that left the group loses ours; too many pairs are told with the remedy, all mistakes at once."""
    cloud = Cloud(tenant.connect())
    wanted = Sync(security_group="rke", addresses=["10.1.0.200-10.1.0.203"])
    sync_address_pairs(cloud, wanted).raise_for_failures()
    assert pairs_of(nodes) == {"one": {"10.1.0.200/30"}, "two": {"10.1.0.200/30"}, "other": set()}
    nodes.update_port(nodes.find_port("two"), security_group_ids=[])
    (result,) = sync_address_pairs(cloud, wanted).changed
    assert result.observed is not None
    assert result.observed.id == "1 port"
    assert pairs_of(nodes) == {"one": {"10.1.0.200/30"}, "two": set(), "other": set()}

    many = Sync(security_group="rke", addresses=["10.1.0.1-10.1.0.254"])
    (failed,) = sync_address_pairs(cloud, many).failed
    assert "14 pairs" in str(failed.error)
    assert "align ranges with networks" in str(failed.error)
    assert pairs_of(nodes)["one"] == {"10.1.0.200/30"}
    with pytest.raises(SpecError) as caught:
        sync_address_pairs(cloud, Sync(stack="a", tag="b", addresses=["10.1.0.9-10.1.0.1"]))
    assert str(caught.value).splitlines() == [
        "ports: stack and tag are both set; pass a SPEC, or exactly one of "
        "stack, tag, security group (--security-group) and ports (--port)",
        "addresses: '10.1.0.9-10.1.0.1' ends before it begins; write the lower address first",
    ]
    with pytest.raises(PlanRefused, match="stack none does not exist in the project; create it first"):
        sync_address_pairs(cloud, Sync(stack="none", addresses=["10.1.0.9"]))
    sync_address_pairs(cloud, Sync(security_group="rke", addresses=[])).raise_for_failures()
    assert pairs_of(nodes)["one"] == set()
    assert not any(port.tags for port in nodes.ports())
