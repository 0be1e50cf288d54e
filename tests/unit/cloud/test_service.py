from __future__ import annotations

import logging
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keystoneauth1.exceptions as ksa
import openstack.exceptions as sdk
import pytest
import requests
import requests_mock
import yaml
from openstack.config import OpenStackConfig
from openstack.connection import Connection

from openstack_prep.base.errors import CloudError, ConfigError, NotAllowed, NotFound, QuotaExceeded
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.service import READ_AGAIN, RETRIES, Service, client_of
from openstack_prep.cloud.translation import translate
from tests.unit.conftest import ENDPOINTS, IDENTITY, connection, failure, sent
from tests.unit.texts import Wording, expect_error

NOVA, GLANCE = ENDPOINTS["compute"], ENDPOINTS["image"]
NETWORKS = f"{ENDPOINTS['network']}/v2.0/networks"
OK = {"json": {"networks": []}}


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


@pytest.fixture
def network(cloud: Cloud) -> Service:
    return cloud.network


@pytest.fixture(autouse=True)
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody really waits; what was to be waited stands here."""
    slept: list[float] = []
    monkeypatch.setattr("keystoneauth1.session.time.sleep", slept.append)
    return slept


def test_the_cache_of_clouds_yaml_is_passed_over(services: requests_mock.Mocker, tmp_path: Path) -> None:
    """A program that keeps answers of the SDK still gets decisions from the present state."""
    settings = {"expiration_time": 300, "class": "dogpile.cache.memory", "expiration": {"network.networks": 300}}
    auth = connection().config.config["auth"]
    file = tmp_path / "clouds.yaml"
    entry = {"auth": auth, "region_name": "one", "identity_api_version": "3"}
    file.write_text(yaml.safe_dump({"clouds": {"x": entry}, "cache": settings}))
    services.get(NETWORKS, [OK, {"json": {"networks": [{"id": "n"}]}}])
    kept = Connection(config=OpenStackConfig([str(file)], load_envvars=False).get_one("x"))
    assert kept.cache_enabled
    network = Cloud(kept).network
    assert [network.list("/networks", "networks") for _ in range(2)] == [[], [{"id": "n"}]]


# --- retries ------------------------------------------------------------------------------

BUSY = [429, 502, 503, 504]
NO_CONNECTION = [
    requests.exceptions.ConnectionError,
    requests.exceptions.ReadTimeout,
    requests.exceptions.ChunkedEncodingError,  # the answer broke off
]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", BUSY)
def test_what_may_be_repeated_is_after_a_passing_fault(
    services: requests_mock.Mocker, network: Service, method: str, status: int
) -> None:
    asked = services.request(method, NETWORKS, [failure(status), OK])
    assert network.request(method, "/networks").json() == {"networks": []}
    assert asked.call_count == 2


@pytest.mark.parametrize("error", NO_CONNECTION)
def test_what_may_be_repeated_is_after_a_broken_connection(
    services: requests_mock.Mocker, network: Service, error: type[Exception]
) -> None:
    asked = services.put(NETWORKS, [{"exc": error}, OK])
    network.put("/networks", {})
    assert asked.call_count == 2


def test_the_pauses_grow(services: requests_mock.Mocker, network: Service, sleeps: list[float]) -> None:
    services.get(NETWORKS, [failure(503)] * RETRIES + [OK])
    network.get("/networks")
    assert sleeps == [0.5, 1.0, 2.0, 4.0]


def test_a_pause_the_service_asks_for_is_kept(
    services: requests_mock.Mocker, network: Service, sleeps: list[float]
) -> None:
    services.get(NETWORKS, [failure(429) | {"headers": {"Retry-After": "7"}}, OK])
    network.get("/networks")
    assert sleeps == [7]


def test_it_gives_up_and_says_that_later_may_be_better(services: requests_mock.Mocker, network: Service) -> None:
    asked = services.get(NETWORKS, **failure(503))
    with pytest.raises(CloudError) as caught:
        network.get("/networks")
    assert caught.value.retryable
    assert asked.call_count == 1 + RETRIES


@pytest.mark.parametrize(
    "answer", [failure(502), failure(503), failure(504), *({"exc": each} for each in NO_CONNECTION)]
)
def test_a_post_is_sent_once(services: requests_mock.Mocker, network: Service, answer: dict[str, Any]) -> None:
    asked = services.post(NETWORKS, [answer, OK])
    with pytest.raises(CloudError) as caught:
        network.post("/networks", {})
    assert caught.value.retryable
    assert asked.call_count == 1


def test_a_post_turned_away_at_the_door_is_sent_again(
    services: requests_mock.Mocker, network: Service, sleeps: list[float]
) -> None:
    asked = services.post(NETWORKS, [failure(429) | {"headers": {"Retry-After": "3"}}, OK])
    network.post("/networks", {})
    assert asked.call_count == 2
    assert sleeps == [3]


def test_what_only_reads_is_asked_for_again_after_500(
    services: requests_mock.Mocker, network: Service, sleeps: list[float]
) -> None:
    read, written = services.get(NETWORKS, [failure(500), OK]), services.put(NETWORKS, [failure(500), OK])
    assert network.get("/networks") == {"networks": []}
    with pytest.raises(CloudError):
        network.put("/networks", {})
    assert (read.call_count, written.call_count, sleeps) == (2, 1, [0.5])


ODD = [{"text": ""}, {"text": "<html>"}, {"json": []}, {"json": {"networks": None}}]


@pytest.mark.parametrize("odd", [*ODD, {"json": {"networks": {"id": "1"}}}, {"json": {"networks": [1], "links": {}}}])
def test_what_only_reads_is_asked_for_again_after_an_odd_answer(
    services: requests_mock.Mocker, network: Service, odd: dict[str, Any]
) -> None:
    asked = services.get(NETWORKS, [odd, OK])
    assert network.list("/networks", "networks") == []
    assert asked.call_count == 2
    asked = services.get(NETWORKS, **odd)
    with pytest.raises(CloudError):
        network.list("/networks", "networks")
    assert asked.call_count == 1 + READ_AGAIN


@pytest.mark.parametrize("odd", [*ODD, failure(500), failure(503)])
def test_what_may_be_asked_for_once_is(services: requests_mock.Mocker, network: Service, odd: dict[str, Any]) -> None:
    asked = services.get(NETWORKS, [odd, OK])
    with pytest.raises(CloudError):
        network.ask("GET", "/networks", once=True)
    assert asked.call_count == 1


@pytest.mark.parametrize("status", [400, 403, 404, 409, 412])
def test_no_other_answer_is_asked_for_twice(services: requests_mock.Mocker, network: Service, status: int) -> None:
    asked = services.get(NETWORKS, **failure(status))
    with pytest.raises(CloudError):
        network.get("/networks")
    assert asked.call_count == 1


# --- errors -------------------------------------------------------------------------------

POLICY = "(rule:update_quota and rule:admin) is disallowed by policy"
NO_CORES = "Quota exceeded for cores: Requested 4, but already used 40 of 40 cores"
TRANSLATIONS = [
    (400, "no", CloudError, False),
    (401, "no", CloudError, True),
    (403, "no", NotAllowed, False),
    (403, POLICY, NotAllowed, False),
    (403, "Policy doesn't allow os_compute_api:os-quota-sets:update to be performed.", NotAllowed, False),
    (403, NO_CORES, QuotaExceeded, False),
    (404, "no", NotFound, False),
    (409, "in use", CloudError, True),
    (409, "Quota exceeded for resources: ['floatingip'].", QuotaExceeded, False),
    (412, "revision_number is 8", CloudError, True),
    (
        413,
        "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.",
        QuotaExceeded,
        False,
    ),
    (413, "Request is too large.", CloudError, False),
    (429, "slow down", CloudError, True),
    (500, "a bug", CloudError, True),
    (502, "no", CloudError, True),
    (503, "no", CloudError, True),
    (504, "no", CloudError, True),
    (501, "no", CloudError, False),
]


@pytest.mark.parametrize(("status", "said", "kind", "retryable"), TRANSLATIONS)
def test_an_answer_becomes_an_error_of_ours(
    services: requests_mock.Mocker, network: Service, status: int, said: str, kind: type[CloudError], retryable: bool
) -> None:
    services.post(NETWORKS, **failure(status, said))
    with pytest.raises(CloudError) as caught:
        network.post("/networks", {})
    assert type(caught.value) is kind
    assert caught.value.retryable is retryable
    assert caught.value.status == status
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"POST network/networks: {status} ")


def test_an_error_tells_the_request_id(services: requests_mock.Mocker, network: Service) -> None:
    answer = failure(500, "a bug")
    answer["headers"]["X-Openstack-Request-Id"] = "req-1f2e"
    services.get(NETWORKS, **answer)
    with pytest.raises(CloudError, match=r"a bug \(request req-1f2e\)") as caught:
        network.get("/networks")
    assert caught.value.request_id == "req-1f2e"
    answer["headers"]["X-Openstack-Request-Id"] = "req-%7B%22password%22%3A%20%22hush%22%7D"
    services.get(NETWORKS, **answer)
    with pytest.raises(CloudError) as caught:
        network.get("/networks")
    assert "hush" not in str(caught.value)


def test_a_service_that_cannot_reach_another_one_has_no_fault_of_our_entry(
    services: requests_mock.Mocker, network: Service
) -> None:
    said = "SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
    services.get(NETWORKS, **failure(500, said))
    with pytest.raises(CloudError, match=r"500 .*self-signed") as caught:
        network.list("/networks", "networks")
    assert (caught.value.status, caught.value.retryable) == (500, True)


def test_glance_says_why_in_a_page(services: requests_mock.Mocker, network: Service) -> None:
    page = """<html>
 <head>
  <title>400 Bad Request</title>
 </head>
 <body>
  <h1>400 Bad Request</h1>
  URI for web-download does not pass filtering: http://host/a?b&amp;c<br /><br />



 </body>
