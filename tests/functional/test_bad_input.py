"""Bad input and refusals: one clear error, exit code 2 or 1, nothing changed, no traceback."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep


@pytest.fixture
def name() -> str:
    return f"b{secrets.token_hex(3)}"


def refused(prep: Prep, spec: dict[str, Any], *, code: int = 2, before: Any = None) -> str:
    """Insist that apply refuses a spec before it changes anything, and return what it says."""
    prep.write(spec)
    said = prep.run("apply", "--yes", prep.spec.name, code=code).stderr
    assert "Traceback" not in said
    return said


@pytest.fixture(autouse=True)
def nothing_was_changed(devcloud: Devcloud, prep: Prep, name: str) -> Any:
    yield
    assert devcloud.admin.identity.find_project(f"{name}-project") is None


def test_a_role_that_does_not_exist(prep: Prep, name: str) -> None:
    spec = {
        "name": name,
        "project": {"name": f"{name}-project"},
        "role_assignments": [{"user": "admin", "role": "swiftoperater"}],
    }
    said = refused(prep, spec)
    assert "swiftoperater" in said
    assert "swiftoperator" in said
    assert f"{prep.spec.name}:" in said


def test_an_address_outside_the_subnet(prep: Prep, name: str) -> None:
    address = {"name": "api", "external_network": "external", "address": "192.168.1.1"}
    said = refused(prep, {"name": name, "project": {"name": f"{name}-project"}, "floating_ips": [address]})
    assert "192.168.1.1 is not in any subnet of external" in said


def test_an_address_of_another_project(prep: Prep, name: str, devcloud: Devcloud, tenant: Tenant) -> None:
    external = devcloud.admin.network.find_network("external")
    theirs = devcloud.admin.network.create_ip(floating_network_id=external.id, project_id=tenant.project_id)
    address = {"name": "api", "external_network": "external", "address": theirs.floating_ip_address}
    said = refused(prep, {"name": name, "project": {"name": f"{name}-project"}, "floating_ips": [address]})
    assert f"{theirs.floating_ip_address} already belongs to project " in said
    assert f"({tenant.project_id})" in said
    assert devcloud.admin.network.get_ip(theirs.id).project_id == tenant.project_id


def test_a_network_name_with_two_matches(prep: Prep, devcloud: Devcloud, tenant: Tenant, name: str) -> None:
    twins = [devcloud.admin.network.create_network(name="twin", project_id=tenant.project_id) for _ in "12"]
    said = refused(prep, {"name": name, "project": {"name": tenant.name}, "networks": [{"name": "twin", "mtu": 1400}]})
    assert all(twin.id in said for twin in twins)
    prep.spec.unlink()


def test_everything_that_is_missing_is_named_at_once(prep: Prep, name: str) -> None:
    spec = {
        "name": name,
        "project": {"name": f"{name}-project"},
        "role_assignments": [{"user": "nobody-of-that-name", "role": "member"}],
        "floating_ips": [{"name": "api", "external_network": "no-such-network"}],
        "subnets": [{"name": "s", "network": "no-such-net", "cidr": "10.0.0.0/24"}],
    }
    said = refused(prep, spec)
    assert all(each in said for each in ("nobody-of-that-name", "no-such-network", "no-such-net"))


def test_a_quota_below_what_is_used(prep: Prep, name: str, devcloud: Devcloud, tenant: Tenant) -> None:
    for number in "12":
        devcloud.admin.network.create_network(name=f"n{number}", project_id=tenant.project_id)
    said = refused(prep, {"name": name, "project": {"name": tenant.name}, "quota": {"networks": 1}})
    assert "networks: 1 is below the current usage of 2" in said
    prep.spec.unlink()


SMALL = {"name": "small", "flavors": [{"name": "small-flavor", "ram": 512, "vcpus": 1, "disk": 1}]}


def test_no_clouds_yaml(prep: Prep) -> None:
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "none.yaml"), "OS_CLOUD": "devcloud-admin"}
    prep.environment["HOME"] = str(prep.folder)
    said = refused(prep, SMALL)
    assert "devcloud-admin" in said
    assert "clouds.yaml" in said
    prep.spec.unlink()


def test_an_unknown_cloud(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SMALL)
    said = prep.run("plan", "--os-cloud", "devcloud-admim", prep.spec.name, code=2).stderr
    assert "devcloud-admim" in said
    assert str(devcloud.clouds_file) in said
    assert "devcloud-admin" in said


@pytest.fixture
def entry(prep: Prep, devcloud: Devcloud) -> dict[str, Any]:
    """The administrator's entry, to be spoilt and written."""
    return yaml.safe_load(devcloud.clouds_file.read_text())["clouds"]["devcloud-admin"]


