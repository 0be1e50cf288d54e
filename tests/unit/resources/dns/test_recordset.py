"""What Designate is asked, and what it rarely answers; everything else runs on a real one (tests/designate)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, NotAllowed, NotFound, PlanRefused, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Observed, OwnershipTag
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.dns import recordsets
from openstack_prep.resources.dns.recordset import Recordset, RecordsetNeighbours
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec.resolution import refuse_mistakes
from openstack_prep.spec.spec import load_spec
from tests.unit import conftest
from tests.unit.conftest import ADMIN_PROJECT, connection, sent
from tests.unit.texts import Wording, contains

URL = "http://designate/v2"
RECORDSETS = f"{URL}/zones/z1/recordsets"
OURS = "[openstack-prep:lab/f2e8d2ce]"
WWW = Recordset(name="www.example.com", zone="example.com", type="A", records=("192.0.2.1",))


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> requests_mock.Mocker:
    monkeypatch.setitem(conftest.ENDPOINTS, "dns", "http://designate")
    monkeypatch.setattr(recordsets, "PAUSE", 0.001)
    found: requests_mock.Mocker = request.getfixturevalue("services")
    link = {"id": "v2", "status": "CURRENT", "links": [{"rel": "self", "href": URL}]}
    found.get("http://designate/", json={"versions": {"values": [link]}})
    return found


class Designate:
    """One zone, and the statuses that its recordset gets one after the other."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.listed: list[dict[str, Any]] = []
        self.statuses = ["ACTIVE"]
        self.zone = {"id": "z1", "name": "example.com.", "project_id": ADMIN_PROJECT, "type": "PRIMARY"}
        services.get(f"{URL}/zones", json=lambda *_: {"zones": [self.zone], "links": {}})
        services.get(RECORDSETS, json=lambda *_: {"recordsets": self.listed, "links": {}})
        services.get(f"{RECORDSETS}/r1", json=self.look)
        self.made = services.post(RECORDSETS, json=self.look, status_code=202)
        self.changed = services.put(f"{RECORDSETS}/r1", json=self.look, status_code=202)

    def look(self, *_: Any) -> dict[str, Any]:
        return self.recordset(status=self.statuses.pop(0))

    def recordset(self, **fields: Any) -> dict[str, Any]:
        return {
            "id": "r1",
            "zone_id": "z1",
            "zone_name": "example.com.",
            "project_id": ADMIN_PROJECT,
            "name": "www.example.com.",
            "type": "A",
            "records": ["192.0.2.1"],
            "ttl": None,
            "description": OURS,
            "status": "ACTIVE",
        } | fields


@pytest.fixture
def designate(services: requests_mock.Mocker) -> Designate:
    return Designate(services)


def plan(run: CloudRun, *wanted: Recordset) -> Plan:
    observed, mistakes = observation.examine(run, wanted)
    run.known.update(observed)
    return planner.plan_apply("lab", wanted, observed, mistakes=mistakes)


def apply(run: CloudRun, *wanted: Recordset) -> Report:
    made = plan(run, *wanted)
    made.raise_for_refusals()
    return executor.execute(made, run)


def failure(report: Report) -> str:
    return str(report.results[-1].error)


def test_requests_of_a_creation(run: CloudRun, services: requests_mock.Mocker, designate: Designate) -> None:
    designate.statuses = ["PENDING", "PENDING", "ACTIVE"]
    apply(run, WWW).raise_for_failures()
    assert sent(services)[1:] == [
        "GET /v2/zones?limit=max",
        "GET /v2/zones/z1/recordsets?limit=max",
        "POST /v2/zones/z1/recordsets",
        "GET /v2/zones/z1/recordsets/r1",
        "GET /v2/zones/z1/recordsets/r1",
    ]
    wanted = {"name": "www.example.com.", "type": "A", "records": ["192.0.2.1"], "description": OURS}
    assert designate.made.last_request.json() == wanted


def test_further_pages(run: CloudRun, services: requests_mock.Mocker, designate: Designate) -> None:
    """A zone of more recordsets than a page; the link's host is one that only the service knows."""
    pages = [
        {"recordsets": [], "links": {"next": "http://inside/v2/zones/z1/recordsets?limit=max&marker=m"}},
        {"recordsets": [designate.recordset()], "links": {}},
    ]
    services.get(RECORDSETS, [{"json": each} for each in pages])
    assert not plan(run, WWW)


