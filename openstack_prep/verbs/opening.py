"""The run of a verb, who acts in it and what the spec declares, resolved; and a plan together with these inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.lease import LeaseReading
from openstack_prep.cloud.token import OwnToken
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource
from openstack_prep.core.plan import Plan
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import actors_of
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.verbs import scan

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class LivePlan(Plan):
    """A plan that can be carried out, and created again.

    ``made`` is when, by the monotonic clock. ``wanted`` is the spec, ``run`` holds what was read, ``lease`` is who was
    at work on the spec before that. ``remake`` creates it again; None: the verbs do.
    """

    wanted: Spec = field(repr=False, compare=False)
    run: CloudRun = field(repr=False, compare=False)
    lease: LeaseReading = field(repr=False, compare=False)
    remake: Callable[[], LivePlan] | None = field(default=None, repr=False, compare=False)
    made: float = field(default_factory=time.monotonic, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        plan: Plan,
        *,
        wanted: Spec,
        run: CloudRun,
        lease: LeaseReading,
        remake: Callable[[], LivePlan] | None = None,
    ) -> Self:
        """Return a plan with its inputs."""
        return cls(**vars(plan), wanted=wanted, run=run, lease=lease, remake=remake)

    @property
    def tenant(self) -> Cloud | None:
        """The connection that the spec names for the project's own work, if any."""
        return self.run.entry if self.wanted.clouds.tenant else None

    @property
    def age(self) -> float:
        """Seconds since the cloud was read for it."""
        return time.monotonic() - self.made


Wanted = Spec | Iterable[Resource]
Progress = Callable[[Key, int, int | None, int | None], None]


def no_progress(key: Key, done: int, total: int | None, unpacked: int | None) -> None:
    """Show nothing."""


def open_run(
    cloud: Cloud,
    wanted: Wanted,
    jobs: int,
    progress: Progress = no_progress,
    *,
    name: str | None = None,
    for_apply: bool = False,
) -> tuple[Spec, CloudRun]:
    """Return a spec with its resources resolved, and the run in which they are read.

    Raises SpecError, and ConfigError if the argument is not a cloud.
    """
    refuse_no_cloud(cloud)
    if isinstance(wanted, LivePlan):
        raise SpecError([Mistake("spec", "is already a plan", "pass it to apply() or destroy()")])
    spec = spec_from(wanted, name)
    if for_apply:
        refuse_mistakes(spec, for_plan=True)
    tenant = cloud.of_entry(spec.clouds.tenant) if spec.clouds.tenant else None
    for each in filter(None, (cloud, tenant)):
        each.allow_parallel(jobs)
    cloud.authenticate()  # before anything else: a wrong password then has one clear error
    spec = resolve_spec(spec, cloud, for_apply=for_apply)
    ownership, homes = OwnershipTag(spec.name), scan.homes_of(spec.resources)
    project = next(
        (resource for resource in spec.resources if isinstance(resource, Project) and not spec.is_chosen(resource)),
        None,
    )
    actors = actors_of(spec.resources)
    if project and tenant is None and project.name == cloud.project_name and project.domain in cloud.domains:
        # the connection is already scoped to this unmanaged project: no lookup, no tenant login
        run = CloudRun(cloud, ownership, tenant=cloud, actors=actors, homes=homes, progress=progress)
        run.known[project.key] = Observed(id=cloud.project_id)
        return spec, run
    return spec, CloudRun(cloud, ownership, tenant=tenant, actors=actors, homes=homes, progress=progress)


def refuse_no_cloud(cloud: object) -> None:
    """Refuse an argument that is not a cloud, before any request is sent."""
    if not isinstance(cloud, OwnToken):
        fix = f"connect({cloud!r})" if isinstance(cloud, str) else "connect(), or connect(connection=...)"
        raise ConfigError(f"the first argument is a {type(cloud).__name__}, not a Cloud; pass {fix}")
