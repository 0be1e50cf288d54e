from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Key, Resource
from openstack_prep.core.plan import Plan
from openstack_prep.kubernetes.cilium import Cilium, CiliumBGP, CiliumLoadBalancer, CiliumPeer, CiliumPool
from openstack_prep.kubernetes.cluster import rke_files
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.kube_vip import KubeVip, KubeVipPool
from openstack_prep.kubernetes.metallb import MetalLB, MetalLBPeer, MetalLBPool
from openstack_prep.kubernetes.model import NodeGroup
from openstack_prep.kubernetes.networks import ClusterNetworks
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from tests.unit.conftest import resolved
from tests.unit.texts import Wording, contains

HEAT = "http://heat/v1/admin-project"
NAMES, ADDRESSES = ["a-0", "a-1", "a-2"], ["10.1.0.10", "10.1.0.11", "10.1.0.12"]
NODES = {"node_names": NAMES, "node_addresses": ADDRESSES, "login_user": "core"}
Make = Callable[..., RkeCluster]


@dataclass
class Heat:
    """A Heat with one stack, a, or none."""

    services: requests_mock.Mocker
    outputs: dict[str, Any] = field(default_factory=lambda: dict(NODES))
    parameters: dict[str, str] = field(default_factory=dict)
    status: str = "CREATE_COMPLETE"
    stands: bool = True

    def __post_init__(self) -> None:
        self.services.get("http://neutron/", json={"versions": []})
        self.services.get(f"{HEAT}/stacks", json=lambda request, context: {"stacks": self._listed()})
        self.services.get(f"{HEAT}/stacks/a/1", json=lambda request, context: {"stack": self._shown()})

    def _listed(self) -> list[dict[str, str]]:
        stack = {"stack_name": "a", "id": "1", "project": "admin-project", "stack_status": self.status}
        return [stack] if self.stands else []

    def _shown(self) -> dict[str, Any]:
        outputs = [{"output_key": key, "output_value": value} for key, value in self.outputs.items()]
        return {"stack_status": self.status, "outputs": outputs, "parameters": self.parameters}


@pytest.fixture
def heat(services: requests_mock.Mocker) -> Heat:
    return Heat(services)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return lambda name="a", **fields: RkeCluster(
        **{"name": name, "stack": name, "directory": str(tmp_path / name)} | fields
    )


def planned(run: CloudRun, *resources: Resource, allow_replace: bool = False) -> Plan:
    completed = [resolved(each, resources, run.admin) for each in resources]
    observed, mistakes = observation.examine(run.fresh(), completed)
    return planner.plan_apply("lab", completed, observed, mistakes=mistakes, allow_replace=allow_replace)


def applied(run: CloudRun, *resources: Resource, consent: bool = False) -> Plan:
    plan = planned(run, *resources, allow_replace=consent)
    plan.raise_for_refusals()
    executor.execute(plan, run.fresh()).raise_for_failures()
    return plan


def refusals(run: CloudRun, *resources: Resource) -> list[str]:
    return [str(each) for each in planned(run, *resources).refusals]


def read(cluster: RkeCluster, name: str = "cluster.yml") -> Any:
    return yaml.safe_load((Path(cluster.directory) / name).read_text())


def stack(tmp_path: Path, outputs: Sequence[str] = tuple(NODES), **fields: Any) -> Stack:
    template = {
        "heat_template_version": "wallaby",
        "parameters": {"node_count": {"type": "number", "default": 3}, "cluster_cidr": {"type": "string"}},
        "outputs": {name: {"value": "x"} for name in outputs},
    }
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(template))
    return Stack(name="a", template=str(tmp_path / "t.yaml"), **fields)


# --- written, and kept in step ------------------------------------------------------------


