"""A project with one user per set of roles, and what the commands of the table are about."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.cloud.lease import Description, Entry, digest
from tests import standin
from tests.devcloud import clouds_file, tenant
from tests.devcloud.pytest_devcloud import Devcloud, devcloud, pytest_runtest_teardown
from tests.devcloud.qcow2 import qcow2
from tests.faults.inventory import Cloud, Thing
from tests.functional.cluster import make_cluster
from tests.functional.conftest import Prep
from tests.rights.table import ADMIN, CLUSTER, KEY, LESSER, MEMBER, NOBODY

__all__ = ["devcloud", "pytest_runtest_teardown"]

INFRA_ID = CLUSTER.split()[-1]
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": "x"}}},
}
BASE: dict[str, Any] = {
    "name": "rights",
    "networks": [{"name": "nodes"}],
    "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.1.0.0/24"}],
    "security_groups": [{"name": "nodes"}],
    "ports": [{"name": "node", "network": "nodes", "security_groups": ["nodes"]}],
    "images": [{"name": "disk", "source": "disk.qcow2", "disk_format": "qcow2"}],
    "address_pools": [{"name": "lb", "subnet": "nodes", "addresses": ["10.1.0.100-10.1.0.103"]}],
    "exposures": [
        {
            "name": "shop",
            "cluster": "a",
            "target": {"service": "shop/frontend"},
            "ports": [{"port": 443}],
            "how": "metallb",
            "pool": "lb",
        }
    ],
}
NODES = {"image": "disk", "flavor": "m1.small", "key_name": "rights", "network": "nodes", "wait_timeout": 0}
NODE = {"template": "shipped:rke-cluster.yaml", "parameters": NODES | {"node_count": 1}}
CILIUM = {"mesh_service": "NodePort", "mesh_address": "10.1.0.50"}
MESH = {
    "name": "mesh",
    "stacks": [{"name": "cluster"} | NODE, {"name": "second"} | NODE],
    "rke_clusters": [
        {"name": "cluster", "stack": "cluster", "directory": "cluster", "cilium": CILIUM | {"cluster_id": 1}},
        {
            "name": "second",
            "stack": "second",
            "directory": "second",
            "cilium": CILIUM | {"cluster_id": 2, "mesh_address": "10.1.0.51"},
        }
        | {"cluster_cidr": "10.44.0.0/16", "service_cidr": "10.45.0.0/16"},
    ],
}
CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "baseDomain": "example.com",
    "metadata": {"name": "demo"},
    "compute": [{"name": "worker", "replicas": 1}],
    "pullSecret": '{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}',
}

OCP: dict[str, Any] = {
    "name": "ocp",
    "networks": [{"name": "ocp"}],
    "install_config": {
        "path": "prepared/install-config.yaml",
        "release": "4.20",
        "cluster_name": "ocp",
        "base_domain": "example.com",
        "pull_secret_file": "pull-secret.json",
        "ssh_key_file": "id_ed25519.pub",
        "external_network": "external",
        "machines": {"flavor": "m1.small"},
    },
}


def entry_of(roles: tuple[str, ...]) -> str:
    """Return the name of the user, and of the entry of clouds.yaml, with exactly these roles."""
    return "-".join(roles) or "nobody"


@dataclass
class Site:
    """The project, and the command as each of its users."""

    devcloud: Devcloud
    folder: Path
    name: str
    project_id: str

    def run(self, line: str, roles: tuple[str, ...], codes: tuple[int, ...]) -> str:
        """Run a command as the user with these roles, and insist on its exit code; return what it printed."""
        home = self.folder / "homes" / entry_of(roles)
        home.mkdir(parents=True, exist_ok=True)
        who = {"OS_CLIENT_CONFIG_FILE": str(self.folder / "clouds.yaml"), "OS_CLOUD": entry_of(roles)}
        process = Prep(self.folder, who | {"HOME": str(home)}).start(*line.split())
        out, err = process.communicate(timeout=300)
        assert process.returncode in codes, f"{line} as {entry_of(roles)}: {process.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        return out + err

    def state(self) -> tuple[dict[str, Thing], dict[str, Any]]:
        """Return what is in the cloud, and what may change of it."""
        network: Any = self.devcloud.admin.network
        changing = {each.id: (each.allowed_address_pairs, each.tags) for each in network.ports()}
        changing |= {each.id: each.description for each in network.security_groups()}
        return Cloud(self.devcloud.layout).inventory(), changing

    def write(self, name: str, spec: dict[str, Any]) -> None:
        (self.folder / name).write_text(yaml.safe_dump(spec, sort_keys=False))

    def hold(self) -> None:
        """Let a run that is not alive hold the lease of the spec ``held``."""
        network: Any = self.devcloud.admin.network
        (group,) = network.security_groups(project_id=self.project_id, name="default")
        holder = Entry(spec=digest("held"), run="abcd", beat=1, who="ci@elsewhere")
        text = Description.read(group.description).holding(holder).write()
        network.update_security_group(group, description=text)

    def choose(self, roles: tuple[str, ...]) -> None:
        """Let the install-configs name the entry of a user; what an installer left for another one goes."""
        platform = {"cloud": entry_of(roles), "externalNetwork": "external"}
        platform["defaultMachinePlatform"] = {"type": "m1.small"}  # type: ignore[assignment]
        for folder in ("ocp", "ipi"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
            (self.folder / folder).mkdir()
            self.write(f"{folder}/install-config.yaml", CONFIG | {"platform": {"openstack": platform}})
        self.write("ocp.yaml", OCP | {"install_config": OCP["install_config"] | {"cloud": entry_of(roles)}})


def _users(devcloud: Devcloud, name: str, project: Any, folder: Path) -> list[Any]:
    identity: Any = devcloud.admin.identity
    known = {role.name: role for role in identity.roles()}
    entries, made = [], []
    for roles in (NOBODY, *LESSER):
        user = identity.create_user(name=f"{name}-{entry_of(roles)}", password="of-the-test", domain_id="default")
        for role in roles:
            identity.assign_project_role_to_user(project, user, known[role])
        made.append(user)
        entries.append(clouds_file.Entry(entry_of(roles), devcloud.auth_url, user.name, "of-the-test", name))
    clouds_file.write(folder / "clouds.yaml", *entries)
    return made


def _fill(site: Site) -> None:
    """Write the files, and create what the commands look at, as a member and as the installer."""
    (site.folder / "disk.qcow2").write_bytes(qcow2(1))
    (site.folder / "id_ed25519.pub").write_text(f"{KEY}\n")
    (site.folder / "pull-secret.json").write_text(CONFIG["pullSecret"])
    (site.folder / "hosts").write_text("127.0.0.1 localhost\n")
    (site.folder / "template.yaml").write_text(yaml.safe_dump(TEMPLATE))
    metadata = {"clusterName": "dev", "clusterID": "", "infraID": INFRA_ID}
    (site.folder / "metadata.json").write_text(json.dumps(metadata))
    standin.write_program(site.folder)
    site.write("spec.yaml", BASE)
    site.write("exposed.yaml", BASE | {"exposed_clusters": [{"name": "a", "directory": "exposed"}]})
    site.write("mesh.yaml", MESH)
    site.write("more.yaml", {"name": "more", "networks": [{"name": "more"}], "security_groups": [{"name": "more"}]})
    for name, spec in (("fleet", "spec.yaml"), ("more-fleet", "more.yaml")):
        site.write(f"{name}.yaml", {"name": name, "targets": [{"name": "one", "spec": spec}]})
    site.write("held.yaml", {"name": "held"})
    credential = {"name": "app", "clouds_yaml": "app.yaml", "cloud": "app"}
    site.write("credential.yaml", {"name": "credential", "application_credentials": [credential]})
    site.choose(MEMBER)
    connection: Any = tenant.connect(site.folder / "clouds.yaml", entry_of(MEMBER))
    connection.compute.create_keypair(name="rights")
    site.run("apply --yes spec.yaml", MEMBER, (0,))
    site.run("apply --yes --target stack/cluster --target stack/second mesh.yaml", MEMBER, (0,))
    make_cluster(connection, INFRA_ID, ports=("api-port", "ingress-port", "master-0-0"))


@pytest.fixture(scope="session")
def site(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder, name = tmp_path_factory.mktemp("rights"), f"rights-{secrets.token_hex(3)}"
    identity: Any = devcloud.admin.identity
    project = identity.create_project(name=name, domain_id="default")
    users = _users(devcloud, name, project, folder)
    made = Site(devcloud, folder, name, project.id)
    _fill(made)
    yield made
    made.run("destroy --yes mesh.yaml", MEMBER, (0,))  # Heat lets only its creator delete a stack (its trust)
    owner = tenant.Tenant(name, project.id, users[0].id, "", folder / "clouds.yaml", entry_of(ADMIN))
    tenant.delete(devcloud.admin, owner)
    for user in users[1:]:
        identity.delete_user(user)
