"""What a real Neutron seldom says of claims, and the exact requests; the rest is tested on one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Context, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.core.resource import ListsMistakes, supports
from openstack_prep.exposures.endpoint import ExposedPort, ExposureTarget
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.machine_claims import LeftClaim
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register import neutron as register_module
from openstack_prep.exposures.register import pool as macs
from openstack_prep.exposures.register.neutron import NeutronRegister
from openstack_prep.exposures.register.pool import Claim, ClaimRefused, ClaimRequest
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.verbs import scan
from tests.unit.conftest import ENDPOINTS, port_row, resolved
from tests.unit.exposures.register.claiming import claim_one
from tests.unit.texts import Wording, expect_error

NEUTRON = ENDPOINTS["network"] + "/v2.0"
POOL = AddressPool(name="lb", subnet="nodes", addresses=("10.0.0.100-10.0.0.102",))
SUBNET: dict[str, Any] = {
    "id": "s1",
    "name": "nodes",
    "network_id": "n1",
    "cidr": "10.0.0.0/24",
    "gateway_ip": "10.0.0.1",
    "description": "",
    "dns_nameservers": [],
    "host_routes": [],
    "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.254"}],
    "ipv6_address_mode": None,
    "revision_number": 1,
}


class Neutron:
    """Three reserving ports, whose revisions count."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.ports = [
            port_row(
                id=f"p{each}",
                name=f"lb-10.0.0.{each}",
                description="[openstack-prep:lab/lb]",
                device_owner="openstack-prep:reserved",
                fixed_ips=[{"subnet_id": "s1", "ip_address": f"10.0.0.{each}"}],
            )
            for each in (102, 100, 101)
        ]
        self.before_write: Callable[[], None] = lambda: None
        self.writes: list[str] = []
        services.get(f"{NEUTRON}/ports", json=lambda *_: {"ports": self.ports})
        services.get(f"{NEUTRON}/subnets", json={"subnets": [SUBNET]})
        services.get(f"{NEUTRON}/networks", json={"networks": []})
        services.get(f"{NEUTRON}/floatingips", json={"floatingips": []})
        services.put(re.compile(f"{NEUTRON}/ports/.*"), json=self.put)

    def port(self, number: int) -> dict[str, Any]:
        return next(each for each in self.ports if each["id"] == f"p{number}")

    def put(self, request: Any, context: Any) -> dict[str, Any]:
        self.before_write()
        port = next(each for each in self.ports if each["id"] == request.path.rpartition("/")[2])
        if request.headers["If-Match"] != f"revision_number={port['revision_number']}":
            context.status_code = 412
            return {"NeutronError": {"type": "", "message": "Constrained to another revision", "detail": ""}}
        self.writes.append(f"{port['id']}: {request.json()['port']['description']}")
        port |= request.json()["port"]
        port["revision_number"] += 1
        return {"port": port}

    def change(self, number: int, description: str) -> None:
        """Change a port as another run does."""
        port = self.port(number)
        port["description"] = description
        port["revision_number"] += 1

    def once(self, act: Callable[[], None]) -> None:
        """Act right before the next write."""

        def before() -> None:
            self.before_write = lambda: None
            act()

        self.before_write = before


