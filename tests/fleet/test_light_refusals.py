"""What tests/light refuses beside what the real services refuse: the same requests, with the same status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.devcloud.tenant import connect
from tests.fleet.light_sides import Side, applied, light

__all__ = ["applied", "light"]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKbdZHRuOFmUMGF8cNJxLnAjqGH0Y5YT5mU8aZ2kZ6J1"
STALE = {"If-Match": "revision_number=77"}
NONE = "12345678-1234-1234-1234-123456789abc"
RULE = {"security_group_id": "{group}", "direction": "ingress", "ethertype": "IPv4", "protocol": "icmp"}
NETWORKS = [{"name": f"n{number}", "project_id": "{project}"} for number in range(6)]
ADDRESS = {"floating_network_id": "{external}", "floating_ip_address": "192.168.122.170"}
FLAVOR = {"name": "team-node", "ram": 512, "vcpus": 1, "disk": 1}
JSON_PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
REFUSED: tuple[tuple[str, str, str, str, Any, dict[str, str]], ...] = (
    ("admin", "POST", "identity", "/projects", {"project": {"name": "team", "domain_id": "default"}}, {}),
    ("admin", "POST", "identity", "/users", {"user": {"name": "team-user", "domain_id": "default"}}, {}),
    ("admin", "PUT", "identity", "/projects/{project}/tags/fleet", None, {}),
    ("admin", "GET", "identity", "/projects/" + NONE, None, {}),
    ("admin", "GET", "identity", "/users/" + NONE, None, {}),
    ("admin", "DELETE", "identity", "/projects/{project}/users/{user}/roles/" + NONE, None, {}),
    ("user", "GET", "identity", "/projects", None, {}),
    ("user", "GET", "identity", "/role_assignments", None, {}),
    ("user", "GET", "identity", "/users", None, {}),
    (
        "user",
        "POST",
        "identity",
        "/users/{user}/application_credentials",
        {"application_credential": {"name": "team-installer"}},
        {},
    ),
    (
        "user",
        "POST",
        "identity",
        "/users/{user}/application_credentials",
        {"application_credential": {"name": "more", "roles": [{"name": "admin"}]}},
        {},
    ),
    ("admin", "POST", "compute", "/flavors", {"flavor": FLAVOR}, {}),
    ("admin", "GET", "compute", "/flavors/" + NONE, None, {}),
    ("admin", "GET", "compute", "/flavors/{public}/os-flavor-access", None, {}),
    ("admin", "POST", "compute", "/flavors/{flavor}/action", {"addTenantAccess": {"tenant": "{project}"}}, {}),
    ("user", "POST", "compute", "/flavors", {"flavor": FLAVOR | {"name": "mine"}}, {}),
    ("user", "GET", "compute", "/flavors/{flavor}/os-flavor-access", None, {}),
    ("admin", "PUT", "compute", "/os-quota-sets/{project}", {"quota_set": {"bogus": 3}}, {}),
    ("admin", "PUT", "compute", "/os-quota-sets/" + NONE, {"quota_set": {"cores": 3}}, {}),
    ("user", "PUT", "compute", "/os-quota-sets/{project}", {"quota_set": {"cores": 3}}, {}),
    (
        "admin",
        "POST",
        "compute",
        "/os-keypairs",
        {"keypair": {"name": "team-key", "public_key": KEY, "user_id": "{user}"}},
        {},
    ),
    ("admin", "DELETE", "compute", "/os-keypairs/none?user_id={user}", None, {}),
    ("admin", "DELETE", "compute", "/os-server-groups/" + NONE, None, {}),
    ("admin", "PUT", "network", "/networks/{network}", {"network": {"name": "other"}}, STALE),
    ("admin", "DELETE", "network", "/floatingips/{address}", None, STALE),
    ("admin", "GET", "network", "/networks/" + NONE, None, {}),
    ("admin", "GET", "network", "/networks?bogus=1", None, {}),
    ("admin", "DELETE", "network", "/networks/{network}", None, {}),
    ("admin", "DELETE", "network", "/subnets/{subnet}", None, {}),
    ("admin", "DELETE", "network", "/routers/{router}", None, {}),
    ("admin", "POST", "network", "/networks", {"networks": NETWORKS}, {}),
    ("admin", "POST", "network", "/networks", {"network": {"nonsense": 1}}, {}),
    (
        "admin",
        "POST",
        "network",
        "/subnets",
        {"subnet": {"network_id": "{network}", "ip_version": 4, "cidr": "10.10.0.0/25"}},
        {},
    ),
    ("admin", "POST", "network", "/security-group-rules", {"security_group_rule": RULE}, {}),
    ("admin", "POST", "network", "/floatingips", {"floatingip": ADDRESS}, {}),
    ("admin", "POST", "network", "/floatingips", {"floatingip": ADDRESS | {"floating_ip_address": "10.9.9.9"}}, {}),
    ("admin", "POST", "network", "/floatingips", {"floatingip": {"floating_network_id": "{network}"}}, {}),
    (
        "user",
        "POST",
        "network",
        "/floatingips",
        {"floatingip": ADDRESS | {"floating_ip_address": "192.168.122.171"}},
        {},
    ),
    ("user", "POST", "network", "/networks", {"network": {"name": "x", "shared": True}}, {}),
    ("user", "DELETE", "network", "/security-groups/{default}", None, {}),
    ("user", "PUT", "network", "/networks/{external}", {"network": {"name": "mine"}}, {}),
    ("admin", "PUT", "network", "/routers/{router}/add_router_interface", {"subnet_id": "{subnet}"}, {}),
    ("admin", "PUT", "network", "/routers/{router}/remove_router_interface", {"subnet_id": NONE}, {}),
    ("admin", "DELETE", "network", "/networks/{network}/tags/none", None, {}),
    ("admin", "PUT", "network", "/quotas/{project}", {"quota": {"bogus": 3}}, {}),
    ("admin", "DELETE", "network", "/quotas/" + NONE, None, {}),
    ("admin", "PUT", "volume", "/os-quota-sets/{project}", {"quota_set": {"bogus": 3}}, {}),
    ("user", "PUT", "volume", "/os-quota-sets/{project}", {"quota_set": {"volumes": 3}}, {}),
    ("admin", "GET", "image", "/images/" + NONE, None, {}),
    ("admin", "DELETE", "image", "/images/" + NONE, None, {}),
    ("admin", "GET", "image", "/images/{image}/members/" + NONE, None, {}),
    ("admin", "POST", "image", "/images/{image}/members", {"member": "{project}"}, {}),
    ("admin", "PUT", "image", "/images/{image}/file", b"again", {"Content-Type": "application/octet-stream"}),
    ("admin", "PATCH", "image", "/images/{image}", [{"op": "remove", "path": "/none"}], JSON_PATCH),
    ("admin", "PATCH", "image", "/images/{image}", [{"op": "replace", "path": "/size", "value": 1}], JSON_PATCH),
    ("user", "POST", "image", "/images", {"name": "x", "visibility": "public"}, {}),
)


def test_refusals_have_the_same_status(applied: tuple[Side, Side]) -> None:
    statuses = []
    for side in applied:
        ids, clouds = dict(_ids(side)), {"admin": side.admin, "user": connect(side.prep.folder / "clouds.yaml", "team")}
        found = {}
        for who, method, service, path, body, headers in REFUSED:
            answer = _send(clouds[who].session, ids, method, service, path, body, headers)
            found[f"{who}: {method} {service}{path} {body}"] = answer.status_code
        statuses.append(found)
    real, light = statuses
    assert light == real
    assert all(status >= 400 for status in real.values()), real


def _ids(side: Side) -> Iterator[tuple[str, str]]:
    admin, project = side.admin, side.project.id
    yield "project", project
    identity: Any = admin.identity
    yield "user", identity.find_user("team-user").id
    for flavor in admin.compute.flavors(is_public=None, get_extra_specs=False):
        yield {"team-node": "flavor", "m1.small": "public"}.get(flavor.name, flavor.name), flavor.id
    network: Any = admin.network
    yield "external", network.find_network("external").id
    for kind in ("network", "subnet", "router"):
        yield kind, next(getattr(network, f"{kind}s")(project_id=project)).id
    for group in network.security_groups(project_id=project):
        yield {"default": "default"}.get(group.name, "group"), group.id
    yield "address", next(network.ips(project_id=project)).id
    yield "image", next(admin.image.images(owner=project)).id


def _send(
    session: Any, ids: dict[str, str], method: str, service: str, path: str, body: Any, headers: dict[str, str]
) -> Any:
    def placed(text: str) -> str:
        for name, value in ids.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    kind = {"volume": "block-storage"}.get(service, service)
    data = body if isinstance(body, bytes) or body is None else placed(json.dumps(body))
    version = {"OpenStack-API-Version": "compute 2.64"} if kind == "compute" else {}
    return session.request(
        {"network": "/v2.0", "image": "/v2"}.get(service, "") + placed(path),
        method,
        endpoint_filter={"service_type": kind, "interface": "public"},
        data=data,
        headers={"Content-Type": "application/json", **version, **headers},
        raise_exc=False,
    )
