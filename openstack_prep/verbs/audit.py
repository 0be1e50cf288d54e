"""Undeclared resources in the projects of a spec: drift that a plan does not show.

A plan compares declared fields alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.fields import block
from openstack_prep.base.key import labels
from openstack_prep.base.raw import Raw
from openstack_prep.base.style import indented
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import text
from openstack_prep.core.model import Adoptable, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.plan import Plan
from openstack_prep.resources.cascades.project import ProjectScope, stacks
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.heat.stacks import HeatResource, HeatStack
from openstack_prep.resources.identity.project import Project, project_name
from openstack_prep.resources.image import glance
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.lists.neutron_records import GroupRecord, NeutronRecord
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.port_addresses import recorded
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import (
    ANYWHERE,
    SecurityGroupRule,
    declared_rule,
    in_words,
    is_made_by_neutron,
)
from openstack_prep.resources.orchestration.losses import find_own_rules
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, scan

CLOUD_WIDE = ("flavor", "user")
"""Kinds that others legitimately create besides the spec: users show by their roles."""


class DriftCode(StrEnum):
    """What is wrong, for programs."""

    CHANGED = "changed"
    UNDECLARED = "undeclared"
    UNMANAGED = "unmanaged"
    UNTAGGED = "untagged"
    RULE = "rule"
    OPEN = "open"
    DISABLED = "disabled"
    PAIRS = "pairs"
    ACCESS = "access"


@dataclass(frozen=True, kw_only=True)
class Drift:
    """One resource in the cloud that the spec does not account for."""

    resource: str
    """Kind and name, such as ``network/web``."""
    code: DriftCode
    """What is wrong, for programs."""
    what: str
    """What is wrong, for people."""

    def __str__(self) -> str:
        return indented(f"{self.resource}: {self.what}")  # names come from others

    def data(self) -> dict[str, str]:
        """Return it as plain data."""
        return asdict(self)


class Audit(list[Drift]):
    """What an audit has found; ``left_out`` says what it could not read."""

    left_out: tuple[str, ...] = ()


def audit(cloud: Cloud, wanted: Spec, *, jobs: int = 8) -> Audit:
    """Return everything in the spec's projects that differs from the spec, is undeclared, or is managed by nobody.

    ``cloud`` is an administrator's connection, ``wanted`` the spec, ``jobs`` how many requests are sent at a time.
    Nothing is changed. Resources that no kind describes (servers, volumes) are ignored. Raises SpecError, CloudError;
    PlanRefused if another run changes the resources at the same time.
    """
    plan = api.plan(cloud, wanted, jobs=jobs)
    if not plan.steps:  # the values could not be compared
        plan.raise_for_refusals()
    assert plan.run is not None
    assert plan.wanted is not None
    run, homes = plan.run, scan.projects_of(plan.wanted.resources)
    unread: list[type[Resource]] = []
    standing = scan.everything(run, homes, scan.kinds_of_projects(), jobs=jobs, leave_out=unread.append)
    declared = {resource.key: resource for resource in plan.wanted.resources}
    stacks, left_out = _hidden_stacks(run, homes)
    found = Audit([*_of_plan(plan), *_untagged(plan), *_unmanaged(run, standing, declared, plan), *stacks])
    stack_resources = _list_stack_resources(plan)
    found += [*_rules(standing, plan, stack_resources), *_pairs(run, homes, plan, stack_resources), *_access(run, plan)]
    kinds = dict.fromkeys(kind.kind for kind in unread)
    found.left_out = (
        *(f"every {kind}: user {cloud.user[0]} may not list them" for kind in kinds),
        *(each for home in homes for each in unlisted(run, home)),
        *left_out,
    )
    return found


def _hidden_stacks(run: CloudRun, homes: Iterable[Project | None]) -> tuple[list[Drift], list[str]]:
    """Return the stacks in projects to which there is no connection, none of which is declared; and what is unread."""
    found, left_out = [], []
    for home in homes:
        try:
            for raw in hidden_stacks(run, home):
                owner = ", ".join(OwnershipTag.specs_in(raw.get("tags") or ()))
                whose = f"is managed by the spec {owner}" if owner else "is not managed by any spec"
                found.append(
                    Drift(resource=f"stack/{raw['name']}", code=DriftCode.UNMANAGED, what=f"{raw['id']} {whose}")
                )
        except NotAllowed as error:
            left_out.append(f"every stack: {error.reason}")
    return found, left_out


def _of_plan(plan: Plan) -> Iterator[Drift]:
    for step in plan.pending:
        details = text.details(step)
        what = f"plan: {step.action}" + (f": {details}" if details else "")
        yield Drift(resource=str(step), code=DriftCode.CHANGED, what=what)
    for step in plan.undeclared:
        yield Drift(resource=str(step), code=DriftCode.UNDECLARED, what=step.reason)
    for step in plan:
        if step.observed is not None and step.observed.values.get("enabled") is False and step not in plan.pending:
            yield Drift(resource=str(step), code=DriftCode.DISABLED, what="is disabled")


def _untagged(plan: Plan) -> Iterator[Drift]:
    """Yield declared resources that no spec manages: somebody edited the description, or the tag never existed."""
    for step in plan:
        found, resource = step.observed, step.resource
        if found is None or found.ours or found.managed_by or not isinstance(resource, Adoptable):
            continue
        if resource.adopt or not resource.can_be_managed:
            continue
        fix = "adopt: permanently restores the tag, adopt: true accepts that the spec does not manage it"
        yield Drift(resource=str(step), code=DriftCode.UNTAGGED, what=f"is declared, but has no ownership tag; {fix}")


def _unmanaged(
    run: CloudRun, standing: Iterable[scan.Standing], declared: Mapping[Key, Resource], plan: Plan
) -> Iterator[Drift]:
    ids = scan.ids_of((step.resource, step.observed) for step in plan if step.observed is not None)
    stacks = [step.observed for step in plan if isinstance(step.resource, Stack) and step.observed is not None]
    of_stacks = frozenset().union(*(found.contained_ids for found in stacks if found.ours))
    left = [
        (resource, found)
        for resource, found in standing
        if not found.ours and found.id not in of_stacks and resource.key not in declared
    ]
    names = labels([*declared, *(resource.key for resource, _ in left)])
    for resource, found in left:
        if resource.kind in (*CLOUD_WIDE, SecurityGroupRules.kind) or not scan.is_new(resource, found, ids):
            continue
        if resource.key.kind == SecurityGroup.kind and resource.name == "default":
            continue  # Neutron creates this group; its rules are compared
        yield Drift(resource=names[resource.key], code=DriftCode.UNMANAGED, what=f"{found.id} {_whose(run, found)}")


def _whose(run: CloudRun, found: Observed) -> str:
    record = found.record
    tags, description = (record.tags, record.description) if isinstance(record, NeutronRecord) else ((), "")
    owner = next(iter(OwnershipTag.specs_in(tags)), None) or OwnershipTag.spec_in(description) or found.managed_by
    if owner and owner != run.ownership.spec:
        return f"is managed by the spec {owner}"
    return f"is {found.doubt}" if found.doubt else "is not managed by any spec"


StackResources = Mapping[str, tuple[HeatStack, HeatResource]]


def _list_stack_resources(plan: Plan) -> StackResources:
    """Return the resources of the spec's stacks, by id."""
    seen = (step.observed for step in plan if isinstance(step.resource, Stack) and step.observed is not None)
    stacks = [found.record_as(StackRecord).stack for found in seen if found.ours]
    return {each.id: (stack, each) for stack in stacks for each in stack.made.values()}


