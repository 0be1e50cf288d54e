from __future__ import annotations

import hashlib
import json
import runpy
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Context, Key, Observed
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.heat.package import SECRETS_IMAGE
from openstack_prep.resources.heat.stacks import HeatStack
from openstack_prep.resources.image.glance import ImageRecord
from openstack_prep.resources.image.image import Family
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.resources.orchestration.secrets import GENERATED, SecretsImage, placeholder
from openstack_prep.resources.orchestration.stack import Stack
from tests.unit.texts import Wording, contains

HEAT = "http://heat/v1/admin-project"
PROGRAM = Path(__file__).parents[4] / "heat_templates" / "rke2-secrets.py"
GIVEN = {
    "server_image": "i",
    "agent_image": "i",
    "server_flavor": "f",
    "agent_flavor": "f",
    "key_name": "k",
    "network": "n",
    "subnet": "n",
}
SECRETS = {
    "token": Secret("T0kenOfTheCluster123"),
    "etcd_s3_secret_key": Secret('a "quoted" \\ key\u00e9'),
    "registries": Secret('{"configs": {"r": {"auth": {"password": "p:#"}}}}'),
}


def _never() -> str:
    raise AssertionError("nobody may fetch this secret")


NEVER = Secret(fetch=_never)


def resolve(run: CloudRun, *more: Any, **fields: Any) -> tuple[Stack, dict[str, SecretsImage]]:
    default = {"template": "shipped:rke2-cluster.yaml", "secret_parameters": SECRETS}
    stack = Stack(name="c1", **default | fields)
    first, *images = stack.resolve(Context(resources=[*more, stack], cloud=run.admin, for_apply=True))
    assert isinstance(first, Stack)
    return first, {each.name: each for each in images if isinstance(each, SecretsImage)}


def test_heat_gets_placeholders_and_images_get_values(run: CloudRun) -> None:
    """Servers get all secrets, agents what reaches them; the placeholders satisfy the template."""
    stack, images = resolve(run, parameters=GIVEN)
    assert {name: [*each.secrets] for name, each in images.items()} == {
        "c1-server-secrets": ["etcd_s3_secret_key", "registries", "token"],
        "c1-agent-secrets": ["registries", "token"],
    }
    body, secrets = stack.body(())
    sent = json.dumps(body)
    assert secrets == []
    assert not [each for each in ("T0ken", "quoted", "p:#") if each in sent]
    parameters = body["environment"]["parameters"]
    assert (parameters["server_secrets"], parameters["agent_secrets"]) == tuple(images)
    assert parameters["token"] == placeholder("token", "string")
    assert parameters["token"].isalnum()
    assert isinstance(json.loads(parameters["registries"]), dict)
    assert list(stack.mistakes()) == []
    assert {each.key for each in images.values()} <= set(stack.needs())
    assert stack.body((), absent=["server_secrets"])[0]["environment"]["parameters"]["server_secrets"] == ""


def test_agents_get_their_own_token(run: CloudRun) -> None:
    """With agent_token, the image of agents lacks the servers' token."""
    _, images = resolve(run, secret_parameters=SECRETS | {"agent_token": Secret("T0kenOfTheAgents1234")})
    assert {name: [*each.secrets] for name, each in images.items()} == {
        "c1-server-secrets": ["agent_token", "etcd_s3_secret_key", "registries", "token"],
        "c1-agent-secrets": ["agent_token", "registries"],
    }
    assert b"T0kenOfTheCluster123" not in images["c1-agent-secrets"].content()


def test_nodes_read_the_values(run: CloudRun, tmp_path: Path) -> None:
    """The program of the nodes puts the values into JSON, with the file's mode, and stops at the end of the content."""
    stack, images = resolve(run)
    content = images["c1-server-secrets"].content()
    disk, file = tmp_path / "disk", tmp_path / "config.yaml"
    disk.write_bytes(content + b"left of others" * 9)
    functions = runpy.run_path(str(PROGRAM))
    values = functions["read"](str(disk))
    parameters = stack.body(())[0]["environment"]["parameters"]
    file.write_text(json.dumps({"token": parameters["token"], "key": "<" + parameters["etcd_s3_secret_key"] + ">"}))
    functions["fill"](str(file), values)
    assert json.loads(file.read_text()) == {"token": "T0kenOfTheCluster123", "key": '<a "quoted" \\ key\u00e9>'}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(json.dumps(json.loads(parameters["registries"])))
    functions["fill"](str(file), values)
    assert json.loads(file.read_text()) == json.loads(SECRETS["registries"].reveal())
    disk.write_bytes(b"another disk\n")
    with pytest.raises(SystemExit, match="has no secrets"):
        functions["read"](str(disk))


