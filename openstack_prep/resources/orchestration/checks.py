"""What would go wrong with a stack, and what an update of it would delete.

Source: Orchestration API v1, "Preview stack" and "Preview stack update".
"""

from __future__ import annotations

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import (
    CloudError,
    DownloadError,
    Loss,
    Mistake,
    NotAllowed,
    NotFound,
    PrepError,
    QuotaExceeded,
)
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import permission
from openstack_prep.core.model import Key, Observed, Resource
from openstack_prep.core.run import query
from openstack_prep.resources.compute import capacity, quota_stores
from openstack_prep.resources.compute.capacity import CapacityShortage, ServerDemand
from openstack_prep.resources.compute.quota_stores import EACH, QuotaUsage
from openstack_prep.resources.heat.flow import NOT_EMPTY, Flow
from openstack_prep.resources.heat.package import SECRETS_IMAGE, Package
from openstack_prep.resources.heat.preview import MAYBE, STATELESS, Effect, Refused, preview, unknown_types, validate
from openstack_prep.resources.heat.refusals import hide_altered
from openstack_prep.resources.heat.secret_outputs import holds_secret
from openstack_prep.resources.heat.stacks import SERVER, HeatResource, HeatStack
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.nova_records import FlavorRecord
from openstack_prep.resources.orchestration.inputs import Inputs
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.resources.orchestration.secrets import SecretsImage
from openstack_prep.resources.orchestration.taken_over import find_taken_over, list_added_names

# --- Check that a project's quotas suffice for all new stacks of a spec together, before the first one is created ---
# Heat is asked what it would create, because only Heat can evaluate a template. Amounts that an update releases are not
# counted as free: Heat creates the new resources before it deletes the old ones.
#
# Source: Orchestration API v1, "Preview stack"; quota details of Compute, Networking and Block Storage.


OTHER = "-as-it-would-be"  # Heat does not preview a new stack if its name exists


def planned(run: CloudRun, stack: Inputs, suffix: str = "") -> list[Values]:
    """Return the resources that Heat would create from its inputs, requested once per run; raises Refused."""

    def ask() -> list[Values]:
        body, secrets = stack.body((), absent=stack.absent_images(run))
        try:
            return preview(run.tenant(stack.owner).orchestration, stack.name + suffix, body, secrets)
        except Refused as error:
            assert isinstance(stack.package, Package)
            raise Refused(hide_altered(str(error), stack.package)) from None

    return run.read_once((planned, stack.key, suffix), ask)  # by key: the inputs are not hashable


