"""Addresses that OVN keeps for itself, or that nobody would reach there although a pair allows them.

Source: Neutron 29.0.0 and OVN 23.03, as each function says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.addresses.pair_fields import PairFields
from openstack_prep.resources.lists import queries

DISTRIBUTED = "network:distributed"


def with_ovn(run: CloudRun, networks: Collection[str]) -> set[str]:
    """Return those of some networks that OVN runs, by its own ports there, which only administrators see."""
    if not networks:
        return set()
    return {network for _, network, _ in queries.distributed_addresses(run, tuple(sorted(networks)))}


def distributed(
    run: CloudRun, pairs: PairFields, addresses: Collection[str], networks: Collection[str]
) -> Iterator[Mistake]:
    """Yield the addresses that OVN reserves for its own ports on every node.

    Neutron refuses them since 2025.1. Its first releases also refuse wider networks around such an address, later ones
    do not, and the API does not tell the difference; in that case Neutron's own error is shown.
    """
    if not networks:
        return
    for port_id, _, taken in queries.distributed_addresses(run, tuple(sorted(networks))):
        for address in sorted(taken.intersection(addresses)):
            kept = f"{address} belongs to port {port_id} ({DISTRIBUTED}), and Neutron allows it on no other port"
            yield pairs.mistake(kept, "choose another address", Code.ADDRESS_IN_USE)


def reserved(run: CloudRun, pairs: PairFields, networks: Collection[str]) -> Iterator[Mistake]:
    """Yield the pools for whose addresses OVN would answer itself, with the MAC address of the port that reserves.

    It leaves the answer to a machine only if the machine's port has a pair with exactly the address, not a network
    around it. Source: OVN 23.03, northd.c, build_lswitch_arp_nd_responder_known_ips, and Neutron 29.0.0,
    common/ovn/utils.py, get_virtual_port_parents; seen in OVN's flows (tests/ovn).
    """
    pooled = {subnet: [each for each in blocks if "/" in each] for subnet, blocks in pairs.pooled().items()}
    pools = [pool for pool in map(pairs.neighbours.pool, pairs.pools) if pool.reserve == "ports"]
    pools = [pool for pool in pools if pooled[pool.subnet]] if networks else []
    if not pools:
        return
    of_ovn = with_ovn(run, networks)
    for pool in pools:
        room = pool.room(run)
        if room and room.network_id in of_ovn:
            wide = ", ".join(sorted(pooled[pool.subnet]))
            what = f"pool {pool.name} reserves its addresses with ports, and would be allowed as networks ({wide}); "
            what += "with OVN nobody could then reach the addresses"
            fix = "set reserve: outside for the pool, or list its addresses one by one under addresses"
            yield pairs.mistake(what, fix)
