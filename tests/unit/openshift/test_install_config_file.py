from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Context, Resource
from openstack_prep.core.plan import ApplyFailed, Plan
from openstack_prep.openshift.install_config import MachinePool, Machines, Mirror, Proxy, RootVolume
from openstack_prep.openshift.install_config_file import InstallConfig
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.files.env_file import EnvFile
from openstack_prep.spec import load_spec
from openstack_prep.spec.resolution import refuse_mistakes
from tests.unit.conftest import ENDPOINTS, resolved
from tests.unit.openshift.install_config.parsable import CERTIFICATE
from tests.unit.texts import Wording

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "unit" / "data" / "install_config"
SHIPPED = ["openshift-4.2-lab", "openshift-current", "openshift-compact", "openshift-zones"]
SHIPPED += ["openshift-byo-network", "openshift-dual-stack", "openshift-mirror"]
SECRET = "Zm9vOmJhcg=="
NEUTRON = ENDPOINTS["network"] + "/v2.0"
TYPES = f"{ENDPOINTS['block-storage']}/types"

Make = Callable[..., InstallConfig]
FOREIGN = "exists and is not managed by this spec; choose another file, or remove this one"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that every cluster needs."""
    (tmp_path / "pull-secret.json").write_text(f'{{"auths": {{"quay.io": {{"auth": "{SECRET}"}}}}}}\n')
    (tmp_path / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n"
    )
    (tmp_path / "mirror-ca.pem").write_text(CERTIFICATE)
    return tmp_path


@pytest.fixture
def make(folder: Path) -> Make:
    right: dict[str, Any] = {
        "path": str(folder / "ocp4" / "install-config.yaml"),
        "release": "4.20",
        "cluster_name": "ocp4",
        "base_domain": "example.com",
        "cloud": "lab",
        "external_network": "external",
        "machines": Machines(flavor="master"),
        "pull_secret_file": str(folder / "pull-secret.json"),
    }
    return lambda **fields: InstallConfig(**(right | fields))


def planned(run: CloudRun, *resources: Resource) -> Plan:
    observed, mistakes = observation.examine(run.fresh(), resources)
    return planner.plan_apply("lab", resources, observed, mistakes=mistakes)


def applied(run: CloudRun, *resources: Resource) -> None:
    plan = planned(run, *resources)
    plan.raise_for_refusals()
    executor.execute(plan, run).raise_for_failures()


def mistakes(run: CloudRun, file: InstallConfig) -> list[Mistake]:
    return list(file.list_mistakes(Context(resources=[file], cloud=run.admin)))


def refusals(run: CloudRun, file: InstallConfig) -> list[str]:
    found = (*mistakes(run, file), *planned(run, file).refusals)
    return [f"{each.what}; {each.fix}" for each in found]


def action(run: CloudRun, file: InstallConfig) -> Action:
    (step,) = planned(run, file)
    return step.action


def eaten(file: InstallConfig) -> None:
    """Leave what the installer leaves when it has read its input."""
    file.file.unlink()
    (file.file.parent / ".openshift_install_state.json").write_text("{}")


# --- the file -----------------------------------------------------------------------------


def test_it_is_written_with_a_copy_for_its_owner_alone(run: CloudRun, make: Make) -> None:
    file = make()
    applied(run, file)
    for path in (file.file, file.kept):
        assert path.stat().st_mode & 0o777 == 0o600
    text = file.file.read_text()
    assert text.startswith("# [openstack-prep:lab/install-config.yaml]\napiVersion: v1\n")
    assert file.kept.read_text() == text
    assert SECRET in text
    assert action(run, file) is Action.KEEP


def test_a_plan_shows_no_secret(run: CloudRun, make: Make) -> None:
    file = make(proxy=Proxy(http="http://me:hunter2@proxy:3128"))
    plans = [planned(run, file)]
    applied(run, file)
    plans.append(planned(run, replace(file, proxy=Proxy(http="http://me:hunter3@proxy:3128"))))
    (change,) = [each for step in plans[1] for each in step.changes]
    assert change.field == "proxy.httpProxy"
    for said in (f"{plan}{plan.data()}" for plan in plans):
        assert "proxy.httpProxy" in said
        assert not [word for word in (SECRET, "hunter2", "hunter3") if word in said]


@pytest.mark.parametrize(
    "url",
    ["http://me:hun#ter2@proxy:3128", "http://me:hun/ter2@proxy", "me:hunter2@proxy:3128", "http://hunter2@proxy:3128"],
)
def test_a_login_is_hidden_even_where_it_cannot_be_read(run: CloudRun, make: Make, url: str) -> None:
    plan = planned(run, make(proxy=Proxy(http=url)))
    assert "proxy.httpProxy ********" in str(plan)
    assert "ter2" not in f"{plan}{plan.data()}"


@pytest.mark.parametrize(("query", "is_shown"), [("temp_url_sig=hunter2&x=1", False), ("sha256=beef", True)])
def test_the_signature_of_an_image_is_hidden_and_its_checksum_is_not(
    run: CloudRun, make: Make, query: str, is_shown: bool
) -> None:
    file = make(cluster_os_image=f"https://obj/i.qcow2?{query}")
    plans = [planned(run, file)]
    applied(run, file)
    plans.append(planned(run, replace(file, cluster_os_image=f"https://obj/j.qcow2?{query}")))
    assert [query in f"{plan}{plan.data()}" for plan in plans] == [is_shown, is_shown]


def test_a_private_key_in_a_bundle_is_hidden(run: CloudRun, make: Make) -> None:
    file = make()
    applied(run, file)
    text = file.file.read_text()
    file.file.write_text(text + "additionalTrustBundle: |\n  -----BEGIN PRIVATE KEY-----\n  hunter2\n")
    assert "hunter2" not in f"{planned(run, file)}{planned(run, file).data()}"


@pytest.mark.parametrize("mirror", ["me:hunter2@mirror.example.com/a", "https://me:hunter2@mirror.example.com/a"])
def test_a_login_at_a_mirror_is_hidden(run: CloudRun, make: Make, mirror: str) -> None:
    file = make(image_mirrors=(Mirror(source="quay.io/a", mirrors=("mirror.example.com/a",)),))
    applied(run, file)
    file.file.write_text(file.file.read_text().replace("- mirror.example.com/a", f"- {mirror}"))
    plan = planned(run, file)
    assert "mirror.example.com/a" in str(plan)
    assert "hunter2" not in f"{plan}{plan.data()}"


def test_a_change_of_the_spec_is_a_change_of_its_fields(run: CloudRun, make: Make) -> None:
    applied(run, make())
    (step,) = planned(run, make(base_domain="example.org", external_dns=("192.0.2.1",), external_network=None))
    changes = {each.field: (each.before, each.after) for each in step.changes}
    assert changes == {
        "baseDomain": ("example.com", "example.org"),
        "platform.openstack.externalDNS": (None, ["192.0.2.1"]),
        "others": (("platform.openstack.externalNetwork",), ()),
    }


def test_a_plan_shows_the_lines_of_the_file_that_change(run: CloudRun, make: Make) -> None:
    file = make()
    applied(run, file)
    text = file.file.read_text().replace("name: lab-", "name: lab")
    text = re.sub("baseDomain: .*", "baseDomain: example.org", text)
    text = text.replace("pullSecret: ", "password: hunter2\npullSecret: x")
    file.file.write_text(text)
    file.file.chmod(0o644)
    plan = planned(run, file)
    head, *lines, _ = str(plan).splitlines()
    assert "mode 0644 -> 0600" in head
    assert "pullSecret ******** -> ********" in head
    assert "baseDomain" not in head
    changed = [line.strip() for line in lines if line.strip()[0] in "+-"]
    assert changed == ["-baseDomain: example.org", "+baseDomain: example.com", "-password: '********'"]
    assert "       apiVersion: v1" in lines
    assert lines.count("      ...") == 1
    assert not [word for word in (SECRET, "hunter2") if word in str(plan)]
    assert {each.field for each in plan.steps[0].changes} >= {"baseDomain", "pullSecret", "others", "mode"}


@pytest.mark.parametrize("drift", ["text", "mode", "no copy", "no YAML", "a field more"])
def test_drift_is_mended(run: CloudRun, make: Make, drift: str) -> None:
    file = make()
    applied(run, file)
    right = file.file.read_text()
    tag_line = right.partition("\n")[0]
    if drift == "mode":
        file.file.chmod(0o644)
    elif drift == "no copy":
        file.kept.unlink()
    else:
        wrong = {
            "text": right.replace("master", "big"),
            "no YAML": f"{tag_line}\n{{",
            "a field more": f"{right}fips: true\n",
        }
        file.file.write_text(wrong[drift])
    assert action(run, file) is Action.UPDATE
    applied(run, file)
    assert (file.file.read_text(), file.kept.read_text()) == (right, right)
    assert file.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "apiVersion: v1\n", "{", "# [openstack-prep:other/install-config.yaml]\n"])
def test_somebody_elses_file_is_left_alone(run: CloudRun, make: Make, text: str, wording: Wording) -> None:
    file = make()
    file.file.parent.mkdir()
    file.file.write_text(text)
    wording(refusals(run, file))
    (step,) = planner.plan_destroy("lab", [file], observation.observe(run, [file]))
    assert step.action is Action.KEEP


@pytest.mark.parametrize(("file_mode", "refused"), [(0o644, True), (0o600, False)])
def test_somebody_elses_file_with_the_same_content_is_kept_or_refused(
    run: CloudRun, make: Make, file_mode: int, refused: bool
) -> None:
    file = make()
    applied(run, file)
    text = file.file.read_text().partition("\n")[2]  # without the ownership tag
    file.kept.unlink()
    file.file.write_text(text)
    file.file.chmod(file_mode)
    assert bool(refusals(run, file)) == refused
    if not refused:
        assert action(run, file) is Action.KEEP


@pytest.mark.parametrize("used", [False, True])
def test_somebody_elses_copy_is_left_alone(run: CloudRun, make: Make, used: bool, wording: Wording) -> None:
    file = make()
    applied(run, file)
    if used:
        eaten(file)
    file.kept.write_text("mine\n")
    wording(refusals(run, file))
    plan = planner.plan_destroy("lab", [file], observation.observe(run, [file]))
    executor.execute(plan, run).raise_for_failures()
    assert file.kept.read_text() == "mine\n"


def test_somebody_elses_file_that_says_the_same_will_do(run: CloudRun, make: Make) -> None:
    file = make()
    applied(run, file)
    file.kept.unlink()
    file.file.write_text(file.file.read_text().partition("\n")[2])
    assert action(run, file) is Action.KEEP


def test_a_file_that_cannot_be_read(run: CloudRun, make: Make) -> None:
    file = make()
    file.file.mkdir(parents=True)
    with pytest.raises(PrepError, match="cannot be read"):
        observation.observe(run, [file])


# --- after the installer ------------------------------------------------------------------


def test_what_the_installer_has_eaten_is_not_brought_back(run: CloudRun, make: Make) -> None:
    file = make()
    applied(run, file)
    eaten(file)
    assert action(run, file) is Action.KEEP
    applied(run, file)
    assert not file.file.exists()


def test_what_the_installer_has_eaten_cannot_be_changed(run: CloudRun, make: Make, wording: Wording) -> None:
    file = make()
    applied(run, file)
    eaten(file)
    (said,) = refusals(run, make(base_domain="example.org"))
    wording(said)


def test_the_mode_of_the_copy_is_mended_without_the_file(run: CloudRun, make: Make) -> None:
    file = make()
    applied(run, file)
    eaten(file)
    file.kept.chmod(0o644)
    applied(run, file)
    assert file.kept.stat().st_mode & 0o777 == 0o600
    assert not file.file.exists()


def test_without_a_cluster_it_is_written_again(run: CloudRun, make: Make, wording: Wording) -> None:
    file = make()
    applied(run, file)
    eaten(file)
    (file.file.parent / ".openshift_install_state.json").unlink()
    wording(str(planned(run, file)))
    other = make(base_domain="example.org")
    applied(run, other)
    assert "example.org" in file.file.read_text()
    assert not planned(run, other)


def test_somebody_elses_copy_without_the_file_is_left(run: CloudRun, make: Make, wording: Wording) -> None:
    file = make()
    file.kept.parent.mkdir()
    file.kept.write_text("theirs: true\n")
    wording(refusals(run, file))
    assert not list(planner.plan_destroy("lab", [file], observation.observe(run.fresh(), [file])))


@pytest.mark.parametrize("used", ["no", "installed", "destroyed"])
def test_destroy_removes_both(run: CloudRun, make: Make, used: str) -> None:
    file = make()
    applied(run, file)
    if used != "no":
        eaten(file)
    if used == "destroyed":
        (file.file.parent / ".openshift_install_state.json").unlink()
    plan = planner.plan_destroy("lab", [file], observation.observe(run, [file]))
    executor.execute(plan, run).raise_for_failures()
    assert not file.file.exists()
    assert not file.kept.exists()


# --- what it takes from elsewhere ---------------------------------------------------------


def test_what_the_release_refuses_is_told_at_once(run: CloudRun, make: Make) -> None:
    file = make(release="4.5", ingress_floating_ip="192.0.2.7", cluster_name="a.b", ssh_key_file="/no/key.pub")
    said = refusals(run, file)
    assert [each.partition(":")[0] for each in said] == ["ssh_key_file", "ingress_floating_ip", "cluster_name"]
    assert not file.file.exists()


def test_a_pull_secret_that_is_not_there_is_one_mistake(run: CloudRun, make: Make, wording: Wording) -> None:
    wording(refusals(run, make(pull_secret_file="/no/secret")))


def test_a_pull_secret_that_is_no_json_is_not_repeated(run: CloudRun, make: Make, folder: Path) -> None:
    (folder / "pull-secret.json").write_text("hunter2")
    (said,) = refusals(run, make())
    assert said.startswith("pull_secret_file: is not JSON with auths")


def test_a_private_key_is_refused_and_nowhere_shown(run: CloudRun, make: Make, folder: Path, wording: Wording) -> None:
    (folder / "id_ed25519").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END\n")
    wrong = make(ssh_key_file=str(folder / "id_ed25519"))
    (mistake,) = mistakes(run, wrong)
    assert mistake.field == "ssh_key_file"
    wording(mistake.what)
    plan = planned(run, wrong)
    assert "hunter2" not in f"{mistake}{plan}{json.dumps(plan.data())}"
    file = make(ssh_key_file=str(folder / "id_ed25519.pub"))
    applied(run, file)
    for path in (file.file, file.kept):  # as an earlier version wrote it
        path.write_text(re.sub("sshKey: .*", "sshKey: BEGIN PRIVATE KEY hunter2", path.read_text()))
    plan = planned(run, file)
    assert "sshKey" in str(plan)
    assert "hunter2" not in str(plan) + json.dumps(plan.data())


def test_contents_are_called_as_the_spec_has_them(run: CloudRun, make: Make, folder: Path, wording: Wording) -> None:
    (folder / "text.pem").write_text("hunter2")
    wording(refusals(run, make(additional_trust_bundle_file=str(folder / "text.pem"))))
    lost = str(folder / "gone.pem")
    wording(refusals(run, make(additional_trust_bundle_policy="Always", additional_trust_bundle_file=lost)))


def test_the_address_that_the_spec_gives_a_floating_ip(run: CloudRun, make: Make) -> None:
    api = FloatingIP(name="api", external_network="outside", address="192.0.2.5")
    file = resolved(make(external_network=None, api_floating_ip="api"), [api], run.admin)
    assert (file.api_floating_ip, file.external_network) == ("192.0.2.5", "outside")
    assert set(file.needs()) <= set(api.provides())
    assert {api.key} in planner.dependencies([api, file])[file.key]


@pytest.fixture
def neutron(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """The floating IPs of a Neutron that gives out 192.0.2.9."""
    kept: list[dict[str, Any]] = []

    def allocate(request: Any, _: Any) -> dict[str, Any]:
        body = request.json()["floatingip"]
        kept.append(
            {"id": "f1", "floating_ip_address": "192.0.2.9", "port_id": None, "revision_number": 1, "tags": []} | body
        )
        return {"floatingip": kept[-1]}

    services.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "external"}]})
    services.get(f"{NEUTRON}/floatingips", json=lambda *_: {"floatingips": kept})
    services.post(f"{NEUTRON}/floatingips", json=allocate, status_code=201)
    services.put(re.compile(r"http://[^/]+/v2.0/floatingips/[^/]+/tags/"), status_code=201)
    return kept


def test_the_next_free_address_once_it_is_ours(run: CloudRun, make: Make, neutron: list[dict[str, Any]]) -> None:
    api = FloatingIP(name="api", external_network="external")
    file = resolved(make(api_floating_ip="api"), [api], run.admin)
    applied(run, api, file)
    written = yaml.safe_load(file.file.read_text())["platform"]["openstack"]
    assert written["apiFloatingIP"] == "192.0.2.9"
    again = planned(run, api, file)
    assert [step.action for step in again] == [Action.KEEP, Action.KEEP]
    neutron[0]["floating_ip_address"] = "192.0.2.10"
    run.known.clear()
    assert [str(each) for step in planned(run, api, file) for each in step.changes] == [
        "Change(field='platform.openstack.apiFloatingIP', before='192.0.2.9', after='api')"
    ]


def test_a_floating_ip_that_nobody_makes(
    run: CloudRun, make: Make, neutron: list[dict[str, Any]], wording: Wording
) -> None:
    (said,) = refusals(run, resolved(make(api_floating_ip="api"), [], run.admin))
    wording(said)


def test_a_floating_ip_that_went_meanwhile(
    run: CloudRun, make: Make, neutron: list[dict[str, Any]], wording: Wording
) -> None:
    file = make(api_floating_ip="api")
    plan = planner.plan_apply("lab", [file], {})
    with pytest.raises(ApplyFailed) as caught:
        executor.execute(plan, run).raise_for_failures()
    wording(caught.value)
    assert not file.file.exists()


UNSUPPORTED = "is not a supported release; supported are 4.2 to 4.23, 5.0 and later"


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("4.20", 'install_config.release: 4.2 is a number in YAML; write the release in quotes, such as "4.20"'),
        ('"4.24"', f'install_config.release: "4.24" {UNSUPPORTED}'),
        ('"4.1"', f'install_config.release: "4.1" {UNSUPPORTED}'),
    ],
)
def test_a_release_that_is_none(folder: Path, release: str, said: str) -> None:
    (folder / "spec.yaml").write_text(
        "name: x\ninstall_config: {path: a, pull_secret_file: b, cluster_name: c, base_domain: d, cloud: e, "
        f"release: {release}}}\n"
    )
    with pytest.raises(SpecError) as caught:
        load_spec(folder / "spec.yaml")
    assert [str(each) for each in caught.value.mistakes] == [f"{folder}/spec.yaml:2: {said}"]


def test_validate_finds_what_the_installer_refuses_at_the_line_of_each_field(folder: Path) -> None:
    (folder / "spec.yaml").write_text(
        """\
