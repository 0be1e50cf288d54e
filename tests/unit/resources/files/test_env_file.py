from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, OwnershipTag
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.files.env_file import EnvFile
from tests.unit.conftest import ADMIN_PROJECT, IDENTITY, declared_mistakes, failure, resolved


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lab.env"


def sourced(path: Path) -> dict[str, str]:
    """Return what ``sh`` makes of it."""
    out = subprocess.check_output(["sh", "-c", f". '{path}'; env -0"], env={}, text=True)
    pairs = (pair.partition("=") for pair in out.rstrip("\0").split("\0"))
    return {name: value for name, _, value in pairs if name not in ("PWD", "SHLVL", "_", "OLDPWD")}


def test_a_shell_reads_what_is_wanted(run: CloudRun, path: Path, tmp_path: Path) -> None:
    odd = 'it\'s $HOME `x` "q" # \\ \n end'
    entry = CloudsEntry(path=str(tmp_path / "clouds.yaml"), cloud="lab", user="ocp")
    file = EnvFile(path=str(path), cloud="lab", kubeconfig=str(tmp_path / "auth/kubeconfig"), variables={"ODD": odd})
    file = resolved(file, [entry], run.admin)
    file.create(run)
    assert sourced(path) == {
        "OS_CLOUD": "lab",
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
        "KUBECONFIG": str(tmp_path / "auth/kubeconfig"),
        "ODD": odd,
    }
    assert path.stat().st_mode & 0o777 == 0o600
    observed = observation.observe(run, [file])[file.key]
    assert observed.ours
    assert not planner.diff(file, observed)
    assert set(file.needs()) < set(entry.provides())


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ('export X="a\nb"\n', ""),
        ("cat <<END\nDon't\nEND\n", "cat <<END\nDon't\nEND\n"),
        ("[ -f /x ] && export A=1\necho\n", "[ -f /x ] && export A=1\necho\n"),
        ("FOO=bar; export FOO\nexport FOO\n", "FOO=bar; export FOO\nexport FOO\n"),
        ("export A=1 B=2\n", "export A=1 B=2\n"),
        ("# it's\n  export OS_CLOUD=mine # ours\n", "# it's\n"),
    ],
)
def test_statements_of_others_stay_whole(others: str, left: str, run: CloudRun, path: Path) -> None:
    """Only a statement that exports one variable and does nothing else is removed."""
    EnvFile(path=str(path), cloud="old", variables={"LINES": "a\nb", "OLD": "1"}).create(run)
    with path.open("a") as appended:
        appended.write(others)
    file = EnvFile(path=str(path), cloud="lab", variables={"LINES": "c\nd'e"})
    for _ in range(2):
        file.create(run)
        assert path.read_text().split("\n", 1)[1] == "export OS_CLOUD=lab\nexport LINES='c\nd'\"'\"'e'\n" + left
        assert not planner.diff(file, observation.observe(run, [file])[file.key])
    observed = observation.observe(run, [file])[file.key]
    replace(file, variables={"LINES": "x"}).delete(run, observed)
    assert (path.read_text() if path.exists() else "") == left


def test_drift_is_mended_and_destroy_removes_it(run: CloudRun, path: Path) -> None:
    EnvFile(path=str(path), cloud="lab", variables={"OLD": "1"}).create(run)
    path.chmod(0o644)
    file = EnvFile(path=str(path), cloud="other")
    plan = planner.plan_apply("lab", [file], observation.observe(run, [file]))
    assert [each.field for step in plan for each in step.changes] == ["variables", "mode"]
    executor.execute(plan, run).raise_for_failures()
    assert sourced(path) == {"OS_CLOUD": "other"}
    executor.execute(planner.plan_destroy("lab", [file], observation.observe(run, [file])), run).raise_for_failures()
    assert not path.exists()


