"""What a cloud for many plans asks, and what it answers by itself: exact requests."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError, NotAllowed, NotFound
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.shared_cloud import WHOLE, SharedCloud
from openstack_prep.resources.lists.queries import list_images
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, connection, failure, token

NOVA, NEUTRON, GLANCE = ENDPOINTS["compute"], f"{ENDPOINTS['network']}/v2.0", f"{ENDPOINTS['image']}/v2"
PORTS = [
    {"id": "1", "project_id": "red", "network_id": "n", "device_owner": "compute:nova", "name": "web"},
    {"id": "2", "project_id": "blue", "network_id": "n", "device_owner": "network:dhcp", "name": "web"},
    {"id": "3", "project_id": "red", "network_id": "m", "device_owner": "network:dhcp", "name": ""},
    {"id": "4", "project_id": "", "network_id": "m", "device_owner": "", "name": "of no project"},
]


@pytest.fixture
def shared(services: requests_mock.Mocker) -> SharedCloud:
    return SharedCloud(Cloud(connection()), 8)


def asked(services: requests_mock.Mocker) -> list[str]:
    """Return method, path and query of the requests, without logins and documents of versions."""
    found = []
    for each in services.request_history:
        path = each.url.split("/", 3)[3]
        if "/auth/tokens" not in path and path.strip("/") not in ("v3", "v2", "v2.0", "v2.1", "v3/", ""):
            found.append(f"{each.method} {path}")
    return found


def refused(status: int = 403) -> dict[str, Any]:
    return {"status_code": status, "json": {"NeutronError": {"message": "no", "type": "No", "detail": ""}}}


# --- one list of all projects ---------------------------------------------------------------


def test_one_list_answers_reads_of_projects_networks_and_devices(
    services: requests_mock.Mocker, shared: SharedCloud
) -> None:
    services.get(f"{NEUTRON}/ports", json={"ports": PORTS})

    def ids(**params: object) -> list[str]:
        return [each["id"] for each in shared.network.list("/ports", "ports", **params)]

    assert ids(project_id="red") == ["1", "3"]
    assert ids(project_id="blue") == ["2"]
    assert ids(project_id="green") == []
    assert ids(network_id="m") == ["3", "4"]
    assert ids(project_id="red", device_owner=["network:dhcp", "network:distributed"]) == ["3"]
    assert asked(services) == ["GET v2.0/ports?limit=1000"]


def test_only_the_fields_that_are_asked_for_are_answered(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    services.get(f"{NEUTRON}/ports", json={"ports": PORTS})
    (found,) = shared.network.list("/ports", "ports", project_id="blue", fields=("id", "name", "tags"))
    assert found == {"id": "2", "name": "web"}
    with pytest.raises(CloudError):
        _ = found["project_id"]


def test_pages_are_followed(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    following = [{"rel": "next", "href": "http://elsewhere/v2.0/ports?limit=1000&marker=2"}]
    services.get(f"{NEUTRON}/ports?limit=1000", json={"ports": PORTS[:2], "ports_links": following})
    services.get(f"{NEUTRON}/ports?limit=1000&marker=2", json={"ports": PORTS[2:]})
    assert len(shared.network.list("/ports", "ports", project_id="red")) == 2
    assert asked(services) == ["GET v2.0/ports?limit=1000", "GET v2.0/ports?limit=1000&marker=2"]


@pytest.mark.parametrize(
    "params",
    [{}, {"name": "web"}, {"project_id": "red", "name": "web"}, {"fixed_ips": "subnet_id=s"}, {"fields": "id"}],
)
def test_other_reads_are_sent_as_they_are(
    services: requests_mock.Mocker, shared: SharedCloud, params: dict[str, object]
) -> None:
    services.get(f"{NEUTRON}/ports", json={"ports": PORTS})
    shared.network.list("/ports", "ports", **params)
    (sent,) = (each for each in services.request_history if each.path.endswith("/ports"))
    assert "limit" not in sent.qs
    assert sent.qs == {name: [str(value)] for name, value in params.items()}


@pytest.mark.parametrize("answer", [refused(), refused(500), refused(503), {"json": {"ports": "none"}}])
def test_each_read_is_sent_where_the_whole_list_cannot_be_read(
    services: requests_mock.Mocker, shared: SharedCloud, answer: dict[str, Any]
) -> None:
    services.get(f"{NEUTRON}/ports?limit=1000", **answer)
    services.get(f"{NEUTRON}/ports?project_id=red", json={"ports": PORTS[:1]})
    services.get(f"{NEUTRON}/ports?project_id=blue", **refused())
    assert shared.network.list("/ports", "ports", project_id="red") == PORTS[:1]
    with pytest.raises(NotAllowed):
        shared.network.list("/ports", "ports", project_id="blue")
    assert shared.network.list("/ports", "ports", project_id="red") == PORTS[:1]
    sent = asked(services)
    assert sent.count("GET v2.0/ports?limit=1000") == 1
    assert sent[-3:] == [f"GET v2.0/ports?project_id={name}" for name in ("red", "blue", "red")]


@pytest.mark.parametrize("truncated", [True, False])
def test_a_list_that_is_not_whole_or_too_large_answers_nothing(
    services: requests_mock.Mocker, shared: SharedCloud, truncated: bool
) -> None:
    shared.most = 2 if truncated else 1
    rows = [{"id": name, "name": name, "domain_id": "default"} for name in ("red", "blue")]
    services.get(f"{IDENTITY}/projects?limit=1000", json={"projects": rows, "truncated": truncated})
    services.get(f"{IDENTITY}/projects?name=red&domain_id=default", json={"projects": rows[:1]})
    found = shared.identity.list("/projects", "projects", name="red", domain_id="default")
    assert found == rows[:1]


def test_further_pages_are_not_read_for_a_few_specs(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    shared.most = 1
    first = f"{NEUTRON}/ports?limit=1000"
    links = [{"rel": "next", "href": f"{first}&marker=1"}]
    services.get(first, json={"ports": PORTS[:1], "ports_links": links})
    services.get(f"{NEUTRON}/ports?project_id=red", json={"ports": PORTS[:1]})
    assert shared.network.list("/ports", "ports", project_id="red") == PORTS[:1]
    assert len(asked(services)) == 2


def test_a_page_of_keystone_that_says_it_is_truncated_is_followed(
    services: requests_mock.Mocker, shared: SharedCloud
) -> None:
    rows = [{"id": name, "name": name, "domain_id": "default"} for name in ("red", "blue")]
    first = f"{IDENTITY}/projects?limit=1000"
    links = {"next": f"{first}&marker=red", "self": first, "previous": None}
    services.get(first, json={"projects": rows[:1], "truncated": True, "links": links})
    services.get(f"{first}&marker=red", json={"projects": rows[1:], "links": links | {"next": None}})
    found = shared.identity.list("/projects", "projects", name="blue", domain_id="default")
    assert found == rows[1:]
    assert shared.identity.get("/projects/red") == {"project": rows[0]}
    assert len(asked(services)) == 2


def test_a_project_that_is_not_listed_is_asked_for(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    services.get(f"{IDENTITY}/projects?limit=1000", json={"projects": []})
    services.get(f"{IDENTITY}/projects/red", **failure(404))
    for _ in range(2):
        with pytest.raises(NotFound):
            shared.identity.get("/projects/red")
    assert len(asked(services)) == 3


def test_many_threads_wait_for_one_list(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    begun = threading.Event()

    def slowly(request: object, context: object) -> dict[str, object]:
        begun.wait(0.2)
        return {"ports": PORTS}

    services.get(f"{NEUTRON}/ports", json=slowly)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda name: shared.network.list("/ports", "ports", project_id=name), ["red", "blue"] * 8)
        assert sorted(map(len, found)) == [1] * 8 + [2] * 8
    assert len(asked(services)) == 1


# --- where only the service can tell --------------------------------------------------------


def test_a_project_without_its_default_group_is_asked_for(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    """Neutron creates the group of a new project when the groups of the project are listed."""
    default = {"id": "d", "name": "default", "project_id": "red"}
    services.get(f"{NEUTRON}/security-groups?limit=1000", json={"security_groups": [default]})
    new = default | {"id": "e", "project_id": "blue"}
    services.get(f"{NEUTRON}/security-groups?project_id=blue", json={"security_groups": [new]})
    found = [shared.network.list("/security-groups", "security_groups", project_id=name) for name in ("red", "blue")]
    assert found == [[default], [new]]


def test_a_name_that_is_not_listed_is_asked_for(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    """Keystone's database may compare names without regard to case."""
    user = {"id": "1", "name": "Ops"}
    services.get(f"{IDENTITY}/users?domain_id=corp&limit=1000", json={"users": [user, {"id": "2", "name": "dev"}]})
    services.get(f"{IDENTITY}/users?name=ops&domain_id=corp", json={"users": [user]})
    for name, expected in (("Ops", [user]), ("ops", [user]), ("dev", [{"id": "2", "name": "dev"}])):
        assert shared.identity.list("/users", "users", name=name, domain_id="corp") == expected
    assert asked(services) == ["GET v3/users?domain_id=corp&limit=1000", "GET v3/users?name=ops&domain_id=corp"]


