"""Names of the cluster: api and *.apps lead to its addresses, seen from the machine that installs.

Source: OpenShift installer docs/user/openstack/README.md, "Create API and Ingress Floating IP Addresses";
hosts(5), getaddrinfo(3).
"""

from __future__ import annotations

import queue
import shlex
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping

from openstack_prep.check.finding import Finding
from openstack_prep.check.scene import Scene
from openstack_prep.check.topology import listed, virtual_addresses
from openstack_prep.fields import address
from openstack_prep.hosts import ROUTES, Names

SECONDS = 5.0
"""How long name servers may take for all names together."""
ASKED = ROUTES[:2]
"""The names below apps that are looked up: one must be able to log in to the console."""

Answers = Mapping[str, frozenset[str]]


def names(scene: Scene) -> Iterator[Finding]:
    """Yield names that do not resolve, or lead elsewhere."""
    cluster = scene.cluster
    names = Names(cluster_name=cluster.cluster_name, base_domain=cluster.base_domain, api="", ingress="")
    api = f"api.{names.domain}"
    apps = [f"{route}.apps.{names.domain}" for route in ASKED]
    try:
        written = in_hosts(scene.hosts.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        written = {}
        why, remedy = "its names cannot be checked", "name another by --hosts"
        yield Finding(where=str(scene.hosts), what=f"cannot be read: {error.strerror}", why=why, remedy=remedy)
    found = written | resolved([each for each in (api, *apps) if each not in written], SECONDS)

    if not found[api]:
        yield _unresolved(scene, api, "the installer waits 20 minutes for the API by that name, and gives up", True)
    yield from _elsewhere(scene, found, [api], _addresses(scene, "api"))
    lost = [each for each in apps if not found[each]]
    if lost:
        yield _unresolved(scene, ", ".join(lost), "nobody can log in to the console from here", False)
    yield from _elsewhere(scene, found, apps, _addresses(scene, "ingress"))


def _addresses(scene: Scene, which: str) -> set[str]:
    """Return where a name may lead: the floating IP, else the virtual addresses."""
    cluster = scene.cluster
    floating = getattr(cluster, f"{which}_floating_ip")
    virtual = set(map(str, virtual_addresses(scene)[f"{which}_vips"]))
    if floating:
        return {floating} | (virtual if cluster.load_balancer == "UserManaged" else set())
    if which == "ingress" and cluster.external_network:  # one will be attached later; which, only the user knows
        mine = listed(scene, "floatingips", project_id=scene.cloud.project_id)
        return virtual | {each["floating_ip_address"] for each in mine} - {cluster.api_floating_ip}
    return virtual


def _unresolved(scene: Scene, told: str, why: str, error: bool) -> Finding:
    return Finding(
        where=f"names: {told}",
        what=f"does not resolve here, neither by {scene.hosts} nor by a name server",
        why=why,
        remedy=_write(scene),
        level="error" if error else "warning",
    )


def _elsewhere(scene: Scene, found: Answers, mine: Iterable[str], wanted: set[str]) -> Iterator[Finding]:
    for name in mine:
        wrong = sorted(found[name] - wanted)
        if wrong:
            yield Finding(
                where=f"names: {name}",
                what=f"leads to {', '.join(wrong)}, not to {' or '.join(sorted(wanted))}",
                why="whoever asks by that name talks to something else: the installer in vain for its 20 minutes",
                remedy=_write(scene),
            )


def _write(scene: Scene) -> str:
    ingress = [] if scene.cluster.ingress_floating_ip or not scene.cluster.external_network else ["--ingress", "ADDR"]
    words = ["names", "--install-config", str(scene.path), *ingress, "--as", "hosts", "--write", str(scene.hosts)]
    return shlex.join(["openstack-prep", *words])


# --- looking up ---------------------------------------------------------------------------


def in_hosts(text: str) -> dict[str, frozenset[str]]:
    """Return the addresses of each name in a hosts file; names in small letters."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        first, *others = line.partition("#")[0].split() or [""]
        for name in others:
            found.setdefault(name.lower().rstrip("."), set()).add(_plain(first))
    return {name: frozenset(addresses) for name, addresses in found.items()}


def _plain(text: str) -> str:
    try:
        return str(address(text))
    except ValueError:
        return text


def resolved(asked: Iterable[str], seconds: float) -> dict[str, frozenset[str]]:
    """Return the addresses that this machine finds for names, none for those without an answer in time."""
    found: dict[str, frozenset[str]] = dict.fromkeys(asked, frozenset())
    answers: queue.SimpleQueue[tuple[str, frozenset[str]]] = queue.SimpleQueue()
    for name in found:  # getaddrinfo knows no time-out; a daemon does not hold the process up
        threading.Thread(target=lambda name=name: answers.put((name, _ask(name))), daemon=True).start()
    deadline = time.monotonic() + seconds
    for _ in tuple(found):
        try:
            name, addresses = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        found[name] = addresses
    return found


def _ask(name: str) -> frozenset[str]:
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # no such name, no server, or no name at all
        return frozenset()
    return frozenset(str(each[4][0]) for each in answers)
