"""What ``verify`` says of a way into a cluster, and what a client outside gets on it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.packets.conftest import INFRA_ID, World
from tests.packets.machines import carry_out, until
from tests.packets.played_cluster import CHECKED, HOSTS, RESPONDER_NAME
from tests.packets.situations import SITUATIONS, Situation

SECONDS = 20
"""How long a change may take until a client notices: keepalived's and OVN's."""
ANNOUNCED_SECONDS = SECONDS + 60
"""The same where OVN may know a virtual address again only when its holder announces it, once a minute."""


@pytest.fixture(scope="module")
def reached(world: World) -> World:
    """The cluster after ``post-ipi``, which answers from outside."""
    assert world.answers("api")
    assert not world.answers("ingress")
    words = ("--infra-id", INFRA_ID, "--ingress-ip", world.played.floating["ingress"], "--yes")
    world.prep.run("post-ipi", *words)
    assert silent(world, frozenset()) == set()
    return world


def silent(
    world: World, wanted: frozenset[str], asked: Mapping[str, int] = CHECKED, *, seconds: float = SECONDS
) -> frozenset[str]:
    """Return the services that answer nobody outside, once they are the wanted ones, or after a while."""
    deadline = time.monotonic() + seconds
    while (found := frozenset(each for each in HOSTS if not world.answers(each, asked[each]))) != wanted:
        if time.monotonic() > deadline:
            break
    return found


def codes_of(links: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return by service the codes of the links that are not ok."""
    return {service: [each["code"] for each in found if each["status"] != "ok"] for service, found in links.items()}


FIT = (frozenset[str](), {"api": [], "ingress": []})
"""Nobody is silent, and every link is ok."""
FIXED = {
    "no pair on any worker",
    "no pair on any master",
    "pairs with another address",
    "pairs with VRRP's MAC address, which the machines do not use",
    "pairs with a network around the addresses on every machine",
    "no rule for 443",
    "no rule for 6443",
    "a port forwarding of 80 alone",
    "443 only from the cluster's own network",
    "443 only from another network than that given by --from",
    "a stateless group that lets no answer out",
    "the default group instead of the workers' own",
    "no group on the workers",
    "port security off on the masters, and the address moves",
    "the address moved to a master with port security off",
    "port security off on the workers",
    "port security off on every machine",
    "the floating IP on no port",
    "the API's floating IP on no port",
    "the floating IP on a master's own port",
    "the workers' ports disabled",
    "the virtual address's port disabled",
    "the virtual address's port without a tag",
    "the router disabled",
    "SNAT only: the router has a gateway, and no floating IP is on a port",
    "the router without a gateway",
    "the router with its gateway on another external network",
    "a second port with the name of the virtual address's, which install-config.yaml names",
    "the floating IP on a worker's own port",
    "the masters' ports disabled",
    "the router with an interface in another subnet of the machines' network",
    "the router with an interface in another network instead of the machines'",
    "one worker stopped, the other one holds the address",
    "only VRRP is not let through",
    "the names swapped",
    "a name that is in no hosts file",
    "a name with an address of nobody",
}


def carried_out(world: World, situation: Situation, links: Mapping[str, Sequence[Mapping[str, Any]]]) -> object:
    """Carry out each command that ``verify`` prints as it stands; return who is still silent, and what is not ok."""
    carry_out(world.prep, (link["fix"] for found in links.values() for link in found if link["status"] != "ok"))
    world.played.settle()
    quiet = silent(world, frozenset(), seconds=ANNOUNCED_SECONDS)
    until(lambda: codes_of(world.verify(*situation.words)) == FIT[1])
    return quiet, codes_of(world.verify(*situation.words))


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_verdict_and_packets(reached: World, situation: Situation) -> None:
    """For the situations in ``FIXED``, the printed commands let packets pass, and leave no link to be named."""
    with situation.brought_about(reached):
        reached.played.settle()
        links = reached.verify(*situation.words)
        found = silent(reached, situation.silent, situation.asked, seconds=ANNOUNCED_SECONDS)
        goes_out = situation.goes_out
        assert goes_out is None or until(lambda: reached.goes_out() == goes_out)
        after: object = FIT
        if situation.name in FIXED:
            after = carried_out(reached, situation, links)
    reached.played.settle()
    assert silent(reached, frozenset(), seconds=ANNOUNCED_SECONDS) == set()
    codes = {service: " ".join(each) for service, each in codes_of(links).items()}
    assert (codes, found, after) == (situation.codes, situation.silent, FIT)


