"""The pools of agents of rke2-cluster.yaml, beside the group ``agents``: groups pool1, pool2 and so on.

A pool has the parameters pool1_name, pool1_count, pool1_flavor, pool1_image, pool1_config and pool1_to_remove. Its
nodes follow the agents in the outputs of the stack, pool by pool.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from openstack_prep.base.raw import Raw
from openstack_prep.resources.heat.parameters import mapping_of

GROUP = re.compile(r"pool\d+")
PARAMETERS = ("name", "count", "flavor", "image", "config", "to_remove")
"""What follows the group in the names of the parameters of a pool."""


class AgentPool(NamedTuple):
    """A pool, and the values of its parameters."""

    group: str
    """The group of the template, with which the names of its parameters begin."""
    name: str
    number: str
    """As Heat shows it; no decimal number if it is not known."""
    config: Raw

    @property
    def is_empty(self) -> bool:
        return self.number in ("", "0")

    def parameter(self, of: str) -> str:
        """Return the name of one of its parameters, such as pool1_count."""
        return f"{self.group}_{of}"


def pools_in(values: Raw, names: Collection[str] | None = None) -> list[AgentPool]:
    """Return the pools, in the order of their groups, from the values of a stack's parameters by name.

    ``names`` are those of all its parameters, if some have no known value. A pool has all of ``PARAMETERS``: what
    another template calls pool1_count does not count nodes that are agents.
    """
    every = frozenset(values if names is None else names)
    found = (name.removesuffix("_count") for name in values if name.endswith("_count"))
    groups = [each for each in filter(GROUP.fullmatch, found) if every >= {f"{each}_{part}" for part in PARAMETERS}]
    groups.sort(key=lambda group: int(group.removeprefix("pool")))
    return [
        AgentPool(
            group=group,
            name=str(values.get(f"{group}_name") or group),
            number=str(values[f"{group}_count"]),
            config=mapping_of(values.get(f"{group}_config")) or {},
        )
        for group in groups
    ]


def members(pools: Sequence[AgentPool]) -> list[AgentPool]:
    """Return the pool of each of their nodes, in the order of the stack's outputs."""
    return [pool for pool in pools if pool.number.isdecimal() for _ in range(int(pool.number))]
