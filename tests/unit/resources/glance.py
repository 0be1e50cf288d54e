"""Just as much of Glance as images need, and what tests of images do with it."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import Any

import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Observed
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.image.glance import ID, NAME, SEALS, SPEC
from openstack_prep.resources.image.image import Image
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS

SEAL = SEALS["sha256"]
GLANCE = ENDPOINTS["image"] + "/v2"
JSON = {"Content-Type": "application/json"}
OLD, NEW = b"QFI\xfb old", b"QFI\xfb new"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Glance:
    """Just as much of Glance as to keep what is sent or imported; ``asked`` are its requests but for reading."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.images: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.numbers = itertools.count(1)
        self.damage = b""
        self.created_at = "2026-11-21T00:00:00Z"
        self.methods = ["glance-direct", "web-download"]
        self.imports: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.web = b""
        """What web-download finds; each look at the image brings the import one of ``stages`` further."""
        self.stages: list[dict[str, Any]] = [{"status": "importing"}, {"status": "active"}]
        self.members: dict[str, str] = {}
        self.members_of: dict[str, dict[str, str]] = {}
        """Members of single images; all others share ``members``."""
        version = {"id": "v2.16", "status": "CURRENT", "links": [{"rel": "self", "href": GLANCE}]}
        services.get(ENDPOINTS["image"], json={"versions": [version]})
        services.get(f"{GLANCE}/images", json=self.list)
        services.post(f"{GLANCE}/images", json=self.create)
        services.get(f"{GLANCE}/info/import", json=lambda *_: {"import-methods": {"value": self.methods}})
        for number in range(1, 9):
            url = f"{GLANCE}/images/i{number}"
            services.get(url, json=self.show)
            services.put(f"{url}/file", text=self.upload)
            services.patch(url, json=self.patch)
            services.delete(url, text=self.delete)
            services.post(f"{url}/import", text=self.begin_import)
            services.get(f"{url}/tasks", json=lambda *_: {"tasks": self.tasks}, headers=JSON)
            services.get(f"{url}/members", json=self.list_members)
            services.post(f"{url}/members", json=self.add_member)
            services.put(re.compile(f"{url}/members/.*"), json=self.accept)

    def image(self, name: str, content: bytes | None = None, status: str = "active", **fields: Any) -> dict[str, Any]:
        made = {
            "id": fields.get("id") or self.new_id(),
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
            "created_at": self.created_at,
        } | fields
        self.images[made["id"]] = made
        if content is not None:
            self.fill(made, content)
        return made

    def new_id(self) -> str:
        return f"i{next(self.numbers)}"

    def ours(self, name: str, content: bytes | None = None, *, of: str = "rhcos", **fields: Any) -> dict[str, Any]:
        """Make an image of this spec's, sealed when it has content."""
        seal = {} if content is None else {SEAL: sha256(content)}
        made = self.image(name, content, **{SPEC: "lab", NAME: of}, **seal, **fields)
        made.setdefault(ID, made["id"])
        return made

    def fill(self, image: dict[str, Any], content: bytes) -> None:
        sums = {"os_hash_algo": "sha512", "os_hash_value": hashlib.sha512(content).hexdigest()}
        image.update(sums, checksum=hashlib.md5(content).hexdigest(), size=len(content), status="active")

    def _of(self, request: Any) -> dict[str, Any]:
        return self.images[request.path.split("/")[3]]

    def list(self, request: Any, context: Any) -> Any:
        """Return the images of an owner or of a name, or all when several names are asked for; hidden ones apart."""
        hidden = request.qs.get("os_hidden") == ["true"]
        seen = [each for each in self.images.values() if each.get("os_hidden", False) is hidden]
        if "all" not in request.qs.get("visibility", ()):
            seen = [each for each in seen if each["visibility"] != "community"]
        if "owner" in request.qs:
            return {"images": [each for each in seen if each["owner"].lower() in request.qs["owner"]]}
        operator, _, name = request.qs["name"][0].partition(":")
        return {"images": [each for each in seen if operator == "in" or each["name"].lower() == name]}

    def create(self, request: Any, context: Any) -> Any:
        if request.json()["id"] in self.images:
            context.status_code = 409
            return {"message": "Image ID already exists"}
        made = self.image(**{"status": "queued"} | request.json())
        self.asked.append(f"create {made['name']}")
        return made

    def show(self, request: Any, context: Any) -> Any:
        image = self._of(request)
        if self.imports and self.stages:
            image |= (stage := self.stages.pop(0))
            if stage.get("status") == "active":
                self.fill(image, self.web)
        return image

    def begin_import(self, request: Any, context: Any) -> str:
        self.asked.append(f"import {self._of(request)['name']}")
        self.imports.append(request.json())
        context.status_code = 202
        return ""

    def _members(self, request: Any) -> dict[str, str]:
        assert self._of(request)["visibility"] == "shared"
        return self.members_of.get(self._of(request)["id"], self.members)

    def list_members(self, request: Any, context: Any) -> Any:
        return {"members": [{"member_id": each, "status": status} for each, status in self._members(request).items()]}

    def add_member(self, request: Any, context: Any) -> Any:
        members, member = self._members(request), request.json()["member"]
        assert member not in members
        self.asked.append(f"share {member}")
        members[member] = "pending"
        return {}

    def accept(self, request: Any, context: Any) -> Any:
        member = request.path.rpartition("/")[2]
        self.asked.append(f"{request.json()['status']} {member}")
        self._members(request)[member] = request.json()["status"]
        return {}

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
        for each in operations:
            if each["op"] == "remove":
                del image[each["path"][1:]]
            else:
                image[each["path"][1:]] = each["value"]
        return image

    def delete(self, request: Any, context: Any) -> str:
        image = self._of(request)
        assert not image["protected"]
        self.asked.append(f"delete {image['id']}")
        del self.images[image["id"]]
        context.status_code = 204
        return ""


def plan(run: CloudRun, image: Image) -> Plan:
    observed, mistakes = observation.examine(run.fresh(), [image])
    return planner.plan_apply("lab", [image], observed, mistakes=mistakes)


def apply(run: CloudRun, image: Image) -> Report:
    made = plan(run, image)
    made.raise_for_refusals()
    return executor.execute(made, run)


def settle(run: CloudRun, glance: Glance, image: Image) -> Observed:
    """Apply, and see that exactly one right image is left and a second apply does nothing."""
    report = apply(run, image)
    report.raise_for_failures()
    (left,) = glance.images.values()
    assert (left["name"], left["status"], left[SEAL]) == (image.name, "active", sha256(NEW))
    assert not plan(run, image)
    observed = report.results[0].observed
    assert observed is not None
    assert observed.id == left["id"]
    return observed
