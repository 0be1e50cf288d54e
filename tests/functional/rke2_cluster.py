"""A cluster of rke2-cluster.yaml on the devcloud, whose servers run no operating system.

The tests signal in the servers' place, with what their user data tells them.
"""

from __future__ import annotations

import base64
import json
import runpy
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.rke2_rules import document_faults
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.orchestration.stack import Stack
from tests.functional.cloud_init import check_cloud_config
from tests.functional.lab import NODES, Lab

TEMPLATES = Path(__file__).parents[2] / "heat_templates"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
BASE = (*NODES, Keypair(name="key", public_key=KEY))
SECONDS = 300


@pytest.fixture
def made(project: Lab, images: tuple[str, str]) -> Iterator[Cluster]:
    """A cluster that is not applied yet; its stack is deleted, so that the project's quotas last."""
    cluster = Cluster(project, images[0])
    yield cluster
    cluster.delete()


class Cluster:
    """A cluster of three servers of rke2-cluster.yaml in a project of its own."""

    def __init__(self, lab: Lab, image: str) -> None:
        self.lab, self.image, self.name = lab, image, f"c{secrets.token_hex(3)}"
        self.project_id = lab.project_id
        self.report: Any = None

    def stack(
        self,
        template: str = str(TEMPLATES / "rke2-cluster.yaml"),
        secret_parameters: Mapping[str, Secret] | None = None,
        **parameters: Any,
    ) -> Stack:
        given = {
            **dict.fromkeys(("server_image", "agent_image"), self.image),
            **dict.fromkeys(("server_flavor", "agent_flavor"), "m1.small"),
            **dict.fromkeys(("network", "subnet"), "nodes"),
            **{"agent_count": 0, "key_name": "key", "wait_timeout": 300},
        }
        return Stack(
            name=self.name,
            template=template,
            parameters=given | parameters,
            secret_parameters=secret_parameters,
            timeout=10,
        )

    def nodes(self) -> dict[str, str]:
        """Return the ids of servers and agents by name."""
        listed = self.lab.admin.compute.servers(all_projects=True, project_id=self.project_id)
        return {each.name: each.id for each in listed if each.name.startswith(f"{self.name}-")}

    def user_data(self, server_id: str) -> dict[str, Any]:
        """Return what cloud-init would be told."""
        raw = base64.b64decode(self.lab.admin.compute.get_server(server_id).user_data).decode()
        assert raw.startswith("#cloud-config\n")
        config = dict(yaml.safe_load(raw))
        check_cloud_config(config)
        return config

    def files(self, server_id: str) -> dict[str, str]:
        """Return the content of the files that a node would have, by path: with the secrets of its volume."""
        files = {each["path"]: each["content"] for each in self.user_data(server_id)["write_files"]}
        volume = files.get("/var/lib/rke2-node/secrets-volume")
        return self._with_secrets(files, volume) if volume else files

    def _with_secrets(self, files: dict[str, str], volume_id: str) -> dict[str, str]:
        """Return files as the node's own program fills them in, with what its volume was made from."""
        user = self.lab.as_user().connection
        volume = user.block_storage.get_volume(volume_id)
        content = user.image.download_image(volume.volume_image_metadata["image_id"]).content
        with tempfile.TemporaryDirectory() as folder:
            disk, program, file = (Path(folder) / name for name in ("disk", "program.py", "file"))
            disk.write_bytes(content)
            program.write_text(files["/var/lib/rke2-node/secrets"])
            functions = runpy.run_path(str(program))
            secrets = functions["read"](str(disk))
            for path, text in files.items():
                if path.endswith(".yaml"):
                    file.write_text(text)
                    functions["fill"](str(file), secrets)
                    files |= {path: file.read_text()}
        return files

    def delete(self) -> None:
        """Delete the stack, as a tenant would without openstack-prep."""
        heat: Any = self.lab.as_user().connection.orchestration
        heat.delete_stack(self.name)
        self.report = None
        self.until(lambda: heat.find_stack(self.name) is None)

    def servers(self) -> dict[str, Any]:
        listed = self.lab.admin.compute.servers(all_projects=True, project_id=self.project_id)
        return {each.id: each for each in listed if each.name.startswith(f"{self.name}-server-")}

    def active(self) -> dict[str, Any]:
        """Return the servers in service, by index: Heat takes the port from one first, and deletes it at the end."""
        return {each.name[-1]: each for each in self.servers().values() if each.status == "ACTIVE" and each.addresses}

    def ids(self) -> dict[str, str]:
        return {number: each.id for number, each in sorted(self.active().items())}

    def is_replaced(self, number: str, before: dict[str, str]) -> bool:
        return self.ids().get(number) not in (None, before[number])

    def until(self, reached: Callable[[], Any]) -> None:
        deadline = time.monotonic() + SECONDS
        while not reached():
            assert self.report is None, self.report
            assert time.monotonic() < deadline, self.servers()
            time.sleep(0.5)  # less than a server is away

    @contextmanager
    def applied(self, stack: Stack, **options: Any) -> Iterator[threading.Thread]:
        """Apply beside the block; it must be complete soon after its end."""

        self.report = None

        def run() -> None:
            self.report = self.lab.run(*BASE, stack, **options)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield thread
        finally:
            thread.join(SECONDS)
            assert not thread.is_alive()

    def signal(self, server: Any, status: str = "SUCCESS", name: str = "") -> None:
        """Say what the server would say of itself."""
        handle = json.loads(self.files(server.id)["/var/lib/rke2-node/handle"])
        who = {"id": handle["user_id"], "password": handle["password"]}
        identity = {"methods": ["password"], "password": {"user": who}}
        body = {"auth": {"identity": identity, "scope": {"project": {"id": handle["project_id"]}}}}
        keystone = handle["auth_url"].rstrip("/").removesuffix("/v3")
        token = requests.post(f"{keystone}/v3/auth/tokens", json=body, timeout=30)
        token.raise_for_status()
        flavor = self.lab.admin.compute.get_server(server.id).metadata["node_flavor"]
        said = {"id": name or f"{server.id}/{flavor}", "status": status, "reason": f"{server.name} says so"}
        headers = {"X-Auth-Token": token.headers["X-Subject-Token"]}
        requests.post(handle["alarm_url"], json=said, headers=headers, timeout=30).raise_for_status()


