"""Other projects offer something by the name of what a spec refers to, as any member of a project can."""

from __future__ import annotations

import json
import secrets

from openstack_prep.base.errors import NotUnique
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep


def test_an_external_network_of_some_project(prep: Prep, devcloud: Devcloud, tenant: Tenant) -> None:
    """A member shares a network as external with a project whose id it knows: administrators are not stopped."""
    name, admin, stranger = f"squat{secrets.token_hex(3)}", devcloud.admin, tenant.connect()
    victim = admin.identity.create_project(name=f"{name}-member")
    user = admin.identity.create_user(name=f"{name}-member", password=prep.environment["PREP_PASSWORD"])
    admin.identity.assign_project_role_to_user(victim, user, admin.identity.find_role("member"))
    real = admin.network.find_network("external")
    fake = stranger.network.create_network(name="external")
    stranger.network.create_subnet(network_id=fake.id, ip_version=4, cidr="10.50.0.0/24")
    stranger.network.create_rbac_policy(
        object_type="network", object_id=fake.id, action="access_as_external", target_project_id=victim.id
    )
    wanted = {"name": name, "floating_ips": [{"name": "api", "external_network": "external"}]}
    prep.write(wanted | {"project": {"name": name}})
    prep.apply()
    assert prep.changes() == set()
    (address,) = admin.network.ips(project_id=admin.identity.find_project(name).id)
    assert address.floating_network_id == real.id
    prep.destroy()

    login = {"OS_CLOUD": "", "OS_AUTH_URL": devcloud.auth_url, "OS_USERNAME": user.name, "OS_PROJECT_NAME": victim.name}
    login |= {"OS_PASSWORD": prep.environment["PREP_PASSWORD"], "OS_CLIENT_CONFIG_FILE": ""}
    member = Prep(prep.folder, login | {"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"})
    prep.write(wanted)
    refused = member.run("plan", "--format", "json", prep.spec.name, code=2).stdout
    assert all(each in refused for each in (NotUnique.code, real.id, real.project_id, fake.id, tenant.project_id))
    prep.spec.unlink()
    admin.identity.delete_user(user)
    admin.identity.delete_project(victim)


def test_a_community_image_of_some_project(prep: Prep, devcloud: Devcloud, tenant: Tenant) -> None:
    name, glance = f"squat{secrets.token_hex(3)}", devcloud.admin.image
    formats = {"disk_format": "qcow2", "container_format": "bare"}
    tenant.connect().image.create_image(name, data=qcow2(1), visibility="community", **formats)
    prep.write({"name": name, "project": {"name": name}, "images": [{"name": name}]})
    refused = json.loads(prep.run("plan", "--format", "json", prep.spec.name, code=2).stdout)
    assert [f"image/{name}" in error["where"] for error in refused["refusals"]] == [True]
    real = glance.create_image(name, data=qcow2(1), visibility="public", **formats)
    assert prep.plan()[f"image/{name}"] == "keep"
    glance.delete_image(real)
