"""Requests that an application credential allows.

Source: Identity API v3, "Application Credentials".
"""

from __future__ import annotations

from dataclasses import dataclass

from openstack_prep.base.fields import Name


@dataclass(frozen=True, kw_only=True)
class AccessRule:
    """One request that a credential allows; with rules it allows nothing else.

    Services refuse such a credential altogether unless their configuration names their service_type.
    """

    method: Name
    """HTTP method, such as GET."""
    service: Name
    """Type of the service, as in the catalogue."""
    path: Name
    """Path of the request, such as /v2.1/servers; * and ** stand for anything, {name} for one part."""

    def __str__(self) -> str:
        return f"{self.method} {self.service} {self.path}"
