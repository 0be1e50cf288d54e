from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, PlanRefused, PrepError, SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import DIFFERS, Key, Observed
from openstack_prep.core.plan import Plan
from openstack_prep.core.planner import plan_apply
from openstack_prep.reports.support import of_spec
from openstack_prep.resources.files.env_file import EnvFile
from openstack_prep.resources.identity.user import User
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs.plan_file import SavedPlan, list_warnings, save
from tests.unit.box import Box
from tests.unit.conftest import IDENTITY, connection, token
from tests.unit.texts import Wording, expect_error

BOXES = (Box(name="a", material="oak"), Box(name="b", size=1))

Edit = Callable[..., Path]


def plan(consent: bool = False, **there: dict[str, Any]) -> Plan:
    observed = {Key("box", name): Observed(id=f"id-{name}", values=values, ours=True) for name, values in there.items()}
    return plan_apply("lab", BOXES, observed, allow_replace=consent)


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text("name: lab\n")
    return path


Keep = Callable[..., Path]


@pytest.fixture
def keep(tmp_path: Path, spec: Path, cloud: Cloud) -> Keep:
    """Keep a plan in a file."""

    def keep(made: Plan | None = None, name: str = "kept.plan") -> Path:
        save(tmp_path / name, made or plan(), spec, load_spec(spec), spec.read_bytes(), cloud)
        return tmp_path / name

    return keep


@pytest.fixture
def kept(keep: Keep) -> Path:
    """A kept plan that creates both boxes."""
    return keep()


def forged(kept: Path, **changes: Any) -> Path:
    """Change a kept plan as somebody would who knows how its digest is made."""
    content = json.loads(kept.read_text()) | changes
    del content["digest"]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    kept.write_text(json.dumps(content))
    return kept


# --- what it was made from ----------------------------------------------------------------


def test_a_fresh_one_is_accepted(kept: Path, spec: Path, cloud: Cloud) -> None:
    saved = SavedPlan(kept)
    assert saved.find_spec() == spec
    assert not saved.allow_replace
    saved.check_cloud(cloud)
    saved.check(plan(), spec, load_spec(spec))


def test_a_changed_spec_makes_it_stale(kept: Path, spec: Path) -> None:
    spec.write_text("name: lab\nquota: {cores: 1}\n")
    with expect_error(PlanRefused, "kept.plan", "created", "spec lab", "spec.yaml"):
        SavedPlan(kept).find_spec()


def test_a_changed_file_of_the_spec_makes_it_stale(keep: Keep, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "k.pub").write_text("ssh-ed25519 AAAA one")
    spec.write_text("name: lab\nstacks: [{name: s, template: t.yaml, parameters: {key: {file: k.pub}}}]\n")
    (tmp_path / "t.yaml").write_text("heat_template_version: wallaby\nparameters: {key: {type: string}}\n")
    kept = SavedPlan(keep())
    kept.check(plan(), spec, load_spec(spec))
    os.utime(tmp_path / "k.pub", ns=(1, 1))
    with pytest.raises(PlanRefused) as caught:
        kept.check(plan(), spec, load_spec(spec))
    assert [each.where.rpartition("/")[2] for each in caught.value.mistakes] == ["k.pub"]


def test_a_spec_that_has_gone_makes_it_stale(kept: Path, spec: Path) -> None:
    spec.unlink()
    with pytest.raises(PlanRefused) as caught:
        SavedPlan(kept).find_spec()
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.fix) == (str(kept), f"pass the spec: openstack-prep apply --plan {kept} SPEC")


def test_a_spec_that_changes_while_the_plan_is_made_is_not_kept(
    tmp_path: Path, spec: Path, cloud: Cloud, wording: Wording
) -> None:
    with pytest.raises(PrepError) as caught:
        save(tmp_path / "kept.plan", plan(), spec, load_spec(spec), b"name: other\n", cloud)
    wording(caught.value)
    assert not (tmp_path / "kept.plan").exists()


def test_only_a_saved_plan_or_an_empty_file_is_replaced(keep: Keep, spec: Path, tmp_path: Path) -> None:
    before = spec.read_bytes()
    with pytest.raises(ConfigError):
        keep(name=spec.name)
    assert spec.read_bytes() == before
    (tmp_path / "empty").touch()
    for name in ("new.plan", "new.plan", "empty"):
        SavedPlan(keep(name=name))


