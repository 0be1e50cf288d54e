"""The path to a cluster as a chain of diagnostics, one per thing that a request passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, errors, summary
from openstack_prep.base.raw import Values
from openstack_prep.base.style import indented

INDENT = 28
"""Columns of a status and of the name of a link, after the first one."""


def ok(where: str, what: str) -> Diagnostic:
    """Return a link that works."""
    return Diagnostic(status=DiagnosticStatus.OK, where=where, what=what)


def unknown(code: str, where: str, what: str, fix: str = "") -> Diagnostic:
    """Return a link that cannot be judged: these credentials may not read it, or the input does not say it."""
    return Diagnostic(code=code, status=DiagnosticStatus.UNKNOWN, where=where, what=what, fix=fix)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The path to one service of a cluster: what a request passes, from a name to the machines that answer."""

    name: str
    """``api`` or ``ingress``."""
    target: str
    """Where requests go, such as https://api.dev.example.com:6443."""
    links: tuple[Diagnostic, ...]
    """One per name, floating IP, port, router, address pair, security group and set of machines."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What OpenStack shows of the paths to one cluster."""

    infra_id: str
    """Prefix of the names of the cluster's resources."""
    chains: tuple[Chain, ...]
    """The paths to the API and to the routers."""

    @property
    def links(self) -> list[Diagnostic]:
        """The links of both paths."""
        return [link for chain in self.chains for link in chain.links]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The links that are broken."""
        return tuple(errors(self.links))

    @property
    def unknown(self) -> tuple[Diagnostic, ...]:
        """The links that cannot be judged: these credentials may not read them, or the input does not say it."""
        return tuple(link for link in self.links if link.status is DiagnosticStatus.UNKNOWN)

    @property
    def ok(self) -> bool:
        """Whether there are no errors; links whose status is unknown may still be wrong."""
        return not self.errors

    def data(self) -> Values:
        """Return it as plain data."""
        chains = [
            {"name": chain.name, "target": chain.target, "links": [link.data() for link in chain.links]}
            for chain in self.chains
        ]
        return {"infra_id": self.infra_id, "ok": self.ok, "chains": chains}

    def __str__(self) -> str:
        lines = [line for chain in self.chains for line in tree(chain)]
        return "\n".join([*lines, f"{self.infra_id}: {summary(self.links)}"])


def tree(chain: Chain) -> Iterator[str]:
    """Yield the lines of a chain."""
    yield f"{chain.name}  {chain.target}"
    for number, link in enumerate(chain.links, 1):
        last = number == len(chain.links)
        symbol = link.status.upper() if link.status is DiagnosticStatus.ERROR else link.status.value
        yield indented(f"{'└─' if last else '├─'} {symbol:<7}  {link.where:<15}  {link.text}")
        for line in link.advice:
            yield indented(f"{' ' if last else '│'}{'':<{INDENT}}{line}")
