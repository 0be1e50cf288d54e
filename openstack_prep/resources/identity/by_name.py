"""Resources of Keystone by their names in a domain: few by one request each, many by one list.

A whole domain may hold thousands, and LDAP truncates its lists, so it is listed only when a run asks for many names.

Source: Identity API v3, "List users": filters by one name; ``truncated``, if the list has more than ``list_limit``;
Keystone 30.0.0, server/flask/common.py (build_driver_hints): ``limit``; releases without it ignore it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.answers import objects
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.run import query

FEW = 8
"""Names that a run asks for one by one."""
MOST = 1000
"""Resources in a list. That of a larger domain costs more than it saves: Keystone stores an id per user of LDAP."""

Listed = list[dict[str, Any]]


@query
def named(run: CloudRun, plural: str, name: str, domain_id: str) -> Listed:
    """Return the resources with a name in a domain."""
    many = run.deletes_many(plural.removesuffix("s"), FEW) or next(_asked(run, plural, domain_id)) >= FEW
    everything = _by_name(run, plural, domain_id) if many else None
    if everything is not None and (name in everything or name.casefold() not in _folded(run, plural, domain_id)):
        return everything.get(name, [])
    # also for a name that differs in case alone, which only Keystone's database can compare
    return run.admin.identity.list(f"/{plural}", plural, name=name, domain_id=domain_id)


@query
def _asked(run: CloudRun, plural: str, domain_id: str) -> Iterator[int]:
    return itertools.count()


@query
def _by_name(run: CloudRun, plural: str, domain_id: str) -> Mapping[str, Listed] | None:
    """Return all resources of a domain by name; None if Keystone does not list all of them."""
    try:
        params = {"domain_id": domain_id, "limit": MOST}
        answer = run.admin.identity.ask("GET", f"/{plural}", params=params, once=True)
        listed = objects(answer[plural], answer.origin)
    except CloudError:  # too many to be listed in time, or only single names may be read
        return None
    if answer.get("truncated") or (answer.get("links") or {}).get("next"):
        return None
    found: dict[str, Listed] = {}
    for each in listed:
        found.setdefault(each["name"], []).append(each)
    return found


def all_names(run: CloudRun, plural: str, domain_id: str) -> frozenset[str]:
    """Return the names of all resources of a domain; none if Keystone does not list all of them."""
    return frozenset(_by_name(run, plural, domain_id) or ())


@query
def _folded(run: CloudRun, plural: str, domain_id: str) -> frozenset[str]:
    return frozenset(map(str.casefold, all_names(run, plural, domain_id)))
