"""The fixtures of the functional tests, on a devcloud with Designate, and questions to its name server."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest

from tests.devcloud.layout import HOST
from tests.devcloud.pytest_devcloud import PATIENCE, Devcloud, devcloud, pytest_runtest_teardown, tenant
from tests.functional.conftest import Prep, lab, own_lab, prep

__all__ = ["Prep", "devcloud", "lab", "own_lab", "prep", "pytest_runtest_teardown", "tenant"]


ASK = """
import json, sys, dns.message, dns.query
host, port, name, kind = sys.argv[1:]
answer = dns.query.udp(dns.message.make_query(name, kind), host, port=int(port), timeout=10)
print(json.dumps([str(each) for rrset in answer.answer for each in rrset]))
"""
"""A question to a name server, by the dnspython of the cloud's own environment."""


@dataclass(frozen=True)
class Zone:
    """A zone of a project, by plain requests."""

    devcloud: Devcloud
    name: str
    id: str
    project_id: str

    def request(self, method: str, path: str, body: Any = None, *, project_id: str | None = None) -> Any:
        headers = {"X-Auth-Sudo-Project-ID": project_id or self.project_id}
        answer = self.devcloud.admin.dns.request(f"/zones/{self.id}{path}", method, json=body, headers=headers)
        assert answer.ok, answer.text
        return answer.json() if answer.content else {}

    def recordsets(self) -> dict[tuple[str, str], Any]:
        """Return what users have created, by name and type."""
        listed = self.request("GET", "/recordsets?limit=max")["recordsets"]
        found = {(each["name"].removesuffix("."), each["type"]): each for each in listed if each["type"] != "SOA"}
        return {key: each for key, each in found.items() if key != (self.name, "NS")}

    def create(self, name: str, kind: str, *records: str, project_id: str | None = None, **more: Any) -> Any:
        body = {"name": f"{name}.", "type": kind, "records": records, **more}
        return self.request("POST", "/recordsets", body, project_id=project_id)

    def share(self, project_id: str) -> None:
        self.request("POST", "/shares", {"target_project_id": project_id})

    def answer(self, name: str, kind: str = "A") -> set[str]:
        """Return what Designate's name server answers."""
        layout = self.devcloud.layout
        words = (layout.venv / "bin/python", "-c", ASK, HOST, str(layout.mdns_port), name, kind)
        return set(json.loads(subprocess.run(words, check=True, capture_output=True, timeout=60).stdout))


Zones = Callable[..., Zone]


@pytest.fixture
def zones(devcloud: Devcloud) -> Iterator[Zones]:
    """Create zones: ``zones(project_id)``; they are deleted with all that they hold."""
    made: list[Zone] = []

    def create(project_id: str, name: str = "") -> Zone:
        name = name or f"z{secrets.token_hex(3)}.example"
        headers = {"X-Auth-Sudo-Project-ID": project_id}
        body = {"name": f"{name}.", "email": "hostmaster@example.com"}
        answer = devcloud.admin.dns.post("/zones", json=body, headers=headers)
        assert answer.ok, answer.text
        made.append(Zone(devcloud, name, answer.json()["id"], project_id))
        return made[-1]

    yield create
    for each in reversed(made):
        headers = {"X-Auth-Sudo-Project-ID": each.project_id, "X-Designate-Delete-Shares": "true"}
        deadline = time.monotonic() + PATIENCE
        gone = (HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND)
        # refused while a zone below is being deleted
        while devcloud.admin.dns.delete(f"/zones/{each.id}", headers=headers).status_code not in gone:
            assert time.monotonic() < deadline, f"zone {each.name} is not deleted"
            time.sleep(0.2)
