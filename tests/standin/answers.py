"""Raw answers of Neutron, Nova and Glance about one cluster, in a form in which two clusters can be compared.

All fields stay but those that differ from run to run: ids, times, hashes, hosts and random addresses.  Ids of the
cluster's own things become their names, and the infraID becomes INFRA.  real_runs.json has what four runs of the real
installer (4.21 development code, 22 November 2026) left, in this form; its rules were the same in all of them.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from openstack.connection import Connection

KINDS = ("networks", "subnets", "routers", "ports", "floatingips", "security-groups", "security-group-rules")
NOVA_KINDS = ("servers", "os-server-groups")
VOLATILE = {
    *("id", "project_id", "tenant_id", "owner", "user_id", "links", "self", "file", "schema", "revision_number"),
    *("created_at", "updated_at", "created", "updated", "OS-SRV-USG:launched_at", "checksum", "os_hash_value"),
    *("mac_address", "addresses", "provider:segmentation_id", "security_group_rules", "flavor", "hostId"),
    *(f"OS-EXT-SRV-ATTR:{each}" for each in ("instance_name", "reservation_id", "host", "hypervisor_hostname")),
    *("binding:host_id", "binding:vif_details"),
}
CHOSEN = ("10.0.0.1", "10.0.0.5", "10.0.0.7")
"""Addresses that are not random: those of the router and of the two virtual ports."""
_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")


def read(admin: Connection, project_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return what a project holds, as its APIs describe it to an administrator."""
    neutron: Any = admin.network
    nova: Any = admin.compute
    glance: Any = admin.image
    found: dict[str, Any] = {}
    for kind in KINDS:
        found[kind] = neutron.get(f"/{kind}", params={"project_id": project_id}).json()[kind.replace("-", "_")]
    query: dict[str, Any] = {"all_tenants": "1", "project_id": project_id}
    found["servers"] = nova.get("/servers/detail", params=query, microversion="2.96").json()["servers"]
    groups = nova.get("/os-server-groups", params={"all_projects": "1"}, microversion="2.64").json()["server_groups"]
    found["os-server-groups"] = [each for each in groups if each["project_id"] == project_id]
    found["images"] = glance.get("/images", params={"owner": project_id}).json()["images"]
    return found


def real_answers() -> dict[str, dict[str, list[Any]]]:
    """Return by run what the real one left: A; N, without ingressFloatingIP; C, without the bootstrap; Y, with BYO."""
    stored = json.loads(Path(__file__).with_name("real_runs.json").read_text())
    return {run: stored["A"] | stored[run] for run in stored}


def comparable(answers: Mapping[str, Iterable[Mapping[str, Any]]], infra_id: str) -> dict[str, list[Any]]:
    """Return answers without what differs from run to run: of the cluster only, and of what serves it."""
    names = {
        each["id"]: each.get("name") or each.get("description") or "" for kind in answers.values() for each in kind
    }
    found = {}
    for kind, listed in answers.items():
        rows = [_plain(each, names, infra_id) for each in listed if _concerns(kind, each, names, infra_id)]
        found[kind] = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    return found


def _concerns(kind: str, row: Mapping[str, Any], names: Mapping[str, str], infra_id: str) -> bool:
    if kind == "security-group-rules":
        return names[row["security_group_id"]].startswith(infra_id)
    label = row.get("name") or row.get("description") or ""
    return infra_id in label or kind == "floatingips"


def _plain(value: Any, names: Mapping[str, str], infra_id: str, key: str = "") -> Any:
    if isinstance(value, Mapping):
        shown = {each: _plain(inner, names, infra_id, each) for each, inner in value.items() if each not in VOLATILE}
        if "floating_ip_address" in shown and infra_id not in value["description"]:
            del shown["description"]  # of the user's own
        return shown
    if isinstance(value, list):
        return sorted((_plain(each, names, infra_id, key) for each in value), key=json.dumps)
    if key in ("size", "virtual_size"):
        return f"{value // 1000} kB"
    if not isinstance(value, str):
        return value
    if key == "OS-EXT-SRV-ATTR:user_data":
        length = int(known[1]) if (known := re.match(r"\(base64, (\d+) bytes", value)) else len(value)
        return f"{length // 100} hundred bytes"
    if value in names or _ID.fullmatch(value):
        return names.get(value, "ID").replace(infra_id, "INFRA")
    return "ADDRESS" if _is_random(value) else value.replace(infra_id, "INFRA")


def _is_random(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return text not in CHOSEN
