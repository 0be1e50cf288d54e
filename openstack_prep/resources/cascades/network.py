"""What Neutron deletes or detaches together with its resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, LossEffect
from openstack_prep.core.run import fact
from openstack_prep.resources.cascades.row import (
    ADMINISTRATORS,
    CascadeRow,
    CascadeTable,
    Deletions,
    Dependent,
    in_neutron,
    no_text,
    per_deletion,
    place,
    sees_everything,
)
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cluster_naming import cluster_namings
from openstack_prep.resources.lists.neutron_records import (
    AUTOMATIC,
    GroupRecord,
    PortRecord,
    Route,
    RouterRecord,
    RuleRecord,
    bare_device,
)
from openstack_prep.resources.lists.rule_owners import owners_of

EVERYBODY = "*"
PORT_FIELDS = ["id", "name", "device_owner", "device_id", "project_id", "network_id", "fixed_ips", "description"]


def _subnets(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the subnets on networks; a network also names those that its owner does not see."""
    run, seen = deletions.run, set(deletions.going)
    for subnet in in_neutron("/subnets", "network_id")(deletions):
        seen.add(subnet.id)
        yield subnet
    if not sees_everything(run):
        for raw in deletions.listed("/networks", "id", fields=("id", "subnets")):
            for subnet_id in sorted({*raw["subnets"]} - seen):
                yield Dependent(deletions.by_id[raw["id"]], subnet_id, detail="in another project")


def _policies(kind: str) -> CascadeRow:
    """Return the row of what shares a network or security group, without Neutron's own policy of a shared network."""
    return CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="rbac_policy",
        what=f"projects that a {kind.replace('_', ' ')} is shared with",
        source="Neutron 29.0.0, db/rbac_db_models.py, RBACColumns: ondelete CASCADE",
        read=in_neutron(
            "/rbac-policies",
            "object_id",
            object_type=kind,
            name=no_text,
            detail=lambda run, raw: f"access of project {queries.project_name(run, raw['target_tenant'])}",
            counts=lambda deletions, raw: bool(raw["target_tenant"] != EVERYBODY),
        ),
    )


def _rules_within(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the rules that others have created in groups; Neutron's own ones are those of each new group."""
    spec, run = deletions.run.ownership.spec, deletions.run
    for raw in deletions.listed("/security-group-rules", "security_group_id"):
        group, rule = deletions.by_id[raw["security_group_id"]], RuleRecord.read(raw)
        owners = owners_of(group.observed.record_as(GroupRecord), rule)
        if deletions.stays(raw) and owners != {spec} and not (not owners and _is_automatic(run, raw)):
            others = ", ".join(sorted(owners - {spec}))
            yield Dependent(group, rule.id, _rule_text(run, raw), f"managed by spec {others}" if others else "")


def _is_elsewhere(deletions: Deletions, raw: Raw) -> bool:
    """Whether a rule is in a group that stays and is not the one that it admits, and somebody may miss it."""
    if raw["security_group_id"] in deletions.going | {raw["remote_group_id"]}:
        return False
    group = deletions.by_id[raw["remote_group_id"]].observed.record_as(GroupRecord)
    rule = RuleRecord.read(raw)
    return raw["project_id"] != group.project_id or not any(
        cluster_naming.is_own_rule(rule, group) for cluster_naming in cluster_namings()
    )


def _group_text(run: CloudRun, raw: Raw) -> str:
    group = queries.named(run, "security-groups", "security_group", raw["security_group_id"])
    return place(run, raw, f"of security group {group}")


def _rule_text(run: CloudRun, raw: Raw) -> str:
    rule = RuleRecord.read(raw)
    ports = (port for port in (rule.port_range_min, rule.port_range_max) if port is not None)
    words = [rule.direction, rule.ethertype, rule.protocol or "any", "-".join(dict.fromkeys(map(str, ports)))]
    return " ".join(filter(None, words))


def _is_automatic(run: CloudRun, raw: Raw) -> bool:
    """Whether Neutron creates such a rule in each new group: those of the API, or those that the cloud has chosen."""
    if raw.get("description"):
        return False
    bare = raw["direction"] == "egress" and not any(raw.get(name) for name in RULE if name != "direction")
    return bare or any(
        all(raw.get(name) == template.get(name) for name in (*RULE, "ethertype")) for template in _templates(run)
    )


RULE = (
    "direction",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
    "remote_group_id",
    "remote_address_group_id",
)


@fact
def _templates(run: CloudRun) -> list[Raw]:
    """Return the rules of new groups; before Neutron 23 (2023.2) nobody can choose them."""
    if "security-groups-default-rules" not in queries.extensions(run):
        return []
    listed = queries.neutron_list(run, "/default-security-group-rules")
    return [raw for raw in listed if raw.get("used_in_non_default_sg")]


def _routes(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the routes of routers that the spec does not declare, such as those of a cluster's route controller.

    They are read again, because the record of a router is as old as the plan.
    """
    for raw in deletions.listed("/routers", "id", fields=("id", "routes")):
        router = deletions.by_id[raw["id"]]
        declared = {str(route) for route in router.resource.desired().get("routes") or ()}
        for route in (Route(**each) for each in raw["routes"]):
            if str(route) not in declared:
                yield Dependent(router, f"{router.id}/{route.destination}", f"via {route.nexthop}")


def _reached(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the ports in subnets that stay and lose their router, of servers, trunks, load balancers."""
    run = deletions.run
    for router in deletions:
        for subnet_id in sorted(router.observed.record_as(RouterRecord).joined - deletions.going):
            listed = queries.neutron_list(run, "/ports", fixed_ips=f"subnet_id={subnet_id}", fields=PORT_FIELDS)
            for raw in filter(deletions.stays, listed):
                own = run.ownership.manages(raw["name"], raw["description"])
                device_id = bare_device(raw["device_id"])
                goes = raw["device_owner"] in AUTOMATIC or device_id == router.id or device_id in deletions.going
                if not own and not goes:
                    device = " ".join(filter(None, (raw["device_owner"], raw["device_id"])))
                    yield Dependent(router, raw["id"], raw["name"], place(run, raw, device and f"of {device}"))


def _helpers(run: CloudRun, router: Deletion) -> Iterable[Raw]:
    if "l3-conntrack-helper" not in queries.extensions(run):
        return ()
    return queries.neutron_list(run, f"/routers/{router.id}/conntrack_helpers")


def _forwardings_to(deletions: Deletions) -> Iterator[Dependent]:
    for port in deletions:
        for floating_ip, raw in queries.forwardings_to(deletions.run, port.observed.record_as(PortRecord)):
            if floating_ip.id not in deletions.going:
                where = f"in project {queries.project_name(deletions.run, floating_ip.project_id)}"
                yield Dependent(
                    port, raw["id"], f"{raw['protocol']} {raw['external_port']} of {floating_ip.address}", where
                )


def _logs(field: str) -> CascadeRow:
    """Return the row of the logs of a security group, or of a port, whose id a log has in a field."""

    def read(deletions: Deletions) -> Iterator[Dependent]:
        if "logging" in queries.extensions(deletions.run):
            if not sees_everything(deletions.run):  # 29.0.0, conf/policies/logging.py: a list of others is empty
                raise NotAllowed(ADMINISTRATORS)
            yield from in_neutron("/log/logs", field)(deletions)

    return CascadeRow(
        effect=LossEffect.DELETED,
        takes="log",
        what="logs of the traffic of a security group or port",
        source="Neutron 29.0.0, services/logapi/logging_plugin.py, _clean_logs",
        read=read,
    )


NETWORK: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="subnet",
        what="subnets of other projects on a network",
        source='Neutron 29.0.0, db/db_base_plugin_v2.py, delete_network: "clean up subnets"; it refuses ports of users',
        read=_subnets,
    ),
    _policies("network"),
)

