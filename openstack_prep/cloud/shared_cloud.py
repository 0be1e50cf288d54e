"""One cloud for the plans of many specs: what all of them read, and what single projects hold, is read once.

A plan of one spec reads each list for its project. Plans of a thousand specs would ask each service a thousand times
for what one list of all projects contains. ``SharedCloud`` answers such reads from that list, so a plan is the same as
with a cloud of its own, as of the moment at which the list was read. It is for one phase of planning, and never for
writing: apply plans again with a cloud of its own.

Every filter here is one of equality in the service, too. Reads with any other parameter are sent as they are; so are
reads by a name of Neutron's and of others who leave the comparison to their database, which may ignore case.

Source: Identity API v3; Networking API v2.0; Image API v2. Nova and Cinder have no list of the quotas of all projects
(Nova 34.0.0, api/openstack/compute/quota_sets.py; Cinder 29.0.0, api/contrib/quotas.py: show, update, delete and
defaults, each of one project), Nova none of the key pairs of all users (compute/keypairs.py: index is of one user),
Keystone none of the application credentials of all users (Keystone 30.0.0, api/users.py).

A service that does not regard the connection as an administrator's answers with the resources of its own project, and
says so nowhere. Therefore a list counts as that of all projects only if it proves it.

Source: Nova 34.0.0, api/openstack/compute/server_groups.py (index: all_projects is ignored without is_admin); Heat
27.0.1, api/openstack/v1/stacks.py and db/api.py (rows name their project if, and only if, the list is of all projects).
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, cast

from openstack_prep.base.errors import PrepError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.answers import Answer, next_page
from openstack_prep.cloud.connection import Cloud, UserCloud
from openstack_prep.cloud.service import Service, client_of
from openstack_prep.core.run import AnswerCache

# --- which reads lists of all projects answer: each path, and the parameters by which a read selects from the list ---

RowValues = Callable[[Raw], Iterable[object]]
"""The values of a row by which a parameter selects it."""
PAGE = 1000
"""Rows per request, as many as Keystone and Glance allow by default."""


def of(name: str) -> RowValues:
    """Return the values of a field of rows."""
    return lambda row: (row.get(name),)


@dataclass(frozen=True, kw_only=True)
class ProjectList:
    """A list of all projects.

    ``by`` are the parameters that select from it, the one with the fewest rows first. ``fixed`` are parameters of the
    list itself, ``per`` those of which each value has a list of its own. ``sure`` tells, by the parameters and the rows
    that match, whether the service would answer the same; otherwise it is asked.
    """

    member: str
    by: Mapping[str, RowValues]
    fixed: Raw = field(default_factory=dict)
    per: tuple[str, ...] = ()
    sure: Callable[[Raw, Sequence[Raw]], bool] = lambda params, rows: True


def _is_named(params: Raw, rows: Sequence[Raw]) -> bool:
    """Whether a name was found: Keystone's database may find one that differs in case, or in accents."""
    return bool(rows) or "name" not in params


def _has_default(params: Raw, rows: Sequence[Raw]) -> bool:
    """Whether a project has its default group: Neutron creates it when the groups of the project are listed.

    Neutron 29.0.0, db/securitygroups_db.py, get_security_groups.
    """
    return any(row.get("name") == "default" for row in rows)


def _scope_of(row: Raw) -> Iterable[object]:
    """Return the id of the project in which a role assignment applies."""
    return (row["scope"].get("project", {}).get("id"),)


WHOLE: Mapping[str, Mapping[str, ProjectList]] = {
    "identity": {
        "/projects": ProjectList(
            member="projects",
            by={
                "id": of("id"),
                "name": of("name"),
                "domain_id": of("domain_id"),
                "tags": lambda row: row.get("tags", ()),
            },
            sure=_is_named,
        ),
        "/users": ProjectList(member="users", by={"name": of("name")}, per=("domain_id",), sure=_is_named),
        "/groups": ProjectList(member="groups", by={"name": of("name")}, per=("domain_id",), sure=_is_named),
        "/role_assignments": ProjectList(
            member="role_assignments", by={"scope.project.id": _scope_of}, fixed={"include_names": True}
        ),
    },
    "network": {
        "/networks": ProjectList(member="networks", by={"project_id": of("project_id")}),
        "/subnets": ProjectList(member="subnets", by={"network_id": of("network_id"), "project_id": of("project_id")}),
        "/ports": ProjectList(
            member="ports",
            by={
                "device_id": of("device_id"),
                "network_id": of("network_id"),
                "project_id": of("project_id"),
                "device_owner": of("device_owner"),
            },
        ),
        "/routers": ProjectList(member="routers", by={"project_id": of("project_id")}),
        "/security-groups": ProjectList(
            member="security_groups", by={"project_id": of("project_id")}, sure=_has_default
        ),
        "/floatingips": ProjectList(
            member="floatingips",
            by={"port_id": of("port_id"), "router_id": of("router_id"), "project_id": of("project_id")},
        ),
        "/trunks": ProjectList(member="trunks", by={"project_id": of("project_id")}),
        "/rbac-policies": ProjectList(
            member="rbac_policies",
            by={"object_id": of("object_id"), "target_tenant": of("target_tenant")},
            fixed={"object_type": "network", "action": "access_as_shared"},
        ),
    },
    "image": {
        "/images": ProjectList(
            member="images",
            by={"name": of("name"), "owner": of("owner")},
            fixed={"visibility": "all", "limit": PAGE},
            per=("os_hidden",),
        ),
    },
}
"""Lists of all projects by service and path."""

