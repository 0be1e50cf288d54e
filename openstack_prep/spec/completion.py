"""From what a spec declares to its resources: what YAML and a list of Python both leave out, filled in by one function.

Declarations come in the order of the sections, whatever order they were written in. A resource without a project
belongs to the only project that the spec declares; without one, to the project of the connection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.core.model import Key, Resource
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.spec.sections import rank_of

S = TypeVar("S")


@dataclass(frozen=True)
class Declaration(Generic[S]):
    """A declared resource, its place for people, and its source for those who have read it."""

    resource: Resource
    place: str
    source: S


def complete(declarations: Iterable[Declaration[S]]) -> tuple[list[Declaration[S]], list[Mistake]]:
    """Return declarations with all that they leave out, in the order of the sections, and what is ambiguous in them."""
    found = sorted(declarations, key=lambda each: _rank(type(each.resource)))
    found, mistakes = _in_projects(found)
    return found, [*mistakes, *_duplicates(found)]


def derive(
    resources: Sequence[Resource], places: dict[Key, str], values: Mapping[str, Any] | None = None
) -> list[Resource]:
    """Return resources with what extensions derive from them; what is new has the place of what it comes from.

    ``values`` are the sections that are no resources.
    """
    found = list(resources)
    for extension in extensions.installed():
        own = {section.kind for section in extension.sections}
        given = any(value for section in extension.sections if (value := (values or {}).get(section.name)))
        declared = any(f"{type(resource).__module__}:{type(resource).__qualname__}" in own for resource in found)
        if extension.derive and (given or declared):
            derived = extensions.call(extension, "derive", found, values or {})
            if lost := {resource.key for resource in found} - {each.key for each, _ in derived}:
                what = f"its derive() leaves out {', '.join(sorted(map(str, lost)))}, which the spec declares"
                package = extensions.package_of(extension)
                raise extensions.unusable(f"the extension {extension.name} of {package}: {what}", package)
            places |= {each.key: places.get(origin, "") for each, origin in derived if each.key not in places}
            found = [each for each, _ in derived]
    return found


def _rank(kind: type[Resource]) -> float:
    """Return the position of a kind's section; kinds of the caller, which no section declares, come last."""
    try:
        return rank_of(kind)
    except KeyError:
        return math.inf


def _in_projects(declarations: list[Declaration[S]]) -> tuple[list[Declaration[S]], list[Mistake]]:
    """Return declarations, each in its project, with a mistake if several projects leave that open."""
    projects = {
        declaration.resource.key: declaration.resource
        for declaration in declarations
        if isinstance(declaration.resource, Project)
    }
    lacking = [declaration.resource for declaration in declarations if _lacks_project(declaration.resource)]
    if not projects or not lacking:
        return declarations, []
    if len(projects) > 1:
        return declarations, [_ambiguous([*projects.values()], lacking)]
    (home,) = projects.values()
    where = {"project": home.name, "project_domain": home.domain}
    return [
        replace(declaration, resource=replace(declaration.resource, **where))
        if _lacks_project(declaration.resource)
        else declaration
        for declaration in declarations
    ], []


def _lacks_project(resource: Resource) -> bool:
    if isinstance(resource, RoleAssignment) and resource.domain is not None:
        return False
    return isinstance(resource, InProject) and resource.project is None


def _ambiguous(projects: Sequence[Project], lacking: Sequence[Resource]) -> Mistake:
    names = [
        project.name + ("" if project.domain == DEFAULT_DOMAIN else f" of domain {project.domain}")
        for project in projects
    ]
    what = f"{len(names)} projects are declared, {' and '.join(names)}, so the project is ambiguous"
    in_domains = any(project.domain != DEFAULT_DOMAIN for project in projects)
    fix = f"set project={' and project_domain=' if in_domains else ''} of each"
    return Mistake.about([resource.key for resource in lacking], what, fix, code=Code.SPEC_MISSING_KEY, field="project")


def _duplicates(declarations: Iterable[Declaration[S]]) -> list[Mistake]:
    """Return a mistake per declaration whose resource another one declares already."""
    places: dict[Key, str] = {}
    mistakes = []
    for declaration in declarations:
        key = declaration.resource.key
        if key in places:
            what = f"{key} is declared twice, also at {places[key]}"
            mistakes.append(Mistake(declaration.place, what, "choose distinct names", code=Code.SPEC_DUPLICATE_NAME))
        places.setdefault(key, declaration.place)
    return mistakes