def test_a_spec_that_cannot_be_read_again_is_refused(tmp_path: Path, cloud: Cloud, wording: Wording) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SpecError) as caught:
        save(tmp_path / "kept.plan", plan(), pipe, Spec("lab", ()), b"", cloud)
    wording(caught.value)


def test_a_cloud_that_has_moved_makes_it_stale(kept: Path, spec: Path) -> None:
    with pytest.raises(PlanRefused) as caught:
        SavedPlan(kept).check(plan(b={"size": 1}), spec, load_spec(spec))
    (mistake,) = caught.value.mistakes
    assert mistake.where.endswith("kept.plan: box/b")


def test_another_thing_of_the_same_name_makes_it_stale(keep: Keep, spec: Path, wording: Wording) -> None:
    kept = keep(plan(b={"size": 2}))
    moved = plan_apply("lab", BOXES, {Key("box", "b"): Observed(id="another", values={"size": 2})})
    with pytest.raises(PlanRefused) as caught:
        SavedPlan(kept).check(moved, spec, load_spec(spec))
    wording(caught.value)


@pytest.mark.parametrize("applied", [True, False])
def test_files_of_a_fresh_checkout_are_written_again(keep: Keep, spec: Path, tmp_path: Path, applied: bool) -> None:
    """By a plan that was applied before, and did all else, unless a resource has changed since."""
    boxes = (*BOXES, EnvFile(path=str(tmp_path / "env"), cloud="lab"))
    kept = keep(plan_apply("lab", boxes, {}))
    now = {each.key: Observed(id=each.name, ours=True, values=each.desired()) for each in BOXES[: 2 if applied else 1]}
    with contextlib.nullcontext() if applied else pytest.raises(PlanRefused):
        SavedPlan(kept).check(plan_apply("lab", boxes, now), spec, load_spec(spec))


@pytest.mark.parametrize("other", [True, False])
def test_it_is_for_one_tenant(
    services: requests_mock.Mocker, spec: Path, tmp_path: Path, cloud: Cloud, other: bool
) -> None:
    path = tmp_path / "kept.plan"
    save(path, plan(), spec, load_spec(spec), spec.read_bytes(), cloud, Cloud(connection("tenant")))
    login = {"json": token(project_id="other"), "headers": {"X-Subject-Token": "4f2a9c"}, "status_code": 201}
    if other:
        services.post(f"{IDENTITY}/auth/tokens", **login)
    with pytest.raises(PlanRefused) if other else contextlib.nullcontext():
        SavedPlan(path).check(plan(), spec, load_spec(spec), Cloud(connection("tenant")))


@pytest.mark.parametrize(("field", "name"), [("auth_url", "auth_url"), ("region", "region"), ("project_id", "project")])
def test_it_is_for_one_cloud_and_project(kept: Path, cloud: Cloud, field: str, name: str) -> None:
    saved = json.loads(kept.read_text())["cloud"]
    forged(kept, cloud=saved | {field: "http://other"})
    with expect_error(PlanRefused, "created", "cloud", f": {name} http://other"):
        SavedPlan(kept).check_cloud(cloud)


def test_another_user_of_the_same_project_applies_it(kept: Path, services: requests_mock.Mocker) -> None:
    login = {"json": token(user_id="colleague"), "headers": {"X-Subject-Token": "4f2a9c"}, "status_code": 201}
    services.post(f"{IDENTITY}/auth/tokens", **login)
    colleague = Cloud(connection("colleague", "another-password"))
    SavedPlan(kept).check_cloud(colleague)
    assert colleague.user_id == "colleague"


# --- consent --------------------------------------------------------------------------------


def test_consent_to_a_replacement_is_kept_with_it(keep: Keep) -> None:
    saved = SavedPlan(keep(plan(True, a={"material": "tin"}, b={"size": 2})))
    assert saved.content.allow_replace == ("box/a",)


def test_consent_to_a_loss_is_kept_with_it(keep: Keep, tmp_path: Path) -> None:
    user = User(name="u", password=Secret(fetch=lambda: "new", path=str(tmp_path / "no.password")))
    observed = {user.key: Observed(id="u1", ours=True, values={"password": DIFFERS})}
    saved = SavedPlan(keep(plan_apply("lab", [user], observed, allow_replace=True)))
    assert saved.content.allow_replace == (str(user.key),)


