"""What is in the cloud, asked of the services by plain keystoneauth: never through what is being tested."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from tests.devcloud.faults import SIGNATURE
from tests.devcloud.layout import PASSWORD, Layout

LISTS = (  # service type, path, member
    ("identity", "/projects", "projects"),
    ("identity", "/users", "users"),
    ("identity", "/role_assignments", "role_assignments"),
    ("compute", "/flavors/detail?is_public=None", "flavors"),
    ("compute", "/servers/detail?all_tenants=1", "servers"),
    ("compute", "/os-server-groups?all_projects=1", "server_groups"),
    ("network", "/networks", "networks"),
    ("network", "/subnets", "subnets"),
    ("network", "/subnetpools", "subnetpools"),
    ("network", "/routers", "routers"),
    ("network", "/ports", "ports"),
    ("network", "/floatingips", "floatingips"),
    ("network", "/security-groups", "security_groups"),
    ("network", "/security-group-rules", "security_group_rules"),
    ("network", "/rbac-policies", "rbac_policies"),
    ("network", "/trunks", "trunks"),
    ("network", "/quotas", "quotas"),
    ("image", "/v2/images?limit=1000", "images"),
    ("volumev3", "/volumes/detail?all_tenants=1", "volumes"),
)
MICROVERSION = "2.13"
"""The keypairs of a user (since 2.10), and server groups with their project (since 2.13)."""
OF_USER = (
    ("identity", "/users/{0}/application_credentials", "application_credentials"),
    ("compute", "/os-keypairs?user_id={0}", "keypairs"),
)
RANDOM = re.compile(r"(?<=-)[a-z0-9]{12}(?=-|$)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{4,12}|[0-9a-f]{32}")
"""What Heat adds to names, and ids within them."""


@dataclass(frozen=True)
class Thing:
    """One resource; ``where`` is the name of its project or user."""

    kind: str
    name: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.where})"


class Cloud:
    """The administrator's session, whose requests are neither counted nor hit by faults."""

    def __init__(self, layout: Layout) -> None:
        domains: dict[str, Any] = {"user_domain_id": "default", "project_domain_id": "default"}
        login = v3.Password(layout.auth_url, username="admin", password=PASSWORD, project_name="admin", **domains)
        self._heat = layout.db / "heat.sqlite"
        self.session = Session(auth=login, user_agent=f"{SIGNATURE}inventory", timeout=120)

    def inventory(self) -> dict[str, Thing]:
        """Return everything by its id."""
        listed = {member: self._list(service, path, member) for service, path, member in LISTS}
        users = {each["id"]: each["name"] for each in listed["users"]}
        projects = {each["id"]: each["name"] for each in listed["projects"]}
        found = {}
        for member, things in listed.items():
            for number, each in enumerate(things):
                found[_id(member, each, number)] = Thing(member, _name(member, each), _owner(each, projects, users))
        for id_, name in users.items():
            for service, path, member in OF_USER:
                for each in self._list(service, path.format(id_), member):
                    each = each.get("keypair", each)
                    found[f"{member}/{id_}/{each['name']}"] = Thing(member, each["name"], name)
        found |= self._containers(projects)
        found |= self._stacks(projects)
        return found

    def _stacks(self, projects: Mapping[str, str]) -> dict[str, Thing]:
        """Return the stacks of all projects, which Heat's API shows to nobody."""
        with contextlib.closing(sqlite3.connect(f"file:{self._heat}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT id, name, tenant FROM stack WHERE deleted_at IS NULL").fetchall()
        return {
            f"stack/{id_}": Thing("stack", RANDOM.sub("*", name), projects.get(of, "gone")) for id_, name, of in rows
        }

    def _list(self, service: str, path: str, member: str) -> list[dict[str, Any]]:
        root = "/v2.0" if service == "network" else ""
        filters = {"service_type": service, "interface": "public"}
        version = {"OpenStack-API-Version": f"compute {MICROVERSION}"} if service == "compute" else {}
        answer = self.session.get(f"{root}{path}", endpoint_filter=filters, headers=version, connect_retries=3)
        listed: list[dict[str, Any]] = answer.json()[member]
        return listed

    def _containers(self, projects: Mapping[str, str]) -> dict[str, Thing]:
        """Return containers of Swift; those of a deleted project cannot be asked for."""
        found = {}
        account = self.session.get_endpoint(service_type="object-store", interface="public") or ""
        for id_, name in projects.items():
            url = f"{account.rpartition('AUTH_')[0]}AUTH_{id_}?format=json"
            answer = self.session.get(url, raise_exc=False)
            for each in answer.json() if answer.status_code == 200 else ():
                found[f"container/{id_}/{each['name']}"] = Thing("container", each["name"], name)
        return found


def _id(member: str, each: Mapping[str, Any], number: int) -> str:
    if member == "role_assignments":
        parts = (
            each["role"]["id"],
            each.get("user", {}).get("id"),
            each.get("group", {}).get("id"),
            str(each["scope"]),
        )
        return "/".join(map(str, parts))
    return f"{member}/{each.get('id') or each.get('project_id') or number}"


def _name(member: str, each: Mapping[str, Any]) -> str:
    if member == "security_group_rules":
        fields = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")
        return " ".join(str(each[field]) for field in fields if each[field] is not None)
    if member == "floatingips":
        return str(each.get("description") or "")
    if member == "role_assignments":
        return str(each["role"]["id"])
    if member == "ports" and not each["name"]:
        return str(each["device_owner"])
    return RANDOM.sub("*", str(each.get("name") or each.get("stack_name") or ""))


def _owner(each: Mapping[str, Any], projects: Mapping[str, str], users: Mapping[str, str]) -> str:
    """Return the name of the project; ``gone`` when there is none any more: the resource was left behind."""
    if "role" in each and "scope" in each:
        scope = each["scope"].get("project", {}).get("id", "")
        user = each.get("user", {}).get("id", "")
        return f"{users.get(user, user and 'gone')}@{projects.get(scope, scope and 'gone')}"
    id_ = each.get("project_id") or each.get("tenant_id") or each.get("owner") or each.get("project") or ""
    return projects.get(str(id_), "gone" if id_ and "domain_id" not in each else "")


def counts(found: Mapping[str, Thing], before: Mapping[str, Thing]) -> Counter[Thing]:
    """Return how many there are of each that was not there before."""
    return Counter(thing for id_, thing in found.items() if id_ not in before)


def differences(now: Counter[Thing], wanted: Counter[Thing], when: str) -> Iterator[str]:
    """Yield what there is more or less of than there should be."""
    for thing in sorted(now.keys() | wanted.keys(), key=str):
        if now[thing] != wanted[thing]:
            yield f"{now[thing]} of {thing} {when}, not {wanted[thing]}"
