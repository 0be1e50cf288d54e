"""Answers of another shape: each is one error that names the request, which may be sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import CloudError
from openstack_prep.base.formats import yaml_text
from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.heat.stacks import HeatStack
from tests.unit.conftest import ENDPOINTS, IDENTITY, connection, token
from tests.unit.texts import Wording

NEUTRON, HEAT, SWIFT = f"{ENDPOINTS['network']}/v2.0", ENDPOINTS["orchestration"], ENDPOINTS["object-store"]
DEEP = "[" * 100_000
Ask = Callable[[Cloud], Any]


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


def refused(ask: Ask, cloud: Cloud, named: str) -> str:
    """Return the error of a request, which names the request and repeats nothing of the answer."""
    with pytest.raises(CloudError) as raised:
        ask(cloud)
    error = raised.value
    assert error.retryable
    assert str(error).startswith(f"{named}: 200, but the answer ")
    assert "(request req-1)" in str(error)
    assert "secret" not in str(error)
    return str(error)


def answer(text: str, kind: str = "application/json") -> dict[str, Any]:
    return {"text": text, "headers": {"Content-Type": kind, "X-Openstack-Request-Id": "req-1"}}


HTML = answer("<html>secret</html>", "text/html")
ODD = [
    HTML,
    answer(""),
    answer('{"networks": [{"id": "secret'),
    answer(DEEP),
    answer("[]"),
    answer("null"),
    answer("3"),
]


@pytest.mark.parametrize("odd", ODD)
def test_an_answer_that_is_no_object(services: requests_mock.Mocker, cloud: Cloud, odd: dict[str, Any]) -> None:
    services.get(f"{NEUTRON}/networks", **odd)
    refused(lambda cloud: cloud.network.list("/networks", "networks"), cloud, "GET network/networks")
    refused(lambda cloud: cloud.network.get("/networks"), cloud, "GET network/networks")


@pytest.mark.parametrize("content", ["{}", "null", "[null]", '["secret"]', "[[]]", '"secret"'])
def test_a_list_of_anything_but_objects(services: requests_mock.Mocker, cloud: Cloud, content: str) -> None:
    services.get(f"{NEUTRON}/networks", **answer(f'{{"networks": {content}}}'))
    refused(lambda cloud: cloud.network.list("/networks", "networks"), cloud, "GET network/networks")


@pytest.mark.parametrize(
    "content", ['{"stack": []}', '{"stack": null}', '{"stack": {}}', "{}", '{"stacks": {"id": 1}}']
)
def test_a_list_or_nothing_in_the_place_of_an_object(
    services: requests_mock.Mocker, cloud: Cloud, content: str
) -> None:
    services.get(f"{HEAT}/stacks/a", **answer(content))
    refused(lambda cloud: cloud.orchestration.get("/stacks/a")["stack"]["id"], cloud, "GET orchestration/stacks/a")


@pytest.mark.parametrize("content", ['{"stack": []}', '{"stack": {"id": "1"}}'])
def test_a_stack_without_its_status(services: requests_mock.Mocker, cloud: Cloud, content: str) -> None:
    services.get(f"{HEAT}/stacks/a/1", **answer(content))
    refused(lambda cloud: HeatStack(cloud, "a", "1").show()["stack_status"], cloud, "GET orchestration/stacks/a/1")


def test_a_page_that_follows_itself(services: requests_mock.Mocker, cloud: Cloud) -> None:
    links = '[null, {"rel": "next", "href": "http://x/networks?marker=1"}]'
    services.get(f"{NEUTRON}/networks", **answer(f'{{"networks": [], "networks_links": {links}}}'))
    refused(lambda cloud: cloud.network.list("/networks", "networks"), cloud, "GET network/networks")


@pytest.mark.parametrize("odd", [HTML, answer(""), answer("{}"), answer("null")])
def test_a_list_of_swift(services: requests_mock.Mocker, cloud: Cloud, odd: dict[str, Any]) -> None:
    services.get(f"{SWIFT}/", **odd)
    refused(lambda cloud: cloud.object_store.ask_list(""), cloud, "GET object-store")


@pytest.mark.parametrize("content", ["", "null", "{}"])
def test_a_request_that_writes_may_be_answered_with_nothing(
    services: requests_mock.Mocker, cloud: Cloud, content: str
) -> None:
    services.put(f"{NEUTRON}/ports/a/tags/b", **answer(content))
    assert cloud.network.put("/ports/a/tags/b") == {}
    services.post(f"{NEUTRON}/ports", **answer(content))
    refused(lambda cloud: cloud.network.post("/ports", {})["port"], cloud, "POST network/ports")


def test_what_is_right_is_plain_data(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.get(f"{NEUTRON}/ports/a", **answer('{"port": {"id": "a", "fixed_ips": [{"ip_address": "192.0.2.1"}]}}'))
    found = cloud.network.get("/ports/a")
    assert found == {"port": {"id": "a", "fixed_ips": [{"ip_address": "192.0.2.1"}]}}
    assert yaml.safe_load(yaml_text.dump(found)) == found


@pytest.mark.parametrize(
    "odd", [HTML, answer(""), answer("{}"), answer("[]"), answer('{"token": null}'), answer('{"token": {"user": []}}')]
)
def test_a_login_that_is_answered_by_another_program(services: requests_mock.Mocker, odd: dict[str, Any]) -> None:
    services.post(f"{IDENTITY}/auth/tokens", status_code=201, **odd)
    with pytest.raises(CloudError, match=r"auth_url|authenticate") as raised:
        Cloud(connection()).authenticate()
    assert "secret" not in str(raised.value)


def test_a_token_without_a_name(services: requests_mock.Mocker, wording: Wording) -> None:
    body = token()
    del body["token"]["user"]["name"]
    services.post(f"{IDENTITY}/auth/tokens", status_code=201, json=body, headers={"X-Subject-Token": "4f2a9c"})
    with pytest.raises(CloudError) as caught:
        Cloud(connection()).authenticate()
    wording(caught.value)