def test_a_cluster_is_written_from_the_outputs_of_its_stack(heat: Heat, run: CloudRun, make: Make) -> None:
    cluster = make()
    assert "directory" in str(planned(run, cluster))
    assert "cluster_cidr 10.42.0.0/16, service_cidr 10.43.0.0/16, nodes of stack/a" in str(planned(run, cluster))
    applied(run, cluster)
    written = read(cluster)
    assert [each["address"] for each in written["nodes"]] == ADDRESSES
    assert {each["user"] for each in written["nodes"]} == {"core"}
    assert written["services"]["kube-controller"]["cluster_cidr"] == "10.42.0.0/16"
    assert not planned(run, cluster)


def test_outer_and_inner_addresses(heat: Heat, run: CloudRun, make: Make) -> None:
    heat.outputs["node_internal_addresses"] = ["192.168.0.1", "192.168.0.2", "192.168.0.3"]
    applied(run, make())
    assert read(make())["nodes"][1]["internal_address"] == "192.168.0.2"


def test_nodes_that_come_and_go_and_what_was_changed_by_hand(heat: Heat, run: CloudRun, make: Make) -> None:
    applied(run, make())
    heat.outputs = {**NODES, "node_names": NAMES[:2], "node_addresses": ADDRESSES[:2]}
    assert "cluster.yml: nodes.a-2 is unexpected" in str(planned(run, make()))
    applied(run, make(), consent=True)
    assert len(read(make())["nodes"]) == 2
    path = Path(make().directory) / "cluster.yml"
    path.write_text(path.read_text().replace("canal", "flannel"))
    path.chmod(0o644)
    assert "cluster.yml: mode 0644, cluster.yml: network.plugin flannel -> canal" in str(planned(run, make()))
    applied(run, make())
    assert not planned(run, make())


def test_a_stack_under_way_or_without_a_node_is_not_written_from(
    heat: Heat, run: CloudRun, make: Make, wording: Wording
) -> None:
    applied(run, make())
    heat.outputs = NODES | {"node_addresses": [*ADDRESSES[:2], None]}
    assert contains(str(planned(run, make())), "stack/a", "a-2")
    with pytest.raises(SpecError) as caught:
        resolved(make(), [make()], run.admin).render(run.fresh())
    wording(caught.value)
    heat.status, heat.outputs = "UPDATE_IN_PROGRESS", {"node_names": None}
    assert contains(str(planned(run, make())), "-[stack/a")
    with pytest.raises(SpecError) as caught:
        resolved(make(), [make()], run.admin).render(run.fresh())
    wording(caught.value)


def test_it_follows_its_stack(heat: Heat, run: CloudRun, make: Make, tmp_path: Path) -> None:
    heat.stands = False
    assert list(make().follows()) == [Key("stack", "a")]
    one, cluster = stack(tmp_path), make()
    cluster = resolved(cluster, [one, cluster], run.admin)
    assert list(cluster.check(run, None)) == []
    assert [str(each.key) for each in planner.plan_apply("lab", [cluster, one], {})] == ["stack/a", "rke_cluster/a"]


def test_destroy_removes_ours_and_says_what_stays(heat: Heat, run: CloudRun, make: Make, wording: Wording) -> None:
    applied(run, make())
    (Path(make().directory) / "cluster.rkestate").write_text("{}")
    told: list[str] = []
    run.note = lambda key, text: told.append(text)
    observed = observation.observe(run, [make()])
    make().delete(run, observed[make().key])
    wording(told)
    assert observation.observe(run, [make()]) == {}


def test_what_to_type_next(heat: Heat, run: CloudRun, make: Make, wording: Wording) -> None:
    """Cilium alone is installed at once; in a mesh its commands have an order of their own, in a file."""

    def told(*clusters: RkeCluster) -> dict[str, str]:
        made = resolved(clusters[0], clusters, run.admin)
        observed = made.create(run.fresh())
        made.delete(run.fresh(), observed)
        return dict(observed.outputs)

    alone = make(cilium=Cilium(cluster_id=1, mesh="none"))
    said = told(alone)
    assert said["next"].endswith(f" --values {alone.directory}/cilium-values.yaml")
    assert "&& helm upgrade --install cilium" in said["next"]
    assert "then" not in said
    one, two = (make(name, cilium=Cilium(cluster_id=n, mesh_address=f"10.1.0.{n}")) for n, name in enumerate("ab", 1))
    said = told(one, two)
    wording(said["then"])
    assert "helm" not in said["next"]


