"""The home project of a spec: what tells two specs of one name apart.

An ownership tag holds the name of its spec.  What lies in a project is told by that project from what another spec of
the same name manages.  For what lies in none (projects, users, flavors, key pairs), the tag names the home project.
"""

from __future__ import annotations

from dataclasses import replace

from openstack_prep.base.errors import NotAllowed, NotFound
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Mark, Resource
from openstack_prep.core.run import query


def mark(site: Site) -> Mark:
    """Return the ownership tag for what lies in no project."""
    return replace(site.mark, home=_id(site, site.homes[0])) if site.homes else site.mark


def family(site: Site) -> frozenset[str]:
    """Return the ids of the home project and of all that share it: what lies there is no other spec's.

    They are none while the home project does not exist.  A further project that the spec works in may be the home
    project of a spec with the same name.
    """
    known = frozenset({_id(site, site.homes[0])} if site.homes else ()) - {""}
    for ids in _named(site):
        if ids & known:
            known |= ids
    return known


def is_ours(site: Site, home: str) -> bool:
    """Whether what carries the tag of a spec of our name is ours by the home project that the tag names.

    It is another spec's when that project exists and the spec does not work in it: to name it for a role is not
    enough.  A spec that names no project works in that of the connection, which may be another one each time: there
    the name alone decides.
    """
    has_home = any(site.homes[:1])
    return not (home and has_home) or home in frozenset().union(*_named(site)) or not exists(site, home)


def is_our_project(site: Site, home: str) -> bool:
    """Whether a project that carries the tag of a spec of our name is ours by the home project that the tag names.

    Only asks for our own home project: ``is_ours`` asks for all that the spec works in, which this may be one of.
    """
    has_home = any(site.homes[:1])
    return not (home and has_home) or home in _shared_by(site, site.homes[0]) or not exists(site, home)


def another(site: Site, description: str | None) -> str:
    """Return the name of the other spec that manages what a description describes, or nothing."""
    found = site.mark.another_in(description)
    if not found and site.mark.owns(description) and not is_ours(site, Mark.home_in(description)):
        return site.mark.spec  # one of the same name, with a home project of its own
    return found


def _named(site: Site) -> list[frozenset[str]]:
    """Return for each project that the spec works in its id and that of the home project that its own tag names."""
    return [_shared_by(site, project) for project in site.homes]


def _shared_by(site: Site, project: Resource | None) -> frozenset[str]:
    found = site.look(project) if project else None
    return frozenset({_id(site, project), (found.home or "") if found and found.ours else ""}) - {""}


def _id(site: Site, project: Resource | None) -> str:
    found = site.find_project_id(project)
    return "" if found in (None, "None") else str(found)  # "None" is that of a token without a project


@query
def exists(site: Site, project_id: str) -> bool:
    """Whether there is a project of that id, as far as we may ask."""
    try:
        site.admin.identity.get(f"/projects/{project_id}")
    except NotFound:
        return False
    except NotAllowed:  # it may be there
        return True
    return True
