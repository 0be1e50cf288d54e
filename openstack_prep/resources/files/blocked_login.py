"""Why Keystone refuses the login of a user whose credentials may be right, as far as only its records say it.

A user who is disabled, or whose domain or project is, gets the answer of a wrong password. Source: keystone 30.0.0,
auth/plugins/core.py, _assert_user_is_enabled; auth/core.py, _assert_project_is_enabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openstack_prep.base.errors import NotAllowed
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project, in_domain
from openstack_prep.resources.identity.user import User


def find_block(run: CloudRun, user: User | None, project: Project | None) -> str:
    """Return what keeps a user from logging in to a project, whatever the password; empty if nothing is known."""
    try:
        return next(_disabled(run.fresh(), user, project), "")
    except NotAllowed:  # only administrators read users: then the login's own error is all that is known
        return ""


def _disabled(run: CloudRun, user: User | None, project: Project | None) -> Iterator[str]:
    for plural, resource in (("users", user), ("projects", project)):
        if resource is None:
            continue
        record = in_domain(run, plural, resource, resource.domain) or {}
        if record.get("enabled") is False:
            yield f"{resource.key} is disabled"
        domains = run.admin.identity.list("/domains", "domains", name=resource.domain)
        if any(domain.get("enabled") is False for domain in domains):
            yield f"domain {resource.domain} of {resource.key} is disabled"


def identity_in(auth: Mapping[str, Any]) -> tuple[User | None, Project | None]:
    """Return the user and the project that an entry names."""
    user, project = auth.get("username"), auth.get("project_name")
    return (
        User(name=user, domain=auth.get("user_domain_name") or DEFAULT_DOMAIN) if user else None,
        Project(name=project, domain=auth.get("project_domain_name") or DEFAULT_DOMAIN) if project else None,
    )
