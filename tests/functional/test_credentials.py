"""Application credentials that follow their user's roles, and their rotation, on the real Keystone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
import yaml

from openstack_prep.base.errors import PlanRefused
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import clouds_yaml, lease
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Resource
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import REVOKED_FOR, User
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, rotation
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep


class Scene:
    """Two projects of the Default domain, and in each a credential of a user of another domain."""

    def __init__(self, devcloud: Devcloud, domain: str, folder: Path) -> None:
        self.devcloud, self.domain, self.folder = devcloud, domain, folder
        self.cloud = Cloud(devcloud.admin)
        self.names = [f"cred{secrets.token_hex(3)}{letter}" for letter in "ab"]

    def spec(self, assigned: tuple[str, ...] = ("member",), **more: Any) -> Spec:
        resources: list[Resource] = [User(name="ops", domain=self.domain, password=Secret("of-the-lab"))]
        for name, given in zip(self.names, (assigned, ("member",)), strict=True):
            inside: dict[str, Any] = {"project": name}
            fields = inside | (more if name == self.names[0] else {})
            resources += [
                Project(name=name),
                *(RoleAssignment(role=role, user="ops", user_domain=self.domain, **inside) for role in given),
                ApplicationCredential(name=name, clouds_yaml=str(self.path), cloud=name, **fields),
            ]
        return Spec(self.names[0], tuple(resources))

    @property
    def path(self) -> Path:
        return self.folder / "clouds.yaml"

    def apply(self, *given: Any, consent: bool = False, **more: Any) -> set[str]:
        spec = self.spec(*given, **more)
        report = api.apply(self.cloud, spec, allow_replace=consent)
        report.raise_for_failures()
        assert not api.plan(self.cloud, spec), str(api.plan(self.cloud, spec))
        return {str(each.step.key).partition("/")[0] for each in report.changed}

    def roles(self, number: int = 0) -> set[str]:
        """Return the roles of a login by the entry that was written."""
        config = openstack.config.OpenStackConfig(config_files=[str(self.path)], load_envvars=False)
        connection = openstack.connection.Connection(config=config.get_one(self.names[number]))
        return set(connection.session.auth.get_access(connection.session).role_names)

    def id(self, number: int = 0) -> str:
        auth = yaml.safe_load(self.path.read_text())["clouds"][self.names[number]]["auth"]
        return str(auth["application_credential_id"])

    @property
    def held(self) -> set[str]:
        identity = self.devcloud.admin.identity
        domain = identity.find_domain(self.domain, ignore_missing=False)
        user = identity.find_user("ops", domain_id=domain.id, ignore_missing=False)
        return {each.id for each in identity.application_credentials(user)}

    def unassign(self, role: str) -> None:
        identity = self.devcloud.admin.identity
        domain = identity.find_domain(self.domain, ignore_missing=False)
        identity.unassign_project_role_from_user(
            identity.find_project(self.names[0]),
            identity.find_user("ops", domain_id=domain.id),
            identity.find_role(role),
        )


@pytest.fixture
def scene(devcloud: Devcloud, tmp_path: Path) -> Iterator[Scene]:
    identity = devcloud.admin.identity
    domain = identity.create_domain(name=f"corp-{secrets.token_hex(3)}")
    made = Scene(devcloud, str(domain.name), tmp_path)
    yield made
    api.destroy(made.cloud, made.spec()).raise_for_failures()
    identity.update_domain(domain, enabled=False)
    identity.delete_domain(domain)


def test_it_follows_the_roles_of_its_user(scene: Scene) -> None:
    scene.apply()
    assert scene.roles() == {"member", "reader"}
    first, other = scene.id(), scene.id(1)
    plan = api.plan(scene.cloud, scene.spec(("member", "admin")))
    assert [step.key.kind for step in plan.pending] == ["role_assignment", "application_credential"]
    refused = rf"\({first}\) of user ops in project .* would be deleted .* roles \(new: admin.*running cluster"
    with pytest.raises(PlanRefused, match=refused):
        scene.apply(("member", "admin"))
    assert scene.held == {first, other}
    assert scene.apply(("member", "admin"), consent=True) == {"role_assignment", "application_credential"}
    assert "admin" in scene.roles()
    assert scene.id(1) == other
    second = scene.id()
    assert scene.held == {second, other} != {first, other}
    scene.unassign("admin")
    assert scene.roles() == {"member", "reader"}  # Keystone keeps the credential, and gives it less
    assert scene.apply(("member",), consent=True) == {"application_credential"}
    assert scene.held == {scene.id(), other}
    assert second not in scene.held


def test_a_group_gives_roles_too(scene: Scene) -> None:
    scene.apply()
    identity = scene.devcloud.admin.identity
    domain = identity.find_domain(scene.domain)
    group = identity.create_group(name=scene.names[0], domain_id=domain.id)
    identity.add_user_to_group(identity.find_user("ops", domain_id=domain.id), group)
    identity.assign_project_role_to_group(identity.find_project(scene.names[0]), group, identity.find_role("admin"))
    assert scene.apply(consent=True) == {"application_credential"}
    assert "admin" in scene.roles()
    identity.delete_group(group)
    time.sleep(REVOKED_FOR)  # tokens of its members that were issued within the same second are revoked, too
    assert scene.apply(consent=True) == {"application_credential"}
    assert scene.roles() == {"member", "reader"}


def test_a_role_that_its_user_has_lost_is_a_mistake(scene: Scene) -> None:
    roles = ("member", "admin")
    scene.apply(roles, roles=("admin",))
    scene.unassign("admin")
    with pytest.raises(PlanRefused, match=r"user .* in project .* does not have the role admin \(has: member, "):
        api.apply(scene.cloud, scene.spec(("member",), roles=("admin",)))
    assert scene.apply(roles, roles=("admin",)) == {"role_assignment"}


def test_a_rotation_whatever_the_drift(scene: Scene) -> None:
    scene.apply()
    first, other = scene.id(), scene.id(1)
    plans = [rotation.plan_rotation(scene.cloud, scene.spec(), credential=scene.names[0]) for _ in range(2)]
    api.apply(scene.cloud, plans[0]).raise_for_failures()
    second = scene.id()
    assert scene.held == {second, other}
    assert second != first
    for agreed in (True, False):  # another run has rotated it since this was planned, so nothing is left to do
        api.apply(scene.cloud, plans[1], agreed=agreed).raise_for_failures()
    assert scene.held == {second, other}
    assert scene.roles() == {"member", "reader"}
    assert not api.plan(scene.cloud, scene.spec())


def test_the_old_one_is_kept_until_its_entry_goes(scene: Scene) -> None:
    scene.apply()
    first = scene.id()
    api.apply(scene.cloud, rotation.plan_rotation(scene.cloud, scene.spec(), keep_old=True)).raise_for_failures()
    assert len(scene.held) == 4
    assert first in scene.held
    assert not api.plan(scene.cloud, scene.spec())
    refused = rotation.plan_rotation(scene.cloud, scene.spec()).refusals
    assert len(refused) == 2
    assert all("is still kept" in str(each) for each in refused)
    for name in scene.names:
        clouds_yaml.drop(scene.path, f"{name}-old")
    assert scene.apply() == {"application_credential"}
    assert scene.held == {scene.id(), scene.id(1)}


def test_a_new_role_comes_by_a_rotation_that_keeps_the_old_one(scene: Scene) -> None:
    scene.apply()
    first, spec = scene.id(), scene.spec(("member", "admin"))
    plan = rotation.plan_rotation(scene.cloud, spec, credential=scene.names[0], keep_old=True)
    assert [step.key.kind for step in plan.pending] == ["role_assignment", "application_credential"]
    api.apply(scene.cloud, plan).raise_for_failures()
    assert "admin" in scene.roles()
    assert first in scene.held
    assert not api.plan(scene.cloud, spec), str(api.plan(scene.cloud, spec))


@pytest.mark.parametrize("after", ["POST", "put"])
def test_a_rotation_killed_in_between(scene: Scene, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    scene.apply()
    put, puts = clouds_yaml.put, iter([False, True])

    def die(*given: Any) -> None:
        switches = next(puts)  # the first one notes in the entry what a killed run may leave
        if not switches or after == "put":
            put(*given)
        if switches:
            raise KeyboardInterrupt

    plan = rotation.plan_rotation(scene.cloud, scene.spec(), credential=scene.names[0])
    with monkeypatch.context() as patch:
        patch.setattr(clouds_yaml, "put", die)
        with pytest.raises(KeyboardInterrupt):
            api.apply(scene.cloud, plan)
    assert len(scene.held) == 3
    assert scene.roles() == {"member", "reader"}
    lease.unlock(api.look_for_lease(scene.cloud, scene.spec()))  # test_lease.py waits until it ends by itself
    scene.apply()
    assert scene.held == {scene.id(), scene.id(1)}


def test_a_folder_with_a_former_credential_takes_none_from_another(scene: Scene) -> None:
    """A restored backup, or a second checkout: the nightly apply there knows no secret of the one in use."""
    scene.apply()
    before = scene.path.read_bytes()
    api.apply(scene.cloud, rotation.plan_rotation(scene.cloud, scene.spec(), keep_old=True)).raise_for_failures()
    newer = scene.held
    scene.path.write_bytes(before)
    with pytest.raises(PlanRefused, match="--allow-replace"):
        api.apply(scene.cloud, scene.spec())
    with pytest.raises(PlanRefused, match="--allow-replace"):
        api.apply(scene.cloud, rotation.plan_rotation(scene.cloud, scene.spec()))
    assert scene.held == newer
    api.apply(scene.cloud, scene.spec(), allow_replace=True).raise_for_failures()
    assert scene.held == {scene.id(), scene.id(1)}


def test_a_checkout_with_the_former_entry_of_a_password_takes_no_credential(prep: Prep, devcloud: Devcloud) -> None:
    """A colleague has moved the entry from the section clouds_yaml to application_credentials meanwhile."""
    name = f"moved{secrets.token_hex(3)}"
    later = with_credential(name)
    entry = {"path": "clouds.yaml", "cloud": "app", "user": name, "project": name}
    former = {key: value for key, value in later.items() if key != "application_credentials"} | {"clouds_yaml": [entry]}
    prep.write(former)
    prep.apply()
    mine = (prep.folder / "clouds.yaml").read_bytes()
    prep.write(later)
    prep.apply("--prune")
    theirs = (prep.folder / "clouds.yaml").read_bytes()
    (prep.folder / "clouds.yaml").write_bytes(mine)  # that of the other checkout
    assert "--allow-replace" in prep.run("plan", prep.spec.name, code=2).stderr
    assert "--allow-replace" in prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    (prep.folder / "clouds.yaml").write_bytes(theirs)
    assert prep.changes() == set()
    prep.write(former)  # back again, the entry with the only secret stays
    assert "plan.foreign" in prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    assert (prep.folder / "clouds.yaml").read_bytes() == theirs


def test_a_password_is_not_generated_again_while_its_user_is_blocked(prep: Prep, devcloud: Devcloud) -> None:
    """A checkout without the file would write another password, and set it once the user may log in again."""
    name = f"lock{secrets.token_hex(3)}"
    prep.write({key: value for key, value in with_credential(name).items() if key != "application_credentials"})
    prep.apply()
    user = devcloud.admin.identity.find_user(name, ignore_missing=False)
    devcloud.admin.identity.update_user(user, is_enabled=False)
    password = prep.folder / "user.password"
    before = password.read_bytes()
    password.unlink()
    assert "user.password does not exist" in prep.run("plan", prep.spec.name, code=2).stderr
    assert not password.exists()
    password.write_bytes(before)
    devcloud.admin.identity.update_user(user, is_enabled=True)
    assert prep.changes() == set()


def with_credential(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"generate": "user.password"}}],
        "role_assignments": [{"user": name, "role": "member"}],
        "application_credentials": [{"name": "app", "clouds_yaml": "clouds.yaml", "cloud": "app"}],
    }


def test_an_entry_whose_auth_url_has_no_version(prep: Prep, devcloud: Devcloud) -> None:
    entries = devcloud.clouds_file.read_text()
    assert "/v3" in entries
    (prep.folder / "admin.yaml").write_text(entries.replace("/v3", ""))
    (prep.folder / "admin.yaml").chmod(0o600)
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "admin.yaml")}
    name = f"nov{secrets.token_hex(3)}"
    prep.write(with_credential(name))
    assert set(prep.apply()) == {str(each) for each in prep.plan()}
    assert prep.changes() == set()
    assert prep.openstack("token", "issue", OS_CLIENT_CONFIG_FILE="clouds.yaml", OS_CLOUD="app")["project_id"]


def test_two_rotations_at_once_by_the_command(prep: Prep, devcloud: Devcloud) -> None:
    name = f"rot{secrets.token_hex(3)}"
    prep.write(with_credential(name))
    prep.apply()
    runs = [prep.start("credential", "rotate", "--yes", prep.spec.name) for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=300)
        assert run.returncode == 0, out + err
        assert "kube-system" in err
    user = devcloud.admin.identity.find_user(name, ignore_missing=False)
    (held,) = devcloud.admin.identity.application_credentials(user)
    auth = yaml.safe_load((prep.folder / "clouds.yaml").read_text())["clouds"]["app"]["auth"]
    assert held.id == auth["application_credential_id"]
    assert prep.changes() == set()
    said = prep.run("credential", "rotate", "--name", "none", prep.spec.name, code=2).stderr
    assert "the spec has no application_credential none; choose one of app" in said


def test_two_specs_with_one_entry_and_one_file_at_once(prep: Prep, devcloud: Devcloud) -> None:
    """One wins, the other fails and loses nothing; both use the password that is in the file."""
    names = [f"two{secrets.token_hex(3)}" for _ in range(2)]
    vault = prep.folder / "vault"
    vault.mkdir()
    (vault / "clouds").write_text("# mine\n")
    for link in ("clouds", "env"):
        (prep.folder / link).symlink_to(vault / link)
    for name in names:
        spec = with_credential(name) | {"env_file": {"path": "env", "cloud": "app"}}
        spec["application_credentials"][0]["clouds_yaml"] = "clouds"
        (prep.folder / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    with devcloud.faults(Fault("keystone", method="POST", path_regex="/projects$", delay=5)):  # after both have planned
        runs = {name: prep.start("apply", "--yes", f"{name}.yaml") for name in names}
        ended = {name: (run.communicate(timeout=300), run.returncode) for name, run in runs.items()}
    (winner,), (loser,) = ([name for name in names if ended[name][1] == code] for code in (0, 1))
    assert f"managed by spec {winner}" in str(ended[loser][0])
    mine = {"OS_CLIENT_CONFIG_FILE": "clouds", "OS_CLOUD": "app"}
    assert prep.openstack("token", "issue", **mine)["user_id"]
    assert "nothing to do" in prep.run("apply", "--yes", f"{winner}.yaml").stdout
    assert "plan.foreign" in prep.run("plan", f"{loser}.yaml", code=2).stderr
    for name in (loser, winner):
        before = (vault / "clouds").read_text()
        prep.run("destroy", "--yes", f"{name}.yaml")
        assert ((vault / "clouds").read_text() == before) is (name == loser)
    assert (prep.folder / "clouds").is_symlink()
    assert [(each.name, each.read_text()) for each in vault.iterdir() if each.name[0] != "."] == [
        ("clouds", "# mine\n")
    ]
