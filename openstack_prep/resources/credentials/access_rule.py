"""Requests that an application credential allows.

Source: Identity API v3, "Application Credentials".
"""

from __future__ import annotations

from dataclasses import dataclass

from openstack_prep.base.fields import Name


@dataclass(frozen=True, kw_only=True)
class AccessRule:
    """One request that a credential allows; a credential with rules allows no other request.

    Services refuse such credentials unless their configuration contains their service_type.
    """

    method: Name
    """HTTP method, such as GET."""
    service: Name
    """Type of the service, as in the catalogue."""
    path: Name
    """Path of the request, such as /v2.1/servers; * and ** match anything, {name} matches one path segment."""

    def __str__(self) -> str:
        return f"{self.method} {self.service} {self.path}"
