"""The three trials: what runs for long, what goes down meanwhile, and how each ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.devcloud import processes
from tests.devcloud.layout import REPOSITORY, Layout
from tests.devcloud.progress import say
from tests.devcloud.tenant import Tenant
from tests.external import kube_api
from tests.external.conftest import Programs
from tests.external.kube_api import READER, KubeApi
from tests.long.sampling import Held, growth, held

GROUP, NODES = "nodes", ("one", "two")
DOWN = 6.0  # seconds for which a service is down
WITHIN = ("--within", "10.1.0.200-10.1.0.211")
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}


@dataclass
class Trial:
    """The samples of a trial, and what was wrong."""

    name: str
    turns: int
    failed_turns: int = 0
    outages: int = 0
    samples: list[Held] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        first, last = self.samples[len(self.samples) // 4], self.samples[-1]
        return (
            f"{self.name}: {len(self.samples)} turns, {self.outages} outages, {self.failed_turns} turns failed; "
            f"after a quarter {first}; at the end {last}; {'; '.join(self.wrong) or 'nothing wrong'}"
        )


@dataclass(frozen=True)
class Place:
    """A devcloud, and a project in it with two ports of the group ``nodes``."""

    layout: Layout
    tenant: Tenant
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {"OS_CLIENT_CONFIG_FILE": str(self.tenant.clouds_file), "OS_CLOUD": self.tenant.cloud}
        return os.environ | own | {"HOME": str(self.folder), "PYTHONPATH": str(REPOSITORY)}

    def start(self, *words: str, out: Any) -> subprocess.Popen[str]:
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
        return subprocess.Popen([sys.executable, *words], cwd=self.folder, env=self.environment, text=True, **options)

    def fill(self) -> None:
        neutron: Any = self.tenant.connect().network
        network = neutron.create_network(name="nodes")
        neutron.create_subnet(name="nodes", network_id=network.id, cidr="10.1.0.0/24", ip_version=4)
        group = neutron.create_security_group(name=GROUP)
        for name in NODES:
            neutron.create_port(name=name, network_id=network.id, security_group_ids=[group.id])

    def pairs(self) -> list[set[str]]:
        neutron: Any = self.tenant.connect().network
        ports = [each for each in neutron.ports() if each.name in NODES]
        return [{each["ip_address"] for each in port.allowed_address_pairs} for port in ports]

    @contextmanager
    def without_neutron(self) -> Iterator[None]:
        processes.signal_all(self.layout, processes.END_SERVICE, ["neutron"])
        while processes.listens(self.layout, "neutron"):
            time.sleep(0.05)
        yield
        processes.signal_all(self.layout, processes.START_SERVICE, ["neutron"])
        processes.wait(self.layout, ["neutron"])


def in_process(place: Place, name: str, turns: int, every: int) -> Trial:
    """Let one process do its turns; Neutron is down after each ``every`` turns, and SIGTERM ends the last one."""
    trial = Trial(name, turns)
    process = place.start("-m", "tests.long.inside", name, str(10 * turns), GROUP, out=subprocess.PIPE)
    assert process.stdout
    said: list[str] = []
    outages: list[threading.Thread] = []
    for line in process.stdout:
        said = [*said, line][-200:]
        if not line.startswith("turn "):
            continue
        trial.failed_turns += line.split()[2] != "0"
        trial.samples.append(held(process.pid))
        if len(trial.samples) >= turns:
            break
        if every and len(trial.samples) % every == 0 and not any(each.is_alive() for each in outages):
            trial.outages += 1
            outages.append(threading.Thread(target=_outage, args=(place,)))
            outages[-1].start()
    for each in outages:
        each.join()
    _end(trial, process, (143, -signal.SIGTERM), lambda: "".join([*said, *(process.stdout or ())]))
    return trial


def _outage(place: Place) -> None:
    with place.without_neutron():
        time.sleep(DOWN)


def _end(trial: Trial, process: subprocess.Popen[str], codes: tuple[int, ...], said: Callable[[], str]) -> None:
    """Send SIGTERM, and judge how it ended and what it holds; between two calls nobody catches the signal."""
    process.send_signal(signal.SIGTERM)
    text = said()
    try:
        ended = process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        ended = process.wait()
        trial.wrong.append("SIGTERM did not end it in 60 s")
    if ended not in codes:
        trial.wrong.append(f"SIGTERM ended it with {ended}, not {codes[0]}: {text[-500:]}")
    if "Traceback" in text or "internal error" in text:
        trial.wrong.append(f"internal error: {text[-2000:]}")
    trial.wrong += growth(trial.samples)


def watching(place: Place, programs: Programs, turns: int, every: int) -> Trial:
    """Follow the Services of an API server; Neutron and the API server go down in turn."""
    trial = Trial("watch", turns)
    folder = place.folder / "kube"
    folder.mkdir()
    with kube_api.running(folder, programs) as api:
        _allow(api)
        config = api.kubeconfig(place.folder / "kubeconfig", {"token": READER})
        log = place.folder / "watch.log"
        command = [str(Path(sys.executable).with_name("openstack-prep")), "address-pairs", "sync", "--watch"]
        command += ["--security-group", GROUP, *WITHIN, "--kubeconfig", str(config)]
        with log.open("w") as out:
            process = place.start(*command, out=out)
        _until(lambda: "following" in log.read_text(), "the watch starts", log)
        for turn in range(turns):
            _turn(place, api, trial, turn, every)
            arrived = partial(_has, place, turn)
            _until(lambda: process.poll() is not None or arrived(), f"turn {turn}", log)  # noqa: B023 - called at once
            trial.samples.append(held(process.pid))
        _end(trial, process, (0,), log.read_text)
    if "stopped by SIGTERM" not in log.read_text():
        trial.wrong.append("the last line does not name the signal")
    return trial


def _turn(place: Place, api: KubeApi, trial: Trial, turn: int, every: int) -> None:
    """Replace the Service, every now and then while Neutron or the API server is down."""
    down = turn % every == every - 1
    trial.outages += down
    if down and turn // every % 2:
        say(f"turn {turn}: the API server goes down")
        api.stop("kube-apiserver", number=signal.SIGKILL)
        time.sleep(DOWN)
        api.start_api()
    if down and not turn // every % 2:
        say(f"turn {turn}: Neutron goes down")
        with place.without_neutron():
            _replace(api, turn)
            time.sleep(DOWN)
    else:
        _replace(api, turn)


def _address(turn: int) -> str:
    return f"10.1.0.{201 + turn % 9}"


def _replace(api: KubeApi, turn: int) -> None:
    if turn:
        api.delete("s")
    api.create("s", _address(turn))


def _has(place: Place, turn: int) -> bool:
    return place.pairs() == [{_address(turn)}] * 2


def _allow(api: KubeApi) -> None:
    rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch"]}]
    api.sent("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", ROLE | {"rules": rules})
    group = "rbac.authorization.k8s.io"
    body: dict[str, Any] = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "reader"},
    }
    body |= {"subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}]}
    api.sent("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)


def _until(condition: Callable[[], bool], what: str, log: Path, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not after {seconds:.0f} s\n{log.read_text()[-3000:]}")
        time.sleep(0.3)