@dataclass(frozen=True, kw_only=True)
class Crate(Box):
    """A box of which only the service can tell what an update does."""

    kind: ClassVar[str] = "crate"

    def is_foreseen(self, observed: Observed) -> bool:
        return True


@pytest.mark.parametrize(("consent", "named"), [(True, ("crate/b",)), (False, ())])
def test_consent_to_what_only_the_run_finds_out_is_kept_with_it(
    keep: Keep, consent: bool, named: tuple[str, ...]
) -> None:
    """It needs another, which the same run creates."""
    boxes = Box(name="a", size=2), Crate(name="b", size=1, on=("a",)), Crate(name="c", size=1)
    observed = {each.key: Observed(id=each.name, ours=True) for each in boxes[1:]}
    saved = SavedPlan(keep(plan_apply("lab", boxes, observed, allow_replace=consent)))
    assert (saved.content.allow_replace, saved.allow_replace) == (named, consent)


def test_a_loss_that_it_does_not_name_is_refused(keep: Keep, spec: Path, tmp_path: Path) -> None:
    """The steps are the same: a new password, and whether the old one can still be had shows in the loss alone."""
    password = tmp_path / "u.password"
    password.write_text("x\n")
    user = User(name="u", password=Secret(fetch=lambda: "x", path=str(password)))
    observed = {user.key: Observed(id="u1", ours=True, values={"password": DIFFERS})}
    kept = keep(plan_apply("lab", [user], observed))
    password.unlink()
    now = plan_apply("lab", [user], observed, allow_replace=True)
    with expect_error(PlanRefused, "user/u", "replaced"):
        SavedPlan(kept).check(now, spec, load_spec(spec))


# --- what it holds --------------------------------------------------------------------------


def test_it_holds_no_secret(keep: Keep) -> None:
    user = User(name="u", password=Secret("correct-horse"))
    observed = {user.key: Observed(id="u1", values={"password": Secret("old-horse")})}
    assert "horse" not in keep(plan_apply("lab", [user], observed)).read_text()


def test_a_value_with_a_folder_of_this_machine_is_reported(spec: Path) -> None:
    text = "name: lab\nvariables: {a: {}, b: {}, c: {}}\nnetworks: [{name: n, description: '${a}${b}${c}'}]\n"
    spec.write_text(text)
    given = {"a": str(spec.parent / "image.raw"), "b": "/dev/vdb", "c": f"{Path.home()}/key"}
    found = [*list_warnings(spec, load_spec(spec, variables=given))]
    assert [each.split()[1] for each in found] == (["a", "c"] if Path.home() != Path("/") else ["a"])


def test_other_values_of_variables_are_named(spec: Path, tmp_path: Path, cloud: Cloud) -> None:
    spec.write_text("name: lab\nvariables: {a: {}, b: {default: x}}\nnetworks: [{name: n, description: '${a}${b}'}]\n")
    path = tmp_path / "kept.plan"
    save(path, plan(), spec, load_spec(spec, variables={"a": "1"}), spec.read_bytes(), cloud)
    saved = SavedPlan(path)
    saved.check_variables(load_spec(spec, variables={"a": "1"}))
    with pytest.raises(PlanRefused) as caught:
        saved.check_variables(load_spec(spec, variables={"a": "2", "b": "y"}))
    assert [each.where for each in caught.value.mistakes] == [f"{path}: variables.a", f"{path}: variables.b"]
    assert [('"2"' in each.what, '"1"' in each.what) for each in caught.value.mistakes] == [
        (True, True),
        (False, False),
    ]


