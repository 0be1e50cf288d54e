from __future__ import annotations

import json
import logging
import os
import re
import threading
from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, cast
from urllib.parse import unquote_plus

import keyring
import pytest
import requests
import requests_mock
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from openstack_prep.base.errors import CloudError, ConfigError, NotAllowed
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import connection, entries, login
from openstack_prep.cloud.connection import TIMEOUT, Cloud, connect, connect_entry
from openstack_prep.cloud.service import Service
from openstack_prep.version import __version__
from tests.unit.conftest import ADMIN_PROJECT, ADMIN_USER, CLOUDS, ENDPOINTS, IDENTITY, failure, sent, token
from tests.unit.texts import Wording, contains, expect_error

NOVA = ENDPOINTS["compute"]
TOKENS = f"{IDENTITY}/auth/tokens"
NETWORKS = f"{ENDPOINTS['network']}/v2.0/networks"
OK = {"json": {"networks": []}}
WORD = "correct-horse"

pytestmark = pytest.mark.usefixtures("clouds_yaml")


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return connect("lab")


@pytest.fixture
def network(cloud: Cloud) -> Service:
    return cloud.network


# --- the way to Keystone and its catalogue ------------------------------------------------


def test_a_service_that_the_catalogue_lacks(services: requests_mock.Mocker, cloud: Cloud) -> None:
    lacking = token()
    lacking["token"]["catalog"] = [each for each in lacking["token"]["catalog"] if each["type"] != "orchestration"]
    services.post(f"{IDENTITY}/auth/tokens", json=lacking, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    with pytest.raises(CloudError, match="orchestration") as caught:
        cloud.orchestration.get("/stacks")
    assert not caught.value.retryable
    assert not cloud.has("orchestration")
    assert cloud.has("network")


def test_keystone_cannot_be_reached(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.post(TOKENS, exc=requests.exceptions.ConnectionError("refused"))
    with expect_error(CloudError, IDENTITY, "lab", "refused", code="cloud.unreachable") as caught:
        cloud.authenticate()
    assert caught.value.retryable


@pytest.mark.timeout(10)
def test_keystone_hides_its_versions_from_those_without_a_token(services: requests_mock.Mocker, cloud: Cloud) -> None:
    """The login waited for itself, for ever."""
    services.get(IDENTITY, **failure(401))
    assert cloud.authenticate().project_id == ADMIN_PROJECT
    services.post(TOKENS, **failure(401))
    with pytest.raises(NotAllowed):
        connect("lab").authenticate()


def test_a_wrong_password(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.post(TOKENS, **failure(401, "The request you have made requires authentication."))
    with expect_error(NotAllowed, IDENTITY, "lab", "401"):
        cloud.authenticate()


@pytest.mark.parametrize("status", [400, 401, 409])
def test_a_login_that_is_repeated_in_the_reason_is_hidden(
    services: requests_mock.Mocker, cloud: Cloud, status: int
) -> None:
    def repeat(request: Any, context: Any) -> str:
        return json.dumps({"error": {"code": status, "message": f"bad login {request.text}"}})

    services.post(TOKENS, text=repeat, status_code=status, headers={"Content-Type": "application/json"})
    other = cloud.as_user(username="ocp", password=Secret(WORD), user_domain="Default")
    with pytest.raises(CloudError) as caught:
        other.authenticate()
    assert "bad login" in str(caught.value)
    assert WORD not in str(caught.value)


@pytest.mark.parametrize("repeats", [str, unquote_plus])
def test_what_a_provider_of_identities_repeats_of_a_form_or_header_is_hidden(
    services: requests_mock.Mocker, repeats: Callable[[str], str]
) -> None:
    def repeat(request: Any, context: Any) -> str:
        scheme, _, credentials = request.headers["Authorization"].partition(" ")
        login = b64decode(credentials).decode() if scheme == "Basic" else credentials
        return json.dumps({"error_description": f"bad form {repeats(request.text or '')} and login {login}"})

    url = "http://idp/token"
    auth = {"auth_url": IDENTITY, "identity_provider": "i", "protocol": "p", "access_token_endpoint": url}
    login = {"client_id": "me", "client_secret": "s&c ret", "username": "u", "password": "p&ss word", "project_id": "1"}
    services.post(url, text=repeat, status_code=400)
    cloud = connect_entry("o", {"auth_type": "v3oidcpassword", "auth": {**auth, **login}})
    federated = f"{IDENTITY}/OS-FEDERATION/identity_providers/i/protocols/p/auth"
    services.post(federated, text=repeat, status_code=500)
    for _ in range(2):
        with pytest.raises(CloudError, match="bad form") as caught:
            cloud.authenticate()
        assert not {"ss", "ret", "opaque"} & {*re.findall("[a-z]+", str(caught.value))}
        services.post(url, json={"access_token": "opaque"})


def test_a_token_that_a_service_repeats_is_hidden(services: requests_mock.Mocker) -> None:
    """Also one of a form that nobody knows, by the header of the request."""
    fernet, jwt = f"gAAAAA{'x-_' * 40}==", ".".join(["eyJ" + "a" * 20] * 3)
    for given in (fernet, jwt, "0123456789abcdef"):
        services.post(TOKENS, json=token(), headers={"X-Subject-Token": given}, status_code=201)
        services.get(NETWORKS, **failure(400, f"no such token {given} in the header"))
        with pytest.raises(CloudError) as caught:
            connect("lab").network.get("/networks")
        assert given not in str(caught.value)
        assert "in the header" in str(caught.value)


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
    with expect_error(CloudError, "http://keystone", "lab", code="cloud.unreachable"):
        connect("lab").authenticate()


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


def test_many_threads_share_the_client_of_a_service(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Slow(Service):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            made.append(arguments[1])
            threading.Event().wait(0.02)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("openstack_prep.cloud.connection.Service", Slow)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: cloud.network, range(8)))) == 1
    assert made == ["network"]


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


def test_a_new_token_that_is_refused_may_be_accepted_later(services: requests_mock.Mocker, network: Service) -> None:
    """It is no missing permission, for which some kinds look away."""
    asked = services.get(NETWORKS, **failure(401))
    with expect_error(CloudError, "GET network/networks", "401", "refused") as caught:
        network.get("/networks")
    assert type(caught.value) is CloudError
    assert caught.value.retryable
    assert asked.call_count == 2


def test_who_cannot_log_in_again_is_told_so(services: requests_mock.Mocker, network: Service) -> None:
    services.get(NETWORKS, [OK, failure(401)])
    network.get("/networks")
    services.post(TOKENS, **failure(401))
    with expect_error(CloudError, "GET network/networks", "401", "no longer") as caught:
        network.get("/networks")
    assert type(caught.value) is CloudError
    assert not caught.value.retryable


def test_a_look_at_the_catalogue_may_need_a_login(services: requests_mock.Mocker, cloud: Cloud) -> None:
    """It was an internal error."""
    assert cloud.has("network")
    services.post(TOKENS, **failure(401))
    cast(Any, cloud.session.auth).invalidate()
    with expect_error(CloudError, "network", "401", "no longer"):
        cloud.has("network")


@pytest.mark.parametrize("answer", [{"text": '{"token": {"user"'}, {"json": []}, {"json": {"token": {}}}, {"text": ""}])
def test_a_damaged_answer_to_a_login_is_met(
    services: requests_mock.Mocker, cloud: Cloud, answer: dict[str, Any], wording: Wording
) -> None:
    whole = {"json": token(), "status_code": 201, "headers": {"X-Subject-Token": "4f2a9c"}}
    damaged = answer | {"status_code": 201, "headers": {"X-Subject-Token": "4f2a9c"}}
    services.post(TOKENS, [damaged, whole])
    assert cloud.authenticate().project_id == ADMIN_PROJECT
    services.get(NETWORKS, [failure(401), OK])
    services.post(TOKENS, [damaged, whole])
    with pytest.raises(CloudError) as caught:
        cloud.network.get("/networks")
    wording(caught.value)
    assert caught.value.retryable
    assert cloud.network.get("/networks") == OK["json"]


def test_a_request_looks_for_no_proxy_where_the_environment_has_none(
    services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*os.environ]:
        if name.lower().endswith("_proxy") or name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            monkeypatch.delenv(name)
    assert not connect("lab").session.session.trust_env
    with monkeypatch.context() as patch:
        patch.setenv("https_proxy", "http://proxy.example.com")
        assert connect("lab").session.session.trust_env
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "ca.pem")
    services.get(NETWORKS, **OK)
    connect("lab").network.get("/networks")
    assert services.last_request.verify == "ca.pem"
    assert not connect("lab").session.session.trust_env


