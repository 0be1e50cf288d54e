"""A STAND-IN for openshift-install: it is not the installer, and no cluster comes out of it.

It makes in Neutron, Nova and Glance what the real one was seen to make (names, descriptions, tags by a
second request, order, rules, pairs), in both naming eras, and takes it away again.  In its folder it leaves
the same files, and it refuses a second cluster there for the same reason.  Machines boot an empty disk.
Not done: Swift (used up to 4.3), trunks, volumes, load balancers, dual-stack, several zones.

    python -m tests.standin create cluster --dir DIR      as a program: see ``--help``
    made = standin.make(connection, "dev-x7k2p")          in a test, at once
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from openstack.connection import Connection

from tests.standin.maker import Maker
from tests.standin.recipe import ERAS, Recipe
from tests.standin.remover import remove

__all__ = ["Cluster", "Recipe", "make", "remove", "write_program"]

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cluster:
    """What was made, for a test to look at and to break."""

    connection: Connection
    recipe: Recipe

    @property
    def infra_id(self) -> str:
        return self.recipe.infra_id

    def port(self, end: str) -> Any:
        """Return the port named ``<infraID>-END`` as it is now."""
        return self.connection.network.find_port(f"{self.infra_id}-{end}", ignore_missing=False)

    def nodes(self) -> list[Any]:
        """Return the ports of all machines."""
        listed: Any = self.connection.network.ports(tags=self.recipe.tag)
        return [each for each in listed if not each.name.endswith(("-api-port", "-ingress-port"))]

    def pairs(self) -> dict[str, set[str]]:
        """Return by port name the addresses of the pairs on all machines' ports."""
        return {each.name: {pair["ip_address"] for pair in each.allowed_address_pairs} for each in self.nodes()}


def make(
    connection: Connection,
    infra_id: str,
    *,
    era: Literal["capi", "terraform"] = "capi",
    servers: bool = True,
    bootstrap: bool = False,
    **more: Any,
) -> Cluster:
    """Make a cluster as it stands after an installation, in the connection's project, without waiting.

    ``servers=False`` leaves machines, image and server groups' members out: their ports only, which is
    much faster.  ``bootstrap``: as it stands while the bootstrap machine is there, which is waited for.
    ``more`` are fields of ``Recipe``.
    """
    recipe = Recipe(infra_id=infra_id, **{"release": ERAS[era], **more})
    maker = Maker(connection, recipe, pause=lambda share: None, servers=servers)
    maker.make_image()
    maker.make_groups()
    maker.make_network()
    maker.make_virtual_ports()
    maker.attach_floating_ips()
    if bootstrap:
        maker.make_ignition()
    maker.make_machines(bootstrap=bootstrap)
    if bootstrap:
        maker.expose_bootstrap()
    maker.make_workers()
    return Cluster(connection, recipe)


def write_program(folder: Path) -> Path:
    """Write an executable ``openshift-install`` that runs the stand-in; returns its path."""
    path = folder / "openshift-install"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "#!/bin/sh\n"
        "# a stand-in, not the installer\n"
        f"PYTHONPATH={quote(str(REPOSITORY))}${{PYTHONPATH:+{os.pathsep}$PYTHONPATH}} "
        f'exec {quote(sys.executable)} -m tests.standin "$@"\n'
    )
    path.chmod(0o755)
    return path
