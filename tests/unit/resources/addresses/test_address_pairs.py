from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Observed, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.addresses import port_pairs
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.port_pairs import Pair
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.network.security_group import SecurityGroup
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, failure, resolved, sent
from tests.unit.resources.addresses.test_address_pool import SUBNET
from tests.unit.texts import Wording, contains

NEUTRON = ENDPOINTS["network"] + "/v2.0"
ID = "dev-x7k2p"
VIPS = AddressPairs(name="vips", infra_id=ID, addresses=("10.0.0.5", "10.0.0.7"))


META = {"id": "meta", "network_id": "n1", "device_owner": "network:distributed", "fixed_ips": []}


def port(name: str, *pairs: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    mac = f"fa:16:3e:00:00:{number:02x}"
    return {
        "id": f"p-{name}",
        "name": f"{ID}-{name}",
        "network_id": "n1",
        "mac_address": mac,
        "device_id": f"s-{name}",
        "device_owner": "compute:nova",
        "description": "",
        "security_groups": ["g1"],
        "fixed_ips": [],
        "allowed_address_pairs": [{"ip_address": each, "mac_address": mac} for each in pairs],
        "port_security_enabled": True,
        "tags": [f"openshiftClusterID={ID}"],
        "revision_number": 1,
    } | fields


RECORDS = [f"openstack-prep:lab~{each}" for each in ("10.0.0.5", "10.0.0.7")]


class Neutron:
    """Ports as Neutron keeps them: it fills in MAC addresses and counts revisions."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.ports: list[dict[str, Any]] = []
        self.distributed: list[dict[str, Any]] = []
        self.before_put: list[Any] = []
        self.before_tag: list[Any] = []
        self.before_delete: list[Any] = []
        self.lock = threading.Lock()
        services.get(f"{NEUTRON}/ports", json=self.listed)
        services.get(re.compile(f"{NEUTRON}/ports/.*"), json=lambda request, _: {"port": self.one(request)})
        services.put(re.compile(f"{NEUTRON}/ports/[^/]*$"), json=self.change)
        services.put(re.compile(f"{NEUTRON}/ports/.*/tags/"), text=lambda request, _: self.tag(request))
        services.delete(re.compile(f"{NEUTRON}/ports/.*/tags/"), text=lambda request, _: self.tag(request))

    def listed(self, request: Any, _: Any) -> dict[str, Any]:
        return {"ports": self.distributed if "device_owner" in request.qs else self.ports}

    def one(self, request: Any) -> dict[str, Any]:
        (found,) = [each for each in self.ports if each["id"] == request.path.split("/")[3]]
        return found

    def tag(self, request: Any) -> str:
        """Put a tag, or take it away; it is a change of the port."""
        with self.lock:
            found, tag = self.one(request), unquote(request.url.rpartition("/")[2])
            if request.method == "PUT" and self.before_tag:
                self.before_tag.pop(0)()
            if request.method == "DELETE" and self.before_delete:
                self.before_delete.pop(0)()
            left = [each for each in found["tags"] if each != tag]
            found["tags"] = [*left, tag] if request.method == "PUT" else left
            found["revision_number"] += 1
        return ""

    def change(self, request: Any, context: Any) -> dict[str, Any]:
        with self.lock:
            if self.before_put:
                self.before_put.pop(0)()
            found = self.one(request)
            if request.headers["If-Match"] != f"revision_number={found['revision_number']}":
                context.status_code = 412
                return {"NeutronError": {"message": "no"}}
            pairs = request.json()["port"]["allowed_address_pairs"]
            found["allowed_address_pairs"] = [{"mac_address": found["mac_address"], **each} for each in pairs]
            found["revision_number"] += 1
            return {"port": dict(found)}

    def pairs(self, name: str) -> list[str]:
        return [
            each["ip_address"]
            for found in self.ports
            if found["id"] == f"p-{name}"
            for each in found["allowed_address_pairs"]
        ]


@pytest.fixture
def neutron(services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> Neutron:
    monkeypatch.setattr(port_pairs, "PAUSE", 0.001)
    return Neutron(services)


def plan(run: CloudRun, wanted: AddressPairs = VIPS) -> Plan:
    observed, mistakes = observation.examine(run, [wanted])
    return planner.plan_apply("lab", [wanted], observed, mistakes=mistakes)


def apply(run: CloudRun, wanted: AddressPairs = VIPS) -> None:
    made = plan(run, wanted)
    made.raise_for_refusals()
    executor.execute(made, run).raise_for_failures()
    assert not plan(run.fresh(), wanted)


def refusals(run: CloudRun, wanted: AddressPairs = VIPS) -> list[str]:
    return [str(each) for each in plan(run, wanted).refusals]


def test_every_node_gets_them_and_keeps_those_of_others(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports += [
        port("master-0-0", "10.0.0.5", "10.0.0.7"),
        port("worker-0-abcde", "10.9.9.9", number=1),
        port("bootstrap-0", number=2),
        port("ingress-port", device_owner=""),
        port("api-port", device_owner=""),
        port("master-0-1", network_id="n2"),
        port("master-9", tags=["openshiftClusterID=dev2-q9m4t"]),
    ]
    made = plan(run)
    assert made.table.splitlines()[0] == "  ~ address_pairs/vips  addresses +[10.0.0.5, 10.0.0.7]"
    apply(run.fresh())
    assert neutron.pairs("worker-0-abcde") == ["10.9.9.9", "10.0.0.5", "10.0.0.7"]
    assert neutron.pairs("bootstrap-0") == ["10.0.0.5", "10.0.0.7"]
    changed = {each["name"] for each in neutron.ports if each["revision_number"] > 1}
    assert changed == {f"{ID}-worker-0-abcde", f"{ID}-bootstrap-0"}


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"infra_id": ID, "roles": ("worker",)}, {"worker-0-abcde"}),
        ({"tag": f"openshiftClusterID={ID}", "roles": ("master",)}, {"master-0"}),
        ({"tag": f"openshiftClusterID={ID}"}, {"master-0", "worker-0-abcde"}),
        ({"ports": (f"{ID}-other",)}, {"other"}),
    ],
)
def test_which_ports(run: CloudRun, neutron: Neutron, wanted: dict[str, Any], names: set[str]) -> None:
    neutron.ports += [port("master-0"), port("worker-0-abcde"), port("other", tags=[])]
    apply(run, AddressPairs(name="some", addresses=("10.0.0.5",), **wanted))
    assert {each["id"][2:] for each in neutron.ports if each["allowed_address_pairs"]} == names


@pytest.mark.parametrize(("listed", "chosen"), [(("n1", "n3", "n2"), "n2"), (("n1", "n3"), "n3"), (("n1",), "n1")])
def test_a_network_limits_the_ports_to_its_own(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker, listed: tuple[str, ...], chosen: str
) -> None:
    """An administrator sees the networks of all projects: that of the project comes first, then a shared one."""
    rows = {"n1": {"project_id": "p9"}, "n3": {"project_id": "p9", "shared": True}, "n2": {"project_id": ADMIN_PROJECT}}
    networks = [{"id": each, **rows[each]} for each in listed]
    services.get(f"{NEUTRON}/networks?name=far", json={"networks": networks})
    neutron.ports += [port(f"master-{n}", number=n, network_id=f"n{n}") for n in (1, 2, 3)]
    apply(run, AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.5",), network="far"))
    assert [each["network_id"] for each in neutron.ports if each["allowed_address_pairs"]] == [chosen]


def test_a_port_that_is_no_longer_selected_when_it_is_written_is_left_alone(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports.append(port("master-0"))

    def renamed() -> None:
        neutron.ports[0] |= {"name": "other", "tags": [], "revision_number": 7}

    neutron.before_put.append(renamed)
    executor.execute(plan(run), run).raise_for_failures()
    assert neutron.pairs("master-0") == []


@pytest.mark.parametrize(("status", "attempts"), [(400, 1), (403, 1), (412, port_pairs.ATTEMPTS)])
def test_only_a_change_by_others_is_met_by_another_attempt(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker, status: int, attempts: int
) -> None:
    neutron.ports.append(port("master-0", tags=[f"openshiftClusterID={ID}", *RECORDS]))
    (share,) = VIPS.shares(run)
    services.put(re.compile(f"{NEUTRON}/ports/[^/]*$"), **failure(status))
    with pytest.raises(CloudError):
        port_pairs.update_pairs(run.admin.network, run.ownership, share, lambda _: share)
    puts = [each for each in services.request_history if each.method == "PUT" and "/tags/" not in each.path]
    assert len(puts) == attempts


def test_forms_of_one_address_are_one(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports.append(port("master-0", "10.0.0.5/32", "2001:DB8:0::5", "10.128.0.0/14"))
    assert not plan(
        run, AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.5", "2001:db8::5/128", "10.128.0.0/14"))
    )


def test_a_given_mac_is_another_pair(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports.append(port("master-0", "10.0.0.5"))
    apply(run, AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.5",), mac_address="00:00:5e:00:01:01"))
    assert [each["mac_address"] for each in neutron.ports[0]["allowed_address_pairs"]] == [
        "fa:16:3e:00:00:00",
        "00:00:5e:00:01:01",
    ]


def macs(neutron: Neutron) -> list[tuple[str, str]]:
    """Return the pairs of the first port, with their MAC addresses."""
    return [(each["ip_address"], each["mac_address"]) for each in neutron.ports[0]["allowed_address_pairs"]]


def test_another_mac_replaces_the_pair_and_destroy_removes_it(run: CloudRun, neutron: Neutron) -> None:
    """A record without the MAC address kept the former pair, and destroy left it."""
    foreign = ("10.0.0.5", "fa:16:3e:99:99:99")
    neutron.ports.append(port("master-0", "10.0.0.5"))
    neutron.ports[0]["allowed_address_pairs"] = [dict(zip(("ip_address", "mac_address"), foreign, strict=True))]
    before = AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.5",), mac_address="00:00:5e:00:01:01")
    apply(run, before)
    after = replace(before, mac_address="00:00:5E:00:01:02")
    assert "elsewhere" in plan(run.fresh(), after).table
    apply(run.fresh(), after)
    assert macs(neutron) == [foreign, ("10.0.0.5", "00:00:5e:00:01:02")]
    ((left, observed),) = AddressPairs.scan(run.fresh(), None)
    assert (left.addresses, left.mac_address) == (("10.0.0.5",), "00:00:5e:00:01:02")
    left.delete(run.fresh(), observed)
    assert macs(neutron) == [foreign]
    assert neutron.ports[0]["tags"] == [f"openshiftClusterID={ID}"]


def test_a_record_of_a_former_release_gets_the_mac(run: CloudRun, neutron: Neutron) -> None:
    """It named the address alone; the pair with the given MAC address is there."""
    pair = {"ip_address": "10.0.0.5", "mac_address": "00:00:5e:00:01:01"}
    neutron.ports.append(port("master-0", allowed_address_pairs=[pair]))
    neutron.ports[0]["tags"].append("openstack-prep:lab~10.0.0.5")
    apply(run, AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.5",), mac_address="00:00:5e:00:01:01"))
    assert macs(neutron) == [("10.0.0.5", "00:00:5e:00:01:01")]
    assert neutron.ports[0]["tags"][1:] == ["openstack-prep:lab~10.0.0.5~00:00:5e:00:01:01"]


def test_destroy_takes_what_we_put_there_and_leaves_what_was_there_before(
    run: CloudRun, neutron: Neutron, wording: Wording
) -> None:
    neutron.ports += [port("master-0", "10.0.0.5", "10.9.9.9"), port("master-1", "10.0.0.5", "10.0.0.7", number=1)]
    apply(run)
    assert neutron.ports[0]["tags"] == [f"openshiftClusterID={ID}", "openstack-prep:lab~10.0.0.7"]
    assert neutron.ports[1]["tags"] == [f"openshiftClusterID={ID}"]
    destroy(run.fresh())
    assert neutron.pairs("master-0") == ["10.0.0.5", "10.9.9.9"]
    assert neutron.pairs("master-1") == ["10.0.0.5", "10.0.0.7"]
    assert neutron.ports[0]["tags"] == [f"openshiftClusterID={ID}"]
    (step,) = planner.plan_destroy("lab", [VIPS], observation.observe(run.fresh(), [VIPS]))
    assert step.action == Action.KEEP
    wording(step.reason)


def test_destroy_leaves_a_pair_that_differs_in_its_form_alone(run: CloudRun, neutron: Neutron) -> None:
    """Neutron takes both, so somebody else can have added one beside ours."""
    neutron.ports.append(port("master-0"))
    apply(run)
    mac = neutron.ports[0]["mac_address"]
    neutron.ports[0]["allowed_address_pairs"].append({"ip_address": "10.0.0.5/32", "mac_address": mac})
    destroy(run.fresh())
    assert neutron.pairs("master-0") == ["10.0.0.5/32"]


def test_destroy_of_a_port_that_is_gone_is_well(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    neutron.ports.append(port("master-0", "10.0.0.5", tags=[f"openshiftClusterID={ID}", "openstack-prep:lab~10.0.0.5"]))
    made = planner.plan_destroy("lab", [VIPS], observation.observe(run, [VIPS]))
    services.put(re.compile(f"{NEUTRON}/ports/.*"), **failure(404))
    executor.execute(made, run).raise_for_failures()


def destroy(run: CloudRun, wanted: AddressPairs = VIPS) -> None:
    executor.execute(
        planner.plan_destroy("lab", [wanted], observation.observe(run, [wanted])), run
    ).raise_for_failures()


def test_what_is_no_longer_declared_goes_by_its_record(run: CloudRun, neutron: Neutron) -> None:
    """From ports that are no longer meant, too; networks are recorded without a slash; others' stay."""
    neutron.ports += [port("master-0", "10.9.9.9"), port("worker-0-abcde", number=1)]
    apply(run, AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.5", "10.8.0.0/16")))
    assert neutron.ports[1]["tags"][1:] == ["openstack-prep:lab~10.0.0.5", "openstack-prep:lab~10.8.0.0_16"]
    fewer = AddressPairs(name="x", infra_id=ID, roles=("master",), addresses=("10.0.0.6", "10.8.0.0/16"))
    assert "addresses +[10.0.0.6] -[10.0.0.5]" in plan(run.fresh(), fewer).table
    apply(run.fresh(), fewer)
    assert neutron.pairs("master-0") == ["10.9.9.9", "10.8.0.0/16", "10.0.0.6"]
    assert neutron.pairs("worker-0-abcde") == []
    assert neutron.ports[1]["tags"] == [f"openshiftClusterID={ID}"]
    apply(run.fresh(), AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.7",), prune=False))
    assert neutron.pairs("master-0") == ["10.9.9.9", "10.8.0.0/16", "10.0.0.6", "10.0.0.7"]
    none = AddressPairs(name="x", infra_id=ID, addresses=())
    apply(run.fresh(), none)
    assert neutron.pairs("master-0") == ["10.9.9.9"]


def test_pairs_of_one_spec_leave_each_others_records_alone(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports += [port("master-0"), port("worker-0-abcde", number=1)]
    declared = [
        AddressPairs(name="all", infra_id=ID, addresses=("10.0.0.5",)),
        AddressPairs(name="masters", infra_id=ID, roles=("master",), addresses=("10.0.0.6",)),
    ]
    for wanted in (declared, declared[:1]):
        now, together = run.fresh(), [each.resolve_with(wanted) for each in wanted]
        executor.execute(
            planner.plan_apply("lab", together, observation.observe(now, together)), now
        ).raise_for_failures()
        assert not planner.plan_apply("lab", together, observation.observe(run.fresh(), together))
        assert neutron.pairs("worker-0-abcde") == ["10.0.0.5"]
        assert sorted(neutron.pairs("master-0")) == ["10.0.0.5", "10.0.0.6"][: len(wanted)]


@pytest.mark.parametrize(
    ("recorded", "maintainer"),
    [
        (("10.0.2.208/29",), "second"),
        (("10.0.2.209",), "second"),  # of a sync by Services
        (("10.0.2.0/24",), "second"),  # of an earlier, wider range
        (("10.0.1.208/29",), "first"),
        (("10.9.0.1",), "first"),  # declared by no address pairs
    ],
)
@pytest.mark.parametrize("selected", [False, True])
def test_address_pairs_that_declare_a_pair_maintain_its_record(
    run: CloudRun, neutron: Neutron, recorded: tuple[str, ...], maintainer: str, selected: bool
) -> None:
    """A port between two servers of a stack is not selected by the stack; other address pairs keep its pairs."""
    records = [f"openstack-prep:lab~{each.replace('/', '_')}" for each in recorded]
    neutron.ports.append(port("x", *recorded, tags=["one", *records] if selected else records))
    declared = [
        AddressPairs(name="first", tag="one", addresses=("10.0.1.208/29",)),
        AddressPairs(name="second", tag="two", addresses=("10.0.2.208/29",)),
    ]
    expected = frozenset(map(Pair, recorded)) - frozenset(map(Pair, declared[0].given if selected else ()))
    stale = {
        each.name: frozenset().union(*(share.stale for share in each.resolve_with(declared).shares(run.fresh())))
        for each in declared
    }
    assert stale == {"first": frozenset(), "second": frozenset(), maintainer: expected}


def test_a_run_killed_between_record_and_pair_is_gone_on_with(run: CloudRun, neutron: Neutron) -> None:
    """The tag comes first and goes last; one without its pair is put right either way."""
    tags = [f"openshiftClusterID={ID}", "openstack-prep:lab~10.0.0.5", "openstack-prep:lab~10.0.0.9"]
    neutron.ports.append(port("master-0", tags=tags))
    apply(run)
    assert neutron.pairs("master-0") == ["10.0.0.5", "10.0.0.7"]
    assert sorted(neutron.ports[0]["tags"]) == [
        f"openshiftClusterID={ID}",
        "openstack-prep:lab~10.0.0.5",
        "openstack-prep:lab~10.0.0.7",
    ]


def test_ranges_become_the_fewest_networks(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports.append(port("master-0"))
    apply(run, AddressPairs(name="x", infra_id=ID, addresses=("10.0.0.200-10.0.0.219", "10.0.0.5", "10.0.0.4")))
    assert set(neutron.pairs("master-0")) == {
        "10.0.0.200/29",
        "10.0.0.208/29",
        "10.0.0.216/30",
        "10.0.0.4",
        "10.0.0.5",
    }


def test_what_another_writer_puts_in_between_stays(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports.append(port("master-0"))

    def write() -> None:
        neutron.ports[0]["allowed_address_pairs"].append({"ip_address": "10.9.9.9", "mac_address": "fa:16:3e:00:00:00"})
        neutron.ports[0]["revision_number"] += 1

    neutron.before_put = [write]
    apply(run)
    assert neutron.pairs("master-0") == ["10.9.9.9", "10.0.0.5", "10.0.0.7"]


OF_LAB = [f"openshiftClusterID={ID}", "openstack-prep:lab~10.0.0.5"]


def test_a_port_that_another_tool_gives_back_keeps_its_pairs(run: CloudRun, neutron: Neutron) -> None:
    """As while Heat replaces a server: it was not selected when the plan was made."""
    pairs = AddressPairs(name="vips", infra_id=ID, addresses=("10.0.0.5", "10.0.0.7"))
    neutron.ports.append(port("master-0", "10.0.0.5", tags=OF_LAB[1:]))
    neutron.ports.append(port("master-1"))
    made = plan(run, pairs)

    def write() -> None:
        neutron.ports[0] |= {"tags": OF_LAB, "revision_number": 7}

    neutron.before_put = [write]
    executor.execute(made, run).raise_for_failures()
    assert neutron.pairs("master-0") == ["10.0.0.5", "10.0.0.7"]
    assert not plan(run.fresh(), pairs)


def test_a_port_that_another_tool_takes_away_loses_nothing_that_the_plan_did_not_show(
    run: CloudRun, neutron: Neutron
) -> None:
    neutron.ports.append(port("master-0", "10.0.0.5", tags=OF_LAB))
    made = plan(run)

    def write() -> None:
        neutron.ports[0] |= {"tags": OF_LAB[1:], "revision_number": 7}

    neutron.before_tag = [write]
    executor.execute(made, run).raise_for_failures()
    assert neutron.pairs("master-0") == ["10.0.0.5"]
    assert neutron.ports[0]["tags"] == OF_LAB[1:]
    assert "10.0.0.5" in plan(run.fresh()).table


def test_a_port_that_another_tool_deselects_gets_no_pairs(run: CloudRun, neutron: Neutron) -> None:
    neutron.ports += [port("master-0"), port("master-1", number=1)]
    neutron.before_tag = [lambda: neutron.ports[0].update(revision_number=7, tags=[])]
    apply(run)
    assert neutron.pairs("master-0") == []
    assert neutron.ports[0]["tags"] == []
    assert neutron.pairs("master-1") == ["10.0.0.5", "10.0.0.7"]


def test_a_pair_of_two_specs_stays_until_neither_declares_it(run: CloudRun, neutron: Neutron) -> None:
    """Each spec has a record of its own, also of a pair that the port has already."""
    neutron.ports.append(port("master-0"))
    apply(run)
    other = CloudRun(run.admin, OwnershipTag("other"))
    assert "1 to create" in plan(other).table
    apply(other)
    assert neutron.pairs("master-0") == ["10.0.0.5", "10.0.0.7"]

    fewer = AddressPairs(name="vips", infra_id=ID, addresses=("10.0.0.7",))
    apply(run.fresh(), fewer)
    assert neutron.pairs("master-0") == ["10.0.0.5", "10.0.0.7"]
    left = [f"openstack-prep:{each}" for each in ("lab~10.0.0.7", "other~10.0.0.5", "other~10.0.0.7")]
    assert sorted(neutron.ports[0]["tags"][1:]) == left
    apply(other.fresh(), fewer)
    assert neutron.pairs("master-0") == ["10.0.0.7"]
    assert sorted(neutron.ports[0]["tags"][1:]) == [left[0], left[2]]


def test_a_pair_that_the_other_spec_removes_meanwhile_is_added_again(run: CloudRun, neutron: Neutron) -> None:
    record = "openstack-prep:other~10.0.0.5"
    neutron.ports.append(port("master-0", "10.0.0.5", "10.0.0.7", tags=[*OF_LAB[:1], record]))

    def write() -> None:
        neutron.ports[0] |= {"allowed_address_pairs": [], "tags": OF_LAB[:1], "revision_number": 7}

    neutron.before_tag = [write]
    apply(run)
    assert neutron.pairs("master-0") == ["10.0.0.5", "10.0.0.7"]


def test_a_pair_that_a_run_of_another_mind_puts_back_keeps_its_record(run: CloudRun, neutron: Neutron) -> None:
    """It saw the record still there, and relied on it; without one the pair would stay for ever."""
    neutron.ports.append(port("master-0"))
    apply(run)

    def write() -> None:
        back = {"ip_address": "10.0.0.5", "mac_address": "fa:16:3e:00:00:00"}
        neutron.ports[0]["allowed_address_pairs"].append(back)
        neutron.ports[0]["revision_number"] += 1

    neutron.before_delete = [write]
    now, fewer = run.fresh(), AddressPairs(name="vips", infra_id=ID, addresses=("10.0.0.7",))
    executor.execute(planner.plan_apply("lab", [fewer], observation.observe(now, [fewer])), now).raise_for_failures()
    assert neutron.pairs("master-0") == ["10.0.0.7", "10.0.0.5"]
    apply(run.fresh(), fewer)
    assert neutron.pairs("master-0") == ["10.0.0.7"]
    assert neutron.ports[0]["tags"] == [f"openshiftClusterID={ID}", "openstack-prep:lab~10.0.0.7"]


def test_one_failure_does_not_stop_the_others(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker, wording: Wording
) -> None:
    neutron.ports += [port(f"master-{number}") for number in range(3)]
    services.put(f"{NEUTRON}/ports/p-master-1", **failure(400, "allowed_address_pair exceeds the maximum 10"))
    report = executor.execute(plan(run), run)
    said = str(report.failed[0].error)
    assert "exceeds the maximum 10" in said
    wording(said)
    assert [len(neutron.pairs(f"master-{number}")) for number in range(3)] == [2, 0, 2]


def test_the_port_that_will_have_most_pairs_is_first_and_alone(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    """If Neutron refuses so many, no other port has been changed."""
    theirs = [f"10.0.1.{number}" for number in range(9)]
    neutron.ports += [port("master-0"), port("master-1", *theirs), port("master-2", *theirs[:4])]
    services.put(f"{NEUTRON}/ports/p-master-1", **failure(400, "allowed_address_pair exceeds the maximum 10"))
    (failed,) = executor.execute(plan(run), run).failed
    assert "exceeds the maximum 10" in str(failed.error)
    assert [len(neutron.pairs(f"master-{number}")) for number in range(3)] == [0, 9, 4]


def test_500_ports_with_nothing_to_do_are_one_request(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    neutron.ports += [port(f"worker-{number}", "10.0.0.5", "10.0.0.7") for number in range(500)]
    (step,) = plan(run)
    assert step.action is Action.KEEP
    assert step.observed is not None
    assert step.observed.id == "500 ports"
    assert [each.partition("?")[0] for each in sent(services)] == ["GET /v2.0/ports"]


# --- refusals -----------------------------------------------------------------------------


def test_port_security_off(run: CloudRun, neutron: Neutron) -> None:
    """Nothing is filtered there, so the aim is reached without a pair, which Neutron would refuse."""
    neutron.ports += [port("master-0", port_security_enabled=False), port("master-1")]
    (step,) = plan(run)
    assert step.action is Action.CREATE
    neutron.ports[1] = port("master-1", "10.0.0.5", "10.0.0.7")
    (step,) = plan(run.fresh())
    assert step.action is Action.KEEP
    assert step.observed is not None
    assert contains(step.observed.id, "1 port", "no pair", f"{ID}-master-0")
    neutron.ports.pop()
    (step,) = plan(run.fresh())
    assert step.action is Action.KEEP


def test_an_address_of_a_distributed_port(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    neutron.ports.append(port("master-0"))
    neutron.distributed.append({**META, "fixed_ips": [{"ip_address": "10.0.0.7"}]})
    wording(refusals(run))


@pytest.mark.parametrize(
    ("reserve", "addresses", "known"),
    [
        ("ports", "10.0.0.200/30", True),
        ("ports", "10.0.0.200", False),  # a pair with exactly the address
        ("outside", "10.0.0.200/30", False),
    ],
)
def test_with_ovn_a_network_does_not_allow_what_ports_reserve(
    run: CloudRun, neutron: Neutron, services: requests_mock.Mocker, reserve: str, addresses: str, known: bool
) -> None:
    services.get(f"{NEUTRON}/subnets", json={"subnets": [SUBNET]})
    neutron.ports.append(port("master-0"))
    pool = AddressPool(name="lb", subnet="nodes", addresses=(addresses,), reserve=reserve)  # type: ignore[arg-type]
    wanted = replace(VIPS, addresses=None, pools=("lb",)).resolve_with([pool])
    mark = "address_pairs/vips: pool lb reserves its addresses with ports, and would be allowed as networks "
    for of_ovn in (False, True):
        neutron.distributed += [META] * of_ovn
        found = [each for each in refusals(run.fresh(), wanted) if each.startswith(mark)]
        assert len(found) == (known and of_ovn)
    if known:
        with pytest.raises(PlanRefused):  # at the moment of writing, too
            wanted.create(run.fresh())
        assert neutron.pairs("master-0") == []


def test_no_such_ports(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    neutron.ports.append(port("api-port"))
    wording(refusals(run)[0])
    by_name = AddressPairs(name="x", ports=(f"{ID}-api-port", "b", "a"), addresses=("10.0.0.5",))
    wording([each.partition(";")[0] for each in refusals(run.fresh(), by_name)])


def test_which_ports_must_be_said_once(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    for wrong in ({}, {"tag": "a", "infra_id": ID}):
        (said,) = refusals(run, AddressPairs(name="x", addresses=("10.0.0.5",), **wrong))
        wording(said)


@pytest.mark.parametrize("groups", [[], [{"id": "g2", "name": "other"}]])
def test_a_group_to_come_in_a_named_project_is_expected(
    groups: list[dict[str, str]], run: CloudRun, neutron: Neutron, services: requests_mock.Mocker
) -> None:
    services.get(f"{NEUTRON}/security-groups", json={"security_groups": groups})
    lab = Project(name="lab")
    run.known[lab.key] = Observed(id=ADMIN_PROJECT)
    group = SecurityGroup(name="nodes", project="lab")
    pairs = AddressPairs(name="vips", security_group="nodes", addresses=("10.0.0.5",), project="lab")
    assert list(resolved(pairs, [group, pairs], run.admin).check(run, None)) == []
    (refused,) = resolved(pairs, [pairs], run.admin).check(run, None)
    assert refused.code == "spec.unresolved-reference"
    assert contains(refused.what, "nodes")


# --- multicast ------------------------------------------------------------------------------


@pytest.fixture
def rejecting(services: requests_mock.Mocker, neutron: Neutron) -> Neutron:
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "aap-reject-multicast"}]})
    return neutron


def multicast_refusals(run: CloudRun, wanted: AddressPairs = VIPS) -> list[tuple[str, str]]:
    return [(each.what, each.fix) for each in plan(run, wanted).refusals if each.code == Code.ADDRESS_MULTICAST]


def test_a_network_around_multicast_is_refused_where_neutron_refuses_it(run: CloudRun, rejecting: Neutron) -> None:
    rejecting.ports.append(port("master-0"))
    wide = AddressPairs(name="x", infra_id=ID, addresses=("::/0", "0.0.0.0/0", "10.0.0.5"))
    ((what, fix),) = multicast_refusals(run, wide)
    assert "::/0" in what
    assert "fe00::/8" in fix
    rejecting.ports.clear()
    assert len(multicast_refusals(run.fresh(), wide)) == 1, "also before there are ports"


def test_former_neutron_takes_it(run: CloudRun, neutron: Neutron, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "allowed-address-pairs"}]})
    neutron.ports.append(port("master-0", "224.0.0.18"))
    apply(run, AddressPairs(name="x", infra_id=ID, addresses=("::/0",)))
    assert neutron.pairs("master-0") == ["224.0.0.18", "::/0"]


def test_what_all_ports_have_since_before_the_update_is_left_alone(run: CloudRun, rejecting: Neutron) -> None:
    rejecting.ports.append(port("master-0", "::/0", "224.0.0.18"))
    assert not plan(run, AddressPairs(name="x", infra_id=ID, addresses=("::/0",)))


def test_pairs_of_others_that_block_a_port_are_named(run: CloudRun, rejecting: Neutron, wording: Wording) -> None:
    tags = [f"openshiftClusterID={ID}", "openstack-prep:shop~ff02::12"]
    rejecting.ports += [port("master-0", "224.0.0.18", "10.9.9.9", "ff02::12", tags=tags), port("master-1", number=1)]
    ((what, fix),) = multicast_refusals(run)
    mac = "fa:16:3e:00:00:00"
    assert contains(what, f"224.0.0.18 {mac}", "without openstack-prep", f"ff02::12 {mac}", "spec shop")
    assert "p-master-0" in what
    wording(fix)


def test_a_blocked_port_does_not_stop_the_others(run: CloudRun, rejecting: Neutron) -> None:
    rejecting.ports += [port("master-0", "224.0.0.18"), port("master-1", number=1)]
    made = planner.plan_apply("lab", [VIPS], observation.observe(run, [VIPS]))
    (result,) = executor.execute(made, run).results
    assert isinstance(result.error, PlanRefused)
    assert (rejecting.pairs("master-0"), rejecting.pairs("master-1")) == (["224.0.0.18"], ["10.0.0.5", "10.0.0.7"])


def test_destroy_names_them_before_anything_is_deleted(run: CloudRun, rejecting: Neutron) -> None:
    tags = [f"openshiftClusterID={ID}", "openstack-prep:lab~10.0.0.5"]
    rejecting.ports += [port("master-0", "10.0.0.5", "224.0.0.18", tags=tags)]
    (refusal,) = VIPS.check_delete(run, observation.observe(run, [VIPS])[VIPS.key], frozenset())
    assert refusal.code == Code.ADDRESS_MULTICAST
    rejecting.ports[0]["allowed_address_pairs"].pop()
    assert not list(VIPS.check_delete(run.fresh(), observation.observe(run.fresh(), [VIPS])[VIPS.key], frozenset()))
