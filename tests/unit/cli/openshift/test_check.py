from __future__ import annotations

import json
from pathlib import Path

import pytest

from openstack_prep.cli.main import main

CONFIG = """\
apiVersion: v1
metadata: {name: dev}
baseDomain: example.com
controlPlane: {name: master, replicas: 5, platform: {openstack: {type: m}}}
compute:
- {name: worker, platform: {openstack: {type: m}}, nonsense: 1}
platform: {openstack: {cloud: nobodys, externalNetwork: external}}
pullSecret: '{"auths":{"x":{"auth":"Zm9vOmJhcg=="}}}'
"""


@pytest.fixture
def folder(clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an install-config.yaml that has two errors; nothing named openshift-install is on PATH."""
    monkeypatch.setenv("PATH", str(clouds_yaml.parent / "bin"))
    (clouds_yaml.parent / "install-config.yaml").write_text(CONFIG)
    return clouds_yaml.parent


def installer(path: Path, says: str) -> Path:
    """Return a script that says a version, and is no installer otherwise."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho openshift-install {says}\n")
    path.chmod(0o755)
    return path


def release(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["check", "--format", "json", *words]) == 1
    return str(json.loads(capsys.readouterr().out)["release"])


def test_findings_have_their_lines_and_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--release", "4.18", "--os-cloud", "lab"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "error: install-config.yaml:4: controlPlane.replicas: 5 replicas are not supported "
        "[install-config.invalid]\n  why: "
    )
    assert "\nwarning: install-config.yaml:6: compute[0].nonsense: is unknown to 4.18" in out
    assert (
        "\nwarning: --os-cloud: is 'lab', but the installer uses 'nobodys', which was checked "
        "[environment.other-cloud]\n" in out
    )
    assert out.endswith("\ninstall-config.yaml for 4.18 in cloud 'nobodys': 2 errors, 2 warnings\n")


def test_the_release_is_asked_of_the_installer_that_is_nearest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installer(folder / "bin" / "openshift-install", "4.14.1")
    assert release(capsys) == "4.14"
    installer(folder / "openshift-install", "v4.15.2")
    assert release(capsys) == "4.15"
    assert release(capsys, "--installer", str(installer(folder / "other", "4.16.3"))) == "4.16"
    assert release(capsys, "--release", "4.17") == "4.17"


def test_without_a_release_nothing_can_be_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert "give --release RELEASE, or --installer FILE" in capsys.readouterr().err
    mine = installer(folder / "openshift-install", "unreleased-master-6542-gabc")
    assert main(["check"]) == 2
    assert f"{mine} does not report its release; give --release RELEASE" in capsys.readouterr().err
    mine.write_text("#!/bin/sh\nexit 3\n")
    assert main(["check"]) == 2
    assert f"{mine} version failed (3); give --release RELEASE, or another --installer FILE" in capsys.readouterr().err
    mine.chmod(0o644)
    assert main(["check"]) == 2
    assert f"{mine} cannot be run: Permission denied; give --release RELEASE" in capsys.readouterr().err
    assert main(["check", "--installer", "none"]) == 2
    assert "--installer: none is no file; name the openshift-install" in capsys.readouterr().err
    assert main(["check", "--release", "6.0"]) == 2
    assert "release: '6.0' is not a release of OpenShift" in capsys.readouterr().err


def test_a_folder_stands_for_its_file_and_a_copy_for_one_that_was_eaten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "install-config.yaml").rename(folder / "install-config.yaml.kept")
    assert main(["check", "--release", "4.18", "--format", "json", str(folder)]) == 1
    assert json.loads(capsys.readouterr().out)["install_config"] == str(folder / "install-config.yaml.kept")


def test_a_file_that_is_not_there_and_a_spec(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--release", "4.18", "none.yaml"]) == 2
    assert "none.yaml: cannot be read" in capsys.readouterr().err
    (folder / "spec.yaml").write_text("name: lab\ninstall_config: {path: x}\n")
    assert main(["check", "--release", "4.18", "spec.yaml"]) == 2
    said = "spec.yaml:2: is a spec of openstack-prep, not an install-config.yaml"
    assert said in capsys.readouterr().err


def test_a_missing_file_is_named_before_the_release_is_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "none.yaml"]) == 2
    assert "none.yaml: cannot be read" in capsys.readouterr().err


def test_files_alone_need_neither_a_cloud_nor_an_entry(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "clouds.yaml").unlink()
    (folder / "other.yaml").write_text("a: [")
    words = ["check", "--offline", "--release", "4.18", "install-config.yaml"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "error: install-config.yaml:4: controlPlane.replicas: " in out
    assert out.endswith("\ninstall-config.yaml for 4.18 without its cloud: 1 error, 1 warning\n")
    assert main([*words, "other.yaml", "--format", "json", "--sarif", "o.sarif"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert [each["errors"] for each in data["files"]] == [1]
    assert [each["code"] for each in data["errors"]] == ["spec.unreadable"]
    (run,) = json.loads((folder / "o.sarif").read_text())["runs"]
    assert len(run["results"]) == 3


def test_options_that_have_no_effect_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--release", "4.18", "a", "b"]) == 2
    assert "--offline" in capsys.readouterr().err
    for option in ("--hosts", "--os-cloud"):
        assert main(["check", "--offline", "--release", "4.18", option, "x"]) == 2
        assert option in capsys.readouterr().err
