from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock
from pydantic import TypeAdapter, ValidationError

from openstack_prep import Rhcos
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import DownloadError, Loss, NotUnique, PlanRefused, ResourceFailed
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Unchecked
from openstack_prep.resources.image.glance import CONVERTED, ID, NAME, PACKED, SPEC
from openstack_prep.resources.image.image import Image
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY
from tests.unit.resources.glance import GLANCE, NEW, OLD, SEAL, Glance, apply, plan, settle, sha256
from tests.unit.texts import contains

NOVA = ENDPOINTS["compute"]


def test_it_is_uploaded_verified_and_sealed(run: CloudRun, glance: Glance, disk: Path) -> None:
    progress: list[Any] = []
    run.progress = lambda key, *numbers: progress.append((str(key), *numbers))
    checksum = f"sha256:{sha256(NEW)}"
    extra = {"properties": {"hw_disk_bus": "scsi"}, "tags": ("a",), "min_disk": 16, "protected": True}
    settle(run, glance, Image(name="rhcos", source=str(disk), checksum=checksum, **extra))  # type: ignore[arg-type]
    assert glance.asked == ["create rhcos", "upload rhcos", f"patch rhcos {SEAL} protected"]
    assert progress == [("image/rhcos", len(NEW), len(NEW), None)]
    (made,) = glance.images.values()
    expected = {"visibility": "private", "disk_format": "qcow2", "container_format": "bare", "min_disk": 16}
    assert made.items() >= (expected | {"hw_disk_bus": "scsi", SPEC: "lab", NAME: "rhcos"}).items()


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
def test_any_sum_will_do(run: CloudRun, glance: Glance, disk: Path, algorithm: str) -> None:
    checksum = f"{algorithm}:{hashlib.new(algorithm, NEW).hexdigest()}"
    settle(run, glance, Image(name="rhcos", source=str(disk), checksum=checksum))


def test_a_wrong_sum_leaves_nothing(run: CloudRun, glance: Glance, disk: Path) -> None:
    report = apply(run, Image(name="rhcos", source=str(disk), checksum=f"sha256:{sha256(OLD)}"))
    (result,) = report.failed
    assert isinstance(result.error, DownloadError)
    assert not glance.images
    assert glance.asked == ["create rhcos", "upload rhcos", "delete i1"]


