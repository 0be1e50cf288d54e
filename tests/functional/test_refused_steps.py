"""What a service has refused is named by the next plan, until the spec changes or the step is done."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep

TOO_LARGE = 20000


@pytest.fixture
def state(prep: Prep) -> Path:
    prep.environment["XDG_STATE_HOME"] = str(prep.folder / "state")
    return prep.folder / "state" / "openstack-prep"


def spec(project: str, mtu: int, **more: Any) -> dict[str, Any]:
    networks = [{"name": "large", "mtu": mtu, **more}, {"name": "other"}]
    return {"name": project, "project": {"name": project}, "networks": networks}


def warnings(prep: Prep, *words: str) -> list[str]:
    found = json.loads(prep.run("plan", "--format", "json", *words, prep.spec.name).stdout)["warnings"]
    return [each for each in found if "was refused on" in each]


def test_the_next_plan_names_what_was_refused(prep: Prep, state: Path) -> None:
    project = f"refused-{secrets.token_hex(3)}"
    prep.write(spec(project, TOO_LARGE))
    assert warnings(prep) == []
    steps = prep.apply(code=1)
    assert {name: each["status"] for name, each in steps.items() if name.startswith("network/")} == {
        "network/large": "failed",
        "network/other": "done",
    }
    (record,) = state.glob("refused-*.json")
    assert record.stat().st_mode & 0o777 == 0o600
    kept = json.loads(record.read_text())
    assert (kept["status"], kept["resource"], kept["spec"]) == (400, f"network/large@{project}", project)
    (warning,) = warnings(prep)
    assert warning.startswith("network/large: ")
    assert kept["reason"] in warning
    assert str(record) in warning

    prep.write(spec(project, TOO_LARGE, description="another text"))  # would be sent for the first time
    assert warnings(prep) == []
    prep.write(spec(project, TOO_LARGE))
    assert warnings(prep) == [warning]
    prep.write(spec(project, 1400))
    assert warnings(prep) == []
    prep.apply()
    assert [*state.glob("refused-*.json")] == []
    assert prep.changes() == set()


def test_a_folder_that_cannot_be_written_stops_nothing(prep: Prep, state: Path) -> None:
    state.parent.write_text("a file")
    prep.write(spec(f"refused-{secrets.token_hex(3)}", TOO_LARGE))
    failed = prep.run("apply", "--yes", prep.spec.name, code=1)
    assert "network/large was refused" in failed.stderr
    assert warnings(prep) == []


def test_a_damaged_record_stops_nothing(prep: Prep, state: Path) -> None:
    prep.write(spec(f"refused-{secrets.token_hex(3)}", TOO_LARGE))
    prep.apply(code=1)
    (record,) = state.glob("refused-*.json")
    record.write_text('{"refused": ')
    assert warnings(prep) == []
    prep.apply(code=1)
    assert len(warnings(prep)) == 1


def test_somebody_else_was_refused_nothing(prep: Prep, state: Path, tenant: Tenant) -> None:
    prep.write({"name": tenant.name, "networks": [{"name": "n", "mtu": TOO_LARGE}]})
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    prep.apply(code=1)
    assert len(warnings(prep)) == 1
    assert warnings(prep, "--os-cloud", "devcloud-admin") == []
    prep.spec.unlink()  # nothing was created, and the tenant is deleted first
