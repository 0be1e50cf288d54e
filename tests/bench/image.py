"""An image from a mirror into Glance: by us in one pass, and by the tools that everybody has.

All take the same .gz from a plain web server on loopback to the same Glance.  Those that need a
file have a folder of their own, which is also their TMPDIR.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

from tests.bench import disk, environments
from tests.bench.disk import Disk
from tests.bench.image_table import Row, Run
from tests.bench.scenario import BenchError, Client
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import PASSWORD, Layout
from tests.devcloud.progress import say, timed

NAME = "rhcos-of-the-bench"
CREATE = f"openstack image create --disk-format qcow2 --container-format bare --file disk.qcow2 {NAME}"

SCRIPTS = {
    Row.OURS: "exec openstack-prep apply --yes spec.json",
    Row.CAREFUL: f"""
        curl -sSf "$URL" | tee >(sha256sum > packed.sum) | gunzip > disk.qcow2
        echo "$SHA256  disk.qcow2" | sha256sum --check
        grep -q "$PACKED_SHA256" packed.sum
        {CREATE}""",
    Row.CARELESS: f"""
        curl -sSf "$URL" | gunzip > disk.qcow2
        {CREATE}""",
    Row.FLOOR: """
        curl -sSf -T "$PLAIN" -H "X-Auth-Token: $TOKEN" -H "Transfer-Encoding: chunked" \\
            -H "Content-Type: application/octet-stream" "$GLANCE/images/$IMAGE/file" """,
}


def measure(layout: Layout, size: int, rounds: int, only: Sequence[str] = ("",)) -> dict[Row, list[Run]]:
    """Let everybody run in every round, so that drift of the machine hits all alike."""
    runs: dict[Row, list[Run]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-image-") as folder, contextlib.ExitStack() as stack:
        with timed("generated the image"):
            made = disk.make(Path(folder), size)
        url = f"{stack.enter_context(served(Path(folder)))}/{made.packed.name}"
        for number in range(rounds):
            for row in (each for each in Row if any(text in each for text in only)):
                run = Flow(layout, made, url, Path(folder, "work")).run(row)
                runs[row].append(run)
                say(f"round {number + 1}: {row.value}: {run.seconds:.1f} s, {run.memory >> 20} MiB")
    return runs


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder from a process of its own; the URL."""
    ports: Queue[int] = Queue()
    process = Process(target=_serve, args=(folder, ports), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{ports.get()}"
    process.terminate()
    process.join()


def _serve(folder: Path, ports: Queue[int]) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    ports.put(server.server_port)
    server.serve_forever()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        pass


@dataclass
class Flow:
    """One run from an empty folder to an active image, which is then deleted."""

    layout: Layout
    disk: Disk
    url: str
    folder: Path

    def __post_init__(self) -> None:
        self.admin = Client(self.layout.auth_url, "admin", PASSWORD, "admin")
        self.glance = f"{self.admin.endpoints['image']}/v2"

    def run(self, row: Row) -> Run:
        self.folder.mkdir()
        variables = {"IMAGE": self._make(), "TOKEN": self.token} if row is Row.FLOOR else {}
        self._write_spec()
        done = self._timed(SCRIPTS[row], variables)
        self._check(row)
        shutil.rmtree(self.folder)
        return done

    def _timed(self, script: str, variables: dict[str, str]) -> Run:
        watched = [sys.executable, "-S", str(Path(__file__).with_name("watched.py"))]
        done = subprocess.run(
            [*watched, "bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self._environment() | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"{script.strip()}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        return Run(**json.loads(done.stdout))

    def _environment(self) -> dict[str, str]:
        programs = (environments.ensure("shell"), Path(sys.executable).parent, os.environ["PATH"])
        return {
            "PATH": os.pathsep.join(map(str, programs)),
            "HOME": str(self.folder.parent),  # shared, so that caches are warm after the first round
            "TMPDIR": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "OS_CLIENT_CONFIG_FILE": str(self.layout.clouds_file),
            "OS_CLOUD": ADMIN,
            "URL": self.url,
            "PLAIN": str(self.disk.plain),
            "SHA256": self.disk.sha256,
            "PACKED_SHA256": self.disk.packed_sha256,
            "GLANCE": self.glance,
        }

    def _write_spec(self) -> None:
        sums = {"checksum": self.disk.sha256, "compressed_checksum": self.disk.packed_sha256}
        spec = {"name": "bench", "images": [{"name": NAME, "source": self.url, "disk_format": "qcow2", **sums}]}
        (self.folder / "spec.json").write_text(json.dumps(spec))

    # --- the cloud's side ---

    @property
    def token(self) -> str:
        return str(self.admin.session.headers["X-Auth-Token"])

    def _make(self) -> str:
        body = {"name": NAME, "disk_format": "qcow2", "container_format": "bare"}
        answer = self.admin.session.post(f"{self.glance}/images", json=body, timeout=60)
        answer.raise_for_status()
        return str(answer.json()["id"])

    def _check(self, row: Row) -> None:
        """Raise BenchError unless there is one active image with the right content; delete it."""
        found = self.admin.get("image", "/v2/images", name=NAME)["images"]
        if [(each["status"], each["os_hash_value"]) for each in found] != [("active", self.disk.sha512)]:
            raise BenchError(f"{row.value}: the image is not as it should be: {found}")
        self.admin.send("DELETE", "image", f"/v2/images/{found[0]['id']}")
