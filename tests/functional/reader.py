"""Everything that the services show to a user with the role ``reader`` in a project, searched for secrets."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from openstack.connection import Connection

from openstack_prep.base.secret import Secret
from tests.functional.lab import Lab

LISTS = {
    "compute": ("/servers/detail", "/os-keypairs", "/os-server-groups"),
    "network": (
        *("/v2.0/networks", "/v2.0/subnets", "/v2.0/ports", "/v2.0/security-groups", "/v2.0/security-group-rules"),
        *("/v2.0/floatingips", "/v2.0/routers", "/v2.0/trunks", "/v2.0/rbac-policies", "/v2.0/address-groups"),
    ),
    "image": ("/v2/images",),
    "block-storage": ("/volumes/detail", "/snapshots/detail", "/backups/detail", "/attachments/detail"),
    "object-store": ("",),
}
"""Lists of a service that show all members of each resource."""
OF_SERVER = (
    *("", "/metadata", "/tags", "/ips", "/os-interface", "/os-volume_attachments", "/os-instance-actions"),
    *("/os-server-password", "/diagnostics", "/os-security-groups", "/topology"),
)
SERVER_ACTIONS: tuple[Mapping[str, Any], ...] = (
    {"os-getConsoleOutput": {}},
    {"os-getVNCConsole": {"type": "novnc"}},
    {"os-getSerialConsole": {"type": "serial"}},
)
OF_STACK = (
    *("", "/template", "/environment", "/files", "/outputs", "/snapshots"),
    *("/resources?nested_depth=5&with_detail=true", "/events?nested_depth=5"),
)
MICROVERSION = {"compute": "compute 2.96", "block-storage": "volume 3.70"}


@dataclass
class Reader:
    """A reader who asks for everything, and what came back."""

    connection: Connection
    secrets: Mapping[str, str]
    """Secret values by name, each long enough to be recognised."""
    answers: int = 0
    leaks: dict[str, set[str]] = field(default_factory=dict)
    """By request, the names of the secrets in its answer."""
    resources: list[str] = field(default_factory=list)
    """What was asked about the resources of stacks, by type."""

    def search(self) -> Reader:
        self._search_heat()
        for service, paths in LISTS.items():
            for path in paths:
                self.ask(service, path)
        for server in self.ask("compute", "/servers/detail").get("servers", ()):
            for path in OF_SERVER:
                self.ask("compute", f"/servers/{server['id']}{path}")
            for body in SERVER_ACTIONS:
                self.ask("compute", f"/servers/{server['id']}/action", body)
        return self

    def ask(self, service: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return an answer, and look for secrets in it; empty if the service refuses it."""
        headers = {"OpenStack-API-Version": MICROVERSION[service]} if service in MICROVERSION else {}
        endpoint: Any = {"service_type": service, "interface": "public"}
        answer = self.connection.session.request(
            path, "POST" if body else "GET", json=body, headers=headers, endpoint_filter=endpoint, raise_exc=False
        )
        assert answer.status_code < 500, f"{service} {path}: {answer.status_code} {answer.text}"
        self.answers += 1
        found = {name for name, secret in self.secrets.items() if contains(answer.text, secret)}
        if found:
            self.leaks.setdefault(f"{service} {path}", set()).update(found)
        try:
            read = answer.json() if answer.ok else {}
        except ValueError:
            read = {}
        return read if isinstance(read, dict) else {}

    def _search_heat(self) -> None:
        for each in self.ask("orchestration", "/stacks?show_nested=true&show_deleted=true").get("stacks", ()):
            self._search_stack(f"/stacks/{quote(each['stack_name'], safe='')}/{each['id']}")
        for each in self.ask("orchestration", "/software_configs").get("software_configs", ()):
            self.ask("orchestration", f"/software_configs/{each['id']}")
        for each in self.ask("orchestration", "/software_deployments").get("software_deployments", ()):
            self.ask("orchestration", f"/software_deployments/{each['id']}")
            self.ask("orchestration", f"/software_deployments/metadata/{each['server_id']}")

    def _search_stack(self, stack: str) -> None:
        for path in OF_STACK:
            self.ask("orchestration", stack + path)
        for each in self.ask("orchestration", f"{stack}/outputs").get("outputs", ()):
            self.ask("orchestration", f"{stack}/outputs/{each['output_key']}")
        for each in self.ask("orchestration", f"{stack}/snapshots").get("snapshots", ()):
            self.ask("orchestration", f"{stack}/snapshots/{each['id']}")
        for each in self.ask("orchestration", f"{stack}/resources").get("resources", ()):
            self.resources.append(each["resource_type"])
            path = f"{stack}/resources/{quote(each['resource_name'], safe='')}"
            shown = self.ask("orchestration", path).get("resource") or {}
            for attribute in [*(shown.get("attributes") or {}), "show", "value"]:
                self.ask("orchestration", f"{path}?with_attr={attribute}")
            self.ask("orchestration", f"{path}/metadata")
            for event in self.ask("orchestration", f"{path}/events").get("events", ()):
                self.ask("orchestration", f"{path}/events/{event['id']}")


def contains(text: str, secret: str) -> bool:
    """Whether an answer has the secret: as it is, within JSON, or in base64 at any offset."""
    return any(form in text for form in _forms(secret))


def _forms(secret: str) -> Iterator[str]:
    once = json.dumps(secret)[1:-1]
    yield from (secret, once, json.dumps(once)[1:-1])
    for offset in range(3):  # base64 of a text that has it in its middle: without what its neighbours change
        coded = base64.b64encode(b"\0" * offset + secret.encode()).decode().rstrip("=")
        yield coded[(0, 2, 3)[offset] : len(coded) - 1]


@contextlib.contextmanager
def reading(lab: Lab) -> Iterator[Connection]:
    """Return the connection of a user who has only the role reader in the project of a lab."""
    identity: Any = lab.admin.identity
    user = identity.create_user(name=f"{lab.name}-reader", password="of-the-reader", domain_id="default")
    identity.assign_project_role_to_user(lab.project_id, user, identity.find_role("reader"))
    words = {"username": user.name, "password": Secret("of-the-reader"), "user_domain": "Default"}
    try:
        yield lab.cloud.as_user(**words, project_id=lab.project_id).connection  # type: ignore[arg-type]
    finally:
        identity.delete_user(user)
