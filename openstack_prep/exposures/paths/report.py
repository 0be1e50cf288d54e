"""All exposures of a spec, with the state of what a request to each passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.diagnostic import Status, errors, summary
from openstack_prep.base.raw import Values
from openstack_prep.exposures.model import Placed
from openstack_prep.openshift.verify.chain import Chain, tree

HEADER = ("address", "names", "target", "how", "state")


@dataclass(frozen=True, kw_only=True)
class Path:
    """One exposure and its path."""

    placed: Placed
    chain: Chain

    @property
    def state(self) -> str:
        """ok, or how many errors, warnings and unknown results the path has."""
        return summary(self.chain.links).replace("no problems found", "ok")

    def row(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        exposure, placed = self.placed.exposure, self.placed
        address = " -> ".join(filter(None, (placed.public_address, placed.address))) or "-"
        ports = ", ".join(map(str, exposure.ports))
        names = ", ".join(exposure.names) or "-"
        return (address, names, f"{exposure.target} {ports}", exposure.how, self.state)

    def data(self) -> Values:
        """Return it as plain data."""
        exposure, placed = self.placed.exposure, self.placed
        return {
            "name": exposure.name,
            "cluster": exposure.cluster,
            "address": placed.address,
            "mac_address": placed.mac,
            "public_address": placed.public_address,
            "names": list(exposure.names),
            "target": str(exposure.target),
            "ports": list(map(str, exposure.ports)),
            "how": exposure.how,
            "hops": [link.data() for link in self.chain.links],
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """The exposures of a spec."""

    spec: str
    """Name of the spec."""
    paths: tuple[Path, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no errors; hops whose status is unknown may still be wrong."""
        return not any(errors(each.chain.links) for each in self.paths)

    def data(self) -> Values:
        """Return it as plain data."""
        return {"ok": self.ok, "exposures": [each.data() for each in self.paths]}

    def __str__(self) -> str:
        links = [link for each in self.paths for link in each.chain.links]
        wrong = [each for each in self.paths if any(link.status is not Status.OK for link in each.chain.links)]
        trees = [line for each in wrong for line in ("", *tree(each.chain))]
        rows = [HEADER, *(each.row() for each in self.paths)]
        return "\n".join([*_table(rows), *trees, "", f"{self.spec}: {summary(links)}"])


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
