"""The commands of docs/tutorial.md, as a new user types them, and what they print.

The administrator's entry is in ~/.config/openstack/clouds.yaml of an otherwise empty home, and no variable names a
file. Each command is run twice, because whoever learns a tool repeats commands.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.devcloud.pytest_devcloud import Devcloud

ROOT = Path(__file__).parents[2]
TUTORIAL, _, BY_HAND = (ROOT / "docs" / "tutorial.md").read_text().partition("## From a hand-made project")
CUT = "..."
ROLE = "role_assignment/user:rke2-user@project:rke2/member"
CSI = "cinder.csi.openstack.org/cluster"
FOLDER = "/home/engineer/lab"
"""The folder of the tutorial's run."""


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the lines that a part of the tutorial shows as its output."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            yield command, output


@dataclass
class Terminal:
    """A shell in a folder of its own, whose exported variables last."""

    folder: Path
    environment: dict[str, str]
    exports: list[str] = field(default_factory=list)

    def run(self, command: str) -> list[str]:
        """Run a command as typed, insist that it succeeds, and return what it prints."""
        script = "\n".join([*self.exports, command])
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        print(f"$ {command}\n{ended.stdout}", end="")
        assert ended.returncode == 0, f"{command}: {ended.returncode}\n{ended.stdout}"
        if command.startswith("export "):
            self.exports.append(command)
        return ended.stdout.splitlines()


@pytest.fixture
def terminal(devcloud: Devcloud) -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory() as home:  # with a path as short as a user's: plans shorten long ones
        yield from opened(Path(home), devcloud)


