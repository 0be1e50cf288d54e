from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import PlanRefused
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Context, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.identity.user import User
from openstack_prep.spec.resolution import resolve_spec
from openstack_prep.spec.spec import Spec
from tests.unit.conftest import IDENTITY, resolved
from tests.unit.texts import Wording


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clouds.yaml"


def wanted(run: CloudRun, path: Path, password: str = "s3cret", **more: Any) -> CloudsEntry:
    """Return an entry as apply completes it from a user of the spec and the connection."""
    user = User(name="ocp", password=Secret(password))
    fields = {"path": str(path), "cloud": "lab", "user": "ocp", "project": "ocp-tenant"} | more
    return resolved(CloudsEntry(**fields), [user], run.admin)


def plan(run: CloudRun, entry: CloudsEntry) -> Plan:
    observed = observation.observe(run, [entry])
    return planner.plan_apply("lab", [entry], observed, mistakes=list(entry.check(run, observed.get(entry.key))))


def mistakes(run: CloudRun, entry: CloudsEntry) -> list[str]:
    return [str(each) for each in entry.check(run, observation.observe(run, [entry]).get(entry.key))]


def test_settings_of_tls_that_somebody_has_added_are_kept(run: CloudRun, path: Path) -> None:
    entry = replace(wanted(run, path), cacert=None, client_cert=None, client_key=None)
    added = {"cacert": "/ca.pem", "cert": "/cert.pem", "key": "/key.pem", "force_ipv4": True}
    found = {"auth": {}, "verify": False, "insecure": True, **added}
    written = entry.merged_entry(found, {})
    assert {name: written[name] for name in added} == added
    assert not {"verify", "insecure"} & written.keys()
    other = replace(entry, client_cert="/both.pem").merged_entry(found, {})  # which has the key in it
    assert (other["cert"], "key" in other) == ("/both.pem", False)