@pytest.mark.parametrize(
    ("address", "project_id", "ours"),
    [
        ("https://other:5000/v3", "p1", False),
        ("https://other:5000/v3", "", False),
        (f"{IDENTITY.replace('http:', 'https:')}/", "p1", True),
        (IDENTITY, "p1", True),
        ("https://other:5000/v3", ADMIN_PROJECT, True),
    ],
)
def test_a_file_of_another_cloud_is_of_somebody_else(
    run: CloudRun,
    services: requests_mock.Mocker,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    project_id: str,
    ours: bool,
) -> None:
    """A project that does not exist may have been deleted, but not in another cloud; one that exists settles it."""
    services.get(f"{IDENTITY}/projects/p1", **failure(404))
    here = CloudRun(run.admin, run.ownership, homes=[None])
    file = EnvFile(path=str(path), cloud="lab")
    with monkeypatch.context() as patch:
        patch.setattr(Cloud, "auth_url", address)
        patch.setattr(Cloud, "project_id", project_id)
        file.create(CloudRun(run.admin, run.ownership, homes=[None]))
    before, there = path.read_text(), replace(file, variables={"A": "1"})
    observed, mistakes = observation.examine(here, [there])
    assert observed[file.key].ours is ours
    assert [each.code for each in mistakes] == ([] if ours else [Code.PLAN_FOREIGN])
    if not ours:
        with pytest.raises(PlanRefused):
            there.create(here)
        there.delete(here, observed[file.key])
        assert path.read_text() == before


def test_a_file_of_an_earlier_version_names_no_cloud(run: CloudRun, services: requests_mock.Mocker, path: Path) -> None:
    services.get(f"{IDENTITY}/projects/p1", **failure(404))
    path.write_text("# [openstack-prep:lab/lab.env@p1]\nexport OS_CLOUD=lab\n")
    here = CloudRun(run.admin, run.ownership, homes=[None])
    assert observation.observe(here, [EnvFile(path=str(path))])[EnvFile(path=str(path)).key].ours


def test_destroy_makes_no_folder_that_is_gone(run: CloudRun, tmp_path: Path) -> None:
    file = EnvFile(path=str(tmp_path / "lab" / "lab.env"), cloud="lab")
    file.create(run)
    plan = planner.plan_destroy("lab", [file], observation.observe(run, [file]))
    shutil.rmtree(tmp_path / "lab")
    executor.execute(plan, run).raise_for_failures()
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize("text", ["", "export OS_CLOUD=mine\n", "it's\n", "# [openstack-prep:other/lab.env]\n"])
def test_somebody_elses_file_is_left_alone(run: CloudRun, path: Path, text: str) -> None:
    path.write_text(text)
    file = EnvFile(path=str(path), cloud="lab")
    _, (mistake,) = observation.examine(run, [file])
    owner = "managed by spec other" if "openstack-prep:" in text else "not managed by this spec"
    assert mistake.what == f"{path} exists and is {owner}"
    (step,) = planner.plan_destroy("lab", [file], observation.observe(run, [file]))
    assert step.action is Action.KEEP
    assert path.read_text() == text


@pytest.mark.parametrize(("file_mode", "codes"), [(0o644, ["plan.foreign"]), (0o600, [])])
def test_somebody_elses_file_with_the_same_variables_is_kept_or_refused(
    run: CloudRun, path: Path, file_mode: int, codes: list[str]
) -> None:
    path.write_text("export OS_CLOUD=lab\n")
    path.chmod(file_mode)
    file = EnvFile(path=str(path), cloud="lab")
    observed, mistakes = observation.examine(run, [file])
    assert [each.code for each in mistakes] == codes
    if not codes:
        assert not planner.plan_apply("lab", [file], observed)