def use(prep: Prep, entry: dict[str, Any]) -> None:
    (prep.folder / "spoilt.yaml").write_text(yaml.safe_dump({"clouds": {"spoilt": entry}}))
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "spoilt.yaml"), "OS_CLOUD": "spoilt"}


def test_a_wrong_password(prep: Prep, entry: dict[str, Any]) -> None:
    entry["auth"]["password"] = "not-the-password"
    use(prep, entry)
    said = refused(prep, SMALL, code=1)
    assert "authenticate" in said
    assert "'spoilt'" in said
    assert "not-the-password" not in said
    prep.spec.unlink()


def test_a_keystone_out_of_reach(prep: Prep, entry: dict[str, Any]) -> None:
    entry["auth"]["auth_url"] = "http://127.0.0.1:9/v3"
    use(prep, entry)
    assert "http://127.0.0.1:9/v3" in refused(prep, SMALL, code=1)
    prep.spec.unlink()


def test_a_user_without_the_right(prep: Prep, tenant: Tenant) -> None:
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    prep.write(SMALL)
    assert "flavor/small-flavor: needs the right" in prep.run("plan", prep.spec.name).stderr
    report = prep.run("apply", "--yes", prep.spec.name, code=2)
    assert "[access.missing-right]" in report.stderr
    prep.write({"name": "small", "networks": [{"name": "small", "shared": True}]})  # some clouds allow this
    report = prep.run("apply", "--yes", prep.spec.name, code=1)
    assert "warning: network/small: shared needs the right" in report.stderr
    assert "403" in report.stdout
    assert "(request req-" in report.stdout
    assert "Traceback" not in report.stderr
    prep.spec.unlink()


def test_secrets_stay_out_of_the_debug_log(prep: Prep, name: str, devcloud: Devcloud) -> None:
    prep.write(
        {
            "name": name,
            "project": {"name": f"{name}-p"},
            "users": [{"name": f"{name}-user", "password": {"env": "PREP_PASSWORD"}}],
            "role_assignments": [
                {"user": f"{name}-user", "role": "swiftoperator"},
                {"user": f"{name}-user", "role": "member"},
            ],
            "object_store": {"temp_url_key": {"env": "PREP_TEMP_URL_KEY"}},
            "clouds_yaml": [{"path": "clouds.yaml", "cloud": name, "user": f"{name}-user"}],
            "application_credentials": [{"name": "app", "clouds_yaml": "clouds.yaml", "cloud": f"{name}-app"}],
        }
    )
    shown = [prep.run("apply", "--yes", "--debug", prep.spec.name), prep.run("plan", "--debug", prep.spec.name)]
    written = yaml.safe_load((prep.folder / "clouds.yaml").read_text())["clouds"]
    application = written[f"{name}-app"]["auth"]["application_credential_secret"]
    everything = "".join(each.stdout + each.stderr for each in shown)
    assert "POST" in everything  # the log is there
    for secret in ("a-password-of-the-test", "a-key-of-the-test", application):
        assert secret not in everything
    assert (prep.folder / "clouds.yaml").stat().st_mode & 0o777 == 0o600
