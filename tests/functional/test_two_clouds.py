"""The administrator and the project's own user, each from its own entry of clouds.yaml."""

from __future__ import annotations

import secrets

from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep


def test_the_spec_names_both_entries(devcloud: Devcloud, tenant: Tenant, prep: Prep) -> None:
    """No user in the spec: the tenant's entry does the project's work, whatever OS_CLOUD says."""
    name = f"t{secrets.token_hex(3)}"
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": "no-such-entry"}
    prep.write(
        {
            "name": name,
            "clouds": {"admin": "devcloud-admin", "tenant": tenant.cloud},
            "project": {"name": tenant.name},
            "quota": {"networks": 7},
            "flavors": [{"name": name, "ram": 512, "vcpus": 1, "disk": 1}],
            "networks": [{"name": "nodes"}],
            "server_groups": [{"name": "masters", "policy": "anti-affinity"}],
            "floating_ips": [{"name": "any", "external_network": "external"}],
        }
    )
    mark = devcloud.mark()
    prep.apply()
    logins = [each for each in devcloud.requests_since(mark) if each.path.endswith("/auth/tokens")]
    assert len(logins) == 2, "each identity logs in once"
    (group,) = tenant.connect().compute.server_groups()
    assert group.user_id == tenant.user_id
    assert prep.changes() == set()
    prep.destroy()
    # neither the project nor its quota and server group carry our mark
    assert devcloud.admin.identity.find_project(tenant.name) is not None
    assert devcloud.admin.compute.get_quota_set(tenant.project_id) is not None
    assert not list(devcloud.admin.network.networks(project_id=tenant.project_id))


def test_a_tenant_without_an_administrator(tenant: Tenant, prep: Prep) -> None:
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    prep.write(
        {
            "name": "own",
            "networks": [{"name": "nodes"}],
            "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.0.0.0/24"}],
            "routers": [{"name": "out", "external_network": "external", "interfaces": ["nodes"]}],
            "security_groups": [{"name": "ssh", "rules": [{"protocol": "tcp", "ports": 22}]}],
            "keypairs": [{"name": "me", "public_key": PUBLIC_KEY}],
            "images": [{"name": "disk", "source": "disk.qcow2"}],
            "floating_ips": [{"name": "any", "external_network": "external"}],
            "object_store": {"temp_url_key": {"env": "PREP_TEMP_URL_KEY"}},
        }
    )
    report = prep.apply()
    assert {step["status"] for step in report.values()} == {"done"}
    assert prep.changes() == set()
    prep.destroy()
    connection = tenant.connect()
    assert not list(connection.network.networks(project_id=tenant.project_id))
    assert not list(connection.network.ips(project_id=tenant.project_id))
    assert not list(connection.compute.keypairs())


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