def test_equal_secrets_are_an_equal_image(run: CloudRun) -> None:
    """Only the content shows a change; its size does not tell how long a secret is; clusters have different ones."""
    first, again = (resolve(run)[1]["c1-server-secrets"] for _ in range(2))
    other = resolve(run, secret_parameters=SECRETS | {"token": Secret("An0therTokenOfTheCluster")})[1]
    assert first.checksum == again.checksum == f"sha256:{hashlib.sha256(first.content()).hexdigest()}"
    assert first.checksum != other["c1-server-secrets"].checksum
    assert len(first.content()) == len(other["c1-server-secrets"].content()) == 1 << 16
    assert b"T0kenOfTheCluster123" in first.content()
    assert "T0ken" not in repr(first) + str(first.desired())


def test_an_image_of_the_users_own_is_left_to_them(run: CloudRun) -> None:
    stack, images = resolve(run, parameters={"server_secrets": ""})
    assert [*images] == ["c1-agent-secrets"]
    assert [*stack.secrets_for_heat] == ["etcd_s3_secret_key"]


def test_placeholders_of_servers_without_an_image_are_refused(run: CloudRun) -> None:
    """The agents' image holds the token, which the servers would take as it is."""
    stack, _ = resolve(run, parameters=GIVEN | {"server_secrets": ""})
    assert {each.parameter for each in stack.mistakes()} == {"registries", "token"}
    for own in ({"server_secrets": "", "agent_secrets": ""}, {"server_secrets": "an-image-of-my-own"}):
        assert list(resolve(run, parameters=GIVEN | own)[0].mistakes()) == []


DATABASE = """
heat_template_version: 2018-08-31
parameters:
  image: {type: string, tags: [openstack-prep-secrets-image], default: ""}
  password: {type: string, hidden: true}
  pin: {type: string, hidden: true, constraints: [{length: {max: 32}, description: short}]}
  only_there: {type: string, hidden: true}
resources:
  node:
    type: OS::Nova::Server
    properties:
      block_device_mapping_v2: [{image: {get_param: image}}]
      user_data: {list_join: [" ", [{get_param: password}, {get_param: pin}]]}
  db: {type: "OS::Trove::Instance", properties: {users: [{password: {get_param: password}}]}}
  other: {type: "OS::Trove::Instance", properties: {users: [{password: {get_param: only_there}}]}}
"""


