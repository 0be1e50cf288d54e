"""What changes between two looks at the paths to a cluster: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.raw import Values
from openstack_prep.openshift.verify.chain import Verification


@dataclass(frozen=True, kw_only=True)
class LinkChange:
    """A link that a look shows and the look before did not, or the reverse."""

    chain: str
    """Name of its path: ``api`` or ``ingress``."""
    link: Diagnostic
    ended: bool = False
    """Whether it is no longer shown, and new links of the same place do not replace all that are gone."""

    def data(self) -> Values:
        """Return it as plain data."""
        return {"chain": self.chain, "ended": self.ended, **self.link.data()}

    def __str__(self) -> str:
        status = self.link.status
        word = "ended" if self.ended else status.upper() if status is DiagnosticStatus.ERROR else status.value
        return f"{self.chain:<7}  {word:<7}  {self.link.where:<15}  {self.link.text}"


def changes(before: Verification | None, after: Verification) -> Iterator[LinkChange]:
    """Yield the links that are new; at first, every link.

    Links that are gone come before them, from places with more links gone than new: the new ones do not replace all.
    """
    known = {chain.name: chain.links for chain in before.chains} if before else {}
    for chain in after.chains:
        former = known.get(chain.name, ())
        gone = [link for link in former if link not in chain.links]
        new = [link for link in chain.links if link not in former]
        unreplaced = Counter(link.where for link in gone) - Counter(link.where for link in new)
        yield from (LinkChange(chain=chain.name, link=link, ended=True) for link in gone if link.where in unreplaced)
        yield from (LinkChange(chain=chain.name, link=link) for link in new)
