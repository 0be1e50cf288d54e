"""The project's account in the object store, on the real Swift."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from typing import Any

import pytest
import requests

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import NotAllowed, PlanRefused, SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.storage.object_store import ObjectStore
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.lab import Lab


@pytest.fixture
def cloud(tenant: Tenant) -> Cloud:
    return Cloud(tenant.connect())


def store(**fields: Any) -> Spec:
    return Spec("lab", (ObjectStore(**fields),))


def temporary(cloud: Cloud, key: str) -> int:
    """Return how Swift answers to a temporary URL signed with a key."""
    until = int(time.time() + 60)
    path = cloud.object_store.endpoint[cloud.object_store.endpoint.index("/v1/") :].rstrip("/") + "/box/thing"
    sign = hmac.new(key.encode(), f"GET\n{until}\n{path}".encode(), hashlib.sha256).hexdigest()
    url = cloud.object_store.endpoint.rstrip("/") + f"/box/thing?temp_url_sig={sign}&temp_url_expires={until}"
    return requests.get(url, timeout=60).status_code


def test_keys_sign_temporary_urls(cloud: Cloud) -> None:
    cloud.object_store.request("PUT", "/box")
    cloud.object_store.request("PUT", "/box/thing", data=b"x")
    spec = store(temp_url_key=Secret("k1"), temp_url_key_2=Secret("k2"), metadata={"Owner": "me"})
    api.apply(cloud, spec).raise_for_failures()
    assert not api.plan(cloud, spec)
    assert [temporary(cloud, key) for key in ("k1", "k2", "k3")] == [200, 200, 401]
    newer = store(temp_url_key=Secret("k3"), temp_url_key_2=Secret("k2"), metadata={"owner": "you"})
    plan = api.plan(cloud, newer)
    assert [change.field for step in plan for change in step.changes] == ["temp_url_key", "metadata"]
    api.apply(cloud, newer).raise_for_failures()
    assert not api.plan(cloud, newer)
    assert temporary(cloud, "k3") == 200
    api.destroy(cloud, newer).raise_for_failures()
    headers = cloud.object_store.request("HEAD", "").headers
    assert not [name for name in headers if name.lower().startswith("x-account-meta")]


def test_a_key_that_somebody_else_has_set_stays(cloud: Cloud) -> None:
    """By hand, or by another spec: what it has signed is in use."""
    cloud.object_store.request("PUT", "/box")
    cloud.object_store.request("PUT", "/box/thing", data=b"x")
    cloud.object_store.request("POST", "", headers={"X-Account-Meta-Temp-URL-Key": "by-hand"})
    ours = store(temp_url_key=Secret("ours"))
    with pytest.raises(PlanRefused) as caught:
        api.apply(cloud, ours)
    assert [each.code for each in caught.value.mistakes] == [Code.PLAN_LOSES]
    assert [temporary(cloud, key) for key in ("by-hand", "ours")] == [200, 401]
    api.apply(cloud, ours, allow_replace=True).raise_for_failures()
    cloud.object_store.request("POST", "", headers={"X-Account-Meta-Temp-URL-Key": ""})
    api.apply(cloud, ours).raise_for_failures()
    with pytest.raises(PlanRefused):
        api.apply(cloud, Spec("another", (ObjectStore(temp_url_key=Secret("theirs")),)))
    assert [temporary(cloud, key) for key in ("ours", "theirs")] == [200, 401]


def test_a_key_in_use_outlives_a_time_without_the_role(prep: Prep, devcloud: Devcloud) -> None:
    """The same apply gives the role again, in a checkout without the file of the key."""
    name = f"key{secrets.token_hex(3)}"
    prep.write(
        {
            "name": name,
            "project": {"name": name},
            "users": [{"name": name, "password": {"generate": "password"}}],
            "role_assignments": [{"user": name, "role": role} for role in ("member", "swiftoperator")],
            "object_store": {"temp_url_key": {"generate": "key"}},
        }
    )
    prep.apply()
    identity, key = devcloud.admin.identity, prep.folder / "key"
    user, project = (find(name, ignore_missing=False) for find in (identity.find_user, identity.find_project))
    role = identity.find_role("swiftoperator")
    identity.unassign_project_role_from_user(project, user, role)
    before = key.read_bytes()
    key.unlink()
    said = prep.run("apply", "--yes", prep.spec.name, code=1).stdout
    assert "its temp_url_key would be replaced" in said
    key.write_bytes(before)
    assert prep.changes() == set()


@pytest.mark.parametrize("name", ["Temp-URL-Key", pytest.param("temp_url_key-2", marks=pytest.mark.more)])
def test_the_current_key_is_shown_nowhere(prep: Prep, tenant: Tenant, name: str) -> None:
    """A plan that reads the key back as metadata would print it."""
    cloud = Cloud(tenant.connect())
    cloud.object_store.request("POST", "", headers={"X-Account-Meta-Temp-URL-Key": "the-current-key"})
    prep.spec.write_text(f"name: lab\nobject_store:\n  metadata:\n    {name}: mine\n")
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    for words in (["plan", "-o", "kept.plan"], ["plan", "--format", "json"], ["apply", "--yes", "--debug"]):
        said = prep.run(*words, prep.spec.name, code=2)
        assert f"spec.yaml:4: object_store.metadata.{name}:" in said.stderr
        assert "the-current-key" not in said.stdout + said.stderr
    prep.spec.unlink()
    with pytest.raises(SpecError) as raised:
        api.plan(cloud, store(metadata={name: "mine"}))
    assert f"metadata.{name}" in str(raised.value)
    assert "the-current-key" not in str(raised.value)


def test_a_quota_is_a_resellers_to_set(cloud: Cloud, tenant: Tenant, devcloud: Devcloud) -> None:
    report = api.apply(cloud, store(quota_bytes=1000))
    assert isinstance(report.failed[0].error, NotAllowed)
    assert "ResellerAdmin" in str(report.failed[0].error)
    identity = devcloud.admin.identity
    role = identity.find_role("ResellerAdmin") or identity.create_role(name="ResellerAdmin")
    identity.assign_project_role_to_user(tenant.project_id, tenant.user_id, role)
    reseller = Cloud(tenant.connect())
    api.apply(reseller, store(quota_bytes=1000)).raise_for_failures()
    assert not api.plan(cloud, store(quota_bytes=1000))
    api.destroy(reseller, store(quota_bytes=1000)).raise_for_failures()


def test_a_project_with_containers_stays(lab: Lab) -> None:
    """Swift would keep them, and nobody could list them any more."""
    lab.apply(RoleAssignment(role="swiftoperator", user=lab.name, project=lab.name))
    user = lab.as_user()
    user.object_store.request("PUT", "/backups")
    with pytest.raises(PlanRefused) as refused:
        lab.destroy()
    assert [(each.code, each.keys) for each in refused.value.mistakes] == [(Code.STILL_USED, (lab.project.key,))]
    assert re.search(r"container/[0-9a-f]{32}/backups", str(refused.value))
    user.object_store.delete("/backups")
    assert str(lab.project.key) in lab.destroy()