def _rules(standing: Sequence[scan.Standing], plan: Plan, stack_resources: StackResources) -> Iterator[Drift]:
    """Yield the undeclared rules of the spec's groups, including the group "default".

    For groups that no spec manages, only those rules that open them to the world.
    """
    existing = [(step.observed.id, step.resource) for step in plan if step.observed is not None]
    declared = {group_id: each for group_id, each in existing if isinstance(each, SecurityGroupRules)}
    groups = {group_id for group_id, each in existing if isinstance(each, SecurityGroup)}
    of_others = {found.id for each, found in standing if isinstance(each, SecurityGroup) and found.managed_by}
    for resource, found in standing:
        if not isinstance(resource, SecurityGroupRules):
            continue
        own = declared.get(found.id)
        known = {_words(replace(rule, remote_group=own.remote_of(rule))) for rule in own.rules} if own else set()
        is_reported = own is None and found.id not in groups and resource.name != "default"
        if is_reported and found.id in of_others:
            continue
        for rule in resource.rules:
            words = _words(rule)
            opened = rule.direction == "ingress" and words.endswith("from anywhere")
            if is_reported and not opened:
                continue
            if opened and found.id in stack_resources:
                known |= _rules_of_stack(*stack_resources[found.id], found.record_as(GroupRecord))
            if words not in known and not is_made_by_neutron(rule, resource.name):
                code, more = (DriftCode.OPEN, ", which opens it to the world") if opened else (DriftCode.RULE, "")
                yield Drift(resource=str(resource.group.key), code=code, what=f"rule {words} is not declared{more}")