def test_what_glance_damaged_is_not_left(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.damage = b"!"
    (result,) = apply(run, image).failed
    assert isinstance(result.error, ResourceFailed)
    assert not glance.images


@pytest.mark.parametrize("status", ["queued", "saving", "active"])
def test_what_a_killed_run_left_is_made_anew(run: CloudRun, glance: Glance, image: Image, status: str) -> None:
    glance.ours("rhcos", status=status)
    (step,) = plan(run, image)
    assert [str(change.before) for change in step.changes] == ["incomplete"]
    settle(run, glance, image)
    assert glance.asked.index("delete i1") > glance.asked.index(f"patch rhcos {SEAL}")  # it may be alive till then


@pytest.mark.parametrize("status", ["queued", "saving"])
def test_a_finished_image_comes_before_an_older_unfinished_one(
    run: CloudRun, glance: Glance, image: Image, status: str
) -> None:
    """Another run's upload began in the meantime: it has not finished, so it goes."""
    made = plan(run, image)
    glance.ours("rhcos", status=status)
    executor.execute(made, run).raise_for_failures()
    assert list(glance.images) == ["i2"]
    assert not plan(run, image)


def test_of_two_finished_images_the_older_stays(run: CloudRun, services: Any, glance: Glance, image: Image) -> None:
    services.get(f"{NOVA}/servers", json={"servers": []})
    made = plan(run, image)
    glance.ours("rhcos", NEW, created_at="2026-11-21T00:00:00Z")
    glance.created_at = "2026-11-21T00:00:01Z"
    executor.execute(made, run).raise_for_failures()
    assert list(glance.images) == ["i1"]


def test_a_twin_is_deleted_and_one_that_servers_use_is_kept(
    run: CloudRun, services: Any, glance: Glance, image: Image
) -> None:
    used: list[Any] = []
    services.get(f"{NOVA}/servers", json=lambda asked, _: {"servers": used if asked.qs["image"] == ["i2"] else []})
    glance.ours("rhcos", NEW, created_at="2026-11-21T00:00:00Z")
    glance.ours("rhcos", NEW, created_at="2026-11-21T00:00:01Z")
    assert next((step.action, step.duplicate_of) for step in plan(run.fresh(), image)) == (Action.DELETE, "i1")
    used.append({"id": "s1", "name": "master-0"})
    assert next((step.action, step.duplicate_of) for step in plan(run.fresh(), image)) == (Action.DELETE, "i2")
    executor.execute(plan(run.fresh(), image), run).raise_for_failures()
    assert list(glance.images) == ["i2"]


def test_an_upload_without_an_answer_is_made_anew(run: CloudRun, services: Any, glance: Glance, image: Image) -> None:
    lost = services.put(f"{GLANCE}/images/i1/file", status_code=502)
    settle(run, glance, image)
    assert lost.call_count == 1


def test_another_content_takes_the_name_when_it_is_verified(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.ours("rhcos", OLD, protected=True)
    image = replace(image, protected=True)
    (step,) = plan(run, image)
    assert step.action is Action.UPDATE
    settle(run, glance, image)
    assert glance.asked == [
        "create rhcos-new",
        "upload rhcos-new",
        f"patch rhcos-new {SEAL} protected",
        "patch rhcos name",
        "patch rhcos-new name",
        "patch rhcos-superseded protected",
        "delete i1",
    ]


FOREIGN = {"hw_qemu_guest_agent": "yes", "os_glance_failed_import": "", "owner_specified.openstack.sha256": "00"}


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize("left", [None, NEW])
def test_another_content_keeps_what_others_have_set(
    run: CloudRun, glance: Glance, image: Image, left: bytes | None
) -> None:
    """Also at an image that a killed run has left under its temporary name."""
    set_by_others: dict[str, Any] = {"visibility": "shared", "min_ram": 512, "tags": ["colleague"]}
    old = glance.ours("rhcos", OLD, hw_disk_bus="ide", **set_by_others, **FOREIGN)
    if left:
        glance.ours("rhcos-new", left)
    glance.members_of |= {old["id"]: {"p1": "accepted", "p2": "rejected", "p3": "pending"}, "i2": {}}
    settle(run, glance, replace(image, tags=("own",), properties={"hw_disk_bus": "scsi"}))
    (new,) = glance.images.values()
    expected = {"hw_qemu_guest_agent": "yes", "hw_disk_bus": "scsi", "tags": ["colleague", "own"]}
    assert new.items() >= (set_by_others | expected).items()
    assert new.keys().isdisjoint({"os_glance_failed_import", "owner_specified.openstack.sha256"})
    assert glance.members_of["i2"] == glance.members_of["i1"]
    assert glance.asked.index("accepted p1") < glance.asked.index("patch rhcos name")


def test_fields_of_the_spec_are_not_those_of_the_old_image(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.ours("rhcos", OLD, visibility="shared", protected=True)
    settle(run, glance, replace(image, visibility="private", protected=False))
    assert not glance.members_of


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("fields", "members", "lost"),
    [
        ({"img_signature": "abc"}, {}, "property/i1/img_signature"),
        ({"visibility": "shared"}, {"p1": "accepted", "p2": "pending"}, "member/i1/p1"),
    ],
)
def test_a_new_content_that_loses_what_others_have_set_is_refused(
    run: CloudRun,
    glance: Glance,
    image: Image,
    late: bool,
    fields: dict[str, str],
    members: dict[str, str],
    lost: str,
) -> None:
    """Nobody else signs the content, and only an administrator answers for members; also if it came after the plan."""
    old = glance.ours("rhcos", OLD, **({} if late else fields))
    made = plan(run, image)
    glance.members_of["i1"] = members
    if late:
        assert not made.refusals
        old |= fields
        (failed,) = executor.execute(made, run).failed
        assert isinstance(failed.error, PlanRefused)
        refusals = failed.error.mistakes
    else:
        refusals = plan(run, image).refusals
    assert [refusal.things for refusal in refusals if isinstance(refusal, Loss)] == [frozenset({lost})]
    assert glance.images["i1"]["name"] == "rhcos"


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        ({"rhcos": OLD, "rhcos-new": None}, "create rhcos-new"),
        ({"rhcos": OLD, "rhcos-new": NEW}, "patch rhcos name"),
        ({"rhcos-superseded": OLD, "rhcos-new": NEW}, "patch rhcos-new name"),
        ({"rhcos-superseded": OLD, "rhcos": NEW}, "delete i1"),
    ],
)
def test_killed_in_the_middle_of_a_swap(
    run: CloudRun, glance: Glance, image: Image, names: dict[str, bytes | None], asked: str
) -> None:
    for name, content in names.items():
        glance.ours(name, content, status="queued")
    settle(run, glance, image)
    assert glance.asked[0] == asked


