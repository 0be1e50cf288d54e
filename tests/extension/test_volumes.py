"""The package of docs/extending.md: a section, a check and a command of somebody else, on the devcloud."""

from __future__ import annotations

import json
import re
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from openstack.connection import Connection

from tests.devcloud.pytest_devcloud import Devcloud
from tests.extension.conftest import Installed

SPEC: dict[str, Any] = {
    "name": "disks",
    "project": {"name": "disks"},
    "users": [{"name": "disks", "password": {"env": "PREP_PASSWORD"}}],
    "role_assignments": [{"user": "disks", "role": "member"}],
    "quota": {"gigabytes": 100},
    "volumes": [{"name": "data", "size": 1, "description": "of the database"}],
}


def spec(**volume: Any) -> dict[str, Any]:
    return SPEC | {"volumes": [SPEC["volumes"][0] | volume]}


@pytest.fixture
def cinder(prep: Installed, devcloud: Devcloud) -> Iterator[Any]:
    """Cinder for the user of the spec, which has been applied; what a test leaves there is deleted."""
    prep.write(SPEC)
    prep.apply()
    auth = {"auth_url": devcloud.auth_url, "username": "disks", "password": prep.environment["PREP_PASSWORD"]}
    domains = {"user_domain_id": "default", "project_domain_id": "default"}
    connection = Connection(
        auth=auth | domains | {"project_name": "disks"}, region_name=devcloud.admin.config.region_name
    )
    yield connection.block_storage
    cinder = connection.block_storage
    for snapshot in cinder.snapshots():
        cinder.delete_snapshot(snapshot)
    wait_for(lambda: not list(cinder.snapshots()))
    for volume in cinder.volumes():
        cinder.delete_volume(volume)
    wait_for(lambda: not list(cinder.volumes()))


def wait_for(what: Any) -> Any:
    deadline = time.monotonic() + 120
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def test_a_volume_from_creation_to_destroy(prep: Installed, cinder: Any) -> None:
    (volume,) = cinder.volumes()
    assert (volume.name, volume.size, volume.status) == ("data", 1, "available")
    assert volume.metadata == {"openstack_prep": "disks", "openstack_prep_id": volume.id}
    assert not prep.changes()

    cinder.update_volume(volume, description="changed by hand")
    assert prep.changes() == {"volume/data"}
    prep.write(spec(size="2GiB"))
    assert prep.apply()["volume/data"]["action"] == "update"
    grown = cinder.get_volume(volume)
    assert (grown.id, grown.size, grown.description) == (volume.id, 2, "of the database")
    assert not prep.changes()

    prep.write(spec(size=1))
    refused = prep.run("plan", "--format", "json", "spec.yaml", code=2)
    assert [each["code"] for each in json.loads(refused.stdout)["refusals"]] == ["plan.replaces"]
    assert prep.apply("--allow-replace")["volume/data"]["action"] == "replace"
    (replaced,) = cinder.volumes()
    assert (replaced.size, replaced.id != volume.id) == (1, True)

    snapshot = cinder.create_snapshot(volume_id=replaced.id, name="before")
    wait_for(lambda: cinder.get_snapshot(snapshot).status == "available")
    refused = prep.destroy(code=2)
    assert snapshot.id in refused.stderr
    assert "[plan.still-used]" in refused.stderr
    cinder.delete_snapshot(snapshot)
    wait_for(lambda: not list(cinder.snapshots()))
    prep.write({key: value for key, value in SPEC.items() if key != "volumes"})
    assert not prep.changes()
    assert prep.apply("--prune")["volume/data"]["action"] == "delete"
    assert not list(cinder.volumes())


def test_a_server_keeps_its_volume(prep: Installed, cinder: Any, devcloud: Devcloud) -> None:
    (volume,) = cinder.volumes()
    # what Nova asks for when a server gets a volume, without a server
    server_id = str(uuid.uuid4())
    created = devcloud.admin.block_storage.post(
        "/attachments",
        json={
            "attachment": {
                "volume_uuid": volume.id,
                "instance_uuid": server_id,
                "connector": {"host": "h", "initiator": "i"},
            }
        },
        microversion="3.54",
    )
    assert created.ok, created.text
    attachment = created.json()["attachment"]["id"]
    complete = devcloud.admin.block_storage.post(
        f"/attachments/{attachment}/action", json={"os-complete": {}}, microversion="3.54"
    )
    assert complete.ok, complete.text
    assert cinder.get_volume(volume).status == "in-use"
    refused = prep.destroy(code=2).stderr
    assert "[plan.still-used]" in refused
    assert server_id in refused
    prep.write(spec(size=2))
    assert prep.apply()["volume/data"]["action"] == "update"
    assert not prep.changes()
    assert devcloud.admin.block_storage.delete(f"/attachments/{attachment}", microversion="3.54").ok
    wait_for(lambda: cinder.get_volume(volume).status == "available")