def opened(home: Path, devcloud: Devcloud) -> Iterator[Terminal]:
    entries = yaml.safe_load(devcloud.clouds_file.read_text())["clouds"]
    config = home / ".config" / "openstack"
    config.mkdir(parents=True)
    (config / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"devcloud-admin": entries["devcloud-admin"]}}))
    (config / "clouds.yaml").chmod(0o600)
    folder = home / "lab"
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    made = Terminal(folder, {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"})
    yield made
    if (folder / "ocp4.yaml").exists():
        made.run("openstack-prep --os-cloud devcloud-admin destroy --yes ocp4.yaml")


def plain(lines: list[str], folder: Path) -> list[str]:
    """Return lines without what differs from run to run: seconds, ids, paths, and the address of the cloud."""
    found = []
    for line in lines:
        text = line.replace(str(folder), FOLDER)
        text = re.sub(r"\d+\.\d s\b", "N s", text)
        text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
        found.append(re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:N", text))
    return found


def differences(printed: list[str], shown: list[str]) -> list[str]:
    """Return the lines that the tutorial shows in vain, and those that it does not mark as left out.

    Steps that run in parallel end in any order.
    """
    missing = [line for line in shown if line not in printed and line.strip() != CUT]
    cut = any(line.strip() == CUT for line in shown)
    return [*missing, *(() if cut else [line for line in printed if line not in shown])]


def test_the_spec_is_the_shipped_one() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", TUTORIAL, re.DOTALL | re.MULTILINE)
    shipped = (ROOT / "install_configs" / "openshift-lab.yaml").read_text()
    assert yaml.safe_load(shown) == yaml.safe_load(shipped)


@pytest.mark.timeout(1800)
def test_five_minutes(terminal: Terminal) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.devcloud.qcow2", terminal.folder / "rhcos.qcow2"], cwd=ROOT, check=True
    )
    wrong: dict[str, list[str]] = {}
    for command, shown in commands(TUTORIAL):
        first, second = (plain(terminal.run(command), terminal.folder) for _ in range(2))
        if found := differences(first, plain(shown, terminal.folder)):
            wrong[command] = found
        if " apply " in command or " destroy " in command:
            assert second[0].startswith("nothing to do"), second
        else:
            assert second == first
    assert not wrong
    assert sorted(each.name for each in terminal.folder.iterdir() if each.name[0] != ".") == [
        "ocp4",
        "ocp4.yaml",
        "rhcos.qcow2",
    ]
    left = [each.name for each in (terminal.folder / "ocp4").iterdir()]
    assert sorted(left) == ["ocp-user.password", "temp-url.key"]


def test_a_hand_made_project_becomes_a_managed_one(terminal: Terminal) -> None:
    terminal.run("export OS_CLOUD=devcloud-admin")
    wrong = {}
    for command, shown in commands(BY_HAND):
        if found := differences(plain(terminal.run(command), terminal.folder), plain(shown, terminal.folder)):
            wrong[command] = found
    assert not wrong


def test_cleanup_of_a_cluster_works_in_its_own_project(terminal: Terminal, devcloud: Devcloud) -> None:
    """The commands of docs/kubernetes.md, "In short", from the export on; the entry at first is the administrator's."""
    admin = devcloud.admin
    text = (ROOT / "docs" / "kubernetes.md").read_text()
    block = next(each for each in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "rke2/cl" in each)
    lines = [line.partition(" #")[0].rstrip() for line in block.splitlines()]
    shipped, chosen, cleanup = (
        next(line for line in lines if word in line) for word in ("example", "export ", "cleanup")
    )
    terminal.run("export OS_CLOUD=devcloud-admin")
    (Path(terminal.environment["HOME"]) / ".ssh").mkdir()
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"
    (Path(terminal.environment["HOME"]) / ".ssh" / "id_ed25519.pub").write_text(key)
    terminal.run(shipped)
    targets = " ".join(f"--target {each}" for each in ("clouds_entry/clouds.yaml#rke2", ROLE))
    terminal.run(f"openstack-prep apply --yes {targets} rke2.yaml")
    project = admin.identity.find_project("rke2", ignore_missing=False)
    mine = admin.block_storage.create_volume(name="pvc-1", size=1, metadata={CSI: "rke2"})
    try:
        terminal.run(chosen)
        made = "import openstack; openstack.connect().block_storage.create_volume(name='pvc-2', size=1, "
        terminal.run(f"{sys.executable} -c \"{made} metadata={{'{CSI}': 'rke2'}})\"")
        assert any("volume/pvc-2" in line for line in terminal.run(f"{cleanup} --yes"))
        left = [each.name for each in admin.block_storage.volumes(all_projects=True, project_id=project.id)]
        assert left == []
        assert admin.block_storage.find_volume(mine.id) is not None  # in the administrator's own project
    finally:
        admin.block_storage.delete_volume(mine)
        terminal.exports[-1:] = ["export OS_CLOUD=devcloud-admin"]
        terminal.run("unset OS_CLIENT_CONFIG_FILE; openstack-prep destroy --yes rke2.yaml")


def test_a_clouds_yaml_beside_the_spec_is_announced_and_explained(terminal: Terminal) -> None:
    """What the tutorial's spec did in an earlier version: the second command found no entry."""
    terminal.run("openstack-prep example minimal > ocp4.yaml && sed -i 's,path: small/,path: ,' ocp4.yaml")
    hidden = terminal.folder.parent / ".config" / "openstack" / "clouds.yaml"
    fix = f"export OS_CLIENT_CONFIG_FILE={hidden}"
    command = "openstack-prep --os-cloud devcloud-admin"
    announced = " ".join(terminal.run(f"{command} plan ocp4.yaml"))
    assert f"hides {hidden}" in announced
    assert "small/clouds.yaml" in announced
    terminal.run(f"{command} apply --yes ocp4.yaml")
    refused = terminal.run(f"{command} apply --yes ocp4.yaml || test $? = 2")
    assert f"written by openstack-prep for spec small, has the entries small and hides {hidden}" in refused[0]
    assert fix in refused[0]
    terminal.run(fix)
    assert terminal.run(f"{command} apply --yes ocp4.yaml") == ["nothing to do: 4 unchanged"]
