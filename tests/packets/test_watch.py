"""``verify --watch`` while something changes."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.packets.conftest import INFRA_ID, World
from tests.packets.machines import until
from tests.packets.situations import pairs_of

OPTIONS = ("--infra-id", INFRA_ID, "--base-domain", "example.com", "--hosts", "hosts")


@pytest.fixture(scope="module")
def reached(world: World) -> World:
    """The cluster after ``post-ipi``."""
    words = ("--infra-id", INFRA_ID, "--ingress-ip", world.played.floating["ingress"], "--yes")
    world.prep.run("post-ipi", *words)
    assert until(lambda: world.answers("ingress") and world.answers("api"), 30)
    return world


@dataclass
class Watch:
    """``verify --watch`` as it runs, and the lines that it has printed."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]]

    def of(self, chain: str, where: str) -> list[tuple[str, str]]:
        """Return status and code of the lines about a place."""
        found = (each for each in self.lines if (each["chain"], each["where"]) == (chain, where))
        return [(each["status"], each["code"]) for each in found]

    def shows(self, *last: str) -> bool:
        """Whether it comes to print this of the console's pairs."""
        return until(lambda: self.of("ingress", "address pairs")[-1:] == [last], 60)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)


@contextmanager
def watching(world: World, *words: str) -> Iterator[Watch]:
    """Run ``verify --watch``; in the end it has ended, and its lines are complete."""
    process = world.prep.start("verify", "--watch", "--format", "json", *words, *OPTIONS)
    assert process.stdout
    out, lines = process.stdout, []
    reader = threading.Thread(target=lambda: lines.extend(map(json.loads, out)))
    reader.start()
    yield Watch(process, lines)
    reader.join(60)
    assert process.stderr
    process.wait(60)
    assert process.stderr.read() == ""


OK, MISSING = ("ok", ""), ("error", "pairs.missing")


def test_a_watch_prints_each_change_once(reached: World) -> None:
    with watching(reached) as watch:
        assert watch.shows(*OK)
        with pairs_of(reached, reached.ports("worker"), []):
            assert watch.shows(*MISSING)
        assert watch.shows(*OK)
        watch.stop()
    assert watch.process.returncode == 0
    assert {each["version"] for each in watch.lines} == {1}
    times = [each["time"] for each in watch.lines]
    assert times == sorted(times)
    assert watch.of("ingress", "address pairs") in ([OK, MISSING, OK], [OK, MISSING, MISSING, OK])
    assert watch.of("api", "address pairs") == [OK]


def test_a_watch_ends_with_its_last_verdict(reached: World) -> None:
    with pairs_of(reached, reached.ports("worker"), []):
        with watching(reached) as watch:
            assert watch.shows(*MISSING)
            watch.stop()
        assert watch.process.returncode == 1
        with watching(reached, "--until", "error") as watch:
            pass
        assert watch.process.returncode == 1
        with watching(reached, "--until", "ok") as watch:
            assert watch.shows(*MISSING)
            assert watch.process.poll() is None
            reached.prep.run("post-ipi", "--infra-id", INFRA_ID, "--vip", reached.played.virtual("ingress"), "--yes")
        assert watch.process.returncode == 0
        assert watch.lines[-1]["status"] == "ok"