def test_fields_of_variables_that_the_spec_does_not_use_hold_no_secret(
    spec: Path, tmp_path: Path, cloud: Cloud
) -> None:
    spec.write_text("name: lab\nvariables: {team: {type: map}}\nnetworks: [{name: n, description: '${team.name}'}]\n")
    declared = load_spec(spec, variables={"team": {"name": "red", "db_password": "hunter2"}})
    with pytest.raises(SpecError) as caught:
        save(tmp_path / "kept.plan", plan(), spec, declared, spec.read_bytes(), cloud)
    assert [each.where for each in caught.value.mistakes] == ["variables.team"]
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "is_kept"),
    [
        ("http://joe:pw@h/x", False),
        ("https://h/x?sig=SIG", False),
        ("h/x?X-Amz-Signature=SIG", False),
        ("https://h:8443/x@sha256:0", True),
        ("is it right?", True),
    ],
)
def test_a_variable_with_a_login_or_a_signature_is_not_kept(
    spec: Path, tmp_path: Path, cloud: Cloud, url: str, is_kept: bool
) -> None:
    spec.write_text("name: lab\nvariables: {url: {}}\nnetworks: [{name: n, description: '${url}'}]\n")
    declared = load_spec(spec, variables={"url": url})
    if is_kept:
        save(tmp_path / "kept.plan", plan(), spec, declared, spec.read_bytes(), cloud)
        return
    with pytest.raises(SpecError) as caught:
        save(tmp_path / "kept.plan", plan(), spec, declared, spec.read_bytes(), cloud)
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.code) == ("variables.url", Code.SPEC_VARIABLE)
    assert url not in str(mistake)
    assert not (tmp_path / "kept.plan").exists()


@pytest.mark.parametrize(
    ("source", "word", "is_kept"),
    [
        ("https://me:${word}@h/i.qcow2", "1234", False),
        ("https://${word}@h/i.qcow2", "1234", False),
        ("https://h/i.qcow2?${word}", "1234", False),
        ("https://h/i.qcow2?sig=${word}", "1234", False),
        ("https://h/${word}/i.qcow2", "1234", True),
        ("https://h:${word}/i.qcow2", "1234", True),
        ("https://me:there@h/$${word}-${word}.qcow2", "1234", True),
        ("${base}/i.qcow2?${word}", "1234", False),
        ("https://${word}/i.qcow2", "me:there@h", False),
        ("https://h/${word}", "i.qcow2?1234", False),
        ("${base}/${word}", "1234.qcow2", True),
    ],
)
def test_a_variable_within_a_login_or_a_signature_is_not_kept(
    spec: Path, tmp_path: Path, cloud: Cloud, source: str, word: str, is_kept: bool
) -> None:
    image = f"{{name: n, disk_format: qcow2, size: 1GiB, checksum: 'sha256:{'0' * 64}', source: '{source}'}}"
    base = "base: {default: 'https://h'}" if "${base}" in source else ""
    spec.write_text(f"name: lab\nvariables: {{word: {{}}, {base}}}\nimages: [{image}]\n")
    declared = load_spec(spec, variables={"word": word})
    assert (word in str(of_spec(declared)["variables"])) == is_kept
    with contextlib.nullcontext() if is_kept else pytest.raises(SpecError, match="login or query"):
        save(tmp_path / "kept.plan", plan(), spec, declared, spec.read_bytes(), cloud)


CLUSTER = """\
name: lab
variables: {word: {}}
rke_clusters:
- {name: c, stack: s, directory: out, kubernetes_version: v1.31.1-rancher1-1, config: {CONFIG}}
stacks: [{name: s, template: "shipped:rke-cluster.yaml"}]
"""


@pytest.mark.parametrize(
    ("config", "word", "is_kept"),
    [
        ('bastion_host: {address: 10.9.0.1, ssh_key: "${word}"}', "-----BEGIN PRIVATE KEY-----\nabcd\n", False),
        ('services: {kube-api: {extra_env: ["DB_PASSWORD=${word}"]}}', "abcd", False),
        ('services: {kube-api: {extra_env: ["TZ=${word}"]}}', "abcd", True),
        ('addons: "kind: Secret\\nstringData: {password: ${word}}\\n"', "abcd", False),
        ("ingress: {options: {x-password: '${word}'}}", "abcd", False),
    ],
)
def test_a_variable_within_a_secret_of_a_cluster_is_not_kept(
    spec: Path, tmp_path: Path, cloud: Cloud, config: str, word: str, is_kept: bool
) -> None:
    spec.write_text(CLUSTER.replace("CONFIG", config))
    declared = load_spec(spec, variables={"word": word})
    assert ("abcd" in str(of_spec(declared)["variables"])) == is_kept
    with contextlib.nullcontext() if is_kept else pytest.raises(SpecError, match="secret in plain text"):
        save(tmp_path / "kept.plan", plan(), spec, declared, spec.read_bytes(), cloud)


def test_two_of_the_same_plan_share_no_digest_of_a_content(keep: Keep) -> None:
    """The spec may hold a password in plain text: without a salt its digest could be looked up."""
    one, other = (json.loads(keep(name=name).read_text()) for name in ("one.plan", "other.plan"))
    assert one["spec"]["content"] != other["spec"]["content"]
    assert one["steps"] == other["steps"]


