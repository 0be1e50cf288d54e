from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import requests_mock
from pydantic import TypeAdapter, ValidationError

import openstack_prep as prep
from openstack_prep import Rhcos, executor, planner
from openstack_prep.cloud import Cloud
from openstack_prep.errors import DownloadError, NotUnique, PlanRefused, ResourceFailed
from openstack_prep.model import Action, Observed
from openstack_prep.plan import Plan, Report
from openstack_prep.resources.image import NAME, PACKED, SEAL, SPEC, Image
from openstack_prep.site import Site
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS

GLANCE = ENDPOINTS["image"] + "/v2"
OLD, NEW = b"QFI\xfb old", b"QFI\xfb new"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Glance:
    """Just as much of Glance as to keep what is sent; ``asked`` are its requests but for reading."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.images: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.numbers = itertools.count(1)
        self.damage = b""
        version = {"id": "v2.16", "status": "CURRENT", "links": [{"rel": "self", "href": GLANCE}]}
        services.get(ENDPOINTS["image"], json={"versions": [version]})
        services.get(f"{GLANCE}/images", json=lambda *_: {"images": list(self.images.values())})
        services.post(f"{GLANCE}/images", json=self.create)
        for number in range(1, 9):
            url = f"{GLANCE}/images/i{number}"
            services.get(url, json=self.show)
            services.put(f"{url}/file", text=self.upload)
            services.patch(url, json=self.patch)
            services.delete(url, text=self.delete)

    def image(self, name: str, content: bytes | None = None, status: str = "active", **fields: Any) -> dict[str, Any]:
        made = {
            "id": f"i{next(self.numbers)}",
            "name": name,
            "status": status,
            "owner": ADMIN_PROJECT,
            "visibility": "private",
            "disk_format": "qcow2",
            "container_format": "bare",
            "min_disk": 0,
            "min_ram": 0,
            "protected": False,
            "tags": [],
        } | fields
        self.images[made["id"]] = made
        if content is not None:
            self.fill(made, content)
        return made

    def ours(self, name: str, content: bytes | None = None, *, of: str = "rhcos", **fields: Any) -> dict[str, Any]:
        """Make an image of this spec's, sealed when it has content."""
        seal = {} if content is None else {SEAL: sha256(content)}
        return self.image(name, content, **{SPEC: "lab", NAME: of}, **seal, **fields)

    def fill(self, image: dict[str, Any], content: bytes) -> None:
        sums = {"os_hash_algo": "sha512", "os_hash_value": hashlib.sha512(content).hexdigest()}
        image.update(sums, checksum=hashlib.md5(content).hexdigest(), size=len(content), status="active")

    def _of(self, request: Any) -> dict[str, Any]:
        return self.images[request.path.split("/")[3]]

    def create(self, request: Any, context: Any) -> Any:
        made = self.image(**{"status": "queued"} | request.json())
        self.asked.append(f"create {made['name']}")
        return made

    def show(self, request: Any, context: Any) -> Any:
        return self._of(request)

    def upload(self, request: Any, context: Any) -> str:
        image = self._of(request)
        self.asked.append(f"upload {image['name']}")
        image["status"] = "saving"
        self.fill(image, b"".join(request.body) + self.damage)
        context.status_code = 204
        return ""

    def patch(self, request: Any, context: Any) -> Any:
        image, operations = self._of(request), request.json()
        self.asked.append(f"patch {image['name']} " + " ".join(each["path"][1:] for each in operations))
        image.update({each["path"][1:]: each["value"] for each in operations})
        return image

    def delete(self, request: Any, context: Any) -> str:
        image = self._of(request)
        assert not image["protected"]
        self.asked.append(f"delete {image['id']}")
        del self.images[image["id"]]
        context.status_code = 204
        return ""


@pytest.fixture
def glance(services: requests_mock.Mocker) -> Glance:
    return Glance(services)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(NEW)
    return path


