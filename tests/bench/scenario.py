"""What every contender starts from, and what it has to leave behind.

A contender that is fast because it left something out would be found here.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from tests.devcloud.faults import SIGNATURE
from tests.devcloud.layout import PASSWORD, REPOSITORY, Layout
from tests.devcloud.qcow2 import qcow2

SPEC = "openshift-lab.yaml"
IMAGE = "rhcos.qcow2"
EXTERNAL = "external"
USER_PASSWORD, TEMP_URL_KEY = "bench-password", "bench-key"
COMPUTE_QUOTA = {"cores": 40, "ram": 102400}
NETWORK_QUOTA = {"security_group": 40, "security_group_rule": 500}
SIZE = {"ram": 16384, "vcpus": 4, "disk": 25}


@dataclass(frozen=True)
class Scenario:
    """What is made, by its names; sizes and quotas are always the same."""

    project: str
    user: str
    flavor: str
    image: str
    addresses: tuple[str, str]

    @property
    def roles(self) -> set[tuple[str, str]]:
        """Who has which role in the project."""
        return {(self.user, "member"), (self.user, "admin"), (self.user, "swiftoperator"), ("admin", "admin")}


MEASURED = Scenario("ocp-tenant", "ocp-user", "master", "rhcos", ("192.168.122.164", "192.168.122.180"))
REHEARSAL = Scenario("rehearsal", "rehearsal", "rehearsal", "rehearsal", ("192.168.122.161", "192.168.122.162"))


class BenchError(Exception):
    """The benchmark cannot go on; the message says why."""


def lay_out(directory: Path) -> None:
    """Put there what a contender may read: the image and the spec."""
    directory.mkdir()
    (directory / IMAGE).write_bytes(qcow2())
    shutil.copy(REPOSITORY / "install_configs" / SPEC, directory)


class Client:
    """A client that the counting leaves out: it signs as the cloud's own requests do."""

    def __init__(self, auth_url: str, user: str, password: str, project: str) -> None:
        self.session = requests.Session()
        self.session.headers["User-Agent"] = f"{SIGNATURE}bench"
        body = credentials(user, password, project)
        answer = self.session.post(f"{auth_url}/auth/tokens", json=body, timeout=60)
        answer.raise_for_status()
        self.session.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
        self.endpoints = endpoints(answer.json())

    def send(self, method: str, service: str, path: str = "", **query: Any) -> requests.Response:
        answer = self.session.request(method, self.endpoints[service] + path, params=query, timeout=60)
        answer.raise_for_status()
        return answer

    def get(self, service: str, path: str, **query: Any) -> Any:
        return self.send("GET", service, path, **query).json()


def credentials(user: str, password: str, project: str) -> dict[str, Any]:
    """Body of the request for a token."""
    named = {"name": user, "password": password, "domain": {"id": "default"}}
    scope = {"project": {"name": project, "domain": {"id": "default"}}}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": named}}, "scope": scope}}


def endpoints(token: Any) -> dict[str, str]:
    """Public addresses by service type."""
    return {
        service["type"]: endpoint["url"]
        for service in token["token"]["catalog"]
        for endpoint in service["endpoints"]
        if endpoint["interface"] == "public"
    }


def check(layout: Layout, directory: Path) -> None:
    """Raise BenchError unless the cloud and clouds.yaml are as the scenario wants them."""
    admin = Client(layout.auth_url, "admin", PASSWORD, "admin")
    if wrong := [what for what, right in _findings(admin, directory) if not right]:
        raise BenchError(f"not as it should be afterwards: {', '.join(wrong)}")


def _findings(admin: Client, directory: Path) -> Iterator[tuple[str, bool]]:
    wanted = MEASURED
    (project,) = admin.get("identity", "/projects", name=wanted.project)["projects"]
    here = project["id"]
    yield "user", len(admin.get("identity", "/users", name=wanted.user)["users"]) == 1
    assignments = {"scope.project.id": here, "include_names": True}
    assigned = admin.get("identity", "/role_assignments", **assignments)["role_assignments"]
    yield "roles", {(each["user"]["name"], each["role"]["name"]) for each in assigned} == wanted.roles
    limits = admin.get("compute", f"/os-quota-sets/{here}")["quota_set"]
    yield "compute quota", COMPUTE_QUOTA.items() <= limits.items()
    limits = admin.get("network", f"/v2.0/quotas/{here}")["quota"]
    yield "network quota", NETWORK_QUOTA.items() <= limits.items()
    flavors = admin.get("compute", "/flavors/detail")["flavors"]
    yield "flavor", [SIZE.items() <= each.items() for each in flavors if each["name"] == wanted.flavor] == [True]
    addresses = admin.get("network", "/v2.0/floatingips", project_id=here)["floatingips"]
    yield "floating IPs", sorted(each["floating_ip_address"] for each in addresses) == sorted(wanted.addresses)
    images = admin.get("image", "/v2/images", owner=here)["images"]
    md5 = hashlib.md5((directory / IMAGE).read_bytes(), usedforsecurity=False).hexdigest()
    yield (
        "image",
        [(each["name"], each["status"], each["checksum"]) for each in images] == [(wanted.image, "active", md5)],
    )

    file = min(directory.rglob("clouds.yaml"))  # the shipped spec writes it into a folder of its own
    entry = yaml.safe_load(file.read_text())["clouds"][wanted.project]["auth"]
    user = Client(entry["auth_url"], entry["username"], entry["password"], wanted.project)
    yield "Temp-URL-Key", bool(user.send("HEAD", "object-store").headers.get("X-Account-Meta-Temp-Url-Key"))
