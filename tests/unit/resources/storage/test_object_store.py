from __future__ import annotations

import hmac
import logging
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Loss, NotAllowed, PlanRefused
from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import DIFFERS, Action, Change, Observed
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.storage.object_store import KEYS, ObjectStore
from tests.unit.conftest import ADMIN_PROJECT, IDENTITY, declared_mistakes, failure, sent
from tests.unit.texts import Wording

ACCOUNT = f"http://swift/v1/AUTH_{ADMIN_PROJECT}/"
OURS = {"X-Account-Meta-Openstack-Prep": "lab"}
RESERVED_HEADERS = ("X-Account-Meta-Temp-URL-Key", "X-Account-Meta-Temp-URL-Key-2")


def found(run: CloudRun, store: ObjectStore) -> Observed | None:
    return ObjectStore.find(run, [store]).get(store.key)


def key(value: str = "k1", **more: Any) -> ObjectStore:
    return ObjectStore(temp_url_key=Secret(value), **more)


@pytest.mark.parametrize("answer", [failure(404), {"headers": {"X-Account-Object-Count": "3"}}])
def test_an_account_without_what_we_set_counts_as_absent(
    run: CloudRun, services: requests_mock.Mocker, answer: dict[str, Any]
) -> None:
    services.head(ACCOUNT, **answer)
    services.post(ACCOUNT, status_code=204)
    store = key(metadata={"Owner": "me"})
    assert found(run, store) is None
    made = store.create(run)
    assert (made.id, made.ours) == (f"AUTH_{ADMIN_PROJECT}", True)
    headers = {name: value for name, value in services.last_request.headers.items() if name.startswith("X-Account")}
    assert headers == {
        "X-Account-Meta-Temp-Url-Key": "k1",
        "X-Account-Meta-owner": "me",
        "X-Account-Meta-Openstack-Prep": "lab",
        "X-Account-Meta-Openstack-Prep-Keys": "temp_url_key",
    }
    assert [each.split("?")[0] for each in sent(services)] == [
        f"{method} /v1/auth_{ADMIN_PROJECT}/" for method in ("HEAD", "HEAD", "POST")
    ]


@pytest.mark.parametrize("header", ["X-Account-Meta-Temp-URL-Key", "X-Account-Meta-Owner"])
def test_what_somebody_has_set_since_the_plan_stays(run: CloudRun, services: requests_mock.Mocker, header: str) -> None:
    services.head(ACCOUNT)
    store = key(metadata={"Owner": "me"})
    plan = planner.plan_apply("lab", [store], observation.observe(run, [store]), allow_replace=True)
    services.head(ACCOUNT, headers={header: "by-hand"})
    (result,) = executor.execute(plan, run).results
    assert isinstance(result.error, PlanRefused)
    assert {each.code for each in result.error.mistakes} <= {Code.PLAN_CHANGED, Code.PLAN_LOSES}
    assert not [each for each in sent(services) if each.startswith("POST /v1")]


@pytest.mark.parametrize(
    ("headers", "store", "owner"),
    [
        ({"X-Account-Meta-Quota-Bytes": "10"}, ObjectStore(quota_bytes=10), (False, "")),
        ({"X-Account-Meta-Quota-Bytes": "10", **OURS}, ObjectStore(quota_bytes=10), (True, "")),
        ({"X-Account-Meta-Owner": "me"}, ObjectStore(metadata={"owner": "me"}), (False, "")),
        (
            {"X-Account-Meta-Owner": "me", "X-Account-Meta-Openstack-Prep": "other"},
            ObjectStore(metadata={"owner": "me"}),
            (False, "other"),
        ),
    ],
)
def test_a_scan_yields_what_a_spec_would_declare(
    run: CloudRun,
    services: requests_mock.Mocker,
    headers: dict[str, str],
    store: ObjectStore,
    owner: tuple[bool, str],
) -> None:
    services.head(ACCOUNT, headers=headers | {"X-Account-Meta-Temp-URL-Key": "k1"})
    ((declared, observed),) = ObjectStore.scan(run, None)
    assert (declared, (observed.ours, observed.managed_by)) == (store, owner)
    services.post(ACCOUNT, status_code=204)
    updated = store.update(run, observed, (Change("quota_bytes", 10, 20),))
    assert (updated.ours, updated.managed_by) == owner


