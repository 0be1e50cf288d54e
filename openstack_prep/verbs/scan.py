"""List the resources in the projects of a spec, declared or not."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TypeVar

from openstack_prep import extensions
from openstack_prep.base.errors import CloudError, NotAllowed
from openstack_prep.cloud.cloud_run import CloudRun, in_project
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Key, Observed, Resource
from openstack_prep.core.observation import beside, in_parallel
from openstack_prep.core.resource import (
    HasContainer,
    HasId,
    InEachProject,
    ScansTagged,
    Untagged,
    cloud_ids,
    kind_supports,
    provided_keys,
    scan_kind,
    supports,
)
from openstack_prep.extensions import Scan
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.verbs.entries import WritesEntry

T = TypeVar("T")

PROJECT = f"{Project.__module__}:{Project.__name__}"
ELSEWHERE = ("role_assignment", "recordset")
"""Kinds whose project may be that of other people: a role there, or zones for names of everybody."""
Standing = tuple[Resource, Observed]
"""A resource as a spec would declare it, and its existing counterpart."""


def homes_of(resources: Iterable[Resource]) -> tuple[Project | None, ...]:
    """Return the projects that a spec works in, each once, the home project first; None is that of the connection.

    A project that the spec names only for a role or for recordsets is excluded: it may be the home project of another
    spec with the same name.
    """
    return tuple(_worked_in(tuple(resources)) or [None])


def projects_of(resources: Iterable[Resource]) -> tuple[Project | None, ...]:
    """Return the projects of resources, each once; those named only for a role or for recordsets come last."""
    resources = tuple(resources)
    elsewhere = (
        resource.owner for resource in resources if isinstance(resource, InProject) and resource.kind in ELSEWHERE
    )
    return tuple(dict.fromkeys([*_worked_in(resources), *elsewhere]))


def _worked_in(resources: Sequence[Resource]) -> list[Project | None]:
    """Return the projects that resources declare or belong to; that of the connection comes last."""
    declared = [
        Project(name=resource.name, domain=resource.domain) for resource in resources if isinstance(resource, Project)
    ]
    in_projects = (resource for resource in resources if isinstance(resource, InProject))
    owners = [each.owner for each in in_projects if each.kind not in ELSEWHERE]
    return sorted(dict.fromkeys([*declared, *owners]), key=lambda project: project is None)


def everything(
    run: CloudRun,
    homes: Sequence[Project | None],
    kinds: Iterable[type[Resource]],
    *,
    jobs: int,
    leave_out: Callable[[type[Resource]], None] = lambda kind: None,
) -> list[Standing]:
    """Return all existing resources of some kinds in these projects, and in the cloud.

    Kinds that may not be read are left out; ``leave_out`` is called with the kind.
    """
    kinds = tuple(kinds)
    inner = [kind for kind in kinds if issubclass(kind, InEachProject)]
    scopes = [*product(inner, _unique(run, homes)), *((kind, None) for kind in kinds if kind not in inner)]
    return _read(scopes, lambda kind, home: scan_kind(kind, run, home), leave_out, jobs=jobs)


def _tagged(
    run: CloudRun,
    homes: Sequence[Project | None],
    scans: Iterable[Scan],
    *,
    jobs: int,
    failed: Callable[[Scan, CloudError], None] | None = None,
) -> list[Standing]:
    """Return the existing resources in these projects, and in the cloud, that may have the ownership tag of the spec.

    Kinds that may not be read are left out, as are kinds whose service answers with an error if ``failed`` is given,
    which is called with the error. A kind is loaded only if there may be any.
    """
    scans = tuple(scans)
    inner = [scan for scan in scans if _is_in_each_project(scan)]
    scopes = [*product(inner, _unique(run, homes)), *((scan, None) for scan in scans if scan not in inner)]

    def read(scan: Scan, home: Project | None) -> Iterable[Standing]:
        if scan.tagged and not extensions.load(scan.tagged)(run, home):
            return ()
        kind = _kind(scan)
        if issubclass(kind, Untagged):
            return ()
        if kind_supports(kind, ScansTagged):
            return kind.scan_tagged(run, home)
        return scan_kind(kind, run, home)

    return _read(scopes, read, failed=failed, jobs=jobs)


def _unique(run: CloudRun, homes: Sequence[Project | None]) -> list[Project | None]:
    """Return the existing projects, of two names of one project the first."""
    by_id = {run.find_project_id(home): home for home in reversed(homes)}
    return [home for project_id, home in reversed(by_id.items()) if project_id is not None]


def _read(
    scopes: Sequence[tuple[T, Project | None]],
    read: Callable[[T, Project | None], Iterable[Standing]],
    leave_out: Callable[[T], None] = lambda kind: None,
    failed: Callable[[T, CloudError], None] | None = None,
    *,
    jobs: int,
) -> list[Standing]:
    def attempt(look: tuple[T, Project | None]) -> list[Standing] | CloudError:
        try:
            return list(read(*look))
        except CloudError as error:
            return error

    standing: list[Standing] = []
    for (kind, _), found in zip(scopes, in_parallel(attempt, scopes, jobs=jobs), strict=True):
        if isinstance(found, NotAllowed):  # a member of a project need not see resources of the whole cloud
            leave_out(kind)
        elif not isinstance(found, CloudError):
            standing += found
        elif failed is None:
            raise found
        else:
            failed(kind, found)
    return standing


def _kind(scan: Scan) -> type[Resource]:
    kind: type[Resource] = extensions.load(scan.kind)
    return kind


def _is_in_each_project(scan: Scan) -> bool:
    return not scan.of_cloud and (bool(scan.tagged) or issubclass(_kind(scan), InEachProject))


@dataclass(frozen=True)
class ScanResult:
    """The existing resources in the projects of a spec, and the projects that carry its name, before any decision.

    ``failed`` are the kinds whose service answered with an error.
    """

    projects: Sequence[Standing]
    homes: tuple[Project | None, ...]
    inside: Sequence[Standing]
    failed: Mapping[type[Resource], CloudError] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was not looked for."""
        words = "that are no longer in the spec were not looked for"
        return tuple(f"{plural(kind)} {words}: {error}" for kind, error in self.failed.items())


