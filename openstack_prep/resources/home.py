"""The home project of a spec: what tells two specs of one name apart.

An ownership tag holds the name of its spec.  What lies in a project is told by that project from what another spec of
the same name manages.  For what lies in none (projects, users, flavors, key pairs), the tag names the home project.
"""

from __future__ import annotations

from dataclasses import replace

from openstack_prep.errors import NotAllowed, NotFound
from openstack_prep.model import Mark, Resource
from openstack_prep.site import Site, query


def mark(site: Site) -> Mark:
    """Return the ownership tag for what lies in no project."""
    return replace(site.mark, home=_id(site, site.homes[0])) if site.homes else site.mark


def family(site: Site) -> frozenset[str]:
    """Return the ids of the projects that the spec declares or works in, and of the home projects that they name."""
    ids: set[str] = set()
    for project in site.homes:
        found = site.look(project) if project else None
        ids |= {_id(site, project), (found.home or "") if found else ""}
    return frozenset(ids - {""})


def is_ours(site: Site, home: str) -> bool:
    """Whether what carries the tag of a spec of our name is ours by the home project that the tag names.

    It is another spec's when that project exists and is none of ours.  A spec that names no project works in that of
    the connection, which may be another one each time: there the name alone decides.
    """
    named = any(site.homes)
    return not (home and named) or home in family(site) or not _exists(site, home)


def _id(site: Site, project: Resource | None) -> str:
    found = site.find_project_id(project)
    return "" if found in (None, "None") else str(found)  # "None" is that of a token without a project


@query
def _exists(site: Site, project_id: str) -> bool:
    try:
        site.admin.identity.get(f"/projects/{project_id}")
    except NotFound:
        return False
    except NotAllowed:
        return True
    return True