SAME: Mapping[str, re.Pattern[str]] = {
    "identity": re.compile(r"/roles|/role_inferences|/domains(/[^/]+)?"),
    "compute": re.compile(
        r"/flavors/detail|/flavors/[^/]+/os-flavor-access|/os-aggregates|/os-server-groups"
        r"|/os-quota-sets/[^/]+/defaults"
    ),
    "network": re.compile(r"/networks|/extensions|/quotas/[^/]+/default"),
    "image": re.compile(r"/images/[^/]+/members"),
    "block-storage": re.compile(r"/types|/os-quota-sets/[^/]+/defaults"),
    "placement": re.compile(r"/allocation_candidates"),
}
"""What the administrator reads of the whole cloud: the same request has the same answer for all specs."""


ONE: Mapping[str, tuple[re.Pattern[str], str]] = {"identity": (re.compile(r"(/projects)/([^/]+)"), "project")}
"""Reads of one resource that a list contains, by service: its path, and the member of the answer."""


def wanted(path: str, name: str, value: object) -> list[str]:
    """Return the values of which a parameter accepts any; Glance has a form of its own for several names."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    text = str(value)
    if path == "/images" and name == "name":
        return text.removeprefix('in:"').removesuffix('"').split('","') if text.startswith("in:") else [text[3:]]
    return [text]


# --- lists that each project's user reads, and that an administrator reads for all projects ---

ByProject: TypeAlias = Mapping[str, list[Values]]


def server_groups(cloud: Cloud) -> ByProject | None:
    """Return the server groups of all projects; None if the list may lack those of other projects."""
    found = _grouped("project_id", lambda: _pages(cloud))
    return found if found is not None and found.keys() - {cloud.project_id} else None


def _pages(cloud: Cloud) -> Iterator[Values]:
    """Yield all server groups; their list has no links to its next pages."""
    read = 0
    while page := cloud.compute.get("/os-server-groups", all_projects=True, offset=read)["server_groups"]:
        read += len(page)
        yield from page


def stacks(cloud: Cloud) -> ByProject | None:
    """Return the stacks of all projects; None if the list may lack those of other projects.

    Where there is no stack, one that was deleted proves that there would be those of all projects.
    """
    heat = cloud.orchestration
    found = _grouped("project", lambda: heat.list("/stacks", "stacks"))
    if found is not None and not found:
        one = {"show_deleted": True, "limit": 1}
        deleted = _grouped("project", lambda: heat.ask("GET", "/stacks", params=one)["stacks"])
        return found if deleted else None
    return found


def _grouped(field: str, read: Callable[[], Iterable[Values]]) -> ByProject | None:
    """Return rows by a field; None if they cannot be read, or if one of them lacks the field."""
    found = defaultdict[str, list[Values]](list)
    try:
        for row in read():
            if field not in row:
                return None
            found[row[field]].append(row)
    except PrepError:
        return None
    return found


LISTS: Mapping[str, tuple[str, Callable[[Cloud], ByProject | None]]] = {
    "compute": ("/os-server-groups", server_groups),
    "orchestration": ("/stacks", stacks),
}
"""The path of such a list by service, and what reads it for all projects."""


# --- a list of all projects, and what single reads select from it -----------------------

MOST, PER_SPEC = 50_000, 250
"""Rows of a list that is kept, in all and per spec; of a larger one, each spec reads its part."""
PAGED = ("identity", "network")
"""Services whose lists are read in pages, so that one that is too large is given up early."""


class RowIndex:
    """The rows of a list, by the values of its parameters."""

    def __init__(self, shape: ProjectList, path: str, rows: Sequence[Answer]) -> None:
        self._list, self._path, self._rows = shape, path, rows
        self._index: dict[str, Mapping[str, Sequence[Answer]]] = {}
        self._lock = threading.Lock()

    def matching(self, params: Raw) -> list[Answer]:
        """Return the rows that have these values, letter by letter."""
        filters = {name: wanted(self._path, name, params[name]) for name in self._list.by if name in params}
        first, *others = filters
        by = self._by(first)
        found = [row for value in dict.fromkeys(filters[first]) for row in by.get(value, ())]
        for name in others:
            values, accepted = self._list.by[name], set(filters[name])
            found = [row for row in found if not accepted.isdisjoint(map(str, values(row)))]
        return found

    def select(self, params: Raw) -> list[Answer] | None:
        """Return the rows that a read with these parameters is answered; None if only the service can tell."""
        found = self.matching(params)
        if not self._list.sure(params, found):
            return None
        return [_limited(row, params["fields"]) for row in found] if "fields" in params else found

    def _by(self, name: str) -> Mapping[str, Sequence[Answer]]:
        with self._lock:
            if name not in self._index:
                index: dict[str, list[Answer]] = {}
                for row in self._rows:
                    for value in self._list.by[name](row):
                        index.setdefault(str(value), []).append(row)
                self._index[name] = index
            return self._index[name]


def _limited(row: Answer, fields: object) -> Answer:
    names = map(str, fields if isinstance(fields, list | tuple) else [fields])
    return Answer({name: row[name] for name in names if name in row}, row.origin)


def answers(shape: ProjectList, params: Raw) -> bool:
    """Whether a list of all projects answers a read with these parameters."""
    selecting = params.keys() & shape.by.keys()
    others = {name: value for name, value in params.items() if name not in selecting and name != "fields"}
    own = {name for name in others if name in shape.per}
    return (
        bool(selecting) and own == set(shape.per) and shape.fixed == {n: v for n, v in others.items() if n not in own}
    )


def read(service: Service, path: str, shape: ProjectList, params: Raw, most: int) -> RowIndex | None:
    """Return the list of all projects; None if the service refuses it or fails, or if it has over ``most`` rows."""
    asked: Values = {**shape.fixed, **{name: params[name] for name in shape.per}}
    if service.type in PAGED:
        asked["limit"] = PAGE
    found: list[Answer] = []
    try:
        for page in service.pages(path, shape.member, asked, once=True):
            found += page[shape.member]
            follows = next_page(page, shape.member) is not None
            if (page.get("truncated") and not follows) or len(found) + follows > most:
                return None
    except PrepError:  # each spec reads its part then, and has its own error
        return None
    return RowIndex(shape, path, found)


# --- one service's API whose reads are answered from what was read for other specs ------

Groups = Mapping[str, Sequence[Values]]
"""Rows by the id of their project."""


class SharedService(Service):
    """A service of the administrator, in one phase of planning. All requests but known reads are sent as they are."""

    def __init__(self, own: Service, answers: AnswerCache, most: int) -> None:
        vars(self).update(vars(own))
        self._answers, self._most = answers, most
        self._lists, self._same = WHOLE.get(self.type, {}), SAME.get(self.type)

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        def single() -> Answer:
            return Service.ask(self, method, path, **options)

        params = options.get("params") or {}
        if method != "GET" or not options.keys() <= {"params", "microversion", "once"}:
            return single()
        if self._is_same(path):
            return self._answers.once((self.type, path, options.get("microversion"), _hashable(params)), single)
        return (None if params else self._one(path)) or single()

    def list(
        self, path: str, name: str, /, *, log: bool = True, headers: Mapping[str, str] | None = None, **params: object
    ) -> list[Values]:
        def single() -> list[Values]:
            return Service.list(self, path, name, log=log, headers=headers, **params)

        if headers or not log:
            return single()
        found: Sequence[Values] | None = self._select(path, params)
        if found is None and self._is_same(path):
            found = self._answers.once((self.type, path, name, _hashable(params)), single)
        return [*found] if found is not None else single()

    def lacks(self, path: str, **params: object) -> bool:
        """Whether a list of all projects has no row with these values; the service may know one all the same."""
        rows = self._rows(path, params)
        return rows is not None and not rows.matching(params)

    def _select(self, path: str, params: Raw) -> Sequence[Answer] | None:
        """Return the part of a list of all projects; None if there is no such list."""
        rows = self._rows(path, params)
        return rows.select(params) if rows is not None else None

    def _rows(self, path: str, params: Raw) -> RowIndex | None:
        shape = self._lists.get(path)
        if shape is None or not answers(shape, params):
            return None
        name = (self.type, path, *(params[each] for each in shape.per))
        return self._answers.once(name, lambda: read(self, path, shape, params, self._most))

    def _one(self, path: str) -> Answer | None:
        """Return a resource that a list of all projects contains; None if it is not there."""
        pattern, member = ONE.get(self.type, (None, ""))
        found = pattern.fullmatch(path) if pattern else None
        rows = self._select(found[1], {"id": found[2]}) if found else None
        return Answer({member: rows[0]}, rows[0].origin) if rows else None

    def _is_same(self, path: str) -> bool:
        return self._same is not None and self._same.fullmatch(path) is not None


class TenantService(Service):
    """A service as a project's user sees it; of one path, the administrator's list of all projects has its part."""

    def __init__(self, own: Service, path: str, by_project: Callable[[], Groups | None], project_id: str) -> None:
        vars(self).update(vars(own))
        self._path, self._by_project, self._project_id = path, by_project, project_id

    def list(
        self, path: str, name: str, /, *, log: bool = True, headers: Mapping[str, str] | None = None, **params: object
    ) -> list[Values]:
        groups = None if path != self._path or headers or params else self._by_project()
        if groups is None:
            return Service.list(self, path, name, log=log, headers=headers, **params)
        return list(groups.get(self._project_id, ()))


def _hashable(params: Raw) -> Hashable:
    return tuple(sorted((name, str(value)) for name, value in params.items()))


# --- a cloud whose reads many plans share, and the users of projects who log in to it ---


class SharedCloud(Cloud):
    """A cloud as one identity sees it, during one phase of planning; thread-safe.

    ``cloud`` is the connection. Apply uses that alone, and plans again with it what is not empty. ``specs`` is how many
    plans there will be: for a few of them, lists of all projects of a large cloud are not worth reading.
    """

    def __init__(self, cloud: Cloud, specs: int) -> None:
        self._own, self._connection, self.session = cloud.own, cloud.connection, cloud.session
        self.chosen_region, self.most = cloud.chosen_region, min(MOST, max(PAGE, PER_SPEC * specs))
        self.services: dict[str, Service] = {}
        self.lock = threading.Lock()
        self.answers = AnswerCache(keeps_errors=False)

    @property
    def own(self) -> Cloud:
        return self._own

    def allow_parallel(self, requests: int) -> Self:
        """Leave the connections alone, which all plans share; whoever runs the plans allows as many as they need."""
        return self

    def open(self, service_type: str, **options: Any) -> Service:
        return SharedService(client_of(self.own, service_type, **options), self.answers, self.most)

    def lacks_project(self, name: str) -> bool:
        """Whether no project of any domain has this name; if in doubt, False."""
        self.authenticate()
        return cast(SharedService, self.identity).lacks("/projects", name=name)

    def has(self, service_type: str) -> bool:
        return self.answers.once(("has", service_type), lambda: self.own.has(service_type))

    def bare_client(self, service_type: str) -> Any:
        return self.answers.once(("client", service_type), lambda: self.own.bare_client(service_type))

    def known_limits(self, service_type: str, project_id: str) -> Raw:
        """Return a project's quotas from Neutron's list of all projects with quotas of their own."""
        if service_type != "network":
            return {}
        return self.answers.once((Cloud.known_limits, service_type), self._limits).get(project_id, {})

    def _limits(self) -> Mapping[str, Raw]:
        try:
            return {each["project_id"]: each for each in self.own.network.list("/quotas", "quotas")}
        except PrepError:  # each plan reads its own project's then
            return {}

    def as_user(self, *, username: str, password: Secret, user_domain: str, project_id: str | None = None) -> Cloud:
        """Return the cloud as another user sees it; plans that need the same login share it."""
        who = (username, password, user_domain, project_id)
        return self.answers.once(who, lambda: SharedTenant(self, *who))


class SharedTenant(UserCloud):
    """A shared cloud as a user of a project sees it."""

    def __init__(self, of: SharedCloud, username: str, password: Secret, domain: str, project_id: str | None) -> None:
        super().__init__(of, username, password, domain, project_id)
        self._shared = of

    def open(self, service_type: str, **options: Any) -> Service:
        found = super().open(service_type, **options)
        if service_type not in LISTS:
            return found
        path, read = LISTS[service_type]
        return TenantService(
            found,
            path,
            lambda: self._shared.answers.once(("tenants", path), lambda: read(self._shared)),
            self.project_id,
        )
