"""Whether a file may be written: judged by a plan, and again right before the write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, Mistake, PlanRefused
from openstack_prep.base.private_file import refuse_unwritable
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed, Resource


def unwritable(resource: Resource, path: str | Path, observed: Observed | None) -> Iterator[Mistake]:
    """Yield why a file of a resource cannot be written, as far as links and rights show it, unless it is up to date."""
    if observed is not None and is_up_to_date(resource, observed):
        return
    try:
        refuse_unwritable(Path(path))
    except ConfigError as error:
        yield Mistake.about(resource.key, str(error))


def is_up_to_date(resource: Resource, observed: Observed) -> bool:
    """Whether apply would not write a file, not even to change its mode."""
    return all(observed.values.get(name) == value for name, value in resource.desired().items())


def foreign_file(resource: Resource, path: str | Path, owner: str) -> Mistake:
    """Return that a file exists and this spec does not manage it; ``owner`` says whose it is."""
    fix = "choose another file, or remove this one"
    return Mistake.about(resource.key, f"{path} exists and is {owner}", fix, code=Code.PLAN_FOREIGN)


def refuse_file_of_others(resource: Resource[CloudRun], run: CloudRun, path: str | Path) -> None:
    """Raise PlanRefused if a file has another owner by now; the judge of a writer, which may ask OpenStack.

    A plan has found it free, or managed by this spec, but another spec may have written it since.
    """
    found = resource.find_one(run)
    if found is not None and not found.ours:
        raise PlanRefused([foreign_file(resource, path, found.owner)])
