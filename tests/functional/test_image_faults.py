"""Glance fails while it takes an image: nothing half-made stays, and what may pass is tried again."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import resource
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.download import http as download
from openstack_prep.resources.image.image import Image
from tests.devcloud import processes
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.unit import distant, web
from tests.unit.distant import Distant
from tests.unit.web import Web

MIB = 2**20
CONTENT = qcow2(1) + secrets.token_bytes(MIB) * 24
PACKED = gzip.compress(CONTENT, 1)


@pytest.fixture
def image(lab: Lab, tmp_path: Path) -> Image:
    """It is larger than what sockets buffer."""
    (tmp_path / "disk.qcow2.gz").write_bytes(PACKED)
    return Image(
        name=f"{lab.name}-rhcos",
        source=str(tmp_path / "disk.qcow2.gz"),
        checksum=f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
        compressed_checksum=f"sha256:{hashlib.sha256(PACKED).hexdigest()}",
    )


def images(lab: Lab) -> list[Any]:
    return [each for each in lab.admin.image.images(visibility="all") if lab.name in each.name]


@contextlib.contextmanager
def full(devcloud: Devcloud, size: int) -> Iterator[None]:
    """Let no file of Glance's grow beyond so many bytes: what its store meets then is a full disk."""
    host = processes.running(devcloud.layout)["glance"]
    (serving,) = Path(f"/proc/{host}/task/{host}/children").read_text().split()
    soft, hard = resource.prlimit(int(serving), resource.RLIMIT_FSIZE)
    resource.prlimit(int(serving), resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.prlimit(int(serving), resource.RLIMIT_FSIZE, (soft, hard))


def test_the_store_is_full(lab: Lab, devcloud: Devcloud, image: Image) -> None:
    with full(devcloud, 16 * MIB):
        said = lab.failure(image)
    assert "413" in said
    assert "storage media is full" in said
    assert not images(lab)
    lab.apply(image)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/file$"),
        pytest.param("GET", "/images/[^/]+$", marks=pytest.mark.more),
        pytest.param("PATCH", "", marks=pytest.mark.more),
    ],
)
def test_a_token_that_ends(lab: Lab, devcloud: Devcloud, image: Image, method: str, path: str) -> None:
    """Before the body is read, or when all is sent: a new one is got, and no image comes twice."""
    mark = devcloud.mark()
    with devcloud.faults(Fault("glance", method=method, path_regex=path, status=401)):
        lab.apply(image)
    assert [each for each in devcloud.requests_since(mark) if each.fault]
    (made,) = images(lab)
    assert (made.status, made.size) == ("active", len(CONTENT))


@pytest.mark.parametrize(
    "status", [413, pytest.param(503, marks=pytest.mark.more), pytest.param(507, marks=pytest.mark.more)]
)
def test_glance_refuses_without_reading(lab: Lab, devcloud: Devcloud, image: Image, status: int) -> None:
    """It answers and hangs up, while the most is still to be sent."""
    fault = Fault("glance", method="PUT", path_regex="/file$", status=status, times=9, body="no room for it")
    with devcloud.faults(fault):
        assert str(status) in lab.failure(image)
    lab.apply(image)
    assert [each.status for each in images(lab)] == ["active"]


# --- the mirror fails ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "refusals", "fields", "message"),
    [
        (PACKED, [404], {}, "404 Not Found; correct the URL"),
        (PACKED[:-9], [], {}, "is not a valid gz file: it ends too early"),
        (gzip.compress(bytes(64 * MIB)), [], {"size": MIB}, f"has more than {MIB} bytes"),
        (PACKED, [], {"compression": "none", "size": len(PACKED) + 1}, f"has {len(PACKED)} bytes instead of"),
    ],
    ids=["missing", "truncated", "bomb", "short"],
)
def test_nothing_stays_of_what_cannot_be_had(
    lab: Lab, content: bytes, refusals: list[int], fields: dict[str, Any], message: str
) -> None:
    with web.serve(Web(content, refusals=refusals)) as mirror:
        image = Image(name=f"{lab.name}-rhcos", source=mirror.url, disk_format="raw", **fields)
        assert message in lab.failure(image)
    time.sleep(0.5)  # for Glance to see the end of what was broken off
    assert not images(lab)


def test_a_mirror_that_hangs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", (10.0, 0.3))
    with distant.serve(Distant(PACKED, stalls=1)) as mirror:
        image = Image(name=f"{lab.name}-rhcos", source=f"http://127.0.0.1:{mirror.port}/disk", disk_format="qcow2")
        lab.apply(image)
    (made,) = images(lab)
    assert made.size == len(CONTENT)


# --- a connection that is cut -------------------------------------------------------------


class Relay:
    """Stands before Glance as a load balancer does; cuts connections by which much is sent."""

    def __init__(self, port: int) -> None:
        self.behind = port
        self.cuts: list[int] = []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)  # wakes the thread, which close alone lets take one more connection
        self.thread.join()
        self.server.close()

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self.server.accept()
                glance = socket.create_connection(("127.0.0.1", self.behind))
                for pair in ((client, glance), (glance, client)):
                    threading.Thread(target=self.copy, args=(*pair, pair[0] is client), daemon=True).start()

    def copy(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):  # the other direction ended it
            while data := source.recv(2**16):
                passed += len(data)
                if from_client and self.cuts and passed > self.cuts[0]:
                    self.cuts.pop(0)
                    break
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()  # while it is open the kernel takes what the client sends, and then lets it wait


@pytest.fixture
def relay(devcloud: Devcloud) -> Iterator[Relay]:
    made = Relay(devcloud.layout.port("glance"))
    yield made
    made.close()


def test_cut_in_the_middle(relay: Relay, prep: Prep, devcloud: Devcloud) -> None:
    """The relay comes first, because it must live longer than ``prep``, which destroys through it."""
    clouds = yaml.safe_load(devcloud.clouds_file.read_text())
    clouds["clouds"]["devcloud-admin"]["image_endpoint_override"] = f"http://127.0.0.1:{relay.port}/v2"
    (prep.folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    prep.environment["OS_CLIENT_CONFIG_FILE"] = str(prep.folder / "clouds.yaml")
    (prep.folder / "disk.gz").write_bytes(PACKED)
    name = f"cut{secrets.token_hex(3)}"
    checksum = hashlib.sha256(CONTENT).hexdigest()
    prep.write(
        {"name": name, "project": {"name": name}, "images": [{"name": name, "source": "disk.gz", "checksum": checksum}]}
    )
    relay.cuts = [4 * MIB, 20 * MIB]
    prep.apply()
    assert not relay.cuts
    time.sleep(0.5)  # for Glance to see the end of what was cut
    (made,) = [each for each in devcloud.admin.image.images(visibility="all") if name in each.name]
    assert (made.status, made.size) == ("active", len(CONTENT))
    assert not prep.changes()