def test_a_token_that_ends_soon_is_renewed(
    services: requests_mock.Mocker, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "LASTS", 0.0)
    ending = token()
    ending["token"]["expires_at"] = "2020-01-01T00:00:00.000000Z"
    asked = services.post(
        f"{IDENTITY}/auth/tokens",
        [{"json": each, "status_code": 201, "headers": {"X-Subject-Token": "4f2a9c"}} for each in (ending, token())],
    )
    for _ in range(3):
        cloud.authenticate()
    assert asked.call_count == 2


def test_the_time_by_a_token_of_the_cache_is_that_of_this_machine(services: requests_mock.Mocker, cloud: Cloud) -> None:
    old = token()
    old["token"]["issued_at"] = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    services.post(TOKENS, json=old, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    assert timedelta(minutes=59) < datetime.now(UTC) - cloud.now() < timedelta(minutes=61)  # Keystone's clock
    later = Cloud(cloud.connection)  # which has a token from the first, as by ``cache: {auth: true}``
    assert datetime.now(UTC) - later.now() < timedelta(minutes=1)


def test_threads_with_one_refused_token_log_in_once(services: requests_mock.Mocker, cloud: Cloud) -> None:
    """All but the first one gave up, because the token was discarded already and the new one not yet there."""
    services.post(TOKENS, json=token(), status_code=201, headers={"X-Subject-Token": "old"})
    cloud.authenticate()
    services.post(TOKENS, json=token(), status_code=201, headers={"X-Subject-Token": "new"})
    auth: Any = cloud.session.auth
    used, refused = threading.Barrier(8), threading.Barrier(8)

    def after_401(_: int) -> Any:
        """What a session does: use the token, discard it after 401, use the new one."""
        assert auth.get_token(cloud.session) == "old"
        used.wait(10)
        assert auth.invalidate()
        refused.wait(10)
        return auth.get_token(cloud.session)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(after_401, range(8))) == {"new"}
    assert len(logins(services)) == 2


