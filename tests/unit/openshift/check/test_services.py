from __future__ import annotations

import pytest

from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.check.services import region, services
from tests.unit.conftest import ENDPOINTS, connection, token
from tests.unit.openshift.check.project import NEUTRON, NOVA, Project
from tests.unit.texts import Wording


@pytest.fixture(autouse=True)
def extensions(project: Project) -> list[dict[str, str]]:
    known = [{"alias": "standard-attr-tag"}]
    project.services.get(f"{NEUTRON}/extensions", json=lambda *_: {"extensions": known})
    return known


def newest(project: Project, version: str) -> None:
    body = {"id": "v2.1", "status": "CURRENT", "version": version, "min_version": "2.1"}
    project.services.get(NOVA, json={"version": body | {"links": [{"rel": "self", "href": NOVA}]}})


def test_all_that_is_needed_is_there(project: Project) -> None:
    assert project.found(services) == []


def test_block_storage_is_needed_without_volumes(project: Project, wording: Wording) -> None:
    project.without("block-storage")
    (found,) = project.findings(services)
    assert (found.where, found.status) == ("service block-storage", "error")
    assert found.code == "service.missing"
    wording(found.why)


def test_what_is_not_there_is_not_asked(project: Project) -> None:
    project.without("compute", "network", "image", "block-storage")
    needed = ["compute", "network", "image", "block-storage"]
    assert [each.where for each in project.findings(services)] == [f"service {each}" for each in needed]


def test_a_login_without_a_catalogue(project: Project) -> None:
    project.without("identity", *ENDPOINTS)
    (found,) = region(Cloud(connection()), None)
    assert "no catalogue" in found.what
    assert "project_name" in found.fix


def test_a_neutron_without_tags(project: Project, extensions: list[dict[str, str]], wording: Wording) -> None:
    extensions[:] = [{"alias": "tag"}]
    (said,) = project.found(services)
    wording(said)


@pytest.mark.parametrize(("release", "level"), [("4.18", "error"), ("4.16", "warning")])
def test_a_nova_of_before_rocky(project: Project, release: str, level: str, wording: Wording) -> None:
    newest(project, "2.63")
    wording(project.found(services, release=release))


@pytest.mark.parametrize(("named", "there", "found"), [("one", "one", 0), ("one", "two", 1)])
def test_the_region_is_one_of_the_catalogues(project: Project, named: str, there: str, found: int) -> None:
    project.without(region=there)
    said = list(region(Cloud(connection()), named))
    assert len(said) == found
    assert [each.fix for each in said] == ["write one of two"][:found]


def test_no_region_will_do_where_there_is_but_one(project: Project, wording: Wording) -> None:
    def anywhere() -> Cloud:
        cloud = Cloud(connection())
        cloud.connection.config.config["region_name"] = None
        return cloud

    assert list(region(anywhere(), None)) == []
    catalog = token()["token"]["catalog"]
    catalog[0]["endpoints"].append(catalog[0]["endpoints"][0] | {"id": "e2", "region": "two", "region_id": "two"})
    project.login(catalog=catalog)
    (said,) = region(anywhere(), None)
    wording(said.what)
    wording(said.fix)


@pytest.mark.parametrize("release", ["4.14", "4.20"])
def test_an_older_release_asks_for_volumev3(project: Project, release: str) -> None:
    project.without("volumev3")
    codes = [(each.code, each.where, each.status) for each in project.findings(services, release=release)]
    assert ("service.missing", "service volumev3", "error") in codes


def test_a_newer_release_takes_block_storage(project: Project) -> None:
    project.without("volumev3")
    assert not [each for each in project.findings(services, release="4.21") if each.code == "service.missing"]