@pytest.fixture
def image(disk: Path) -> Image:
    return Image(name="rhcos", source=str(disk), checksum=f"sha256:{sha256(NEW)}")


def plan(site: Site, image: Image) -> Plan:
    observed, mistakes = executor.examine(site.fresh(), [image])
    return planner.plan_apply("lab", [image], observed, mistakes=mistakes)


def apply(site: Site, image: Image) -> Report:
    made = plan(site, image)
    made.raise_for_refusals()
    return executor.run(made, site)


def settle(site: Site, glance: Glance, image: Image) -> Observed:
    """Apply, and see that exactly one right image is left and a second apply does nothing."""
    report = apply(site, image)
    report.raise_for_failures()
    (left,) = glance.images.values()
    assert (left["name"], left["status"], left[SEAL]) == (image.name, "active", sha256(NEW))
    assert not plan(site, image)
    observed = report.results[0].observed
    assert observed is not None
    assert observed.id == left["id"]
    return observed


def test_it_is_uploaded_verified_and_sealed(site: Site, glance: Glance, disk: Path) -> None:
    progress: list[Any] = []
    site.progress = lambda key, *numbers: progress.append((str(key), *numbers))
    checksum = f"sha256:{sha256(NEW)}"
    extra = {"properties": {"hw_disk_bus": "scsi"}, "tags": ("a",), "min_disk": 16, "protected": True}
    settle(site, glance, Image(name="rhcos", source=str(disk), checksum=checksum, **extra))  # type: ignore[arg-type]
    assert glance.asked == ["create rhcos", "upload rhcos", f"patch rhcos {SEAL} protected"]
    assert progress == [("image/rhcos", len(NEW), len(NEW), None)]
    (made,) = glance.images.values()
    expected = {"visibility": "private", "disk_format": "qcow2", "container_format": "bare", "min_disk": 16}
    assert made.items() >= (expected | {"hw_disk_bus": "scsi", SPEC: "lab", NAME: "rhcos"}).items()


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
def test_any_sum_will_do(site: Site, glance: Glance, disk: Path, algorithm: str) -> None:
    checksum = f"{algorithm}:{hashlib.new(algorithm, NEW).hexdigest()}"
    settle(site, glance, Image(name="rhcos", source=str(disk), checksum=checksum))


def test_a_wrong_sum_leaves_nothing(site: Site, glance: Glance, disk: Path) -> None:
    report = apply(site, Image(name="rhcos", source=str(disk), checksum=f"sha256:{sha256(OLD)}"))
    (result,) = report.failed
    assert isinstance(result.error, DownloadError)
    assert not glance.images
    assert glance.asked == ["create rhcos", "upload rhcos", "delete i1"]


def test_what_glance_damaged_is_not_left(site: Site, glance: Glance, image: Image) -> None:
    glance.damage = b"!"
    (result,) = apply(site, image).failed
    assert isinstance(result.error, ResourceFailed)
    assert not glance.images


@pytest.mark.parametrize("status", ["queued", "saving", "active"])
def test_what_a_killed_run_left_is_made_anew(site: Site, glance: Glance, image: Image, status: str) -> None:
    glance.ours("rhcos", status=status)
    (step,) = plan(site, image)
    assert [str(change.before) for change in step.changes] == ["incomplete"]
    settle(site, glance, image)
    assert glance.asked[0] == "delete i1"


def test_an_upload_without_an_answer_is_made_anew(site: Site, services: Any, glance: Glance, image: Image) -> None:
    lost = services.put(f"{GLANCE}/images/i1/file", status_code=502)
    settle(site, glance, image)
    assert lost.call_count == 1


