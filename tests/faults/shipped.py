"""The shipped specs as somebody has them who has the files that they read, and runs of the command on them."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

import openstack_prep
from tests.devcloud.qcow2 import qcow2
from tests.races.stopped import Stop, watch

SPECS = (
    "minimal",
    "exposures-external-ip",
    "exposures-metallb",
    "exposures-openshift",
    "openshift-4.2-lab",
    "openshift-byo-network",
    "openshift-compact",
    "openshift-current",
    "openshift-dual-stack",
    "openshift-lab",
    "openshift-mirror",
    "rke-mesh",
    "rke2",
    "rke2-mesh",
)
"""Not exposures-service-host and -virtual-machines, which ask nothing of a cloud; nor rke-project and openshift-zones,
which want a project and volume types that exist."""
BIG = ("openshift-dual-stack", "rke2-mesh", "rke-mesh")
KINDS = "kinds"
"""A spec of this folder with nearly every kind."""
DESTROYED = ("minimal", "openshift-lab", KINDS)
"""Specs to destroy right after a kill."""

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
SECOND_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGWlDUMZdYgGmeLUyBwFkMpHMfcJUS8rVCJuOSo4PMKv engineer@example"
PULL_SECRET = "cHVsbDptYXJrZXItb2YtdGhlLXB1bGwtc2VjcmV0"
DATA = Path(__file__).parent / "data"
CERTIFICATE = DATA / "ca.pem"
SECONDS = 400
KILLED = -signal.SIGKILL


@dataclass
class Ended:
    """How one run of the command ended; no code: it did not, and was killed."""

    words: tuple[str, ...]
    code: int | None
    said: str
    seconds: float
    requests: int


@dataclass
class Folder:
    """A folder with a shipped spec, and a HOME."""

    path: Path
    environment: Mapping[str, str]
    runs: list[Ended] = field(default_factory=list)

    def run(self, *words: str, stop: Stop | None = None) -> Ended:
        """Run ``openstack-prep WORDS spec.yaml`` in a fork of this process, which has imported it already."""
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as notes:
            log, counted = Path(notes) / "log", Path(notes) / "counted"
            child = os.fork()
            if not child:
                self._become((*words, "spec.yaml"), log, counted, stop)
            code = _wait(child)
            requests = int(counted.read_text() or 0) if counted.exists() else 0
            said = log.read_text(errors="replace")
        self.runs.append(Ended(words, code, said, time.monotonic() - started, requests))
        return self.runs[-1]

    def _become(self, words: tuple[str, ...], log: Path, counted: Path, stop: Stop | None) -> None:
        """Be the command; does not return."""
        code = 1
        try:
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for number in (1, 2):
                os.dup2(out, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            os.chdir(self.path)
            os.environ |= {**self.environment, "HOME": str(self.path)}
            watch(stop, counted)
            from openstack_prep.cli.main import main

            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:  # noqa: BLE001 - as the interpreter would
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def secrets(self) -> set[str]:
        """Return the secrets that lie in the folder by now."""
        found = {PULL_SECRET}
        spec = yaml.safe_load((self.path / "spec.yaml").read_text())
        named = [user.get("password", {}) for user in spec.get("users", ())]
        named.append(spec.get("object_store", {}).get("temp_url_key", {}))
        for path in (self.path / each["generate"] for each in named if "generate" in each):
            found |= {path.read_text().strip()} if path.exists() else set()
        for path in self.path.glob("**/clouds.yaml"):
            for cloud in (yaml.safe_load(path.read_text()) or {}).get("clouds", {}).values():
                auth = cloud.get("auth", {})
                found |= {auth[each] for each in ("password", "application_credential_secret") if each in auth}
        return {each for each in found if each}


def preload() -> None:
    """Import what runs need, so that each of them costs a fork; what is edited meanwhile has no effect."""
    import keystoneauth1.identity.v3
    import openstack.connection

    assert keystoneauth1, openstack
    for each in pkgutil.walk_packages(openstack_prep.__path__, "openstack_prep."):
        if not each.name.endswith("__main__"):
            importlib.import_module(each.name)


def _wait(child: int) -> int | None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            return os.waitstatus_to_exitcode(ended[1])
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def make(path: Path, name: str, environment: Mapping[str, str]) -> Folder:
    """Write a shipped spec with small stacks, whose servers report nothing, and the files that it reads."""
    specs = DATA if name == KINDS else resources.files("openstack_prep.install_configs")
    spec: dict[str, Any] = yaml.safe_load((specs / f"{name}.yaml").read_text())
    for image in spec.get("images", ()):
        image["source"] = "disk.qcow2"
    for stack in spec.get("stacks", ()):
        stack["parameters"] |= {"wait_timeout": 0} | _small(stack["template"])
    (path / ".ssh").mkdir(parents=True)
    for key in (path / ".ssh/id_ed25519.pub", path / "id_ed25519.pub"):
        key.write_text(f"{KEY}\n")
    (path / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    (path / "disk.qcow2").write_bytes(qcow2(1))
    auths = {host: {"auth": PULL_SECRET} for host in ("quay.io", "mirror.example.com:5000")}
    (path / "pull-secret.json").write_text(json.dumps({"auths": auths}))
    (path / "mirror-ca.pem").write_bytes(CERTIFICATE.read_bytes())
    return Folder(path, environment)


def change(there: Folder) -> None:
    """Change what an apply replaces, deletes or creates under a temporary name."""
    spec = yaml.safe_load((there.path / "spec.yaml").read_text())
    content = qcow2(2)
    (there.path / "disk.qcow2").write_bytes(content)
    for image in spec.get("images", ()):
        image["checksum"] = f"sha256:{hashlib.sha256(content).hexdigest()}"
    for flavor in spec.get("flavors", ()):
        flavor["ram"] = "2GiB"
    for pair in spec.get("keypairs", ()):
        pair["public_key"] = SECOND_KEY
    for user in spec.get("users", ()):
        user["password"] = {"generate": f"{user['name']}-second.password"}
    for credential in spec.get("application_credentials", ()):
        credential["roles"] = ["member"]
    for group in spec.get("security_groups", ()):
        group["rules"] = [*group["rules"][1:], {"protocol": "udp", "ports": 53, "remote_group": "self"}]
    for pool in spec.get("address_pools", ()):
        pool["addresses"] = ["10.1.0.241-10.1.0.243" if pool.get("reserve") == "ports" else "10.1.0.216/29"]
    (there.path / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))


def _small(template: str) -> dict[str, int]:
    return {"server_count": 1, "agent_count": 1} if "rke2" in template else {"node_count": 2}
