from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import ConfigError, PrepError, SpecError
from openstack_prep.cli.main import main
from openstack_prep.core.plan import Report
from openstack_prep.hooks import InstallOptions, Outcome, installation, ipi, start_over
from openstack_prep.hooks.ipi import CommandLine
from openstack_prep.hooks.pre_ipi import NotReady, checked
from openstack_prep.openshift import cluster as openshift_cluster
from openstack_prep.spec import load_spec
from tests.unit.conftest import ENDPOINTS, failure, port_row, sent
from tests.unit.hooks.test_cleanup import NOVA, Lists, there
from tests.unit.texts import Wording, contains, expect_error

__all__ = ["there"]

NEUTRON = ENDPOINTS["network"] + "/v2.0"
KEPT = "while [ ! -e metadata.json.kept ]; do sleep 0.01; done; sleep 0.1"
ATTACHED = "while [ ! -e attached ]; do sleep 0.01; done"
ID, OLD = "dev-x7k2p", "dev-q9m4t"
CONFIG = """\
apiVersion: v1
baseDomain: example.com
metadata: {name: dev}
platform: {openstack: {cloud: lab, externalNetwork: external, defaultMachinePlatform: {type: m1}}}
pullSecret: '{"auths": {}}'
"""


def metadata(infra_id: str, name: str = "dev") -> str:
    identifier = {"cloud": "lab", "identifier": {"openshiftClusterID": infra_id}}
    return json.dumps({"clusterName": name, "infraID": infra_id, "openstack": identifier})