class QuotaCheck:
    """The needs of all stacks of one project; each stack is counted once, together with those that wait with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[Key, tuple[Inputs, Observed | None]] = {}
        self._needs: dict[Key, Need] = {}
        self._servers: dict[Key, list[ServerDemand]] = {}
        self._shortages: dict[Key, list[Mistake]] = {}
        self._first: set[Key] = set()  # the stack that reports for those counted together

    @classmethod
    def of(cls, run: CloudRun, owner: Resource | None) -> QuotaCheck:
        return _quota_check(run, owner)

    def register(self, stacks: Iterable[tuple[Inputs, Observed | None]]) -> None:
        """Register stacks, and the existing stack of each."""
        with self._lock:
            for stack, observed in stacks:
                self._wanted.setdefault(stack.key, (stack, observed))

    def shortages(self, run: CloudRun, stack: Inputs) -> list[Mistake]:
        """Return the quotas that are too small, as far as known so far; one stack reports for those counted with it."""
        with self._lock:
            self._count(run)
            return self._shortages.get(stack.key, []) if stack.key in self._first else []

    def need(self, stack: Inputs) -> Need:
        """Return what a stack needs, as far as known so far, without limits that are per resource."""
        with self._lock:
            return {name: number for name, number in self._needs.get(stack.key, {}).items() if name not in EACH}

    def lack_of_room(self, run: CloudRun, stack: Inputs) -> list[Mistake]:
        """Return the new servers for which the hosts have no room, if these credentials may ask; like ``shortages``."""
        with self._lock:
            self._count(run)
            servers = {key: each for key, each in self._servers.items() if each}
            if next(iter(servers), None) != stack.key:
                return []
            short = _without_room(run, tuple(each for found in servers.values() for each in found))
        return [Mistake.about([*servers], str(shortage), NO_ROOM, code=Code.CAPACITY_SHORT) for shortage in short or ()]

    def unjudged_servers(self, run: CloudRun, stack: Inputs) -> int:
        """Return how many new servers of a stack nobody has asked room for."""
        with self._lock:
            judged = _without_room(run, tuple(each for found in self._servers.values() for each in found)) is not None
            known = sum(demand.count for demand in self._servers.get(stack.key, ())) if judged else 0
            return self._needs.get(stack.key, {}).get("instances", 0) - known

    def ensure_quota(self, run: CloudRun, stack: Inputs, observed: Observed | None) -> None:
        """Raise QuotaExceeded if a stack does not fit; stacks that the plan could not count are counted now."""
        with self._lock:
            if stack.key not in self._shortages:
                self._wanted[stack.key] = (stack, observed)
                self._count(run.fresh())
            short = self._shortages.get(stack.key)
        if short:
            raise QuotaExceeded(
                "nothing was created: " + "; ".join(f"{mistake.what}; {mistake.fix}" for mistake in short)
            )

    def _count(self, run: CloudRun) -> None:
        uncounted = [each for key, each in self._wanted.items() if key not in self._shortages]
        ready = [(stack, seen) for stack, seen in uncounted if _settled(seen) and stack.askable(run)]
        if not ready:
            return
        known = {stack.key: _need(run, stack, observed) for stack, observed in ready}
        needs = {key: each.need for key, each in known.items() if each is not None}
        if not needs:
            return
        self._servers |= {key: each.servers for key, each in known.items() if each is not None}
        self._needs |= needs
        short = list(_shortages(run, ready[0][0], needs))
        self._shortages |= {key: [mistake for mistake in short if need] for key, need in needs.items()}
        self._first.add(next((key for key, need in needs.items() if need), ready[0][0].key))


def _settled(observed: Observed | None) -> bool:
    """Whether an existing stack will not change until this run changes it."""
    record = observed.record_as(StackRecord) if observed else None
    return record is None or not (record.in_progress or record.deleting)


@query
def _quota_check(run: CloudRun, owner: Resource | None) -> QuotaCheck:
    return QuotaCheck()


NO_ROOM = "choose a smaller flavor or fewer servers, or ask the administrator of the cloud for more hosts"


def _without_room(run: CloudRun, servers: Sequence[ServerDemand]) -> Sequence[CapacityShortage] | None:
    """Return the servers without room, asked for once per run; None if these credentials may not ask."""

    def ask() -> Sequence[CapacityShortage] | None:
        try:
            return list(capacity.shortages(run.admin, servers))
        except CloudError:  # of a service that nothing else needs: shown as not checked
            return None

    if not servers or not capacity.may_ask(run.admin):
        return None
    name = tuple((server.flavor.id, server.count, server.zone, server.from_volume, server.apart) for server in servers)
    return run.read_once((_without_room, name), ask)


class New(NamedTuple):
    """What a stack needs besides what exists."""

    need: Need
    servers: list[ServerDemand]


def _need(run: CloudRun, stack: Inputs, observed: Observed | None) -> New | None:
    """Return how much of each quota a stack needs; empty if Heat refuses its inputs, which is reported elsewhere.

    None if Heat refuses them while resources of the spec are still to come: a plain parameter may name one of these, so
    Heat is asked again before the stack is created.
    """
    record = observed.record_as(StackRecord) if observed else None
    if observed and record and not record.preview and not record.missing and observed.values["status"] == "complete":
        return New({}, [])
    root = stack.name + (OTHER if observed else "")
    try:
        wanted = wants(planned(run, stack, root.removeprefix(stack.name)), root, queries.flavors(run))
    except Refused as error:
        if stack.awaits(run):
            return None
        run.note(stack.key, f"not checked against the quotas: {error}")
        return New({}, [])
    existing = standing(record.stack, record.missing, record.preview) if record else {}
    return New(difference(wanted, existing), new_servers(wanted, existing))


def _shortages(run: CloudRun, stack: Inputs, needs: Mapping[Key, Need]) -> Iterator[Mistake]:
    """Yield each quota that the stacks exceed together; ``stack`` is any of them."""
    declared = stack.neighbours.quota.desired() if stack.neighbours.quota else {}
    total = together(needs.values())
    for name, quota in _quotas(run, stack, total).items():
        number = total[name]
        quota = QuotaUsage(declared.get(name, quota.limit), quota.used)
        if quota.allows(number):
            continue
        users = [key for key, need in needs.items() if need.get(name)]
        left = f"{quota.limit} are allowed" if name in EACH else f"{quota.left} are left of {quota.limit}"
        word = "needs" if len(users) == 1 else "need together"
        enough = quota.used + number
        field = f"raise quota.{name} in the spec to {enough}"
        project = stack.owner.name if stack.owner else run.admin.project_id
        command = f"raise the quota: {shell.join(quota_stores.set_command(name, enough, project))}"
        what = f"{word} {number} {label(name)}, {left}"
        yield Mistake.about(users, what, field if name in declared else command, code=Code.QUOTA_SHORT)


def _quotas(run: CloudRun, stack: Inputs, total: Need) -> dict[str, QuotaUsage]:
    """Return the affected quotas, in the order of ``total``, without those of services that do not report them."""
    found: dict[str, QuotaUsage | None] = {}
    project_id = run.id(stack.owner) if stack.owner else run.admin.project_id
    for store in quota_stores.STORES:
        names = [name for name in total if quota_stores.store_of(name) is store]
        if not names:
            continue
        try:
            answer = quota_stores.read_usage(run, store, project_id)
        except (NotAllowed, NotFound) as error:
            run.note(
                stack.key,
                f"{', '.join(names)}: not checked, because the credentials in use may not read these quotas: {error}",
            )
            continue
        found |= {name: quota_stores.quota_usage(name, answer) for name in names}
    return {name: quota for name in total if (quota := found.get(name)) is not None}


# --- The secrets of a stack that Heat would show to every reader of its project, by rules that need no cloud ---
# Heat shows all properties of all resources, in their events, and metadata and outputs: see heat/flow.py.


MOST = 3
"""Number of places that a warning names."""


def list_shown(stack: Inputs, package: Package, images: Collection[SecretsImage]) -> Iterator[str]:
    """Yield a warning per secret that reaches what Heat shows, unless an image holds it."""
    for name, value in (stack.parameters or {}).items():
        if name in package.parameters.keys() - package.hidden and holds_secret(value):
            fix = "use a hidden parameter and secret_parameters"
            yield f"parameter {name} seems to hold a secret, which Heat shows to every reader of the project; {fix}"
    named = {image.parameter for image in images}
    held = {name for image in images for name in image.secrets}
    flow = Flow(package.template, {**stack.given, **dict.fromkeys(stack.secrets, NOT_EMPTY)})
    disabled = [name for name in package.secret_images if name in stack.given.keys() - named]
    for name in sorted(stack.secrets.keys() - held):
        if name in package.parameters.keys() - package.hidden:
            yield f"parameter {name} is not hidden in the template, so Heat shows its value; add hidden: true to it"
        elif places := list(dict.fromkeys(flow.places(name))):
            more = f" and {len(places) - MOST} more places" if len(places) > MOST else ""
            fix = f"hand it to files of servers by a parameter with the tag {SECRETS_IMAGE} (docs/kubernetes.md)"
            if disabled:
                fix = f"omit {' and '.join(disabled)}"
            yield (
                f"parameter {name} reaches {', '.join(places[:MOST])}{more} of the template, "
                f"which Heat shows to every reader of the project; {fix}"
            )


TAG_LENGTH = 80  # maximum length of a tag in Heat
WIPES = ("rebuild", "restore")


def declared(stack: Inputs) -> Iterator[Mistake]:
    """Yield what is wrong with its inputs before a cloud, a store of secrets or another machine is asked."""
    error = stack.package
    if isinstance(error, PrepError) and not isinstance(error.__cause__, DownloadError):
        yield stack.mistake(str(error), "", error.code)
    yield from _of_parameters(stack, fetch=False)


def _of_parameters(stack: Inputs, *, fetch: bool) -> Iterator[Mistake]:
    file = "" if "://" in stack.template else f" ({Path(stack.template).name})"  # a URL may contain a login
    for found in stack.mistakes(fetch=fetch):
        what = f"{found.what}{file}"
        yield Mistake.about(stack.key, what, found.fix, parameter=found.parameter, code=Code.STACK_PARAMETER)


def against(stack: Inputs, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
    """Yield what is wrong with its inputs, and why Heat refuses them once all resources that it refers to exist."""
    if len(run.ownership.tag) > TAG_LENGTH:
        yield stack.mistake(
            f"its ownership tag {run.ownership.tag} is too long for a tag", "choose a shorter name for the spec"
        )
    if isinstance(stack.package, PrepError):
        yield stack.mistake(str(stack.package), "", stack.package.code)
    yield from _of_parameters(stack, fetch=True)
    what, refused = "the update", ""
    if observed is not None:
        record = observed.record_as(StackRecord)
        refused = record.refused
        is_suspended = record.status.startswith("SUSPEND") and not record.in_progress
        if is_suspended:  # Heat 27.0.1, engine/service.py, update_stack
            command = shell.join(["openstack", "stack", "resume", "--wait", stack.name])
            yield stack.mistake("is suspended, and Heat updates no such stack", command, Code.STACK_REFUSED)
        if names := list_added_names(record):
            try:
                coming = [each for each in planned(run, stack, OTHER) if each["resource_name"] in names]
                yield from find_taken_over(stack, record.stack.cloud, coming, record.stack.contained_ids)
            except Refused as error:  # a new stack may be refused for what the present one has
                run.note(stack.key, f"not checked for what its new resources take from others: {error}")
    elif stack.askable(run):
        try:
            yield from find_taken_over(stack, run.tenant(stack.owner), planned(run, stack))
        except Refused as error:
            what, refused = "it", str(error)
    else:
        yield from _of_template(run, stack)
    if refused and not stack.awaits(run):
        yield stack.mistake(f"Heat refuses {what}: {refused}", "correct the cause", Code.STACK_REFUSED)


def _of_template(run: CloudRun, stack: Inputs) -> Iterator[Mistake]:
    """Yield why Heat would refuse the template, whatever else exists: any project will do to ask it."""
    cloud, package = run.find_tenant(stack.owner) or run.admin, stack.package
    if not isinstance(package, Package) or not cloud.has("orchestration"):
        return
    heat = cloud.orchestration
    try:
        unknown = unknown_types(heat, package)
        if unknown:
            what = f"Heat of this cloud has no resource type {', '.join(unknown)}"
            fix = "use types that `openstack orchestration resource type list` shows"
            if any(each.partition(" ")[0].endswith((".yml", ".json")) for each in unknown):
                # python-heatclient 5.3.0, common/template_utils.py, get_template_file_contents
                fix = f"give nested templates names that end in .yaml or .template; {fix}"
            yield stack.mistake(what, fix, Code.STACK_REFUSED)
        else:
            validate(heat, package, package.visible(stack.given))
    except Refused as error:
        yield stack.mistake(f"Heat refuses its template: {error}", "correct the cause", Code.STACK_REFUSED)
    except CloudError as error:
        run.note(stack.key, f"its template was not validated yet: {error}")


OR_ALLOW = "or allow this (--allow-replace)"
UNDO = f"undo the change that causes this, {OR_ALLOW}"
WORDS = {
    "replace": ("the update would replace {}", UNDO),
    "delete": (
        "the update would delete {}",
        "move their data elsewhere and allow the deletion (--allow-replace), or restore them in the template",
    ),
    MAYBE: (
        "the update may delete, replace or wipe the members of {}: Heat cannot preview it",
        f"change the size of groups in a separate apply, {OR_ALLOW}",
    ),
    "wipe": (
        "the update would wipe the disks of {}: Heat rebuilds servers and restores volumes in place",
        UNDO,
    ),
}
"""The loss that each verb of a preview stands for, and the fix."""


def list_losses(stack: Inputs, observed: Observed) -> Iterator[Loss]:
    """Yield what an update would delete, replace or wipe, except resources without data, and secrets in use."""
    record = observed.record_as(StackRecord)
    for name, secret in stack.secrets.items():
        if secret.is_to_generate:
            loss = permission.lost_secret(stack.key, f"secret_parameters.{name}", secret)
            yield replace(loss, fix=f"{loss.fix}; if the stack does not have this secret yet, create the file")
    heat = record.stack
    standing = {place: each for place, each in heat.made.items() if place not in record.missing}
    if record.status == "DELETE_FAILED":
        yield from _of_failed_delete(stack, heat, standing)
    if cut_off := sorted(record.cut_off):
        what = f"{', '.join(cut_off)} have lost their last port and would be replaced"
        yield _loss(stack, what, "save the data on their disks, and allow the replacement (--allow-replace)", cut_off)
    touched = [effect for effect in record.preview if effect.place in standing and not _is_stateless(effect, record)]
    for verb, (what, fix) in WORDS.items():
        lost = [effect.place for effect in touched if verb == ("wipe" if effect.verb in WIPES else effect.verb)]
        if lost:
            named = _named(heat, {place: standing[place] for place in lost})
            yield _loss(stack, what.format(named), fix, lost)


def _is_stateless(effect: Effect, record: StackRecord) -> bool:
    """Whether a replacement loses nothing: nodes read volumes with secrets only once."""
    return effect.type in STATELESS or effect.place in record.outdated


def _of_failed_delete(stack: Inputs, heat: HeatStack, standing: Mapping[str, HeatResource]) -> Iterator[Loss]:
    """Yield the rest of a stack whose deletion failed, which an update would delete before it creates the stack."""
    left = {
        place: each
        for place, each in standing.items()
        if each.status != "DELETE_COMPLETE" and each.type not in STATELESS and f"{place}." not in heat.places.values()
    }
    if left:
        what = f"its deletion failed; an update would first delete the remaining resources: {_named(heat, left)}"
        yield _loss(stack, what, "allow the deletion (--allow-replace) if nobody needs them any more", sorted(left))


def _named(heat: HeatStack, resources: Mapping[str, HeatResource]) -> str:
    """Return resources by place and type; servers also by name."""
    names = {server["id"]: server["name"] for server in heat.servers} if SERVER in heat.types else {}
    found = []
    for place, each in sorted(resources.items()):
        name = names.get(each.id)
        found.append(f"{place} ({each.type}{f' {name}' if name else ''})")
    return ", ".join(found)


def _loss(stack: Inputs, what: str, fix: str, lost: Iterable[str]) -> Loss:
    return replace(Loss.about(stack.key, what, fix), lost=tuple(lost))


# --- how much of each quota the resources of a stack need; pure functions ---
#
# Ports that Nova creates for a server, and volumes that it boots from, are counted with the server. Not counted are
# resources that Heat's preview does not show and that none of these quotas limits: load balancers, ports of DHCP and
# routers, resources in a stack of another region, and AWS-compatible resources.
#
# Source: Heat's "OpenStack Resource Types"; Networking API v2.0, "Security groups" (rules that a new one has).


Need = Mapping[str, int]
"""Amounts by the spec's name of a quota."""