def test_the_right_sum_is_kept_whoever_made_it(run: CloudRun, glance: Glance, disk: Path) -> None:
    glance.image("rhcos", NEW)
    checksum = f"sha512:{hashlib.sha512(NEW).hexdigest()}"
    (step,) = plan(run, Image(name="rhcos", source=str(disk), checksum=checksum))
    assert step.action is Action.KEEP
    assert step.observed is not None
    assert not step.observed.ours


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": OLD}, "not managed by this spec"),
        ({"content": NEW}, "unknown sha256"),
        ({"content": NEW, "status": "deactivated"}, "exists, but is deactivated"),
        ({"status": "saving"}, "exists, but is saving"),
    ],
)
def test_foreign_images_are_left_alone(
    run: CloudRun, glance: Glance, image: Image, fields: dict[str, Any], message: str
) -> None:
    image_fields = {name: value for name, value in fields.items() if name != "status"}
    glance.image("rhcos", **image_fields)["status"] = fields.get("status", "active")
    with pytest.raises(PlanRefused, match=message):
        apply(run, image)
    assert not glance.asked


def test_those_of_other_projects_and_specs_do_not_count(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.ours("rhcos", NEW, owner="others")
    glance.image("rhcos", NEW, owner="others", visibility="public")
    glance.ours("rhcos", NEW, of="another-name", owner="others")
    (step,) = plan(run, image)
    assert step.action is Action.CREATE


def test_two_of_one_name(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.image("rhcos", NEW)
    glance.image("rhcos", NEW)
    with pytest.raises(PlanRefused, match="i1, i2"):
        plan(run, image)
    with pytest.raises(NotUnique):
        Image.find(run, [image])


def test_ours_is_the_one_beside_a_foreign_one_of_its_name(run: CloudRun, glance: Glance, image: Image) -> None:
    glance.image("rhcos", OLD)
    glance.ours("rhcos", NEW)
    assert [(step.action, step.observed and step.observed.id) for step in plan(run, image)] == [(Action.KEEP, "i2")]


@pytest.mark.parametrize("fields", [{"os_hidden": True}, {"visibility": "community"}])
def test_an_image_that_lists_leave_out_is_not_uploaded_again(
    run: CloudRun, glance: Glance, image: Image, fields: dict[str, Any]
) -> None:
    glance.ours("rhcos", NEW, **fields)
    assert [(step.action, step.observed and step.observed.id) for step in plan(run, image)] == [(Action.KEEP, "i1")]
    ((left, _),) = Image.scan(run, None)
    assert left.name == "rhcos"


def test_without_a_source_a_public_one_will_do(run: CloudRun, glance: Glance) -> None:
    glance.image("cirros", NEW, owner="others", visibility="public")
    assert not plan(run, Image(name="cirros"))
    with pytest.raises(PlanRefused, match="without a source"):
        apply(run, Image(name="cirrus"))


@pytest.mark.parametrize("fields", [{}, {"source": "disk.qcow2", "visibility": "community"}])
def test_a_community_image_of_others_is_never_meant(run: CloudRun, glance: Glance, fields: dict[str, Any]) -> None:
    """Any user of the cloud can upload one of this name: it stands for none, and makes no name ambiguous."""
    glance.image("cirros", NEW, owner="strangers", visibility="community")
    assert Image.find(run, [Image(name="cirros", **fields)]) == {}
    glance.image("cirros", NEW, owner="others", visibility="public")
    if not fields:
        (found,) = Image.find(run.fresh(), [Image(name="cirros")]).values()
        assert found.id == "i2"


@pytest.mark.parametrize("visibility", ["community", "shared"])
def test_an_image_of_others_that_was_passed_over_is_named(run: CloudRun, glance: Glance, visibility: str) -> None:
    glance.image("cirros", NEW, owner="operator", visibility=visibility)
    with pytest.raises(PlanRefused) as refused:
        apply(run, Image(name="cirros"))
    (mistake,) = refused.value.mistakes
    assert contains(mistake.what, "i1", visibility)


def test_a_missing_file_is_a_mistake(run: CloudRun, glance: Glance) -> None:
    with pytest.raises(PlanRefused, match="/nowhere/disk cannot be read"):
        apply(run, Image(name="rhcos", source="/nowhere/disk"))


def test_metadata_is_changed_in_place(run: CloudRun, glance: Glance, disk: Path) -> None:
    glance.ours("rhcos", NEW, tags=["theirs"], hw_disk_bus="ide", hw_other="stays")
    image = Image(name="rhcos", min_ram=1024, visibility="public", properties={"hw_disk_bus": "scsi"}, tags=("a",))
    settle(run, glance, image)
    assert glance.asked == ["patch rhcos visibility min_ram tags hw_disk_bus"]
    assert glance.images["i1"]["tags"] == ["a", "theirs"]
    assert glance.images["i1"]["hw_other"] == "stays"


def test_another_format_is_a_replacement(run: CloudRun, glance: Glance) -> None:
    glance.ours("rhcos", NEW)
    with pytest.raises(PlanRefused, match="disk_format 'qcow2' -> 'raw'"):
        apply(run, Image(name="rhcos", disk_format="raw"))


def test_destroy_takes_all_of_ours(run: CloudRun, glance: Glance, image: Image) -> None:
    """The protection that the spec declares does not keep the image."""
    glance.ours("rhcos", OLD, protected=True)
    glance.ours("rhcos-new", status="queued")
    image = replace(image, protected=True)
    made = planner.plan_destroy("lab", [image], observation.observe(run, [image]))
    executor.execute(made, run).raise_for_failures()
    assert not glance.images


def test_an_image_that_somebody_has_protected_is_not_deleted(run: CloudRun, glance: Glance, image: Image) -> None:
    """Neither by destroy nor by prune, whatever the plan has seen."""
    made = glance.ours("rhcos", OLD)
    plans = [planner.plan_destroy("lab", [image], observation.observe(run, [image]))]
    plans += [planner.plan_destroy("lab", [], {}, [*Image.scan_tagged(run, None)])]
    assert [observation.examine_deletes(run, each) for each in plans] == [[], []]
    made["protected"] = True
    for each in plans:
        (result,) = executor.execute(each, run.fresh()).results
        assert isinstance(result.error, PlanRefused)
    assert [*glance.images.values()] == [made]
    run = run.fresh()
    left = [*Image.scan_tagged(run, None)]
    (refused,) = observation.examine_deletes(run, planner.plan_destroy("lab", [], {}, left))
    assert refused.code is Code.STILL_USED


@pytest.mark.parametrize("late", [False, True])
def test_an_image_that_somebody_has_protected_keeps_its_content(
    run: CloudRun, glance: Glance, image: Image, late: bool
) -> None:
    old = glance.ours("rhcos", OLD, protected=not late)
    made = plan(run, image)
    assert [each.code for each in made.refusals] == ([] if late else [Code.STILL_USED])
    old["protected"] = True
    (failed,) = executor.execute(made, run).failed
    assert isinstance(failed.error, PlanRefused)
    assert glance.images["i1"] == old


def test_a_protection_that_the_spec_has_dropped_keeps_the_image(run: CloudRun, glance: Glance, image: Image) -> None:
    apply(run, replace(image, protected=True))
    for fields in ({}, {"protected": False}):
        dropped = replace(image, **fields)
        plan = planner.plan_destroy("lab", [dropped], observation.observe(run.fresh(), [dropped]))
        (refused,) = observation.examine_deletes(run, plan)
        assert (refused.code, "not declare" in refused.what) == (Code.STILL_USED, True)
    assert [each["protected"] for each in glance.images.values()] == [True]


def test_destroy_names_all_that_goes_with_it(run: CloudRun, glance: Glance, image: Image) -> None:
    """A project is deleted with it only if nothing else is in the project."""
    for names in (("rhcos", "rhcos-new"), ("rhcos-new", "rhcos-superseded")):
        glance.images.clear()
        ids = {glance.ours(name, OLD if name == "rhcos" else None, status="queued")["id"] for name in names}
        made = planner.plan_destroy("lab", [image], observation.observe(run.fresh(), [image]))
        assert observation.going_ids(made) == ids
        ((_, scanned),) = Image.scan(run.fresh(), None)
        assert {scanned.id, *scanned.contained_ids} == ids


def test_a_foreign_image_beside_an_unfinished_one_does_not_hide_it(run: CloudRun, glance: Glance, image: Image) -> None:
    foreign = glance.image("rhcos", OLD)
    glance.ours("rhcos", status="saving")
    made = planner.plan_destroy("lab", [image], observation.observe(run, [image]))
    executor.execute(made, run).raise_for_failures()
    assert list(glance.images.values()) == [foreign]


# --- copies -------------------------------------------------------------------------------


def copy(glance: Glance, original: dict[str, Any], name: str = "rhcos", **fields: Any) -> dict[str, Any]:
    """Copy the properties of an image as other services do, to another content."""
    own = {key: value for key, value in original.items() if key.startswith("openstack_prep")}
    return glance.image(name, b"QFI\xfb of a user", **own | fields)


def test_copies_are_never_managed(run: CloudRun, services: Any, glance: Glance, image: Image) -> None:
    original = glance.ours("rhcos", NEW, created_at="2026-11-21T00:00:01Z")
    copies = [copy(glance, original, name)["id"] for name in ("rhcos", "rhcos-new", "rhcos-superseded", "backup")]
    assert [step.action for step in plan(run, image)] == [Action.KEEP]
    scanned = list(Image.scan(run.fresh(), None))
    assert [(found.id, found.ours, found.managed_by) for _, found in scanned if found.ours] == [
        (original["id"], True, "")
    ]
    assert {found.managed_by for _, found in scanned} == {""}
    executor.execute(planner.plan_destroy("lab", [image], observation.observe(run, [image])), run).raise_for_failures()
    assert list(glance.images) == copies


def test_a_copy_does_not_have_the_content_of_its_original(run: CloudRun, glance: Glance, image: Image) -> None:
    original = glance.ours("rhcos", NEW)
    copy(glance, original, **{CONVERTED: "qcow2", PACKED: "sha256:" + "0" * 64})
    del glance.images[original["id"]]
    with pytest.raises(PlanRefused, match="not managed by this spec, and its content differs: unknown sha256"):
        apply(run, image)
    taken = Image(name="rhcos", adopt="permanently")
    apply(run, taken).raise_for_failures()
    (left,) = glance.images.values()
    assert left[ID] == left["id"]
    assert not {SEAL, CONVERTED, PACKED} & left.keys()
    assert not plan(run, taken)


@pytest.mark.parametrize("marked", [{}, {"base_image_ref": "i1"}, {"instance_uuid": "s1"}])
def test_an_image_of_an_early_version_is_kept_until_it_is_taken_over(
    run: CloudRun, glance: Glance, image: Image, marked: dict[str, str]
) -> None:
    """Its tag does not name its id: nothing distinguishes it from a copy, unless a service has left its own marks."""
    early = glance.image("rhcos", NEW, **{SPEC: "lab", NAME: "rhcos", SEAL: sha256(NEW)}, **marked)
    if marked:
        with pytest.raises(PlanRefused, match="unknown sha256"):
            apply(run, image)
        return
    assert [step.action for step in plan(run, image)] == [Action.KEEP]
    assert [found.ours for _, found in Image.scan(run.fresh(), None)] == [False]
    (step,) = planner.plan_destroy("lab", [image], observation.observe(run.fresh(), [image])).steps
    assert (step.action, "adopt: permanently" in step.reason) == (Action.KEEP, True)
    with pytest.raises(PlanRefused, match="present checksum and adopt: permanently first"):
        apply(run, replace(image, checksum=f"sha256:{sha256(OLD)}"))
    taken = replace(image, adopt="permanently")
    settle(run, glance, taken)
    assert early[ID] == early["id"]
    executor.execute(planner.plan_destroy("lab", [taken], observation.observe(run.fresh(), [taken])), run)
    assert not glance.images


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_to_the_creation_makes_no_second_image(
    run: CloudRun, services: Any, glance: Glance, image: Image, arrives: bool
) -> None:
    """Even if the list of images is stale: the second request is the same, and 409 shows that the image exists."""
    asked: list[Any] = []

    def lose(request: Any, context: Any) -> Any:
        asked.append(request.json()["id"])
        answer = glance.create(request, context) if arrives or len(asked) > 1 else {}
        if len(asked) == 1:
            context.status_code = 502
        return answer

    services.post(f"{GLANCE}/images", json=lose)
    settle(run, glance, image)
    assert asked == ["i1", "i1"]


# --- the spec -----------------------------------------------------------------------------


def test_names_that_stand_in_no_list(run: CloudRun, glance: Glance, disk: Path, services: requests_mock.Mocker) -> None:
    checksum = f"sha256:{sha256(NEW)}"
    settle(run, glance, Image(name='a "b", c', source=str(disk), checksum=checksum))
    asked = [each.qs["name"] for each in services.request_history if each.path == "/v2/images" and "name" in each.qs]
    assert asked[:6:2] == asked[1:6:2] == [[f'eq:a "b", c{suffix}'] for suffix in ("", "-new", "-superseded")]


def read(base: Path, **fields: Any) -> Image:
    text = json.dumps({"name": "rhcos", **fields})
    return TypeAdapter(Image).validate_json(text, context={"base": base})


def test_as_a_spec_says_it(tmp_path: Path) -> None:
    assert read(tmp_path, source="disks/a.qcow2").source == str(tmp_path / "disks/a.qcow2")
    assert read(tmp_path, source="https://host/a.qcow2").source == "https://host/a.qcow2"
    assert read(tmp_path, checksum=sha256(NEW).upper()).checksum == f"sha256:{sha256(NEW)}"
    assert read(tmp_path, rhcos={"stream": "a.json"}).rhcos == Rhcos(stream=str(tmp_path / "a.json"))
    assert read(tmp_path, rhcos={"installer": "bin/oi"}).rhcos == Rhcos(installer=str(tmp_path / "bin" / "oi"))
    assert read(tmp_path, properties={"os_version": 9, "x": True}).properties == {"os_version": "9", "x": "true"}


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "ftp://host/a"},
        {"source": ""},
        {"checksum": "sha256:abc"},
        {"disk_format": "qcow3"},
        {"min_disk": -1},
        {"source": "a.xz", "compression": "lzma"},
        {"rhcos": {}},
        {"rhcos": {"stream": "a.json", "installer": "openshift-install"}},
        {"rhcos": {"stream": "a.json", "arch": "amd64"}},
        {"rhcos": {"stream": "a.json", "mirror": "/srv/mirror"}},
        {"rhcos": {"stream": "a.json"}, "source": "a"},
        {"rhcos": {"stream": "a.json"}, "cached_as": "https://host/a", "checksum": "0" * 64},
        {"rhcos": {"stream": "a.json", "cache": True}, "import_method": "web-download"},
        {"source": "https://host/a", "cached_as": "https://host/a"},
        {"source": "https://host/a", "cached_as": "file:///srv/a", "checksum": "0" * 64},
        {"source": "https://host/a", "import_method": "glance-direct"},
        {"source": "https://host/a", "import_method": "web-download", "output_format": "raw"},
        {"source": "https://host/a?sig=x", "import_method": "web-download"},
        {"source": "https://joe:pw@host/a", "import_method": "web-download"},
        {"output_format": "vmdk"},
        {"output_format": "raw", "disk_format": "qcow2"},
        {"shared_with": ["other"], "visibility": "private"},
        {"properties": {"visibility": "public"}},
        {"properties": {"openstack_prep_sha256": "0" * 64}},
        {"rhcos": {"stream": "a.json"}, "compressed_checksum": "0" * 64},
    ],
)
def test_mistakes(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(tmp_path, **fields)


def test_it_is_taken_over_permanently_with_its_content(run: CloudRun, glance: Glance) -> None:
    made = glance.image("rhcos", OLD, theirs="x")
    image = Image(name="rhcos", min_disk=10, adopt="permanently")
    apply(run, image).raise_for_failures()
    assert made.items() >= {SPEC: "lab", NAME: "rhcos", "theirs": "x", "min_disk": 10}.items()
    assert not plan(run, image)
    found, _ = observation.examine(run.fresh(), [image])
    assert found[image.key].ours
    assert not any(asked.startswith(("create", "upload", "delete")) for asked in glance.asked)
    executor.execute(planner.plan_destroy("lab", [image], found), run).raise_for_failures()
    assert not glance.images


def test_what_another_spec_manages_is_not_taken_over(run: CloudRun, glance: Glance) -> None:
    glance.image("rhcos", OLD, **{SPEC: "theirs", NAME: "rhcos"})
    made = plan(run, Image(name="rhcos", min_disk=10, adopt="permanently"))
    assert [step.observed.managed_by for step in made.steps if step.observed] == ["theirs"]
    with pytest.raises(PlanRefused, match="managed by spec theirs"):
        made.raise_for_refusals()
    assert not plan(run, Image(name="rhcos", min_disk=10, adopt=True)).refusals


@pytest.mark.parametrize(
    ("fields", "what"),
    [({"owner": "elsewhere", "visibility": "public", "checksum": "0" * 32}, "another project"), ({}, "no checksum")],
)
def test_what_could_not_be_known_again_is_not_taken_over(
    run: CloudRun, glance: Glance, fields: dict[str, str], what: str
) -> None:
    glance.image("rhcos", **fields)
    with pytest.raises(PlanRefused, match=what):
        apply(run, Image(name="rhcos", min_disk=10, adopt="permanently"))
    assert not glance.asked


@pytest.mark.parametrize("visibility", ["private", "shared"])
def test_servers_of_others_are_named_before_an_image_is_no_longer_everybodys(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, visibility: Any
) -> None:
    glance.ours("rhcos", NEW, visibility="public")
    servers = [{"id": "s1", "name": "web", "tenant_id": "p9"}, {"id": "s2", "name": "own", "tenant_id": ADMIN_PROJECT}]
    services.get(f"{NOVA}/servers/detail?all_tenants=True&image=i1", json={"servers": servers})
    services.get(f"{IDENTITY}/projects/p9", json={"project": {"id": "p9", "name": "team"}})
    narrowed = Image(name="rhcos", visibility=visibility)
    assert [str(each).partition(" ")[0] for each in taken(run, narrowed)] == ["server/s1"]
    assert taken(run, replace(narrowed, visibility="community")) == []
    services.get(f"{NOVA}/servers/detail?all_tenants=True&image=i1", status_code=403, json={})
    (unread,) = taken(run, narrowed)
    assert isinstance(unread, Unchecked)


def taken(run: CloudRun, image: Image) -> list[Any]:
    return [*image.list_taken(observation.observe(run.fresh(), [image])[image.key])]