SECURITY_GROUP: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="security_group_rule",
        what="rules of others in a security group",
        source="Neutron 29.0.0, db/models/securitygroup.py, SecurityGroupRule.security_group_id: ondelete CASCADE",
        read=_rules_within,
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="security_group_rule",
        what="rules of other projects that admit a security group",
        source="Neutron 29.0.0, db/models/securitygroup.py, SecurityGroupRule.remote_group_id: ondelete CASCADE",
        read=in_neutron(
            "/security-group-rules", "remote_group_id", name=_rule_text, detail=_group_text, counts=_is_elsewhere
        ),
        hidden=True,
    ),
    _policies("security_group"),
    _logs("resource_id"),
)

REACHED = CascadeRow(
    effect=LossEffect.CUT_OFF,
    takes="port",
    what="ports of other projects behind a router",
    source="Neutron 29.0.0, db/l3_db.py, remove_router_interface: a subnet may lose its only router",
    read=_reached,
    hidden=True,
)

ROUTER: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="route",
        what="routes of a router",
        source="Neutron 29.0.0, db/extraroute_db.py: routes are part of the router",
        read=_routes,
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="conntrack_helper",
        what="conntrack helpers of a router",
        source="Neutron 29.0.0, db/models/conntrack_helper.py, router_id: ondelete CASCADE",
        read=per_deletion(
            _helpers, name=lambda run, raw: f"{raw['helper']} {raw['protocol']} {raw['port']}", detail=no_text
        ),
    ),
    REACHED,
)

PORT: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="port_forwarding",
        what="port forwardings of other projects to a port",
        source="Neutron 29.0.0, services/portforwarding/pf_plugin.py, _process_port_request",
        read=_forwardings_to,
        hidden=True,
    ),
    _logs("target_id"),
)

ON_PORT = CascadeRow(
    effect=LossEffect.CUT_OFF,
    takes="floating_ip",
    what="floating IPs of other projects on a port",
    source="Neutron 29.0.0, db/l3_db.py, disassociate_floatingips",
    read=in_neutron("/floatingips", "port_id", name=lambda run, raw: str(raw["floating_ip_address"])),
    hidden=True,
)
"""For ports that a spec does not declare."""

FLOATING_IP: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="port_forwarding",
        what="port forwardings of a floating IP",
        source="Neutron 29.0.0, services/portforwarding/pf_plugin.py: it refuses, so destroy deletes them first",
        read=per_deletion(
            queries.forwardings_of,
            name=lambda run, raw: f"{raw['protocol']} {raw['external_port']} to {raw['internal_ip_address']}",
            detail=no_text,
        ),
    ),
)