def plural(kind: type[Resource]) -> str:
    words = kind.kind.replace("_", " ")
    return words if words.endswith("s") else f"{words}s"


def look(
    run: CloudRun, resources: Sequence[Resource], *, jobs: int, folder: Path | None = None, all_may_fail: bool = False
) -> ScanResult:
    """Read the input of ``undeclared``; ``folder`` is that of the spec, below which files may be left.

    The service of a kind that the spec declares must answer, unless ``all_may_fail``.
    """
    homes = projects_of(resources)
    failed: dict[type[Resource], CloudError] = {}
    declared = {resource.kind for resource in resources}

    def note(scan: Scan, error: CloudError) -> None:
        kind = _kind(scan)
        if kind.kind in declared and not all_may_fail:
            raise error
        failed[kind] = error

    with beside(lambda: everything(run, (), [Project], jobs=jobs), jobs=jobs) as projects:
        inside = _tagged(run, homes, _scans(run, homes), jobs=jobs, failed=note)
        return ScanResult(projects() or [], homes, [*inside, *_entries(run, resources, folder)], failed)


def undeclared(
    run: CloudRun,
    seen: ScanResult,
    resources: Sequence[Resource],
    observed: Mapping[Key, Observed],
    *,
    jobs: int,
) -> list[Standing]:
    """Return resources with the ownership tag of this spec that the spec no longer declares.

    ``observed`` are the existing counterparts of declared resources. A project that is no longer declared is read as
    well. ``ours`` is false for resources that only have the spec's name, which another spec may have, too.
    """
    keys = {key for each in resources for key in (each.key, *provided_keys(each))}
    ids = ids_of((each, observed[each.key]) for each in resources if each.key in observed)

    def is_left(standing: Standing) -> bool:
        resource, found = standing
        return found.ours and resource.key not in keys and is_new(resource, found, ids)

    family = home.family(run)
    projects = _proven(run, filter(is_left, seen.projects), family)
    own = {resource.key: found for resource, found in projects if found.ours}
    run.known.update(own)
    family |= {found.id for found in own.values()}
    dropped = tuple(project for project in projects_of(each for each, _ in projects if each.key in own))
    further = tuple(project for project in dropped if project not in seen.homes)
    inside = [*seen.inside]
    if further:
        scans = [scan for scan in _scans(run, further) if _is_in_each_project(scan) and _kind(scan) not in seen.failed]
        inside += _tagged(run, further, scans, jobs=jobs)
    left = [*projects, *_proven(run, filter(is_left, inside), family)]
    one_each = _with_twins(run, left, family)
    alone = [each for each in one_each.values() if not _is_deleted_with_another(each[0], one_each)]
    return [(each.by_id(found) if supports(each, HasId) else each, found) for each, found in alone]