def test_another_content_takes_the_name_when_it_is_verified(site: Site, glance: Glance, image: Image) -> None:
    glance.ours("rhcos", OLD, protected=True)
    (step,) = plan(site, image)
    assert step.action is Action.UPDATE
    settle(site, glance, image)
    assert glance.asked == [
        "create rhcos-new",
        "upload rhcos-new",
        f"patch rhcos-new {SEAL}",
        "patch rhcos name",
        "patch rhcos-new name",
        "patch rhcos-old protected",
        "delete i1",
    ]


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        ({"rhcos": OLD, "rhcos-new": None}, "delete i2"),
        ({"rhcos": OLD, "rhcos-new": NEW}, "patch rhcos name"),
        ({"rhcos-old": OLD, "rhcos-new": NEW}, "patch rhcos-new name"),
        ({"rhcos-old": OLD, "rhcos": NEW}, "delete i1"),
    ],
)
def test_killed_in_the_middle_of_a_swap(
    site: Site, glance: Glance, image: Image, names: dict[str, bytes | None], asked: str
) -> None:
    for name, content in names.items():
        glance.ours(name, content, status="queued")
    settle(site, glance, image)
    assert glance.asked[0] == asked


def test_the_right_sum_is_kept_whoever_made_it(site: Site, glance: Glance, disk: Path) -> None:
    glance.image("rhcos", NEW)
    checksum = f"sha512:{hashlib.sha512(NEW).hexdigest()}"
    (step,) = plan(site, Image(name="rhcos", source=str(disk), checksum=checksum))
    assert step.action is Action.KEEP
    assert step.observed is not None
    assert not step.observed.ours


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": OLD}, "not made by this spec"),
        ({"content": NEW}, "no sha256 that is known"),
        ({"content": NEW, "status": "deactivated"}, "is there, but deactivated"),
        ({"status": "saving"}, "is there, but saving"),
    ],
)
def test_foreign_images_are_left_alone(
    site: Site, glance: Glance, image: Image, fields: dict[str, Any], message: str
) -> None:
    status = fields.pop("status", "active")
    glance.image("rhcos", **fields)["status"] = status
    with pytest.raises(PlanRefused, match=message):
        apply(site, image)
    assert not glance.asked


def test_those_of_other_projects_and_specs_do_not_count(site: Site, glance: Glance, image: Image) -> None:
    glance.ours("rhcos", NEW, owner="others")
    glance.image("rhcos", NEW, owner="others", visibility="public")
    glance.ours("rhcos", NEW, of="another-name", owner="others")
    (step,) = plan(site, image)
    assert step.action is Action.CREATE


def test_two_of_one_name(site: Site, glance: Glance, image: Image) -> None:
    glance.image("rhcos", NEW)
    glance.ours("rhcos", NEW)
    with pytest.raises(PlanRefused, match="i1, i2"):
        plan(site, image)
    with pytest.raises(NotUnique):
        Image.find(site, [image])


def test_without_a_source_a_public_one_will_do(site: Site, glance: Glance) -> None:
    glance.image("cirros", NEW, owner="others", visibility="public")
    assert not plan(site, Image(name="cirros"))
    with pytest.raises(PlanRefused, match="without a source"):
        apply(site, Image(name="cirrus"))


def test_a_missing_file_is_a_mistake(site: Site, glance: Glance) -> None:
    with pytest.raises(PlanRefused, match="/nowhere/disk cannot be read"):
        apply(site, Image(name="rhcos", source="/nowhere/disk"))


def test_metadata_is_changed_in_place(site: Site, glance: Glance, disk: Path) -> None:
    glance.ours("rhcos", NEW, tags=["theirs"], hw_disk_bus="ide", hw_other="stays")
    image = Image(name="rhcos", min_ram=1024, visibility="public", properties={"hw_disk_bus": "scsi"}, tags=("a",))
    settle(site, glance, image)
    assert glance.asked == ["patch rhcos visibility min_ram tags hw_disk_bus"]
    assert glance.images["i1"]["tags"] == ["a", "theirs"]
    assert glance.images["i1"]["hw_other"] == "stays"


