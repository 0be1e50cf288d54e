from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import PlanRefused, ResourceFailed, WaitTimeout
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.plan import Plan
from openstack_prep.resources.image import image_upload
from openstack_prep.resources.image.glance import SEALS
from openstack_prep.resources.image.image import Image
from tests.unit.conftest import failure as refusal
from tests.unit.resources.glance import GLANCE, NEW, OLD, Glance, apply, plan
from tests.unit.texts import Wording, contains

URL = "http://web.test/disk"


def sha512(content: bytes) -> str:
    return f"sha512:{hashlib.sha512(content).hexdigest()}"


@pytest.fixture
def image(services: requests_mock.Mocker, glance: Glance, monkeypatch: pytest.MonkeyPatch) -> Image:
    monkeypatch.setattr(image_upload, "PAUSE", 0.0)
    glance.web = NEW
    services.get(URL, content=NEW)
    return Image(name="rhcos", source=URL, checksum=sha512(NEW), import_method="web-download")


def settle(run: CloudRun, glance: Glance, image: Image) -> dict[str, Any]:
    apply(run, image).raise_for_failures()
    (left,) = glance.images.values()
    assert (left["name"], left["status"]) == ("rhcos", "active")
    assert not plan(run, image)
    return left


def failure(run: CloudRun, image: Image) -> Exception:
    (result,) = apply(run, image).failed
    assert result.error is not None
    return result.error


def refusals(run: CloudRun, image: Image) -> list[str]:
    made: Plan = plan(run, image)
    return [str(each) for each in made.refusals]


def test_it_gets_its_name_when_it_is_verified(run: CloudRun, glance: Glance, image: Image) -> None:
    left = settle(run, glance, replace(image, protected=True))
    assert glance.imports == [{"method": {"name": "web-download", "uri": URL}}]
    assert left[SEALS["sha512"]] == hashlib.sha512(NEW).hexdigest()
    assert left["disk_format"] == "qcow2"
    seals = f"{SEALS['md5']} {SEALS['sha512']} protected"
    assert glance.asked == [
        "create rhcos-new",
        "import rhcos-new",
        f"patch rhcos-new {seals}",
        "patch rhcos-new name",
    ]


@pytest.mark.parametrize("checksum", [None, sha512(NEW), f"md5:{hashlib.md5(NEW).hexdigest()}"])
def test_a_sum_that_glance_makes_will_do(run: CloudRun, glance: Glance, image: Image, checksum: str | None) -> None:
    settle(run, glance, replace(image, checksum=checksum))


def test_another_release(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.web = OLD
    settle(run, glance, replace(image, checksum=sha512(OLD)))
    glance.web, glance.stages = NEW, [{"status": "active"}]
    settle(run, glance, image)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"checksum": sha512(OLD)}, "is qcow2 with sha512 .* instead of .*; correct the checksum"),
        ({"size": 1}, "has 8 bytes instead of 1"),
    ],
)
def test_other_content_is_not_left(
    run: CloudRun, glance: Glance, image: Image, fields: dict[str, Any], message: str
) -> None:
    error = failure(run, replace(image, **fields))
    assert isinstance(error, ResourceFailed)
    with pytest.raises(ResourceFailed, match=message):
        raise error
    assert not glance.images


def test_a_glance_that_makes_other_sums(run: CloudRun, glance: Glance, image: Image, monkeypatch: Any) -> None:
    def fill(made: dict[str, Any], content: bytes) -> None:
        made.update(os_hash_algo="sha256", os_hash_value="0", checksum=None, size=len(content), status="active")

    monkeypatch.setattr(glance, "fill", fill)
    assert "with sha512 none, but sha256 instead of" in str(failure(run, image))
    assert not glance.images