# --- how it is written ----------------------------------------------------------------------


@pytest.fixture
def careless() -> Any:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careless")
def test_only_its_owner_can_read_it(keep: Keep) -> None:
    keep().chmod(0o666)
    assert keep().stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("target", ["theirs", "gone", ".", "/dev/null"])
def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path, keep: Keep, target: str) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "kept.plan").symlink_to(target)
    kept = keep()
    assert not kept.is_symlink()
    assert kept.is_file()
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert not (tmp_path / "gone").exists()
    SavedPlan(kept)


def test_one_that_cannot_be_written(keep: Keep, wording: Wording) -> None:
    with pytest.raises(PrepError) as caught:
        keep(name="no/kept.plan")
    wording(caught.value)


# --- how it is read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["", "name: ocp4\n", "[]", "null", "{}", '{"format": 1}', '{"format": "2"}', "\xff", "[" * 100_000, '{"a":' * 9999],
)
def test_what_is_no_plan(kept: Path, content: str, wording: Wording) -> None:
    kept.write_bytes(content.encode("latin-1"))
    with pytest.raises(SpecError) as caught:
        SavedPlan(kept)
    wording(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"action": "create"', '"action": "keep"'),
        ('"resource": "box/b"', '"resource": "box/a"'),
        ('"allow_replace": []', '"allow_replace": ["box/a"]'),
        ('"allow_replace": []', '"allow_replace": {"": ""}'),
        ('"name": "lab"', '"name": "live"'),
        ('"digest": "', '"digest": "0'),
        ('"digest": "', '"more": "'),
    ],
)
def test_one_that_was_edited(kept: Path, old: str, new: str, wording: Wording) -> None:
    before = kept.read_text()
    kept.write_text(before.replace(old, new))
    assert kept.read_text() != before
    with pytest.raises(SpecError) as caught:
        SavedPlan(kept)
    wording(caught.value)


STEP = {"resource": "box/a", "action": "create", "id": None, "changes": []}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"allow_replace": {"": ""}}, "allow_replace"),
        ({"allow_replace": True}, "allow_replace"),
        ({"allow_replace": [""]}, "allow_replace"),
        ({"allow_replace": ["box/a"]}, "allow_replace"),
        ({"steps": [STEP, STEP]}, "steps"),
        ({"steps": {}}, "steps"),
        ({"steps": None}, "steps"),
        ({"steps": [{}]}, "steps.0.resource"),
        ({"steps": [STEP | {"resource": 5}]}, "steps.0.resource"),
        ({"steps": [STEP | {"action": "forget"}]}, "steps.0.action"),
        ({"spec": "spec.yaml"}, "spec"),
        ({"spec": {"name": "lab", "path": "/etc/spec.yaml", "content": "x"}}, "spec.path"),
        ({"cloud": {"entry": "lab"}}, "cloud.auth_url"),
        ({"files": ["x"]}, "files"),
        ({"salt": "x"}, "salt"),
        ({"salt": 5}, "salt"),
        ({"more": 1}, "more"),
    ],
)
def test_one_of_another_shape(kept: Path, changes: dict[str, Any], place: str) -> None:
    with pytest.raises(SpecError) as caught:
        SavedPlan(forged(kept, **changes))
    (mistake,) = caught.value.mistakes
    assert mistake.where == f"{kept}: {place}"


def test_one_that_is_nested_too_deeply(kept: Path) -> None:
    steps: list[Any] = []
    for _ in range(100_000):
        steps = [steps]
    with pytest.raises(SpecError) as caught:
        SavedPlan(kept, {**json.loads(kept.read_text()), "steps": steps})
    assert [each.where for each in caught.value.mistakes] == [str(kept)]


def test_one_that_is_not_there(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        SavedPlan(tmp_path / "gone.plan")
    wording(caught.value)


def test_one_with_the_name_of_another_spec(kept: Path, spec: Path) -> None:
    """The content of the spec is compared, so this could only mislead who reviews the file."""
    saved = {**json.loads(kept.read_text())["spec"], "name": "other"}
    with expect_error(PlanRefused, "kept.plan", "spec.name", "other", "lab"):
        SavedPlan(forged(kept, spec=saved)).check(plan(), spec, load_spec(spec))