def test_a_killed_run_finds_its_volume(prep: Installed, cinder: Any, devcloud: Devcloud) -> None:
    prep.write(SPEC | {"volumes": [*SPEC["volumes"], {"name": "log", "size": 1}]})
    mark = devcloud.mark()
    process = prep.start("apply", "--yes", "spec.yaml")
    wait_for(
        lambda: [each for each in devcloud.requests_since(mark) if (each.method, each.service) == ("POST", "cinder")]
    )
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len([each for each in cinder.volumes() if each.name == "log"]) <= 1
    prep.apply()
    (log,) = (each for each in cinder.volumes() if each.name == "log")
    assert not prep.changes()

    # the moment between the two requests: the tag names no id yet
    cinder.delete_volume_metadata(log, ["openstack_prep_id"])
    steps = json.loads(prep.run("plan", "--format", "json", "spec.yaml").stdout)["steps"]
    (step,) = (each for each in steps if each["action"] != "keep")
    assert (step["resource"], step["action"], step["id"]) == ("volume/log", "update", log.id)
    prep.apply()
    assert cinder.get_volume(log).metadata["openstack_prep_id"] == log.id


def test_a_copy_and_a_stranger_are_not_managed(prep: Installed, cinder: Any, devcloud: Devcloud) -> None:
    """Cinder restores metadata with a backup; this cloud has no backups, so the copy is made as they would be."""
    (volume,) = cinder.volumes()
    copies = [volume.metadata, {"openstack_prep": "disks", "src_backup_id": "b1"}, {}]
    for metadata in copies:
        made = cinder.create_volume(name="data", size=1, metadata=metadata)
        wait_for(lambda made=made: cinder.get_volume(made).status == "available")
    assert not prep.changes()
    drift = json.loads(prep.run("audit", "--format", "json", "spec.yaml", code=0).stdout)["drift"]
    assert drift == []
    prep.write({key: value for key, value in SPEC.items() if key != "volumes"})
    prep.apply("--prune")
    assert len(list(cinder.volumes())) == len(copies)
    drift = json.loads(prep.run("audit", "--format", "json", "spec.yaml", code=1).stdout)["drift"]
    assert [each["code"] for each in drift] == ["unmanaged"] * len(copies)
    prep.write(SPEC)
    assert "[cloud.not-unique]" in prep.run("plan", "spec.yaml", code=2).stderr


def test_a_volume_of_somebody_else(prep: Installed, cinder: Any) -> None:
    stranger = cinder.create_volume(name="given", size=1, metadata={"of": "somebody"})
    wait_for(lambda: cinder.get_volume(stranger).status == "available")
    prep.write(spec(name="given", size=2))
    refused = json.loads(prep.run("plan", "--format", "json", "spec.yaml", code=2).stdout)["refusals"]
    assert [each["code"] for each in refused] == ["plan.adopts"]
    prep.write(spec(name="given", size=2, adopt="permanently"))
    assert prep.apply("--prune")["volume/given"]["action"] == "adopt"
    (adopted,) = cinder.volumes()
    tag = {"openstack_prep": "disks", "openstack_prep_id": stranger.id}
    assert (adopted.id, adopted.size, adopted.metadata) == (stranger.id, 2, {"of": "somebody", **tag})
    assert not prep.changes()