def test_the_files_of_another_load_balancer(heat: Heat, run: CloudRun, make: Make, wording: Wording) -> None:
    """Written without a word of the password where it is shown; MetalLB beside it is refused."""
    pools = (CiliumPool(name="lb", addresses=("10.1.0.200/29",)),)
    peer = CiliumPeer(name="tor", peer_asn=64513, peer_address="10.1.0.1", password=Secret("hush"))
    balancer = CiliumLoadBalancer(pools=pools, bgp=CiliumBGP(my_asn=64512, peers=(peer,)))
    cluster = make(cilium=Cilium(cluster_id=1, mesh="none", load_balancer=balancer))
    made = resolved(cluster, [cluster], run.admin)
    observed = made.create(run.fresh())
    folder = Path(cluster.directory)
    assert observed.outputs["then"] == f"{folder}/load-balancer-commands.txt, when Cilium runs"
    assert "hush" in (folder / "cilium-load-balancer.yaml").read_text()
    assert (folder / "cilium-load-balancer.yaml").stat().st_mode & 0o777 == 0o600
    assert f"kubectl apply -f {folder}/cilium-load-balancer.yaml" in (folder / "load-balancer-commands.txt").read_text()
    assert "hush" not in "".join(made.render(run.fresh()).values())
    values = yaml.safe_load((folder / "cilium-values.yaml").read_text())
    assert values["bgpControlPlane"] == {"enabled": True}
    vip = make("b", stack="a", kube_vip=KubeVip(pools=(KubeVipPool(name="lb", addresses=("10.1.0.200",)),)))
    both = make(
        "c", stack="a", metallb=MetalLB(pools=(MetalLBPool(name="m", addresses=("10.1.0.9",)),)), kube_vip=vip.kube_vip
    )
    assert "kube-vip.yaml" in resolved(vip, [vip], run.admin).render(run.fresh())
    said = [str(each) for each in resolved(both, [both], run.admin).check(run, None)]
    assert len(said) == 1
    wording(said[0])


def test_the_release_without_a_declared_one(heat: Heat, run: CloudRun, make: Make) -> None:
    one = make(cilium=Cilium(cluster_id=1, mesh="none"))
    assert rke_files.member(one).cilium.release == "1.17"
    assert rke_files.member(replace(one, distribution="rke2")).cilium.release == "1.19"
    assert rke_files.member(make(cilium=Cilium(cluster_id=1, version="1.18.2"))).cilium.release == "1.18.2"


def test_what_is_not_as_good_as_it_could_be_is_told(heat: Heat, run: CloudRun, make: Make, wording: Wording) -> None:
    told: list[str] = []
    run.note = lambda key, text: told.append(f"{key}: {text}")
    groups = (
        NodeGroup(nodes="0-1", roles=("controlplane", "etcd", "worker")),
        NodeGroup(nodes="2", roles=("worker",)),
    )
    cluster = make(roles=groups)
    resolved(cluster, [cluster], run.admin).create(run)
    wording(told)


def test_files_of_a_cluster_whose_stack_is_gone_can_be_destroyed(heat: Heat, run: CloudRun, make: Make) -> None:
    applied(run, make())
    heat.stands = False
    observed = observation.observe(run.fresh(), [make()])
    assert planner.plan_destroy("lab", [make()], observed)