def test_it_is_written_once_and_kept(run: CloudRun, path: Path) -> None:
    entry = wanted(run, path)
    executor.execute(plan(run, entry), run).raise_for_failures()
    assert yaml.safe_load(path.read_text()) == {
        "clouds": {
            "lab": {
                "openstack_prep": "[openstack-prep:lab/lab]",
                "auth": {
                    "auth_url": IDENTITY,
                    "username": "ocp",
                    "password": "s3cret",
                    "user_domain_name": "Default",
                    "project_name": "ocp-tenant",
                    "project_domain_name": "Default",
                },
                "identity_api_version": "3",
                "region_name": "one",
                "interface": "public",
                "compute_api_version": "2",
            }
        }
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert not plan(run, entry)


def test_an_entry_of_an_early_version_stays_as_it_is(run: CloudRun, path: Path) -> None:
    """Its tag does not name the entry."""
    entry = wanted(run, path)
    entry.create(run)
    path.write_text(path.read_text().replace("'[openstack-prep:lab/lab]'", "lab"))
    assert not plan(run, entry)
    (step,) = planner.plan_destroy("lab", [entry], observation.observe(run, [entry]))
    assert step.action is Action.DELETE


def test_the_entry_of_another_spec_is_neither_changed_nor_deleted(run: CloudRun, path: Path, wording: Wording) -> None:
    entry = wanted(run, path)
    entry.create(run)
    renamed = CloudRun(run.admin, OwnershipTag("renamed"))
    (said,) = mistakes(renamed, entry)
    wording(said)
    (step,) = planner.plan_apply("renamed", [entry], observation.observe(renamed, [entry]))
    assert (step.action, step.changes) == (Action.KEEP, ())
    (step,) = planner.plan_destroy("renamed", [entry], observation.observe(renamed, [entry]))
    assert step.action is Action.KEEP


def test_of_two_specs_at_once_one_wins(run: CloudRun, path: Path, wording: Wording) -> None:
    """Both have planned while the entry was free; the first one's destroy comes too late as well."""
    other = CloudRun(run.admin, OwnershipTag("other"))
    theirs = wanted(run, path, project="theirs")
    entry = wanted(run, path)
    late = planner.plan_apply("other", [theirs], observation.observe(other, [theirs]))
    executor.execute(plan(run, entry), run).raise_for_failures()
    before = path.read_text()
    (failed,) = executor.execute(late, other).failed
    assert isinstance(failed.error, PlanRefused)
    assert failed.error.diagnostics[0].code == "plan.foreign"
    wording(str(failed.error))
    destroy = planner.plan_destroy("lab", [entry], observation.observe(run, [entry]))
    path.write_text(before.replace("openstack-prep:lab/", "openstack-prep:other/"))
    executor.execute(destroy, run).raise_for_failures()
    assert "s3cret" in path.read_text()


def test_the_file_behind_a_link_loses_the_entry(run: CloudRun, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "vault.yaml"
    target.write_text("# mine\n")
    path.symlink_to(target)
    entry = wanted(run, path)
    executor.execute(plan(run, entry), run).raise_for_failures()
    assert "s3cret" in target.read_text()
    executor.execute(planner.plan_destroy("lab", [entry], observation.observe(run, [entry])), run).raise_for_failures()
    assert (path.is_symlink(), target.read_text()) == (True, "# mine\n")


def test_an_entry_without_an_owner_is_that_of_its_user(run: CloudRun, path: Path) -> None:
    entry = wanted(run, path)
    entry.create(run)
    data = yaml.safe_load(path.read_text())
    del data["clouds"]["lab"]["openstack_prep"]  # as earlier versions wrote it
    path.write_text(yaml.safe_dump(data))
    assert observation.observe(run, [entry])[entry.key].ours
    executor.execute(plan(run, entry), run).raise_for_failures()
    assert not plan(run, entry)
    assert not mistakes(run, wanted(run, path, "new"))


def test_drift_shows_without_the_secret_and_is_mended(run: CloudRun, path: Path) -> None:
    wanted(run, path, "old").create(run)
    data = yaml.safe_load(path.read_text())
    data["clouds"]["lab"] |= {"region_name": "two", "volume_api_version": "3"}
    path.write_text(yaml.safe_dump(data))
    path.chmod(0o644)
    entry = wanted(run, path)
    made = plan(run, entry)
    assert [each.field for step in made for each in step.changes] == ["region", "password", "mode"]
    assert f"password (differs) -> {HIDDEN}, mode 0644 -> 0600" in str(made)
    executor.execute(made, run).raise_for_failures()
    assert not plan(run, entry)
    assert yaml.safe_load(path.read_text())["clouds"]["lab"]["volume_api_version"] == "3"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "s3cret" not in str(made) + str(made.data())


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("auth_url", "https://other.example/identity/v3", "auth_url"),
        ("user_domain_name", "corp", "user_domain"),
        ("project_domain_name", "corp", "project_domain"),
        ("password", "0ther-one", "password"),
        ("trust_id", "t1", "auth"),
    ],
)
def test_an_entry_for_another_cloud_or_domain_is_foreign(
    run: CloudRun, path: Path, key: str, value: str, field: str, owned: bool
) -> None:
    """Without an owner so is one with another password, or with anything that we do not write."""
    entry = wanted(run, path)
    entry.create(run)
    data = yaml.safe_load(path.read_text())
    data["clouds"]["lab"]["auth"][key] = value
    if not owned:
        del data["clouds"]["lab"]["openstack_prep"]
    path.write_text(yaml.safe_dump(data))
    ours = owned and key in ("password", "trust_id")
    assert observation.observe(run, [entry])[entry.key].ours is ours
    found = mistakes(run, entry)
    assert bool(found) is not ours
    assert all(f"that differs in {field}" in each for each in found)
    assert value not in str(found) or key != "password"
    (step,) = planner.plan_destroy("lab", [entry], observation.observe(run, [entry]))
    assert step.action is (Action.DELETE if ours else Action.KEEP)


def test_keystones_address_may_end_in_its_version(run: CloudRun, path: Path) -> None:
    entry = wanted(run, path)
    entry.create(run)
    path.write_text(path.read_text().replace(IDENTITY, IDENTITY.removesuffix("/v3") + "/"))
    assert observation.observe(run, [entry])[entry.key].ours


@pytest.mark.parametrize(
    "theirs",
    [
        {"auth": {"username": "me", "project_name": "ocp-tenant"}},
        {"auth": {"username": "ocp", "project_name": "other"}},
        {"auth_type": "v3applicationcredential", "auth": {"application_credential_id": "x"}},
        "nonsense",
    ],
)
def test_somebody_elses_entry_is_neither_overwritten_nor_removed(run: CloudRun, path: Path, theirs: Any) -> None:
    path.write_text(yaml.safe_dump({"clouds": {"lab": theirs}}))
    entry = wanted(run, path)
    assert any("has an entry lab that differs in " in each for each in mistakes(run, entry))
    (step,) = planner.plan_destroy("lab", [entry], observation.observe(run, [entry]))
    assert step.action is Action.KEEP


