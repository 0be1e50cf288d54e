"""One situation: what a plan says about a bad and a good spec, and what the services say when both are applied.

The bad spec is applied although its plan is refused: its refusals are left out, as are the rules that need no cloud.
Where the spec cannot be read at all, ``ask`` of the situation is the request that the service refuses.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import re
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from openstack_prep.base.errors import CloudError, Mistake, SpecError
from openstack_prep.cloud import request_log
from openstack_prep.cloud.connection import Cloud, connect_entry
from openstack_prep.core import executor
from openstack_prep.core.plan import ApplyFailed
from openstack_prep.spec import load_spec
from openstack_prep.verbs import api, opening
from openstack_prep.verbs.opening import LivePlan
from tests import rules
from tests.devcloud import tenant as tenants
from tests.devcloud.layout import REGION, Layout
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant

HERE = Path(__file__).parent
PRODUCT = re.compile(r"(\w+)\*(\d+)")
"""A text repeated so often; ``keys`` and ``numbers`` are a mapping and a list of that length."""
ROLES = {"reader": ("reader",), "plain": ("member",)}
"""The roles of actors, besides the administrator and the tenant's user."""
READS = ("/auth/tokens", "/stacks/preview", "/validate", "/preview")
"""Ends of paths of POST and PUT that change nothing."""


RULED = ("subnets", "routers", "ports")
"""Sections of tests/rules/kinds.yaml with rules of Neutron."""


@dataclass(frozen=True)
class Situation:
    """A bad spec that the services refuse, and its good neighbour; ``before`` exists by then, of another spec.

    ``actor`` applies it: the administrator, or a member of the project. ``uncertain``: the services' answer depends on
    what no plan can know, so a warning or ``not_checked`` names it.
    """

    name: str
    bad: Mapping[str, Any]
    good: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)
    actor: str = "admin"
    uncertain: bool = False
    ask: tuple[Any, ...] = ()
    names: str = ""
    """What the refusal says."""


@dataclass(frozen=True)
class Outcome:
    """What came of a situation."""

    situation: Situation
    named: bool
    """Whether a plan of the bad spec names it."""
    refused: bool
    """Whether a service refuses it."""
    writes: int
    """Requests that write, sent by the plan."""
    requests: int
    """Requests of the plan of the good spec."""
    false: tuple[str, ...]
    """What a plan, or an apply, of the good spec refuses."""
    said: str
    """What the plan of the bad spec says, and what the service does."""

    @property
    def is_right(self) -> bool:
        return self.named and self.refused and not self.false and not self.writes


def situations() -> list[Situation]:
    """Return those of situations.yaml, and the rules of Neutron that need no cloud."""
    own = [Situation(**row) for row in yaml.safe_load((HERE / "situations.yaml").read_text())["situations"]]
    rows = yaml.safe_load((Path(rules.__file__).parent / "kinds.yaml").read_text())["rows"]
    checked = [row for row in rows if row["section"] in RULED and row.get("of") != "openstack-prep"]
    names = (f"rule {number} of {row['section']}" for number, row in enumerate(checked, 1))
    return own + [Situation(name, row["bad"], row["good"]) for name, row in zip(names, checked, strict=True)]


