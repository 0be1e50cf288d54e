"""What one cloud holds, and who asks."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from tests.devcloud.layout import Layout
from tests.light.table import Row, Table
from tests.light.web import Json, Refused

DOMAIN = "default"
IMPLIES = {"admin": ("manager",), "manager": ("member",), "member": ("reader",)}


def new_id() -> str:
    return str(uuid.uuid4())


def plain_id() -> str:
    """Return an id as Keystone writes them."""
    return uuid.uuid4().hex


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Whose requests these are; ``project`` is None if the token has no scope."""

    user: Row
    project: Row | None
    roles: frozenset[str]
    """Names, with those that they imply."""
    methods: tuple[str, ...] = ("password",)
    credential: Row | None = None

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles

    @property
    def depends_on(self) -> list[str]:
        return [str(each["id"]) for each in (self.user, self.project, self.credential) if each is not None]

    @property
    def project_id(self) -> str:
        if self.project is None:
            raise Refused(403, "the token has no project")
        return str(self.project["id"])


class Tokens:
    """The valid tokens."""

    def __init__(self) -> None:
        self._tokens: dict[str, Token] = {}
        self._of: dict[str, set[str]] = {}
        """By the ids of what they depend on."""

    def get(self, value: str) -> Token | None:
        return self._tokens.get(value)

    def add(self, value: str, token: Token) -> None:
        self._tokens[value] = token
        for each in token.depends_on:
            self._of.setdefault(each, set()).add(value)

    def revoke(self, first: str, *others: str) -> None:
        """Revoke the tokens that depend on all of these users, projects and credentials."""
        values = set(self._of.get(first, ())).intersection(*(self._of.get(each, ()) for each in others))
        for value in values:
            for each in self._tokens.pop(value).depends_on:
                self._of[each].discard(value)

    def discard(self, value: str) -> None:
        for each in self._tokens.pop(value).depends_on:
            self._of[each].discard(value)


def _networks() -> Table:
    return Table("project_id", "name", "router:external", "shared", "tags")


def _addresses_of(row: Row) -> Iterable[str]:
    for each in row["fixed_ips"]:
        yield f"ip_address={each['ip_address']}"
        yield f"subnet_id={each['subnet_id']}"


def _places_of(row: Row) -> Iterable[str]:
    for each in row["fixed_ips"]:
        yield f"{row['network_id']}/{each['ip_address']}"


def _ports() -> Table:
    fields = ("project_id", "name", "network_id", "device_id", "tags")
    return Table(*fields, fixed_ips=_addresses_of, place=_places_of)


@dataclass
class Counts:
    """Requests since somebody has set them to zero."""

    known: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By service, and method and kind of path."""
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    at_once: int = 0
    """The most at one moment."""
    since: float = field(default_factory=time.monotonic)
    cpu: float = field(default_factory=time.process_time)

    def report(self) -> Json:
        services: dict[str, dict[str, int]] = {}
        for (service, label), number in sorted(self.known.items()):
            services.setdefault(service, {})[label] = number
        return {
            "requests": self.known.total() + self.unknown.total(),
            "by_service": {service: sum(labels.values()) for service, labels in services.items()},
            "services": services,
            "unknown": {f"{service} {label}": number for (service, label), number in sorted(self.unknown.items())},
            "statuses": {str(status): number for status, number in sorted(self.statuses.items())},
            "at_once": self.at_once,
            "seconds": round(time.monotonic() - self.since, 3),
            "cpu_seconds": round(time.process_time() - self.cpu, 3),
        }


@dataclass
class Cloud:
    """One cloud with its own Keystone; ``latency`` is in seconds for each request."""

    layout: Layout
    region: str
    latency: float = 0.0
    counts: Counts = field(default_factory=Counts)
    pending: int = 0

    roles: Table = field(default_factory=lambda: Table("name"))
    projects: Table = field(default_factory=lambda: Table("name", "tags"))
    users: Table = field(default_factory=lambda: Table("name"))
    assignments: Table = field(default_factory=lambda: Table("user", "project", "role"))
    credentials: Table = field(default_factory=lambda: Table("user_id", "project_id"))
    tokens: Tokens = field(default_factory=Tokens)

    flavors: Table = field(default_factory=lambda: Table("name"))
    kept_flavors: tuple[int, dict[str, bytes]] = field(default_factory=lambda: (-1, {}))
    """Rendered lists of an administrator, by query, and the version of the flavors that they show."""
    granted: dict[str, set[str]] = field(default_factory=dict)
    """Projects that may use a flavor, by its id."""
    keypairs: dict[str, dict[str, Row]] = field(default_factory=dict)
    """By user and name."""
    server_groups: Table = field(default_factory=lambda: Table("project_id"))
    quotas: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """Limits that differ from the defaults, by service and project."""

    networks: Table = field(default_factory=_networks)
    subnets: Table = field(default_factory=lambda: Table("project_id", "name", "network_id", "tags"))
    ports: Table = field(default_factory=_ports)
    routers: Table = field(default_factory=lambda: Table("project_id", "name", "tags"))
    security_groups: Table = field(default_factory=lambda: Table("project_id", "name", "tags"))
    rules: Table = field(default_factory=lambda: Table("project_id", "security_group_id"))
    floating_ips: Table = field(
        default_factory=lambda: Table("project_id", "floating_ip_address", "router_id", "port_id", "tags")
    )
    next_address: dict[str, int] = field(default_factory=dict)
    """Where to look for the next free address, by the beginning of a pool."""

    images: Table = field(default_factory=lambda: Table("name", "owner", "visibility"))
    members: dict[str, dict[str, Row]] = field(default_factory=dict)
    """By image and project."""
    accounts: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    """Metadata of Swift's accounts, by project."""

    @cached_property
    def role_ids(self) -> dict[str, str]:
        return {row["name"]: row["id"] for row in self.roles.rows.values()}

    def urls(self, project_id: str) -> Iterable[tuple[str, str, str]]:
        """Yield the type, the name and the address of each service."""
        url = self.layout.url
        yield "identity", "keystone", f"{url('keystone')}/v3"
        yield "image", "glance", url("glance")
        yield "compute", "nova", f"{url('nova')}/v2.1"
        yield "network", "neutron", url("neutron")
        yield "block-storage", "cinder", f"{url('cinder')}/v3"
        yield "volumev3", "cinderv3", f"{url('cinder')}/v3/{project_id}"
        yield "orchestration", "heat", f"{url('heat')}/v1/{project_id}"
        yield "object-store", "swift", f"{url('swift-proxy')}/v1/AUTH_{project_id}"


def implied(names: Iterable[str]) -> frozenset[str]:
    """Return roles with those that they imply, by name."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += IMPLIES.get(name, ())
    return frozenset(found)