ONE_OF = {
    "OS::Cinder::Volume": "volumes",
    "OS::Neutron::FloatingIP": "floating_ips",
    "OS::Neutron::Net": "networks",
    "OS::Neutron::Port": "ports",
    "OS::Neutron::RBACPolicy": "rbac_policies",
    "OS::Neutron::Router": "routers",
    "OS::Neutron::SecurityGroup": "security_groups",
    "OS::Neutron::SecurityGroupRule": "security_group_rules",
    "OS::Neutron::Subnet": "subnets",
    "OS::Neutron::SubnetPool": "subnet_pools",
    "OS::Neutron::Trunk": "trunks",
    "OS::Nova::FloatingIP": "floating_ips",
    "OS::Nova::Server": "instances",
    "OS::Nova::ServerGroup": "server_groups",
}
EGRESS_RULES = 2  # of a new security group, one per IP version; Heat removes them if the template has rules
_LABELS = {
    "gigabytes": "GiB of volumes",
    "per_volume_gigabytes": "GiB in one volume",
    "ram": "MiB of memory",
    "server_group_members": "servers in one server group",
}
_MEMBER = re.compile(r"(?<![^-])(?:\d+|[a-z0-9]{12})(?![^-])")
"""Heat's names for the members of a group: by number, or random."""