</html>"""
    services.get(NETWORKS, text=page, status_code=400, headers={"Content-Type": "text/html"})
    with pytest.raises(CloudError, match=r"networks: 400 URI .* filtering: http://host/a\?b&c$"):
        network.get("/networks")


def test_an_error_keeps_its_cause(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, **failure(404))
    with pytest.raises(NotFound) as caught:
        network.get("/networks")
    assert isinstance(caught.value.__cause__, ksa.NotFound)


def test_the_query_of_a_request_is_left_out_of_its_error(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, **failure(404))
    with pytest.raises(NotFound, match=r"^GET network/networks: 404"):
        network.get("/networks?name=long")


def test_a_choice_of_a_cloud_that_is_incomplete() -> None:
    found = translate(sdk.ConfigException("no"), "log in")
    assert (type(found), "--os-cloud" in str(found)) == (ConfigError, True)


@pytest.mark.parametrize(
    ("error", "retryable", "code"),
    [
        (ksa.ConnectFailure("refused"), True, "cloud.unreachable"),
        (ksa.ConnectTimeout("timed out"), True, "cloud.unreachable"),
        (ksa.UnknownConnectionError("reset", None), True, "cloud.unreachable"),
        (ksa.DiscoveryFailure("no version document"), True, "cloud.unreachable"),
        (ksa.SSLError("SSLEOFError(8, 'EOF occurred in violation of protocol')"), True, "cloud.unreachable"),
        (ksa.EndpointNotFound("no such service"), False, "cloud.error"),
    ],
)
def test_an_error_without_an_answer(error: Exception, retryable: bool, code: str) -> None:
    ours = translate(error, "GET network/networks")
    assert isinstance(ours, CloudError)
    assert (ours.retryable, ours.code) == (retryable, code)
    assert ours.status is None


def test_what_is_no_error_of_a_cloud_stays_what_it_is() -> None:
    bug = ZeroDivisionError()
    assert translate(bug, "GET network/networks") is bug


# --- lists --------------------------------------------------------------------------------


def test_an_endpoint_without_the_version(services: requests_mock.Mocker, network: Service) -> None:
    """Glance answers then with its versions, whatever it is asked for."""
    services.get(NETWORKS, status_code=300, json={"versions": []})
    with expect_error(ConfigError, "/networks", "networks"):
        network.list("/networks", "networks")


def test_a_list_of_one_page(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, json={"networks": [{"id": "1"}]})
    assert network.list("/networks", "networks", name="x") == [{"id": "1"}]
    assert sent(services) == ["GET /v2.0/networks?name=x"]


PAGES = [
    ("network", NETWORKS, {"networks_links": [{"rel": "next", "href": "http://inside/v2.0/networks?marker=1"}]}),
    ("compute", f"{NOVA}/networks", {"networks_links": [{"rel": "next", "href": f"{NOVA}/networks?marker=1"}]}),
    ("image", f"{GLANCE}/v2/networks", {"next": "/v2/networks?marker=1"}),
    ("identity", f"{IDENTITY}/networks", {"links": {"next": f"{IDENTITY}/networks?marker=1", "self": "x"}}),
]


@pytest.mark.parametrize(("service", "url", "following"), PAGES)
def test_all_pages_of_a_list_are_read(
    services: requests_mock.Mocker, cloud: Cloud, service: str, url: str, following: dict[str, Any]
) -> None:
    """Each service has its way to name the next page, sometimes by a host that only it knows."""
    glance = {"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": f"{GLANCE}/v2/"}]}
    services.get(GLANCE, json={"versions": [glance]})
    services.get(url, json={"networks": [{"id": "1"}], **following})
    services.get(f"{url}?marker=1", json={"networks": [{"id": "2"}], "links": {"next": None}})
    found = getattr(cloud, service).list("/networks", "networks")
    assert [each["id"] for each in found] == ["1", "2"]


def test_threads_read_the_versions_of_an_api_once(services: requests_mock.Mocker, cloud: Cloud) -> None:
    def versions(request: Any, context: Any) -> Any:
        threading.Event().wait(0.1)
        return {"versions": [{"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": f"{GLANCE}/v2/"}]}]}

    asked = services.get(f"{GLANCE}/", json=versions)
    services.get(f"{GLANCE}/v2/images", json={"images": []})
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: cloud.image.list("/images", "images"), range(4))) == [[]] * 4
    assert asked.call_count == 1


def test_deleting_what_has_gone_is_fine(services: requests_mock.Mocker, network: Service) -> None:
    services.delete(f"{NETWORKS}/1", **failure(404))
    network.delete("/networks/1")


@pytest.mark.parametrize(
    "answer",
    [
        {"status_code": 404, "text": "default backend - 404"},
        failure(404, "The resource could not be found."),
    ],
)
def test_a_404_about_something_else_deletes_nothing(
    services: requests_mock.Mocker, network: Service, answer: dict[str, Any]
) -> None:
    services.delete(f"{NETWORKS}/1", **answer)
    with pytest.raises(CloudError):
        network.delete("/networks/1")


def test_an_empty_answer_is_an_empty_mapping(services: requests_mock.Mocker, network: Service) -> None:
    services.put(NETWORKS, status_code=204)
    assert network.put("/networks") == {}


# --- secrets ------------------------------------------------------------------------------

WORD = "correct-horse"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def send_secret(network: Service) -> None:
    secret = Secret(WORD)
    network.post("/networks", {"password": secret.reveal()}, secrets=[secret], headers={"X-Key": secret.reveal()})


def test_a_request_without_a_secret_is_logged(
    services: requests_mock.Mocker, network: Service, logged: pytest.LogCaptureFixture
) -> None:
    services.post(NETWORKS, json={"answer": "hello"}, headers={"Content-Type": "application/json"})
    network.post("/networks", {"name": "visible"})
    assert "visible" in logged.text
    assert "hello" in logged.text


def test_of_a_request_with_a_secret_nothing_is_logged(
    services: requests_mock.Mocker, network: Service, logged: pytest.LogCaptureFixture
) -> None:
    services.post(NETWORKS, [failure(429), {"json": {"credential": {"secret": WORD}}, "headers": {"X-Key": WORD}}])
    send_secret(network)
    assert WORD not in logged.text
    assert services.last_request.json() == {"password": WORD}


def test_a_secret_is_blotted_out_of_an_error_and_its_traceback(
    services: requests_mock.Mocker, network: Service, wording: Wording
) -> None:
    services.post(NETWORKS, **failure(400, f"the password {WORD!r} is too short"))
    with pytest.raises(CloudError) as caught:
        send_secret(network)
    wording(caught.value)
    assert WORD not in "".join(traceback.format_exception(caught.value))


def test_an_empty_secret_blots_out_nothing(services: requests_mock.Mocker, network: Service) -> None:
    services.post(NETWORKS, **failure(400, "no"))
    with pytest.raises(CloudError, match=r"^POST network/networks: 400 no"):
        network.post("/networks", {}, secrets=[Secret("")])


@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("orchestration", "/stacks/s/1/template"),
        ("orchestration", "/stacks"),
        ("compute", "/servers/detail"),
        ("object-store", "/c"),
    ],
)
def test_of_what_may_hold_secrets_of_others_nothing_is_logged(
    service: str, path: str, services: requests_mock.Mocker, logged: pytest.LogCaptureFixture
) -> None:
    json_type = {"Content-Type": "application/json"}
    services.get(
        f"{ENDPOINTS[service]}{path}", json={"a": [{"user_data": WORD}]}, headers={"X-Meta": WORD, **json_type}
    )
    cloud = Cloud(connection())
    client_of(cloud, service).get(path)
    assert WORD not in logged.text


def test_keys_of_an_account_are_not_logged(services: requests_mock.Mocker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    services.get(f"{ENDPOINTS['object-store']}/?format=json", json=[], headers={"X-Account-Meta-Temp-Url-Key": "hush"})
    assert list(Cloud(connection()).object_store.ask_list("", params={"format": "json"})) == []
    assert "hush" not in caplog.text


def test_a_name_of_dots_is_no_request_for_something_else(services: requests_mock.Mocker) -> None:
    """Clients remove such segments: the deletion of the tag .. of a port would delete the port."""
    network = Cloud(connection()).network
    for path in ("/ports/p/tags/..", "/ports/./tags", "/ports/p/tags/..?x=y"):
        with pytest.raises(CloudError):
            network.delete(path)
    assert not any(each.method == "DELETE" for each in services.request_history)
