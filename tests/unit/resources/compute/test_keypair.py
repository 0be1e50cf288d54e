from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.core import executor, planner
from openstack_prep.core.model import Action
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.user import User
from tests.unit.conftest import ADMIN_USER, IDENTITY, declared_mistakes, sent

KEYPAIRS = "http://nova/v2.1/os-keypairs"


def key(seed: int, kind: str = "ssh-ed25519") -> str:
    data = b"".join(struct.pack(">I", len(part)) + part for part in (kind.encode(), bytes([seed]) * 32))
    return f"{kind} {base64.b64encode(data).decode()}"


def listed(name: str, text: str) -> dict[str, Any]:
    return {"keypair": {"name": name, "public_key": text, "fingerprint": "aa:bb", "type": "ssh"}}


def test_a_key_of_ours_is_kept_whatever_its_comment(run: CloudRun, services: requests_mock.Mocker) -> None:
    keys = {"k": "me@home openstack-prep:lab/k", "early": "openstack-prep:lab", "theirs": "me@home"}
    keys |= {"copy": keys["k"], "of another": "openstack-prep:other/of%20another"}
    stands = [listed(name, f"{key(1)} {comment}") for name, comment in keys.items()]
    services.get(KEYPAIRS, json={"keypairs": stands})
    wanted = [Keypair(name=name, public_key=f"{key(1)} other@there") for name in keys]
    found = Keypair.find(run, wanted)
    assert [planner.diff(each, found[each.key]) for each in wanted] == [()] * len(keys)
    assert [each.name for each in wanted if found[each.key].ours] == ["k", "early"]
    assert [each.name for each, seen in Keypair.scan(run, None) if seen.ours] == ["k"]
    assert sent(services) == [f"GET /v2.1/os-keypairs?user_id={ADMIN_USER}"]


def test_another_key_is_a_replacement(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(KEYPAIRS, json={"keypairs": [listed("k", f"{key(1)} openstack-prep:lab")]})
    services.delete(f"{KEYPAIRS}/k", status_code=202)
    services.post(KEYPAIRS, json=listed("k", f"{key(2)} me@here openstack-prep:lab/k"))
    keypair = Keypair(name="k", public_key=f"{key(2)} me@here")
    plan = planner.plan_apply("lab", [keypair], Keypair.find(run, [keypair]))
    assert [step.action for step in plan] == [Action.REPLACE]
    assert plan.refusals
    executor.execute(plan, run).raise_for_failures()
    assert services.last_request.json()["keypair"] == {
        "name": "k",
        "public_key": f"{key(2)} me@here openstack-prep:lab/k",
        "user_id": ADMIN_USER,
    }


def test_who_makes_users_makes_their_keys_before_they_can_log_in(run: CloudRun, services: requests_mock.Mocker) -> None:
    user = {"id": "u1", "name": "ocp", "enabled": True, "description": ""}
    services.get(f"{IDENTITY}/users", json={"users": [user]})
    services.get(KEYPAIRS, json={"keypairs": []})
    services.post(KEYPAIRS, json=listed("k", key(1)))
    actor = Actor(User(name="ocp"), Secret("x"), "Default", Project(name="lab"))
    acting = CloudRun(run.admin, run.ownership, actors={Project(name="lab").key: actor})
    for keypair in (
        Keypair(name="k", public_key=key(1), project="lab"),
        Keypair(name="k", public_key=key(1), user="ocp"),
    ):
        assert not Keypair.find(acting, [keypair])
        keypair.create(acting)
        assert services.last_request.json()["keypair"]["user_id"] == "u1"


def test_the_keys_of_a_user_yet_to_be_made_are_not_asked_for(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{IDENTITY}/users", json={"users": []})
    assert not Keypair.find(run, [Keypair(name="k", public_key=key(1), user="new")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "is a private key"),
        ("ssh-ed25519", "is not an SSH public key"),
        ("ssh-ed25519 AAAA", "is not an SSH public key"),
        (key(1).replace("ssh-ed25519", "ssh-rsa"), "is not an SSH public key"),
        (f"{key(1)}\n{key(2)}", "is not an SSH public key"),
    ],
)
def test_what_is_no_public_key_is_a_mistake(text: str, said: str) -> None:
    (mistake,) = declared_mistakes(Keypair(name="k", public_key=text))
    assert said in mistake.what
    assert "abc" not in str(mistake)
