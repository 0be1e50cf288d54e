from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import PlanRefused, ResourceFailed, WaitTimeout
from openstack_prep.cloud.site import Site
from openstack_prep.core.plan import Plan
from openstack_prep.resources.image import web_download
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.image.image_seal import SEALS
from tests.unit.resources.glance import GLANCE, NEW, OLD, Glance, apply, plan

URL = "http://web.test/disk"


def sha512(content: bytes) -> str:
    return f"sha512:{hashlib.sha512(content).hexdigest()}"


@pytest.fixture
def image(services: requests_mock.Mocker, glance: Glance, monkeypatch: pytest.MonkeyPatch) -> Image:
    monkeypatch.setattr(web_download, "PAUSE", 0.0)
    glance.web = NEW
    services.get(URL, content=NEW)
    return Image(name="rhcos", source=URL, checksum=sha512(NEW), import_method="web-download")


def settle(site: Site, glance: Glance, image: Image) -> dict[str, Any]:
    apply(site, image).raise_for_failures()
    (left,) = glance.images.values()
    assert (left["name"], left["status"]) == ("rhcos", "active")
    assert not plan(site, image)
    return left


def failure(site: Site, image: Image) -> Exception:
    (result,) = apply(site, image).failed
    assert result.error is not None
    return result.error


def refusals(site: Site, image: Image) -> list[str]:
    made: Plan = plan(site, image)
    return [str(each) for each in made.refusals]


def test_it_gets_its_name_when_it_is_verified(site: Site, glance: Glance, image: Image) -> None:
    left = settle(site, glance, replace(image, protected=True))
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
def test_a_sum_that_glance_makes_will_do(site: Site, glance: Glance, image: Image, checksum: str | None) -> None:
    settle(site, glance, replace(image, checksum=checksum))


def test_another_release(site: Site, glance: Glance, image: Image) -> None:
    glance.web = OLD
    settle(site, glance, replace(image, checksum=sha512(OLD)))
    glance.web, glance.stages = NEW, [{"status": "active"}]
    settle(site, glance, image)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"checksum": sha512(OLD)}, "is qcow2 with sha512 .* instead of .*; correct the checksum"),
        ({"size": 1}, "has 8 bytes instead of 1"),
    ],
)
def test_other_content_is_not_left(
    site: Site, glance: Glance, image: Image, fields: dict[str, Any], message: str
) -> None:
    error = failure(site, replace(image, **fields))
    assert isinstance(error, ResourceFailed)
    with pytest.raises(ResourceFailed, match=message):
        raise error
    assert not glance.images


def test_a_glance_that_makes_other_sums(site: Site, glance: Glance, image: Image, monkeypatch: Any) -> None:
    def fill(made: dict[str, Any], content: bytes) -> None:
        made.update(os_hash_algo="sha256", os_hash_value="0", checksum=None, size=len(content), status="active")

    monkeypatch.setattr(glance, "fill", fill)
    assert "with sha512 none, but sha256 instead of" in str(failure(site, image))
    assert not glance.images


def test_a_glance_that_converts_what_it_imports(site: Site, glance: Glance, image: Image) -> None:
    glance.stages = [{"status": "active", "disk_format": "raw"}]
    wanted = replace(image, checksum=None, disk_format="qcow2")
    assert "was converted to raw, as this Glance converts all imports; remove disk_format" in str(failure(site, wanted))
    assert not glance.images
    glance.stages, glance.images = [{"status": "active", "disk_format": "raw"}], {}
    assert settle(site, glance, replace(image, checksum=None))["disk_format"] == "raw"


TASK = {"id": "t1", "status": "failure", "request_id": "req-1", "created_at": "2026-11-21T00:00:00"}


@pytest.mark.parametrize(
    ("stages", "tasks", "said"),
    [
        (
            [{}],
            [TASK | {"message": "404 from http://web.test/disk?key=secret"}],
            ": 404 from http://web.test/disk (task",
        ),
        ([{"os_glance_failed_import": "file"}], [], "no reason given;"),
        ([{"status": "importing"}, {"status": "queued"}], [TASK | {"message": ""}], "(task t1, request req-1)"),
        ([{"status": "killed"}], [], "no reason given;"),
    ],
)
def test_glances_reason_is_told(
    site: Site, services: Any, glance: Glance, image: Image, stages: list[Any], tasks: list[Any], said: str
) -> None:
    glance.stages, glance.tasks = stages, tasks
    error = failure(site, replace(image, source=f"{URL}?key=secret"))
    assert isinstance(error, ResourceFailed)
    assert said in str(error)
    assert "secret" not in str(error)
    assert not glance.images