def kinds_of_projects() -> list[type[Resource]]:
    """Return the kinds of all that an audit or an export finds in a project."""
    found: list[type[Resource]] = [extensions.load(scan.kind) for scan in extensions.scans() if not scan.only_left]
    return [kind for kind in found if kind is not Project]


def _scans(run: CloudRun, homes: Iterable[Project | None]) -> list[Scan]:
    """Return what is scanned in these projects, other than projects, for what a spec no longer declares."""
    scans = [scan for scan in extensions.scans() if scan.has_tag and scan.kind != PROJECT]
    return scans if _have_networks(run, homes) else [scan for scan in scans if not scan.on_networks]


def ids_of(standing: Iterable[Standing]) -> Mapping[str, set[str]]:
    """Return, by kind, the ids that identify all existing resources in the cloud."""
    ids: dict[str, set[str]] = defaultdict(set)
    for resource, found in standing:
        ids[resource.kind] |= frozenset().union(*(cloud_ids(resource, observed) for observed in (found, *found.twins)))
    return ids


def is_new(resource: Resource, found: Observed, ids: Mapping[str, set[str]]) -> bool:
    """Whether a resource is not among those that ``ids_of`` has returned."""
    return cloud_ids(resource, found).isdisjoint(ids.get(resource.kind, ()))


def _proven(run: CloudRun, standing: Iterable[Standing], family: frozenset[str]) -> list[Standing]:
    """Return resources as managed only if more than a name proves it: their project, or the project in their tag.

    A project is also proven if a project of the spec names it as its home project. A tag that anybody may have copied
    proves nothing.
    """

    def is_proven(resource: Resource, found: Observed) -> bool:
        if found.doubt:
            return False
        if isinstance(run.admin, NoCloud):  # no project proves anything: the file that records it does
            return found.ours
        if isinstance(resource, Project):
            return bool(family & {found.id, found.home})
        if isinstance(resource, InProject) and not found.home and run.find_project_id(resource.owner) not in family:
            return False
        return found.home is None or found.home in family

    return [(resource, replace(found, ours=is_proven(resource, found))) for resource, found in standing]


def _with_twins(run: CloudRun, standing: Iterable[Standing], family: frozenset[str]) -> dict[Key, Standing]:
    """Return one resource per key, which has its twins: of several its kind chooses, as if they were declared.

    What is not of the same time is then kept as a copy, as it is while the spec declares the resource.
    """
    alike: dict[Key, list[Standing]] = defaultdict(list)
    for each in standing:
        alike[each[0].key].append(each)
    chosen = {}
    for key, group in alike.items():
        chosen[key] = resource, _ = group[0]
        if len(group) > 1 and (found := type(resource).find(run, [resource]).get(key)) is not None:
            (chosen[key],) = _proven(run, [(resource, found)], family)
    return {key: (each, found if found.ours else replace(found, twins=())) for key, (each, found) in chosen.items()}


def _entries(run: CloudRun, resources: Iterable[Resource], folder: Path | None = None) -> Iterator[Standing]:
    """Yield what is left on this machine, such as entries in the clouds.yaml files that the spec still names."""
    resources = tuple(resources)
    for extension in extensions.installed():
        yield from extensions.call(extension, "leftovers", run, resources, folder)
    files = {
        Path(os.path.realpath(resource.file)): resource for resource in resources if supports(resource, WritesEntry)
    }
    for file in files.values():
        yield from file.list_left(run, projects_of(resources))


def _have_networks(run: CloudRun, homes: Iterable[Project | None]) -> bool:
    """Whether any of the projects has a network; otherwise three requests for resources on networks are skipped."""
    return any(
        (project_id := run.find_project_id(home)) and in_project(run, "networks", "network", project_id)
        for home in homes
    )


def _is_deleted_with_another(resource: Resource, left: Mapping[Key, Standing]) -> bool:
    """Whether another deletion includes it: rules of a group, roles of a user, who are only found through them."""
    return supports(resource, HasContainer) and resource.container in left
