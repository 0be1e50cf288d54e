"""Users, role assignments, application credentials and the files that hold them, on the real services."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import openstack
import pytest

from openstack_prep.base.errors import NotAllowed, PlanRefused
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import clouds_yaml, lease
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Resource
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.credentials.application_credential import AccessRule, ApplicationCredential
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.files.env_file import EnvFile
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"


class Lab:
    """A project with a user, to which tests add."""

    def __init__(self, devcloud: Devcloud, folder: Path) -> None:
        self.name = f"lab{secrets.token_hex(3)}"
        self.devcloud, self.folder = devcloud, folder
        self.cloud = Cloud(devcloud.admin)
        self.project = Project(name=self.name)
        self.path = folder / "clouds.yaml"
        self.known: list[Resource] = []

    def user(self, password: str = "first", **more: Any) -> User:
        return User(name=self.name, password=Secret(password), **more)

    def spec(self, *more: Resource, user: User | None = None, roles: tuple[str, ...] = ("member",)) -> Spec:
        assignments = [RoleAssignment(role=role, user=self.name, project=self.name) for role in roles]
        self.known = [self.project, user or self.user(), *assignments, *more]
        return Spec(self.name, tuple(self.known))

    def apply(self, *more: Resource, consent: bool = False, **options: Any) -> dict[str, str]:
        """Apply, insist that nothing is left to do, and return what was done by resource."""
        spec = self.spec(*more, **options)
        report = api.apply(self.cloud, spec, allow_replace=consent)
        report.raise_for_failures()
        assert not api.plan(self.cloud, spec), str(api.plan(self.cloud, spec))
        return {result.step.key.kind: result.step.action.value for result in report.results}

    def inside(self, **fields: Any) -> dict[str, Any]:
        return {"project": self.name} | fields

    def credential(self, **more: Any) -> ApplicationCredential:
        fields = self.inside(name="app", clouds_yaml=str(self.path), cloud="app")
        return ApplicationCredential(**fields | more)

    def connect(self, cloud: str) -> openstack.connection.Connection:
        """Log in by the clouds.yaml that was written, and by that alone."""
        config = openstack.config.OpenStackConfig(config_files=[str(self.path)], load_envvars=False)
        connection = openstack.connection.Connection(config=config.get_one(cloud))
        connection.authorize()
        return connection

    def credentials(self) -> list[str]:
        user = self.devcloud.admin.identity.find_user(self.name)
        return [each.name for each in self.devcloud.admin.identity.application_credentials(user)]


@pytest.fixture
def lab(devcloud: Devcloud, tmp_path: Path) -> Any:
    made = Lab(devcloud, tmp_path)
    yield made
    api.destroy(made.cloud, Spec(made.name, tuple(made.known or [made.project]))).raise_for_failures()
    assert devcloud.admin.identity.find_user(made.name) is None
    assert devcloud.admin.identity.find_project(made.name) is None


def test_a_user_logs_in_by_the_entry_written_for_it(lab: Lab) -> None:
    lab.path.write_text("clouds:\n  theirs: {}  # not ours\n")
    entry = CloudsEntry(path=str(lab.path), cloud=lab.name, user=lab.name, project=lab.name)
    env = EnvFile(path=str(lab.folder / "env"), cloud=lab.name)
    lab.apply(entry, env)
    assert lab.path.read_text().startswith("clouds:\n  theirs: {}  # not ours\n")
    assert lab.connect(lab.name).current_project.name == lab.name
    script = ". ./env && exec openstack token issue -f value -c project_id"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    out = subprocess.check_output(["sh", "-c", script], cwd=lab.folder, env={"PATH": path}, text=True)
    assert out.strip() == lab.devcloud.admin.identity.find_project(lab.name).id


def test_a_password_changed_behind_our_back_is_drift(lab: Lab) -> None:
    entry = CloudsEntry(path=str(lab.path), cloud=lab.name, user=lab.name, project=lab.name)
    lab.apply(entry)
    user = lab.devcloud.admin.identity.find_user(lab.name)
    lab.devcloud.admin.identity.update_user(user, password="another")
    mark = lab.devcloud.mark()
    plan = api.plan(lab.cloud, lab.spec(entry))
    assert [(str(step.key), [change.field for change in step.changes]) for step in plan.pending] == [
        (f"user/{lab.name}", ["password"])
    ]
    logins = [each for each in lab.devcloud.requests_since(mark) if each.path.endswith("/auth/tokens")]
    assert [each.status for each in logins if each.status != 201] == [401]
    assert lab.apply(entry)["user"] == "update"
    lab.connect(lab.name)


def test_a_new_password_in_the_spec_reaches_cloud_and_file(lab: Lab) -> None:
    entry = CloudsEntry(path=str(lab.path), cloud=lab.name, user=lab.name, project=lab.name)
    lab.apply(entry)
    assert lab.apply(entry, user=lab.user("second"))["clouds_entry"] == "update"
    lab.connect(lab.name)


def test_fields_of_a_user(lab: Lab) -> None:
    fields = {"email": "ocp@example.org", "description": "a robot", "default_project": lab.name}
    lab.apply(user=lab.user(**fields))
    lab.apply(user=lab.user(**fields | {"email": "other@example.org", "description": "the robot"}))
    user = lab.devcloud.admin.identity.find_user(lab.name)
    assert user.email == "other@example.org"
    home = lab.devcloud.admin.identity.find_project(lab.name).id
    assert user.description == f"the robot [openstack-prep:{lab.name}/{lab.name}@{home}]"
    lab.apply(user=lab.user(enabled=False), roles=("member",))
    login = lab.cloud.as_user(username=lab.name, password=Secret("first"), user_domain="Default")
    with pytest.raises(NotAllowed):
        login.authenticate()


def test_role_assignments_of_every_sort(lab: Lab) -> None:
    group = lab.devcloud.admin.identity.create_group(name=f"{lab.name}-ops", domain_id="default")
    more = [
        RoleAssignment(role="reader", group=group.name, project=lab.name),
        RoleAssignment(role="reader", user=lab.name, domain="Default"),
        RoleAssignment(role="reader", user=lab.name, domain="Default", inherited=True),
        RoleAssignment(role="reader", group=group.name, project=lab.name, inherited=True),
        RoleAssignment(role="admin", user="admin", project=lab.name),
    ]
    lab.apply(*more)
    project = lab.devcloud.admin.identity.find_project(lab.name)
    listed = list(lab.devcloud.admin.identity.role_assignments(scope_project_id=project.id))
    assert len(listed) == 4
    user = lab.devcloud.admin.identity.find_user(lab.name)
    lab.devcloud.admin.identity.unassign_project_role_from_user(
        project, user, lab.devcloud.admin.identity.find_role("member")
    )
    assert lab.apply(*more)["role_assignment"] in ("create", "keep")
    wrong = lab.spec(RoleAssignment(role="reder", user=lab.name, project=lab.name))
    assert "did you mean reader?" in str(api.plan(lab.cloud, wrong).refusals[0])
    lab.spec(*more)
    lab.devcloud.admin.identity.delete_group(group)


def test_an_application_credential_from_first_to_last(lab: Lab) -> None:
    rules = (AccessRule(method="GET", service="compute", path="/v2.1/flavors"),)
    lab.apply(lab.credential(roles=("member",), lifetime=30, renew_before=7))
    first = lab.connect("app")
    assert first.current_project_id == lab.devcloud.admin.identity.find_project(lab.name).id
    list(first.network.networks())
    changed = lab.apply(lab.credential(roles=("member",), access_rules=rules), consent=True)
    assert changed["application_credential"] == "update"
    assert lab.credentials() == ["app-new"]
    second = lab.connect("app")
    path = f"/users/{second.current_user_id}/application_credentials"
    (held,) = lab.devcloud.admin.identity.get(path).json()["application_credentials"]
    assert [(rule["service"], rule["path"]) for rule in held["access_rules"]] == [("compute", "/v2.1/flavors")]
    with pytest.raises(openstack.exceptions.HttpException):
        list(second.network.networks())
    lab.apply(lab.credential(roles=("reader",)), consent=True)
    assert lab.credentials() == ["app"]
    lab.path.unlink()  # nobody knows the secret any more
    with pytest.raises(PlanRefused, match="a running cluster may depend on it"):
        lab.apply(lab.credential(roles=("reader",)))
    assert lab.apply(lab.credential(roles=("reader",)), consent=True)["application_credential"] == "update"
    assert lab.credentials() == ["app"]
    lab.connect("app")


def test_a_credential_that_has_ended_is_renewed(lab: Lab) -> None:
    lab.apply()
    ends = datetime.now(UTC) + timedelta(seconds=5)
    api.apply(lab.cloud, lab.spec(lab.credential(expires_at=ends.isoformat()))).raise_for_failures()
    time.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()))
    with pytest.raises(openstack.exceptions.SDKException, match="401"):
        lab.connect("app")
    assert "secret (ended 20" in str(api.plan(lab.cloud, lab.spec(lab.credential())))
    lab.apply(lab.credential())
    assert lab.credentials() == ["app-new"]
    lab.connect("app")


def test_a_spec_in_another_folder_takes_no_cluster_its_credential(prep: Prep) -> None:
    name = f"copied{secrets.token_hex(3)}"
    spec: dict[str, Any] = {"name": name, "project": {"name": name}}
    spec["users"] = [{"name": name, "password": {"generate": "user.password"}}]
    spec["role_assignments"] = [{"user": name, "role": "member"}, {"user": name, "role": "swiftoperator"}]
    spec["object_store"] = {"temp_url_key": {"generate": "temp-url.key"}}
    spec["application_credentials"] = [{"name": "app", "clouds_yaml": "clouds.yaml", "cloud": "app"}]
    prep.write(spec)
    prep.apply()
    copied, kept = Prep(prep.folder / "other", prep.environment), prep.folder / "kept.plan"
    copied.folder.mkdir()
    copied.write(spec)
    said = copied.run("apply", "--yes", copied.spec.name, code=2).stderr
    assert f"its password would be replaced, because {copied.folder}/user.password does not exist" in said
    (copied.folder / "user.password").write_bytes((prep.folder / "user.password").read_bytes())  # or Swift is not read
    said = copied.run("apply", "--yes", copied.spec.name, code=2).stderr
    assert f"its temp_url_key would be replaced, because {copied.folder}/temp-url.key does not exist" in said
    (copied.folder / "user.password").unlink()
    missing = f"would be deleted because its secret is missing from {copied.folder}/clouds.yaml"
    assert f"{missing}, and a running cluster may depend on it" in said
    assert [each.name for each in copied.folder.iterdir()] == [copied.spec.name]
    assert prep.changes() == set()
    copied.run("plan", "--allow-replace", "-o", str(kept), copied.spec.name)
    said = copied.run("apply", "--yes", "--plan", str(kept), code=1).stdout  # the user had no login for Swift before
    assert f"its temp_url_key would be replaced, because {copied.folder}/temp-url.key does not exist" in said
    copied.run("plan", "--allow-replace", "-o", str(kept), copied.spec.name)
    copied.run("apply", "--yes", "--plan", str(kept))
    assert copied.changes() == set()
    for file in ("user.password", "temp-url.key", "clouds.yaml"):
        (prep.folder / file).write_text((copied.folder / file).read_text())
    assert prep.changes() == set()


def test_a_lost_answer_leaves_one_credential(lab: Lab) -> None:
    with lab.devcloud.faults(
        Fault("keystone", method="POST", path_regex="/application_credentials$", drop_answer=True)
    ):
        lab.apply(lab.credential())
    assert lab.credentials() == ["app"]
    lab.connect("app")


def test_killed_between_credential_and_file(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.apply(lab.credential())
    put, puts = clouds_yaml.put, iter(["what a killed run may leave", "the new credential"])

    def die(*given: Any) -> None:
        if next(puts) == "the new credential":
            raise KeyboardInterrupt
        put(*given)

    with monkeypatch.context() as patch:
        patch.setattr(clouds_yaml, "put", die)
        with pytest.raises(KeyboardInterrupt):
            api.apply(lab.cloud, lab.spec(lab.credential(description="new")), allow_replace=True)
    assert sorted(lab.credentials()) == ["app", "app-new"]
    new = lab.spec(lab.credential(description="new"))
    lease.unlock(api.look_for_lease(lab.cloud, new))  # test_lease.py waits until it ends by itself
    lab.apply(lab.credential(description="new"), consent=True)
    assert lab.credentials() == ["app-new"]
    lab.connect("app")


def test_a_keypair_belongs_to_its_user(lab: Lab) -> None:
    keypair = Keypair(name="key", public_key=f"{KEY} me@here", project=lab.name)
    entry = CloudsEntry(path=str(lab.path), cloud=lab.name, user=lab.name, project=lab.name)
    lab.apply(keypair, entry)
    (seen,) = lab.connect(lab.name).compute.keypairs()
    home = lab.devcloud.admin.identity.find_project(lab.name).id
    tags = f"openstack-prep:{lab.name}~{home} openstack-prep:{lab.name}/key"
    assert (seen.name, seen.public_key) == ("key", f"{KEY} me@here {tags}")
    other = Keypair(name="key", public_key=KEY.replace("FlqgB", "FlqgC"), project=lab.name)
    plan = api.plan(lab.cloud, lab.spec(other, entry))
    assert [step.action.value for step in plan.pending] == ["replace"]
    assert plan.refusals
    api.apply(lab.cloud, plan.wanted, allow_replace=True).raise_for_failures()
    assert not api.plan(lab.cloud, lab.spec(other, entry))


def test_a_user_of_others_keeps_its_password(lab: Lab) -> None:
    lab.apply()
    theirs = lab.devcloud.admin.identity.create_user(name=f"{lab.name}-x", password="theirs", domain_id="default")
    plan = api.plan(lab.cloud, lab.spec(User(name=theirs.name, password=Secret("mine"))))
    assert "is not managed by this spec" in str(plan.refusals[0])
    api.destroy(lab.cloud, plan.wanted).raise_for_failures()
    assert lab.devcloud.admin.identity.find_user(theirs.name)
    lab.devcloud.admin.identity.delete_user(theirs)


def test_an_unreadable_clouds_yaml_is_told_and_left(lab: Lab) -> None:
    lab.path.write_text("clouds: [\n")
    with pytest.raises(Exception, match=r"clouds\.yaml:2: is not YAML"):
        api.plan(lab.cloud, lab.spec(lab.credential()))
    lab.path.unlink()


def test_an_unassigned_role_is_a_clear_error(lab: Lab) -> None:
    lab.apply()
    with pytest.raises(PlanRefused, match="does not have the role admin"):
        api.apply(lab.cloud, lab.spec(lab.credential(roles=("admin",))))
    assert not lab.path.exists()