def test_destroy_takes_our_entry_and_then_the_file(run: CloudRun, path: Path) -> None:
    path.write_text("clouds:\n  theirs: {}\n")
    entry, other = wanted(run, path), wanted(run, path, cloud="lab2")
    for each in (entry, other):
        each.create(run)
    executor.execute(planner.plan_destroy("lab", [entry], observation.observe(run, [entry])), run).raise_for_failures()
    assert list(yaml.safe_load(path.read_text())["clouds"]) == ["theirs", "lab2"]
    path.write_text(path.read_text().replace("  theirs: {}\n", ""))
    executor.execute(planner.plan_destroy("lab", [other], observation.observe(run, [other])), run).raise_for_failures()
    assert not path.exists()


def test_without_a_password_or_a_project_it_is_a_mistake(run: CloudRun, path: Path) -> None:
    entry = CloudsEntry(path=str(path), cloud="lab", user="ocp")
    assert len(mistakes(run, entry)) == 2


def test_a_password_that_is_yet_to_be_generated_differs(run: CloudRun, path: Path) -> None:
    wanted(run, path).create(run)
    later = Secret(fetch=lambda: "s3cret", path="/no/such.password")
    entry = CloudsEntry(path=str(path), cloud="lab", user="ocp", project="ocp-tenant", password=later)
    assert [each.field for step in plan(run, entry) for each in step.changes] == ["password"]


@pytest.mark.parametrize("given", ["ca.pem", "~/ca.pem"])
def test_a_ca_file_is_named_as_from_any_directory(
    run: CloudRun, path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("HOME", str(path.parent))
    (path.parent / "ca.pem").touch()
    run.admin.connection.config.config["cacert"] = given
    entry = wanted(run, path)
    assert entry.cacert == str(path.parent / "ca.pem")
    entry.create(run)
    assert yaml.safe_load(path.read_text())["clouds"]["lab"]["cacert"] == str(path.parent / "ca.pem")


@pytest.mark.parametrize("auth", ["[a]", "text", "3", "{password: [s3cret]}", "{password: 2024-01-02}"])
def test_an_entry_of_another_shape_is_refused_without_its_values(
    run: CloudRun, path: Path, auth: str, wording: Wording
) -> None:
    path.write_text(f"clouds: {{lab: {{auth: {auth}}}}}")
    (said,) = mistakes(run, wanted(run, path))
    wording(said)
    assert "s3cret" not in said


# --- settings of the connection in use ----------------------------------------------------

INHERITED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "insecure": ({"insecure": True}, {"verify": False}),
    "verify": ({"verify": False}, {"verify": False}),
    "verify wins over a CA": ({"verify": False, "cacert": "ca.pem"}, {"verify": False}),
    "verify as a path": ({"verify": "ca.pem"}, {"cacert": "/ca.pem"}),
    "cacert": ({"cacert": "~/ca.pem"}, {"cacert": "/ca.pem"}),
    "a client certificate": ({"cert": "c.pem", "key": "sub/k.pem"}, {"cert": "/c.pem", "key": "/sub/k.pem"}),
    "a certificate with its key": ({"cert": "c.pem"}, {"cert": "/c.pem"}),
    "an endpoint": ({"image_endpoint_override": "http://glance:9"}, {"image_endpoint_override": "http://glance:9"}),
    "an endpoint by an alias": ({"volumev3_endpoint": "http://c/v3"}, {"volumev3_endpoint": "http://c/v3"}),
    "a version": ({"volume_api_version": 3}, {"volume_api_version": "3"}),
    "a microversion": ({"compute_default_microversion": "2.79"}, {"compute_default_microversion": "2.79"}),
    "an interface": ({"interface": "internal"}, {"interface": "internal"}),
    "an interface of a service": ({"image_interface": "internal"}, {"image_interface": "internal"}),
    "a region of a service": ({"dns_region_name": "two"}, {"dns_region_name": "two"}),
    "the region of the catalogue": ({"region_name": ""}, {"region_name": "one"}),
    "a default of the SDK": ({"network_api_version": "2"}, {}),
    "what is no service": ({"statsd_endpoint": "http://x", "floating_ip_source": "neutron"}, {}),
    "a time-out": ({"api_timeout": 10}, {}),
}