RACE = """
import sys, threading
import openstack_prep as prep
from openstack_prep.base.errors import Overtaken
from openstack_prep.verbs.opening import open_run
from prep_volumes.volume import Volume

spec = prep.load_spec("spec.yaml")
(volume,) = (each for each in spec.resources if isinstance(each, Volume))
start = threading.Barrier(3)

def create():
    _, run = open_run(prep.connect("devcloud-admin"), spec, 2)
    run.find_project_id(volume.owner)
    start.wait()
    try:
        volume.create(run)
    except Overtaken:
        print("overtaken")

threads = [threading.Thread(target=create) for _ in range(3)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


def test_two_runs_at_once(prep: Installed, cinder: Any, devcloud: Devcloud) -> None:
    prep.write(spec(name="shared"))
    runs = [prep.start("apply", "--yes", "spec.yaml") for _ in range(2)]
    for each in runs:
        out, err = each.communicate(timeout=300)
        assert each.returncode == 0, out + err
    assert [each.name for each in cinder.volumes()].count("shared") == 1

    prep.write(spec(name="raced"))  # without the lease, as after `unlock`
    mark = devcloud.mark()
    assert prep.run("-c", RACE, program="python").stdout == "overtaken\n" * 2
    sent = [each for each in devcloud.requests_since(mark) if each.service == "cinder" and each.method == "POST"]
    assert len([each for each in sent if each.path.endswith("/volumes")]) == 3
    assert [each.name for each in cinder.volumes()].count("raced") == 1
    assert not prep.changes()


CHECK = """
import openstack_prep as prep
from prep_volumes.volume import Volume
try:
    prep.plan(prep.connect(), [prep.Quota(gigabytes=3), Volume(name="data", size=4)], name="disks")
except prep.SpecError as error:
    print(*(each.code for each in error.mistakes))
"""


def test_the_check_and_the_codes(prep: Installed) -> None:
    text = yaml.safe_dump(SPEC | {"quota": {"gigabytes": 3}, "volumes": [{"name": "data", "size": 4}]}, sort_keys=False)
    (prep.folder / "wrong.yaml").write_text(text)
    line = text.splitlines().index("  gigabytes: 3") + 1
    (error,) = json.loads(prep.run("validate", "--format", "json", "wrong.yaml", code=2).stdout)["errors"]
    assert error["code"] == "volumes.over-quota"
    assert error["where"].startswith(f"wrong.yaml:{line}")
    assert "[volumes.over-quota]" in prep.run("plan", "wrong.yaml", code=2).stderr
    assert prep.run("-c", CHECK, program="python").stdout == "volumes.over-quota\n"
    explained = json.loads(prep.run("explain", "--format", "json", "volumes.over-quota").stdout)
    assert explained["code"] == "volumes.over-quota"
    schema = json.loads(prep.run("schema").stdout)
    assert schema["$defs"]["Volume"]["properties"]["size"]["description"] == "Size, GiB."


def test_the_command_and_the_export(prep: Installed, cinder: Any) -> None:
    (volume,) = cinder.volumes()
    usage = json.loads(prep.run("volumes", "usage", "--format", "json", "spec.yaml").stdout)
    row = {"name": "data", "id": volume.id, "status": "available", "size": 1, "managed": True}
    assert usage == {"version": 1, "spec": "disks", "gigabytes": 1, "volumes": [row]}
    jsonschema.validate(usage, json.loads(prep.run("schema", "--output").stdout))
    assert "volumes of Cinder" in prep.run("--help").stdout
    assert "data  1 GiB  available" in prep.run("volumes", "usage", "spec.yaml").stdout

    exported = json.loads(prep.run("export", "--project", "disks", "--format", "json").stdout)
    assert exported["spec"]["volumes"] == [
        {"name": "data", "size": 1, "volume_type": "__DEFAULT__", "description": "of the database"}
    ]
    assert not [each for each in exported["left_out"] if "volume" in each]
    (prep.folder / "exported.yaml").write_text(yaml.safe_dump(exported["spec"]))
    plan = json.loads(prep.run("plan", "--format", "json", "exported.yaml").stdout)
    assert not plan["changes_pending"]


PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
DESTROY = 'prep.destroy(cloud, [Volume(name="data", size="10GiB")], name="disks").raise_for_failures()'


def test_the_examples_of_the_page(prep: Installed, devcloud: Devcloud) -> None:
    (example,) = re.findall(r"^```yaml\n# spec.yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (prep.folder / "example.yaml").write_text(example)
    prep.run("validate", "example.yaml")
    (example,) = re.findall(r"^```python\n(import openstack_prep as prep\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    prep.run("-c", example, program="python")
    (volume,) = devcloud.admin.block_storage.volumes(name="data")
    assert volume.size == 10
    prep.run("-c", example + DESTROY, program="python")
    assert not list(devcloud.admin.block_storage.volumes(name="data"))