def test_pending_of_an_interrupted_run_is_awaited(run: CloudRun, designate: Designate) -> None:
    designate.listed, designate.statuses = [designate.recordset(status="PENDING")], ["PENDING", "ACTIVE"]
    apply(run, WWW).raise_for_failures()
    assert not designate.changed.called


def test_an_update_sends_what_differs(run: CloudRun, designate: Designate) -> None:
    designate.listed, designate.statuses = [designate.recordset()], ["PENDING", "ACTIVE"] * 2
    apply(run, replace(WWW, ttl=60)).raise_for_failures()
    assert designate.changed.last_request.json() == {"ttl": 60}
    apply(run.fresh(), replace(WWW, description="web")).raise_for_failures()
    assert designate.changed.last_request.json() == {"description": f"web {OURS}"}


@pytest.mark.parametrize(
    ("recordset", "zone", "adopt", "tag", "refused"),
    [
        ("theirs", "theirs", True, "", True),
        ("theirs", ADMIN_PROJECT, True, "", False),
        (ADMIN_PROJECT, "theirs", True, "", False),
        ("theirs", "theirs", False, "", False),  # it is only looked at
        ("theirs", "theirs", True, OURS, False),
    ],
)
def test_only_two_projects_may_change_a_recordset(
    run: CloudRun, designate: Designate, recordset: str, zone: str, adopt: bool, tag: str, refused: bool
) -> None:
    designate.zone["project_id"] = zone
    designate.listed = [designate.recordset(project_id=recordset, description=tag)]
    found = plan(run, replace(WWW, adopt=adopt)).refusals
    assert [each.field for each in found] == ["adopt"] * refused


def test_an_error_is_reported_and_sent_again_by_the_next_run(run: CloudRun, designate: Designate) -> None:
    designate.statuses = ["PENDING", "ERROR"]
    assert "Designate reports ERROR" in failure(apply(run, WWW))
    designate.listed, designate.statuses = [designate.recordset(status="ERROR")], ["PENDING", "ACTIVE"]
    apply(run.fresh(), WWW).raise_for_failures()
    assert designate.changed.last_request.json() == {"records": ["192.0.2.1"], "description": OURS}


def test_name_servers_that_never_get_it(
    run: CloudRun, designate: Designate, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr(recordsets, "DEADLINE", 0.0)
    designate.statuses = ["PENDING", "PENDING"]
    wording(failure(apply(run, WWW)))


def test_the_state_of_others_is_their_own(run: CloudRun, designate: Designate) -> None:
    designate.listed = [designate.recordset(status="ERROR", description="by hand")]
    assert not plan(run, WWW)


def test_a_project_that_the_administrator_may_not_act_for(services: requests_mock.Mocker, designate: Designate) -> None:
    project = {"id": "p1", "name": "p", "domain_id": "default", "enabled": True, "tags": [], "description": ""}
    services.get(f"{conftest.IDENTITY}/projects", json={"projects": [project]})
    services.get(f"{URL}/zones", status_code=403, json={"message": "policy does not allow use_sudo"})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=(Project(name="p"),))
    with pytest.raises(NotAllowed, match="403"):
        plan(run, replace(WWW, project="p"))
    assert services.request_history[-1].headers["X-Auth-Sudo-Project-ID"] == "p1"


def test_a_cloud_without_designate(run: CloudRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cloud, "has", lambda self, service_type: False)
    assert list(Recordset.scan(run, None)) == []
    with pytest.raises(ConfigError, match="has no DNS service"):
        plan(run, WWW)


def test_no_room_for_the_ownership_tag(run: CloudRun, designate: Designate) -> None:
    """The digest of the records is left out first."""
    fits = 160 - len(" [openstack-prep:lab/]")
    assert not plan(run, replace(WWW, description="x" * fits)).refusals
    (refusal,) = plan(run, replace(WWW, description="x" * (fits + 1))).refusals
    assert "161 characters" in refusal.what


def test_a_secondary_zone(run: CloudRun, designate: Designate) -> None:
    designate.zone["type"] = "SECONDARY"
    (refusal,) = plan(run, WWW).refusals
    assert "secondary" in refusal.what


