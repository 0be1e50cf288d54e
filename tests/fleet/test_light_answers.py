"""The answers of tests/light beside those of the real services: requests, drift, fields, values and pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from openstack_prep.cloud.connection import Cloud
from tests.devcloud.pytest_devcloud import Devcloud
from tests.fleet.light_sides import Side, applied, light, same
from tests.light.running import Light

__all__ = ["applied", "light"]

Sides = tuple[Side, Side]


def drift(side: Side) -> None:
    """Change something in each service behind the client's back."""
    project, admin = side.project, side.admin
    admin.compute.update_quota_set(project, cores=7)
    admin.network.update_quota(project.id, routers=3, floating_ips=3)
    admin.block_storage.update_quota_set(project, volumes=4)
    identity: Any = admin.identity
    identity.update_project(project, description="changed")
    (group,) = admin.network.security_groups(name="nodes", project_id=project.id)
    rules = admin.network.security_group_rules(security_group_id=group.id)
    admin.network.delete_security_group_rule(next(each for each in rules if each.protocol == "icmp"))
    (network,) = admin.network.networks(name="nodes", project_id=project.id)
    admin.network.update_network(network, mtu=1300)
    (image,) = admin.image.images(owner=project.id)
    admin.image.update_image(image, hw_disk_bus="scsi")
    (address,) = admin.network.ips(floating_ip_address="192.168.122.170")
    admin.network.delete_ip(address)


def test_drift_is_found_and_mended_alike(applied: Sides) -> None:
    real, light = applied
    for side in applied:
        drift(side)
    assert light.text("plan", "--detailed-exitcode", code=2) == real.text("plan", "--detailed-exitcode", code=2)
    assert light.report() == real.report()
    assert light.text("plan", "--detailed-exitcode") == real.text("plan", "--detailed-exitcode")


def test_an_empty_plan_sends_the_same_requests(applied: Sides, devcloud: Devcloud, light: Light) -> None:
    real, stand_in = applied
    mark = devcloud.mark()
    real.text("plan")
    sent = Counter(f"{each.method} {each.path}" for each in devcloud.requests_since(mark))
    light.reset()
    stand_in.text("plan")
    counted = light.counts()
    kinds: Counter[str] = Counter()
    for labels in counted["services"].values():
        kinds.update(labels)
    assert kinds == _kinds(sent)
    assert not counted["unknown"]


def _kinds(sent: Mapping[str, int]) -> Counter[str]:
    """Return counts by kind of path: with braces for ids."""
    found: Counter[str] = Counter()
    for label, number in sent.items():
        found[re.sub(r"(?<=/)ID(?=/|$)", "{}", same(label))] += number
    return found


# --- answers ------------------------------------------------------------------------------

LISTS = (
    ("identity", "/projects?name=team", "projects"),
    ("identity", "/users?name=team-user", "users"),
    ("identity", "/role_assignments?scope.project.id={0}&include_names=True", "role_assignments"),
    ("identity", "/role_assignments?scope.project.id={0}&effective&include_names=True", "role_assignments"),
    ("compute", "/flavors/detail?is_public=False", "flavors"),
    ("compute", "/os-server-groups?all_projects=True", "server_groups"),
    ("network", "/networks?project_id={0}", "networks"),
    ("network", "/subnets?project_id={0}", "subnets"),
    ("network", "/routers?project_id={0}", "routers"),
    ("network", "/ports?project_id={0}", "ports"),
    ("network", "/floatingips?project_id={0}", "floatingips"),
    ("network", "/security-groups?project_id={0}", "security_groups"),
    ("network", "/security-group-rules?project_id={0}", "security_group_rules"),
    ("image", "/images?owner={0}", "images"),
)
OBJECTS = (
    ("identity", "/role_inferences", "role_inferences"),
    ("compute", "/os-quota-sets/{0}", "quota_set"),
    ("compute", "/os-quota-sets/{0}/detail", "quota_set"),
    ("compute", "/os-quota-sets/{0}/defaults", "quota_set"),
    ("network", "/quotas/{0}", "quota"),
    ("network", "/quotas/{0}/details.json", "quota"),
    ("network", "/quotas/{0}/default", "quota"),
    ("block-storage", "/os-quota-sets/{0}", "quota_set"),
    ("block-storage", "/os-quota-sets/{0}?usage=True", "quota_set"),
    ("block-storage", "/os-quota-sets/{0}/defaults", "quota_set"),
)
OWN = frozenset({"provider:segmentation_id", "fingerprint", "belongs_to_default_sg", "standard_attr_id", "links"})
"""Fields that each cloud chooses, or that nobody reads."""


def test_lists_have_the_same_fields_and_values(applied: Sides) -> None:
    real, light = applied
    for service, path, member in LISTS:
        theirs, ours = (_rows(side, service, path, member) for side in (real, light))
        assert ours == theirs, path


def test_quotas_are_the_same(applied: Sides) -> None:
    real, light = applied
    for service, path, member in OBJECTS:
        theirs, ours = (_plain(_get(side, service, path)[member]) for side in (real, light))
        assert ours == theirs, path


def _get(side: Side, service: str, path: str) -> Any:
    root = {"network": "/v2.0", "image": "/v2"}.get(service, "")
    version = {"OpenStack-API-Version": "compute 2.64"} if service == "compute" else {}
    where = {"service_type": service, "interface": "public"}
    url = f"{root}{path.format(side.project.id)}"
    return side.admin.session.get(url, endpoint_filter=where, headers=version).json()


def _rows(side: Side, service: str, path: str, member: str) -> list[str]:
    """Return the rows of a list as text without what differs from one cloud to the other, sorted."""
    return sorted(json.dumps(_plain(each), sort_keys=True) for each in _get(side, service, path)[member])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # the lease is renewed in it as often as the apply takes time
        left_out = OWN | {"revision_number"} if value.get("name") == "default" else OWN
        return {name: _plain(each) for name, each in value.items() if name not in left_out}
    if isinstance(value, list):
        return sorted(map(_plain, value), key=str)
    return same(value) if isinstance(value, str) else value


def test_pages_are_followed_alike(applied: Sides) -> None:
    """The client gets as much by pages of one as at once."""
    for service, path, member in PAGED:
        lengths = []
        for side in applied:
            client = getattr(Cloud(side.admin), service)
            whole = client.list(path, member)
            paged = client.list(path, member, limit=1)
            assert sorted(each["id"] for each in paged) == sorted(each["id"] for each in whole), path
            lengths.append(len(whole))
        assert min(lengths) > 1, path


PAGED = (
    ("identity", "/users", "users"),
    ("identity", "/projects", "projects"),
    ("compute", "/flavors/detail", "flavors"),
    ("network", "/security-groups", "security_groups"),
    ("network", "/ports", "ports"),
)


def test_pages_of_images_are_followed_alike(applied: Sides) -> None:
    for side in applied:
        second = side.admin.image.post("/images", json={"name": "second"}).json()["id"]
        try:
            paged = Cloud(side.admin).image.list("/images", "images", limit=1)
            names = [each["name"] for each in paged]
            assert names == ["second", "team-disk"]
        finally:
            side.admin.image.delete(f"/images/{second}")
