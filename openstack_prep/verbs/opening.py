"""The run of a verb: who acts, and what the spec declares, resolved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.cloud.token import OwnToken
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.verbs import scan
from openstack_prep.verbs.live_plan import LivePlan

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

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
    project = next((each for each in spec.resources if isinstance(each, Project) and not spec.is_chosen(each)), None)
    if project and tenant is None and project.name == cloud.project_name and project.domain in cloud.domains:
        # the connection is already scoped to this unmanaged project: no lookup, no tenant login
        run = CloudRun(cloud, ownership, tenant=cloud, homes=homes, progress=progress)
        run.known[project.key] = Observed(id=cloud.project_id)
        return spec, run
    actors = actors_of(spec.resources)
    return spec, CloudRun(cloud, ownership, tenant=tenant, actors=actors, homes=homes, progress=progress)


def refuse_no_cloud(cloud: object) -> None:
    """Refuse an argument that is not a cloud, before any request is sent."""
    if not isinstance(cloud, OwnToken):
        fix = f"connect({cloud!r})" if isinstance(cloud, str) else "connect(), or connect(connection=...)"
        raise ConfigError(f"the first argument is a {type(cloud).__name__}, not a Cloud; pass {fix}")


def actors_of(resources: Sequence[Resource]) -> dict[Key | None, Actor]:
    """Return, by project, the first user whose password the spec knows and who may log in and has a role there."""
    held: dict[Key, dict[Project | None, list[RoleAssignment]]] = defaultdict(lambda: defaultdict(list))
    for each in resources:
        if isinstance(each, RoleAssignment) and each.gives_access:
            held[each.holder.key][each.owner].append(each)
    actors: dict[Key | None, Actor] = {}
    for user in resources:
        if isinstance(user, User) and user.password is not None and user.enabled is not False:
            for owner, roles in held[user.key].items():
                actor = Actor(roles[0].holder, user.password, user.domain, owner, tuple(roles))
                actors.setdefault(owner.key if owner else None, actor)
    return actors
