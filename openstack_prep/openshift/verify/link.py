"""The links of a way into a cluster, each right or broken, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from openstack_prep.base.raw import Values


class State(StrEnum):
    OK = "ok"
    BROKEN = "broken"
    UNKNOWN = "unknown"

    @property
    def mark(self) -> str:
        return self.value.upper() if self is State.BROKEN else self.value


@dataclass(frozen=True, kw_only=True)
class Link:
    """One thing that a request passes."""

    name: str
    """What it is: name, floating IP, port, router, address pairs, security groups, machines."""
    state: State
    """``unknown``: these credentials may not read it, or something needed to tell was not given."""
    what: str
    """What is there, or what is wrong, with the values."""
    mend: str = ""
    """The command that mends it, or what to give so that it can be told."""


def ok(name: str, what: str) -> Link:
    return Link(name=name, state=State.OK, what=what)


def broken(name: str, what: str, mend: str) -> Link:
    return Link(name=name, state=State.BROKEN, what=what, mend=mend)


def unknown(name: str, what: str, mend: str = "") -> Link:
    return Link(name=name, state=State.UNKNOWN, what=what, mend=mend)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A way into a cluster: what a request passes, from a name to the machines that answer."""

    name: str
    """``api`` or ``ingress``."""
    target: str
    """Where requests go, such as https://api.dev.example.com:6443."""
    links: tuple[Link, ...]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was seen of the ways into one cluster."""

    infra_id: str
    chains: tuple[Chain, ...]

    @property
    def broken(self) -> tuple[Link, ...]:
        return self._in(State.BROKEN)

    @property
    def unknown(self) -> tuple[Link, ...]:
        return self._in(State.UNKNOWN)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken; what is unknown may be."""
        return not self.broken

    def _in(self, state: State) -> tuple[Link, ...]:
        return tuple(link for chain in self.chains for link in chain.links if link.state is state)

    def data(self) -> Values:
        """Return it as plain data."""
        chains = [
            {
                "name": chain.name,
                "target": chain.target,
                "links": [
                    {"link": each.name, "state": each.state.value, "what": each.what, "mend": each.mend or None}
                    for each in chain.links
                ],
            }
            for chain in self.chains
        ]
        return {"infra_id": self.infra_id, "ok": self.ok, "chains": chains}

    def __str__(self) -> str:
        lines = [line for chain in self.chains for line in _lines(chain)]
        return "\n".join([*lines, f"{self.infra_id}: {self._summary()}"])

    def _summary(self) -> str:
        counts = [(len(self.broken), "broken"), (len(self.unknown), "unknown")]
        return ", ".join(f"{n} {word}" for n, word in counts if n) or "all links are right"


def _lines(chain: Chain) -> Sequence[str]:
    lines = [f"{chain.name}  {chain.target}"]
    for number, link in enumerate(chain.links, 1):
        last = number == len(chain.links)
        lines.append(f"{'└─' if last else '├─'} {link.state.mark:<7}  {link.name:<15}  {link.what}")
        if link.mend:
            lines.append(f"{'  ' if last else '│ '} {'':<7}  {'':<15}  mend: {link.mend}")
    return lines
