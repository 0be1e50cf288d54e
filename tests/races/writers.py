"""Race writers of one port's address pairs: ``python -m tests.races.writers --rounds 200 --foreign 0 2``.

Two specs want each address. All add theirs at once; then one of each two destroys its own, while the other one applies;
then the others do. Foreign writers, one after the other, add a pair each by the request that scripts send: the whole
list as they read it, without If-Match. What they overwrite is back after one more apply; what they added is never lost.
Needs a devcloud that is up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import PrepError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from openstack_prep.verbs.opening import LivePlan
from tests.devcloud import tenant
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import Layout, default_root

LIMIT = 10  # Neutron's max_allowed_address_pair; two of 16 writers want each of eight
PORT = "contested"


class Writer:
    """A spec that wants one pair on the port, with a connection of its own."""

    def __init__(self, number: int, address: str, connection: Any, *, leases: bool) -> None:
        self.name, self.address, self._connection = f"writer{number}", address, connection
        self._leases = leases

    def apply(self) -> Iterator[str]:
        return self._run(api.plan, api.apply)

    def destroy(self) -> Iterator[str]:
        return self._run(api.plan_destroy, api.destroy)

    def _run(self, plan: Callable[..., LivePlan], verb: Callable[..., Any]) -> Iterator[str]:
        pairs = AddressPairs(name="own", ports=(PORT,), addresses=(self.address,))
        cloud = Cloud(self._connection)
        try:
            made = plan(cloud, Spec(self.name, (pairs,)))
            made.raise_for_refusals()
            # each spec has a lease of its own, so nobody waits for anybody; but all leases are in one description
            report = verb(cloud, made) if self._leases else executor.execute(made, made.run)
            report.raise_for_failures()
        except PrepError as error:
            yield f"{self.name}: {error}"


class Round:
    """One port, and those who write to it."""

    def __init__(self, connection: Any, writers: Sequence[Writer], foreign: Sequence[str]) -> None:
        self._neutron, self._writers, self._foreign = connection.network, writers, foreign
        self._turn = threading.Lock()

    def faults(self) -> Iterator[str]:
        """Run the round and yield what is wrong then."""
        network = self._neutron.find_network(PORT, ignore_missing=False)
        self._port = self._neutron.create_port(name=PORT, network_id=network.id).id
        half = len(self._writers) // 2
        first, second = self._writers[:half], self._writers[half:]
        try:
            yield from self._at_once([each.apply for each in self._writers], self._foreign)
            yield from self._compare("all have applied", {each.address for each in self._writers})
            yield from self._at_once([each.destroy for each in first] + [each.apply for each in second])
            yield from self._compare("half have destroyed", {each.address for each in second})
            yield from self._at_once([each.destroy for each in second])
            yield from self._compare("all have destroyed", set())
        finally:
            self._neutron.delete_port(self._port)

    def _at_once(self, ours: Sequence[Callable[[], Iterator[str]]], foreign: Sequence[str] = ()) -> Iterator[str]:
        with ThreadPoolExecutor(len(ours) + len(self._foreign)) as pool:
            others = [pool.submit(self._add_blindly, address) for address in foreign]
            for told in pool.map(lambda run: list(run()), ours):
                yield from told
            for each in others:
                each.result()
        if foreign:
            for writer in self._writers:
                yield from writer.apply()

    def _add_blindly(self, address: str) -> None:
        with self._turn:
            pairs = [{"ip_address": each} for each in [*self._pairs(), address]]
            self._neutron.put(f"/ports/{self._port}", json={"port": {"allowed_address_pairs": pairs}})

    def _pairs(self) -> list[str]:
        answer = self._neutron.get(f"/ports/{self._port}").json()
        return [each["ip_address"] for each in answer["port"]["allowed_address_pairs"]]

    def _compare(self, when: str, ours: set[str]) -> Iterator[str]:
        found = self._pairs()
        if sorted(found) != sorted(ours | set(self._foreign)):
            yield f"{when}: the port has {found}"
        tags = self._neutron.get(f"/ports/{self._port}").json()["port"]["tags"]
        if not ours and tags:
            yield f"{when}: the port has the tags {tags}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races.writers", description=__doc__)
    parser.add_argument("--port-base", type=int, default=20000, help="which devcloud; it must be up")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--writers", type=int, default=16, help="an even number, of which two want each address")
    parser.add_argument("--foreign", type=int, nargs="+", default=[0, 2], help="how many write without If-Match")
    parser.add_argument("--no-lease", action="store_true", help="race for the pairs alone")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no round of a series after so long")
    options = parser.parse_args(arguments)
    if options.writers % 2 or options.writers // 2 + max(options.foreign) > LIMIT:
        parser.error(f"an even number of writers, and at most {LIMIT} addresses in all")
    faults = 0
    with _project(Layout(options.port_base, default_root())) as made:
        addresses = [f"10.0.9.{number}" for number in range(options.writers // 2)] * 2
        writers = [
            Writer(number, address, made.connect(), leases=not options.no_lease)
            for number, address in enumerate(addresses)
        ]
        for count in options.foreign:
            faults += _series(options, made, writers, [f"10.0.8.{number}" for number in range(count)])
    return 1 if faults else 0


@contextmanager
def _project(layout: Layout) -> Iterator[tenant.Tenant]:
    """A project with a network, for as long as the races last."""
    admin = tenant.connect(layout.clouds_file, ADMIN)
    with tempfile.TemporaryDirectory(prefix="writers-") as folder:
        made = tenant.create(layout, admin, "writers", Path(folder))
        try:
            neutron: Any = made.connect().network
            network = neutron.create_network(name=PORT)
            neutron.create_subnet(name=PORT, network_id=network.id, cidr="10.0.0.0/24", ip_version=4)
            yield made
        finally:
            tenant.delete(admin, made)


def _series(options: argparse.Namespace, made: tenant.Tenant, writers: Sequence[Writer], foreign: Sequence[str]) -> int:
    started, faults, rounds = time.monotonic(), 0, 0
    connection = made.connect()
    while rounds < options.rounds and time.monotonic() - started < options.seconds:
        for fault in Round(connection, writers, foreign).faults():
            faults += 1
            print(f"{rounds:>3} {fault}", flush=True)
        rounds += 1
    seconds = time.monotonic() - started
    print(
        f"# {len(writers)} writers, {len(foreign)} without If-Match, {rounds} rounds, {faults} faults, {seconds:.0f} s",
        flush=True,
    )
    return faults


if __name__ == "__main__":
    sys.exit(main())