@pytest.mark.parametrize("case", INHERITED)
def test_an_entry_has_the_settings_of_the_connection(
    run: CloudRun, path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    given, expected = INHERITED[case]
    (path.parent / "sub").mkdir()
    for name in ("ca.pem", "c.pem", "sub/k.pem"):
        (path.parent / name).touch()
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("HOME", str(path.parent))
    run.admin.connection.config.config.update(given)
    entry = wanted(run, path)
    entry.create(run)
    written = yaml.safe_load(path.read_text())["clouds"]["lab"]
    expected = {
        key: f"{path.parent}{value}" if str(value).endswith(".pem") else value for key, value in expected.items()
    }
    plain = {"identity_api_version": "3", "compute_api_version": "2", "region_name": "one", "interface": "public"}
    assert {key: value for key, value in written.items() if key not in ("auth", "openstack_prep")} == plain | expected
    assert not plan(run, entry)
    for key in expected:  # drift of each is seen, and ends with an apply
        path.write_text(
            yaml.safe_dump({"clouds": {"lab": {name: each for name, each in written.items() if name != key}}})
        )
        (step,) = plan(run, entry).pending
        assert len(step.changes) == 1
        executor.execute(plan(run, entry), run).raise_for_failures()
        assert yaml.safe_load(path.read_text())["clouds"]["lab"] == written


def test_an_entry_has_no_region_where_the_catalogue_has_several(
    run: CloudRun, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions = [{"type": "compute", "interface": "public", "region": each, "url": "http://c"} for each in ("one", "two")]
    monkeypatch.setattr(type(run.admin), "endpoints", regions)
    run.admin.connection.config.config["region_name"] = ""
    assert wanted(run, path).region is None


@pytest.mark.parametrize(
    ("given", "verify", "cacert"),
    [
        ({}, False, None),
        ({"verify": True}, True, None),
        ({"verify": False}, False, None),
        ({"cacert": "/etc/ca.pem"}, True, "/etc/ca.pem"),
        ({"cacert": "/etc/ca.pem", "verify": False}, False, "/etc/ca.pem"),
    ],
)
def test_what_the_spec_says_goes_before_a_connection_that_verifies_nothing(
    run: CloudRun, path: Path, given: dict[str, Any], verify: bool, cacert: str | None
) -> None:
    run.admin.connection.config.config["verify"] = False
    entry = wanted(run, path, **given)
    assert (entry.verify, entry.cacert) == (verify, cacert)


def test_insecure_in_the_file_is_drift(run: CloudRun, path: Path) -> None:
    entry = wanted(run, path)
    entry.create(run)
    written = path.read_text()
    path.write_text(written.replace("    region_name", "    insecure: true\n    region_name"))
    (step,) = plan(run, entry).pending
    assert [(each.field, each.before, each.after) for each in step.changes] == [("verify", False, True)]
    executor.execute(plan(run, entry), run).raise_for_failures()
    assert yaml.safe_load(path.read_text()) == yaml.safe_load(written)


@pytest.mark.parametrize(("given", "warned"), [({}, True), ({"verify": False}, False), ({"cacert": "/ca.pem"}, False)])
def test_that_nothing_is_verified_is_never_inherited_in_silence(
    run: CloudRun, path: Path, given: dict[str, Any], warned: bool
) -> None:
    run.admin.connection.config.config["insecure"] = True
    entries = [
        CloudsEntry(path=str(path), cloud="lab", user="ocp", project="p", **given),
        ApplicationCredential(name="c", clouds_yaml=str(path), cloud="app", **given),
    ]
    spec = Spec("lab", (*entries, User(name="ocp", password=Secret("s"))))
    found = resolve_spec(spec, run.admin, for_apply=True).warnings
    assert [each.split(" ")[0] for each in found] == ([f"{each.key}:" for each in entries] if warned else [])


def test_settings_of_services_are_judged_by_their_names(run: CloudRun, path: Path) -> None:
    given = {"compute_endpoint_override": "http://n/v2.1", "password": "x", "region_name": "y", "_endpoint": "z"}
    entry = CloudsEntry(path=str(path), cloud="lab", user="ocp", project="p", service_settings=given)
    context = Context(resources=[entry], cloud=run.admin)
    assert [each.what.split("'")[1] for each in entry.list_mistakes(context)] == [
        "password",
        "region_name",
        "_endpoint",
    ]
