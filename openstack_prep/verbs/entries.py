"""Entries of clouds.yaml in a plan: whether clients can log in by them, and which ones would hide the entry in use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, ConfigError, EntryUnusable, LoginBlocked, Mistake
from openstack_prep.base.private_file import PRIVATE, mode
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Action, Observed, Resource, Step
from openstack_prep.core.observation import in_parallel
from openstack_prep.core.plan import Plan
from openstack_prep.core.resource import supports
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec import Spec

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


class LogsIn(Protocol):
    """A kind whose file leads clients to a login."""

    def check_login(self, run: CloudRun) -> None:
        """Log in as a client does, by what is in the file; raises EntryUnusable, ConfigError, CloudError."""


class WritesEntry(Protocol):
    """A kind that writes an entry of a clouds.yaml."""

    file_field: ClassVar[str]
    """The field that names the file."""

    @property
    def file(self) -> Path: ...

    def list_left(self, run: CloudRun, projects: Iterable[Project | None]) -> Iterable[tuple[Resource, Observed]]:
        """Yield the entries of the file that the spec manages for its projects, declared or not."""


# --- entries that the plan leaves as they are: whether clients can log in -----------------

Finding = Mistake | str
"""Why clients cannot log in: a mistake, or a warning if it may be different for others."""


def examine(run: CloudRun, plan: Plan, *, jobs: int) -> list[Finding]:
    """Return which entries and files clients cannot log in by; those that a step changes are examined by that step."""
    pending = {step.key for step in plan.pending}
    refused = {key for refusal in plan.refusals if refusal.code == Code.ENTRY_OVERRIDDEN for key in refusal.keys}
    steps = [
        step
        for step in plan.steps
        if step.action is Action.KEEP
        and supports(step.resource, LogsIn)
        and step.key not in refused  # a login by the password of others might lock the user out
        and pending.isdisjoint(step.needs)
    ]
    found = in_parallel(lambda step: _try_entry(run, step), steps, jobs=jobs)
    return [each for each in found if each is not None]


def _try_entry(run: CloudRun, step: Step) -> Finding | None:
    resource = step.resource
    assert supports(resource, LogsIn)
    try:
        resource.check_login(run)
    except (EntryUnusable, ConfigError) as error:
        fix = "correct what is in the way, or remove the entry so that apply writes it again"
        return Mistake.about(step.key, str(error), fix, code=Code.ENTRY_LOGIN)
    except LoginBlocked as error:  # the entry is right, and somebody has decided about the user
        return f"{step.key}: no client can log in by it: {error}"
    except CloudError as error:  # another machine may reach what this one does not
        return f"{step.key}: clients on this machine cannot log in by it: {error}"
    return None


# --- files that would hide the clouds.yaml in use from the next command, or change their readers ---


def _readers(path: Path, *, is_new: bool) -> Iterator[str]:
    """Yield who can no longer read an existing file, or can read the secret of an entry, once apply has written it."""
    if is_new and (now := mode(path)) != PRIVATE:  # otherwise the plan shows the mode as a change
        yield f"apply changes the mode of {path} from {now} to {PRIVATE}, so that only its owner can read the secret"
    if path.stat().st_uid != os.geteuid():  # only root writes such a file, and leaves it to its owner
        yield f"{path} belongs to another user, who can then read the secret of the entry"


def list_warnings(cloud: Cloud, plan: Plan, spec: Spec) -> Iterator[str]:
    """Yield each file that apply would create where clients look before they find the entry in use, or whose readers
    change, or that another user owns.
    """
    for step in plan.pending:
        resource = step.resource
        if not supports(resource, WritesEntry):
            continue
        place = f"{spec.places[resource.key]}: " if resource.key in spec.places else ""
        path = resource.file
        if path.exists():
            for text in _readers(path, is_new=step.action is Action.CREATE):
                yield f"{place}{resource.key}: {text}"
        if not (hidden := cloud.hidden_by(resource.file)):
            continue
        better = os.path.relpath(path.parent / spec.name / path.name, spec.folder or Path())
        yield (
            f"{place}{resource.key}: apply creates {path}, which hides {hidden}: openstack-prep, openstack and other "
            f"clients in {path.parent} then find no entry {cloud.name}; write {resource.file_field}: {better}, "
            f"or export OS_CLIENT_CONFIG_FILE={shell.quote(hidden)}"
        )
