from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from openstack_prep.core.model import Key, Observed
from openstack_prep.core.plan import Plan
from openstack_prep.core.planner import plan_apply
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs import spec_files
from openstack_prep.verbs.spec_files import fingerprints, local_files, portable, without_folders
from tests.kinds import KINDS
from tests.unit.texts import Wording

SALT = b"salt"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB\n"
SPEC = """\
name: lab
users: [{name: u, password: {file: secrets/u.password}}]
keypairs: [{name: k, public_key: {file: k.pub}}]
images: [{name: i, source: disk.img}, {name: far, source: "https://example.com/x"}]
stacks: [{name: s, template: heat/top.yaml, environments: [env.yaml]}]
"""
TOP = """\
heat_template_version: wallaby
resources: {n: {type: node.yaml}}
"""
FILES = {
    "spec.yaml": SPEC,
    "secrets/u.password": "hunter2\n",
    "k.pub": KEY,
    "disk.img": "image",
    "heat/top.yaml": TOP,
    "heat/node.yaml": "heat_template_version: wallaby\n",
    "env.yaml": "parameters: {}\n",
}
READ = FILES.keys() - {"spec.yaml"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a spec and all that it reads."""
    made = tmp_path / "here"
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def planned(folder: Path) -> Plan:
    return plan_apply("lab", load_spec(folder / "spec.yaml").resources, {})


def seen(folder: Path) -> dict[str, str]:
    """Return what tells each file apart, by its path in the folder."""
    found = fingerprints(load_spec(folder / "spec.yaml"), planned(folder), SALT)
    return {os.path.relpath(path, folder): each for path, each in found.items()}


def test_all_that_a_spec_reads_is_found(folder: Path) -> None:
    assert seen(folder).keys() == READ
    assert seen(folder) == seen(folder)


@pytest.mark.parametrize("name", sorted(READ))
def test_each_that_changes_is_noticed(folder: Path, name: str) -> None:
    before = seen(folder)
    (folder / name).write_text(f"{FILES[name].strip()} # more\n")
    after = seen(folder)
    assert {each for each in READ if before[each] != after[each]} == {name}


def test_an_included_file_that_changes_is_noticed(folder: Path) -> None:
    (folder / "spec.yaml").write_text(f"include: [parts/more.yaml]\n{SPEC}")
    (folder / "parts").mkdir()
    (folder / "parts/more.yaml").write_text("networks: [{name: n}]\n")
    before = fingerprints(load_spec(folder / "spec.yaml"), planned(folder), SALT)
    (folder / "parts/more.yaml").write_text("networks: [{name: m}]\n")
    after = fingerprints(load_spec(folder / "spec.yaml"), planned(folder), SALT)
    assert before.keys() == after.keys()
    assert {each for each in before if before[each] != after[each]} == {"parts/more.yaml"}


def test_files_of_this_machine_are_known_before_anything_is_read(folder: Path) -> None:
    found = local_files(load_spec(folder / "spec.yaml"))
    assert {os.path.relpath(each, folder) for each in found} == READ


def test_a_template_may_name_a_file_by_its_url(folder: Path) -> None:
    (folder / "far.yaml").write_text("heat_template_version: wallaby\n")
    (folder / "heat/top.yaml").write_text(TOP.replace("node.yaml", f"file://{folder}/far.yaml"))
    assert seen(folder).keys() == READ - {"heat/node.yaml"} | {"far.yaml"}


def test_each_that_goes_is_noticed(folder: Path) -> None:
    before, plan, spec = seen(folder), planned(folder), load_spec(folder / "spec.yaml")
    for name in READ:
        (folder / name).unlink()
    after = fingerprints(spec, plan, SALT)
    assert set(after.values()) == {"cannot be read"}
    assert not set(after.values()) & set(before.values())


def test_a_copy_in_another_folder_is_the_same(folder: Path) -> None:
    """As shutil.copytree, cp -a, tar and mv leave it; a checkout has no password files."""
    before = seen(folder)
    other = Path(shutil.copytree(folder, folder.parent / "there"))
    assert seen(other) == before
    for name in READ - {"secrets/u.password"}:
        os.utime(other / name, (1, 1))
    assert seen(other) == before


def test_of_a_password_nothing_is_told(folder: Path) -> None:
    path = folder / "secrets/u.password"
    time = path.stat().st_mtime_ns
    before = seen(folder)
    path.write_text("correct-horse-battery-staple\n")
    os.utime(path, ns=(time, time))
    assert seen(folder) == before
    assert before["secrets/u.password"] == f"time {time}"


@pytest.mark.parametrize(("checksum", "told"), [("", "size 5, time "), (f", checksum: 'sha256:{'0' * 64}'", "size 5")])
def test_a_large_file_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch, checksum: str, told: str) -> None:
    (folder / "spec.yaml").write_text(SPEC.replace("disk.img", f"disk.img{checksum}"))
    monkeypatch.setattr(spec_files, "LARGE", 4)
    assert seen(folder)["disk.img"].startswith(told)
    assert ("time" in seen(folder)["disk.img"]) is (not checksum)


def test_the_source_of_an_image_that_stays_is_not_needed(folder: Path) -> None:
    spec = load_spec(folder / "spec.yaml")
    image = next(each for each in spec.resources if each.key == Key("image", "i"))
    there = {image.key: Observed(id="i1", values=image.desired())}
    found = fingerprints(Spec("lab", ()), plan_apply("lab", [image], there), SALT)
    assert found == {}


def test_what_is_no_regular_file_is_not_opened(folder: Path, wording: Wording) -> None:
    (folder / "disk.img").unlink()
    os.mkfifo(folder / "disk.img")
    wording(seen(folder)["disk.img"])


# --- paths ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/srv/lab", "."),
        ("/srv/lab/x.env", "./x.env"),
        ("/srv/lab/clouds.yaml#lab", "./clouds.yaml#lab"),
        ("entry//srv/lab/x", "entry/./x"),
        ("reads /srv/lab/x and /srv/lab/y", "reads ./x and ./y"),
        ("/home/me/ca.pem", "~/ca.pem"),
        ("https://example.com/srv/lab/x", "https://example.com/srv/lab/x"),
        ("10.0.0.0/24", "10.0.0.0/24"),
        (5, 5),
        (None, None),
    ],
)
def test_paths_are_told_without_the_machine(text: object, short: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert portable([{"x": text}], Path("/srv/lab")) == [{"x": short}]


@pytest.mark.parametrize("path", ["/etc/ca.pem", "/srv/laboratory/x", "/mnt/srv/lab/x"])
def test_of_other_paths_a_digest_is_left(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    short = portable(path, Path("/srv/lab"))
    assert short.startswith("path ")
    assert short == portable(path, Path("/another/folder"))
    assert short != portable(f"{path}.other", Path("/srv/lab"))


def test_the_root_as_a_home_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert portable("10.0.0.0/24", Path("/")) == "10.0.0.0/24"


def test_kinds_with_files_are_known() -> None:
    """A kind with a new field of a file to read is to be added to fingerprints; this names those that were judged."""
    written = {"path", "clouds_yaml", "directory", "kubeconfig"}
    named_only = {"cacert", "client_cert", "client_key", "ssh_key_path"}
    read = {"source", "template", "environments", "pull_secret_file", "ssh_key_file", "additional_trust_bundle_file"}
    in_an_image = {"cached_as"}
    fields = {
        name
        for kind in KINDS.values()
        for name, text in _annotations(kind).items()
        if any(word in text for word in ("File", "Source", "Template"))
    }
    assert fields == written | named_only | read | in_an_image


def _annotations(kind: type) -> dict[str, str]:
    return {name: str(text) for base in kind.__mro__ for name, text in getattr(base, "__annotations__", {}).items()}


@pytest.mark.parametrize(
    ("home", "text", "short"),
    [
        ("", "https://k:5000/v3/", "https://k:5000/v3/"),
        ("/", "https://k:5000/v3/", "https://k:5000/v3/"),
        ("v3", "https://k:5000/v3/", "https://k:5000/v3/"),
        ("/root", "https://k/root and /root/x:1", "https://k/root and ~/x:1"),
    ],
)
def test_home_is_what_is_a_folder_of_its_own(home: str, text: str, short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    assert without_folders({"x": [text]}) == {"x": [short]}


def test_a_user_may_have_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000)
    assert without_folders("/srv/lab/x", Path("/srv/lab")) == "./x"
