"""Plans kept in a file: written, moved, edited, of another spec, by another user, on the real services."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"


@pytest.fixture(name="spec")
def _spec(prep: Prep) -> dict[str, Any]:
    """A spec that reads a password, a public key and an image from files, and writes two files."""
    name = f"saved{secrets.token_hex(3)}"
    spec: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"file": "user.password"}}],
        "role_assignments": [{"user": name, "role": "member"}],
        "images": [{"name": name, "source": "disk.qcow2"}],
        "keypairs": [{"name": name, "public_key": {"file": "key.pub"}}],
        "networks": [{"name": "net"}],
        "clouds_yaml": [{"path": "clouds.yaml", "cloud": name, "user": name}],
        "env_file": {"path": "lab.env", "cloud": name, "kubeconfig": "auth/kubeconfig"},
    }
    (prep.folder / "user.password").write_text("a-password\n")
    (prep.folder / "key.pub").write_text(f"{KEY} me\n")
    prep.write(spec)
    return spec


def nothing_done(prep: Prep) -> bool:
    return set(prep.plan().values()) == {"create"}


def test_it_is_private_and_follows_no_link(prep: Prep, spec: dict[str, Any], tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "kept.plan").symlink_to(victim)
    before = os.umask(0)
    try:
        prep.run("plan", "-o", "kept.plan", "spec.yaml")
    finally:
        os.umask(before)
    assert victim.read_text() == "theirs"
    assert (tmp_path / "kept.plan").lstat().st_mode == 0o100600


def test_with_its_spec_in_another_folder(prep: Prep, spec: dict[str, Any], tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "elsewhere" / "second"
    first.mkdir()
    for name in ("spec.yaml", "user.password", "key.pub", "disk.qcow2"):
        (tmp_path / name).rename(first / name)
    Prep(first, prep.environment).run("plan", "-o", "kept.plan", "spec.yaml")
    text = (first / "kept.plan").read_text()
    assert str(tmp_path) not in text
    assert "./clouds.yaml" in text
    assert "a-password" not in text
    shutil.copytree(first, second)
    shutil.rmtree(first)
    there = Prep(second, prep.environment)
    Prep(tmp_path, prep.environment).run("apply", "--plan", str(second / "kept.plan"))
    assert there.changes() == set()
    assert str(second) in (second / "lab.env").read_text()
    there.destroy()


def test_edited_by_hand(prep: Prep, spec: dict[str, Any], tmp_path: Path) -> None:
    prep.run("plan", "-o", "kept.plan", "spec.yaml")
    content = json.loads((tmp_path / "kept.plan").read_text())
    for edit in (
        {"allow_replace": {"": ""}},
        {"allow_replace": ["network/net"]},
        {"steps": content["steps"] * 2},
        {"steps": []},
        {"spec": {}},
    ):
        (tmp_path / "edited.plan").write_text(json.dumps(content | edit))
        said = prep.run("apply", "--plan", "edited.plan", code=2).stderr
        assert said.startswith("openstack-prep: edited.plan: was edited or damaged: its digest does not match; ")
    assert nothing_done(prep)


def test_of_another_spec(prep: Prep, spec: dict[str, Any], tmp_path: Path) -> None:
    other = f"other{secrets.token_hex(3)}"
    (tmp_path / "other.yaml").write_text(f"name: {other}\nproject: {{name: {other}}}\n")
    prep.run("plan", "-o", "one.plan", "spec.yaml")
    prep.run("plan", "-o", "other.plan", "other.yaml")
    for plan, name in (("one.plan", "other.yaml"), ("other.plan", "spec.yaml")):
        said = prep.run("apply", "--plan", plan, name, code=2).stderr
        assert f"{plan}: was created from spec" in said
        assert f"{name} is a different spec" in said
    assert nothing_done(prep)
    prep.run("apply", "--plan", "other.plan", "other.yaml")
    assert nothing_done(prep)
    prep.run("destroy", "--yes", "other.yaml")


def test_files_that_change_are_noticed_by_name(prep: Prep, spec: dict[str, Any], tmp_path: Path) -> None:
    prep.run("plan", "-o", "kept.plan", "spec.yaml")
    before = {name: (tmp_path / name).read_bytes() for name in ("user.password", "key.pub", "disk.qcow2")}
    changed = {"user.password": b"another-pw\n", "key.pub": f"{KEY} you\n".encode(), "disk.qcow2": qcow2(2)}
    for name, content in changed.items():
        times = (tmp_path / name).stat()
        (tmp_path / name).write_bytes(content)
        said = prep.run("apply", "--plan", "kept.plan", code=2).stderr
        assert f"kept.plan: {tmp_path / name}: this file has changed since the plan was created" in said
        (tmp_path / name).write_bytes(before[name])
        os.utime(tmp_path / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert nothing_done(prep)
    prep.run("apply", "--plan", "kept.plan")
    assert prep.changes() == set()


def test_a_retried_job_succeeds(prep: Prep, spec: dict[str, Any], devcloud: Devcloud, tmp_path: Path) -> None:
    """Nothing is left to do in the same folder; in a fresh checkout the files are written; a drift is refused."""
    prep.run("plan", "-o", "kept.plan", "spec.yaml")
    prep.run("apply", "--plan", "kept.plan")
    report = json.loads(prep.run("apply", "--plan", "kept.plan", "--format", "json").stdout)
    assert {each["action"] for each in report["steps"]} == {"keep"}
    written = {name: (tmp_path / name).read_bytes() for name in ("clouds.yaml", "lab.env")}
    for name in written:
        (tmp_path / name).unlink()
    prep.run("apply", "--plan", "kept.plan")
    assert {name: (tmp_path / name).read_bytes() for name in written} == written
    (tmp_path / "lab.env").unlink()
    project = devcloud.admin.identity.find_project(spec["name"]).id
    devcloud.admin.network.delete_network(devcloud.admin.network.find_network("net", project_id=project))
    prep.run("apply", "--plan", "kept.plan", code=2)
    assert prep.changes() == {"network/net", "env_file/lab.env"}


def test_another_project_behind_the_same_entry(
    prep: Prep, spec: dict[str, Any], tenant: Tenant, devcloud: Devcloud, tmp_path: Path
) -> None:
    prep.run("plan", "-o", "kept.plan", "spec.yaml")
    entries = yaml.safe_load(tenant.clouds_file.read_text())["clouds"]
    (tmp_path / "elsewhere.yaml").write_text(yaml.safe_dump({"clouds": {"devcloud-admin": entries[tenant.cloud]}}))
    there = Prep(tmp_path, prep.environment | {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "elsewhere.yaml")})
    said = there.run("apply", "--plan", "kept.plan", code=2).stderr
    assert "was created for a different cloud or project (entry devcloud-admin): project" in said
    assert f"not {tenant.project_id}" in said
    assert nothing_done(prep)


@pytest.fixture
def colleague(devcloud: Devcloud, tmp_path: Path) -> Iterator[Path]:
    """A clouds.yaml of another administrator of the same project, under another name."""
    identity: Any = devcloud.admin.identity
    name = f"colleague{secrets.token_hex(3)}"
    user = identity.create_user(name=name, password="of-the-colleague", domain_id="default")
    project = devcloud.admin.current_project_id
    identity.assign_project_role_to_user(project, user, identity.find_role("admin"))
    entry = yaml.safe_load(devcloud.clouds_file.read_text())["clouds"]["devcloud-admin"]
    entry["auth"] |= {"username": name, "password": "of-the-colleague"}
    path = tmp_path / "colleague.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"mine": entry}}))
    yield path
    identity.delete_user(user)


def test_made_by_one_user_and_applied_by_another(
    prep: Prep, spec: dict[str, Any], colleague: Path, tmp_path: Path
) -> None:
    prep.run("plan", "-o", "kept.plan", "spec.yaml")
    Prep(tmp_path, prep.environment | {"OS_CLIENT_CONFIG_FILE": str(colleague), "OS_CLOUD": "mine"}).run(
        "apply", "--plan", "kept.plan"
    )
    assert prep.changes() == set()


def test_consent_is_to_what_the_plan_names(prep: Prep, devcloud: Devcloud) -> None:
    one, other = (f"saved{secrets.token_hex(3)}" for _ in range(2))
    spec: dict[str, Any] = {"name": one, "flavors": [{"name": each, "vcpus": 1, "ram": 64} for each in (one, other)]}
    prep.write(spec)
    prep.apply()
    spec["flavors"][0]["ram"] = 128
    prep.write(spec)
    prep.run("plan", "--allow-replace", "-o", "kept.plan", "spec.yaml")
    assert json.loads((prep.folder / "kept.plan").read_text())["allow_replace"] == [f"flavor/{one}"]
    compute: Any = devcloud.admin.compute
    mine = compute.find_flavor(other)
    compute.delete_flavor(mine)
    compute.create_flavor(name=other, vcpus=1, ram=256, disk=0)
    said = prep.run("apply", "--plan", "kept.plan", code=2).stderr
    assert f"flavor/{other}: " in said  # somebody else's by now, which no plan may replace
    assert f"flavor/{one}" not in said
    assert compute.find_flavor(one).ram == 64
    assert compute.find_flavor(other).ram == 256
    compute.delete_flavor(compute.find_flavor(other))
