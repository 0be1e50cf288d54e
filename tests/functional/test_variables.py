"""One spec for two environments: saved plans, included files and variables."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from tests.functional.conftest import Prep

SPEC = """\
name: ${name}-${environment}
include: [shared/groups.yaml]
variables:
  name: {description: a name that nobody else has}
  environment: {description: dev or prod}
  cores: {default: 4}
  teams: {type: list, default: [web, data]}
  password: {secret: true}
project: {name: "${name}-${environment}"}
quota: {cores: "${cores}"}
users:
  - for_each: {team: "${teams}"}
    name: ${name}-${environment}-${team}
    password: ${password}
role_assignments:
  - for_each: {team: "${teams}"}
    user: ${name}-${environment}-${team}
    role: member
"""
GROUPS = """\
security_groups:
  - name: ${environment}
    rules: [{protocol: tcp, ports: 443}]
"""


@pytest.fixture
def shop(prep: Prep) -> Iterator[str]:
    """A spec with variables; what its two environments made is destroyed at the end."""
    name = f"shop-{secrets.token_hex(3)}"
    prep.spec.write_text(SPEC)
    (prep.folder / "shared").mkdir()
    (prep.folder / "shared/groups.yaml").write_text(GROUPS)
    (prep.folder / "prod.yaml").write_text("environment: prod\ncores: 8\npassword: {env: PREP_PASSWORD}\n")
    prep.environment |= {"OPENSTACK_PREP_VAR_NAME": name, "OPENSTACK_PREP_VAR_PASSWORD": "a-password-of-dev"}
    yield name
    for words in (["--var", "environment=dev"], ["--vars-file", "prod.yaml"]):
        prep.run("destroy", "--yes", *words, prep.spec.name)
    prep.spec.unlink()


def test_one_spec_makes_two_environments_at_once(prep: Prep, shop: str) -> None:
    prep.run("plan", "--vars-file", "prod.yaml", "-o", "prod.plan", prep.spec.name)
    saved = (prep.folder / "prod.plan").read_text()
    assert json.loads(saved)["variables"] == {"name": shop, "environment": "prod", "cores": 8}
    dev = prep.start("apply", "--yes", "--var", "environment=dev", prep.spec.name)
    secret = ("--vars-file", "prod.yaml")
    prep.run("apply", "--yes", *secret, "--plan", "prod.plan")
    out, err = dev.communicate(timeout=300)
    assert dev.returncode == 0, f"{out}\n{err}"
    quotas = {each: prep.openstack("quota", "show", f"{shop}-{each}") for each in ("dev", "prod")}
    cores = {each: next(row["Limit"] for row in rows if row["Resource"] == "cores") for each, rows in quotas.items()}
    assert cores == {"dev": 4, "prod": 8}
    for words in (["--var", "environment=dev"], secret):
        prep.run("plan", "--detailed-exitcode", *words, prep.spec.name)
    assert "a-password" not in saved


def test_an_included_file_that_changed_makes_a_saved_plan_stale(prep: Prep, shop: str) -> None:
    prep.run("plan", "--vars-file", "prod.yaml", "-o", "prod.plan", prep.spec.name)
    (prep.folder / "shared/groups.yaml").write_text(GROUPS.replace("443", "8443"))
    refused = prep.run("apply", "--yes", "--vars-file", "prod.yaml", "--plan", "prod.plan", code=2)
    assert "shared/groups.yaml" in refused.stderr
