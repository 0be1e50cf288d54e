"""References of exposures and exposed clusters, judged without a cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.core.model import Context
from openstack_prep.core.resource import ListsMistakes, supports
from openstack_prep.spec.spec import load_spec

EXPOSURE = {"name": "a", "cluster": "one", "how": "metallb", "target": {"service": "a/b"}, "ports": [{"port": 443}]}
RIGHT: dict[str, Any] = {
    "name": "s",
    "floating_ips": [{"name": "web", "external_network": "x"}],
    "address_pools": [{"name": "lb", "subnet": "n", "addresses": ["10.1.0.200-10.1.0.203"]}],
    "exposures": [EXPOSURE | {"pool": "lb", "address": "10.1.0.200", "floating_ip": "web"}],
    "exposed_clusters": [{"name": "one", "directory": "one"}],
}


def mistakes(tmp_path: Path, **changed: Any) -> list[tuple[str, str]]:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(RIGHT | changed))
    spec = load_spec(tmp_path / "s.yaml")
    context: Any = Context(resources=spec.resources, cloud=None)
    return [
        (found.where, found.code)
        for each in spec.resources
        if supports(each, ListsMistakes)
        for found in each.list_mistakes(context)
    ]


def test_a_right_spec_has_none(tmp_path: Path) -> None:
    assert mistakes(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"cluster": "two"}, Code.SPEC_UNRESOLVED),
        ({"floating_ip": "other"}, Code.SPEC_UNRESOLVED),
        ({"address": None}, Code.SPEC_CONTRADICTION),
        ({"pool": "other"}, Code.SPEC_UNRESOLVED),
        ({"address": "10.1.0.250"}, Code.SPEC_CONTRADICTION),
        ({"pool": None, "address": None}, Code.SPEC_CONTRADICTION),
    ],
)
def test_an_exposure_that_refers_to_nothing(changed: dict[str, Any], code: Code, tmp_path: Path) -> None:
    found = mistakes(tmp_path, exposures=[RIGHT["exposures"][0] | changed])
    assert set(found) == {("exposure/a", code)}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, Code.ADDRESS_IN_USE),
        ({"pool": None, "floating_ip": None}, Code.SPEC_CONTRADICTION),  # the pool may give it to another one
        ({"ports": [{"port": 80}]}, Code.ADDRESS_IN_USE),
    ],
)
def test_two_exposures_with_one_address(changed: dict[str, Any], code: Code, tmp_path: Path) -> None:
    one = RIGHT["exposures"][0]
    assert ("exposure/b", code) in mistakes(tmp_path, exposures=[one, one | {"name": "b"} | changed])
    outside = [RIGHT["address_pools"][0] | {"reserve": "outside"}]
    given = [{**each, "floating_ip": None} for each in (one, one | {"name": "b"} | changed)]
    apart = "ports" in changed
    assert mistakes(tmp_path, exposures=given, address_pools=outside) == (
        [] if apart else [("exposure/b", Code.ADDRESS_IN_USE)]
    )


@pytest.mark.parametrize("how", ["bridge", "service-host", "external-ip"])
def test_settings_that_a_way_needs(how: str, tmp_path: Path) -> None:
    found = mistakes(tmp_path, exposures=[EXPOSURE | {"how": how, "pool": "lb"}])
    assert found == [("exposed_cluster/one", Code.SPEC_CONTRADICTION)]


@pytest.mark.parametrize("router", ["none", "r"])
def test_a_router_without_routes(router: str, tmp_path: Path) -> None:
    cluster = {"name": "one", "directory": "one", "router": router}
    found = mistakes(tmp_path, exposed_clusters=[cluster], routers=[{"name": "r", "external_network": "x"}])
    assert found == [("exposed_cluster/one", Code.SPEC_UNRESOLVED)] * (router != "r") + [
        ("exposed_cluster/one", Code.SPEC_CONTRADICTION)
    ]
