"""Quotas: enough of each is free.

Source: Compute, Networking and Block Storage API, quota details: limit, in use and reserved.  A limit of -1
means unlimited; the limits of a server group's members and of a volume's size apply per group and volume.

Source: OpenShift installer docs/user/openstack/README.md, counted as its code does: every
replica, and not one per machine set; the group rules are those of IPv4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import CloudError, NotAllowed, NotFound
from openstack_prep.core.run import query
from openstack_prep.openshift.check.capacity.machines import MachineSet, flavors, groups
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.credentials import create_credential, grant
from openstack_prep.openshift.install_config.releases import GROUP_MEMBERS_CHECKED
from openstack_prep.openshift.install_config.rules.networks import user_creates_vip_ports
from openstack_prep.resources.compute import quota_stores
from openstack_prep.resources.compute.quota_stores import STORES, Store, unit
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, list_records

# The object store, which the cluster's registry uses if this user may.
#
# Source: OpenShift installer docs/user/openstack/README.md, "Swift": used when the user has the role
# swiftoperator, otherwise the registry gets a volume of 100 GiB.  Up to 4.3 the bootstrap's Ignition is stored there.

ROLE = "swiftoperator"
IGNITION_UNTIL = 4
VOLUME = "the registry gets a volume of 100 GiB instead, which one replica at a time can mount"


@query
def why_unusable(context: CheckContext) -> str:
    """Return why the cluster will not use the object store; empty if it will."""
    if not context.cloud.has("object-store"):
        return "the catalogue lists no object store"
    if ROLE not in context.cloud.roles:
        return f"missing role {ROLE} (has: {', '.join(sorted(context.cloud.roles))})"
    try:
        context.cloud.object_store.request("HEAD", "")
    except CloudError as error:
        return f"it refuses this user: {error}"
    return ""


def object_store(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield why the object store will not be used."""
    why = why_unusable(context)
    if not why:
        return
    needed, release = context.release < IGNITION_UNTIL, context.cluster.release
    yield Diagnostic(
        code="object-store.unusable",
        where="object-store",
        what=why,
        why=f"{release} puts the bootstrap's Ignition there, and stops without it" if needed else VOLUME,
        fix=_fix(context),
        status=DiagnosticStatus.ERROR if needed else DiagnosticStatus.WARNING,
    )


def _fix(context: CheckContext) -> str:
    if not context.cloud.has("object-store"):
        return "none needed if a volume is acceptable"
    if ROLE in context.cloud.roles:  # the role of the installer's documentation is not what this Swift requires
        return "ask the administrator for a role of operator_roles (section filter:keystoneauth of Swift's proxy)"
    create, _, who = grant(context, ROLE).partition("  # ")
    role = shell.join(["openstack", "role", "create", "--or-show", ROLE])
    again = f"; then: {create_credential(context)}" if context.cloud.application_credential_id else ""
    return f"{role} && {create}  # {who}{again}"


# --- need -------------------------------------------------------------------------------------


QUOTA_CHECK_SINCE = 7  # the installer has checked quotas itself since; it asks for more rules than it creates
RULES, RULES_OF_SCHEDULABLE_MASTERS, RULES_ASKED_FOR = 42, 3, 56
PORTS_ASKED_FOR = 4  # besides those of the replicas, own network or not
MASTERS_GROUP_SINCE, WORKERS_GROUP_SINCE = 5, 10
REGISTRY = 100  # GiB


class Need(NamedTuple):
    """How many are needed, and what for."""

    number: int
    parts: str


def needs(context: CheckContext) -> dict[str, Need]:
    """Return the need per quota, by our name; volumes_TYPE and gigabytes_TYPE are for one volume type."""
    return dict([*_compute(context), *_network(context), *_server_groups(context), *_volumes(context)])


def _machines_text(machines: Sequence[MachineSet]) -> str:
    masters, workers, _ = machines
    return f"{masters.count} control plane + {workers.count} compute + 1 bootstrap"


def _compute(context: CheckContext) -> Iterator[tuple[str, Need]]:
    machines = groups(context.cluster)
    yield "instances", Need(sum(machine.count for machine in machines), _machines_text(machines))
    known = [(machine.count, flavors(context).get(machine.like.flavor or "")) for machine in machines if machine.count]
    for quota, size in (("cores", "vcpus"), ("ram", "ram")):
        parts = [(count, getattr(flavor, size)) for count, flavor in known if flavor]
        if len(parts) == len(known):  # the check of flavors reports a missing one
            yield quota, Need(sum(a * b for a, b in parts), " + ".join(f"{a} x {b}" for a, b in parts))


def _network(context: CheckContext) -> Iterator[tuple[str, Need]]:
    cluster, checked = context.cluster, context.release >= QUOTA_CHECK_SINCE
    machines, own = groups(cluster), bool(cluster.machines_subnets)
    per_machine = [(machine.count, 1 + len(machine.like.additional_networks)) for machine in machines]
    of_machines = sum(count * ports for count, ports in per_machine)
    of_replicas = sum(count * ports for count, ports in per_machine[:2])
    # with IPv6 the user creates these ports; with a user-managed load balancer nobody does
    virtual = 0 if user_creates_vip_ports(cluster) or cluster.load_balancer == "UserManaged" else 2
    ports = of_machines + virtual + (0 if own else 2)
    what = f"{of_machines} of machines" + (" + API + ingress" if virtual else "")
    yield (
        "ports",
        _at_least(
            Need(ports, what if own else f"{what} + router + DHCP"), of_replicas + PORTS_ASKED_FOR if checked else 0
        ),
    )
    if not own:
        for each in ("networks", "subnets", "routers"):
            yield each, Need(1, "the machines' own")
    yield "security_groups", Need(2, "masters' and workers'")
    rules = RULES + (0 if cluster.compute.replicas else RULES_OF_SCHEDULABLE_MASTERS)
    yield "security_group_rules", _at_least(Need(rules, "of both groups"), RULES_ASKED_FOR if checked else 0)
    if cluster.external_network:
        yield "floating_ips", _floating_ips(context)