def test_the_address_of_a_floating_ip_may_be_declared_as_well(run: CloudRun, designate: Designate) -> None:
    web, other = (FloatingIP(name=each, external_network="e") for each in ("web", "other"))
    for each, address in ((web, "192.0.2.1"), (other, "192.0.2.2")):
        run.known[each.key] = Observed(id=each.name, outputs={"address": address})
    wanted = replace(WWW, floating_ips=("web", "other"), neighbours=RecordsetNeighbours((web, other)))
    designate.listed = [designate.recordset(records=["192.0.2.2", "192.0.2.1"])]
    assert not plan(run, wanted)
    designate.listed = [designate.recordset(records=["192.0.2.1", "192.0.2.3"])]
    (step,) = plan(run.fresh(), wanted).pending
    (change,) = step.changes
    assert change.before == {"192.0.2.1", "address of floating_ip/web", "192.0.2.3"}


def test_addresses_of_the_spec_are_written_and_awaited(run: CloudRun, designate: Designate) -> None:
    web = FloatingIP(name="web", external_network="e")
    wanted = replace(WWW, floating_ips=("web",), neighbours=RecordsetNeighbours((web,)))
    run.known[web.key] = Observed(id="f1", outputs={"address": "192.0.2.9"})
    apply(run, wanted).raise_for_failures()
    assert designate.made.last_request.json()["records"] == ["192.0.2.1", "192.0.2.9"]
    run.known[web.key] = Observed(id="f1")
    with pytest.raises(NotFound):
        wanted.create(run)
    assert designate.made.call_count == 1


@pytest.mark.parametrize(
    ("listed", "wanted", "refused"),
    [
        ({"type": "AAAA", "records": ["2001:db8::1"]}, WWW, False),
        ({"type": "CNAME", "records": ["a.example.com."]}, WWW, True),
        ({"name": "web.example.com.", "type": "CNAME", "records": ["a.example.com."]}, WWW, False),
        ({}, replace(WWW, type="CNAME", records=("a.example.com",)), True),
    ],
)
def test_a_cname_stands_alone(
    run: CloudRun, designate: Designate, listed: dict[str, Any], wanted: Recordset, refused: bool
) -> None:
    designate.listed = [designate.recordset(**{"description": "theirs", **listed})]
    found = plan(run, wanted).refusals
    assert [each.code for each in found] == [Code.SPEC_CONTRADICTION] * refused
    assert all(designate.listed[0]["type"] in each.what and "openstack" not in each.fix for each in found)
    designate.listed = [designate.recordset(**{"description": f"web {OURS}", **listed})]
    command = "openstack recordset delete example.com. r1"
    assert all(each.fix.endswith(command) for each in plan(run.fresh(), wanted).refusals)


def test_an_inner_zone_has_the_name(run: CloudRun, designate: Designate, services: requests_mock.Mocker) -> None:
    inner = designate.zone | {"id": "z2", "name": "www.example.com."}
    services.get(f"{URL}/zones", json={"zones": [designate.zone, inner], "links": {}})
    (refusal,) = plan(run, WWW).refusals
    assert (refusal.field, refusal.fix) == ("zone", "set zone: www.example.com")


def test_a_scan_yields_what_a_spec_would_declare(
    run: CloudRun, designate: Designate, services: requests_mock.Mocker
) -> None:
    own = designate.recordset(ttl=60, description=f"web {OURS}", records=["192.0.2.2", "192.0.2.1"])
    soa = designate.recordset(id="r2", name="example.com.", type="SOA")
    servers = designate.recordset(id="r3", name="example.com.", type="NS", records=["ns1.example.com."])
    delegated = designate.recordset(id="r4", name="sub.example.com.", type="NS", records=["ns2.example.com."])
    elsewhere = designate.recordset(id="r5", zone_id="z9")
    listed = {"recordsets": [own, soa, servers, delegated, elsewhere | {"description": ""}], "links": {}}
    services.get(f"{URL}/recordsets", json=listed)
    (mine, found), (other, _) = Recordset.scan(run, None)
    addresses = ("192.0.2.1", "192.0.2.2")
    assert mine == replace(WWW, records=addresses, ttl=60, description="web")
    assert (found.id, found.ours) == ("r1", True)
    assert (other.name, other.type, other.records) == ("sub.example.com", "NS", ("ns2.example.com.",))
    project = Project(name="other")
    services.get(f"{conftest.IDENTITY}/projects?name=other", json={"projects": [{"id": "p2", "enabled": True}]})
    assert [each.owner for each, _ in Recordset.scan(run, project)] == [project, project]
    sudo = {each.headers.get("X-Auth-Sudo-Project-ID") for each in services.request_history if each.path == "/v2/zones"}
    assert sudo == {None, "p2"}


