"""Hooks wait for another run as long as they are told to, as commands do by --lock-timeout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import LeaseHeld
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import Description, Entry, digest
from openstack_prep.core.plan import Report
from openstack_prep.hooks import InstallOptions, cleanup, post_ipi
from openstack_prep.hooks.address_pairs import Sync, sync_address_pairs
from tests.unit.conftest import ENDPOINTS, connection, default_group

NEUTRON = ENDPOINTS["network"] + "/v2.0"
ID = "dev-x7k2p"
PORT = {
    **{"id": "p1", "name": f"{ID}-ingress-port", "tags": [f"openshiftClusterID={ID}"], "project_id": "p"},
    **{"device_id": "", "device_owner": "", "mac_address": "fa:16:3e:00:00:01", "network_id": "n1"},
    **{"security_groups": [], "allowed_address_pairs": [], "revision_number": 1, "fixed_ips": []},
    "port_security_enabled": True,
}
ADDRESS = {
    "tags": [],
    "floating_network_id": "x",
    "project_id": "p1",
    "id": "f1",
    "floating_ip_address": "192.0.2.5",
    "description": "",
    "port_id": None,
    "revision_number": 1,
}


def attach(cloud: Cloud, **options: Any) -> Report:
    return post_ipi(cloud, infra_id=ID, ingress_floating_ip="192.0.2.5", **options)


def clean(cloud: Cloud, **options: Any) -> Report:
    return cleanup(cloud, infra_id=ID, **options)


def sync(cloud: Cloud, **options: Any) -> Report:
    return sync_address_pairs(cloud, Sync(ports=(PORT["name"],), addresses=("10.0.0.5",), name=ID), **options)


@pytest.mark.parametrize("hook", [attach, clean, sync])
def test_a_hook_does_not_wait_when_told_so(services: requests_mock.Mocker, hook: Callable[..., Report]) -> None:
    services.get(f"{NEUTRON}/ports", json={"ports": [PORT]})
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": [ADDRESS]})
    for plural in ("networks", "subnets", "routers", "trunks"):
        services.get(f"{NEUTRON}/{plural}", json={plural: []})
    services.get(f"{NEUTRON}/security-groups", json={"security_groups": []})
    services.get(f"{ENDPOINTS['compute']}/servers/detail", json={"servers": []})
    services.get(f"{ENDPOINTS['compute']}/os-server-groups", json={"server_groups": []})
    links = [{"rel": "self", "href": "http://glance/v2/"}]
    services.get("http://glance/", json={"versions": [{"id": "v2.9", "status": "CURRENT", "links": links}]})
    services.get(f"{ENDPOINTS['image']}/v2/images", json={"images": []})
    for plural in ("volumes", "snapshots"):
        services.get(f"{ENDPOINTS['block-storage']}/{plural}/detail", json={plural: []})
    services.get(ENDPOINTS["object-store"] + "/", json=[])
    group = default_group(services)
    theirs = Entry(
        spec=digest(f"sync-{ID}" if hook is sync else ID),
        run="thei",
        since=1,
        place="else",
        pid=1,
        start="abc",
        who="ann@laptop",
    )
    group["description"] = Description.read(group["description"]).holding(theirs).write()
    with pytest.raises(LeaseHeld, match="ann@laptop"):
        hook(Cloud(connection()), lock_timeout=0)


def test_beside_the_installer_it_is_a_wish() -> None:
    assert "lock_timeout" in {each.name for each in fields(InstallOptions)}
