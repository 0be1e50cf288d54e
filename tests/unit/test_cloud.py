from __future__ import annotations

import logging
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keystoneauth1.exceptions as ksa
import openstack.exceptions as sdk
import pytest
import requests
import requests_mock

from openstack_prep.cloud import TIMEOUT, Cloud, connect
from openstack_prep.errors import CloudError, ConfigError, NotAllowed, NotFound, QuotaExceeded
from openstack_prep.secret import Secret
from openstack_prep.service import RETRIES, Service, translate
from openstack_prep.version import __version__
from tests.unit.conftest import ADMIN_PROJECT, ADMIN_USER, CLOUDS, ENDPOINTS, IDENTITY, failure, sent, token

NOVA, NEUTRON, GLANCE = ENDPOINTS["compute"], ENDPOINTS["network"], ENDPOINTS["image"]
TOKENS = f"{IDENTITY}/auth/tokens"
NETWORKS = f"{NEUTRON}/v2.0/networks"
OK = {"json": {"networks": []}}

pytestmark = pytest.mark.usefixtures("clouds_yaml")


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return connect("lab")


@pytest.fixture
def network(cloud: Cloud) -> Service:
    return cloud.network


@pytest.fixture(autouse=True)
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody really waits; what was to be waited stands here."""
    slept: list[float] = []
    monkeypatch.setattr("keystoneauth1.session.time.sleep", slept.append)
    return slept


# --- retries ------------------------------------------------------------------------------

BUSY = [429, 502, 503, 504]
NO_CONNECTION = [requests.exceptions.ConnectionError, requests.exceptions.ReadTimeout]


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


@pytest.mark.parametrize("status", [400, 403, 404, 409, 412, 500])
def test_no_other_answer_is_asked_for_twice(services: requests_mock.Mocker, network: Service, status: int) -> None:
    asked = services.get(NETWORKS, **failure(status))
    with pytest.raises(CloudError):
        network.get("/networks")
    assert asked.call_count == 1


def test_clouds_yaml_may_ask_for_more_retries(services: requests_mock.Mocker, clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", "network_status_code_retries: 6"))
    asked = services.get(NETWORKS, **failure(503))
    with pytest.raises(CloudError):
        connect("lab").network.get("/networks")
    assert asked.call_count == 7


# --- errors -------------------------------------------------------------------------------

POLICY = "(rule:update_quota and rule:admin) is disallowed by policy"
NO_CORES = "Quota exceeded for cores: Requested 4, but already used 40 of 40 cores"
TRANSLATIONS = [
    (400, "no", CloudError, False),
    (401, "no", NotAllowed, False),
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


def test_an_error_keeps_its_cause(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, **failure(404))
    with pytest.raises(NotFound) as caught:
        network.get("/networks")
    assert isinstance(caught.value.__cause__, ksa.NotFound)


def test_the_query_of_a_request_is_left_out_of_its_error(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, **failure(404))
    with pytest.raises(NotFound, match=r"^GET network/networks: 404"):
        network.get("/networks?name=long")


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (ksa.ConnectFailure("refused"), True),
        (ksa.ConnectTimeout("timed out"), True),
        (ksa.UnknownConnectionError("reset", None), True),
        (ksa.DiscoveryFailure("no version document"), True),
        (ksa.SSLError("certificate verify failed"), False),
        (ksa.EndpointNotFound("no such service"), False),
        (sdk.ConfigException("no"), False),
    ],
)
def test_an_error_without_an_answer(error: Exception, retryable: bool) -> None:
    ours = translate(error, "GET network/networks")
    assert isinstance(ours, CloudError)
    assert ours.retryable is retryable
    assert ours.status is None


def test_what_is_no_error_of_a_cloud_stays_what_it_is() -> None:
    bug = ZeroDivisionError()
    assert translate(bug, "GET network/networks") is bug


def test_a_service_that_the_catalogue_lacks(services: requests_mock.Mocker, cloud: Cloud) -> None:
    with pytest.raises(CloudError, match="orchestration") as caught:
        cloud.orchestration.get("/stacks")
    assert not caught.value.retryable
    assert not cloud.has("orchestration")
    assert cloud.has("network")


def test_keystone_cannot_be_reached(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.post(TOKENS, exc=requests.exceptions.ConnectionError("refused"))
    with pytest.raises(CloudError, match=f"authenticate to {IDENTITY} as cloud 'lab': .*refused") as caught:
        cloud.authenticate()
    assert caught.value.retryable


def test_a_wrong_password(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.post(TOKENS, **failure(401, "The request you have made requires authentication."))
    with pytest.raises(NotAllowed, match=f"authenticate to {IDENTITY} as cloud 'lab': 401"):
        cloud.authenticate()


def test_an_unversioned_address_of_keystone_is_discovered(services: requests_mock.Mocker, clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace(IDENTITY, "http://keystone"))
    version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": IDENTITY}]}
    services.get("http://keystone", json={"versions": {"values": [version]}}, status_code=300)
    assert connect("lab").project_id == ADMIN_PROJECT


def test_an_address_that_is_not_keystones(services: requests_mock.Mocker, clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace(IDENTITY, "http://keystone"))
    services.get("http://keystone", text="<html>It works!</html>")
    services.post("http://keystone/v2.0/tokens", status_code=404)
    services.post("http://keystone/auth/tokens", status_code=404)
    with pytest.raises(CloudError, match="authenticate to http://keystone as cloud 'lab'"):
        connect("lab").authenticate()


# --- lists --------------------------------------------------------------------------------


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


def test_deleting_what_has_gone_is_fine(services: requests_mock.Mocker, network: Service) -> None:
    services.delete(f"{NETWORKS}/1", **failure(404))
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


def test_a_login_shows_no_password_and_no_token(
    services: requests_mock.Mocker, cloud: Cloud, logged: pytest.LogCaptureFixture
) -> None:
    services.get(NETWORKS, **OK)
    cloud.network.get("/networks")
    assert "X-Auth-Token" in logged.text
    assert "token-0" not in logged.text
    assert "admin-password" not in logged.text


def test_a_secret_is_blotted_out_of_an_error_and_its_traceback(
    services: requests_mock.Mocker, network: Service
) -> None:
    services.post(NETWORKS, **failure(400, f"the password {WORD!r} is too short"))
    with pytest.raises(CloudError, match=r"the password '\*+' is too short") as caught:
        send_secret(network)
    assert WORD not in "".join(traceback.format_exception(caught.value))


def test_an_empty_secret_blots_out_nothing(services: requests_mock.Mocker, network: Service) -> None:
    services.post(NETWORKS, **failure(400, "no"))
    with pytest.raises(CloudError, match=r"^POST network/networks: 400 no"):
        network.post("/networks", {}, secrets=[Secret("")])


# --- identity -----------------------------------------------------------------------------


def logins(services: requests_mock.Mocker) -> list[Any]:
    return [request for request in services.request_history if request.url == TOKENS]


def test_many_threads_log_in_once(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.get(NETWORKS, **OK)
    services.get(f"{NOVA}/flavors", json={"flavors": []})
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(lambda: cloud.network.get("/networks")) for _ in range(16)]
        asked += [pool.submit(lambda: cloud.compute.get("/flavors")) for _ in range(16)]
        assert all(isinstance(each.result(), dict) for each in asked)
    assert len(logins(services)) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_that_expired_in_the_middle_is_renewed(
    services: requests_mock.Mocker, cloud: Cloud, method: str
) -> None:
    services.post(TOKENS, json=token(), status_code=201, headers={"X-Subject-Token": "old"})
    cloud.authenticate()
    services.post(TOKENS, json=token(), status_code=201, headers={"X-Subject-Token": "new"})
    asked = services.request(method, NETWORKS, [failure(401), OK])
    cloud.network.request(method, "/networks")
    assert [each.headers["X-Auth-Token"] for each in asked.request_history] == ["old", "new"]
    assert len(logins(services)) == 2


def test_a_token_that_does_not_help_is_renewed_once(services: requests_mock.Mocker, network: Service) -> None:
    asked = services.get(NETWORKS, **failure(401))
    with pytest.raises(NotAllowed):
        network.get("/networks")
    assert asked.call_count == 2


def test_we_say_who_we_are(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, **OK)
    network.get("/networks")
    assert services.last_request.headers["User-Agent"].startswith(f"openstack_prep/{__version__} openstacksdk/")


def test_a_request_does_not_wait_for_ever(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, **OK)
    network.get("/networks")
    assert services.last_request.timeout == TIMEOUT


def test_clouds_yaml_has_the_last_word_on_the_time_out(services: requests_mock.Mocker, clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", "api_timeout: 5"))
    services.get(NETWORKS, **OK)
    connect("lab").network.get("/networks")
    assert services.last_request.timeout == 5


def test_the_compute_api_is_asked_for_one_microversion(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.get(f"{NOVA}/flavors", json={"flavors": []})
    cloud.compute.get("/flavors")
    assert services.last_request.headers["X-OpenStack-Nova-API-Version"] == "2.64"


def test_an_identity_knows_itself(cloud: Cloud) -> None:
    assert (cloud.name, cloud.region, cloud.auth_url) == ("lab", "one", IDENTITY)
    assert (cloud.project_id, cloud.user_id) == (ADMIN_PROJECT, ADMIN_USER)
    assert cloud.domains == {"Default": "default"}


def test_the_same_cloud_as_another_user(services: requests_mock.Mocker, cloud: Cloud) -> None:
    other = cloud.as_user(username="ocp", password=Secret(WORD), user_domain="Default", project_id="p9")
    services.get(NETWORKS, **OK)
    other.network.get("/networks")
    assert logins(services)[-1].json() == {
        "auth": {
            "identity": {
                "methods": ["password"],
                "password": {"user": {"name": "ocp", "password": WORD, "domain": {"name": "Default"}}},
            },
            "scope": {"project": {"id": "p9"}},
        }
    }
    assert services.last_request.headers["User-Agent"].startswith("openstack_prep/")
    assert other.region == "one"


def test_another_user_trusts_the_same_authority(
    services: requests_mock.Mocker, clouds_yaml: Path, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("")
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", f"cacert: {authority}"))
    services.get(NETWORKS, **OK)
    connect("lab").as_user(username="u", password=Secret("p"), user_domain="Default").network.endpoint  # noqa: B018
    assert logins(services)[-1].verify == str(authority)


# --- the choice of a cloud ----------------------------------------------------------------


def test_nothing_is_asked_of_the_cloud_by_connecting(services: requests_mock.Mocker, cloud: Cloud) -> None:
    assert services.call_count == 0


def test_an_sdk_connection_will_do(services: requests_mock.Mocker, cloud: Cloud) -> None:
    assert connect(connection=cloud.connection).project_id == ADMIN_PROJECT


def refused(name: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        connect(name)
    return str(caught.value)


def test_a_cloud_that_is_not_there(clouds_yaml: Path) -> None:
    said = refused("elsewhere")
    assert said.startswith("cloud 'elsewhere':")
    assert f"{clouds_yaml} has the entries lab, other" in said
    assert "--os-cloud" in said


def test_no_clouds_yaml_at_all(clouds_yaml: Path) -> None:
    clouds_yaml.unlink()
    said = refused("lab")
    assert "no clouds.yaml was found" in said
    assert "OS_CLIENT_CONFIG_FILE" in said


def test_no_choice_at_all(clouds_yaml: Path) -> None:
    clouds_yaml.unlink()
    assert "no --os-cloud, OS_CLOUD or OS_AUTH_URL given" in refused()


def test_the_environment_chooses(services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLOUD", "lab")
    assert connect().name == "lab"


@pytest.mark.parametrize(
    "broken", ["clouds: {lab: [", "- lab\n", "clouds: [lab]\n", "clouds: {lab: }\n", "\x00", "clouds: lab\n"]
)
def test_a_broken_clouds_yaml(clouds_yaml: Path, broken: str) -> None:
    clouds_yaml.write_text(broken)
    assert str(clouds_yaml) in refused("lab")


def test_a_clouds_yaml_that_cannot_be_read(clouds_yaml: Path) -> None:
    clouds_yaml.unlink()
    clouds_yaml.mkdir()
    assert f"{clouds_yaml} cannot be read" in refused("lab")


def test_an_empty_clouds_yaml(clouds_yaml: Path) -> None:
    clouds_yaml.write_text("")
    assert f"{clouds_yaml} has the entries none" in refused("lab")


def test_an_entry_without_the_address_of_keystone(clouds_yaml: Path) -> None:
    clouds_yaml.write_text("clouds: {lab: {region_name: one}}\n")
    said = refused("lab")
    assert "auth_url" in said
    assert f"{clouds_yaml} has the entries lab" in said


def test_an_entry_with_an_unknown_way_to_log_in(clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", "auth_type: v9magic"))
    assert "v9magic" in refused("lab")
