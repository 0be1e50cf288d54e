"""Just as much of Neutron's security groups as to keep what is sent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import requests_mock

from tests.unit.conftest import ENDPOINTS

NEUTRON = ENDPOINTS["network"] + "/v2.0"
OURS, THEIRS = "[openstack-prep:lab/web]", "made by hand"
GROUP = re.compile(f"{NEUTRON}/security-groups/([^/]+)$")
RULE = re.compile(f"{NEUTRON}/security-group-rules/([^/]+)$")
TAG = re.compile(f"{NEUTRON}/security-groups/([^/]+)/tags/([^/]+)$")


class Neutron:
    """Just as much of Neutron's security groups as to keep what is sent."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.groups: dict[str, dict[str, Any]] = {}
        self.numbers = itertools.count(1)
        self.rule_posts = services.post(f"{NEUTRON}/security-group-rules", json=self.add_rules)
        services.get(f"{NEUTRON}/security-groups", json=lambda *_: {"security_groups": list(self.groups.values())})
        self.group_posts = services.post(f"{NEUTRON}/security-groups", json=self.add_group)
        services.get(GROUP, json=self.show_group)
        services.delete(RULE, json=self.delete_rule)
        services.put(TAG, json=self.add_tag)
        services.delete(TAG, json=self.delete_tag)

    def group(self, name: str = "web", description: str = OURS, rules: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        made = {
            "id": f"{name}-id",
            "name": name,
            "description": description,
            "stateful": True,
            "revision_number": 1,
            "security_group_rules": [],
            "tags": [],
        }
        self.groups[made["id"]] = made
        for rule in (self.rule(direction="egress"), self.rule(direction="egress", ethertype="IPv6"), *rules):
            made["security_group_rules"].append(rule)
        return made

    def rule(self, description: str = "", **fields: Any) -> dict[str, Any]:
        return {
            "id": f"rule-{next(self.numbers)}",
            "direction": "ingress",
            "ethertype": "IPv4",
            "protocol": None,
            "port_range_min": None,
            "port_range_max": None,
            "remote_ip_prefix": None,
            "remote_group_id": None,
            "description": description,
        } | fields

    def add_group(self, request: Any, context: Any) -> Any:
        body = request.json()["security_group"]
        return {"security_group": self.group(body["name"], body["description"])}

    def add_rules(self, request: Any, context: Any) -> Any:
        body = request.json()
        made = [self.rule(**each) for each in body.get("security_group_rules") or [body["security_group_rule"]]]
        for rule in made:
            self.groups[rule["security_group_id"]]["security_group_rules"].append(rule)
        return {"security_group_rules": made, "security_group_rule": made[0]}

    def show_group(self, request: Any, context: Any) -> Any:
        return {"security_group": self.groups[_words(GROUP, request)[0]]}

    def delete_rule(self, request: Any, context: Any) -> Any:
        context.status_code = 204
        (gone,) = _words(RULE, request)
        for group in self.groups.values():
            group["security_group_rules"] = [each for each in group["security_group_rules"] if each["id"] != gone]
        return {}

    def add_tag(self, request: Any, context: Any) -> Any:
        group, tag = _words(TAG, request)
        self.groups[group]["tags"] = sorted({*self.groups[group]["tags"], tag})
        return {}

    def delete_tag(self, request: Any, context: Any) -> Any:
        context.status_code = 204
        group, tag = _words(TAG, request)
        self.groups[group]["tags"].remove(tag)
        return {}

    def tags(self, name: str = "web") -> list[str]:
        """Return the tags of a group, without the beginning that all have."""
        return [each.removeprefix("openstack-prep:") for each in self.groups[f"{name}-id"]["tags"]]


def _words(pattern: re.Pattern[str], request: Any) -> list[str]:
    found = pattern.fullmatch(request.url)
    assert found
    return [unquote(each) for each in found.groups()]