def test_secrets_are_in_the_files_and_nowhere_else(heat: Heat, run: CloudRun, make: Make) -> None:
    peer = MetalLBPeer(name="r", my_asn=1, peer_asn=2, peer_address="10.1.0.1", password=Secret("of-the-peer"))
    pool = MetalLBPool(name="p", addresses=("10.1.0.200/29",))
    cluster = make(metallb=MetalLB(pools=(pool,), peers=(peer,)))
    applied(run, cluster)
    file = Path(cluster.directory) / "metallb.yaml"
    assert "of-the-peer" in file.read_text()
    file.write_text(file.read_text().replace("of-the-peer", "of-another"))
    said = str(planned(run, cluster)) + str(resolved(cluster, [cluster], run.admin).render(run.fresh()))
    assert "********" in said
    assert "of-the-peer" not in said
    assert "of-another" not in said


# --- what is refused ----------------------------------------------------------------------


def test_networks_of_files_that_are_there_change_by_consent_only(
    heat: Heat, run: CloudRun, make: Make, wording: Wording
) -> None:
    applied(run, make())
    said = refusals(run, make(networks=ClusterNetworks(range="10.64.0.0/12")))
    wording([each.partition(";")[0] for each in said])
    assert contains(said[0], "cluster_cidr", "10.42.0.0/16")


def test_what_another_wrote_is_not_overwritten(heat: Heat, run: CloudRun, make: Make, wording: Wording) -> None:
    path = Path(make().directory) / "cluster.yml"
    path.parent.mkdir()
    path.write_text("nodes: []\n")
    wording(refusals(run, make()))


def test_outputs_that_do_not_do(heat: Heat, run: CloudRun, make: Make, wording: Wording) -> None:
    heat.outputs = {"node_names": NAMES}
    wording(refusals(run, make()))
    heat.outputs = NODES | {"node_addresses": [*ADDRESSES[:2], None]}
    wording(refusals(run, make())[0])
    heat.outputs = NODES | {"node_addresses": ADDRESSES[:2]}
    wording(refusals(run, make())[0])
    heat.outputs = NODES | {"node_addresses": [*ADDRESSES[:2], 3]}
    wording(refusals(run, make())[0])
    heat.outputs = NODES | {"login_user": "core; reboot"}
    wording(refusals(run, make())[0])
    heat.outputs = {"node_names": [], "node_addresses": []}
    wording("".join(refusals(run, make())))


def test_a_template_of_the_spec_is_judged_before_its_stack_stands(
    heat: Heat, run: CloudRun, make: Make, tmp_path: Path
) -> None:
    heat.stands = False
    one = stack(tmp_path, ("node_names",), parameters={"node_count": 2})
    groups = (NodeGroup(nodes="0-3", roles=("controlplane", "etcd", "worker")), NodeGroup(nodes="5-", roles=("etcd",)))
    said = [str(each) for each in resolved(make(), [one, make(roles=groups)], run.admin).check(run, None)]
    assert contains(said[0], "stack/a", "node_addresses")
    assert contains(said[1], "roles[0].nodes", "0-3", "0-1", "0-")
    assert contains(said[2], "roles[1].nodes", "5-", "0-1")