class Want(NamedTuple):
    """A resource to be created: its place without the number of the member, what it needs, and its server group."""

    shape: str
    cost: Need
    group: str = ""
    server: ServerDemand | None = None
    """Set for a server whose flavor exists."""
    is_apart: bool = False
    """Whether its group keeps its members on hosts of their own."""


def label(name: str) -> str:
    """Return the unit of a quota's number."""
    what, _, kind = name.partition("_")
    if what in ("volumes", "gigabytes") and kind:
        return f"{_LABELS.get(what, what)} of type {kind}"
    return _LABELS.get(name, name.replace("_", " "))


def shape(place: str) -> str:
    """Return the common place of a group's members: ``servers.0.port`` and ``servers-1-port`` are equal."""
    return _MEMBER.sub("*", place.replace(".", "-"))


def wants(resources: Iterable[Raw], root: str, flavors: Sequence[FlavorRecord]) -> list[Want]:
    """Return what the resources of a preview need; ``root`` is the stack's name in it."""
    resources = list(resources)
    sizes = {name: flavor for flavor in flavors for name in (flavor.name, flavor.id)}
    strict = _strict_groups(resources)
    found = []
    for resource in resources:
        place = f"{resource['stack_name']}-{resource['resource_name']}".removeprefix(f"{root}-")
        cost: Counter[str] = Counter()
        for name, number in _cost(resource["resource_type"], resource["properties"], sizes):
            cost[name] = max(cost[name], number) if name in EACH else cost[name] + number
        group = str((resource["properties"].get("scheduler_hints") or {}).get("group") or "")
        server = _demand(resource["properties"], sizes) if resource["resource_type"] == "OS::Nova::Server" else None
        cost |= Counter({"server_group_members": 1} if group else {})
        found.append(Want(shape(place), cost, group, server, group in strict))
    return found