MANIFESTS = "/var/lib/rancher/rke2/server/manifests"


def files_of(made: Cluster, role: str) -> dict[str, str]:
    return made.files(made.nodes()[f"{made.name}-{role}-0"])


def checked_config(files: dict[str, str], role: str) -> dict[str, Any]:
    """Return config.yaml, in which `rke check --rke2` finds nothing."""
    config: dict[str, Any] = yaml.safe_load(files["/etc/rancher/rke2/config.yaml"])
    assert list(document_faults(config, load_schema(role))) == []
    return config


def stack_values(made: Cluster) -> Any:
    """Return what Heat shows of a stack: parameters and outputs."""
    heat: Any = made.lab.as_user().connection.orchestration
    found = heat.find_stack(made.name)
    return heat.get(f"/stacks/{made.name}/{found.id}").json()["stack"]


def manifests(files: dict[str, str], name: str) -> list[Any]:
    return list(yaml.safe_load_all(files[f"{MANIFESTS}/{name}"]))


def volumes(made: Cluster) -> dict[str, Any]:
    listed = made.lab.admin.block_storage.volumes(all_projects=True, project_id=made.project_id)
    return {each.name: each for each in listed if each.name.startswith(made.name)}


def attached_to(volume: Any) -> list[str]:
    return [each["server_id"] for each in volume.attachments]


def check_script(text: str) -> None:
    """Insist that a shell would read it."""
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)