def test_all_that_contradicts_another_is_told_at_once(heat: Heat, run: CloudRun, make: Make) -> None:
    subnet = Subnet(name="nodes", network="nodes", cidr="10.1.0.0/24")
    pool = AddressPool(name="p", subnet="nodes", addresses=("10.1.0.200/29",))
    metallb = MetalLB(pools=(MetalLBPool(pool="p", auto_assign=False),))
    one = make(metallb=metallb, cilium=Cilium(cluster_id=1, mesh_address="10.1.0.200"), cluster_cidr="10.1.0.0/16")
    other = make(
        "b",
        stack="a",
        directory=one.directory,
        metallb=MetalLB(pools=(MetalLBPool(pool="q"),)),
        cilium=Cilium(cluster_id=1, mesh_address="10.9.0.1"),
        network_plugin="calcio",
    )
    found = [resolved(cluster, [subnet, pool, one, other], run.admin) for cluster in (one, other)]
    said = "\n".join(str(each) for cluster in found for each in cluster.check(run, None))
    for each in (
        "rke_cluster/a: cluster_cidr 10.1.0.0/16 overlaps 10.1.0.0/24 of subnet/nodes",
        f"rke_cluster/b: directory {one.directory} is also used by rke_cluster/a",
        "rke_cluster/b: stack a is also used by rke_cluster/a",
        "rke_cluster/b: network_plugin: ",
        "rke_cluster/b: metallb.pools[0].pool: ",
        "rke_cluster/b: cilium.cluster_id: 1 is also used by a",
        "rke_cluster/b: cilium.mesh_address: 10.9.0.1 is not in a pool of MetalLB",
    ):
        assert each in said
    assert len(said.splitlines()) == 7
    assert all(each.keys == (cluster.key,) for cluster in found for each in cluster.check(run, None))


def test_nodes_that_stay_and_will_do_something_else(
    heat: Heat, run: CloudRun, make: Make, tmp_path: Path, wording: Wording
) -> None:
    heat.parameters = {"node_count": "3"}
    applied(run, make())
    fewer = stack(tmp_path, parameters={"node_count": 2})

    def of_roles(**fields: Any) -> tuple[str, list[str]]:
        """Return what the plan says of it beside its stack, and what is refused."""
        cluster = resolved(make(**fields), [fewer, make(**fields)], run.admin)
        plan = planner.plan_apply("lab", [cluster], observation.observe(run.fresh(), [cluster]))
        return plan.table, list(map(str, plan.refusals))

    line, refused = of_roles()
    assert "drift -[roles a-1: controlplane, etcd, worker -> worker]" in line
    wording(refused)
    kept = NodeGroup(nodes="0-", roles=("controlplane", "etcd", "worker"))
    assert of_roles(roles=(kept,)) == ("apply lab: 1 unchanged", [])

    # scaled in, and nobody has looked since; a stack that failed on its way there is told of as well
    heat.parameters["node_count"] = "2"
    for heat.status in ("UPDATE_FAILED", "UPDATE_COMPLETE"):
        assert of_roles()[1] == refused
        heat.outputs = {**NODES, "node_names": NAMES[:2], "node_addresses": ADDRESSES[:2]}
    applied(run, make(), consent=True)
    assert not planned(run, make())

    fewer = stack(tmp_path)  # with three again the second is promoted
    line, refused = of_roles()
    assert "drift -[roles a-1: worker -> controlplane, etcd, worker]" in line
    assert refused == []


def test_a_folder_of_two_and_networks_without_room_are_told_once(
    heat: Heat, run: CloudRun, make: Make, wording: Wording
) -> None:
    applied(run, make())
    two = make(), make("b", stack="c", directory=make().directory)
    said = [str(mistake) for each in two for mistake in resolved(each, two, run.admin).check(run.fresh(), None)]
    wording(said)
    narrow = make(networks=ClusterNetworks(range="10.64.0.0/16"))
    assert "None" not in str(planned(run, narrow))
    wording(refusals(run, narrow))


def test_a_key_that_is_not_there_is_a_warning(
    heat: Heat, run: CloudRun, make: Make, tmp_path: Path, wording: Wording
) -> None:
    path = tmp_path / "id_nope"
    cluster = resolved(make(ssh_key_path=str(path)), [make(ssh_key_path=str(path))], run.admin)
    wording(cluster.create(run).outputs["warning"])
    path.touch()
    assert "warning" not in cluster.create(run).outputs


# --- RKE2 ---------------------------------------------------------------------------------

RKE2 = {
    "server_names": ["s-0"],
    "server_addresses": ["10.1.0.10"],
    "agent_names": ["g-0"],
    "agent_addresses": ["10.1.0.20"],
    "api_address": "10.1.0.5",
    "api_floating_address": "192.0.2.5",
}


