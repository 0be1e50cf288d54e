"""``import``: the spec for an install-config.yaml, as its user calls it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.cli.main import main
from openstack_prep.core.model import Context
from openstack_prep.openshift.install_config import InstallConfigValues, document, dump, read
from openstack_prep.openshift.install_config_file import InstallConfig
from openstack_prep.spec import load_spec
from tests.unit.openshift.import_cases import SHAPES, text_of

STORED = sorted((Path(__file__).parents[1] / "data" / "install_config").glob("[45].*.yaml"))


def rendered(spec: Path, **given: Any) -> str:
    """Return the install-config of a spec, as an apply writes it."""
    resources = load_spec(spec, **given).resources
    (file,) = (each for each in resources if isinstance(each, InstallConfig))
    (resolved,) = file.resolve(Context(resources=resources, cloud=None))
    assert isinstance(resolved, InstallConfig)
    return dump(document(resolved, resolved.contents()))


def assert_comes_back(path: Path, release: str, folder: Path) -> None:
    assert main(["import", str(path), "--release", release, "--output", str(folder)]) == 0
    assert main(["validate", str(folder / "spec.yaml")]) == 0
    again = folder / "again.yaml"
    again.write_text(rendered(folder / "spec.yaml"))
    cluster, contents = read(path, release)
    same, others = read(again, release)
    assert same == cluster
    for name in ("ssh_key", "additional_trust_bundle"):
        assert (getattr(others, name) or "").strip() == (getattr(contents, name) or "").strip()
    assert contents.pull_secret
    assert others.pull_secret
    assert json.loads(others.pull_secret.reveal()) == json.loads(contents.pull_secret.reveal())


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_comes_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / "install-config.yaml"
    path.write_text(text_of(name))
    assert_comes_back(path, SHAPES[name][0], tmp_path / "spec")


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_file_that_we_render_comes_back(tmp_path: Path, path: Path) -> None:
    assert_comes_back(path, path.stem.partition("-")[0], tmp_path / "spec")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with what a spec has around it, in the folder of the run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "install-config.yaml"
    path.write_text(text_of("two stacks"))
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_the_spec_has_around(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = config.read_text().replace(
        "    apiVIPs", "    apiFloatingIP: 192.0.2.9\n    clusterOSImage: rhcos\n    apiVIPs"
    )
    config.write_text(text)
    assert main(["import", "--release", "4.18", "--format", "json"]) == 0
    found = printed(capsys)
    spec = found["spec"]
    assert spec["name"] == "ocp"
    assert spec["flavors"] == [{"name": "big"}]
    assert spec["images"] == [{"name": "rhcos"}]
    assert spec["networks"] == [{"name": "machines"}]
    assert spec["subnets"] == [{"name": "v4"}, {"name": "v6"}]
    assert spec["floating_ips"] == [{"name": "api", "external_network": "public", "address": "192.0.2.9"}]
    assert spec["install_config"]["api_floating_ip"] == "api"
    assert spec["install_config"]["path"] == "ocp/install-config.yaml"
    assert found["files"] == ["pull-secret.json", "ssh-key.pub"]
    assert (found["left_out"], found["refused"]) == ([], [])


def test_secrets_stay_in_files_of_their_owner(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proxy = "proxy: {httpProxy: 'http://me:hunter2@proxy:3128', noProxy: .example.com}\n"
    config.write_text(config.read_text() + proxy)
    assert main(["import", "--release", "4.18"]) == 0
    assert main(["import", "--release", "4.18", "--output", "spec"]) == 0
    shown = capsys.readouterr().out
    spec = Path("spec/spec.yaml")
    for secret in ("hunter2", "Zm9v"):
        assert secret not in shown + spec.read_text()
    assert {stat.S_IMODE(each.stat().st_mode) for each in Path("spec").iterdir()} == {0o600}
    assert main(["validate", str(spec), "--vars-file", "spec/proxies.yaml"]) == 0
    assert "http://me:hunter2@proxy:3128" in rendered(spec, vars_files=["spec/proxies.yaml"])


@pytest.mark.parametrize(
    ("field", "url", "secrets"),
    [
        ("image", "https://mirror:s3cret@host/rhcos.gz?sig=TOKEN", ("s3cret", "TOKEN")),
        ("image", "https://host/rhcos.gz?sha256=0ff&sig=TOKEN", ("TOKEN",)),
        ("image", "mirror:s3cret@host/rhcos.gz", ("s3cret",)),
        ("image", "oci://mirror:s3cret@host/rhcos.gz?sig=TOKEN", ("s3cret", "TOKEN")),
        ("httpProxy", "http://proxy:3128/?tok=TOKEN", ("TOKEN",)),
        ("httpsProxy", "https://me:s3cret@proxy:3128", ("s3cret",)),
        ("httpProxy", "me:s3cret@proxy:3128", ("s3cret",)),
        ("httpProxy", "s3cret@proxy:3128", ("s3cret",)),
    ],
)
def test_a_url_with_a_login_or_query_is_a_variable(
    config: Path, capsys: pytest.CaptureFixture[str], field: str, url: str, secrets: tuple[str, ...]
) -> None:
    data = yaml.safe_load(config.read_text())
    if field == "image":
        data["platform"]["openstack"]["clusterOSImage"] = url
    else:
        data["proxy"] = {"httpProxy": "http://other:1", "httpsProxy": "http://other:1", field: url}
    config.write_text(yaml.safe_dump(data))
    for options in ([], ["--format", "json"], ["--output", "spec"]):
        main(["import", "--release", "4.18", *options])
    shown = "".join(capsys.readouterr()) + Path("spec/spec.yaml").read_text()
    assert [secret for secret in secrets if secret in shown] == []
    values = yaml.safe_load(Path("spec/proxies.yaml").read_text())
    assert [*values.values()] == [url]
    again = yaml.safe_load(rendered(Path("spec/spec.yaml"), vars_files=["spec/proxies.yaml"]))
    assert again["platform"] == data["platform"]
    assert again.get("proxy") == data.get("proxy")


@pytest.mark.parametrize("mirror", ["me:s3cret@mirror/a", "https://me:s3cret@mirror/a"])
def test_a_login_that_the_installer_refuses_is_not_shown(
    config: Path, capsys: pytest.CaptureFixture[str], mirror: str
) -> None:
    data = yaml.safe_load(config.read_text()) | {"imageDigestSources": [{"source": "quay.io/a", "mirrors": [mirror]}]}
    config.write_text(yaml.safe_dump(data))
    for options in ([], ["--format", "json"], ["--output", "spec"]):
        assert main(["import", "--release", "4.18", *options]) == 1
    shown = "".join(capsys.readouterr()) + Path("spec/spec.yaml").read_text()
    assert "mirror/a" in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("release", "change", "where"),
    [
        ("4.18", {"controlPlane": {"name": "master", "hyperthreading": "Disabled"}}, "controlPlane.hyperthreading"),
        ("4.18", {"controlPlane": {"name": "control-plane"}}, "controlPlane.name"),
        ("4.18", {"compute": [{"name": "worker", "architecture": "arm64"}]}, "compute[0].architecture"),
        ("4.21", {"credentialsMode": "Passthrough"}, "credentialsMode"),
        ("4.18", {"metadata": {"name": "ocp", "labels": {"a": "b"}}}, "metadata.labels.a"),
        ("4.18", {"clusterID": "x"}, "clusterID"),
        ("4.18", {"pullSecret": "<your secret>"}, "pullSecret"),
        ("4.18", {"sshKey": "ssh-ed25519 AAAA..."}, "sshKey"),
    ],
)
def test_what_a_spec_cannot_express(
    config: Path, capsys: pytest.CaptureFixture[str], release: str, change: dict[str, Any], where: str
) -> None:
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | change))
    main(["import", "--release", release, "--format", "json"])
    assert [each.split(": ")[1] for each in printed(capsys)["left_out"]] == [where]


def test_a_file_that_the_release_refuses_is_a_spec_with_the_same_mistake(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text().replace("OVNKubernetes", "OpenShiftSDN"))
    assert main(["import", "--release", "4.18", "--format", "json"]) == 1
    refused = [(each["code"], each["where"].split(": ")[1]) for each in printed(capsys)["refused"]]
    assert ("install-config.invalid", "networking.networkType") in refused


def test_a_file_that_no_installer_reads(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("fips: [x]\n" + config.read_text())
    assert main(["import", "--release", "4.18", "--output", "spec"]) == 2
    assert "fips" in capsys.readouterr().err
    assert not Path("spec").exists()


def test_files_of_others_stay(config: Path) -> None:
    Path("spec").mkdir()
    Path("spec/pull-secret.json").write_text("{}")
    assert main(["import", "--release", "4.18", "--output", "spec"]) != 0
    assert [each.name for each in Path("spec").iterdir()] == ["pull-secret.json"]
    Path("spec/pull-secret.json").unlink()
    assert main(["import", "--release", "4.18", "--output", "spec"]) == 0
    assert main(["import", "--release", "4.18", "--output", "spec"]) == 0  # the same files again


def test_the_comparison_notices_a_difference() -> None:
    from openstack_prep.openshift.spec_import import _differences

    one = document(*read(InstallConfigValues(yaml.safe_load(text_of("two stacks"))), "4.18"))
    assert list(_differences(one, one)) == []
    assert list(_differences(one, one | {"fips": True, "metadata": {"name": "x"}})) == ["metadata.name", "fips"]