def test_another_format_is_a_replacement(site: Site, glance: Glance) -> None:
    glance.ours("rhcos", NEW)
    with pytest.raises(PlanRefused, match="disk_format 'qcow2' -> 'raw'"):
        apply(site, Image(name="rhcos", disk_format="raw"))


def test_destroy_takes_all_of_ours(site: Site, glance: Glance, image: Image) -> None:
    glance.ours("rhcos", OLD, protected=True)
    glance.ours("rhcos-new", status="queued")
    made = planner.plan_destroy("lab", [image], executor.observe(site, [image]))
    executor.run(made, site).raise_for_failures()
    assert not glance.images


# --- compressed sources -------------------------------------------------------------------


def test_it_is_unpacked_on_the_way(site: Site, glance: Glance, disk: Path) -> None:
    packed = gzip.compress(NEW)
    disk.write_bytes(packed)
    sums = {"checksum": f"sha256:{sha256(NEW)}", "compressed_checksum": f"sha256:{sha256(packed)}"}
    settle(site, glance, Image(name="rhcos", source=str(disk), **sums))  # type: ignore[arg-type]
    (made,) = glance.images.values()
    assert (made["disk_format"], made["size"], made[PACKED]) == ("qcow2", len(NEW), f"sha256:{sha256(packed)}")
    disk.unlink()  # the right content is kept, whatever the file it came in
    assert not plan(site, Image(name="rhcos", source=str(disk), **(sums | {"compressed_checksum": "md5:" + "0" * 32})))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["checksum", "compressed_checksum"])
def test_a_wrong_sum_of_either_kind_leaves_nothing(site: Site, glance: Glance, disk: Path, name: str) -> None:
    packed = gzip.compress(NEW)
    disk.write_bytes(packed)
    sums = {"checksum": f"sha256:{sha256(NEW)}", "compressed_checksum": f"sha256:{sha256(packed)}"}
    (result,) = apply(site, Image(name="rhcos", source=str(disk), **(sums | {name: f"sha256:{sha256(OLD)}"}))).failed  # type: ignore[arg-type]
    assert isinstance(result.error, DownloadError)
    assert not glance.images


def test_the_sum_of_the_file_alone_tells_a_new_release(site: Site, glance: Glance, disk: Path) -> None:
    for content in (OLD, NEW):
        disk.write_bytes(gzip.compress(content))
        image = Image(
            name="rhcos",
            source=str(disk),
            compressed_checksum=f"sha512:{hashlib.sha512(disk.read_bytes()).hexdigest()}",
        )
        apply(site, image).raise_for_failures()
        assert not plan(site, image)
    settle(site, glance, image)
    assert glance.asked.count("upload rhcos-new") == 1
    glance.images.clear()
    glance.image("rhcos", NEW)
    with pytest.raises(PlanRefused, match="no sha512 that is known"):
        apply(site, image)


@pytest.mark.parametrize("fields", [{"container_format": "compressed"}, {"compression": "none"}])
def test_what_shall_stay_compressed(site: Site, glance: Glance, disk: Path, fields: dict[str, Any]) -> None:
    disk.write_bytes(gzip.compress(NEW))
    checksum = f"sha256:{sha256(disk.read_bytes())}"
    apply(site, Image(name="rhcos", source=str(disk), disk_format="qcow2", checksum=checksum, **fields))
    (made,) = glance.images.values()
    assert made[SEAL] == sha256(disk.read_bytes())


# --- RHCOS --------------------------------------------------------------------------------

LOCATION = "https://rhcos.test/art/rhcos-4.11.qcow2.gz"


class Releases:
    """Stream metadata in a file, and a server for what they speak of; ``downloads`` counts its requests."""

    def __init__(self, services: requests_mock.Mocker, folder: Path) -> None:
        self.services = services
        self.path = folder / "stream.json"

    def publish(self, content: bytes, url: str = LOCATION) -> None:
        packed = gzip.compress(content)
        disk = {"location": LOCATION, "sha256": sha256(packed), "uncompressed-sha256": sha256(content)}
        artifact = {"release": "411.85", "formats": {"qcow2.gz": {"disk": disk}}}
        self.path.write_text(json.dumps({"architectures": {"x86_64": {"artifacts": {"openstack": artifact}}}}))
        self.server = self.services.get(url, content=packed)

    @property
    def downloads(self) -> int:
        return self.server.call_count