def test_a_virtual_address_moves(reached: World) -> None:
    """Of a client that asks ten times a second, the time without an answer is keepalived's: three advertisements."""
    holder = reached.played.wait_for_holder("ingress")
    asked: list[tuple[float, bool]] = []
    fallen = 0.0
    while time.monotonic() < fallen + 10 or not fallen:
        began = time.monotonic()
        asked.append((began, reached.answers("ingress")))
        if not fallen and len(asked) == 10:
            assert all(answered for _, answered in asked)
            assert reached.played.fall(holder)
            fallen = time.monotonic()
        time.sleep(max(0, began + 0.1 - time.monotonic()))
    lost = [moment for moment, answered in asked if not answered]
    again = next(moment for moment, answered in asked if answered and moment > (lost[-1] if lost else fallen))
    print(f"{len(lost)} of {len(asked)} requests lost, answered again {again - fallen:.1f} s after the holder's end")
    moved = reached.played.wait_for_holder("ingress")
    reached.played.start_keepalived(holder)
    assert moved != holder
    assert again - fallen < SECONDS


def test_a_second_post_ipi_disturbs_nobody(reached: World) -> None:
    words = ("--infra-id", INFRA_ID, "--ingress-ip", reached.played.floating["ingress"], "--yes")
    process = reached.prep.start("post-ipi", *words)
    asked = 0
    while process.poll() is None or asked < 20:
        assert reached.answers("ingress")
        assert reached.answers("api")
        asked += 1
    assert process.wait() == 0


def test_another_floating_ip_than_the_expected_one(reached: World) -> None:
    """The printed commands put the expected one in its place, and let the name lead there."""
    network, former = reached.network, reached.played.floating["ingress"]
    (found,) = network.ips(floating_ip_address=former)
    other = network.create_ip(floating_network_id=found.floating_network_id)
    hosts = (reached.prep.folder / "hosts").read_text()
    words = ("--ingress-ip", other.floating_ip_address)
    links = reached.verify(*words)
    seen = codes_of(links)["ingress"]
    carry_out(reached.prep, (link["fix"] for link in links["ingress"] if link["status"] != "ok"))
    reached.played.settle()
    assert until(lambda: reached.answers("ingress"))
    assert codes_of(reached.verify(*words))["ingress"] == []
    assert other.floating_ip_address in (reached.prep.folder / "hosts").read_text()
    network.delete_ip(other)
    (reached.prep.folder / "hosts").write_text(hosts)
    network.update_ip(found.id, port_id=reached.played.cluster.port("ingress-port").id)
    assert silent(reached, frozenset(), seconds=ANNOUNCED_SECONDS) == set()
    assert seen == ["dns.wrong-address", "dns.wrong-address", "floating-ip.other-address"]


@pytest.mark.parametrize("service", HOSTS)
def test_a_probe_from_outside(reached: World, service: str) -> None:
    """Where OpenStack shows every link as right, and nobody listens, only a probe says so."""
    other = next(each for each in HOSTS if each != service)
    assert codes_of(reached.probe()) == {"api": [], "ingress": []}
    for machine in reached.played.of(service):
        reached.played.plane.kill(machine.id, RESPONDER_NAME)
    try:
        assert codes_of(reached.verify())[service] == []
        found = codes_of(reached.probe())
    finally:
        for machine in reached.played.of(service):
            reached.played.start_responder(machine)
        reached.played.wait_for_holder(service)
    assert set(found[service]) <= {"probe.refused", "probe.no-answer"}
    assert found[service]
    assert found[other] == []
