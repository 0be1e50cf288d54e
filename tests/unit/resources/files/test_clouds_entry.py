from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.cloud.site import Site
from openstack_prep.core import executor, observing, planner
from openstack_prep.core.model import Action, Mark
from openstack_prep.core.plan import Plan
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.identity.user import User
from tests.unit.conftest import IDENTITY, resolved


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clouds.yaml"


def wanted(site: Site, path: Path, password: str = "s3cret", **more: Any) -> CloudsEntry:
    """Return an entry as apply completes it from a user of the spec and the connection."""
    user = User(name="ocp", password=Secret(password))
    fields = {"path": str(path), "cloud": "lab", "user": "ocp", "project": "ocp-tenant"} | more
    return resolved(CloudsEntry(**fields), [user], site.admin)


def plan(site: Site, entry: CloudsEntry) -> Plan:
    return planner.plan_apply("lab", [entry], observing.observe(site, [entry]), mistakes=list(mistakes(site, entry)))


def mistakes(site: Site, entry: CloudsEntry) -> list[str]:
    return [str(each) for each in entry.check(site, observing.observe(site, [entry]).get(entry.key))]


def test_it_is_written_once_and_kept(site: Site, path: Path) -> None:
    entry = wanted(site, path)
    executor.run(plan(site, entry), site).raise_for_failures()
    assert yaml.safe_load(path.read_text()) == {
        "clouds": {
            "lab": {
                "openstack_prep": "lab",
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
            }
        }
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert not plan(site, entry)


def test_the_entry_of_another_spec_is_neither_changed_nor_deleted(site: Site, path: Path) -> None:
    entry = wanted(site, path)
    entry.create(site)
    renamed = Site(site.admin, Mark("renamed"))
    (said,) = mistakes(renamed, entry)
    assert "managed by spec lab" in said
    (step,) = planner.plan_destroy("renamed", [entry], observing.observe(renamed, [entry]))
    assert step.action is Action.KEEP


def test_an_entry_without_an_owner_is_that_of_its_user(site: Site, path: Path) -> None:
    entry = wanted(site, path)
    entry.create(site)
    data = yaml.safe_load(path.read_text())
    del data["clouds"]["lab"]["openstack_prep"]  # as earlier versions wrote it
    path.write_text(yaml.safe_dump(data))
    assert observing.observe(site, [entry])[entry.key].ours
    executor.run(plan(site, entry), site).raise_for_failures()
    assert not plan(site, entry)
    assert not mistakes(site, wanted(site, path, "new"))


def test_drift_shows_without_the_secret_and_is_mended(site: Site, path: Path) -> None:
    wanted(site, path, "old").create(site)
    data = yaml.safe_load(path.read_text())
    data["clouds"]["lab"] |= {"region_name": "two", "volume_api_version": "3"}
    path.write_text(yaml.safe_dump(data))
    path.chmod(0o644)
    entry = wanted(site, path)
    made = plan(site, entry)
    assert [each.field for step in made for each in step.changes] == ["region", "password", "mode"]
    assert f"password (differs) -> {HIDDEN}, mode 0644 -> 0600" in str(made)
    executor.run(made, site).raise_for_failures()
    assert not plan(site, entry)
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
    site: Site, path: Path, key: str, value: str, field: str, owned: bool
) -> None:
    """Without an owner so is one with another password, or with anything that we do not write."""
    entry = wanted(site, path)
    entry.create(site)
    data = yaml.safe_load(path.read_text())
    data["clouds"]["lab"]["auth"][key] = value
    if not owned:
        del data["clouds"]["lab"]["openstack_prep"]
    path.write_text(yaml.safe_dump(data))
    ours = owned and key in ("password", "trust_id")
    assert observing.observe(site, [entry])[entry.key].ours is ours
    found = mistakes(site, entry)
    assert bool(found) is not ours
    assert all(f"that differs in {field}" in each for each in found)
    assert value not in str(found) or key != "password"
    (step,) = planner.plan_destroy("lab", [entry], observing.observe(site, [entry]))
    assert step.action is (Action.DELETE if ours else Action.KEEP)


def test_keystones_address_may_end_in_its_version(site: Site, path: Path) -> None:
    entry = wanted(site, path)
    entry.create(site)
    path.write_text(path.read_text().replace(IDENTITY, IDENTITY.removesuffix("/v3") + "/"))
    assert observing.observe(site, [entry])[entry.key].ours


@pytest.mark.parametrize(
    "theirs",
    [
        {"auth": {"username": "me", "project_name": "ocp-tenant"}},
        {"auth": {"username": "ocp", "project_name": "other"}},
        {"auth_type": "v3applicationcredential", "auth": {"application_credential_id": "x"}},
        "nonsense",
    ],
)
def test_somebody_elses_entry_is_neither_overwritten_nor_removed(site: Site, path: Path, theirs: Any) -> None:
    path.write_text(yaml.safe_dump({"clouds": {"lab": theirs}}))
    entry = wanted(site, path)
    assert any("has an entry lab that differs in " in each for each in mistakes(site, entry))
    (step,) = planner.plan_destroy("lab", [entry], observing.observe(site, [entry]))
    assert step.action is Action.KEEP


def test_destroy_takes_our_entry_and_then_the_file(site: Site, path: Path) -> None:
    path.write_text("clouds:\n  theirs: {}\n")
    entry, other = wanted(site, path), wanted(site, path, cloud="lab2")
    for each in (entry, other):
        each.create(site)
    executor.run(planner.plan_destroy("lab", [entry], observing.observe(site, [entry])), site).raise_for_failures()
    assert list(yaml.safe_load(path.read_text())["clouds"]) == ["theirs", "lab2"]
    path.write_text(path.read_text().replace("  theirs: {}\n", ""))
    executor.run(planner.plan_destroy("lab", [other], observing.observe(site, [other])), site).raise_for_failures()
    assert not path.exists()


def test_without_a_password_or_a_project_it_is_a_mistake(site: Site, path: Path) -> None:
    entry = CloudsEntry(path=str(path), cloud="lab", user="ocp")
    assert len(mistakes(site, entry)) == 2


def test_a_password_that_is_yet_to_be_generated_differs(site: Site, path: Path) -> None:
    wanted(site, path).create(site)
    later = Secret(fetch=lambda: "s3cret", path="/no/such.password")
    entry = CloudsEntry(path=str(path), cloud="lab", user="ocp", project="ocp-tenant", password=later)
    assert [each.field for step in plan(site, entry) for each in step.changes] == ["password"]
