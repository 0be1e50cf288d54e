"""What would go wrong with a stack, and what an update of it would take away.

Source: Orchestration API v1, "Preview stack" and "Preview stack update".
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.errors import Loss, Mistake, PrepError
from openstack_prep.model import Observed
from openstack_prep.resources.heat_preview import MAYBE, STATELESS, Refused
from openstack_prep.resources.stack_inputs import Inputs
from openstack_prep.resources.stack_quota import planned
from openstack_prep.resources.stack_record import StackRecord
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
    what, refused = "the update", ""
    if observed is not None:
        refused = observed.recorded(StackRecord).refused
    elif stack.askable(site):
        try:
            planned(site, stack)
        except Refused as error:
            what, refused = "it", str(error)
    if refused and not stack.awaits(site):
        yield stack.mistake(f"Heat refuses {what}: {refused}", "correct that")


def losses(stack: Inputs, observed: Observed) -> Iterator[Loss]:
    """Yield what an update would delete and make again or wipe, but for what holds nothing."""
    record = observed.recorded(StackRecord)
    standing = record.stack.made.keys() - record.missing.keys()
    touched = [each for each in record.preview if each.place in standing]
    replaced = [each for each in touched if each.verb == "replace"]
    lost = [f"{each.place} ({each.type})" for each in replaced if each.type not in STATELESS]
    wiped = [f"{each.place} ({each.type})" for each in touched if each.verb in ("rebuild", "restore")]
    unknown = [f"{each.place} ({each.type})" for each in touched if each.verb == MAYBE]
    if record.cut_off:
        yield Loss.about(
            stack.key,
            f"{', '.join(sorted(record.cut_off))} have no port any more, and would be deleted and made again",
            "save what is on their disks, and consent to that (--allow-replace)",
        )
    if lost:
        yield Loss.about(
            stack.key,
            f"the update would delete and make again {', '.join(sorted(lost))}",
            "take back what changes them, or consent to that (--allow-replace)",
        )
    if unknown:
        yield Loss.about(
            stack.key,
            f"the update may replace or wipe the members of {', '.join(sorted(unknown))}: Heat cannot preview it",
            "change the size of groups in an apply of its own, or consent to that (--allow-replace)",
        )
    if wiped:
        yield Loss.about(
            stack.key,
            f"the update would wipe the disks of {', '.join(sorted(wiped))}: Heat rebuilds servers and restores "
            "volumes in place",
            "take back what changes them, or consent to that (--allow-replace)",
        )