def test_no_login_of_netrc_is_sent(
    services: requests_mock.Mocker, network: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    services.get(NETWORKS, **OK)
    network.get("/networks")
    assert {each.headers.get("Authorization") for each in services.request_history} == {None}


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


def test_another_user_shares_the_open_connections(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.get(NETWORKS, **OK)
    services.post(TOKENS, json=token(), headers={"X-Subject-Token": "own"}, status_code=201)
    cloud.network.get("/networks")
    services.post(TOKENS, json=token(), headers={"X-Subject-Token": "other"}, status_code=201)
    other = cloud.as_user(username="ocp", password=Secret(WORD), user_domain="Default").allow_parallel(3)
    versions = services.call_count
    other.network.get("/networks")
    other.connection.network.get("/networks")
    cloud.network.get("/networks")
    asked = services.request_history[versions:]
    assert [each.headers.get("X-Auth-Token") for each in asked if each.url == NETWORKS] == ["other", "other", "own"]
    assert len([each for each in asked if each.url == TOKENS]) == 1
    adapters = cloud.session.session.adapters
    assert (other.session.session.adapters, cloud.parallel) == (adapters, 3)
    other.session.close()
    assert cloud.session._session is not None


def test_a_login_without_a_project_asks_version_3_of_keystone(
    services: requests_mock.Mocker, clouds_yaml: Path
) -> None:
    """The SDK sends its identity requests to the auth_url as it is."""
    entry = "{auth_type: v3applicationcredential, auth: {auth_url: http://keystone, application_credential_id: a, "
    clouds_yaml.write_text(f"clouds: {{lab: {entry}application_credential_secret: s}}, region_name: one}}}}")
    version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": IDENTITY}]}
    services.get("http://keystone", json={"versions": {"values": [version]}}, status_code=300)
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    cloud = connect("lab")
    other = cloud.as_user(username="ocp", password=Secret(WORD), user_domain="Default")
    assert [each.identity.list("/projects", "projects") for each in (cloud, other)] == [[], []]


def test_another_user_trusts_the_same_authority(
    services: requests_mock.Mocker, clouds_yaml: Path, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("")
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", f"cacert: {authority}"))
    services.get(NETWORKS, **OK)
    connect("lab").as_user(username="u", password=Secret("p"), user_domain="Default").network.endpoint  # noqa: B018
    assert logins(services)[-1].verify == str(authority)


def test_a_login_shows_no_password_and_no_token(
    services: requests_mock.Mocker, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    services.get(NETWORKS, **OK)
    cloud.network.get("/networks")
    assert "X-Auth-Token" in caplog.text
    assert "token-0" not in caplog.text
    assert "admin-password" not in caplog.text


def test_an_answer_that_repeats_the_login_is_not_logged(
    services: requests_mock.Mocker, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    services.post(TOKENS, json=lambda request, _: request.json())
    with pytest.raises(CloudError):
        cloud.network.get("/networks")
    assert "admin-password" in services.request_history[-1].text
    assert "admin-password" not in caplog.text


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("kind", ["v3oauth2clientcredential", "v3oauth2mtlsclientcredential"])
def test_the_token_of_another_server_is_not_logged(
    services: requests_mock.Mocker, caplog: pytest.LogCaptureFixture, kind: str, split: bool
) -> None:
    """keystoneauth logs the answer of OAuth 2.0, to which it sends a request at the login, or for each request."""
    caplog.set_level(logging.DEBUG)
    url = "http://idp/token"
    services.post(url, json={"access_token": WORD})
    services.get(TOKENS, json=token())
    services.get(NETWORKS, **OK)
    secret = {"oauth2_client_secret": "opaque"} if kind == "v3oauth2clientcredential" else {}
    auth = {"auth_url": IDENTITY, "oauth2_endpoint": url, "oauth2_client_id": "me", **secret}
    cloud = connect_entry("o", {"auth_type": kind, "auth": auth})
    cloud.session._split_loggers = split
    cloud.network.get("/networks")
    assert services.request_history[-1].headers["Authorization"] == f"Bearer {WORD}"
    assert "X-Auth-Token" in caplog.text
    assert WORD not in caplog.text


def test_clouds_yaml_may_ask_for_more_retries(
    services: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keystoneauth1.session.time.sleep", lambda seconds: None)
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", "network_status_code_retries: 6"))
    asked = services.get(NETWORKS, **failure(503))
    with pytest.raises(CloudError):
        connect("lab").network.get("/networks")
    assert asked.call_count == 7


# --- the choice of a cloud ----------------------------------------------------------------


def test_nothing_is_asked_of_the_cloud_by_connecting(services: requests_mock.Mocker, cloud: Cloud) -> None:
    assert services.call_count == 0


def test_an_sdk_connection_will_do(services: requests_mock.Mocker, cloud: Cloud) -> None:
    assert connect(connection=cloud.connection).project_id == ADMIN_PROJECT


def refused(name: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        connect(name)
    return str(caught.value)


def test_a_cloud_that_is_not_there(clouds_yaml: Path, wording: Wording) -> None:
    said = refused("elsewhere")
    assert said.startswith("cloud 'elsewhere':")
    wording(said)
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


def test_a_password_without_quotes_is_not_shown(clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace("admin-password", f"*{WORD}"))
    said = refused("lab")
    assert "found undefined alias" in said
    assert WORD not in said


def test_a_clouds_yaml_that_cannot_be_read(clouds_yaml: Path, wording: Wording) -> None:
    clouds_yaml.unlink()
    clouds_yaml.mkdir()
    wording(refused("lab"))


def test_an_empty_clouds_yaml(clouds_yaml: Path, wording: Wording) -> None:
    clouds_yaml.write_text("")
    wording(refused("lab"))


def test_an_entry_without_the_address_of_keystone(clouds_yaml: Path) -> None:
    clouds_yaml.write_text("clouds: {lab: {region_name: one}}\n")
    said = refused("lab")
    assert f"{clouds_yaml}:1: auth.auth_url is missing" in said


def test_an_entry_without_a_password(services: requests_mock.Mocker, clouds_yaml: Path) -> None:
    lines = (line for line in clouds_yaml.read_text().splitlines() if "password" not in line)
    clouds_yaml.write_text("\n".join(lines))
    with expect_error(ConfigError, "password", "clouds.yaml"):
        connect("lab").authenticate()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_keystone_is_not_the_fault_of_the_entry(
    services: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.0)
    services.post(f"{IDENTITY}/auth/tokens", **failure(status))
    with pytest.raises(CloudError) as caught:
        connect("lab").authenticate()
    assert caught.value.status == status
    assert login.CHECK_ENTRY not in str(caught.value)


def test_a_keystone_that_nobody_reaches(
    services: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.0)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    services.post(f"{IDENTITY}/auth/tokens", exc=requests.exceptions.ConnectionError("refused"))
    with pytest.raises(CloudError) as caught:
        connect("lab").authenticate()
    assert login.CHECK_WAY in str(caught.value)


def test_a_named_file_that_does_not_exist_is_named(
    clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "nofile.yaml")
    wording(refused("none"))


def test_an_entry_with_an_unknown_way_to_log_in(clouds_yaml: Path) -> None:
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", "auth_type: v9magic"))
    assert "v9magic" in refused("lab")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (IDENTITY, "'http://[::1/v3'", 'auth_url "http://[::1/v3" is not a URL'),
        (IDENTITY, "http://host:99999/v3", 'auth_url "http://host:99999/v3" is not a URL'),
        (IDENTITY, "keystone.example.com", 'auth_url "keystone.example.com" is not an http or https URL'),
        (IDENTITY, "https://me:hush@host/v3", 'auth_url "https://...host/v3" holds a login; write username'),
        (IDENTITY, "'http://host/{0}'", "openstacksdk cannot interpret its settings"),
        ("auth:", "interface: nope\n    auth:", "interface 'nope' is not one of public, internal, admin"),
    ],
)
def test_settings_that_the_sdk_stumbles_over_later(clouds_yaml: Path, right: str, wrong: str, said: str) -> None:
    clouds_yaml.write_text(clouds_yaml.read_text().replace(right, wrong))
    with pytest.raises(ConfigError) as caught:
        connect("lab")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("[WORD]", "a list"),
        ("{a: WORD}", "a mapping"),
        ("2024-01-02", "a date"),
        ("2024-01-02T03:04:05Z", "a date"),
        ("!!binary V09SRA==", "a value of another type"),
    ],
)
@pytest.mark.parametrize("name", ["password", "username"])
def test_a_value_that_is_no_text_is_refused_and_not_shown(
    services: requests_mock.Mocker,
    clouds_yaml: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: str,
    kind: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    clouds_yaml.write_text(re.sub(f"{name}: [^,}}\n]*", f"{name}: {value}", CLOUDS, count=1))
    said = refused("lab")
    assert contains(said, f"auth.{name}", kind)
    assert not re.search("WORD|2024-01", said + caplog.text)
    assert services.call_count == 0


DEEP = "clouds: " + "[" * 50_000


@pytest.mark.parametrize("text", [DEEP, "{" + DEEP, "clouds: {lab: {auth: &a {b: *a}}}", "clouds: {lab: 2024-13-01}"])
def test_a_clouds_yaml_that_would_end_the_process(clouds_yaml: Path, text: str) -> None:
    clouds_yaml.write_text(text)
    assert contains(refused("lab"), clouds_yaml)


class LockedKeyring(KeyringBackend):
    """A keyring that nobody has unlocked."""

    priority = 1

    def get_password(self, *words: str) -> NoReturn:
        raise KeyringLocked("nobody is there")

    set_password = delete_password = get_password


def test_a_keyring_that_fails_to_give_the_token(clouds_yaml: Path) -> None:
    clouds_yaml.write_text(f"cache: {{auth: true}}\n{CLOUDS}")
    before = keyring.get_keyring()
    keyring.set_keyring(LockedKeyring())
    try:
        assert contains(refused("lab"), "nobody is there", "set cache.auth to false")
        clouds_yaml.write_text(f"cache: {{auth: false}}\n{CLOUDS}")
        assert connect("lab").name == "lab"
    finally:
        keyring.set_keyring(before)


def test_a_clouds_yaml_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "/dev/zero")
    assert refused("lab").count("/dev/zero cannot be read: ") == 1


def test_entries_from_pipes_are_read_once(
    services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """As in OS_CLIENT_CONFIG_FILE=<(sops -d clouds.yaml): a second look finds it empty."""
    of_secrets = "clouds: {lab: {auth: {password: from-a-pipe}}}\n"
    for name, text in (("OS_CLIENT_CONFIG_FILE", CLOUDS), ("OS_CLIENT_SECURE_FILE", of_secrets)):
        out, into = os.pipe()
        os.write(into, text.encode())
        os.close(into)
        monkeypatch.setenv(name, f"/dev/fd/{out}")
    assert connect("lab").config["auth"]["password"] == "from-a-pipe"
    wording(refused("no-such-entry"))


def test_files_that_only_others_may_read_are_passed_over(
    services: requests_mock.Mocker, clouds_yaml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """As openstacksdk does: /etc/openstack/clouds.yaml may be for administrators of the machine."""
    of_others = tmp_path / "etc.yaml"
    of_others.write_text("clouds: [")
    may_read = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(of_others) and may_read(path, mode))
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE")
    assert entries.unreadable(None, [str(of_others)]) is None
    assert entries.unreadable(None, [str(of_others), str(clouds_yaml)]) is None
    assert "cannot be read" in str(entries.unreadable(of_others, []))
    said = entries.explain("x", "not found", None, [str(of_others), str(clouds_yaml)])
    wording(said)


def test_a_broken_secure_yaml_is_not_logged(
    clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wording: Wording
) -> None:
    """openstack.config would quote the line with the password, and go on without it."""
    caplog.set_level(logging.DEBUG)
    secure = clouds_yaml.with_name("secure.yaml")
    secure.write_text(f"clouds:\n  lab: {{auth: {{password: [{WORD}\n")
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(secure))
    said = refused("lab")
    wording(said)
    assert WORD not in said + caplog.text


@pytest.mark.parametrize("setting", ["cacert: ca.pem", "cert: ca.pem", "cacert: ~/no/ca.pem"])
def test_a_file_for_tls_that_is_not_there(services: requests_mock.Mocker, clouds_yaml: Path, setting: str) -> None:
    clouds_yaml.write_text(CLOUDS.replace("region_name: one", setting))
    said = refused("lab")
    assert contains(said, "ca.pem", "cacert", "cert")
    assert services.call_count == 0


def test_a_missing_authority_of_the_environment(
    clouds_yaml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    clouds_yaml.write_text(CLOUDS.replace(IDENTITY, "https://127.0.0.1:9/v3"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "no.pem"))
    with pytest.raises(ConfigError) as caught:
        connect("lab").authenticate()
    wording(caught.value)


def test_looking_for_swift_does_not_read_the_account(services: requests_mock.Mocker, cloud: Cloud) -> None:
    """Its answer would be logged, with the keys in it."""
    assert cloud.has("object-store")
    assert cloud.has("block-storage")
    assert sent(services) == []
