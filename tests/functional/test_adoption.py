"""What exists without the ownership tag of a spec is changed by consent only, and kept by destroy."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import PlanRefused
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.verbs import api
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep
from tests.functional.lab import Lab


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


def test_what_is_taken_over_permanently_is_deleted_by_destroy(prep: Prep, devcloud: Devcloud) -> None:
    """One of each way to carry the ownership tag; the texts of their makers stay until then."""
    admin: Any = devcloud.admin
    name = f"taken{secrets.token_hex(3)}"
    network = admin.network.create_network(name=name, description="by hand", mtu=1440)
    flavor = admin.compute.create_flavor(name=name, vcpus=1, ram=64, disk=0)
    user = admin.identity.create_user(name=name, password="s3cret", description="by hand")
    project = admin.identity.create_project(name=name, tags=["theirs"])

    def spec(adopt: bool | str) -> dict[str, Any]:
        adopted = {"name": name, "adopt": adopt}
        return {
            "name": name,
            "project": adopted,
            "flavors": [adopted],
            "users": [adopted | {"password": {"env": "PREP_PASSWORD"}}],
        }

    environment = prep.environment | {"PREP_PASSWORD": "s3cret"}
    prep = Prep(prep.folder, environment)
    prep.write(spec(True))
    assert set(prep.plan().values()) == {"keep"}
    prep.write(spec("permanently"))
    keys = {f"project/{name}", f"flavor/{name}", f"user/{name}"}
    assert prep.plan() == dict.fromkeys(keys, "adopt")
    prep.apply()
    assert prep.changes() == set()
    assert admin.identity.get_project(project).tags[0] == f"openstack-prep:{name}"
    assert admin.identity.get_user(user).description == f"by hand [openstack-prep:{name}/{name}@{project.id}]"
    prep.write({"name": f"{name}-other", "users": [{"name": name, "adopt": "permanently"}]})
    said = prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    assert f"user/{name}: is managed by spec {name}" in said
    prep.write(spec("permanently"))
    prep.destroy()
    assert admin.compute.find_flavor(flavor.id) is None
    assert admin.identity.find_user(user.id) is None
    assert admin.identity.find_project(project.id) is None

    prep.write({"name": name, "networks": [{"name": name, "mtu": 1400, "adopt": "permanently"}]})
    assert prep.apply()[f"network/{name}"]["before"] == {"mtu": 1440, "managed": False}
    assert prep.changes() == set()
    assert admin.network.get_network(network).description == f"by hand [openstack-prep:{name}/{name}]"
    prep.destroy()
    assert admin.network.find_network(network.id) is None


def test_consent_to_adopt_covers_what_the_plan_has_shown(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody creates the network after the plan: the run neither takes nor changes it."""
    monkeypatch.setattr(api, "FRESH", 1000.0)
    lab.apply()
    plan = api.plan(lab.cloud, lab.spec(Network(name="shown", mtu=1400)), adopt=True)
    found = lab.admin.network.create_network(name="shown", mtu=1440, project_id=lab.project_id)
    with lab.devcloud.faults(Fault("neutron", method="POST", path_regex="/networks", status=503)):
        report = api.apply(lab.cloud, plan)
    (failed,) = report.failed
    assert isinstance(failed.error, PlanRefused)
    assert "the plan did not show that; plan again, and apply that plan (--adopt)" in str(failed.error)
    assert lab.admin.network.get_network(found.id).mtu == 1440
    lab.admin.network.delete_network(found)


