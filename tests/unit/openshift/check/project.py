"""A project that a cluster could be installed in, played by requests-mock; tests change what is in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.check import CheckContext, Diagnostic
from openstack_prep.openshift.check.context import READER
from openstack_prep.openshift.install_config import FileContents, Machines
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, connection, token
from tests.unit.openshift.check.neutron import cluster

NOVA, NEUTRON, CINDER = ENDPOINTS["compute"], ENDPOINTS["network"] + "/v2.0", ENDPOINTS["block-storage"]
GLANCE, SWIFT = ENDPOINTS["image"] + "/v2", ENDPOINTS["object-store"]
UNLIMITED = {"limit": -1, "in_use": 0, "used": 0, "reserved": 0}
MACHINES = Machines(flavor="master")


def flavor(name: str, ram: int = 16384, vcpus: int = 4, disk: int = 100, **specs: str) -> dict[str, Any]:
    return {"id": name, "name": name, "ram": ram, "vcpus": vcpus, "disk": disk, "extra_specs": specs}


def list_services() -> list[dict[str, Any]]:
    """Return the catalogue: the service of volumes has both of its types."""
    catalog: list[dict[str, Any]] = token()["token"]["catalog"]
    volumes = next(service for service in catalog if service["type"] == "block-storage")
    return [*catalog, {**volumes, "id": "volumev3", "name": "volumev3", "type": "volumev3"}]


class Project:
    """What its services answer."""

    def __init__(self, services: requests_mock.Mocker, folder: Path) -> None:
        self.services = services
        self.folder = folder
        self.flavors = [flavor("master"), flavor("worker", 8192, 2)]
        self.images: list[dict[str, Any]] = []
        self.floating_ips: list[dict[str, Any]] = []
        self.quotas: dict[str, dict[str, Any]] = {"compute": {}, "network": {}, "volume": {}}
        self.login()
        services.get(f"{NOVA}/flavors/detail", json=lambda *_: {"flavors": self.flavors})
        version = {"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": f"{GLANCE}/"}]}
        services.get(ENDPOINTS["image"], json={"versions": [version]})
        services.get(f"{GLANCE}/images", json=self._images)
        services.get(f"{NEUTRON}/floatingips", json=lambda *_: {"floatingips": self.floating_ips})
        services.head(f"{SWIFT}/", status_code=204)
        self.credentials: list[dict[str, Any]] = []
        path = f"{IDENTITY}/users/admin-user/application_credentials"
        services.get(path, json=lambda *_: {"application_credentials": self.credentials})
        for path, service, envelope in (
            (f"{NOVA}/os-quota-sets/{ADMIN_PROJECT}/detail", "compute", "quota_set"),
            (f"{NEUTRON}/quotas/{ADMIN_PROJECT}/details.json", "network", "quota"),
            (f"{CINDER}/os-quota-sets/{ADMIN_PROJECT}", "volume", "quota_set"),
        ):
            services.get(path, json=lambda *_, service=service, name=envelope: {name: self.quotas[service]})

    def _images(self, request: Any, _: Any) -> dict[str, Any]:
        wanted = request.qs.get("name")
        return {"images": [each for each in self.images if wanted in (None, [f"eq:{each['name']}"])]}

    def login(self, *, roles: tuple[str, ...] = ("member", "swiftoperator"), **fields: Any) -> None:
        """Change the token that a login gives."""
        body = token()
        body["token"]["catalog"] = list_services()
        body["token"] |= {"roles": [{"id": each, "name": each} for each in roles], **fields}
        self.services.post(f"{IDENTITY}/auth/tokens", json=body, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)

    def without(self, *types: str, region: str = "one") -> None:
        """Take services out of the catalogue, or move it to another region."""
        body = token()
        body["token"]["roles"] = []
        removed = {*types, *(["volumev3"] if "block-storage" in types else [])}
        body["token"]["catalog"] = [each for each in list_services() if each["type"] not in removed]
        for service in body["token"]["catalog"]:
            for each in service["endpoints"]:
                each["region"] = each["region_id"] = region
        self.services.post(f"{IDENTITY}/auth/tokens", json=body, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)

    def context(self, *, installer: Path | None = None, **fields: Any) -> CheckContext:
        given = {"machines": MACHINES} | fields
        return CheckContext(
            run=CloudRun(Cloud(connection()), READER),
            cluster=cluster(**given),
            contents=FileContents(),
            path=self.folder / "install-config.yaml",
            installer=installer,
        )

    def findings(self, check: Callable[[CheckContext], Iterator[Diagnostic]], **fields: Any) -> list[Diagnostic]:
        return list(check(self.context(**fields)))

    def found(self, check: Callable[[CheckContext], Iterator[Diagnostic]], **fields: Any) -> list[str]:
        """Return what one check finds: level, place, matter."""
        return [f"{each.status} {each.where}: {each.what}" for each in self.findings(check, **fields)]

    def fail(self, method: str, pattern: str, **answer: Any) -> None:
        self.services.register_uri(method, re.compile(pattern), **answer)
