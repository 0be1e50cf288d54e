"""Pairs of virtual machines on bridges: each node gets what their exposures have claimed, and loses it again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.plan import Plan
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.machine_pairs import MachinePairs
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.resources.addresses import port_pairs
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.lists.queries import subports
from openstack_prep.spec.resolution import resolve_spec
from openstack_prep.spec.spec import load_spec
from tests.unit.conftest import failure
from tests.unit.resources.addresses.test_address_pairs import NEUTRON, Neutron
from tests.unit.texts import contains

FILE = {"name": "office", "path": "office.yaml", "cidr": "192.0.2.0/24", "addresses": ["192.0.2.100-192.0.2.119"]}
OFFICE = {"name": "office", "bridge": "br1", "cidr": "192.0.2.0/24", "openstack_network": "office"}
DISTRIBUTED = {"id": "meta", "network_id": "n1", "device_owner": "network:distributed", "fixed_ips": []}
FOREIGN = {"ip_address": "192.0.2.119", "mac_address": "06:00:00:00:00:09"}


def port(name: str, **fields: Any) -> dict[str, Any]:
    number = int(re.sub(r"\D", "", name) or 0)
    given = {"id": name, "name": name, "network_id": "n1", "mac_address": f"fa:16:3e:00:00:{number:02x}"}
    given |= {"device_id": f"s{number}", "device_owner": "compute:nova", "fixed_ips": [], "tags": []}
    return {**given, "allowed_address_pairs": [], "port_security_enabled": True, "revision_number": 1, **fields}


def exposure(name: str, **more: Any) -> dict[str, Any]:
    given = {"cluster": "c", "how": "bridge", "target": {"virtual_machine": f"a/{name}"}, "ports": [{"port": 80}]}
    return {"name": name, "pool": "office"} | given | more


class Trial:
    """A spec, and Neutron with the ports of its nodes."""

    def __init__(self, run: CloudRun, services: requests_mock.Mocker, folder: Path) -> None:
        self.neutron = Neutron(services)
        self.run = CloudRun(run.admin, run.ownership, homes=[None])
        self.path = folder / "lab.yaml"
        self.networks = [OFFICE]
        services.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "office"}]})

    def resources(self, *exposures: dict[str, Any], **sections: Any) -> list[Any]:
        virtualization = {"bridges": [{"name": "br1", "interface": "eth1"}], "networks": self.networks}
        cluster = {"name": "c", "directory": "c", "nodes": {"tag": "node"}, "virtualization": virtualization}
        spec = {"name": "lab", "pool_files": [FILE], "exposures": [*exposures], "exposed_clusters": [cluster]}
        self.path.write_text(yaml.safe_dump(spec | sections))
        found = resolve_spec(load_spec(self.path), self.run.admin, for_apply=False)
        return [each for each in found.resources if isinstance(each, Exposure | PoolFile | AddressPairs)]

    def plan(self, *exposures: dict[str, Any], **sections: Any) -> Plan:
        self.run = CloudRun(self.run.admin, self.run.ownership, homes=[None])
        wanted = self.resources(*exposures, **sections)
        observed, mistakes = observation.examine(self.run, wanted)
        self.run.known.update(observed)
        return planner.plan_apply("lab", wanted, observed, mistakes=mistakes)

    def apply(self, *exposures: dict[str, Any], **sections: Any) -> list[str]:
        """Apply; a second apply has nothing to do. Return the notes."""
        made, notes = self.plan(*exposures, **sections), []
        made.raise_for_refusals()
        executor.execute(made, self.run, tell=lambda event: notes.append(event.note)).raise_for_failures()
        assert not self.plan(*exposures, **sections)
        return [each for each in notes if each]

    def claims(self) -> dict[str, tuple[str, str]]:
        found = yaml.safe_load((self.path.parent / "office.yaml").read_text())["claims"]
        return {name.removeprefix("lab/"): (each["address"], each["mac"]) for name, each in found.items()}

    def pairs(self, name: str) -> set[tuple[str, str]]:
        (found,) = (each for each in self.neutron.ports if each["name"] == name)
        return {(each["ip_address"], each["mac_address"]) for each in found["allowed_address_pairs"]}


@pytest.fixture
def trial(run: CloudRun, services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr(port_pairs, "PAUSE", 0.001)
    return Trial(run, services, tmp_path)


def node(name: str, **fields: Any) -> dict[str, Any]:
    return port(name, **{"tags": ["node"]} | fields)


def test_each_node_gets_what_the_exposures_claim_in_the_same_apply(trial: Trial) -> None:
    trial.neutron.ports += [node("node1", allowed_address_pairs=[FOREIGN]), node("node2"), port("other3")]
    both = exposure("database"), exposure("web", address="192.0.2.110")
    assert "+ address_pairs/exposures-c:machines" in trial.plan(*both).table
    trial.apply(*both)
    claims = trial.claims()
    assert trial.pairs("node1") == {*claims.values(), tuple(FOREIGN.values())}
    assert trial.pairs("node2") == {*claims.values()}
    assert trial.pairs("other3") == set()
    records = [f"openstack-prep:lab~{'~'.join(each)}" for each in sorted(claims.values())]
    assert trial.neutron.ports[1]["tags"] == ["node", *records]

    fewer = trial.plan(both[0]).table
    assert f"pairs -[{' '.join(claims['web'])} on node1, {' '.join(claims['web'])} on node2]" in fewer
    trial.apply(both[0])
    assert trial.pairs("node1") == {claims["database"], tuple(FOREIGN.values())}
    trial.apply(both[0], address_pairs=[{"name": "own", "tag": "node", "addresses": ["10.0.0.5"]}])
    assert trial.pairs("node2") == {claims["database"], ("10.0.0.5", "fa:16:3e:00:00:02")}

    wanted = trial.resources(both[0])
    made = planner.plan_destroy("lab", wanted, observation.observe(trial.run.fresh(), wanted))
    assert [step.key.kind for step in made] == ["address_pairs", "exposure", "pool_file"]
    executor.execute(made, trial.run).raise_for_failures()
    assert trial.pairs("node1") == {tuple(FOREIGN.values())}
    assert trial.neutron.ports[1]["tags"] == ["node"]


def test_the_ports_of_the_servers_on_the_network_have_the_pairs(trial: Trial) -> None:
    """The cluster selects ports elsewhere, which lead to servers; without port security nothing is filtered."""
    trial.neutron.ports += [node(f"node{each}", network_id="n0") for each in (1, 2, 3)]
    trial.neutron.ports += [port("office1"), port("office2", port_security_enabled=False), port("other4")]
    (note,) = trial.apply(exposure("web"))
    assert contains(note, "node3", "office")
    assert {each["name"] for each in trial.neutron.ports if each["allowed_address_pairs"]} == {"office1"}


def test_tagged_frames_pass_subports(trial: Trial, services: requests_mock.Mocker) -> None:
    trial.networks = [OFFICE | {"vlan": 30}]
    inside = {"port_id": "sub1", "segmentation_id": 30}, {"port_id": "sub9", "segmentation_id": 31}
    services.get(f"{NEUTRON}/trunks", json={"trunks": [{"id": "t", "port_id": "node1", "sub_ports": [*inside]}]})
    subport = {"device_id": "t", "device_owner": "trunk:subport"}
    trial.neutron.ports += [node("node1"), node("node2"), port("sub1", **subport), port("sub9", **subport)]
    (note,) = trial.apply(exposure("web"))
    assert contains(note, "node2", "VLAN 30", "office")
    assert {each["name"] for each in trial.neutron.ports if each["allowed_address_pairs"]} == {"sub1"}
    found = [(each.port_id, each.parent_id, each.vlan) for each in subports(trial.run.fresh(), "p")]
    assert found == [("sub1", "node1", 30), ("sub9", "node1", 31)]
    services.get(f"{NEUTRON}/trunks", **failure(404))
    assert subports(trial.run.fresh(), "p") == ()


def test_a_claim_that_changes_moves_the_pair(trial: Trial) -> None:
    trial.neutron.ports.append(node("node1"))
    trial.apply(exposure("web"))
    former = trial.claims()["web"]
    trial.apply(exposure("web", address="192.0.2.115"))
    assert trial.pairs("node1") == {("192.0.2.115", former[1])}


def test_what_the_spec_declares_itself_decides_on_the_ports(trial: Trial) -> None:
    """A machine that is pinned to a node, as OVN requires: the pairs elsewhere go."""
    trial.neutron.ports += [node("node1"), node("node2")]
    trial.apply(exposure("web"))
    address, mac = trial.claims()["web"]
    own = {"name": "own", "ports": ["node1"], "addresses": [address], "mac_address": mac}
    trial.neutron.distributed.append(DISTRIBUTED)
    assert any("OVN runs office" in str(each) for each in trial.plan(exposure("web")).refusals)
    trial.apply(exposure("web"), address_pairs=[own])
    assert (trial.pairs("node1"), trial.pairs("node2")) == ({(address, mac)}, set())
    (pairs,) = (
        each for each in trial.resources(exposure("web"), address_pairs=[own]) if isinstance(each, MachinePairs)
    )
    assert pairs.declared(trial.run.fresh()) == {"web"}


def test_ovn_with_several_ports_is_refused(trial: Trial) -> None:
    trial.neutron.distributed.append(DISTRIBUTED)
    trial.neutron.ports += [node("node1"), node("node2")]
    (refusal,) = trial.plan(exposure("web")).refusals
    assert "node1, node2" in refusal.what
    trial.neutron.ports[1]["port_security_enabled"] = False
    trial.apply(exposure("web"))
    assert trial.pairs("node1") == {trial.claims()["web"]}


def test_a_sync_leaves_pairs_whose_claims_it_does_not_see(trial: Trial) -> None:
    """A timer may run where the pool file is not."""
    trial.neutron.ports.append(node("node1"))
    trial.apply(exposure("web"), exposure("more"))
    before = trial.pairs("node1")
    wanted = [each for each in trial.resources(exposure("web"), exposure("more")) if isinstance(each, AddressPairs)]
    others = [*trial.resources(exposure("web"), exposure("more"))]
    (trial.path.parent / "office.yaml").rename(trial.path.parent / "elsewhere.yaml")
    (alone,) = (each.resolve_with(others, alone=True) for each in wanted)
    run = CloudRun(trial.run.admin, trial.run.ownership, homes=[None])
    made = planner.plan_apply("lab", [alone], observation.observe(run, [alone]))
    assert not made
    assert trial.pairs("node1") == before
    (trial.path.parent / "elsewhere.yaml").rename(trial.path.parent / "office.yaml")
    trial.neutron.ports[0]["allowed_address_pairs"] = []
    (alone,) = (each.resolve_with(others, alone=True) for each in wanted)
    made = planner.plan_apply("lab", [alone], observation.observe(run.fresh(), [alone]))
    executor.execute(made, run.fresh()).raise_for_failures()
    assert trial.pairs("node1") == before


def test_a_port_with_too_many_pairs(trial: Trial, services: requests_mock.Mocker) -> None:
    trial.neutron.ports.append(node("node1"))
    services.put(f"{NEUTRON}/ports/node1", **failure(400, "allowed_address_pair exceeds the maximum 10"))
    report = executor.execute(trial.plan(exposure("web")), trial.run)
    assert contains(report.failed[0].error, "1 pair", "192.0.2.100", "virtual machines")
    assert trial.neutron.ports[0]["tags"] == ["node"]


def test_the_pairs_of_the_last_machine_go_with_prune(trial: Trial) -> None:
    """Without it nothing declares pairs any more; the plan of a whole spec lists them."""
    trial.neutron.ports.append(node("node1"))
    trial.apply(exposure("web"))
    before = trial.pairs("node1")
    assert not trial.plan()
    assert trial.pairs("node1") == before
    (left,) = (found for _, found in AddressPairs.scan(trial.run, None))
    assert (left.id, left.ours) == ("node1", True)


def test_without_nodes_or_a_network_of_openstack_there_is_nothing_to_allow(trial: Trial) -> None:
    trial.networks = [{name: value for name, value in OFFICE.items() if name != "openstack_network"}]
    assert not [each for each in trial.resources(exposure("web")) if isinstance(each, AddressPairs)]
    trial.networks = [OFFICE, OFFICE | {"name": "more", "cidr": "198.51.100.0/24", "openstack_network": "more"}]
    (pairs,) = (each for each in trial.resources(exposure("web")) if isinstance(each, MachinePairs))
    assert [each.name for each in pairs.networks] == ["office"]
