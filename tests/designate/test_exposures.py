"""Names of exposures in a real Designate: from the spec to the answer of its name server, and back."""

from __future__ import annotations

import json
import secrets
from typing import Any

from tests.designate.conftest import Prep, Zones
from tests.devcloud.tenant import Tenant


def spec(name: str, zone: str, project: str) -> dict[str, Any]:
    """Two exposures: one with a floating IP, and one whose address the pool chooses."""
    designate = {"zones": [zone], "ttl": 60, "project": project}
    given = {"cluster": "one", "how": "metallb", "pool": "lb", "target": {"service": "shop/frontend"}}
    return {
        "name": name,
        "networks": [{"name": f"{name}-nodes", "port_security_enabled": False}],  # so no node needs address pairs
        "subnets": [{"name": f"{name}-nodes", "network": f"{name}-nodes", "cidr": "10.1.0.0/24"}],
        "routers": [{"name": f"{name}-out", "external_network": "external", "interfaces": [f"{name}-nodes"]}],
        "floating_ips": [{"name": "shop", "external_network": "external"}],
        "address_pools": [{"name": "lb", "subnet": f"{name}-nodes", "addresses": ["10.1.0.200-10.1.0.203"]}],
        "exposures": [
            given | {"name": "shop", "ports": [{"port": 443}], "address": "10.1.0.201", "floating_ip": "shop"}
            | {"names": [f"shop.{zone}", f"www.{zone}"]},
            given | {"name": "metrics", "ports": [{"port": 9090}], "names": [f"metrics.{zone}"]},
        ],
        "exposed_clusters": [{"name": "one", "directory": "one", "names": {"designate": designate}}],
    }  # fmt: skip


def hops(prep: Prep, code: int = 0) -> dict[str, list[str]]:
    """Return the statuses of the hop through Designate, by exposure."""
    out = prep.run("exposures", "show", "--format", "json", prep.spec.name, code=code).stdout
    listed = json.loads(out)["exposures"]
    return {each["name"]: [hop["status"] for hop in each["hops"] if hop["where"] == "recordset"] for each in listed}


def test_names_lead_to_the_addresses(tenant: Tenant, zones: Zones, prep: Prep) -> None:
    zone = zones(tenant.project_id)
    prep.write(spec(f"t{secrets.token_hex(3)}", zone.name, tenant.name))
    assert set(hops(prep, code=1)["shop"]) == {"error"}
    done = prep.apply()
    (public,) = (each["outputs"]["address"] for key, each in done.items() if key == "floating_ip/shop")
    chosen = done["exposure/metrics"]["outputs"]["address"]
    answers = {name: zone.answer(f"{name}.{zone.name}") for name in ("shop", "www", "metrics")}
    assert answers == {"shop": {public}, "www": {public}, "metrics": {chosen}}
    assert prep.changes() == set()
    # the resolver of this machine does not know the names
    assert hops(prep, code=1) == {"shop": ["ok", "ok"], "metrics": ["ok"]}

    (found,) = (each for (name, _), each in zone.recordsets().items() if name.startswith("www."))
    zone.request("PUT", f"/recordsets/{found['id']}", {"records": ["192.0.2.66"]})
    assert hops(prep, code=1)["shop"] == ["ok", "error"]
    assert prep.changes() == {f"recordset/www.{zone.name}/A"}
    prep.apply()
    assert zone.answer(f"www.{zone.name}") == {public}
    prep.destroy()
    assert not zone.recordsets()
