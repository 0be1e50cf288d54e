"""What cleanup takes away of clusters that the stand-in made, on real services; and what it leaves."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests import standin
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.test_verify import float_ip

DEV, DEV2 = "dev-x7k2p", "dev-x7k2p-web-q9m4t"
"""The name of the second begins with the infraID of the first."""


def inventory(connection: Any) -> set[str]:
    """Return all that a project holds, by kind, name and id."""
    network, compute, project = connection.network, connection.compute, connection.current_project_id
    lists = {
        "server": compute.servers(),
        "server group": compute.server_groups(),
        "volume": connection.block_storage.volumes(),
        "image": connection.image.images(owner=project),
        "container": connection.object_store.containers(),
    }
    for plural in ("ips", "ports", "routers", "subnets", "networks", "security_groups"):
        lists[plural] = getattr(network, plural)(project_id=project)
    return {f"{kind} {each.name} {each.id}" for kind, listed in lists.items() for each in listed}


@pytest.fixture
def here(tenant: Tenant, prep: Prep) -> Prep:
    """The command, as the tenant."""
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    return prep


@pytest.mark.parametrize("era", ["capi", "terraform"])
def test_all_of_one_cluster_and_nothing_of_another(
    era: Literal["capi", "terraform"], tenant: Tenant, here: Prep
) -> None:
    connection = tenant.connect()
    api, ingress = float_ip(connection), float_ip(connection)
    standin.make(connection, DEV2, servers=False, masters=1, workers=0)
    before = inventory(connection)
    standin.make(connection, DEV, era=era, bootstrap=True, api_floating_ip=api, masters=1, workers=1)
    here.run("post-ipi", "--infra-id", DEV, "--ingress-ip", ingress, "--yes")
    plan = here.run("cleanup", "--infra-id", DEV, "--plan").stdout
    print(plan)
    said = here.run("cleanup", "--infra-id", DEV, "--yes").stdout
    print(said)
    assert inventory(connection) == before
    assert {(each.port_id, each.description) for each in connection.network.ips()} == {(None, "")}
    assert here.run("cleanup", "--infra-id", DEV, "--yes").stdout.startswith(f"nothing of {DEV} in project")
