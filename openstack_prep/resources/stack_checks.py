"""What would go wrong with a stack, and what an update of it would take away.

Source: Orchestration API v1, "Preview stack" and "Preview stack update".
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.errors import Mistake, PrepError
from openstack_prep.model import Observed
from openstack_prep.resources.heat_preview import STATELESS, Refused
from openstack_prep.resources.stack_inputs import Inputs
from openstack_prep.resources.stack_quota import planned
from openstack_prep.site import Site

TAG_LENGTH = 80  # characters that Heat takes


def against(stack: Inputs, site: Site, observed: Observed | None) -> Iterator[Mistake]:
    """Yield what is wrong with its inputs, and what Heat says against it once all that it names is there."""
    if len(site.mark.tag) > TAG_LENGTH:
        yield stack.mistake(f"its mark {site.mark.tag} is too long for a tag", "give the spec a shorter name")
    if isinstance(stack.package, PrepError):
        yield stack.mistake(str(stack.package), "")
    for what, remedy in stack.mistakes():
        yield stack.mistake(what, remedy)
    if observed is not None:
        if "refused" in observed.handle:
            yield stack.mistake(f"Heat refuses the update: {observed.handle['refused']}", "correct that")
    elif stack.askable(site):
        try:
            planned(site, stack)
        except Refused as error:
            yield stack.mistake(f"Heat refuses it: {error}", "correct that")


def losses(stack: Inputs, observed: Observed) -> Iterator[Mistake]:
    """Yield what an update would delete and make again, but for what holds nothing."""
    standing = observed.handle["stack"].made.keys() - observed.handle["missing"].keys()
    replaced = (each for each in observed.handle["preview"] if each.verb == "replace" and each.place in standing)
    lost = [f"{each.place} ({each.type})" for each in replaced if each.type not in STATELESS]
    cut_off = observed.handle.get("cut off", ())
    if cut_off:
        yield stack.mistake(
            f"{', '.join(sorted(cut_off))} have no port any more, and would be deleted and made again",
            "save what is on their disks, and consent to that (--allow-replace)",
        )
    if lost:
        yield stack.mistake(
            f"the update would delete and make again {', '.join(sorted(lost))}",
            "take back what changes them, or consent to that (--allow-replace)",
        )