def test_what_another_spec_has_tagged_since_the_plan_is_not_taken_over(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "FRESH", 1000.0)
    lab.apply()
    admin: Any = lab.admin
    name, theirs = f"late{secrets.token_hex(3)}", "[openstack-prep:theirs/late]"
    user = admin.identity.create_user(name=name)
    flavor = admin.compute.create_flavor(name=name, vcpus=1, ram=64, disk=0)
    network = admin.network.create_network(name=name, project_id=lab.project_id)
    wanted = [kind(name=name, adopt="permanently") for kind in (User, Flavor, Network)]
    plan = api.plan(lab.cloud, lab.spec(*wanted))
    admin.identity.update_user(user, description=theirs)
    admin.compute.update_flavor(flavor, description=theirs)
    admin.network.update_network(network, description=theirs)
    failed = api.apply(lab.cloud, plan).failed
    assert {each.step.resource.kind for each in failed} == {"user", "flavor", "network"}
    assert all("is managed by spec theirs" in str(each.error) for each in failed)
    assert admin.identity.get_user(user).description == theirs
    assert admin.compute.get_flavor(flavor).description == theirs
    assert admin.network.get_network(network).description == theirs
    admin.identity.delete_user(user)
    admin.compute.delete_flavor(flavor)
    admin.network.delete_network(network)


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
    gateway = {"network_id": external.id, "external_fixed_ips": [{"ip_address": "192.168.122.179"}]}
    router = network.create_router(name="theirs", external_gateway_info=gateway)
    addresses = {"api": "192.168.122.178", "ingress": "192.168.122.179"}
    given = [{"name": name, "external_network": "external", "address": address} for name, address in addresses.items()]
    prep.write({"name": "held", "project": {"name": "held"}, "floating_ips": given})
    said = prep.run("apply", "--yes", prep.spec.name, code=2).stderr
    assert "192.168.122.178 already belongs to project admin (" in said
    assert f"192.168.122.179 already belongs to router theirs ({router.id})" in said
    network.delete_router(router)
    network.delete_ip(held)


def test_a_router_does_not_take_the_address_that_the_spec_asks_for(prep: Prep, devcloud: Devcloud) -> None:
    """Neutron has one free address besides: routers and floating IPs without an address of their own wait."""
    network = devcloud.admin.network
    narrow = network.create_network(name="narrow", is_router_external=True)
    pool = [{"start": "198.51.100.10", "end": "198.51.100.13"}]
    network.create_subnet(network_id=narrow.id, cidr="198.51.100.0/24", ip_version=4, allocation_pools=pool)
    given = {"api": "198.51.100.10", "ingress": "198.51.100.11"}
    prep.write(
        {
            "name": "narrow",
            "project": {"name": "narrow"},
            "floating_ips": [
                {"name": "any", "external_network": "narrow"},
                *({"name": name, "external_network": "narrow", "address": given[name]} for name in given),
            ],
            "routers": [{"name": "gw", "external_network": "narrow"}],
        }
    )
    try:
        outputs = {name: step["outputs"] for name, step in prep.apply().items()}
        assert {name: outputs[f"floating_ip/{name}"]["address"] for name in given} == given
        taken = {outputs["router/gw"]["gateway"], outputs["floating_ip/any"]["address"]}
        assert taken == {"198.51.100.12", "198.51.100.13"}
        assert prep.changes() == set()
    finally:
        prep.destroy()
        network.delete_network(narrow)


def test_what_another_spec_manages_is_said_of_every_kind(prep: Prep) -> None:
    name = f"whose{secrets.token_hex(3)}"
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"
    web: dict[str, Any] = {
        "name": f"{name}-web",
        "project": {"name": name},
        "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"user": name, "role": "member"}, {"user": name, "role": "swiftoperator"}],
        "flavors": [{"name": name, "ram": 512, "vcpus": 1, "disk": 1}],
        "keypairs": [{"name": "k", "public_key": key}],
        "networks": [{"name": "n"}],
        "security_groups": [{"name": "g"}],
        "images": [{"name": "i", "source": "disk.qcow2", "disk_format": "qcow2"}],
        "object_store": {"metadata": {"a": "b"}},
        "application_credentials": [{"name": "ac", "clouds_yaml": "x/clouds.yaml", "cloud": "ac"}],
        "clouds_yaml": [{"path": "x/clouds.yaml", "cloud": "own", "user": name}],
        "env_file": {"path": "x/own.env", "variables": {"A": "b"}},
    }
    prep.write(web)
    prep.apply()
    other = prep.folder / "other.yaml"
    other.write_text(yaml.safe_dump(web | {"name": f"{name}-lab"}, sort_keys=False))
    shown = prep.run("show", other.name).stdout.splitlines()
    unnamed = [line for line in shown if f"(managed by spec {name}-web)" not in line]
    assert {line.partition("/")[0] for line in unnamed} == {"role_assignment"}  # Keystone has no room for a tag there