@pytest.fixture
def releases(services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Releases(services, tmp_path)


@pytest.fixture
def cloud(site: Site) -> Cloud:
    return site.admin


@pytest.fixture
def coreos(releases: Releases) -> Image:
    return Image(name="rhcos", rhcos=Rhcos(stream=str(releases.path)))


def test_an_image_by_stream_metadata(cloud: Cloud, glance: Glance, releases: Releases, coreos: Image) -> None:
    releases.publish(OLD)
    prep.apply(cloud, [coreos]).raise_for_failures()
    (made,) = glance.images.values()
    assert (made["disk_format"], made[SEAL], made["name"]) == ("qcow2", sha256(OLD), "rhcos")
    assert releases.downloads == 1
    assert not prep.plan(cloud, [coreos])
    assert releases.downloads == 1

    releases.publish(NEW)
    (step,) = prep.plan(cloud, [coreos])
    assert (step.action, [change.field for change in step.changes]) == (Action.UPDATE, ["checksum"])
    prep.apply(cloud, [coreos]).raise_for_failures()
    (left,) = glance.images.values()
    assert (left["name"], left[SEAL]) == ("rhcos", sha256(NEW))
    assert releases.downloads == 1


def test_from_a_mirror(cloud: Cloud, glance: Glance, releases: Releases) -> None:
    releases.publish(NEW, "http://mirror.test/rhcos/art/rhcos-4.11.qcow2.gz")
    image = Image(name="rhcos", rhcos=Rhcos(stream=str(releases.path), mirror="http://mirror.test/rhcos"))
    prep.apply(cloud, [image]).raise_for_failures()
    assert releases.downloads == 1


def test_from_the_cache_of_the_installer(
    cloud: Cloud, glance: Glance, releases: Releases, coreos: Image, tmp_path: Path
) -> None:
    releases.publish(NEW)
    path = tmp_path / "cache" / "openshift-installer" / "image_cache" / "rhcos-4.11.qcow2"
    path.parent.mkdir(parents=True)
    path.write_bytes(NEW)
    prep.apply(cloud, [coreos]).raise_for_failures()
    (made,) = glance.images.values()
    assert made[SEAL] == sha256(NEW)
    assert PACKED not in made
    assert releases.downloads == 0
    assert not prep.plan(cloud, [coreos])


def test_metadata_that_cannot_be_read_are_a_refusal(
    cloud: Cloud, glance: Glance, releases: Releases, coreos: Image
) -> None:
    with pytest.raises(PlanRefused) as caught:
        prep.apply(cloud, [coreos, Image(name="other", source="/nowhere/disk")])
    said = [str(mistake) for mistake in caught.value.mistakes]
    assert len(said) == 2
    assert said[0].startswith("image/rhcos: ")
    assert "stream.json cannot be read" in said[0]


def test_destroy_needs_no_metadata(cloud: Cloud, glance: Glance, coreos: Image) -> None:
    glance.image("rhcos", OLD, owner="others", visibility="public")
    glance.ours("rhcos", NEW, of="rhcos")[SPEC] = "rhcos"  # that is what a plain list is called
    prep.destroy(cloud, [coreos]).raise_for_failures()
    assert prep.show(cloud, [coreos]) == {coreos.key: None}
    assert [each["owner"] for each in glance.images.values()] == ["others"]


# --- the spec -----------------------------------------------------------------------------


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
        {"rhcos": {"stream": "a.json"}, "compressed_checksum": "0" * 64},
    ],
)
def test_mistakes(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(tmp_path, **fields)
