"""docs/ansible-terraform.md with real Ansible and Terraform (or OpenTofu), on the devcloud.

Terraform's provider ``external`` comes from its registry. Here its place takes a function that follows the provider's
source: internal/provider/data_source.go of hashicorp/terraform-provider-external 2.4.0.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcloud.pytest_devcloud import Devcloud, devcloud, module_tenant, pytest_runtest_teardown, tenant
from tests.doc_examples import DOCS
from tests.external.conftest import Programs
from tests.functional.conftest import Prep, prep

__all__ = ["devcloud", "module_tenant", "prep", "pytest_runtest_teardown", "tenant"]

EXAMPLES = DOCS / "examples"
BIN = Path(sys.executable).parent


@dataclass
class Shop:
    """A spec in a folder, and the programs that use it."""

    prep: Prep
    environment: dict[str, str]
    name: str

    def write(self, **network: Any) -> None:
        self.prep.write(
            {
                "name": self.name,
                "project": {"name": self.name},
                "networks": [{"name": "web", **network}],
                "subnets": [{"name": "web", "network": "web", "cidr": "10.30.0.0/24"}],
            }
        )

    def run(self, *words: str | Path, code: int = 0) -> str:
        process = subprocess.run(
            [str(word) for word in words],
            cwd=self.prep.folder,
            env=os.environ | self.environment | {"PATH": f"{BIN}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert process.returncode == code, process.stdout + process.stderr
        return process.stdout


@pytest.fixture
def shop(prep: Prep, devcloud: Devcloud) -> Shop:
    environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
    made = Shop(prep, environment, f"shop{secrets.token_hex(3)}")
    made.write()
    return made


# --- Ansible --------------------------------------------------------------------------------


@pytest.fixture
def play(shop: Shop) -> Callable[..., dict[str, str]]:
    """Run the playbook; return what Ansible says of each task, and what the failed one printed."""

    def run(*words: str, code: int = 0) -> dict[str, str]:
        variables = json.dumps({"spec": str(shop.prep.spec), "cloud": "devcloud-admin"})
        out = shop.run(BIN / "ansible-playbook", EXAMPLES / "playbook.yaml", "-e", variables, *words, code=code)
        found = re.findall(r"^TASK \[(.*?)\].*?^(changed|ok|skipping|fatal): \[localhost\](.*?)$", out, re.M | re.S)
        return {name: f"{state}{rest if state == 'fatal' else ''}" for name, state, rest in found}

    return run


def test_the_playbook_changes_what_the_plan_shows(shop: Shop, play: Callable[..., dict[str, str]]) -> None:
    apply = "Apply exactly that plan"
    checked = play("--check")
    assert (checked["Plan"], checked[apply]) == ("changed", "skipping")
    assert shop.prep.plan()["network/web"] == "create"

    assert play()[apply] == "changed"
    assert not shop.prep.changes()

    second = play()
    assert (second["Plan"], second[apply]) == ("ok", "skipping")

    shop.write(mtu=1400)
    assert play()[apply] == "changed"


def test_the_playbook_ends_with_the_error(shop: Shop, play: Callable[..., dict[str, str]]) -> None:
    shop.prep.write({"name": shop.name, "project": {"name": shop.name, "enabeld": True}})
    failed = play(code=2)["Plan"]
    assert failed.startswith("fatal")
    assert "spec.unknown-key" in failed
    shop.write()


# --- Terraform ------------------------------------------------------------------------------


def read_data_source(program: list[str], query: dict[str, str], **options: Any) -> dict[str, str]:
    """Do what the data source ``external`` does: a query on standard input, an object of texts on standard output."""
    process = subprocess.run(program, input=json.dumps(query), capture_output=True, text=True, **options)
    if process.returncode:
        raise RuntimeError(process.stderr)
    found = json.loads(process.stdout)
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in found.items()), found
    return dict(found)


@pytest.fixture
def terraform(shop: Shop, programs: Programs) -> Callable[..., str]:
    """Run Terraform, or OpenTofu, with main.tf."""
    name = "tofu" if shutil.which("tofu") else "terraform"
    path = programs.path(name)
    shutil.copy(EXAMPLES / "terraform" / "main.tf", shop.prep.folder)
    shop.environment |= {
        "TF_CLI_CONFIG_FILE": os.devnull,
        "CHECKPOINT_DISABLE": "1",
        "TF_IN_AUTOMATION": "1",
        "TF_VAR_spec": "spec.yaml",
        "TF_VAR_cloud": "devcloud-admin",
    }
    shop.run(path, "init", "-no-color")

    def run(*words: str, code: int = 0) -> str:
        return shop.run(path, *words, "-no-color", code=code)

    return run


def test_terraform_applies_when_the_spec_changes_and_destroys(shop: Shop, terraform: Callable[..., str]) -> None:
    terraform("apply", "-auto-approve")
    assert not shop.prep.changes()
    terraform("plan", "-detailed-exitcode")  # 0: nothing to do

    shop.write(mtu=1400)
    terraform("plan", "-detailed-exitcode", code=2)
    shown = terraform("apply", "-auto-approve")
    assert "~ network/web" in shown
    assert "- network/web" not in shown  # the replacement of terraform_data deletes nothing
    assert not shop.prep.changes()

    terraform("destroy", "-auto-approve")
    assert set(shop.prep.plan().values()) == {"create"}


def test_the_data_source_has_what_exists(shop: Shop) -> None:
    program = [sys.executable, str(EXAMPLES / "terraform" / "external.py")]
    options: dict[str, Any] = {"cwd": shop.prep.folder, "env": os.environ | shop.environment}
    query = {"spec": "spec.yaml", "cloud": "devcloud-admin"}
    assert read_data_source(program, query, **options) == {}
    shop.prep.apply()
    found = read_data_source(program, query, **options)
    assert set(found) == {f"project/{shop.name}", "network/web", "subnet/web", "subnet/web.cidr"}
    for kind in ("network", "subnet"):
        listed = shop.prep.openstack(kind, "show", "-c", "id", found[f"{kind}/web"])
        assert listed["id"] == found[f"{kind}/web"]
    with pytest.raises(RuntimeError, match=r"nonesuch\.yaml"):
        read_data_source(program, query | {"spec": "nonesuch.yaml"}, **options)


# --- from projects that others have made ----------------------------------------------------


def test_a_project_of_others_is_exported_adopted_and_compared(shop: Shop) -> None:
    """What docs/ansible-terraform.md says of projects that Terraform or Ansible has made: they carry no tag."""
    openstack = BIN / "openstack"
    shop.run(openstack, "project", "create", shop.name)
    shop.run(openstack, "network", "create", "--project", shop.name, "web")
    exported = shop.prep.run("export", "--project", shop.name).stdout
    shop.prep.spec.write_text(exported)
    assert shop.prep.changes() == set()
    spec = yaml.safe_load(exported)
    (network,) = spec["networks"]

    network["mtu"] = 1400
    shop.prep.write(spec)
    shop.prep.run("plan", shop.prep.spec.name, code=2)  # refused: the network is not managed by this spec
    spec["project"]["adopt"] = network["adopt"] = "permanently"
    shop.prep.write(spec)
    assert shop.prep.apply()["network/web"]["action"] == "adopt"
    assert not shop.prep.changes()
    shop.prep.destroy()
    assert shop.prep.plan()["network/web"] == "create"
