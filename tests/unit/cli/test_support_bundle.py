"""``support-bundle``: one file, whatever works and whatever does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.cli.main import main
from openstack_prep.reports import last_run
from tests.unit.conftest import IDENTITY, failure
from tests.unit.openshift.install_config.parsable import CERTIFICATE

SPEC = """\
name: lab
clouds: {admin: lab}
variables: {size: {default: 25}, word: {secret: true}}
flavors:
  - {name: master, vcpus: 4, ram: 16GiB, disk: "${size}", description: "like admin-password, or correct-horse"}
object_store: {temp_url_key: "${word}"}
"""

SHIPPED = sorted((Path(__file__).parents[3] / "install_configs").glob("*.yaml"))
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
URL = "http://me:url%21word@keystone/v3"

pytestmark = pytest.mark.usefixtures("clouds_yaml", "flavors")
Bundle = Callable[..., dict[str, Any]]


@pytest.fixture
def bundle(tmp_path: Path, empty_cloud: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    monkeypatch.setenv("OPENSTACK_PREP_REQUEST_LOG", "on")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENSTACK_PREP_VAR_WORD", "correct-horse")
    (tmp_path / "spec.yaml").write_text(SPEC)
    empty_cloud.head("http://swift/v1/AUTH_admin-project/", status_code=204)

    def write(*words: str) -> dict[str, Any]:
        (tmp_path / "bundle.yaml").unlink(missing_ok=True)
        assert main(["support-bundle", "--output", "bundle.yaml", *words]) == 0
        text = (tmp_path / "bundle.yaml").read_text()
        assert "correct-horse" not in text
        assert "admin-password" not in text
        assert str(tmp_path) not in text
        found = yaml.safe_load(text)
        assert isinstance(found, dict)
        return found

    return write


def test_it_holds_the_spec_its_plan_and_the_last_run(bundle: Bundle, tmp_path: Path) -> None:
    main(["plan", "spec.yaml", "--var", "size=30"])
    found = bundle("spec.yaml", "--var", "size=30")
    assert found.keys() == {"versions", "last_run", "spec", "cloud", "plan"}
    assert found["last_run"]["command"] == "plan"
    assert any("GET compute/flavors/detail: 200" in each for each in found["last_run"]["requests"])
    flavor = found["spec"]["resources"]["flavor/master"]
    assert (flavor["disk"], flavor["description"]) == (30, "like ********, or ********")
    assert found["spec"]["variables"] == {"size": 30}
    assert found["plan"]["steps"][0]["resource"] == "flavor/master"
    assert found["cloud"]["auth_url"] == IDENTITY
    assert "openstacksdk" in found["versions"]["packages"]
    assert "OPENSTACK_PREP_VAR_WORD" in found["versions"]["environment"]
    assert (tmp_path / "bundle.yaml").stat().st_mode & 0o777 == 0o600


def test_the_last_run_is_not_its_own(bundle: Bundle) -> None:
    main(["plan", "spec.yaml"])
    before = bundle("spec.yaml")["last_run"]
    assert bundle()["last_run"] == before


def test_a_run_with_failed_steps_has_its_exit_code(bundle: Bundle, services: requests_mock.Mocker) -> None:
    services.post("http://nova/v2.1/flavors", **failure(409))
    assert main(["apply", "--yes", "spec.yaml"]) == 1
    found = bundle("--offline")["last_run"]
    assert (found["exit_code"], "error" in found) == (1, False)
    assert main(["show", "spec.yaml"]) == 0
    assert bundle("--offline")["last_failed_run"] == found
    services.get("http://nova/v2.1/flavors/detail", **failure(403))
    assert main(["plan", "spec.yaml"]) == 1
    found = bundle("--offline")["last_run"]
    assert (found["exit_code"], found["error"]) == (1, "NotAllowed")


def test_it_is_written_whatever_fails(
    bundle: Bundle, services: requests_mock.Mocker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "unknown" in bundle("--offline")["last_run"]
    services.get("http://nova/v2.1/flavors/detail", **failure(403))
    assert bundle("spec.yaml")["plan"]["errors"][0]["code"] == "access.denied"
    assert "warning: plan: " in capsys.readouterr().err
    services.post(f"{IDENTITY}/auth/tokens", **failure(401))
    found = bundle("spec.yaml")
    assert (found["cloud"]["errors"][0]["code"], "plan" in found) == ("access.denied", False)
    (tmp_path / "spec.yaml").write_text("name: lab\nfoo: bar\n")
    assert bundle("spec.yaml", "--offline")["spec"]["errors"][0]["code"] == "spec.unknown-key"


def test_an_internal_error_is_a_reason_for_a_bundle(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("forced")

    monkeypatch.setattr("openstack_prep.core.planner.plan_apply", crash)
    plan = bundle("spec.yaml")["plan"]
    assert plan["errors"][0]["code"] == "error.internal"
    assert plan["lines"][-1].endswith(" crash")


def test_logins_in_urls_and_the_secrets_of_the_tenant_are_hidden(
    bundle: Bundle, clouds_yaml: Path, services: requests_mock.Mocker, tmp_path: Path
) -> None:
    clouds = yaml.safe_load(clouds_yaml.read_text())
    lab = clouds["clouds"]["lab"]
    for name, change in {"lab": {"auth_url": URL}, "theirs": {"password": "tenant-word"}}.items():
        clouds["clouds"][name] = lab | {"auth": lab["auth"] | change}
    clouds_yaml.write_text(yaml.safe_dump(clouds))
    text = SPEC.replace("admin: lab", "admin: lab, tenant: theirs").replace("master, v", "tenant-word, v")
    services.register_uri(requests_mock.ANY, re.compile("//me:"), **failure(401))
    (tmp_path / "spec.yaml").write_text(text.replace("like ", "see https://url!word@mirror/x of url!word, "))
    for words in (("--offline",), ()):
        found = bundle("spec.yaml", *words)
        written = (tmp_path / "bundle.yaml").read_text()
        assert not [each for each in ("tenant-word", "url%21word") if each in written]
        assert "see https://...mirror/x of " in written
    assert "holds a login" in found["cloud"]["errors"][0]["what"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_spec(path: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    for key in (".ssh/id_ed25519.pub", "id_ed25519.pub"):
        (tmp_path / key).write_text(f"{KEY}\n")
    (tmp_path / "mirror-ca.pem").write_text(CERTIFICATE)
    (tmp_path / "spec.yaml").write_text(path.read_text())
    found = bundle("--offline", "spec.yaml")["spec"]
    assert "errors" not in found
    pairs = [each for key, each in found["resources"].items() if key.startswith("address_pairs/")]
    assert all(each["addresses"] or each["pools"] for each in pairs)


def test_a_spec_that_cannot_be_described(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("forced")

    monkeypatch.setattr("openstack_prep.reports.support.fields_of_new", crash)
    assert bundle("--offline", "spec.yaml")["spec"]["errors"][0]["code"] == "error.internal"
    assert "warning: spec: " in capsys.readouterr().err


def test_without_an_installation_there_are_no_packages(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", fail)
    assert bundle("--offline")["versions"]["packages"] == {}


def test_an_existing_file_is_kept(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    assert main(["support-bundle", "--offline", "--output", "mine"]) == 2
    assert (tmp_path / "mine").read_text() == "text"


@pytest.mark.parametrize("link", [False, True])
def test_what_appears_while_it_works_is_kept(
    link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / ("other" if link else "mine")

    def read() -> dict[str, Any]:
        other.write_text("text")
        if link:
            (tmp_path / "mine").symlink_to(other)
        return {}

    monkeypatch.setattr(last_run, "read", read)
    assert main(["support-bundle", "--offline", "--output", "mine"]) == 2
    assert other.read_text() == "text"
    assert "mine exists" in capsys.readouterr().err


def test_logins_and_signatures_in_values_of_variables_are_hidden(bundle: Bundle, tmp_path: Path) -> None:
    text = SPEC.replace("variables: {", "variables: {url: {}, ").replace("like admin-password", "like ${url}")
    (tmp_path / "spec.yaml").write_text(text)
    found = bundle("spec.yaml", "--offline", "--var", "url=http://joe:PW@h/x?sig=SIG")
    assert found["spec"]["variables"] == {"url": "http://...h/x?********"}
    assert not re.search("joe|PW|SIG", str(found))


def test_variables_that_are_parts_of_a_password_are_hidden(bundle: Bundle, tmp_path: Path) -> None:
    text = SPEC.replace("variables: {", "variables: {pw: {}, ").replace('"${word}"', '"key-${pw}", project: p')
    (tmp_path / "spec.yaml").write_text(text.replace(", word: {secret: true}", "").replace(", or correct-horse", ""))
    found = bundle("spec.yaml", "--offline", "--var", "pw=A-PART-OF-IT")
    assert found["spec"]["variables"].keys() == {"pw"}
    assert "A-PART-OF-IT" not in str(found)