def test_a_placeholder_never_becomes_a_password(run: CloudRun, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(DATABASE)
    given = dict.fromkeys(("password", "pin", "only_there"), Secret("v"))
    fields: dict[str, Any] = {"template": str(tmp_path / "own.yaml"), "secret_parameters": given}
    stack, images = resolve(run, **fields)
    assert [*images["c1-image"].secrets] == ["password", "pin"]
    password, pin = stack.mistakes()
    assert (password.parameter, pin.parameter) == ("password", "pin")
    assert "resources.db.properties.users[0].password" in password.what
    assert "short" in pin.what
    assert 'image: ""' in password.fix
    assert list(resolve(run, **fields, parameters={"image": ""})[0].mistakes()) == []


def test_no_secrets_no_image(run: CloudRun) -> None:
    stack, images = resolve(run, secret_parameters=None)
    assert images == {}
    assert "server_secrets" not in stack.body(())[0]["environment"]["parameters"]


def test_a_secret_that_the_same_apply_writes(run: CloudRun, tmp_path: Path) -> None:
    """The image waits for the credential, and has no checksum before."""
    credential = ApplicationCredential(name="c", clouds_yaml=str(tmp_path / "clouds.yaml"), cloud="c")
    given = {"cloud_credentials": from_spec({"content": "clouds.yaml"}, base=tmp_path)}
    _, images = resolve(run, credential, secret_parameters=given)
    (image,) = images.values()
    assert image.checksum is None
    assert credential.key in set(image.needs())


def test_an_image_of_somebody_else_is_not_used(services: requests_mock.Mocker, run: CloudRun) -> None:
    image = resolve(run)[1]["c1-agent-secrets"]
    record = ImageRecord(id="i1", status="active", visibility="private", name="c1-agent-secrets")
    foreign, own = (Observed(id="i1", ours=ours, record=Family(record, (record,))) for ours in (False, True))
    assert [each.code for each in image.check(run, foreign)] == ["plan.foreign"]
    assert list(image.check(run, own)) == list(image.check(run, None)) == []
    assert image.key == Key("image", "c1-agent-secrets")


OWN = """
heat_template_version: 2018-08-31
parameters:
  password: {type: string, hidden: true}
  plain: {type: string}
  compared: {type: string, hidden: true}
  unused: {type: string, hidden: true}
conditions:
  has: {equals: [{get_param: compared}, ""]}
resources:
  value: {type: "OS::Heat::Value", properties: {value: {if: [has, {get_param: unused}, {get_param: password}]}}}
  node:
    type: OS::Nova::Server
    properties: {flavor: f, user_data: {str_replace: {template: "x", params: {x: {get_param: password}}}}}
outputs:
  out: {value: {get_param: plain}}
"""


def test_warnings_of_secrets_that_heat_shows(run: CloudRun, tmp_path: Path, wording: Wording) -> None:
    """One per secret, with its places; a condition that compares it, or a branch that is not taken, shows nothing."""
    (tmp_path / "own.yaml").write_text(OWN)
    names = ("password", "plain", "compared", "unused")
    stack = Stack(name="s", template=str(tmp_path / "own.yaml"), secret_parameters=dict.fromkeys(names, NEVER))
    password, plain = stack.list_warnings(Context(resources=[stack], cloud=run.admin))
    places = "resources.value.properties.value[0], resources.node.properties.user_data.str_replace.params.x"
    assert contains(password, "password", places)
    assert SECRETS_IMAGE in password
    wording(plain)


@pytest.mark.parametrize(
    ("value", "warned"),
    [
        ({"/etc/app.conf": "user = a\npassword = hunter2hunter2\n"}, True),
        ("[Global]\npassword=hunter2hunter2", True),
        ("https://me:hunter2@mirror.example.com/install.sh", True),
        ({"auth": {"db_password": "short"}}, True),
        (["-----BEGIN PRIVATE KEY-----"], True),
        ({"profile": "cis", "secretName": "tls"}, False),
        ("https://mirror.example.com/install.sh", False),
        (3, False),
    ],
)
def test_warnings_of_visible_parameters_with_secrets(
    run: CloudRun, tmp_path: Path, value: object, warned: bool
) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    stack = Stack(name="s", template=str(tmp_path / "own.yaml"), parameters={"plain": value})
    found = list(stack.list_warnings(Context(resources=[stack], cloud=run.admin)))
    assert [each.startswith("parameter plain ") for each in found] == [True] * warned
    assert "hunter2" not in str(found)


def test_warnings_of_a_shipped_template(run: CloudRun) -> None:
    """Of secrets that a spec gives to Heat itself; none otherwise."""
    tokens = {"token": NEVER, "agent_token": NEVER}

    def warnings(**fields: Any) -> list[str]:
        stack = Stack(name="c1", template="shipped:rke2-cluster.yaml", **fields)
        context = Context(resources=[stack], cloud=run.admin)
        found = list(stack.list_warnings(context))
        assert list(stack.resolve(context)[0].list_warnings(context)) == found
        return found

    assert warnings(secret_parameters=tokens) == []
    off = dict.fromkeys(("server_secrets", "agent_secrets"), "")
    shown = warnings(secret_parameters=tokens, parameters=off)
    assert len(shown) == 2
    assert all(each.endswith("omit server_secrets and agent_secrets") for each in shown)


@pytest.mark.parametrize("asked", [True, False])
def test_the_present_image(run: CloudRun, monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """An image with other secrets will be another one; secrets that nobody has fetched are not fetched for this."""
    given = SECRETS if asked else {"token": NEVER}
    stack = Stack(name="c1", template="shipped:rke2-cluster.yaml", secret_parameters=given)
    _, image, *_ = stack.resolve(Context(resources=[stack], cloud=run.admin, for_apply=asked))
    assert isinstance(image, SecretsImage)

    def exists(checksum: str) -> None:
        properties = {"openstack_prep_sha256": checksum, "openstack_prep": "s", "openstack_prep_id": "i1"}
        record = ImageRecord(id="i1", status="active", visibility="private", name=image.name, properties=properties)
        run.known[image.key] = Observed(id="i1", ours=True, record=Family(record, (record,)))

    exists("0" * 64)
    assert image.find_present(run) == (None if asked else "i1")
    if asked:
        exists(str(image.checksum).removeprefix("sha256:"))
        assert image.find_present(run) == "i1"


def test_secrets_in_use_are_not_generated_a_second_time_unasked(
    run: CloudRun, services: requests_mock.Mocker, tmp_path: Path
) -> None:
    """An image of secrets is new if their files do not exist here, and so are the servers' secrets."""
    token = from_spec({"generate": "token"}, base=tmp_path)
    stack, images = resolve(run, secret_parameters={**SECRETS, "token": token})
    assert {each.desired()["checksum"] for each in images.values()} == {GENERATED}
    there = Observed(id="i", ours=True)
    assert {loss.lost for each in images.values() for loss in each.list_losses(there)} == {("token",)}
    assert not [loss for each in images.values() for loss in each.list_losses(replace(there, ours=False))]
    services.get(f"{HEAT}/stacks/c1/s1/resources", json={"resources": []})
    record = StackRecord(stack=HeatStack(run.admin, "c1", "s1"), status="CREATE_COMPLETE")
    losses = [each.lost for each in stack.list_losses(Observed(id="s1", ours=True, record=record))]
    assert losses == [("secret_parameters.token",)]
    assert [*tmp_path.iterdir()] == []
    token.reveal()
    assert not [*stack.list_losses(Observed(id="s1", ours=True, record=record))]
    assert "checksum" not in images["c1-agent-secrets"].desired()


DISK = """
heat_template_version: 2018-08-31
parameters:
  image: {type: string, tags: [openstack-prep-secrets-image], default: ""}
  password: {type: string, hidden: true}
resources:
  disk: {type: "OS::Cinder::Volume", properties: {size: 1, image: {get_param: image}}}
  node:
    type: OS::Nova::Server
    properties:
      block_device_mapping_v2: [{image: {get_param: image}}]
      user_data: {list_join: ["", [{get_param: password}]]}
"""


@pytest.mark.parametrize(
    ("origin", "effects"),
    [
        ({}, [("disk", "replace")]),  # made of the image with the former secrets
        ({"openstack_prep_id": "new", "image_id": "new"}, []),
        ({"openstack_prep_id": "copied"}, []),  # a copy of the image is no image of this spec
        ({"openstack_prep": "other"}, []),
        ({"openstack_prep_name": "c1-other"}, []),
    ],
)
def test_a_volume_with_former_secrets_is_replaced(
    run: CloudRun, services: requests_mock.Mocker, tmp_path: Path, origin: dict[str, str], effects: list[Any]
) -> None:
    (tmp_path / "own.yaml").write_text(DISK)
    given = {"password": Secret("another one")}
    stack, images = resolve(run, template=str(tmp_path / "own.yaml"), secret_parameters=given)
    (image,) = images.values()
    ours = {"openstack_prep": "lab", "openstack_prep_name": image.name}
    digest = str(image.checksum).removeprefix("sha256:")
    properties = {**ours, "openstack_prep_sha256": digest, "openstack_prep_id": "new"}
    record = ImageRecord(id="new", status="active", visibility="private", name=image.name, properties=properties)
    run.known[image.key] = Observed(id="new", ours=True, record=Family(record, (record,)))

    path, body = f"{HEAT}/stacks/c1/i1", stack.body(())[0]
    row = {"id": "i1", "stack_name": "c1", "stack_status": "CREATE_COMPLETE", "tags": ["openstack-prep:lab"]}
    links = [{"rel": "stack", "href": path}]
    listed = [
        {"resource_name": name, "resource_type": kind, "physical_resource_id": f"{name}-id", "links": links}
        | {"resource_status": "CREATE_COMPLETE"}
        for name, kind in (("disk", "OS::Cinder::Volume"), ("node", "OS::Nova::Server"))
    ]
    server = {"id": "node-id", "status": "ACTIVE", "addresses": {"n": [1]}, "os-extended-volumes:volumes_attached": []}
    made_of = {**ours, "openstack_prep_id": "old", "image_id": "old", **origin}
    services.get(f"{HEAT}/stacks", json={"stacks": [row]})
    services.get(path, json={"stack": row})
    services.get(f"{path}/template", json=body["template"])
    services.get(f"{path}/files", json={})
    services.get(
        f"{path}/environment", json={"parameters": {**body["environment"]["parameters"], "password": "******"}}
    )
    services.get(f"{path}/resources", json={"resources": listed})
    services.get("http://nova/v2.1/servers/detail", json={"servers": [server]})
    volumes = [{"id": "disk-id", "volume_image_metadata": made_of}]
    services.get("http://cinder/v3/volumes/detail", json={"volumes": volumes})
    nothing: dict[str, list[Any]] = {verb: [] for verb in ("unchanged", "updated", "replaced", "added", "deleted")}
    for method in ("PUT", "PATCH"):
        services.register_uri(method, f"{path}/preview", json={"resource_changes": nothing})
    (found,) = Stack.find(run, [stack]).values()
    assert found.values["outdated"] == {f"{place} {place}-id" for place, _ in effects}
    assert [(each.place, each.verb) for each in found.record_as(StackRecord).preview] == effects