class Requests(logging.Handler):
    """Collects the requests of this package inside a ``with`` block."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[request_log.Asked] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.asked.append(vars(record)["asked"])

    def __enter__(self) -> Requests:
        log = logging.getLogger(request_log.NAME)
        log.addHandler(self)
        log.setLevel(logging.INFO)
        return self

    def __exit__(self, *error: object) -> None:
        logging.getLogger(request_log.NAME).removeHandler(self)

    @property
    def writes(self) -> int:
        changing = (each for each in self.asked if each.method not in ("GET", "HEAD"))
        return sum(not each.path.endswith(READS) for each in changing)


@dataclass(frozen=True)
class Ground:
    """A devcloud, and a folder with the files that specs name."""

    layout: Layout
    folder: Path

    def prepare(self) -> None:
        (self.folder / "disk.qcow2").write_bytes(qcow2(1))
        (self.folder / "disk.raw").write_bytes(bytes(1 << 16))
        backed = bytearray(qcow2(1))
        backed[8:20] = struct.pack(">QI", 1024, len(b"/etc/passwd"))
        backed[1024 : 1024 + 11] = b"/etc/passwd"
        (self.folder / "backed.qcow2").write_bytes(backed)
        for each in HERE.glob("*-template.yaml"):
            (self.folder / each.name).write_text(each.read_text())

    @contextlib.contextmanager
    def tenant(self) -> Iterator[Tenant]:
        with tenants.connect(self.layout.clouds_file, "devcloud-admin") as admin:
            made = tenants.create(self.layout, admin, "foretell", self.folder)
            try:
                yield made
            finally:
                give_roles(admin, made, tenants.ROLES)  # with which its user empties the project
                tenants.delete(admin, made)

    def refused(self, situation: Situation, *, is_applied: bool) -> tuple[str, ...]:
        """Return what a plan of the good spec refuses, and if it is applied, what fails."""
        with self.tenant() as tenant:
            trial = Trial(self, situation, tenant)
            trial.prepare()
            return trial.judge(is_applied=is_applied)

    def try_out(self, situation: Situation) -> Outcome:
        """Apply the good spec and delete it, then plan the bad one, and apply it all the same."""
        with self.tenant() as tenant:
            made = Trial(self, situation, tenant)
            made.prepare()
            false, requests = made.good()
            named, writes, said = made.bad()
            refused, answer = made.forced()
            return Outcome(situation, named, refused, writes, requests, false, f"{said} / {answer}")


def give_roles(admin: Any, tenant: Tenant, roles: tuple[str, ...]) -> None:
    for role in admin.identity.roles():
        whose = {"project": tenant.project_id, "user": tenant.user_id, "role": role.id}
        if role.name in roles:
            admin.identity.assign_project_role_to_user(**whose)
        elif role.name in tenants.ROLES:
            admin.identity.unassign_project_role_from_user(**whose)


def judge(connected: Cloud, spec: Any, *, is_applied: bool) -> tuple[Mistake | str, ...]:
    """Return what a plan of a spec refuses; if it is applied, also what fails, and what a second plan would change.

    Raises Mistaken if it cannot be planned.
    """
    plan = api.plan(connected, spec, adopt=True)
    if plan.refusals or not is_applied:
        return tuple(plan.refusals)
    try:
        api.apply(connected, plan).raise_for_failures()
        again = api.plan(connected, spec, adopt=True)
        api.destroy(connected, spec).raise_for_failures()
    except (ApplyFailed, CloudError) as error:
        return (str(error),)
    return (*again.refusals, *(f"a second plan would {each.action.value} {each.key}" for each in again.pending))


class Trial:
    """A situation in a project of its own."""

    def __init__(self, ground: Ground, situation: Situation, tenant: Tenant) -> None:
        self.ground, self.situation, self.tenant = ground, situation, tenant
        self.admin = Cloud(tenants.connect(tenant.clouds_file, "devcloud-admin"))
        self.cloud = self._connect(situation.actor)

    def _connect(self, actor: str) -> Cloud:
        if actor in ("admin", "elsewhere"):
            return self.admin
        member = Cloud(self.tenant.connect())
        if actor == "credential":
            return self._by_credential(member)
        return member if actor == "member" else self._by_roles(ROLES[actor])

    def _by_credential(self, member: Cloud) -> Cloud:
        identity: Any = member.connection.identity  # the SDK's types allow for version 2 as well
        made = identity.create_application_credential(member.user_id, self.tenant.name)
        auth = {"auth_url": self.ground.layout.auth_url}
        auth |= {"application_credential_id": made.id, "application_credential_secret": made.secret}
        entry = {"auth_type": "v3applicationcredential", "auth": auth, "region_name": REGION}
        return connect_entry("credential", entry)

    def _by_roles(self, roles: tuple[str, ...]) -> Cloud:
        """Return the connection of the project's user, whose roles become these."""
        give_roles(self.admin.connection, self.tenant, roles)
        return Cloud(self.tenant.connect())

    def spec(self, sections: Mapping[str, Any], name: str, actor: str = "") -> Any:
        whose = {"project": {"name": self.tenant.name}} if (actor or self.situation.actor) == "admin" else {}
        named = self._named({"name": f"{self.tenant.name}-{name}", **whose, **copy.deepcopy(dict(sections))})
        path = self.ground.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(named))
        return load_spec(path)

    def _named(self, value: Any) -> Any:
        """Return a part of a spec with the project's name in the place of ``{}``, and what it writes as a product."""
        if isinstance(value, dict):
            return {self._named(key): self._named(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._named(each) for each in value]
        if not isinstance(value, str):
            return value
        if found := PRODUCT.fullmatch(value):
            number = int(found[2])
            names = [f"n{each}" for each in range(number)]
            return {"keys": dict.fromkeys(names, "x"), "numbers": names}.get(found[1], found[1] * number)
        return value.replace("{}", self.tenant.name)

    def prepare(self) -> None:
        """Apply what exists by then, as the administrator."""
        if self.situation.before:
            api.apply(self.admin, self.spec(self.situation.before, "before", "admin")).raise_for_failures()

    def good(self) -> tuple[tuple[str, ...], int]:
        """Return what is refused of the good spec, and the requests of its plan."""
        try:
            spec = self.spec(self.situation.good, "good")
            with Requests() as sent:
                plan = api.plan(self.cloud, spec, adopt=True)
            if plan.refusals:
                return tuple(map(str, plan.refusals)), len(sent.asked)
            api.apply(self.cloud, plan).raise_for_failures()
            api.destroy(self.cloud, spec).raise_for_failures()
        except (SpecError, ApplyFailed, CloudError) as error:
            return (str(error),), 0
        return (), len(sent.asked)

    def judge(self, *, is_applied: bool) -> tuple[str, ...]:
        """Return what is refused of the good spec, as ``judge`` does."""
        try:
            return tuple(map(str, judge(self.cloud, self.spec(self.situation.good, "good"), is_applied=is_applied)))
        except SpecError as error:
            return (str(error),)

    def bad(self) -> tuple[bool, int, str]:
        """Return whether the plan names it, how much it writes, and what it says."""
        try:
            spec = self.spec(self.situation.bad, "bad")
            with Requests() as sent:
                plan = api.plan(self.cloud, spec, adopt=True)
        except (SpecError, CloudError) as error:
            return self._is_named(str(error)), 0, str(error)
        said = [str(each) for each in plan.refusals]
        if self.situation.uncertain:
            said += [*plan.warnings, *plan.not_checked]
        text = "; ".join(said)
        return self._is_named(text), sent.writes, text or "nothing"

    def _is_named(self, text: str) -> bool:
        return bool(text) and self._named(self.situation.names) in text

    def forced(self) -> tuple[bool, str]:
        """Return whether a service refuses the bad spec, and what it says."""
        if self.situation.ask:
            return self._asked(*self._named(list(self.situation.ask)))
        try:
            spec = self.spec(self.situation.bad, "bad")
            with mock.patch.object(opening, "refuse_mistakes"):  # the rules that need no cloud
                plan: LivePlan = replace(api.plan(self.cloud, spec, adopt=True), refusals=())
            report = executor.execute(plan, plan.run)
        except SpecError as error:
            return False, f"not asked: {error}"
        answers = [each.error for each in report.failed]
        refused = [each for each in answers if isinstance(each, CloudError) and each.status in range(400, 500)]
        return bool(refused), "; ".join(map(str, answers)) or "accepted"

    def _asked(self, service: str, method: str, path: str, body: Any) -> tuple[bool, str]:
        session = self.cloud.connection.session
        endpoint = {"service_type": service, "interface": "public"}
        answer = session.request(path, method, json=body, endpoint_filter=endpoint, raise_exc=False)
        return answer.status_code in range(400, 500), f"{answer.status_code} {answer.text[:200]}"


def timed(ground: Ground, situation: Situation) -> tuple[Outcome, float]:
    started = time.monotonic()
    return ground.try_out(situation), time.monotonic() - started
