"""What exists without the ownership tag of a spec is changed by consent only, and kept by destroy."""

from __future__ import annotations

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep


def test_a_foreign_network_is_adopted_by_consent_and_kept(prep: Prep, devcloud: Devcloud) -> None:
    network = devcloud.admin.network
    found = network.create_network(name="adopted", mtu=1440)
    prep.write({"name": "adopt", "networks": [{"name": "adopted", "mtu": 1400}]})
    assert prep.plan(code=2) == {"network/adopted": "adopt"}
    prep.run("apply", "--yes", prep.spec.name, code=2)
    assert network.get_network(found.id).mtu == 1440
    step = prep.apply("--adopt")["network/adopted"]
    assert (step["action"], step["before"]) == ("adopt", {"mtu": 1440})
    assert network.get_network(found.id).mtu == 1400
    assert prep.changes() == set()
    assert "not managed by this spec" in prep.run("show", prep.spec.name).stdout
    prep.destroy()
    assert network.find_network(found.id) is not None

    prep.write({"name": "adopt", "networks": [{"name": "adopted", "mtu": 1300, "adopt": True}]})
    prep.apply()
    assert network.get_network(found.id).mtu == 1300
    network.delete_network(found)


def test_a_floating_ip_is_known_by_its_tag_when_its_description_was_edited(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(
        {
            "name": "labels",
            "project": {"name": "labels"},
            "floating_ips": [
                {"name": "api", "external_network": "external"},
                {"name": "ingress", "external_network": "external", "address": "192.168.122.177"},
            ],
            "users": [{"name": "labels", "password": {"env": "PREP_PASSWORD"}}],
            "role_assignments": [{"user": "labels", "role": "member"}],
        }
    )
    done = prep.apply()
    network = devcloud.admin.network
    project = devcloud.admin.identity.find_project("labels", ignore_missing=False)
    for each in network.ips(project_id=project.id):
        network.update_ip(each, description="edited in Horizon")
    assert prep.changes() == set()
    assert {each.id for each in network.ips(project_id=project.id)} == {
        done["floating_ip/api"]["id"],
        done["floating_ip/ingress"]["id"],
    }
    prep.destroy()
    assert list(network.ips(project_id=project.id)) == []


def test_an_address_of_somebody_else_is_refused_with_the_holder(prep: Prep, devcloud: Devcloud) -> None:
    network = devcloud.admin.network
    external = network.find_network("external", ignore_missing=False)
    held = network.create_ip(floating_network_id=external.id, floating_ip_address="192.168.122.178")
    prep.write(
        {
            "name": "held",
            "project": {"name": "held"},
            "floating_ips": [{"name": "api", "external_network": "external", "address": "192.168.122.178"}],
        }
    )
    said = prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    assert "192.168.122.178 belongs to project admin (" in said
    network.delete_ip(held)