def test_a_config_for_each_node_of_rke2(heat: Heat, run: CloudRun, make: Make) -> None:
    heat.outputs, heat.parameters = RKE2, {"tls_san": "a.example,b.example", "cni": "calico", "server_taint": "True"}
    cluster = make(distribution="rke2")
    applied(run, cluster)
    server, agent = read(cluster, "s-0.yaml"), read(cluster, "g-0.yaml")
    assert server["tls-san"] == ["10.1.0.5", "192.0.2.5", "a.example", "b.example"]
    assert (server["cni"], server["node-taint"]) == (["calico"], ["CriticalAddonsOnly=true:NoExecute"])
    assert agent["server"] == "https://10.1.0.5:9345"
    heat.outputs = RKE2 | {"agent_names": [], "agent_addresses": []}
    assert "unexpected file g-0.yaml" in str(planned(run, cluster))
    applied(run, cluster)
    assert sorted(each.name for each in Path(cluster.directory).iterdir()) == ["s-0.yaml"]


@pytest.mark.parametrize(("version", "number"), [("v1.36.99+rke2r1", 1), ("v1.36.2+rke2r1", 0)])
def test_a_release_that_may_come_is_a_warning(run: CloudRun, make: Make, version: str, number: int) -> None:
    cluster = make(distribution="rke2", kubernetes_version=version)
    found = rke_files.warnings(resolved(cluster, [cluster], run.admin), None)
    assert sum(version in each for each in found) == number


@pytest.mark.parametrize("floating", [None, [], ["192.0.2.10", "192.0.2.11"]])
def test_a_command_by_ssh_is_printed_for_a_server_that_is_reached(
    heat: Heat, run: CloudRun, make: Make, floating: list[str] | None
) -> None:
    heat.outputs = RKE2 | ({} if floating is None else {"node_floating_addresses": floating})
    cluster = make(distribution="rke2")
    told = resolved(cluster, [cluster], run.admin).create(run.fresh()).outputs
    if floating:
        assert "ssh core@192.0.2.10 " in told["next"] or "ssh ubuntu@192.0.2.10 " in told["next"]
        assert "needs" not in told
    else:
        assert f"@{RKE2['server_addresses'][0]} sudo cat" in told["needs"]
        assert "ssh -J USER@BASTION " in told["needs"]
        assert "node_floating_ips: true" in told["needs"]
        assert "next" not in told


def test_what_a_standing_stack_of_rke2_has_otherwise_is_told(heat: Heat, run: CloudRun, make: Make) -> None:
    heat.outputs, heat.parameters = RKE2, {"cluster_cidr": "10.99.0.0/16"}
    (said,) = refusals(run, make(distribution="rke2"))
    assert contains(said, "cluster_cidr 10.42.0.0/16", "cluster_cidr 10.99.0.0/16", "stack/a")


def test_a_cluster_of_rke2_and_its_stack_tell_one_another(
    heat: Heat, run: CloudRun, make: Make, tmp_path: Path
) -> None:
    cluster, silent = make(distribution="rke2"), stack(tmp_path)
    told = resolved(silent, [silent, cluster], run.admin)
    assert told.parameters == {"cluster_cidr": "10.42.0.0/16"}
    telling = stack(tmp_path, parameters={"cluster_cidr": "10.7.0.0/16", "cni": ["multus", "cilium"]})
    assert resolved(telling, [telling, cluster], run.admin).parameters == telling.parameters
    known = resolved(cluster, [telling, cluster], run.admin)
    assert (known.cluster_cidr, known.network_plugin) == ("10.7.0.0/16", "multus,cilium")
    apart, outside = (
        stack(tmp_path, parameters={"external_cloud_provider": "False"}),
        make(distribution="rke2", external_cloud_provider=True),
    )
    (said,) = map(str, resolved(outside, [apart, outside], run.admin).related.contradictions("a", {}))
    assert contains(said, "external_cloud_provider true", "external_cloud_provider false", "stack/a")
    other = make(distribution="rke2", cluster_cidr="10.8.0.0/16")
    said = "".join(map(str, resolved(other, [telling, other], run.admin).check(run, None)))
    assert contains(said, "cluster_cidr 10.8.0.0/16", "cluster_cidr 10.7.0.0/16", "stack/a", "cluster_cidr")


