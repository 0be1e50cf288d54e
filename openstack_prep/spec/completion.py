"""From what a spec declares to its resources: what YAML and a list of Python both leave out, filled in by one function.

Declarations come in the order of the sections, whatever order they were written in. A resource without a project
belongs to the only project that the spec declares; without one, to the project of the connection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.core.model import Key, Resource
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.spec.sections import section_of

if TYPE_CHECKING:
    from openstack_prep.exposures.cluster_fields import ClusterFields
    from openstack_prep.kubernetes.networks import ClusterNetworks


S = TypeVar("S")


@dataclass(frozen=True)
class Declaration(Generic[S]):
    """A declared resource, its place for people, and its source for those who have read it."""

    resource: Resource
    place: str
    source: S


def complete(
    declarations: Iterable[Declaration[S]], networks: ClusterNetworks | None = None
) -> tuple[list[Declaration[S]], list[Mistake]]:
    """Return declarations with all that they leave out, in the order of the sections, and what is ambiguous in them."""
    found = [replace(each, resource=_on_networks(each.resource, networks)) for each in declarations]
    found.sort(key=lambda each: _rank(type(each.resource)))
    found, mistakes = _in_projects(found)
    return found, [*mistakes, *_duplicates(found)]


def with_exposures(resources: Sequence[Resource], places: dict[Key, str]) -> list[Resource]:
    """Return resources with what the exposures of a spec need in OpenStack; it has the place of their cluster."""
    found = list(resources)
    for cluster in (each for each in resources if each.kind == "exposed_cluster"):
        from openstack_prep.exposures.opened import with_opened
        from openstack_prep.exposures.recordsets import with_recordsets

        found = [*with_recordsets(with_opened(found, cast("ClusterFields", cluster)), cast("ClusterFields", cluster))]
        places |= {each.key: places.get(cluster.key, "") for each in found if each.key not in places}
    return found


def _rank(kind: type[Resource]) -> float:
    """Return the position of a kind's section; kinds of the caller, which no section declares, come last."""
    try:
        return section_of(kind).rank
    except KeyError:
        return math.inf


def _on_networks(resource: Resource, networks: ClusterNetworks | None) -> Resource:
    """Set the networks of a cluster from those of the spec, unless it has its own."""
    if networks is None:
        return resource
    from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster

    if isinstance(resource, RkeCluster) and resource.networks is None:
        return replace(resource, networks=networks)
    return resource


def _in_projects(declarations: list[Declaration[S]]) -> tuple[list[Declaration[S]], list[Mistake]]:
    """Return declarations, each in its project, with a mistake if several projects leave that open."""
    projects = {each.resource.key: each.resource for each in declarations if isinstance(each.resource, Project)}
    lacking = [each.resource for each in declarations if _lacks_project(each.resource)]
    if not projects or not lacking:
        return declarations, []
    if len(projects) > 1:
        return declarations, [_ambiguous([*projects.values()], lacking)]
    (home,) = projects.values()
    where = {"project": home.name, "project_domain": home.domain}
    return [
        replace(each, resource=replace(each.resource, **where)) if _lacks_project(each.resource) else each
        for each in declarations
    ], []


def _lacks_project(resource: Resource) -> bool:
    if isinstance(resource, RoleAssignment) and resource.domain is not None:
        return False
    return isinstance(resource, InProject) and resource.project is None


def _ambiguous(projects: Sequence[Project], lacking: Sequence[Resource]) -> Mistake:
    names = [each.name + ("" if each.domain == DEFAULT_DOMAIN else f" of domain {each.domain}") for each in projects]
    what = f"{len(names)} projects are declared, {' and '.join(names)}, so the project is ambiguous"
    in_domains = any(each.domain != DEFAULT_DOMAIN for each in projects)
    fix = f"set project={' and project_domain=' if in_domains else ''} of each"
    return Mistake.about([each.key for each in lacking], what, fix, code=Code.SPEC_MISSING_KEY, field="project")


def _duplicates(declarations: Iterable[Declaration[S]]) -> list[Mistake]:
    """Return a mistake per declaration whose resource another one declares already."""
    places: dict[Key, str] = {}
    mistakes = []
    for each in declarations:
        key = each.resource.key
        if key in places:
            what = f"{key} is declared twice, also at {places[key]}"
            mistakes.append(Mistake(each.place, what, "choose distinct names", code=Code.SPEC_DUPLICATE_NAME))
        places.setdefault(key, each.place)
    return mistakes
