"""What both demos share: numbered chapters, commands with their seconds and requests, and what they proved."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.devcloud import access, ports
from tests.devcloud.layout import DEFAULT_BASE, DevcloudError, Layout, with_packets

WIDTH = 100
READS = ("GET", "HEAD", "OPTIONS")


@dataclass
class Show:
    """One demo on one devcloud; ``place`` is the folder where its commands run."""

    cloud: Layout
    place: Path
    chapters: int = 0
    proofs: list[tuple[float, str]] = field(default_factory=list)

    @property
    def admin(self) -> dict[str, str]:
        return {"OS_CLIENT_CONFIG_FILE": str(self.cloud.clouds_file), "OS_CLOUD": "devcloud-admin"}

    def user(self, entry: str, folder: str) -> dict[str, str]:
        """Return the variables of the entry that apply has written into the ``clouds.yaml`` of a folder."""
        return {"OS_CLIENT_CONFIG_FILE": str(self.place / folder / "clouds.yaml"), "OS_CLOUD": entry}

    def chapter(self, title: str, text: str) -> None:
        """Begin a chapter: its number, its title, and what its commands do."""
        self.chapters += 1
        heading(f"{self.chapters}. {title}")
        print(textwrap.fill(" ".join(text.split()), WIDTH), flush=True)

    def run(
        self,
        *command: str,
        proves: str = "",
        code: int | None = 0,
        writes: bool = True,
        within: Sequence[str] = (),
        **variables: str,
    ) -> None:
        """Show a command, run it as a user would, and stop the demo unless it ends with ``code`` (None: any).

        ``within`` are words before it that are not shown: they enter a machine.

        ``proves`` is what its success proves; {requests} is how many requests reached the cloud. With
        ``writes=False``, none of these may be a write.
        """
        shown = ["python" if word == sys.executable else word for word in command]
        print(f"\n$ {shlex.join(shown)}", flush=True)
        mark, started = access.mark(self.cloud), time.monotonic()
        ended = subprocess.call([*within, *command], env=os.environ | variables)
        seconds = time.monotonic() - started
        requests = access.read(self.cloud, mark)
        print(f"[{seconds:.1f} s{f', {len(requests)} requests' if requests else ''}]", flush=True)
        if code not in (None, ended):
            sys.exit(f"demo: {shown[0]} ended with exit code {ended} instead of {code}")
        written = [f"{each.method} {each.path}" for each in requests if is_write(each)]
        if written and not writes:
            sys.exit(f"demo: {shown[0]} wrote to the cloud: {', '.join(written)}")
        if proves:
            self.proofs.append((seconds, proves.format(requests=len(requests))))

    def prep(self, *words: str, proves: str = "", code: int | None = 0, writes: bool = True, **variables: str) -> None:
        """Run ``openstack-prep``, as the administrator unless ``variables`` say otherwise."""
        self.run("openstack-prep", *words, proves=proves, code=code, writes=writes, **(self.admin | variables))

    def summary(self) -> None:
        """Print what was proven, and in how many seconds."""
        heading(f"Proven in {sum(seconds for seconds, _ in self.proofs):.0f} s")
        for seconds, what in self.proofs:
            print(f"{seconds:5.1f} s  {what}")

    def farewell(self, look: Sequence[str], remove: Sequence[str], repository: str) -> None:
        """Print how to look around in the cloud, and how to remove everything again."""
        heading("The cloud keeps running")
        lines = (
            f"export PATH={Path(sys.executable).parent}:$PATH",
            f"export OS_CLIENT_CONFIG_FILE={self.cloud.clouds_file} OS_CLOUD=devcloud-admin",
            f"cd {self.place}",
            *look,
            "# remove everything, and stop the cloud:",
            *remove,
            f"cd {repository} && python -m tests.devcloud down --port-base {self.cloud.base}",
        )
        print("\n".join(lines))


def heading(text: str) -> None:
    print(f"\n── {text} {'─' * (WIDTH - len(text) - 4)}", flush=True)


def is_write(request: access.Request) -> bool:
    """Whether a request changes anything; a login does not."""
    return request.method not in READS and not request.path.endswith("/auth/tokens")


def begin(name: str, description: str | None) -> Show:
    """Start the devcloud that the command line names, and enter a folder of its own."""
    parser = argparse.ArgumentParser(prog=f"tests.{name}", description=description)
    parser.add_argument("base", type=int, nargs="?", metavar="PORT_BASE", help="of the devcloud (a free one)")
    base = parser.parse_args().base
    claims = contextlib.ExitStack()
    atexit.register(claims.close)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    try:
        cloud = claims.enter_context(
            ports.choose(base, DEFAULT_BASE, "demo with packets" if with_packets() else "demo")
        )
    except DevcloudError as error:
        sys.exit(f"demo: {error}")
    show = Show(cloud, cloud.root / f"{name}-{cloud.base}")  # another cloud has not created what its files name
    show.chapter(
        "Start an OpenStack",
        """Keystone, Nova, Neutron, Glance, Cinder, Heat and Swift on loopback, from PyPI, without root. The first
        start installs them (some minutes).""",
    )
    show.run(sys.executable, "-m", "tests.devcloud", "up", "--port-base", str(cloud.base))
    show.place.mkdir(parents=True, exist_ok=True)
    os.chdir(show.place)
    return show
