"""Which kinds a plan asks for what a spec no longer declares: those of which a list shows its ownership tag."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep import extensions
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.core.resource import InEachProject, Untagged
from openstack_prep.resources.network.port import OWNER
from tests.unit.conftest import ADMIN_PROJECT, ADMIN_USER, connection, subnet_row

NEUTRON = "http://neutron/v2.0"
SCANS = {each.kind.partition(":")[2]: each for each in extensions.scans() if each.tagged}


def port(**fields: Any) -> dict[str, Any]:
    return {"id": "p", "name": "p", "project_id": ADMIN_PROJECT, "network_id": "n", "mac_address": "fa:16:3e:0:0:1"} | {
        "device_id": "",
        "device_owner": "",
        "description": "",
        "fixed_ips": [],
        "security_groups": [],
        "allowed_address_pairs": [],
        "port_security_enabled": True,
        "tags": [],
        **fields,
    }


def reserved(description: str) -> dict[str, Any]:
    at = [{"ip_address": "192.0.2.7", "subnet_id": "s"}]
    return port(name="pool-192.0.2.7", description=description, device_owner=OWNER, fixed_ips=at)


def floating_ip(**fields: Any) -> dict[str, Any]:
    return {"id": "f", "floating_ip_address": "192.0.2.10", "floating_network_id": "e", "port_id": None} | {
        "description": "",
        "tags": [],
        "project_id": ADMIN_PROJECT,
        **fields,
    }


def group(**rule: Any) -> dict[str, Any]:
    ends = ("port_range_min", "port_range_max", "protocol", "remote_ip_prefix", "remote_group_id")
    same = {"id": "r", "security_group_id": "g", "direction": "ingress", "ethertype": "IPv4", **dict.fromkeys(ends)}
    rules = [same | rule] if rule else []
    return {"id": "g", "name": "web", "description": "", "project_id": ADMIN_PROJECT, "security_group_rules": rules}


ROUTER = {"id": "r", "external_gateway_info": None, "routes": []}


def tag(spec: str) -> str:
    return f"openstack-prep:{spec}"


CASES: list[tuple[str, str, Any]] = [
    ("Network", "networks", lambda spec: {"id": "n", "description": f"[{tag(spec)}/net]"}),
    ("Subnet", "subnets", lambda spec: subnet_row(id="s", description=f"mine [{tag(spec)}/sub]")),
    ("Router", "routers", lambda spec: ROUTER | {"description": f"[{tag(spec)}/router]"}),
    ("SecurityGroup", "security-groups", lambda spec: group() | {"description": f"[{tag(spec)}/web]"}),
    ("SecurityGroupRules", "security-groups", lambda spec: group(description=f"[{tag(spec)}/web]")),
    ("SecurityGroupRules", "security-groups", lambda spec: group() | {"tags": [f"{tag(spec)}~rules~0123456789abc"]}),
    ("Port", "ports", lambda spec: port(description=f"[{tag(spec)}/p]")),
    ("AddressPool", "ports", lambda spec: reserved(f"[{tag(spec)}/pool]")),
    ("LeftClaim", "ports", lambda spec: reserved(f"exposure web [{tag(spec)}/pool]")),
    ("AddressPairs", "ports", lambda spec: port(tags=[f"{tag(spec)}~192.0.2.7"])),
    ("FloatingIP", "floatingips", lambda spec: floating_ip(description=f"[{tag(spec)}/api]")),
    ("FloatingIP", "floatingips", lambda spec: floating_ip(tags=[f"{tag(spec)}~api"])),
    (
        "FloatingIPAttachment",
        "floatingips",
        lambda spec: floating_ip(description=f"[{tag(spec)}~attached/p]", port_id="p"),
    ),
]


@pytest.mark.parametrize(("kind", "collection", "resource"), CASES, ids=[f"{kind}-{path}" for kind, path, _ in CASES])
@pytest.mark.parametrize(("spec", "expected"), [("lab", True), ("other", False), ("lab-2", False)])
def test_a_list_of_neutron_shows_the_tag_of_the_spec(
    empty_cloud: requests_mock.Mocker, kind: str, collection: str, resource: Any, spec: str, expected: bool
) -> None:
    empty_cloud.get(f"{NEUTRON}/{collection}", json={collection.replace("-", "_"): [resource(spec)]})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"))
    assert extensions.load(SCANS[kind].tagged)(run, None) is expected


OTHERS: list[tuple[str, str, str, Any]] = [
    (
        "Image",
        "http://glance/v2/images",
        "images",
        {"openstack_prep": "lab", "openstack_prep_id": "i", "openstack_prep_name": "a"},
    ),
    ("Stack", "http://heat/v1/admin-project/stacks", "stacks", {"tags": ["x", "openstack-prep:lab"]}),
]


@pytest.mark.parametrize(("kind", "url", "plural", "fields"), OTHERS)
@pytest.mark.parametrize(("spec", "expected"), [("lab", True), ("other", False)])
def test_other_lists_show_it_as_well(
    empty_cloud: requests_mock.Mocker, kind: str, url: str, plural: str, fields: Any, spec: str, expected: bool
) -> None:
    each = {"id": "i", "name": "a", "stack_name": "a", "status": "active", "stack_status": "CREATE_COMPLETE"}
    empty_cloud.get(url, json={plural: [each | {"visibility": "shared", "owner": ADMIN_PROJECT} | fields]})
    run = CloudRun(Cloud(connection()), OwnershipTag(spec))
    assert extensions.load(SCANS[kind].tagged)(run, None) is expected


@pytest.mark.parametrize(("comment", "expected"), [("lab/k", True), ("lab-2/k", False), ("other/k", False)])
def test_the_key_pairs_of_the_acting_user_show_it(
    empty_cloud: requests_mock.Mocker, comment: str, expected: bool
) -> None:
    listed = {"keypair": {"name": "k", "public_key": f"ssh-ed25519 AAAA me@here openstack-prep:{comment}"}}
    empty_cloud.get(f"http://nova/v2.1/os-keypairs?user_id={ADMIN_USER}", json={"keypairs": [listed]})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"))
    assert extensions.load(SCANS["Keypair"].tagged)(run, None) is expected


@pytest.mark.parametrize("kind", SCANS)
def test_nothing_shows_no_tag(empty_cloud: requests_mock.Mocker, kind: str) -> None:
    empty_cloud.get("http://keystone/v3/users/admin-id/application_credentials", json={"application_credentials": []})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"))
    assert extensions.load(SCANS[kind].tagged)(run, None) is False


def test_scans_say_of_the_kinds_what_their_classes_say() -> None:
    kinds = {scan: extensions.load(scan.kind) for scan in extensions.scans()}
    assert [scan for scan, kind in kinds.items() if scan.has_tag == issubclass(kind, Untagged)] == []
    assert [
        scan for scan, kind in kinds.items() if scan.tagged and scan.of_cloud == issubclass(kind, InEachProject)
    ] == []
