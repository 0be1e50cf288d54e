"""``verify`` while something changes, and from inside: ``--watch``, ``--probe-from``."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.conftest import Prep
from tests.functional.test_exposed_clusters import SHIPPED
from tests.packets.conftest import INFRA_ID, World
from tests.packets.machines import carry_out, from_outside, until
from tests.packets.played_cluster import CHECKED, HOSTS, RESPONDER_NAME, Machine
from tests.packets.situations import pairs_of

OPTIONS = ("--infra-id", INFRA_ID, "--base-domain", "example.com", "--hosts", "hosts")
NOBODY = 65534
API = CHECKED["api"]


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


def ssh_into(world: World, machine: Machine, folder: Path) -> None:
    """Write an ``ssh`` that knows two hosts: ``node``, a machine, and ``nowhere``, where nobody can log in.

    OpenSSH's own client and server talk without a network between them. The server is not root, because a user
    namespace with one user has no setgroups(2). Its own files name that user: what a machine's say differs, and where
    only root reads the shadow file, nss-systemd says that ``nobody`` is locked.
    """
    plane = world.played.plane
    for name in ("host", "user"):
        key = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        subprocess.run(key, check=True, env=plane.environment)
    settings = [f"HostKey {folder}/host", f"AuthorizedKeysFile {folder}/user.pub", "StrictModes no", "UsePAM no"]
    (folder / "sshd_config").write_text("\n".join([*settings, "PidFile none", ""]))
    programs = plane.layout.programs
    sshd = (str(programs / "usr/sbin/sshd"), "-i", "-f", str(folder / "sshd_config"))
    (folder / "passwd").write_text(f"root:x:0:0::/:/bin/sh\nnobody:x:{NOBODY}:{NOBODY}::/:/bin/sh\n")
    (folder / "shadow").write_text("nobody:*:::::::\n")
    mounts = [f"mount --bind {folder}/{name} /etc/{name}" for name in ("passwd", "shadow")]
    server = f"exec {shlex.join(('unshare', '--user', f'--map-user={NOBODY}', *sshd))}"
    enter = plane.words(machine.id, "unshare", "--mount", "sh", "-c", " && ".join([*mounts, server]))
    lines = ["Host node", f"ProxyCommand {shlex.join(enter)}", "Host nowhere", "ProxyCommand false"]
    lines += ["Host *", "User nobody", f"IdentityFile {folder}/user"]
    lines += ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", ""]
    (folder / "ssh_config").write_text("\n".join(lines))
    variables = [f"{name}={plane.environment[name]}" for name in ("LD_LIBRARY_PATH", "PATH")]
    command = ["env", *variables, str(programs / "usr/bin/ssh"), "-F", str(folder / "ssh_config")]
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def probe_from(world: World, folder: Path, target: str, code: int) -> dict[str, Any]:
    variables = world.prep.environment | {"PATH": f"{folder}:{os.environ['PATH']}"}
    words = ("verify", "--probe-from", target, "--format", "json", *OPTIONS)
    process = Prep(world.prep.folder, variables).start(*words)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, (out, err)
    return dict(json.loads(out))


def failures(seen: dict[str, Any]) -> dict[str, set[str]]:
    """Return by service the codes of the links that are not ok."""
    return {each["name"]: {link["code"] for link in each["links"] if link["status"] != "ok"} for each in seen["chains"]}


@contextmanager
def snat_of_the_network(world: World) -> Iterator[None]:
    """Let the router translate the machines' addresses only, as Neutron does without ``ovn_router_indirect_snat``.

    Neutron 29 has 0.0.0.0/0 there, and OVN 23.03 then loses the answers from a floating IP to machines behind it.
    """
    plane = world.played.plane
    (row,) = plane.northbound("--bare", "--columns=_uuid", "find", "nat", "type=snat").split()
    plane.northbound("set", "nat", row, 'logical_ip="10.0.0.0/16"')
    yield
    plane.northbound("set", "nat", row, 'logical_ip="0.0.0.0/0"')


def test_a_probe_from_inside(reached: World, tmp_path: Path) -> None:
    """From a worker, in the words of a probe from here; nothing stays there."""
    played = reached.played
    holder = played.wait_for_holder("ingress")
    machine = next(each for each in played.of("ingress") if each != holder)
    ssh_into(reached, machine, tmp_path)
    assert asked_by(reached, machine) == {"api": False, "ingress": False}
    lost = failures(probe_from(reached, tmp_path, "node", 1))
    assert lost == {"api": {"probe.no-answer"}, "ingress": {"probe.no-answer"}}
    assert all(link["status"] == "ok" for links in reached.probe().values() for link in links)
    with snat_of_the_network(reached):
        assert asked_by(reached, machine) == {"api": True, "ingress": True}
        seen = probe_from(reached, tmp_path, "node", 0)
        for each in played.of("api"):
            played.plane.kill(each.id, RESPONDER_NAME)
        try:
            found = failures(probe_from(reached, tmp_path, "node", 1))
        finally:
            for each in played.of("api"):
                played.start_responder(each)
            played.wait_for_holder("api")
    assert failures(seen) == {"api": set(), "ingress": set()}
    probed = {each["name"]: [link for link in each["links"] if link["where"] == "probe"] for each in seen["chains"]}
    assert {name: len(links) for name, links in probed.items()} == {"api": 1, "ingress": 3}
    assert found["api"]
    assert found["api"] <= {"probe.refused", "probe.no-answer"}
    assert found["ingress"] == set()
    assert until(lambda: played.plane.kill(machine.id, "sshd") == 0)
    (error,) = probe_from(reached, tmp_path, "nowhere", 2)["errors"]
    assert error["code"] == "config.invalid"


def asked_by(world: World, machine: Machine) -> dict[str, bool]:
    """Return by service whether a machine is answered at the floating IP."""
    return {
        service: bool(world.played.request(machine.id, host, world.played.floating[service], CHECKED[service]))
        for service, host in HOSTS.items()
    }


def rules_of_https(world: World) -> list[Any]:
    rules = world.group("worker").security_group_rules
    return [each for each in rules if each["port_range_min"] == CHECKED["ingress"]]


def test_exposures_of_openshift(reached: World, tmp_path: Path) -> None:
    """The shipped ones, at the floating IPs that the cluster has; what a hop prints lets requests pass again."""
    spec = yaml.safe_load((SHIPPED / "exposures-openshift.yaml").read_text())
    for section in ("project", "users", "role_assignments"):
        del spec[section]
    for each in spec["floating_ips"]:
        each["address"] = reached.played.floating[each["name"]]
    (apps,) = (each for each in spec["exposures"] if each["name"] == "apps")
    apps["names"] = ["console.apps.ocp.example.com"]  # no hosts file has a wildcard
    spec["exposed_clusters"][0]["nodes"] = {"infra_id": INFRA_ID}
    here = Prep(tmp_path, reached.prep.environment)
    here.write(spec)
    here.apply()
    hosts = here.folder / "ocp-access/hosts"
    lines = [line.split() for line in hosts.read_text().splitlines() if not line.startswith("#")]
    addresses = {name: address for address, *names in lines for name in names}

    def answered() -> set[str]:
        asked = {"api.ocp.example.com": CHECKED["api"], "console.apps.ocp.example.com": CHECKED["ingress"]}
        plane = reached.played.plane
        return {name for name, port in asked.items() if from_outside(plane, name, addresses[name], port)}

    def broken(code: int) -> dict[str, str]:
        words = ("exposures", "show", here.spec.name, "--hosts", str(hosts), "--format", "json")
        hops = [hop for each in json.loads(here.run(*words, code=code).stdout)["exposures"] for hop in each["hops"]]
        return {hop["code"]: hop["fix"] for hop in hops if hop["status"] != "ok"}

    assert broken(0) == {}
    assert answered() == set(addresses)
    for rule in rules_of_https(reached):
        reached.network.delete_security_group_rule(rule["id"])
    assert broken(1).keys() == {"security-group.blocks"}
    assert until(lambda: answered() == {"api.ocp.example.com"})
    change, command = broken(1)["security-group.blocks"].split(", then ")
    group = re.fullmatch(r"set open_in: (\S+) of cluster ocp in exposed_clusters", change)
    assert group
    spec["exposed_clusters"][0]["open_in"] = group[1]
    here.write(spec)
    carry_out(here, [command])
    assert broken(0) == {}
    assert until(lambda: answered() == set(addresses))
    for rule in (each for each in reached.group("master").security_group_rules if each["port_range_min"] == API):
        reached.network.delete_security_group_rule(rule["id"])
    assert until(lambda: answered() == {"console.apps.ocp.example.com"})
    carry_out(here, [broken(1)["security-group.blocks"]])  # in a group that the spec does not open
    (floating,) = reached.network.ips(floating_ip_address=reached.played.floating["api"])
    reached.network.update_ip(floating, port_id=None)
    carry_out(here, [broken(1)["floating-ip.detached"]])
    assert broken(0) == {}
    assert until(lambda: answered() == set(addresses))
    here.destroy()
    assert until(lambda: answered() == {"api.ocp.example.com"})
    https = {"direction": "ingress", "protocol": "tcp", "port_range_min": 443, "port_range_max": 443}
    reached.network.create_security_group_rule(security_group_id=reached.group("worker").id, **https)
    assert until(lambda: answered() == set(addresses))


def test_a_cluster_that_is_cleaned_up(reached: World) -> None:
    """The last test of the module: nothing is taken while a machine of somebody else needs the network."""
    network = reached.network.find_network(reached.played.cluster.recipe.network, ignore_missing=False)
    server = next(iter(reached.compute.servers()))
    flavor = next(iter(reached.compute.flavors()))
    image = {"image_id": server.image.id, "flavor_id": flavor.id}
    bastion = reached.compute.create_server(name="bastion", networks=[{"uuid": network.id}], **image)
    reached.compute.wait_for_server(bastion, interval=0.2, wait=120)
    words = ("cleanup", "--infra-id", INFRA_ID, "--yes")
    assert "server bastion" in reached.prep.run(*words, code=2).stderr
    assert reached.answers("api")
    assert reached.answers("ingress")
    reached.compute.delete_server(bastion)
    reached.compute.wait_for_delete(bastion, interval=0.2, wait=60)
    reached.prep.run(*words)
    reached.played.settle()
    assert not reached.answers("api")
    assert not reached.answers("ingress")
    assert list(reached.compute.servers()) == list(reached.network.routers()) == []
    assert {each.port_id for each in reached.network.ips()} == {None}