def _at_least(need: Need, asked_for: int) -> Need:
    """Return the larger of what is created and what the installer's own check asks for."""
    return (
        need if need.number >= asked_for else Need(asked_for, f"the installer asks for them, and creates {need.number}")
    )


def _floating_ips(context: CheckContext) -> Need:
    """Return those still to be created: the ones in install-config.yaml usually exist, and count as used."""
    listed = list_records(context.cloud.network, FloatingIPRecord, project_id=context.cloud.project_id)
    there = {floating_ip.address for floating_ip in listed}
    named = {each for each in (context.cluster.api_floating_ip, context.cluster.ingress_floating_ip) if each}
    lacking = len(named - there)
    return Need(1 + lacking, "temporarily for bootstrap" + (f" + {lacking} that do not exist yet" if lacking else ""))


def _server_groups(context: CheckContext) -> Iterator[tuple[str, Need]]:
    """Yield groups, one per zone for workers, and the members of the largest, which the limit is for.

    The installer's own check counts the masters and the machine sets, one per zone, as members of one group.
    """
    masters, workers, _ = groups(context.cluster)
    if context.release < MASTERS_GROUP_SINCE:
        return
    zones = max(1, len(workers.like.zones)) if context.release >= WORKERS_GROUP_SINCE else 0
    yield "server_groups", Need(1 + zones, f"masters' + {zones} of workers" if zones else "masters'")
    largest = max(masters.count, -(-workers.count // zones) if zones else 0)
    asked_for = masters.count + zones if context.release in GROUP_MEMBERS_CHECKED else 0
    need = Need(largest, "in the largest group")
    if asked_for > largest:
        need = Need(asked_for, "the installer's own check counts masters and machine sets as one group")
    yield "server_group_members", need


def _volumes(context: CheckContext) -> Iterator[tuple[str, Need]]:
    sizes: list[tuple[int, str | None]] = []
    for group in groups(context.cluster):
        volume = group.like.root_volume
        if volume is not None:
            sizes += [(volume.size, volume.types[index % len(volume.types)]) for index in range(group.count)]
    of_machines = len(sizes)
    if why_unusable(context):
        sizes.append((REGISTRY, None))
    if not sizes:
        return
    parts = [f"{of_machines} of machines"] if of_machines else []
    parts += ["the registry's, without an object store"] if len(sizes) > of_machines else []
    purpose = " + ".join(parts)
    yield "volumes", Need(len(sizes), purpose)
    yield "gigabytes", Need(sum(size for size, _ in sizes), purpose)
    yield "per_volume_gigabytes", Need(max(size for size, _ in sizes), "the largest")
    for kind in sorted({kind for _, kind in sizes if kind}):
        mine = [size for size, name in sizes if name == kind]
        yield f"volumes_{kind}", Need(len(mine), "of machines")
        yield f"gigabytes_{kind}", Need(sum(mine), "of machines")


# --- quota ------------------------------------------------------------------------------------


SKIPPED = (
    "the installer fails half-way; its own check counts a machine set as one instance, omits the "
    "bootstrap machine, and checks neither floating IPs nor volumes"
)


def quota(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the quotas of which less is free than needed."""
    wanted = needs(context)
    for store in STORES:
        mine = {name: need for name, need in wanted.items() if quota_stores.store_of(name) is store}
        if mine:
            yield from _in_store(context, store, mine)


def _in_store(context: CheckContext, store: Store, wanted: Mapping[str, Need]) -> Iterator[Diagnostic]:
    try:
        answer = quota_stores.read(context.cloud, store, context.cloud.project_id)
    except CloudError as error:
        names = ", ".join(f"{need.number}{unit(name)} {name}" for name, need in wanted.items())
        hidden = isinstance(error, NotAllowed | NotFound)
        yield Diagnostic(
            code="quota.unreadable",
            where="quota",
            what=f"could not be read: {error}",
            why=f"the cluster needs {names}; the installer's own check "
            + ("is skipped, too" if hidden else "fails, too"),
            fix=f"openstack quota show --usage {context.cloud.project_id}  # as an administrator",
            status=DiagnosticStatus.UNKNOWN if hidden else DiagnosticStatus.ERROR,
        )
        return
    for name, need in wanted.items():
        current = quota_stores.quota_usage(name, answer)
        if current is not None and not current.allows(need.number):
            yield _short(context, name, need, current)


def _short(context: CheckContext, name: str, need: Need, current: quota_stores.QuotaUsage) -> Diagnostic:
    suffix = unit(name)
    words = quota_stores.set_command(name, current.used + need.number, context.cloud.project_id)
    return Diagnostic(
        code="quota.short",
        where=f"quota.{name}",
        what=f"{need.number}{suffix} are needed ({need.parts}), {current.left} of {current.limit}{suffix} are free",
        why=SKIPPED,
        fix=f"{shell.join(words)}  # as an administrator; or set quota in the spec, which otherwise resets it",
    )
