"""Whole results as a person reads them: data/exposures/convert-*.txt; OPENSTACK_PREP_STORE=1 writes them anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from openstack_prep.exposures.convert import convert, read, wanted
from openstack_prep.exposures.convert.objects import To
from tests.unit.exposures.convert.generated import DUAL, item
from tests.unit.exposures.convert.test_sources import POOL

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
}
AUTOMATIC = item("auto", "on", externalIPs=["192.168.0.249"])
AUTOMATIC["metadata"]["annotations"]["external-ip"] = "auto"
ITEMS = [
    item("web", externalIPs=["192.0.2.10", "192.0.2.11"]),
    item("api", externalIPs=["192.0.2.10"], type="NodePort", ports=[{"port": 443, "nodePort": 30443}]),
    item("both", externalIPs=["192.0.2.20", "2001:db8::20"], **DUAL),
    AUTOMATIC,
    item("old", "null", externalIPs=["192.0.2.1"]),
    item("other", type="LoadBalancer", status={"loadBalancer": {"ingress": [{"ip": "192.0.2.99"}]}}),
    POOL,
    NODE,
]
RUNS: list[tuple[str, To, dict[str, Any]]] = [
    ("metallb", "metallb", {"interfaces": ["eth0"]}),
    (
        "metallb-bgp",
        "metallb",
        {"release": "0.13.12", "announce": "bgp", "my_asn": "64512", "peers": ["192.0.2.254=64513"]},
    ),
    ("cilium", "cilium", {"interfaces": ["ens3"]}),
    ("cilium-bgp", "cilium", {"release": "1.17", "announce": "bgp", "my_asn": "64512", "peers": ["192.0.2.254=64513"]}),
    ("kube-vip", "kube-vip", {}),
]


@pytest.mark.parametrize(("name", "to", "options"), RUNS, ids=[each[0] for each in RUNS])
def test_whole_results(name: str, to: To, options: dict[str, Any], stored: Callable[[str, str], None]) -> None:
    found = convert(read({"x": json.dumps({"kind": "List", "items": ITEMS})}), wanted(to, **options))
    files = "\n".join(f"# --- {each}\n{text}" for each, text in found.files.items() if each.endswith(".yaml"))
    stored(f"exposures/convert-{name}.txt", f"{found}\n\n{files}")


def test_claims_of_the_old_controller_are_deleted_only_if_it_is_at_work() -> None:
    items = [item("web", externalIPs=["192.0.2.10"])]
    for more, wanted_step in (([], False), ([POOL], True), ([AUTOMATIC], True)):
        found = convert(read({"x": json.dumps({"kind": "List", "items": [*items, *more]})}), wanted("metallb"))
        assert ("ipclaims" in str(found)) == wanted_step
