"""What Neutron deletes or detaches together with its resources."""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import LossEffect
from openstack_prep.core.run import query
from openstack_prep.resources.cascades.row import CascadeRow, CascadeTable, Deletions, Dependent, place, sees_everything
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import GroupRecord, PortRecord, RouterRecord, RuleRecord
from openstack_prep.resources.lists.route import Route
from openstack_prep.resources.lists.rule_owners import owners_of

EVERYBODY = "*"
PORT_FIELDS = ["id", "name", "device_owner", "device_id", "project_id", "network_id", "fixed_ips", "description"]


def _subnets(asked: Deletions) -> Iterator[Dependent]:
    """Yield the subnets on networks; a network also names those that its owner does not see."""
    run, fields = asked.run, ["id", "name", "network_id", "project_id", "description"]
    listed = run.admin.network.list("/subnets", "subnets", network_id=asked.ids, fields=fields)
    for raw in filter(asked.stays, listed):
        yield Dependent(asked.by_id[raw["network_id"]], raw["id"], raw["name"], place(run, raw))
    if not sees_everything(run):
        seen = {raw["id"] for raw in listed} | asked.going
        for raw in run.admin.network.list("/networks", "networks", id=asked.ids, fields=["id", "subnets"]):
            for subnet_id in sorted({*raw["subnets"]} - seen):
                yield Dependent(asked.by_id[raw["id"]], subnet_id, detail="in another project")


def _policies(kind: str) -> CascadeRow:
    def read(asked: Deletions) -> Iterator[Dependent]:
        which: Values = {"object_type": kind, "object_id": asked.ids}
        for raw in asked.run.admin.network.list("/rbac-policies", "rbac_policies", **which):
            if asked.stays(raw) and raw["target_tenant"] != EVERYBODY:  # Neutron's own, of a shared or external network
                guest = queries.project_name(asked.run, raw["target_tenant"])
                yield Dependent(asked.by_id[raw["object_id"]], raw["id"], detail=f"access of project {guest}")

    return CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="rbac_policy",
        what=f"projects that a {kind.replace('_', ' ')} is shared with",
        source="Neutron 29.0.0, db/rbac_db_models.py, RBACColumns: ondelete CASCADE",
        read=read,
    )


def _rules_within(asked: Deletions) -> Iterator[Dependent]:
    """Yield the rules that others have created in groups; Neutron's own ones are those of each new group."""
    spec, run = asked.run.ownership.spec, asked.run
    for raw in run.admin.network.list("/security-group-rules", "security_group_rules", security_group_id=asked.ids):
        of, rule = asked.by_id[raw["security_group_id"]], RuleRecord.read(raw)
        owners = owners_of(of.observed.record_as(GroupRecord), rule)
        if asked.stays(raw) and owners != {spec} and not (not owners and _is_automatic(run, raw)):
            others = ", ".join(sorted(owners - {spec}))
            yield Dependent(of, rule.id, _words(rule), f"managed by spec {others}" if others else "")


def _rules_admitting(asked: Deletions) -> Iterator[Dependent]:
    """Yield the rules of other groups whose remote side is one of these groups."""
    run = asked.run
    for raw in run.admin.network.list("/security-group-rules", "security_group_rules", remote_group_id=asked.ids):
        inner = {raw["security_group_id"], raw["id"]} & (asked.going | {raw["remote_group_id"]})
        if not inner:
            group = queries.named(run, "security-groups", "security_group", raw["security_group_id"])
            where = place(run, raw, f"of security group {group}")
            yield Dependent(asked.by_id[raw["remote_group_id"]], raw["id"], _words(RuleRecord.read(raw)), where)


def _words(rule: RuleRecord) -> str:
    ports = (each for each in (rule.port_range_min, rule.port_range_max) if each is not None)
    words = [rule.direction, rule.ethertype, rule.protocol or "any", "-".join(dict.fromkeys(map(str, ports)))]
    return " ".join(filter(None, words))


