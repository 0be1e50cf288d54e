"""A fleet whose targets upload the same compressed image: one download, which a web server counts."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.faults.inventory import Cloud
from tests.functional.conftest import Prep
from tests.unit.web import Web, serve

TEAMS = ("red", "blue", "green", "white")
CONTENT = qcow2(1) + os.urandom(2**23)
PACKED = gzip.compress(CONTENT, 1)
SPEC = """\
name: ${name}-${team}
variables:
  name: {description: a name that nobody else has}
  team: {description: the team}
project: {name: "${name}-${team}"}
users: [{name: "${name}-${team}", password: {env: PREP_PASSWORD}}]
role_assignments: [{user: "${name}-${team}", role: member}]
"""


@dataclass
class Images:
    """The images of the fleet, and whence they come."""

    prep: Prep
    devcloud: Devcloud
    name: str
    web: Web
    process: subprocess.Popen[str] | None = None

    def write(self, checksum: str, **fields: Any) -> None:
        """Write the spec with the image, and its checksum."""
        image = {"name": "${name}-${team}", "source": self.web.url, "checksum": f"sha256:{checksum}"} | fields
        (self.prep.folder / "tenant.yaml").write_text(SPEC + yaml.safe_dump({"images": [image]}))

    def of(self, status: str) -> list[Any]:
        found = self.devcloud.admin.image.images(visibility="all")
        return [each for each in found if each.name.startswith(self.name) and each.status == status]

    def start(self) -> subprocess.Popen[str]:
        """Begin to apply, and return when the first half of the download is on its way to all images."""
        self.web.pause = threading.Event()
        process = self.prep.start("fleet", "apply", "--yes", "--jobs", "8", "--format", "json", "fleet.yaml")
        self.process = process
        wait_for(lambda: len(self.of("saving")) == len(TEAMS))
        return process

    def apply(self, code: int = 0) -> tuple[dict[str, str], str]:
        done = self.prep.run("fleet", "apply", "--yes", "--jobs", "8", "--format", "json", "fleet.yaml", code=code)
        return statuses(done.stdout), done.stderr


def statuses(out: str) -> dict[str, str]:
    return {each["target"]: each["status"] for each in map(json.loads, out.splitlines()[:-1])}


def everywhere(status: str) -> dict[str, str]:
    return dict.fromkeys(TEAMS, status)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wait_for(what: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 120
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def images(prep: Prep, devcloud: Devcloud) -> Iterator[Images]:
    """A fleet of teams with an image each; destroyed at the end, and the inventory is as before."""
    before = set(Cloud(devcloud.layout).inventory())
    name = f"fleet-{secrets.token_hex(3)}"
    temporary = prep.folder / "temporary"
    temporary.mkdir()
    prep.environment |= {
        "XDG_STATE_HOME": str(prep.folder / "state"),
        "TMPDIR": str(temporary),
        "OPENSTACK_PREP_VAR_NAME": name,
    }
    target = {
        "for_each": {"team": list(TEAMS)},
        "name": "${team}",
        "spec": "tenant.yaml",
        "variables": {"team": "${team}"},
    }
    (prep.folder / "fleet.yaml").write_text(yaml.safe_dump({"name": "teams", "targets": [target]}))
    with serve(Web(PACKED)) as web:
        made = Images(prep, devcloud, name, web)
        made.write(sha256(CONTENT))
        yield made
    if made.process:
        made.process.kill()
        made.process.wait()
    prep.run("fleet", "destroy", "--yes", "--restart", "fleet.yaml")
    assert set(Cloud(devcloud.layout).inventory()) == before
    assert not [each for each in temporary.rglob("*") if each.is_file() and each.suffix != ".lock"]


def test_one_download_feeds_all_uploads(images: Images) -> None:
    process = images.start()
    deleted = f"{images.prep.folder}/temporary/"

    def kept() -> list[str]:
        return [each for each in map(_target, Path(f"/proc/{process.pid}/fd").iterdir()) if each.startswith(deleted)]

    assert len(set(kept())) == 1
    wait_for(lambda: len(kept()) == 1)  # an upload has it open once more while it reads
    assert list((images.prep.folder / "temporary").iterdir()) == []
    assert images.web.pause is not None
    images.web.pause.set()
    out, said = process.communicate(timeout=120)
    assert (process.returncode, statuses(out)) == (0, everywhere("done")), said
    assert len(images.web.asked) == 1
    found = images.of("active")
    assert sorted(each.name for each in found) == sorted(f"{images.name}-{team}" for team in TEAMS)
    for each in found:
        assert (each.disk_format, each.size) == ("qcow2", len(CONTENT))
        assert each.hash_value == hashlib.sha512(CONTENT).hexdigest()
    assert images.devcloud.admin.image.download_image(found[0]).content == CONTENT
    assert images.apply() == (everywhere("unchanged"), "")
    assert len(images.web.asked) == 1


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed meanwhile
        return ""


def test_a_wrong_checksum_fails_everywhere_and_leaves_no_image(images: Images) -> None:
    images.write("0" * 64)
    process = images.start()
    assert images.web.pause is not None
    images.web.pause.set()
    out, said = process.communicate(timeout=120)
    assert (process.returncode, statuses(out)) == (1, everywhere("failed")), said
    expected = f"{images.web.url} has sha256 {sha256(CONTENT)} instead of {'0' * 64}"
    assert [each for each in TEAMS if f"{each}: " in said] == list(TEAMS)
    assert said.count(expected) == len(TEAMS)
    assert len(images.web.asked) == 1
    time.sleep(0.5)  # for Glance to see the end of the broken uploads
    assert not [each for each in images.devcloud.admin.image.images() if each.name.startswith(images.name)]
    images.write(sha256(CONTENT))
    assert images.apply()[0] == everywhere("done")
    assert len(images.web.asked) == 2


def test_a_signal_lets_running_uploads_end(images: Images) -> None:
    process = images.start()
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert images.web.pause is not None
    images.web.pause.set()
    process.communicate(timeout=120)
    assert process.returncode == 143
    assert len(images.of("active")) == len(TEAMS)
    assert len(images.web.asked) == 1


def test_a_second_signal_ends_at_once(images: Images) -> None:
    process = images.start()
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert images.of("active") == []
    assert images.web.pause is not None
    images.web.pause.set()
    assert images.apply()[0] == everywhere("done")
    assert len(images.of("active")) == len(TEAMS)