def test_keys_are_compared_and_mended_unseen(
    run: CloudRun, services: requests_mock.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stands = {"X-Account-Meta-Temp-URL-Key": "k1", "x-account-meta-temp-url-key-2": "old", "X-Account-Meta-OWNER": "me"}
    services.head(ACCOUNT, headers=OURS | stands)
    services.post(ACCOUNT, status_code=204)
    store = key(temp_url_key_2=Secret("k2"), metadata={"owner": "me"})
    plan = planner.plan_apply("lab", [store], observation.observe(run, [store]))
    assert [(change.field, change.before) for step in plan for change in step.changes] == [("temp_url_key_2", DIFFERS)]
    report = executor.execute(plan, run)
    report.raise_for_failures()
    assert services.last_request.headers["X-Account-Meta-Temp-Url-Key-2"] == "k2"
    assert "X-Account-Meta-Temp-Url-Key" not in services.last_request.headers
    for seen in (caplog.text, str(plan), str(plan.data()), str(report.data())):
        assert not {"k1", "k2", "old"} & set(seen.replace("'", " ").replace('"', " ").split())


@pytest.mark.parametrize("owned", [True, False])
def test_keys_in_use_are_not_generated_a_second_time_unasked(
    run: CloudRun, services: requests_mock.Mocker, tmp_path: Path, owned: bool
) -> None:
    in_use = dict.fromkeys(RESERVED_HEADERS, "in-use")
    services.head(ACCOUNT, headers=in_use | (OURS if owned else {}))
    first, second = (from_spec({"generate": name}, base=tmp_path) for name in ("one.key", "two.key"))
    store = ObjectStore(temp_url_key=first, temp_url_key_2=second)
    observed = observation.observe(run, [store])
    refusals = planner.plan_apply("lab", [store], observed).refusals
    assert {each.code for each in refusals} == {"plan.loses"}
    assert [each.lost for each in refusals if isinstance(each, Loss)] == [("temp_url_key",), ("temp_url_key_2",)]
    assert not planner.plan_apply("lab", [store], observed, allow_replace=True).refusals
    assert [*tmp_path.iterdir()] == []
    for name in ("one.key", "two.key"):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text("in-use\n")
    assert not planner.plan_apply("lab", [store], observation.observe(run, [store]))


@pytest.mark.parametrize(
    "name", ["Temp-URL-Key", "TEMP-URL-KEY-2", "temp_url_key", " Temp-Url-Key", "X-Account-Meta-Temp-URL-Key"]
)
def test_reserved_metadata_is_refused_and_its_value_seen_by_nobody(
    run: CloudRun, services: requests_mock.Mocker, name: str
) -> None:
    services.head(ACCOUNT, headers=OURS | dict.fromkeys(RESERVED_HEADERS, "the-current-key"))
    store = ObjectStore(metadata={name: "the-wanted-key", "owner": "me"})
    observed, mistakes = observation.examine(run, [store])
    (mistake,) = declared_mistakes(store)
    assert name in mistake.what
    assert observed[store.key].values == {"metadata": {}}
    plan = planner.plan_apply("lab", [store], observed, mistakes=mistakes)
    for seen in (str(plan), str(plan.data()), repr(observed)):
        assert "current-key" not in seen
        assert "wanted-key" not in seen


def test_current_metadata_with_the_name_of_a_secret_is_not_shown(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.head(ACCOUNT, headers=OURS | {"X-Account-Meta-Db-Password": "hunter2", "X-Account-Meta-Owner": "me"})
    store = ObjectStore(metadata={"Db-Password": "new", "Owner": "you"})
    plan = planner.plan_apply("lab", [store], observation.observe(run, [store]))
    assert "metadata.db-password ******** -> new, metadata.owner me -> you" in str(plan)
    assert "hunter2" not in str(plan.data())


def test_somebody_elses_settings_are_compared_and_stay_theirs(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.head(ACCOUNT, headers={"X-Account-Meta-Temp-Url-Key": "theirs"})
    services.post(ACCOUNT, status_code=204)
    store = key()
    observed = found(run, store)
    assert observed is not None
    step = planner.decide(store, observed)
    assert step.action is Action.UPDATE
    assert not store.update(run, observed, step.changes).ours
    assert "X-Account-Meta-Openstack-Prep" not in services.last_request.headers


@pytest.mark.parametrize("theirs", [{}, {"X-Account-Meta-Openstack-Prep": "another"}])
def test_values_of_others_are_not_overwritten_unasked(
    run: CloudRun, services: requests_mock.Mocker, theirs: dict[str, str]
) -> None:
    present = {"X-Account-Meta-Temp-Url-Key": "theirs", "X-Account-Meta-Owner": "them"}
    services.head(ACCOUNT, headers=present | theirs)
    store = key(metadata={"owner": "me", "new": "1"})
    observed = observation.observe(run, [store])
    refusals = planner.plan_apply("lab", [store], observed).refusals
    assert [each.lost for each in refusals if isinstance(each, Loss)] == [("temp_url_key",), ("metadata.owner",)]
    assert not planner.plan_apply("lab", [store], observed, allow_replace=True).refusals
    services.head(ACCOUNT, headers=present | OURS)
    assert not planner.plan_apply("lab", [store], observation.observe(run.fresh(), [store])).refusals


def test_delete_takes_back_what_we_set(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.head(ACCOUNT, headers=OURS | {"X-Account-Meta-Temp-Url-Key": "k1"})
    services.post(ACCOUNT, status_code=204)
    store = key()
    plan = planner.plan_destroy("lab", [store], observation.observe(run, [store]))
    executor.execute(plan, run).raise_for_failures()
    headers = {name: value for name, value in services.last_request.headers.items() if name.startswith("X-Account")}
    names = ("Temp-Url-Key", "Openstack-Prep", "Openstack-Prep-Keys")
    assert headers == {f"X-Account-Meta-{name}": "" for name in names}


@pytest.mark.parametrize("deletes", [True, False])
def test_a_spec_that_has_dropped_its_keys_removes_their_record(
    run: CloudRun, services: requests_mock.Mocker, deletes: bool
) -> None:
    services.head(ACCOUNT, headers=OURS | {KEYS: "temp_url_key", "X-Account-Meta-Owner": "me"})
    services.post(ACCOUNT, status_code=204)
    store = ObjectStore(metadata={"owner": "me" if deletes else "you"})
    observed = observation.observe(run, [store])
    plan = planner.plan_destroy("lab", [store], observed) if deletes else planner.plan_apply("lab", [store], observed)
    executor.execute(plan, run).raise_for_failures()
    headers = {name: value for name, value in services.last_request.headers.items() if name.startswith("X-Account")}
    owner = {"X-Account-Meta-owner": "" if deletes else "you"}
    assert headers == owner | {KEYS: ""} | (dict.fromkeys(OURS, "") if deletes else {})


def test_delete_leaves_values_that_others_have_set_since(run: CloudRun, services: requests_mock.Mocker) -> None:
    theirs = {"X-Account-Meta-Temp-Url-Key": "theirs", "X-Account-Meta-Owner": "you", "X-Account-Meta-Quota-Bytes": "9"}
    ours = {"X-Account-Meta-Temp-Url-Key-2": "k2", "X-Account-Meta-Site": "here"}
    services.head(ACCOUNT, headers=OURS | theirs | ours)
    services.post(ACCOUNT, status_code=204)
    metadata = {"Owner": "me", "Site": "here", "Gone": "x"}
    store = key(temp_url_key_2=Secret("k2"), quota_bytes=10, metadata=metadata)
    plan = planner.plan_destroy("lab", [store], observation.observe(run, [store]))
    (step,) = plan
    assert [name in step.reason for name in ("temp_url_key,", "quota_bytes", "metadata.owner")] == [True] * 3
    assert "theirs" not in str(plan.data())
    executor.execute(plan, run).raise_for_failures()
    headers = {name: value for name, value in services.last_request.headers.items() if name.startswith("X-Account")}
    names = ("Temp-Url-Key-2", "site", "gone", "Openstack-Prep", "Openstack-Prep-Keys")
    assert headers == {f"X-Account-Meta-{name}": "" for name in names}


def test_delete_leaves_a_key_whose_secret_no_longer_exists(
    run: CloudRun, services: requests_mock.Mocker, tmp_path: Path
) -> None:
    services.head(ACCOUNT, headers=OURS | {"X-Account-Meta-Temp-Url-Key": "k1"})
    services.post(ACCOUNT, status_code=204)
    store = ObjectStore(temp_url_key=Secret(fetch=str, path=str(tmp_path / "gone")))
    executor.execute(planner.plan_destroy("lab", [store], observation.observe(run, [store])), run).raise_for_failures()
    headers = {name for name in services.last_request.headers if name.startswith("X-Account")}
    assert headers == {"X-Account-Meta-Openstack-Prep", "X-Account-Meta-Openstack-Prep-Keys"}


def test_a_refused_quota_says_who_may(run: CloudRun, services: requests_mock.Mocker, wording: Wording) -> None:
    services.head(ACCOUNT)
    services.post(ACCOUNT, status_code=403)
    with pytest.raises(NotAllowed) as caught:
        ObjectStore(quota_bytes=10).create(run)
    wording(caught.value)
    services.head(ACCOUNT, headers=OURS | {"X-Account-Meta-Quota-Bytes": "10"})
    observed = found(run.fresh(), ObjectStore(quota_bytes=10))
    assert observed is not None
    assert observed.values == {"quota_bytes": 10}


def test_a_user_without_a_role_there_is_a_mistake_of_the_plan(
    run: CloudRun, services: requests_mock.Mocker, wording: Wording
) -> None:
    services.head(ACCOUNT, status_code=403)
    observed, (mistake,) = observation.examine(run, [key()])
    assert observed == {}
    assert mistake.keys == (key().key,)
    wording(mistake.what)
    assert "swiftoperator" in mistake.fix
    assert not planner.plan_destroy("lab", [key()], observed).steps
    assert [each.split("?")[0] for each in sent(services)] == [f"HEAD /v1/auth_{ADMIN_PROJECT}/"]


def test_headers_that_cannot_be_are_mistakes() -> None:
    store = ObjectStore(metadata={"a b": "x", "good": "y\nz", "fine": "a b"})
    assert len(declared_mistakes(store)) == 2


LIMITS = {
    "max_meta_name_length": 20,
    "max_meta_value_length": 300,
    "max_meta_count": 90,
    "max_meta_overall_size": 4096,
}


@pytest.mark.parametrize(
    ("info", "length", "refused", "unchecked"),
    [
        ({"json": {"swift": LIMITS}}, 256, 0, 0),
        ({"json": {"swift": LIMITS}}, 300, 0, 0),
        ({"json": {"swift": LIMITS}}, 301, 1, 0),
        ({"status_code": 404}, 256, 0, 0),
        ({"status_code": 404}, 257, 0, 1),
        ({"json": {"tempurl": {}}}, 257, 0, 1),
    ],
)
def test_metadata_is_refused_by_known_limits_only(
    run: CloudRun, services: requests_mock.Mocker, info: dict[str, Any], length: int, refused: int, unchecked: int
) -> None:
    """Ceph's object store has no such limits, and Swift need not show its own."""
    services.head(ACCOUNT, headers={**OURS, "X-Account-Meta-kept": "x" * 999, "X-Account-Meta-note": "old"})
    services.get("http://swift/info", **info)
    services.post(ACCOUNT, status_code=204)
    store = ObjectStore(metadata={"kept": "x" * 999, "note": "x" * length})
    observed, mistakes = observation.examine(run, [store])
    assert [each.field for each in mistakes] == ["metadata"] * refused
    (step,) = planner.plan_apply("lab", [store], observed).steps
    assert len(list(store.list_unchecked(run, step.changes))) == unchecked
    store.update(run, observed[store.key], step.changes)
    assert "X-Account-Meta-kept" not in services.last_request.headers


@pytest.mark.parametrize(
    ("info", "length", "refused", "unchecked"),
    [
        ({"json": {"swift": LIMITS}}, 300, [], 0),
        ({"json": {"swift": LIMITS}}, 301, ["temp_url_key"], 0),
        ({"status_code": 404}, 256, [], 0),
        ({"status_code": 404}, 257, [], 1),
    ],
)
def test_a_key_is_as_long_as_metadata_may_be(
    run: CloudRun,
    services: requests_mock.Mocker,
    info: dict[str, Any],
    length: int,
    refused: list[str],
    unchecked: int,
) -> None:
    services.head(ACCOUNT, headers=OURS)
    services.head(f"{ACCOUNT}openstack-prep/none", status_code=401)
    services.get("http://swift/info", **info)
    store = ObjectStore(temp_url_key=Secret("x" * length))
    assert [each.field for each in observation.examine(run, [store])[1]] == refused
    assert len(list(store.list_unchecked(run, None))) == unchecked


def test_metadata_that_the_account_has_is_not_judged(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.head(ACCOUNT, headers={**OURS, "X-Account-Meta-kept": "x" * 999})
    observed, mistakes = observation.examine(run, [ObjectStore(metadata={"kept": "x" * 999})])
    assert (mistakes, len(observed)) == ([], 1)
    assert not any(each.path == "/info" for each in services.request_history)


def test_an_export_holds_no_key(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    assert list(ObjectStore.scan(run, Project(name="of-others"))) == []
    stands = {"X-Account-Meta-Temp-URL-Key": "k1", "X-Account-Meta-Quota-Bytes": "10", "X-Account-Meta-Owner": "me"}
    services.head(ACCOUNT, headers=OURS | stands | {"X-Account-Meta-Db-Password": "p"})
    ((declared, observed),) = ObjectStore.scan(run, None)
    assert declared == ObjectStore(quota_bytes=10, metadata={"owner": "me"})
    assert observed.ours
    assert planner.diff(declared, observed) == ()
    services.head(ACCOUNT, headers={"X-Account-Object-Count": "3"})
    assert list(ObjectStore.scan(run.fresh(), None)) == []


@pytest.mark.parametrize(("status", "kept"), [(404, True), (401, False), (403, False)])
def test_a_key_that_swift_does_not_show_is_tested_by_a_temporary_url(
    run: CloudRun, services: requests_mock.Mocker, caplog: pytest.LogCaptureFixture, status: int, kept: bool
) -> None:
    """Who reads all accounts (system_reader_roles) sees no keys, although it may set them."""
    caplog.set_level(logging.DEBUG)
    services.head(ACCOUNT, headers=OURS)
    tested = services.head(f"{ACCOUNT}openstack-prep/none", **failure(status))
    posted = services.post(ACCOUNT, status_code=204)
    store = key()
    observed = observation.observe(run, [store])
    assert [step.action for step in planner.plan_apply("lab", [store], observed)] == [
        Action.KEEP if kept else Action.UPDATE
    ]
    asked = tested.last_request
    assert "X-Auth-Token" not in asked.headers
    until = asked.qs["temp_url_expires"][0]
    signed = hmac.new(b"k1", f"HEAD\n{until}\n/v1/AUTH_{ADMIN_PROJECT}/openstack-prep/none".encode(), "sha256")
    assert asked.qs["temp_url_sig"] == [signed.hexdigest()]
    logged = [each.getMessage() for each in caplog.records if each.name != "requests_mock.adapter"]
    assert signed.hexdigest() not in str(logged)
    store.delete(run, observed[store.key])  # nobody knows whose another key is
    removed = {name for name in posted.last_request.headers if name.startswith("X-Account")}
    mark = {"X-Account-Meta-Openstack-Prep", "X-Account-Meta-Openstack-Prep-Keys"}
    assert removed == mark | ({"X-Account-Meta-Temp-Url-Key"} if kept else set())


@pytest.mark.parametrize("value", ["schlüssel", "ключ-€", " geheim", "geheim\n"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(
    run: CloudRun, services: requests_mock.Mocker, value: str
) -> None:
    services.head(ACCOUNT, **failure(404))
    mistakes = observation.examine(run, [key(value)])[1]
    assert [(each.field, value.strip() in str(each)) for each in mistakes] == [("temp_url_key", False)]


@pytest.mark.parametrize(("recorded", "refused"), [("temp_url_key,temp_url_key_2", True), ("temp_url_key_2", False)])
def test_a_key_that_swift_does_not_show_is_not_replaced_when_its_file_is_lost(
    run: CloudRun, services: requests_mock.Mocker, tmp_path: Path, recorded: str, refused: bool
) -> None:
    posted = services.post(ACCOUNT, status_code=204)
    store = ObjectStore(temp_url_key=Secret(fetch=lambda: "k1", path=str(tmp_path / "lost")))
    services.head(ACCOUNT, headers=OURS | {"X-Account-Meta-Openstack-Prep-Keys": recorded})
    plan = planner.plan_apply("lab", [store], observation.observe(run, [store]))
    assert [list(step.losses) != [] for step in plan] == [refused]
    executor.execute(planner.plan_destroy("lab", [store], observation.observe(run, [store])), run).raise_for_failures()
    assert "X-Account-Meta-Temp-Url-Key" not in posted.last_request.headers