def test_one_without_tasks(site: Site, services: requests_mock.Mocker, glance: Glance, image: Image) -> None:
    services.get(f"{GLANCE}/images/i1/tasks", status_code=404)
    glance.stages = [{}, {"status": "importing"}, {"status": "queued"}]
    assert "no reason given" in str(failure(site, image))


def test_it_is_whole_when_glance_lets_go(site: Site, glance: Glance, image: Image) -> None:
    done = {"os_glance_import_task": "", "os_glance_importing_to_stores": ""}
    glance.stages = [{"status": "active", "os_glance_import_task": "t1"}, {"size": 0}, done | {"size": len(NEW)}]
    settle(site, glance, replace(image, size=len(NEW)))
    assert not glance.stages


def test_the_waiting_ends(site: Site, glance: Glance, image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_download, "DEADLINE", 0.0)
    glance.stages = [{"status": "importing"}]
    assert isinstance(failure(site, image), WaitTimeout)
    assert not glance.images


def test_a_signed_url_is_not_logged(site: Site, glance: Glance, image: Image, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    glance.stages.insert(0, {})
    glance.tasks = [TASK | {"status": "pending", "input": {"uri": f"{URL}?key=secret"}}]
    settle(site, glance, replace(image, source=f"{URL}?key=secret", disk_format="qcow2", compression="none"))
    assert glance.imports[0]["method"]["uri"] == f"{URL}?key=secret"
    assert "/images/i1" in caplog.text
    assert "key=secret" not in caplog.text


def test_an_import_whose_answer_is_lost(site: Site, services: Any, glance: Glance, image: Image) -> None:
    services.post(f"{GLANCE}/images/i1/import", status_code=502)
    settle(site, glance, image)
    assert glance.asked[:3] == ["create rhcos-new", "create rhcos-new", "import rhcos-new"]


@pytest.mark.parametrize("fields", [{"status": "queued"}, {"status": "importing"}, {"status": "active"}])
def test_what_a_killed_run_left_is_imported_anew(
    site: Site, glance: Glance, image: Image, fields: dict[str, Any]
) -> None:
    glance.ours("rhcos-new", **fields)
    settle(site, glance, image)
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
    site: Site, glance: Glance, image: Image, methods: list[str], message: str
) -> None:
    glance.methods = methods
    (said,) = refusals(site, image)
    assert message in said


def test_a_glance_from_before_imports(site: Site, services: requests_mock.Mocker, glance: Glance, image: Image) -> None:
    services.get(f"{GLANCE}/info/import", status_code=404)
    (said,) = refusals(site, image)
    assert "does not support image import" in said


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"checksum": "sha256:" + "0" * 64}, "checksum: Glance computes no sha256 of imported images"),
        ({"source": "/disks/disk"}, "source: /disks/disk is a local file"),
        ({"source": "http://me:secret@web.test/disk"}, "source: contains a user name"),
        ({"compression": "xz"}, "source: is compressed, and web-download does not decompress"),
        ({"compressed_checksum": "md5:" + "0" * 32}, "source: is compressed, and"),
    ],
)
def test_what_it_cannot_do(site: Site, glance: Glance, image: Image, fields: dict[str, Any], message: str) -> None:
    (said,) = refusals(site, replace(image, **fields))
    assert message in said
    assert "secret" not in said
    with pytest.raises(PlanRefused):
        apply(site, replace(image, **fields))
    assert not glance.asked


def test_the_first_bytes_are_looked_at(site: Site, services: Any, glance: Glance, image: Image) -> None:
    services.get(URL, content=gzip.compress(NEW))
    (said,) = refusals(site, image)
    assert "source: is compressed with gz" in said
    assert not refusals(site, replace(image, container_format="compressed"))
    services.get(URL, status_code=404)
    (said,) = refusals(site, image)
    assert "; if Glance can reach the URL anyway, set disk_format and compression: none" in said
    settle(site, glance, replace(image, disk_format="qcow2", compression="none"))


def test_what_is_there_needs_no_web_download(site: Site, glance: Glance, image: Image) -> None:
    settle(site, glance, image)
    glance.methods = []
    assert not refusals(site, image)
