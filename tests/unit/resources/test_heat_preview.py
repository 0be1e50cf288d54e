from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.resources.heat import HeatStack
from openstack_prep.resources.heat_preview import Refused, foresee
from openstack_prep.site import Site
from tests.unit.conftest import failure

STACK = "http://heat/v1/admin-project/stacks/s/root"
RESOURCES = [
    ("s", "nodes", "s-nodes-abcdefghijkl"),
    ("s-nodes-abcdefghijkl", "0", "s-nodes-abcdefghijkl-0-mnopqrstuvwx"),
]


def link(rel: str, stack: str) -> dict[str, str]:
    return {"rel": rel, "href": f"http://heat/v1/p/stacks/{stack}/id-of-{stack}"}


def change(stack: str, name: str, kind: str) -> dict[str, str]:
    return {"stack_name": stack, "resource_name": name, "resource_type": kind}


def changes(**verbs: Any) -> dict[str, Any]:
    none: dict[str, Any] = {verb: [] for verb in ("unchanged", "updated", "replaced", "added", "deleted")}
    return {"resource_changes": none | verbs}


@pytest.fixture
def stack(services: requests_mock.Mocker, site: Site) -> HeatStack:
    listed = [
        {
            "resource_name": name,
            "resource_status": "CREATE_COMPLETE",
            "physical_resource_id": f"id-of-{nested}",
            "links": [link("stack", within), link("nested", nested)],
        }
        for within, name, nested in RESOURCES
    ]
    services.get(f"{STACK}/resources", json={"resources": listed})
    return HeatStack(site.admin, "s", "root")


def test_places_in_the_tree_whatever_heat_calls_the_nested_stacks(services: Any, stack: HeatStack) -> None:
    answer = changes(
        updated=[change("s", "nodes", "OS::Heat::ResourceGroup"), change("s-nodes-abcdefghijkl", "0", "node.yaml")],
        replaced=[change("s-nodes-0", "server", "OS::Nova::Server")],
        added=[change("s-nodes", "1", "node.yaml")],
    )
    services.put(f"{STACK}/preview", json=answer)
    found = foresee(stack, {"template": {}}, [], {}, [])
    assert list(map(str, found)) == ["add nodes.1", "replace nodes.0.server"]


def test_a_group_that_grows_hides_no_replacement(services: Any, stack: HeatStack) -> None:
    """Heat answers 400 to the whole, and to the count; the flavor by itself tells what it replaces."""

    def answer(request: Any, context: Any) -> Any:
        given = request.json()["environment"]["parameters"]
        if "show_nested" not in request.query:
            return changes(updated=[change("s", "nodes", "OS::Heat::ResourceGroup")])
        if given["count"] == 2:
            context.status_code = 400
            return failure(400)["json"]
        assert given == {"count": 1, "flavor": "big", "password": "hidden"}
        return changes(replaced=[change("s-nodes-0", "server", "OS::Nova::Server")])

    services.put(f"{STACK}/preview", json=answer)
    body = {"template": {}, "environment": {"parameters": {"count": 2, "flavor": "big", "password": "hidden"}}}
    found = foresee(stack, body, [], {"count": 1, "flavor": "small"}, ["count", "flavor"])
    assert list(map(str, found)) == ["replace nodes.0.server", "update nodes"]


def test_what_heat_refuses_either_way_is_refused(services: Any, stack: HeatStack) -> None:
    services.put(f"{STACK}/preview", **failure(400, "no such network"))
    with pytest.raises(Refused, match="no such network"):
        foresee(stack, {"template": {}, "environment": {"parameters": {}}}, [], {}, [])


def test_a_reference_to_what_stays_is_no_change(services: Any, stack: HeatStack) -> None:
    """Its id is asked about; the reference itself only when what it names is missing or made anew."""
    asked: list[Any] = []

    def answer(request: Any, context: Any) -> Any:
        port = request.json()["template"]["resources"]["port"]
        asked.append(port["properties"]["network"])
        replaced = [change("s", "nodes", "X")] if request.json()["environment"]["parameters"] else []
        return changes(replaced=replaced)

    services.put(f"{STACK}/preview", json=answer)
    reference = {"get_resource": "nodes"}
    template = {"resources": {"port": {"properties": {"network": reference}}}}
    foresee(stack, {"template": template, "environment": {"parameters": {}}}, [], {}, [])
    assert asked == ["id-of-s-nodes-abcdefghijkl"]
    foresee(stack, {"template": template, "environment": {"parameters": {}}}, [], {}, [], missing=["nodes"])
    foresee(stack, {"template": template, "environment": {"parameters": {"a": 1}}}, [], {"a": 1}, [])
    assert asked[1:] == [reference, "id-of-s-nodes-abcdefghijkl", reference]