@pytest.fixture
def neutron(services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> Neutron:
    monkeypatch.setattr(register_module, "PAUSE", 0.001)
    return Neutron(services)


@pytest.fixture
def register(run: CloudRun, neutron: Neutron) -> NeutronRegister:
    return NeutronRegister(run=run, project=None, pool="lb")


def exposure(name: str = "web", **fields: Any) -> Exposure:
    given: dict[str, Any] = {
        "cluster": "a",
        "target": ExposureTarget(service="shop/web"),
        "ports": (ExposedPort(port=443),),
        "how": "metallb",
    }
    return Exposure(name=name, **given | fields)


def plan(run: CloudRun, *wanted: Any) -> Plan:
    placed = [resolved(each, wanted, run.admin) for each in wanted]
    observed, mistakes = observation.examine(run, [each for each in placed if isinstance(each, Exposure | PoolFile)])
    return planner.plan_apply("lab", placed[-1:], observed, mistakes=mistakes)


def refusals(run: CloudRun, *wanted: Any) -> list[str]:
    context = Context(resources=wanted, cloud=run.admin)
    judged = (each for each in wanted if supports(each, ListsMistakes))
    declared = [mistake for each in judged for mistake in each.list_mistakes(context)]
    return list(dict.fromkeys(f"{each.where}: {each.what}" for each in (*declared, *plan(run, *wanted).refusals)))


# --- the register -------------------------------------------------------------------------


def test_the_lowest_free_port_is_claimed_and_the_user_may_read_it(register: NeutronRegister, neutron: Neutron) -> None:
    assert claim_one(register, "web") == claim_one(register, "web") == Claim(address="10.0.0.100")
    mac = claim_one(register, "vm", "10.0.0.102", mac=True).mac
    assert neutron.writes == [
        "p100: exposure web [openstack-prep:lab/lb]",
        f"p102: exposure vm {mac} [openstack-prep:lab/lb]",
    ]
    assert OwnershipTag("lab").owns(neutron.port(102)["description"], "lb")
    register.release(["web", "vm"])
    assert sorted(neutron.writes[2:]) == ["p100: [openstack-prep:lab/lb]", "p102: [openstack-prep:lab/lb]"]


def test_of_two_writers_the_second_gets_another_address(register: NeutronRegister, neutron: Neutron) -> None:
    neutron.once(lambda: neutron.change(100, "exposure other [openstack-prep:lab/lb]"))
    assert claim_one(register, "web").address == "10.0.0.101"
    neutron.once(lambda: neutron.change(102, "exposure third [openstack-prep:lab/lb]"))
    with expect_error(ClaimRefused, "10.0.0.102", "address_pool/lb", "exposure/third", code="address.in-use"):
        claim_one(register, "vm", "10.0.0.102")


def test_one_name_that_two_runs_claim_keeps_one_port(register: NeutronRegister, neutron: Neutron) -> None:
    """The other run has chosen another port: both see both, and keep the lowest."""
    neutron.once(lambda: neutron.change(101, "exposure web d2:00:00:00:00:01 [openstack-prep:lab/lb]"))
    assert claim_one(register, "web") == Claim(address="10.0.0.100")
    assert [each["description"] for each in neutron.ports] == [
        "[openstack-prep:lab/lb]",
        "exposure web [openstack-prep:lab/lb]",
        "[openstack-prep:lab/lb]",
    ]


def test_a_claim_keeps_its_mac_address_when_it_moves(register: NeutronRegister) -> None:
    before = claim_one(register, "vm", mac=True)
    after = claim_one(register, "vm", "10.0.0.102")
    assert after == Claim(address="10.0.0.102", mac=before.mac)


def test_a_mac_address_of_a_port_a_pair_or_a_claim_is_not_given(register: NeutronRegister, neutron: Neutron) -> None:
    first = claim_one(register, "vm", mac=True).mac
    assert first is not None
    register.release(["vm"])
    assert claim_one(register, "vm", mac=True).mac == first
    register.release(["vm"])
    number = int(first.replace(":", ""), 16)
    after = [macs.text_of(number + each) for each in range(5)]
    neutron.port(101)["mac_address"] = after[0]
    neutron.port(101)["allowed_address_pairs"] = [{"ip_address": "10.0.0.9", "mac_address": after[1]}]
    neutron.change(102, f"exposure x {after[2]} [openstack-prep:lab/lb]")
    found = register.claim([ClaimRequest(name="vm", mac=True)], [after[3]])
    assert found["vm"].mac == after[4]


def test_all_names_are_claimed_or_none(register: NeutronRegister, neutron: Neutron) -> None:
    claim_one(register, "a")
    with pytest.raises(ClaimRefused, match="no free address"):
        register.claim([ClaimRequest(name=each) for each in "abcd"])
    assert [each["description"].partition(" [")[0] for each in neutron.ports if "exposure" in each["description"]] == [
        "exposure a"
    ]


def test_a_port_that_changes_all_the_time_is_given_up(register: NeutronRegister, neutron: Neutron) -> None:
    neutron.before_write = lambda: (
        [port.update(revision_number=port["revision_number"] + 1) for port in neutron.ports] and None
    )
    with pytest.raises(CloudError, match="412"):
        claim_one(register, "web")


def test_ports_of_another_spec_and_of_devices_are_not_claimed(register: NeutronRegister, neutron: Neutron) -> None:
    neutron.change(100, "[openstack-prep:other/lb]")
    neutron.port(101)["device_id"] = "server"
    assert claim_one(register, "web").address == "10.0.0.102"
    with pytest.raises(ClaimRefused):
        claim_one(register, "x")
    assert claim_one(register, "web").address == "10.0.0.102"
    with expect_error(ClaimRefused, "10.0.0.100", "address_pool/lb", code="address.in-use"):
        claim_one(register, "vm", "10.0.0.100")
    with pytest.raises(ClaimRefused, match="attached to server"):
        claim_one(register, "vm", "10.0.0.101")


# --- the kind -----------------------------------------------------------------------------


def test_an_answer_that_was_lost_is_found_again(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    made = plan(run, POOL, exposure(pool="lb"))
    answers = iter([{"status_code": 502}])

    def lose(request: Any, context: Any) -> Any:
        found = neutron.put(request, context)
        context.status_code = next(answers, {"status_code": context.status_code})["status_code"]
        return found

    services.put(re.compile(f"{NEUTRON}/ports/.*"), json=lose)
    report = executor.execute(made, run)
    report.raise_for_failures()
    assert report.outputs["exposure/web"] == "10.0.0.100"
    assert set(neutron.writes) == {"p100: exposure web [openstack-prep:lab/lb]"}
    assert not plan(run.fresh(), POOL, exposure(pool="lb"))


def test_an_exposure_without_a_register_is_kept_and_never_deleted(run: CloudRun, neutron: Neutron) -> None:
    outside = replace(POOL, reserve="outside")
    for each in (
        exposure(how="node-port"),
        exposure(address="198.51.100.7"),
        exposure(pool="lb", address="10.0.0.100"),
    ):
        wanted = resolved(each, [outside, each], run.admin)
        (found,) = observation.observe(run, [wanted]).values()
        assert planner.decide(wanted, found).action.value == "keep"
        assert not found.ours
        assert wanted.placed(found).address == each.address
    assert neutron.writes == []


def test_the_ports_are_read_twice_however_many_exposures_claim(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    """Explicit addresses come first; one that is refused does not keep the others from theirs."""
    many = [exposure(name, pool="lb") for name in "ab"] + [exposure("c", pool="lb", address="10.0.0.100")]
    observed, _ = observation.examine(run, [resolved(each, [POOL, *many], run.admin) for each in many])
    made = planner.plan_apply("lab", [resolved(each, [POOL, *many], run.admin) for each in many], observed)
    before = len(services.request_history)
    report = executor.execute(made, run)
    report.raise_for_failures()
    sent = [each.method for each in services.request_history[before:] if "/ports" in each.url]
    assert sorted(sent) == ["GET"] * 2 + ["PUT"] * 3
    outputs = {name: report.outputs[f"exposure/{name}"] for name in "abc"}
    assert outputs == {"a": "10.0.0.101", "b": "10.0.0.102", "c": "10.0.0.100"}
    outcomes = NeutronRegister(run=run.fresh(), project=None, pool="lb").claim_each(
        [ClaimRequest(name="c"), ClaimRequest(name="d")]
    )
    assert outcomes["c"] == Claim(address="10.0.0.100")
    assert isinstance(outcomes["d"], ClaimRefused)


def test_what_is_rendered_gets_what_is_claimed(run: CloudRun, register: NeutronRegister) -> None:
    claim = claim_one(register, "web", mac=True)
    wanted = resolved(exposure(pool="lb", how="bridge"), [POOL], run.admin)
    (found,) = observation.observe(run, [wanted]).values()
    placed = wanted.placed(found, "203.0.113.5")
    assert (placed.address, placed.mac, placed.outside) == (claim.address, claim.mac, "203.0.113.5")
    assert wanted.placed(None).address is None


def test_mistakes_in_a_pool_that_records_nothing(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    outside = replace(POOL, reserve="outside")
    wording(refusals(run, outside, exposure(pool="lb", how="bridge")))
    same = [exposure(name, pool="lb", address="10.0.0.100") for name in ("a", "b")]
    wording(refusals(run.fresh(), outside, *same))
    apart = replace(same[1], ports=(ExposedPort(port=443, protocol="udp"),), names=("x.example.com",))
    assert refusals(run.fresh(), outside, replace(same[0], names=("x.example.com",)), apart) == []


def test_mistakes_in_a_pool_file(run: CloudRun, neutron: Neutron, tmp_path: Path, wording: Wording) -> None:
    file = PoolFile(name="f", path=str(tmp_path / "f"), cidr="192.0.2.0/24", addresses=("192.0.2.8/31",), macs=False)
    other = PoolFile(name="lb", path=str(tmp_path / "g"), cidr="192.0.2.0/24", addresses=("192.0.2.8",))
    file.register(CloudRun(run.admin, OwnershipTag("prod"))).ensure()
    claim_one(file.register(CloudRun(run.admin, OwnershipTag("prod"))), "x", "192.0.2.9")
    wanted = [
        exposure("a", pool="f", how="bridge"),
        exposure("b", pool="f", address="192.0.2.9"),
        exposure("c", pool="f", address="192.0.2.255"),
        exposure("d", pool="lb"),
        exposure("e", pool="f"),
    ]
    found = refusals(run, file, other, POOL, *wanted)
    wording(found)


def test_names_that_lead_to_one_floating_ip_or_to_the_nodes_do_not_collide(run: CloudRun, neutron: Neutron) -> None:
    names = ("x.example.com",)
    nodes = [exposure(name, how="node-port", names=names) for name in ("a", "b")]
    assert refusals(run, *nodes) == []
    floating = [exposure(name, pool="lb", floating_ip="web", names=names) for name in ("a", "b")]
    collision = "exposure/b: x.example.com also leads to exposure/a, at another address"
    assert collision not in refusals(run.fresh(), POOL, *floating)
    floating[1] = replace(floating[1], floating_ip="other")
    assert collision in refusals(run.fresh(), POOL, *floating)


def test_an_ipv4_and_an_ipv6_exposure_share_a_name(run: CloudRun, neutron: Neutron, tmp_path: Path) -> None:
    """A and AAAA records do not collide; of a pool with both versions nobody knows which one an exposure gets."""
    given: dict[str, Any] = {"names": ("x.example.com",)}
    file = PoolFile(name="six", path=str(tmp_path / "six"), cidr="2001:db8::/64", addresses=("2001:db8::8/125",))
    four = [exposure("a", pool="lb", **given), exposure("b", address="192.0.2.9", **given)]
    six = [exposure("c", pool="six", **given), exposure("d", address="2001:db8:1::9", **given)]
    for one in (*four, exposure("e", floating_ip="web", pool="lb", address="10.0.0.101", **given)):
        for other in six:
            assert not [each for each in refusals(run.fresh(), POOL, file, one, other) if "also leads to" in each]
    for two in (four, six):
        assert [each for each in refusals(run.fresh(), POOL, file, *two) if "also leads to" in each]
    mixed = replace(POOL, name="mixed", addresses=(*POOL.addresses, "2001:db8::10"))
    found = refusals(run.fresh(), mixed, file, exposure("a", pool="mixed", **given), six[0])
    assert any("also leads to" in each for each in found)


def test_one_name_in_two_projects_cannot_claim_in_one_file(run: CloudRun, tmp_path: Path) -> None:
    file = PoolFile(name="f", path=str(tmp_path / "f"), cidr="192.0.2.0/24", addresses=("192.0.2.8/30",))
    one, two = exposure(pool="f"), exposure(pool="f", project="other")
    wanted = resolved(two, [file, one, two], run.admin)
    found = wanted.list_mistakes(Context(resources=[file, one, two], cloud=run.admin))
    assert any("of another project claims the same name" in each.what for each in found)


def left(run: CloudRun, *wanted: Any) -> Sequence[scan.Standing]:
    run.known.clear()
    seen = scan.ScanResult((), (None,), [*LeftClaim.scan(run, None), *scan._entries(run, wanted)])
    observed = observation.observe(run, wanted)
    return scan.undeclared(run, seen, wanted, observed, jobs=1)


def test_claims_that_the_spec_no_longer_declares_are_found_and_released(
    run: CloudRun, register: NeutronRegister, neutron: Neutron, tmp_path: Path
) -> None:
    run = CloudRun(run.admin, run.ownership, homes=[None])
    file = PoolFile(name="f", path=str(tmp_path / "f"), cidr="192.0.2.0/24", addresses=("192.0.2.8/30",))
    file.register(run).ensure()
    for name in ("kept", "dropped"):
        claim_one(file.register(run), name)
    for name in ("web", "old"):
        claim_one(register, name)
    neutron.change(102, "exposure foreign [openstack-prep:other/lb]")
    wanted = [exposure("web", pool="lb"), exposure("kept", pool="f")]
    placed = [resolved(each, [file, POOL, *wanted], run.admin) for each in wanted]
    found = left(run.fresh(), file, *placed)
    assert sorted((str(each.key), observed.id) for each, observed in found) == [
        ("exposure/dropped (f)", "f/192.0.2.9"),
        ("exposure/old (lb)", "lb/10.0.0.101"),
    ]
    for each, observed in found:
        assert each.find_one(run.fresh()) is not None
        each.delete(run, observed)
        assert each.find_one(run.fresh()) is None
    assert set(file.register(run).held()) == {"kept"}
    assert left(run.fresh(), file, *placed) == []
    assert all(each.neighbours.exposures for each in placed if isinstance(each, Exposure))


def files(tmp_path: Path, *names: str) -> list[PoolFile]:
    return [
        PoolFile(name=each, path=str(tmp_path / each), cidr="192.0.2.0/24", addresses=("192.0.2.8/30",))
        for each in names
    ]


@pytest.mark.parametrize("wanted", ["lb", "f", None])
def test_a_move_that_was_interrupted_is_completed(
    run: CloudRun, register: NeutronRegister, neutron: Neutron, tmp_path: Path, wanted: str | None
) -> None:
    """Killed between the claim in the new pool and the release in the former one: both hold its name."""
    (file,) = files(tmp_path, "f")
    file.register(run).ensure()
    claim_one(file.register(run), "web")
    claim_one(register, "web")
    declared = exposure(pool=wanted)
    made = plan(run.fresh(), file, POOL, declared)
    (step,) = made.steps
    assert step.action.value == "update"
    assert [each.field for each in step.changes] == ["pool"]
    executor.execute(made, run.fresh()).raise_for_failures()
    assert ("web" in file.register(run).held(), "web" in register_of(run)) == (wanted == "f", wanted == "lb")
    assert not plan(run.fresh(), file, POOL, declared)


def register_of(run: CloudRun) -> Collection[str]:
    return NeutronRegister(run=run.fresh(), project=None, pool="lb").held()


@pytest.mark.parametrize("wanted", ["lb", "f"])
def test_an_exposure_that_two_pools_hold_is_deleted_from_both(
    run: CloudRun, register: NeutronRegister, neutron: Neutron, tmp_path: Path, wanted: str
) -> None:
    (file,) = files(tmp_path, "f")
    file.register(run).ensure()
    claim_one(file.register(run), "web")
    claim_one(register, "web")
    declared = exposure(pool=wanted)
    placed = resolved(declared, [file, POOL, declared], run.admin)
    pool = resolved(POOL, [file, POOL, declared], run.admin)
    observed = observation.observe(run.fresh(), [placed, pool])
    made = planner.plan_destroy("lab", [placed], observed)
    assert list(pool.check_delete(run, observed[pool.key], observation.going_ids(made))) == []
    executor.execute(made, run.fresh()).raise_for_failures()
    assert (dict(file.register(run).held()), register_of(run)) == ({}, {})


@pytest.mark.parametrize("target", ["g", None])
def test_a_claim_in_a_pool_that_is_no_longer_declared_is_left_by_its_declared_exposure(
    run: CloudRun, register: NeutronRegister, neutron: Neutron, tmp_path: Path, target: str | None
) -> None:
    """The exposure moved when its pool was removed from the spec, or the removal came first."""
    run = CloudRun(run.admin, run.ownership, homes=[None])
    (file,) = files(tmp_path, "g")
    file.register(run).ensure()
    claim_one(register, "web")
    if target:
        claim_one(file.register(run), "web")
    declared = exposure(pool="g")
    placed = resolved(declared, [file, declared], run.admin)
    found = left(run.fresh(), file, placed)
    claims = [(each, observed) for each, observed in found if isinstance(each, LeftClaim)]
    assert [(str(each.key), observed.id, observed.ours) for each, observed in claims] == [
        ("exposure/web (lb)", "lb/10.0.0.100", True)
    ]
    observed = observation.observe(run.fresh(), [placed])
    made = planner.plan_destroy("lab", [placed], observed, claims)
    pool = resolved(POOL, [POOL], run.admin)
    ports = observation.observe(run.fresh(), [pool])[pool.key]
    assert list(pool.check_delete(run, ports, observation.going_ids(made))) == []
    executor.execute(made, run.fresh()).raise_for_failures()
    assert (dict(file.register(run).held()), register_of(run)) == ({}, {})


def test_a_claim_that_a_declared_exposure_holds_is_not_left(
    run: CloudRun, register: NeutronRegister, neutron: Neutron, tmp_path: Path
) -> None:
    run = CloudRun(run.admin, run.ownership, homes=[None])
    (file,) = files(tmp_path, "f")
    file.register(run).ensure()
    claim_one(file.register(run), "web")
    claim_one(register, "web")
    declared = exposure(pool="f")
    placed = resolved(declared, [file, POOL, declared], run.admin)
    assert left(run.fresh(), file, resolved(POOL, [file, POOL, declared], run.admin), placed) == []
