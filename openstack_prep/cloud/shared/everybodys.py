"""Lists that each project's user reads, and that an administrator reads for all projects.

A service that does not regard the connection as an administrator's answers with the resources of its own project, and
says so nowhere. Therefore a list counts as that of all projects only if it proves it.

Source: Nova 34.0.0, api/openstack/compute/server_groups.py (index: all_projects is ignored without is_admin); Heat
27.0.1, api/openstack/v1/stacks.py and db/api.py (rows name their project if, and only if, the list is of all projects).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from openstack_prep.base.errors import PrepError
from openstack_prep.base.raw import Values
from openstack_prep.cloud.connection import Cloud

ByProject: TypeAlias = Mapping[str, list[Values]]


def server_groups(cloud: Cloud) -> ByProject | None:
    """Return the server groups of all projects; None if the list may lack those of other projects."""
    found = _grouped("project_id", lambda: _pages(cloud))
    return found if found is not None and found.keys() - {cloud.project_id} else None


def _pages(cloud: Cloud) -> Iterator[Values]:
    """Yield all server groups; their list has no links to its next pages."""
    read = 0
    while page := cloud.compute.get("/os-server-groups", all_projects=True, offset=read)["server_groups"]:
        read += len(page)
        yield from page


def stacks(cloud: Cloud) -> ByProject | None:
    """Return the stacks of all projects; None if the list may lack those of other projects.

    Where there is no stack, one that was deleted proves that there would be those of all projects.
    """
    found = _grouped("project", lambda: cloud.orchestration.list("/stacks", "stacks"))
    if found is not None and not found:
        deleted = _grouped("project", lambda: cloud.orchestration.get("/stacks", show_deleted=True, limit=1)["stacks"])
        return found if deleted else None
    return found


def _grouped(field: str, read: Callable[[], Iterable[Values]]) -> ByProject | None:
    """Return rows by a field; None if they cannot be read, or if one of them lacks the field."""
    found = defaultdict[str, list[Values]](list)
    try:
        for row in read():
            if field not in row:
                return None
            found[row[field]].append(row)
    except PrepError:
        return None
    return found


LISTS: Mapping[str, tuple[str, Callable[[Cloud], ByProject | None]]] = {
    "compute": ("/os-server-groups", server_groups),
    "orchestration": ("/stacks", stacks),
}
"""The path of such a list by service, and what reads it for all projects."""
