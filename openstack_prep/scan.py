"""See what stands in the projects of a spec, declared or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from openstack_prep.errors import NotAllowed
from openstack_prep.model import Key, Observed, Resource
from openstack_prep.resources import KINDS, Network, Project, Router, Subnet
from openstack_prep.resources.project import InProject
from openstack_prep.resources.security_group import SecurityGroupRules
from openstack_prep.site import Site

Standing = tuple[Resource, Observed]
"""A resource as a spec would declare it, and what stands for it."""


def homes_of(resources: Iterable[Resource]) -> tuple[Project | None, ...]:
    """Return the projects that resources lie in, each once; None is that of the connection."""
    inside = (each.owner for each in resources if isinstance(each, InProject))
    declared = (Project(name=each.name, domain=each.domain) for each in resources if isinstance(each, Project))
    return tuple(dict.fromkeys([*declared, *inside]))


def everything(
    site: Site, homes: Sequence[Project | None], kinds: Iterable[type[Resource]], *, jobs: int
) -> list[Standing]:
    """Return all that stands in these projects, and in the cloud, of some kinds; what may not be read is left out."""
    kinds = tuple(kinds)
    there = [home for home in homes if home is None or site.find_id(home)]
    inner = [kind for kind in kinds if kind.in_each_project]
    looks = [*product(inner, there), *((kind, None) for kind in kinds if not kind.in_each_project)]
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda look: _scan(site, *look), looks))
    return [standing for each in found for standing in each]


def _scan(site: Site, kind: type[Resource], home: Project | None) -> list[Standing]:
    try:
        return list(kind.scan(site, home))
    except NotAllowed:  # a member of a project need not see what belongs to the cloud
        return []


def undeclared(
    site: Site, resources: Sequence[Resource], observed: Mapping[Key, Observed], *, jobs: int, projects_too: bool = True
) -> list[Standing]:
    """Return what carries the ownership tag of this spec although the spec declares it no longer.

    A project that is no longer declared is looked into as well.
    """
    keys = {key for each in resources for key in (each.key, *each.provides())}
    ids: dict[str, set[str]] = defaultdict(set)
    for key, each in observed.items():
        ids[key.kind] |= {each.id, *each.holds, *(twin.id for twin in each.twins)}

    def is_left(standing: Standing) -> bool:
        resource, found = standing
        return found.ours and resource.key not in keys and not (resource.own_id and found.id in ids[resource.kind])

    homes = homes_of(resources)
    projects = list(filter(is_left, everything(site, (), [Project], jobs=jobs))) if projects_too else []
    for project, found in projects:
        site.known[project.key] = found
    homes = tuple(dict.fromkeys([*homes, *homes_of(each for each, _ in projects)]))
    kinds = [*(kind for kind in KINDS.values() if kind.has_tag and kind is not Project), SecurityGroupRules]
    if not _have_networks(site, homes):
        kinds = [kind for kind in kinds if kind not in (Subnet, Router)]
    left = [*projects, *filter(is_left, everything(site, homes, kinds, jobs=jobs))]
    one_each = {standing[0].key: standing for standing in reversed(left)}  # of twins the first; then the other
    return [each for each in reversed(one_each.values()) if not _goes_with_its_group(each[0], one_each)]


def _have_networks(site: Site, homes: Iterable[Project | None]) -> bool:
    """Whether any of the projects has a network; without one, its subnets and routers are not worth two requests."""
    return any((project_id := site.find_project_id(home)) and Network.listing(site, project_id) for home in homes)


def _goes_with_its_group(resource: Resource, left: Mapping[Key, Standing]) -> bool:
    return isinstance(resource, SecurityGroupRules) and resource.group.key in left