def _rules_of_stack(stack: HeatStack, resource: HeatResource, group: GroupRecord) -> set[str]:
    """Return the rules that a stack has made in a group of its own, in words."""
    own = find_own_rules(stack, resource, group)
    rules = (declared_rule(rule, group.id, {}, "") for rule in group.security_group_rules if rule.id in own)
    return {_words(rule) for rule in rules if rule is not None}


def _access(run: CloudRun, plan: Plan) -> Iterator[Drift]:
    """Yield the projects that may use an image or a flavor of the spec and are not declared."""
    for step in plan:
        if step.observed is None or not step.observed.ours:
            continue
        with contextlib.suppress(NotAllowed):
            for project_id in sorted(_users(run, step.resource, step.observed)):
                what = f"project {project_name(run, project_id)} may use it, but is not declared"
                yield Drift(resource=str(step), code=DriftCode.ACCESS, what=what)


def _users(run: CloudRun, resource: Resource, found: Observed) -> set[str]:
    """Return the ids of the projects to which somebody else gave access to an image or a flavor."""
    if isinstance(resource, Image):
        listed = glance.owned(run, str(run.find_project_id(resource.owner)))
        given = set().union(*(glance.answers(run, image) for image in listed if image.id == found.id))
        return given - {run.find_id(member) for member in resource.members()}
    if isinstance(resource, Flavor):
        return set(resource.granted(run, found.id)) - {run.find_id(project) for project in resource.projects()}
    return set()


def _words(rule: SecurityGroupRule) -> str:
    prefix = None if rule.remote_ip_prefix in ANYWHERE else rule.remote_ip_prefix
    return in_words(replace(rule.record(), remote_ip_prefix=prefix), rule.remote_group)


def _pairs(
    run: CloudRun, homes: Iterable[Project | None], plan: Plan, stack_resources: StackResources
) -> Iterator[Drift]:
    """Yield the ports that allow addresses which no spec has recorded on them; a plan compares those it declares."""
    ports = ((step.resource, step.observed) for step in plan if isinstance(step.resource, Port) and step.observed)
    compared = {found.id for port, found in ports if port.allowed_address_pairs is not None}
    for home in homes:
        for port in ports_of(run, run.find_project_id(home)):
            if port.id in compared:
                continue
            known = recorded(port)
            left = {str(block(pair.ip_address)) for pair in port.allowed_address_pairs} - known
            if left and port.id in stack_resources:
                stack, resource = stack_resources[port.id]
                pairs = stack.properties_of(resource).get("allowed_address_pairs") or ()
                left -= {str(block(pair["ip_address"])) for pair in pairs if pair.get("ip_address")}
            for address in sorted(left):
                what = f"allows the address {address}, which no spec has added"
                yield Drift(resource=f"port/{port.name or port.id}", code=DriftCode.PAIRS, what=what)


# --- what only users of a project can list, for an audit or an export by somebody else ---

OF_USERS = ("application_credential", "object_store")
"""Kinds that only users of the project can list."""


def unlisted(run: CloudRun, home: Project | None, kinds: Collection[str] = ()) -> Iterator[str]:
    """Yield what of a project only its users can list, if the connection is not one of them; ``kinds`` select some."""
    if run.find_project_id(home) is None or run.find_tenant(home) is not None:
        return
    for kind in OF_USERS:
        if not kinds or kind in kinds:
            command = f"openstack-prep export --kind {kind} with a connection of such a user"
            yield f"every {kind}: only users of project {home.name if home else ''} can list them; {command} shows them"


def hidden_stacks(run: CloudRun, home: Project | None) -> Iterable[Raw]:
    """Return the stacks of a project to which there is no connection, so that no kind lists them.

    Raises NotAllowed if the connection is no administrator's.
    """
    project_id = run.find_project_id(home)
    if project_id is None or run.find_tenant(home) is not None or not run.admin.has("orchestration"):
        return ()
    return stacks(run, ProjectScope(project_id, home))