def _demand(properties: Raw, flavors: Mapping[str, FlavorRecord]) -> ServerDemand | None:
    flavor = flavors.get(str(properties.get("flavor")))
    if flavor is None:
        return None
    disks = properties.get("block_device_mapping_v2") or properties.get("block_device_mapping")
    from_volume = bool(disks) and not properties.get("image")
    return ServerDemand(flavor, 1, properties.get("availability_zone") or None, from_volume)


def _strict_groups(resources: Sequence[Raw]) -> set[str]:
    """Return the names of a stack's own groups that keep their members on hosts of their own.

    Heat refers to a group that does not exist yet by its name in the template (Heat 27.0.0, engine/resource.py,
    get_reference_id).
    """
    strict: dict[str, set[bool]] = defaultdict(set)
    for resource in resources:
        if resource["resource_type"] == "OS::Nova::ServerGroup":
            strict[resource["resource_name"]].add("anti-affinity" in (resource["properties"].get("policies") or ()))
    return {name for name, found in strict.items() if found == {True}}


def new_servers(wanted: Sequence[Want], existing: Mapping[str, Sequence[Need]]) -> list[ServerDemand]:
    """Return the servers besides those that exist, whose hosts may be full by now."""
    left = Counter({each: len(costs) for each, costs in existing.items()})
    new: list[Want] = []
    for each in wanted:
        if left[each.shape]:
            left[each.shape] -= 1
        else:
            new.append(each)
    members = Counter(each.group for each in new if each.is_apart)
    return [replace(each.server, apart=max(1, members[each.group])) for each in new if each.server]


