"""Install OpenShift 4.20 on a devcloud that carries traffic, call the console from outside, break it and mend it.

The installer is a stand-in, and so is the cluster: on each machine run keepalived, with the installer's settings, and a
small server. What lets packets pass, or drops them, is real: Neutron, OVN, Open vSwitch.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests import standin
from tests.demo import CLUSTER, CREDENTIALS, INGRESS, OPENSHIFT, SPEC, install, remove_former, write_files
from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.devcloud.tenant import connect
from tests.packets.played_cluster import PlayedCluster
from tests.show import Show, begin

CONSOLE = f"console-openshift-console.apps.{CLUSTER}.example.com"
SECONDS = 8
"""How long the client outside asks while the address moves."""


def curl(address: str, *more: str) -> Sequence[str]:
    words = ("--silent", "--show-error", "--insecure", "--max-time", "2", *more)
    return ("curl", *words, "--resolve", f"{CONSOLE}:443:{address}", f"https://{CONSOLE}/")


def play(show: Show) -> PlayedCluster:
    """Start keepalived and a server on each machine of the installed cluster."""
    entry = show.user(CLUSTER, CREDENTIALS)
    connection = connect(Path(entry["OS_CLIENT_CONFIG_FILE"]), CLUSTER)
    metadata = json.loads((show.place / CLUSTER / "metadata.json").read_text())
    found = standin.Cluster(connection, standin.Recipe(infra_id=metadata["infraID"]))
    for server in connection.compute.servers():
        connection.compute.wait_for_server(server, interval=0.2, wait=120)
    folder = show.place / "machines"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    played = PlayedCluster(found, DataPlane(show.cloud), folder)
    played.start()
    return played


def watch_it_move(show: Show, played: PlayedCluster) -> None:
    """Ask ten times a second while the holder dies, and print what changes."""
    holder = played.wait_for_holder("ingress")
    print(f"\n$ curl ...  # ten times a second; after a second keepalived on {holder.name} is killed", flush=True)
    began, asked, lost, last, fallen = time.monotonic(), 0, 0, None, False
    while (now := time.monotonic() - began) < SECONDS:
        if now > 1 and not fallen:
            played.fall(holder)
            fallen = True
        answer = played.request(OUTSIDE, CONSOLE, INGRESS, 443, seconds=1) or "no answer"
        asked, lost = asked + 1, lost + (answer == "no answer")
        if answer != last:
            print(f"{time.monotonic() - began:5.1f} s  {answer}", flush=True)
            last = answer
        time.sleep(max(0, began + asked * 0.1 - time.monotonic()))
    if last in (holder.name, "no answer"):
        sys.exit("demo: the address did not move")
    print(f"{lost} of {asked} requests lost", flush=True)
    show.proofs.append((SECONDS, "the virtual address moves to another machine when its holder dies"))


def from_outside(show: Show, played: PlayedCluster, *more: str, proves: str = "", code: int | None = 0) -> None:
    """Call the console from the external network."""
    plane = played.plane
    show.run(*curl(INGRESS, *more), proves=proves, code=code, within=plane.words(OUTSIDE), **plane.environment)


def fixes(show: Show, *words: str, **variables: str) -> list[str]:
    """Return what a command prints as fixes of errors."""
    environment = os.environ | show.admin | variables
    command = ["openstack-prep", *words, "--format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    links = [link for chain in json.loads(ended.stdout)["chains"] for link in chain["links"]]
    return list(dict.fromkeys(link["fix"] for link in links if link["status"] == "error"))


def break_and_mend(show: Show, played: PlayedCluster) -> None:
    """Take the address pairs away, let verify find that, carry out its fix."""
    own = show.user(CLUSTER, CREDENTIALS)
    for port in played.cluster.nodes():
        if "-worker-" in port.name:
            show.run("openstack", "port", "set", "--no-allowed-address", port.id, **own)
    played.settle()
    from_outside(show, played, code=28)
    verify = ("verify", "--metadata", CLUSTER, "--hosts", "hosts")
    show.prep(*verify, code=1, writes=False, proves="verify finds why nobody answers", **own)
    for fix in fixes(show, *verify, **own):
        show.run(*shlex.split(fix, comments=True), "--yes", proves="the printed fix is carried out as it stands", **own)
    played.settle()
    from_outside(
        show, played, "--retry", "9", "--retry-all-errors", "--retry-delay", "1", proves="the console answers again"
    )
    show.prep(*verify, writes=False, proves="verify finds no problems", **own)


def main() -> int:
    repository = os.getcwd()
    show = begin("demo-packets", __doc__)
    former = (show.place / SPEC).exists()
    program = write_files(show.place)
    if former:
        remove_former(show)
    install(show, program)
    show.chapter(
        "Start the machines",
        """Each server of Nova is a network namespace, plugged into Open vSwitch. Now each runs keepalived and a server
        that answers with the name of its machine.""",
    )
    played = play(show)
    show.chapter("Call the console", "From the external network, by its floating IP.")
    from_outside(show, played, proves="the console answers a client outside")
    show.chapter("Kill the holder of the address", "keepalived of another machine takes it over.")
    watch_it_move(show, played)
    show.chapter("Break the address pairs", "Neutron drops what the machines send for the virtual address.")
    break_and_mend(show, played)
    show.chapter("Destroy", "The cluster first, then the project; after that, nobody answers.")
    own = show.user(CLUSTER, CREDENTIALS)
    show.prep("cleanup", "--yes", "--metadata", CLUSTER, proves="cleanup deletes the cluster", **own)
    show.prep("destroy", "--yes", OPENSHIFT, proves="destroy deletes the project")
    from_outside(show, played, code=28)
    show.summary()
    show.farewell(["openstack project list"], [], repository)
    return 0


if __name__ == "__main__":
    sys.exit(main())
