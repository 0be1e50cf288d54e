"""Which of Neutron's resources have the ownership tag of a spec, by the lists that the kinds read.

A plan asks these functions before it loads a kind that no section of its spec declares. The description of a resource
carries the tag, also that of a floating IP, whose tags repeat it: users edit the description in Horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import ATTACHED, OwnershipTag, Resource
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import (
    FloatingIPRecord,
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    R,
    RouterRecord,
    SubnetRecord,
)
from openstack_prep.resources.lists.rule_owners import has_any_of


def has_networks(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec manages networks in a project."""
    return _owns_any(run, project, NetworkRecord)


def has_subnets(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec manages subnets in a project."""
    return _owns_any(run, project, SubnetRecord)


def has_routers(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec manages routers in a project."""
    return _owns_any(run, project, RouterRecord)


def has_ports(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec manages ports in a project."""
    listed = queries.ports_in_project(run, run.find_project_id(project))
    return any(run.ownership.owns(raw.get("description")) for raw in listed)


def has_security_groups(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec manages security groups in a project."""
    return _owns_any(run, project, GroupRecord)


def has_rules(run: CloudRun, project: Resource | None) -> bool:
    """Whether security groups of a project have rules that the spec manages."""
    return any(has_any_of(run.ownership.spec, group) for group in _listed(run, project, GroupRecord))


def has_floating_ips(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec manages floating IPs in a project."""
    return any(name_of(run.ownership, record) is not None for record in _listed(run, project, FloatingIPRecord))


def has_flavors(run: CloudRun, _: Resource | None) -> bool:
    """Whether any flavor of the cloud may have the ownership tag of the spec."""
    start = f"[{run.ownership.tag}"
    return any(start in (flavor.description or "") for flavor in queries.flavors(run))


def has_attachments(run: CloudRun, project: Resource | None) -> bool:
    """Whether the spec has attached floating IPs of a project, or may have attached its own."""
    tag, attached = attachment_tag(run.ownership), _listed(run, project, FloatingIPRecord)
    mine = (
        tag.owns(floating_ip.description) or name_of(run.ownership, floating_ip)
        for floating_ip in attached
        if floating_ip.port_id
    )
    return any(mine)


def _listed(run: CloudRun, project: Resource | None, kind: type[R]) -> Sequence[R]:
    project_id = run.find_project_id(project)
    return queries.records_in(run, kind, project_id) if project_id else ()


def _owns_any(run: CloudRun, project: Resource | None, kind: type[NeutronRecord]) -> bool:
    return any(run.ownership.owns(record.description) for record in _listed(run, project, kind))


def carries(ownership: OwnershipTag, record: FloatingIPRecord, name: str) -> bool:
    """Whether the description of a floating IP contains an ownership tag with a name, or, without one, its tags do."""
    if ownership.another_in(record.description):
        return False
    return ownership.owns(record.description, name) or floating_ip_tag(ownership, name) in record.tags


def name_of(ownership: OwnershipTag, record: FloatingIPRecord) -> str | None:
    """Return the name that a spec has given a floating IP; None if it has no ownership tag of the spec."""
    if ownership.owns(record.description):
        return ownership.name_in(record.description)
    if ownership.another_in(record.description):
        return None
    ours = floating_ip_tag(ownership, "")
    return next((unquote(tag.removeprefix(ours)) for tag in sorted(record.tags) if tag.startswith(ours)), None)


def floating_ip_tag(ownership: OwnershipTag, name: str) -> str:
    """Return the tag of a floating IP that repeats the ownership tag in its description."""
    return f"{ownership.tag}~{quote(name, safe='')}"


def tagged_by(record: FloatingIPRecord) -> str:
    """Return the name of a spec whose ownership tag is among the tags of a floating IP, or an empty string."""
    specs = (tag.partition(":")[2].partition("~") for tag in sorted(record.tags) if OwnershipTag.is_tag(tag))
    return next((unquote(spec) for spec, named, _ in specs if spec and named), "")


def attachment_tag(ownership: OwnershipTag) -> OwnershipTag:
    """Return the tag that records an attachment of a floating IP which this spec does not manage."""
    return OwnershipTag(f"{ownership.spec}{ATTACHED}")