def difference(wanted: Sequence[Want], existing: Mapping[str, Sequence[Need]]) -> Need:
    """Return what is needed besides what exists; resources of the same shape that exist can grow in place."""
    left = {each: list(costs) for each, costs in existing.items()}
    members = Counter(each.group for each in wanted if each.group)
    found: Counter[str] = Counter()
    for each in wanted:
        stands = left[each.shape].pop() if left.get(each.shape) else None
        for name, number in each.cost.items():
            before = 0 if stands is None else stands.get(name, number)
            if name == "server_group_members":
                found[name] = max(found[name], members[each.group] if number > before else 0)
            elif name in EACH:
                found[name] = max(found[name], number if number > before else 0)
            else:
                found[name] += max(0, number - before)
    return {name: number for name, number in found.items() if number}


def together(needs: Iterable[Need]) -> Need:
    """Return the total need of several resources."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for need in needs:
        for name, number in need.items():
            numbers[name].append(number)
    return {name: max(each) if name in EACH else sum(each) for name, each in numbers.items()}


def _cost(kind: str, properties: Raw, flavors: Mapping[str, FlavorRecord]) -> Iterator[tuple[str, int]]:
    if kind in ONE_OF:
        yield ONE_OF[kind], 1
    if kind == "OS::Nova::Server":
        yield from _server(properties, flavors)
    elif kind == "OS::Neutron::SecurityGroup":
        rules = properties.get("rules") or ()
        replaced = any(rule.get("direction") == "egress" for rule in rules)
        yield "security_group_rules", len(rules) + (0 if replaced else EGRESS_RULES)
    elif kind == "OS::Cinder::Volume":
        yield from _volume(properties.get("size"), properties.get("volume_type"))


def _server(properties: Raw, flavors: Mapping[str, FlavorRecord]) -> Iterator[tuple[str, int]]:
    flavor = flavors.get(str(properties.get("flavor")))
    if flavor:  # else it refers to a resource that does not exist yet
        yield "cores", flavor.vcpus
        yield "ram", flavor.ram
    networks = properties.get("networks")
    alone = [
        network for network in networks or () if not network.get("port") and network.get("allocate_network") != "none"
    ]
    yield "ports", len(alone) if networks else 1  # without networks Nova uses the only network
    for each in properties.get("block_device_mapping_v2") or ():
        source = any(each.get(name) for name in ("image", "image_id", "snapshot_id"))
        if source and not each.get("volume_id"):
            yield "volumes", 1
            yield from _volume(each.get("volume_size"), each.get("volume_type"))


def _volume(size: Any, kind: str | None) -> Iterator[tuple[str, int]]:
    if kind:
        yield f"volumes_{kind}", 1
    if size:  # else the size of a snapshot or of another volume applies
        yield "gigabytes", int(size)
        yield "per_volume_gigabytes", int(size)
        if kind:
            yield f"gigabytes_{kind}", int(size)


# --- The existing resources of a stack that an update keeps, and how far they can grow in place ----------
# Source: Compute API, "Servers" (flavor's size within a server since microversion 2.47); Networking API,
# "Security groups"; Block Storage API, "Volumes".


def standing(stack: HeatStack, missing: Collection[str], preview: Iterable[Effect]) -> dict[str, list[Need]]:
    """Return, by shape, one entry per resource that is kept: its present amounts of quotas that it could need more of.

    A resource that an update replaces exists together with its successor for a while. Heat may replace the members of a
    group one after the other, so at most one of them is counted twice.
    """
    making = {effect.place for effect in preview if effect.verb in ("replace", "delete")}
    sizes = {kind: measure(stack) for kind, measure in _MEASURES.items() if kind in stack.types}
    found: dict[str, list[Need]] = defaultdict(list)
    replaced: set[str] = set()
    for place, each in stack.made.items():
        like = shape(place)
        if place in missing:
            continue
        if place in making and ("*" not in like or like not in replaced):
            replaced.add(like)
            continue
        found[like].append(sizes.get(each.type, {}).get(each.id, {}))
    return found


def _servers(stack: HeatStack) -> dict[str, Need]:
    return {
        server["id"]: {"cores": server["flavor"]["vcpus"], "ram": server["flavor"]["ram"]} for server in stack.servers
    }


def _volumes(stack: HeatStack) -> dict[str, Need]:
    listed = stack.cloud.volume.list("/volumes/detail", "volumes")
    names = ("gigabytes", "per_volume_gigabytes", "gigabytes_{}")
    return {each["id"]: {name.format(each["volume_type"]): each["size"] for name in names} for each in listed}


def _security_groups(stack: HeatStack) -> dict[str, Need]:
    project = stack.cloud.project_id
    listed = stack.cloud.network.list("/security-groups", "security_groups", project_id=project)
    return {each["id"]: {"security_group_rules": len(each["security_group_rules"])} for each in listed}


_MEASURES: Mapping[str, Callable[[HeatStack], Mapping[str, Need]]] = {
    "OS::Cinder::Volume": _volumes,
    "OS::Neutron::SecurityGroup": _security_groups,
    "OS::Nova::Server": _servers,
}