def test_a_glance_that_converts_what_it_imports(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.stages = [{"status": "active", "disk_format": "raw"}]
    wanted = replace(image, checksum=None, disk_format="qcow2")
    assert contains(str(failure(run, wanted)), "raw", "disk_format")
    assert not glance.images
    glance.stages, glance.images = [{"status": "active", "disk_format": "raw"}], {}
    assert settle(run, glance, replace(image, checksum=None))["disk_format"] == "raw"


TASK = {"id": "t1", "status": "failure", "request_id": "req-1", "created_at": "2026-11-21T00:00:00"}


@pytest.mark.parametrize(
    ("stages", "tasks", "said"),
    [
        (
            [{}],
            [TASK | {"message": "404 from http://web.test/disk"}],
            ": 404 from http://web.test/disk (task",
        ),
        ([{"os_glance_failed_import": "file"}], [], "no reason given;"),
        ([{"status": "importing"}, {"status": "queued"}], [TASK | {"message": ""}], "(task t1, request req-1)"),
        ([{"status": "killed"}], [], "no reason given;"),
    ],
)
def test_glances_reason_is_told(
    run: CloudRun, services: Any, glance: Glance, image: Image, stages: list[Any], tasks: list[Any], said: str
) -> None:
    glance.stages, glance.tasks = [*stages], tasks
    error = failure(run, image)
    assert isinstance(error, ResourceFailed)
    assert said in str(error)
    assert not glance.images


def test_one_without_tasks(run: CloudRun, services: requests_mock.Mocker, glance: Glance, image: Image) -> None:
    services.get(f"{GLANCE}/images/i1/tasks", **refusal(404))
    glance.stages = [{}, {"status": "importing"}, {"status": "queued"}]
    assert "no reason given" in str(failure(run, image))


def test_it_is_whole_when_glance_lets_go(run: CloudRun, glance: Glance, image: Image) -> None:
    done = {"os_glance_import_task": "", "os_glance_importing_to_stores": ""}
    glance.stages = [{"status": "active", "os_glance_import_task": "t1"}, {"size": 0}, done | {"size": len(NEW)}]
    settle(run, glance, replace(image, size=len(NEW)))
    assert not glance.stages


def test_the_waiting_ends(run: CloudRun, glance: Glance, image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_upload, "DEADLINE", 0.0)
    glance.stages = [{"status": "importing"}]
    assert isinstance(failure(run, image), WaitTimeout)
    assert not glance.images


def test_an_import_whose_answer_is_lost(run: CloudRun, services: Any, glance: Glance, image: Image) -> None:
    services.post(f"{GLANCE}/images/i1/import", status_code=502)
    settle(run, glance, image)
    assert glance.asked[:3] == ["create rhcos-new", "create rhcos-new", "import rhcos-new"]


@pytest.mark.parametrize("fields", [{"status": "queued"}, {"status": "importing"}, {"status": "active"}])
def test_what_a_killed_run_left_is_imported_anew(
    run: CloudRun, glance: Glance, image: Image, fields: dict[str, Any]
) -> None:
    glance.ours("rhcos-new", **fields)
    settle(run, glance, image)
    assert "delete i1" in glance.asked


# --- refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["glance-direct"], "only supports glance-direct; remove import_method"),
        ([], "does not support image import; remove import_method"),
    ],
)
def test_a_glance_that_does_not_offer_it(
    run: CloudRun, glance: Glance, image: Image, methods: list[str], message: str
) -> None:
    glance.methods = methods
    (said,) = refusals(run, image)
    assert message in said


def test_a_glance_from_before_imports(
    run: CloudRun, services: requests_mock.Mocker, glance: Glance, image: Image, wording: Wording
) -> None:
    services.get(f"{GLANCE}/info/import", **refusal(404))
    (said,) = refusals(run, image)
    wording(said)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"checksum": "sha256:" + "0" * 64}, "checksum: Glance computes no sha256 of imported images"),
        ({"source": "/disks/disk"}, "source: /disks/disk is a local file"),
        ({"source": "http://me:secret@web.test/disk"}, "source: contains a user name"),
        ({"source": f"{URL}?X-Amz-Signature=secret"}, "source: has a query"),
        ({"compression": "xz"}, "source: is compressed, and web-download does not decompress"),
        ({"compressed_checksum": "md5:" + "0" * 32}, "source: is compressed, and"),
    ],
)
def test_what_it_cannot_do(run: CloudRun, glance: Glance, image: Image, fields: dict[str, Any], message: str) -> None:
    (said,) = refusals(run, replace(image, **fields))
    assert message in said
    assert "secret" not in said
    with pytest.raises(PlanRefused):
        apply(run, replace(image, **fields))
    assert not glance.asked


def test_the_first_bytes_are_looked_at(
    run: CloudRun, services: Any, glance: Glance, image: Image, wording: Wording
) -> None:
    services.get(URL, content=gzip.compress(NEW))
    (said,) = refusals(run, image)
    wording(said)
    assert not refusals(run, replace(image, container_format="compressed"))
    services.get(URL, status_code=404)
    (said,) = refusals(run, image)
    assert contains(said, "disk_format", "compression: none")
    settle(run, glance, replace(image, disk_format="qcow2", compression="none"))


def test_what_is_there_needs_no_web_download(run: CloudRun, glance: Glance, image: Image) -> None:
    settle(run, glance, image)
    glance.methods = []
    assert not refusals(run, image)
