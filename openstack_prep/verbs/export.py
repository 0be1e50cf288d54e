"""Export the content of a project as a spec whose plan changes nothing.

It contains names instead of ids, and no secrets. Resources that a spec cannot express are listed separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError, NotAllowed, NotFound, SpecError
from openstack_prep.base.formats import yaml_text
from openstack_prep.base.style import printable
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.entries import ADMINISTRATOR
from openstack_prep.core.model import FromContext, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Adoptable
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.cascades.project import ProjectScope, servers, volumes
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project, ProjectRecord, foreign_tags
from openstack_prep.resources.lists.cluster_naming import cluster_namings
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import is_made_by_neutron
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.spec import spec_of
from openstack_prep.spec.sections import all_fields, section_of
from openstack_prep.spec.substitution import escape, has_reference_in_key
from openstack_prep.verbs import scan
from openstack_prep.verbs.audit import hidden_stacks, unlisted

PLACE = ("project", "project_domain")
CLOUD_WIDE = ("flavor", "user")
"""Kinds of which only managed resources are exported, unless --kind selects them."""


def refuse_unknown_kinds(kinds: Iterable[str]) -> None:
    """Refuse values of --kind; raises ConfigError."""
    known = sorted(kind.kind for kind in scan.kinds_of_projects() if kind is not SecurityGroupRules)
    for kind in kinds:
        if kind not in known:
            raise ConfigError(f"--kind {kind!r} does not exist; choose from {', '.join(known)}")


@dataclass(frozen=True, kw_only=True)
class Export:
    """A project as a spec; its text is the YAML of the spec."""

    sections: Mapping[str, Any]
    """The sections of the spec as plain data, in which ``$${`` stands for ``${`` as in YAML."""
    unsaid: tuple[str, ...] = ()
    """What a spec cannot express."""

    def __str__(self) -> str:
        """Return it as YAML, with comments about resources that are not exported."""
        notes = [f"# not exported: {printable(each)}" for each in self.unsaid]
        return "\n".join([yaml_text.dump(self.sections).rstrip(), *notes]) + "\n"


def export(
    cloud: Cloud,
    project: Project | None = None,
    *,
    kinds: Iterable[str] = (),
    name: str = "*",
    tag: str | None = None,
    adopt: Literal["permanently"] | None = None,
    jobs: int = 8,
) -> Export:
    """Return the content of a project (default: that of the connection) as a spec whose plan changes nothing.

    ``cloud`` is the connection; other projects than its own need an administrator's. ``project`` is one that exists.
    ``kinds`` (such as "network") and ``name`` (a pattern such as ``web-*``) select some of it; ``tag`` selects what a
    spec with that name manages. With ``adopt``, the spec takes over what it does not manage yet: its plan adds
    ownership tags, and changes nothing else. ``jobs`` is how many requests are sent at a time. Raises NotFound for a
    project that does not exist, and CloudError.
    """
    home = project or Project(name=cloud.project_name, domain=_domain_of(cloud))
    run = CloudRun(cloud, OwnershipTag(tag or home.name))
    with cloud.reading(ADMINISTRATOR):
        is_own = (home.name, home.domain) == (cloud.project_name, _domain_of(cloud))
        found = home.of_connection(run) if is_own else run.look(home)
        if found is None:
            raise NotFound(f"project {home.name} does not exist in domain {home.domain}, or is not visible")
        run = CloudRun(cloud, OwnershipTag(tag or _manager(found) or home.name))
        run.known[home.key] = found
        unread: list[type[Resource]] = []
        standing = scan.everything(run, [home], scan.kinds_of_projects(), jobs=jobs, leave_out=unread.append)
        attached, unnamed = _attachments(run, home, standing)
        standing = [pair for pair in standing if not isinstance(pair[0], FloatingIPAttachment)] + attached
        unsaid = tuple(_unreadable_kinds(cloud, unread, frozenset(kinds)))
        as_member = is_own and bool({"user", "role_assignment"} & {kind.kind for kind in unread})
        if as_member:
            unsaid = (f"the project {home.name} itself: user {cloud.user[0]} may not manage it", *unsaid)
        unsaid += (*unlisted(run, home, frozenset(kinds)), *_hidden_stacks(run, home, frozenset(kinds), adopt))
        holders = _in_stacks(standing)
        is_whole = not kinds and name == "*"
        unsaid += (*_undeclarable(run, found.id), *unnamed) if is_whole else ()
    if not is_whole:
        rest = f"apply --prune with this file would delete what spec {run.ownership.spec} manages of them"
        unsaid = (f"resources that --kind and --name do not select; {rest}", *unsaid)
    chosen = [each for each in standing if _is_chosen(*each, frozenset(kinds), name, tag)]
    sections: dict[str, Any] = {"name": run.ownership.spec}
    if not as_member:  # a spec without a project is one for the project of the connection
        sections["project"] = (_project(run, home, found) | _adoption(home, found, adopt)) if is_whole else _named(home)
    own = [each for each in chosen if each[1].id not in holders]
    held = ((each, found) for each, found in chosen if found.id in holders and not isinstance(each, SecurityGroupRules))
    unsaid += tuple(f"{each.key}: it belongs to stack {holders[found.id]}" for each, found in held)
    return _assembled(sections, own, unsaid, adopt)


def _domain_of(cloud: Cloud) -> str:
    """Return the domain of the connection's own project."""
    return str(cloud.project_domain_name)


def _manager(project: Observed) -> str | None:
    """Return the name of the only spec that manages a project, according to its ownership tag."""
    names = OwnershipTag.specs_in(project.record_as(ProjectRecord).tags)
    return names[0] if len(names) == 1 else None


def _unreadable_kinds(cloud: Cloud, unread: Iterable[type[Resource]], kinds: frozenset[str]) -> Iterator[str]:
    """Yield which kinds the credentials in use may not read."""
    for kind in unread:
        if not kinds or kind.kind in kinds:
            command = f"openstack-prep export --kind {kind.kind} as an administrator"
            yield f"every {kind.kind}: user {cloud.user[0]} may not list them; {command} shows them"


def _hidden_stacks(run: CloudRun, home: Project, kinds: frozenset[str], adopt: str | None) -> Iterator[str]:
    """Yield the stacks that only a connection to the project reads, and that what they hold is exported like others.

    Raises ConfigError if a spec shall take over what may be theirs.
    """
    if kinds and "stack" not in kinds and not adopt:
        return
    try:
        names = [str(raw["name"]) for raw in hidden_stacks(run, home)]
        if adopt:
            _refuse_to_adopt(names)
    except NotAllowed as error:
        if adopt:
            _refuse_to_adopt([f"the stacks of the project ({error.reason})"])
        yield f"every stack: {error.reason}; openstack-prep export --kind stack as such a user shows them"
        return
    yield from (f"stack/{name}: {_template_of(name)}" for name in names)
    if names and not kinds:
        fix = "remove what a stack manages from this file, or export with a connection of a user of the project"
        yield f"which resources belong to {', '.join(names)}: only users of the project can list that; {fix}"


def _template_of(stack: str) -> str:
    return f"only Heat stores its template: openstack stack template show {shell.quote(stack)}"


def _in_stacks(standing: Iterable[scan.Standing]) -> dict[str, str]:
    """Return, by id, the name of the stack that something belongs to."""
    stacks = [(each.name, found) for each, found in standing if each.kind == "stack"]
    pairs = ((name, found.record_as(StackRecord).stack.resources) for name, found in stacks)
    return {resource.id: name for name, resources in pairs for resource in resources if resource.id}


def _is_chosen(resource: Resource, found: Observed, kinds: frozenset[str], name: str, tag: str | None) -> bool:
    kind = "security_group" if isinstance(resource, SecurityGroupRules) else resource.kind
    if kinds and kind not in kinds:
        return False
    if not fnmatchcase(resource.name, name) and not isinstance(resource, SecurityGroupRules):
        return False
    managed_only = tag is not None or (kind in CLOUD_WIDE and kind not in kinds)
    return found.ours or not managed_only


def _project(run: CloudRun, home: Project, found: Observed) -> dict[str, Any]:
    tags = sorted(foreign_tags(run, found.record_as(ProjectRecord).tags))
    stated = {"description": found.values["description"] or None, "tags": tags or None}
    enabled = None if found.values["enabled"] else False
    return _named(home) | {name: value for name, value in {**stated, "enabled": enabled}.items() if value is not None}


def _named(home: Project) -> dict[str, Any]:
    domain = {} if home.domain == DEFAULT_DOMAIN else {"domain": home.domain}
    return {"name": home.name} | domain


def _undeclarable(run: CloudRun, project_id: str) -> Iterator[str]:
    """Yield resources of the project that no spec can declare, unless an extension brings their kind."""
    scanned = {kind.kind for kind in scan.kinds_of_projects()}
    project = ProjectScope(project_id, None)
    readers = {"server": servers, **({"volume": volumes} if run.admin.has("block-storage") else {})}
    for kind in sorted(readers.keys() - scanned):
        yield from (f"{kind} {row.get('name') or ''} {row['id']}" for row in readers[kind](run, project))


def _attachments(
    run: CloudRun, home: Project, standing: Iterable[scan.Standing]
) -> tuple[list[scan.Standing], list[str]]:
    """Return the attachments of the project's floating IPs, whoever made them, and those whose port has no name."""
    ports = ports_of(run, run.find_project_id(home))
    names = Counter(port.name for port in ports)
    name_of = {port.id: port.name for port in ports if port.name and names[port.name] == 1}
    records = [found.record_as(FloatingIPRecord) for each, found in standing if isinstance(each, FloatingIP)]
    attached: list[scan.Standing] = []
    unnamed: list[str] = []
    for record in (record for record in records if record.port_id):
        if record.port_id not in name_of:
            fix = "its name is empty, or not unique in the project"
            unnamed.append(f"the attachment of {record.address} to port {record.port_id}: {fix}")
            continue
        is_alone = (
            sum(floating_ip.address == record.address for floating_ip in records) == 1
        )  # another network may have it, too
        selected: dict[str, Any] = {"address": record.address} if is_alone else {"floating_ip_id": record.id}
        attachment = FloatingIPAttachment(
            port=name_of[record.port_id], **selected, **FloatingIPAttachment.placing(home)
        )
        if found := run.look(attachment):
            attached.append((attachment, found))
    return attached, unnamed


def _adoption(resource: Resource, found: Observed, adopt: Literal["permanently"] | None) -> dict[str, Any]:
    """Return the field by which the spec takes over what it does not manage yet, unless others manage it."""
    can = isinstance(resource, Adoptable) and resource.can_be_managed and not (found.ours or _manager_of(found))
    return {"adopt": adopt} if adopt and can else {}


def _manager_of(found: Observed) -> str:
    """Return which other spec or cluster manages a resource; empty if none is known."""
    if found.managed_by:
        return f"spec {found.managed_by}"
    return next(filter(None, (cluster_naming.cluster_of(found.record) for cluster_naming in cluster_namings())), "")


def _refuse_to_adopt(hidden: Sequence[str]) -> None:
    """Refuse to take over what may belong to a stack: its update or deletion would fail, or delete it all the same."""
    if hidden:
        what = f"--adopt: only users of the project see what belongs to {', '.join(hidden)}"
        raise ConfigError(f"{what}; export with a connection of such a user, or without --adopt")


def _assembled(
    sections: dict[str, Any],
    chosen: Sequence[scan.Standing],
    unsaid: tuple[str, ...],
    adopt: Literal["permanently"] | None,
) -> Export:
    """Add the chosen resources to the sections that say what they belong to."""
    left = list(unsaid)
    rules = {each.name: each for each, _ in chosen if isinstance(each, SecurityGroupRules)}
    twins = _twins(chosen)
    for resource, observed in chosen:
        if isinstance(resource, SecurityGroupRules):
            continue
        spec_fields = _spec_fields(resource) | _adoption(resource, observed, adopt)
        if isinstance(resource, SecurityGroup):
            listed = rules[resource.name].rules if resource.name in rules else ()  # of the chosen rules
            own = [_plain(rule) for rule in listed if not is_made_by_neutron(rule, resource.name)]
            spec_fields |= {"rules": own} if own else {}
            if resource.name == "default" and not own:
                continue
        if adopt and not observed.ours and (manager := _manager_of(observed)):
            left.append(f"adopt of {resource.key}: {manager} manages it")
        reason = _ambiguity(resource, rules.get(resource.name), twins) or _obstacle(resource, spec_fields)
        if reason:
            own_id = f" {observed.id}" if resource.key in twins else ""
            left.append(f"{resource.key}{own_id}: {reason}")
            continue
        section = section_of(type(resource))
        if section.many:
            sections.setdefault(section.name, []).append(spec_fields)
        else:
            sections[section.name] = spec_fields
    return Export(
        sections={name: escape(sections[name]) for name, _ in all_fields() if name in sections}, unsaid=tuple(left)
    )


def _twins(chosen: Iterable[scan.Standing]) -> frozenset[Key]:
    """Return the names that several resources of the project share."""
    counts = Counter(resource.key for resource, _ in chosen)
    return frozenset(key for key, number in counts.items() if number > 1)


def _ambiguity(resource: Resource, rules: SecurityGroupRules | None, twins: frozenset[Key]) -> str:
    """Return which name is ambiguous: the resource's own, or one that it refers to; empty if all are unique."""
    if resource.key in twins:
        return "its name is not unique in the project"
    parts = (resource, rules) if isinstance(resource, SecurityGroup) and rules else (resource,)
    wanted = {each.key for part in parts for each in part.references()} & twins
    return f"it refers to {', '.join(sorted(map(str, wanted)))}, whose name is not unique" if wanted else ""


def _obstacle(resource: Resource, spec_fields: dict[str, Any]) -> str:
    """Return why a spec cannot contain a resource; empty if it can."""
    if resource.kind == "stack":
        return _template_of(resource.name)
    if resource.kind == "application_credential":
        return "only the file that it was written to holds its secret: declare it with its own clouds_yaml"
    if has_reference_in_key(spec_fields):
        return "one of its keys contains ${, which only values of a spec can"
    section = section_of(type(resource))
    alone = {"name": "x", section.name: [spec_fields] if section.many else spec_fields}
    try:
        spec_of(alone, "exported", Path())
    except SpecError as error:
        return "; ".join(mistake.what for mistake in error.mistakes)
    return ""


def _spec_fields(resource: Resource) -> dict[str, Any]:
    """Return a resource's fields as a spec would declare them, without defaults and without its project."""
    values = {field.name: (getattr(resource, field.name), field.default) for field in fields(resource) if field.init}
    return {
        name: _plain(value)
        for name, (value, default) in values.items()
        if name not in PLACE and value not in (None, default) and not isinstance(value, FromContext)
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            field.name: _plain(got) for field in fields(value) if (got := getattr(value, field.name)) != field.default
        }
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list | frozenset) else value