def _is_automatic(run: CloudRun, raw: Raw) -> bool:
    """Whether Neutron creates such a rule in each new group: those of the API, or those that the cloud has chosen."""
    if raw.get("description"):
        return False
    bare = raw["direction"] == "egress" and not any(raw.get(name) for name in RULE if name != "direction")
    return bare or any(
        all(raw.get(name) == each.get(name) for name in (*RULE, "ethertype")) for each in _templates(run)
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


@query
def _templates(run: CloudRun) -> list[Raw]:
    """Return the rules of new groups; before Neutron 23 (2023.2) nobody can choose them."""
    if "security-groups-default-rules" not in queries.extensions(run):
        return []
    path, name = "/default-security-group-rules", "default_security_group_rules"
    return [raw for raw in run.admin.network.list(path, name) if raw.get("used_in_non_default_sg")]


def _routes(asked: Deletions) -> Iterator[Dependent]:
    """Yield the routes of routers that the spec does not declare, such as those of a cluster's route controller.

    They are read again, because the record of a router is as old as the plan.
    """
    for raw in asked.run.admin.network.list("/routers", "routers", id=asked.ids, fields=["id", "routes"]):
        of = asked.by_id[raw["id"]]
        declared = {str(each) for each in of.resource.desired().get("routes") or ()}
        for route in (Route(**each) for each in raw["routes"]):
            if str(route) not in declared:
                yield Dependent(of, f"{of.id}/{route.destination}", f"via {route.nexthop}")


def _reached(asked: Deletions) -> Iterator[Dependent]:
    """Yield the servers' ports in subnets that stay and lose their router."""
    run = asked.run
    for of in asked.every:
        for subnet_id in sorted(of.observed.record_as(RouterRecord).joined - asked.going):
            listed = run.admin.network.list("/ports", "ports", fixed_ips=f"subnet_id={subnet_id}", fields=PORT_FIELDS)
            for raw in filter(asked.stays, listed):
                if raw["device_owner"].startswith(COMPUTE) and raw["device_id"] not in asked.going:
                    yield Dependent(of, raw["id"], raw["name"], place(run, raw, f"of server {raw['device_id']}"))


def _helpers(asked: Deletions) -> Iterator[Dependent]:
    if "l3-conntrack-helper" not in queries.extensions(asked.run):
        return
    for of in asked.every:
        for raw in asked.run.admin.network.list(f"/routers/{of.id}/conntrack_helpers", "conntrack_helpers"):
            yield Dependent(of, raw["id"], f"{raw['helper']} {raw['protocol']} {raw['port']}")


def _forwardings(asked: Deletions) -> Iterator[Dependent]:
    """Yield the port forwardings of floating IPs."""
    if FORWARDING in queries.extensions(asked.run):
        for of in asked.every:
            for raw in forwardings(asked.run, of.id):
                name = f"{raw['protocol']} {raw['external_port']} to {raw['internal_ip_address']}"
                yield Dependent(of, raw["id"], name)


def forwardings(run: CloudRun, floating_ip_id: str) -> list[Raw]:
    return [*run.admin.network.list(f"/floatingips/{floating_ip_id}/port_forwardings", "port_forwardings")]


def _forwardings_to(asked: Deletions) -> Iterator[Dependent]:
    """Yield the port forwardings to ports, of the floating IPs of their projects."""
    if FORWARDING not in queries.extensions(asked.run):
        return
    for project_id in sorted({of.observed.record_as(PortRecord).project_id for of in asked.every}):
        for address, each in forwardings_within(asked.run, project_id):
            of = asked.by_id.get(each["internal_port_id"])
            if of is not None and address["id"] not in asked.going:
                yield Dependent(of, each["id"], f"{each['protocol']} {each['external_port']} of {_address(address)}")


def _address(raw: Raw) -> str:
    return str(raw["floating_ip_address"])


def forwardings_within(run: CloudRun, project_id: str) -> Iterator[tuple[Raw, Raw]]:
    """Yield the port forwardings of a project's floating IPs, each with its floating IP."""
    for raw in run.admin.network.list("/floatingips", "floatingips", project_id=project_id):
        if raw["port_id"] is None and raw["router_id"]:  # the list has no ids of forwardings; these serve no port
            for each in forwardings(run, raw["id"]):
                yield raw, each


COMPUTE = "compute:"
FORWARDING = "floating-ip-port-forwarding"

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
        read=_rules_admitting,
        hidden=True,
    ),
    _policies("security_group"),
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
        read=_helpers,
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="port",
        what="servers of other projects behind a router",
        source="Neutron 29.0.0, db/l3_db.py, remove_router_interface: a subnet may lose its only router",
        read=_reached,
        hidden=True,
    ),
)

PORT: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="port_forwarding",
        what="port forwardings to a port",
        source="Neutron 29.0.0, services/portforwarding/pf_plugin.py, _process_port_request",
        read=_forwardings_to,
    ),
)

FLOATING_IP: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="port_forwarding",
        what="port forwardings of a floating IP",
        source="Neutron 29.0.0, services/portforwarding/pf_plugin.py: it refuses, so destroy deletes them first",
        read=_forwardings,
    ),
)
