"""What would go wrong with a stack, and what an update of it would delete.

Source: Orchestration API v1, "Preview stack" and "Preview stack update".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import DownloadError, Loss, Mistake, PrepError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import permission
from openstack_prep.core.model import Observed
from openstack_prep.resources.heat.heat import SERVER, HeatResource, HeatStack
from openstack_prep.resources.heat.heat_groups import MAYBE, Effect
from openstack_prep.resources.heat.heat_preview import STATELESS, Refused
from openstack_prep.resources.orchestration.stack_inputs import Inputs
from openstack_prep.resources.orchestration.stack_quota import planned
from openstack_prep.resources.orchestration.stack_record import StackRecord

TAG_LENGTH = 80  # maximum length of a tag in Heat
WIPES = ("rebuild", "restore")


def declared(stack: Inputs) -> Iterator[Mistake]:
    """Yield what is wrong with its inputs before a cloud, a store of secrets or another machine is asked."""
    error = stack.package
    if isinstance(error, PrepError) and not isinstance(error.__cause__, DownloadError):
        yield stack.mistake(str(error), "", error.code)
    yield from _of_parameters(stack, fetch=False)


def _of_parameters(stack: Inputs, *, fetch: bool) -> Iterator[Mistake]:
    file = "" if "://" in stack.template else f" ({Path(stack.template).name})"  # a URL may contain a login
    for found in stack.mistakes(fetch=fetch):
        what = f"{found.what}{file}"
        yield Mistake.about(stack.key, what, found.fix, parameter=found.parameter, code=Code.STACK_PARAMETER)


def against(stack: Inputs, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
    """Yield what is wrong with its inputs, and why Heat refuses them once all resources that it refers to exist."""
    if len(run.ownership.tag) > TAG_LENGTH:
        yield stack.mistake(
            f"its ownership tag {run.ownership.tag} is too long for a tag", "choose a shorter name for the spec"
        )
    if isinstance(stack.package, PrepError):
        yield stack.mistake(str(stack.package), "", stack.package.code)
    yield from _of_parameters(stack, fetch=True)
    what, refused = "the update", ""
    if observed is not None:
        refused = observed.record_as(StackRecord).refused
    elif stack.askable(run):
        try:
            planned(run, stack)
        except Refused as error:
            what, refused = "it", str(error)
    if refused and not stack.awaits(run):
        yield stack.mistake(f"Heat refuses {what}: {refused}", "correct the cause", Code.STACK_REFUSED)


CONSENT = "or allow this (--allow-replace)"
UNDO = f"undo the change that causes this, {CONSENT}"
WORDS = {
    "replace": ("the update would replace {}", UNDO),
    "delete": (
        "the update would delete {}",
        "move their data elsewhere and allow the deletion (--allow-replace), or restore them in the template",
    ),
    MAYBE: (
        "the update may delete, replace or wipe the members of {}: Heat cannot preview it",
        f"change the size of groups in a separate apply, {CONSENT}",
    ),
    "wipe": (
        "the update would wipe the disks of {}: Heat rebuilds servers and restores volumes in place",
        UNDO,
    ),
}
"""The loss that each verb of a preview stands for, and the fix."""


def list_losses(stack: Inputs, observed: Observed) -> Iterator[Loss]:
    """Yield what an update would delete, replace or wipe, except resources without data, and secrets in use."""
    record = observed.record_as(StackRecord)
    for name, secret in stack.secrets.items():
        if secret.is_to_generate:
            loss = permission.lost_secret(stack.key, f"secret_parameters.{name}", secret)
            yield replace(loss, fix=f"{loss.fix}; if the stack does not have this secret yet, create the file")
    heat = record.stack
    standing = {place: each for place, each in heat.made.items() if place not in record.missing}
    if record.status == "DELETE_FAILED":
        yield from _of_failed_delete(stack, heat, standing)
    if cut_off := sorted(record.cut_off):
        what = f"{', '.join(cut_off)} have lost their last port and would be replaced"
        yield _loss(stack, what, "save the data on their disks, and allow the replacement (--allow-replace)", cut_off)
    touched = [each for each in record.preview if each.place in standing and not _is_stateless(each, record)]
    for verb, (what, fix) in WORDS.items():
        lost = [each.place for each in touched if verb == ("wipe" if each.verb in WIPES else each.verb)]
        if lost:
            named = _named(heat, {place: standing[place] for place in lost})
            yield _loss(stack, what.format(named), fix, lost)


def _is_stateless(effect: Effect, record: StackRecord) -> bool:
    """Whether a replacement loses nothing: nodes read volumes with secrets only once."""
    return effect.type in STATELESS or effect.place in record.outdated


def _of_failed_delete(stack: Inputs, heat: HeatStack, standing: Mapping[str, HeatResource]) -> Iterator[Loss]:
    """Yield the rest of a stack whose deletion failed, which an update would delete before it creates the stack."""
    left = {
        place: each
        for place, each in standing.items()
        if each.status != "DELETE_COMPLETE" and each.type not in STATELESS and f"{place}." not in heat.places.values()
    }
    if left:
        what = f"its deletion failed; an update would first delete the remaining resources: {_named(heat, left)}"
        yield _loss(stack, what, "allow the deletion (--allow-replace) if nobody needs them any more", sorted(left))


def _named(heat: HeatStack, resources: Mapping[str, HeatResource]) -> str:
    """Return resources by place and type; servers also by name."""
    names = {each["id"]: each["name"] for each in heat.servers} if SERVER in heat.types else {}
    found = []
    for place, each in sorted(resources.items()):
        name = names.get(each.id)
        found.append(f"{place} ({each.type}{f' {name}' if name else ''})")
    return ", ".join(found)


def _loss(stack: Inputs, what: str, fix: str, lost: Iterable[str]) -> Loss:
    return replace(Loss.about(stack.key, what, fix), lost=tuple(lost))