@pytest.mark.parametrize("cloud", ["lab", "other"])
def test_of_two_specs_at_once_one_wins(run: CloudRun, path: Path, cloud: str) -> None:
    other = CloudRun(run.admin, OwnershipTag("other"))
    ours, theirs = EnvFile(path=str(path), cloud="lab"), EnvFile(path=str(path), cloud=cloud)
    late = planner.plan_apply("other", [theirs], observation.observe(other, [theirs]))
    ours.create(run)
    before = path.read_text()
    (failed,) = executor.execute(late, other).failed
    assert isinstance(failed.error, PlanRefused)
    assert failed.error.diagnostics[0].code == "plan.foreign"
    assert path.read_text() == before
    destroy = planner.plan_destroy("lab", [ours], observation.observe(run, [ours]))
    path.write_text("# somebody else's by now\n")
    executor.execute(destroy, run).raise_for_failures()
    assert path.read_text() == "# somebody else's by now\n"


def test_what_others_have_added_stays(run: CloudRun, path: Path, tmp_path: Path) -> None:
    """Apply keeps lines and takes variables back, as the plan says; destroy takes only what the spec has written."""
    file = EnvFile(path=str(path), cloud="lab", variables={"ODD": "two\nlines"})
    file.create(run)
    path.write_text(f"{path.read_text()}. ./venv/bin/activate # mine\nexport MINE=1\n")
    apply = planner.plan_apply("lab", [file], observation.observe(run, [file]))
    assert [step.action for step in apply] == [Action.UPDATE]
    executor.execute(apply, run).raise_for_failures()
    assert path.read_text().endswith("lines'\n. ./venv/bin/activate # mine\n")
    assert not planner.diff(file, observation.observe(run.fresh(), [file])[file.key])

    path.write_text(f"{path.read_text()}export MINE=1\n")
    copy = EnvFile(path=str(tmp_path / "copy.env"), cloud="lab")
    shutil.copy(path, copy.path)
    run = run.fresh()
    destroy = planner.plan_destroy("lab", [file, copy], observation.observe(run, [file, copy]))
    executor.execute(destroy, run).raise_for_failures()
    assert path.read_text() == ". ./venv/bin/activate # mine\nexport MINE=1\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "ODD" in Path(copy.path).read_text()


def test_a_link_is_written_and_removed_through(run: CloudRun, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    path.symlink_to(target)
    file = EnvFile(path=str(path), cloud="lab")
    assert not observation.examine(run, [file])[1]
    file.create(run)
    observed = observation.observe(run, [file])
    assert observed[file.key].ours
    assert target.stat().st_mode & 0o777 == 0o600
    executor.execute(planner.plan_destroy("lab", [file], observed), run).raise_for_failures()
    assert (path.is_symlink(), target.exists()) == (True, False)
    path.unlink()
    file.create(run)
    path.parent.chmod(0o500)
    assert not observation.examine(run, [file])[1]  # nothing has to be written
    path.parent.chmod(0o700)
    path.unlink()
    path.symlink_to(path.name)
    (mistake,) = observation.examine(run, [file])[1]
    assert "leads back to itself" in mistake.what


@pytest.mark.parametrize("head", ["", "# [openstack-prep:lab/lab.env]\n"])
def test_what_stands_in_a_file_is_not_shown_when_it_may_be_a_secret(run: CloudRun, path: Path, head: str) -> None:
    path.write_text(f"{head}export OS_PASSWORD=hunter2\nexport OS_CLOUD=lab\nexport GITHUB_PAT=hunter2\n")
    file = EnvFile(path=str(path), cloud="lab")
    observed, mistakes = observation.examine(run, [file])
    plan = planner.plan_apply("lab", [file], observed, mistakes=mistakes)
    assert "variables.OS_PASSWORD ******** -> (unset)" in str(plan)
    assert "variables.GITHUB_PAT ******** -> (unset)" in str(plan)
    assert "OS_CLOUD" not in str(plan)
    assert "hunter2" not in str(plan) + str(plan.data()) + repr(observed)


def test_a_name_that_is_none_is_a_mistake(path: Path) -> None:
    (mistake,) = declared_mistakes(EnvFile(path=str(path), variables={"A B": "x"}))
    assert mistake.field == "variables"
