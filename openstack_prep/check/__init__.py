"""What the installer's own preflight misses or gets wrong, looked at before thirty minutes are lost.

One file a topic; each check takes the scene and yields findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from openstack_prep.check import external_network, floating_ips, names, networks, ovn, own_subnet, vips
from openstack_prep.check.finding import Finding
from openstack_prep.check.scene import Scene
from openstack_prep.errors import CloudError

__all__ = ["CHECKS", "Finding", "Scene", "check"]

Check = Callable[[Scene], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    external_network.external_network,
    floating_ips.floating_ips,
    networks.networks,
    own_subnet.own_subnet,
    vips.vips,
    names.names,
    ovn.ovn,
)


def check(scene: Scene, *, jobs: int = 8) -> list[Finding]:
    """Return all that stands in the way, errors first; what could not be looked at is a finding, too."""
    with ThreadPoolExecutor(jobs) as pool:
        found = [each for findings in pool.map(lambda one: list(_looked_at(one, scene)), CHECKS) for each in findings]
    return sorted(found, key=lambda each: each.level != "error")


def _looked_at(one: Check, scene: Scene) -> Iterator[Finding]:
    try:
        yield from one(scene)
    except CloudError as error:
        yield Finding(
            where=one.__module__.rpartition(".")[2],
            what=f"could not be looked at: {error}",
            why="what cannot be read cannot be checked",
            remedy="give this user the right to read it, or look yourself",
            level="warning",
        )