@pytest.fixture
def folder(clouds_yaml: Path, services: requests_mock.Mocker, there: Lists, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ``ocp`` with an install-config, and a cloud with the ports and floating IPs of two clusters."""
    there |= {name: [] for name in there}
    monkeypatch.setattr(installation, "PAUSE", 0.01)
    monkeypatch.setattr(installation, "AGAIN", 0.01)
    monkeypatch.setattr(openshift_cluster, "PAUSE", 0.01)
    made = clouds_yaml.parent / "ocp"
    made.mkdir()
    (made / "install-config.yaml").write_text(CONFIG)
    own = {"mac_address": "m", "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.7"}]}
    listed = [
        port_row(id=f"{each}-{end}", name=f"{each}-{end}", tags=[f"openshiftClusterID={each}"], **own)
        for each in (ID, OLD)
        for end in ("ingress-port", "master-0-0")
    ]
    ip = {"id": "f1", "floating_ip_address": "192.0.2.5", "description": "", "port_id": None, "revision_number": 1}
    ip["tags"] = []
    ip["floating_network_id"] = "n1"

    def of_that_name(request: Any, _: Any) -> dict[str, Any]:
        name = request.qs.get("name", [None])[0]
        return {"ports": [each for each in listed if name in (None, each["name"])]}

    def attach(request: Any, _: Any) -> dict[str, Any]:
        ip.update(request.json()["floatingip"])
        (made / "attached").touch()
        return {"floatingip": ip}

    def of_that_id(request: Any) -> dict[str, Any]:
        (port,) = [each for each in listed if request.path.endswith(str(each["id"]))]
        return port

    def allow(request: Any, _: Any) -> dict[str, Any]:
        port = of_that_id(request)
        pairs = request.json()["port"]["allowed_address_pairs"]
        port["allowed_address_pairs"] = [{"mac_address": "m"} | pair for pair in pairs]
        return {"port": port}

    services.get(f"{NEUTRON}/ports", json=of_that_name)
    services.get(re.compile(f"{NEUTRON}/ports/"), json=lambda request, _: {"port": of_that_id(request)})
    services.put(re.compile(f"{NEUTRON}/ports/[^/]*$"), json=allow)
    services.put(re.compile(f"{NEUTRON}/ports/.*/tags/"), text="")
    services.get(f"{NEUTRON}/floatingips", json=lambda *_: {"floatingips": [ip]})
    services.put(f"{NEUTRON}/floatingips/f1", json=attach)
    return made


def program(folder: Path, does: str) -> str:
    """Write a program in place of the installer."""
    path = folder.parent / "make-cluster"
    path.write_text(f"#!/bin/sh\ncd {folder}\n{does}\n")
    path.chmod(0o755)
    return str(path)


def run(folder: Path, does: str, **options: Any) -> tuple[Outcome, list[str]]:
    told: list[str] = []
    words = [program(folder, does), "create", "cluster", "--dir", str(folder)]
    return ipi(words, options=InstallOptions(check=False, **options), tell=told.append), told


def attached(services: requests_mock.Mocker) -> list[str]:
    bodies = (each.json() for each in services.request_history if each.path.endswith("/floatingips/f1"))
    return [body["floatingip"]["port_id"] for body in bodies]


def test_words(tmp_path: Path) -> None:
    said = CommandLine(["sh", "--log-level", "create", "create", "--dir=a", "cluster"])
    assert (said.creates, said.folder) == (True, Path("a"))
    assert CommandLine(["env", "sh", "create", "cluster"]).within(tmp_path).words[-2:] == ("--dir", str(tmp_path))
    assert not CommandLine(["sh", "destroy", "cluster", "--dir", "create"]).creates
    assert said.within(Path("./a/")) is said
    with expect_error(ConfigError, "sh", "create", "cluster"):
        ipi("sh create cluster")
    with pytest.raises(ConfigError, match="no command given"):
        ipi([])
    with expect_error(ConfigError, "--dir a", "install-config.yaml", "b"):
        said.within(Path("b"))


def test_what_check_finds_has_the_lines_of_the_file(folder: Path) -> None:
    (folder / "install-config.yaml").write_text(f"{CONFIG}controlPlane: {{replicas: 5}}\n")
    (folder / "ca.pem").write_text("no certificate")  # so the cloud itself is not checked
    entry = f"  lab:\n    cacert: {folder}/ca.pem\n"
    clouds = folder.parent / "clouds.yaml"
    clouds.write_text(clouds.read_text().replace("  lab:\n", entry))
    with pytest.raises(NotReady) as caught:
        ipi([program(folder, ":"), "create", "cluster", "--dir", str(folder)])
    assert f"error: {folder}/install-config.yaml:6: controlPlane.replicas: " in str(caught.value)
    assert "controlPlane.replicas" in [each.where for each in caught.value.findings]


def test_it_attaches_meanwhile_and_allows_afterwards(folder: Path, services: requests_mock.Mocker) -> None:
    made = f"rm install-config.yaml; echo '{metadata(ID)}' > metadata.json; {ATTACHED}; env > ../environment"
    outcome, told = run(folder, made, ingress_floating_ip="192.0.2.5")
    assert (outcome.exit_code, outcome.problem) == (0, "")
    assert told[0] == f"192.0.2.5 attached to {ID}-ingress-port"
    assert attached(services) == [f"{ID}-ingress-port"]
    assert outcome.report is not None
    assert outcome.report.summary.startswith("1 done, 0 failed, 0 skipped, 1 unchanged")
    environment = (folder.parent / "environment").read_text().splitlines()
    assert "OS_CLOUD=lab" in environment
    assert f"OS_CLIENT_CONFIG_FILE={os.environ['OS_CLIENT_CONFIG_FILE']}" in environment
    for name in ("install-config.yaml.kept", "metadata.json.kept"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_the_cluster_that_was_there_before_is_left_alone(
    folder: Path, services: requests_mock.Mocker, wording: Wording
) -> None:
    (folder / "metadata.json").write_text(metadata(OLD))
    outcome, _ = run(folder, "sleep 0.1; exit 4", ingress_floating_ip="192.0.2.5")
    assert (outcome.exit_code, outcome.metadata, attached(services)) == (4, None, [])
    outcome, _ = run(folder, "sleep 0.1", ingress_floating_ip="192.0.2.5")
    assert outcome.exit_code == 1
    wording(outcome.problem)
    foreign = f"echo '{metadata(ID, 'other')}' > metadata.json; {KEPT}"
    outcome, told = run(folder, foreign, ingress_floating_ip="192.0.2.5")
    assert contains(outcome.problem, "other", "dev")
    assert set(told) <= {f"not attached yet: {outcome.problem}"}
    assert attached(services) == []


def test_its_code_is_stronger_than_our_trouble(folder: Path, services: requests_mock.Mocker, wording: Wording) -> None:
    made = f"echo '{metadata(ID)}' > metadata.json; {KEPT}; exit 6"
    outcome, told = run(folder, made, ingress_floating_ip="192.0.2.77", vips=("10.9.0.0/24",))
    assert outcome.exit_code == 6
    hint = f"post-ipi --metadata {folder}/metadata.json --ingress-ip 192.0.2.77"
    assert told[-2].endswith(f"{hint} --vip 10.0.0.5 --vip 10.0.0.7 --vip 10.9.0.0/24")
    with pytest.raises(PrepError) as caught:
        outcome.raise_for_problems()
    wording(caught.value)
    outcome, _ = run(folder, "exit 0", ingress_floating_ip="192.0.2.77")
    assert outcome.exit_code == 1
    with pytest.raises(PrepError) as caught:
        outcome.raise_for_problems()
    wording(caught.value)
    Outcome(code=0).raise_for_problems()


def servers(infra_id: str, *names: str) -> list[dict[str, Any]]:
    metadata = {"openshiftClusterID": infra_id}
    return [{"id": name, "name": f"{infra_id}-{name}", "status": "ACTIVE", "metadata": metadata} for name in names]


MASTERS = ("master-0", "master-1", "master-2")


@pytest.mark.parametrize(
    ("machines", "code", "commands"),
    [
        (("bootstrap", *MASTERS), 5, ["wait-for bootstrap-complete", "destroy bootstrap", "wait-for install-complete"]),
        (MASTERS, 6, ["wait-for install-complete"]),
        (MASTERS[:2], 8, []),  # interrupted while it created machines
        (("bootstrap", *MASTERS), 4, []),  # it has deleted what it would continue from
        ((), 8, []),
    ],
)
def test_a_failure_shows_the_way_on_and_the_way_back(
    folder: Path, there: Lists, machines: tuple[str, ...], code: int, commands: list[str]
) -> None:
    there["servers"] = [*servers(ID, *machines), *servers(OLD, "bootstrap", *MASTERS)]
    _, told = run(folder, f"echo '{metadata(ID)}' > metadata.json; {KEPT}; exit {code}")
    start_over = (
        f"to start over: openshift-install destroy cluster --dir {folder} "
        f"(or openstack-prep cleanup --metadata {folder}), "
        f"then openstack-prep ipi --again -- openshift-install create cluster --dir {folder}"
    )
    words = " && ".join(f"openshift-install {each} --dir {folder}" for each in commands)
    assert told[-2:] == ([f"to continue: {words}"] if commands else told[-2:-1]) + [start_over]
    assert ("to continue" in str(told)) == bool(commands)


def test_a_phantom_is_recognised(folder: Path, there: Lists, wording: Wording) -> None:
    """The installer wrote a metadata.json, and created nothing."""
    phantom = "dev-nnnnn"
    _, told = run(folder, f"rm install-config.yaml; echo '{metadata(phantom)}' > metadata.json; exit 1")
    wording(told)


def test_what_cannot_be_looked_up_is_unknown(folder: Path, services: requests_mock.Mocker, wording: Wording) -> None:
    services.get(f"{NOVA}/servers/detail", **failure(403))
    outcome, told = run(folder, f"echo '{metadata(ID)}' > metadata.json; exit 6")
    assert (outcome.code, outcome.problem) == (6, "")
    wording(told[1])
    assert told[2].startswith("to start over: ")
    assert "to continue" not in str(told)


def test_a_metadata_json_that_was_never_kept_is_kept_before_the_start(folder: Path) -> None:
    (folder / "metadata.json").write_text(metadata(OLD))
    run(folder, f"[ -e metadata.json.kept ] && echo '{metadata(ID)}' > metadata.json")
    kept = {each.name: json.loads(each.read_text())["infraID"] for each in folder.glob("metadata.json.*")}
    assert kept == {"metadata.json.kept": ID, f"metadata.json.{OLD}.kept": OLD}


def test_what_the_installer_would_refuse_is_refused_before_it_eats_anything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = folder / ".clusterapi_output" / "envtest.kubeconfig"
    guard.parent.mkdir()
    guard.touch()
    with pytest.raises(ConfigError) as caught:
        run(folder, "touch started")
    assert caught.value.code == "config.invalid"
    assert contains(str(caught.value), guard)
    assert f"ipi --again -- openshift-install create cluster --dir {folder}" in str(caught.value)
    assert sorted(os.listdir(folder)) == [".clusterapi_output", "install-config.yaml"]
    monkeypatch.setenv("OPENSHIFT_INSTALL_REENTRANT", "True")
    run(folder, "touch started")
    assert (folder / "started").exists()


def test_after_create_manifests_the_state_names_the_cloud(
    folder: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setenv("OS_CLOUD", "somebody-elses")
    document = {"apiVersion": "v1", "baseDomain": "example.com", "metadata": {"name": "dev"}}
    document |= {"platform": {"openstack": {"cloud": "lab"}}}
    state = json.dumps({"*installconfig.InstallConfig": {"config": document}})
    eat = f"rm install-config.yaml; echo '{state}' > .openshift_install_state.json"
    assert main(["ipi", "--dir", str(folder), "--", program(folder, eat), "create", "manifests"]) == 0
    assert (folder / "install-config.yaml.kept").read_text() == CONFIG
    words = [program(folder, "touch started"), "create", "cluster", "--dir", str(folder)]
    (folder / "install-config.yaml.kept").unlink()  # manifests that were created without us
    ipi(words, options=InstallOptions(check=False))
    assert (folder / "started").exists()
    kept = folder / "install-config.yaml.kept"
    assert (stat.S_IMODE(kept.stat().st_mode), "baseDomain: example.com" in kept.read_text()) == (0o600, True)
    kept.write_text(CONFIG.replace("name: dev", "name: other"))
    with pytest.raises(ConfigError) as caught:
        ipi(words, options=InstallOptions(check=False))
    wording(caught.value)


def test_two_runs_at_once_do_not_share_a_folder(folder: Path, wording: Wording) -> None:
    words = [program(folder, "touch started; while [ ! -e stop ]; do sleep 0.01; done"), "create", "cluster"]
    first = threading.Thread(
        target=ipi, args=(words,), kwargs={"folder": folder, "options": InstallOptions(check=False)}
    )
    first.start()
    while not (folder / "started").exists():
        time.sleep(0.01)
    for each in (["create", "cluster"], ["create", "manifests"], ["destroy", "cluster"]):
        with pytest.raises(ConfigError) as caught:
            ipi(["sh", *each], folder=folder, options=InstallOptions(check=False))
        wording(caught.value)
    with pytest.raises(ConfigError) as caught:
        start_over(folder)
    wording(caught.value)
    (folder / "stop").touch()
    first.join()
    assert start_over(folder) == ()


def test_nor_by_a_second_interrupt_while_a_request_hangs(folder: Path, services: requests_mock.Mocker) -> None:
    def hang(request: Any, _: Any) -> dict[str, Any]:
        (folder / "asked").touch()
        while signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # until the installer has ended
            time.sleep(0.005)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
        return {"ports": []}

    services.get(f"{NEUTRON}/ports", json=hang)
    made = f"echo '{metadata(ID)}' > metadata.json; while [ ! -e asked ]; do sleep 0.01; done; exit 8"
    outcome, told = run(folder, made, ingress_floating_ip="192.0.2.5")
    assert (outcome.code, outcome.problem) == (8, "")
    assert contains(told[-3], "8", "openstack-prep post-ipi")


def test_nor_by_a_pipe_that_nobody_reads() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    script = "from openstack_prep.hook_commands.ipi import _tell; _tell('a'); _tell('b'); raise SystemExit(6)"
    assert subprocess.run([sys.executable, "-c", script], stderr=writer, check=False).returncode == 6
    os.close(writer)


def test_nor_is_it_hidden_by_a_file_of_no_form_or_a_bug(folder: Path, wording: Wording) -> None:
    outcome, _ = run(folder, "mkdir metadata.json; exit 5")
    assert (outcome.code, outcome.problem) == (5, "")
    (folder / "metadata.json").rmdir()
    words = [program(folder, f"echo '{metadata(ID)}' > metadata.json; exit 6"), "create", "cluster"]

    def tell(text: str) -> None:
        raise ValueError(f"cannot say {text[:13]}")

    outcome = ipi(words, folder=folder, wishes=InstallOptions(check=False), tell=tell)
    assert outcome.code == 6
    wording(outcome.problem)


@pytest.mark.parametrize(
    ("config", "wishes", "said"),
    [
        ("", ["--ingress-ip", "192.0.2.5"], "neither ocp/install-config.yaml nor the state of an earlier run"),
        (CONFIG.replace("lab", "lob"), [], "cloud 'lob': Cloud lob was not found"),
        (
            CONFIG.replace("cloud: lab", "cloud: lab, ingressFloatingIP: 192.0.2.9"),
            ["--ingress-ip", "192.0.2.5"],
            "ingressFloatingIP in ocp/install-config.yaml is 192.0.2.9, not 192.0.2.5",
        ),
        ("platform: [", [], "install-config.yaml:1"),
        (CONFIG, ["--dir", "clouds.yaml"], "neither clouds.yaml/install-config.yaml nor"),
    ],
)
def test_what_is_wrong_is_said_before_the_start(
    folder: Path, capsys: pytest.CaptureFixture[str], config: str, wishes: list[str], said: str
) -> None:
    path = folder / "install-config.yaml"
    path.write_text(config)
    if not config:
        path.rename(folder / "install-config.yaml.kept")  # of a cluster that was destroyed
    program(folder, "touch started")
    words = ["ipi", "--no-check", "--dir", "ocp", *wishes, "--", "./make-cluster", "create", "cluster"]
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "started").exists()


def test_wrong_words(folder: Path, capsys: pytest.CaptureFixture[str], services: requests_mock.Mocker) -> None:
    assert main(["ipi", "--dir", "ocp"]) == 2
    assert "write openstack-prep ipi [options] -- openshift-install create cluster" in capsys.readouterr().err
    assert main(["ipi", "--", "--hosts", "hosts", "./openshift-install", "create", "cluster"]) == 2
    assert "--hosts: options of openstack-prep go before --; write openstack-prep ipi" in capsys.readouterr().err
    assert main(["ipi", "--no-check", "--", "sh", "create", "cluster"]) == 2
    said = "create one, or pass the spec that declares it; if it is in another directory, pass --dir"
    assert said in capsys.readouterr().err
    assert main(["ipi", "--", "./nothing", "create", "cluster"]) == 127
    assert main(["ipi", "--ingress-ip", "192.0.2.5", "--vip", "10.0.0.7", "--", "sh", "-c", "create cluster"]) == 2
    said = "192.0.2.5, 10.0.0.7: `sh -c 'create cluster'` attaches and allows no addresses"
    assert said in capsys.readouterr().err
    for wrong in ("-1", "nan", "soon"):
        with pytest.raises(SystemExit):
            main(["ipi", f"--wait={wrong}", "--", "true"])
        assert contains(capsys.readouterr().err, wrong, "[config.invalid]")
    assert sent(services) == []


def test_other_commands_need_no_cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE", raising=False)
    assert main(["ipi", "--", "sh", "-c", "exit 9"]) == 9
    (tmp_path / "metadata.json").write_text(metadata(ID))
    assert main(["ipi", "--", "sh", "-c", "rm metadata.json"]) == 0
    assert (tmp_path / "metadata.json.kept").read_text() == metadata(ID)


def test_a_spec_without_an_install_config(clouds_yaml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("spec.yaml").write_text("name: lab\nproject: {name: lab}\n")
    assert main(["pre-ipi", "--yes", "--os-cloud", "lab", "spec.yaml"]) == 2
    assert "lab: install_config: declares no install_config; add one" in capsys.readouterr().err


def test_hosts_that_cannot_be_read_are_said_before_anything_is_changed(
    clouds_yaml: Path, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("spec.yaml").write_text(SPEC)
    assert main(["pre-ipi", "--yes", "--os-cloud", "lab", "--hosts", "nothing", "spec.yaml"]) == 2
    assert contains(capsys.readouterr().err, "nothing", "[spec.invalid]")
    assert sent(services) == []


def test_the_release_is_what_the_installer_says(tmp_path: Path) -> None:
    path = tmp_path / "openshift-install"
    path.write_text("#!/bin/sh\necho openshift-install 4.18.7\n")
    path.chmod(0o755)
    installer = CommandLine([str(path), "create", "cluster"])
    assert (installer.release(None), installer.release("4.18")) == ("4.18", "4.18")
    with pytest.raises(ConfigError, match=r"install-config\.yaml is for 4\.2, but .*openshift-install installs 4\.18"):
        installer.release("4.2")
    assert CommandLine(["sh"]).release("4.2") == "4.2"  # a wrapper is not asked
    path.write_text("#!/bin/sh\necho openshift-install 4.23.0-rc.1\n")
    assert installer.release("5.0") == "4.23"  # one release by two names
    with pytest.raises(ConfigError, match=r"is for 5\.1, but .* installs 4\.23"):
        installer.release("5.1")


SPEC = """\
name: lab
project: {name: lab}
floating_ips: [{name: ingress, external_network: external, address: 192.0.2.5}]
clouds_yaml: [{path: lab.yaml, cloud: lab, user: lab}]
users: [{name: lab, password: secret-of-lab}]
install_config:
  {path: ocp/install-config.yaml, release: "4.2", cluster_name: lab, base_domain: example.com, cloud: lab,
   pull_secret_file: pull-secret.json}
"""


def test_a_spec_tells_where_the_installer_finds_things(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    ready = checked(load_spec(path), Report(()), look=False)
    assert (ready.folder, ready.clouds_file, ready.cloud) == (tmp_path / "ocp", tmp_path / "lab.yaml", "lab")
    assert ready.installed is None
    (tmp_path / "ocp").mkdir()
    (tmp_path / "ocp" / "metadata.json").write_text(metadata(ID))
    assert checked(load_spec(path), Report(()), look=False).installed == ID
    path.write_text(SPEC.replace("ocp/install-config", "ocp/config"))
    with expect_error(SpecError, "ocp/config.yaml", "install-config.yaml"):
        checked(load_spec(path), Report(()), look=False)