def test_each_domain_has_a_list_of_users_of_its_own(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    for domain in ("corp", "default"):
        users = [{"id": domain, "name": "ops", "domain_id": domain}]
        services.get(f"{IDENTITY}/users?domain_id={domain}&limit=1000", json={"users": users})
    found = [shared.identity.list("/users", "users", name="ops", domain_id=name) for name in ("corp", "default")]
    assert [each["id"] for (each,) in found] == ["corp", "default"]


def test_projects_are_found_by_name_and_by_tag(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    rows = [
        {"id": "1", "name": "lab", "domain_id": "default", "tags": ["openstack-prep:lab", "x"]},
        {"id": "2", "name": "lab", "domain_id": "corp", "tags": []},
    ]
    services.get(f"{IDENTITY}/projects?limit=1000", json={"projects": rows})
    assert shared.identity.list("/projects", "projects", name="lab", domain_id="corp") == rows[1:]
    assert shared.identity.list("/projects", "projects", tags="openstack-prep:lab") == rows[:1]
    assert shared.identity.list("/projects", "projects", tags="openstack-prep:other") == []
    assert len(asked(services)) == 1


def test_role_assignments_are_those_of_the_project(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    rows = [
        {"scope": {"project": {"id": "red"}}, "role": {"id": "r"}, "user": {"id": "u"}},
        {"scope": {"domain": {"id": "red"}}, "role": {"id": "r"}, "user": {"id": "u"}},
        {"scope": {"system": {"all": True}}, "role": {"id": "r"}, "group": {"id": "g"}},
    ]
    listed = services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": rows})
    which: dict[str, Any] = {"scope.project.id": "red", "include_names": True}
    assert shared.identity.list("/role_assignments", "role_assignments", **which) == rows[:1]
    which |= {"user.id": "u", "effective": True}
    shared.identity.list("/role_assignments", "role_assignments", **which)
    assert [sorted(each.qs) for each in listed.request_history] == [["include_names", "limit"], sorted(which)]


def test_images_are_found_by_several_names(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    rows = [{"id": str(number), "name": name, "owner": name} for number, name in enumerate(("a", 'b","c', "d"))]
    version = {"id": "v2.17", "status": "CURRENT", "links": [{"rel": "self", "href": GLANCE}]}
    services.get(f"{ENDPOINTS['image']}/", json={"versions": [version]})
    services.get(f"{GLANCE}/images", json={"images": rows})

    def names(**which: str) -> list[str]:
        return [each["name"] for each in list_images(shared, **which)]

    assert names(name='in:"a","d","x"') == ["a", "d"]
    assert names(name='eq:b","c') == ['b","c']
    assert names(owner="d") == ["d"]
    lists = [f"GET v2/images?visibility=all&limit=1000&os_hidden={hidden}" for hidden in ("false", "true")]
    assert asked(services) == lists


# --- what the whole cloud has -----------------------------------------------------------------


def test_the_same_read_of_the_whole_cloud_is_sent_once(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    services.get(f"{NOVA}/flavors/detail", json={"flavors": [{"id": "1"}]})
    services.get(f"{IDENTITY}/roles", json={"roles": []})
    services.get(f"{NOVA}/os-keypairs", json={"keypairs": []})
    services.get(f"{NEUTRON}/quotas/p/default", json={"quota": {"network": 1}})
    for _ in range(3):
        assert shared.network.get("/quotas/p/default") == {"quota": {"network": 1}}
        assert shared.compute.list("/flavors/detail", "flavors", is_public="None") == [{"id": "1"}]
        assert shared.identity.list("/roles", "roles") == []
        shared.compute.list("/os-keypairs", "keypairs", user_id="u")
    assert sorted(asked(services)) == [
        "GET v2.0/quotas/p/default",
        *["GET v2.1/flavors/detail?is_public=None"],
        *["GET v2.1/os-keypairs?user_id=u"] * 3,
        "GET v3/roles",
    ]


def test_an_error_is_kept_for_nobody(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    services.get(f"{NOVA}/flavors/detail", [refused(), {"json": {"flavors": []}}])
    with pytest.raises(NotAllowed):
        shared.compute.list("/flavors/detail", "flavors", is_public="None")
    assert shared.compute.list("/flavors/detail", "flavors", is_public="None") == []


def test_what_is_written_or_read_by_its_id_is_sent(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    path = f"{NEUTRON}/security-groups/1"
    services.get(path, json={"security_group": {"id": "1"}})
    services.put(path, json={"security_group": {"id": "1"}})
    for _ in range(2):
        shared.network.get("/security-groups/1")
        shared.network.put("/security-groups/1", {"security_group": {}})
    assert len(asked(services)) == 4


def test_quotas_of_networks_come_from_one_list(services: requests_mock.Mocker, shared: SharedCloud) -> None:
    services.get(f"{NEUTRON}/quotas", json={"quotas": [{"project_id": "red", "network": 7}]})
    assert shared.known_limits("network", "red")["network"] == 7
    assert shared.known_limits("network", "blue") == {}
    assert shared.known_limits("compute", "red") == {}
    assert len(asked(services)) == 1


def test_quotas_are_read_one_by_one_by_who_may_not_list_them(
    services: requests_mock.Mocker, shared: SharedCloud
) -> None:
    services.get(f"{NEUTRON}/quotas", **refused())
    assert [shared.known_limits("network", name) for name in ("red", "blue")] == [{}, {}]
    assert len(asked(services)) == 1


# --- the users of projects ----------------------------------------------------------------------


def log_in(shared: SharedCloud, name: str, password: str = "secret") -> Cloud:
    user = shared.as_user(username=name, password=Secret(password), user_domain="Default", project_id=name)
    return user.authenticate()


@pytest.fixture
def logins(services: requests_mock.Mocker) -> Any:
    """Logins, each of which Keystone answers with a token of the project that is asked for."""

    def answer(request: Any, context: Any) -> dict[str, Any]:
        context.headers["X-Subject-Token"] = "token"
        context.status_code = 201
        scope = request.json()["auth"].get("scope", {}).get("project", {})
        return token("user", scope["id"]) if "id" in scope else token()

    return services.post(f"{IDENTITY}/auth/tokens", json=answer)


def test_a_user_logs_in_once(services: requests_mock.Mocker, shared: SharedCloud, logins: Any) -> None:
    shared.authenticate()
    red = log_in(shared, "red")
    assert log_in(shared, "red") is red
    assert log_in(shared, "blue") is not red
    assert log_in(shared, "red", "another") is not red
    assert logins.call_count == 4
    assert (red.project_id, shared.project_id) == ("red", ADMIN_PROJECT)
    assert red.name == shared.name


def test_a_user_sends_its_own_token(services: requests_mock.Mocker, shared: SharedCloud, logins: Any) -> None:
    listed = services.get(f"{IDENTITY}/users/user/application_credentials", json={"application_credentials": []})
    red = log_in(shared, "red")
    red.identity.list("/users/user/application_credentials", "application_credentials")
    shared.authenticate()
    assert red.session.auth is not shared.session.auth
    assert red.session.session is shared.session.session
    assert listed.call_count == 1


@pytest.mark.parametrize("proof", [True, False])
def test_server_groups_come_from_the_list_that_proves_to_be_of_all_projects(
    services: requests_mock.Mocker, shared: SharedCloud, logins: Any, proof: bool
) -> None:
    """Nova answers somebody who is not its administrator with the groups of their own project."""
    groups = [{"id": "1", "project_id": ADMIN_PROJECT}, *([{"id": "2", "project_id": "red"}] if proof else [])]
    own = services.get(f"{NOVA}/os-server-groups", json={"server_groups": [{"id": "2", "project_id": "red"}]})
    services.get(f"{NOVA}/os-server-groups?all_projects=True&offset=0", json={"server_groups": groups})
    end = f"{NOVA}/os-server-groups?all_projects=True&offset={len(groups)}"
    services.get(end, json={"server_groups": []})
    for _ in range(2):
        found = log_in(shared, "red").compute.list("/os-server-groups", "server_groups")
        assert [each["id"] for each in found] == ["2"]
    assert own.call_count == (0 if proof else 2)


@pytest.mark.parametrize(
    ("rows", "proof"), [([{"id": "1", "project": "red"}], True), ([{"id": "1"}], False), ([], False)]
)
def test_stacks_come_from_the_list_that_proves_to_be_of_all_projects(
    services: requests_mock.Mocker, shared: SharedCloud, logins: Any, rows: list[dict[str, str]], proof: bool
) -> None:
    heat = ENDPOINTS["orchestration"].replace(ADMIN_PROJECT, "")
    listed = services.get(f"{heat}{ADMIN_PROJECT}/stacks", json={"stacks": rows})
    own = services.get(f"{heat}red/stacks", json={"stacks": rows})
    for _ in range(2):
        assert log_in(shared, "red").orchestration.list("/stacks", "stacks") == rows
    assert (listed.call_count, own.call_count) == (1 if rows else 2, 0 if proof else 2)


@pytest.mark.parametrize("deleted", [{"id": "1", "project": "blue"}, {"id": "1"}])
def test_where_no_stack_exists_a_deleted_one_proves_it(
    services: requests_mock.Mocker, shared: SharedCloud, logins: Any, deleted: dict[str, str]
) -> None:
    heat = ENDPOINTS["orchestration"].replace(ADMIN_PROJECT, "")
    services.get(f"{heat}{ADMIN_PROJECT}/stacks", json={"stacks": []})
    services.get(f"{heat}{ADMIN_PROJECT}/stacks?show_deleted=True&limit=1", json={"stacks": [deleted]})
    own = services.get(f"{heat}red/stacks", json={"stacks": []})
    assert log_in(shared, "red").orchestration.list("/stacks", "stacks") == []
    assert own.call_count == (0 if "project" in deleted else 1)


def test_each_list_has_a_parameter_that_selects_from_it() -> None:
    for paths in WHOLE.values():
        for each in paths.values():
            assert each.by
            assert each.by.keys().isdisjoint({*each.fixed, *each.per})
