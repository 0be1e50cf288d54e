"""Race processes for the ports of one address pool in a devcloud that is up; one of them is killed per round."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keystoneauth1.session import Session

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.exposures.register.neutron import NeutronRegister
from openstack_prep.exposures.register.pool import Claim, ClaimRequest
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.tenant import connect

REQUESTS = 14
"""A racer is killed at one of its first requests, before it is sent or after it was answered."""
SHARED = "all"
"""The name that all racers claim; each also claims names of its own."""


@dataclass(frozen=True)
class PortPool:
    """An address pool in the project of the devcloud's administrator."""

    clouds_file: Path
    spec: str

    def register(self) -> NeutronRegister:
        """Return the register of a run of its own."""
        cloud = Cloud(connect(self.clouds_file, "devcloud-admin"))
        return NeutronRegister(run=CloudRun(cloud, OwnershipTag(self.spec)), project=None, pool="lb")

    def recorded(self, admin: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the addresses and MAC addresses by name, as plain descriptions of ports have them."""
        found: dict[str, list[tuple[str, str]]] = {}
        for port in admin.network.ports(device_owner="openstack-prep:reserved"):
            words = port.description.partition(" [")[0].split()
            if words[:1] == ["exposure"] and port.description.endswith(f"[openstack-prep:{self.spec}/lb]"):
                claim = (port.fixed_ips[0]["ip_address"], words[2] if len(words) > 2 else "")
                found.setdefault(words[1], []).append(claim)
        return found


@contextmanager
def port_pool(clouds_file: Path) -> Iterator[PortPool]:
    """Create a pool of 16 ports, and destroy it at the end."""
    name = f"race{secrets.token_hex(3)}"
    cloud = Cloud(connect(clouds_file, "devcloud-admin"))
    resources = (
        Network(name=name),
        Subnet(name=name, network=name, cidr="10.9.0.0/24", allocation_pools=("10.9.0.10-10.9.0.199",)),
        AddressPool(name="lb", subnet=name, addresses=("10.9.0.100-10.9.0.115",)),
    )
    api.apply(cloud, Spec(name, resources)).raise_for_failures()
    try:
        yield PortPool(clouds_file, name)
    finally:
        api.destroy(cloud, Spec(name, resources)).raise_for_failures()


def claims_of(pool: PortPool, number: int, tell: Callable[[str, Claim | None], None]) -> None:
    """Claim names of its own and the shared one, in batches and alone, and tell each outcome as soon as it is known."""
    mine = pool.register()
    own = [f"e{number}-{each}" for each in "abc"]
    for name, claim in mine.claim([ClaimRequest(name=each, mac=True) for each in own[:2]]).items():
        tell(name, claim)
    for name, outcome in mine.claim_each([ClaimRequest(name=own[2]), ClaimRequest(name=SHARED, mac=True)]).items():
        assert isinstance(outcome, Claim), outcome
        tell(name, outcome)
    tell(own[0], None)
    NeutronRegister(run=mine.run.fresh(), project=None, pool="lb").release([own[0]])


def die_at(request: int, *, after: bool) -> None:
    """Kill this process at one of its requests."""
    send, numbers = Session.request, iter(range(10**6))

    def counted(*words: Any, **options: Any) -> Any:
        last = next(numbers) == request
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send(*words, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Session.request = counted  # type: ignore[method-assign]


def race(pool: PortPool, admin: Any, racers: int, chance: random.Random) -> Iterator[str]:
    """Run one round, and yield what is wrong then; all claims are released at the end."""
    victim, request, after = chance.randrange(racers), chance.randrange(REQUESTS), chance.random() < 0.5
    runs = []
    for number in range(racers):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(read)
                if number == victim:
                    die_at(request, after=after)
                claims_of(pool, number, partial(_tell, write))
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        runs.append((number, pid, read))
    told: dict[str, list[Any]] = {}
    for number, pid, read in runs:
        with os.fdopen(read) as lines:
            own = dict(json.loads(line) for line in lines)  # the last of each name
        for name, claim in own.items():
            told.setdefault(name, []).append(claim)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in ((0, -signal.SIGKILL) if number == victim else (0,)):
            yield f"racer {number} ended with {code}"
    recorded = pool.recorded(admin)
    yield from _wrong(told, recorded, victim)
    after_all = pool.register()
    after_all.claim([ClaimRequest(name=each) for each in recorded])
    again = pool.recorded(admin)
    yield from (f"{name} has {claims} after the next claim" for name, claims in again.items() if len(claims) != 1)
    macs = [mac for claims in again.values() for _, mac in claims if mac]
    if len(macs) != len(set(macs)):
        yield f"a MAC address was given twice: {again}"
    pool.register().release(list(again))
    if left := pool.recorded(admin):
        yield f"not released: {left}"


def _wrong(told: dict[str, list[Any]], recorded: dict[str, list[tuple[str, str]]], victim: int) -> Iterator[str]:
    for name, claims in told.items():
        held = [each for each in claims if each is not None]
        if len({json.dumps(each, sort_keys=True) for each in held}) > 1:
            yield f"{name} was told to be {held}"
        for claim in held:
            if (claim["address"], claim["mac"] or "") not in recorded.get(name, []):
                yield f"{name} was told {claim}, and the ports have {recorded.get(name)}"
        was_released = None in claims and not name.startswith(f"e{victim}-")
        if was_released and name in recorded:
            yield f"{name} was released, and the ports have {recorded[name]}"


def _tell(pipe: int, name: str, claim: Claim | None) -> None:
    os.write(pipe, (json.dumps([name, vars(claim) if claim else None]) + "\n").encode())


def series(clouds_file: Path, racers: int, rounds: int, seed: int) -> int:
    """Run the rounds, print what is wrong, and return how many faults there were."""
    admin = connect(clouds_file, "devcloud-admin")
    started, chance, faults = time.monotonic(), random.Random(f"{seed} {racers} ports"), 0
    with port_pool(clouds_file) as pool:
        for number in range(rounds):
            for fault in race(pool, admin, racers, chance):
                faults += 1
                print(f"{racers} racers for ports, round {number}: {fault}", flush=True)
    seconds = time.monotonic() - started
    print(f"{racers} racers for ports, {rounds} rounds, {faults} faults, {seconds:.1f} s", flush=True)
    return faults