def test_stacks_and_pools_of_one_name_in_two_projects_are_told_apart(run: CloudRun, make: Make, tmp_path: Path) -> None:
    """Each cluster takes the parameters of the stack, and the addresses of the pool, of its own project."""
    stacks = [stack(tmp_path, project=each, parameters={"node_count": count}) for each, count in (("p", 1), ("q", 5))]
    pools = [
        AddressPool(name="lb", project=each, subnet="nodes", addresses=(addresses,))
        for each, addresses in (("p", "10.1.0.9"), ("q", "10.2.0.9"))
    ]
    clusters = [make(each, stack="a", project=each) for each in ("p", "q")]
    spec = [*stacks, *pools, *clusters]
    found = [(each, resolved(each, spec, run.admin).related) for each in clusters]
    assert [related.parameters(cluster)["node_count"] for cluster, related in found] == [1, 5]
    assert [related.addresses(cluster) for cluster, related in found] == [{"lb": ("10.1.0.9",)}, {"lb": ("10.2.0.9",)}]


def test_a_cluster_needs_a_name_of_its_own_in_all_projects(run: CloudRun, make: Make) -> None:
    spec = [make(project="p"), make(project="q", directory="elsewhere")]
    with pytest.raises(SpecError) as raised:
        resolved(spec[0], spec, run.admin)
    assert [(each.where, "same name" in each.what) for each in raised.value.mistakes] == [("rke_cluster/a", True)]


TWO_AGENTS = {
    **{"server_names": ["s0"], "server_addresses": ["10.1.0.10"], "api_address": "10.1.0.9", "login_user": "core"},
    **{"agent_names": ["a0", "a1"], "agent_addresses": ["10.1.0.11", "10.1.0.12"]},
}
POOL = {"name": "fast", "flavor": "f", "image": "i", "config": '{"node-taint": ["disk=fast:NoSchedule"]}'}
POOL |= {"to_remove": ""}


def taints(run: CloudRun, cluster: RkeCluster) -> list[list[str]]:
    """Return the taints of the agents in the files of a cluster."""
    applied(run, cluster)
    return [read(cluster, f"{name}.yaml").get("node-taint", []) for name in ("a0", "a1")]


@pytest.mark.parametrize("count", ["1", "3"])
def test_a_pool_has_all_parameters_of_one(heat: Heat, run: CloudRun, make: Make, count: str) -> None:
    """Another template may call something pool1_count: ``roles`` describe all of its agents."""
    heat.outputs, heat.parameters = dict(TWO_AGENTS), {"pool1_count": count}
    servers, taint = NodeGroup(nodes="0", roles=("controlplane", "etcd")), "a=b:NoSchedule"
    agents = NodeGroup(nodes="1-", roles=("worker",), taints=(taint,))
    assert taints(run, make(distribution="rke2", roles=(servers, agents))) == [[taint], [taint]]


def test_the_last_agents_are_nodes_of_pools(heat: Heat, run: CloudRun, make: Make) -> None:
    pool = {f"pool1_{name}": value for name, value in POOL.items()}
    heat.outputs, heat.parameters = dict(TWO_AGENTS), pool | {"pool1_count": "1"}
    assert taints(run, make(distribution="rke2")) == [[], ["disk=fast:NoSchedule"]]
    heat.parameters["pool1_count"] = "3"
    (refused,) = refusals(run, make(distribution="rke2"))
    assert contains(refused, "stack/a", "agent_names", "3")