def test_a_deletion_is_one_of_the_recordset_that_was_read(
    run: CloudRun, designate: Designate, services: requests_mock.Mocker
) -> None:
    designate.listed = [designate.recordset()]
    deleted = services.delete(f"{RECORDSETS}/r1", status_code=202)
    steps = planner.plan_destroy("lab", [WWW], observation.observe(run, [WWW]))
    executor.execute(steps, run).raise_for_failures()
    assert deleted.called_once


def test_records_of_others_are_a_loss_of_its_deletion(run: CloudRun, designate: Designate) -> None:
    designate.listed = [designate.recordset(records=["192.0.2.1", "192.0.2.9"])]
    made = planner.plan_destroy("lab", [WWW], observation.observe(run, [WWW]))
    losses = [each for step in observation.find_losses(run, made) for each in step.deletion_losses]
    assert [each.address for each in losses] == ["record/r1/192.0.2.9"]
    designate.listed = [designate.recordset()]
    made = planner.plan_destroy("lab", [WWW], observation.observe(run.fresh(), [WWW]))
    assert [step.deletion_losses for step in observation.find_losses(run.fresh(), made)] == [()]


def test_a_record_that_somebody_adds_after_the_plan_stays(run: CloudRun, designate: Designate) -> None:
    designate.listed = [designate.recordset()]
    wanted = replace(WWW, records=("192.0.2.1", "192.0.2.2"))
    made = planner.plan_apply("lab", [wanted], observation.observe(run, [wanted]))
    designate.listed = [designate.recordset(records=["192.0.2.1", "192.0.2.9"])]
    (failed,) = executor.execute(made, run).failed
    assert isinstance(failed.error, PlanRefused)
    assert [each.code for each in failed.error.mistakes] == [Code.PLAN_CHANGED]
    assert not designate.changed.called


def test_the_projects_own_user_writes_and_else_the_administrator(services: requests_mock.Mocker) -> None:
    tenant, ownership = Cloud(connection(username="tenant")), OwnershipTag("lab")
    services.get(f"{conftest.IDENTITY}/projects?name=other", json={"projects": [{"id": "p2", "enabled": True}]})
    run = CloudRun(Cloud(connection()), ownership, tenant=tenant)
    assert recordsets.writer(run, None) == recordsets.Dns(tenant, ADMIN_PROJECT)
    assert recordsets.writer(run, Project(name="other")) == recordsets.Dns(run.admin, "p2")
    assert recordsets.Dns(run.admin, "p2").headers == {"X-Auth-Sudo-Project-ID": "p2"}


@pytest.mark.parametrize(
    "fields", [{"records": ("2001:db8::1",)}, {"type": "AAAA"}, {"type": "CNAME", "records": ("a b",)}]
)
def test_data_is_that_of_the_type(fields: dict[str, Any]) -> None:
    assert len(list(replace(WWW, **fields).contradictions())) == 1
    assert list(WWW.contradictions()) == []


WRONG = """
name: lab
floating_ips: [{name: web, external_network: external}]
recordsets:
  - {name: www.example.org, zone: example.com, type: A, records: [192.0.2.1]}
  - {name: a.example.com, zone: example.com, type: AAAA, floating_ips: [web]}
  - {name: b.example.com, zone: example.com, type: A}
  - {name: "a b.example.com", zone: example.com, type: A, records: [192.0.2.1]}
  - {name: c.example.com, zone: com, type: SOA, records: [x], ttl: -1}
"""


def test_mistakes_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(WRONG)
    with pytest.raises(SpecError) as caught:
        load_spec(tmp_path / "s.yaml")
    places = [each.where.partition("s.yaml:")[2] for each in caught.value.mistakes]
    assert places == [
        "5: recordsets[0]",
        "6: recordsets[1]",
        "7: recordsets[2]",
        "8: recordsets[3].name",
        "9: recordsets[4].zone",
        "9: recordsets[4].type",
        "9: recordsets[4].ttl",
    ]


def test_mistakes_between_recordsets(tmp_path: Path) -> None:
    text = "name: lab\nrecordsets:\n"
    text += "  - {name: www.example.com, zone: example.com, type: CNAME, records: [a.b]}\n"
    text += "  - {name: www.example.com, zone: example.com, type: A, floating_ips: [none]}\n"
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        refuse_mistakes(load_spec(tmp_path / "s.yaml"))
    assert caught.value.code == "spec.invalid"
    assert contains(str(caught.value), "CNAME")
    assert caught.value.code == "spec.invalid"
    assert contains(str(caught.value), "floating_ips", "none")