name: x
install_config:
  path: x/install-config.yaml
  release: "4.20"
  pull_secret_file: not-there-at-a-validation
  cluster_name: a.b
  base_domain: example.com
  cloud: x
  external_network: external
  machines: {flavor: m}
  control_plane:
    replicas: 2
"""
    )
    with pytest.raises(SpecError) as caught:
        refuse_mistakes(load_spec(folder / "spec.yaml"))
    places = [(each.where.partition(":")[2].partition(":")[0], each.code) for each in caught.value.mistakes]
    assert sorted(places) == [("12", "install-config.invalid"), ("6", "install-config.invalid")]


# --- shipped specs ------------------------------------------------------------------------


def shipped(name: str, folder: Path, run: CloudRun) -> InstallConfig:
    shutil.copy(ROOT / "install_configs" / f"{name}.yaml", folder)
    spec = load_spec(folder / f"{name}.yaml")
    (file,) = (each for each in spec.resources if isinstance(each, InstallConfig))
    return resolved(file, spec.resources, run.admin)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_install_config_of_a_shipped_spec(
    name: str, folder: Path, run: CloudRun, services: requests_mock.Mocker
) -> None:
    named = ("fast", "standard")
    services.get(TYPES, json={"volume_types": [{"name": each, "id": f"id-{each}"} for each in named]})
    file = shipped(name, folder, run)
    applied(run, file)
    assert file.file.read_text() == (DATA / f"{name}.yaml").read_text()


def test_every_shipped_one_is_compared() -> None:
    ready = {path.stem for path in (ROOT / "install_configs").glob("*.yaml") if "\ninstall_config:" in path.read_text()}
    assert ready == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_spec_writes_the_entry_that_the_cluster_logs_in_by(name: str) -> None:
    resources = load_spec(ROOT / "install_configs" / f"{name}.yaml").resources
    entries = {each.cloud for each in resources if isinstance(each, CloudsEntry | ApplicationCredential)}
    assert {each.cloud for each in resources if isinstance(each, InstallConfig)} == entries
    assert not [each for each in resources if isinstance(each, EnvFile)]


# --- volume types -------------------------------------------------------------------------


def volumes(*names: str) -> RootVolume:
    return RootVolume(size=100, types=names, zones=("az1",))


def test_types_of_root_volumes_that_do_not_exist_are_refused(
    run: CloudRun, make: Make, services: requests_mock.Mocker, wording: Wording
) -> None:
    services.get(TYPES, json={"volume_types": [{"name": "ssd", "id": "t1"}, {"name": "hdd", "id": "t2"}]})
    right = make(
        machines=Machines(flavor="master", root_volume=volumes("ssd")), compute=MachinePool(root_volume=volumes("hdd"))
    )
    assert refusals(run, right) == []
    wrong = make(
        machines=Machines(flavor="master", root_volume=volumes("sdd")),
        control_plane=MachinePool(root_volume=volumes("nvme", "ssd")),
        compute=MachinePool(root_volume=volumes("SSD")),
    )
    wording(refusals(run, wrong))
    assert not wrong.file.exists()


def test_cinder_is_asked_only_for_types_that_are_named(
    run: CloudRun, make: Make, services: requests_mock.Mocker
) -> None:
    asked = services.get(TYPES, json={"volume_types": []})
    assert refusals(run, make()) == []
    assert asked.call_count == 0


def test_a_type_that_went_after_the_installation_is_not_missed(
    run: CloudRun, make: Make, services: requests_mock.Mocker
) -> None:
    file = make(machines=Machines(flavor="master", root_volume=volumes("ssd")))
    services.get(TYPES, json={"volume_types": [{"name": "ssd", "id": "t1"}]})
    applied(run, file)
    eaten(file)
    services.get(TYPES, json={"volume_types": []})
    assert action(run, file) is Action.KEEP


def test_missing_files_are_named_together(run: CloudRun, make: Make) -> None:
    file = make(pull_secret_file="/no/secret", ssh_key_file="/no/key")
    found = file.list_mistakes(Context(resources=[file], cloud=run.admin))
    assert [each.field for each in found] == ["pull_secret_file", "ssh_key_file"]
