"""Security groups, each project's default one, and rules."""

from __future__ import annotations

import ipaddress

from tests.light.neutron.crud import Kind, bump, fresh, owner, register
from tests.light.state import Cloud
from tests.light.table import Row
from tests.light.web import Json, Refused, Request

SAME = (
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
    "remote_group_id",
    "remote_address_group_id",
)
"""Fields by which two rules of a group are the same."""


# --- groups -------------------------------------------------------------------------------


def ensure_default(cloud: Cloud, project_id: str) -> Row:
    """Return the default group of a project, which Neutron makes when somebody asks for its groups."""
    mine = cloud.security_groups.having("project_id", project_id).values()
    found = next((each for each in mine if each["name"] == "default"), None)
    if found is not None:
        return found
    given = {"name": "default", "description": "Default security group"}
    return _add_group(cloud, fresh(GROUPS, project_id, given), default=True)


def _ensure_asked(asked: Request) -> None:
    ids = asked.query.get("project_id") or asked.query.get("tenant_id")
    project_id = ids[0] if ids else asked.caller.project and asked.caller.project_id
    if project_id:
        ensure_default(asked.cloud, project_id)


def _add_group(cloud: Cloud, row: Row, *, default: bool = False) -> Row:
    cloud.security_groups.add(row | {"security_group_rules": [], "revision_number": 1})
    row = cloud.security_groups.rows[row["id"]]
    for direction in ("egress", "ingress") if default else ("egress",):
        for ethertype in ("IPv4", "IPv6"):
            remote = row["id"] if direction == "ingress" else None
            given = {"direction": direction, "ethertype": ethertype, "remote_group_id": remote, "description": None}
            _add_rule(cloud, row, fresh(RULES, row["project_id"], given | {"security_group_id": row["id"]}))
    return row


def _make_group(asked: Request, given: Json) -> Row:
    project_id = owner(asked, given)
    ensure_default(asked.cloud, project_id)
    if given.get("name") == "default":
        raise Refused(409, "Default security group already exists.", "SecurityGroupDefaultAlreadyExists")
    return _add_group(asked.cloud, fresh(GROUPS, project_id, given))


def _change_group(asked: Request, row: Row, given: Json) -> None:
    if row["name"] == "default" and given.get("name", "default") != "default":
        raise Refused(409, "Updating default security group not allowed.", "SecurityGroupCannotUpdateDefault")
    bump(asked.cloud.security_groups, row, given)


def _delete_group(asked: Request, row: Row) -> None:
    cloud = asked.cloud
    if row["name"] == "default" and not asked.caller.is_admin:
        raise Refused(409, "Removing default security group not allowed.", "SecurityGroupCannotRemoveDefault")
    if any(
        row["id"] in port["security_groups"] for port in cloud.ports.having("project_id", row["project_id"]).values()
    ):
        raise Refused(409, f"Security Group {row['id']} in use.", "SecurityGroupInUse")
    for rule in row["security_group_rules"]:
        cloud.rules.remove(rule)
    cloud.security_groups.remove(row)


GROUPS = Kind(
    collection="security-groups",
    member="security_group",
    what="SecurityGroup",
    table=lambda cloud: cloud.security_groups,
    defaults={"name": "", "stateful": True, "shared": False, "security_group_rules": []},
    make=_make_group,
    change=_change_group,
    delete=_delete_group,
    before_list=_ensure_asked,
)


# --- rules --------------------------------------------------------------------------------


def _add_rule(cloud: Cloud, group: Row, rule: Row) -> Row:
    prefix = rule["remote_ip_prefix"]
    rule["normalized_cidr"] = str(ipaddress.ip_network(prefix, strict=False)) if prefix else None
    rule["belongs_to_default_sg"] = group["name"] == "default"
    group["security_group_rules"].append(cloud.rules.add(rule))
    return rule


def _make_rule(asked: Request, given: Json) -> Row:
    cloud = asked.cloud
    group = cloud.security_groups.rows.get(given.get("security_group_id", ""))
    if group is None or not (asked.caller.is_admin or group["project_id"] == asked.caller.project_id):
        message = f"Security group {given.get('security_group_id')} does not exist"
        raise Refused(404, message, "SecurityGroupNotFound")
    rule = fresh(RULES, owner(asked, given), given)
    for each in group["security_group_rules"]:
        if all(each[name] == rule[name] for name in SAME):
            message = f"Security group rule already exists. Rule id is {each['id']}."
            raise Refused(409, message, "SecurityGroupRuleExists")
    return _add_rule(cloud, group, rule)


def _revise_groups(asked: Request, made: list[Row]) -> None:
    """Let the groups of new rules have a new revision: one for all rules of a request."""
    groups = asked.cloud.security_groups
    for group_id in {each["security_group_id"] for each in made}:
        bump(groups, groups.rows[group_id])


def _change_rule(_asked: Request, _row: Row, _given: Json) -> None:
    raise Refused(400, "a rule of a security group cannot be changed")


def _delete_rule(asked: Request, row: Row) -> None:
    group = asked.cloud.security_groups.rows[row["security_group_id"]]
    rules = [each for each in group["security_group_rules"] if each is not row]
    bump(asked.cloud.security_groups, group, {"security_group_rules": rules})
    asked.cloud.rules.remove(row)


RULES = Kind(
    collection="security-group-rules",
    member="security_group_rule",
    what="SecurityGroupRule",
    table=lambda cloud: cloud.rules,
    defaults={
        "security_group_id": None,
        "ethertype": "IPv4",
        "direction": None,
        "protocol": None,
        "port_range_min": None,
        "port_range_max": None,
        "remote_ip_prefix": None,
        "remote_address_group_id": None,
        "normalized_cidr": None,
        "remote_group_id": None,
        "belongs_to_default_sg": False,
    },
    make=_make_rule,
    change=_change_rule,
    delete=_delete_rule,
    after_create=_revise_groups,
    tagged=False,
)

register(GROUPS)
register(RULES)
