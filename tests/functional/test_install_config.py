"""A shipped spec, applied: what the installer needs is there, and its install-config names it."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import yaml

from openstack_prep.openshift.install_config import findings
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

SECRET = "Zm9vOmJhcg=="


def spec_without_addresses(folder: Path) -> dict[str, object]:
    """Return the shipped spec whose floating IPs are the next free ones, with the files it wants beside it."""
    (folder / "pull-secret.json").write_text(f'{{"auths": {{"quay.io": {{"auth": "{SECRET}"}}}}}}')
    (folder / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n"
    )
    shipped = resources.files("openstack_prep.install_configs") / "openshift-current.yaml"
    spec: dict[str, object] = yaml.safe_load(shipped.read_text())
    spec["floating_ips"] = [{"name": name, "external_network": "external"} for name in ("api", "ingress")]
    return spec


def test_files_that_are_not_what_they_should_be(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(spec_without_addresses(prep.folder))
    (prep.folder / "id_ed25519.pub").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END\n")
    (prep.folder / "pull-secret.json").write_text('{"auths": {"quay.io": {"auth": "hunter2"}, "example.com": {}}}')
    mark = devcloud.mark()
    for words in (["plan"], ["plan", "--format", "json"], ["pre-ipi", "--yes"]):
        done = prep.run(*words, "spec.yaml", code=2)
        said = done.stdout + done.stderr
        assert "hunter2" not in said
        assert "ssh_key_file: is a private key; give the content of a .pub file" in said
        assert "'quay.io'" not in said  # the installer does not look into auth
        assert "pull_secret_file: has neither auth nor credsStore for 'example.com'; " in said
    asked = {each.method for each in devcloud.requests_since(mark) if not each.path.endswith("/auth/tokens")}
    assert asked <= {"GET", "HEAD"}
    assert not (prep.folder / "ocp4").exists()


def test_an_install_config_names_what_apply_has_made(prep: Prep) -> None:
    prep.write(spec_without_addresses(prep.folder))
    steps = prep.apply()
    assert SECRET not in str(steps)
    file = prep.folder / "ocp4" / "install-config.yaml"
    document = yaml.safe_load(file.read_text())
    platform = document["platform"]["openstack"]
    made = {name: steps[f"floating_ip/{name}"]["outputs"]["address"] for name in ("api", "ingress")}
    assert {"api": platform["apiFloatingIP"], "ingress": platform["ingressFloatingIP"]} == made
    assert findings(document, "4.20") == []
    mine = {
        "OS_CLIENT_CONFIG_FILE": str(prep.folder / "ocp4-credentials" / "clouds.yaml"),
        "OS_CLOUD": platform["cloud"],
    }
    listed = prep.openstack("floating", "ip", "list", **mine)
    assert {each["Floating IP Address"] for each in listed} == set(made.values())
    assert prep.changes() == set()

    file.unlink()  # as the installer does
    (file.parent / ".openshift_install_state.json").write_text("{}")
    assert prep.changes() == set()

    (file.parent / ".openshift_install_state.json").unlink()  # as its destroy does
    assert prep.changes() == {"install_config/install-config.yaml"}
    shutil.rmtree(file.parent)  # as people do after a failed installation
    assert prep.changes() == {"install_config/install-config.yaml"}
    prep.apply()
    assert prep.changes() == set()
    assert "install_config/install-config.yaml" in prep.destroy().stdout
    left = {each.name for each in prep.folder.glob("ocp4*/*")}  # no copy: it held the pull secret
    assert left == {"ocp4-user.password", ".clouds.yaml.lock"}
